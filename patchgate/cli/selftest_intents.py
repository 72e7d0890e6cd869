"""The built-in cases of the rules of intents and verifications: short stories in throw-away repositories.

The one analysis prints a file of its tree, so a story stages the findings.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import Repository, open_repository
from patchgate.hooks.reference_transaction import judge_transaction
from patchgate.intents.actions import declare
from patchgate.intents.declaration import DeclareOptions
from patchgate.intents.intent import IntentBudget, Moment
from patchgate.intents.intent_status import Caller
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.process.child import run
from patchgate.process.child_environment import allowed_environment
from patchgate.report.verdict import Finding
from patchgate.verify.analysis_runner import AnalysisEnvironment
from patchgate.verify.analyze import VerifyOptions as ToVerify
from patchgate.verify.verification_reasons import findings_of
from patchgate.verify.verify import verify

_WHO = "patchgate <selftest@patchgate.invalid>"
_POLICY = """\
[commands.lint]
kind = "lint"
command = ["cat", "lint"]
output = "sarif"
on = ["verify"]

[commands.heights]
kind = "lint"
command = ["cat", "heights"]
output = "metrics"
on = ["verify"]

[[thresholds]]
name = "low"
metric = "height"
max = 1

[verify]
suppressions = ["known"]
"""
_NOT_THERE = _POLICY.replace('"cat", "lint"', '"./not-there"')
_FINDINGS = ("lint", "heights")


def _sarif(*files: str) -> str:
    """Write SARIF with a result in each of these files."""
    results = [
        {
            "ruleId": "R1",
            "message": {"text": "bad"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}}}],
        }
        for file in files
    ]
    runs = [{"tool": {"driver": {"name": "lint"}}, "results": results}]
    return json.dumps({"version": "2.1.0", "runs": runs})


def _heights(value: int) -> str:
    return json.dumps({"metrics": [{"path": "f", "symbol": "s", "name": "height", "value": value}]})


_FILES = {
    "f": "one\n",
    "g": "one\n",
    "lint": _sarif(),
    "heights": _heights(1),
    "known": "{}\n",
    "patchgate.toml": _POLICY,
}


def make_repository(environ: Mapping[str, str], folder: str) -> Repository:
    """Make a repository, without what the environment says of another one."""
    run(["git", "init", "-q", folder], cwd=None, env=allowed_environment(environ))
    return open_repository({name: value for name, value in environ.items() if name[:4] != "GIT_"}, folder)


def commit_stream(
    ref: str,
    files: Mapping[str, tuple[str, bytes]],
    parent: str | None = None,
    message: bytes = b"",
    *,
    seconds: int = 0,
) -> bytes:
    """Write one commit as git-fast-import reads it; the files each with mode and content."""
    head = f"commit {ref}\ncommitter {_WHO} {seconds} +0000\ndata {len(message)}\n"
    lines = [head.encode() + message + b"\n"]
    if parent is not None:
        lines.append(f"from {parent}\n".encode())
    for name, (mode, content) in files.items():
        lines.append(f"M {mode} inline {name}\ndata {len(content)}\n".encode() + content + b"\n")
    return b"".join(lines)


class _Sandbox:
    """A throw-away repository with some files, in which intents are declared and changes staged."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        self._environ = allowed_environment(environ)
        self._cache = os.path.join(folder, "cache")
        self._top = os.path.join(folder, "repo")
        self.repository = make_repository(environ, self._top)
        for name, text in _FILES.items():
            Path(self._top, name).write_text(text, encoding="utf-8")
        files = {name: ("100644", text.encode()) for name, text in _FILES.items()}
        self.repository.output("fast-import", "--quiet", stdin=commit_stream("HEAD", files))
        self.repository.output("read-tree", "HEAD")

    def elsewhere(self) -> Repository:
        """Open another worktree of the repository, which is made."""
        place = self._top + "-other"
        self.repository.output("worktree", "add", "-q", "--detach", place)
        return open_repository(self._environ, place)

    def declare(
        self,
        *allowed: str,
        queue: bool = False,
        ago: int = 0,
        place: Repository | None = None,
        lines: int | None = None,
    ) -> str:
        """Declare files, so many seconds ago, here or in another worktree; give the id."""
        now = current_moment()
        then = Moment(now.wall - ago) if ago else now
        budget = IntentBudget(max_added_lines=lines)
        request = DeclareOptions("to show a rule", allowed, queue=queue, budget=budget)
        outcome = declare(place or self.repository, request, Caller(self._environ, then))
        assert outcome.intent is not None
        return outcome.intent.id

    def stage(self, **files: str) -> None:
        """Stage files."""
        for name, text in files.items():
            path = name.replace("_toml", ".toml")
            Path(self._top, path).write_text(text, encoding="utf-8")
            oid = self.repository.output("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
            self.repository.output("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}")

    def land(self, **files: str) -> None:
        """Stage files, and let HEAD have them without being judged."""
        self.stage(**files)
        self.repository.output("update-ref", "HEAD", self._commit_object("More"))

    def check(self) -> Iterable[Finding]:
        """Judge what is staged."""
        return (
            each
            for change in check_pending(self.repository, CheckOptions()).changes
            for each in change.findings
        )

    def commit(self, message: str) -> Iterable[Finding]:
        """Judge what is staged as a commit of this message, which a new branch is about to get."""
        head = self.repository.output("rev-parse", "HEAD").decode().strip()
        oid = self._commit_object(message, f"parent {head}\n")
        line = f"{self.repository.zero_oid} {oid} refs/heads/new\n".encode()
        judged = judge_transaction(self.repository, line, lambda: "commit", lambda: "commit")
        return (each for change in judged.report.changes for each in change.findings)

    def verify(self) -> Iterable[Finding]:
        """Verify what is staged."""
        environment = AnalysisEnvironment(
            environ=self._environ,
            cache=self._cache,
            report_progress=lambda what, seconds: None,
            now=time.time(),
        )
        return findings_of(verify(self.repository, ToVerify(), environment))

    def _commit_object(self, message: str, parent: str = "") -> str:
        tree = self.repository.output("write-tree").decode().strip()
        who = f"{_WHO} 0 +0000"
        text = f"tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n".encode()
        oid = self.repository.output("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
        return oid.decode().strip()


Story = Callable[[_Sandbox], Iterable[Finding]]
Findings = tuple[Finding, ...]


def _staged(*allowed: str, ago: int = 0, **files: str) -> Story:
    def story(scene: _Sandbox) -> Iterable[Finding]:
        scene.declare(*allowed, ago=ago)
        scene.stage(**files)
        return scene.check()

    return story


def _with_lines(limit: int) -> Story:
    def story(scene: _Sandbox) -> Iterable[Finding]:
        scene.declare("f", lines=limit)
        scene.stage(f="two\nthree\n")
        return scene.check()

    return story


def _waiting(scene: _Sandbox) -> Iterable[Finding]:
    first = scene.declare("f")
    scene.declare("f", queue=True)
    # Nobody promotes the second.
    StoredIntents(scene.repository.common_dir).remove(first)
    scene.stage(g="two\n")
    return scene.check()


def _reserved(*files: str) -> Story:
    def story(scene: _Sandbox) -> Iterable[Finding]:
        scene.declare(*files, place=scene.elsewhere())
        scene.stage(f="two\n")
        return scene.check()

    return story


def _committed(*, names: bool) -> Story:
    def story(scene: _Sandbox) -> Iterable[Finding]:
        name = scene.declare("f")
        scene.stage(f="two\n")
        return scene.commit(f"Change f\n\nPatchgate-Intent: {name}" if names else "Change f")

    return story


def _verified(*allowed: str, **files: str) -> Story:
    def story(scene: _Sandbox) -> Iterable[Finding]:
        if allowed:
            scene.declare(*allowed, *_FINDINGS)
        scene.stage(**files)
        return scene.verify()

    return story


def _unanswered(scene: _Sandbox) -> Iterable[Finding]:
    scene.land(patchgate_toml=_NOT_THERE)
    return _verified("f", f="two\n")(scene)


def _still_high(scene: _Sandbox) -> Iterable[Finding]:
    scene.land(heights=_heights(2))
    scene.stage(f="two\n")
    return scene.verify()


_OWN, _OTHER = _verified("f", lint=_sarif("f")), _verified("g", lint=_sarif("f"))
_HIGH, _HIGH_ELSEWHERE = _verified("f", heights=_heights(2)), _verified("g", heights=_heights(2))

_CASES: Mapping[str, tuple[Story, Story]] = {
    "scope-unexpected": (_staged("g", f="two\n"), _staged("f", f="two\n")),
    "scope-forbidden": (_staged("f", patchgate_toml="[policy]\n"), _staged("f", f="two\n")),
    "intent-budget": (_with_lines(1), _with_lines(2)),
    "intent-expired": (_staged("f", ago=3601, f="2\n"), _staged("f", ago=60, f="2\n")),
    "intent-queued": (_waiting, _staged("g", g="two\n")),
    "intent-reserved": (_reserved("f"), _reserved("g")),
    "intent-trailer": (_committed(names=False), _committed(names=True)),
    "regression": (_OWN, _OTHER),
    "regression-external": (_OTHER, _OWN),
    "threshold-crossed": (_HIGH, _HIGH_ELSEWHERE),
    "threshold-external": (_HIGH_ELSEWHERE, _HIGH),
    "threshold-preexisting": (_still_high, _HIGH),
    "suppression-abuse": (_verified(known='{"R1": 1}\n'), _verified("known", known='{"R1": 1}\n')),
    "unverified": (_unanswered, _verified("f", f="two\n")),
}
"""For each rule a story that breaks it, and its nearest neighbour that does not."""

RULES_OF_INTENTS = frozenset(_CASES)


def raised_by_intents(rule: str, environ: Mapping[str, str]) -> tuple[Findings, Findings] | None:
    """Return the findings of the case of a rule and of its neighbour; None if there is no case."""
    if rule not in _CASES:
        return None
    broken, kept = _CASES[rule]
    return _run(broken, environ), _run(kept, environ)


def _run(story: Story, environ: Mapping[str, str]) -> Findings:
    with tempfile.TemporaryDirectory(prefix="patchgate-selftest-") as folder:
        return tuple(story(_Sandbox(folder, environ)))
