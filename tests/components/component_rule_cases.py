"""For every rule of contracts, drift and staleness what breaks it, and the nearest neighbour that does not.

Those of drift are in `drift_cases`. Here is a miniature of what is gathered of a tree: the component `one`
has its contract at `c/i.json`, its tests below `t/`, its implementation below `src/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from patchgate.components.component_facts import ContractsView
from patchgate.components.contract_reading import facts_of
from patchgate.components.contracts import examine_contracts
from patchgate.components.staleness import DAY, LastVerified
from patchgate.components.staleness import examine as examine_staleness
from patchgate.report.rules.contracts import DRIFT_RULES
from patchgate.report.verdict import Finding
from tests.check.gate_cases import path, policy
from tests.components.drift_cases import broken, kept

Findings = Callable[[bytes], Sequence[Finding]]
NOW = 1_700_000_000.0
TOML = """\
[components.one]
contract = "c/i.json"
tests = ["t/**"]
implementation = ["src/**"]
[components.two]
contract = "two/i.json"
tests = ["two/t"]
implementation = ["two/src"]
parent = "elsewhere"
"""


def _contract(version: str = "1.0", **more: object) -> bytes:
    return json.dumps({"component_id": "one", "version": version, **more}).encode()


DRIFT: dict[str, tuple[Findings, Findings]] = {
    rule.id: (partial(broken, rule.id), partial(kept, rule.id)) for rule in DRIFT_RULES
}

# ---- contracts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """The contracts of two components in different parts of the component tree, and what is around them."""

    one: bytes | None
    two: bytes | None = json.dumps({"component_id": "two", "version": "1.0"}).encode()
    more: Mapping[str, Any] = field(default_factory=dict)
    judged: str = TOML

    def examine(self) -> Sequence[Finding]:
        judged = policy(self.judged)
        facts = {
            name: None if raw is None else facts_of(raw)
            for name, raw in (("one", self.one), ("two", self.two))
        }
        view = ContractsView(judged.components, frozenset(facts), facts)
        return tuple(examine_contracts(replace(view, **self.more), judged))


def _tree(one: Callable[[str], bytes], **more: Any) -> Findings:
    return lambda name: Tree(one(name.decode("utf-8", "backslashreplace")), more=more).examine()


def _function(**parts: object) -> Callable[[str], bytes]:
    effects = [{"kind": "none", "target": "none"}]
    function = {"name": "f", "side_effects": effects, **parts}
    return lambda name: _contract(functions=[function], description=name)


def _effects(*kinds: str, **parts: object) -> Findings:
    effects = [{"kind": kind, "target": "t"} for kind in kinds]
    return _tree(_function(side_effects=effects, **parts))


def _needing(*names: str) -> Callable[[str], bytes]:
    return lambda name: _contract(dependencies=list(names), description=name)


_TWO_NEEDS_ONE = json.dumps({"component_id": "two", "version": "1.0", "dependencies": ["one"]}).encode()
_BUDGET = {"p95_latency_ms": 5}
_ASSERTED = b"def test_f():\n    assert latency(f) <= 5\n"
_SIBLINGS = TOML.replace('parent = "elsewhere"\n', "")
CONTRACTS: dict[str, tuple[Findings, Findings]] = {
    "contract-invalid": (
        lambda n: Tree(b'{"' + n.replace(b'"', b"") + b'": 1}').examine(),
        _tree(lambda n: _contract(description=n)),
    ),
    "contract-outdated": (_tree(_function(side_effects=["writes_file out.txt"])), _effects("writes_file")),
    "contract-type-unknown": (
        _tree(_function(output={"type": "Shape"})),
        _tree(_function(output={"type": "int"})),
    ),
    "contract-vague": (
        _tree(lambda n: _contract(description="handles it as needed " + n)),
        _tree(lambda n: _contract(description="handles it as-needed " + n)),
    ),
    "side-effects-empty": (_effects(), _effects("none")),
    "side-effects-mixed": (_effects("none", "logging"), _effects("logging")),
    "side-effects-idempotent": (_effects("writes_file", idempotent=True), _effects("writes_file")),
    "contract-missing": (lambda n: Tree(None).examine(), lambda n: Tree(_contract()).examine()),
    "dependency-unknown": (_tree(_needing("three")), _tree(_needing("three"), externals={"three": True})),
    "dependency-corrected": (_tree(_needing("TWO")), _tree(_needing("two"))),
    "dependency-without-contract": (
        lambda n: Tree(_needing("two")("x"), None).examine(),
        lambda n: Tree(_needing("two")("x")).examine(),
    ),
    "external-missing": (
        _tree(lambda n: _contract(external_dependencies=["a.b"], description=n)),
        _tree(lambda n: _contract(external_dependencies=["a.b"], description=n), externals={"a.b": True}),
    ),
    "dependency-cycle": (
        lambda n: Tree(_needing("two")("x"), _TWO_NEEDS_ONE).examine(),
        lambda n: Tree(_needing()("x"), _TWO_NEEDS_ONE).examine(),
    ),
    "dependency-across": (
        _tree(_needing("two")),
        lambda n: Tree(_needing("two")("x"), judged=_SIBLINGS).examine(),
    ),
    "budget-unasserted": (
        lambda n: Tree(_function(performance_budget=_BUDGET)("x"), more={"tests": {"one": {}}}).examine(),
        lambda n: Tree(
            _function(performance_budget=_BUDGET)("x"),
            more={"tests": {"one": {path(b"t/" + n + b".py"): _ASSERTED}}},
        ).examine(),
    ),
    "component-empty-glob": (
        _tree(_needing(), empty_globs={"one": ("t/**",)}),
        _tree(_needing(), empty_globs={"one": ()}),
    ),
    "component-shared-file": (
        lambda n: Tree(_contract(), more={"shared": {path(n): ("one", "two")}}).examine(),
        lambda n: Tree(_contract()).examine(),
    ),
}

# ---- staleness ---------------------------------------------------------------------------------------------


def _verified(*, days: int | None, changed: Sequence[str] = ()) -> Findings:
    seconds = None if days is None else int(NOW) - days * DAY
    unknown = "the history is shallow" if days is None else None
    verified = LastVerified(
        "one", path(b".patchgate/baselines/one.json"), seconds, "commit", "1" * 40, tuple(changed), unknown
    )
    return lambda name: tuple(examine_staleness(verified, policy(TOML), NOW))


STALENESS: dict[str, tuple[Findings, Findings]] = {
    "baseline-stale": (_verified(days=91), _verified(days=90)),
    "baseline-aging": (_verified(days=90, changed=["two"]), _verified(days=90)),
    "baseline-unknown": (_verified(days=None), _verified(days=0)),
}
COMPONENT_CASES = DRIFT | CONTRACTS | STALENESS
