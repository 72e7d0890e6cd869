"""Selftest cases for the rules of components: two small components, and what breaks each rule.

Component `one` depends on `two` and has a valid baseline, written as a capture writes it, for SHA-1 object
ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial

from patchgate.check.selftest_case import ProposalKind, SelftestCase
from patchgate.components.baseline_file import RecordedFile, write_baseline
from patchgate.git.model import REGULAR
from patchgate.git.path import RepoPath
from patchgate.policy.component import Components, Role
from patchgate.policy.settings import ComponentSettings

_POLICY = """\
[components.one]
contract = "one/interface.json"
tests = ["one/tests/**"]
implementation = ["one/src/**"]

[components.two]
contract = "two/interface.json"
tests = ["two/tests/**"]
implementation = ["two/src/**"]
"""
_FAR = _POLICY + 'parent = "elsewhere"\n'
_OLD = "[baselines]\nstaleness_window_days = 36500\n"
_CONTRACT, _TESTS, _SOURCE = "one/interface.json", "one/tests/test_f.py", "one/src/f.py"
_BASELINE = ".patchgate/baselines/one.json"
_PUSH = b"x OURS refs/heads/new " + b"0" * 40 + b"\n"
_FUTURE = 4 * 10**9

Texts = Mapping[str, str | None]


def _interface(name: str, version: str = "1.0", *, function: object = None, **more: object) -> str:
    effects = [{"kind": "none", "target": "none"}]
    functions = [function or {"name": "f", "side_effects": effects}]
    document = {"component_id": name, "version": version, "functions": functions, **more}
    return json.dumps(document, indent=2) + "\n"


_one = partial(_interface, "one")


def _with_function(**parts: object) -> str:
    effects = [{"kind": "none", "target": "none"}]
    return _one("1.1", function={"name": "f", "side_effects": effects, **parts})


def _with_effects(*kinds: str, **parts: object) -> str:
    return _with_function(side_effects=[{"kind": kind, "target": "x"} for kind in kinds], **parts)


_TEST = "def test_f():\n    assert f(1)\n    assert f(2)\n"
_FILES = {
    _CONTRACT: _one(dependencies=["two"]),
    _TESTS: _TEST,
    _SOURCE: "f = bool\n",
    "two/interface.json": _interface("two"),
    "two/tests/test_f.py": _TEST,
    "two/src/f.py": "f = bool\n",
}


def _captured() -> str:
    components = Components(
        {"one": ComponentSettings("one/interface.json", ("one/tests/**",), ("one/src/**",))}
    )
    files: dict[RepoPath, RecordedFile] = {}
    for name, text in _FILES.items():
        path, content = RepoPath(name.encode()), text.encode()
        role = components["one"].role(path)
        if role is not None:
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            files[path] = RecordedFile(Role(role), REGULAR, blob, hashlib.sha256(content).hexdigest())
    return write_baseline("one", files).decode("ascii")


_BASE = {**_FILES, _BASELINE: _captured()}


def _patch(changed: Texts) -> bytes:
    """Write a patch that replaces whole files; None deletes one."""
    sections = [_section(name, _BASE.get(name), text) for name, text in sorted(changed.items())]
    return "".join(section for section in sections if section).encode()


def _section(name: str, old: str | None, new: str | None) -> str:
    if old == new:
        return ""
    lines = [f"diff --git a/{name} b/{name}\n"]
    if old is None or new is None:
        lines.append(f"{'deleted' if new is None else 'new'} file mode {REGULAR}\n")
    lines.append(f"--- {'/dev/null' if old is None else f'a/{name}'}\n")
    lines.append(f"+++ {'/dev/null' if new is None else f'b/{name}'}\n")
    removed, added = (text.splitlines(keepends=True) if text else [] for text in (old, new))
    spans = [f"{1 if lines_of else 0},{len(lines_of)}" for lines_of in (removed, added)]
    lines.append(f"@@ -{spans[0]} +{spans[1]} @@\n")
    return "".join([*lines, *(f"-{line}" for line in removed), *(f"+{line}" for line in added)])


def _case(
    rule: str, broken: Texts, kept: Texts, policy: str = _POLICY, base: Texts | None = None
) -> SelftestCase:
    files = _BASE if base is None else {name: text for name, text in {**_BASE, **base}.items() if text}
    return SelftestCase(rule, _patch(broken), policy, neighbour=_patch(kept), files=files)


def _contract_case(rule: str, broken: str, kept: str) -> SelftestCase:
    return _case(rule, {_CONTRACT: broken}, {_CONTRACT: kept})


def _push(rule: str, policy: str, *, then: Mapping[str, str] | None = None, seconds: int = 0) -> SelftestCase:
    """Push a branch; the neighbour is a tag, which is not checked."""
    tag = _PUSH.replace(b"heads", b"tags")
    return SelftestCase(
        rule, _PUSH, policy, ProposalKind.PUSH, tag, files=_BASE, then=then or {}, seconds=seconds
    )


_MORE_TESTS = _TEST + "    assert f(3)\n"
_NEEDS_TWO = _one("1.1", dependencies=["two"])

COMPONENT_CASES: tuple[SelftestCase, ...] = (
    _contract_case("contract-invalid", _one("1.1", unknown=1), _one("1.1", description="one")),
    _contract_case("contract-outdated", _with_function(side_effects=["logging"]), _with_effects("logging")),
    _contract_case(
        "contract-type-unknown",
        _with_function(output={"type": "Shape"}),
        _with_function(output={"type": "int"}),
    ),
    _contract_case(
        "contract-vague", _one("1.1", description="reads as needed"), _one("1.1", description="reads")
    ),
    _contract_case("side-effects-empty", _with_effects(), _with_effects("none")),
    _contract_case("side-effects-mixed", _with_effects("none", "logging"), _with_effects("logging")),
    _contract_case(
        "side-effects-idempotent", _with_effects("writes_file", idempotent=True), _with_effects("writes_file")
    ),
    _case("contract-missing", {_CONTRACT: None}, {_CONTRACT: _one("1.1")}),
    _contract_case("dependency-unknown", _one("1.1", dependencies=["three"]), _NEEDS_TWO),
    _contract_case("dependency-corrected", _one("1.1", dependencies=["Two"]), _NEEDS_TWO),
    _case(
        "dependency-without-contract",
        {_CONTRACT: _NEEDS_TWO, "two/interface.json": None},
        {_CONTRACT: _NEEDS_TWO},
    ),
    _contract_case(
        "external-missing",
        _one("1.1", external_dependencies=["one.src.g"]),
        _one("1.1", external_dependencies=["one.src.f"]),
    ),
    _case(
        "dependency-cycle",
        {_CONTRACT: _NEEDS_TWO, "two/interface.json": _interface("two", dependencies=["one"])},
        {_CONTRACT: _NEEDS_TWO},
    ),
    _case("dependency-across", {_CONTRACT: _NEEDS_TWO}, {_CONTRACT: _one("1.1")}, _FAR),
    _contract_case(
        "budget-unasserted", _with_function(performance_budget={"p95_latency_ms": 5}), _with_function()
    ),
    _case("component-empty-glob", {_TESTS: None}, {_TESTS: _MORE_TESTS}),
    _case(
        "component-shared-file",
        {"one/src/two.py": "f = 1\n"},
        {"one/src/g.py": "f = 1\n"},
        _POLICY.replace("two/src/**", "one/src/two.py"),
    ),
    _case("drift-implementation", {_SOURCE: "f = 1\n"}, {"README.md": "x\n"}),
    _case(
        "drift-contract-without-tests",
        {_CONTRACT: _one("1.1")},
        {_CONTRACT: _one("1.1"), _TESTS: _MORE_TESTS},
    ),
    _case(
        "drift-version",
        {_CONTRACT: _one(description="one"), _TESTS: _MORE_TESTS},
        {_CONTRACT: _one("1.1", description="one"), _TESTS: _MORE_TESTS},
    ),
    _case("drift-tests", {_TESTS: _MORE_TESTS}, {_CONTRACT: _one("1.1"), _TESTS: _MORE_TESTS}),
    _case("drift-tests-weakened", {_TESTS: _TEST.replace("    assert f(2)\n", "")}, {_TESTS: _MORE_TESTS}),
    _case("drift-missing", {_SOURCE: None}, {_SOURCE: None, "one/src/g.py": "f = bool\n"}),
    _case("drift-moved", {_SOURCE: None, "one/src/g.py": "f = bool\n"}, {"one/src/g.py": "f = bool\n"}),
    _case(
        "drift-all",
        {_CONTRACT: _one("1.1"), _TESTS: _MORE_TESTS, _SOURCE: "f = 1\n"},
        {_TESTS: _MORE_TESTS, _SOURCE: "f = 1\n"},
    ),
    SelftestCase(
        "component-undeclared",
        _section("patchgate.toml", _POLICY, _POLICY.partition("\n\n")[2]).encode(),
        _POLICY,
        neighbour=_section("patchgate.toml", _POLICY, _POLICY + _OLD).encode(),
        files=_BASE,
    ),
    _case("no-baseline", {"two/src/f.py": "f = 1\n"}, {_SOURCE: "f = 1\n"}),
    _case("baseline-invalid", {_SOURCE: "f = 1\n"}, {"README.md": "x\n"}, base={_BASELINE: "<<<<<<< HEAD\n"}),
    _case("baseline-tampered", {_BASELINE: "{}\n"}, {_SOURCE: "f = 1\n"}),
    _push("baseline-stale", _POLICY),
    _push("baseline-aging", _POLICY + _OLD, then={"two/src/f.py": "f = int\n"}),
    _push("baseline-unknown", _POLICY, seconds=_FUTURE),
)
