"""`git patchgate attempts`: what was tried, told to people and programs, and what a person does about it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from patchgate.apply.attempt_list import list_schema, show_schema
from patchgate.apply.attempt_records import (
    AttemptRecord,
    RecoveredRecord,
    ResetRecord,
    list_chain_since_reset,
    record,
    record_recovered,
    record_reset,
)
from patchgate.git.quoting import is_printable
from patchgate.ledger.ledger import Ledger
from patchgate.storage.record import START, Json, canonical_event, line_of
from tests.apply.attempt_world import CANDIDATE, attempt, chances, opened, touched
from tests.schemas import require_valid
from tests.signing import at_terminal
from tests.world import Answer, Repo

NOON = 1_700_000_000
WHY = ("--reason", "the plan now names the file")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit, in which nothing was tried."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    return made


def ledger(repo: Repo, hours: int = 0) -> Ledger:
    return Ledger(str(repo.path / ".git"), clock=lambda: NOON + 3600 * hours)


def tried(repo: Repo, made: AttemptRecord, hours: int = 0, log: bytes | None = None) -> str:
    """Let an attempt leave its record and its evidence; give the folder."""
    with opened(repo.path / ".git", chance=chances(made.attempt[2:])) as evidence:
        assert evidence.id == made.attempt
        if log is not None:
            Path(evidence.log_path("unit")).write_bytes(log)
        told = AttemptRecord.from_plain(made.plain() | {"dir": evidence.dir})
        assert record(ledger(repo, hours), told) is None
        assert evidence.keep({}, "review", "feedback", None if made.applied else []) is None
    return evidence.dir


@pytest.fixture
def history(repo: Repo) -> Repo:
    """Three attempts: refused, refused again, applied; one killed, and one that landed but was cut short."""
    tried(repo, attempt("a-0001", rules=("deny-prefix", "max-files")), 0)
    tried(
        repo,
        attempt("a-0002", chain="a-0001", retry_of="a-0001", number=2, rules=("hunk-mismatch",)),
        1,
        b"first line\n" + b"x\n" * 10 + b"the last line\n",
    )
    applied = attempt(
        "a-1fff", verdict="accepted", applied=True, counts=False, rules=(), stage=None, code=None
    )
    tried(repo, applied, 2)
    opened(repo.path / ".git", chance=chances("00aa"), at="2023-11-15T05:13:20Z").close()
    return repo


def objects(answer: Answer, schema: dict[str, Any]) -> dict[str, Any]:
    assert answer.code == 0, answer.err
    assert answer.out.isascii()
    loaded = json.loads(answer.out)
    require_valid(loaded, schema)
    assert isinstance(loaded, dict)
    return loaded


def test_the_list_says_the_newest_first_what_became_of_each(history: Repo) -> None:
    answer = history.cli("attempts", "list")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "a-00aa  2023-11-15T05:13:20Z  interrupted",
        "a-1fff  2023-11-15T00:13:20Z  applied, 1 file",
        "a-0002  2023-11-14T23:13:20Z  rejected, hunk-mismatch, retry 2 of chain a-0001",
        "a-0001  2023-11-14T22:13:20Z  rejected, deny-prefix max-files",
    ]
    assert history.cli("attempts", "list", "-n", "2").out == "".join(answer.out.splitlines(True)[:2])
    assert history.cli("attempts", "list", "-n", "0").out == ""


def test_the_list_as_json_is_one_document_with_every_key(history: Repo) -> None:
    told = objects(history.cli("attempts", "list", "--format", "json"), list_schema())
    assert [(each["attempt"], each["state"]) for each in told["attempts"]] == [
        ("a-00aa", "interrupted"),
        ("a-1fff", "applied"),
        ("a-0002", "rejected"),
        ("a-0001", "rejected"),
    ]
    killed, _, retried, _ = told["attempts"]
    assert (killed["is_recorded"], killed["verdict"], killed["source"]) == (False, None, "patch")
    assert (retried["retry_of"], retried["number"], retried["counts_toward_retries"]) == ("a-0001", 2, True)
    assert retried["files"][0]["path"] == "src/a.py"
    objects(history.cli("attempts", "list", "--format", "json", "-n", "1"), list_schema())


def test_an_attempt_that_goes_on_is_running(repo: Repo) -> None:
    with opened(repo.path / ".git", chance=chances("7f3a")):
        assert repo.cli("attempts", "list").out.endswith("  running\n")
    assert repo.cli("attempts", "list").out.endswith("  interrupted\n")


def test_what_recover_did_is_said(repo: Repo) -> None:
    for name, outcome in (("0001", "undone"), ("0002", "landed")):
        opened(repo.path / ".git", chance=chances(name)).close()
        record_recovered(ledger(repo), RecoveredRecord(f"a-{name}", outcome))
    assert [line[30:] for line in sorted(repo.cli("attempts", "list").out.splitlines())] == [
        "interrupted (undone by recover)",
        "applied (landed by recover)",
    ]


def test_a_dry_run_and_what_could_not_be_decided_are_told_apart(repo: Repo) -> None:
    tried(repo, attempt("a-0001", verdict="accepted", dry_run=True, counts=False, rules=()))
    tried(repo, attempt("a-0002", verdict="undecided", counts=False, rules=("command-timed-out",)), 1)
    assert [line[30:] for line in repo.cli("attempts", "list").out.splitlines()] == [
        "undecided, command-timed-out",
        "accepted (dry run), 1 file",
    ]


@pytest.mark.parametrize("form", ["full", "json"])
def test_where_nothing_was_tried_there_is_nothing_and_nothing_is_made(repo: Repo, form: str) -> None:
    before = sorted(os.listdir(repo.path / ".git"))
    answer = repo.cli("attempts", "list", "--format", form)
    assert answer.code == 0
    if form == "json":
        assert objects(answer, list_schema())["attempts"] == []
    else:
        assert (answer.out, answer.err.startswith("no attempts: ")) == ("", True)
    assert sorted(os.listdir(repo.path / ".git")) == before


# One attempt.


def test_show_tells_what_was_tried_and_where_the_evidence_is(history: Repo) -> None:
    answer = history.cli("attempts", "show", "a-0002")
    assert (answer.code, answer.err) == (0, "")
    place = history.path / ".git" / "patchgate" / "attempts" / "a-0002"
    bundle = (place / "failure_bundle.zip").stat().st_size
    assert answer.out.splitlines() == [
        "attempt a-0002: rejected",
        "  when: 2023-11-14T23:13:20Z",
        "  stage: policy",
        "  code: PATCH_POLICY_DENY",
        "  rules: hunk-mismatch",
        "  kind: patch",
        f"  patch SHA-256: {attempt().patch_sha256}",
        f"  patch id: {'f' * 40}",
        f"  policy: sha256:{'5' * 64}",
        f"  base tree: {'1' * 40}",
        f"  resulting tree: {'2' * 40}",
        "  lines: +3 -1",
        "  working tree: /home/you/tree",
        "  chain: a-0001 rejected deny-prefix max-files",
        "  chain: a-0002 rejected hunk-mismatch",
        "  file: src/a.py (changed)",
        f"  evidence: {place}",
        f"    artifacts/diff.patch ({len(CANDIDATE)} bytes)",
        "    artifacts/report.json (3 bytes)",
        "    reviews/review_patch.md (6 bytes)",
        "    outbox/feedback.md (8 bytes)",
        "    logs/unit.log (45 bytes)",
        f"    failure_bundle.zip ({bundle} bytes)",
        "  the end of logs/unit.log:",
        "    | first line",
        *["    | x"] * 10,
        "    | the last line",
    ]


def test_show_as_json_has_the_chain_the_evidence_and_the_logs(history: Repo) -> None:
    told = objects(history.cli("attempts", "show", "a-0002", "--format", "json"), show_schema())
    assert told["attempts_of_chain"] == ["a-0001", "a-0002"]
    assert {"name": "artifacts/diff.patch", "bytes": len(CANDIDATE)} in told["evidence"]
    assert told["logs"][0]["tail"].endswith("x\nthe last line")
    killed = objects(history.cli("attempts", "show", "a-00a", "--format", "json"), show_schema())
    assert (killed["state"], killed["attempts_of_chain"]) == ("interrupted", [])
    assert killed["evidence"] == [{"name": "artifacts/diff.patch", "bytes": len(CANDIDATE)}]


def test_the_end_of_a_long_log_is_whole_lines(repo: Repo) -> None:
    tried(repo, attempt("a-0001"), log=b"".join(b"%06d\n" % number for number in range(5_000)))
    shown = [line for line in repo.cli("attempts", "show", "a-0001").out.splitlines() if "| " in line]
    assert shown == [f"    | {number:06}" for number in range(4_980, 5_000)]


def test_a_beginning_that_only_one_id_has_is_enough(history: Repo) -> None:
    assert history.cli("attempts", "show", "a-1").out.startswith("attempt a-1fff:")
    answer = history.cli("attempts", "show", "a-000")
    assert (answer.code, answer.out) == (2, "")
    error, help_line = answer.err.splitlines()
    assert error.startswith("error: a-000 ")
    assert (help_line.startswith("help: "), help_line.endswith(" a-0002, a-0001")) == (True, True)


@pytest.mark.parametrize("name", ["a-9999", "a-", "", "../x", "a-\x1b[31m"])
def test_an_attempt_that_nobody_made_is_a_wrong_argument(history: Repo, name: str) -> None:
    answer = history.cli("attempts", "show", name)
    assert (answer.code, answer.out) == (2, "")
    assert "\x1b" not in answer.err
    assert "\nhelp: git patchgate attempts list " in answer.err
    told = history.cli("attempts", "show", name, "--format", "json")
    assert (told.code, told.error["kind"]) == (2, "usage")


def test_an_attempt_whose_evidence_was_pruned_is_shown_all_the_same(history: Repo) -> None:
    assert history.cli("attempts", "prune", "--keep", "0").code == 0
    assert "(empty or gone)" in history.cli("attempts", "show", "a-0002").out
    told = objects(history.cli("attempts", "show", "a-0002", "--format", "json"), show_schema())
    assert told["evidence"] == []


def test_a_linked_worktree_and_a_subfolder_show_the_same_attempts(history: Repo, tmp_path: Path) -> None:
    history.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (history.path / "deep").mkdir()
    here = history.cli("attempts", "list").out
    assert here
    assert history.cli("attempts", "list", cwd=tmp_path / "side").out == here
    assert history.cli("attempts", "list", cwd=history.path / "deep").out == here
    assert history.cli("attempts", "list", "-C", str(history.path), cwd=tmp_path).out == here


def test_showing_writes_nothing(history: Repo) -> None:
    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in history.path.rglob("*") if path.is_file()}

    before = state()
    for arguments in (["list"], ["show", "a-0001"], ["list", "--format", "json"], ["prune", "--dry-run"]):
        assert history.cli("attempts", *arguments).code == 0
    assert state() == before


def test_a_forged_record_cannot_speak_to_the_terminal_nor_fail_the_command(repo: Repo) -> None:
    evil = "\x1b]0;owned\x07\n::error::x\u202e##[group]"
    made: list[dict[str, Json]] = [
        {
            "kind": "attempted",
            **attempt("a-0001", rules=(evil,), verdict=evil, work_tree=evil, dir=evil).plain(),
        },
        {"kind": "attempted", **attempt("a-0002", dir="/x\0y", chain="a-0001").plain()},
        {"kind": "attempted", **attempt("a-0003", dir="/\ud800").plain(), "at": evil},
        {"kind": "attempted", **attempt("a-0004", files=(touched(b"\x1b\n\xff"),), patch_id=evil).plain()},
        {"kind": "reset", "chain": "a-0001", "by": evil, "reason": evil},
        {"kind": "recovered", "attempt": "a-0001", "outcome": evil},
    ]
    previous, lines = START, []
    for event in made:
        previous, line = line_of(canonical_event(event), previous)
        lines.append(line)
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.parent.mkdir()
    place.write_bytes(b"".join(lines))
    outputs = [repo.cli("attempts", "list"), repo.cli("log")]
    outputs += [repo.cli("attempts", "show", f"a-000{number}") for number in range(1, 5)]
    for answer in outputs:
        assert (answer.code, answer.err) == (0, "")
        assert all(is_printable(each) or each in "\n\t" for each in answer.out)
        assert not any(line.startswith("::") for line in answer.out.splitlines())
        assert "##[" not in answer.out
    objects(repo.cli("attempts", "list", "--format", "json"), list_schema())
    for number in range(1, 5):
        objects(repo.cli("attempts", "show", f"a-000{number}", "--format", "json"), show_schema())


# The log, and the schemas.


def test_the_log_tells_what_became_of_an_attempt(history: Repo) -> None:
    record_reset(ledger(history, 3), ResetRecord("a-0001", "another plan", "A U Thor <a@b>"))
    record_recovered(ledger(history, 4), RecoveredRecord("a-00aa", "undone"))
    assert history.cli("log", "--verbose").out.splitlines() == [
        "2023-11-15T02:13:20Z recovered attempt a-00aa",
        "    outcome: undone",
        "2023-11-15T01:13:20Z reset the chain of a-0001",
        "    reason: another plan",
        "    by: A U Thor <a@b>",
        "2023-11-15T00:13:20Z attempted a-1fff: applied",
        "2023-11-14T23:13:20Z attempted a-0002: rejected (retry of a-0001): hunk-mismatch",
        "2023-11-14T22:13:20Z attempted a-0001: rejected: deny-prefix, max-files",
    ]
    assert len(history.cli("log", "--kind", "attempted").out.splitlines()) == 3


@pytest.mark.parametrize("name", ["attempts", "attempt", "event"])
def test_each_document_has_its_schema(history: Repo, name: str) -> None:
    schema = json.loads(history.cli("schema", name).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    command = {
        "attempts": ("attempts", "list"),
        "attempt": ("attempts", "show", "a-1fff"),
        "event": ("log", "-n", "1"),
    }[name]
    require_valid(json.loads(history.cli(*command, "--format", "json").out), schema)


# Prune.


def test_prune_names_what_goes_and_says_how_much_stays(history: Repo) -> None:
    would = history.cli("attempts", "prune", "--keep", "2", "--dry-run")
    assert re.fullmatch(r"a-0001\na-0002\nwould .* 2 attempts; 2 kept\n", would.out)
    done = history.cli("attempts", "prune", "--keep", "2")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"a-0001\na-0002\nremoved .* 2 attempts; 2 kept\n", done.out)
    assert len(history.cli("attempts", "list").out.splitlines()) == 4
    assert history.cli("attempts", "prune").out.endswith(" 0 attempts; 2 kept\n")


def test_prune_by_age(history: Repo) -> None:
    done = history.cli("attempts", "prune", "--older-than", "1d")
    assert done.out.endswith(" 4 attempts; 0 kept\n")


@pytest.mark.parametrize(
    "wrong", [["--keep", "-1"], ["--older-than", "soon"], ["--keep", "1", "--older-than", "1d"], ["a-0001"]]
)
def test_wrong_arguments_of_prune_remove_nothing(history: Repo, wrong: list[str]) -> None:
    answer = history.cli("attempts", "prune", *wrong)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err
    assert "4 kept" in history.cli("attempts", "prune", "--dry-run").out


# Reset.


def left_in(repo: Repo, chain: str = "a-0001") -> list[str]:
    return [each.attempt for each in list_chain_since_reset(ledger(repo), chain)]


def test_a_person_at_a_terminal_lets_the_retries_begin_again(history: Repo) -> None:
    answer = at_terminal(history, "attempts", "reset", *WHY)
    assert answer.code == 0
    assert answer.err.endswith(
        "chain a-0001: 2 refusals\n"
        "  a-0001 2023-11-14T22:13:20Z: deny-prefix, max-files\n"
        "  a-0002 2023-11-14T23:13:20Z: hunk-mismatch\n"
        "reason: the plan now names the file\n"
        "by: A U Thor <author@example.com>\n"
        "Allow more retries? [y/N] "
    )
    assert answer.out.startswith("a-0001 ")
    assert answer.out.endswith(": git patchgate apply - --retry-of a-0002\n")
    assert left_in(history) == []
    assert " by A U Thor <author@example.com>: the plan now names the file" in (
        history.cli("attempts", "show", "a-0002").out
    )


@pytest.mark.parametrize("typed", [b"no\n", b"\n", b"\x04"])
def test_any_other_answer_resets_nothing(history: Repo, typed: bytes) -> None:
    answer = at_terminal(history, "attempts", "reset", "a-0002", *WHY, typed=typed)
    assert (answer.code, answer.out) == (1, "")
    assert "nothing was reset" in answer.err
    assert left_in(history) == ["a-0001", "a-0002"]


def test_nobody_at_a_terminal_can_reset_nothing(history: Repo) -> None:
    answer = history.run("attempts", "reset", "a-0002", *WHY, stdin=b"yes\n")
    assert (answer.code, answer.out) == (2, "")
    error, help_line = answer.err.splitlines()
    assert (error.startswith("error: "), help_line.startswith("help: ")) == (True, True)
    assert "terminal" in error
    assert left_in(history) == ["a-0001", "a-0002"]


@pytest.mark.parametrize(
    "reason", [[], ["--reason", "fine"], ["--reason", "please try again"], ["--reason", "a\nb"]]
)
def test_a_reset_needs_a_reason_that_says_something(history: Repo, reason: list[str]) -> None:
    answer = at_terminal(history, "attempts", "reset", "a-0002", *reason)
    assert (answer.code, answer.out) == (2, "")
    assert "error: " in answer.err
    assert left_in(history) == ["a-0001", "a-0002"]


@pytest.mark.parametrize("name", ["a-9999", "a-1fff"])
def test_what_was_never_refused_cannot_be_reset(history: Repo, name: str) -> None:
    answer = at_terminal(history, "attempts", "reset", name, *WHY)
    assert (answer.code, answer.out) == (2, "")
    assert "help: " in answer.err
