"""What is said of tests that a component lost, and how grave it is.

Decides that a file or a function that is gone is an error, unless the contract promises something else (than
its version), and did so by the very change that is judged, or the loss was there before it. Fewer assertions
and a skip are a warning. What is a loss is decided in `weakening`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from patchgate.check.case import find
from patchgate.components.baseline import Baseline
from patchgate.components.component_case import ComponentState
from patchgate.components.drift_comparison import Comparison, compare
from patchgate.components.drift_contents import (
    emptied,
    is_another_promise,
    is_unread,
    promises_otherwise,
    python_tests,
)
from patchgate.components.python_tests import read_tests
from patchgate.components.weakening import Loss, Weakening, weakenings
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.component import Role
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding

_MOST = 20
_MOST_NAMES = 5
_MOST_OF_A_NAME = 80
_VERSION = ("version",)
_GRAVE = frozenset({Loss.FILE, Loss.FUNCTION})

_Lost = tuple[RepoPath, str | None]


def weakened(
    state: ComponentState,
    found: Comparison,
    beside: Baseline,
    only: frozenset[RepoPath] | None,
    *,
    may_excuse: bool = True,
) -> Iterator[Finding]:
    """Tell what the tests lost.

    Args:
        found: how the component differs from the baseline `beside`.
        only: the files that are asked about; None: all.
        may_excuse: whether another promise of the contract makes a loss less grave.
    """
    all_losses, gone, empty = _losses(state, found)
    losses = [each for each in all_losses if only is None or each.path in only]
    grave = frozenset(_lost(each for each in losses if each.loss in _GRAVE))
    if may_excuse:
        grave -= _excused(state, found, beside, grave)
    for loss in losses[:_MOST]:
        finding = _loss(state, loss, is_gone=loss.path in gone, is_empty=loss.path in empty)
        yield finding if _is_grave(loss, grave) else replace(finding, level=Level.WARNING)
    if len(losses) > _MOST:
        rest = losses[_MOST:]
        finding = find(
            "drift-tests-weakened",
            f"and {len(rest)} more losses in the tests of component {state.component.id}",
            rest[0].path,
            "put the tests back",
            details={"component": state.component.id},
        )
        is_grave = any(_is_grave(each, grave) for each in rest)
        yield finding if is_grave else replace(finding, level=Level.WARNING)


def keeps_no_test(state: ComponentState, found: Comparison) -> bool:
    """Tell whether none of the test functions that were recorded and differ is left anywhere."""
    before, _ = python_tests(found, state.texts)
    had = {
        (path, test.name)
        for path, content in before.items()
        if content is not None
        for test in read_tests(content).functions
    }
    return had <= frozenset(_lost(_losses(state, found)[0]))


def _losses(
    state: ComponentState, found: Comparison
) -> tuple[list[Weakening], frozenset[RepoPath], frozenset[RepoPath]]:
    """Give what the tests lost, which of the files are gone, and which hold nothing now."""
    before, after = python_tests(found, state.texts)
    if not before:
        return [], frozenset(), frozenset()
    gone, empty = frozenset(found.gone) & before.keys(), emptied(found, state.texts)
    return list(weakenings(before, after, gone=gone | empty)), gone, empty


def _lost(losses: Iterable[Weakening]) -> Iterator[_Lost]:
    """Name the functions that are lost, each with its file; None for a file without any."""
    for loss in losses:
        yield from ((loss.path, name) for name in loss.functions or (None,))


def _is_grave(loss: Weakening, grave: frozenset[_Lost]) -> bool:
    return loss.loss in _GRAVE and not grave.isdisjoint(_lost([loss]))


def _excused(
    state: ComponentState, found: Comparison, beside: Baseline, grave: frozenset[_Lost]
) -> frozenset[_Lost]:
    """Choose what may be lost, since the contract promises something else now."""
    contract, texts = state.component.contract, state.texts
    if not grave or contract not in state.files or promises_otherwise(found, texts, but=_VERSION) is not True:
        return frozenset()
    if state.is_merge or not state.touches_tests:
        return grave
    if contract in state.old:
        new = state.files[contract][1]
        if is_another_promise(state.old[contract], new, texts, but=_VERSION) is True:
            return grave
    # The promise changed before: that is no reason to take out more now.
    was = compare(state.files_before, beside, state.unclaimed)
    if is_unread(was, texts):
        return frozenset()
    return grave & frozenset(_lost(each for each in _losses(state, was)[0] if each.loss in _GRAVE))


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
