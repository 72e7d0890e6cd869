"""`git patchgate component`: the list, the graph and the contracts of what the index holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.component_world import contract, declared
from tests.schemas import require_valid
from tests.world import Answer, Repo

Json = dict[str, Any]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Four components: a parent, two that need each other, and one without a contract."""
    made = Repo.create(tmp_path)
    made.commit(
        {
            "patchgate.toml": declared("agents")
            + declared("shaping", parent="agents")
            + declared("wire_schemas", parent="data")
            + declared("store", parent="data"),
            "contracts/agents/interface.json": contract("agents", "shaping"),
            "contracts/shaping/interface.json": contract(
                "shaping", "Schemas_Wire", "json", external_dependencies=["lib.x"]
            ),
            "contracts/wire_schemas/interface.json": contract("wire_schemas", "shaping"),
            "src/shaping/a.py": "",
            "src/shaping/deep/b.py": "",
            "tests/shaping/test_a.py": "",
            ".patchgate/baselines/shaping.json": "{}",
        }
    )
    return made


def shown(repo: Repo, *arguments: str) -> Answer:
    answer = repo.cli("component", *arguments)
    assert answer.code == 0, answer.err
    return answer


def valid(repo: Repo, schema: str, *arguments: str) -> Json:
    """Give a document, which must be what its published schema says."""
    document = shown(repo, *arguments, "--format", "json").report
    published = repo.cli("schema", schema).report
    jsonschema.Draft202012Validator.check_schema(published)
    require_valid(document, published)
    return document


def test_the_list_shows_contract_numbers_of_files_and_baseline(repo: Repo) -> None:
    assert shown(repo, "list").out.splitlines() == [
        "COMPONENT     PARENT  CONTRACT  TESTS  IMPLEMENTATION  BASELINE",
        "agents        -       1.0.0     0      0               no",
        "shaping       agents  1.0.0     1      2               yes",
        "store         data    missing   0      0               no",
        "wire_schemas  data    1.0.0     0      0               no",
    ]


def test_the_list_as_json_has_every_key_and_keeps_its_schema(repo: Repo) -> None:
    repo.link("contracts/store/interface.json", "../agents/interface.json")
    repo.stage({"contracts/agents/interface.json": "{"})
    document = valid(repo, "components", "list")
    assert document["from"] == "index"
    assert [row["contract"] for row in document["components"]] == [
        {"path": "contracts/agents/interface.json", "state": "unreadable", "version": None},
        {"path": "contracts/shaping/interface.json", "state": "readable", "version": "1.0.0"},
        {"path": "contracts/store/interface.json", "state": "not-a-file", "version": None},
        {"path": "contracts/wire_schemas/interface.json", "state": "readable", "version": "1.0.0"},
    ]
    (row,) = (each for each in document["components"] if each["id"] == "shaping")
    assert (row["parent"], row["tests"], row["implementation"], row["baseline"]) == ("agents", 1, 2, True)


def test_what_is_staged_counts_and_what_only_lies_there_does_not(repo: Repo) -> None:
    repo.stage({"patchgate.toml": declared("shaping") + declared("fresh"), "src/fresh/a.py": ""})
    repo.write("src/fresh/b.py")
    repo.write("patchgate.toml", "broken")
    lines = shown(repo, "list").out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["fresh", "-", "missing", "0", "1", "no"],
        ["shaping", "-", "1.0.0", "1", "2", "yes"],
    ]


def test_before_the_first_commit_the_index_is_listed(tmp_path: Path) -> None:
    made = Repo.create(tmp_path)
    made.stage({"patchgate.toml": declared("first"), "contracts/first/interface.json": contract("first")})
    assert shown(made, "list").out.splitlines()[1].split() == ["first", "-", "1.0.0", "0", "0", "no"]
    answer = made.cli("component", "tests", "first")
    error = answer.err.splitlines()[0]
    assert (answer.code, "`first`" in error, error.endswith(" HEAD")) == (2, True, True)


def test_a_bare_repository_shows_head(repo: Repo, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare"))
    bare = repo.at(tmp_path / "bare")
    assert valid(bare, "components", "list")["from"] == "HEAD"
    assert shown(bare, "list").out == shown(repo, "list").out
    assert shown(bare, "graph").out == shown(repo, "graph").out


def test_the_graph_shows_the_tree_with_right_names_and_the_cycle_as_a_path(repo: Repo) -> None:
    assert shown(repo, "graph").out.splitlines() == [
        "agents",
        "  -> shaping",
        "  shaping",
        "    -> wire_schemas (written as Schemas_Wire, across the component tree, in a cycle)",
        "    => json (unknown component)",
        "    => lib.x (external)",
        "data (a group, not a component)",
        "  store",
        "  wire_schemas",
        "    -> shaping (across the component tree, in a cycle)",
        "cycle: shaping -> wire_schemas -> shaping",
    ]


def test_the_graph_as_json_keeps_its_schema_and_says_how_a_name_was_found(repo: Repo) -> None:
    document = valid(repo, "component-graph", "graph")
    assert document["groups"] == ["data"]
    assert document["cycles"] == [["shaping", "wire_schemas"]]
    (edge,) = (each for each in document["dependencies"] if each["name"] == "Schemas_Wire")
    assert edge == {
        "from": "shaping",
        "name": "Schemas_Wire",
        "to": "wire_schemas",
        "matched_by": "words",
        "is_external": False,
        "crosses_subtrees": True,
        "is_in_cycle": True,
    }


def test_no_name_is_syntax_in_the_mermaid_graph(repo: Repo) -> None:
    hostile = '"] --> c0; click c0 "javascript:x" %% end `#quot;` ##[group] <b>é'
    repo.stage({"contracts/store/interface.json": contract("store", hostile)})
    lines = shown(repo, "graph", "--format", "mermaid").out.splitlines()
    assert lines[0] == "flowchart LR"
    label = r'"[A-Za-z0-9_./ #;-]*"'
    node = rf"[cx][0-9]+(\[{label}\]|\(\[{label}\]\)|>{label}\])"
    edge = rf"[cx][0-9]+ (---|-->|==>|-\.->)(\|{label}\|)? [cx][0-9]+"
    assert all(re.fullmatch(rf"  ({node}|{edge})", line) for line in lines[1:])
    assert sum("==>" in line for line in lines) == 2
    assert any("#34;#93; --#62; c0#59; click" in line for line in lines)
    assert "##[group]" not in shown(repo, "graph").out


def test_without_a_component_nothing_is_listed_and_the_way_to_one_is_told(tmp_path: Path) -> None:
    made = Repo.create(tmp_path)
    made.commit({"a.py": ""})
    for verb in ("list", "graph"):
        answer = made.cli("component", verb)
        assert (answer.code, answer.out) == (0, "")
        assert "[components.ID]" in answer.err
    assert valid(made, "components", "list")["components"] == []
    assert valid(made, "component-graph", "graph")["dependencies"] == []


def test_an_unknown_id_is_refused_with_the_one_that_was_meant(repo: Repo) -> None:
    for verb in ("tests", "validate"):
        answer = repo.cli("component", verb, "shapin\x1b")
        assert (answer.code, answer.out) == (2, "")
        assert "`shapin\\x1b`" in answer.err
        assert "`shaping`" in answer.err


def test_a_policy_of_the_index_that_is_broken_is_told_with_its_line(repo: Repo) -> None:
    repo.stage({"patchgate.toml": declared("shaping") + "surprise = 1\n"})
    answer = repo.cli("component", "list")
    assert (answer.code, answer.out) == (2, "")
    assert "patchgate.toml:" in answer.err


def test_an_index_with_conflicts_is_undecided(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"a": "one\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "two\n"})
    assert repo.try_git("merge", "-q", "other").returncode == 1
    for verb in ("list", "graph"):
        assert repo.cli("component", verb).code == 3


def test_a_contract_that_breaks_its_word_is_rejected_in_every_form_of_report(repo: Repo) -> None:
    answer = repo.cli("component", "validate", "shaping", "--format", "json")
    assert answer.code == 1
    assert {"external-missing", "dependency-cycle"} <= set(answer.errors)
    assert {"dependency-corrected", "dependency-across"} <= set(answer.rules)
    text = repo.cli("component", "validate", "shaping")
    assert (text.code, text.out.splitlines()[-1].partition(":")[0]) == (1, "rejected")
    assert repo.cli("component", "validate", "--all", "--format", "concise").code == 1
    one = repo.cli("component", "validate", "--all", "--fail-fast", "--format", "json")
    assert (one.code, len(one.errors)) == (1, 1)


def test_validate_without_ids_asks_what_the_staged_change_touches(repo: Repo) -> None:
    assert repo.cli("component", "validate", "-q").code == 0
    told = repo.cli("component", "validate").err
    assert ("staged" in told, "--all" in told, told.count("\n")) == (True, True, 1)
    repo.stage({"src/other/a.py": ""})
    assert repo.cli("component", "validate", "-q").out == ""
    repo.stage(
        {"contracts/store/interface.json": contract("store", functions=[{"name": "f", "side_effects": []}])}
    )
    answer = repo.cli("component", "validate", "--format", "json")
    assert (answer.code, answer.errors, answer.err) == (1, ["side-effects-empty"], "")


def test_ids_and_all_exclude_each_other(repo: Repo) -> None:
    answer = repo.cli("component", "validate", "shaping", "--all")
    assert (answer.code, answer.out) == (2, "")


def test_validate_tells_how_many_contracts_it_looked_at(repo: Repo) -> None:
    def told(*arguments: str) -> str:
        return repo.cli("component", "validate", *arguments).err

    def numbers(line: str) -> list[int]:
        return [int(word) for word in line.split() if word.isdecimal()]

    for form in ("full", "text", "concise"):
        assert numbers(told("--all", "--format", form)) == [3, 1]
    assert numbers(told("agents")) == [1]
    assert numbers(told("store")) == [0]
    assert (
        told("--all", "-q") == told("--all", "--format", "json") == told("--all", "--format", "sarif") == ""
    )
    fast = told("--all", "--fail-fast")
    assert (numbers(fast), " first " in fast) == ([3], True)
    repo.stage({"contracts/agents/interface.json": contract("agents", "shaping", version="2.0.0")})
    assert numbers(told()) == [1]
    repo.stage({"contracts/wire_schemas/interface.json": contract("wire_schemas")})
    assert numbers(told()) == [3, 1]


def test_validate_tells_where_no_component_is_declared(tmp_path: Path) -> None:
    made = Repo.create(tmp_path)
    made.commit({"a.py": ""})
    made.write("patchgate.toml", declared("shaping"))
    for arguments in ((), ("--all",)):
        answer = made.cli("component", "validate", *arguments)
        assert answer.code == 0
        assert "[components.ID]" in answer.err
        assert answer.err.endswith("git add it\n")
        assert made.cli("component", "validate", *arguments, "-q").err == ""
    unknown = made.cli("component", "validate", "shaping")
    assert (unknown.code, "no component " in unknown.err, " index" in unknown.err) == (2, True, True)
    made.git("clone", "-q", "--bare", str(made.path), str(tmp_path / "bare"))
    bare = made.at(tmp_path / "bare")
    for verb in (("list",), ("graph",), ("validate", "--all")):
        err = bare.cli("component", *verb).err
        assert (" HEAD" in err, "[components.ID]" in err) == (True, True)
