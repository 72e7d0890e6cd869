"""A repository, and the one it pushes to; real pushes through real hooks, whose report is kept."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from patchgate.git.repository import open_repository
from patchgate.hooks.pre_push import judge_push, judge_unpushed
from patchgate.report.verdict import Report
from tests.world import Answer, Repo

POLICY = '[policy]\ndeny_prefixes = ["secrets"]\n[message]\nlevel = "off"\n'
WEAK = '[policy]\n[message]\nlevel = "off"\n'
ZERO = "0" * 40

_HOOK = """\
#!{python}
import os, sys
try:
    import sitecustomize
    sitecustomize.run_in_server()
except (ImportError, AttributeError):
    pass
from patchgate.errors import PatchgateError
from patchgate.git.repository import open_repository
from patchgate.{module} import {function}
from patchgate.report import json

lines = sys.stdin.buffer.read()
try:
    report = {function}(open_repository(os.environ, os.getcwd()), *sys.argv[1:], lines)
    said, code = json.render(report), report.verdict.exit_code
except PatchgateError as error:
    said, code = json.error_document(error), error.exit_code
with open(__file__ + ".said", "w") as file:
    file.write(said)
sys.exit(code)
"""


class Local(Repo):
    """A repository whose pushes are judged."""

    def hook(self) -> None:
        """Let pre-push be judged here; what it says is kept."""
        write_hook(self.hooks / "pre-push", "hooks.pre_push", "judge_push")

    @property
    def hooks(self) -> Path:
        """Where git looks for hooks."""
        return self.path / self.ask("rev-parse", "--git-path", "hooks")

    def push(self, *arguments: str, cwd: Path | None = None) -> Answer:
        """Push, and give git's exit code with what the hook said (nothing where it did not run)."""
        said = self.hooks / "pre-push.said"
        said.unlink(missing_ok=True)
        done = self.try_git("push", *arguments, cwd=cwd)
        text = said.read_text() if said.exists() else ""
        return Answer(done.returncode, text, done.stderr.decode("utf-8", "backslashreplace"))

    def judge(self, *lines: str, remote: str = "origin", url: str = "../server.git") -> Report:
        """Call what the hook calls."""
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        return judge_push(open_repository(self.env, str(self.path)), remote, url, text)

    def judge_unpushed(self, remote: str = "origin", told: Mapping[str, str] | None = None) -> Report:
        """Call what the hook calls under a framework."""
        return judge_unpushed(open_repository(self.env, str(self.path)), remote, told or {})

    def forget(self) -> None:
        """Delete every remote-tracking ref."""
        for ref in self.ask("for-each-ref", "--format=%(refname)", "refs/remotes").split():
            self.git("update-ref", "--no-deref", "-d", ref)

    def bad(self, name: str = "k") -> str:
        """Commit what the policy denies."""
        return self.commit({f"secrets/{name}": "x\n"}, "Add a secret")


def write_hook(place: Path, module: str, function: str) -> None:
    """Write a hook that calls a function of ours and keeps its report."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(_HOOK.format(python=sys.executable, module=module, function=function))
    place.chmod(0o755)


def pair(folder: Path, *arguments: str, policy: str = POLICY) -> tuple[Local, Repo]:
    """Make a repository with a policy that a bare one, its `origin`, has already; pushes are judged."""
    made = Repo.create(folder, *arguments)
    local = Local(made.path, made.env)
    server = local.at(folder / "server.git")
    server.path.mkdir()
    server.git("init", "-q", "--bare", "-b", "main", *arguments)
    local.git("remote", "add", "origin", "../server.git")
    local.policy(policy)
    local.git("push", "-q", "origin", "main")
    local.git("remote", "set-head", "origin", "main")
    local.hook()
    return local, server


def commits(report: Report) -> list[str | None]:
    """The commits that were judged, in order."""
    return [change.source.commit for change in report.changes if change.source.kind != "ref"]


def rules(report: Report) -> list[str]:
    """The rules that were raised, each as often as it was."""
    return [finding.rule for change in report.changes for finding in change.findings]


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes, every folder with its own mark."""
    found = {}
    for place, _, names in os.walk(folder):
        found[str(Path(place).relative_to(folder))] = "folder"
        for name in names:
            path = Path(place, name)
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
