"""The drift gate: whether implementation, contract and tests of a component left what was recorded of them.

Decides by object ids first; of contents it sees only contracts and tests that differ. A change that brings
a new baseline is compared with it, and must bring the very one that a capture of its result would write.
What such a change does to contract and tests is also held against the baseline of before: recording may not
launder it. How the facts are gathered is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from patchgate.change.path import RepoPath
from patchgate.declared.baseline import Baseline, BaselineFault
from patchgate.declared.component import Role
from patchgate.declared.contract_version import is_higher, version_of
from patchgate.gates.case import Case, find
from patchgate.gates.component_case import ComponentState
from patchgate.gates.drift_comparison import Comparison, compare
from patchgate.gates.weakening import Loss, Weakening, weakenings
from patchgate.verdict.rules import Level
from patchgate.verdict.verdict import Finding

_MOST = 20
_MOST_NAMES = 5
_GRAVE = frozenset({Loss.FILE, Loss.FUNCTION})


def examine(case: Case) -> Iterator[Finding]:
    """Find what the change leaves drifted.

    Raises:
        UndecidedError: something of the components could not be read.
    """
    near = case.components
    if near is None:
        return
    near.require("drift")
    for state in near.states:
        yield from examine_state(state)


def examine_state(state: ComponentState) -> Iterator[Finding]:
    """Find how one component differs from its baseline."""
    place, recorded = state.component.baseline, state.recorded
    touched = place in state.changed
    if isinstance(recorded, BaselineFault):
        yield find("baseline-invalid", recorded.message, place, recorded.hint, line=recorded.line)
    if touched and (tampered := _tampered(state)) is not None:
        yield tampered
        recorded = state.before
    elif recorded is None:
        if state.files:
            yield _about(
                state, "no-baseline", f"component {state.component.id} has no baseline", "once its tests pass"
            )
        return
    elif touched and isinstance(state.before, Baseline):
        yield from _laundered(state, compare(state.files, state.before))
    if isinstance(recorded, Baseline):
        yield from _drifted(state, compare(state.files, recorded))


def _tampered(state: ComponentState) -> Finding | None:
    """Say what is wrong with a baseline that the change itself touches; None where it is as it has to be."""
    place, name = state.component.baseline, state.component.id
    again = (
        f"stage the component's files, then: git patchgate baseline capture {name} && git add {place.quoted}"
    )
    if state.recorded is None:
        if state.before is None or not state.files:
            return None
        message = f"the baseline of component {name} is deleted, and the component stays"
        return find(
            "baseline-tampered",
            message,
            place,
            f"git restore --staged --worktree -- {place.quoted}",
            side="old",
        )
    if state.capture is not None and state.written == state.capture:
        return None
    message = f"this is not what a capture of component {name} would write for the files of this change"
    return find("baseline-tampered", message, place, again)


def _drifted(state: ComponentState, found: Comparison) -> Iterator[Finding]:
    """Tell everything that differs from one baseline."""
    if found.is_equal:
        return
    contract, tests, implementation = (found.differs(role) for role in Role)
    yield from _missing(state, found)
    if contract and not tests:
        yield from _without_tests(state, found)
    yield from _weakened(state, found, None)
    higher = _is_version_higher(state, found)
    if higher is False:
        yield _not_raised(state)
    arrived = found.arrived_roles
    if contract and tests and implementation:
        yield _about(
            state, "drift-all", f"all of component {state.component.id} changed since it was recorded"
        )
    elif implementation and Role.IMPLEMENTATION in arrived and not higher:
        yield _of_role(state, found, Role.IMPLEMENTATION, "drift-implementation")
    elif tests and not (contract or implementation) and Role.TESTS in arrived:
        yield _of_role(state, found, Role.TESTS, "drift-tests")
    yield from _moved(state, found)


def _laundered(state: ComponentState, found: Comparison) -> Iterator[Finding]:
    """Ask of a change that brings its own baseline what the one of before would have refused."""
    if state.component.contract in state.changed and found.differs(Role.CONTRACT):
        if not found.differs(Role.TESTS):
            yield from _without_tests(state, found)
        if _is_version_higher(state, found) is False:
            yield _not_raised(state)
    if touches_tests(state):
        yield from _weakened(state, found, state.changed)


def touches_tests(state: ComponentState) -> bool:
    """Tell whether the change itself touches a test of the component."""
    return any(state.component.role(path) is Role.TESTS for path in state.changed)


def _missing(state: ComponentState, found: Comparison) -> Iterator[Finding]:
    """Tell each file of contract and implementation that is gone; of very many the first and a number."""
    lost = [path for path, recorded in found.gone.items() if recorded.role is not Role.TESTS]
    name, baseline = state.component.id, state.component.baseline
    hint = f"put it back; if it is meant, run the tests and record it: git patchgate baseline capture {name}"
    if not state.files:
        hint = f"put it back; if the whole component goes, so does its baseline: git rm {baseline.quoted}"
    for index, path in enumerate(lost[:_MOST], start=1):
        role = found.gone[path].role.value
        yield find(
            "drift-missing",
            f"{path.quoted}, of the {role} of component {name}, is gone" + _more(index, len(lost), "file"),
            path,
            hint,
            side="old",
            details={"component": name},
        )


def _more(index: int, all_of_them: int, noun: str) -> str:
    """Add to the last one that is told how many are not."""
    left = all_of_them - index
    return f" (and {left} more {noun if left == 1 else noun + 's'})" if index == _MOST and left else ""


def _without_tests(state: ComponentState, found: Comparison) -> Iterator[Finding]:
    """Tell a contract that differs while no test does; one that is gone is told as missing."""
    name, contract = state.component.id, state.component.contract
    if contract not in state.files:
        return
    yield find(
        "drift-contract-without-tests",
        f"the contract of component {name} changed, and none of its tests did",
        contract,
        "change the tests that hold the component to it in the same commit, or put the contract back",
        details={"component": name},
    )


def _is_version_higher(state: ComponentState, found: Comparison) -> bool | None:
    """Tell whether the contract's version is higher than recorded; None where it cannot be told."""
    old, new = found.old(Role.CONTRACT), found.new(Role.CONTRACT)
    if not old or not new:
        return None
    before = _version(state.texts.get(next(iter(old.values())).oid))
    now = _version(state.texts.get(next(iter(new.values())).oid))
    if before is None or now is None:
        return None
    return is_higher(now, before)


def _version(content: bytes | None) -> str | None:
    return None if content is None else version_of(content)


def _not_raised(state: ComponentState) -> Finding:
    name = state.component.id
    return find(
        "drift-version",
        f"the contract of component {name} changed, and its version is not higher than the recorded one",
        state.component.contract,
        "raise `version` in the contract",
        details={"component": name},
    )


def _weakened(
    state: ComponentState, found: Comparison, only: frozenset[RepoPath] | None
) -> Iterator[Finding]:
    """Tell what the tests lost; `only` is about some files alone."""
    old, new = found.old(Role.TESTS), found.new(Role.TESTS)
    if not old:
        return
    before = {path: _python(state.texts, path, each.oid) for path, each in old.items()}
    after = {
        path: _python(state.texts, path, each.oid) if each.is_file else None for path, each in new.items()
    }
    gone = frozenset(path for path in old if path in found.gone)
    is_promised = found.differs(Role.CONTRACT) and state.component.contract in state.files
    losses = [each for each in weakenings(before, after, gone=gone) if only is None or each.path in only]
    for loss in losses[:_MOST]:
        finding = _loss(state, loss, is_gone=loss.path in gone)
        mild = is_promised or loss.loss not in _GRAVE
        yield replace(finding, level=Level.WARNING) if mild else finding
    if len(losses) > _MOST:
        rest = losses[_MOST:]
        finding = find(
            "drift-tests-weakened",
            f"and {len(rest)} more losses in the tests of component {state.component.id}",
            rest[0].path,
            "put the tests back",
            details={"component": state.component.id},
        )
        mild = is_promised or _GRAVE.isdisjoint(each.loss for each in rest)
        yield replace(finding, level=Level.WARNING) if mild else finding


def _python(texts: Mapping[str, bytes], path: RepoPath, oid: str) -> bytes | None:
    return texts[oid] if is_python(path) and oid in texts else None


def is_python(path: RepoPath) -> bool:
    """Tell whether the test functions of a file can be told."""
    return path.raw.endswith(b".py")


def _loss(state: ComponentState, loss: Weakening, *, is_gone: bool) -> Finding:
    name = state.component.id
    functions = ", ".join(loss.functions[:_MOST_NAMES])
    if len(loss.functions) > _MOST_NAMES:
        functions += f" and {len(loss.functions) - _MOST_NAMES} more"
    where = f" in {functions}" if functions else ""
    message, hint = {
        Loss.FILE: (
            f"the test file {loss.path.quoted} of component {name} is gone"
            + (f", with {functions}" if functions else ""),
            "put it back; if the promise changed, change the contract in the same commit",
        ),
        Loss.FUNCTION: (
            f"{functions}: gone from the tests of component {name}",
            "put it back; if the promise changed, change the contract in the same commit",
        ),
        Loss.ASSERTIONS: (
            f"tests of component {name} assert less than recorded{where}: {loss.after}, not {loss.before}",
            f"put the assertions back, or record it so: git patchgate baseline capture {name}",
        ),
        Loss.SKIPPED: (
            f"tests of component {name} no longer count: {functions} is skipped or may fail",
            "take the mark out and mend what fails",
        ),
    }[loss.loss]
    return find(
        "drift-tests-weakened",
        message,
        loss.path,
        hint,
        line=loss.line,
        side="old" if is_gone else "new",
        details={"component": name, "loss": loss.loss.value, "functions": list(loss.functions[:_MOST])},
    )


def _of_role(state: ComponentState, found: Comparison, role: Role, rule: str) -> Finding:
    """Tell that the files of one role differ, at the first of them, the change's own first."""
    paths = sorted({*found.old(role), *found.new(role)} & set(state.files))
    first = next((path for path in paths if path in state.changed), paths[0])
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    name = state.component.id
    if role is Role.TESTS:
        what = f"the tests of component {name} differ from its baseline"
    else:
        what = f"component {name} is implemented otherwise than recorded, under the same contract version"
    return find(
        rule,
        f"{what} ({first.quoted}{more})",
        first,
        f"run the tests and record it: git patchgate baseline capture {name}",
        details={"component": name, "actual": len(paths)},
    )


def _moved(state: ComponentState, found: Comparison) -> Iterator[Finding]:
    name = state.component.id
    for index, (new, old) in enumerate(list(found.moved.items())[:_MOST], start=1):
        yield find(
            "drift-moved",
            f"{old.quoted} of component {name} moved to {new.quoted}"
            + _more(index, len(found.moved), "move"),
            new,
            f"the baseline names the old path: git patchgate baseline capture {name}",
            details={"component": name},
        )


def _about(
    state: ComponentState, rule: str, message: str, when: str = "run its tests and record it"
) -> Finding:
    """Tell something of a component as a whole, at its contract, or else where its baseline belongs."""
    name, contract = state.component.id, state.component.contract
    place = contract if rule == "drift-all" and contract in state.files else state.component.baseline
    return find(
        rule, message, place, f"{when}: git patchgate baseline capture {name}", details={"component": name}
    )
