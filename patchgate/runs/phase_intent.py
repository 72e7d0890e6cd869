"""The intent under which an author works: the files of one phase of one component, while it is worked on.

The intent of the same work that a killed process left is cleared first; nobody else's ever is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from patchgate.errors import PatchgateError, UsageError
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.intents.actions import clear, declare, renew
from patchgate.intents.declaration import DeclareOptions
from patchgate.intents.intent import DEFAULT_TTL, MOST_TTL, reason_of_run
from patchgate.intents.intent_status import Caller, Conflict, IntentOutcome
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.policy.component import Component
from patchgate.report.wording import safe, show_path
from patchgate.runs.author import patterns_of
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask, WorkEnvironment
from patchgate.values import replace

_WAIT = 0.2
_NAMED = 5


class PhaseIntent:
    """The intent of one phase; `declare` before the author is asked, `clear` at the end, whatever happens."""

    def __init__(self, repository: Repository, task: PhaseTask, environment: WorkEnvironment) -> None:
        self._repository = repository
        self._task = task
        self._environment = environment
        self._intents = StoredIntents(repository.common_dir)
        self.id: str | None = None

    @property
    def reason(self) -> str:
        """The reason of the intent, by which it is recognised after a kill."""
        return reason_of_run(self._task.run, f"{self._task.phase.value} of {self._task.component}")

    @property
    def active(self) -> WorkEnvironment:
        """The environment whose reports renew the lease."""
        return replace(self._environment, report=self.report)

    def report(self, what: str, seconds: float) -> None:
        """Report what is going on, and renew the lease."""
        intent = None if self.id is None else self._intents.get(self.id)
        if intent is not None:
            self._intents.touch(intent, current_moment())
        self._environment.report(what, seconds)

    def clear_leftover(self) -> None:
        """Clear what a killed process left of this very work, in this worktree.

        Raises:
            UndecidedError: an intent or the ledger cannot be read or written.
        """
        for intent in self._intents.of(self._repository.git_dir):
            if intent.reason == self.reason:
                clear(self._repository, intent.id, self._caller())

    def declare(self, component: Component) -> PhaseResult | None:
        """Declare the intent; return the result of the phase if somebody else has its files.

        Waits while only other phases of the same run have them: their patterns are wider than their files.

        Raises:
            UsageError: the patterns of the component cannot be declared.
            UndecidedError: an intent or the ledger cannot be read or written.
        """
        request = DeclareOptions(self.reason, list(entries_of(component, self._task)), ttl=f"{self._ttl}s")
        began = self._environment.monotonic()
        while True:
            self._environment.require_wanted()
            outcome = declare(self._repository, request, self._caller())
            if outcome.intent is not None:
                self.id = outcome.intent.id
                return None
            waited = self._environment.monotonic() - began
            if waited > self._task.seconds or not all(map(self._is_sibling, outcome.conflicts)):
                return self._conflict(outcome)
            self._environment.report("waiting for files of another phase", waited)
            self._environment.pause(_WAIT)

    def renew(self) -> None:
        """Restart the time of the intent before a call of the author."""
        if self.id is not None:
            renew(self._repository, self.id, self._caller())

    def clear(self) -> None:
        """End the intent; one that cannot be removed ends with its lease."""
        if self.id is not None:
            with suppress(PatchgateError):
                clear(self._repository, self.id, self._caller())
            self.id = None

    @property
    def _ttl(self) -> int:
        return min(MOST_TTL, DEFAULT_TTL + int(2 * (self._task.author_seconds or 0)))

    def _caller(self) -> Caller:
        return Caller(self._environment.environ, current_moment())

    def _is_sibling(self, conflict: Conflict) -> bool:
        return conflict.intent.run == self._task.run

    def _conflict(self, outcome: IntentOutcome) -> PhaseResult:
        names = ", ".join(each.intent.id for each in outcome.conflicts)
        entries = sorted({entry for each in outcome.conflicts for entry in each.entries})
        runs = sorted({each.intent.run for each in outcome.conflicts if each.intent.run is not None})
        hint = None if outcome.hint is None else safe(outcome.hint)
        if runs:
            names = f"the run {safe(', '.join(runs))}, under {names},"
            hint = f"wait until it ends: git patchgate run show {safe(runs[0])}"
        return PhaseResult(
            PhaseOutcome.WAITING,
            f"{self._task.component}: {names} has {first_of(entries, _NAMED, show_path)}",
            hint,
        )


def clear_intents_of(repository: Repository, run: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Clear what the killed processes of a run left in this worktree; return the ids.

    Only for a run none of whose processes is alive.

    Raises:
        UndecidedError: an intent or the ledger cannot be read or written.
    """
    found = []
    for intent in StoredIntents(repository.common_dir).of(repository.git_dir):
        if intent.run == run:
            # Somebody else may have cleared it since it was read.
            with suppress(UsageError):
                clear(repository, intent.id, Caller(environ, current_moment()))
                found.append(intent.id)
    return tuple(found)


def entries_of(component: Component, task: PhaseTask) -> Iterator[str]:
    """Yield the entries of an intent that cover what a phase may change.

    An entry is a pathspec, where `*` also matches `/`: it may cover more than the pattern of the component,
    never less.
    """
    for pattern in patterns_of(component, task.phase):
        text = pattern.removeprefix("/")
        folder = text.removesuffix("**")
        if folder != text and folder.endswith("/") and not any(sign in folder for sign in "*?["):
            yield folder
            continue
        yield text
        if "**/" in text:
            # There, `**/` also means no folder at all.
            yield text.replace("**/", "")
