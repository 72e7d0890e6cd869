"""A trailer is put where git puts it, and every other byte of a message stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.git.intent_commits import with_trailer
from patchgate.git.repository import Repository, open_repository
from tests.amount import often
from tests.world import Repo

LINE = "Patchgate-Intent: i-0000000001"
ADDED = LINE.encode() + b"\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repo = Repo.create(tmp_path)
    # Each of these would start a program, or change what is written.
    repo.git("config", "trailer.other.command", "touch started; echo x")
    repo.git("config", "--global", "trailer.third.command", "echo y")
    repo.git("config", "trailer.where", "start")
    repo.git("config", "trailer.patchgate-intent.ifmissing", "doNothing")
    return open_repository(repo.env, str(repo.path))


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        (b"Subject\n", b"Subject\n\n" + ADDED),
        (b"Subject", b"Subject\n\n" + ADDED),
        (b"Subject\n\nText\n---\nmore\n", b"Subject\n\nText\n---\nmore\n\n" + ADDED),
        (b"Subject\n\nFixes:x\nA: b\n", b"Subject\n\nFixes:x\nA: b\n" + ADDED),
        (b"Subject\n\n" + ADDED, b"Subject\n\n" + ADDED),
        (b"Subject\n\n" + ADDED + b"A: b\n", b"Subject\n\n" + ADDED + b"A: b\n"),
        (b"Subject\r\n\r\nText\r\n", b"Subject\r\n\r\nText\r\n\n" + ADDED),
        (b"\xff\xfe \xc3\n", b"\xff\xfe \xc3\n\n" + ADDED),
    ],
)
def test_the_trailer_comes_last_and_once(repository: Repository, raw: bytes, made: bytes) -> None:
    assert with_trailer(repository, raw, LINE, None) == made
    assert with_trailer(repository, made, LINE, None) == made
    assert not Path(repository.git_dir, "started").exists()
    assert not Path(repository.work_tree or "", "started").exists()


SCISSORS = b" ------------------------ >8 ------------------------\n"


@pytest.mark.parametrize("comment", [b"#", b";", b"!"])
def test_comments_and_scissors_stay_below_it(repository: Repository, comment: bytes) -> None:
    hints = b"\n%c Please enter the message.\n%c\n" % (comment, comment)
    diff = comment + SCISSORS + comment + b" Do not modify or remove the line above.\ndiff --git a/a b/a\n"
    for below in (hints, diff, hints + diff):
        made = with_trailer(repository, b"Subject\n" + below, LINE, comment)
        assert made is not None
        assert made.index(b"Subject\n\n" + ADDED) == 0
        assert made.endswith(below.lstrip(b"\n"))


def test_what_looks_like_a_comment_and_is_none_stays_above_it(repository: Repository) -> None:
    assert (
        with_trailer(repository, b"Subject\n\n# Heading\n", LINE, None) == b"Subject\n\n# Heading\n\n" + ADDED
    )


PIECES = st.sampled_from(
    [
        b"Subject",
        b"",
        b"A: b",
        b"Signed-off-by: x",
        b"# c",
        b" folded",
        b"A:b",
        b"---",
        b"\t",
        b"a  ",
        b"\r",
        b"Co: ",
        b"=",
    ]
)


@settings(max_examples=often(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, min_size=1, max_size=8), st.sampled_from([None, b"#"]), st.booleans())
def test_every_line_of_a_message_stays_as_it_was(
    repository: Repository, lines: list[bytes], comment: bytes | None, ended: bool
) -> None:
    raw = b"\n".join(lines) + (b"\n" if ended else b"")
    made = with_trailer(repository, raw, LINE, comment)
    assert made is not None
    before, after = raw.removesuffix(b"\n").split(b"\n"), made.removesuffix(b"\n").split(b"\n")
    at = after.index(LINE.encode())
    rest = after[:at] + after[at + 1 :]
    assert rest == before or rest[: at - 1] + rest[at:] == before
    assert with_trailer(repository, made, LINE, comment) == made
    sign = (comment or b"\1").decode()
    parsed = repository.git(
        "-c", f"core.commentChar={sign}", "interpret-trailers", "--parse", "--no-divider", stdin=made
    )
    assert ADDED in parsed.out
