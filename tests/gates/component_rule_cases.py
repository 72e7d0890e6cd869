"""For every rule of contracts, drift and staleness what breaks it, and the nearest neighbour that does not.

A miniature of what is gathered of a tree: the component `one` has its contract at `c/i.json`, its tests below
`t/`, its implementation below `src/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from patchgate.change.model import EXECUTABLE, REGULAR, Entry
from patchgate.change.path import RepoPath
from patchgate.declared.baseline import Baseline, BaselineFault, Recorded, RecordedFile
from patchgate.declared.component import Components, Role
from patchgate.declared.contract_reading import facts_of
from patchgate.declared.settings import ComponentSettings
from patchgate.gates.component_case import ComponentState, ContractsView
from patchgate.gates.contracts import examine_view
from patchgate.gates.drift import examine_state
from patchgate.gates.staleness import DAY, Verified
from patchgate.gates.staleness import examine as examine_staleness
from patchgate.verdict.verdict import Finding
from tests.gates.gate_cases import oid, path, policy

Findings = Callable[[bytes], Sequence[Finding]]
CONTRACT = b"c/i.json"
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
TESTS = b"def test_a():\n    assert f(1)\n    assert f(2)\n"


def named(settings: Mapping[str, str]) -> Components:
    """Declare components that have nothing but a parent of their own."""
    return Components(
        {
            name: ComponentSettings(f"{name}/i.json", (f"{name}/t",), (f"{name}/src",), parent or None)
            for name, parent in settings.items()
        }
    )


# ---- drift -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files:
    """The files of the component `one`: contents by path, and those that can be executed."""

    contents: Mapping[bytes, bytes]
    executable: frozenset[bytes] = frozenset()

    def __or__(self, more: Mapping[bytes, bytes | None]) -> Files:
        """Change some files; None takes one away."""
        merged = {**self.contents, **more}
        return Files({name: text for name, text in merged.items() if text is not None}, self.executable)

    def entry(self, name: bytes) -> Entry:
        return Entry(EXECUTABLE if name in self.executable else REGULAR, oid(self.contents[name]))

    @property
    def found(self) -> dict[RepoPath, tuple[Role, Entry]]:
        return {path(name): (_role(name), self.entry(name)) for name in sorted(self.contents)}

    @property
    def recorded(self) -> Baseline:
        """What a capture would record."""
        files = {
            path(name): RecordedFile(
                _role(name), self.entry(name).mode, self.entry(name).oid, hashlib.sha256(text).hexdigest()
            )
            for name, text in sorted(self.contents.items())
        }
        return Baseline("one", files)


def _role(name: bytes) -> Role:
    if name == CONTRACT:
        return Role.CONTRACT
    return Role.TESTS if name.startswith(b"t/") else Role.IMPLEMENTATION


def _contract(version: str = "1.0", **more: object) -> bytes:
    return json.dumps({"component_id": "one", "version": version, **more}).encode()


def _then(name: bytes) -> Files:
    return Files({CONTRACT: _contract(), b"t/" + name: TESTS, b"src/" + name: b"x = 1\n"})


NO_BASELINE = "no baseline"


def _state(
    then: Files,
    now: Files,
    *,
    recorded: Recorded | str | None = "",
    before: Recorded | None = None,
    changed: Sequence[bytes] = (),
    written: bytes | None = None,
    capture: bytes | None = None,
) -> Sequence[Finding]:
    texts = {oid(text): text for files in (then, now) for text in files.contents.values()}
    judged = policy(TOML)
    state = ComponentState(
        judged.components["one"],
        now.found,
        then.recorded if isinstance(recorded, str) else recorded,
        before,
        frozenset(map(path, changed)),
        texts,
        capture,
        written,
    )
    return tuple(examine_state(state))


def _drift(change: Callable[[bytes, Files], Files]) -> Findings:
    return lambda name: _state(_then(name), change(name, _then(name)))


BASELINE = b".patchgate/baselines/one.json"
MORE = b"# more\n"
DRIFT: dict[str, tuple[Findings, Findings]] = {
    "drift-implementation": (
        _drift(lambda n, files: files | {b"src/" + n: b"x = 2\n"}),
        _drift(lambda n, files: files),
    ),
    "drift-contract-without-tests": (
        _drift(lambda n, files: files | {CONTRACT: _contract("1.1")}),
        _drift(lambda n, files: files | {CONTRACT: _contract("1.1"), b"t/" + n: TESTS + MORE}),
    ),
    "drift-version": (
        _drift(lambda n, files: files | {CONTRACT: _contract(description="x"), b"t/" + n: TESTS + MORE}),
        _drift(lambda n, files: files | {CONTRACT: _contract("1.0.1"), b"t/" + n: TESTS + MORE}),
    ),
    "drift-tests": (
        _drift(lambda n, files: files | {b"t/" + n: TESTS + MORE}),
        _drift(lambda n, files: files | {b"t/" + n: TESTS + MORE, CONTRACT: _contract("1.1")}),
    ),
    "drift-tests-weakened": (
        _drift(lambda n, files: files | {b"t/" + n: None}),
        _drift(lambda n, files: files | {b"t/" + n: None, b"t/moved-" + n: TESTS}),
    ),
    "drift-missing": (
        _drift(lambda n, files: files | {b"src/" + n: None}),
        _drift(lambda n, files: files | {b"src/" + n: None, b"src/moved-" + n: b"x = 1\n"}),
    ),
    "drift-moved": (
        _drift(lambda n, files: files | {b"src/" + n: None, b"src/moved-" + n: b"x = 1\n"}),
        _drift(lambda n, files: files | {b"src/moved-" + n: b"x = 1\n"}),
    ),
    "drift-all": (
        _drift(
            lambda n, files: (
                files | {CONTRACT: _contract("2"), b"t/" + n: TESTS + MORE, b"src/" + n: b"x = 2\n"}
            )
        ),
        _drift(lambda n, files: files | {CONTRACT: _contract("2"), b"t/" + n: TESTS + MORE}),
    ),
    "no-baseline": (
        lambda n: _state(_then(n), _then(n), recorded=None, changed=[b"src/" + n]),
        lambda n: _state(_then(n), _then(n), changed=[b"src/" + n]),
    ),
    "baseline-invalid": (
        lambda n: _state(_then(n), _then(n), recorded=BaselineFault("it is no JSON", 3, "capture it anew")),
        lambda n: _state(_then(n), _then(n)),
    ),
    "baseline-tampered": (
        lambda n: _state(_then(n), _then(n), changed=[BASELINE], written=b"{}", capture=b"{ }"),
        lambda n: _state(_then(n), _then(n), changed=[BASELINE], written=b"{}", capture=b"{}"),
    ),
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
        return tuple(examine_view(replace(view, **self.more), judged))


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
    verified = Verified("one", path(BASELINE), seconds, "commit", "1" * 40, tuple(changed), unknown)
    return lambda name: tuple(examine_staleness(verified, policy(TOML), NOW))


STALENESS: dict[str, tuple[Findings, Findings]] = {
    "baseline-stale": (_verified(days=91), _verified(days=90)),
    "baseline-aging": (_verified(days=90, changed=["two"]), _verified(days=90)),
    "baseline-unknown": (_verified(days=None), _verified(days=0)),
}
COMPONENT_CASES = DRIFT | CONTRACTS | STALENESS
