"""Bytes become text that is safe to print: git's own quoting is the oracle for names."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchgate.git.quoting import exact_text, in_shell, is_printable, printable, quote_path
from tests.amount import often

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


def unquote(text: str) -> bytes:
    """Read a name as git's `unquote_c_style` does."""
    if not text.startswith('"'):
        return text.encode()
    assert len(text) > 1
    assert text.endswith('"')
    found = bytearray()
    for piece in re.findall(r"\\[0-3][0-7]{2}|\\.|[^\\]", text[1:-1]):
        if len(piece) == 4 and piece[0] == "\\":
            found.append(int(piece[1:], 8))
        elif piece[0] == "\\":
            found.append(_ESCAPES[piece[1]])
        else:
            found.extend(piece.encode())
    return bytes(found)


class GitNames:
    """A real repository that tells how git writes a name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_INDEX_FILE": str(folder / ".git" / "one-index"),
        }
        self.run(b"", "init", "--quiet", "--template=", ".")
        self.blob = self.run(b"", "hash-object", "-w", "--stdin").strip()

    def run(self, stdin: bytes, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", "-c", "core.quotePath=false", "-c", "core.protectNTFS=false", *arguments],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=True,
        ).stdout

    def quote(self, names: list[bytes]) -> list[bytes]:
        """Write names, each given once and none a folder of another, in the order of their bytes."""
        (self.folder / ".git" / "one-index").unlink(missing_ok=True)
        entries = b"".join(b"100644 " + self.blob + b"\t" + name + b"\0" for name in names)
        self.run(entries, "update-index", "-z", "--index-info")
        return self.run(b"", "ls-files").splitlines()


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> GitNames:
    return GitNames(tmp_path_factory.mktemp("quoting"))


def test_every_ascii_byte_is_quoted_as_git_quotes_it(git: GitNames) -> None:
    names = [b"n" + bytes([code]) + b"x" for code in range(1, 128) if code != ord("/")]
    written = git.quote(names)
    assert [line.decode() for line in written] == [quote_path(name) for name in sorted(names)]


ASCII = st.text(st.characters(min_codepoint=1, max_codepoint=127, exclude_characters="/"), max_size=8)


@settings(max_examples=often(40), deadline=None)
@given(st.lists(ASCII.map(lambda text: b"n" + text.encode()), min_size=1, max_size=20, unique=True))
def test_ascii_names_are_quoted_as_git_quotes_them(git: GitNames, names: list[bytes]) -> None:
    written = git.quote(names)
    assert [line.decode() for line in written] == [quote_path(name) for name in sorted(names)]


@settings(max_examples=often(300))
@given(st.binary(max_size=12) | st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")))
@example("a\u202eb\u2028\ufeff\u0085".encode())
@example(b"\xff\xc3")
def test_a_quoted_name_is_printable_and_can_be_read_back(name: bytes) -> None:
    text = quote_path(name)
    assert all(is_printable(character) for character in text)
    # A bare name never begins with a quote, so the two forms cannot be confused.
    assert unquote(text) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"a b", "a b"),
        ("größe".encode(), "größe"),
        (b"a\tb", '"a\\tb"'),
        (b"\x1b[2J", '"\\033[2J"'),
        (b"\xff", '"\\377"'),
        ("\u009b".encode(), '"\\302\\233"'),
        ("\u202e".encode(), '"\\342\\200\\256"'),
        (b'say "hi" \\', '"say \\"hi\\" \\\\"'),
        (b"", ""),
    ],
    ids=ascii,
)
def test_names_and_how_they_are_written(name: bytes, expected: str) -> None:
    assert quote_path(name) == expected


@pytest.mark.parametrize(
    "code",
    [
        0x00,
        0x1F,
        0x7F,
        0x80,
        0x9F,
        0x61C,
        0x200E,
        0x202A,
        0x202E,
        0x2066,
        0x2069,
        0x2028,
        0xFEFF,
        0xD800,
        0xDFFF,
    ],
)
def test_what_may_not_reach_a_terminal(code: int) -> None:
    assert not is_printable(chr(code))


@pytest.mark.parametrize("character", [" ", "~", "\u00a0", "é", "日", "\u200d", "😀"])
def test_what_may_reach_a_terminal(character: str) -> None:
    assert is_printable(character)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"plain", "plain"),
        ("plain", "plain"),
        (b"a\tb", "a\tb"),
        (b"a\nb\r", "a\\nb\\x0d"),
        (b"\x1b[2J", "\\x1b[2J"),
        (b"caf\xe9", "caf\\xe9"),
        ("\u009b\u202e", "\\x9b\\u202e"),
        ("\ud800", "\\ud800"),
        ("größe", "größe"),
    ],
    ids=ascii,
)
def test_foreign_text_is_written_on_one_line(raw: bytes | str, expected: str) -> None:
    assert printable(raw) == expected


def test_foreign_text_is_cut_where_it_is_long() -> None:
    assert printable("x" * 400) == "x" * 400
    assert printable("x" * 401) == "x" * 400 + "…"
    assert printable("abc", 2) == "ab…"
    assert printable(b"x" * 10_000_000, 5) == "xxxxx…"
    assert printable("é".encode() * 10, 9) == "é" * 9 + "…"
    assert printable("😀".encode() * 9, 9) == "😀" * 9


@given(st.text(max_size=20) | st.binary(max_size=20), st.integers(1, 30))
def test_foreign_text_is_always_printable(raw: str | bytes, limit: int) -> None:
    text = printable(raw, limit)
    assert all(character == "\t" or is_printable(character) for character in text)
    assert "\n" not in text


@given(st.text(max_size=6))
def test_exact_text_holds_what_may_be_printed_and_nothing_else(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    is_exact = all(map(is_printable, text)) and not any(0xD800 <= ord(each) < 0xE000 for each in text)
    assert exact_text(raw) == (text if is_exact else None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("main", "main"),
        ("x$(touch y)", "'x$(touch y)'"),
        ("a'b", "'a'\"'\"'b'"),
        ("a\x1b", "REF"),
        ("\u202e", "REF"),
    ],
)
def test_a_name_in_a_command_is_one_word_that_runs_nothing(text: str, word: str) -> None:
    assert in_shell(text, "REF") == word
