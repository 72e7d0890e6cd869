"""What is said of tests that a component lost, and how grave it is.

Decides that a file or a function that is gone is an error, unless the contract promises something else, and
that fewer assertions and a skip are a warning. What is a loss is decided in `weakening`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patchgate.change.path import RepoPath
from patchgate.change.quoting import printable
from patchgate.declared.component import Role
from patchgate.gates.case import find
from patchgate.gates.component_case import ComponentState
from patchgate.gates.drift_comparison import Comparison
from patchgate.gates.drift_contents import emptied, promises_otherwise, python_tests
from patchgate.gates.weakening import Loss, Weakening, weakenings
from patchgate.verdict.rules import Level
from patchgate.verdict.verdict import Finding

_MOST = 20
_MOST_NAMES = 5
_MOST_OF_A_NAME = 80
_GRAVE = frozenset({Loss.FILE, Loss.FUNCTION})


def weakened(state: ComponentState, found: Comparison, only: frozenset[RepoPath] | None) -> Iterator[Finding]:
    """Tell what the tests lost; `only` is about some files alone."""
    before, after = python_tests(found, state.texts)
    if not before:
        return
    gone = frozenset(found.gone) & before.keys()
    empty = emptied(found, state.texts)
    is_promised = state.component.contract in state.files and promises_otherwise(found, state.texts) is True
    losses = [
        each for each in weakenings(before, after, gone=gone | empty) if only is None or each.path in only
    ]
    for loss in losses[:_MOST]:
        finding = _loss(state, loss, is_gone=loss.path in gone, is_empty=loss.path in empty)
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


def _loss(state: ComponentState, loss: Weakening, *, is_gone: bool, is_empty: bool) -> Finding:
    name = state.component.id
    names = [printable(each, _MOST_OF_A_NAME) for each in loss.functions[:_MOST]]
    functions = ", ".join(names[:_MOST_NAMES])
    if len(loss.functions) > _MOST_NAMES:
        functions += f" and {len(loss.functions) - _MOST_NAMES} more"
    where = f" in {functions}" if functions else ""
    message, hint = {
        Loss.FILE: (
            f"the test file {loss.path.quoted} of component {name} is {'empty' if is_empty else 'gone'}"
            + (f", with {functions}" if functions else ""),
            "put it back; if the promise changed, change the contract in the same commit"
            if state.component.role(loss.path) is Role.TESTS
            else f"it is declared no longer; once the tests pass: git patchgate baseline capture {name}",
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
        details={"component": name, "loss": loss.loss.value, "functions": names},
    )
