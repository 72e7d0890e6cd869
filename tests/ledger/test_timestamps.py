"""How a date of `--since` is read: what is one, and that nothing else is taken for now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import UsageError
from patchgate.ledger.ledger import iso
from patchgate.ledger.timestamps import parse_date

NOW = 1_774_958_400.0  # 2026-03-31T12:00:00Z


@pytest.mark.parametrize(
    ("when", "moment"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
        (" 2026-01-31 12:00Z\n", "2026-01-31T12:00:00Z"),
        ("2 weeks ago", "2026-03-17T12:00:00Z"),
        ("2.weeks.ago", "2026-03-17T12:00:00Z"),
        ("1 Day ago", "2026-03-30T12:00:00Z"),
        ("90 minutes ago", "2026-03-31T10:30:00Z"),
        ("0 seconds ago", "2026-03-31T12:00:00Z"),
        ("1 month ago", "2026-02-28T12:00:00Z"),
        ("15 months ago", "2024-12-31T12:00:00Z"),
        ("2 years ago", "2024-03-31T12:00:00Z"),
    ],
)
def test_a_date_is_iso_8601_or_a_number_of_units_ago(when: str, moment: str) -> None:
    assert iso(parse_date(when, NOW)) == moment


def test_a_date_without_a_zone_is_local_time() -> None:
    day = parse_date("2026-01-31", NOW)
    assert abs(day - parse_date("2026-01-31T00:00:00Z", NOW)) <= 14 * 3600
    assert parse_date("2026-02-01", NOW) - day == 86_400


@pytest.mark.parametrize(
    "when",
    [
        *("banana", "", " ", "soon", "12", "ago", "1 2", "HEAD", "--all", "\x1b[31m", "now", "yesterday"),
        *("2 bananas ago", "2 weeks", "weeks ago", "-1 day ago", "1.5 days ago", "١ week ago"),
        *("2026-13-01", "12:00", "0001-01-01", "9999-12-31T23:59:59-01:00", "1000000 days ago"),
        *("1500 years ago", "999999 years ago", "999999 weeks ago", "1 week ago and more"),
    ],
)
def test_what_is_no_date_is_refused_and_never_taken_for_now(when: str) -> None:
    with pytest.raises(UsageError, match="not a date") as caught:
        parse_date(when, NOW)
    assert caught.value.message.isprintable()
    assert str(caught.value.hint).endswith(" 2026-01-31, 2026-01-31T12:00:00Z or '2 weeks ago'")


@given(st.integers(-30_000_000_000, 250_000_000_000), st.integers(-30_000_000_000, 250_000_000_000))
def test_moments_as_texts_stand_in_their_order_and_are_read_back(one: int, other: int) -> None:
    assert (iso(one) < iso(other)) == (one < other)
    assert parse_date(iso(one), NOW) == one
