"""The scope gate: what a piece of work touched, held against what it declared.

Decides by exact membership which files were unexpected (A7: an entry is a path here, never a pattern), which
are forbidden, and what is said of that, of an intent whose time is over and of a trailer. A circumstance: it
knows an intent, which is no part of a change. Which intent binds what, and what was touched, others say.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Iterator, Sequence

from patchgate.change.path import RepoPath
from patchgate.change.quoting import printable
from patchgate.declared.intent import Intent, Moment, Scope
from patchgate.gates.case import find
from patchgate.verdict.rules import RULES
from patchgate.verdict.verdict import Finding, Fixer
from patchgate.verdict.verification import ScopeCheck
from patchgate.verdict.wording import count

GATE = "scope"
TRAILER = "Patchgate-Intent"
MOST_NAMED = 20
_MOST_LETTERS = 120


def check_scope(
    scope: Scope,
    touched: Iterable[RepoPath],
    controls: Container[RepoPath] = (),
    dirty: Container[RepoPath] = (),
) -> ScopeCheck:
    """Hold what was touched against what was declared.

    Args:
        scope: what was declared.
        touched: every path that is otherwise, both sides of a rename.
        controls: those of them that are control files, and so forbidden whatever was declared.
        dirty: those of them that are as they were before the declaration: nobody is blamed for them.
    """
    paths = {path for path in touched if path not in dirty}
    forbidden = {path for path in paths if path in controls or scope.forbids(path)}
    allowed, related = frozenset(scope.allowed), frozenset(scope.related)
    rest = sorted(paths - forbidden)
    return ScopeCheck(
        unexpected=tuple(path for path in rest if path not in allowed and path not in related),
        forbidden=tuple(sorted(forbidden)),
        expanded=tuple(path for path in rest if path in related and path not in allowed),
        untouched=tuple(path for path in dict.fromkeys(scope.allowed) if path not in paths),
    )


def examine(intent: Intent, check: ScopeCheck) -> Iterator[Finding]:
    """Find what a piece of work touched beyond what it declared."""
    for path in check.forbidden[:MOST_NAMED]:
        by_word = intent.scope.forbids(path)
        message = (
            f"{intent.id} forbids this file" if by_word else "control files are forbidden to every intent"
        )
        yield find("scope-forbidden", message, path, _hint("scope-forbidden", path))
    yield from _rest("scope-forbidden", check.forbidden, "are forbidden")
    for path in check.unexpected[:MOST_NAMED]:
        message = f"{intent.id} does not allow this file"
        yield find("scope-unexpected", message, path, _hint("scope-unexpected", path))
    yield from _rest("scope-unexpected", check.unexpected, f"are not allowed by {intent.id}")


def _rest(rule: str, paths: Sequence[RepoPath], how: str) -> Iterator[Finding]:
    """Count those that are not named one by one."""
    more = len(paths) - MOST_NAMED
    if more > 0:
        how = how.replace("are ", "is ", 1) if more == 1 else how
        yield find(rule, f"{count(more, 'more file')} {how}", None, _hint(rule, None))


def _hint(rule: str, path: RepoPath | None) -> str:
    name = "PATH" if path is None else _word(path)
    take_out = f"take it out of the commit (git restore --staged {name})"
    if rule == "scope-forbidden":
        return f"{take_out}; change it without an intent"
    return f"{take_out}, or clear the intent and declare one that allows it"


def _word(path: RepoPath) -> str:
    """Write a path for a shell; one that would have to be escaped for a terminal is not written."""
    text = path.raw.decode("utf-8", "surrogateescape")
    shown = printable(text)
    return shlex.quote(text) if shown == text else "PATH"


def expired(intent: Intent, now: Moment) -> Finding:
    """Say that the time of an intent is over, so that it binds nothing any more."""
    left = intent.seconds_left(now)
    since = f" since {_length(-left)}" if left < 0 else ""
    message = f"the time of {intent.id} is over{since}, so nothing is held against it: {_reason(intent)}"
    hint = (
        f"git patchgate intent recover {intent.id} goes on with it, "
        f"git patchgate intent clear {intent.id} ends it"
    )
    return find("intent-expired", message, None, hint)


def queued(intent: Intent) -> Finding:
    """Say that an intent waits for another one, and owns nothing yet."""
    message = f"{intent.id} waits for another intent to be cleared, and owns nothing yet: {_reason(intent)}"
    return find("intent-queued", message, None, "wait until git patchgate intent show says that it is active")


def trailer(intent: Intent, ids: Sequence[str]) -> Iterator[Finding]:
    """Tell of a commit that was made under an intent and does not name it.

    Args:
        intent: the one that binds it.
        ids: what its `Patchgate-Intent` trailers say.
    """
    if intent.id in ids:
        return
    other = f" but {_shown(ids[0])}" if ids else ""
    message = f"the message does not name {intent.id}{other}, under which the commit is made"
    fix = RULES["intent-trailer"].fix
    yield find("intent-trailer", message, None, fix[0].lower() + fix[1:].removesuffix("."), who=Fixer.AGENT)


def _reason(intent: Intent) -> str:
    return _shown(intent.reason)


def _shown(text: str) -> str:
    return printable(text, _MOST_LETTERS).replace("\t", " ")


def _length(seconds: float) -> str:
    """Write a length of time in words, in the largest unit of which there is one."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return count(int(seconds // size), name)
    return count(int(seconds), "second")
