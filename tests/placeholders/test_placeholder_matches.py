"""What is a placeholder and what is none, in which bytes, on which line, and what stays when it is moved."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from patchgate.placeholders.placeholder_matches import Match, find_matches, to_utf8
from patchgate.policy.placeholder_markers import Markers
from patchgate.policy.settings import MarkerSettings
from patchgate.report.rules import RULES
from tests.amount import often
from tests.placeholders.marker_cases import MUST, MUST_NOT

MARKERS = Markers()
OWN = Markers(
    (MarkerSettings("ticket", "ABC-0{4}", "see ABC-0000"), MarkerSettings("end", "(?i)later$", "later"))
)
NAMES = ("a.md", "a.py", "a.js", "a.csv", "a.yaml", "a.html", "a.rs", "a")


def found_in(text: str, name: str = "a.md", markers: Markers = MARKERS) -> list[Match]:
    return find_matches(text.encode(), name.encode(), markers)


def rules_in(text: str, name: str) -> set[str]:
    return {match.rule for match in found_in(text, name)}


# ---- C4: what is a placeholder ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "names", "texts"), MUST, ids=lambda value: str(value)[:30])
def test_a_placeholder_is_told(rule: str, names: str, texts: tuple[str, ...]) -> None:
    missed = [(name, text) for name in names.split() for text in texts if rule not in rules_in(text, name)]
    assert missed == []


@pytest.mark.parametrize(("names", "texts"), MUST_NOT, ids=lambda value: str(value)[:30])
def test_prose_and_code_are_no_placeholders(names: str, texts: tuple[str, ...]) -> None:
    told = [
        (name, text, found) for name in names.split() for text in texts if (found := rules_in(text, name))
    ]
    assert told == []


def test_the_corpus_has_both_sides_of_every_rule() -> None:
    assert {rule for rule, _, _ in MUST} | {"placeholder-marker"} == {
        name for name in RULES if name.startswith("placeholder")
    }
    assert sum(len(texts) for _, _, texts in MUST) > 300
    assert sum(len(texts) for _, texts in MUST_NOT) > 200


def test_every_marker_that_is_one_line_is_told_behind_other_lines_too() -> None:
    for rule, names, texts in MUST:
        for text in texts:
            name = names.split()[0]
            lines = {match.line for match in found_in(f"\n\n{text}\n", name) if match.rule == rule}
            assert min(lines, default=0) >= 3, (text, name)


# ---- text ------------------------------------------------------------------------------------------------


def test_text_is_utf_8_and_utf_16_with_a_byte_order_mark() -> None:
    assert to_utf8("TODO: é".encode()) == "TODO: é".encode()
    assert to_utf8(b"") == b""
    marked = codecs.BOM_UTF8 + b"TODO"
    assert to_utf8(marked) == marked
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        content = mark + "a\r\n# TODO é 🙂\n".encode(codec)
        assert to_utf8(content) == "a\r\n# TODO é 🙂\n".encode()
        assert [match.line for match in find_matches(to_utf8(content) or b"", b"a.md", MARKERS)] == [2]


@pytest.mark.parametrize(
    "content",
    [
        b"TODO\0",
        b"\xff",
        b"TODO \xe9",
        b"\xc3",
        "TODO".encode("utf-16-le"),
        "TODO".encode("utf-32"),
        codecs.BOM_UTF16_LE + b"T",
        codecs.BOM_UTF16_LE + b"T\0\x00\xd8",
        codecs.BOM_UTF16_LE + b"T\0\0\0",
        codecs.BOM_UTF16_BE + b"\xdc\x00",
    ],
)
def test_other_bytes_are_binary(content: bytes) -> None:
    assert to_utf8(content) is None


def test_a_pointer_of_git_lfs_is_not_the_text() -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 15\n"
    assert to_utf8(pointer) is None
    assert to_utf8(pointer.replace(b"\n", b"\r\n")) is None
    # A document about it is text.
    assert to_utf8(b"# " + pointer) is not None
    assert to_utf8(pointer + b"# TODO\n" * 200) is not None


def test_only_a_first_part_may_end_within_a_character() -> None:
    for whole in ("aé🙂".encode(), codecs.BOM_UTF16_LE + "aé🙂".encode("utf-16-le")):
        for end in range(3, len(whole)):
            assert to_utf8(whole[:end], is_whole=False) is not None
        assert to_utf8(whole[:-1]) is None


@given(some.text(), some.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_text_of_any_encoding_is_the_same_text(written: str, codec: str) -> None:
    found = to_utf8(written.encode(codec, "surrogatepass"))
    if "\0" in written:
        assert found is None
    elif found is not None:
        assert (
            found.removeprefix(codecs.BOM_UTF8) == written.removeprefix("\ufeff").encode()
            or "\ufeff" in written
        )


# ---- lines and keys --------------------------------------------------------------------------------------


def test_lines_are_counted_by_lf_as_git_does() -> None:
    assert [match.line for match in found_in("a\r\n# TODO\r\n\r\nOwner: TBD\r\n")] == [2, 4]
    assert [match.line for match in found_in("a\rb\r# TODO\rc\nOwner: TBD\r")] == [1, 2]
    assert [match.line for match in found_in("a\u2028b\f\n# TODO")] == [2]


def test_lines_are_counted_through_a_large_text() -> None:
    text = ("x\n" * 300_000 + "# TODO\n") * 4
    assert [match.line for match in found_in(text)] == [300_001, 600_002, 900_003, 1_200_004]
    assert found_in("x" * 1_048_570 + "\nOwner: TBD")[0].line == 2


def test_a_byte_order_mark_hides_nothing() -> None:
    assert [match.line for match in found_in("\ufeff# TODO\n\ufeff")] == [1]
    assert [match.line for match in found_in("\ufeffTODO: write\n")] == [1]
    assert [match.line for match in found_in("\ufeffdef f(): pass\n", "a.py")] == [1]


def test_a_rule_tells_of_a_line_once() -> None:
    (one,) = found_in("# TODO: a FIXME: b TODO: c")
    assert (one.rule, one.marker, one.line) == ("placeholder-word", "todo", 1)
    assert [match.rule for match in found_in("# TODO <your name> [TBD] lorem ipsum")] == [
        "placeholder-word",
        "placeholder-bracket",
        "placeholder-hole",
        "placeholder-filler",
    ]


def test_a_key_survives_indentation_and_moving_but_no_change() -> None:
    (one,) = found_in("# TODO: a")
    (moved,) = found_in("x\n\n    # TODO: a  \r\n", "b.py")
    (other,) = found_in("# TODO: b")
    assert one.key == moved.key != other.key


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("a.py", "x = 1  # TODO: a", "y = todo()\t#  TODO: a"),
        ("a.c", "// TODO: a", "/* TODO: a */"),
        ("a.html", "<!-- TODO: a -->", "<b>x</b> <!-- TODO: a"),
        ("a.md", "a [TBD] b", "[TBD] b"),
        ("a.md", "Dear <your name>!", "Hello <your name>!"),
        ("a.md", "# Lorem ipsum", "Lorem ipsum"),
        ("a.js", 'throw new Error("not implemented");', 'x(); throw new Error("not implemented")'),
        ("a.json", '{"a": "x\\nTODO: a"}', '{"a": "y\\nTODO: a"}'),
    ],
)
def test_a_key_begins_with_the_mark_and_ends_before_the_comment_does(name: str, one: str, other: str) -> None:
    assert [each.key for each in found_in(one, name)] == [each.key for each in found_in(other, name)] != []


def test_the_key_of_a_body_is_the_name_of_its_function_and_its_kind() -> None:
    (one,) = found_in("def f(x):\n    pass\n", "a.py")
    (moved,) = found_in("class A:\n\n    async def f( x, y ):  # more\n\n        pass\n", "a.py")
    (other,) = found_in("def g(x):\n    pass\n", "a.py")
    (raises,) = found_in("def f(x):\n    raise NotImplementedError\n", "a.py")
    assert one.key == moved.key != other.key
    assert raises.key not in {one.key, other.key}


def test_a_body_knows_where_its_function_begins() -> None:
    assert [(each.line, each.head) for each in found_in("\n@x\ndef f(\n    x,\n):\n    pass\n", "a.py")] == [
        (6, 3)
    ]
    assert [(each.line, each.head) for each in found_in("x\ry\ndef f(): pass\n", "a.py")] == [(2, 2)]
    assert [each.head for each in found_in("# TODO: x\n", "a.py")] == [None]


# ---- the policy's own ------------------------------------------------------------------------------------


def test_markers_of_the_policy_are_found() -> None:
    """C4: markers are data of the repository."""
    assert [(match.rule, match.marker) for match in found_in("see ABC-0000", markers=OWN)] == [
        ("placeholder-marker", "ticket")
    ]
    assert found_in("see ABC-000", markers=OWN) == []


def test_the_cr_of_a_line_end_is_no_part_of_the_line_for_markers_of_the_policy() -> None:
    for end in ("\n", "\r\n"):
        text = end.join(("a", "Do it LATER", "later on", "later", ""))
        assert [match.line for match in found_in(text, markers=OWN)] == [2, 4]


def test_a_marker_of_the_policy_may_span_a_long_line() -> None:
    wide = Markers((MarkerSettings("wide", "BEGIN[^\n]{0,2000}UNDONE", "BEGIN UNDONE"),))
    span = "BEGIN" + "y" * 1990 + "UNDONE"
    for before in (0, 3000, 60_000, 64_000, 65_530, 65_536, 130_000, 200_000):
        assert found_in("x" * before + span + "z" * 5000, markers=wide), before
    assert not found_in("x" * 70_000 + "BEGIN" + "y" * 2001 + "UNDONE", markers=wide)


def test_a_policy_is_not_searched_for_its_own_markers() -> None:
    text = 'TODO: x\nmarkers = [{ name = "ticket", pattern = "ABC-0{4}", example = "see ABC-0000" }]\n'
    every = ["placeholder-word", "placeholder-marker"]
    assert [each.rule for each in found_in(text, "patchgate.toml", OWN)] == every[:1]
    assert [each.rule for each in found_in(text, "sub/patchgate.toml", OWN)] == every
    assert [each.rule for each in found_in(text, "pyproject.toml", OWN)] == every
    of_us = f"[tool.patchgate.claims]\n{text}"
    assert [each.rule for each in found_in(of_us, "pyproject.toml", OWN)] == every[:1]
    assert [each.rule for each in found_in(of_us, "other.toml", OWN)] == every


def test_a_marker_of_the_policy_without_literals_is_found_on_every_line() -> None:
    digits = Markers((MarkerSettings("digits", "^[0-9]{2,}$", "10"),))
    assert [match.line for match in found_in("10\na\n11\n1\n12", markers=digits)] == [1, 3, 5]


def test_a_long_line_is_searched_to_its_end() -> None:
    long = "a" * 10_000
    assert found_in(f"{long} see ABC-0000", markers=OWN)
    assert found_in(f"{long}. TODO: write {long}")
    assert found_in(f"{long} <your name> {long}")
    assert found_in(f"{long} [TBD] {long}")
    assert not found_in(f"{long} a TODO app {long}")


# ---- any text --------------------------------------------------------------------------------------------

PIECES = some.sampled_from(
    [
        "TODO",
        "todo",
        "FIXME",
        "TBD",
        "XXX",
        "PLACEHOLDER",
        "[",
        "]",
        "<",
        ">",
        "{{",
        "}}",
        "your",
        "insert",
        "here",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        ":",
        "#",
        "//",
        "/*",
        "*/",
        "-",
        "|",
        "`",
        '"',
        "'",
        "(",
        ")",
        "=",
        ",",
        "def f():",
        "class A:",
        "    ",
        "pass",
        "...",
        "raise NotImplementedError",
        "@abstractmethod",
        "ABC-0000",
        "lorem",
        "ipsum",
        "_",
        "name",
        "word",
        "é",
        "\u2028",
        "\x0c",
        "throw new Error(",
        "not implemented",
        "todo!()",
    ]
)


@settings(max_examples=often(150))
@given(
    some.lists(PIECES, max_size=40).map("".join), some.sampled_from(NAMES), some.sampled_from([MARKERS, OWN])
)
def test_what_matches_is_suspected(text: str, name: str, markers: Markers) -> None:
    content = text.encode()
    lines = content.split(b"\n")
    found = find_matches(content, name.encode(), markers)
    suspected = {index + 1 for index in markers.suspects(lines)}
    assert {match.line for match in found} <= suspected
    assert not found or markers.may_suspect(content, 0, len(content))
    assert len({(match.line, match.rule) for match in found}) == len(found)
    for match in found:
        # As git prints an added line.
        diff = b"+" + lines[match.line - 1] + b"\n"
        texts, small_texts = markers.literals_of_all() or ((b"",), ())
        assert any(each in diff for each in texts) or any(each in diff.lower() for each in small_texts)


@given(some.binary(max_size=300), some.sampled_from(NAMES))
def test_no_text_stops_the_search(content: bytes, name: str) -> None:
    assert {match.line for match in find_matches(content, name.encode(), OWN)} <= set(range(1, 302))


@pytest.mark.parametrize(
    "piece",
    [
        "TODO ",
        "#TODO_",
        "<your ",
        "[INSERT ",
        "{{ your ",
        "your_a",
        "lorem ",
        "raise NotImplementedError ",
        "# - ",
        "(",
        '"',
        "`TODO",
        "not implemented",
        'throw new Error("',
        "pass;",
        "...",
        "a:pass ",
        "<a",
        "/*",
        "TODO\r",
    ],
)
def test_a_line_of_twice_the_length_takes_twice_the_steps(piece: str) -> None:
    """The windows of a long line are steps, too; that none takes long in one, `test_markers` holds."""
    for name in (b"a.md", b"a.py", b"a.js", b"a.json"):
        few, more = (
            steps(partial(find_matches, (piece * (size // len(piece))).encode(), name, MARKERS))
            for size in (10_000, 20_000)
        )
        assert more <= 2.5 * few + 100


def steps(run: Callable[[], object]) -> int:
    """Count the calls of functions that a run takes."""
    seen = 0

    def note(_frame: object, event: str, _of: object) -> None:
        nonlocal seen
        seen += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return seen


# ---- time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.md", "a.py"])
@pytest.mark.parametrize("line", ["# TODO\n", "a todo app\n", "x = [TBD] " + "x" * 100 + "\n"])
def test_the_search_asks_for_the_time_and_ends_with_it(name: str, line: str) -> None:
    text = line.encode() * 2000
    asked = count(1)
    found = find_matches(text, name.encode(), MARKERS, lambda: next(asked) > 3)
    assert next(asked) == 5
    whole = find_matches(text, name.encode(), MARKERS)
    assert found == whole[: len(found)]
    assert len(found) < len(whole) or not whole
    asked = count()
    assert find_matches(text, name.encode(), MARKERS, lambda: next(asked) < 0) == whole
    assert next(asked) >= 2000 // 256


def test_a_long_line_counts_as_many() -> None:
    asked = count()
    find_matches(b"x" * 100_000 + b" TODO: x\n# TODO\n", b"a.md", MARKERS, lambda: next(asked) < 0)
    assert next(asked) >= 1
