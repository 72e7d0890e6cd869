"""What the peers do at the same commit: refuse a denied path, and an added file that is too large.

Decides each one's own words for it and its quickest form: prek gets its built-in check, lefthook is started
without the Python wrapper that its wheel has, none through the shim that it would install. pre-commit runs
the check for large files that its users run, where that is installed, and beside it a line of sh.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.bypass_managers import PEERS, peers
from bench.hooks_place import Place, exit_code
from bench.pairs import Command
from bench.worlds import World

_LARGE = "check-added-large-files"
_LARGE_FROM = "pre-commit-hooks==6.0.0"
_MOST_KB = 1024
# What worlds.POLICY says.
_DENIED = r"^(runs|vault)/|[.](pem|key)$|(^|/)secret[^/]*/"
_JOB = f"""\
# Refuses denied paths, and what is larger than {_MOST_KB} kB.
printf '%s\\n' "$@" | grep -qE '{_DENIED}' && exit 1
[ -z "$(find "$@" -size +{_MOST_KB}k)" ]
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer: its name, what it is told to do, how it is started, and with which variables.

    `push` gives the arguments of its pre-push, before those that git passes; empty where it has no job there.
    """

    name: str
    job: str
    version: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    push: tuple[str, ...] = ()

    def at_commit(self, place: Place) -> Command:
        """Time it at the commit that is staged."""
        return place.at_commit(*self.argv, **dict(self.env))

    def at_push(self, place: Place, remote: tuple[str, ...], stdin: str) -> Command:
        """Time it at a push."""
        return place.at_push(*self.push, *remote, stdin=stdin, **dict(self.env))


def find_peers(world: World, folder: str | None) -> list[Peer]:
    """Find the peers in a virtual environment; without one, make it.

    Raises:
        SystemExit: they had to be fetched, and could not be.
    """
    if folder is None:
        made = Path(world.place("peers"))
        peers(made)
        pip = (str(made / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        if subprocess.run((*pip, _LARGE_FROM), stdout=sys.stderr, check=False).returncode:
            raise SystemExit(f"{_LARGE_FROM} could not be installed: is the package index reachable?")
        folder = str(made)
    found = [*_prek(world, folder), *_lefthook(world, folder), *_pre_commit(world, folder)]
    missing = [name for name in PEERS if all(name != peer.name for peer in found)]
    if missing:
        print(f"not installed, so not measured: {', '.join(missing)}", file=sys.stderr)
    return found


def require_equal(place: Place, found: Sequence[Peer], refused: str) -> None:
    """Stop where a peer lets through what is refused here.

    Args:
        place: a repository with all its files in the working tree.
        found: the peers.
        refused: an index that adds a denied file, as `GIT_INDEX_FILE` says it.

    Raises:
        SystemExit: it has not been told the same.
    """
    denied = Path(place.directory, "vault", "token.txt")
    denied.parent.mkdir()
    denied.write_text("nothing\n", encoding="ascii")
    for peer in found:
        command = peer.at_commit(place)
        if exit_code(command, command.env) or not exit_code(
            command, {**command.env, "GIT_INDEX_FILE": refused}
        ):
            raise SystemExit(f"{peer.name} ({peer.job}) does not refuse what is refused here, and only that")
    denied.unlink()
    denied.parent.rmdir()


def _prek(world: World, folder: str) -> list[Peer]:
    program = os.path.join(folder, "bin", "prek")
    if not os.path.exists(program):
        return []
    built_in = (
        f"- repo: builtin\n  hooks:\n  - id: {_LARGE}\n    args: ['--maxkb={_MOST_KB}']\n    types: [file]\n"
    )
    config = _write(world, "prek.yaml", _denying() + built_in)
    return [Peer("prek", f"fail, {_LARGE} built in", version_of(program), (program, "run", "-c", config))]


def _lefthook(world: World, folder: str) -> list[Peer]:
    wrapper = os.path.join(folder, "bin", "lefthook")
    if not os.path.exists(wrapper):
        return []
    program = native_lefthook(folder)
    script = _write(world, "refuse.sh", _JOB)
    hooks = {"pre-commit": "{staged_files}", "pre-push": "{push_files}"}
    text = "".join(
        f"{hook}:\n  jobs:\n    - name: refuse\n      run: sh {script} {names}\n"
        for hook, names in hooks.items()
    )
    run = (program, "run", "--no-auto-install")
    return [
        Peer(
            "lefthook",
            "one script for both",
            version_of(program, "version"),
            (*run, "pre-commit"),
            (("LEFTHOOK_CONFIG", _write(world, "lefthook.yml", text)),),
            (*run, "pre-push"),
        )
    ]


def _pre_commit(world: World, folder: str) -> list[Peer]:
    program = os.path.join(folder, "bin", "pre-commit")
    if not os.path.exists(program):
        return []
    large = os.path.join(folder, "bin", _LARGE)
    script = _write(world, "large.sh", f'[ -z "$(find "$@" -size +{_MOST_KB}k)" ]\n')
    jobs = {"a line of sh": f"sh {script}"}
    if os.path.exists(large):
        jobs = {f"{_LARGE} of pre-commit-hooks": f"{large} --maxkb={_MOST_KB}", **jobs}
    found = []
    for number, (job, entry) in enumerate(jobs.items()):
        hook = f"  - {{id: large, name: large, language: system, entry: '{entry}'}}\n"
        config = _write(world, f"pre-commit-{number}.yaml", _denying() + hook)
        argv = (program, "run", "-c", config)
        found.append(Peer("pre-commit", f"fail, {job}", version_of(program), argv))
    return found


def _denying() -> str:
    deny = f"{{id: deny, name: deny, language: fail, entry: denied, files: '{_DENIED}'}}"
    return f"repos:\n- repo: local\n  hooks:\n  - {deny}\n"


def _write(world: World, name: str, text: str) -> str:
    path = world.place(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def native_lefthook(folder: str) -> str:
    """Give lefthook itself, which a script in Python starts where it comes from a wheel."""
    native = sorted(Path(folder).glob("lib/python*/site-packages/lefthook/bin/*/lefthook"))
    return str(native[0]) if native else os.path.join(folder, "bin", "lefthook")


def version_of(program: str, option: str = "--version") -> str:
    """Ask a program for its version."""
    done = subprocess.run((program, option), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return done.stdout.decode("utf-8", "replace").split()[-1 if option == "version" else 1]
