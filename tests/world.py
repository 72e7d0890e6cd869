"""A real git repository in a pinned world: own HOME, no system config, fixed dates, locale and user.

A builder, not a fixture: each test says what is in its repository. `check` runs the real command line in this
process; `run` starts it as a child, as a hook would.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from patchgate.cli import program
from tests import quick_git
from tests.children import server
from tests.seeds import repeat

T = TypeVar("T")
Content = str | bytes
EXECUTABLE = Path(sys.executable).parent / "git-patchgate"


def pinned_environment(home: Path) -> dict[str, str]:
    """Everything that git and the command may see: nothing of the machine's own config or clock."""
    home.mkdir(parents=True, exist_ok=True)
    # What git does on its own account at times is no part of any test.
    if not (config := home / ".gitconfig").exists():
        # Nor are the examples of hooks that git puts into each repository.
        for folder in ("hooks", "info"):
            (home / ".template" / folder).mkdir(parents=True)
        config.write_text(
            "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n"
            "[init]\n\ttemplateDir = ~/.template\n"
        )
    return _environment(home)


def server_variables() -> dict[str, str]:
    """Return what lets hooks find the server that forks them (`tests/children.py`)."""
    forked = server(EXECUTABLE)
    return {} if forked is None else dict(forked.variables)


def _environment(home: Path) -> dict[str, str]:
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (
            ("NAME", "A U Thor"),
            ("EMAIL", "author@example.com"),
            ("DATE", "1700000000 +0000"),
        )
    }
    return {
        "PATH": f"{EXECUTABLE.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(home.parent),
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        # A pytest that a test starts imports no plugins, for they take long.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **{key: os.environ[key] for key in ("TMPDIR",) if key in os.environ},
        **server_variables(),
        **who,
    }


@dataclass(frozen=True)
class Answer:
    """What the command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @cached_property
    def report(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        loaded = json.loads(self.out)
        assert isinstance(loaded, dict)
        return loaded

    @property
    def verdict(self) -> str:
        """The verdict of the whole."""
        return str(self.report["verdict"])

    @property
    def changes(self) -> list[dict[str, Any]]:
        """One object for each change that was judged."""
        return list(self.report["changes"])

    @property
    def change(self) -> dict[str, Any]:
        """The only change that was judged."""
        (only,) = self.report["changes"]
        return dict(only)

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """The files of the only change, by their path."""
        return {row["path"]: row for row in self.change["files"]}

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of every change."""
        return [finding for change in self.changes for finding in change["findings"]]

    @property
    def rules(self) -> list[str]:
        """The rules that were raised, each as often as it was."""
        return [finding["rule"] for finding in self.findings]

    @property
    def errors(self) -> list[str]:
        """The rules of the findings of level error."""
        return [finding["rule"] for finding in self.findings if finding["level"] == "error"]

    @property
    def error(self) -> dict[str, Any]:
        """The body of the error document, where there was no report."""
        return dict(self.report["error"])


class Repo:
    """A git repository in a pinned world."""

    def __init__(self, path: Path, env: Mapping[str, str]) -> None:
        self.path = path
        self.env = dict(env)

    @classmethod
    def create(cls, folder: Path, *arguments: str) -> Repo:
        """Make an empty repository in `folder`/repo; `arguments` go to `git init`."""
        repo = cls(folder / "repo", pinned_environment(folder / "home"))
        repo.path.mkdir(parents=True)
        repo._repeated(lambda: repo.git("init", "-q", "-b", "main", *arguments), "init", *arguments)
        return repo

    @cached_property
    def git_dir(self) -> str:
        """Git's folder of this worktree."""
        return self.ask("rev-parse", "--absolute-git-dir")

    @cached_property
    def common_dir(self) -> str:
        """Git's folder that all worktrees share."""
        return self.ask("rev-parse", "--path-format=absolute", "--git-common-dir")

    def head(self) -> str:
        """Return the id of the commit at HEAD."""
        # Asking git takes longer, and thousands of tests ask.
        with contextlib.suppress(OSError):
            head = (self.path / ".git" / "HEAD").read_text()
            oid = (self.path / ".git" / head.removeprefix("ref: ").strip()).read_text().strip()
            if re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", oid):
                return oid
        return self.ask("rev-parse", "HEAD")

    def at(self, path: Path) -> Repo:
        """Name another place (a clone, a linked worktree) in the same world."""
        return Repo(path, self.env)

    def try_git(
        self, *arguments: str | bytes, stdin: bytes = b"", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git and give what it did, whether or not it went well."""
        return subprocess.run(
            ["git", *arguments],
            input=stdin,
            cwd=cwd or self.path,
            env=self.env | env,
            capture_output=True,
            check=False,
        )

    def git(self, *arguments: str | bytes, stdin: bytes = b"", cwd: Path | None = None, **env: str) -> bytes:
        """Run git, which must succeed; give its output as it is."""
        done = self.try_git(*arguments, stdin=stdin, cwd=cwd, **env)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout

    def ask(self, *arguments: str | bytes) -> str:
        """Run git, which must succeed; give its output as stripped text."""
        return self.git(*arguments).decode("utf-8").strip()

    def write(self, name: str | bytes, content: Content = "text\n", *, executable: bool = False) -> Path:
        """Write a file of the working tree, with the folders above it."""
        place = self.path / os.fsdecode(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        place.chmod(0o755 if executable else 0o644)
        return place

    def link(self, name: str, target: str) -> None:
        """Make a symlink in the working tree."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def stage(self, files: Mapping[str, Content] | None = None) -> None:
        """Write files, then stage everything that differs, deletions included."""
        for name, content in (files or {}).items():
            self.write(name, content)
        if not (self._is_pinned() and quick_git.stage(self.path)):
            self.git("add", "-A")

    def commit(
        self, files: Mapping[str, Content] | None = None, message: str = "Change", *arguments: str
    ) -> str:
        """Write files, stage everything, commit it without hooks; give the commit's id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        if not os.path.exists(self.path / ".git" / "hooks" / "reference-transaction"):
            return self._commit(message, *arguments)
        # The hook costs 200 ms, and many tests begin with the same commit.
        staged = self.git("ls-files", "--stage", "-v", "-z")
        made = self._repeated(
            lambda: self._commit(message, *arguments), "commit", staged, message, *arguments
        )
        self.try_git("update-index", "-q", "--refresh")
        return made

    def _commit(self, message: str, *arguments: str) -> str:
        if not arguments and self._is_pinned() and (made := quick_git.commit(self.path, message)):
            return made
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--no-verify", "-m", message, *arguments)
        return self.head()

    def _repeated(self, run: Callable[[], T], *step: object) -> T:
        """Run a step, or repeat it from memory, if this repository is in its pinned world."""
        if not self._is_pinned():
            return run()
        folder = Path(self.env["HOME"]).parent
        return repeat(folder, (str(self.path.relative_to(folder)), *step), run)

    def _is_pinned(self) -> bool:
        """Return whether this repository is in its pinned world, and the environment is as it was made."""
        folder = Path(self.env["HOME"]).parent
        return folder in self.path.parents and self.env == _environment(folder / "home")

    def policy(self, text: str) -> str:
        """Commit a `patchgate.toml`, alone."""
        return self.commit({"patchgate.toml": text}, "Set the policy")

    def install(self, *arguments: str) -> Answer:
        """Install the hooks, which must go well."""
        return self._repeated(lambda: self._install(*arguments), "install", *arguments)

    def _install(self, *arguments: str) -> Answer:
        done = self.run("install", *arguments)
        assert done.code == 0, done.err
        return done

    def gitlink(self, name: str, oid: str = "1" * 40) -> None:
        """Stage a gitlink; no repository needs to be there."""
        self.git("update-index", "--add", "--cacheinfo", f"160000,{oid},{name}")

    def cli(self, *arguments: str, cwd: Path | None = None, **env: str) -> Answer:
        """Run `git patchgate` with these arguments in this process, in this repository's world."""
        return self._in_process(arguments, cwd or self.path, self.env | env)

    def answer_hook(self, name: str, stdin: bytes) -> Answer:
        """Run a hook in this process, with what git would give it."""
        with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))):
            return self._in_process(("hook", name), self.path, self.env)

    def _in_process(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, env, clear=True),
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            # The function under `main`, which would end this process.
            code = program.run(list(arguments))
        return Answer(code, out.getvalue(), err.getvalue())

    def run(self, *arguments: str, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> Answer:
        """Run `git-patchgate` as a process of its own."""
        place, world = cwd or self.path, self.env | env
        forked = server(EXECUTABLE)
        if forked is not None and forked.can_run(world, stdin):
            done = forked.run(arguments, place, world, stdin)
        else:
            done = subprocess.run(
                [EXECUTABLE, *arguments], input=stdin, cwd=place, env=world, capture_output=True, check=False
            )
        return Answer(
            done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "backslashreplace")
        )

    def check(self, *arguments: str, cwd: Path | None = None, **env: str) -> Answer:
        """Run `git patchgate check --format json` in this process."""
        return self.cli("check", "--format", "json", *arguments, cwd=cwd, **env)


class AskedGit:
    """A `git` that notes what it is asked; `path` is a PATH that begins with it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._notes = folder / "asked"
        script = folder / "asking-bin" / "git"
        script.parent.mkdir()
        git = shutil.which("git")
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{self._notes}"\nexec "{git}" "$@"\n')
        script.chmod(0o755)
        self.path = f"{script.parent}:{env['PATH']}"

    def times(self, command: str) -> int:
        """How often a command of git was asked for."""
        return sum(f" {command} " in line for line in self._notes.read_text().splitlines())

    def total(self) -> int:
        """How often git was asked for anything."""
        return len(self._notes.read_text().splitlines()) if self._notes.exists() else 0
