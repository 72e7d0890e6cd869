"""What an approval is made of: a statement in one form, lines of a note, the approvals of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.approvals.approvals import (
    MOST_LINE,
    MOST_LINES,
    LocalApprovals,
    SignedStatement,
    Statement,
    read_lines,
)
from patchgate.errors import UndecidedError
from patchgate.git.quoting import is_printable
from patchgate.values import fields, replace

STATEMENT = Statement(
    "sha256:" + "1" * 64,
    "sha256:" + "2" * 64,
    ("deny-prefix", "max-files"),
    "vendored from upstream – not edited",
    "A U Thor <author@example.com>",
    "2024-05-06T07:08:09Z",
)
SIGNATURE = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\nAAAA\n-----END SSH SIGNATURE-----\n"
DIGITS = st.text("0123456789abcdef", min_size=64, max_size=64)
TEXT = st.text(min_size=1, max_size=50).filter(
    lambda text: all(map(is_printable, text)) and text == text.strip()
)


def line_of(value: object) -> bytes:
    return json.dumps(value).encode()


def changed(**other: Any) -> bytes:
    """A line whose statement has other values."""
    return line_of({"statement": {**STATEMENT.plain(), **other}, "signature": SIGNATURE})


def test_the_bytes_of_a_statement_are_canonical_json_in_ascii() -> None:
    assert STATEMENT.to_bytes() == (
        b'{"at":"2024-05-06T07:08:09Z","by":"A U Thor <author@example.com>","change_id":"sha256:'
        + b"1" * 64
        + b'","policy":"sha256:'
        + b"2" * 64
        + b'","reason":"vendored from upstream \\u2013 not edited","rules":["deny-prefix","max-files"],'
        b'"schema":"patchgate.approval/1"}'
    )


@given(
    DIGITS, DIGITS, TEXT, TEXT, st.sets(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), min_size=1)
)
def test_a_statement_that_is_written_is_read_again_and_no_two_have_the_same_bytes(
    change: str, policy: str, reason: str, by: str, rules: set[str]
) -> None:
    made = Statement(f"sha256:{change}", f"sha256:{policy}", tuple(sorted(rules)), reason, by, STATEMENT.at)
    assert Statement.from_plain(json.loads(made.to_bytes())) == made
    line = SignedStatement(made, SIGNATURE).to_line()
    assert read_lines(line) == ([SignedStatement(made, SIGNATURE)], 0)
    assert line.count(b"\n") == 1
    if made != STATEMENT:
        assert made.to_bytes() != STATEMENT.to_bytes()


@given(st.sampled_from([field.name for field in fields(Statement)]), TEXT)
def test_a_signature_covers_every_value(name: str, text: str) -> None:
    value: dict[str, Any] = {name: (text,) if name == "rules" else text}
    try:
        other = replace(STATEMENT, **value)
    except ValueError:
        return
    assert (other == STATEMENT) == (other.to_bytes() == STATEMENT.to_bytes())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        b"\xff\xfe",
        b'{"statement": 1, "signature": ""}',
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"9" * 5000,
        line_of({"statement": STATEMENT.plain()}),
        line_of({"statement": STATEMENT.plain(), "signature": None}),
        line_of({"statement": STATEMENT.plain(), "signature": SIGNATURE, "more": 1}),
        line_of({"statement": STATEMENT.plain(), "signature": "-----BEGIN PGP SIGNATURE-----\n"}),
        line_of({"statement": STATEMENT.plain(), "signature": SIGNATURE + "\x1b[2J"}),
        line_of({"statement": STATEMENT.plain(), "signature": SIGNATURE[:-1]}),
        line_of({"statement": STATEMENT.to_bytes().decode(), "signature": SIGNATURE}),
        changed(schema="patchgate.approval/2"),
        changed(extra=1),
        changed(change_id="sha256:1"),
        changed(change_id="sha256:" + "1" * 64 + "\n"),
        changed(change_id="SHA256:" + "1" * 64),
        changed(policy=None),
        changed(policy=["sha256:" + "2" * 64]),
        changed(rules="deny-prefix"),
        changed(rules=[]),
        changed(rules=[1]),
        changed(rules=["max-files", "deny-prefix"]),
        changed(rules=["max-files", "max-files"]),
        changed(rules=["../etc"]),
        changed(rules=[f"a{number:04}" for number in range(1000)]),
        changed(reason=""),
        changed(reason=" "),
        changed(reason="x" * 1001),
        changed(reason="two\nlines"),
        changed(reason="\x1b[31mred"),
        changed(reason="\u202egnp.exe"),
        changed(reason="\ud800 alone"),
        changed(by=""),
        changed(by="x" * 301),
        changed(by="a\x00b"),
        changed(at="yesterday"),
        changed(at="2024-05-06T07:08:09Z\n"),
        changed(at="٢٠٢٤-05-06T07:08:09Z"),
        changed() + b" " * MOST_LINE,
    ],
    ids=lambda line: line[:40].decode("ascii", "replace") if line else "empty",
)
def test_a_line_that_is_no_signed_statement_is_counted_and_left_out(line: bytes) -> None:
    good = SignedStatement(STATEMENT, SIGNATURE)
    found, n_bad = read_lines(line + b"\n" + good.to_line())
    assert (found, n_bad) == ([good], int(bool(line)))


def test_the_line_that_the_bad_ones_were_made_of_is_good() -> None:
    assert read_lines(changed()) == ([SignedStatement(STATEMENT, SIGNATURE)], 0)


def test_the_last_of_two_equal_keys_is_what_is_signed_too() -> None:
    twice = changed().replace(b'"reason":', b'"reason": "another one", "reason":')
    (read,), _ = read_lines(twice)
    assert read.statement.to_bytes() == STATEMENT.to_bytes()


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_fail(raw: bytes) -> None:
    found, n_bad = read_lines(raw)
    assert len(found) + n_bad == sum(bool(line.strip()) for line in raw.split(b"\n"))


def test_a_note_of_very_many_lines_is_read_to_a_limit() -> None:
    signed = [
        SignedStatement(replace(STATEMENT, reason=f"reason {number}"), SIGNATURE)
        for number in range(MOST_LINES + 5)
    ]
    found, n_bad = read_lines(b"".join(each.to_line() for each in signed))
    assert (found, n_bad) == (signed[:MOST_LINES], 5)


# The approvals of this machine.


def test_approvals_of_this_machine_are_read_in_the_order_they_were_given(tmp_path: Path) -> None:
    approvals = LocalApprovals(str(tmp_path))
    assert approvals.read() == ([], None)
    assert not approvals.path.parent.exists()
    later = replace(STATEMENT, reason="another reason")
    assert approvals.add(STATEMENT) is None
    assert approvals.add(later) is None
    assert approvals.path == tmp_path / "patchgate" / "approvals.jsonl"
    assert approvals.read() == ([STATEMENT, later], None)


def test_a_torn_approval_is_set_aside_and_told(tmp_path: Path) -> None:
    approvals = LocalApprovals(str(tmp_path))
    approvals.add(STATEMENT)
    with approvals.path.open("ab") as file:
        file.write(b'{"event":{"statement"')
    assert approvals.read() == ([STATEMENT], None)
    told = approvals.add(STATEMENT)
    assert str(told).endswith(" approvals.jsonl.torn-1")
    assert approvals.read() == ([STATEMENT, STATEMENT], None)


def test_an_approval_that_was_changed_by_hand_does_not_count_nor_do_those_after_it(tmp_path: Path) -> None:
    approvals = LocalApprovals(str(tmp_path))
    for rule in ("a-rule", "b-rule", "c-rule"):
        approvals.add(replace(STATEMENT, rules=(rule,)))
    raw = approvals.path.read_bytes()
    approvals.path.write_bytes(raw.replace(b"b-rule", b"x-rule"))
    found, fault = approvals.read()
    assert [each.rules for each in found] == [("a-rule",)]
    assert fault is not None
    assert "do not count: line 2 of " in fault


def test_a_record_that_is_no_statement_is_left_out(tmp_path: Path) -> None:
    from patchgate.storage import hash_chain

    approvals = LocalApprovals(str(tmp_path))
    approvals.path.parent.mkdir()
    hash_chain.append(approvals.path, {"statement": {"schema": "patchgate.approval/1"}})
    hash_chain.append(approvals.path, {"note": "not ours"})
    approvals.add(STATEMENT)
    assert approvals.read() == ([STATEMENT], None)


def test_approvals_that_cannot_be_written_or_read_are_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "patchgate").write_text("a file where the folder should be", encoding="ascii")
    approvals = LocalApprovals(str(tmp_path))
    with pytest.raises(UndecidedError, match=r"\(approvals.jsonl: ") as told:
        approvals.add(STATEMENT)
    assert told.value.hint
    found, fault = approvals.read()
    assert (found, str(fault).endswith(": Not a directory")) == ([], True)
