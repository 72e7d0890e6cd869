"""Odd changes get one verdict at four doors, and none that breaks the policy is accepted at any.

The long form is `python -m tests.sessions.four_doors --changes 2000`.
"""

from __future__ import annotations

from tests.sessions.four_doors import SEED, try_many


def test_an_odd_change_has_one_verdict_at_every_door_and_none_that_is_forbidden_is_accepted() -> None:
    tried = try_many(SEED, 60, every=10)
    assert not tried.failures
    # Each door sees changes of both kinds, or it would prove nothing.
    for door in ("pre-receive", "--policy-from", "full tier"):
        assert tried.verdicts[door, "accepted"] >= 6, tried.verdicts
        assert tried.verdicts[door, "rejected"] >= 6, tried.verdicts
    assert tried.verdicts["fast path", "accepted"] >= 1, tried.verdicts
    assert tried.forbidden >= 24
