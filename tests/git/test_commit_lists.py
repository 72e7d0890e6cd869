"""The commits that git lists, with the trailers that git finds in their messages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import commit_lists
from patchgate.git.commit_lists import list_commits, stream_commits
from patchgate.git.repository import open_repository
from tests.world import Repo

LINES = (
    "Signed-off-by: A <a@b.example>",
    "Reviewed-by : B",
    "co-authored-by:C",
    "(cherry picked from commit 0000000)",
    " folded",
    "\tmore of it",
    "A sentence. It has: a colon",
    "https://example.invalid/x",
    "",
    "---",
    "# comment: it is none",
    ": no name",
    "Schlüssel: Wert",
    "Patchgate-Profile: agent",
    "[patch: v2]",
    "A-1:",
)


def write(repo: Repo, messages: list[bytes], encoding: str = "") -> str:
    """Write commits with these messages one after the other; give the last of them."""
    repo.git("update-ref", "refs/heads/written", "HEAD")
    header = f"encoding {encoding}\n".encode() if encoding else b""
    stream = b"".join(
        b"commit refs/heads/written\ncommitter A <a@b.example> 1700000000 +0000\n%bdata %d\n%b\n%b"
        % (header, len(message), message, b"" if number else b"from refs/heads/written^0\n")
        for number, message in enumerate(messages)
    )
    repo.git("fast-import", "--quiet", stdin=stream)
    return repo.ask("rev-parse", "refs/heads/written")


def test_trailers_are_those_that_git_finds_in_any_message(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "x\n"})
    chance = random.Random(1)
    messages = [
        "\n".join(
            [*chance.choice([[], ["Title", ""]]), *chance.choices(LINES, k=chance.randrange(1, 7))]
        ).encode()
        + chance.choice([b"", b"\n", b"\r\n"])
        for _ in range(600)
    ]
    messages += [b"", b"\n\n", b"A: b", b"Title\n\n\xff: \xfe\nA: \xff\n", b"T\r\n\r\nA: b\r\nB: c\r\n"]
    repo.git("reset", "-q", "--soft", write(repo, messages))
    tip = write(repo, ["Titel\n\nA: gr\u00fcn\n".encode("latin-1")], "ISO-8859-1")
    form = "--format=%H%x00%(trailers:only,unfold,separator=%x1F)%x00"
    config = ("-c", "trailer.separators=:", "-c", "i18n.logOutputEncoding=UTF-8")
    told = repo.git(*config, "rev-list", "--no-commit-header", form, tip).decode("utf-8", "replace")
    fields = told.split("\0")
    expected = {
        oid.strip(): tuple(text.split("\x1f")) if text else ()
        for oid, text in zip(fields[::2], fields[1::2], strict=False)
    }
    listed = list_commits(open_repository(repo.env, str(repo.path)), tip)
    assert {each.oid: each.trailers for each in listed} == expected
    assert sum(map(bool, expected.values())) > 100
    assert len(listed) == len(messages) + 2 > sum(map(bool, expected.values()))


def test_a_trailer_that_git_would_take_long_to_read_is_undecided(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "x\n"})
    repository = open_repository(repo.env, str(repo.path))
    folded = b" c\n" * 22_000
    harmless = write(repo, [b"Title\n\n" + folded, b"Title\n\nA: b\n" + (b"long " * 10 + b"\n") * 22_000])
    assert len(list_commits(repository, harmless)) == 3
    tip = write(repo, [b"Title\n\nA: b\n" + folded])
    with pytest.raises(UndecidedError, match=tip[:12]):
        list_commits(repository, tip)
    # One that is larger than all that is kept ends the reading at once.
    tip = write(repo, [b"x" * (9 << 20)])
    with pytest.raises(UndecidedError, match=tip[:12]):
        list_commits(repository, tip)


def test_a_long_list_comes_in_parts_with_each_commit_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_lists, "AT_ONCE", 7)
    monkeypatch.setattr(commit_lists, "_READ_AT_ONCE", 97)
    repo = Repo.create(tmp_path)
    repo.commit({"a": "x\n"})
    tip = write(repo, [b"Title %d\n\nA: %d\n" % (number, number) for number in range(40)])
    parts = list(stream_commits(open_repository(repo.env, str(repo.path)), "--reverse", tip))
    assert len(parts) > 3
    listed = [commit for part in parts for commit in part]
    assert [each.oid for each in listed] == repo.ask("rev-list", "--reverse", tip).split()
    assert [each.trailers for each in listed] == [(), *((f"A: {number}",) for number in range(40))]
