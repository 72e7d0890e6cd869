"""The spool: a secret is masked wherever a piece of output ends, and no control reaches a log."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from patchgate.git.quoting import neutral
from patchgate.ledger.masking import Masks
from patchgate.process.spool import TAIL, Spool

VALUE = b"hunter2-and-more-of-it"
# A title (OSC), colours, a string (DCS), controls of C1 and for directions, CR, backspace, NUL.
HOSTILE = b"\x1b]0;title\x07a\x1b[31mred\x1b[0m\x1bPq\x1b\\ "
HOSTILE += b"\xc2\x9b1m \x9b \xe2\x80\xaeb \xe2\x81\xa6 \r10%\r20%\r\n\x08\x00\x7f"


def spooled(
    place: Path,
    pieces: Sequence[bytes],
    mask: Callable[[bytes], bytes] | None = None,
    most: int = 8 << 20,
) -> tuple[bytes, Spool]:
    log = os.open(place / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        spool = Spool(log, most, mask, neutral)
        for piece in pieces:
            spool.add(piece)
        spool.close()
    finally:
        os.close(log)
    return (place / "log").read_bytes(), spool


def split(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_no_control_reaches_the_log_wherever_a_piece_ends(tmp_path: Path, size: int) -> None:
    log, spool = spooled(tmp_path, split(HOSTILE + b"\ttab caf\xc3\xa9\n", size))
    assert log == neutral(HOSTILE + b"\ttab caf\xc3\xa9\n")
    assert log.decode() == (
        "\\x1b]0;title\\x07a\\x1b[31mred\\x1b[0m\\x1bPq\\x1b\\ \\x9b1m \\x9b \\u202eb \\u2066 "
        "\\x0d10%\\x0d20%\r\n\\x08\\x00\\x7f\ttab café\n"
    )
    assert spool.logged == len(log)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("size", [4096, 50_000, 1 << 16, 1 << 20])
@pytest.mark.parametrize("filler", [b"x", b"x ", "é".encode(), b"\xff"])
def test_in_a_line_without_an_end_no_value_is_cut_at_a_border(
    tmp_path: Path, size: int, filler: bytes
) -> None:
    # The places differ from round to round, so that some value lies across every border.
    parts = [filler * (700 + number * 37) + b" password=" + VALUE + b" " for number in range(120)]
    log, spool = spooled(tmp_path, split(b"".join(parts), size), Masks().output)
    assert VALUE[:5] not in log
    assert VALUE[-5:] not in log
    assert log.count(b"password=*** ") == 120
    assert log == neutral(Masks().output(b"".join(parts)))
    assert VALUE[-5:] not in spool.tail


def test_a_value_of_the_environment_is_found_across_every_border(tmp_path: Path) -> None:
    mask = Masks([{"TOKEN": "correct-horse-battery"}]).output
    for shift in range(-25, 5, 3):
        line = b"x" * ((1 << 16) + shift) + b"correct-horse-battery" + b"y" * (1 << 16)
        log, _ = spooled(tmp_path, split(line, 8192), mask)
        assert b"horse" not in log
        assert log.count(b"***") == 1


@pytest.mark.parametrize("size", [1000, 50_000, 1 << 16])
def test_where_every_border_would_cut_a_secret_the_line_is_masked_all_the_same(
    tmp_path: Path, size: int
) -> None:
    # Longer than the stretch in which a border is sought.
    line = (b"password=" + VALUE * 700 + b" ") * 20
    log, _ = spooled(tmp_path, split(line, size), Masks().output)
    assert log == b"password=*** " * 20


@pytest.mark.parametrize("before", [b"", b"+", b"\x1b[32m"])
@pytest.mark.parametrize("n_lines", [1, 2, 7])
def test_a_private_key_that_comes_line_by_line_is_masked_whole(
    tmp_path: Path, before: bytes, n_lines: int
) -> None:
    body = [b"MIIEowIBAAKCAQEA7bq4c1fV0vW5w0aP9q3r/+Zk"] * 20
    key = [b"-----BEGIN RSA PRIVATE KEY-----", *body, b"-----END RSA PRIVATE KEY-----"]
    for lines in (key, key[:15]):
        shown = [before + line + b"\n" for line in [b"first", *lines, b"the next line stays", *body[:1]]]
        pieces = [b"".join(shown[at : at + n_lines]) for at in range(0, len(shown), n_lines)]
        log, spool = spooled(tmp_path, pieces, Masks().stream())
        assert log.count(body[0]) == 1
        assert b"the next line stays\n" in log
        assert b"first\n" in log
        assert b"***" in log
        assert spool.tail.count(body[0]) == 1


def test_the_limit_is_one_of_the_log_and_the_tail_is_told_apart_from_all_output(tmp_path: Path) -> None:
    log, spool = spooled(tmp_path, [b"\x1b" * 1000 + b"\n"], most=100)
    assert log.startswith(b"\\x1b" * 25 + b"\npatchgate: the log ends here")
    assert (spool.logged, spool.dropped) == (100, 3901)
    assert not spool.has_more_than_tail
    assert spooled(tmp_path, [b"x" * 5000])[1].has_more_than_tail


def test_the_masks_see_each_byte_of_a_long_line_a_bounded_number_of_times(tmp_path: Path) -> None:
    def seen(length: int) -> int:
        total = 0

        def mask(text: bytes) -> bytes:
            nonlocal total
            total += len(text)
            return text

        spooled(tmp_path, split(b"x" * length, 1000), mask)
        return total

    assert seen(1 << 20) <= 2 * (1 << 20)
    assert seen(2 << 20) <= 4 * (1 << 20)


def test_once_the_log_is_full_only_the_end_is_masked(tmp_path: Path) -> None:
    looked = 0

    def mask(lines: bytes) -> bytes:
        nonlocal looked
        looked += len(lines)
        return lines.replace(b"secret", b"******")

    with (tmp_path / "log").open("wb") as log:
        spool = Spool(log.fileno(), 1000, mask)
        for _ in range(200):
            spool.add(b"a secret line\n" * 5000)
        spool.add(b"the last secret")
        spool.close()
    assert looked < 1_000_000
    assert spool.received == spool.logged + spool.dropped == 200 * 5000 * 14 + 15
    assert spool.tail.endswith(b"a ****** line\nthe last ******")
    assert b"secret" not in spool.tail
    assert len(spool.tail) == TAIL
