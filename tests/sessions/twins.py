"""Twin repositories, one with the hooks installed: the same commands have to leave the same bytes.

Decides what belongs to a repository's state: the files of the working tree, the index entries with their
flags, `HEAD` and every ref with its log, the stash, the config, and what git leaves in the git directory
while it is in the middle of something. Objects, hooks and patchgate's own files do not belong to it.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchgate.values import fields
from tests.seeds import repeat
from tests.world import Content, Repo, pinned_environment

POLICY = '[policy]\ndeny_prefixes = ["secrets"]\n\n[content]\ndeny = ["BAD"]\n'
OFF = ("-c", "core.hooksPath=/dev/null")
BAD = {"secrets/key": "key\n"}
WORSE = {"plain/bad": "BAD\n"}
_OURS = ("patchgate", "hooks", "objects")
_HEADS = ("HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")


def files_of(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Read every file below a folder but `.git`: its mode, and its bytes or where it links to."""
    found: dict[str, tuple[str, bytes]] = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != ".git")
        for name in names:
            place = Path(top) / name
            mode = place.lstat().st_mode
            if name == ".git":
                continue
            content = os.fsencode(os.readlink(place)) if stat.S_ISLNK(mode) else place.read_bytes()
            found[os.fsdecode(os.path.relpath(place, folder))] = (stat.filemode(mode), content)
    return found


@dataclass(frozen=True)
class State:
    """Everything that a refusal or a hook must not change; `extra` is what only twins can compare."""

    files: dict[str, tuple[str, bytes]]
    index: bytes
    refs: bytes
    stash: bytes
    config: bytes
    extra: dict[str, bytes]

    @property
    def lasting(self) -> tuple[object, ...]:
        """The state without what git keeps of its own doings (logs, ORIG_HEAD, FETCH_HEAD)."""
        return (self.files, self.index, self.refs, self.stash, self.config)


def state_of(repo: Repo) -> State:
    """Read the whole state, with hooks off and nothing refreshed; the folder above it is called `.`."""
    above = os.fsencode(repo.path.parent)

    def ask(*arguments: str) -> bytes:
        return repo.git(*OFF, "--no-optional-locks", *arguments)

    git_dir = repo.path / os.fsdecode(ask("rev-parse", "--absolute-git-dir").strip())
    common = (repo.path / os.fsdecode(ask("rev-parse", "--git-common-dir").strip())).resolve()
    extra = {
        name: (git_dir / name).read_bytes().replace(above, b".")
        for name in _HEADS
        if (git_dir / name).exists()
    }
    for place in sorted(git_dir.rglob("*")):
        inside = place.relative_to(git_dir).parts
        if inside[0].startswith(_OURS) or inside[0] in {"index", "worktrees"} or place.is_dir():
            continue
        log = place.read_bytes().replace(above, b".") if inside[0] == "logs" else b""
        extra.setdefault("/".join(inside), log)
    return State(
        files_of(repo.path),
        ask("ls-files", "--stage", "-z") + ask("ls-files", "-v", "-z"),
        (git_dir / "HEAD").read_bytes()
        + ask("for-each-ref", "--format=%(refname) %(objectname) %(symref)")
        + ((common / "packed-refs").read_bytes() if (common / "packed-refs").exists() else b""),
        ask("stash", "list", "--format=%H %gs"),
        (common / "config").read_bytes().replace(above, b"."),
        extra,
    )


class Household:
    """One twin: a repository, its bare remote, and a colleague's clone in which no hooks are."""

    def __init__(self, folder: Path) -> None:
        env = pinned_environment(folder / "home")
        self.folder = folder
        self.repo = Repo(folder / "repo", env)
        self.other = Repo(folder / "other", env)
        repeat(folder, ("household",), self._arrange)
        self.repo.git("update-index", "-q", "--refresh")
        self.other.git("update-index", "-q", "--refresh")

    def _arrange(self) -> None:
        self.repo.path.mkdir()
        self.repo.git("init", "-q", "-b", "main")
        self.repo.git("init", "-q", "--bare", "-b", "main", "../remote.git")
        self.repo.git("remote", "add", "origin", "../remote.git")
        self.repo.policy(POLICY)
        files = {f"plain/{name}": f"{name}\n" * 9 for name in "abc"}
        self.repo.commit(files, "First")
        self.repo.git("push", "-q", "-u", "origin", "main")
        self.repo.git("clone", "-q", "../remote.git", "../other")

    def upstream(self, files: Mapping[str, Content], branch: str = "main") -> str:
        """Let the colleague commit and push; give the commit's id."""
        if branch != "main":
            self.other.git("switch", "-q", "-C", branch)
        commit = self.other.commit(files, f"Change {', '.join(files)}")
        self.other.git("push", "-q", "origin", f"HEAD:{branch}")
        return commit

    def plant(self, files: Mapping[str, Content], message: str = "Plant", repo: Repo | None = None) -> str:
        """Commit here with the hooks off, as if nobody had been asked; give the commit's id."""
        repo = repo or self.repo
        for name, content in files.items():
            repo.write(name, content)
        repo.git(*OFF, "add", "--", *files)
        repo.git(*OFF, "commit", "-q", "-m", message, "--", *files)
        return repo.head()

    def plant_branch(self, name: str, *commits: Mapping[str, Content], start: str = "HEAD") -> list[str]:
        """Make a branch of planted commits and come back; give their ids."""
        here = self.repo.ask("rev-parse", "--abbrev-ref", "HEAD")
        self.repo.git(*OFF, "switch", "-q", "-c", name, start)
        made = [self.plant(files, f"{name} {number}") for number, files in enumerate(commits)]
        self.repo.git(*OFF, "switch", "-q", here)
        return made


def said_by(done: subprocess.CompletedProcess[bytes]) -> str:
    """Everything that a command printed."""
    return (done.stdout + done.stderr).decode("utf-8", "backslashreplace")


class Twins:
    """Two households of the same history; in `gated` the hooks are installed."""

    def __init__(self, folder: Path) -> None:
        self.gated = Household(folder / "gated")
        self.plain = Household(folder / "plain")
        self.gated.repo.install()

    def both(self, do: Callable[[Household], object]) -> None:
        """Do the same to both; whatever it gives has to be the same."""
        assert do(self.gated) == do(self.plain)

    def git(self, *arguments: str, where: str = "repo") -> str:
        """Run git in both, which must succeed and leave the same state; give what the gated one said."""
        said = []
        for household in (self.gated, self.plain):
            repo = household.repo.at(household.folder / where)
            done = repo.try_git(*arguments)
            assert done.returncode == 0, said_by(done)
            said.append(said_by(done))
        self.same(where)
        assert "Traceback" not in said[0]
        return said[0]

    def same(self, where: str = "repo") -> None:
        """Assert that both are in the same state, byte for byte."""
        states = [state_of(each.repo.at(each.folder / where)) for each in (self.gated, self.plain)]
        differ = {
            each.name: (getattr(states[0], each.name), getattr(states[1], each.name))
            for each in fields(State)
            if getattr(states[0], each.name) != getattr(states[1], each.name)
        }
        assert not differ, differ
