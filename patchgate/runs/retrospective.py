"""What a run has taught: cost and time, what failed how often, what to change (`patchgate.run-retro/1`).

Made of the events of the run whenever it is asked for, so a run that failed or was killed has one too. A
lesson names a key of the config or a file, and comes from faults that were recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from patchgate.apply.attempt_records import AttemptRecord, records
from patchgate.components.policy_tree import PolicyTree, index_tree
from patchgate.errors import PatchgateError
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Event, Ledger
from patchgate.ledger.timestamps import parse_timestamp
from patchgate.policy.strict_json import JsonDocument, read_json
from patchgate.report.json import json_line
from patchgate.report.schema import Schema, Shape, about, document_schema, map_of, maybe
from patchgate.report.wording import count, safe
from patchgate.runs.cost import money, spends_of, total
from patchgate.runs.phase_task import PhaseOutcome
from patchgate.runs.phases import PHASES, Phase
from patchgate.runs.run_record import find_run, last_actions, status_now
from patchgate.runs.run_state import KIND, RunAction, RunState, RunStatus, fold
from patchgate.runs.triage import OF_WORKER, FaultKind
from patchgate.storage.record import Json
from patchgate.values import dataclass

SCHEMA = "patchgate.run-retro/1"
_LATEST = 3
_MOST_LESSONS = 5
_NAMED = 3
_ENDS = frozenset({RunAction.PAUSED, RunAction.ABORTED, RunAction.COMPLETED})


@dataclass(frozen=True, slots=True)
class FailurePattern:
    """A fault that a run has met: its kind, what it is about, how often, and in which components.

    Of refused answers `subject` is the rule that refused them, of a failed check the phase.
    """

    fault: str
    subject: str
    times: int
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retrospective:
    """What a run has taught.

    `seconds` are those in which it was at work, without pauses. `plan_revisions` counts the times that it was
    resumed with works to do again or with components left out. `largest_test_suite` is the component with the
    most tests, `most_error_cases` the one whose contract in the index has the most error cases, each with
    the number. `cost_by_phase` is money, by the name of the phase.
    """

    run: str
    status: RunStatus
    total_cost: float
    seconds: int
    components: int
    done: int
    plan_revisions: int
    largest_test_suite: tuple[str, int] | None
    most_error_cases: tuple[str, int] | None
    cost_by_phase: Mapping[str, float]
    failure_patterns: tuple[FailurePattern, ...]
    lessons: tuple[str, ...]


def retrospective_of(repository: Repository, name: str | None, now: float) -> Retrospective:
    """Gather what a run has taught until now; without a name, the newest.

    Raises:
        UsageError: there is no such run.
        UndecidedError: the ledger cannot be read.
    """
    return _gather(repository, find_run(repository, name).id, now)


def lessons_of_last_runs(repository: Repository, now: float) -> list[str]:
    """Return the lessons of the newest run, each with how many of the last runs taught it too.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    latest = [_gather(repository, run, now) for run in list(last_actions(repository))[-_LATEST:]]
    if not latest:
        return []
    found = []
    for lesson in latest[-1].lessons:
        times = sum(lesson in each.lessons for each in latest)
        found.append(lesson + (f" (so in {times} of the last {len(latest)} runs)" if times > 1 else ""))
    return found


def _gather(repository: Repository, run: str, now: float) -> Retrospective:
    ledger = Ledger(repository.common_dir)
    listed = ledger.find_events({KIND}, f'"run":"{run}"', strict=True)
    events = [each for each in listed if each.about.get("run") == run]
    state = fold(run, events)
    attempts = [each for each in records(ledger, f'"{run}/') if (each.run or "").startswith(f"{run}/")]
    spends = spends_of(events, run)
    patterns = _patterns(events, attempts)
    by_phase = {
        phase.value: total(each for each in spends if each.phase is phase)
        for phase in PHASES
        if any(each.phase is phase and each.usage.cost is not None for each in spends)
    }
    lessons: Sequence[str] = ()
    cases: Mapping[str, int] = {}
    try:
        with Objects(repository) as objects:
            content = index_tree(repository, objects)
            cases = _error_cases(content, state)
            lessons = _lessons(content, patterns)
    except PatchgateError:
        # Without a policy nothing of it can be changed.
        pass
    return Retrospective(
        run=run,
        status=status_now(state, now),
        total_cost=total(spends),
        seconds=_seconds(events),
        components=len(state.plan.phases),
        done=len(state.completed_components),
        plan_revisions=sum(_has_revised(each) for each in events),
        largest_test_suite=_most(_test_counts(events)),
        most_error_cases=_most(cases),
        cost_by_phase=by_phase,
        failure_patterns=patterns,
        lessons=tuple(lessons),
    )


def _seconds(events: Sequence[Event]) -> int:
    """Add up the time from each beginning to the end, or to the last event before a kill."""
    spent, began, last = 0, None, None
    for event in events:
        action, at = event.about.get("action"), parse_timestamp(event.at)
        if at is None or action == RunAction.SPENT:
            continue
        if action in {RunAction.STARTED, RunAction.RESUMED}:
            spent += 0 if began is None or last is None else max(0, last - began)
            began = at
        last = at
        if action in _ENDS and began is not None:
            spent, began = spent + max(0, at - began), None
    return spent + (0 if began is None or last is None else max(0, last - began))


def _has_revised(event: Event) -> bool:
    about = event.about
    return about.get("action") == RunAction.RESUMED and bool(about.get("cleared") or about.get("removed"))


def _test_counts(events: Iterable[Event]) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in events:
        counts, name = event.about.get("counts"), event.about.get("component")
        if event.about.get("action") == RunAction.FINISHED and isinstance(counts, Mapping):
            found[str(name)] = sum(each for each in counts.values() if type(each) is int)
    return found


def _error_cases(content: PolicyTree, state: RunState) -> dict[str, int]:
    """Count the error cases in the contract of each component of a run."""
    found = {}
    for name in state.plan.phases:
        component = content.policy.components.get(name)
        entry = None if component is None else content.view.entry(component.contract.raw)
        if entry is None or not entry.is_file:
            continue
        read = read_json(content.view.objects.read(entry.oid))
        value = read.value if isinstance(read, JsonDocument) else None
        functions = value.get("functions") if isinstance(value, dict) else None
        cases = [each.get("error_cases") for each in functions or () if isinstance(each, dict)]
        found[name] = sum(len(each) for each in cases if isinstance(each, list))
    return found


def _most(numbers: Mapping[str, int]) -> tuple[str, int] | None:
    """Return the name with the highest number, the first by name of several; None if none is above 0."""
    found = max(sorted(numbers.items()), key=lambda each: each[1], default=None)
    return found if found is not None and found[1] > 0 else None


def _patterns(events: Iterable[Event], attempts: Iterable[AttemptRecord]) -> tuple[FailurePattern, ...]:
    """Count equal faults, the most frequent first."""
    seen: dict[tuple[str, str], list[str]] = {}
    refused: set[str] = set()
    for attempt in attempts:
        rules = [rule for rule in attempt.rules if not rule.startswith("retry-")]
        if attempt.counts and rules:
            refused.add(str(attempt.run))
            component = str(attempt.run).split("/")[1]
            seen.setdefault((FaultKind.PATCH_REFUSED.value, rules[0]), []).append(component)
    for event in events:
        told = event.about
        if told.get("action") not in {RunAction.FAULTED, RunAction.RETRIED}:
            continue
        work = "/".join(str(told.get(key)) for key in ("run", "component", "phase"))
        if (found := _fault_told(told, has_refusals=work in refused)) is not None:
            seen.setdefault(found, []).append(str(told.get("component")))
    patterns = [
        FailurePattern(fault, subject, len(names), tuple(sorted(set(names))))
        for (fault, subject), names in seen.items()
    ]
    return tuple(sorted(patterns, key=lambda each: (-each.times, each.fault, each.subject)))


def _fault_told(told: Mapping[str, Json], *, has_refusals: bool) -> tuple[str, str] | None:
    """Return the fault of an event, and what it is about; None if it is none, or is counted elsewhere.

    Args:
        told: the event.
        has_refusals: whether rules refused answers of its work: each of them is counted by itself.
    """
    fault, phase = told.get("fault"), str(told.get("phase"))
    if not isinstance(fault, str):
        return None
    subject = str(told.get("signature") or "").removeprefix(fault).removeprefix(":")
    if fault == FaultKind.PATCH_REFUSED:
        if has_refusals:
            return None
        # The answers landed, or were no patches: the subject says what still failed.
        why, _, about = subject.partition(" ")
        if why in {*FaultKind}:
            return why, about
        fault, subject = FaultKind.TESTS_FAILED.value, ""
        if phase == Phase.CONTRACT:
            fault = FaultKind.CHECK_FAILED.value
    elif fault == FaultKind.CHECK_FAILED and told.get("outcome") != PhaseOutcome.FAILED:
        # A work that waits for a person has no fault, and of another without a kind nothing is known.
        return None if told.get("outcome") == PhaseOutcome.WAITING else (fault, "")
    return (fault, phase) if fault == FaultKind.CHECK_FAILED else (fault, subject)


_LESSONS: Mapping[str, str] = {
    FaultKind.TEMPORARY: "{what} asked to be called later: raise `[run] max_retries`",
    FaultKind.TIME_OUT: "{what} took too long: raise `[run] role_timeouts` of its role, or its `timeout`",
    FaultKind.CONNECTION: "{what} could not connect: set the proxy in `[environment] env`",
    FaultKind.NOT_STARTED: "{what} could not be started: list it in `[environment] required_tools`",
    FaultKind.MISSING_TOOL: "{what} was not found: list it in `[environment] required_tools`",
    FaultKind.IMPORT_ERROR: "{what} could not be imported: set `PYTHONPATH` in `[environment] env`",
    FaultKind.NOTHING_COLLECTED: (
        "no tests were collected in {names}: correct `tests` or `test_command`, or list what is missing in "
        "`[environment] required_tools`"
    ),
    FaultKind.TESTS_FAILED: "tests failed for {names}: compare them with {files}",
    FaultKind.CHECK_FAILED: "the contract of {names} is not valid: correct {files}",
    FaultKind.ANSWER_UNUSABLE: (
        "the answers of an author for {names} were no patches: correct its `command` in `[commands]`"
    ),
    FaultKind.AUTHOR_FAILED: "an author failed for {names}: correct its `command` in `[commands]`",
    FaultKind.BUDGET_SPENT: "the run stopped at a cap: raise `[run] total_cost` or `phase_caps`",
    FaultKind.PATCH_REFUSED: "{what} refused answers for {names}: tell the author, or change `[rules]`",
}
_OF_WORKER = (
    "the process that worked on {names} ended without a result: lower `[run] max_concurrent`, so that each "
    "has more memory"
)


def _lessons(content: PolicyTree, patterns: Iterable[FailurePattern]) -> list[str]:
    """Say what to change, the most frequent fault first."""
    found = []
    for each in patterns:
        text = _OF_WORKER if each.subject == OF_WORKER else _LESSONS.get(each.fault)
        if text is None or (each.fault == FaultKind.CHECK_FAILED and each.subject != Phase.CONTRACT):
            continue
        known = [content.policy.components.get(name) for name in each.components]
        files = [one.contract.quoted for one in known if one is not None]
        if files or "{files}" not in text:
            names = first_of(each.components, _NAMED, lambda name: f"`{name}`")
            what = f"`{safe(each.subject, 80)}`" if each.subject else f"something of {names}"
            found.append(text.format(what=what, names=names, files=first_of(files, _NAMED)))
    return list(dict.fromkeys(found))[:_MOST_LESSONS]


def retrospective_text(found: Retrospective) -> list[str]:
    """Write what a run has taught as lines, safe for a terminal."""
    done = f"{found.done} of {count(found.components, 'component')} done"
    spent = f"{found.seconds:,} s, cost {money(found.total_cost)}"
    lines = [f"{found.run} {found.status.value}: {done} in {spent}"]
    lines += [f"  {phase}: {money(cost)}" for phase, cost in found.cost_by_phase.items()]
    if found.plan_revisions:
        lines.append(f"  plan revised {count(found.plan_revisions, 'time')}")
    if found.largest_test_suite is not None:
        name, number = found.largest_test_suite
        lines.append(f"  most tests: {safe(name)}, {number:,}")
    if found.most_error_cases is not None:
        name, number = found.most_error_cases
        lines.append(f"  most error cases: {safe(name)}, {number:,}")
    for each in found.failure_patterns:
        named = first_of(each.components, _NAMED, safe)
        subject = f" ({safe(each.subject, 120)})" if each.subject else ""
        lines.append(f"  {each.fault}{subject}: {count(each.times, 'time')}, in {named}")
    return [*lines, *(f"lesson: {safe(each)}" for each in found.lessons)]


def retrospective_json(found: Retrospective) -> str:
    """Write what a run has taught as a JSON document."""
    most: Mapping[str, Json] = {
        name: None if each is None else {"component": each[0], "number": each[1]}
        for name, each in (
            ("largest_test_suite", found.largest_test_suite),
            ("most_error_cases", found.most_error_cases),
        )
    }
    return json_line(
        {
            "schema": SCHEMA,
            "run": found.run,
            "status": found.status.value,
            "total_cost": found.total_cost,
            "seconds": found.seconds,
            "components": found.components,
            "done": found.done,
            "plan_revisions": found.plan_revisions,
            **most,
            "cost_by_phase": dict(found.cost_by_phase),
            "failure_patterns": [
                {
                    "fault": each.fault,
                    "subject": each.subject,
                    "times": each.times,
                    "components": list(each.components),
                }
                for each in found.failure_patterns
            ],
            "lessons": list(found.lessons),
        }
    )


def retrospective_schema() -> Schema:
    """Return the schema of what a run has taught."""
    pattern: Shape = {
        "fault": str,
        "subject": about(str, "what it is about; of refused answers, the rule; of a failed check, the phase"),
        "times": int,
        "components": [str],
    }
    most: Shape = {"component": str, "number": int}
    return document_schema(
        SCHEMA,
        "What a run has taught",
        {
            "run": str,
            "status": RunStatus,
            "total_cost": float,
            "seconds": about(int, "in which it was at work"),
            "components": int,
            "done": int,
            "plan_revisions": about(int, "how often it was resumed with works to do again, or left out"),
            "largest_test_suite": about(maybe(most), "null: no tests were counted"),
            "most_error_cases": about(maybe(most), "null: no contract has any"),
            "cost_by_phase": map_of(float),
            "failure_patterns": [pattern],
            "lessons": about([str], "what to change: each names a key of the config, or a file"),
        },
    )
