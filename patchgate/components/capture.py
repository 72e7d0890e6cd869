"""`baseline capture`: a component's files become its baseline if its tests pass on exactly them.

The tests of all components run first, each in a new scratch tree; then the baselines are written, whole,
through no symlink, and only if they differ. After one refusal nothing is written. Contracts are the gates'
subject. `--reverify` writes nothing to the working tree; it records that the tests passed again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchgate.approvals.approvals import who_approves
from patchgate.commands.environment import prepare_environment
from patchgate.components.attestations import (
    VERIFIED_REF,
    Attestation,
    record_attestations,
    record_captures,
)
from patchgate.components.baseline_file import MAX_BASELINE_BYTES, Baseline, hashes, write_baseline
from patchgate.components.capture_run import (
    NO_TEST_FILES,
    Capture,
    CapturedComponent,
    CaptureEnvironment,
    CaptureRequest,
    CaptureResult,
    Ending,
    TestRun,
    run_tests,
)
from patchgate.components.component_cache import FactsCache, facts_at
from patchgate.components.contract_facts import ContractMistake
from patchgate.components.drift_gathering import files_of, record
from patchgate.components.policy_tree import CapturableTree, resolve_components, tree_to_capture
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.notes import require_ref
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import Component, Role
from patchgate.policy.validators import TESTS
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import dataclass, field, replace


def is_written(work_tree: str, path: RepoPath, content: bytes) -> bool:
    """Whether the file already has this content, apart from line endings that git converts."""
    place = os.path.join(work_tree, os.fsdecode(path.raw))
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        return file.read(2 * MAX_BASELINE_BYTES).replace(b"\r\n", b"\n") == content


def require_writable_path(work_tree: str, path: RepoPath) -> None:
    """Require that a baseline can be written at a path.

    Raises:
        UndecidedError: something else is there: a symlink, a file for a folder or a folder for a file.
    """
    above = [folder for folder in path.parents() if folder]
    for raw in sorted(above, key=len):
        mode = _mode(work_tree, raw)
        if mode is not None and not stat.S_ISDIR(mode):
            what = "a symlink" if stat.S_ISLNK(mode) else "not a folder"
            raise UndecidedError(
                f"{RepoPath(raw).quoted} is {what}, so no baseline can be written below it",
                "replace it with a folder",
            )
    mode = _mode(work_tree, path.raw)
    if mode is not None and not stat.S_ISREG(mode):
        raise UndecidedError(f"{path.quoted} is not a regular file", "remove it, then capture again")


def write_file(work_tree: str, path: RepoPath, content: bytes) -> None:
    """Write a baseline atomically.

    Raises:
        UndecidedError: it could not be written, or something else is in its place.
    """
    require_writable_path(work_tree, path)
    place = Path(work_tree, os.fsdecode(path.raw))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)
    except OSError as error:
        raise UndecidedError(
            f"{path.quoted} could not be written: {error.strerror or error}",
            "free disk space, or fix the permissions of its folder",
        ) from error


def _mode(work_tree: str, raw: bytes) -> int | None:
    try:
        return os.lstat(os.path.join(work_tree, os.fsdecode(raw))).st_mode
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        # The folder above it was reported already.
        return None


_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_INTERPRETERS = _SHELLS | {"node", "python", "ruby", "perl"}
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*\Z")
# Options of a shell without an argument: the next word is the script.
_OPTIONS = re.compile(r"-[efuvx]+")


def refuse_script_command(component: Component, files: Sequence[RepoPath]) -> TestRun | None:
    """Refuse a command that would run only the first of several files; None if it may run them all.

    Args:
        files: the files that replace `{tests}`.
    """
    command = component.settings.test_command
    if len(files) < 2 or TESTS not in command:
        return None
    name = os.path.basename(command[0])
    between = command[1 : command.index(TESTS)]
    if name in _SHELLS and all(_OPTIONS.fullmatch(word) for word in between):
        between = ()
    if between or _VERSION.sub("", name) not in _INTERPRETERS:
        return None
    number = len(files) - 1
    others = "other file as an argument" if number == 1 else f"{number} others as arguments"
    reason = f"{name} would run only {files[0].quoted} and pass it the {others}"
    each = shlex.join(command[: command.index(TESTS)])
    loop = ["sh", "-c", f'for t; do {each} "$t" || exit; done', "tests", TESTS]
    return TestRun(
        Ending.REFUSED, reason, printable(f"run each file: test_command = {json.dumps(loop)}", 400)
    )


_NAMED = 5
_MISTAKES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _TestedComponent:
    """A component whose tests were run: the baseline that would be written, and its blob id."""

    captured: CapturedComponent
    content: bytes
    oid: str

    @property
    def tests(self) -> dict[str, int] | None:
        run = self.captured.run
        return None if run is None or run.counts is None else run.counts.named()

    @property
    def has_passed(self) -> bool:
        return self.captured.run is not None and self.captured.run.ending is Ending.PASSED


def capture(repository: Repository, request: CaptureRequest, environment: CaptureEnvironment) -> Capture:
    """Run the tests of components, and record the components' files if all tests pass.

    Raises:
        UsageError: a component is not declared, or the options conflict.
        ConfigError: the policy of the content cannot be used.
        UndecidedError: the content cannot be read, the tests cannot be run, or a baseline cannot be written.
    """
    _check_options(request)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=request.from_disk)
        where = "the working tree" if request.from_disk else "the index"
        components = resolve_components(content.policy.components, request.ids, where)
        return _CaptureRun(repository, content, components, request, environment).result()


def _check_options(request: CaptureRequest) -> None:
    if not request.ids:
        raise UsageError("capture needs the id of a component", "git patchgate component list shows them")
    if request.with_note and not request.reverify:
        raise UsageError(
            "--commit-note needs --reverify",
            "add --reverify; a plain capture needs no note, because its commit has the date",
        )
    if request.reverify and request.from_disk:
        raise UsageError(
            "--reverify and --worktree exclude each other",
            "remove --worktree: only staged content can be verified",
        )


@dataclass(frozen=True, slots=True)
class _CaptureRun:
    """One capture of some components; `warnings` are collected on the way."""

    repository: Repository
    content: CapturableTree
    components: Sequence[Component]
    request: CaptureRequest
    environment: CaptureEnvironment
    warnings: list[str] = field(default_factory=list)

    def result(self) -> Capture:
        self._prepare()
        unstaged = [
            path for path in self.content.unstaged if any(each.role(path) for each in self.components)
        ]
        if unstaged and not self.request.from_disk:
            self.warnings.append(self._not_tested(unstaged))
        refused = self._unreadable()
        if refused:
            return Capture(tuple(refused), tuple(self.warnings))
        environ = prepare_environment(
            self.environment.environ,
            self.content.policy.config.environment,
            self.repository.work_tree,
            test_commands=[each.settings.test_command for each in self.components],
        )
        tried = [self._try(each, environ) for each in self.components]
        if not all(each.has_passed for each in tried):
            # If the tests of one component fail, nothing is recorded of the others either.
            unrecorded = (
                replace(each.captured, result=CaptureResult.NOT_RECORDED)
                if each.has_passed
                else each.captured
                for each in tried
            )
            return Capture(tuple(unrecorded), tuple(self.warnings))
        if self.request.reverify:
            done = self._verify(tried)
        else:
            # The time of the run is in the ledger, which no branch merges. Recorded first: a run believes
            # no baseline of another component without it.
            passed = [self._passed(each, {}) for each in tried]
            self.warnings.extend(record_captures(self.repository, passed))
            done = [self._write(each) for each in tried]
            self.warnings.extend(self._ignored())
        to_add = tuple(unstaged) if self.request.from_disk else ()
        return Capture(tuple(done), tuple(self.warnings), self.request.with_note, to_add)

    def _prepare(self) -> None:
        """Check before the tests run that their result can be recorded."""
        if self.request.with_note:
            who_approves(self.repository, self.environment.environ)
            require_ref(self.repository, VERIFIED_REF)
        if self.request.reverify:
            torn = Ledger(self.repository.common_dir).require_writable()
            self.warnings.extend([torn] if torn else [])
            return
        for component in self.components:
            require_writable_path(self.repository.work_tree or "", component.baseline)

    def _not_tested(self, unstaged: Sequence[RepoPath]) -> str:
        names = ", ".join(path.quoted for path in unstaged[:_NAMED])
        more = f", and {len(unstaged) - _NAMED} more" if len(unstaged) > _NAMED else ""
        add = f"git add {'it' if len(unstaged) == 1 else 'them'}"
        otherwise = "then capture again" if self.request.reverify else "or add --worktree"
        return f"not staged, so not tested: {names}{more}; {add}, {otherwise}"

    def _unreadable(self) -> list[CapturedComponent]:
        """Refuse the components whose contracts cannot be read: the record would mean nothing."""
        found = []
        with FactsCache.of(self.repository) as cache:
            for component in self.components:
                path = component.contract
                facts = facts_at(self.content.view, path, cache)
                if facts is None:
                    is_there = self.content.view.exists(path.raw)
                    what = "is not a regular file" if is_there else "does not exist"
                    reason = f"its contract {path.quoted} {what}"
                    hint = "write it as a regular file, or fix `contract` in the policy"
                    found.append(CapturedComponent(component, CaptureResult.REFUSED, reason, hint))
                elif not facts.is_readable:
                    reason = "its contract cannot be read"
                    hint = f"git patchgate component validate {component.id}"
                    mistakes = _mistake_lines(path, facts.mistakes)
                    found.append(
                        CapturedComponent(component, CaptureResult.REFUSED, reason, hint, mistakes=mistakes)
                    )
        return found

    def _try(self, component: Component, environ: Mapping[str, str]) -> _TestedComponent:
        view = self.content.view
        files = files_of(component, view)
        recorded = record(files, view.objects)
        raw = write_baseline(component.id, recorded)
        oid = view.objects.hash("blob", raw)
        captured = CapturedComponent(
            component, CaptureResult.REFUSED, "", hashes=hashes(Baseline(component.id, recorded))
        )
        if self.request.reverify:
            entry = view.entry(component.baseline.raw)
            if entry is None or not entry.is_file or entry.oid != oid:
                reason = "has no baseline yet" if entry is None else "differs from its baseline"
                hint = f"git patchgate baseline capture {component.id}"
                reason += ", so there is nothing to verify"
                return _TestedComponent(replace(captured, reason=reason, hint=hint), raw, oid)
        if not any(role is Role.IMPLEMENTATION for role, _ in files.values()):
            # A capture without an implementation is rarely intended.
            self.warnings.append(f"`{component.id}` has no implementation files")
        tests = [path for path, (role, entry) in files.items() if role is Role.TESTS and entry.is_file]
        run = self._run(component, tests, environ)
        result = CaptureResult.UNDECIDED if run.ending is Ending.NOT_RUN else CaptureResult.REFUSED
        return _TestedComponent(
            replace(captured, result=result, reason=run.reason, hint=run.hint, run=run), raw, oid
        )

    def _run(self, component: Component, tests: Sequence[RepoPath], environ: Mapping[str, str]) -> TestRun:
        if not tests:
            return NO_TEST_FILES
        refusal = refuse_script_command(component, tests)
        if refusal is not None:
            return refusal
        from patchgate.git.scratch import whole_tree
        from patchgate.storage.temporary_folder import TemporaryFolder

        content, environment = self.content, self.environment
        making = whole_tree(
            self.repository, content.store, content.tree, cache=environment.cache, commit=content.commit
        )
        with TemporaryFolder() as beside, making as scratch:
            run = run_tests(
                component,
                tests,
                content.policy.config.baselines.source_roots,
                place=scratch.path,
                beside=beside.path,
                environ=environ,
                tick=lambda seconds: environment.report(f"the tests of {component.id}", seconds),
                seconds=environment.seconds,
            )
            self.warnings.extend(run.warnings)
            if changed := scratch.changed():
                names = ", ".join(path.quoted for path in changed[:_NAMED])
                names += ", …" if len(changed) > _NAMED else ""
                self.warnings.append(f"the tests of `{component.id}` changed {names}; this is not recorded")
        return run

    def _write(self, tried: _TestedComponent) -> CapturedComponent:
        work_tree = self.repository.work_tree or ""
        path = tried.captured.component.baseline
        is_there = is_written(work_tree, path, tried.content)
        if not is_there:
            write_file(work_tree, path, tried.content)
        return replace(
            tried.captured,
            result=CaptureResult.UNCHANGED if is_there else CaptureResult.RECORDED,
            is_staged=self._has(":0", tried),
            is_committed=self._has("HEAD", tried),
        )

    def _has(self, where: str, tried: _TestedComponent) -> bool:
        """Whether the index (`:0`) or a commit has exactly this baseline."""
        place = tried.captured.component.baseline.raw.decode("ascii")
        found = self.content.view.objects.header(f"{where}:{place}")
        return found is not None and found.oid == tried.oid

    def _ignored(self) -> list[str]:
        """Warn of baselines that git ignores."""
        names = b"".join(each.baseline.raw + b"\0" for each in self.components)
        asked = ("check-ignore", "-z", "--stdin")
        listed = self.repository.git(*asked, stdin=names, in_work_tree=True, answers=(0, 1))
        return [
            f"git ignores {RepoPath.from_git(raw).quoted}: remove it from .gitignore, or run git add -f"
            for raw in listed.out.split(b"\0")
            if raw
        ]

    def _verify(self, tried: Sequence[_TestedComponent]) -> list[CapturedComponent]:
        from patchgate.components.staleness_gathering import dependency_digests

        view, components = self.content.view, self.content.policy.components
        with FactsCache.of(self.repository) as cache:
            made = [
                self._passed(each, dependency_digests(each.captured.component, components, view, cache))
                for each in tried
            ]
        with_note, environ = self.request.with_note, self.environment.environ
        self.warnings.extend(record_attestations(self.repository, made, environ, with_note=with_note))
        return [
            replace(
                each.captured,
                result=CaptureResult.VERIFIED,
                is_staged=True,
                is_committed=self._has("HEAD", each),
            )
            for each in tried
        ]

    def _passed(self, tried: _TestedComponent, dependencies: Mapping[str, str]) -> Attestation:
        component, now = tried.captured.component.id, int(self.environment.now)
        return Attestation(component, tried.oid, now, dependencies, "ledger", tried.tests)


def _mistake_lines(path: RepoPath, mistakes: Sequence[ContractMistake]) -> tuple[str, ...]:
    lines = []
    for each in mistakes[:_MISTAKES_SHOWN]:
        place = path.quoted if each.line is None else f"{path.quoted}:{each.line}"
        lines.append(f"{place}: {f'`{each.where}`: ' if each.where else ''}{each.message}")
    left = len(mistakes) - _MISTAKES_SHOWN
    return (*lines, f"and {left} more") if left > 0 else tuple(lines)
