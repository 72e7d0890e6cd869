"""Write a patch that was accepted and tried, if everything is still as it was judged.

Files, HEAD and index are read once more, also under the locks; a difference is a finding. `disk_bytes`
decides which bytes are written, `git.transaction` how. If a patch brings a `.gitattributes`, git
shows in a copy of the resulting tree what it will store.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from patchgate.apply.disk_bytes import FileState, PlannedWrites, plan_writes, read_file_state
from patchgate.errors import UndecidedError
from patchgate.git.base_files import read_files
from patchgate.git.model import REGULAR, SYMLINK, Entry, FileChange, folders_above
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, paths_changed_since
from patchgate.git.repository import Repository
from patchgate.git.staging import StagedIndex, index_entries, new_index, paths_unlike_index, store_objects
from patchgate.git.transaction import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
    WrittenFiles,
    write_files,
)
from patchgate.git.transaction.entries import FileContent, Write
from patchgate.patches.check_patch import PatchVerdict, is_as_judged
from patchgate.patches.patch_base import report_existing
from patchgate.report.rules import RULES
from patchgate.report.verdict import Detail, Finding, Fixer, GateOutcome, Json, Outcome
from patchgate.storage.filesystem import FaultPoints
from patchgate.storage.signals import defer_signals
from patchgate.values import dataclass, replace

_SHOWN = 20

_ATTRIBUTES = b".gitattributes"


def find_stored_otherwise(
    repository: Repository, files: Sequence[FileChange], writes: Sequence[Write]
) -> tuple[RepoPath, ...]:
    """Find the files that git will not store as they were judged, because of attributes in the patch.

    Without a `.gitattributes` among the files no child is started, and there are none.

    Raises:
        UndecidedError: git could not store a file, or other files cannot be read.
    """
    if not any(file.path.raw.rpartition(b"/")[2] == _ATTRIBUTES for file in files):
        return ()
    judged = {file.path: file.new for file in files if file.new is not None}
    written = {write.path: write.new for write in writes}
    asked = {
        path: REGULAR
        for path, content in written.items()
        if content is not None and content.mode != SYMLINK and path in judged
    }
    if not asked:
        return ()
    staged = index_entries(repository, asked.keys())
    known: dict[RepoPath, Entry | None] = {path: staged.get(path) for path in asked}
    # A separate store: no file and no index of an earlier question is in the way.
    with PrivateStore(repository) as store:
        folder = store.index_file + "-after"
        try:
            _make_copy(repository, os.fsencode(folder), written)
        except OSError as error:
            raise UndecidedError(
                f"the other files of the working tree cannot be read: {error.strerror}",
                "check their permissions",
            ) from error
        try:
            found = read_files(replace(repository, work_tree=folder), store, asked, known)
        except UndecidedError as error:
            raise UndecidedError(
                f"git could not store the files of the patch under the .gitattributes in it: {error.message}",
                "leave .gitattributes out of the patch, or fix it there",
            ) from error
    return tuple(path for path in asked if _oid(found.get(path)) != _oid(judged[path]))


def _oid(entry: Entry | None) -> str | None:
    return None if entry is None else entry.oid


def _make_copy(repository: Repository, folder: bytes, written: Mapping[RepoPath, FileContent | None]) -> None:
    """Make the resulting working tree: written files in real folders, links to the rest."""
    root = os.fsencode(repository.work_tree or "")
    made = {path: content for path, content in written.items() if content is not None}
    above = sorted({b""} | folders_above(made))
    for inside in above:
        os.mkdir(os.path.join(folder, inside))
    own = {*above, *(path.raw for path in written)}
    for inside in above:
        for name in _names_in(os.path.join(root, inside)):
            own_name = os.path.join(inside, name)
            if own_name in own or name == b".git":
                continue
            source, place = os.path.join(root, own_name), os.path.join(folder, own_name)
            if name == _ATTRIBUTES and stat.S_ISREG(os.lstat(source).st_mode):
                # git follows no link that has this name.
                shutil.copyfile(source, place, follow_symlinks=False)
            else:
                os.symlink(source, place)
    for path, content in made.items():
        _make_file(os.path.join(folder, path.raw), content)


def _names_in(folder: bytes) -> Iterable[bytes]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        # The patch makes it.
        return ()


def _make_file(place: bytes, content: FileContent) -> None:
    if content.mode == SYMLINK:
        os.symlink(content.data, place)
        return
    with open(place, "xb") as file:
        file.write(content.data)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write: gates and findings for the verdict, warnings, the landing if any."""

    gates: tuple[GateOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    landing: WrittenFiles | None = None


class _StoppedError(UndecidedError):
    """The check under the locks found something."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


_SAVED = "a file was changed while the patch was written; that change is saved in"


def write_judged(
    repository: Repository,
    judged: PatchVerdict,
    *,
    note: Mapping[str, Json],
    with_index: bool,
    writes: bool,
    shield: ExitStack,
    tried: str | None = None,
    faults: FaultPoints | None = None,
    last_look: Callable[[], Finding | None] = lambda: None,
) -> WriteResult:
    """Write an accepted change to the working tree, and to the index if asked; a problem is a finding.

    Args:
        note: what the journal records of the attempt.
        writes: false only checks whether it can be written.
        shield: defers signals from the first write until the caller has recorded the result.
        tried: the whole tree that commands saw, which must be unchanged; None if there was none.
        faults: numbered fault points.
        last_look: the caller's check under the locks; nothing is written if it returns a finding.
    """
    files = judged.verdict.change.files
    try:
        state = read_file_state(repository, judged.objects, judged.store, files, with_index=with_index)
        if found := _find_problems(repository, judged, state, with_index=with_index):
            return _refused(found)
        made = plan_writes(repository, judged.objects, judged.store, files, state)
        warnings = _warn_of_storing(repository, files, made)
        if not writes:
            gate = GateOutcome("apply", Outcome.NOT_APPLICABLE, "a dry run writes nothing")
            return WriteResult((gate,), warnings=warnings)
        staged = None
        if with_index:
            staged = new_index(repository, judged.store, files)
            store_objects(repository, judged.store, files)
        shield.enter_context(defer_signals())
        landing = write_files(
            repository,
            made.writes,
            note=note,
            index=None if staged is None else staged.content,
            look=lambda: _require_as_judged(repository, judged, staged, tried, last_look),
            faults=faults,
        )
    except ConcurrentChangeError as error:
        return _refused([_concurrent(path) for path in error.paths])
    except _StoppedError as error:
        return _refused([error.finding])
    except WriteFailedError as error:
        return _refused([_finding("write-failed", error.message, hint=error.hint)])
    except DirtyWorkspaceError as error:
        return _refused([_dirty(error)])
    except UndecidedError as error:
        return _undecided(error)
    late = (f"{_SAVED} {place}" for place in landing.kept)
    gate = GateOutcome("apply", Outcome.PASS)
    return WriteResult((gate,), warnings=(*warnings, *late), landing=landing)


def _warn_of_storing(
    repository: Repository, files: Sequence[FileChange], made: PlannedWrites
) -> tuple[str, ...]:
    """Warn of files that `git add` will store otherwise than they were judged."""
    ends = (
        f"{path.quoted} keeps its line endings; `git add` will store different ones"
        for path in made.unstable[:_SHOWN]
    )
    brought = (
        f"{path.quoted}: `git add` will store something other than what was judged, because of the"
        " .gitattributes in the patch"
        for path in find_stored_otherwise(repository, files, made.writes)[:_SHOWN]
        if path not in made.unstable
    )
    return (*ends, *brought)


def preflight(repository: Repository, judged: PatchVerdict, *, with_index: bool) -> WriteResult:
    """Check whether a patch could be written now, before its commands run."""
    files = judged.verdict.change.files
    try:
        state = read_file_state(repository, judged.objects, judged.store, files, with_index=with_index)
        found = _find_problems(repository, judged, state, with_index=with_index)
    except UndecidedError as error:
        return _undecided(error)
    return _refused(found) if found else WriteResult()


def _find_problems(
    repository: Repository, judged: PatchVerdict, state: FileState, *, with_index: bool
) -> list[Finding]:
    if state.differing:
        report = _concurrent if judged.patch_base.on_disk else report_existing
        return [report(path) for path in state.differing]
    if not with_index:
        return []
    return [_index_differs(path) for path in paths_unlike_index(repository, judged.verdict.change.files)]


def _undecided(error: UndecidedError) -> WriteResult:
    return WriteResult((GateOutcome("apply", Outcome.UNDECIDED, error.sentence),))


def _require_as_judged(
    repository: Repository,
    judged: PatchVerdict,
    staged: StagedIndex | None,
    tried: str | None,
    last_look: Callable[[], Finding | None],
) -> None:
    """Check again, under the locks, that everything is as it was judged and tried."""
    found = last_look()
    if found is None and not is_as_judged(repository, judged):
        found = _finding(
            "concurrent-change", "HEAD or the index was changed while the patch was being applied"
        )
    if found is None and staged is not None and not staged.is_current(repository):
        found = _finding("concurrent-change", "the index was changed while the patch was being applied")
    if found is not None:
        raise _StoppedError(found)
    if tried is not None:
        files, tree = judged.verdict.change.files, judged.patch_base.policy_tree
        if paths := paths_changed_since(repository, judged.objects, judged.store, tree, files, tried):
            raise ConcurrentChangeError(paths)


def _refused(findings: Sequence[Finding]) -> WriteResult:
    undecided = all(finding.definition.undecided for finding in findings)
    outcome = Outcome.UNDECIDED if undecided else Outcome.FAIL
    reason = f"{findings[0].rule}: {findings[0].message}" if undecided else None
    return WriteResult((GateOutcome("apply", outcome, reason),), tuple(findings[:_SHOWN]))


def _finding(
    rule: str,
    message: str,
    path: RepoPath | None = None,
    *,
    hint: str | None = None,
    who: Fixer = Fixer.ENVIRONMENT,
    details: Mapping[str, Detail] | None = None,
    notes: tuple[str, ...] = (),
) -> Finding:
    hint = hint or RULES[rule].hint
    return Finding.of(rule, message, path, hint=hint, who_can_fix=who, details=details, notes=notes)


def _concurrent(path: RepoPath) -> Finding:
    return _finding("concurrent-change", f"{path.quoted} was changed while the patch was being applied", path)


def _index_differs(path: RepoPath) -> Finding:
    message = f"{path.quoted} in the index differs from the file on disk"
    return _finding("index-differs", message, path, who=Fixer.PERSON)


def _dirty(error: DirtyWorkspaceError) -> Finding:
    return _finding(
        "dirty-workspace",
        error.message,
        hint=error.hint,
        who=Fixer.PERSON,
        details={"paths": error.paths},
        notes=error.states[:_SHOWN],
    )
