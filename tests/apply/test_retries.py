"""The retry rule: chains, what may come again, how often."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.apply.attempt_records import AttemptRecord, ResetRecord, record, record_reset, reset_command
from patchgate.apply.retries import (
    Chain,
    check_after_judging,
    check_before_judging,
    find_chain,
    plan_retry,
    refuse_meanwhile,
    reload_chain,
)
from patchgate.errors import UsageError
from patchgate.git.model import Change, Source
from patchgate.ledger.ledger import Ledger
from patchgate.report.rules import RULES
from patchgate.report.verdict import ChangeVerdict, Finding, Fixer, PolicyReference, Retry
from patchgate.report.wording import retry_line
from tests.proposals import addition, change_of

PATCH = change_of()
DIGEST = hashlib.sha256(PATCH).hexdigest()
BASE, POLICY = "1" * 40, "sha256:" + "2" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty ledger."""
    return Ledger(str(tmp_path))


def tried(name: str, chain: str = "a-0001", **changed: Any) -> AttemptRecord:
    """Make the record of a refused attempt."""
    made = AttemptRecord(
        attempt=name,
        chain=chain,
        retry_of=None,
        number=1,
        verdict="rejected",
        applied=False,
        counts=True,
        dry_run=False,
        kind="patch",
        patch_sha256=DIGEST,
        base=BASE,
        policy=POLICY,
        stage="policy",
        rules=("deny-prefix",),
    )
    return replace(made, **changed)


def keep(ledger: Ledger, *attempts: AttemptRecord) -> None:
    """Record attempts."""
    for each in attempts:
        assert record(ledger, each) is None


def judged(*rules: str, base: str = BASE, policy: str = POLICY, after: str | None = None) -> ChangeVerdict:
    """Make a verdict with findings of these rules; without `after` the patch made nothing."""
    findings = tuple(Finding(rule, RULES[rule].level, "m") for rule in rules)
    change = Change(base, after or base, ())
    return ChangeVerdict(change, Source("patch"), "agent", PolicyReference(policy, "HEAD"), (), findings)


def test_an_attempt_without_retry_of_begins_a_chain_and_is_never_a_bad_retry(ledger: Ledger) -> None:
    keep(ledger, *(tried(f"a-000{number}") for number in range(1, 7)))
    chain = find_chain(ledger, None)
    assert (chain.first, chain.number, chain.refusals) == (None, 1, ())
    assert chain.id_with("a-ffff") == "a-ffff"
    assert check_before_judging(chain, b"prose", "edits", 1) is None
    assert check_after_judging(chain, judged("deny-prefix"), PATCH) is None


def test_a_retry_belongs_to_the_chain_of_what_it_retries(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"), tried("a-0002", retry_of="a-0001"), tried("a-0003", "a-0003"))
    for name in ("a-0001", "a-0002"):
        chain = find_chain(ledger, name)
        assert (chain.first, chain.retry_of, chain.number) == ("a-0001", name, 3)
        assert chain.id_with("a-ffff") == "a-0001"
    assert find_chain(ledger, "a-0003").number == 2


def test_what_is_undecided_or_a_dry_run_does_not_count_but_may_be_retried(ledger: Ledger) -> None:
    keep(
        ledger,
        tried("a-0001", verdict="undecided", counts=False),
        tried("a-0002", counts=False, dry_run=True),
        tried("a-0003"),
    )
    for name in ("a-0001", "a-0002", "a-0003"):
        assert find_chain(ledger, name).number == 2


@pytest.mark.parametrize("name", ["a-9999", "a-", "", "../x", 'a-"', "a-\x1b[31m"])
def test_an_attempt_that_nobody_knows_is_a_mistake_of_the_arguments(ledger: Ledger, name: str) -> None:
    keep(ledger, tried("a-0001"), tried("a-0002"))
    with pytest.raises(UsageError) as raised:
        find_chain(ledger, name)
    assert raised.value.exit_code == 2
    assert "\x1b" not in raised.value.message


def test_what_has_landed_needs_no_retry_nor_does_what_came_before_it(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"), tried("a-0002", applied=True, verdict="accepted", counts=False))
    with pytest.raises(UsageError, match="a-0002 was applied,"):
        find_chain(ledger, "a-0002")
    with pytest.raises(UsageError, match="a-0001 was applied as a-0002"):
        find_chain(ledger, "a-0001")


def test_what_a_dry_run_accepted_needs_no_retry(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001", verdict="accepted", counts=False, dry_run=True))
    with pytest.raises(UsageError, match="was accepted"):
        find_chain(ledger, "a-0001")


def test_after_as_many_refusals_as_the_limit_even_a_good_patch_is_refused_until_a_person_resets(
    ledger: Ledger,
) -> None:
    for number in range(1, 6):
        assert (
            check_before_judging(find_chain(ledger, "a-0001"), PATCH, "patch", 5) is None
            if number > 1
            else True
        )
        keep(ledger, tried(f"a-000{number}"))
    chain = find_chain(ledger, "a-0005")
    exhausted = check_before_judging(chain, PATCH, "patch", 5)
    assert exhausted is not None
    assert (exhausted.rule, exhausted.who_can_fix) == ("retry-exhausted", Fixer.PERSON)
    assert "git patchgate attempts reset a-0005" in str(exhausted.hint)
    assert (exhausted.details["limit"], exhausted.details["actual"]) == (5, 5)
    assert record_reset(ledger, ResetRecord("a-0001", "looked at it", "A U Thor")) is None
    chain = find_chain(ledger, "a-0005")
    assert chain.number == 1
    assert check_before_judging(chain, PATCH, "patch", 5) is None
    assert check_after_judging(chain, judged("deny-prefix"), PATCH) is None


def test_a_reset_of_another_chain_changes_nothing(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"), tried("a-0002", "a-0002"))
    assert record_reset(ledger, ResetRecord("a-0002", "why not", "A")) is None
    assert find_chain(ledger, "a-0001").number == 2
    assert find_chain(ledger, "a-0002").number == 1


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"def whole_file():\n    return 1\n", "patch"),
        (b'{"patch": {"edits": []}}', "patch"),
        (b"I have changed it.\n", "patch"),
        (b"Here it is:\n" + PATCH, "patch"),
        (PATCH + b"Done.\n", "patch"),
        (b"```diff\n" + PATCH + b"```\n", "patch"),
        (b"*** Begin Patch\n*** End Patch\n", "patch"),
        (b"", "patch"),
        (PATCH, "edits"),
        (b"{}", "edits"),
    ],
)
def test_only_a_whole_unified_diff_may_come_again(ledger: Ledger, sent: bytes, kind: str) -> None:
    keep(ledger, tried("a-0001"))
    refused = check_before_judging(find_chain(ledger, "a-0001"), sent, kind, 5)
    assert refused is not None
    assert (refused.rule, refused.who_can_fix) == ("retry-not-a-diff", Fixer.AGENT)
    assert refused.hint


@pytest.mark.parametrize(
    "sent", [PATCH, PATCH + addition(b"new"), PATCH.replace(b"-1,3", b"-1,9"), b"\n" + PATCH]
)
def test_a_diff_that_is_wrong_in_itself_is_judged_as_any_other(ledger: Ledger, sent: bytes) -> None:
    keep(ledger, tried("a-0001"))
    assert check_before_judging(find_chain(ledger, "a-0001"), sent, "patch", 5) is None


def test_prose_around_a_retry_says_which_lines_to_leave_out(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"))
    refused = check_before_judging(find_chain(ledger, "a-0001"), PATCH + b"That is\nall.\n", "patch", 5)
    assert refused is not None
    assert refused.fix is not None
    last = PATCH.count(b"\n")
    assert (refused.fix.patch_line, refused.fix.last_patch_line) == (last + 1, last + 2)
    assert refused.fix.replace_with is None


def test_the_very_patch_that_was_refused_is_refused_while_its_base_and_cause_are_the_same(
    ledger: Ledger,
) -> None:
    keep(ledger, tried("a-0001"), tried("a-0002", patch_sha256="0" * 64))
    chain = find_chain(ledger, "a-0002")
    same = judged("deny-prefix", "secret")
    found = check_after_judging(chain, same, PATCH)
    assert found is not None
    assert (found.rule, found.details["attempt"]) == ("retry-identical", "a-0001")
    assert check_after_judging(chain, same, PATCH.replace(b"+B", b"+C")) is None
    assert check_after_judging(chain, judged("deny-prefix", base="9" * 40), PATCH) is None
    assert check_after_judging(chain, judged("deny-prefix", policy="sha256:" + "9" * 64), PATCH) is None
    # What refused it is gone: an untracked file that stood in the way.
    assert check_after_judging(chain, judged(), PATCH) is None
    assert check_after_judging(chain, judged("secret"), PATCH) is None
    assert check_after_judging(chain, judged("hunk-offset"), PATCH) is None


def test_a_patch_that_a_command_refused_is_not_tried_again_on_the_same_base(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001", stage="apply", rules=("build-failed",)))
    chain = find_chain(ledger, "a-0001")
    found = check_after_judging(chain, judged(), PATCH)
    assert found is not None
    assert "build-failed" in found.message
    assert check_after_judging(chain, judged(base="9" * 40), PATCH) is None


def test_another_text_of_the_very_change_is_identical_and_the_same_text_of_another_change_is_not(
    ledger: Ledger,
) -> None:
    keep(ledger, tried("a-0001", stage="apply", rules=("build-failed",), after="3" * 40))
    chain = find_chain(ledger, "a-0001")
    for written in (PATCH, b"\n" + PATCH, PATCH.replace(b"@@\n", b"@@ section\n")):
        found = check_after_judging(chain, judged(after="3" * 40), written)
        assert found is not None
        assert found.rule == "retry-identical"
        assert check_after_judging(chain, judged(after="4" * 40), written) is None
        assert check_after_judging(chain, judged(after="3" * 40, base="9" * 40), written) is None
        assert (
            check_after_judging(chain, judged(after="3" * 40, policy="sha256:" + "9" * 64), written) is None
        )


@pytest.mark.parametrize("written", [b"\n" + PATCH, b"\r\n\n" + PATCH + b"\n\n", PATCH + b"\n"])
def test_blank_lines_around_a_patch_that_made_nothing_do_not_make_it_another(
    ledger: Ledger, written: bytes
) -> None:
    keep(ledger, tried("a-0001", rules=("hunk-mismatch",), stage="git_check", after=BASE))
    chain = find_chain(ledger, "a-0001")
    assert check_after_judging(chain, judged("hunk-mismatch"), written) is not None
    assert check_after_judging(chain, judged("hunk-mismatch"), written.replace(b"+B", b"+ B")) is None


def test_the_rule_is_asked_again_about_what_others_did_meanwhile(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"))
    chain = find_chain(ledger, "a-0001")
    assert reload_chain(ledger, chain) == chain
    assert refuse_meanwhile(ledger, chain, 2) is None
    keep(ledger, tried("a-0002"), tried("a-0003", "a-0003"))
    chain = reload_chain(ledger, chain)
    assert chain.number == 3
    exhausted = refuse_meanwhile(ledger, chain, 2)
    assert exhausted is not None
    assert (exhausted.rule, exhausted.details["actual"]) == ("retry-exhausted", 2)
    assert refuse_meanwhile(ledger, chain, 3) is None
    assert refuse_meanwhile(ledger, chain, 3, [{"chain": "a-0003", "attempt": "a-0003"}, {}]) is None
    assert reload_chain(ledger, Chain()) == Chain()
    assert refuse_meanwhile(ledger, Chain(), 1, [{"chain": None}]) is None


def test_nothing_lands_beside_another_attempt_of_its_chain_recorded_or_not(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001"))
    chain = find_chain(ledger, "a-0001")
    found = refuse_meanwhile(ledger, chain, 5, [{"chain": "a-0001", "attempt": "a-0002"}])
    assert found is not None
    assert (found.rule, found.who_can_fix) == ("concurrent-change", Fixer.ENVIRONMENT)
    assert "attempt a-0002 " in found.message
    keep(ledger, tried("a-0003", applied=True, verdict="accepted", counts=False))
    found = refuse_meanwhile(ledger, chain, 1)
    assert found is not None
    assert "attempt a-0003 " in found.message


def test_an_attempt_that_did_not_count_makes_no_retry_identical(ledger: Ledger) -> None:
    keep(ledger, tried("a-0001", counts=False, verdict="undecided"))
    assert check_after_judging(find_chain(ledger, "a-0001"), judged("deny-prefix"), PATCH) is None


def test_the_last_line_names_the_attempt_that_was_just_refused() -> None:
    first = plan_retry(Chain(), "a-7f3a", limit=5)
    assert first == Retry(True, 2, 5, "git patchgate apply - --retry-of a-7f3a", "a-7f3a")
    assert retry_line(first).startswith("try 2 of 5: ")
    assert retry_line(first).endswith(": git patchgate apply - --retry-of a-7f3a")
    chain = Chain("a-0001", "a-0004", tuple(tried(f"a-000{number}") for number in range(1, 5)))
    last = plan_retry(chain, "a-0005", limit=5)
    assert last == Retry(False, 5, 5, reset_command("a-0005"), "a-0001")
    assert "git patchgate attempts reset a-0005" in retry_line(last)


def test_the_retry_takes_the_arguments_that_were_given() -> None:
    again = plan_retry(Chain(), "a-7f3a", limit=5, also=("--index", "--only", "a b"))
    assert again.command == "git patchgate apply - --retry-of a-7f3a --index --only 'a b'"
