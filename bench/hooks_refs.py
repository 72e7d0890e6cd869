"""The hooks inside whole git commands: at a commit, at stash, fetch and tag, and what a push meets.

Decides how a command that changes refs is repeated, which lines git sends the hook (they are recorded, and
sent again), and what a push is compared to. No network, and no remote that answers, is part of any time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.hooks_place import OFF, Place, calling, make_warm, silence_messages, ten_files
from bench.pairs import Command, Rounds
from bench.ranges import NUMSTAT, RAW
from bench.tables import Row
from bench.worlds import Wide, World, forget_ranges, make_history

_HOOK = "reference-transaction"
_ENDS = "#!/bin/sh\nexit 0\n"
_RECORDS = "#!/bin/sh\nset -- '{folder}' \"$1\" $(ls '{folder}' | wc -l)\ncat >\"$1/$(printf %03d $3).$2\"\n"
_SILENT = "no message rules"
_DEFAULTS = "the defaults"
_TIMES = 10
_LONG = 3
WITHOUT_CONTENT = b"[content]\nsecrets = false\nconflict_markers = false\n"


class RefCommands:
    """Commands that bring no commit to a branch, in one repository, under one hook or another."""

    # What may cost more than a hook that ends at once: these make or move a branch.
    _BRANCHES = ("branch", "branch further back", "switch -c", "worktree add", "reset")

    def __init__(self, place: Place, wide: Wide) -> None:
        self._place = place
        self._files = dict([*ten_files(wide, 4).items()][:1])
        world = place.world
        remote = world.place("refs-remote.git")
        world.git(world.path, "clone", "-q", "--bare", "--shared", place.directory, remote)
        place.git("remote", "add", "origin", remote)
        self._shim = Path(place.inside("hooks", _HOOK)).read_bytes()
        self._folders = {
            "ours": self._folder("ours", self._shim),
            "ends": self._folder("ends", _ENDS.encode("ascii")),
        }
        self._worktree = world.place("refs-worktree")
        self._tip = place.git("rev-parse", "main")
        self._git: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {
            "stash": (("stash", "push", "-q"), self._before_stash),
            "fetch": (("fetch", "-q", "origin"), self._before_fetch),
            "tag": (("tag", "bench"), self._start_over),
            "branch": (("branch", "bench"), self._start_over),
            "branch further back": (("branch", "bench", "main~2"), self._start_over),
            "switch -c": (("switch", "-q", "-c", "bench"), self._start_over),
            "worktree add": (
                ("worktree", "add", "-q", "--no-checkout", "-b", "bench", self._worktree),
                self._start_over,
            ),
            "reset": (("reset", "-q", "--soft", "main~1"), self._start_over),
        }

    def commands(self) -> dict[str, Command]:
        """Name each command under each hook, and each hook with what the command sends it."""
        found = {}
        for verb, (argv, before) in self._git.items():
            script = "" if verb in self._BRANCHES else self._replay(verb, argv, before)
            for whose, folder in self._folders.items():
                whole = ("git", "-c", f"core.hooksPath={folder}", *argv)
                env = self._place.world.env
                found[f"git {verb}, hook {whose}"] = Command(whole, self._place.directory, env, before=before)
                if not script:
                    continue
                again = ("sh", script, os.path.join(folder, _HOOK))
                found[f"hook {whose} as at {verb}, {_TIMES} times"] = Command(
                    again, self._place.directory, env, before=before
                )
        return found

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare ours with a hook that ends at once."""
        found = []
        for verb in self._git:
            ratios = rounds.ratios(f"git {verb}, hook ours", f"git {verb}, hook ends")
            against = f"the same with `{' '.join(_ENDS.split()[1:])}` as the hook"
            limit = 1.5 if verb in self._BRANCHES else 1.3
            found.append(Row(f"`git {verb}`, {_HOOK} alone", against, limit, ratios, reach=1.1))
        for verb in self._git:
            if verb in self._BRANCHES:
                continue
            ours, ends = (f"hook {whose} as at {verb}, {_TIMES} times" for whose in self._folders)
            what = f"hook {_HOOK} alone, with the input of `git {verb}`"
            found.append(Row(what, "that hook alone", 1.3, rounds.ratios(ours, ends), reach=1.1))
        return found

    def require_quiet(self) -> None:
        """Stop where the hook calls git-patchgate for a command that changes no branch.

        Raises:
            SystemExit: it does, or it cannot be told.
        """
        called = Path(self._place.world.place("called"))
        program = self._folder("listener", f"#!/bin/sh\n: >'{called}'\nexit 1\n".encode(), "git-patchgate")
        heard = calling(self._shim, os.fsencode(os.path.join(program, "git-patchgate")))
        folder = self._folder("heard", heard)
        for verb, (argv, before) in self._git.items():
            before()
            self._place.world.git(self._place.directory, "-c", f"core.hooksPath={folder}", *argv)
            if called.exists():
                raise SystemExit(f"{_HOOK} calls git-patchgate at git {verb}: there is nothing to measure")
        env = self._place.env
        unknown = self._place.git("commit-tree", "-p", "main", "-m", "Unknown", "main^{tree}")
        argv = ("git", "-c", f"core.hooksPath={folder}", "update-ref", "refs/heads/unknown", unknown)
        subprocess.run(argv, cwd=self._place.directory, env=env, stderr=subprocess.DEVNULL, check=False)
        if not called.exists():
            raise SystemExit(f"{_HOOK} calls nobody at a new branch either: this benchmark proves nothing")

    def _folder(self, name: str, text: bytes, file: str = _HOOK) -> str:
        folder = self._place.world.place(f"refs-{name}")
        os.mkdir(folder)
        hook = Path(folder, file)
        hook.write_bytes(text)
        hook.chmod(0o755)
        return folder

    def _replay(self, verb: str, argv: tuple[str, ...], before: Callable[[], None]) -> str:
        """Record what git sends at a command; write a script that sends it to the hook that it is given."""
        said = self._place.world.place(f"sent-{verb}")
        os.mkdir(said)
        recorder = self._folder(f"recorder-{verb}", _RECORDS.format(folder=said).encode())
        before()
        self._place.world.git(self._place.directory, "-c", f"core.hooksPath={recorder}", *argv)
        calls = [(name.partition(".")[2], os.path.join(said, name)) for name in sorted(os.listdir(said))]
        if not calls:
            raise SystemExit(f"git {verb} ran no {_HOOK} hook: this benchmark proves nothing")
        lines = "".join(f"\"$1\" {state} <'{path}' || exit\n" for state, path in calls)
        script = self._place.world.place(f"replay-{verb}.sh")
        Path(script).write_text(f"for each in {'x ' * _TIMES}; do\n{lines}done\n", encoding="utf-8")
        return script

    def _start_over(self) -> None:
        """Go back to main as it was, with nothing of an earlier command; HEAD follows without a checkout."""
        if os.path.exists(self._worktree):
            self._place.git("worktree", "remove", "--force", self._worktree)
        self._place.git("symbolic-ref", "HEAD", "refs/heads/main")
        self._place.git("update-ref", "refs/heads/main", self._tip)
        for ref in ("refs/stash", "refs/tags/bench", "refs/heads/bench"):
            self._drop(ref)
        # What a branch had is another answer than what it has.
        Path(self._place.inside("logs/refs/heads/main")).unlink(missing_ok=True)

    def _before_stash(self) -> None:
        self._start_over()
        for name, content in self._files.items():
            Path(self._place.directory, name).write_bytes(content)

    def _before_fetch(self) -> None:
        self._start_over()
        self._place.git("update-ref", "refs/remotes/origin/main", "main~1")

    def _drop(self, ref: str) -> None:
        if os.path.exists(self._place.inside(ref)):
            self._place.git("update-ref", "-d", ref)


class PushOfOne:
    """The hook pre-push for the commit at HEAD, which the remote lacks."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.remote = ("origin", place.world.place("nobody.git"))
        place.git("remote", "add", *self.remote)
        place.git("config", "branch.main.remote", "origin")
        place.git("config", "branch.main.merge", "refs/heads/main")
        self.stdin = _pushed(place, "main~1")

    def command(self) -> Command:
        """Run ours."""
        return self.place.at_push(".git/hooks/pre-push", *self.remote, stdin=self.stdin)


def _pushed(place: Place, base: str) -> str:
    """Make the remote have `base`; write what git tells pre-push of `main`, and give the file's name."""
    place.git("update-ref", "refs/remotes/origin/main", base)
    old, new = place.git("rev-parse", base, "main").split()
    path = f"{place.directory}-pushed"
    Path(path).write_text(f"refs/heads/main {new} refs/heads/main {old}\n", encoding="ascii")
    return path


class LongPush:
    """The hook pre-push for a long history, under the defaults and under a policy that reads no content."""

    REFERENCE = "rev-list | diff-tree --raw --numstat"

    def __init__(self, world: World, count: int) -> None:
        self._count = count
        self._hooks = {}
        for name, policy in ((_DEFAULTS, None), ("no content rules", WITHOUT_CONTENT)):
            place = Place(world, make_history(world, count, policy=policy))
            place.install()
            remote = ("origin", f"{place.directory}-remote.git")
            place.git("remote", "add", *remote)
            stdin = _pushed(place, f"main~{count}")
            self._hooks[name] = Command(
                (".git/hooks/pre-push", *remote),
                place.directory,
                place.push_env,
                stdin,
                # A push that was judged before is remembered.
                before=partial(forget_ranges, place.inside()),
                every=_LONG,
            )
            self._directory = place.directory
        self._world = world

    def commands(self) -> dict[str, Command]:
        """Name the hook under each policy, and what git takes to tell of the same commits."""
        count = f"{self._count:,} commits"
        revisions = f"main~{self._count}..main"
        walk = f"git rev-list --topo-order --reverse {revisions} | git diff-tree --stdin -r {RAW} {NUMSTAT}"
        reference = Command(("sh", "-c", walk), self._directory, self._world.env, every=_LONG)
        hooks = {f"pre-push, {count}, {name}": command for name, command in self._hooks.items()}
        return {self.REFERENCE: reference, **hooks}

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare them."""
        found = []
        for name in self._hooks:
            ratios = rounds.ratios(f"pre-push, {self._count:,} commits, {name}", self.REFERENCE)
            what = f"hook pre-push, {self._count:,} new commits, {name}"
            found.append(Row(what, f"`git {self.REFERENCE}`, pinned flags", 1.15, ratios, reach=1.05))
        return found


class Commits:
    """`git commit` of ten staged files: with the default set of hooks, with them switched off, without."""

    _PLAIN = "git commit, no hooks"

    def __init__(self, base: Place, wide: Wide, files: str) -> None:
        self._files = files
        self._plain = base.copy("plain")
        make_warm(self._plain, wide)
        self.hooked = {
            name: base.copy(f"hooked-{number}") for number, name in enumerate((_SILENT, _DEFAULTS))
        }
        for name, place in self.hooked.items():
            if name == _SILENT:
                silence_messages(place)
            place.install()
            make_warm(place, wide)

    def commands(self) -> dict[str, Command]:
        """Name each; every run begins at the same commit, with the same files staged."""
        found = {self._PLAIN: _commit(self._plain)}
        for name, place in self.hooked.items():
            found[f"git commit, {name}"] = _commit(place)
            found[f"git commit, {name}, switched off"] = _commit(place, *OFF)
        return found

    def paths(self) -> dict[str, bool]:
        """Tell whether each lands where git-patchgate cannot be started; nothing is left of the trial."""
        found = {}
        for name, place in self.hooked.items():
            place.start_over()
            found[f"git commit, {name}"] = place.commits_fast("Try what the fast path says to it")
            place.start_over()
        return found

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare them."""
        found = []
        for name in self.hooked:
            ours = f"git commit, {name}"
            what = f"`git commit` with the default set of hooks, {name}, ten staged, {self._files}"
            for other, against in ((f"{ours}, switched off", "switched off"), (self._PLAIN, "no hooks")):
                found.append(
                    Row(what, f"`git commit`, {against}", 2.8, rounds.ratios(ours, other), reach=2.2)
                )
        return found


def _commit(place: Place, *options: str) -> Command:
    message = f"{place.directory}-message"
    argv = ("git", *options, "commit", "-q", "-F", message)
    return Command(argv, place.directory, place.world.env, before=_before_commit(place, message))


def _before_commit(place: Place, message: str) -> Callable[[], None]:
    """Go back to before the commit, and word the next one so that it is a new one."""
    number = 0

    def before() -> None:
        nonlocal number
        number += 1
        place.start_over()
        Path(message).write_text(f"Change ten files, time {number}\n", encoding="ascii")

    return before
