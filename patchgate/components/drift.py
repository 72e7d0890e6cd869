"""The drift gate: how implementation, contract and tests of a component differ from its baseline.

Compares object ids first; it reads only contracts and tests that differ. A change that brings a new baseline
must bring exactly what a capture of its result would write, and is also compared with the previous baseline,
as are several changes together: recording must not hide what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.check.case import Case, find
from patchgate.components.baseline_file import Baseline, BaselineFault
from patchgate.components.component_facts import ComponentFacts, ComponentState
from patchgate.components.drift_comparison import (
    DriftComparison,
    compare,
    have_tests_changed,
    is_contract_changed,
    is_python,
    is_version_higher,
)
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of
from patchgate.policy.component import Role
from patchgate.report.verdict import Detail, Finding
from patchgate.values import replace

_MOST = 20
_RULE_OF_ROLE = {
    Role.CONTRACT: "drift-version",
    Role.TESTS: "drift-tests",
    Role.IMPLEMENTATION: "drift-implementation",
}


def examine(case: Case) -> Iterator[Finding]:
    """Find the drift that the change leaves.

    Raises:
        UndecidedError: facts about the components could not be read.
    """
    near = ComponentFacts.of(case)
    if near is None:
        return
    near.require("drift")
    for state in near.states:
        yield from examine_state(state)
    for name, place in near.undeclared.items():
        yield find(
            "component-undeclared",
            f"component {name} is no longer declared, so its files are not checked",
            place,
            f"if this is intended, remove its baseline in a separate commit: git rm {place.quoted}; that "
            "commit may remove its files too",
            details={"component": name},
        )


def examine_state(state: ComponentState) -> Iterator[Finding]:
    """Find how one component differs from its baseline."""
    place, recorded = state.component.baseline, state.recorded
    touched = place in state.changed
    if isinstance(recorded, BaselineFault):
        yield find("baseline-invalid", recorded.message, place, recorded.hint, line=recorded.line)
    if touched and (tampered := _tampered_baseline(state)) is not None:
        yield tampered
        # For a component that is removed completely, one finding is enough.
        recorded = state.before if state.files else None
    elif recorded is None:
        if state.files:
            yield _component_finding(
                state, "no-baseline", f"component {state.component.id} has no baseline", "once its tests pass"
            )
        return
    elif touched and isinstance(state.before, Baseline):
        yield from examine_against_old_baseline(state, state.before)
    if isinstance(recorded, Baseline):
        yield from _drifted(state, recorded)


def _tampered_baseline(state: ComponentState) -> Finding | None:
    """Report what is wrong with a baseline that the change itself touches; None if it is correct."""
    if state.recorded is None:
        return None if state.before is None else deleted_baseline(state)
    if state.capture is not None and state.written == state.capture:
        return None
    return forged_baseline(state)


def deleted_baseline(state: ComponentState) -> Finding:
    """Report that the baseline of a component that is still declared is deleted."""
    place, name = state.component.baseline, state.component.id
    return find(
        "baseline-tampered",
        f"the baseline of component {name} is deleted, but the component is still declared",
        place,
        f"restore it: git restore --staged --worktree -- {place.quoted}; {_removal_hint(state)}",
        side="old",
    )


def forged_baseline(state: ComponentState) -> Finding:
    """Report a baseline that no capture would write."""
    place, name = state.component.baseline, state.component.id
    return find(
        "baseline-tampered",
        f"this is not what a capture of component {name} would write for the files of this change",
        place,
        f"stage the component's files, then: git patchgate baseline capture {name} && git add {place.quoted}",
    )


def _drifted(state: ComponentState, recorded: Baseline) -> Iterator[Finding]:
    """Report everything that differs from one baseline."""
    found = compare(state.files, recorded, state.unclaimed)
    if found.is_equal:
        return
    differences = list(_differences(state, found, recorded))
    yield from differences
    if not differences:
        # Only a changed promise and its tests differ.
        what = f"contract and tests of component {state.component.id}"
        yield _component_finding(state, "drift-all", f"{what} changed since they were recorded")


def _differences(state: ComponentState, found: DriftComparison, recorded: Baseline) -> Iterator[Finding]:
    """Report the differences, role by role."""
    lost = [path for path, each in found.gone.items() if each.role is not Role.TESTS]
    yield from _missing_files(state, found, lost)
    if found.differs(Role.CONTRACT) or found.differs(Role.TESTS):
        yield from _contract_and_tests(state, found, recorded)
    elif Role.IMPLEMENTATION in found.arrived_roles:
        yield _changed_role(state, found, Role.IMPLEMENTATION, "drift-implementation")
    yield from _undeclared_files(state, found)
    yield from _moved_files(state, found)


def _contract_and_tests(
    state: ComponentState, found: DriftComparison, recorded: Baseline
) -> Iterator[Finding]:
    """Report changes of contract and tests, and of the implementation with them."""
    # 6 ms to import, and most changes touch only the implementation.
    from patchgate.components.weakened_tests import weakened_findings

    contract, tests, implementation = (found.differs(role) for role in Role)
    promised = contract and is_contract_changed(found, state.texts) is not False
    is_tested = have_tests_changed(found, state.texts)
    if promised and not is_tested:
        yield from contract_without_tests(state)
    yield from weakened_findings(state, found, recorded, None)
    higher = is_version_higher(found, state.texts)
    if contract and not promised:
        # A contract at another path is reported at its old path.
        if not found.left_out_of(Role.CONTRACT):
            yield _rewritten_contract(state)
    elif higher is False:
        yield _version_not_raised(state)
    arrived = found.arrived_roles
    if promised and is_tested and implementation:
        what = f"contract, tests and implementation of component {state.component.id}"
        yield _component_finding(state, "drift-all", f"{what} changed since they were recorded")
    elif implementation and Role.IMPLEMENTATION in arrived and not higher:
        yield _changed_role(state, found, Role.IMPLEMENTATION, "drift-implementation")
    elif tests and not (promised or implementation) and Role.TESTS in arrived:
        yield _changed_role(state, found, Role.TESTS, "drift-tests")


def examine_against_old_baseline(state: ComponentState, before: Baseline) -> Iterator[Finding]:
    """Check a change that brings a new baseline against the previous one."""
    from patchgate.components.weakened_tests import weakened_findings

    contract = state.component.contract
    found = compare(state.files, before, state.unclaimed)
    # A merge brings the other side's changes of contract and tests without touching them.
    if state.is_merge or contract in state.changed:
        yield from _missing_files(state, found, [contract] if contract in found.gone else [])
        if found.differs(Role.CONTRACT) and is_contract_changed(found, state.texts) is not False:
            if not have_tests_changed(found, state.texts):
                yield from contract_without_tests(state)
            if is_version_higher(found, state.texts) is False:
                yield _version_not_raised(state)
    if state.is_merge or state.touches_tests:
        yield from weakened_findings(state, found, before, None if state.is_merge else state.changed)


def _missing_files(
    state: ComponentState, found: DriftComparison, lost: Sequence[RepoPath]
) -> Iterator[Finding]:
    """Report each missing file of contract and implementation; of very many the first, and a count."""
    recapture = f"if this is intended, run the tests and record it: {_recapture(state)}"
    for index, path in enumerate(lost[:_MOST], start=1):
        role = found.gone[path].role
        stays = state.files and role is not Role.CONTRACT
        finding = _find(
            state,
            "drift-missing",
            f"{path.quoted} ({role.value} of component {state.component.id}) is missing"
            + _more(index, len(lost), "file"),
            path,
            f"restore it; {recapture if stays else _removal_hint(state)}",
            side="old",
        )
        left = lost[_MOST:] if index == _MOST else ()
        yield replace(finding, unnamed=tuple(each.quoted for each in left))


def _removal_hint(state: ComponentState) -> str:
    """Describe how to remove a component."""
    return (
        f"or, to remove component {state.component.id}, first remove its declaration from patchgate.toml in "
        f"a separate commit, then delete its files and {state.component.baseline.quoted}"
    )


def _more(index: int, all_of_them: int, noun: str) -> str:
    """Add to the last reported one how many more there are."""
    left = all_of_them - index
    return f" (and {left} more {noun if left == 1 else noun + 's'})" if index == _MOST and left else ""


def contract_without_tests(state: ComponentState) -> Iterator[Finding]:
    """Report a contract that differs while no test does; a deleted one is reported as missing."""
    name, contract = state.component.id, state.component.contract
    if contract not in state.files:
        return
    made = ""
    if any(role is not Role.CONTRACT and is_python(path) for path, (role, _) in state.files.items()):
        made = f" (git patchgate component tests {name} --staged prints tests for it)"
    message = f"the contract of component {name} changed, but none of its tests did"
    change = f"change its tests in the same commit{made}"
    rule = "drift-contract-without-tests"
    yield _find(state, rule, message, contract, f"{change}, or restore the contract")


def _version_finding(state: ComponentState, what: str, hint: str) -> Finding:
    message = f"the contract of component {state.component.id} {what}"
    return _find(state, "drift-version", message, state.component.contract, hint)


def _version_not_raised(state: ComponentState) -> Finding:
    what = "changed, but its version is not higher than the recorded one"
    return _version_finding(state, what, "raise `version` in the contract")


def _rewritten_contract(state: ComponentState) -> Finding:
    what = "was rewritten since it was recorded, with the same content"
    return _version_finding(state, what, f"restore it, or run the tests and record it: {_recapture(state)}")


def _changed_role(state: ComponentState, found: DriftComparison, role: Role, rule: str) -> Finding:
    """Report that the files of one role differ, at the first of them, preferably one of the change."""
    paths = sorted({*found.old(role), *found.new(role)} & set(state.files))
    first = next((path for path in paths if path in state.changed), paths[0])
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    name = state.component.id
    if role is Role.TESTS:
        what = f"the tests of component {name} differ from its baseline"
    else:
        what = f"the implementation of component {name} differs from its baseline"
    hint = f"run the tests and record it: {_recapture(state)}"
    finding = _find(state, rule, f"{what} ({first.quoted}{more})", first, hint, actual=len(paths))
    return replace(finding, unnamed=tuple(path.quoted for path in paths if path != first))


def _undeclared_files(state: ComponentState, found: DriftComparison) -> Iterator[Finding]:
    """Report, for each role, the files that still exist but are no longer declared."""
    for role, rule in _RULE_OF_ROLE.items():
        paths = list(found.left_out_of(role))
        if not paths:
            continue
        shown = first_of(paths, 1, lambda path: path.quoted)
        recorded = f"recorded as {role.value} of component {state.component.id}"
        message = f"{shown}, {recorded}, is no longer declared as that"
        hint = f"if this is intended, run the tests and record it: {_recapture(state)}"
        finding = _find(state, rule, message, paths[0], hint, actual=len(paths))
        yield replace(finding, unnamed=tuple(path.quoted for path in paths[1:]))


def _moved_files(state: ComponentState, found: DriftComparison) -> Iterator[Finding]:
    hint = f"the baseline has the old path; record the new one: {_recapture(state)}"
    moves = list(found.moved.items())
    for index, (new, old) in enumerate(moves[:_MOST], start=1):
        message = f"{old.quoted} of component {state.component.id} moved to {new.quoted}"
        finding = _find(state, "drift-moved", message + _more(index, len(moves), "move"), new, hint)
        left = moves[_MOST:] if index == _MOST else ()
        yield replace(finding, unnamed=tuple(f"{old.quoted} -> {new.quoted}" for new, old in left))


def _component_finding(
    state: ComponentState, rule: str, message: str, when: str = "run its tests and record it"
) -> Finding:
    """Report a finding about a whole component, at its contract or the path of its baseline."""
    contract = state.component.contract
    place = contract if rule == "drift-all" and contract in state.files else state.component.baseline
    return _find(state, rule, message, place, f"{when}: {_recapture(state)}")


def _recapture(state: ComponentState) -> str:
    return f"git patchgate baseline capture {state.component.id}"


def _find(
    state: ComponentState,
    rule: str,
    message: str,
    path: RepoPath,
    hint: str,
    *,
    side: str = "new",
    **more: Detail,
) -> Finding:
    return find(rule, message, path, hint, side=side, details={"component": state.component.id, **more})


def examine_cumulative(
    state: ComponentState, *, is_declared: bool, was_declared: bool, is_forged: bool
) -> Iterator[Finding]:
    """Find what several changes together did to a component that one change may not do.

    Args:
        state: the component after the last change, with the files that either declaration claims; `before`
            is the baseline from before the first.
        is_declared: whether the last tree declares it.
        was_declared: whether the first tree declared it.
        is_forged: whether the last tree's baseline records a checksum that is not the file's.
    """
    if not isinstance(state.before, Baseline):
        return
    if not is_declared:
        yield from _removed_component(state, state.before)
        return
    if was_declared and state.recorded is None:
        yield deleted_baseline(state)
    elif is_forged:
        yield forged_baseline(state)
    yield from examine_against_old_baseline(state, state.before)


def _removed_component(state: ComponentState, before: Baseline) -> Iterator[Finding]:
    """Find what a component lost that is no longer declared, unless all of its files are gone."""
    from patchgate.components.weakened_tests import keeps_no_test, weakened_findings

    found = compare(state.files, before, state.unclaimed)
    is_there = {path for path in before.files if path in state.files} or found.moved
    if is_there or not keeps_no_test(state, found):
        yield from weakened_findings(state, found, before, state.changed, may_excuse=False)
    contract = state.component.contract
    if contract in state.changed and contract in state.files:
        promised = is_contract_changed(found, state.texts, but=("version", "component_id"))
        if promised is not False and not have_tests_changed(found, state.texts):
            yield from contract_without_tests(state)
    if is_there or state.recorded is not None:
        gone = "is no longer declared, so its contract and its tests are no longer checked"
        message = f"component {state.component.id} {gone}"
        hint = "restore the declaration; or, if this is intended, change its files in a later push"
        yield _find(state, "component-undeclared", message, state.component.baseline, hint)
