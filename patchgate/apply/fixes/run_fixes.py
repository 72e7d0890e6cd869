"""Run formatters and `fix` commands on what is staged, in a scratch tree, and collect what they changed.

Each command gets the tree as the one before left it, and only its own changed files. What else it changes,
and a file that it removed or replaced by something else, is left out and named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from patchgate.commands.provided_folders import first_written, link_folders, moment, unlink_folders
from patchgate.commands.runner import CommandOutcome, CommandStatus, run
from patchgate.errors import UndecidedError
from patchgate.git.conversion import BlockedPath, read_worktree_file
from patchgate.git.model import SYMLINK, Entry, FileChange, folders_above
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, add_files
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.git.scratch import Scratch, touched_files, whole_tree
from patchgate.git.trees import resulting_tree
from patchgate.ledger.masking import Masks
from patchgate.policy.command_files import matching_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import dataclass, field, replace

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FixEnvironment:
    """What the commands need from the caller's process: its environment, and the folder for scratch trees."""

    environ: Mapping[str, str]
    cache: str


@dataclass(slots=True)
class ProposedFix:
    """What the commands propose: of each path the staged entry and the fixed one, in `store`.

    `by` names the commands that changed something; `notes` says what was not taken.
    """

    files: dict[RepoPath, FileChange] = field(default_factory=dict)
    by: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[FileChange]:
        """The changes, in the order of their paths."""
        return [file for _, file in sorted(self.files.items()) if file.old != file.new]


def fixing_command(settings: CommandSettings) -> CommandSettings | None:
    """Return the command that fixes: a formatter itself, or the `fix` of another one; None: there is none."""
    if settings.kind == "author":
        return None
    if settings.fix is not None:
        return replace(settings, command=settings.fix)
    return settings if settings.kind == "format" else None


class FixRunner:
    """Runs commands on a tree.

    Args:
        tree: what is staged; in `store`.
        staged: the changed files, with their staged entries.
    """

    def __init__(
        self,
        repository: Repository,
        objects: Objects,
        store: PrivateStore,
        tree: str,
        staged: Mapping[RepoPath, Entry],
        environment: FixEnvironment,
    ) -> None:
        self._repository = repository
        self._objects = objects
        self._store = store
        self._tree = tree
        self._staged = staged
        self._environment = environment
        self._masks = Masks([environment.environ])
        self.fix = ProposedFix()

    def run(self, name: str, settings: CommandSettings) -> None:
        """Run one command, and take what it changed.

        Raises:
            UndecidedError: it could not be started or ended, or its changes cannot be read.
        """
        files = matching_files(settings, self._staged)
        if not files:
            return
        with (
            self._scratch(settings, files) as scratch,
            self._provided(name, settings, scratch),
            TemporaryFolder() as logs,
        ):
            outcome = run(
                name,
                settings,
                place=scratch.path,
                files=files,
                environ=self._environment.environ,
                log_path=os.path.join(logs.path, "log"),
                mask=self._masks.raw,
            )
            self._require_end(name, outcome)
            self._take(name, scratch, frozenset(files), outcome)

    def _scratch(
        self, settings: CommandSettings, files: Sequence[RepoPath]
    ) -> AbstractContextManager[Scratch]:
        if settings.scope == "tree":
            head = self._objects.header("HEAD^{commit}")
            return whole_tree(
                self._repository,
                self._store,
                self._tree,
                cache=self._environment.cache,
                commit=None if head is None else head.oid,
            )
        # git stores the changed files by their attributes.
        attributes = (os.path.join(folder, b".gitattributes") for folder in folders_above(files))
        paths = [*files, *map(RepoPath, attributes), *self._needed(settings)]
        return touched_files(
            self._repository, self._objects, self._store, self._tree, paths, cache=self._environment.cache
        )

    def _needed(self, settings: CommandSettings) -> Iterator[RepoPath]:
        """List the files that a command reads besides: those of `needs`, and all below a folder of it."""
        for name in settings.needs:
            listed = self._repository.output(
                *("ls-tree", "-r", "-z", "--name-only", self._tree, "--", name),
                variables={**self._store.variables, "GIT_LITERAL_PATHSPECS": "1"},
            )
            yield from map(RepoPath.from_git, listed.split(b"\0")[:-1])

    @contextmanager
    def _provided(self, name: str, settings: CommandSettings, scratch: Scratch) -> Iterator[None]:
        """Link the folders of the working tree that the tool is in; it must not write to them."""
        root, since = self._repository.work_tree, moment()
        try:
            fault = link_folders(root, scratch.path, settings.provide)
            if fault is not None:
                hint = "install what the tool needs, or correct `provide`"
                raise UndecidedError(f"command `{name}` was not started: {fault}", hint)
            yield
            written = first_written(root, settings.provide, since) if settings.provide else None
            if written is not None:
                raise UndecidedError(
                    f"command `{name}` wrote to {printable(written, 200)}, a folder that is only linked",
                    "let it write elsewhere: set the folder of its cache",
                )
        finally:
            unlink_folders(scratch.path, settings.provide)

    def _require_end(self, name: str, outcome: CommandOutcome) -> None:
        """Require that a command ended by itself: one that was stopped may have left half a file.

        Raises:
            UndecidedError: it was not started, or was stopped.
        """
        if outcome.status in {CommandStatus.NOT_STARTED, CommandStatus.TIMED_OUT}:
            raise UndecidedError(f"command `{name}` {outcome.reason}; nothing was changed", outcome.hint)
        if outcome.exit_code is not None and outcome.exit_code < 0:
            raise UndecidedError(
                f"command `{name}` was killed by signal {-outcome.exit_code}; nothing was changed",
                "run it by hand to see why",
            )
        if outcome.status is CommandStatus.FAILED:
            last = f": {outcome.tail[-1]}" if outcome.tail else ""
            self.fix.notes.append(f"`{name}` ended with exit code {outcome.exit_code}{last}")

    def _take(self, name: str, scratch: Scratch, own: frozenset[RepoPath], outcome: CommandOutcome) -> None:
        changed = scratch.changed()
        self._mention(
            name, "changed files that it was not given", [path for path in changed if path not in own]
        )
        place = replace(self._repository, work_tree=scratch.path)
        taken = [path for path in changed if path in own and _is_regular(place, path)]
        self._mention(
            name, "removed or replaced", [path for path in changed if path in own and path not in taken]
        )
        if not taken:
            return
        known = {path: self._current(path) for path in taken}
        made = add_files(place, self._store, "fixed", known, taken)
        files = []
        for path in taken:
            # A tool that writes a file anew loses its mode; a fix changes content alone.
            new = Entry(known[path].mode, made[path].oid)
            if new != known[path]:
                files.append(FileChange(path, known[path], new))
                self.fix.files[path] = FileChange(path, self._staged[path], new)
        if files:
            self.fix.by.append(name)
            self._tree = resulting_tree(self._objects, self._tree, files, self._store.write).tree

    def _current(self, path: RepoPath) -> Entry:
        fixed = self.fix.files.get(path)
        return self._staged[path] if fixed is None or fixed.new is None else fixed.new

    def _mention(self, name: str, what: str, paths: Iterable[RepoPath]) -> None:
        found = sorted(paths)
        if found:
            shown = first_of(found, _SHOWN, lambda path: path.quoted)
            self.fix.notes.append(f"`{name}` {what}, which is not taken: {shown}")


def _is_regular(place: Repository, path: RepoPath) -> bool:
    found = read_worktree_file(place, path)
    return not (found is None or isinstance(found, BlockedPath)) and found.mode != SYMLINK
