"""The staleness gate: how long ago a component was verified, and which dependencies changed since.

Decides what is fresh, aging, stale or unknown. A context gate: it depends on the date, so it is not part of a
verdict id.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from patchgate.check.case import find
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of, printable
from patchgate.policy.policy import Policy, Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding
from patchgate.report.wording import SHORT_OID, count
from patchgate.values import dataclass, replace

GATE = "staleness"
DAY = 86_400
_MOST_NAMED = 5
_MOST_LETTERS = 80
_RULES = {"aging": "baseline-aging", "stale": "baseline-stale", "unknown": "baseline-unknown"}


class Freshness(StrEnum):
    """How current the verification of a component is."""

    FRESH = "fresh"
    AGING = "aging"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LastVerified:
    """When a component was verified, and what shows that.

    Args:
        component: its id.
        baseline: the path of its baseline.
        seconds: since the epoch, UTC; None if unknown.
        verified_by: `commit`, `note` or `ledger`; None if unknown.
        commit: the newest commit that touched the baseline, if the time comes from it.
        changed: its dependencies that changed since, sorted.
        gone: names in its contract that existed then and are missing now, as written.
        unknown: why the time is unknown, in one sentence.
    """

    component: str
    baseline: RepoPath
    seconds: int | None = None
    verified_by: str | None = None
    commit: str | None = None
    changed: tuple[str, ...] = ()
    unknown: str | None = None
    gone: tuple[str, ...] = ()

    @property
    def unlike(self) -> list[str]:
        """All dependencies that changed or are gone since."""
        return [*self.changed, *self.gone]

    def days(self, now: float) -> int | None:
        """Count the whole days since; a time slightly in the future counts as 0."""
        return None if self.seconds is None else max(0, int((now - self.seconds) // DAY))


def freshness(verified: LastVerified, window: int, now: float) -> Freshness:
    """Return how fresh a component is; the last day of the window still counts.

    Args:
        window: how many days a verification counts.
        now: seconds since the epoch.
    """
    days = verified.days(now)
    if days is None:
        return Freshness.UNKNOWN
    if days > window:
        return Freshness.STALE
    return Freshness.AGING if verified.unlike else Freshness.FRESH


def examine(
    verified: LastVerified, policy: Policy, now: float, *, has_drifted: bool = False
) -> Iterator[Finding]:
    """Report a component that is not fresh, at the level that the policy sets.

    Args:
        now: seconds since the epoch.
        has_drifted: whether its files differ from its baseline: then it must be captured again.
    """
    settings = policy.config.baselines
    found = freshness(verified, settings.staleness_window_days, now)
    if found is Freshness.FRESH:
        return
    rule = _RULES[found.value]
    level = policy.level(rule, Profile.COMMIT)
    if settings.require_fresh and rule not in policy.config.rules:
        level = Level.ERROR
    if level is None:
        return
    name = verified.component
    days = verified.days(now)
    if found is Freshness.UNKNOWN:
        message = f"it is not known when {name} was verified: {verified.unknown}"
    elif found is Freshness.STALE:
        window = count(settings.staleness_window_days, "day")
        message = (
            f"{name} was verified {_ago(days)} ({_source(verified)}); a verification counts for {window}"
        )
    else:
        message = (
            f"{name} was verified {_ago(days)} ({_source(verified)}), and {_changed(verified)} changed since"
        )
    hint = f"git patchgate baseline capture {name}" + ("" if has_drifted else " --reverify")
    if verified.gone:
        lost = first_of([printable(each, _MOST_LETTERS) for each in verified.gone], _MOST_NAMED)
        hint = (
            f"remove {lost} from the contract of {name}, or replace it; then git patchgate "
            f"baseline capture {name}"
        )
    if "shallow" in (verified.unknown or ""):
        hint = f"git fetch --unshallow, or {hint}"
    about = {
        "component": name,
        "staleness": found.value,
        "verified_at": verified.seconds,
        "changed_dependencies": verified.unlike,
    }
    finding = find(
        rule, message, verified.baseline, hint, details=about | {"changed_dependencies": verified.unlike}
    )
    yield replace(finding, level=level)


def describe(verified: LastVerified, window: int, now: float, *, has_drifted: bool = False) -> str:
    """Describe how fresh a component is, and why; a drifted component is not called fresh."""
    found = freshness(verified, window, now)
    if found is Freshness.UNKNOWN:
        return f"{found.value}: {verified.unknown}"
    also = f"; {_changed(verified)} changed since" if verified.unlike else ""
    state = "" if has_drifted and found is Freshness.FRESH else f"{found.value}, "
    return f"{state}verified {_ago(verified.days(now))} ({_source(verified)}){also}"


def _source(verified: LastVerified) -> str:
    """Name the source of a verification's time, which must be known."""
    if verified.commit is not None:
        return f"commit {verified.commit[:SHORT_OID]}"
    return "a note" if verified.verified_by == "note" else "this machine's ledger"


def _changed(verified: LastVerified) -> str:
    gone = (f"{printable(each, _MOST_LETTERS)} (gone)" for each in verified.gone)
    return first_of([*verified.changed, *gone], _MOST_NAMED)


def _ago(days: int | None) -> str:
    return "today" if not days else f"{count(days, 'day')} ago"
