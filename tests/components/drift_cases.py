"""States of a component for the drift gate, in a few words; for each rule a case and a neighbour."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from patchgate.components.baseline_file import Baseline, Recorded, read_baseline
from patchgate.components.component_facts import ComponentFacts, ComponentState
from patchgate.components.drift import examine, examine_state
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component, Role
from patchgate.policy.settings import ComponentSettings
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding
from tests.check.gate_cases import case, oid
from tests.component_world import recorded as baseline_of

CONTRACT, TESTS, CODE = b"c/interface.json", b"t/test_c.py", b"s/code.py"
PLACE = b".patchgate/baselines/shaping.json"
COMPONENT = Component("shaping", ComponentSettings("c/interface.json", ("t/**",), ("s/**",)))
TWO_TESTS = b"def test_a():\n    assert a\n    assert b\ndef test_b():\n    assert c\n"
OTHER_TESTS = TWO_TESTS.replace(b"assert c", b"assert d")
UNDECLARED = "component-undeclared"
Tree = Mapping[bytes, bytes]


def contract(version: str = "1.0.0", about: str = "") -> bytes:
    """Write a contract."""
    return json.dumps({"component_id": "shaping", "version": version, "description": about}).encode()


TREE: Tree = {CONTRACT: contract(), TESTS: TWO_TESTS, CODE: b"code"}


def entries(tree: Tree, executable: Collection[bytes] = ()) -> dict[RepoPath, tuple[Role, Entry]]:
    """Make the files of the component; a content that begins with `->` is a symlink."""
    found = {}
    for raw, content in sorted(tree.items()):
        mode = "100755" if raw in executable else "120000" if content.startswith(b"->") else "100644"
        role = COMPONENT.role(RepoPath(raw))
        assert role is not None
        found[RepoPath(raw)] = (role, Entry(mode, oid(content)))
    return found


def capture(tree: Tree, executable: Collection[bytes] = ()) -> bytes:
    """Write the baseline of some files."""
    found = entries(tree, executable)
    return baseline_of(
        COMPONENT, ((path.raw, entry.mode, entry.oid, tree[path.raw]) for path, (_, entry) in found.items())
    )


def baseline(tree: Tree) -> Baseline:
    """Make the baseline of some files."""
    found = read_baseline(capture(tree), "shaping")
    assert isinstance(found, Baseline)
    return found


def state(
    tree: Tree,
    recorded: Recorded | bytes | Tree | None = TREE,
    before: Tree | Recorded | None = TREE,
    changed: Collection[bytes] = (),
    executable: Collection[bytes] = (),
    *,
    is_merge: bool = False,
    unclaimed: Collection[bytes] = (),
    earlier: Tree = TREE,
) -> ComponentState:
    """Make the state of a component: what is in its tree, what its baseline says and said before.

    What it touches is as in `earlier` in the tree before the change.
    """
    written = capture(recorded) if isinstance(recorded, Mapping) else recorded
    read = read_baseline(written, "shaping") if isinstance(written, bytes) else written
    old = baseline(before) if isinstance(before, Mapping) else before
    contents = [*tree.values(), *earlier.values()]
    was = entries(earlier)
    for each in (recorded, before):
        contents.extend(each.values() if isinstance(each, Mapping) else ())
    touched = PLACE in changed
    return ComponentState(
        COMPONENT,
        entries(tree, executable),
        read,
        old if touched else read,
        frozenset(RepoPath(each) for each in changed),
        {oid(content): content for content in contents},
        capture(tree, executable) if touched and read is not None else None,
        written if touched and isinstance(written, bytes) else None,
        is_merge,
        frozenset(RepoPath(each) for each in unclaimed),
        {path: was[path][1] if path in was else None for path in map(RepoPath, changed)},
    )


def told(given: ComponentState) -> list[tuple[str, Level, bytes]]:
    """List rule, level and path of what is found of one state."""
    return [(each.rule, each.level, each.path.raw if each.path else b"") for each in examine_state(given)]


def broken(rule: str, name: bytes) -> Sequence[Finding]:
    """Break a rule."""
    if rule == UNDECLARED:
        return undeclared(RepoPath(b".patchgate/baselines/" + name))
    return list(examine_state(broken_states(name)[rule]))


def kept(rule: str, name: bytes) -> Sequence[Finding]:
    """Come near to it."""
    return undeclared() if rule == UNDECLARED else list(examine_state(kept_states(name)[rule]))


def undeclared(place: RepoPath | None = None) -> Sequence[Finding]:
    """Take the declaration of a component away while its baseline stays at some place; or is gone."""
    near = ComponentFacts(undeclared={} if place is None else {"shaping": place})
    return list(examine(replace(case(), facts={"components": near})))


def broken_states(name: bytes) -> dict[str, ComponentState]:
    code, test = b"s/" + name, b"t/" + name + b".py"
    tree = {**TREE, code: b"more", test: TWO_TESTS + b"#"}
    gone = {path: content for path, content in tree.items() if path not in {code, test}}
    return {
        "drift-contract-without-tests": state({**TREE, CONTRACT: contract("2")}),
        "drift-tests-weakened": state({**gone, code: b"more"}, tree),
        "drift-missing": state({**gone, test: TWO_TESTS + b"#"}, tree),
        "drift-version": state({**TREE, CONTRACT: contract(about="x"), TESTS: OTHER_TESTS}),
        "drift-implementation": state({**TREE, code: b"more"}),
        "drift-tests": state({**TREE, test: b"x"}),
        "drift-moved": state({**TREE, code: b"same"}, {**TREE, b"s/same": b"same"}),
        "drift-all": state({CONTRACT: contract("2"), TESTS: OTHER_TESTS, code: b"other", CODE: b"code"}),
        "no-baseline": state({**TREE, code: b"x"}, None),
        "baseline-invalid": state(TREE, b'{"' + name.replace(b"\n", b"") + b'": 1}'),
        "baseline-tampered": state({**TREE, code: b"x"}, TREE, TREE, [PLACE, code]),
    }


def kept_states(name: bytes) -> dict[str, ComponentState]:
    code, test = b"s/" + name, b"t/" + name + b".py"
    moved = {CONTRACT: contract(), CODE: b"code", b"t/test_" + name + b".py": TWO_TESTS}
    both = {**TREE, CONTRACT: contract("2"), TESTS: OTHER_TESTS}
    return {
        "drift-contract-without-tests": state(both),
        "drift-tests-weakened": state(moved),
        "drift-missing": state({CONTRACT: contract(), TESTS: TWO_TESTS, code: b"code"}),
        "drift-version": state(both),
        "drift-implementation": state({**both, code: b"more"}),
        "drift-tests": state({**TREE, test: b"x", code: b"y"}),
        "drift-moved": state({**TREE, code: b"other"}, {**TREE, b"s/same": b"same"}),
        "drift-all": state({**TREE, TESTS: TWO_TESTS + b"#", code: b"other"}),
        "no-baseline": state({}, None),
        "baseline-invalid": state({**TREE, code: b"x"}, {**TREE, code: b"x"}),
        "baseline-tampered": state({**TREE, code: b"x"}, {**TREE, code: b"x"}, TREE, [PLACE, code]),
    }
