"""What git drops from a message, against git itself: `git stripspace`, and real commits with every mode."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patchgate.check.message_rules import (
    CUT_LINE,
    SCISSORS,
    STRIP,
    VERBATIM,
    WHITESPACE,
    Cleanup,
    Message,
    clean,
    is_abandoned,
    message_of,
    strip_space,
)
from tests.amount import often
from tests.world import Repo

PIECES = [
    b"Subject",
    b"text with spaces \t ",
    b"",
    b"   ",
    b"\t",
    b"\r",
    b"# a comment",
    b"#",
    b"#12 is mended",
    b"; another",
    b";",
    b" # indented",
    b"ends in\f",
    b"\v",
    b"caf\xe9",
    b"diff --git a/x b/x",
    b"Signed-off-by: A U Thor <author@example.com>",
]
CUTS = [b"#" + CUT_LINE[:-1], b";" + CUT_LINE[:-1], b"#" + CUT_LINE[:-1] + b"\r", b"x #" + CUT_LINE[:-1]]
texts = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(st.sampled_from(PIECES + CUTS), max_size=12),
    st.sampled_from([b"", b"\n", b"\n\n"]),
)
GITS_OWN = re.compile(rb"^([#;])(" + CUT_LINE + rb"\1 | [^\n]*\n\1 [^\n]*\n\1\r?$)", re.MULTILINE)
any_bytes = st.binary(max_size=60) | st.text(alphabet="#; \t\r\nab\f", max_size=60).map(str.encode)


class Session:
    """A repository whose commit-msg hook keeps what git hands to it."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.create(folder)
        self.seen = folder / "seen"
        self.editor = folder / "editor"
        self.typed = folder / "typed"
        self.mode = folder / "mode"
        for name, lines in {
            ".git/hooks/commit-msg": f'cat "$1" > {self.seen}\nprintf %s "$GIT_EDITOR" > {self.mode}\n',
            # What is typed stands above what git wrote, as people do it; or instead of it.
            "../above": f'{{ cat {self.typed} "$1"; }} > "$1.x"; mv "$1.x" "$1"\n',
            "../instead": f'cp {self.typed} "$1"\n',
        }.items():
            self.repo.write(name, "#!/bin/sh\n" + lines, executable=True)
        self.repo.commit({"a": "one\n"}, "First")

    def commit(
        self, *arguments: str, typed: bytes | None = None, how: str = "above", config: Mapping[str, str] = {}
    ) -> bytes | None:
        """Commit, with what is typed in an editor; give the commit's message, or None where git ends it."""
        self.seen.unlink(missing_ok=True)
        self.repo.write("a", self.repo.path.joinpath("a").read_text(encoding="ascii") + "more\n")
        self.repo.git("add", "a")
        # Without an encoding git rewrites bytes that are no UTF-8.
        told = {"i18n.commitEncoding": "ISO-8859-1", **config}
        options = [part for key, value in told.items() for part in ("-c", f"{key}={value}")]
        editor = ":"
        if typed is not None:
            self.typed.write_bytes(typed)
            editor = shlex.quote(str(self.repo.path.parent / how))
        command = (*options, "commit", "-q", "--allow-empty", *arguments)
        done = self.repo.try_git(*command, GIT_EDITOR=editor)
        assert self.seen.exists() or done.returncode != 0
        if done.returncode != 0:
            return None
        return message_of(self.repo.git("cat-file", "commit", "HEAD")).text

    def cleaned(self, cleanup: Cleanup) -> bytes:
        """Clean what the hook got."""
        edited = self.mode.read_text(encoding="utf-8") != ":"
        return clean(self.seen.read_bytes(), cleanup, edited=edited)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """One repository for all: each commit stands on the one before."""
    return Session(tmp_path_factory.mktemp("session"))


@settings(max_examples=often(100), deadline=None)
@given(text=texts | any_bytes)
def test_space_is_stripped_as_git_stripspace_does(session: Session, text: bytes) -> None:
    assert strip_space(text) == session.repo.git("stripspace", stdin=text)


@settings(max_examples=often(100), deadline=None)
@given(text=texts | any_bytes, comment=st.sampled_from(["#", ";", "|"]))
def test_comments_are_stripped_as_git_stripspace_does(session: Session, text: bytes, comment: str) -> None:
    told = session.repo.git("-c", f"core.commentChar={comment}", "stripspace", "-s", stdin=text)
    assert strip_space(text, comment.encode()) == told


@settings(max_examples=often(100), deadline=None)
@given(
    text=texts,
    mode=st.sampled_from([None, STRIP, WHITESPACE, VERBATIM, SCISSORS]),
    verbose=st.booleans(),
    comment=st.sampled_from(["#", ";"]),
    how=st.sampled_from(["above", "instead", "file"]),
)
def test_what_the_config_decides_is_cleaned_as_git_commit_does(
    session: Session, text: bytes, mode: str | None, verbose: bool, comment: str, how: str
) -> None:
    # A person who types git's scissors line and its explanation, or its hints, is believed to be git.
    text += b"\n" if how == "above" else b""
    assume(not GITS_OWN.search(text))
    config = {
        "core.commentChar": comment,
        "commit.cleanup": mode or "default",
        "commit.verbose": str(verbose).lower(),
    }
    if how == "file":
        session.typed.write_bytes(text)
        made = session.commit("-F", str(session.typed), config=config)
    else:
        made = session.commit(typed=text, how=how, config=config)
    cleanup = Cleanup(mode, comment.encode(), verbose)
    if not session.seen.exists():
        assert made is None
        return
    cleaned = session.cleaned(cleanup)
    assert is_abandoned(cleaned) if made is None else cleaned == made


@pytest.mark.parametrize(
    ("arguments", "typed", "made"),
    [
        ((), b"Subject\n# note\n", b"Subject\n"),
        (("-v",), b"Subject\n# note\n", b"Subject\n"),
        (("--cleanup=scissors",), b"Subject\n\n# Heading\n", b"Subject\n\n# Heading\n"),
        (("--cleanup=scissors", "-v"), b"Subject\n\n# Heading\n", b"Subject\n\n# Heading\n"),
        (("--amend",), b"Better subject\n\n", b"Better subject\n\nOld\n"),
        (("--fixup=amend:HEAD",), b"", b"amend! Old\n\nOld\n"),
        (("-m", "#12 is mended", "-m", "# Heading"), None, b"#12 is mended\n\n# Heading\n"),
        (("--amend", "--no-edit"), None, b"Old\n"),
        (("--fixup=HEAD",), None, b"fixup! Old\n"),
        (("-m", "Subject", "-s"), None, b"Subject\n\nSigned-off-by: C O Mitter <c@example.com>\n"),
        (("--no-edit", "-C", "HEAD"), None, b"Old\n"),
        (("-e", "-m", "Subject"), b"# above\n", b"Subject\n"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
@pytest.mark.parametrize("comment", ["#", ";", "auto", "told to git alone"])
def test_every_form_of_git_commit(
    session: Session, arguments: tuple[str, ...], typed: bytes | None, made: bytes, comment: str
) -> None:
    session.repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "Old")
    session.repo.env.update(GIT_COMMITTER_NAME="C O Mitter", GIT_COMMITTER_EMAIL="c@example.com")
    git_s = {"#": "#", ";": ";", "auto": "#", "told to git alone": "%"}[comment]
    known = {"auto": None, "told to git alone": b"#"}.get(comment, comment.encode())
    if typed is not None:
        made, typed = (text.replace(b"# ", git_s.encode() + b" ") for text in (made, typed))
    char = "%" if comment == "told to git alone" else comment
    assert session.commit(*arguments, typed=typed, config={"core.commentChar": char}) == made
    assert session.cleaned(Cleanup(comment=known)) == made


def test_the_comment_character_that_git_chose_is_read_from_its_hints(session: Session) -> None:
    session.repo.git(
        "commit", "-q", "--no-verify", "--allow-empty", "--cleanup=verbatim", "-m", "S\n\n# kept"
    )
    for arguments in (("--amend",), ("--amend", "-v")):
        made = session.commit(*arguments, typed=b"", config={"core.commentChar": "auto"})
        assert made == b"S\n\n# kept\n"
        assert b"\n;\n" in session.seen.read_bytes()
        assert session.cleaned(Cleanup(comment=None)) == made


def test_a_comment_is_kept_where_nothing_tells_its_character(session: Session) -> None:
    config = {"core.commentChar": ";"}
    assert session.commit("--no-status", typed=b"Subject\n; note\n", config=config) == b"Subject\n"
    assert session.cleaned(Cleanup(comment=b";")) == b"Subject\n"
    assert session.cleaned(Cleanup(comment=None)) == b"Subject\n; note\n"


@pytest.mark.parametrize("arguments", [("--no-edit",), ("--edit",), ("--edit", "--cleanup=scissors")])
def test_the_message_of_a_merge(session: Session, arguments: tuple[str, ...]) -> None:
    repo = session.repo
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "Base")
    repo.git("branch", "-f", "side", "HEAD~1")
    repo.git("switch", "-q", "side")
    repo.commit({"b": repo.head()}, "Aside")
    repo.git("switch", "-q", "main")
    session.typed.write_bytes(b"# note\n" if "--cleanup=scissors" not in arguments else b"Note\n")
    editor = shlex.quote(str(repo.path.parent / "above"))
    repo.git("merge", "-q", "--no-ff", *arguments, "side", GIT_EDITOR=editor)
    made = message_of(repo.git("cat-file", "commit", "HEAD")).text
    assert b"Merge branch 'side'" in made
    assert session.cleaned(Cleanup()) == made


def test_a_string_of_several_bytes_begins_a_comment() -> None:
    assert clean(b"S\n// note\n/ no\n", Cleanup(comment=b"//"), edited=True) == b"S\n/ no\n"
    text = "S\n⚠ note\n⚠".encode() + CUT_LINE + "⚠ Do not\ndiff\n".encode()
    assert clean(text, Cleanup(comment="⚠".encode()), edited=True) == b"S\n"


def test_below_the_scissors_line_nothing_is_judged_only_where_git_cuts_there() -> None:
    cut = b"#" + CUT_LINE
    gits = b"Subject\n# hint\n#\n" + cut + b"# Do not modify\n# Everything below\ndiff\n"
    assert clean(gits, Cleanup(), edited=True) == b"Subject\n"
    assert clean(gits, Cleanup(), edited=False).endswith(b"diff\n")
    assert clean(b"Subject\n" + cut + b"kept\n", Cleanup(), edited=True) == b"Subject\nkept\n"
    assert clean(b"Subject\n" + cut + b"lost\n", Cleanup(is_verbose=True), edited=False) == b"Subject\n"


@pytest.mark.parametrize("verbose", ["true", "false"])
def test_without_an_editor_scissors_cut_only_where_git_is_verbose(session: Session, verbose: str) -> None:
    session.typed.write_bytes(b"Subject\n#" + CUT_LINE + b"below\n")
    config = {"commit.cleanup": SCISSORS, "commit.verbose": verbose}
    made = session.commit("-F", str(session.typed), config=config)
    assert made is not None
    assert made.endswith(b"below\n") is (verbose == "false")
    assert session.cleaned(Cleanup(SCISSORS, is_verbose=verbose == "true")) == made


def test_a_message_that_git_takes_for_empty() -> None:
    assert is_abandoned(b"")
    assert is_abandoned(b"\n \nSigned-off-by: A <a@example.com>\n")
    assert not is_abandoned(b"Signed-off: x\n")


def test_the_message_of_a_commit_object_and_its_encoding(session: Session) -> None:
    repo = session.repo
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    text = "Gruß\n\nencoding UTF-8\n".encode("latin-1")
    oid = repo.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit-tree", tree, stdin=text).decode().strip()
    found = message_of(repo.git("cat-file", "commit", oid))
    assert found == Message(text, "ISO-8859-1")
    assert message_of(b"tree x\n") == Message(b"")
    assert message_of(b"tree x\ngpgsig a\n b\n \n c\n\nText\n\nencoding y\n") == Message(
        b"Text\n\nencoding y\n"
    )


def test_a_hundred_thousand_lines_are_cleaned_as_git_does(session: Session) -> None:
    text = b"Subject\n\n" + b"# no\n\nyes  \n" * 33_000 + b"\0after\n"
    assert strip_space(text, b"#") == session.repo.git("stripspace", "-s", stdin=text)
