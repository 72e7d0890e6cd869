"""Fix the staged change: run the commands, judge what they made, and write it to the index and the files.

All of it is written, or nothing (`git.transaction`); unstaged edits stay. A kill at any moment leaves the
state before or the state after, and the next command recovers. Nothing is ever stashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from patchgate.apply.fixes.plan_fix import LeftFile, PlannedFix, plan_fix
from patchgate.apply.fixes.run_fixes import FixEnvironment, FixRunner, ProposedFix, fixing_command
from patchgate.apply.recovery import FIX
from patchgate.check.change_commands import policy_of_commands
from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import CheckOptions
from patchgate.commands.environment import prepare_environment
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.change_sources import pending_base, read_staged
from patchgate.git.conversion import MOST_BYTES
from patchgate.git.diff import Detail
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.git.scratch import sweep
from patchgate.git.staging import (
    StagedIndex,
    new_index,
    paths_unlike_index,
    refresh_index,
    store_objects,
)
from patchgate.git.transaction import ConcurrentChangeError, write_files
from patchgate.patches.file_diff import ProposedFile, write_file_diff
from patchgate.policy.command_settings import CommandSettings
from patchgate.report.verdict import Report
from patchgate.storage.filesystem import FaultPoints
from patchgate.values import dataclass, field, replace

_AGAIN = "run git patchgate fix again"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FixResult:
    """What became of a fix.

    `by` are the commands that changed something, `paths` the files that the index has fixed now, or would
    have (`is_written`). `left` is what the working files do not have of it. `report` is set if the gates
    refuse it. `patch` is the fix as a diff against the index. `notes` are other things to know.
    """

    by: tuple[str, ...] = ()
    paths: tuple[RepoPath, ...] = ()
    left: tuple[LeftFile, ...] = ()
    notes: tuple[str, ...] = ()
    patch: bytes = b""
    report: Report | None = None
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class FixOptions:
    """How to fix: the names of some commands, or all that fix; `is_dry` writes nothing.

    `faults` are numbered fault points.
    """

    environment: FixEnvironment
    names: Sequence[str] = ()
    is_dry: bool = False
    asked: CheckOptions = field(default_factory=CheckOptions)
    faults: FaultPoints | None = None


def fix_staged(repository: Repository, options: FixOptions) -> FixResult:
    """Fix what is staged.

    Raises:
        UsageError: there is no such command, or no working tree.
        UndecidedError: a command could not run, or the state changed meanwhile; nothing was changed.
    """
    if repository.work_tree is None:
        raise UsageError("a bare repository has no working tree", "run this in a clone")
    with PrivateStore(repository) as store, _reader(repository, store) as objects:
        base = pending_base(repository, objects, store)
        policy = policy_of_commands(objects, options.asked, base.policy_tree)
        commands = _chosen(policy.config.commands, options.names)
        change = read_staged(repository, objects, base, Detail()).change
        staged = {file.path: file.new for file in change.files if file.new is not None and file.new.is_file}
        environ = prepare_environment(
            options.environment.environ, policy.config.environment, repository.work_tree
        )
        sweep(repository, options.environment.cache)
        runner = FixRunner(
            repository,
            objects,
            store,
            _staged_tree(repository, store),
            staged,
            replace(options.environment, environ=environ),
        )
        for name, settings in commands.items():
            runner.run(name, settings)
        return _StagedFix(repository, objects, store, runner.fix, options).finish()


def _reader(repository: Repository, store: PrivateStore) -> Objects:
    environment = {**repository.environment, **store.variables}
    return Objects(replace(repository, environment=environment), store.variables)


def _chosen(commands: Mapping[str, CommandSettings], names: Sequence[str]) -> Mapping[str, CommandSettings]:
    """Choose the commands that fix: those with a `fix` first, then the formatters."""
    fixing = {name: fix for name, each in commands.items() if (fix := fixing_command(each)) is not None}
    for name in names:
        if name not in commands:
            known = ", ".join(fixing) or "none"
            raise UsageError(f"there is no command {printable(name, 60)}", f"commands that fix: {known}")
        if name not in fixing:
            raise UsageError(f"command `{name}` has no `fix`", 'add one, or give it kind = "format"')
    if not fixing:
        raise UsageError(
            "no command of the policy fixes anything",
            'add kind = "format" or `fix` to one; git patchgate commands import writes them',
        )
    chosen = [each for each in fixing.items() if not names or each[0] in names]
    return dict(sorted(chosen, key=lambda each: each[1].kind == "format"))


def _staged_tree(repository: Repository, store: PrivateStore) -> str:
    """Write the tree of the index into the store."""
    variables = store.copy_index()
    return repository.output("write-tree", variables=variables).decode("ascii").strip()


class _StagedFix:
    """A fix that the commands have proposed."""

    def __init__(
        self,
        repository: Repository,
        objects: Objects,
        store: PrivateStore,
        proposed: ProposedFix,
        options: FixOptions,
    ) -> None:
        self._repository = repository
        self._objects = objects
        self._store = store
        self._options = options
        self._by = tuple(proposed.by)
        self._files = proposed.changes
        self._notes = tuple(proposed.notes)

    def finish(self) -> FixResult:
        """Judge it and write it."""
        if not self._files:
            return FixResult(notes=self._notes)
        result = FixResult(
            by=self._by,
            paths=tuple(file.path for file in self._files),
            notes=self._notes,
            patch=b"".join(map(self._diff, self._files)),
        )
        planned = plan_fix(self._repository, self._objects, self._store, self._files)
        index = new_index(self._repository, self._store, self._files)
        # From here on `index.is_current` tells whether something was staged.
        if again := paths_unlike_index(self._repository, self._files):
            names = first_of(again, _SHOWN, lambda path: path.quoted)
            raise UndecidedError(
                f"{names} was staged again while the fix was made; nothing was changed", _AGAIN
            )
        report = self._judge()
        if report.verdict.exit_code:
            return replace(result, report=report)
        if not self._options.is_dry:
            self._write(planned, index)
        return replace(result, left=planned.left, is_written=not self._options.is_dry)

    def _diff(self, file: FileChange) -> bytes:
        assert file.old is not None
        assert file.new is not None
        old, new = (self._objects.read(side.oid, MOST_BYTES) for side in (file.old, file.new))
        return write_file_diff(ProposedFile(file.path, file.new.mode, old, new))

    def _judge(self) -> Report:
        """Judge what would be staged then, by the gates of a commit."""
        environment = {
            **self._repository.environment,
            **self._store.variables,
            "GIT_INDEX_FILE": self._store.index_file,
        }
        fixed = replace(self._repository, index_file=self._store.index_file, environment=environment)
        return check_pending(fixed, self._options.asked)

    def _write(self, planned: PlannedFix, index: StagedIndex) -> None:
        store_objects(self._repository, self._store, self._files)
        head = self._head()
        try:
            written = write_files(
                self._repository,
                planned.writes,
                note={FIX: ", ".join(self._by)},
                index=index.content,
                look=partial(self._require_as_judged, index, head),
                faults=self._options.faults,
            )
        except ConcurrentChangeError as error:
            names = first_of(error.paths, _SHOWN, lambda path: path.quoted)
            raise UndecidedError(
                f"{names} changed while the fix was made; nothing was written", _AGAIN
            ) from error
        written.finish()
        refresh_index(self._repository, [write.path for write in planned.writes])

    def _head(self) -> str:
        done = self._repository.git("rev-parse", "--quiet", "--verify", "HEAD", answers=(0, 1))
        return done.out.decode("ascii").strip()

    def _require_as_judged(self, index: StagedIndex, head: str) -> None:
        if not index.is_current(self._repository) or self._head() != head:
            raise UndecidedError(
                "the index or HEAD was changed while the fix was made; nothing was changed",
                _AGAIN,
            )
