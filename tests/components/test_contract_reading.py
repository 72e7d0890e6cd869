"""What a contract says by itself: its shape, doubled names, side effects, vague words, types."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.components.contract_facts import ContractMistake, facts_from_json, facts_to_json
from patchgate.components.contract_model import KEYWORDS, Contract, json_schema
from patchgate.components.contract_reading import MOST_MISTAKES, facts_of, read_contract
from patchgate.report.rules import Level
from patchgate.report.rules.contracts import CONTENT_OF_CONTRACT_RULES
from tests.components.contract_world import GOOD, good, raw_of, with_value

LEVELS = {rule.id: rule.level for rule in CONTENT_OF_CONTRACT_RULES}
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", "none", "int", "list[", "etc."]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "kind", "x"]), inner)
    ),
    max_leaves=6,
)


def mistakes(contract: Any) -> tuple[ContractMistake, ...]:
    return facts_of(contract if isinstance(contract, bytes) else raw_of(contract)).mistakes


def only(contract: Any) -> ContractMistake:
    found = mistakes(contract)
    assert len(found) == 1, found
    return found[0]


def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


# The good one.


def test_a_good_contract_has_no_mistakes_and_tells_its_facts() -> None:
    raw = raw_of(GOOD)
    facts = facts_of(raw)
    lines = raw.decode().split("\n")
    assert facts.is_readable
    assert facts.mistakes == ()
    assert (facts.component_id, facts.version) == ("shaping", "1.2.0")
    assert '"component_id"' in lines[(facts.component_id_line or 0) - 1]
    assert [each.name for each in facts.dependencies] == ["schemas", "Store"]
    assert [each.where for each in facts.externals] == [
        "external_dependencies[0]",
        "external_dependencies[1]",
    ]
    for each in (*facts.dependencies, *facts.externals):
        assert f'"{each.name}"' in lines[(each.line or 0) - 1]
    assert [(each.function, each.kind, each.limit) for each in facts.budgets] == [
        ("shape", "p95_latency_ms", 100),
        ("shape", "max_memory_mb", 1.5),
    ]
    assert all(each.kind in lines[(each.line or 0) - 1] for each in facts.budgets)


def test_the_model_holds_what_was_written() -> None:
    contract = read_contract(raw_of(GOOD))
    assert contract is not None
    shape, reset = contract.functions
    assert shape.examples[0].inputs == {"order": {"id": 1}, "rates": {}}
    assert repr(shape.examples[0].output) == "[[1, 2.0]]"
    assert shape.error_cases[0].inputs == {"order": {}}
    assert (reset.output, reset.performance_budget, reset.error_cases) == (None, None, ())


def test_the_least_contract_is_an_id_and_a_version() -> None:
    assert mistakes({"component_id": "a", "version": "1"}) == ()


def test_facts_come_back_from_json_as_they_were() -> None:
    for contract in (GOOD, {**good(), "version": 1}, with_value("functions.0.output.type", "Ordr")):
        facts = facts_of(raw_of(contract))
        assert facts_from_json(json.loads(json.dumps(facts_to_json(facts)))) == facts


def test_the_published_schema_takes_the_good_contract() -> None:
    assert validator().is_valid(GOOD)


# The shape.


@pytest.mark.parametrize(
    ("path", "value", "words", "hint"),
    [
        ("colour", 1, "`colour`", "component_id, "),
        ("functons", [], "`functons`", "`functions`"),
        ("functions.0.example", [], "`example`", "`examples`"),
        ("functions.0.examples.0.outputs", 1, "`outputs`", "`output`"),
        ("functions.0.error_cases.0.raises", "x", "`raises`", "error, condition, inputs"),
        ("component_id", "", "cannot", " 64 "),
        ("component_id", 7, "string, got 7", "schema contract"),
        ("version", 1.2, "string, got 1.2", "schema contract"),
        ("version", "new", "`new`", "1.2.0"),
        ("description", None, "string, got null", "schema contract"),
        ("dependencies", "schemas", 'list, got "schemas"', "schema contract"),
        ("dependencies", {}, "list, got an object", "schema contract"),
        ("dependencies.0", "", " 400 ", "component"),
        ("external_dependencies.0", "../other", "outside", "root"),
        ("external_dependencies.0", "a/../../b", "outside", "root"),
        ("external_dependencies.0", "/etc/passwd", "outside", "root"),
        ("external_dependencies.0", "C:/x", "outside", "root"),
        ("external_dependencies.0", "a\\b", "outside", "root"),
        ("functions.0.name", "two words", "`two words` is not a name", " 100 "),
        ("functions.0.name", "größe", "is not a name", " 100 "),
        ("functions.0.name", "import", "keyword", "another"),
        ("functions.0.inputs.0.name", "x=1", "is not a name", " 100 "),
        ("functions.0.examples.0.inputs", {"a b": 1}, "`a b` is not a name", " 100 "),
        ("functions.0.error_cases.0.error", "os.system()", "is not a name", " 100 "),
        ("functions.0.error_cases.0.inputs", [], "object, got a list", "schema contract"),
        ("functions.0.side_effects.0.kind", "loging", "none, reads_file", "`logging`?"),
        ("functions.0.side_effects.0.target", " ", "target", "read"),
        ("functions.0.side_effects.0", {"kind": "reads_file"}, "target", "read"),
        ("functions.0.side_effects.0", 5, "object, got 5", "schema contract"),
        ("functions.0.idempotent", 1, "false, got 1", "schema contract"),
        ("functions.0.performance_budget.p95_latency_ms", 0, " 1 or more, got 0", "schema"),
        ("functions.0.performance_budget.max_memory_mb", 0.5, " 1 or more, got 0.5", "schema"),
        ("functions.0.performance_budget.max_memory_mb", True, "number, got true", "schema"),
        ("functions.0.performance_budget.p95_latency_ms", "9", 'number, got "9"', "schema"),
        ("functions.0.performance_budget.p95_latency_ms", 10**10, "at most 1,000,000,000", "schema"),
        ("functions.0.examples.0", {"inputs": {}}, "`output` is missing", "add"),
        ("functions.0", "shape", 'object, got "shape"', "schema contract"),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(path: str, value: Any, words: str, hint: str) -> None:
    contract = with_value(path, value)
    found = only(contract)
    assert found.rule == "contract-invalid"
    assert words in found.message
    assert hint in found.hint
    assert found.line
    spelled = ".".join(f"[{part}]" if part.isdecimal() else part for part in path.split(".")).replace(
        ".[", "["
    )
    assert found.where.startswith(spelled)
    assert read_contract(raw_of(contract)) is None


def test_a_key_that_is_missing_is_told_at_its_object() -> None:
    contract = good()
    del contract["functions"][1]["name"], contract["version"]
    raw = raw_of(contract)
    version, name = mistakes(raw)
    assert (version.where, version.line) == ("version", 1)
    assert {"`version`", "missing"} <= set(version.message.split())
    assert name.where == "functions[1].name"
    assert {"`name`", "missing"} <= set(name.message.split())
    assert raw.decode().split("\n")[(name.line or 0) - 1] == "    {"


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        (b"", 1, "empty"),
        (b"[]", 1, "JSON object"),
        (b"\n\n7", 3, "JSON object"),
        (b'{"component_id": "a",\n"version": }', 2, "not JSON"),
        (b"{" * 100_000, 1, "not JSON"),
        (b'{"a":' * 100_000, 1, "nested"),
        (b'{"version": NaN}', 1, "NaN"),
        (b"<<<<<<< HEAD\n{}", 1, "conflict marker"),
    ],
)
def test_what_is_no_contract_at_all_is_one_mistake(raw: bytes, line: int, words: str) -> None:
    facts = facts_of(raw)
    assert not facts.is_readable
    assert (facts.component_id, facts.version, facts.dependencies) == (None, None, ())
    found = only(raw)
    assert (found.rule, found.line, found.where) == ("contract-invalid", line, "")
    assert words in found.message


def test_a_contract_that_names_itself_twice_is_told_with_both_lines() -> None:
    raw = b'{"component_id": "a",\n "version": "1",\n "component_id": "b"}'
    found = only(raw)
    assert (found.line, found.where) == (3, "component_id")
    assert found.message.endswith(" line 1")
    assert not facts_of(raw).is_readable
    assert read_contract(raw) is None


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("functions.2", {"name": "shape", "side_effects": [{"kind": "none"}]}, "function `shape`"),
        ("types.1", {"name": "Order"}, "type `Order`"),
        ("types.0.fields.2", {"name": "id", "type": "int"}, "field `id`"),
        ("functions.0.inputs.2", {"name": "order", "type": "int"}, "input `order`"),
        ("dependencies.2", "schemas", "dependency `schemas`"),
        ("external_dependencies.2", "lib.money", "dependency `lib.money`"),
    ],
)
def test_a_name_that_stands_twice_is_told_and_the_facts_stay(path: str, value: Any, what: str) -> None:
    contract = with_value(path, value)
    found = only(contract)
    assert found.rule == "contract-invalid"
    assert f" {what} " in found.message
    assert " line " in found.message
    assert facts_of(raw_of(contract)).is_readable
    assert read_contract(raw_of(contract)) is None


def test_fields_of_two_types_may_have_the_same_name() -> None:
    assert mistakes(with_value("types.1", {"name": "Line", "fields": [{"name": "id", "type": "int"}]})) == ()


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines() -> None:
    contract = with_value("functions.0.output.type", "Ordr")
    contract["descripton"] = contract.pop("description")
    contract["functions"][1]["side_effects"] = []
    contract["invariants"] = ["It follows best practices."]
    found = mistakes(contract)
    assert {each.rule for each in found} == {
        "contract-type-unknown",
        "contract-invalid",
        "side-effects-empty",
        "contract-vague",
    }
    assert [each.line for each in found] == sorted(each.line or 0 for each in found)


def test_their_number_is_bounded_and_no_error_is_lost_among_warnings() -> None:
    contract = {"component_id": "a", "version": "1", "invariants": ["as needed"] * 500, "colour": 1}
    found = mistakes(contract)
    assert len(found) == MOST_MISTAKES + 1
    assert sum(each.rule == "contract-invalid" for each in found) == 1
    assert "401" in found[-1].message.split()
    assert found[-1].rule == "contract-vague"
    # The list begins on line 5, and one mistake that is shown is none of it.
    assert found[-1].line == 5 + MOST_MISTAKES - 1
    assert len(found[-1].unnamed) == 401
    # A policy may make an error of any rule, so none is lost among others.
    outdated = [{"name": f"f{number}", "side_effects": "writes a file"} for number in range(200)]
    both = mistakes({**contract, "functions": outdated})
    assert {each.rule for each in both[MOST_MISTAKES:]} == {"contract-vague", "contract-outdated"}
    wrong = {"component_id": "a", "version": "1", **{f"k{number}": 1 for number in range(300)}}
    assert {each.rule for each in mistakes(wrong)} == {"contract-invalid"}


# Side effects.


def side_effects(*effects: Any, idempotent: bool = False) -> dict[str, Any]:
    contract = with_value("functions.0.side_effects", list(effects))
    contract["functions"][0]["idempotent"] = idempotent
    return contract


@pytest.mark.parametrize("kind", ["reads_file", "writes_file", "network_call", "mutates_state", "logging"])
def test_every_kind_with_a_target_is_taken(kind: str) -> None:
    assert mistakes(side_effects({"kind": kind, "target": "x"})) == ()


def test_no_side_effects_at_all_are_an_error() -> None:
    """Requirement D 5.2: side effects are told."""
    found = only(side_effects())
    assert (found.rule, found.where) == ("side-effects-empty", "functions[0].side_effects")
    contract = good()
    del contract["functions"][0]["side_effects"]
    assert only(contract).rule == "side-effects-empty"
    assert LEVELS["side-effects-empty"] is Level.ERROR


def test_none_beside_others_is_an_error() -> None:
    """Requirement D 5.2: `none` stands alone."""
    found = only(side_effects({"kind": "logging", "target": "stderr"}, {"kind": "none"}))
    assert (found.rule, found.where) == ("side-effects-mixed", "functions[0].side_effects[1]")
    assert LEVELS["side-effects-mixed"] is Level.ERROR
    assert mistakes(side_effects({"kind": "none"})) == ()


def test_idempotent_with_a_written_file_is_a_warning() -> None:
    """Requirement D 5.2: what writes a file is seldom idempotent."""
    effects = ({"kind": "logging", "target": "stderr"}, {"kind": "writes_file", "target": "out"})
    found = only(side_effects(*effects, idempotent=True))
    assert (found.rule, found.where) == ("side-effects-idempotent", "functions[0].side_effects[1]")
    assert LEVELS["side-effects-idempotent"] is Level.WARNING
    assert mistakes(side_effects(*effects)) == ()


@pytest.mark.parametrize(
    ("written", "kind", "target"),
    [
        ("writes_file: out.txt", "writes_file", "out.txt"),
        ("reads-file rates.json", "reads_file", "rates.json"),
        ("logging", "logging", "logging"),
        ("none", "none", ""),
        ("None", "none", ""),
        ("Updates the store", "mutates_state", "Updates the store"),
    ],
)
def test_a_plain_string_of_older_contracts_is_read_with_a_warning(
    written: str, kind: str, target: str
) -> None:
    for effects in ([written], written):
        contract = with_value("functions.1.side_effects", effects)
        found = only(contract)
        assert found.rule == "contract-outdated"
        assert LEVELS[found.rule] is Level.WARNING
        modern = {"kind": kind} | ({"target": target} if target else {})
        assert found.hint.endswith(f" {json.dumps(modern)}")
        read = read_contract(raw_of(contract))
        assert read is not None
        effect = read.functions[1].side_effects[0]
        assert (effect.kind, effect.target) == (kind, target)


def test_plain_strings_are_held_to_the_same_rules() -> None:
    rules = [each.rule for each in mistakes(side_effects("none", "writes_file: out", idempotent=True))]
    assert sorted(rules) == [
        "contract-outdated",
        "contract-outdated",
        "side-effects-idempotent",
        "side-effects-mixed",
    ]


# Vague words.


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("description", "description"),
        ("invariants.0", "invariants[0]"),
        ("types.0.description", "types[0].description"),
        ("functions.0.description", "functions[0].description"),
        ("functions.0.invariants.0", "functions[0].invariants[0]"),
        ("functions.0.error_cases.0.condition", "functions[0].error_cases[0].condition"),
        ("functions.0.side_effects.0.description", "functions[0].side_effects[0].description"),
    ],
)
def test_vague_words_are_told_with_their_field(path: str, where: str) -> None:
    """Requirement D 5.1: vague phrases, each with its field path."""
    found = only(with_value(path, "Follows Best  Practices for orders."))
    assert (found.rule, found.where) == ("contract-vague", where)
    assert '"best practices"' in found.message
    assert LEVELS["contract-vague"] is Level.WARNING


@pytest.mark.parametrize(
    "text",
    [
        "Says `as needed` to nobody.",
        'Follows "clean architecture".',
        "Stores and more data.",
        "Reads as needed by callers.",
        "Uses Industry Standard forms.",
        "An entire class of errors.",
        "It works on my machine.",
        "Is scalable and maintainable.",
        "Is robust and reliable.",
        "Properly handles orders.",
        "Orders, parcels, etc",
    ],
)
def test_every_phrase_of_the_list_counts_also_in_quotes_and_backticks(text: str) -> None:
    """Requirement D 5.1: a field has no room for a mention."""
    assert only(with_value("description", text)).rule == "contract-vague"


def test_vague_words_elsewhere_are_left_alone() -> None:
    assert mistakes(with_value("description", "Handles errors, needed or not; 3 more orders etcetera.")) == ()
    assert mistakes(with_value("functions.0.performance_budget.complexity", "as needed")) == ()
    assert mistakes(with_value("functions.0.examples.0.output", "best practices, etc.")) == ()


# Types.


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "Order",
        "list[Order]",
        "dict[str, list[Order | None]]",
        "Optional[Union[int, str]]",
        "Callable[[int, Order], None]",
        "Callable[..., Any]",
        "tuple[int, ...]",
        "tuple[()]",
        'Literal["a", "b", -1, True, None]',
        "list['Order']",
        "decimal.Decimal",
        "np.ndarray[Any, np.dtype[np.float64]]",
        "Sequence[datetime]",
        "ValueError",
        "typing.Literal['x']",
        "(int | str)",
        "list[ int , ]",
        "string",
        "string[][]",
        "number | null | undefined",
        "Promise<Record<string, Array<Order>>>",
        "Promise[void]",
        "Map<string, unknown>[] | Date",
        "list<integer>",
        "(boolean | bigint)[]",
        "object",
        "char | double | long | byte | array | any",
    ],
)
def test_types_that_are_known_are_taken(text: str) -> None:
    assert mistakes(with_value("functions.0.output.type", text)) == ()
    assert mistakes(with_value("types.0.fields.0.type", text)) == ()
    assert mistakes(with_value("functions.0.inputs.0.type", text)) == ()


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("Ordr", "`Ordr`", "`Order`"),
        ("list[Ordr]", "`Ordr`", "`Order`"),
        ("list['Ordr']", "`Ordr`", "`Order`"),
        ("array", "", ""),
        ("strin", "`strin`", "`string`"),
        ("nil", "`nil`", "`None`"),
        ("Promse<string>", "`Promse`", "`Promise`"),
        ("Array<Ordr>", "`Ordr`", "`Order`"),
        ("Array<string]", "`]` is where `>`", "Python"),
        ("list[int>", "`>` is where `]`", "Python"),
        ("Array<string", " ends ", "Python"),
        ("<string>", "`<`", "Python"),
        ("Array<" * 40 + "int" + ">" * 40, " 32 ", "Python"),
        ("Zebra", "`Zebra`", "`types`"),
        ("list[int", " ends ", "Python"),
        ("list of orders", "`of`", "Python"),
        ("int |", " ends ", "Python"),
        ("[int]", "`[`", "Python"),
        ("int; import os", "`;`", "Python"),
        ("Größe", "part", "Python"),
        ("5", "`5`", "Python"),
        ("list[" * 40 + "int" + "]" * 40, " 32 ", "Python"),
        ("Callable[" + "[" * 90 + "]" * 90 + "]", " 32 ", "Python"),
    ],
)
def test_types_that_nobody_knows_are_errors(text: str, words: str, hint: str) -> None:
    found = mistakes(with_value("functions.0.output.type", text))
    if not words:
        assert found == ()
        return
    (told,) = found
    assert (told.rule, told.where) == ("contract-type-unknown", "functions[0].output.type")
    assert words in told.message
    assert hint in told.hint
    assert LEVELS["contract-type-unknown"] is Level.ERROR


def test_an_error_that_a_function_raises_may_be_named_as_a_type() -> None:
    contract = with_value("functions.0.error_cases.0.error", "OrderError")
    contract["functions"][1]["output"] = {"type": "list[OrderError]"}
    assert mistakes(contract) == ()


def test_types_are_not_held_against_a_list_of_types_that_is_wrong_itself() -> None:
    contract = with_value("types.0.name", 5)
    assert [each.where for each in mistakes(contract)] == ["types[0].name"]


# Whatever stands there.


@given(
    st.sampled_from(
        [
            "types",
            "types.0",
            "types.0.fields",
            "functions",
            "functions.0",
            "functions.0.inputs",
            "functions.0.inputs.0",
            "functions.0.output",
            "functions.0.side_effects",
            "functions.0.side_effects.0",
            "functions.0.error_cases",
            "functions.0.error_cases.0.inputs",
            "functions.0.examples",
            "functions.0.performance_budget",
            "invariants",
            "dependencies",
        ]
    ),
    JSON_VALUES,
)
def test_whatever_stands_at_a_place_the_schema_and_the_reader_agree(path: str, value: Any) -> None:
    contract = with_value(path, value)
    raw = raw_of(contract)
    facts = facts_of(raw)
    shape = [each for each in facts.mistakes if each.rule == "contract-invalid"]
    if validator().is_valid(contract):
        assert facts.is_readable
        assert all("occurs twice" in each.message or "characters" in each.message for each in shape) or (
            # What no schema of ours says: a target of blanks, a word of Python's own.
            all("no target" in each.message for each in shape)
        )
    else:
        outdated = {each.rule for each in facts.mistakes} & {"side-effects-empty", "contract-outdated"}
        assert shape or outdated
    assert all(each.line and each.message and each.hint for each in facts.mistakes)
    assert (read_contract(raw) is None) == bool(shape)


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    assert mistakes(raw)


def test_nothing_foreign_reaches_a_terminal_raw() -> None:
    hostile = "\x1b[31m\u202e\n"
    for path in ("component_id", "version", "functions.0.name", "functions.0.output.type", "dependencies.0"):
        for each in mistakes(with_value(path, hostile)):
            text = each.message + each.hint + each.where
            assert not {"\x1b", "\u202e", "\n"} & set(text)
    for each in mistakes({**good(), hostile: 1}):
        assert not {"\x1b", "\u202e", "\n"} & set(each.message + each.hint + each.where)


def test_every_word_of_python_is_refused_as_a_name() -> None:
    import keyword

    assert set(keyword.kwlist) <= KEYWORDS
    assert all(only(with_value("functions.1.name", word)).rule == "contract-invalid" for word in KEYWORDS)


def test_every_key_of_the_models_is_in_the_schema_and_nothing_else_may_stand_there() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(Contract.model_fields)
    for each in (schema, *schema["$defs"].values()):
        assert each["additionalProperties"] is False
