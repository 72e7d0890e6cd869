"""The contracts gate: what is wrong with the contracts that a change touches, and their dependencies.

Judges a `ContractsView`: whole contracts, budgets that no test asserts, patterns that match nothing, files
that two components claim. Mistakes in a contract's content were found when it was read (`contract_reading`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from patchgate.check.case import Case, find
from patchgate.components.component_facts import ComponentFacts, ContractsView
from patchgate.components.component_names import (
    ComponentNames,
    Cycle,
    How,
    Resolved,
    dependency_graph,
    did_you_mean,
    find_cycles,
    is_across,
    resolve_dependencies,
)
from patchgate.components.contract_facts import BudgetPromise, ContractFacts, Reference
from patchgate.components.python_tests import tests_of
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of, printable
from patchgate.policy.policy import Decision, Policy
from patchgate.policy.toml_lines import Key, line_of, lines
from patchgate.report.rules import Level
from patchgate.report.verdict import Detail, Finding, Fixer
from patchgate.values import dataclass, replace

_WORDS = {
    "p95_latency_ms": frozenset({"p95", "latency", "percentile", "quantiles", "milliseconds"}),
    "max_memory_mb": frozenset({"memory", "tracemalloc", "megabytes", "mb"}),
}
_MEASURED = frozenset().union(*_WORDS.values())
# Seconds and nanoseconds; bytes.
_FACTORS = {"p95_latency_ms": (1, 1e-3, 1e6), "max_memory_mb": (1, 1 << 20, 10**6)}
_ASSERTION = re.compile(r"(?<![A-Za-z0-9])_{0,2}(?:assert|expect|require|should)", re.IGNORECASE)
_COMPARISON = re.compile(r"[<>]|less|greater|below|most", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])[0-9][0-9_]*(?:\.[0-9_]+)?(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Asserted:
    """The words in the assertions of one test, and the numbers that they compare with, sorted."""

    words: frozenset[str]
    numbers: tuple[float, ...]

    def speaks_of(self, promise: BudgetPromise) -> bool:
        if not self.words.isdisjoint(_WORDS.get(promise.kind, frozenset())):
            return True
        limits = (promise.limit * factor for factor in _FACTORS.get(promise.kind, (1,)))
        return any(self._compares_with(limit) for limit in limits)

    def _compares_with(self, limit: float) -> bool:
        least, most = limit - 1e-9 * abs(limit), limit + 1e-9 * abs(limit)
        place = bisect_left(self.numbers, least)
        return place < len(self.numbers) and self.numbers[place] <= most


class BudgetTests:
    """The tests of one component, read once for all of its budgets."""

    def __init__(self, tests: Mapping[RepoPath, bytes]) -> None:
        self._naming: dict[str, list[_Asserted]] = {}
        for path, content in sorted(tests.items()):
            if path.raw.endswith(b".py"):
                for test in tests_of(content).values():
                    if not test.is_skipped:
                        self._add(test.statements)
            else:
                self._add(tuple(content.decode("utf-8", "surrogateescape").split("\n")))

    def _add(self, statements: tuple[str, ...]) -> None:
        assertions = [each for each in statements if _ASSERTION.search(each)]
        if assertions:
            asserted = _asserted(assertions)
            for name in {name for statement in statements for name in _NAME.findall(statement)}:
                self._naming.setdefault(name, []).append(asserted)

    def asserts(self, promise: BudgetPromise) -> bool:
        """Return whether some test asserts a budget."""
        return any(each.speaks_of(promise) for each in self._naming.get(promise.function, ()))


def _asserted(assertions: Sequence[str]) -> _Asserted:
    words: set[str] = set()
    numbers: set[float] = set()
    for each in assertions:
        words.update(word.lower() for name in _NAME.findall(each) for word in name.split("_"))
        if _COMPARISON.search(each):
            numbers.update(float(number.replace("_", "")) for number in _NUMBER.findall(each))
    return _Asserted(_MEASURED & words, tuple(sorted(numbers)))


_MOST_OTHERS = 5
_MOST_SHARED_SHOWN = 3
_MOST_SUGGESTIONS = 30
# Findings about the dependencies of one contract; as many as of its mistakes.
_MOST_NEEDS = 100
_MEASURES = {"p95_latency_ms": "ms as 95th percentile", "max_memory_mb": "MB of memory"}
_READ_AS = {
    How.CASE: "which differs only in case",
    How.WORDS: "the same words in another order",
    How.AFFIX: "without the part that all ids share",
    How.PART: "with another prefix or suffix",
}


def examine(case: Case) -> Iterator[Finding]:
    """Find what is wrong with the contracts that a change concerns.

    Raises:
        UndecidedError: facts about the components could not be read.
    """
    near = ComponentFacts.of(case)
    if near is None:
        return
    near.require("contracts")
    if near.contracts is not None:
        yield from examine_contracts(near.contracts, near.declared or case.policy)


def examine_contracts(view: ContractsView, policy: Policy) -> Iterator[Finding]:
    """Find what is wrong with the contracts of a view, component by component.

    Args:
        policy: declares the components.
    """
    judged = _ContractChecks(view, policy)
    for name in view.components.ids:
        if name in view.asked:
            yield from judged.contract(name)
        if name in view.tests:
            yield from judged.budgets(name)
        if name in view.empty_globs:
            yield from judged.empty_globs(name)
    yield from judged.shared()


def _bounded(name: str, found: list[Finding]) -> list[Finding]:
    """Keep the first findings about a contract's dependencies, errors before others, and count the rest.

    They are counted by rule, because a policy may make any rule an error.
    """
    if len(found) <= _MOST_NEEDS:
        return found
    at = sorted(range(len(found)), key=lambda each: found[each].level is not Level.ERROR)
    kept = [found[each] for each in sorted(at[:_MOST_NEEDS])]
    left: dict[str, list[Finding]] = {}
    for each in at[_MOST_NEEDS:]:
        left.setdefault(found[each].rule, []).append(found[each])
    for rule, rest in left.items():
        message = f"{len(rest):,} more about the dependencies of `{name}` not shown"
        hint, about = "fix those that are shown, then run it again", {"component": name}
        summary = find(rule, message, rest[0].path, hint, line=rest[0].line, details=about)
        kept.append(replace(summary, unnamed=tuple(each.message for each in rest)))
    return kept


class _ContractChecks:
    """The checks of one view, with what they share: names, cycles, the lines of the config."""

    def __init__(self, view: ContractsView, policy: Policy) -> None:
        self._view = view
        self._policy = policy
        self._names = ComponentNames(view.components.ids)
        self._likes: dict[str, str | None] = {}

    def _find(
        self, name: str, rule: str, message: str, hint: str, *, line: int | None = None, **details: Detail
    ) -> Finding:
        """Make a finding about a component, at its contract."""
        path = self._view.components[name].contract
        return find(rule, message, path, hint, line=line, details={"component": name, **details})

    def contract(self, name: str) -> Iterator[Finding]:
        """Judge one contract: whether it exists, its content, its dependencies."""
        facts = self._view.facts.get(name)
        if facts is None:
            yield self._absent(name, self._view.components[name].contract)
            return
        for mistake in facts.mistakes:
            where = mistake.where or None
            message = f"`{where}`: {mistake.message}" if where else mistake.message
            finding = self._find(name, mistake.rule, message, mistake.hint, line=mistake.line, pattern=where)
            yield replace(finding, unnamed=mistake.unnamed)
        if facts.component_id is not None and facts.component_id != name:
            other = printable(facts.component_id, 80)
            message = f"the contract of `{name}` has the component_id `{other}`"
            hint = f'write "component_id": "{name}", or fix the path in the config'
            line = facts.component_id_line
            yield self._find(name, "contract-invalid", message, hint, line=line, pattern="component_id")
        yield from _bounded(name, list(self._needs(name, facts)))
        for cycle in self._cycles:
            if name == min(cycle.members & self._view.asked):
                yield self._cycle(cycle)

    def _absent(self, name: str, path: RepoPath) -> Finding:
        kind = self._view.not_files.get(name)
        if kind is not None:
            message = f"the contract of `{name}`, {path.quoted}, is {kind}"
            return self._find(name, "contract-invalid", message, "make it a regular file")
        key = ("components", name, "contract")
        file, line = self._in_config(key)
        return find(
            "contract-missing",
            f"component `{name}` has no contract: {path.quoted} does not exist",
            file or path,
            f"write {path.quoted}, or fix `contract` in the config",
            line=line,
            decision=Decision(key, self._view.components[name].settings.contract),
            details={"component": name},
        )

    def _needs(self, name: str, facts: ContractFacts) -> Iterator[Finding]:
        for reference, resolved in resolve_dependencies(facts, self._names):
            report = partial(self._find, name, line=reference.line, pattern=reference.name)
            yield from self._dependency(name, reference, resolved, report)
        for reference in facts.externals:
            if not self._view.externals.get(reference.name, False):
                yield self._external(name, reference)

    def _dependency(
        self, name: str, reference: Reference, resolved: Resolved | None, report: Callable[..., Finding]
    ) -> Iterator[Finding]:
        written = printable(reference.name, 80)
        if resolved is None:
            owner = self._view.owners.get(reference.name, name)
            if owner != name:
                message = f"`{written}` is a {'path' if '/' in written else 'module'} of component `{owner}`"
                yield report("dependency-unknown", message, f"name the component: `{owner}`")
            elif not self._view.externals.get(reference.name, False):
                message = f"`{name}` depends on `{written}`, which is not a component, module or path"
                hint = self._meant(reference.name) or "name a component, or remove the entry"
                yield report("dependency-unknown", message, hint)
            return
        if resolved.how is not How.EXACT:
            message = f"`{written}` was read as `{resolved.id}`, {_READ_AS[resolved.how]}"
            yield report("dependency-corrected", message, f"write `{resolved.id}`")
        if self._view.facts.get(resolved.id) is None:
            there = self._view.components[resolved.id].contract.quoted
            message = f"`{name}` depends on `{resolved.id}`, which has no contract"
            hint = f"write {there} first, or remove the dependency"
            yield report("dependency-without-contract", message, hint)
        if is_across(self._view.components, name, resolved.id):
            here, other = self._place(name), self._place(resolved.id)
            message = f"{here} depends on {other}, in another branch of the component tree"
            hint = "depend on a sibling, a parent or a parent's sibling, or move one of the two"
            yield replace(report("dependency-across", message, hint), who_can_fix=Fixer.PERSON)

    def _place(self, name: str) -> str:
        above = reversed(self._view.components.ancestors(name))
        return "`" + "/".join([*above, name]) + "`"

    def _external(self, name: str, reference: Reference) -> Finding:
        component = self._names.find(reference.name)
        hint = (
            f"`{component.id}` is a component: name it in `dependencies`"
            if component is not None
            else self._meant(reference.name)
            or "restore it, or correct the name; installed packages do not belong in external_dependencies"
        )
        roots = ", ".join(f"`{printable(root, 80)}`" for root in self._policy.config.baselines.source_roots)
        wanted = printable(reference.name, 80)
        message = f"`{name}` needs `{wanted}`, which is not in this tree (source roots: {roots})"
        return self._find(
            name, "external-missing", message, hint, line=reference.line, pattern=reference.name
        )

    def _meant(self, written: str) -> str | None:
        if written not in self._likes:
            known = (*self._view.components.ids, *self._view.modules)
            # A lookup costs 3 ms among many names.
            asks = len(self._likes) < _MOST_SUGGESTIONS
            self._likes[written] = did_you_mean(written, known) if asks else None
        close = self._likes[written]
        return None if close is None else f"did you mean `{printable(close, 80)}`?"

    @cached_property
    def _cycles(self) -> tuple[Cycle, ...]:
        found = find_cycles(dependency_graph(self._names, self._view.facts))
        return tuple(each for each in found if each.members & self._view.asked)

    def _cycle(self, cycle: Cycle) -> Finding:
        first = cycle.path[0]
        shown = " -> ".join((*cycle.path, first))
        others = sorted(cycle.members - set(cycle.path))
        across = next((edge for edge in cycle.edges if is_across(self._view.components, *edge)), None)
        message = f"components depend on each other in a cycle: {shown}"
        if across is not None:
            message += f"; {self._place(across[0])} and {self._place(across[1])} are in different branches"
        if others:
            message += f"; in cycles with them: {first_of(others, _MOST_OTHERS)}"
        finding = self._find(
            first,
            "dependency-cycle",
            message,
            "remove one of these dependencies; move what both need to another component",
            line=self._line_to(first, cycle.path[1 % len(cycle.path)]),
            pattern=shown,
            cycle=list(cycle.path),
            crosses_subtrees=across is not None,
        )
        return replace(finding, unnamed=tuple(others[_MOST_OTHERS:]))

    def _line_to(self, name: str, other: str) -> int | None:
        facts = self._view.facts.get(name) or ContractFacts(is_readable=False)
        needs = resolve_dependencies(facts, self._names)
        return next((each.line for each, found in needs if found is not None and found.id == other), None)

    def budgets(self, name: str) -> Iterator[Finding]:
        """Report budgets that no test of a component asserts, unless it has no test in Python."""
        facts = self._view.facts.get(name)
        files = self._view.tests[name]
        if files and not any(path.raw.endswith(b".py") for path in files):
            return
        tests = BudgetTests(files)
        for promise in facts.budgets if facts is not None else ():
            if not tests.asserts(promise):
                limit = f"{promise.limit:g} {_MEASURES.get(promise.kind, promise.kind)}"
                function = printable(promise.function, 80)
                message = f"`{function}` promises {limit}, and no test of `{name}` asserts it"
                hint = f"write one; git patchgate component tests {name} prints one"
                line, where = promise.line, promise.where
                yield self._find(name, "budget-unasserted", message, hint, line=line, pattern=where)

    def empty_globs(self, name: str) -> Iterator[Finding]:
        """Report the patterns of a component that match nothing."""
        settings = self._view.components[name].settings
        for glob in self._view.empty_globs[name]:
            kind = "tests" if glob in settings.tests else "implementation"
            key = ("components", name, kind, getattr(settings, kind).index(glob))
            file, line = self._in_config(key)
            decision = Decision(key, glob)
            yield find(
                "component-empty-glob",
                f"`{decision.shown}`, a pattern for the {kind} of `{name}`, matches no file",
                file,
                "fix or remove the pattern",
                line=line,
                decision=decision,
                details={"component": name},
            )

    def shared(self) -> Iterator[Finding]:
        """Report the files that several components claim, grouped by those components."""
        groups: dict[tuple[str, ...], list[RepoPath]] = {}
        for path, ids in self._view.shared.items():
            groups.setdefault(ids, []).append(path)
        for ids, paths in sorted(groups.items()):
            names = ", ".join(f"`{name}`" for name in ids)
            shown = first_of(paths, _MOST_SHARED_SHOWN, lambda path: path.quoted)
            file, line = self._in_config(("components", ids[-1]))
            where = f" ([components.{ids[-1]}] in {file.quoted}:{line})" if file is not None and line else ""
            finding = find(
                "component-shared-file",
                f"{names} claim the same {'file' if len(paths) == 1 else 'files'}: {shown}",
                paths[0],
                f"narrow the patterns of one of them{where}",
                details={"components": list(ids), "pattern": " ".join(ids)},
            )
            yield replace(finding, unnamed=tuple(path.quoted for path in paths[_MOST_SHARED_SHOWN:]))

    @cached_property
    def _config_lines(self) -> Mapping[Key, int]:
        return lines(self._policy.raw.decode("utf-8")) if self._policy.raw else {}

    def _in_config(self, key: Key) -> tuple[RepoPath | None, int | None]:
        """Find a key's place in the config."""
        if not self._policy.file:
            return None, None
        prefix: Key = ("tool", "patchgate") if self._policy.file == "pyproject.toml" else ()
        return RepoPath(self._policy.file.encode("ascii")), line_of(self._config_lines, (*prefix, *key))
