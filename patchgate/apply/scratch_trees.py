"""The scratch trees of one attempt, and what failed without its patch.

A tree holds every tracked file as it is, with the patch's effect or without. A repository has one tree in use
at a time. A command that fails with the patch is run once without it (`WithoutPatch`). If nothing new fails,
the failure is not the patch's. A failure that cannot be compared counts as the patch's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from patchgate.apply.apply_run import ApplyEnvironment
from patchgate.apply.evidence import Evidence
from patchgate.apply.review import CommandRun
from patchgate.commands.programs import tool_identity
from patchgate.commands.runner import CommandOutcome, CommandStatus, run, runs_pytest
from patchgate.commands.test_results import MOST_LOG, MOST_REPORT, Failures, FailureSource, failures_of
from patchgate.errors import UndecidedError
from patchgate.git.binary_files import line_reader
from patchgate.git.model import FileChange
from patchgate.git.path import RepoPath
from patchgate.git.private_store import tree_with_change
from patchgate.git.quoting import first_of, neutral
from patchgate.git.repository import Repository
from patchgate.git.scratch import Scratch, touched_files, whole_tree
from patchgate.patches.check_patch import PatchVerdict
from patchgate.policy.command_files import expand, matching_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Detail, Finding, Fixer, Json
from patchgate.report.wording import count
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import asdict, dataclass, field, replace

_FORM = "patchgate.failed-before/1"
# Other things that a command depends on (services, installed modules) may be repaired meanwhile.
_MOST_AGE = 3600.0
_MOST_BYTES = 16 << 20
_MOST_ENTRIES = 100
_SHOWN = 20
_OR_REPORT = ', or commits [apply] preexisting = "report"; then the same patch may come again'


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """One run of a command: how it ended, which tracked files it changed, and what it says has failed.

    `failures` is None if it did not fail, or if the failures cannot be compared with another run.
    """

    outcome: CommandOutcome
    changed: Sequence[RepoPath]
    failures: Failures | None

    def for_review(self, name: str, kind: str) -> CommandRun:
        """Return the run as the review lists it."""
        outcome = self.outcome
        return CommandRun(
            name=name,
            kind=kind,
            outcome=outcome.status.value,
            seconds=outcome.seconds if outcome.log else None,
            exit_code=outcome.exit_code,
            log=f"logs/{outcome.log}" if outcome.log else None,
        )


@dataclass(slots=True)
class ScratchTrees:
    """The scratch trees of one side, each made when a command first needs it; a context manager.

    `tree` is the git tree of the whole one; `kept` are the paths that stay as the commands left them.
    """

    repository: Repository
    judged: PatchVerdict
    evidence: Evidence
    environment: ApplyEnvironment
    tree: str
    keeps: bool = False
    kept: list[str] = field(default_factory=list)
    has_shown_all: bool = False
    _open: ExitStack = field(default_factory=ExitStack)
    _made: dict[str, Scratch] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        repository: Repository,
        judged: PatchVerdict,
        evidence: Evidence,
        environment: ApplyEnvironment,
        files: Iterable[FileChange],
    ) -> ScratchTrees:
        """Choose the tree that includes these files of the patch.

        Raises:
            UndecidedError: the index is in conflict or unreadable, or a file cannot be read.
        """
        tree = tree_with_change(
            repository, judged.objects, judged.store, judged.patch_base.policy_tree, files
        )
        return cls(
            repository=repository, judged=judged, evidence=evidence, environment=environment, tree=tree
        )

    def __enter__(self) -> ScratchTrees:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Remove the trees; the next command makes them again."""
        self._made.clear()
        self._open.close()

    def run(
        self, name: str, settings: CommandSettings, files: Sequence[RepoPath], *, log: str, called: str
    ) -> TriedCommand:
        """Run a command, and restore what it changed.

        Args:
            files: the files for `{files}`.
            log: the name of its log.
            called: the name to report while it runs.

        Raises:
            UndecidedError: a log or a tree cannot be made, or the command removed the tree.
        """
        scratch, log_path = self._scratch(settings.scope or "tree"), self.evidence.log_path(log)
        with _report_of(settings) as report:
            outcome = run(
                name,
                settings,
                place=scratch.path,
                files=files,
                environ=self.environment.environ,
                log_path=log_path,
                mask=self.evidence.masks.stream(),
                clean=neutral,
                tick=lambda seconds: self.environment.report_progress(called, seconds),
                report=report,
            )
            failures = None
            is_whole = not (outcome.dropped or outcome.warnings)
            reads = outcome.status is CommandStatus.FAILED or settings.output == "sarif"
            # Incomplete output cannot be compared.
            if outcome.log is not None and is_whole and reads:
                failures = self._failures(scratch.path, log_path, report)
            if settings.output == "sarif" and failures is not None:
                outcome, failures = _with_findings(outcome, failures)
        if outcome.status is CommandStatus.NOTHING_TO_DO:
            return TriedCommand(outcome, (), None)
        changed = scratch.changed()
        if changed:
            scratch.restore_files()
        return TriedCommand(outcome, changed, failures)

    def _failures(self, place: str, log: str, report: str | None) -> Failures | None:
        written = _read(log, MOST_LOG)
        if written is None:
            return None
        junit = None
        if report is not None and os.path.lexists(report) and (junit := _read(report, MOST_REPORT)) is None:
            return None
        return failures_of(written, junit, place, line_reader(self.judged.objects, self.tree))

    def _scratch(self, scope: str) -> Scratch:
        """Return the tree for commands of a scope, made on first use."""
        if scope in self._made:
            return self._made[scope]
        repository, judged, cache = self.repository, self.judged, self.environment.cache
        if scope == "files":
            paths = [file.path for file in judged.verdict.change.files]
            making = touched_files(
                repository, judged.objects, judged.store, self.tree, paths, cache=cache, keep=self.keeps
            )
        else:
            commit = judged.patch_base.head or judged.patch_base.commit
            making = whole_tree(
                repository, judged.store, self.tree, cache=cache, commit=commit, keep=self.keeps
            )
            self.has_shown_all = True
        made = self._made[scope] = self._open.enter_context(making)
        if self.keeps:
            self.kept.append(made.path)
        return made


def _with_findings(outcome: CommandOutcome, failures: Failures) -> tuple[CommandOutcome, Failures | None]:
    """Let a command fail that reported findings, also if it ended with 0 (`--exit-zero`); show only these."""
    if failures.form is not FailureSource.FINDINGS:
        return outcome, None if outcome.status is CommandStatus.PASSED else failures
    what = f"has {count(len(failures.marks), 'finding')}"
    tail = tuple(sorted(failures.names.values()))[:_SHOWN]
    return replace(outcome, status=CommandStatus.FAILED, exit_code=1, reason=what, tail=tail), failures


@contextlib.contextmanager
def _report_of(settings: CommandSettings) -> Iterator[str | None]:
    """Make a folder for the JUnit report of a command that can write one, outside the tree."""
    if not runs_pytest(settings.command):
        yield None
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryFolder())
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise UndecidedError(
                f"the folder for the test report cannot be created: {said}", "free disk space, then try again"
            ) from error
        yield os.path.join(folder.path, "report.xml")


def _read(path: str, most: int) -> bytes | None:
    """Read what a command wrote; None if it is not a file, or too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            raw = file.read(most + 1)
    except OSError:
        return None
    return raw if len(raw) <= most else None


@dataclass(frozen=True, slots=True)
class _PriorRun:
    """How a command ended without the patch; `form` is None if that cannot be compared."""

    exit_code: int
    form: str | None
    marks: frozenset[str]


class WithoutPatch:
    """The commands on the tree without the patch; each is run only if it fails with the patch.

    `runs` are those that ran, for the review.
    """

    def __init__(self, trees: ScratchTrees) -> None:
        self._trees = trees
        self._now = trees.environment.clock()
        self._folder = os.path.join(trees.repository.common_dir, "patchgate", "before")
        # Files that the patch adds do not exist there; files that it deletes do.
        changed = trees.judged.verdict.change.files
        self._files = tuple(file.path for file in changed if file.old is not None and file.old.is_file)
        self.runs: list[CommandRun] = []

    def settle(self, name: str, settings: CommandSettings, ran: TriedCommand, finding: Finding) -> Finding:
        """Report whether a command that failed also failed before; `finding` is the finding without that."""
        try:
            known = self._prior_run(name, settings)
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
            return self._failed_before(settings, finding, sorted(now.names.values()))
        if not fresh or now.form == "output":
            return _incomparable(finding, details)
        details["new"] = fresh[:_SHOWN]
        hint = f"these fail with the patch only: {first_of(fresh, 5)}; {finding.hint}"
        return replace(finding, hint=hint)

    def _failed_before(self, settings: CommandSettings, finding: Finding, failed: Sequence[str]) -> Finding:
        policy = self._trees.judged.policy
        preexisting = "refuse" if policy is None else policy.config.apply.preexisting
        reports = settings.new_only or preexisting == "report"
        return replace(
            finding,
            rule="failed-before",
            level=Level.WARNING if reports else RULES["failed-before"].level,
            message=f"{finding.message}, and fails in the same way without the patch",
            hint="a maintainer repairs what fails without the patch" + ("" if reports else _OR_REPORT),
            who_can_fix=Fixer.PERSON,
            details={**finding.details, "failed": list(failed[:_SHOWN])},
        )

    def _prior_run(self, name: str, settings: CommandSettings) -> _PriorRun | None:
        """Find how a command ends without the patch; None if it did not end normally."""
        file = self._cache_file(name, settings)
        if file is not None and (known := _read_prior_run(file.load(), self._now)) is not None:
            return known
        called = f"{name} without the patch"
        ran = self._trees.run(
            name, settings, matching_files(settings, self._files), log=f"{name}-before", called=called
        )
        outcome = ran.outcome
        self.runs.append(ran.for_review(called, settings.kind))
        if outcome.status not in {CommandStatus.PASSED, CommandStatus.FAILED} or outcome.exit_code is None:
            return None
        form, marks = (ran.failures.form, ran.failures.marks) if ran.failures else (None, frozenset[str]())
        known = _PriorRun(outcome.exit_code, form, marks)
        if file is not None:
            plain = {
                "at": self._now,
                "exit_code": known.exit_code,
                "form": known.form,
                "marks": sorted(known.marks),
            }
            file.store(json.dumps(plain).encode("ascii"))
            drop_oldest(self._folder, _MOST_ENTRIES)
        return known

    def _cache_file(self, name: str, settings: CommandSettings) -> SealedFile | None:
        """Return the file that caches a command's result for this tree; None if a program is missing."""
        tool = tool_identity(settings, self._trees.environment.environ)
        if tool is None:
            return None
        argv = [
            word.decode("utf-8", "surrogateescape")
            for word in expand(settings, matching_files(settings, self._files))
        ]
        touched = sorted(file.path.quoted for file in self._trees.judged.verdict.change.files)
        seen = touched if settings.scope == "files" else []
        parts = [_FORM, self._trees.tree, name, asdict(settings), argv, seen, tool]
        key = hashlib.sha256(json.dumps(parts, default=dict).encode("ascii")).hexdigest()
        return SealedFile(os.path.join(self._folder, key), f"{_FORM} {key}", _MOST_BYTES)


def _read_prior_run(kept: Mapping[str, Json], now: float) -> _PriorRun | None:
    at, code, form, marks = (kept.get(name) for name in ("at", "exit_code", "form", "marks"))
    if not isinstance(at, int | float) or not 0 <= now - at < _MOST_AGE:
        return None
    if not isinstance(code, int) or not isinstance(marks, list):
        return None
    return _PriorRun(code, form if isinstance(form, str) else None, frozenset(map(str, marks)))


def _incomparable(finding: Finding, details: dict[str, Detail]) -> Finding:
    """Refuse a command that fails differently, or whose output cannot be compared."""
    details["same"] = None
    return replace(
        finding,
        message=f"{finding.message}; it fails without the patch too, and the two cannot be compared",
        hint=f"{finding.hint}; a JUnit (pytest) or SARIF report shows what is new",
    )
