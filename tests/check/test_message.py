"""The message gate: which subjects and phrases are told of, where, and what is nobody's business."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.check.message_rules import Cleanup, Message, clean, examine
from patchgate.check.vague_phrases import MOST_PLACES
from patchgate.git.quoting import is_printable
from patchgate.policy.policy import Profile
from patchgate.report.rules import RULES, Level, Stage
from patchgate.report.verdict import Finding
from tests.amount import often
from tests.check.gate_cases import policy

LONG, PERIOD = "message-subject-too-long", "message-subject-period"
BLANK, VAGUE = "message-blank-line-missing", "message-vague"
MESSAGE_RULES = {rule.id for rule in RULES.values() if rule.stage is Stage.MESSAGE}


def found(text: str | bytes, encoding: str | None = None) -> list[Finding]:
    """Examine a message."""
    raw = text.encode() if isinstance(text, str) else text
    return list(examine(Message(raw, encoding)))


def rules(text: str | bytes, encoding: str | None = None) -> list[tuple[str, int | None]]:
    """Examine a message; give rules and lines."""
    return [(finding.rule, finding.line) for finding in found(text, encoding)]


def vague(text: str) -> list[str]:
    """Give the names of the vague phrases in the body of a message."""
    return [str(finding.details["pattern"]) for finding in found("Subject\n\n" + text)]


@pytest.mark.parametrize(
    "text",
    [
        "Add the parser",
        "Add the parser\n",
        "Add the parser\n\nIt reads patches. As git does.\n",
        "x" * 72,
        "é" * 72,
        "e\u0301" * 72,
        "x" * 72 + " (#1234)",
        "x" * 72 + " (!7)",
        "x" * 72 + " (GH-123456)",
        "Wait for the answer...",
        "Name the release 2.0.1",
        "Show more at 9 a.m.",
        "Credit Smith et al.",
        "\n\nAdd the parser\n\ntext\n",
        "Merge branch 'best practice' of " + "x" * 80 + ".",
        "Merge remote-tracking branch 'origin/" + "x" * 80,
        "Merge pull request #1 from a/b\n\nFix it\n",
        'Revert "Follow best practices' + "x" * 80 + '."',
        'Reapply "Fix it."',
        "fixup! Follow best practices.",
        "squash! Follow best practices.\nSecond line",
        "amend! " + "x" * 80,
        "Merged PR 12: follow best practices.",
    ],
)
def test_nothing_is_said_of_such_a_message(text: str) -> None:
    assert rules(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("message-subject-missing", None)]),
        (" \n\t\n", [("message-subject-missing", None)]),
        ("Signed-off-by: A <a@example.com>\n", [("message-subject-missing", None)]),
        ("x" * 73, [(LONG, 1)]),
        ("x" * 66 + " (#1) x", [(LONG, 1)]),
        ("\n\n" + "x" * 73, [(LONG, 3)]),
        ("Add the parser.", [(PERIOD, 1)]),
        ("Add the parser. \n", [(PERIOD, 1)]),
        ("Mend the file a.b.c of the parser.", [(PERIOD, 1)]),
        ("Add the parser\nIt reads patches\n", [(BLANK, 2)]),
        ("x" * 73 + ".\nmore", [(LONG, 1), (PERIOD, 1), (BLANK, 2)]),
        ("Follow best practices", [(VAGUE, 1)]),
        ("Mend tabs, spaces, etc.", [(VAGUE, 1)]),
        ("Merge two parsers into one, as needed", []),
        ("Merge branch 'x'\n\nFollow best practices.\n", [(VAGUE, 3)]),
        ("Merge branch 'x'\n\n* x:\n  Follow best practices\n", []),
        ("Revert the change that is robust and reliable", [(VAGUE, 1)]),
    ],
)
def test_what_is_told_and_where(text: str, expected: list[tuple[str, int | None]]) -> None:
    assert rules(text) == expected


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("It ends an entire class of bugs.", "entire class of"),
        ("It ends entire classes of bugs.", "entire class of"),
        ("This is a best practice.", "best practice"),
        ("BEST PRACTICES!", "best practice"),
        ("Use industry standard names.", "industry standard"),
        ("Use industry-standard names.", "industry standard"),
        ("It works on my machine.", "works on my machine"),
        ("Make it scalable and maintainable", "scalable and maintainable"),
        ("robust and reliable code", "robust and reliable"),
        ("Move to a clean architecture", "clean architecture"),
        ("properly handle errors", "properly handle"),
        ("Errors are properly handled", "properly handle"),
        ("It properly handles errors", "properly handle"),
        ("Properly handling errors", "properly handle"),
        ("Mend the others as needed.", "as needed"),
        ("Adds a, b and more", "and more"),
        ("Adds a, b, and more!", "and more"),
        ("Adds files (a, b and more).", "and more"),
        ("a, b, etc", "etc."),
        ("a, b, etc.", "etc."),
        ("(a, b, etc.)", "etc."),
        ("- a, b, etc.\n- c", "etc."),
        ("a, b, etc.\n\nMore text", "etc."),
        ("Follow the best\npractice of git.", "best practice"),
        ("best  \t practice", "best practice"),
        ("- point\n  as\n  needed", "as needed"),
        ('A 5" disk as needed by\nnobody: as needed', "as needed"),
    ],
)
def test_a_vague_phrase_is_found(text: str, phrase: str) -> None:
    assert vague(text) == [phrase]


@pytest.mark.parametrize(
    "text",
    [
        "and moreover it is fast",
        "faster and more precise",
        "It is used more and more.",
        "2 and more.",
        "etcetera",
        "Write to /etc",
        "Write to etc/passwd",
        "Names, dates, etc. are sorted",
        "Names, dates, etc.\nare sorted",
        "best-practice",
        "the best of practice",
        "docs/best practices",
        "best practices/x",
        "best practices.md",
        "ld --as-needed",
        "what was needed",
        "as needed by the linker",
        "as needed\nby the linker",
        "clean architectures of old",
        "entire class offers",
        "improperly handled",
        "propertly handle",
        "It says `best practice` there.",
        'It says "best practice" there.',
        "It says “best practice” there.",
        "> best practice",
        "# best practice",
        "    best practice",
        "text\n\n\tbest practice\n\n\tas needed",
        "```\nbest practice\n```",
        "~~~ text\nbest practice\n~~~",
        "```\nbest practice",
        "text\n\nReviewed-by: Best Practice <b@example.com>\n",
        "text\n\nNote-to: us\n  best practice\nSigned-off-by: A <a@example.com>\n",
        "text\n\nbest practice\nSigned-off-by: A <a@example.com>\n",
        "best\n\npractice",
        "best\n> practice",
        "best practİce",
    ],
)
def test_a_phrase_that_means_something_is_left_alone(text: str) -> None:
    assert vague(text) == []


def test_after_code_and_quotations_words_count_again() -> None:
    text = "```\nas needed\n```\nas needed\n> as needed\nas needed\n\n\tas needed\n\nas needed\n\tas needed\n"
    assert rules("Subject\n\n" + text) == [(VAGUE, 6), (VAGUE, 8), (VAGUE, 12), (VAGUE, 13)]


def test_a_finding_has_its_line_its_words_and_a_way_on() -> None:
    (finding,) = found("Subject\n\nIt is mended AS  needed, and\nso on\n")
    assert finding.line == 3
    assert finding.path is None
    assert finding.excerpt == b"It is mended AS  needed, and"
    assert '"as needed"' in finding.message
    assert finding.hint == RULES[finding.rule].hint
    assert finding.details == {"pattern": "as needed"}
    (finding,) = found("x" * 100)
    assert (finding.details["limit"], finding.details["actual"]) == (72, 100)


def test_a_line_that_holds_a_secret_is_not_shown() -> None:
    (finding,) = found("Subject\n\nas needed: AK" + "IA" + "ABCDEFGHIJKLMNOP\n")
    assert finding.excerpt is None


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ISO-8859-1", "é" * 72),
        ("windows-1252", "é" * 72),
        ("Shift_JIS", "漢" * 72),
        ("EUC-JP", "漢" * 72),
        ("GBK", "汉" * 72),
        ("KOI8-R", "д" * 72),
    ],
)
def test_the_characters_of_another_encoding_are_counted(encoding: str, text: str) -> None:
    assert rules(text.encode(encoding), encoding) == []
    assert rules((text + text[0]).encode(encoding), encoding) == [(LONG, 1)]


@pytest.mark.parametrize("encoding", [None, "no-such", "hex", "utf-8", "idna", "unicode_escape", "a\0b", ""])
def test_bytes_of_no_known_encoding_are_characters(encoding: str | None) -> None:
    assert rules(b"\xe9" * 72, encoding) == []
    assert rules(b"\xe9" * 73 + b"\n\nas needed \xff", encoding) == [(LONG, 1), (VAGUE, 3)]


@pytest.mark.parametrize(
    "text",
    [
        b"S\n\n" + b"fine line\n" * 100_000,
        b"S\n\n" + b"best" + b" " * 1_000_000,
        b"S\n\n" + b"and more\n" * 100_000 + b"x",
        b"S\n\n" + "“".encode() * 300_000 + b" clean",
        b"S\n\n" + b'"practice `' * 100_000,
        b"S\n\n" + b"etc " * 100_000 + b"x",
        b"S\n\n" + b"# ; \0" * 100_000,
        b"S\n\n" + b"a-" * 300_000 + b"\n",
        b"S\n\n" + b"x" * 1_000_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_huge_message_is_no_trouble(text: bytes) -> None:
    assert found(text) == []


def test_only_so_many_places_are_told() -> None:
    given = b"Subject\n\n" + b"best practice as needed\n" * 100_000
    assert len(found(given)) == MOST_PLACES
    assert [finding.line for finding in found(given)][:4] == [3, 3, 4, 4]


def test_the_config_sets_the_level_of_the_gate_and_rules_set_single_ones() -> None:
    commit, agent = Profile.COMMIT, Profile.AGENT
    assert {policy().level(rule, agent) for rule in MESSAGE_RULES} == {Level.WARNING}
    strict = policy('message.level = "error"')
    assert {strict.level(rule, commit) for rule in MESSAGE_RULES} == {Level.ERROR}
    silent = policy('message.level = "off"\nrules.message-vague = "error"')
    assert silent.level(VAGUE, commit) is Level.ERROR
    assert {silent.level(rule, commit) for rule in MESSAGE_RULES - {VAGUE}} == {None}
    mixed = policy(
        'message.level = "error"\nrules = {message-vague = "off", message-subject-period = "note"}'
    )
    assert mixed.level(VAGUE, commit) is None
    assert mixed.level(PERIOD, commit) is Level.NOTE
    assert mixed.level(LONG, commit) is Level.ERROR
    assert strict.level("max-files", commit) is Level.WARNING


def test_every_message_rule_is_raised_here() -> None:
    raised = {rule for text in ("", "x" * 73 + ".\nas needed") for rule, _ in rules(text)}
    assert raised == MESSAGE_RULES


WORDS = ["best", "practice", "as needed", "etc.", "and more", "Fix", ".", "`", '"', "\n", "\n\n", "    ", "#"]
MARKS = ["> ", "```\n", "Signed-off-by: ", "\t", "\r", "\0", "é", "\f", "- "]
texts = st.lists(st.sampled_from(WORDS + MARKS))


@settings(max_examples=often(300), deadline=None)
@given(words=texts, glue=st.sampled_from(["", " "]))
def test_every_finding_points_at_a_line_of_the_message(words: list[str], glue: str) -> None:
    raw = glue.join(words).encode()
    lines = raw.split(b"\n")
    for finding in found(raw):
        assert finding.rule in MESSAGE_RULES
        assert all(is_printable(character) for character in finding.message + (finding.hint or ""))
        if finding.line is None:
            assert finding.rule == "message-subject-missing"
        else:
            assert finding.excerpt is not None
            assert finding.excerpt in lines[finding.line - 1]


@settings(max_examples=often(300), deadline=None)
@given(raw=st.binary(max_size=200), encoding=st.none() | st.text(max_size=20))
def test_any_bytes_are_examined(raw: bytes, encoding: str | None) -> None:
    assert {finding.rule for finding in examine(Message(raw, encoding))} <= MESSAGE_RULES


@settings(max_examples=often(300), deadline=None)
@given(
    words=texts,
    stripped=st.lists(st.sampled_from(["# best practice as needed.", "#", "#etc."]), max_size=4),
    end=st.sampled_from(["", "\n", "\n\n\n", "  \n"]),
)
def test_what_git_strips_changes_no_finding(words: list[str], stripped: list[str], end: str) -> None:
    text = " ".join(words).replace("#", "")
    comments = "".join(line + "\n" for line in stripped)
    plain = clean(text.encode(), Cleanup(), edited=True)
    around = f"{comments}\n\n{comments}{text}{end}\n{comments}".encode()
    assert found(clean(around, Cleanup(), edited=True)) == found(plain)
