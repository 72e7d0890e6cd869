"""How long an author may work, by its role and the run's impatience, and whether anything still happens.

Does not measure or end anything: the clock is an argument, and the caller decides what idleness means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

DEFAULT_SECONDS = 300.0
LEAST_SECONDS = 30.0
ROLE_SECONDS: Mapping[str, float] = {
    "decomposer": 300.0,
    "contract_author": 300.0,
    "test_author": 300.0,
    "code_author": 300.0,
    "trace_analyst": 180.0,
}
"""The limits by role; any other role has `DEFAULT_SECONDS`. Source: the requirement D 4.2."""
TRANSITION_SECONDS = 60.0
"""For so long after a transition nothing is idle. Source: the requirement D 1.3."""


class Impatience(StrEnum):
    """How long the limits of a run are, compared with the usual ones."""

    PATIENT = "patient"
    NORMAL = "normal"
    IMPATIENT = "impatient"


_FACTORS = {Impatience.PATIENT: 2.0, Impatience.NORMAL: 1.0, Impatience.IMPATIENT: 0.5}


def limit_seconds(
    role: str | None, impatience: Impatience = Impatience.NORMAL, overrides: Mapping[str, float] | None = None
) -> float:
    """Return the limit of a role in seconds, at least 30.

    Args:
        role: what the author does; None or an unknown role has 300 s.
        impatience: doubles or halves the limit.
        overrides: limits of the config by role (`[run] role_timeouts`), before impatience.
    """
    name = role or ""
    usual = (overrides or {}).get(name, ROLE_SECONDS.get(name, DEFAULT_SECONDS))
    return max(LEAST_SECONDS, usual * _FACTORS[impatience])


def wall_seconds(
    timeout: float,
    role: str | None,
    impatience: Impatience = Impatience.NORMAL,
    overrides: Mapping[str, float] | None = None,
) -> float:
    """Return how long one call of an author may take in all, in seconds.

    Args:
        timeout: that of its command; impatience doubles or halves it, but not below 30 s.
        overrides: as for `limit_seconds`; a role that has one may take as long as its limit.
    """
    wall = max(min(LEAST_SECONDS, timeout), timeout * _FACTORS[impatience])
    return max(wall, limit_seconds(role, impatience, overrides)) if role in (overrides or {}) else wall


class ActivityKind(StrEnum):
    """What shows that work goes on."""

    OUTPUT = "output"
    TRANSITION = "transition"


class Activity:
    """When something last happened, for a lease that is renewed and a run that is found idle.

    A call is activity while it writes: a worker that waits for one writes about once a second. Threads may
    share it without a lock: each method reads or writes one value.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin now, as after any activity but a transition.

        Args:
            clock: seconds that never run backwards (`time.monotonic`).
        """
        self._clock = clock
        self._last = clock()
        self._transition: float | None = None

    def record(self, kind: ActivityKind) -> None:
        """Record that something happens now."""
        now = self._clock()
        self._last = now
        if kind is ActivityKind.TRANSITION:
            self._transition = now

    @property
    def idle_seconds(self) -> float:
        """The seconds since the last activity."""
        return max(0.0, self._clock() - self._last)

    def is_idle(self, most: float) -> bool:
        """Return whether nothing has happened for `most` seconds; false for 60 s after a transition."""
        since = self._transition
        if since is not None and self._clock() - since < TRANSITION_SECONDS:
            return False
        return self.idle_seconds >= most
