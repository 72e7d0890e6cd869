"""`git patchgate intent` as it is typed: words, documents, exit codes, and nothing raw on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.intents.document import intent_schema, intents_schema
from patchgate.intents.intent import IntentOwner, Moment
from patchgate.intents.stored_intents import StoredIntents
from patchgate.ledger.ledger import Ledger
from tests.world import Answer, Repo

INTENT = Draft202012Validator(intent_schema())
INTENTS = Draft202012Validator(intents_schema())


def quiet(folder: Path) -> Repo:
    repo = Repo.create(folder)
    repo.commit({"a": "1\n", "src/b": "2\n"}, "Begin")
    return repo


def declare(repo: Repo, *arguments: str) -> Answer:
    return repo.cli("intent", "declare", "-m", "the work is due", *arguments)


def id_in(answer: Answer) -> str:
    assert answer.code == 0, answer.err
    return str(answer.report["intent"]["id"])


def test_the_schemas_are_schemas() -> None:
    for schema in (intent_schema(), intents_schema()):
        Draft202012Validator.check_schema(schema)


def test_a_whole_piece_of_work_in_words(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.install()
    repo.write("dirty", "1\n")
    said = declare(repo, "--allow", "a", "--related", "src/b", "--forbid", "lib/*", "--ttl", "90m")
    assert (said.code, said.err) == (0, "")
    name = said.out.split()[1]
    assert said.out.startswith(f"declared {name} (expires in 1 hour 30 minutes, at ")
    assert "2 files" in said.out
    shown = repo.cli("intent", "show")
    lines = [line.strip() for line in shown.out.splitlines()]
    assert lines[0] == f"{name} (active): the work is due"
    assert {
        "allowed: a",
        "related: src/b",
        "forbidden: lib/*",
        "dirty before: dirty",
        "worktree: this worktree",
    } <= {*lines}
    assert any(line.startswith("time: expires in 1 hour") for line in lines)
    assert repo.cli("intent", "show", name).out == shown.out
    listed = repo.cli("intent", "list")
    assert listed.out.startswith(f"{name}  active   expires in 1 hour")
    assert repo.cli("intent", "renew").out.startswith(f"renewed {name} (expires in 1 hour 30 minutes")
    assert repo.cli("intent", "clear").out == f"cleared {name}\n"
    for verb, said_then in (("show", "no intent in this worktree"), ("list", "no intents")):
        nothing = repo.cli("intent", verb)
        assert (nothing.code, nothing.out, nothing.err) == (0, "", f"{said_then}\n")
    assert repo.cli("intent", "clear").code == 2


def test_every_document_is_as_its_schema_says(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.write(b"bad \xff", "1\n")
    (repo.path / "a").unlink()
    first = declare(repo, "--allow", "a", "--format", "json")
    name = id_in(first)
    refused = declare(repo, "--allow", "a", "--format=json")
    queued = declare(repo, "--allow", "a", "--queue", "--format", "json")
    renewed = repo.cli("intent", "renew", name, "--format", "json")
    alive = repo.cli("intent", "recover", name, "--format", "json")
    listed = repo.cli("intent", "list", "--format", "json")
    shown = repo.cli("intent", "show", name, "--format", "json")
    cleared = repo.cli("intent", "clear", "--format", "json")
    for answer, code, action in (
        (first, 0, "declared"),
        (refused, 1, "refused"),
        (queued, 0, "queued"),
        (renewed, 0, "renewed"),
        (alive, 1, "refused"),
        (cleared, 0, "cleared"),
    ):
        assert (answer.code, answer.report["action"]) == (code, action)
        INTENT.validate(answer.report)
    for answer, count in ((listed, 2), (shown, 1)):
        assert (answer.code, len(answer.report["intents"])) == (0, count)
        INTENTS.validate(answer.report)
    assert [each["id"] for each in refused.report["conflicts"]] == [name]
    assert refused.report["conflicts"][0]["entries"] == ["a"]
    assert [each["state"] for each in listed.report["intents"]] == ["active", "queued"]
    assert cleared.report["intent"]["current_worktree"] is True
    assert cleared.report["intent"]["worktree_missing"] is False
    assert cleared.report["promoted"] == [queued.report["intent"]["id"]]
    value: dict[str, Any] = first.report["intent"]
    assert (value["current_worktree"], value["worktree_missing"], value["ttl"], value["lease"]) == (
        True,
        False,
        3600,
        300,
    )
    assert [each["path"] for each in value["dirty"]] == ["a", '"bad \\377"']
    assert value["dirty"][0]["oids"] == [None]
    assert value["digest"].startswith("sha256:")
    assert value["expires_at"] > value["declared_at"]
    assert value["owner"]["is_running"] is True


def test_a_refusal_names_who_has_the_file_and_the_next_step(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    name = id_in(declare(repo, "--allow", "a", "--format", "json"))
    refused = declare(repo, "--allow", "a")
    assert (refused.code, refused.out) == (1, "")
    first, second, last = refused.err.splitlines()
    assert first.startswith("refused: ")
    assert second.startswith(f"  {name} has a: the work is due (this worktree; expires in ")
    assert last.startswith("help: ")
    assert "(git patchgate intent clear" in last
    repo.git("worktree", "add", "-q", str(tmp_path / "two"))
    other = repo.cli("intent", "declare", "-m", "due", "--allow", "a", cwd=tmp_path / "two")
    *_, last = other.err.splitlines()
    assert last.startswith("help: wait ")
    assert "intent clear" not in last
    queued = declare(repo, "--allow", "a", "--queue")
    assert queued.code == 0
    assert queued.out.startswith("queued ")
    assert "commits here may " in queued.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("declare",),
        ("declare", "-m", "why"),
        ("declare", "-m", "why", "--allow", "/x"),
        ("declare", "-m", "why", "--allow", "a", "--ttl", "2d"),
        ("declare", "-m", "why", "--allow", "a", "b"),
        ("recover",),
        ("recover", "i-00000000"),
        ("renew",),
        ("clear", "nothing"),
        ("show", "\x1b[31m"),
        ("frobnicate",),
    ],
)
def test_wrong_arguments_are_told_with_the_next_step_as_words_and_as_a_document(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    repo = quiet(tmp_path)
    said = repo.cli("intent", *arguments)
    assert (said.code, said.out) == (2, "")
    assert "help" in said.err or "-h" in said.err
    assert "\x1b" not in said.err
    info = repo.cli("intent", *arguments, "--format", "json")
    assert (info.code, info.error["kind"]) == (2, "usage")
    assert info.error["hint"]


def test_nothing_of_an_intent_reaches_a_terminal_raw(tmp_path: Path) -> None:
    """File names are the repository's, the folder is whose it is; a reason with controls is refused."""
    repo = Repo.create(tmp_path / "\x1b[31mred\u202e")
    repo.commit({"a": "1\n"}, "Begin")
    odd = 'x\x1b[2J -> "q"\n\u202eé'
    repo.write(odd, "1\n")
    said = [
        declare(repo, "--allow", odd, "--allow", "b*\x07", "--allow", "##[error]x"),
        declare(repo, "--allow", odd),
        declare(repo, "--allow", odd, "--queue"),
        repo.cli("intent", "show"),
        repo.cli("intent", "list"),
        repo.cli("intent", "list", "--format", "json"),
        repo.cli("intent", "declare", "-m", odd, "--allow", "c"),
    ]
    repo.git("worktree", "add", "-q", str(tmp_path / "other"))
    said.append(repo.cli("intent", "list", cwd=tmp_path / "other"))
    assert [answer.code for answer in said] == [0, 1, 0, 0, 0, 0, 2, 0]
    for answer in said:
        for raw in ("\x1b", "\x07", "\u202e"):
            assert raw not in answer.out + answer.err
    # What a build log would obey; a document is no line of a log.
    assert not any("##[" in answer.out + answer.err for answer in said[:5])
    assert '"x\\033[2J -> \\"q\\"\\n\\342\\200\\256é"' in said[3].out


def test_a_damaged_intent_is_told_beside_the_others(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    broken = id_in(declare(repo, "--allow", "a", "--format", "json"))
    whole = id_in(declare(repo, "--allow", "src/b", "--format", "json"))
    place = repo.path / ".git" / "patchgate" / "intents" / f"{broken}.json"
    place.write_bytes(place.read_bytes()[:-1])
    listed = repo.cli("intent", "list")
    assert listed.code == 3
    assert listed.out.startswith(whole)
    assert f"git patchgate intent clear {broken}" in listed.err
    info = repo.cli("intent", "list", "--format", "json")
    assert (info.code, len(info.report["intents"]), len(info.report["warnings"])) == (3, 1, 1)
    INTENTS.validate(info.report)
    for verb in (
        ("show",),
        ("show", broken),
        ("renew", broken),
        ("declare", "-m", "why not", "--allow", "c"),
    ):
        said = repo.cli("intent", *verb)
        assert (said.code, said.out) == (3, "")
        assert f"intent clear {broken}" in said.err
    cleared = repo.cli("intent", "clear", broken, "--format", "json")
    assert (cleared.code, cleared.report["intent"]) == (0, None)
    INTENT.validate(cleared.report)
    assert repo.cli("intent", "list").code == 0


def test_what_is_expired_and_what_is_dead_is_told_with_the_next_step(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    name = id_in(declare(repo, "--allow", "a", "--ttl", "1m", "--format", "json"))
    intents = StoredIntents(str(repo.path / ".git"))
    (intent,) = intents.all()
    long_ago = Moment(intent.declared.wall - 40)
    intents.write(
        replace(intent, renewed=long_ago, seen=long_ago, lease=10, owner=IntentOwner("elsewhere", 1, "", ""))
    )
    dead = repo.cli("intent", "show")
    assert f"{name} (dead)" in dead.out
    assert "process 1 on elsewhere" in dead.out
    assert f"next: git patchgate intent recover {name}" in dead.out
    intents.write(replace(intent, renewed=Moment(intent.declared.wall - 60), seen=long_ago))
    expired = repo.cli("intent", "list")
    assert f"{name}  expired  expired" in expired.out
    refused = repo.cli("intent", "renew")
    assert (refused.code, refused.out) == (1, "")
    assert f"help: git patchgate intent recover {name}" in refused.err
    assert repo.cli("intent", "recover", name).out.startswith(f"recovered {name} (expires in 1 minute")


def test_every_change_is_in_the_log(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    name = id_in(declare(repo, "--allow", "a", "--format", "json"))
    repo.cli("intent", "renew")
    repo.cli("intent", "clear")
    events = list(Ledger(str(repo.path / ".git")).events())
    assert [(each.kind, each.about["action"], each.about["id"]) for each in events] == [
        ("intent", "declared", name),
        ("intent", "renewed", name),
        ("intent", "cleared", name),
    ]
    assert events[0].about["reason"] == "the work is due"
    assert f"id: {name}" in repo.cli("log", "--verbose").out


def test_a_directory_that_is_named_is_where_the_entries_begin(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    said = repo.cli(
        "-C", str(repo.path / "src"), "intent", "declare", "-m", "due now", "--allow", "b", cwd=tmp_path
    )
    assert said.code == 0, said.err
    assert "allowed: src/b" in repo.cli("intent", "show").out


def test_the_help_says_what_each_verb_does(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    said = repo.cli("intent", "-h")
    for verb in ("declare", "show", "list", "renew", "clear", "recover"):
        assert f"  {verb} " in said.out
        helped = repo.cli("intent", verb, "-h")
        assert helped.code == 0
        assert max(map(len, helped.out.splitlines())) <= 80
