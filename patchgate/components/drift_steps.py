"""What several changes did together to a component, beside the baseline from before the first of them.

Decides that they may do what one change may do that brings a new baseline (`drift.laundered`), that a
baseline may lag behind the files, and what a component may lose whose declaration they take away: all of its
files, or none of its tests and its promise.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.check.case import find
from patchgate.components.baseline import Baseline
from patchgate.components.component_case import ComponentState, Steps
from patchgate.components.drift import deleted, forged, laundered, without_tests
from patchgate.components.drift_comparison import compare
from patchgate.components.drift_contents import has_other_tests, promises_otherwise
from patchgate.components.drift_losses import keeps_no_test, weakened
from patchgate.report.verdict import Finding


def examine_steps(steps: Steps) -> Iterator[Finding]:
    """Find what several changes did to a component together that one change may not do."""
    state = steps.state
    if not isinstance(state.before, Baseline):
        return
    if not steps.is_declared:
        yield from _left_with(state, state.before)
        return
    if steps.was_declared and state.recorded is None:
        yield deleted(state)
    elif steps.is_forged:
        yield forged(state)
    yield from laundered(state, state.before)


def _left_with(state: ComponentState, before: Baseline) -> Iterator[Finding]:
    """Find what a component lost that is declared no longer, unless all of it is gone."""
    found = compare(state.files, before, state.unclaimed)
    is_there = {path for path in before.files if path in state.files} or found.moved
    if is_there or not keeps_no_test(state, found):
        yield from weakened(state, found, before, state.changed, may_excuse=False)
    contract = state.component.contract
    if contract in state.changed and contract in state.files:
        promised = promises_otherwise(found, state.texts, but=("version", "component_id"))
        if promised is not False and not has_other_tests(found, state.texts):
            yield from without_tests(state)
    if is_there or state.recorded is not None:
        name, place = state.component.id, state.component.baseline
        yield find(
            "component-undeclared",
            f"component {name} is no longer declared: no gate guards its contract and its tests from here on",
            place,
            "put the declaration back; or, if this is intended, change its files in a later push",
            details={"component": name},
        )
