"""Why a verification ended as it did: one sentence and the next step for each reason, fit for a terminal.

Decides the words alone; which of them is said, `verification` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchgate.change.path import RepoPath
from patchgate.gates.abuse import GREENED, WHILE_REGRESSIONS, WITH_CODE, WITHOUT_INTENT
from patchgate.verdict.comparison import AnalysisRun, Result, ThresholdState
from patchgate.verdict.verification import ScopeCheck, Verification
from patchgate.verdict.wording import count, safe, show_path

_MOST_NAMED = 3
_AGAIN = "then git patchgate verify"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a verification ends here: one sentence, and the next step (empty: nothing is to be done)."""

    reason: str
    next_step: str


QUEUED = Obstacle(
    "the intent waits for another one to be cleared, and owns nothing yet",
    "wait until git patchgate intent show says that it is active",
)
OTHER_ANALYSES = Obstacle(
    "before and after were not made by the same analyses",
    "let both be made anew: clear the intent and declare it again, " + _AGAIN,
)
SAME_RUN = Obstacle(
    "the report of one tree stands for both, though the trees differ",
    "run git patchgate analyze, " + _AGAIN,
)
NOT_COMPARED = Obstacle("before and after were not compared", "git patchgate verify")
WHY_ABUSE = {
    WHILE_REGRESSIONS: "while there are new findings",
    WITH_CODE: "together with changed code",
    WITHOUT_INTENT: "without an intent",
    GREENED: "so that a failing threshold passes",
}


def missing(when: str) -> Obstacle:
    """Say that there is no report; `when` is before or after."""
    return Obstacle(f"there is no report of the tree {when}", "git patchgate analyze, " + _AGAIN)


def not_evaluated(when: str, run: AnalysisRun) -> Obstacle:
    """Say that an analysis could not be evaluated, and why."""
    reason = run.reason or f"the analysis `{run.analysis}` could not be evaluated"
    hint = safe(run.hint) if run.hint else "git patchgate analyze tells more"
    return Obstacle(f"{safe(reason).rstrip('.')} (on the tree {when})", hint)


def untold(state: ThresholdState) -> str:
    """Say that nobody measures what a threshold limits."""
    return f"the threshold {safe(state.name)} limits {safe(state.metric)}, which no analysis tells"


def grown(baselines: Sequence[RepoPath], suppressed: int) -> tuple[str, ...]:
    """Name what grew."""
    names = [show_path(path) for path in baselines]
    return (*names, count(suppressed, "suppression")) if suppressed else tuple(names)


def out_of_scope(check: ScopeCheck) -> Obstacle:
    """Say which files the work should not have touched, forbidden ones first."""
    said = []
    if check.forbidden:
        said.append(f"{_paths(check.forbidden)} {_be(check.forbidden)} forbidden")
    if check.unexpected:
        said.append(f"{_paths(check.unexpected)} {_be(check.unexpected)} outside of what the intent allows")
    return Obstacle(
        ", and ".join(said),
        "take them out of the change, or clear the intent and declare one that allows them, " + _AGAIN
        if not check.forbidden
        else "take them out of the change, and change what is forbidden without an intent, " + _AGAIN,
    )


def abused(facts: Verification) -> Obstacle:
    """Say what grew, and why that counts."""
    why = " and ".join(WHY_ABUSE[trigger] for trigger in facts.abuse)
    return Obstacle(
        f"{_few(facts.grown)} grew {why}", "take the new entries out, mend what they hide, " + _AGAIN
    )


def regressed(facts: Verification) -> Obstacle:
    """Say how many findings are new, and name the first."""
    found = facts.intent_regressions
    where = " in the files of the intent" if facts.intent is not None else ""
    new = f"{count(len(found), 'finding')} {'is' if len(found) == 1 else 'are'} new{where}"
    also = "" if len(found) == 1 else "the first is "
    return Obstacle(f"{new}: {also}{name_result(found[0])}", "mend what the analyses tell, " + _AGAIN)


def crossed(facts: Verification) -> Obstacle:
    """Say which thresholds fail, and whether they held before."""
    said = [describe_state(state) for state in facts.caused]
    return Obstacle(_few(said, " and "), "bring the value down to the limit, " + _AGAIN)


def accepted(facts: Verification) -> Obstacle:
    """Say that it may land, and what is told besides."""
    told = []
    if facts.intent_regressions:
        told.append(f"{count(len(facts.intent_regressions), 'new finding')} told only (relaxed)")
    told += [f"{describe_state(state)}, told only (relaxed)" for state in facts.caused[:_MOST_NAMED]]
    if facts.external_regressions:
        new = facts.external_regressions
        told.append(f"{count(len(new), 'finding')} outside of it {'is' if len(new) == 1 else 'are'} new")
    states = facts.comparison.thresholds if facts.comparison is not None else ()
    elsewhere = [state for state in states if state.fails_after and state not in facts.caused]
    told += [
        describe_state(state) + (", by what lies outside of it" if state.has_worsened else "")
        for state in elsewhere[:_MOST_NAMED]
    ]
    whose = "by this intent" if facts.intent is not None and told else ""
    base = f"nothing got worse {whose}".rstrip() if not facts.told else "nothing refuses it"
    return Obstacle("; ".join([base, *told]), "")


def describe_state(state: ThresholdState) -> str:
    """Say of a failing threshold by how much, and whether it failed before."""
    before = "failed before too" if state.failed_before else "held before"
    now = "nothing" if state.after is None else number(state.after)
    over = f"{safe(state.metric)} is {now}, over {number(state.max)}"
    return f"the threshold {safe(state.name)} fails: {over} ({before})"


def name_result(result: Result) -> str:
    """Name one finding: `src/a.py:3 F401`."""
    rule = safe(result.rule, 100)
    if result.path is None:
        return f"{rule} of {safe(result.tool, 100)}, in no file"
    line = "" if result.line is None else f":{result.line}"
    return f"{show_path(result.path)}{line} {rule}"


def number(value: float) -> str:
    """Write a number as people do: no `.0`."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _paths(paths: Sequence[RepoPath]) -> str:
    return _few([show_path(path) for path in paths])


def _be(paths: Sequence[RepoPath]) -> str:
    return "is" if len(paths) == 1 else "are"


def _few(said: Sequence[str], between: str = ", ") -> str:
    more = len(said) - _MOST_NAMED
    return between.join(said[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
