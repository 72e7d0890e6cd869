"""`check --edits`: structured edits become a unified diff, and go through the same gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proposals import check, check_edits, edits_of, refusal
from tests.world import Answer, Repo

FIVE = "1\n2\n3\n4\n5\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": FIVE, "src/a b.py": FIVE})
    return made


def result_of(repo: Repo, answer: Answer, path: str = "f") -> str:
    """Make the tree that was judged from contents: find which of them a file of `path` has after it."""
    assert (answer.code, answer.verdict) == (0, "accepted"), answer.out
    return str(answer.change["after"])


def tree_with(repo: Repo, content: bytes, path: str = "f") -> str:
    """Give the tree of HEAD with one file's content changed; the repository is as before."""
    repo.write(path, content)
    repo.git("add", path)
    tree = repo.ask("write-tree")
    repo.git("reset", "-q", "--hard")
    return tree


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([(2, 2, "two\n")], "1\ntwo\n3\n4\n5\n"),
        ([(1, 5, "all\n")], "all\n"),
        ([(2, 3, "")], "1\n4\n5\n"),
        ([(1, 5, "")], ""),
        ([(1, 0, "0\n")], "0\n" + FIVE),
        ([(3, 2, "2a\n2b\n")], "1\n2\n2a\n2b\n3\n4\n5\n"),
        ([(6, 5, "6\n")], FIVE + "6\n"),
        ([(1, 1, "one\nand more\n"), (3, 3, ""), (5, 5, "five\n")], "one\nand more\n2\n4\nfive\n"),
        ([(5, 5, "five\n"), (1, 1, "one\nand more\n"), (3, 3, "")], "one\nand more\n2\n4\nfive\n"),
        ([(2, 2, "2\ntwo\n")], "1\n2\ntwo\n3\n4\n5\n"),
        ([(1, 0, "0\n"), (1, 1, "one\n")], "0\none\n2\n3\n4\n5\n"),
        ([(2, 2, "++ b/x\n-- a/x\n@@ -1 +1 @@\n")], "1\n++ b/x\n-- a/x\n@@ -1 +1 @@\n3\n4\n5\n"),
    ],
    ids=[
        "one line",
        "whole file",
        "deletion",
        "emptied",
        "before the first",
        "between",
        "at the end",
        "several",
        "in any order",
        "longer",
        "insertion above a change",
        "lines like headers",
    ],
)
def test_edits_count_lines_of_the_file_as_it_is(
    repo: Repo, edits: list[tuple[int, int, str]], expected: str
) -> None:
    """Applied from the bottom up."""
    answer = check_edits(repo, edits_of(*edits))
    assert answer.change["source"]["kind"] == "edits"
    assert result_of(repo, answer) == tree_with(repo, expected.encode())


def test_edits_count_lines_of_the_file_on_disk_or_of_the_base(repo: Repo) -> None:
    repo.write("f", "0\n" + FIVE)
    on_disk = check_edits(repo, edits_of((7, 6, "end\n"))).change["after"]
    in_head = check_edits(repo, edits_of((6, 5, "end\n")), "--base", "HEAD").change["after"]
    assert on_disk == tree_with(repo, b"0\n" + FIVE.encode() + b"end\n")
    assert in_head == tree_with(repo, FIVE.encode() + b"end\n")


def test_a_new_file_is_one_insertion_at_its_beginning(repo: Repo) -> None:
    answer = check_edits(repo, edits_of((1, 0, "new\n"), path="src/deep/new"))
    assert answer.files["src/deep/new"]["status"] == "added"
    assert result_of(repo, answer) == tree_with(repo, b"new\n", "src/deep/new")
    assert check_edits(repo, edits_of((1, 0, ""), path="empty")).files["empty"]["status"] == "added"


def test_a_name_with_spaces_or_beyond_ascii_works(repo: Repo) -> None:
    assert list(check_edits(repo, edits_of((1, 1, "x\n"), path="src/a b.py")).files) == ["src/a b.py"]
    assert list(check_edits(repo, edits_of((1, 0, "x\n"), path="übung")).files) == ["übung"]


def test_a_file_in_crlf_stays_so(repo: Repo) -> None:
    repo.commit({"f": FIVE.replace("\n", "\r\n")})
    answer = check_edits(repo, edits_of((2, 2, "two\n")))
    assert result_of(repo, answer) == tree_with(repo, b"1\r\ntwo\r\n3\r\n4\r\n5\r\n")


def test_a_last_line_without_newline_is_edited_as_it_is(repo: Repo) -> None:
    repo.commit({"f": "1\n2"})
    answer = check_edits(repo, edits_of((1, 1, "one\n")))
    assert result_of(repo, answer) == tree_with(repo, b"one\n2")


@pytest.mark.parametrize(
    ("edits", "path", "rule"),
    [
        ([(1, 1, "x\n")], "nowhere", "target-missing"),
        ([(2, 1, "x\n")], "nowhere", "target-missing"),
        ([(1, 0, "x\n"), (2, 1, "y\n")], "nowhere", "target-missing"),
        ([(1, 1, "x\n")], "src", "target-missing"),
        ([(6, 6, "x\n")], "f", "range-invalid"),
        ([(7, 6, "x\n")], "f", "range-invalid"),
        ([(0, 0, "x\n")], "f", "range-invalid"),
        ([(3, 1, "x\n")], "f", "range-invalid"),
        ([(-1, 1, "x\n")], "f", "range-invalid"),
        ([(1, 10**30, "x\n")], "f", "range-invalid"),
        ([(1, 3, "x\n"), (3, 4, "y\n")], "f", "range-invalid"),
        ([(2, 1, "x\n"), (2, 1, "y\n")], "f", "range-invalid"),
        ([(1, 1, "x")], "f", "newline-missing"),
        ([(1, 1, "x\0\n")], "f", "binary-payload"),
        ([(1, 1, "x\n")], "", "path-missing"),
        ([(1, 1, "1\n")], "f", "missing-hunk"),
    ],
)
def test_edits_that_cannot_be_are_refused(
    repo: Repo, edits: list[tuple[int, int, str]], path: str, rule: str
) -> None:
    """E10 to E12."""
    assert refusal(check_edits(repo, edits_of(*edits, path=path)))[2] == [rule]


@pytest.mark.parametrize(
    ("path", "rules"),
    [
        ("../x", ["path-traversal"]),
        ("/etc/passwd", ["path-absolute"]),
        ("./f", ["path-traversal"]),
        ("a//b", ["path-empty"]),
        ("a/", ["path-empty"]),
        ("C:/x", ["path-drive-letter"]),
        ("ab:c", ["path-colon"]),
        ("a\\b", ["path-backslash"]),
        ("a\nb", ["path-control"]),
        (".git/config", ["path-git-dir"]),
        ("src/.GIT/hooks/x", ["path-git-dir"]),
        ("git~1/x", ["path-git-dir"]),
        (".g\u200cit/x", ["path-git-dir"]),
        ("x" * 256, ["path-too-long"]),
        ("F", ["path-collision"]),
        ("f/x", ["path-symlink"]),
    ],
)
def test_a_name_that_may_not_be_is_refused_by_policy(repo: Repo, path: str, rules: list[str]) -> None:
    answer = check_edits(repo, edits_of((1, 0, "x\n"), path=path))
    assert refusal(answer) == ("policy", "PATCH_POLICY_DENY", rules)


def _edit(**changed: object) -> dict[str, Any]:
    return {"path": "f", "start": 1, "end": 1, "new_text": "x\n"} | changed


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        (b"", "invalid-patch-schema"),
        (b"prose", "invalid-patch-schema"),
        (b"[]", "invalid-patch-schema"),
        (b"{}", "invalid-patch-schema"),
        (b'{"patch": {"edits": [NaN]}}', "invalid-patch-schema"),
        (b'{"patch": {"edits": []}, "patch": {"edits": []}}', "invalid-patch-schema"),
        (b"[" * 100_000, "invalid-patch-schema"),
        (b"\xef\xbb\xbf{}", "encoding-unsupported"),
        (b'{"summary": "\xff"}', "encoding-unsupported"),
        ({"patch": {"edits": []}}, "invalid-patch-schema"),
        ({"patch": {"edits": {}}}, "invalid-patch-schema"),
        ({"patch": []}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit()]}, "more": 1}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit()], "more": 1}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit()]}, "summary": 1}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(more=1)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": ["x"]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(start=True)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(start=1.0)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(end=1.9)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(start="1")]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(start=None)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(new_text=None)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(path=7)]}}, "invalid-patch-schema"),
        ({"patch": {"edits": [_edit(new_text="\ud800\n")]}}, "encoding-unsupported"),
        ({"patch": {"edits": [{"start": 1, "end": 1, "new_text": ""}]}}, "path-missing"),
        ({"patch": {"edits": [_edit(), _edit(path="g")]}}, "multi-file-diff"),
    ]
    + [
        ({"patch": {"edits": [{k: v for k, v in _edit().items() if k != field}]}}, "invalid-patch-schema")
        for field in ("start", "end", "new_text")
    ],
)
def test_every_fault_of_the_schema_is_refused(repo: Repo, document: object, rule: str) -> None:
    """E8, E9, E12, E15."""
    answer = check_edits(repo, document)
    assert refusal(answer) == ("parse", "PATCH_PARSE_INVALID", [rule])


def test_edits_of_a_file_that_is_not_text_are_refused(repo: Repo) -> None:
    repo.commit({"f": b"\xff\xfe\n", "g": b"a\0b\n"})
    assert refusal(check_edits(repo, edits_of((1, 1, "x\n"))))[2] == ["encoding-unsupported"]
    assert refusal(check_edits(repo, edits_of((1, 1, "x\n"), path="g")))[2] == ["binary-payload"]


def test_a_file_of_another_encoding_takes_a_unified_diff_and_no_edits(repo: Repo) -> None:
    """E15: git compares bytes, and edits are text."""
    repo.commit({"f": b"caf\xe9\nb\n"})
    assert refusal(check_edits(repo, edits_of((2, 2, "B\n"))))[2] == ["encoding-unsupported"]
    patch = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n caf\xe9\n-b\n+\xdcB\n"
    assert result_of(repo, check(repo, patch)) == tree_with(repo, b"caf\xe9\n\xdcB\n")


def test_edits_are_judged_by_policy_like_any_patch(repo: Repo) -> None:
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n[policy.agent]\nmax_added_lines = 2\n")
    assert refusal(check_edits(repo, edits_of((1, 0, "x\n"), path="runs/x")))[2] == ["deny-prefix"]
    assert refusal(check_edits(repo, edits_of((1, 0, "x\ny\nz\n"))))[2] == ["max-added-lines"]


def test_edits_through_a_link_are_refused(repo: Repo) -> None:
    repo.link("link", "src")
    repo.link("l", "f")
    assert refusal(check_edits(repo, edits_of((1, 0, "x\n"), path="link/new")))[2] == ["path-symlink"]
    assert "symlink" in refusal(check_edits(repo, edits_of((1, 1, "x\n"), path="l")))[2]


def test_ten_thousand_edits_are_taken_and_one_more_is_not(repo: Repo) -> None:
    repo.policy('[policy.agent]\nmax_added_lines = "off"\n')
    repo.commit({"f": "".join(f"{number}\n" for number in range(20_001))})
    edits = [(2 * number + 1, 2 * number + 1, "x\n") for number in range(10_001)]
    assert check_edits(repo, edits_of(*edits[:-1])).code == 0
    assert refusal(check_edits(repo, edits_of(*edits)))[2] == ["patch-too-large"]
