"""The review of one attempt, for a maintainer, and the short feedback for the sender of the patch.

All foreign text (from a repository, a patch or a command) is in a code span or a code block, whose fence is
longer than any run of backticks in it (CommonMark, 4.5 and 6.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from patchgate.apply.attempt_records import AttemptRecord
from patchgate.git.quoting import first_of
from patchgate.report import agent_text, wording
from patchgate.report.json import document
from patchgate.report.verdict import REPAIR_RULE, ChangeVerdict, Finding, GateOutcome, Json, Report, Verdict
from patchgate.values import dataclass

_MOST_FILES = 200
_MOST_FINDINGS = 50
_MOST_TAIL_LINES = 40
_COUNTED = {"added_lines": "added lines", "removed_lines": "removed lines", "n_hunks": "hunks"}
_RUNS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One run of a command of the policy.

    `outcome` is a word or two; `seconds` is None if it did not run; `log` is the file of its output, below
    the evidence's folder.
    """

    name: str
    kind: str
    outcome: str
    seconds: float | None = None
    exit_code: int | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """What the review says about an attempt besides its report.

    `seconds` is the total duration, `limit` is `[apply] max_attempts`, `only` are the paths to which the
    patch was reduced. `is_as_sent`: the candidate is what was sent.
    """

    record: AttemptRecord
    seconds: float
    limit: int | None = None
    commands: tuple[CommandRun, ...] = ()
    only: tuple[str, ...] = ()
    is_as_sent: bool = True


def review(report: Report, tried: AttemptSummary) -> str:
    """Write `reviews/review_patch.md`: the patch, the result and its reasons, and what may be sent next."""
    attempt = report.attempt
    name = attempt.id if attempt else "attempt"
    body = document(report)
    changes = body["changes"]
    parts = [[f"# {name}: {report.verdict.value}"], _verdict(report), _candidate(report, tried)]
    for change, plain in zip(report.changes, changes if isinstance(changes, list) else [], strict=True):
        parts += [_reasons(change), _files(plain), _budgets(change)]
    parts += [_commands(tried), _chain(tried, name), _next(report), _applied(report, tried), _about(tried)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def feedback(report: Report, *, has_next: bool = True) -> str:
    """Write the text for the sender of the patch, as `--format agent` has it, in a code block.

    `has_next` is whether it says how to send a patch again; an author of a run only answers.
    """
    head = [f"# {report.attempt.id if report.attempt else 'attempt'}: {report.verdict.value}", ""]
    around = _fences("")
    text = agent_text.render(report, has_next=has_next, around=[*head, *around]).rstrip()
    if _fences(text) != around:
        text = agent_text.render(report, has_next=has_next, around=[*head, *_fences(text)]).rstrip()
    return "\n".join([*head, code_block(text)]) + "\n"


def _verdict(report: Report) -> list[str]:
    decisive = [change.decisive for change in report.changes if change.decisive is not None]
    lines = [f"- verdict: {report.verdict.value}"]
    for finding in decisive[:1]:
        rule = finding.definition
        lines += [f"- stage: {rule.stage.value}", f"- code: {rule.code}", f"- reason: {_span(rule.id)}"]
    if report.attempt is not None and report.attempt.fallback_reason is not None and not decisive:
        lines.append(f"- reason: {_span(report.attempt.fallback_reason)}")
    if report.attempt is not None and report.attempt.temp_path is not None:
        lines.append(f"- scratch tree: {_span(report.attempt.temp_path)}")
    lines += [f"- not decided: {_span(wording.describe_gate(gate))}" for gate in _owed(report)]
    return lines + [f"- warning: {_span(warning)}" for warning in report.warnings]


def _owed(report: Report) -> list[GateOutcome]:
    undecided = [change for change in report.changes if change.verdict is Verdict.UNDECIDED]
    return [gate for change in undecided for gate in wording.gates_without_outcome(change)]


def _candidate(report: Report, tried: AttemptSummary) -> list[str]:
    lines = [
        "## The patch",
        "",
        f"- SHA-256: {tried.record.patch_sha256}",
        "- stored unchanged, byte for byte, in artifacts/diff.patch (nothing in it is masked)",
    ]
    if tried.record.kind != "patch":
        lines.append(f"- it came as {_span(tried.record.kind)}")
    if not tried.is_as_sent:
        lines.append("- made of what was sent, which is in artifacts/sent.txt (nothing in it is masked)")
    repairs = [each for change in report.changes for each in change.findings if each.rule == REPAIR_RULE]
    lines += [f"- repaired: {_span(each.message)}" for each in repairs]
    if tried.only:
        lines.append(f"- reduced with --only to: {_spans(tried.only)}")
    for change in report.changes:
        policy = change.policy
        lines += [
            f"- policy: {_span(policy.origin)} ({policy.digest}), profile {_span(change.profile)}",
            f"- base tree: {change.change.base}",
            f"- resulting tree: {change.change.after}",
        ]
    return lines


def _reasons(change: ChangeVerdict) -> list[str]:
    if not change.findings:
        return []
    ranked = sorted(change.findings, key=lambda each: wording.LEVELS.index(each.level))
    lines = ["## What was found"]
    for finding in ranked[:_MOST_FINDINGS]:
        place = wording.show_place(finding)
        lines += [
            "",
            f"- {finding.level.value} {_span(finding.rule)}{' at ' + _span(place) if place else ''}",
        ]
        lines.append(f"  - {_span(finding.message)}")
        tail = _tail_of(finding)
        lines += [f"  - {_span(note)}" for note in finding.notes if note not in tail]
        hint = wording.hint_of(finding)
        if hint:
            lines.append(f"  - help: {_span(hint)}")
        lines.append(f"  - who can fix it: {finding.who_can_fix.value}")
        if tail:
            lines += ["", code_block("\n".join(tail))]
    if len(ranked) > _MOST_FINDINGS:
        lines += ["", f"- and {len(ranked) - _MOST_FINDINGS} more: artifacts/report.json has them all"]
    return lines


def _files(change: Json) -> list[str]:
    """List the touched files and count the lines, as the report has them."""
    if not isinstance(change, Mapping):
        return []
    stats, files = change.get("stats"), change.get("files")
    if not isinstance(stats, Mapping) or not isinstance(files, Sequence) or not files:
        return []
    counted = (f"{name}: {_number(stats.get(key))}" for key, name in _COUNTED.items())
    lines = ["## Touched files", "", f"- {', '.join(counted)}"]
    for row in files[:_MOST_FILES]:
        if isinstance(row, Mapping):
            counts = (
                "binary"
                if row["binary"]
                else f"+{_number(row['added_lines'])} -{_number(row['removed_lines'])}"
            )
            source = f" from {_span(str(row['old_path']))}" if row["old_path"] is not None else ""
            lines.append(f"- {row['status']} {_span(str(row['path']))}{source}: {counts}")
    if len(files) > _MOST_FILES:
        lines.append(f"- and {len(files) - _MOST_FILES} more: artifacts/report.json has them all")
    return lines


def _budgets(change: ChangeVerdict) -> list[str]:
    if not change.limits:
        return []
    lines = ["## Budgets", ""]
    for name, budget in change.limits.items():
        of = "no limit" if budget.limit is None else f"limit {budget.limit}"
        lines.append(f"- {_span(name)}: {budget.used} used, {of}")
    return lines


def _commands(tried: AttemptSummary) -> list[str]:
    if not tried.commands:
        return ["## Commands", "", "- none was run"]
    lines = ["## Commands", ""]
    for run in tried.commands:
        seconds = "" if run.seconds is None else f", {run.seconds:.1f} s"
        code = "" if run.exit_code is None else f", exit code {run.exit_code}"
        log = f", output in {_span(run.log)}" if run.log else ""
        lines.append(f"- {run.kind} {_span(run.name)}: {_span(run.outcome)}{code}{seconds}{log}")
    return lines


def _chain(tried: AttemptSummary, name: str) -> list[str]:
    of = "" if tried.limit is None else f" of {tried.limit}"
    if tried.record.retry_of is None:
        said = "this apply started a new chain: it was run without --retry-of"
    else:
        chain, before = _span(tried.record.chain), _span(tried.record.retry_of)
        said = f"retry {tried.record.number}{of} in the chain {chain}, after {before}"
    return ["## Chain", "", f"- {said}", f"- this attempt: {_span(name)}"]


def _next(report: Report) -> list[str]:
    """Write the retry rule, always in the same words."""
    lines = ["## The retry rule", ""]
    if report.retry is not None:
        lines.append(f"- {_span(wording.retry_line(report.retry))}")
    elif report.verdict is Verdict.ACCEPTED:
        lines.append("- the patch was accepted: nothing needs to be sent again")
    if report.verdict is Verdict.UNDECIDED:
        lines.append("- an undecided attempt does not count: fix the cause, then send the same patch again")
    return [
        *lines,
        "- a retry is one whole unified diff: `git patchgate apply - --retry-of ATTEMPT`",
        "- refused: the full text of a file, prose, the same patch again, and any other channel",
        "- edits and other formats are allowed if all refused attempts were sent in the same one",
        "- every gate judges it again; a part of a patch is never applied",
        "- when no retry is left, a maintainer reads this and runs `git patchgate attempts reset ATTEMPT`",
    ]


def _applied(report: Report, tried: AttemptSummary) -> list[str]:
    if report.attempt is not None and report.attempt.applied:
        said = "the whole patch was written to the working tree"
    elif tried.record.dry_run and report.verdict is Verdict.ACCEPTED:
        said = "nothing was written to the working tree: it was a dry run"
    else:
        said = "nothing was written to the working tree"
    return ["## What was applied", "", f"- {said}"]


def _about(tried: AttemptSummary) -> list[str]:
    return [f"Total duration: {tried.seconds:.1f} s. What looks like a secret is masked here (`***`)."]


def _span(text: str) -> str:
    """Write foreign text as a code span on one line: no markup, no link, no HTML."""
    text = wording.safe(text) or " "
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] in " `" or text[-1] in " `" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _spans(texts: Sequence[str]) -> str:
    return first_of(texts, _MOST_FILES, _span)


def code_block(text: str) -> str:
    """Write foreign lines as a code block."""
    lines = [wording.safe(line) for line in text.split("\n")]
    above, below = _fences(text)
    return "\n".join([above, *lines, below])


def _fences(text: str) -> tuple[str, str]:
    """Write the lines around a code block with a text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text", fence


def _longest_run(text: str) -> int:
    return max((len(run) for run in _RUNS.findall(text)), default=0)


def _tail_of(finding: Finding) -> list[str]:
    """Return the end of a command's output, which its finding has line by line."""
    tail = finding.details.get("tail")
    if isinstance(tail, str):
        tail = tail.rstrip("\n").split("\n")
    lines = [line for line in tail if isinstance(line, str)] if isinstance(tail, Sequence) else []
    return lines[-_MOST_TAIL_LINES:]


def _number(value: Json) -> str:
    return str(value) if isinstance(value, int) else "not counted"
