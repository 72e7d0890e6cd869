"""The scope gate: what a piece of work touched, compared with what it declared.

Decides which files were unexpected (A7), which are forbidden, which another intent has, and what is said of
that, of an intent whose time is over and of a trailer. A circumstance: it knows an intent, which is no part
of a change. Which intent binds what, and what was touched, others say.
"""

from __future__ import annotations

import shlex
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
        touched: every path that is otherwise, both sides of a rename.
        controls: those of them that are control files, and so forbidden whatever was declared.
        dirty: those of them that are as they were before the declaration: nobody is blamed for them.
        taken: those of them that another intent has while this one waits, with the id of that one.
        along: those of them that go with declared files, as the baselines of their components do.
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
    """Find what a piece of work touched beyond what it declared, while it can still be left out.

    Args:
        intent: the piece of work.
        check: what `check_scope` says.
        kind: what is judged, a `Source.kind`: the next step fits it.
    """

    def take_out(path: RepoPath | None) -> str:
        name = "PATH" if path is None else _word(path)
        if kind in {"patch", "edits"}:
            return f"take it out of the {kind}"
        if kind == "worktree":
            return f"put it aside (git stash push -u -- {name})"
        return f"take it out of the commit (git restore --staged {name})"

    yield from file_findings(check, intent.id, take_out)


def file_findings(
    check: ScopeCheck, intent_id: str, take_out: Callable[[RepoPath | None], str]
) -> Iterator[Finding]:
    """Say of each file why it is not allowed; of many the first 20, then how many there are more.

    Args:
        check: what was touched beyond what was declared.
        intent_id: of the intent.
        take_out: gives the step by which a file gets out of what is judged (None: any of them).
    """
    controls, taken = frozenset(check.controls), dict(check.taken)

    def forbidden(path: RepoPath) -> str:
        return FORBIDS_CONTROLS if path in controls else f"{intent_id} forbids this file"

    def unexpected(path: RepoPath) -> str:
        if path in taken:
            return f"{taken[path]} has this file, and {intent_id} waits until it is cleared"
        return f"{intent_id} does not allow this file"

    for rule, paths, why, how, step in (
        ("scope-forbidden", check.forbidden, forbidden, "forbidden", "; change it without an intent"),
        (
            "scope-unexpected",
            check.unexpected,
            unexpected,
            f"not allowed by {intent_id}",
            ", or clear the intent and declare one that allows it",
        ),
    ):
        for path in paths[:MOST_NAMED]:
            waits = f", or wait until {taken[path]} is cleared" if path in taken else step
            yield find(rule, why(path), path, take_out(path) + waits)
        more = len(paths) - MOST_NAMED
        if more > 0:
            message = f"{count(more, 'more file')} {'is' if more == 1 else 'are'} {how}"
            yield find(rule, message, None, take_out(None) + step)


def _word(path: RepoPath) -> str:
    """Write a path for a shell; one that would have to be escaped for a terminal is not written."""
    text = path.raw.decode("utf-8", "surrogateescape")
    shown = printable(text)
    return shlex.quote(text) if shown == text else "PATH"


def expired_finding(intent: Intent, now: Moment) -> Finding:
    """Say that the time of an intent is over, so that it binds nothing any more."""
    left = intent.seconds_left(now)
    since = f" since {format_duration(-left)}" if left < 0 else ""
    message = (
        f"the time of {intent.id} is over{since}, so commits are not checked against it: {_reason(intent)}"
    )
    hint = (
        f"git patchgate intent recover {intent.id} goes on with it, "
        f"git patchgate intent clear {intent.id} ends it"
    )
    return find("intent-expired", message, None, hint)


def queued_finding(intent: Intent) -> Finding:
    """Say that an intent waits for another one, and what it may touch meanwhile."""
    message = (
        f"{intent.id} waits for another intent to be cleared; until then commits may touch only those of its "
        f"files that no other intent has: {_reason(intent)}"
    )
    hint = "git patchgate intent show makes it active once the other intent is cleared"
    return find("intent-queued", message, None, hint)


def reserved_findings(
    found: Sequence[tuple[RepoPath, Intent]], now: Moment, written: Callable[[float], str]
) -> Iterator[Finding]:
    """Say of files that are changed without an intent which intent of another worktree has declared them.

    Of many the first 20 are named, then it is said how many there are more.

    Args:
        found: the files, each with the intent that has it.
        now: the time.
        written: writes a time, in seconds since the epoch, for people.
    """
    hint = "wait until that intent is cleared, or ask whoever works there: git patchgate intent list"
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
    """Say that nobody knows which files the intents of other worktrees have."""
    hint = "git patchgate intent list says which one, and how to remove it"
    return find("intent-reserved", f"not every intent of another worktree can be read: {why}", None, hint)


def trailer_findings(intent: Intent, ids: Sequence[str]) -> Iterator[Finding]:
    """Tell of a commit that was made under an intent and does not name it, or another one beside it.

    Args:
        intent: the one that binds it.
        ids: what its `Patchgate-Intent` trailers say.
    """
    if intent.id in ids:
        for each in [each for each in ids if each != intent.id][:1]:
            message = f"the message names {_shown(each)} too, under which the commit is not made"
            hint = "take that line out, if that work has no part in it"
            yield find("intent-trailer", message, None, hint, who=Fixer.AGENT)
        return
    other = f" but {_shown(ids[0])}" if ids else ""
    message = f"the message does not name {intent.id}{other}, under which the commit is made"
    yield find("intent-trailer", message, None, RULES["intent-trailer"].hint, who=Fixer.AGENT)


def _reason(intent: Intent) -> str:
    return _shown(intent.reason)


def _shown(text: str) -> str:
    return printable(text, _MOST_LETTERS).replace("\t", " ")
