"""One case's world: a repository with a bare remote and a hook manager installed, all made afresh.

Decides how a case plants what no gate has seen (hooks off), how it does what is under test (hooks on), and
what counts as *landed*: a ref that has another value afterwards, never an exit code. The same case is run
with `bad` off as a control: then the same commands do something harmless, which has to land.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

OFF = ("-c", "core.hooksPath=/dev/null")
REASON = "the release waits for a vendored parser"


@dataclass(frozen=True, slots=True)
class Manager:
    """What runs hooks: its tracked files and the commands that put it to work.

    `files` gives its config and the policy, by whether merges have a hook of their own (else: what its own
    install command gives); `weaker` the same policy with nothing in it. `skip` is the variable that switches
    it off, `doctor` its own command that tells whether its hooks run, `log` the one that tells what was
    skipped; None where it has none.
    """

    name: str
    folder: Path
    files: Callable[[bool], Mapping[str, str]]
    weaker: Mapping[str, str]
    install: tuple[str, ...]
    skip: Mapping[str, str]
    doctor: tuple[str, ...] | None = None
    log: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case.

    `landed` is what landed where (`here`, `remote`; with more than one attempt, its name); `refused` is where
    something was stopped. `doctor`, `told` and `recorded` are None where the case does not ask: whether the
    manager's own check noticed, whether the next gate named the commit, whether reason and commit are in its
    record.
    """

    landed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    doctor: bool | None = None
    told: bool | None = None
    recorded: bool | None = None

    @property
    def word(self) -> str:
        """What the grid says."""
        if not self.landed:
            return "caught"
        if self.recorded:
            return "recorded" + (", caught at push" if "remote" in self.refused else ", pushed")
        if self.told:
            return "seen" if self.doctor is not False else "seen by the next gate"
        if self.doctor:
            return "seen by its doctor"
        if self.refused == ("remote",):
            return "caught at push"
        if self.refused:
            return f"passed: {', '.join(self.landed)}"
        return "passed" if self.told is None and self.recorded is None else "passed, no trace"


class Place:
    """A repository at `path` on `main`, with a bare `origin` that has it, and one manager's hooks in force.

    `said` collects what the commands under test printed.
    """

    def __init__(
        self, folder: Path, manager: Manager, *, bad: bool = True, merges: bool = False, **env: str
    ) -> None:
        self.folder, self.manager, self.bad = folder, manager, bad
        self.path, self.remote = folder / "repo", folder / "remote.git"
        self.said = ""
        (folder / "home").mkdir(parents=True)
        who = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", "A U Thor"), ("EMAIL", "author@example.com"))
        }
        self.env = {
            "PATH": f"{manager.folder}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(folder),
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C.UTF-8",
            **who,
            **env,
        }
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("init", "-q", "--bare", "-b", "main", str(self.remote))
        self.git("remote", "add", "origin", "../remote.git")
        for name in ("plain/a", "plain/x", "plain/policy.txt", "protected/x", "protected/policy.txt"):
            self.write(name, f"{name}\nline\n")
        for name, text in manager.files(merges).items():
            self.write(name, text)
        self.plant("First")
        self.git("push", "-q", "origin", "main:release", "main:topic")
        self.git("push", "-q", "-u", "origin", "main")
        self.git("remote", "set-head", "origin", "main")
        self.run(manager.install)

    def denied(self, name: str) -> str:
        """Name a path that the policy denies; in the control, its harmless neighbour."""
        return name if self.bad else "plain/" + name.partition("/")[2]

    @property
    def content(self) -> str:
        """Content that the policy denies; in the control, content that it does not."""
        return "BAD\n" if self.bad else "fine\n"

    def run(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Start a program in this world, in the repository."""
        done = subprocess.run(
            argv,
            cwd=cwd or self.path,
            env=self.env | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if check and done.returncode:
            said = done.stdout.decode("utf-8", "backslashreplace")
            raise SystemExit(f"{self.manager.name}: {' '.join(argv)} ended with {done.returncode}: {said}")
        return done

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git without any hook; it must succeed."""
        return self.run(("git", *OFF, *arguments), cwd=cwd).stdout.decode("utf-8", "backslashreplace").strip()

    def write(self, name: str, text: str, folder: Path | None = None) -> None:
        """Write a file of the working tree, with the folders above it."""
        place = (folder or self.path) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def plant(self, message: str, files: Mapping[str, str] | None = None, folder: Path | None = None) -> str:
        """Commit everything with the hooks off, as if it had come about before any gate; give its id."""
        for name, text in (files or {}).items():
            self.write(name, text, folder)
        self.git("add", "-A", cwd=folder)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=folder)
        return self.git("rev-parse", "HEAD", cwd=folder)

    def plant_branch(self, branch: str, files: Mapping[str, str], *, stay: bool = False) -> str:
        """Make a branch off `main` with one planted commit; stay on it only if told."""
        self.git("switch", "-q", "-c", branch, "main")
        commit = self.plant(f"Work on {branch}", files)
        if not stay:
            self.git("switch", "-q", "main")
        return commit

    def value(self, ref: str, *, remote: bool = False) -> str | None:
        """Give the commit or tag that a ref has, here or on the remote; None where there is no such ref."""
        where = ("--git-dir", str(self.remote)) if remote else ()
        done = self.run(("git", *where, "rev-parse", "-q", "--verify", ref), check=False)
        return done.stdout.decode().strip() or None

    def lands(self, *arguments: str, ref: str = "HEAD", **env: str) -> bool:
        """Run git with the hooks in force; tell whether a ref of this repository has another value then."""
        before = self.value(ref)
        self._attempt(arguments, env)
        return self.value(ref) != before

    def push_lands(self, *arguments: str, ref: str, **env: str) -> bool:
        """Push with the hooks in force; tell whether a ref of the remote has another value then."""
        before = self.value(ref, remote=True)
        self._attempt(("push", *arguments), env)
        return self.value(ref, remote=True) != before

    def _attempt(self, arguments: tuple[str, ...], env: Mapping[str, str]) -> None:
        done = self.run(("git", *arguments), check=False, env=env)
        self.said += done.stdout.decode("utf-8", "backslashreplace")

    def commit_lands(self, *arguments: str, **env: str) -> bool:
        """Commit with the hooks in force; tell whether it landed."""
        return self.lands("commit", "-q", "-m", "Change a file", *arguments, **env)

    def doctor_notices(self) -> bool | None:
        """Ask the manager's own check whether its hooks run; None where it has none."""
        if self.manager.doctor is None:
            return None
        done = self.run(self.manager.doctor, check=False)
        self.said += done.stdout.decode("utf-8", "backslashreplace")
        return done.returncode != 0

    def next_gate_tells(self, commit: str) -> bool:
        """Make an ordinary, harmless commit; tell whether what it printed names an earlier one."""
        before = len(self.said)
        self.write("plain/next", "next\n")
        self.git("add", "plain/next")
        self.commit_lands()
        return commit[:7] in self.said[before:]

    def record_names(self, commit: str, reason: str) -> bool:
        """Tell whether the manager's own record holds a commit's full id and the reason for skipping."""
        if self.manager.log is None:
            return False
        said = self.run(self.manager.log, check=False).stdout.decode("utf-8", "backslashreplace")
        return any(commit in line and reason in line for line in said.splitlines())
