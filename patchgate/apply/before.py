"""What failed before: a command that fails with a patch is run once without it, and the two are compared.

Decides whether a failure is the patch's: it is not where nothing fails now that did not fail before
(`failed-before`). What cannot be compared counts as the patch's. What a command said of a tree is kept for an
hour, with the command and its programs, so that the next attempt on the same base does not run it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from patchgate.apply.evidence import Evidence
from patchgate.apply.review import CommandRun
from patchgate.apply.scratch_trees import Trees, TriedCommand
from patchgate.commands.analysis import tool_of
from patchgate.commands.outcome import Status
from patchgate.errors import UndecidedError
from patchgate.ledger.masking import Masks
from patchgate.policy.command import expand
from patchgate.policy.sealed_file import SealedFile
from patchgate.policy.settings import CommandSettings
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Detail, Finding, Fixer, Json

_FORM = "patchgate.failed-before/1"
# What else a command depends on (services, modules of a program) may be repaired meanwhile.
_MOST_AGE = 3600.0
_MOST_BYTES = 16 << 20
_MOST_ENTRIES = 100
_SHOWN = 20
_OR_REPORT = ', or commits [apply] preexisting = "report"; then the same patch may come again'


@dataclass(frozen=True, slots=True)
class _Known:
    """How a command ended without the patch; `form` is None where that cannot be compared."""

    exit_code: int
    form: str | None
    marks: frozenset[str]


class Before:
    """The commands on the tree that the patch meets; each is asked only where it fails with the patch.

    `runs` are those that were run, for the review.
    """

    def __init__(self, trees: Trees, evidence: Evidence, masks: Masks) -> None:
        self._trees = trees
        self._evidence = evidence
        self._masks = masks
        self._folder = os.path.join(trees.repository.common_dir, "patchgate", "before")
        # A file that the patch adds is not there; one that it deletes is.
        changed = trees.judged.verdict.change.files
        self._files = tuple(file.path for file in changed if file.old is not None and file.old.is_file)
        self.runs: list[CommandRun] = []

    def settle(self, name: str, settings: CommandSettings, ran: TriedCommand, finding: Finding) -> Finding:
        """Say of a command that failed whether it failed before; `finding` is what is said without that."""
        try:
            known = self._known(name, settings)
        except UndecidedError:
            known = None
        if known is None:
            return finding
        details: dict[str, Detail] = {"exit_code": known.exit_code, "same": False}
        finding = replace(finding, details={**finding.details, "before": details})
        if known.exit_code == 0:
            return finding
        now = ran.failures
        if now is None or known.form != now.form:
            return _incomparable(finding, details)
        fresh = sorted(now.names[mark] for mark in now.marks - known.marks)
        if not fresh and known.exit_code == ran.outcome.exit_code:
            details["same"] = True
            return self._failed_before(finding, sorted(now.names.values()))
        if not fresh or now.form == "output":
            return _incomparable(finding, details)
        details["new"] = fresh[:_SHOWN]
        more = f" and {len(fresh) - 5} more" if len(fresh) > 5 else ""
        hint = f"these fail with the patch only: {', '.join(fresh[:5])}{more}; {finding.hint}"
        return replace(finding, hint=hint)

    def _failed_before(self, finding: Finding, failed: Sequence[str]) -> Finding:
        policy = self._trees.judged.policy
        reports = policy is not None and policy.config.apply.preexisting == "report"
        return replace(
            finding,
            rule="failed-before",
            level=Level.WARNING if reports else RULES["failed-before"].level,
            message=f"{finding.message}, and fails in the same way without the patch",
            hint="a maintainer repairs what fails without the patch" + ("" if reports else _OR_REPORT),
            who_can_fix=Fixer.PERSON,
            details={**finding.details, "failed": list(failed[:_SHOWN])},
        )

    def _known(self, name: str, settings: CommandSettings) -> _Known | None:
        """Find how a command ends without the patch; None where it did not come to its end."""
        file = self._kept(name, settings)
        if file is not None and (known := _loaded(file.load(), self._trees.around.now)) is not None:
            return known
        log = self._evidence.log_path(f"{name}-before")
        called = f"{name} without the patch"
        ran = self._trees.run(name, settings, self._files, log, self._masks, called)
        outcome = ran.outcome
        where = f"logs/{outcome.log}" if outcome.log else None
        seconds = outcome.seconds if outcome.log else None
        self.runs.append(
            CommandRun(called, settings.kind, outcome.status.value, seconds, outcome.exit_code, where)
        )
        if outcome.status not in {Status.PASSED, Status.FAILED} or outcome.exit_code is None:
            return None
        known = _Known(outcome.exit_code, None, frozenset())
        if (found := ran.failures) is not None:
            known = replace(known, form=found.form, marks=found.marks)
        if file is not None:
            plain = {
                "at": self._trees.around.now,
                "exit_code": known.exit_code,
                "form": known.form,
                "marks": sorted(known.marks),
            }
            file.store(json.dumps(plain).encode("ascii"))
            self._tidy()
        return known

    def _kept(self, name: str, settings: CommandSettings) -> SealedFile | None:
        """Name the file that keeps what a command said of this tree; None where a program is missing."""
        tool = tool_of(settings, self._trees.around.environ)
        if tool is None:
            return None
        argv = [word.decode("utf-8", "surrogateescape") for word in expand(settings, self._files)]
        touched = sorted(file.path.quoted for file in self._trees.judged.verdict.change.files)
        seen = touched if settings.scope == "files" else []
        parts = [_FORM, self._trees.tree, name, asdict(settings), argv, seen, tool]
        key = hashlib.sha256(json.dumps(parts, default=dict).encode("ascii")).hexdigest()
        return SealedFile(os.path.join(self._folder, key), f"{_FORM} {key}", _MOST_BYTES)

    def _tidy(self) -> None:
        """Remove the oldest entries, where there are too many."""
        with contextlib.suppress(OSError):
            found = sorted(os.scandir(self._folder), key=lambda entry: entry.stat().st_mtime)
            for entry in found[: max(0, len(found) - _MOST_ENTRIES)]:
                os.unlink(entry.path)


def _loaded(kept: Mapping[str, Json], now: float) -> _Known | None:
    at, code, form, marks = (kept.get(name) for name in ("at", "exit_code", "form", "marks"))
    if not isinstance(at, int | float) or not 0 <= now - at < _MOST_AGE:
        return None
    if not isinstance(code, int) or not isinstance(marks, list):
        return None
    return _Known(code, form if isinstance(form, str) else None, frozenset(map(str, marks)))


def _incomparable(finding: Finding, details: dict[str, Detail]) -> Finding:
    """Refuse what fails both times otherwise, or says too little to be compared."""
    details["same"] = None
    return replace(
        finding,
        message=f"{finding.message}; it fails without the patch too, and the two cannot be compared",
        hint=f"{finding.hint}; a report as JUnit (pytest) or SARIF would show what is new",
    )
