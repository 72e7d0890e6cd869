"""What is taken for a verdict, what is refused, and which files its paths name."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import UsageError
from patchgate.git.path import RepoPath, faults
from patchgate.placeholders.claims.claim_decision import is_placeholder_claim
from patchgate.placeholders.claims.claim_reader import MOST_BYTES, claim_of, read_claim
from patchgate.placeholders.claims.snapshots import path_forms

SEPARATED = st.lists(st.sampled_from(["a", "b.md", "..", ".", "", ".git", "C:"]), max_size=6).flatmap(
    lambda parts: st.lists(st.sampled_from("/\\"), min_size=len(parts), max_size=len(parts)).map(
        lambda seps: "".join(part + sep for part, sep in zip(parts, seps, strict=True))
    )
)


def read(value: Any) -> Any:
    return read_claim(json.dumps(value).encode("utf-8"), "verdict.json")


def refused(raw: bytes) -> str:
    with pytest.raises(UsageError) as error:
        read_claim(raw, "verdict.json")
    assert error.value.hint
    assert error.value.message.startswith("verdict.json")
    assert "\n" not in error.value.message
    return error.value.message


def test_a_whole_verdict_is_read_and_kept() -> None:
    """C39: unknown keys, big numbers and the order of the keys come back as they were."""
    raw = (
        b'{"zeta": {"b": 123456789012345678901234567890, "a": [1.5, null]}, "passed": false, '
        b'"confidence": 1, "reason_code": "x", "severity_class": "y", "feedback": "f", "subject": "s", '
        b'"issues": ["one", {"text": "two", "more": ["three", 4]}, [["five"]]], "deliverables": ["a"], '
        b'"changed_files": ["b"], "prior_changed_files": ["c"], "evidence_files": ["d"], "alpha": -0.25}'
    )
    claim = read_claim(raw, "-")
    assert (claim.passed, claim.reason_code, claim.severity_class, claim.feedback) == (False, "x", "y", "f")
    assert (claim.subject, claim.confidence) == ("s", 1)
    assert claim.issues == ("one", "two", "five")
    assert (claim.deliverables, claim.changed_files) == (("a",), ("b",))
    assert (claim.prior_changed_files, claim.evidence_files) == (("c",), ("d",))
    assert json.dumps(claim.written) == json.dumps(json.loads(raw))


STRUCTURED = [
    [{"check": "placeholder", "status": "pass"}, {"check": "sum", "status": "fail"}],
    [{"category": "placeholder", "count": 0}],
    [{"rule": "TODO", "found": False}],
    [{"type": "placeholder", "severity": "none", "message": "none found"}],
    [{"title": "Placeholders", "result": "none"}],
    [{"checked": ["placeholder", "lorem ipsum"], "failed": ["sum"]}],
    [["placeholder", "ok"], ["sum", "wrong"]],
    [{"file": "TODO", "message": "typo"}],
    [{"message": "A TODO remains in a.md", "status": "Resolved"}],
    [{"message": "Leftover TODO in a.md", "found": "no"}],
    [{"message": "Leftover TODO in a.md", "passed": True}],
    [{"rule": "a TODO remains", "message": "The sum is wrong."}],
    ["TODO", "placeholder", {"title": "[TBD]"}],
]


@pytest.mark.parametrize("issues", STRUCTURED)
def test_a_name_or_an_answer_in_an_issue_claims_nothing(issues: list[Any]) -> None:
    for code in (None, "wrong_total"):
        assert not is_placeholder_claim(read({"passed": False, "reason_code": code, "issues": issues}))


@pytest.mark.parametrize(
    "issues",
    [
        ["A TODO remains in a.md"],
        [["fine", "A TODO remains in a.md"]],
        [
            {
                "message": "A TODO remains in a.md",
                "severity": "error",
                "check": "placeholder",
                "status": "fail",
            }
        ],
        [{"message": {"text": "A TODO remains in a.md"}, "found": True, "count": 1, "passed": False}],
        [{" Description ": "A TODO remains in a.md", "count": None, "status": ["pass"]}],
        [{"title": "Placeholder", "details": [{"comment": "A TODO remains in a.md"}]}],
    ],
)
def test_what_an_issue_says_in_words_is_a_claim(issues: list[Any]) -> None:
    for code in (None, "incomplete_work"):
        assert is_placeholder_claim(read({"passed": False, "reason_code": code, "issues": issues}))


def test_an_issue_without_words_that_failed_is_another_failure() -> None:
    remains = {"message": "A TODO remains in a.md", "status": "fail"}
    verdict = {"passed": False, "reason_code": "wrong_total"}
    assert is_placeholder_claim(read({**verdict, "issues": [remains]}))
    assert is_placeholder_claim(read({**verdict, "issues": [remains, {"check": "sum", "status": "pass"}]}))
    assert not is_placeholder_claim(
        read({**verdict, "issues": [remains, {"check": "sum", "status": "fail"}]})
    )


def test_null_and_an_empty_list_are_as_good_as_nothing() -> None:
    keys = ("reason_code", "feedback", "issues", "confidence", "subject", "deliverables", "metadata")
    for claim in (read({"passed": True} | dict.fromkeys(keys)), read({"passed": True, "changed_files": []})):
        assert (claim.reason_code, claim.feedback, claim.issues, claim.subject) == (None, "", (), None)
        assert (claim.deliverables, claim.changed_files) == ((), ())


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"\xff", "UTF-8"),
        (b"[]", "not a list"),
        (b"null", "not null"),
        (b"{}", "`passed` is missing"),
        (b'{"passed": "no"}', "`passed` is a string"),
        (b'{"passed": false, "passed": true}', "`passed` occurs twice"),
        (b'{"passed": false, "x": {"y": 1, "y": 2}}', "`x.y` occurs twice"),
        (b'{"passed": false, "reason_code": 1}', "`reason_code` is a number"),
        (b'{"passed": false, "confidence": true}', "`confidence` is a boolean"),
        (b'{"passed": false, "confidence": NaN}', "JSON"),
        (b'{"passed": false, "issues": "one"}', "`issues` is a string"),
        (b'{"passed": false, "issues": [1]}', "`issues[0]` is a number"),
        (b'{"passed": false, "deliverables": "a"}', "`deliverables` is a string"),
        (b'{"passed": false, "changed_files": ["a", ""]}', "`changed_files[1]` is an empty"),
        (b'{"passed": false, "evidence_files": ["a\\u0000b"]}', " NUL byte"),
        (b'{"passed": false, "prior_changed_files": [{}]}', "`prior_changed_files[0]` is an object"),
        (b'{"passed": false, "metadata": []}', "`metadata` is a list"),
        (b'{"passed": false, "subject": "%s"}' % (b"x" * 1001), " 1000 characters"),
        (b'"' + b"x" * MOST_BYTES, "bytes"),
    ],
)
def test_what_is_no_verdict_is_refused(raw: bytes, says: str) -> None:
    assert says in refused(raw)


def test_all_mistakes_are_told_at_once_with_their_lines() -> None:
    said = refused(b'{\n "passed": 1,\n "issues": [1, 2],\n "feedback": []\n}')
    assert [said.count(f"verdict.json:{line}: ") for line in (2, 3, 4)] == [1, 2, 1]
    many = refused(json.dumps({"passed": False, "issues": [1] * 40}).encode("utf-8"))
    assert many.endswith("and 30 more")


@given(st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode))
def test_no_bytes_end_otherwise_than_as_a_claim_or_a_refusal(raw: bytes) -> None:
    try:
        claim = read_claim(raw, "-")
    except UsageError:
        return
    assert claim.passed in {True, False}


def test_options_say_the_same_as_a_document() -> None:
    """C29: options name files from where one stands."""
    claim = claim_of(
        reason_code="x",
        deliverables=["out.md", "..\\up.md", "/abs.md"],
        changed=["c.md"],
        prior=["p.md"],
        evidence=["e.md"],
        subject="s",
        feedback="f",
        prefix="docs/deep",
    )
    assert claim.deliverables == ("docs/deep/out.md", "docs/deep/..\\up.md", "/abs.md")
    assert claim == read(claim.written)
    assert claim_of(reason_code="x").written == {"passed": False, "reason_code": "x"}
    for wrong in (
        {"reason_code": " "},
        {"deliverables": [""]},
        {"subject": "\udcff"},
        {"subject": "x" * 1001},
    ):
        with pytest.raises(UsageError):
            claim_of(**({"reason_code": "x"} | wrong))


@given(SEPARATED)
def test_a_name_is_inside_or_nothing(text: str) -> None:
    """C14, C29: whatever comes out could be a file of the repository, and names itself."""
    found = path_forms(text, "/nowhere")
    for path in (found.literal, found.plain):
        assert path is None or not set(faults(path)) - {"path-drive-letter"}
    if found.plain is not None:
        assert b"\\" not in found.plain.raw
        assert path_forms(found.plain.quoted, None).plain in {found.plain, None}


def test_an_absolute_path_is_taken_from_the_working_tree(tmp_path: Path) -> None:
    """C14, C29: under each name of its folder; a symlink inside stays a name of its own."""
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "other").symlink_to(root)
    (root / "loop").symlink_to(root)
    for above in (root, tmp_path / "other"):
        assert path_forms(f"{above}/docs/x.md", str(root)).plain == RepoPath(b"docs/x.md")
        assert path_forms(f"{above}/loop/x.md", str(root)).plain == RepoPath(b"loop/x.md")
    for outside in (f"{root}/../x.md", f"{tmp_path}/x.md", str(root), f"{root}x/y.md", "/"):
        assert path_forms(outside, str(root)).plain is None
    assert path_forms(f"{root}/docs/x.md", None).plain is None
