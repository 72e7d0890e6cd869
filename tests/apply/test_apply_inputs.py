"""`apply --input` and `--repair`: what was read is the candidate, and what was sent is kept beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.apply.test_apply import apply, attempt_of, status
from tests.proposals import ABC, change_of, check
from tests.world import Answer, Repo

INPUTS = '[apply]\ninputs = ["diff", "envelope", "search-replace", "edits"]\n'
DENIES = '[policy]\ndeny_prefixes = ["sub"]\n'
ENVELOPE = b"*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\n"
BOTH = b"*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** Update File: g\n@@\n-b\n+B\n*** End Patch\n"
FENCED = b"Here it is:\n\n```diff\n" + change_of() + b"```\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "g": ABC, "sub/h": ABC})
    made.policy(INPUTS)
    return made


def evidence(answer: Answer, name: str) -> bytes:
    return (attempt_of(answer) / name).read_bytes()


def test_an_envelope_lands_as_a_diff_which_is_the_candidate(repo: Repo) -> None:
    answer = apply(repo, ENVELOPE, "--input", "envelope")
    assert (answer.code, answer.change["source"]["kind"]) == (0, "envelope")
    assert (repo.path / "f").read_text() == "a\nB\nc\n"
    diff = evidence(answer, "artifacts/diff.patch")
    assert diff == change_of()
    assert evidence(answer, "artifacts/sent.txt") == ENVELOPE
    review = evidence(answer, "reviews/review_patch.md").decode()
    assert "it came as `envelope`" in review
    assert "in artifacts/sent.txt" in review
    (attempt,) = repo.run("attempts", "list", "--format", "json").report["attempts"]
    assert attempt["patch_sha256"] == hashlib.sha256(diff).hexdigest()
    (repo.path / "f").write_text(ABC)
    assert apply(repo, diff).verdict == "accepted"


def test_the_same_change_in_two_formats_is_a_duplicate(repo: Repo) -> None:
    assert apply(repo, ENVELOPE, "--input", "envelope").verdict == "accepted"
    assert apply(repo, change_of()).errors == ["duplicate-patch"]
    edit = json.dumps({"file_path": "f", "old_string": "b\n", "new_string": "B\n"}).encode()
    assert apply(repo, edit, "--input", "edits").code == 1


def test_a_format_that_the_policy_does_not_list_is_a_usage_error_without_an_attempt(repo: Repo) -> None:
    for name in ("files", "auto"):
        for answer in (apply(repo, ENVELOPE, "--input", name), check(repo, ENVELOPE, "--input", name)):
            assert (answer.code, answer.error["kind"]) == (2, "usage")
            assert f"--input {name}" in answer.error["message"]
            assert "inputs = [" in answer.error["hint"]
    repo.policy("")
    assert apply(repo, ENVELOPE, "--input", "envelope").code == 2
    assert repo.run("attempts", "list", "--format", "json").report["attempts"] == []
    assert check(repo, change_of(), "--input", "diff").verdict == "accepted"


def test_auto_lets_the_policy_read_every_format(repo: Repo) -> None:
    repo.policy('[apply]\ninputs = ["auto"]\n')
    for arguments in (("--input", "auto"), ("--input", "envelope")):
        answer = check(repo, ENVELOPE, *arguments)
        assert (answer.verdict, answer.change["source"]["kind"]) == ("accepted", "envelope")


@pytest.mark.parametrize("how", ["--repair", "the policy"])
def test_a_repaired_patch_lands_and_says_what_was_repaired(repo: Repo, how: str) -> None:
    arguments = ["--repair"] if how == "--repair" else []
    if not arguments:
        repo.policy("[apply]\nrepair = true\n")
    answer = apply(repo, FENCED, *arguments)
    assert (answer.code, answer.rules) == (0, ["patch-repaired"])
    (repaired,) = answer.change["repaired"]
    assert (repaired["patch_line"], "fence" in repaired["message"]) == (1, True)
    assert evidence(answer, "artifacts/diff.patch") == change_of()
    assert evidence(answer, "artifacts/sent.txt") == FENCED
    assert json.loads(evidence(answer, "artifacts/report.json"))["changes"][0]["repaired"] == [repaired]
    assert b"- repaired: " in evidence(answer, "reviews/review_patch.md")


def test_a_retry_may_be_repaired_as_the_first_try_was(repo: Repo) -> None:
    first = apply(repo, FENCED.replace(b"-b", b"-x"), "--repair")
    assert first.errors == ["hunk-mismatch"]
    assert "--repair" in first.report["retry"]["command"]
    again = ("--retry-of", first.report["attempt"]["id"])
    assert apply(repo, FENCED, *again).errors[0] == "retry-not-a-diff"
    assert apply(repo, FENCED, "--repair", *again).verdict == "accepted"


def test_nothing_is_repaired_unless_somebody_asks_for_it(repo: Repo) -> None:
    assert set(check(repo, FENCED).errors) == {"prose-around-patch"}
    assert check(repo, change_of(), "--repair").change["repaired"] == []
    repo.policy("[apply]\nrepair = true\n")
    assert check(repo, FENCED).verdict == "accepted"
    assert set(check(repo, FENCED, "--no-repair").errors) == {"prose-around-patch"}


def test_only_takes_a_part_of_what_was_read_or_repaired(repo: Repo) -> None:
    answer = apply(repo, BOTH, "--input", "envelope", "--only", "f")
    assert (answer.code, list(answer.files)) == (0, ["f"])
    both = b"```diff\n" + change_of(b"f", b"B", b"b") + change_of(b"g") + b"```\n"
    answer = apply(repo, both, "--repair", "--only", "g")
    assert (answer.code, list(answer.files)) == (0, ["g"])
    assert apply(repo, both, "--repair", "--only", "h").code == 2


def test_a_retry_of_another_format_uses_the_same_or_a_diff(repo: Repo) -> None:
    repo.policy(INPUTS + DENIES)
    bad = ENVELOPE.replace(b"File: f", b"File: sub/h")
    first = apply(repo, bad, "--input", "envelope")
    assert first.errors == ["deny-prefix"]
    assert (
        f"apply - --input envelope --retry-of {first.report['attempt']['id']}"
        in first.report["retry"]["command"]
    )
    block = b"f\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"
    again = ("--retry-of", first.report["attempt"]["id"])
    second = apply(repo, block, "--input", "search-replace", *again)
    assert second.errors == ["retry-not-a-diff"]
    assert "apply - --input envelope --retry-of" in second.report["retry"]["command"]
    third = apply(repo, bad, "--input", "envelope", *again)
    assert third.errors == ["retry-identical", "deny-prefix"]
    assert "apply - --input envelope --retry-of" in third.report["retry"]["command"]
    assert apply(repo, change_of(), *again).verdict == "accepted"


def test_a_retry_in_another_format_leaves_the_chain_to_its_first_one(repo: Repo) -> None:
    repo.policy(INPUTS + DENIES)
    first = apply(repo, ENVELOPE.replace(b"File: f", b"File: sub/h"), "--input", "envelope")
    again = ("--retry-of", first.report["attempt"]["id"])
    block = b"f\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"
    for _ in range(2):
        assert apply(repo, block, "--input", "search-replace", *again).errors == ["retry-not-a-diff"]
    assert apply(repo, ENVELOPE, "--input", "envelope", *again).verdict == "accepted"


def test_what_cannot_be_read_is_kept_as_it_was_sent(repo: Repo) -> None:
    cut = ENVELOPE[:-20]
    answer = apply(repo, cut, "--input", "envelope")
    assert (answer.errors, status(repo)) == (["patch-truncated"], "")
    assert evidence(answer, "artifacts/diff.patch") == cut
    assert not (attempt_of(answer) / "artifacts/sent.txt").exists()
    assert "--input envelope" in answer.report["retry"]["command"]
    again = ("--retry-of", answer.report["attempt"]["id"])
    assert apply(repo, ENVELOPE, "--input", "envelope", *again).verdict == "accepted"


def test_options_that_do_not_fit_together_are_usage_errors(repo: Repo) -> None:
    edits = repo.path.parent / "edits.json"
    edits.write_text("{}")
    for arguments in (
        ("check", "--repair"),
        ("check", "--input", "envelope"),
        ("check", "--edits", str(edits), "--repair"),
        ("apply", "--edits", str(edits), "--input", "edits"),
        ("check", "--patch", str(edits), "--input", "envelope", "--repair"),
        ("check", "--patch", str(edits), "--input", "other"),
    ):
        assert repo.run(*arguments).code == 2
