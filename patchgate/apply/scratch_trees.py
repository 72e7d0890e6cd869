"""The scratch trees of one attempt: everything tracked as it stands, with the patch's effect or without.

Decides in which tree a command of a scope runs, how long a tree is used, and what is read when the command
has ended. Only one tree of a repository is used at a time, so who needs the other gives this one up before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchgate.commands.failures import MOST_LOG, Failures, failures_of
from patchgate.commands.junit import MOST_REPORT, runs_pytest
from patchgate.commands.outcome import CommandOutcome, Status
from patchgate.commands.runner import run
from patchgate.errors import UndecidedError
from patchgate.git.blobs import lines_of
from patchgate.git.model import FileChange
from patchgate.git.path import RepoPath
from patchgate.git.quoting import neutral
from patchgate.git.repository import Repository
from patchgate.git.scratch import Scratch, touched_files, whole_tree
from patchgate.git.standing import tried_tree
from patchgate.ledger.masking import Masks
from patchgate.patches.patches import Judged
from patchgate.policy.settings import CommandSettings
from patchgate.storage.temporary import TemporaryFolder

if TYPE_CHECKING:
    from patchgate.apply.trying import Surroundings


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """One run of a command: how it ended, which tracked files it changed, and what it says has failed.

    `failures` is None where it has not failed, or where that cannot be compared with another run.
    """

    outcome: CommandOutcome
    changed: Sequence[RepoPath]
    failures: Failures | None


@dataclass(slots=True)
class Trees:
    """The scratch trees of one side, each made when a command first needs it; a context manager.

    `tree` is what stands in the whole one; `kept` are the places that stay as the commands left them.
    """

    repository: Repository
    judged: Judged
    around: Surroundings
    tree: str
    keeps: bool = False
    kept: list[str] = field(default_factory=list)
    has_shown_all: bool = False
    _held: ExitStack = field(default_factory=ExitStack)
    _made: dict[str, Scratch] = field(default_factory=dict)

    @classmethod
    def of(
        cls, repository: Repository, judged: Judged, around: Surroundings, files: Iterable[FileChange]
    ) -> Trees:
        """Choose the tree that has these files of the patch in it.

        Raises:
            UndecidedError: the index is in conflict or unreadable, or a file cannot be read.
        """
        tree = tried_tree(repository, judged.objects, judged.store, judged.footing.policy_tree, files)
        return cls(repository, judged, around, tree)

    def __enter__(self) -> Trees:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the trees up; the next command makes them anew."""
        self._made.clear()
        self._held.close()

    def run(
        self,
        name: str,
        settings: CommandSettings,
        files: Sequence[RepoPath],
        log: str,
        masks: Masks,
        called: str,
    ) -> TriedCommand:
        """Run a command, and put back what it changed.

        Args:
            name: its name in the config.
            settings: what the config says of it.
            files: what `{files}` stands for.
            log: a file that does not exist yet.
            masks: takes secrets out of the log.
            called: what is reported as running.

        Raises:
            UndecidedError: a log or a tree cannot be made, or the command removed the tree.
        """
        scratch = self._scratch(settings.scope)
        with _report_of(settings) as report:
            outcome = run(
                name,
                settings,
                place=scratch.path,
                files=files,
                environ=self.around.environ,
                log_path=log,
                mask=masks.stream(),
                clean=neutral,
                tick=lambda seconds: self.around.tell(called, seconds),
                report=report,
            )
            failures = None
            # What is not whole cannot be compared.
            if outcome.status is Status.FAILED and not (outcome.dropped or outcome.warnings):
                failures = self._failures(scratch.path, log, report)
        if outcome.status is Status.NOTHING_TO_DO:
            return TriedCommand(outcome, (), None)
        changed = scratch.changed()
        if changed:
            scratch.put_back()
        return TriedCommand(outcome, changed, failures)

    def _failures(self, place: str, log: str, report: str | None) -> Failures | None:
        written = _read(log, MOST_LOG)
        if written is None:
            return None
        told = None
        if report is not None and os.path.lexists(report) and (told := _read(report, MOST_REPORT)) is None:
            return None
        return failures_of(written, told, place, lines_of(self.judged.objects, self.tree))

    def _scratch(self, scope: str) -> Scratch:
        """Give the tree for commands of a scope, made where it is not there."""
        if scope in self._made:
            return self._made[scope]
        repository, judged, cache = self.repository, self.judged, self.around.cache
        if scope == "files":
            paths = [file.path for file in judged.verdict.change.files]
            making = touched_files(
                repository, judged.objects, judged.store, self.tree, paths, cache=cache, keep=self.keeps
            )
        else:
            commit = judged.footing.head or judged.footing.commit
            making = whole_tree(
                repository, judged.store, self.tree, cache=cache, commit=commit, keep=self.keeps
            )
            self.has_shown_all = True
        made = self._made[scope] = self._held.enter_context(making)
        if self.keeps:
            self.kept.append(made.path)
        return made


@contextlib.contextmanager
def _report_of(settings: CommandSettings) -> Iterator[str | None]:
    """Make room for the JUnit report of a command that can write one, outside of the tree."""
    if not runs_pytest(settings.command):
        yield None
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryFolder())
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise UndecidedError(
                f"the folder for a report of tests cannot be made: {said}", "make room, then try again"
            ) from error
        yield os.path.join(folder.path, "report.xml")


def _read(path: str, most: int) -> bytes | None:
    """Read what a command wrote; None where it is no file, or too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            raw = file.read(most + 1)
    except OSError:
        return None
    return raw if len(raw) <= most else None
