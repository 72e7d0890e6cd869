"""What the contracts gate says of contracts: names, cycles, the component tree, budgets, patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.check.gate import judge
from patchgate.components.component_facts import ComponentFacts, ContractsView
from patchgate.components.component_names import ComponentNames, dependency_graph, find_cycles, is_across
from patchgate.components.contract_facts import BudgetPromise, ContractFacts, ContractMistake, Reference
from patchgate.components.contracts import BudgetTests, examine, examine_contracts
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.policy.component import Components
from patchgate.policy.policy import Policy
from patchgate.policy.settings import ComponentSettings
from patchgate.report.verdict import Finding, Outcome
from tests.check.gate_cases import case, outcome, policy

TREE = {
    "agents": None,
    "shaping": "agents",
    "routing": "agents",
    "shaping_core": "shaping",
    "storage": None,
    "disk": "storage",
}


def components(parents: Mapping[str, str | None] = TREE) -> Components:
    return Components(
        {
            name: ComponentSettings(
                f"contracts/{name}.json", (f"tests/{name}/**",), (f"src/{name}/**",), parent
            )
            for name, parent in parents.items()
        }
    )


def facts(name: str, *needs: str, externals: Sequence[str] = ()) -> ContractFacts:
    return ContractFacts(
        True,
        name,
        "1.0",
        tuple(Reference(each, f"dependencies[{at}]", 5 + at) for at, each in enumerate(needs)),
        tuple(Reference(each, f"external_dependencies[{at}]", 20 + at) for at, each in enumerate(externals)),
    )


def view(needs: Mapping[str, Sequence[str]], parents: Mapping[str, str | None] = TREE) -> ContractsView:
    known = {name: facts(name, *needs.get(name, ())) for name in parents}
    return ContractsView(components(parents), frozenset(parents), known)


def told(seen: ContractsView, judged: Policy | None = None) -> list[Finding]:
    return list(examine_contracts(seen, judged or policy()))


def rules(seen: ContractsView) -> list[str]:
    return [finding.rule for finding in told(seen)]


def test_contracts_that_are_right_are_told_nothing_of() -> None:
    assert told(view({"shaping": ["routing", "agents"], "agents": ["storage"]})) == []


def test_a_mistake_of_the_content_is_told_with_its_field_and_line() -> None:
    mistake = ContractMistake(
        "contract-invalid", "unknown key", "functions[0].nam", 7, "did you mean `name`?"
    )
    seen = view({})
    broken = ContractFacts(False, mistakes=(mistake,))
    (finding,) = told(replace(seen, facts={**seen.facts, "disk": broken}))
    assert (finding.rule, finding.line) == ("contract-invalid", 7)
    assert finding.path == RepoPath(b"contracts/disk.json")
    assert "functions[0].nam" in finding.message
    assert finding.hint == "did you mean `name`?"


def test_a_contract_of_another_component_is_refused() -> None:
    seen = view({})
    wrong = replace(facts("Disk"), component_id_line=3)
    (finding,) = told(replace(seen, facts={**seen.facts, "disk": wrong}))
    assert (finding.rule, finding.line) == ("contract-invalid", 3)
    assert '"component_id": "disk"' in str(finding.hint)


def test_a_contract_that_is_not_there_is_a_warning_at_its_line_of_the_config() -> None:
    judged = policy('[components.disk]\ncontract = "c.json"\ntests = ["t"]\nimplementation = ["a"]\n')
    seen = ContractsView(judged.components, frozenset({"disk"}), {"disk": None})
    (finding,) = told(seen, judged)
    assert (finding.rule, finding.level.value, finding.line) == ("contract-missing", "warning", 2)
    assert finding.path == RepoPath(b"patchgate.toml")


def test_a_line_of_the_config_is_that_of_the_policy_that_declares_and_not_of_the_one_that_judges() -> None:
    text = '[components.disk]\ncontract = "c.json"\ntests = ["t"]\nimplementation = ["a"]\n'
    declares, judges = policy("\n" * 6 + text), policy(text + '[rules]\ncontract-missing = "error"\n')
    seen = ContractsView(declares.components, frozenset({"disk"}), {"disk": None})
    near = ComponentFacts(contracts=seen, declared=declares)
    asked = replace(case(), policy=judges, facts={"components": near})
    (finding,) = (each for each in judge(asked)[1] if each.rule == "contract-missing")
    assert (finding.level.value, finding.line) == ("error", 8)
    (finding,) = examine(replace(asked, facts={"components": replace(near, declared=None)}))
    assert finding.line == 2


def test_a_contract_that_is_a_symlink_is_refused() -> None:
    seen = replace(view({}), not_files={"disk": "a symlink"})
    (finding,) = told(replace(seen, facts={**seen.facts, "disk": None}))
    assert (finding.rule, finding.path) == ("contract-invalid", RepoPath(b"contracts/disk.json"))


def test_a_dependency_that_is_nothing_is_a_warning_with_the_name_that_was_meant() -> None:
    seen = view({"shaping": ["routng"]})
    (finding,) = told(seen)
    assert (finding.rule, finding.level.value, finding.line) == ("dependency-unknown", "warning", 5)
    assert "`routing`" in (finding.hint or "")
    assert told(replace(seen, externals={"routng": True})) == []


def test_a_dependency_on_a_module_of_a_component_is_told_by_whose_it_is() -> None:
    seen = view({"shaping": ["shop.routing", "src/routing/", "mine", "loose"]})
    externals = dict.fromkeys(["shop.routing", "src/routing/", "mine", "loose"], True)
    owners = {"shop.routing": "routing", "src/routing/": "routing", "mine": "shaping"}
    first, second = told(replace(seen, externals=externals, owners=owners))
    assert (first.rule, first.level.value, first.line) == ("dependency-unknown", "warning", 5)
    for finding, name, kind in ((first, "shop.routing", "module"), (second, "src/routing/", "path")):
        assert finding.details["pattern"] == name
        assert {f"`{name}`", kind, "`routing`"} <= set(finding.message.split())
        assert "`routing`" in (finding.hint or "")


def test_every_correction_of_a_name_is_told() -> None:
    (finding,) = told(view({"shaping": ["Routing"]}))
    assert (finding.rule, finding.level.value) == ("dependency-corrected", "warning")
    assert finding.message.index("`Routing`") < finding.message.index("`routing`")
    assert "case" in finding.message


def test_a_dependency_without_a_contract_is_refused() -> None:
    """Requirement D 2.1: what is internal has a contract."""
    seen = view({"shaping": ["routing"]})
    found = told(replace(seen, asked=frozenset({"shaping"}), facts={**seen.facts, "routing": None}))
    assert [finding.rule for finding in found] == ["dependency-without-contract"]


def test_the_number_of_findings_about_what_a_contract_needs_is_bounded_and_no_error_is_lost() -> None:
    seen = view({})
    needs = facts("disk", *(f"n{at}" for at in range(300)), externals=("missing",))
    found = told(replace(seen, facts={**seen.facts, "disk": needs}, asked=frozenset({"disk"})))
    assert len(found) == 101
    assert [finding.rule for finding in found].count("external-missing") == 1
    assert [finding.line for finding in found[:-1]] == [*range(5, 104), 20]
    assert (found[-1].rule, found[-1].line) == ("dependency-unknown", 104)
    assert {"201", "`disk`"} <= set(found[-1].message.split())
    exact = replace(needs, dependencies=needs.dependencies[:99])
    assert len(told(replace(seen, facts={**seen.facts, "disk": exact}, asked=frozenset({"disk"})))) == 100


def test_an_external_that_is_not_there_is_refused_and_one_that_is_is_not() -> None:
    """Requirement D 2.1: what is external is in the tree; what exists is never refused."""
    seen = view({})
    known = {**seen.facts, "disk": facts("disk", externals=["tools.paths", "shapes", "storage"])}
    seen = replace(seen, facts=known, modules=("tools.path",), externals={"shapes": True})
    first, second = told(seen)
    assert (first.rule, first.level.value, first.line) == ("external-missing", "error", 20)
    assert "`tools.path`" in (first.hint or "")
    assert (second.hint or "").index("`storage`") < (second.hint or "").index("`dependencies`")


def test_a_cycle_is_shown_once_as_a_path_from_its_smallest_id() -> None:
    (finding,) = told(view({"shaping": ["routing"], "routing": ["agents"], "agents": ["shaping"]}))
    assert finding.rule == "dependency-cycle"
    assert finding.message.endswith("agents -> shaping -> routing -> agents")
    assert finding.details["crosses_subtrees"] is False


def test_a_cycle_across_subtrees_is_an_error_that_says_so() -> None:
    """Requirement D 2.4: no cycle crosses subtrees."""
    found = told(view({"shaping": ["disk"], "disk": ["shaping"]}))
    levels = [(finding.rule, finding.level.value) for finding in found]
    assert ("dependency-cycle", "error") in levels
    assert levels.count(("dependency-across", "warning")) == 2
    cycle = next(finding for finding in found if finding.rule == "dependency-cycle")
    assert "different branches" in cycle.message
    assert cycle.details["crosses_subtrees"] is True


def test_a_component_that_needs_itself_is_a_cycle() -> None:
    (finding,) = told(view({"disk": ["disk"]}))
    assert finding.message.endswith("disk -> disk")


def test_a_cycle_is_told_where_only_one_of_its_members_is_asked() -> None:
    seen = replace(view({"shaping": ["routing"], "routing": ["shaping"]}), asked=frozenset({"shaping"}))
    assert rules(seen) == ["dependency-cycle"]
    assert rules(replace(seen, asked=frozenset({"disk"}))) == []


@pytest.mark.parametrize(
    ("name", "other", "across"),
    [
        ("shaping", "routing", False),
        ("shaping", "agents", False),
        ("agents", "shaping", False),
        ("shaping", "storage", False),
        ("shaping_core", "routing", False),
        ("shaping_core", "agents", False),
        ("agents", "shaping_core", False),
        ("agents", "storage", False),
        ("shaping_core", "storage", True),
        ("routing", "shaping_core", True),
        ("shaping", "disk", True),
        ("agents", "disk", True),
    ],
)
def test_relatives_are_free_and_other_parts_are_not(name: str, other: str, across: bool) -> None:
    """Requirement D 2.4: siblings, parents, children and a parent's siblings are free, other parts warn."""
    assert is_across(components(), name, other) is across
    found = rules(view({name: [other]}))
    assert found == (["dependency-across"] if across else [])


def test_a_dependency_across_names_both_with_their_places() -> None:
    (finding,) = told(view({"shaping": ["disk"]}))
    assert "`agents/shaping` depends on `storage/disk`" in finding.message


PROMISE = BudgetPromise("shape", "p95_latency_ms", 50.0, "functions[0].performance_budget.p95_latency_ms", 9)


@pytest.mark.parametrize(
    ("test", "asserted"),
    [
        ("def test_latency():\n    assert p95(shape) <= 50\n", True),
        ("def test_it():\n    took = timed(shape)\n    assert took < 0.05\n", True),
        ("class TestIt:\n    def test_it(self):\n        self.assertLess(timed(shape), 50)\n", True),
        ("def test_it():\n    case = {'function': 'shape'}\n    assert x <= case['p95_latency_ms']\n", True),
        ("def test_it():\n    assert shape(2) == 50\n", False),
        ("def test_it():\n    assert latency(other) < 50\n", False),
        ("def test_it():\n    shape()\n\ndef test_other():\n    assert latency() < 50\n", False),
        ("def test_it():\n    # assert latency of shape < 50\n    shape()\n", False),
        ("def latency():\n    assert latency(shape) < 50\n", False),
        ("@pytest.mark.skip\ndef test_it():\n    assert latency(shape) < 50\n", False),
        ("", False),
    ],
)
def test_a_budget_is_asserted_by_a_test_that_names_function_and_measure(test: str, asserted: bool) -> None:
    """Requirement D 5.3: a budget that no test asserts is told."""
    seen = view({})
    known = {**seen.facts, "disk": replace(facts("disk"), budgets=(PROMISE,))}
    tests = {"disk": {RepoPath(b"tests/disk/test_it.py"): test.encode()}}
    found = told(replace(seen, facts=known, tests=tests, asked=frozenset()))
    assert [(finding.rule, finding.line) for finding in found] == (
        [] if asserted else [("budget-unasserted", 9)]
    )


def test_a_budget_is_looked_for_in_every_test_that_names_its_function() -> None:
    test = (
        "def test_one():\n    assert shape() == 1\n\ndef test_two():\n    assert latency(other) < 9\n\n"
        "def test_three():\n    assert shape(5) > 1e1\n    assert took(shape) < 0.000_05\n"
    )
    tests = BudgetTests(
        {RepoPath(b"t.py"): test.encode(), RepoPath(b"t.js"): b"shape()\nexpect(mb).below(9)"}
    )
    assert not tests.asserts(PROMISE)
    assert tests.asserts(replace(PROMISE, limit=10.0))
    assert tests.asserts(replace(PROMISE, limit=0.05))
    assert tests.asserts(replace(PROMISE, function="other"))
    assert tests.asserts(replace(PROMISE, kind="max_memory_mb"))
    assert not tests.asserts(replace(PROMISE, function="nobody"))


def test_a_component_without_tests_asserts_no_budget() -> None:
    seen = view({})
    known = {**seen.facts, "disk": replace(facts("disk"), budgets=(PROMISE,))}
    assert rules(replace(seen, facts=known, tests={"disk": {}})) == ["budget-unasserted"]


@pytest.mark.parametrize(
    ("names", "is_told"),
    [((b"t.sh",), False), ((b"t.sh", b"t.ts"), False), ((b"t.sh", b"t.py"), True), ((b"t.py",), True)],
)
def test_budgets_are_not_asked_of_tests_of_which_none_is_in_python(
    names: tuple[bytes, ...], is_told: bool
) -> None:
    seen = view({})
    known = {**seen.facts, "disk": replace(facts("disk"), budgets=(PROMISE,))}
    tests = {RepoPath(name): b"true\n" for name in names}
    assert rules(replace(seen, facts=known, tests={"disk": tests})) == ["budget-unasserted"] * is_told


def test_a_memory_budget_may_be_asserted_in_bytes() -> None:
    seen = view({})
    promise = BudgetPromise("shape", "max_memory_mb", 8.0, "functions[0]", 9)
    known = {**seen.facts, "disk": replace(facts("disk"), budgets=(promise,))}
    test = b"def test_it():\n    assert peak(shape) < 8_388_608\n"
    assert rules(replace(seen, facts=known, tests={"disk": {RepoPath(b"t.py"): test}})) == []


def test_a_pattern_that_matches_nothing_is_named_with_its_line_of_the_config() -> None:
    judged = policy(
        '[components.disk]\ncontract = "c.json"\ntests = ["t"]\nimplementation = [\n  "a/**",\n  "b/**",\n]\n'
    )
    seen = ContractsView(judged.components, frozenset(), {}, empty_globs={"disk": ("b/**",)})
    (finding,) = told(seen, judged)
    assert (finding.rule, finding.level.value, finding.line) == ("component-empty-glob", "warning", 6)
    assert "`b/**`" in finding.message


def test_files_that_two_components_claim_are_one_finding_however_many_they_are() -> None:
    shared = {RepoPath(f"src/{number}.py".encode()): ("disk", "shaping") for number in range(9)}
    (finding,) = told(replace(view({}), shared=shared))
    assert (finding.rule, finding.level.value) == ("component-shared-file", "error")
    assert "`disk`, `shaping`" in finding.message
    assert finding.details["components"] == ["disk", "shaping"]
    assert "6 more" in finding.message


def test_hostile_names_are_escaped_wherever_they_are_shown() -> None:
    bad = "\x1b[31m\u202e`x\n"
    seen = view({"shaping": [bad]})
    known = {**seen.facts, "disk": facts(bad, externals=[bad])}
    found = told(replace(seen, facts=known, modules=(bad + "y",)))
    assert len(found) == 3
    for finding in found:
        shown = f"{finding.message} {finding.hint}"
        assert not {"\x1b", "\u202e", "\n"} & set(shown)


def test_what_could_not_be_read_is_undecided() -> None:
    unread = replace(
        case(), facts={"components": ComponentFacts(faults={"contracts": "an object is missing"})}
    )
    with pytest.raises(UndecidedError, match="an object is missing"):
        list(examine(unread))
    assert outcome(unread, "contracts").outcome is Outcome.UNDECIDED
    assert list(examine(case())) == []


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f"])


@given(st.dictionaries(NAMES, st.sets(NAMES)))
def test_every_cycle_is_found_and_each_one_told_is_one(needs: dict[str, set[str]]) -> None:
    known = {name: facts(name, *sorted(others)) for name, others in needs.items()}
    arrows = dependency_graph(ComponentNames("abcdef"), known)
    found = find_cycles(arrows)
    for cycle in found:
        assert cycle.path[0] == min(cycle.members)
        assert len(set(cycle.path)) == len(cycle.path)
        assert all(other in arrows[name] for name, other in cycle.edges)
    inside = {name for cycle in found for name in cycle.members}
    assert inside == {name for name in arrows if name in _reached(arrows, name)}


def _reached(arrows: Mapping[str, Sequence[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(arrows.get(name, ()))
    return found
