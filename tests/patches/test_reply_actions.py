"""The table of actions: every row is held to its own words (E1, E4-E7, E18), each action by name (E6-E8)."""

from __future__ import annotations

import json
import re

import pytest

from patchgate.patches.reply_actions import ACTIONS, describe, example_of, read_reply, table
from patchgate.patches.reply_grammar import Parameter, ParameterKind, Proposal, ReplyAction
from tests.patches.reply_world import block, cdata, faults, holds, only, parameter, read, rules

DIFF = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
EDITS = '{"patch": {"edits": [{"path": "a", "start": 1, "end": 1, "new_text": "2\\n"}]}}'
ROWS = [(action, each) for action in ACTIONS for each in action.parameters]

every_action = pytest.mark.parametrize("action", ACTIONS, ids=lambda action: str(action.name))
every_parameter = pytest.mark.parametrize(
    ("action", "row"), ROWS, ids=[f"{action.name}-{row.name}" for action, row in ROWS]
)


def value_of(row: Parameter) -> str:
    """Give a value that its kind takes."""
    values = {
        ParameterKind.TEXT: "a text",
        ParameterKind.STRINGS: '["a"]',
        ParameterKind.NUMBER: str(row.most),
        ParameterKind.PATCH: DIFF,
        ParameterKind.EDITS: EDITS,
    }
    return values[row.kind]


def needed(action: ReplyAction, row: Parameter | None = None) -> list[tuple[str, str]]:
    """Give what an action needs, names and values; `row` is among it, last, and its alternatives are not."""
    names = [each.name for each in action.parameters if each.required]
    for group in action.one_of:
        names += [] if row is not None and row.name in group else [group[0]]
    if row is not None:
        names = [*(name for name in names if name != row.name), row.name]
    found = [action.find(name) for name in names]
    return [(each.name, value_of(each)) for each in found if each]


def reply_of(action: ReplyAction, values: list[tuple[str, str]]) -> str:
    """Write a reply, a parameter on each line (a patch on several)."""
    return block(action.name, *(parameter(name, value) for name, value in values))


# Every row of the table.


@every_action
def test_the_example_of_every_action_holds_as_it_is_told(action: ReplyAction) -> None:
    """E1, E18."""
    reading = holds(example_of(action))
    assert reading.action == action.name
    assert set(action.example) <= set(reading.params)
    assert example_of(action) in describe()


@every_action
def test_an_action_holds_with_just_what_it_needs(action: ReplyAction) -> None:
    """E6, E18."""
    reading = holds(reply_of(action, needed(action)))
    defaults = {row.name: row.default for row in action.parameters if row.default is not None}
    assert defaults.items() <= reading.params.items()


@every_parameter
def test_each_parameter_is_taken_once_and_not_twice(action: ReplyAction, row: Parameter) -> None:
    """E4."""
    values = needed(action, row)
    assert row.name in holds(reply_of(action, values)).params
    fault = only(reply_of(action, [*values, values[-1]]), "duplicate-param")
    assert f"`{row.name}`" in fault.message
    lines = parameter(*values[-1]).count("\n")
    assert fault.details["first_line"] == (fault.line or 0) - lines


@pytest.mark.parametrize(
    ("action", "row"),
    [(action, row) for action, row in ROWS if row.required],
    ids=lambda each: str(each.name),
)
@pytest.mark.parametrize("blank", [None, "", " \n", cdata(""), cdata("\n")])
def test_a_required_parameter_must_be_there_and_not_empty(
    action: ReplyAction, row: Parameter, blank: str | None
) -> None:
    """E6."""
    others = [(name, value) for name, value in needed(action) if name != row.name]
    given = others if blank is None else [(row.name, blank), *others]
    fault = only(reply_of(action, given), "missing-required-param")
    assert (fault.line, f"`{row.name}`" in fault.message) == (1 if blank is None else 2, True)


@every_action
def test_no_action_takes_a_parameter_that_is_not_in_its_row(action: ReplyAction) -> None:
    """E5."""
    fault = only(reply_of(action, [*needed(action), ("zzz", "1")]), "unknown-param")
    assert all(row.name in fault.hint for row in action.parameters)
    assert fault.details["actual"] == "zzz"


@every_parameter
def test_a_misspelt_parameter_is_told_with_the_right_word(action: ReplyAction, row: Parameter) -> None:
    """E5."""
    reply = reply_of(action, [(row.name + "x", value_of(row))])
    hints = [fault.hint for fault in faults(reply) if fault.rule == "unknown-param"]
    (hint,) = hints
    assert f"`{row.name}`" in hint


@every_parameter
def test_a_json_parameter_takes_only_its_json_and_a_text_anything(
    action: ReplyAction, row: Parameter
) -> None:
    """E7."""
    reply = reply_of(action, [*needed(action, row)[:-1], (row.name, "1 day, [maybe")])
    if row.kind.is_json:
        assert only(reply, "invalid-json-param").line == reply.count("\n") - 1
    else:
        assert holds(reply).params[row.name] == "1 day, [maybe"


def test_an_action_is_added_by_one_entry() -> None:
    """E1, E18: validation and description need nothing else."""
    ask = ReplyAction(
        "ask",
        "ask a person",
        (Parameter("question", ParameterKind.TEXT, "what", required=True),),
        {"question": "1?"},
    )
    actions = (*ACTIONS, ask)
    assert read_reply(example_of(ask).encode(), actions).params == {"question": "1?"}
    assert [each.rule for each in read_reply(b"<function=ask></function>", actions).faults] == [
        "missing-required-param"
    ]
    assert "ask: ask a person\n  question (required, text): what\n" in describe(actions)
    assert read(example_of(ask)).faults[0].rule == "unknown-action"


def test_the_table_as_a_document_has_every_parameter() -> None:
    """E1."""
    told = json.loads(json.dumps(table()))
    assert [(each["name"], [row["name"] for row in each["parameters"]]) for each in told["actions"]] == [
        (action.name, [row.name for row in action.parameters]) for action in ACTIONS
    ]
    for each in told["actions"]:
        assert holds(each["example"]).action == each["name"]


def test_the_description_names_every_parameter_and_its_bounds() -> None:
    """E1."""
    told = describe()
    for _, row in ROWS:
        assert f"\n  {row.name} (" in told
    assert "hop (optional, JSON number, 0 to 2, else 1)" in told
    assert "limit (optional, JSON number, 1 to 100, else 20)" in told
    assert "patch (either this or edits, a unified diff)" in told


# The actions by name.


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("explor", "explore"),
        ("Explore", "explore"),
        ('"repair"', "repair"),
        (" noop ", "noop"),
        ("submit/", "submit"),
    ],
)
def test_an_unknown_action_is_told_with_the_one_that_may_be_meant(name: str, meant: str) -> None:
    """E1."""
    fault = only(block(name), "unknown-action")
    assert re.findall(r"`(.+?)`", fault.hint) == [meant]
    assert fault.details["actual"] == name


@pytest.mark.parametrize("name", ["", "delete_everything", "x" * 200])
def test_an_unknown_action_that_resembles_none_lists_them_all(name: str) -> None:
    """E1."""
    hint = only(block(name), "unknown-action").hint
    assert hint.endswith(" explore, memory, repair, submit, noop")


def test_explore_takes_its_anchors_and_has_defaults() -> None:
    """E18."""
    reading = holds(block("explore", parameter("anchors", '\n["src/a.py", "größe"]\n')))
    assert reading.params == {"anchors": ["src/a.py", "größe"], "hop": 1, "limit": 20}
    assert reading.notes == ()


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("hop", "0", 0),
        ("hop", "2", 2),
        ("limit", "1", 1),
        ("limit", " 100\r\n", 100),
        ("hop", cdata("1"), 1),
    ],
)
def test_numbers_within_their_bounds_are_taken(name: str, value: str, taken: int) -> None:
    """E7, E20."""
    reading = holds(block("explore", parameter("anchors", '["a"]'), parameter(name, value)))
    assert (reading.params[name], reading.notes) == (taken, ())


@pytest.mark.parametrize(
    ("name", "value", "taken"), [("hop", "3", 2), ("limit", "101", 100), ("limit", "9" * 10_000, 100)]
)
def test_larger_numbers_are_capped_with_a_note(name: str, value: str, taken: int) -> None:
    """E7."""
    reading = holds(block("explore", parameter("anchors", '["a"]'), parameter(name, value)))
    assert reading.params[name] == taken
    (note,) = reading.notes
    assert f"`{name}` is {value[:24]}" in note
    assert note.endswith(f"more than {taken}: {taken} is used")
    assert len(note) < 100


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("hop", "-1", "less than 0"),
        ("limit", "0", "less than 1"),
        ("limit", "-" + "9" * 10_000, "less than 1"),
        ("hop", "1.0", "not whole"),
        ("hop", "1e9", "not whole"),
        ("hop", '"1"', "a text"),
        ("hop", "true", "true or false"),
        ("hop", "null", "null"),
        ("hop", "[1]", "a list"),
        ("hop", "one", "not JSON"),
        ("hop", "", "not JSON"),
        ("hop", "01", "not JSON"),
        ("hop", "NaN", "not JSON"),
        ("limit", "1 2", "not JSON"),
    ],
)
def test_numbers_below_their_bounds_and_what_is_no_whole_number_are_refused(
    name: str, value: str, says: str
) -> None:
    """E7."""
    reply = block("explore", parameter("anchors", '["a"]'), parameter(name, value))
    fault = only(reply, "invalid-json-param")
    assert fault.line == 3
    assert says in fault.message
    assert f"`{name}` " in fault.hint
    assert len(fault.message) < 120


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("src/a.py", "not JSON"),
        ('"src/a.py"', "a text, not a list"),
        ("[]", "an empty list"),
        ('["a", 1]', "element 2 of `anchors` is a number"),
        ('["a", 123456789012345678901234567890]', "element 2 of `anchors` is a number"),
        ("[null]", "element 1 of `anchors` is null"),
        ('["a", " "]', "element 2 of `anchors` is empty"),
        ('["\\ud800"]', "half a surrogate pair"),
        ('{"a": 1}', "an object"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 40 + "]" * 40, "nested too deeply"),
        ("['a']", "not JSON"),
        ('["a",]', "not JSON"),
    ],
)
def test_anchors_are_a_json_list_of_strings(value: str, says: str) -> None:
    """E7."""
    fault = only(block("explore", parameter("anchors", value)), "invalid-json-param")
    assert says in fault.message


def test_a_single_anchor_without_json_is_told_with_the_json_to_write() -> None:
    """E7."""
    fault = only(block("explore", parameter("anchors", "src/a.py")), "invalid-json-param")
    assert fault.hint.startswith("`anchors` ")
    assert fault.hint.endswith(': ["src/a.py"]')


def test_the_line_of_a_json_fault_is_that_in_the_reply() -> None:
    """E7."""
    several = block("explore", parameter("anchors", '\n[\n"a",\nb\n]\n'))
    assert only(several, "invalid-json-param").line == 5
    pieces = block("explore", parameter("anchors", cdata("[\n") + cdata("\nb]")))
    assert only(pieces, "invalid-json-param").line == 2


def test_memory_needs_a_target_and_an_intent() -> None:
    """E6, E18."""
    reading = holds(block("memory", parameter("target", "a.py"), parameter("intent", "2 reasons")))
    assert reading.params == {"target": "a.py", "intent": "2 reasons"}
    assert rules(block("memory")) == ["missing-required-param", "missing-required-param"]


@pytest.mark.parametrize("written", [DIFF, cdata(DIFF)], ids=["plain", "CDATA"])
def test_a_repair_proposes_its_patch_byte_for_byte(written: str) -> None:
    """E6, E20."""
    reading = holds(block("repair", parameter("subplan", "3 files to change"), parameter("patch", written)))
    assert reading.proposal == Proposal("patch", DIFF.encode())
    assert reading.params == {"subplan": "3 files to change", "patch": DIFF}


def test_no_byte_of_a_patch_is_normalised() -> None:
    """E20: CRLF inside a patch are the patch's, also where the rest of the reply has them too."""
    crlf = DIFF.replace("\n", "\r\n") + "\r\n"
    for written in (crlf, cdata(crlf)):
        reply = block("repair", parameter("subplan", "x"), parameter("patch", written)).replace(
            "</param>\n", "</param>\r\n"
        )
        assert holds(reply).proposal == Proposal("patch", crlf.encode())


def test_a_patch_that_holds_the_end_of_cdata_is_written_in_two_sections() -> None:
    """E20."""
    patch = DIFF.replace("+2", "+x[y[0]]>1")
    written = cdata(patch).replace("]]>1", "]]]]><![CDATA[>1")
    reading = holds(block("repair", parameter("subplan", "x"), parameter("patch", written)))
    assert reading.proposal == Proposal("patch", patch.encode())


def test_a_repair_proposes_edits_as_they_were_written() -> None:
    """E6, E8."""
    reading = holds(block("repair", parameter("subplan", "x"), parameter("edits", EDITS)))
    assert reading.proposal == Proposal("edits", EDITS.encode())
    assert reading.params["edits"] == json.loads(EDITS)


def test_a_repair_needs_its_subplan_and_one_proposal() -> None:
    """E6."""
    assert rules(block("repair")) == ["missing-required-param", "missing-required-param"]
    fault = only(block("repair", parameter("patch", cdata(DIFF))), "missing-required-param")
    assert re.findall(r"`(.+?)`", fault.message) == ["subplan"]
    fault = only(block("repair", parameter("subplan", "x")), "missing-required-param")
    assert re.findall(r"`(.+?)`", fault.message) == ["patch", "edits"]
    empty = block("repair", parameter("subplan", "x"), parameter("patch", "\n"))
    assert only(empty, "missing-required-param").line == 3


def test_a_repair_takes_a_patch_or_edits_but_not_both() -> None:
    """E4."""
    reply = block(
        "repair", parameter("subplan", "x"), parameter("edits", EDITS), parameter("patch", cdata(DIFF))
    )
    fault = only(reply, "duplicate-param")
    assert fault.line == 4
    assert fault.details["first_line"] == 3
    assert "`patch` or `edits`" in fault.message


def test_edits_that_are_no_json_are_refused_before_the_gate() -> None:
    """E7, E8: what they must hold is the gate's to say."""
    assert rules(block("repair", parameter("subplan", "x"), parameter("edits", "{"))) == [
        "invalid-json-param"
    ]
    for given in ("{}", "[]", "1.5", '{"patch": {"edits": []}}'):
        assert holds(block("repair", parameter("subplan", "x"), parameter("edits", given))).proposal


def test_a_parameter_of_another_action_is_told_with_its_owner() -> None:
    """E5."""
    fault = only(block("submit", parameter("subplan", "x")), "unknown-param")
    assert all(word in fault.hint for word in ("submit", "summary", "`subplan`", "repair"))


def test_submit_and_noop_need_nothing() -> None:
    """E18."""
    assert holds(block("submit")).params == {}
    assert holds(block("noop")).params == {}
    assert holds(block("submit", parameter("summary", "1 file"))).params == {"summary": "1 file"}
