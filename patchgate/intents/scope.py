"""The scope gate: compares what a piece of work touched with what it declared.

Finds unexpected files (A7), forbidden files, and files that another intent has; reports expired and queued
intents and missing trailers. The caller says which intent binds a change, and what it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType

from patchgate.check.case import find
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.intents.intent import Intent, IntentScope, Moment, ScopeCheck, can_match_many, path_matcher
from patchgate.report.rules import RULES
from patchgate.report.verdict import Detail, Finding, Fixer
from patchgate.report.wording import count, format_duration

GATE = "scope"
TRAILER = "Patchgate-Intent"
FORBIDS_CONTROLS = "control files are forbidden to every intent"
MOST_NAMED = 20
_MOST_LETTERS = 120
_MOST_PLACE = 200


def check_scope(
    scope: IntentScope,
    touched: Iterable[RepoPath],
    controls: Set[RepoPath] = frozenset(),
    dirty: Set[RepoPath] = frozenset(),
    taken: Mapping[RepoPath, str] = MappingProxyType({}),
    along: Set[RepoPath] = frozenset(),
) -> ScopeCheck:
    """Compare what was touched with what was declared.

    Args:
        scope: what was declared.
        touched: every changed path, both sides of a rename.
        controls: the control files among them, which are always forbidden.
        dirty: those that are as they were before the declaration, which are ignored.
        taken: those that another intent has while this one is queued, with the id of that one.
        along: those that belong to declared files, such as the baselines of their components.
    """
    paths = {path for path in touched if path not in dirty}
    by_entry = {path for path in paths if scope.forbids(path)}
    by_kind = (paths & controls) - by_entry
    forbidden = by_entry | by_kind
    rest = sorted(paths - forbidden)
    allowed = [path for path in paths if scope.allows(path)]
    covered = {path for path in rest if path in along or scope.covers(path)}
    return ScopeCheck(
        unexpected=tuple(path for path in rest if path in taken or path not in covered),
        forbidden=tuple(sorted(forbidden)),
        expanded=tuple(path for path in rest if path in covered and not scope.allows(path)),
        untouched=tuple(
            entry
            for entry in dict.fromkeys(scope.allowed)
            if entry not in paths and not (can_match_many(entry) and any(map(path_matcher([entry]), allowed)))
        ),
        controls=tuple(sorted(by_kind)),
        taken=tuple((path, taken[path]) for path in rest if path in taken),
    )


def scope_findings(intent: Intent, check: ScopeCheck, kind: str = "staged") -> Iterator[Finding]:
    """Find what a pending change touches beyond what its intent declared.

    Args:
        intent: the piece of work.
        check: what `check_scope` says.
        kind: the `Source.kind` of the change, which decides the next step.
    """

    def take_out(path: RepoPath | None) -> str:
        name = "PATH" if path is None else path.in_shell
        if kind in {"patch", "edits"}:
            return f"remove it from the {kind}"
        if kind in {"envelope", "search-replace", "string-edits", "files"}:
            return "remove it from the proposal"
        if kind == "worktree":
            return f"stash it (git stash push -u -- {name})"
        return f"remove it from the commit (git restore --staged {name})"

    yield from file_findings(check, intent.id, take_out, intent.run)


def file_findings(
    check: ScopeCheck,
    intent_id: str,
    take_out: Callable[[RepoPath | None], str],
    run: str | None = None,
) -> Iterator[Finding]:
    """Report for each file why it is not allowed: the first 20, then the number of the others.

    Args:
        check: what was touched beyond what was declared.
        intent_id: the id of the intent.
        take_out: returns the step that removes a file from the change (None: any of them).
        run: the run that works under the intent.
    """
    controls, taken = frozenset(check.controls), dict(check.taken)
    name = intent_id if run is None else f"the run {run}, which works here under {intent_id},"
    elsewhere = f", or wait until the run ends (git patchgate run show {run}), or commit in another worktree"

    def forbidden(path: RepoPath) -> str:
        return FORBIDS_CONTROLS if path in controls else f"{name} forbids this file"

    def unexpected(path: RepoPath) -> str:
        if path in taken:
            return f"{taken[path]} has this file, and {intent_id} is queued until it is cleared"
        return f"{name} does not allow this file"

    for rule, paths, why, how, step in (
        ("scope-forbidden", check.forbidden, forbidden, "forbidden", "; change it without an intent"),
        (
            "scope-unexpected",
            check.unexpected,
            unexpected,
            f"not allowed by {intent_id}",
            ", or clear the intent and declare one that allows it" if run is None else elsewhere,
        ),
    ):
        for path in paths[:MOST_NAMED]:
            waits = f", or wait until {taken[path]} is cleared" if path in taken else step
            yield find(rule, why(path), path, take_out(path) + waits)
        more = len(paths) - MOST_NAMED
        if more > 0:
            message = f"{count(more, 'more file')} {'is' if more == 1 else 'are'} {how}"
            yield find(rule, message, None, take_out(None) + step)


def expired_finding(intent: Intent, now: Moment) -> Finding:
    """Report an expired intent, which binds nothing any more."""
    left = intent.seconds_left(now)
    since = f" {format_duration(-left)} ago" if left < 0 else ""
    message = f"{intent.id} expired{since}, so commits are not checked against it: {_reason(intent)}"
    hint = (
        f"git patchgate intent recover {intent.id} continues it, "
        f"git patchgate intent clear {intent.id} ends it"
    )
    return find("intent-expired", message, None, hint)


def queued_finding(intent: Intent) -> Finding:
    """Report that an intent is queued behind another one."""
    message = (
        f"{intent.id} is queued until another intent is cleared; until then commits may touch only those "
        f"files of it that no other intent has: {_reason(intent)}"
    )
    hint = "git patchgate intent show makes it active once the other intent is cleared"
    return find("intent-queued", message, None, hint)


def reserved_findings(
    found: Sequence[tuple[RepoPath, Intent]], now: Moment, written: Callable[[float], str]
) -> Iterator[Finding]:
    """Report files that are changed without an intent, but that an intent of another worktree has declared.

    Names the first 20, then the number of the others.

    Args:
        found: the files, each with the intent that has it.
        now: the time.
        written: formats a time, in seconds since the epoch.
    """
    hint = "wait until that intent is cleared, or ask its owner: git patchgate intent list"
    for path, intent in found[:MOST_NAMED]:
        left = intent.seconds_left(now)
        until = written(now.wall + left)
        place = printable(intent.work_tree, _MOST_PLACE)
        owner = intent.owner
        who = "" if owner is None else f"process {owner.pid} on {_shown(owner.host)}, "
        message = (
            f"{intent.id} has declared this file until {until}, for another {format_duration(left)}: "
            f"{_reason(intent)} ({who}worktree {place})"
        )
        worktree = RepoPath(intent.work_tree.encode("utf-8", "surrogateescape"))
        details: dict[str, Detail] = {"intent": intent.id, "worktree": worktree, "reason": _reason(intent)}
        yield find("intent-reserved", message, path, hint, details={**details, "until": until})
    more = len(found) - MOST_NAMED
    if more > 0:
        message = f"{count(more, 'more file')} {'is' if more == 1 else 'are'} declared by other intents"
        yield find("intent-reserved", message, None, hint)


def unreadable_finding(why: str) -> Finding:
    """Report that the intents of other worktrees cannot be read."""
    hint = "git patchgate intent list shows which one, and how to remove it"
    return find("intent-reserved", f"an intent of another worktree cannot be read: {why}", None, hint)


def trailer_findings(intent: Intent, ids: Sequence[str]) -> Iterator[Finding]:
    """Report a commit whose message does not name its intent, or names another one too.

    Args:
        intent: the intent that binds it.
        ids: the ids in its `Patchgate-Intent` trailers.
    """
    if intent.id in ids:
        for each in [each for each in ids if each != intent.id][:1]:
            message = f"the message also names {_shown(each)}, which does not bind this commit"
            hint = "remove that line if the commit is not part of that work"
            yield find("intent-trailer", message, None, hint, who=Fixer.AGENT)
        return
    other = f" but {_shown(ids[0])}" if ids else ""
    message = f"the message does not name {intent.id}{other}, which binds this commit"
    yield find("intent-trailer", message, None, RULES["intent-trailer"].hint, who=Fixer.AGENT)


def _reason(intent: Intent) -> str:
    return _shown(intent.reason)


def _shown(text: str) -> str:
    return printable(text, _MOST_LETTERS).replace("\t", " ")
