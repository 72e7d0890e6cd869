"""`git patchgate log`: the newest first, every value made safe, and whether the chain is whole."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.git.quoting import is_printable
from patchgate.ledger import history
from patchgate.ledger.adjudications import AdjudicationRecord
from patchgate.ledger.ledger import KINDS, Event, Ledger
from patchgate.storage import hash_chain
from patchgate.storage.lock import acquire
from patchgate.storage.record import START, Json, canonical_event, line_of
from tests.amount import often
from tests.schemas import require_valid
from tests.world import EXECUTABLE, Repo

COMMIT = "1234567890" * 4
NOON = 1_700_000_000
REFUSED: dict[str, Json] = {
    "hook": "reference-transaction",
    "ref": "refs/heads/main",
    "commit": COMMIT,
    "source": "commit",
    "change_id": "sha256:" + "c" * 64,
    "verdict_id": "sha256:" + "d" * 64,
    "policy": "sha256:" + "e" * 64,
    "rules": ["deny-prefix", "secret"],
    "verdict": "rejected",
}
SKIPPED: dict[str, Json] = {
    "hook": "pre-commit",
    "reason": "the hotfix, reviewed by hand",
    "ref": None,
    "commits": ["a" * 40, "b" * 40],
}
PUSHED: dict[str, Json] = {"remote": "origin", "ref": "refs/heads/main", "commits": 3, "without_receipt": []}


ANSWERED: dict[str, Json] = {"question": "store", "text": "Which?", "answer": "SQLite", "confidence": 1.0}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit and no ledger."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    return made


@pytest.fixture
def ledger(repo: Repo) -> Ledger:
    """The ledger of that repository, with three events."""
    made = Ledger(str(repo.path / ".git"), clock=lambda: NOON)
    for kind, about in (("refused", REFUSED), ("skipped", SKIPPED), ("pushed", PUSHED)):
        assert made.record(kind, about) is None
    return made


def objects(text: str) -> list[dict[str, Any]]:
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def forge(repo: Repo, *events: dict[str, Json]) -> None:
    """Write a ledger by hand, as whoever can write .git could: a whole chain of anything."""
    previous, lines = START, []
    for event in events:
        previous, line = line_of(canonical_event(event), previous)
        lines.append(line)
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"".join(lines))


def test_the_newest_event_comes_first_with_what_happened_where_and_why(repo: Repo, ledger: Ledger) -> None:
    answer = repo.cli("log")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "2023-11-14T22:13:20Z pushed 3 commits on refs/heads/main to origin",
        (
            "2023-11-14T22:13:20Z skipped commits aaaaaaaaaaaa, bbbbbbbbbbbb by pre-commit: "
            "the hotfix, reviewed by hand"
        ),
        (
            "2023-11-14T22:13:20Z refused commit 123456789012 on refs/heads/main by reference-transaction: "
            "deny-prefix, secret"
        ),
    ]
    answer = repo.cli("log", "--verbose")
    assert answer.out.splitlines() == [
        "2023-11-14T22:13:20Z pushed 3 commits on refs/heads/main to origin",
        "2023-11-14T22:13:20Z skipped commits aaaaaaaaaaaa, bbbbbbbbbbbb by pre-commit",
        "    reason: the hotfix, reviewed by hand",
        "2023-11-14T22:13:20Z refused commit 123456789012 on refs/heads/main by reference-transaction",
        "    rules: deny-prefix, secret",
        "    verdict: rejected",
        f"    change id: {REFUSED['change_id']}",
        f"    policy: {REFUSED['policy']}",
        f"    verdict id: {REFUSED['verdict_id']}",
    ]


def test_json_is_one_event_a_line_with_full_ids_and_reasons(repo: Repo, ledger: Ledger) -> None:
    answer = repo.cli("log", "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    pushed, skipped, refused = objects(answer.out)
    assert [each["kind"] for each in (pushed, skipped, refused)] == ["pushed", "skipped", "refused"]
    assert refused["commit"] == COMMIT
    assert refused | REFUSED == refused
    assert (skipped["commits"], skipped["reason"]) == (SKIPPED["commits"], SKIPPED["reason"])
    assert [event.hash for event in ledger.events()] == [refused["hash"], skipped["hash"], pushed["hash"]]
    for event in (pushed, skipped, refused):
        require_valid(event, history.json_schema())


def test_a_refused_commit_that_was_never_made_is_told_as_a_staged_change(repo: Repo, ledger: Ledger) -> None:
    ledger.record("refused", REFUSED | {"commit": None, "source": "staged", "hook": "pre-commit"})
    (first, *_) = repo.cli("log").out.splitlines()
    assert first.startswith("2023-11-14T22:13:20Z refused staged ")
    assert "refs/heads/main" in first
    assert "pre-commit" in first


def test_an_adjudication_is_told_on_one_line(repo: Repo, ledger: Ledger) -> None:
    told = AdjudicationRecord(outcome="upheld", subject="the report", reason_code="code", samples=("a.md:1",))
    ledger.record("adjudicated", told.about())
    (line,) = repo.cli("log", "-n", "1").out.splitlines()
    assert line.partition(" ")[2] == "adjudicated the report: upheld (code): a.md:1"


@pytest.mark.parametrize("form", ["full", "json"])
def test_n_gives_the_last_events_and_kind_only_those(repo: Repo, ledger: Ledger, form: str) -> None:
    def kinds(*arguments: str) -> list[str]:
        words = repo.cli("log", "--format", form, *arguments).out.replace('"', "").replace(",", "").split()
        return [word for word in words if word in KINDS]

    assert kinds("-n", "1") == ["pushed"]
    assert kinds("-n", "0") == []
    assert kinds("--max-count", "9") == ["pushed", "skipped", "refused"]
    assert kinds("--kind", "refused") == ["refused"]
    assert kinds("--kind", "refused", "--kind", "skipped") == ["skipped", "refused"]
    assert kinds("--kind", "refused", "-n", "1") == ["refused"]
    assert kinds("--kind", "installed") == []


def test_wrong_arguments_are_told_and_exit_2(repo: Repo, ledger: Ledger) -> None:
    for wrong in (["--kind", "refuse"], ["-n", "-1"], ["-n", "x"], ["--verify", "-n", "1"], ["HEAD"]):
        answer = repo.cli("log", *wrong)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err


@pytest.mark.parametrize("arguments", [[], ["--format", "json"], ["--verify"]])
def test_a_repository_without_a_ledger_says_so_and_nothing_is_made(repo: Repo, arguments: list[str]) -> None:
    before = sorted(os.listdir(repo.path / ".git"))
    answer = repo.cli("log", *arguments)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("the ledger is empty")
    assert answer.err.count("\n") == 1
    assert sorted(os.listdir(repo.path / ".git")) == before


def test_outside_a_repository_there_is_no_log(repo: Repo) -> None:
    assert repo.cli("log", cwd=repo.path.parent / "home").code == 2


def test_every_worktree_a_subfolder_and_a_bare_clone_show_their_common_ledger(
    repo: Repo, ledger: Ledger, tmp_path: Path
) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (repo.path / "deep").mkdir()
    here = repo.cli("log").out
    assert here
    assert repo.cli("log", cwd=tmp_path / "side").out == here
    assert repo.cli("log", cwd=repo.path / "deep").out == here
    assert repo.cli("-C", str(repo.path), "log", cwd=tmp_path).out == here
    assert repo.cli("log", "-C", str(repo.path), cwd=tmp_path).out == here
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = repo.at(tmp_path / "bare.git")
    Ledger(str(bare.path), clock=lambda: NOON).record("refused", REFUSED)
    assert len(objects(bare.cli("log", "--format", "json").out)) == 1


@pytest.mark.parametrize("form", ["full", "json"])
def test_a_torn_last_line_is_a_warning_and_the_rest_is_shown(repo: Repo, ledger: Ledger, form: str) -> None:
    whole = repo.cli("log", "--format", form).out
    with ledger.path.open("ab") as file:
        file.write(b'{"event":{"kin')
    answer = repo.cli("log", "--format", form)
    assert (answer.code, answer.out) == (0, whole)
    (line,) = answer.err.splitlines()
    assert line.startswith("warning: line 4 ")
    assert "cut short" in line
    ledger.record("pushed", PUSHED)
    assert repo.cli("log").err == ""


def test_an_append_that_is_under_way_is_not_called_torn(
    repo: Repo, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_chain, "LOCK_SECONDS", 0.0)
    with ledger.path.open("ab") as file:
        file.write(b'{"event":{"kin')
    with acquire(ledger.path.with_name("events.jsonl.lock"), timeout_seconds=0):
        answer = repo.cli("log", "-n", "1")
    assert (answer.code, answer.err) == (0, "")
    assert "pushed" in answer.out


def test_what_is_not_damaged_is_shown_and_the_damage_ends_the_command_undecided(
    repo: Repo, ledger: Ledger
) -> None:
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b"by hand", b"by foot"))
    answer = repo.cli("log")
    assert answer.code == 3
    assert [line.split()[1] for line in answer.out.splitlines() if line[0] != " "] == ["pushed", "refused"]
    assert "error: line 2 " in answer.err
    assert "hash" in answer.err
    assert "help: git patchgate log --verify" in answer.err
    *events, error = objects(repo.cli("log", "--format", "json").out)
    assert [each["schema"] for each in events] == ["patchgate.event/1"] * 2
    assert error["schema"] == "patchgate.error/1"


def test_verify_says_how_many_events_are_whole_and_names_the_last(repo: Repo, ledger: Ledger) -> None:
    *_, last = ledger.events()
    answer = repo.cli("log", "--verify")
    assert (answer.code, answer.err) == (0, "")
    chain, head = answer.out.splitlines()
    assert "intact" in chain
    assert " 3 events" in chain
    assert chain.endswith(f" {last.hash}")
    assert head.startswith("events.jsonl.head ")
    (only,) = objects(repo.cli("log", "--verify", "--format", "json").out)
    assert only == {
        "schema": "patchgate.ledger/2",
        "is_intact": True,
        "events": 3,
        "last": last.hash,
        "problems": [],
        "head": {"state": "last", "hash": last.hash, "behind": 0},
    }


def test_verify_names_the_first_bad_line_and_exits_1_and_its_command_starts_a_new_ledger(
    repo: Repo, ledger: Ledger
) -> None:
    damaged = ledger.path.read_bytes().replace(b"by hand", b"by foot").replace(b'"commits":3', b'"commits":4')
    ledger.path.write_bytes(damaged)
    (ledger.path.parent / "events.jsonl.damaged-1").write_bytes(b"kept before")
    answer = repo.cli("log", "--verify")
    assert (answer.code, answer.err) == (1, "")
    first, help_line, command = answer.out.splitlines()
    assert first.startswith("line 2 ")
    assert first.endswith("(and 1 more bad line)")
    assert help_line.startswith("help: ")
    assert [
        each["line"] for each in objects(repo.cli("log", "--verify", "--format=json").out)[0]["problems"]
    ] == [
        2,
        3,
    ]
    subprocess.run(["sh", "-c", command], check=True, env=repo.env)
    assert (ledger.path.parent / "events.jsonl.damaged-1").read_bytes() == b"kept before"
    assert (ledger.path.parent / "events.jsonl.damaged-2").read_bytes() == damaged
    assert ledger.record("pushed", PUSHED) is None
    assert repo.cli("log", "--verify").code == 0


def test_the_command_that_verify_names_runs_where_the_path_has_a_blank_and_a_quote(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "it's a folder")
    forge(repo, {"kind": "pushed"})
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.write_bytes(b"damaged\n")
    command = repo.cli("log", "--verify").out.splitlines()[-1]
    subprocess.run(["sh", "-c", command], check=True, env=repo.env)
    assert not place.exists()


def test_verify_counts_a_torn_last_line_as_bad(repo: Repo, ledger: Ledger) -> None:
    with ledger.path.open("ab") as file:
        file.write(b"{")
    answer = repo.cli("log", "--verify")
    assert answer.code == 1
    first, second = answer.out.splitlines()[:2]
    assert first.startswith("line 4 ")
    assert "cut short" in first
    assert second.startswith("help: nothing to do")


def test_a_ledger_that_cannot_be_read_is_undecided_in_one_sentence(repo: Repo) -> None:
    (repo.path / ".git" / "patchgate" / "events.jsonl").mkdir(parents=True)
    for arguments in (["log"], ["log", "--verify"]):
        answer = repo.cli(*arguments)
        assert answer.code == 3
        assert ": Is a directory" in answer.err
        assert "help: " in answer.err


def test_the_log_works_as_a_git_command_into_a_pipe_that_nobody_reads(repo: Repo, ledger: Ledger) -> None:
    line = f"git -C {repo.path} patchgate log | true"
    done = subprocess.run(["sh", "-c", line], env=repo.env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert EXECUTABLE.exists()


def test_showing_the_log_writes_nothing(repo: Repo, ledger: Ledger) -> None:
    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in repo.path.rglob("*") if path.is_file()}

    before = state()
    for arguments in ([], ["--format", "json"], ["--verify"]):
        repo.cli("log", *arguments)
    assert state() == before


def test_a_forged_event_cannot_speak_to_the_terminal_nor_to_a_build_log(repo: Repo) -> None:
    forge(
        repo,
        {
            "kind": "\x1b]0;owned\x07",
            "at": "::error::no",
            "version": "1",
            "::set-output name=x::y": "z",
            "##[group]": "##vso[task]",
            "reason": "line\n::error::x\u202e\x9b31m\x7f",
            "ref": "refs/heads/caf\udce9",
        },
        {"kind": 7, "at": None, "commit": {"a": ["\x1b"]}, "commits": [1, None, {"b": True}], "hook": []},
        {},
    )
    for arguments in ([], ["--verbose"]):
        answer = repo.cli("log", *arguments)
        assert (answer.code, answer.err) == (0, "")
        _nothing_is_raw(answer.out)
    assert "reason: line\\n::error::x\\u202e" in answer.out
    text = repo.cli("log", "--format", "json").out
    assert not set(text) & {"\x1b", "\x7f", "\x07"}
    assert len(objects(text)) == 3
    assert objects(text)[-1]["ref"] == "refs/heads/caf\\udce9"


_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
_KEYS = st.sampled_from(["kind", "at", "commit", "commits", "source", "ref", "hook", "remote"]) | st.text()


@settings(max_examples=often(300), deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=8))
def test_whatever_an_event_holds_it_is_written_on_lines_of_its_own(about: dict[str, Json]) -> None:
    event = Event.from_record(about, START)
    _nothing_is_raw("".join(f"{line}\n" for line in (*history.as_text(event), history.as_line(event))))
    text = history.as_json(event)
    assert text.isascii()
    assert text.isprintable()
    require_valid(json.loads(text), history.json_schema())


def _nothing_is_raw(text: str) -> None:
    assert all(character in "\n\t" or is_printable(character) for character in text)
    for command in ("##[", "##vso[", "##teamcity["):
        assert command not in text
    assert not [line for line in text.split("\n") if line.strip().startswith("::")]


def test_an_answer_names_its_question(repo: Repo) -> None:
    Ledger(repo.common_dir, clock=lambda: NOON).record("answer", ANSWERED)
    (line,) = repo.cli("log").out.splitlines()
    assert line == "2023-11-14T22:13:20Z answer question store"


def test_a_line_that_has_its_hash_and_is_no_json_ends_the_command_undecided(repo: Repo) -> None:
    good = {"schema": "patchgate.event/1", "kind": "skipped", "at": "2023-11-14T22:13:20Z", "version": "0"}
    first, one = line_of(b"{not json}", START)
    _, two = line_of(canonical_event(good), first)
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(one + two)
    # What is not asked for is not parsed.
    newest = repo.cli("log", "-n", "1")
    assert (newest.code, newest.out.split()[1]) == (0, "skipped")
    every = repo.cli("log")
    assert every.code == 3
    assert "line 1 of the ledger" in every.err
