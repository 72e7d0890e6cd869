"""The form of a reply: blocks, parameters, CDATA, and the line of each fault (E2-E5, E20)."""

from __future__ import annotations

import pytest

from patchgate.patches import reply_grammar
from tests.patches.reply_world import block, cdata, faults, holds, only, parameter, read, rules

NOOP = block("noop")
REASON = parameter("reason", "a")


# What holds.


@pytest.mark.parametrize(
    "reply",
    [
        "<function=noop></function>",
        NOOP,
        "\n \t\r\n" + NOOP + "\n\n",
        "<function=noop>" + parameter("reason", "a") + "</function>",
        '<function=noop>\r\n<param name="reason">a</param>\r\n</function>\r\n',
    ],
    ids=["bare", "lines", "white space around", "one line", "CRLF"],
)
def test_one_block_with_nothing_but_white_space_around_it_holds(reply: str) -> None:
    """E2, E20."""
    assert holds(reply).action == "noop"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a < b && c > d", "a < b && c > d"),
        ("&lt;b&gt; &amp; &#65;", "&lt;b&gt; &amp; &#65;"),
        ("<b>bold</b> <param> <function> </params>", "<b>bold</b> <param> <function> </params>"),
        ("a ]]> b", "a ]]> b"),
        ("  \n a\n  b \n", "a\n  b"),
        ("a\r\nb\r\n", "a\nb"),
        ("3 files to change", "3 files to change"),
        ("7", "7"),
        ("[1]", "[1]"),
        ('{"a": 1}', '{"a": 1}'),
        ("true", "true"),
        ("größer 🙂", "größer 🙂"),
        ("", ""),
    ],
)
def test_plain_text_is_itself_without_the_white_space_around_it(value: str, text: str) -> None:
    """E20: no entity is decoded, CRLF is read as LF, and no text is taken for JSON, however it begins."""
    assert holds(block("noop", parameter("reason", value))).params == {"reason": text}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            cdata('</function></param><param name="x"><function=submit>'),
            '</function></param><param name="x"><function=submit>',
        ),
        (cdata(" a\r\n"), " a\r\n"),
        ("\n" + cdata("\na\n") + "\n  ", "\na\n"),
        (cdata("a") + cdata("b") + " \n " + cdata("c"), "abc"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        (cdata("<![CDATA["), "<![CDATA["),
        (cdata(""), ""),
        (cdata("&amp;"), "&amp;"),
    ],
    ids=["tags", "CRLF", "layout around", "several", "its own end", "its own start", "empty", "entity"],
)
def test_what_stands_in_cdata_is_text_byte_for_byte(value: str, text: str) -> None:
    """E2: CDATA that holds `</function>` is text."""
    assert holds(block("noop", parameter("reason", value))).params == {"reason": text}


# What does not hold.


@pytest.mark.parametrize(
    ("reply", "line", "says"),
    [
        ("", 1, "empty"),
        (" \r\n\t", 1, "empty"),
        ("I have finished.\nAll is well.", 1, "no `<function=NAME>` tag"),
        ("a\n<function>noop</function>", 2, "no `<function=NAME>` tag"),
        ("</function>", 1, "no `<function=NAME>` tag"),
        ("<Function=noop></Function>", 1, "no `<function=NAME>` tag"),
        ("\n<function=noop>", 2, "`<function=noop>` of line 2 is not closed"),
        ("<function=noop>\n" + REASON, 1, "`<function=noop>` of line 1 is not closed"),
        ("<function=noop\n></function>", 1, "not closed by `>`"),
        ("<function=noop", 1, "not closed by `>`"),
        ('<function=noop>\n<param name="reason">a', 2, "`reason` is not closed"),
        ('<function=noop>\n<param name="reason">a\n</function>', 2, "before the `</function>` of line 3"),
        (
            '<function=repair>\n<param name="subplan">a\n<param name="patch">b</param></function>',
            2,
            'before the `<param name="` of line 3',
        ),
        (
            '<function=noop>\n<param name="reason">\n<![CDATA[a</param></function>',
            3,
            "CDATA section of `reason`",
        ),
        (
            '<function=noop>\n<param name="reason"><![CDATA[a]]</param></function>',
            2,
            "CDATA section of `reason`",
        ),
    ],
)
def test_a_reply_without_a_whole_block_lacks_its_tag(reply: str, line: int, says: str) -> None:
    """E2: none, unclosed, or a tag in it unclosed; each is told once."""
    fault = only(reply, "missing-function-tag")
    assert fault.line == line
    assert says in fault.message


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (NOOP + NOOP, 3),
        (NOOP + block("submit") + block("noop"), 3),
        ("<function=noop>\n" + NOOP, 2),
        (block("noop", parameter("reason", "as in\n<function=submit>")), 3),
    ],
    ids=["two", "three", "inside", "in a text"],
)
def test_a_second_function_tag_is_told_once(reply: str, line: int) -> None:
    """E3."""
    fault = only(reply, "invalid-multi-block")
    assert fault.line == line
    assert "CDATA" in fault.hint


def test_a_block_inside_a_closed_block_leaves_an_end_over() -> None:
    """E3."""
    assert rules("<function=noop>\n" + NOOP + "</function>") == ["invalid-multi-block", "extra-text"]


def test_the_faults_of_every_block_are_told() -> None:
    """E3, E5, E10."""
    assert rules(block("nop") + block("noop", parameter("x", "1"))) == [
        "unknown-action",
        "invalid-multi-block",
        "unknown-param",
    ]


@pytest.mark.parametrize(
    ("reply", "line", "says"),
    [
        ("Here it is:\n" + NOOP, 1, "Here it is:"),
        (NOOP + "\nThat is all.", 4, "That is all."),
        ("```xml\n" + NOOP.rstrip(), 1, "```xml"),
        ("<tool_call>\n" + NOOP.rstrip(), 1, "<tool_call>"),
        (NOOP + "</function>", 3, "</function>"),
        ("<function=noop>\nnothing\n" + REASON + "</function>", 2, "nothing"),
        ("<function=noop>" + REASON + "x</function>", 2, "x"),
        ("<function=noop>\n</param></function>", 2, "</param>"),
        ("<function=noop>" + cdata("a") + "</function>", 1, "<![CDATA[a]]>"),
        ("<function=noop><!-- a --></function>", 1, "<!-- a -->"),
        ("<function=noop>\n<param name='reason'>a</param></function>", 2, "<param name='reason'>a"),
        (
            "<function=noop>\n<parameter=reason>" + cdata("</function>") + "</parameter></function>",
            2,
            "<parameter",
        ),
        ('<function=noop>\n<param name="rea\nson">a</param></function>', 2, '<param name="rea'),
        (block("noop", parameter("reason", "see " + cdata("a"))), 2, "see"),
        (block("noop", parameter("reason", cdata("a[b[0]]>1") + "\n")), 2, "1]]>"),
    ],
)
def test_text_that_belongs_to_no_value_is_told_with_its_line(reply: str, line: int, says: str) -> None:
    """E2: nothing is dropped without a word."""
    fault = only(reply, "extra-text")
    assert fault.line == line
    assert says in fault.message


def test_a_tag_that_is_nearly_one_is_told_with_the_right_form() -> None:
    """E4."""
    reply = '<function=noop>\n<parameter name="reason">a</parameter>\n</function>'
    assert only(reply, "extra-text").hint.endswith(' <param name="NAME">value</param>')


def test_no_parameter_is_called_missing_where_one_may_have_been_lost() -> None:
    """E6: a cut, a tag that is nearly one, a block that was left open."""
    start = "<function=repair>\n" + parameter("subplan", "x")
    assert rules(start) == ["missing-function-tag"]
    assert rules(start + "<param name='patch'>y</param></function>") == ["extra-text"]
    assert rules(start + '<param name="pat\nch">y</param></function>') == ["extra-text"]
    assert rules(start + block("noop")) == ["invalid-multi-block"]
    assert rules("<function=memory>\n" + parameter("target", "x")) == ["missing-function-tag"]
    assert rules(start + "</function>") == ["missing-required-param"]


def test_all_faults_of_a_reply_are_told_at_once_in_the_order_of_its_lines() -> None:
    """E2-E7."""
    reply = "Sure!\n" + block(
        "explore",
        parameter("anchors", "a"),
        parameter("hop", '"1"'),
        parameter("deep", "1"),
        parameter("hop", "1"),
    )
    found = [(fault.line, fault.rule) for fault in faults(reply + "Done.")]
    assert found == [
        (1, "extra-text"),
        (3, "invalid-json-param"),
        (4, "invalid-json-param"),
        (5, "unknown-param"),
        (6, "duplicate-param"),
        (8, "extra-text"),
    ]


@pytest.mark.parametrize(
    ("raw", "rule", "line"),
    [
        (b"\xef\xbb\xbf<function=noop></function>", "encoding-unsupported", 1),
        (b"<function=noop>\n\xff</function>", "encoding-unsupported", 2),
        ("<function=noop></function>".encode("utf-16"), "encoding-unsupported", 1),
        (b"<function=noop>\n\xed\xa0\x80</function>", "encoding-unsupported", 2),
        (b"<function=noop></function>" + b"\n" * reply_grammar.MAX_REPLY_BYTES, "patch-too-large", 1),
    ],
    ids=["byte-order mark", "no UTF-8", "UTF-16", "surrogate", "too large"],
)
def test_bytes_that_are_no_text_are_not_read(raw: bytes, rule: str, line: int) -> None:
    """E15."""
    assert only(raw, rule).line == line


def test_what_is_told_of_a_reply_is_safe_for_a_terminal() -> None:
    hostile = "\x1b[2J\u202e"
    reply = f'{hostile}\n<function={hostile}>{hostile}<param name="{hostile}">{hostile}</param></function>'
    other = block("noop", f'<param name="{hostile}">a</param>' * 2, parameter("reason", cdata("a") + hostile))
    for fault in (*faults(reply), *faults(other)):
        assert (fault.message + fault.hint).isprintable()


def test_more_parameters_than_any_action_has_are_not_read() -> None:
    """E4."""
    many = "".join(parameter(f"p{number}", "") for number in range(200))
    found = faults("<function=nop>\n" + many + "</function>")
    assert [fault.rule for fault in found] == ["unknown-action", "extra-text"]
    assert found[1].line == 2 + reply_grammar.MAX_PARAMETERS


def test_a_reply_full_of_faults_tells_the_first_twenty() -> None:
    reply = "<function=memory>\n" + "</param>\n" * 1000 + "</function>"
    assert [fault.line for fault in read(reply).faults] == list(range(2, 22))
    assert len(reply_grammar.read_blocks(reply.encode())[1]) == 20
    strangers = block("noop", *(parameter(f"p{number}", "") for number in range(60)))
    assert [fault.line for fault in read(strangers).faults] == list(range(2, 22))
