"""The retry rule without the option: who goes on where an attempt was refused belongs to its chain."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.apply.apply import apply as apply_here
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.apply.attempt_records import ResetRecord, record_reset
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import open_repository
from patchgate.ledger.ledger import Ledger
from patchgate.report.verdict import Report
from tests.apply.test_apply import apply
from tests.proposals import ABC, addition, change_of
from tests.world import Answer, Repo

DENIED = '[policy]\ndeny_prefixes = ["sub"]\n'
HOUR = 3600


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "g": ABC, "sub/g": ABC})
    return made


def retry_of(answer: Answer) -> dict[str, Any]:
    retry = answer.report["retry"]
    assert isinstance(retry, dict)
    return retry


def test_the_same_refused_patch_again_counts_and_the_sixth_attempt_is_refused(repo: Repo) -> None:
    """B21, B22: seven applies of one patch without the option are one chain; the line and the JSON agree."""
    repo.policy(DENIED)
    patch = change_of(b"sub/g")
    answers = [apply(repo, patch) for _ in range(7)]
    first = answers[0].report["attempt"]["id"]
    assert answers[0].errors == ["deny-prefix"]
    assert all("retry-identical" in answer.errors for answer in answers[1:5])
    assert all("retry-exhausted" in answer.errors for answer in answers[5:])
    told = [retry_of(answer) for answer in answers]
    assert [(each["allowed"], each["number"], each["of"]) for each in told] == [
        *((True, number, 5) for number in (2, 3, 4, 5)),
        *((False, 5, 5),) * 3,
    ]
    assert [each["chain"] for each in told] == [first] * 7
    assert [each["reason"] is None for each in told] == [True] + [False] * 6
    place = repo.path.parent / "again.diff"
    place.write_bytes(patch)
    last = repo.cli("apply", str(place)).out.splitlines()[-1]
    assert all(word in last for word in (" 5 ", f" chain {first} ", ": git patchgate attempts reset "))


def test_another_patch_of_a_refused_file_belongs_to_the_chain_and_one_of_another_file_does_not(
    repo: Repo,
) -> None:
    repo.policy(DENIED + "[apply]\nmax_attempts = 2\n")
    first = apply(repo, change_of(b"sub/g") + change_of()).report["attempt"]["id"]
    other = apply(repo, change_of(b"g", old=b"no"))
    assert (retry_of(other)["number"], retry_of(other)["reason"]) == (2, None)
    second = apply(repo, change_of(old=b"no"))
    assert (retry_of(second)["chain"], retry_of(second)["allowed"]) == (first, False)
    assert "f" in retry_of(second)["reason"]
    assert first in retry_of(second)["reason"]
    good = apply(repo, change_of())
    assert (good.code, good.errors, good.report["attempt"]["applied"]) == (1, ["retry-exhausted"], False)
    assert first in good.findings[0]["message"]
    assert apply(repo, change_of(b"g")).report["attempt"]["applied"]


def test_what_could_not_be_read_names_its_files_too_and_other_channels_stay_closed(repo: Repo) -> None:
    """B22."""
    fenced = b"```diff\n" + change_of().replace(b"-1,3", b"-1,2") + b"```\n"
    first = apply(repo, fenced)
    chain = first.report["attempt"]["id"]
    again = apply(repo, change_of(old=b"no"))
    assert (retry_of(again)["chain"], retry_of(again)["number"]) == (chain, 3)
    edits = {"patch": {"edits": [{"path": "f", "start": 2, "end": 2, "new_text": "B\n"}]}}
    (repo.path.parent / "edits.json").write_text(json.dumps(edits))
    sent = repo.run("apply", "--edits", str(repo.path.parent / "edits.json"), "--format", "json")
    assert sent.errors == ["retry-not-a-diff"]
    assert chain in sent.findings[0]["message"]


def test_the_chain_ends_when_a_patch_of_it_lands(repo: Repo) -> None:
    first = apply(repo, change_of(old=b"no")).report["attempt"]["id"]
    landed = apply(repo, change_of())
    assert (landed.code, landed.report["retry"]) == (0, None)
    shown = repo.cli("attempts", "show", landed.report["attempt"]["id"]).out
    assert f"chain: {first}" in shown
    after = apply(repo, change_of(old=b"no"))
    assert (retry_of(after)["number"], retry_of(after)["chain"]) == (2, after.report["attempt"]["id"])


def test_the_chain_ends_after_an_hour_at_a_reset_and_is_that_of_one_worktree(repo: Repo) -> None:
    repository = open_repository(repo.env, str(repo.path))
    clock = [1_800_000_000.0]
    place = ApplyEnvironment(repo.env, str(repo.path.parent / "cache"), clock=lambda: clock[0])
    request = ApplyRequest(change_of(old=b"no"), CheckOptions())

    def again(here: ApplyEnvironment = place) -> Report:
        return apply_here(repository, request, here)

    def number(report: Report) -> int:
        assert report.retry is not None
        return report.retry.number

    clock[0] = Ledger(repository.common_dir)._clock()
    first = again()
    assert (number(first), number(again())) == (2, 3)
    later = replace(place, clock=lambda: clock[0] + HOUR - 60)
    assert number(again(later)) == 4
    much_later = replace(place, clock=lambda: clock[0] + HOUR + 60)
    assert number(again(much_later)) == 2
    assert number(again()) == 3
    assert first.attempt is not None
    ledger = Ledger(repository.common_dir)
    for each in {record.chain for record in chains(ledger)}:
        assert record_reset(ledger, ResetRecord(each, "looked at", "A U Thor")) is None
    assert number(again()) == 2
    repo.git("worktree", "add", "-q", "../other")
    other = repo.at(repo.path.parent / "other")
    assert retry_of(apply(other, change_of(old=b"no")))["reason"] is None


def chains(ledger: Ledger) -> list[Any]:
    from patchgate.apply.attempt_records import records

    return records(ledger)


def test_a_duplicate_begins_no_chain(repo: Repo) -> None:
    assert apply(repo, addition(b"new")).code == 0
    assert apply(repo, addition(b"new")).errors == ["duplicate-patch"]
    more = b"diff --git a/new b/new\n--- a/new\n+++ b/new\n@@ -1 +1,2 @@\n x\n+no\n"
    refused = apply(repo, more.replace(b" x", b" y"))
    assert (retry_of(refused)["number"], retry_of(refused)["reason"]) == (2, None)
