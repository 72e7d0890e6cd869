"""What a run costs: read what an author reports of a call, add it up, and say when a cap is reached.

Money has no currency here: the limits of `[run]` are in the same unit as the authors' reports. What was spent
is recorded as events of the run, one for each call, and nowhere else.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.quoting import printable
from patchgate.ledger.ledger import Event, Ledger
from patchgate.policy.run_settings import RunSettings
from patchgate.policy.strict_json import JsonFault, dotted, read_json
from patchgate.runs.phases import PHASES, Phase, Work
from patchgate.runs.run_state import KIND, RunAction
from patchgate.storage.record import Json
from patchgate.values import dataclass, field

VARIABLE = "PATCHGATE_USAGE"
"""Names for an author the file in which it reports what its call cost."""
_MOST_BYTES = 64 << 10
_MOST_TOKENS = 10**15
_MOST_COST = 10**9
_MOST_MODEL = 200
_DIGITS = 6


class UsageReportError(PatchgateError):
    """What an author reports of a call cannot be used."""

    kind = "usage-report"


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call of a model used: `cost` is money, rounded to a millionth, None where it is not known."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "model": self.model,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": self.cost,
        }

    @classmethod
    def from_plain(cls, value: Mapping[str, object]) -> Usage:
        """Read a report; keys that are not known are left to the author.

        Raises:
            UsageReportError: a value has another type, is negative, not finite, or too large.
        """
        model = value.get("model")
        if not (model is None or (isinstance(model, str) and len(model) <= _MOST_MODEL)):
            raise UsageReportError(f"`model` is no text of at most {_MOST_MODEL} characters")
        cost = value.get("cost")
        if cost is not None and not is_amount(cost):
            raise UsageReportError(f"`cost` is no number from 0 to {_MOST_COST:,}")
        tokens = [value.get(name, 0) for name in ("input_tokens", "output_tokens")]
        if not all(type(each) is int and 0 <= each <= _MOST_TOKENS for each in tokens):
            raise UsageReportError("`input_tokens` or `output_tokens` is no whole number from 0 on")
        return cls(
            None if model is None else printable(str(model), _MOST_MODEL),
            int(str(tokens[0])),
            int(str(tokens[1])),
            None if cost is None else round(float(str(cost)), _DIGITS),
        )


def is_amount(value: object) -> bool:
    """Return whether a value is an amount of money that may have been spent."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_COST


def read_usage(place: str) -> Usage | None:
    """Read the file in which an author reported its usage; None if it wrote none.

    Raises:
        UsageReportError: it is no regular file, too large, or no report.
    """
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageReportError(f"it cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageReportError("it is no regular file")
        raw = os.read(descriptor, _MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > _MOST_BYTES:
        raise UsageReportError(f"it has more than {_MOST_BYTES:,} bytes")
    read = read_json(raw)
    if isinstance(read, JsonFault):
        raise UsageReportError(f"it is not valid JSON: {read.message}")
    if read.doubled:
        raise UsageReportError(f"the key {dotted(read.doubled[0][0])} is there twice")
    if not isinstance(read.value, dict):
        raise UsageReportError("it is no JSON object")
    return Usage.from_plain(read.value)


@dataclass(frozen=True, slots=True)
class Spend:
    """What was spent for one phase, and on which component (None: added by hand for the whole phase).

    `author` is the command that spent it; None where a person recorded it.
    """

    phase: Phase
    usage: Usage
    component: str | None = None
    author: str | None = None

    @property
    def cost(self) -> float:
        """The money; 0 where it is not known."""
        return self.usage.cost or 0.0

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON, as its event has it."""
        return {
            "phase": self.phase.value,
            "component": self.component,
            "author": self.author,
            **self.usage.plain(),
        }


def read_spend(about: Mapping[str, Json]) -> Spend:
    """Read the event of a spend.

    Raises:
        ValueError: it is something else.
    """
    try:
        usage = Usage.from_plain(about)
    except UsageReportError as error:
        raise ValueError(error.message) from error
    names = [about.get(key) for key in ("component", "author")]
    if not all(each is None or isinstance(each, str) for each in names):
        raise ValueError("its component or author is no text")
    component, author = (None if each is None else str(each) for each in names)
    return Spend(Phase(str(about.get("phase"))), usage, component, author)


def total(spends: Iterable[Spend]) -> float:
    """Add up the money that was spent."""
    return round(math.fsum(each.cost for each in spends), _DIGITS)


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """What was spent in a phase, and its cap in money; `remaining` is None without a cap."""

    spent: float
    cap: float | None
    remaining: float | None


@dataclass(frozen=True, slots=True)
class CostBudget:
    """What a run may spend: in all, and in each phase as a share of that."""

    total: float | None = None
    caps: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: RunSettings) -> CostBudget:
        """Take the limits of the policy."""
        return cls(settings.total_cost, settings.phase_caps)

    def cap(self, phase: Phase) -> float | None:
        """Return what may be spent in a phase; None without a limit of its own."""
        share = self.caps.get(phase.value)
        return None if share is None or self.total is None else round(share * self.total, _DIGITS)

    def reached(self, phase: Phase, spends: Sequence[Spend]) -> str | None:
        """Say which cap is reached, so that no call may follow; None if none is."""
        if self.total is None:
            return None
        spent = total(spends)
        if spent >= self.total:
            return f"{money(spent)} of the {money(self.total)} of total_cost are spent"
        own, cap = total(each for each in spends if each.phase is phase), self.cap(phase)
        if cap is not None and own >= cap:
            return f"{money(own)} of the {money(cap)} for {phase.value} (phase_caps) are spent"
        return None

    def summary(self, spends: Sequence[Spend]) -> dict[Phase, PhaseSummary]:
        """Return what each phase has spent and may spend, for those with a spend or a cap."""
        found = {}
        for phase in PHASES:
            spent, cap = total(each for each in spends if each.phase is phase), self.cap(phase)
            if cap is not None or any(each.phase is phase for each in spends):
                left = None if cap is None else round(max(cap - spent, 0.0), _DIGITS)
                found[phase] = PhaseSummary(spent, cap, left)
        return found


def money(value: float) -> str:
    """Write an amount with at least two digits after the point, and at most those that are recorded."""
    rounded = round(value, _DIGITS)
    if value > 0 and not rounded:
        return f"under {10**-_DIGITS:.{_DIGITS}f}"
    return f"{rounded:,.2f}" if round(rounded, 2) == rounded else f"{rounded:,.{_DIGITS}f}".rstrip("0")


def spends_of(
    events: Iterable[Event], run: str, warn: Callable[[str], None] = lambda said: None
) -> list[Spend]:
    """Choose the spends of a run from events; what cannot be read is only told to `warn`."""
    found = []
    for event in events:
        about = event.about
        if event.kind == KIND and about.get("run") == run and about.get("action") == RunAction.SPENT:
            try:
                found.append(read_spend(about))
            except ValueError as error:
                warn(f"a cost of {event.at or 'an unknown time'} cannot be used: {error}")
    return found


def recorded_spends(common_dir: str, run: str) -> list[Spend]:
    """Read what a run has spent.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    ledger = Ledger(common_dir)
    return spends_of(ledger.find_events({KIND}, f'"run":"{run}"', strict=True), run)


def record_spend(common_dir: str, run: str, spend: Spend, clock: Callable[[], float]) -> None:
    """Record a spend as an event of its run.

    Raises:
        UndecidedError: the ledger cannot be written: what is not recorded cannot be capped.
    """
    about: dict[str, Json] = {"run": run, "action": RunAction.SPENT.value, **spend.plain()}
    warning = Ledger(common_dir, clock=clock).record(KIND, about)
    if warning is not None and warning.startswith("this was not recorded"):
        raise UndecidedError(
            f"a cost was not recorded: {warning}", "git patchgate run cost add, once that is fixed"
        )


def contradictions(events: Sequence[Event], run: str) -> list[str]:
    """Say where the costs of a run do not add up: a work that ended with another sum than its calls have.

    A work that was killed has no sum; a person's additions belong to no work.
    """
    called: dict[Work, list[float]] = {}
    ended: dict[Work, list[float]] = {}
    killed: set[Work] = set()
    under_way: set[Work] = set()
    for event in events:
        about = event.about
        is_added = about.get("action") == RunAction.SPENT and about.get("author") is None
        if event.kind != KIND or about.get("run") != run or about.get("component") is None or is_added:
            continue
        try:
            work = Work(str(about["component"]), Phase(str(about.get("phase"))))
        except ValueError:
            continue
        action, cost = about.get("action"), about.get("cost")
        if action == RunAction.BEGAN:
            if work in under_way:
                killed.add(work)
            under_way.add(work)
        elif type(cost) in {int, float}:
            if action == RunAction.SPENT:
                called.setdefault(work, []).append(float(str(cost)))
            else:
                ended.setdefault(work, []).append(float(str(cost)))
                under_way.discard(work)
    wrong = []
    for work in sorted({*called, *ended} - killed - under_way):
        calls, sums = (round(math.fsum(each.get(work, ())), _DIGITS) for each in (called, ended))
        if calls != sums:
            named = f"{work.component} ({work.phase.value})"
            wrong.append(f"{named}: its calls cost {money(calls)}, and it ended with {money(sums)}")
    return wrong
