"""The anchors of structured edits: what an edit replaces is what it means, or it is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.path import RepoPath
from patchgate.git.repository import open_repository
from patchgate.patches.check_patch import load_checked
from tests.proposals import check_edits, refusal
from tests.world import Answer, Repo

FIVE = "1\n2\n3\n4\n5\n"
HEX = hashlib.sha256(b"2\n").hexdigest()


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": FIVE, "crlf": FIVE.replace("\n", "\r\n"), "unended": "1\n2", "empty": "", "g": FIVE})
    return made


def edit(start: int, end: int, text: str, path: str = "f", **anchors: Any) -> dict[str, Any]:
    return {"path": path, "start": start, "end": end, "new_text": text, **anchors}


def sent(*edits: dict[str, Any]) -> dict[str, Any]:
    return {"patch": {"edits": list(edits)}}


def apply(repo: Repo, *edits: dict[str, Any]) -> Answer:
    file = repo.path.parent / "edits.json"
    file.write_text(json.dumps(sent(*edits)))
    return repo.cli("apply", "--edits", str(file), "--format", "json")


def test_an_anchor_that_fits_is_accepted_and_one_that_does_not_is_refused_with_where_it_is_now(
    repo: Repo,
) -> None:
    for given in (
        edit(2, 2, "two\n", old_text="2\n"),
        edit(2, 2, "two\n", old_text="2"),
        edit(2, 3, "two\n", old_text="2\n3\n"),
        edit(2, 2, "two\n", old_sha256=HEX),
        edit(2, 2, "two\n", old_sha256=hashlib.sha256(b"2").hexdigest().upper(), old_text="2\n"),
        edit(2, 3, "two\n", "crlf", old_text="2\n3\n"),
        edit(2, 3, "two\n", "crlf", old_text="2\r\n3\r\n"),
        edit(2, 2, "two\n", "crlf", old_sha256=HEX),
        edit(2, 2, "two\n", "crlf", old_sha256=hashlib.sha256(b"2\r\n").hexdigest()),
        edit(2, 2, "two\n", "unended", old_text="2"),
        edit(3, 2, "2a\n", old_text=""),
    ):
        assert check_edits(repo, sent(given)).verdict == "accepted", given
    for given in (
        edit(2, 2, "two\n", old_text="3\n"),
        edit(2, 2, "two\n", old_text="2\n\n"),
        edit(2, 2, "two\n", old_text=""),
        edit(2, 2, "two\n", old_text=" 2\n"),
        edit(2, 2, "two\n", old_sha256="0" * 64),
        edit(2, 2, "two\n", old_sha256=HEX, old_text="3\n"),
        edit(3, 2, "2a\n", old_text="2\n"),
    ):
        stage, code, rules = refusal(check_edits(repo, sent(given)))
        assert (stage, code, rules) == ("git_check", "PATCH_GIT_CHECK_FAIL", ["anchor-mismatch"]), given
    moved = check_edits(repo, sent(edit(1, 1, "x\n", old_text="4\n"), edit(3, 3, "y\n", old_text="5\n")))
    assert [each["details"]["found_at"] for each in moved.findings] == [[4], [5]]
    assert ["line 4" in moved.findings[0]["hint"], "line 5" in moved.findings[1]["hint"]] == [True, True]


def test_an_anchor_of_the_wrong_type_is_no_edit(repo: Repo) -> None:
    for wrong in ({"old_text": 1}, {"old_sha256": "abc"}, {"old_sha256": 1}, {"old": "2\n"}):
        assert refusal(check_edits(repo, sent(edit(2, 2, "x\n", **wrong))))[2] == ["invalid-patch-schema"]


def test_a_line_that_was_prepended_is_noticed_by_the_anchor_and_nothing_lands(repo: Repo) -> None:
    repo.write("f", "0\n" + FIVE)
    refused = apply(repo, edit(2, 2, "two\n", old_text="2\n"))
    assert (refused.code, refused.errors) == (1, ["anchor-mismatch"])
    assert (repo.path / "f").read_text() == "0\n" + FIVE
    assert refused.report["retry"]["reason"] is None
    assert " apply --edits - --retry-of" in refused.report["retry"]["command"]
    # What is refused as edits may come again as edits.
    again = apply(repo, edit(3, 3, "two\n", old_text="2\n"))
    assert (again.code, (repo.path / "f").read_text()) == (0, "0\n1\ntwo\n3\n4\n5\n")


def test_edits_whose_file_changed_since_they_were_checked_need_an_anchor(repo: Repo) -> None:
    """The same edits checked again, and any that are applied; other edits are a check of what is there."""
    given = edit(2, 2, "two\n")
    assert check_edits(repo, sent(given)).verdict == "accepted"
    assert check_edits(repo, sent(given)).verdict == "accepted"
    repo.write("f", "0\n" + FIVE)
    assert refusal(check_edits(repo, sent(given)))[2] == ["anchor-missing"]
    assert apply(repo, given).errors == ["anchor-missing"]
    assert (repo.path / "f").read_text() == "0\n" + FIVE
    # A file that nobody checked, an older commit, and an edit with its anchor are not concerned.
    assert apply(repo, edit(2, 2, "two\n", "g")).code == 0
    assert check_edits(repo, sent(given), "--base", "HEAD").verdict == "accepted"
    assert check_edits(repo, sent(edit(3, 3, "two\n", old_text="2\n"))).verdict == "accepted"


def test_a_check_of_new_edits_and_a_landing_make_line_numbers_good_again(repo: Repo) -> None:
    assert check_edits(repo, sent(edit(2, 2, "two\n"))).verdict == "accepted"
    repo.write("f", "0\n" + FIVE)
    assert check_edits(repo, sent(edit(3, 3, "two\n"))).verdict == "accepted"
    assert apply(repo, edit(3, 3, "two\n")).code == 0
    assert apply(repo, edit(4, 4, "three\n")).code == 0
    assert (repo.path / "f").read_text() == "0\n1\ntwo\nthree\n4\n5\n"


def test_what_was_checked_is_known_for_an_hour_and_damage_is_nothing(repo: Repo) -> None:
    check_edits(repo, sent(edit(2, 2, "two\n")))
    repository = open_repository(repo.env, str(repo.path))
    path = RepoPath.from_git(b"f")
    (place,) = (repo.path / ".git/patchgate/checked-edits").iterdir()
    at = json.loads(place.read_bytes().partition(b"\n")[2])["at"]
    assert load_checked(repository, path, at + 3_500) is not None
    assert load_checked(repository, path, at + 3_700) is None
    for damaged in (b"", b"[]", b"{}", b'{"at": "x"}', b'{"at": 1e99, "content": 1, "edits": "x"}', b"\xff"):
        place.write_bytes(damaged)
        assert load_checked(repository, path, at) is None
    assert apply(repo, edit(2, 2, "two\n")).code == 0


def test_a_policy_may_require_anchors_and_insertions_have_none(repo: Repo) -> None:
    repo.policy("[apply]\nrequire_anchor = true\n")
    found = check_edits(
        repo, sent(edit(2, 2, "two\n"), edit(4, 3, "x\n"), edit(5, 5, "five\n", old_text="5\n"))
    )
    assert refusal(found)[2] == ["anchor-missing"] * 2
    assert "apply.require_anchor" in found.findings[0]["message"]
    assert "next to" in found.findings[1]["hint"]
    assert refusal(check_edits(repo, sent(edit(2, 1, "two\n", old_text=""))))[2] == ["anchor-missing"]
    for given in (
        edit(2, 2, "2\ntwo\n", old_text="2\n"),
        edit(1, 0, "new\n", "new"),
        edit(1, 0, "filled\n", "empty"),
    ):
        assert check_edits(repo, sent(given)).verdict == "accepted"
    values = {"subplan": "x", "edits": json.dumps(sent(edit(2, 2, "two\n")))}
    params = "".join(f'<param name="{name}">{value}</param>\n' for name, value in values.items())
    (repo.path.parent / "reply").write_text(f"<function=repair>\n{params}</function>\n")
    answer = repo.cli("agent", "reply", str(repo.path.parent / "reply"), "--format", "json")
    assert [each["rule"] for each in json.loads(answer.out)["findings"]] == ["anchor-missing"]
