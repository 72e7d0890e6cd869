"""The built-in cases of the rules of intents and verifications: short stories in throw-away repositories.

The one analysis prints a file of the tree that it looks at, so a story stages what it is to tell.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from patchgate.check.pending import check_pending
from patchgate.check.terms import Asked
from patchgate.git.repository import Repository, open_repository
from patchgate.hooks.at_ref import judge_transaction
from patchgate.intents.intent import Moment
from patchgate.intents.intents import Intents, present
from patchgate.intents.request import Request
from patchgate.intents.states import Caller
from patchgate.intents.verbs import declare
from patchgate.process import allowed_environment, run
from patchgate.report.verdict import Finding
from patchgate.verify.analyses import Around
from patchgate.verify.analyze import Asked as ToVerify
from patchgate.verify.verification_reasons import findings_of
from patchgate.verify.verify import verify

_WHO = "patchgate <selftest@patchgate.invalid> 0 +0000"
_POLICY = """\
[analyses.told]
command = ["cat", "told"]

[analyses.heights]
command = ["cat", "heights"]
format = "metrics"

[[thresholds]]
name = "low"
metric = "height"
max = 1

[verify]
baselines = ["known"]
"""
_NOT_THERE = _POLICY.replace('"cat", "told"', '"./not-there"')
_FINDINGS = ("told", "heights")


def _told(*files: str) -> str:
    """Write SARIF with a result in each of these files."""
    results = [
        {
            "ruleId": "R1",
            "message": {"text": "bad"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}}}],
        }
        for file in files
    ]
    runs = [{"tool": {"driver": {"name": "told"}}, "results": results}]
    return json.dumps({"version": "2.1.0", "runs": runs})


def _heights(value: int) -> str:
    return json.dumps({"metrics": [{"path": "f", "symbol": "s", "name": "height", "value": value}]})


_FILES = {"f": "one\n", "g": "one\n", "told": _told(), "heights": _heights(1), "known": "{}\n"}


class _Scene:
    """A throw-away repository with some files, in which intents are declared and changes staged."""

    def __init__(self, folder: str, environ: Mapping[str, str], policy: str) -> None:
        self._environ = allowed_environment(environ)
        self._cache = os.path.join(folder, "cache")
        self._top = os.path.join(folder, "repo")
        run(["git", "init", "-q", self._top], cwd=None, env=self._environ)
        self._plain = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self.repository: Repository = open_repository(self._plain, self._top)
        stream = [f"commit HEAD\ncommitter {_WHO}\ndata 0\n".encode()]
        for name, text in {**_FILES, "patchgate.toml": policy}.items():
            stream.append(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n".encode())
            Path(self._top, name).write_text(text, encoding="utf-8")
        self.repository.output("fast-import", "--quiet", stdin=b"".join(stream))
        self.repository.output("read-tree", "HEAD")

    def elsewhere(self) -> Repository:
        """Open another worktree of the repository, which is made."""
        place = self._top + "-other"
        run(["git", "-C", self._top, "worktree", "add", "-q", "--detach", place], cwd=None, env=self._environ)
        return open_repository(self._plain, place)

    def declare(
        self, *allowed: str, queue: bool = False, ago: int = 0, place: Repository | None = None
    ) -> str:
        """Declare files, so many seconds ago, here or in another worktree; give the id."""
        now = present()
        then = Moment(now.wall - ago) if ago else now
        request = Request("to show a rule", allowed, queue=queue)
        outcome = declare(place or self.repository, request, Caller(self._environ, then))
        assert outcome.intent is not None
        return outcome.intent.id

    def forget(self, name: str) -> None:
        """Take an intent away, and promote nobody."""
        Intents(self.repository.common_dir).remove(name)

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
        tree = self.repository.output("write-tree").decode().strip()
        text = f"tree {tree}\nauthor {_WHO}\ncommitter {_WHO}\n\nMore\n".encode()
        oid = self.repository.output("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
        self.repository.output("update-ref", "HEAD", oid.decode().strip())

    def check(self) -> Iterable[Finding]:
        """Judge what is staged."""
        return (
            each for change in check_pending(self.repository, Asked()).changes for each in change.findings
        )

    def commit(self, message: str) -> Iterable[Finding]:
        """Judge what is staged as a commit of this message, which a new branch is about to get."""
        tree = self.repository.output("write-tree").decode().strip()
        text = f"tree {tree}\nparent {self._head}\nauthor {_WHO}\ncommitter {_WHO}\n\n{message}\n".encode()
        oid = self.repository.output("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).strip()
        line = b"%b %b refs/heads/new\n" % (self.repository.zero_oid.encode(), oid)
        judged = judge_transaction(self.repository, line, lambda: "commit", lambda: "commit")
        return (each for change in judged.report.changes for each in change.findings)

    def verify(self) -> Iterable[Finding]:
        """Verify what is staged."""
        around = Around(self._environ, self._cache, lambda what, seconds: None, time.time())
        return findings_of(verify(self.repository, ToVerify(), around))

    @property
    def _head(self) -> str:
        return self.repository.output("rev-parse", "HEAD").decode().strip()


Story = Callable[[_Scene], Iterable[Finding]]
Rules = tuple[str, ...]


def _staged(*allowed: str, ago: int = 0, **files: str) -> Story:
    def story(scene: _Scene) -> Iterable[Finding]:
        scene.declare(*allowed, ago=ago)
        scene.stage(**files)
        return scene.check()

    return story


def _waiting(scene: _Scene) -> Iterable[Finding]:
    first = scene.declare("f")
    scene.declare("f", queue=True)
    scene.forget(first)
    scene.stage(g="two\n")
    return scene.check()


def _reserved(*files: str) -> Story:
    def story(scene: _Scene) -> Iterable[Finding]:
        scene.declare(*files, place=scene.elsewhere())
        scene.stage(f="two\n")
        return scene.check()

    return story


def _committed(*, names: bool) -> Story:
    def story(scene: _Scene) -> Iterable[Finding]:
        name = scene.declare("f")
        scene.stage(f="two\n")
        return scene.commit(f"Change f\n\nPatchgate-Intent: {name}" if names else "Change f")

    return story


def _verified(*allowed: str, **files: str) -> Story:
    def story(scene: _Scene) -> Iterable[Finding]:
        if allowed:
            scene.declare(*allowed, *_FINDINGS)
        scene.stage(**files)
        return scene.verify()

    return story


def _still_high(scene: _Scene) -> Iterable[Finding]:
    scene.land(heights=_heights(2))
    scene.stage(f="two\n")
    return scene.verify()


_OWN, _OTHER = _verified("f", told=_told("f")), _verified("g", told=_told("f"))
_HIGH, _HIGH_ELSEWHERE = _verified("f", heights=_heights(2)), _verified("g", heights=_heights(2))

_CASES: Mapping[str, tuple[tuple[str, Story], tuple[str, Story]]] = {
    "scope-unexpected": ((_POLICY, _staged("g", f="two\n")), (_POLICY, _staged("f", f="two\n"))),
    "scope-forbidden": (
        (_POLICY, _staged("f", patchgate_toml="[policy]\n")),
        (_POLICY, _staged("f", f="two\n")),
    ),
    "intent-expired": ((_POLICY, _staged("f", ago=3601, f="2\n")), (_POLICY, _staged("f", ago=60, f="2\n"))),
    "intent-queued": ((_POLICY, _waiting), (_POLICY, _staged("g", g="two\n"))),
    "intent-reserved": ((_POLICY, _reserved("f")), (_POLICY, _reserved("g"))),
    "intent-trailer": ((_POLICY, _committed(names=False)), (_POLICY, _committed(names=True))),
    "regression": ((_POLICY, _OWN), (_POLICY, _OTHER)),
    "regression-external": ((_POLICY, _OTHER), (_POLICY, _OWN)),
    "threshold-crossed": ((_POLICY, _HIGH), (_POLICY, _HIGH_ELSEWHERE)),
    "threshold-external": ((_POLICY, _HIGH_ELSEWHERE), (_POLICY, _HIGH)),
    "threshold-preexisting": ((_POLICY, _still_high), (_POLICY, _HIGH)),
    "baseline-abuse": (
        (_POLICY, _verified(known='{"R1": 1}\n')),
        (_POLICY, _verified("known", known='{"R1": 1}\n')),
    ),
    "unverified": ((_NOT_THERE, _verified("f", f="two\n")), (_POLICY, _verified("f", f="two\n"))),
}

RULES_OF_WORK = frozenset(_CASES)


def raised_by_working(rule: str, environ: Mapping[str, str]) -> tuple[Rules, Rules] | None:
    """Give the rules that the case of a rule and its neighbour raise; None where there is no case."""
    if rule not in _CASES:
        return None
    broken, kept = _CASES[rule]
    return _played(broken, environ), _played(kept, environ)


def _played(told: tuple[str, Story], environ: Mapping[str, str]) -> tuple[str, ...]:
    policy, story = told
    with tempfile.TemporaryDirectory(prefix="patchgate-selftest-") as folder:
        return tuple(dict.fromkeys(finding.rule for finding in story(_Scene(folder, environ, policy))))
