"""The commits that git lists, with the trailers that git finds in their messages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import commit_lists
from patchgate.git.commit_lists import commits_with_parents, list_commits, stream_commits
from patchgate.git.merge_paths import CommitGraph
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


def test_each_commit_comes_before_its_ancestors_whatever_its_date(tmp_path: Path) -> None:
    """A commit-graph has 34 bits for a date."""
    repo = Repo.create(tmp_path)
    base = repo.commit({"a": "x\n"})
    tree = repo.ask("rev-parse", "HEAD^{tree}")

    def commit(date: int, *parents: str) -> str:
        who = f"A <a@b.example> {date} +0000"
        above = "".join(f"parent {each}\n" for each in parents)
        text = f"tree {tree}\n{above}author {who}\ncommitter {who}\n\nx\n"
        made = repo.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode())
        return made.decode().strip()

    first = commit(1_700_001_000, base)
    late = commit(2**34 + 5, first)
    side, line = commit(1_700_001_010, first), commit(1_700_001_020, late)
    for name, oid in (("side", side), ("line", line)):
        repo.git("update-ref", f"refs/heads/{name}", oid)
    repo.git("commit-graph", "write", "--reachable")
    merge = commit(1_700_001_030, line, side)
    found = commits_with_parents(open_repository(repo.env, str(repo.path)), merge, f"^{base}")
    assert set(found) == {first, late, side, line, merge}
    places = {oid: place for place, oid in enumerate(found)}
    assert all(places[oid] < places[each] for oid, above in found.items() for each in above if each in places)


def test_where_git_lists_a_parent_after_its_child_it_is_asked_for_merge_bases() -> None:
    listed = [("first", ()), ("one", ("first",)), ("other", ("first",))]
    assert CommitGraph(listed).merge_bases("one", "other") == ["first"]
    assert CommitGraph([listed[1], listed[0], listed[2]]).merge_bases("one", "other") is None
