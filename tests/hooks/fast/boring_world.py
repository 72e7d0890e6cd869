"""Repositories with the real hooks, in which a boring change can be told from what is handed on.

The program that the shims call is a stub: it judges only where `PATCHGATE_FULL` asks it to, and else ends
with 7. So a hook that ends with 0 has recognised the change, and one that ends with 7 has handed it on. A
repository is made once for each policy, and copied.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patchgate import __version__
from patchgate.git.repository import open_repository
from patchgate.hooks.fast.renewal import renew_all
from tests.world import Content, Repo, pinned_environment

RECOGNISED = 0
HANDED_ON = 7
ACCEPTED = 99
FILES: dict[str, Content] = {
    "a": "1\n",
    "b": "1\n",
    "empty": "",
    "src/deep/c.py": "x = 1\n",
    "src/New/d.py": "x = 1\n",
    "run.sh": "true\n",
}
_STUB = '#!/bin/sh\n[ -z "${PATCHGATE_FULL-}" ] || exec git-patchgate "$@"\nexit 7\n'
# Stands in for the interpreter, to hear what the shim says to the recogniser.
_EAR = "#!/bin/sh\nprintf '%s\\n' \"$@\" >{0}.words\ncat >{0}.said\nexit 1\n"


@dataclass(frozen=True)
class Heard:
    """What the shim said to the recogniser: the arguments after the copy, and standard input."""

    words: tuple[str, ...]
    said: bytes


class World:
    """A repository with the real hooks and everything that the fast path needs."""

    def __init__(self, repo: Repo, ear: Path) -> None:
        self.repo = repo
        self._ear = ear

    def beside(self, place: Path) -> World:
        """Name a linked worktree of this repository."""
        return World(self.repo.at(place), self._ear)

    @property
    def git_dir(self) -> Path:
        """Git's folder of this worktree."""
        return Path(self.repo.git_dir)

    @property
    def state(self) -> Path:
        """What patchgate keeps in this repository."""
        return Path(self.repo.common_dir, "patchgate")

    @property
    def copy(self) -> Path:
        """The compiled recogniser."""
        return self.state / "fast" / __version__ / "recognise.pyc"

    @property
    def compiled(self) -> Path:
        """The compiled policy; there is one."""
        (found,) = (each for each in self.copy.parent.iterdir() if each.suffix != ".pyc")
        return found

    def pending(self) -> bytes | None:
        """What pre-commit has left for the transaction."""
        return _content(self.git_dir / "patchgate-pending")

    def quiet(self) -> bytes | None:
        """What pre-commit has left for commit-msg."""
        return _content(self.git_dir / "patchgate-quiet")

    def hook(self, *shell: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the installed pre-commit as git does, at the top of the working tree; or by another shell."""
        return subprocess.run(
            [*shell, self.state.parent / "hooks" / "pre-commit"],
            cwd=self.repo.path,
            env=self.repo.env | {"GIT_DIR": str(self.git_dir)} | env,
            capture_output=True,
            check=False,
        )

    def judge(self) -> subprocess.CompletedProcess[bytes]:
        """Let the full tier judge what is staged."""
        return self.hook(PATCHGATE_FULL="1")

    def join(self, other: str, *shell: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the installed pre-merge-commit as git does, before it commits a merge of another commit."""
        return subprocess.run(
            [*shell, self.state.parent / "hooks" / "pre-merge-commit"],
            cwd=self.repo.path,
            env=self.repo.env | {"GIT_DIR": str(self.git_dir), f"GITHEAD_{other}": "side"} | env,
            capture_output=True,
            check=False,
        )

    def land(self, commit: str, *shell: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the installed reference-transaction as git does when main is about to get a commit."""
        old = self.repo.ask("rev-parse", "refs/heads/main")
        return subprocess.run(
            [*shell, self.state.parent / "hooks" / "reference-transaction", "prepared"],
            input=f"{old} {commit} refs/heads/main\n".encode("ascii"),
            cwd=self.repo.path,
            env=self.repo.env | {"GIT_DIR": str(self.git_dir)} | env,
            capture_output=True,
            check=False,
        )

    def landing(self) -> bytes | None:
        """What the transaction has left for the receipts."""
        return _content(self.git_dir / "patchgate-landing")

    def listen(self, commit: str | None = None) -> Heard:
        """Hear what the shim says to the recogniser: of what is staged, or of a commit that main gets."""
        active = self.state / "fast" / "active"
        kept = active.read_bytes()
        meaning, version, _ = kept.split(b" ", 2)
        active.write_bytes(b"%s %s %s\n" % (meaning, version, os.fsencode(self._ear)))
        try:
            done = self.hook() if commit is None else self.land(commit)
            assert done.returncode == HANDED_ON
        finally:
            active.write_bytes(kept)
        # The options of Python and the copy come first.
        words = Path(f"{self._ear}.words").read_text(encoding="utf-8").splitlines()[3:]
        return Heard(tuple(words), Path(f"{self._ear}.said").read_bytes())

    def recognise(
        self, program: Path, heard: Heard, *, git: Path | None = None, is_disk_full: bool = False
    ) -> int:
        """Run a compiled recogniser on what was heard, maybe with another `git`; give its exit code."""
        env = self.repo.env
        if git is not None:
            env = env | {"PATH": f"{git.parent}{os.pathsep}{env['PATH']}"}
        command = [sys.executable, "-I", "-S", str(program), *heard.words]
        if is_disk_full:
            # A file of 512 bytes or 1 KiB at most, by what sh counts in.
            command = ["sh", "-c", "ulimit -f 1 && exec " + shlex.join(command)]
        done = subprocess.run(
            command,
            input=heard.said,
            cwd=self.repo.path,
            env=env,
            capture_output=True,
            check=False,
        )
        return done.returncode

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        """Read mode and content of every file, also git's."""
        return {
            str(place.relative_to(self.repo.path)): (place.lstat().st_mode, place.read_bytes())
            for place in sorted(self.repo.path.rglob("*"))
            if place.is_file()
        }


class Worlds:
    """Makes a repository for each policy once, and gives copies of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, ...], Repo] = {}
        self._copies = 0
        self._stub = self._script("git-patchgate", _STUB)
        ear = folder / "ear"
        self._ear = self._script("ear", _EAR.format(shlex.quote(str(ear))))

    def __call__(self, policy: str = "", *arguments: str) -> World:
        """Give a repository with one commit of plain files under a policy; `arguments` go to `git init`."""
        key = (policy, *arguments)
        if key not in self._made:
            self._made[key] = self._make(len(self._made), policy, arguments)
        made = self._made[key]
        self._copies += 1
        place = self._folder / "copies" / str(self._copies) / "repo"
        shutil.copytree(made.path, place, symlinks=True)
        return World(Repo(place, made.env), self._ear)

    def adopt(self, repo: Repo) -> World:
        """Install the hooks in a repository, and make ready what the fast path needs."""
        repo.install()
        world = World(repo, self._ear)
        self.stub(world, "pre-commit", "reference-transaction")
        assert renew_all(open_repository(repo.env, str(repo.path))).warning is None
        return world

    def stub(self, world: World, *names: str) -> None:
        """Let hooks call the stub instead of the full tier."""
        line = f"patchgate={shlex.quote(str(self._stub))}"
        for name in names:
            hook = world.state.parent / "hooks" / name
            text = hook.read_text(encoding="utf-8")
            text, number = re.subn(r"(?m)^patchgate=.*$", lambda _: line, text)
            assert number == 1
            hook.write_text(text, encoding="utf-8")

    def _make(self, number: int, policy: str, arguments: tuple[str, ...]) -> Repo:
        repo = Repo(self._folder / f"made{number}", pinned_environment(self._folder / "home"))
        repo.path.mkdir()
        repo.git("init", "-q", "-b", "main", *arguments)
        shutil.rmtree(repo.path / ".git/hooks")
        repo.stage({**FILES, **({"patchgate.toml": policy} if policy else {})})
        repo.git("update-index", "--chmod=+x", "run.sh")
        (repo.path / "run.sh").chmod(0o755)
        repo.git("commit", "-q", "-m", "First")
        return self.adopt(repo).repo

    def _script(self, name: str, text: str) -> Path:
        place = self._folder / name
        place.write_text(text, encoding="utf-8")
        place.chmod(0o755)
        return place


Arrange = Callable[[World], None]


def _content(place: Path) -> bytes | None:
    return place.read_bytes() if place.exists() else None
