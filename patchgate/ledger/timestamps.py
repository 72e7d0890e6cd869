"""Reads the dates of `--since`, and reads and writes the times of the ledger.

The grammar is small on purpose: ISO 8601, and `N UNIT ago`. git reads many more words, and takes unknown
words for the current time; here they are refused, so that a typo does not mean now.
"""

from __future__ import annotations

import re
from calendar import monthrange, timegm
from datetime import UTC, datetime
from time import strptime

from patchgate.errors import UsageError
from patchgate.git.quoting import printable
from patchgate.ledger.ledger import iso

_AGO = re.compile(r"([0-9]{1,6})[\s.]+(second|minute|hour|day|week|month|year)s?[\s.]+ago", re.ASCII)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST_SPAN = 100 * 366 * 86_400
_MONTHS = {"month": 1, "year": 12}
# Years with four digits, so that the order of the texts is that of the times.
_YEARS = range(1000, 10_000)


def parse_date(when: str, now: float) -> float:
    """Parse a date: ISO 8601 (local time without a zone), or `N UNIT ago` with calendar months.

    Args:
        now: seconds since the epoch.

    Returns:
        Seconds since the epoch.

    Raises:
        UsageError: it is neither, or not in the years 1000 to 9999.
    """
    text = when.strip()
    try:
        ago = _AGO.fullmatch(text.lower())
        moment = (
            datetime.fromisoformat(text).timestamp() if ago is None else _before(now, int(ago[1]), ago[2])
        )
        if datetime.fromtimestamp(moment, UTC).year in _YEARS:
            return moment
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(
        f"{printable(when, 60)!r} is not a date",
        "write one as 2026-01-31, 2026-01-31T12:00:00Z or '2 weeks ago'",
    )


def parse_span(text: str) -> float:
    """Parse a span of time such as `30d`, `12h` or `2w`; return it in seconds.

    Raises:
        UsageError: it is not one, or has more than 100 years.
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip(), re.ASCII)
    seconds = int(found[1]) * _SPANS[found[2]] if found is not None else 0
    if not 0 < seconds <= _MOST_SPAN:
        raise UsageError(f"{printable(text, 60)!r} is not a span of time", "write one as 30d, 12h or 2w")
    return seconds


def _before(now: float, number: int, unit: str) -> float:
    if unit in _SECONDS:
        return now - number * _SECONDS[unit]
    then = datetime.fromtimestamp(now, UTC)
    year, month = divmod(then.year * 12 + then.month - 1 - number * _MONTHS[unit], 12)
    # The 31st of a shorter month is its last day. `replace` refuses an invalid year.
    day = min(then.day, monthrange(year, month + 1)[1]) if year > 0 else then.day
    return then.replace(year=year, month=month + 1, day=day).timestamp()


def iso_if_any(seconds: float) -> str | None:
    """Write a time in UTC (ISO 8601); None if it cannot be written."""
    try:
        return iso(seconds)
    except (OverflowError, ValueError, OSError):
        return None


def parse_timestamp(at: str) -> int | None:
    """Parse a time that `iso` wrote; None if it is not valid."""
    try:
        return timegm(strptime(at, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return None
