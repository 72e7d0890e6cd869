"""The text that all human-readable formats share, and the escaping of foreign text.

Places, counts, the closing line, and the gates without an outcome. Each format has its own layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import LOG_COMMANDS, first_of, printable, without_log_commands
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import (
    Attempt,
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    Report,
    Retry,
    Verdict,
)

LEVELS = (Level.ERROR, Level.WARNING, Level.NOTE)
MAX_TEXT = 1000
MAX_REASONS = 3
SHORT_OID = 12
_MOST_REASON = 120

_TRYING = frozenset({"lint", "test"})
_SILENCE = {Outcome.NOT_RUN: "was not run", Outcome.FAIL: "failed without a finding"}


def safe(text: str, limit: int = MAX_TEXT) -> str:
    """Make text fit for one line of a terminal or a build log, cut at `limit` characters."""
    # Most text is plain ASCII: asking that first keeps 100,000 findings from a loop over characters.
    if not (text.isascii() and text.isprintable() and len(text) <= limit):
        text = printable(text, limit)
    return without_log_commands(text)


def show_path(path: RepoPath) -> str:
    """Write a path as git quotes it, and quote too what a build log would take for a command."""
    text = path.quoted
    if "##" not in text and "::" not in text:
        return text
    bare = text[1:-1] if text.startswith('"') else text
    if bare.lstrip().startswith("::"):
        bare = bare.replace("::", "\\072:", 1)
    for command in LOG_COMMANDS:
        bare = bare.replace(command, "#\\043" + command[2:])
    return text if bare == text else f'"{bare}"'


def show_place(finding: Finding) -> str:
    """Write where a finding points, as `path:line`, `path` or `message:line`; empty for the whole change."""
    if finding.path is None:
        is_message = finding.definition.stage is Stage.MESSAGE and finding.line is not None
        return f"message:{finding.line}" if is_message else ""
    path = show_path(finding.path)
    return path if finding.line is None else f"{path}:{finding.line}"


def hint_of(finding: Finding) -> str | None:
    """Return the help of a finding: its own, or for an error that of its rule."""
    if finding.hint is None and finding.level is Level.ERROR:
        return finding.definition.hint
    return finding.hint


def name_change(verdict: ChangeVerdict) -> str:
    """Name a change in messages: `commit 1a2b3c4d5e6f`, or the kind of its source."""
    source = verdict.source
    if source.commit is None and source.ref is not None:
        return safe(source.ref)
    return f"{source.kind} {source.commit[:SHORT_OID]}" if source.commit else f"{source.kind} change"


def gates_without_outcome(verdict: ChangeVerdict) -> tuple[GateOutcome, ...]:
    """Return the gates without an outcome; at least one for every undecided change.

    Those that could not decide come first: they say why. A gate that was not run does not count once the
    change is rejected: an earlier gate has decided.
    """
    owing = {Outcome.UNDECIDED}
    if verdict.verdict is not Verdict.REJECTED:
        owing = set(Outcome) - {Outcome.PASS, Outcome.NOT_APPLICABLE}
        if not verdict.gates:
            return (GateOutcome("judge", Outcome.NOT_RUN, "no gate has checked the change"),)
    found = (gate for gate in (*verdict.gates, *verdict.context_gates) if gate.outcome in owing)
    return tuple(sorted(found, key=lambda gate: gate.outcome is not Outcome.UNDECIDED))


def describe_gate(gate: GateOutcome) -> str:
    """Say in a few words why a gate gave no answer."""
    what = _SILENCE.get(gate.outcome, "could not decide")
    reason = f" ({safe(gate.reason).rstrip('.')})" if gate.reason else ""
    return f"{gate.gate} {what}{reason}"


def count(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural where it is not one; thousands are set apart by commas."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number(value: float | None) -> str:
    """Write a number as short as it is exact, without `.0`; a dash where there is none."""
    if value is None:
        return "–"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def some(paths: Sequence[RepoPath], most: int) -> str:
    """Name the first of some paths, and count the others: `a, b and 3 more`."""
    return first_of(paths, most, show_path)


def format_duration(seconds: float) -> str:
    """Write a length of time in its largest unit and the next one: `1 hour 30 minutes`."""
    left, names = int(seconds), (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
    for place, (name, size) in enumerate(names):
        if left >= size:
            parts = [count(left // size, name)]
            # Above a minute, seconds do not matter.
            for next_name, next_size in names[place + 1 : 3][:1]:
                parts += [count(left % size // next_size, next_name)] if left % size >= next_size else []
            return " ".join(parts)
    return count(0, "second")


def count_levels(findings: Iterable[Finding]) -> str:
    """Count findings by level: `3 errors, 1 warning`; empty if there are none."""
    numbers = Counter(finding.level for finding in findings)
    return ", ".join(count(numbers[level], level.value) for level in LEVELS if numbers[level])


def tally_line(report: Report) -> str | None:
    """Count the changes of a range: `12 commits: 11 accepted, 1 rejected`; None if there is one."""
    if not report.is_ranged:
        return None
    noun = "commit" if all(change.source.commit for change in report.changes) else "change"
    numbers = Counter(change.verdict for change in report.changes)
    numbers[Verdict.ACCEPTED] += report.n_judged - len(report.changes)
    parts = ", ".join(f"{numbers[verdict]} {verdict.value}" for verdict in Verdict if numbers[verdict])
    return f"{count(report.n_judged, noun)}: {parts}"


def verdict_line(report: Report) -> str:
    """Write the closing line; it carries the verdict in words, and what could not be judged with why."""
    verdict = report.verdict
    findings = [finding for change in report.changes for finding in change.findings]
    levels = count_levels(findings)
    if verdict is Verdict.ACCEPTED:
        return f"accepted: {levels or _no_findings(report)}{_untried(report)}"
    owed = _owed(report)
    if verdict is Verdict.UNDECIDED:
        also = f"; {levels}" if levels else ""
        return f"undecided: {owed}{also}{_policy(report)}"
    paths = {finding.path for finding in findings if finding.path and finding.level is not Level.NOTE}
    files = f" in {count(len(paths), 'file')}" if paths else ""
    return f"rejected: {levels}{files}{_policy(report)}" + (f"; {owed}" if owed else "")


def _untried(report: Report) -> str:
    """Say that no command of the policy ran on an applied patch, so no test has passed."""
    if report.attempt is None or not report.attempt.applied:
        return ""
    tried = {gate.outcome for change in report.changes for gate in change.gates if gate.gate in _TRYING}
    return "" if tried - {Outcome.NOT_APPLICABLE} else "; no commands ran"


def attempt_line(attempt: Attempt) -> str:
    """Say whether an attempt wrote its patch, with the paths of its evidence and of a kept scratch tree."""
    what = "the patch was applied" if attempt.applied else "nothing was applied"
    where = f"; evidence: {attempt.dir}" if attempt.dir else ""
    kept = f"; scratch tree: {attempt.temp_path}" if attempt.temp_path else ""
    return f"attempt {attempt.id}: {what}{where}{kept}"


def retry_line(retry: Retry) -> str:
    """Write the last line of a refused attempt: what to send next."""
    chain = f" in the chain {retry.chain} (this {retry.reason})" if retry.reason else ""
    if retry.allowed:
        what = "all edits" if " --edits " in retry.command else "the whole patch"
        return f"try {retry.number} of {retry.of}{chain}: send {what} again: {retry.command}"
    return f"no attempts left of {retry.of}{chain}; a maintainer can allow more: {retry.command}"


def _no_findings(report: Report) -> str:
    """Say how many files were checked; the old side of an exact rename does not count."""
    if not report.n_judged:
        return "no commits to judge"
    paths = set[bytes](report.cleared.paths if report.cleared is not None else ())
    for change in report.changes:
        moved = set(change.change.renames.values())
        paths.update(file.path.raw for file in change.change.files if file.path not in moved)
    unnamed = report.cleared.n_paths if report.cleared is not None else 0
    return f"{count(len(paths) + unnamed, 'file')}, no findings"


def _owed(report: Report) -> str:
    """Name the first few gates without an outcome, each once with its reason."""
    owing = [gate for change in report.changes for gate in gates_without_outcome(change)]
    # An undecided gate comes first: it is why the others were not run.
    owing.sort(key=lambda gate: gate.outcome is Outcome.NOT_RUN)
    said = list(dict.fromkeys(describe_gate(gate) for gate in owing))
    return first_of(said, MAX_REASONS, between="; ")


def _policy(report: Report) -> str:
    """Name the policy that judged, if there was only one, and why its limits are those of agents."""
    origins = {change.policy.origin for change in report.changes}
    origins |= report.cleared.origins if report.cleared is not None else set()
    if len(origins) != 1:
        return ""
    refused = [change for change in report.changes if change.verdict is not Verdict.ACCEPTED]
    reason = next((change.profile_reason for change in refused if change.profile_reason), "")
    why = f"; agent profile: {safe(reason, _MOST_REASON)}" if reason else ""
    return f" (policy {safe(origins.pop())}{why})"
