"""A verification as text: what is new, who caused it, and what to do next.

Decides the layout only: each list is cut separately, and what is left out is counted by rule. All foreign
text is escaped. The verdict is the first and the last line, so that a long output can be read from either
end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.git.quoting import first_of
from patchgate.report.verdict import Verdict
from patchgate.report.wording import SHORT_OID, count, number, safe, show_path, some
from patchgate.verify.verification_reasons import MOST_NAME, location_of, name_signal, name_symbol
from patchgate.verify.verification_result import VerificationResult

DEFAULT_LIMIT = 20
_MOST_MESSAGE = 300
_MOST_ALSO = 2
_MOST_OVER = 3
_GRAPHICS = {Verdict.REJECTED: "1;31", Verdict.UNDECIDED: "1;33", Verdict.ACCEPTED: "1;32"}
_UNDECIDED = "unverified"


def render(verification: VerificationResult, *, color: bool, limit: int = DEFAULT_LIMIT) -> str:
    """Write a verification for a terminal; the text ends with a line feed.

    Args:
        verification: what was found.
        color: whether to add ANSI colours.
        limit: how many entries of each list to show.
    """
    blocks = [
        [
            f"{_ink(verification.status.verdict, color)}: {_sentence(verification.reason)}",
            *_sides(verification),
        ],
        *_regressions(verification, limit),
        *_gates(verification, limit),
        *_scope(verification, limit),
        *_others(verification, limit),
        _closing(verification, color),
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _ink(verdict: Verdict, color: bool) -> str:
    return f"\x1b[{_GRAPHICS[verdict]}m{verdict.value}\x1b[0m" if color else verdict.value


def _sentence(text: str) -> str:
    return safe(text).rstrip(".")


def _sides(verification: VerificationResult) -> Iterator[str]:
    """Describe the two sides of the comparison, and what could not be evaluated."""
    if verification.intent is not None:
        yield f"  intent {safe(verification.intent, MOST_NAME)}"
    if verification.base is not None:
        yield f"  base {verification.base[:SHORT_OID]}"
    for side, runs in (("before", verification.before), ("after", verification.after)):
        if runs is not None:
            yield f"  {side}: tree {runs.tree[:SHORT_OID]}; {_told(runs)}"
            yield from _silent(runs)


def _told(runs: TreeRuns) -> str:
    said = []
    for name in sorted(runs.runs):
        run = runs.runs[name]
        if run.outcome is AnalysisOutcome.NOT_EVALUATED:
            said.append(f"{name} could not be evaluated")
        elif run.measurements and not run.results:
            said.append(f"{name} {count(len(run.measurements), 'value')}")
        else:
            said.append(f"{name} {count(len(run.results), 'finding')}")
    return ", ".join(said)


def _silent(runs: TreeRuns) -> Iterator[str]:
    for name in sorted(runs.runs):
        run = runs.runs[name]
        if run.outcome is AnalysisOutcome.NOT_EVALUATED:
            yield f"    {name}: {_sentence(run.reason or 'unknown reason')}"
            if run.hint:
                yield f"    help: {safe(run.hint)}"


def _regressions(verification: VerificationResult, limit: int) -> Iterator[list[str]]:
    """List the regressions, those of the intent first; without an intent all belong to the change."""
    own, others = verification.intent_regressions, verification.external_regressions
    title = "new findings" if verification.intent is None else "new findings in the files of the intent"
    yield list_results(f"{title} ({len(own)}):", own, limit)
    yield list_results(f"new findings elsewhere, not from the intent ({len(others)}):", others, limit)


def list_results(title: str, entries: Sequence[AnalysisResult], limit: int) -> list[str]:
    """List the first results below a title, and count the others by rule."""
    if not entries:
        return []
    rest = Counter(safe(each.rule, MOST_NAME) for each in entries[limit:])
    lines = [title, *(f"  {show_result(each)}" for each in entries[:limit])]
    if rest:
        most = rest.most_common(limit)
        rules = ", ".join(f"{times} {rule}" for rule, times in most)
        more = f" and {count(len(rest) - limit, 'other rule')}" if len(rest) > limit else ""
        lines.append(f"  … and {rest.total()} more: {rules}{more}")
    return lines


def show_result(result: AnalysisResult) -> str:
    """Write `path:line rule message`; other files are added, because they decide who caused it."""
    also = list(dict.fromkeys(path for path in result.paths[1:] if path != result.path))
    text = f"{location_of(result)}  {safe(result.rule, MOST_NAME)}  {safe(result.message, _MOST_MESSAGE)}"
    return text + (f" (also {some(also, _MOST_ALSO)})" if also else "")


def _gates(verification: VerificationResult, limit: int) -> Iterator[list[str]]:
    """List the metrics that are higher, and each threshold that fails now or failed before."""
    own, others = verification.intent_worsened, verification.external_worsened
    title = "metrics that are higher" if verification.intent is None else "higher in the files of the intent"
    yield _cut(f"{title} ({len(own)}):", [_worsened(each) for each in own], limit)
    yield _cut(
        f"higher elsewhere, not from the intent ({len(others)}):", [_worsened(each) for each in others], limit
    )
    states = verification.comparison.thresholds if verification.comparison else ()
    lines = [_threshold(each, verification) for each in states if each.fails_after or each.failed_before]
    # A threshold whose metric is not measured neither passes nor fails.
    passed = sum(each.after is not None for each in states if not (each.fails_after or each.failed_before))
    if passed:
        lines.append(f"{count(passed, 'threshold')} passed before and {'passes' if passed == 1 else 'pass'}")
    yield _cut("thresholds:", lines, len(lines))


def _cut(title: str, lines: Sequence[str], limit: int) -> list[str]:
    if not lines:
        return []
    more = [f"  … and {len(lines) - limit} more"] if len(lines) > limit else []
    return [title, *(f"  {line}" for line in lines[:limit]), *more]


def _worsened(each: WorsenedMetric) -> str:
    before = "new" if each.before is None else number(each.before)
    return f"{name_symbol(each)}  {safe(each.name, MOST_NAME)} {before} → {number(each.after)}"


def _threshold(state: ThresholdState, verification: VerificationResult) -> str:
    before, after = (number(value) for value in (state.before, state.after))
    what = f"{safe(state.name, MOST_NAME)}: {safe(state.metric, MOST_NAME)} {before} → {after}"
    return f"{what}, at most {number(state.max)}: {_fate(state, verification)}"


def _fate(state: ThresholdState, verification: VerificationResult) -> str:
    if not state.fails_after:
        return "passes now, failed before"
    if state.is_preexisting:
        refused = state in verification.caused
        return "fails as it did before (preexisting is refuse)" if refused else "fails as it did before"
    fails = "fails by more than before" if state.failed_before else "fails now, passed before"
    if verification.intent is None:
        return fails
    if state in verification.external_thresholds:
        return f"{fails}; caused outside the intent"
    shown = first_of(state.over, _MOST_OVER, name_signal)
    return fails + (f" (over it: {shown})" if shown else "")


def _scope(verification: VerificationResult, limit: int) -> Iterator[list[str]]:
    """List what was touched outside the declaration, and the suppressions that grew."""
    check = verification.scope
    if check is not None:
        for title, paths in (
            ("touched but not declared", check.unexpected),
            ("touched but forbidden", check.forbidden),
            ("touched related files", check.expanded),
            ("allowed but not touched", check.untouched),
        ):
            yield _cut(f"{title} ({len(paths)}):", [show_path(path) for path in paths], limit)
    grown = [show_path(path) for path in verification.suppression_files]
    if verification.suppressed:
        grown.append(count(len(verification.suppressed), "suppression"))
    how = "grew" if verification.suppression_files == verification.grown else "changed"
    yield _cut(f"suppressions that {how}:", grown, limit)


def _others(verification: VerificationResult, limit: int) -> Iterator[list[str]]:
    """List what does not belong to the intent."""
    commits = [
        f"{each.oid[:SHORT_OID]} {safe(each.subject, MOST_NAME)}" for each in verification.external_commits
    ]
    yield _cut(f"commits that do not belong to the intent ({len(commits)}):", commits, limit)
    dirty = [show_path(path) for path in verification.dirty]
    yield _cut(f"changed before the intent began, not attributed to it ({len(dirty)}):", dirty, limit)
    yield [f"warning: {safe(each)}" for each in verification.warnings]


def _closing(verification: VerificationResult, color: bool) -> list[str]:
    """Write the last lines: help, then the verdict."""
    lines = []
    if verification.reported_only:
        rules = ", ".join(verification.rules_of(verification.reported_only))
        lines.append(f"reported only, because strictness is relaxed: {rules}")
    if verification.next_step:
        lines.append(f"help: {safe(verification.next_step)}")
    verdict = verification.status.verdict
    lines.append(f"{_ink(verdict, color)}: {', '.join(_rules(verification)) or _counted(verification)}")
    return lines


def _rules(verification: VerificationResult) -> tuple[str, ...]:
    """Return the rules that it violates."""
    found = verification.rules_of(verification.violations)
    return (_UNDECIDED, *found) if verification.status.verdict is Verdict.UNDECIDED else found


def _counted(verification: VerificationResult) -> str:
    """Summarize an accepted verification in numbers."""
    compared = verification.comparison
    if compared is None:
        return verification.status.verdict.value
    new = len(verification.intent_regressions)
    said = [f"{new or 'no'} new {'finding' if new == 1 else 'findings'}"]
    said += (
        [f"{len(verification.external_regressions)} elsewhere"] if verification.external_regressions else []
    )
    said += [f"{compared.unchanged} as before"]
    said += [f"{len(compared.fixed)} fixed"] if compared.fixed else []
    return ", ".join(said)
