"""The built-in cases of the rules of `apply`: each is raised by a real apply in a temporary repository.

A case is two short stories: one that breaks the rule, and a similar one that does not. Rules that only a
failing system raises are reached with fault points.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from patchgate.apply.apply import apply
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.model import Source
from patchgate.git.repository import Repository, open_repository
from patchgate.process.child import run
from patchgate.process.child_environment import allowed_environment
from patchgate.report.verdict import ChangeVerdict, Finding, PolicyReference, Report
from patchgate.storage.filesystem import FaultPoints
from patchgate.values import replace

_GOOD = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
_MISFIT = _GOOD.replace(b"-two", b"-zwei")
_CONTENT = b"one\ntwo\nthree\nfour\nfive\n"
_WHO = "patchgate <selftest@patchgate.invalid> 0 +0000"
# More steps than landing one file takes.
_MOST_STEPS = 80


class _FailingSteps(FaultPoints):
    """The system refuses the step with a number, and every later one if `lasts`."""

    __slots__ = ("_from", "_lasts", "_seen")

    def __init__(self, start: int, *, lasts: bool) -> None:
        self._from = start
        self._lasts = lasts
        self._seen = 0

    def reach(self) -> bool:
        """Count one step, or refuse it."""
        self._seen += 1
        if self._seen == self._from or (self._lasts and self._seen > self._from):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return False


class _MeanwhileSteps(FaultPoints):
    """Another process does something before the first step."""

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def reach(self) -> bool:
        """Let it happen, once."""
        act, self._act = self._act, None
        if act is not None:
            act()
        return False


class _ApplyScene:
    """A temporary repository with one file, in which patches are applied."""

    def __init__(self, folder: str, environ: Mapping[str, str], policy: str) -> None:
        self._folder = folder
        self._environment = ApplyEnvironment({**allowed_environment(environ)}, os.path.join(folder, "cache"))
        top = os.path.join(folder, "repo")
        run(["git", "init", "-q", top], cwd=None, env=allowed_environment(environ))
        plain = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self.repository: Repository = open_repository(plain, top)
        self.file = Path(top, "f")
        files = {"f": _CONTENT, "patchgate.toml": policy.encode()}
        stream = [f"commit HEAD\ncommitter {_WHO}\ndata 0\n".encode()]
        for name, content in files.items():
            stream.append(f"M 100644 inline {name}\ndata {len(content)}\n".encode() + content + b"\n")
            Path(top, name).write_bytes(content)
        self.repository.output("fast-import", "--quiet", stdin=b"".join(stream))
        self.repository.output("read-tree", "HEAD")

    def apply(
        self,
        raw: bytes = _GOOD,
        *,
        retry_of: Report | None = None,
        with_index: bool = False,
        faults: FaultPoints | None = None,
    ) -> Report:
        """Apply a patch, by default a good one."""
        before = retry_of.attempt.id if retry_of is not None and retry_of.attempt is not None else None
        request = ApplyRequest(raw, CheckOptions(), retry_of=before, with_index=with_index)
        return apply(self.repository, request, replace(self._environment, faults=faults))

    def run_at_commit(self, *, trusts: bool) -> Report:
        """Stage a change, and run the commands of a commit on it."""
        from patchgate.check.change_commands import CommandOptions, run_on_staged
        from patchgate.commands.command_answer import finding_of

        self.file.write_bytes(_CONTENT + b"six\n")
        self.repository.git("update-index", "f", in_work_tree=True)
        options = CommandOptions(
            environ=self._environment.environ,
            cache=self._environment.cache,
            report_progress=lambda what, seconds: None,
            needs_trust=not trusts,
        )
        found = run_on_staged(self.repository, options, CheckOptions())
        findings = tuple(each for answer in found.answers if (each := finding_of(answer)) is not None)
        reference = PolicyReference("", "")
        return Report((ChangeVerdict(found.change, Source("staged"), "commit", reference, (), findings),))


Story = Callable[[_ApplyScene], Report]
Findings = tuple[Finding, ...]


def _simply(scene: _ApplyScene) -> Report:
    return scene.apply()


def _twice(scene: _ApplyScene) -> Report:
    scene.apply()
    return scene.apply()


def _after_a_revert(scene: _ApplyScene) -> Report:
    scene.apply()
    scene.file.write_bytes(_CONTENT)
    return scene.apply()


def _again_with(raw: bytes) -> Story:
    return lambda scene: scene.apply(raw, retry_of=scene.apply(_MISFIT))


def _with_unstaged_changes(scene: _ApplyScene) -> Report:
    scene.file.write_bytes(_CONTENT.replace(b"five", b"FIVE"))
    return scene.apply(with_index=True)


def _staged(scene: _ApplyScene) -> Report:
    return scene.apply(with_index=True)


def _edited_meanwhile(scene: _ApplyScene) -> Report:
    return scene.apply(faults=_MeanwhileSteps(lambda: scene.file.write_bytes(_CONTENT + b"six\n")))


def _trusting(scene: _ApplyScene) -> Report:
    return scene.run_at_commit(trusts=True)


def _wary(scene: _ApplyScene) -> Report:
    return scene.run_at_commit(trusts=False)


def _command(kind: str, *words: str, timeout: str = "1m") -> str:
    listed = ", ".join(f'"{word}"' for word in words)
    return f'[commands.it]\nkind = "{kind}"\ncommand = [{listed}]\ntimeout = {timeout!r}\n'


_TRUE = _command("lint", "true")
_ON_COMMIT = 'on = ["commit"]\n'
_ONE_TRY = "[apply]\nmax_attempts = 1\n"

_CASES: Mapping[str, tuple[tuple[str, Story], tuple[str, Story]]] = {
    "duplicate-patch": (("", _twice), ("", _after_a_revert)),
    "retry-not-a-diff": (("", _again_with(_CONTENT)), ("", _again_with(_GOOD))),
    "retry-identical": (("", _again_with(_MISFIT)), ("", _again_with(_GOOD))),
    "retry-exhausted": ((_ONE_TRY, _again_with(_GOOD)), ("", _again_with(_GOOD))),
    "index-differs": (("", _with_unstaged_changes), ("", _staged)),
    "lint-failed": ((_command("lint", "false"), _simply), (_TRUE, _simply)),
    "failed-before": ((_command("lint", "sh", "-c", "echo old; exit 1"), _simply), (_TRUE, _simply)),
    "build-failed": ((_command("test", "false"), _simply), (_TRUE, _simply)),
    "command-not-started": ((_command("lint", "./nothing"), _simply), (_TRUE, _simply)),
    "command-timed-out": ((_command("lint", "sleep", "60", timeout="0.1s"), _simply), (_TRUE, _simply)),
    "command-no-answer": (
        (_command("lint", "sh", "-c", "kill -9 $$") + _ON_COMMIT, _trusting),
        (_TRUE + _ON_COMMIT, _trusting),
    ),
    "command-not-trusted": ((_TRUE + _ON_COMMIT, _wary), (_TRUE + _ON_COMMIT, _trusting)),
    "command-changed-files": ((_command("lint", "sh", "-c", "echo x >>f"), _simply), (_TRUE, _simply)),
    "command-side-effects": (
        (_command("test", "sh", "-c", "echo x >>f") + 'side_effects = "none"\n', _simply),
        (_command("test", "true") + 'side_effects = "none"\n', _simply),
    ),
    "concurrent-change": (("", _edited_meanwhile), ("", _simply)),
}

BY_FAULTS = frozenset({"write-failed", "dirty-workspace"})
RULES_WITH_A_CASE = frozenset(_CASES) | BY_FAULTS


def raised_by_applying(rule: str, environ: Mapping[str, str]) -> tuple[Findings, Findings] | None:
    """Return the findings of the case of a rule and of its neighbour; None if there is no case."""
    if rule in BY_FAULTS:
        return _by_faults(rule, environ), _run_case(("", _simply), environ)
    if rule not in _CASES:
        return None
    broken, kept = _CASES[rule]
    return _run_case(broken, environ), _run_case(kept, environ)


def _by_faults(rule: str, environ: Mapping[str, str]) -> Findings:
    """Let each step in turn fail, alone or with all later ones, until the rule is raised."""
    found: Findings = ()
    for step in range(1, _MOST_STEPS):
        faults = _FailingSteps(step, lasts=rule == "dirty-workspace")
        found = _run_case(("", lambda scene, faults=faults: scene.apply(faults=faults)), environ)  # type: ignore[misc]
        if any(finding.rule == rule for finding in found):
            break
    return found


def _run_case(case: tuple[str, Story], environ: Mapping[str, str]) -> Findings:
    policy, story = case
    with tempfile.TemporaryDirectory(prefix="patchgate-selftest-") as folder:
        report = story(_ApplyScene(folder, environ, policy))
    return tuple(finding for change in report.changes for finding in change.findings)
