"""What a CI engine says: the event, and its values, each checked when it is asked for.

Pure: what a valid name or id is, and that no value is missing. Which of them an engine has for which event is
in `ci_environment`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Any

from patchgate.check.refs import is_branch_name
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.policy.strict_json import JsonFault, read_json
from patchgate.values import dataclass

EVENT_FILE = "GITHUB_EVENT_PATH"
MAX_EVENT = 32 << 20
"""Bytes of an event file. GitHub caps a payload at 25 MB (docs.github.com, “Webhook events and payloads”)."""
_MOST_VALUES = 1_000_000
"""Gitea and Forgejo name each file that a push changes, for each of its commits."""
BRANCHES, TAGS = "refs/heads/", "refs/tags/"
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PROVIDED = "the engine sets it: do not set it yourself; docs/ci.md lists what is read"
_DIFFERENT = "do not set these variables yourself, and do not write to the event file"


class EventKind(StrEnum):
    """What an engine was started by."""

    PROPOSAL = "pull request"
    PUSH = "push"
    TAG = "tag"
    RERUN = "run without a push"
    CLONE = "clone"


@dataclass(frozen=True, slots=True)
class CiEvent:
    """What an engine says of the commit that it builds; names of branches are without `refs/heads/`.

    `branch` is where the change lands (None: the default branch); with `is_first_of_several` other branches
    may have the commit too. `claimed` is the commit that the engine says this branch had before; with
    `is_queued` it is an earlier entry of a merge queue, which only the head contains. `checked_out` are the
    commits that HEAD may be (empty: any); `head` is the commit to judge where that is not HEAD. `includes`
    is a commit that the judged one contains; a queue may have rebased or squashed it. `default` is the
    default branch, where the engine names it. `is_open` is whether the engine says that nobody protects the
    base of a pull request. `is_new`, `is_forced`, `is_of_build` (`claimed` was built) are of a push. `fork`
    is the full name of a pull request's repository, if that is not the base's and may have been cloned
    instead; its owner alone, where it has the base's name.
    """

    engine: str
    kind: EventKind
    branch: str | None = None
    is_first_of_several: bool = False
    claimed: str | None = None
    checked_out: tuple[str, ...] = ()
    head: str | None = None
    includes: str | None = None
    default: str | None = None
    is_queued: bool = False
    is_protected: bool = False
    is_open: bool = False
    is_new: bool = False
    is_forced: bool | None = None
    fork: str | None = None
    is_of_build: bool = False
    tag: str | None = None
    takes_commands: bool = False


@dataclass(slots=True)
class CiValues:
    """The variables of an engine and its event file, each value checked when it is asked for."""

    variables: Mapping[str, str]
    engine: str
    document: bytes | None
    _event: dict[str, Any] | None = None

    def text(self, name: str) -> str | None:
        """Return a variable; an empty one counts as not set."""
        return self.variables.get(name) or None

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise UsageError(f"{self.engine}: {name} is not set", _PROVIDED)
        return value

    def one_of(self, name: str, known: Set[str]) -> str:
        value = self.required(name)
        if value not in known:
            raise UsageError(f"{self.engine}: {name} is unknown: {printable(value, 60)}", _PROVIDED)
        return value

    def branch(self, name: str, *, optional: bool = False) -> str | None:
        """Return the name of a branch, which the engine gives without `refs/heads/`."""
        value = self.text(name) if optional else self.required(name)
        return None if value is None else self._require_name("branch", value, value, name)

    def tag(self, name: str) -> str:
        """Return the name of a tag, which the engine gives alone or in full."""
        value = self.required(name)
        return self._require_name("tag", value.removeprefix(TAGS), value, name)

    def full_branch(self, name: str) -> str:
        """Return the name of a branch that the engine gives in full."""
        return self._full_branch(self.required(name), name)

    def oid(self, name: str, *, optional: bool = False) -> str | None:
        value = self.text(name) if optional else self.required(name)
        return None if value is None else self._oid(value, name)

    def said(self, *keys: str, optional: bool = False) -> str | None:
        """Return a text of the event file, by its path of keys."""
        holder: object = self._read_event()
        for key in keys:
            holder = holder.get(key) if isinstance(holder, dict) else None
        place = ".".join(keys)
        if isinstance(holder, str) and holder:
            return holder
        if holder is None and optional:
            return None
        raise UsageError(f"{self.engine}: the event file has no text {place}", _PROVIDED)

    def said_branch(self, *keys: str, optional: bool = False) -> str | None:
        value = self.said(*keys, optional=optional)
        return None if value is None else self._require_name("branch", value, value, ".".join(keys))

    def said_full_branch(self, *keys: str) -> str:
        return self._full_branch(self.said(*keys) or "", ".".join(keys))

    def said_oid(self, *keys: str) -> str:
        return self._oid(self.said(*keys) or "", ".".join(keys))

    def said_true(self, key: str) -> bool | None:
        value = self._read_event().get(key)
        return value if isinstance(value, bool) else None

    def agree(self, name: str, value: str, place: str, other: str) -> str:
        """Require that a variable and the event file say the same."""
        if value != other:
            shown = f"{printable(value, 100)} in {name}, {printable(other, 100)} in {place}"
            raise UndecidedError(f"{self.engine}: two sources disagree: {shown}", _DIFFERENT)
        return value

    def _read_event(self) -> dict[str, Any]:
        if self._event is not None:
            return self._event
        if self.document is None:
            raise UsageError(f"{self.engine}: {EVENT_FILE} names no file that can be read", _PROVIDED)
        found = read_json(self.document, MAX_EVENT, _MOST_VALUES)
        if isinstance(found, JsonFault):
            raise UsageError(f"{self.engine}: the event file cannot be used: {found.message}", _PROVIDED)
        if not isinstance(found.value, dict) or found.doubled:
            what = "has a key twice" if found.doubled else "is not a JSON object"
            raise UsageError(f"{self.engine}: the event file {what}", _PROVIDED)
        self._event = found.value
        return self._event

    def _full_branch(self, value: str, source: str) -> str:
        # A branch can be called `refs/heads/main` too: one prefix is removed, and only where it belongs.
        name = value.removeprefix(BRANCHES) if value.startswith(BRANCHES) else ""
        return self._require_name("branch", name, value, source)

    def _require_name(self, kind: str, name: str, value: str, source: str) -> str:
        if not is_branch_name(name):
            what = f"{source} is not the name of a {kind}: {printable(value, 100)}"
            raise UsageError(f"{self.engine}: {what}", _PROVIDED)
        return name

    def _oid(self, value: str, source: str) -> str:
        is_before = source in {"before", "CI_COMMIT_BEFORE_SHA"}
        if not _OID.fullmatch(value) or (is_zero(value) and not is_before):
            what = f"{source} is not a whole commit id: {printable(value, 100)}"
            raise UsageError(f"{self.engine}: {what}", _PROVIDED)
        return value


def is_zero(oid: str) -> bool:
    """Return whether an id is the one that means none."""
    return not oid.strip("0")
