"""`log`: the events of the ledger, newest first, and `log --verify`: what its chain and its head file prove.

Decides which events are printed in which order, how an event reads as text and as JSON, and how damaged lines
and a missing end are reported. No value of an event is trusted: whoever can write `.git` can rewrite both
files, and no message here says otherwise.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from patchgate.errors import UndecidedError
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.ledger import adjudications
from patchgate.ledger.ledger import EVENT_SCHEMA, Event, Ledger
from patchgate.report.json import plain_json
from patchgate.report.schema import (
    COUNT,
    DIGEST,
    ORDINAL,
    Schema,
    Shape,
    about,
    document_schema,
    one_of,
    or_null,
)
from patchgate.report.wording import SHORT_OID, count, safe
from patchgate.storage.checked_chain import damaged_line
from patchgate.storage.hash_chain import ChainProblem
from patchgate.storage.record import (
    AT_END,
    BEFORE_END,
    CONTRADICTED,
    NO_HEAD,
    HeadComparison,
    Json,
    head_path_of,
    parse_line,
)
from patchgate.values import dataclass

VERIFIED_SCHEMA = "patchgate.ledger/2"

_HEAD = "events.jsonl.head"
_MOST_PATH = 4096
_MOST_ITEMS = 10
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,40}", re.ASCII)
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_MOST_IN_LINE = 120
# Events whose first line has all fields.
_WHOLE = frozenset({"attempted", adjudications.KIND})
_NOTHING: tuple[Json, ...] = (None, "", [], {})
# The keys that are printed first; the others follow in their order.
_FIRST = ("reason", "rules", "verdict")
# The subject of an event that is not about a commit, and the most characters of its name.
_SUBJECTS = (
    ("attempt", "attempt {}", 60),
    ("chain", "the chain of {}", 60),
    ("component", "component {}", 80),
    ("question", "question {}", 80),
)


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """The result of a check: the number of events, the hash of the last, the bad lines, the head file."""

    events: int
    last: str | None
    problems: Sequence[ChainProblem]
    path: Path
    exists: bool
    comparison: HeadComparison

    @property
    def is_intact(self) -> bool:
        """Whether no line is bad and the head file does not contradict the ledger."""
        return not self.problems and self.comparison.state != CONTRADICTED

    def as_json(self) -> str:
        """Write the result as one line of JSON, without a line feed."""
        head, state, behind = self.comparison.head, self.comparison.state, self.comparison.behind
        problems = [{"line": each.line, "message": each.message, "torn": each.torn} for each in self.problems]
        value = {
            "schema": VERIFIED_SCHEMA,
            "is_intact": self.is_intact,
            "events": self.events,
            "last": self.last,
            "problems": problems,
            "head": {"state": state, "hash": head and head.hash, "behind": behind},
        }
        return json.dumps(value)

    def as_text(self) -> list[str]:
        """Write the result as lines of text: what is proven and what is not, or the first fault and the next
        step.
        """
        if self.is_intact:
            last = f"; the last is {self.last}" if self.last else ""
            return [
                f"the chain is intact, which proves order and content: {count(self.events, 'event')}{last}",
                _what_the_head_proves(self.comparison),
            ]
        more = len(self.problems) - 1
        is_damaged = any(not each.torn for each in self.problems)
        lines = [
            describe_problem(each) + (f" (and {count(more, 'more bad line')})" if more else "")
            for each in self.problems[:1]
        ]
        head = self.comparison.head
        if self.comparison.state == CONTRADICTED:
            # The line that the head file names is damaged, and is reported already.
            if not is_damaged or (head is not None and self.comparison.size < head.size):
                lines.append(describe_contradiction(self.comparison))
        elif all(each.torn for each in self.problems):
            return [*lines, "help: nothing to do; the next event moves it aside"]
        return [*lines, *self._next_step(is_damaged)]

    def _next_step(self, is_damaged: bool) -> list[str]:
        """Write the commands that move the damaged files away, so that the next event starts new ones."""
        beside = Path(head_path_of(str(self.path)))
        moved = [self.path] if is_damaged else []
        if beside.exists():
            moved.append(beside)
        names = [" ".join(shlex.quote(str(path)) for path in (each, _free_name(each))) for each in moved]
        what = (
            "move it away and keep it; the next event then starts a new ledger, without the runs, attempts "
            "and approvals of the old one"
            if is_damaged
            else f"restore the ledger, or, if you changed it yourself, move {beside.name} away;"
            " the next event then writes a new one"
        )
        return [f"help: {what}", safe("    " + " && ".join(f"mv {each}" for each in names), 8 * _MOST_PATH)]


def check_ledger(repository: Repository) -> LedgerCheck:
    """Check every line of the ledger, the chain, and whether events are missing at the end.

    Raises:
        UndecidedError: the ledger cannot be read, or a writer kept the lock, so the result is not certain.
    """
    ledger = Ledger(repository.common_dir)
    events, last = 0, None
    try:
        problems = ledger.verify()
        for found in ledger.lines():
            if isinstance(found, Event):
                events, last = events + 1, found.hash
        return LedgerCheck(
            events=events,
            last=last,
            problems=problems,
            path=ledger.path,
            exists=ledger.path.exists(),
            comparison=ledger.compare_head(),
        )
    except OSError as error:
        raise unreadable_error(ledger, error) from error


def describe_problem(problem: ChainProblem) -> str:
    """Describe in half a sentence what is wrong with a line of the ledger."""
    return f"line {problem.line} of the ledger {problem.message}"


def describe_contradiction(comparison: HeadComparison) -> str:
    """Describe how the ledger contradicts its head file: it is missing, cut short, or rewritten."""
    head = comparison.head
    named = f"{_HEAD} names an event that ends at byte {head.size if head else 0}"
    if comparison.size == 0:
        return f"the ledger is missing or empty, and {named}: events were lost"
    if head is not None and comparison.size < head.size:
        return f"the ledger was cut short: it has {comparison.size} bytes, and {named}"
    return f"the ledger was cut short or rewritten: {named}, and the ledger does not have it there"


def _what_the_head_proves(comparison: HeadComparison) -> str:
    """Say in a sentence whether missing events at the end of the ledger can be detected."""
    if comparison.state == AT_END:
        return f"{_HEAD} names the same last event: none is missing, unless both files were changed"
    if comparison.state == BEFORE_END:
        behind = count(comparison.behind, "event")
        return (
            f"{_HEAD} names an earlier event, {behind} before the end: events missing after that cannot be"
            " detected; the next event updates it"
        )
    return (
        f"there is no {_HEAD}, so events missing at the end of the ledger cannot be detected;"
        " the next event writes one"
    )


def require_all(problems: Sequence[ChainProblem], comparison: HeadComparison) -> None:
    """Require that no event is missing; a torn last line is allowed, because its event was not recorded.

    Raises:
        UndecidedError: a line is damaged, or the head file names an event that is missing.
    """
    faults = [describe_problem(each) for each in problems if not each.torn]
    if comparison.state == CONTRADICTED:
        faults.append(describe_contradiction(comparison))
    if faults:
        raise UndecidedError(
            f"{faults[0]}, so events may be missing from the output", "git patchgate log --verify"
        )


def _free_name(path: Path) -> Path:
    """Find an unused name for a damaged ledger."""
    number = 1
    while (free := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return free


def unreadable_error(ledger: Ledger, error: OSError) -> UndecidedError:
    """Build the error for a ledger, or a head file, that cannot be read."""
    return UndecidedError(
        f"the ledger {str(ledger.path)!r} cannot be read: {error.strerror or error}",
        f"it and {_HEAD} must be regular files that you can read; correct their type and permissions",
    )


@dataclass(frozen=True, slots=True)
class History:
    """The selected events, newest first, and what is wrong with the ledger.

    The events can be taken once; where nothing is wrong, they are parsed only then. That raises
    `UndecidedError` at an event that has its hash and is no JSON.
    """

    events: Iterable[Event]
    problems: Sequence[ChainProblem]
    exists: bool
    comparison: HeadComparison


def history(repository: Repository, kinds: Collection[str] = (), most: int | None = None) -> History:
    """Read the ledger; damaged lines are skipped and listed.

    Args:
        kinds: only events of these kinds; empty: all.
        most: only the newest, so many; None: all.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    ledger = Ledger(repository.common_dir)
    content = ledger.content()
    if content.endswith(b"\n") and damaged_line(str(ledger.path), content) is None:
        newest = islice(_newest_first(content, kinds), most)
        try:
            return History(newest, problems=(), exists=True, comparison=ledger.compare_head())
        except OSError as error:
            raise unreadable_error(ledger, error) from error
    events: deque[Event] = deque(maxlen=most)
    problems: list[ChainProblem] = []
    try:
        for found in ledger.lines():
            if isinstance(found, ChainProblem):
                problems.append(found)
            elif not kinds or found.kind in kinds:
                events.append(found)
        exists, comparison = ledger.path.exists(), ledger.compare_head()
        return History(
            events=tuple(reversed(events)),
            problems=_confirm_problems(ledger, problems),
            exists=exists,
            comparison=comparison,
        )
    except OSError as error:
        raise unreadable_error(ledger, error) from error


def _newest_first(content: bytes, kinds: Collection[str]) -> Iterator[Event]:
    """Yield the events of a whole ledger, those of some kinds, or all."""
    # The canonical form has one way to write a kind.
    marks = [f'"kind":"{kind}"'.encode("ascii") for kind in kinds]
    end = len(content) - 1
    while end > 0:
        start = content.rfind(b"\n", 0, end) + 1
        line = content[start:end]
        if not marks or any(mark in line for mark in marks):
            try:
                record = parse_line(line)
            except ValueError as error:
                problem = ChainProblem(content.count(b"\n", 0, start) + 1, str(error))
                raise UndecidedError(describe_problem(problem), "git patchgate log --verify") from None
            event = Event.from_record(record.event, record.hash)
            if not kinds or event.kind in kinds:
                yield event
        end = start - 1


def as_json(event: Event) -> str:
    """Write an event as one line of ASCII JSON, without a line feed; ids and reasons in full."""
    return json.dumps(plain_json(event.plain()))


def as_line(event: Event) -> str:
    """Write an event in one line: when, what and where, then its rules and its reason."""
    line, _ = _first_line(event)
    shown = [
        safe(_value_text(about), _MOST_IN_LINE)
        for key in ("rules", "reason", "hooks")
        if (about := event.about.get(key))
    ]
    return f"{line}: {'; '.join(shown)}" if shown and event.kind not in _WHOLE else line


def as_text(event: Event) -> list[str]:
    """Write an event as lines of text: first when, what and where, then its other fields."""
    line, rest = _first_line(event)
    order = sorted(rest, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))
    return [line, *(f"    {_plain_word(key)}: {safe(_value_text(rest[key]))}" for key in order)]


def _first_line(event: Event) -> tuple[str, dict[str, Json]]:
    """Write when, what and where; return the fields that are left, too."""
    at, about = event.at if _TIME.fullmatch(event.at) else "(no time)", event.about
    rest = {key: value for key, value in about.items() if value not in _NOTHING}
    if event.kind == "attempted":
        # `attempts show` prints the other fields.
        return f"{at} attempted {_attempt_text(rest)}", {}
    if event.kind == "slow":
        taken, budget, hook = (safe(_value_text(about.get(key)), 60) for key in ("ms", "budget_ms", "hook"))
        return f"{at} slow {hook}: {taken} ms (budget: {budget} ms)", {}
    if event.kind == adjudications.KIND:
        return f"{at} adjudicated {_adjudication_text(event)}", {}
    words = [at, _plain_word(event.kind), *_take_subject(rest)]
    for key, before in (("ref", "on"), ("remote", "to"), ("hook", "by")):
        value = rest.get(key)
        if isinstance(value, str):
            words += (before, safe(value, 200))
            del rest[key]
    return " ".join(words), rest


def verified_schema() -> Schema:
    """Build the JSON Schema of `log --verify --format json`."""
    verified: dict[str, Shape] = {
        "is_intact": bool,
        "events": COUNT,
        "last": or_null(DIGEST),
        "problems": [{"line": ORDINAL, "message": str, "torn": about(bool, "cut short at the end")}],
        "head": {
            "state": one_of(NO_HEAD, AT_END, BEFORE_END, CONTRADICTED),
            "hash": or_null(DIGEST),
            "behind": about(COUNT, "events after the one that the head file names"),
        },
    }
    return document_schema(VERIFIED_SCHEMA, "Whether the ledger is intact", verified)


def json_schema() -> Schema:
    """Build the JSON Schema of one line of `log --format json`."""
    event: dict[str, Shape] = {"hash": DIGEST, "kind": str, "at": str, "version": str}
    # Each kind has its own keys, and the file may come from an older or newer version.
    return Schema(document_schema(EVENT_SCHEMA, "One event of the ledger", event), additionalProperties=True)


def _confirm_problems(ledger: Ledger, problems: Sequence[ChainProblem]) -> Sequence[ChainProblem]:
    """Check again under the lock, because an append in progress looks torn."""
    if not problems:
        return ()
    try:
        return ledger.verify()
    except UndecidedError:
        return [each for each in problems if not each.torn]


def _attempt_text(about: Mapping[str, Json]) -> str:
    """Write an attempt in one line: its id, then applied or the verdict, and the rules."""
    attempt, applied, verdict, rules = (about.get(key) for key in ("attempt", "applied", "verdict", "rules"))
    words = [
        safe(_value_text(attempt), 60) + ":",
        "applied" if applied is True else safe(_value_text(verdict), 60),
    ]
    if about.get("dry_run") is True:
        words.append("(dry run)")
    if "retry_of" in about:
        words.append(f"(retry of {safe(_value_text(about['retry_of']), 60)})")
    return " ".join(words) + (f": {safe(_value_text(rules))}" if rules else "")


def _adjudication_text(event: Event) -> str:
    """Write an adjudication in one line: the subject, the outcome, and the evidence."""
    (record,) = adjudications.read_adjudications([event])
    about = f"{safe(record.subject, 80)}: " if record.subject else ""
    claim = f" ({safe(record.reason_code, 80)})" if record.reason_code else ""
    evidence = _value_text([*record.samples]) if record.samples else record.coverage_insufficient_reason
    return f"{about}{safe(record.outcome, 40)}{claim}" + (f": {safe(evidence)}" if evidence else "")


def _take_subject(rest: dict[str, Json]) -> list[str]:
    """Remove the subject from an event and write it: the commit, some commits, or a staged change."""
    for key, form, most in _SUBJECTS:
        if isinstance(named := rest.get(key), str):
            del rest[key]
            return [form.format(safe(named, most))]
    commit, commits, source = rest.get("commit"), rest.get("commits"), rest.get("source")
    if isinstance(commit, str):
        del rest["commit"]
        if source == "commit":
            del rest["source"]
        return [f"commit {safe(_short(commit), 80)}"]
    if isinstance(commits, int) and not isinstance(commits, bool):
        del rest["commits"]
        return [count(commits, "commit")]
    if isinstance(commits, list) and all(isinstance(each, str) for each in commits):
        del rest["commits"]
        return [f"{'commit' if len(commits) == 1 else 'commits'} {safe(_value_text(commits))}"]
    if isinstance(source, str):
        del rest["source"]
        return [f"{safe(source, 80)} change"]
    return []


def _plain_word(key: str) -> str:
    """Write a key or a kind; anything but a plain word is quoted: it could be a command to a build log."""
    return key.replace("_", " ") if _WORD.fullmatch(key) else safe(json.dumps(key), 80)


def _value_text(value: Json) -> str:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence):
        return first_of(value, _MOST_ITEMS, _value_text)
    if isinstance(value, Mapping):
        return json.dumps(plain_json(value))
    return "none" if value is None else str(value)


def _short(text: str) -> str:
    return text[:SHORT_OID] if _OID.fullmatch(text) else text
