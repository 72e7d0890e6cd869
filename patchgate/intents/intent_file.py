"""The file format of a stored intent, and the marker of a worktree (the ids of its intents, one per line).

Every commit hook of a worktree with an intent reads these, so no schema library is loaded. The seal detects
a damaged file; the ledger proves what was declared. An id in the marker without a file is ignored; an
unreadable marker never counts as empty.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress

from patchgate.errors import DamagedIntentError
from patchgate.git.path import RepoPath
from patchgate.intents.intent import (
    Intent,
    IntentBudget,
    IntentOwner,
    IntentScope,
    Moment,
    State,
    declared_values,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


FORM = "patchgate.intent-file/1"
ID = re.compile(r"i-[0-9a-f]{8,40}", re.ASCII)
MOST_BYTES = 64 << 20

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_PATH = re.compile(r"(?:[0-9a-f]{2})+", re.ASCII)
_BOOT_ID = re.compile(r"[0-9a-f-]{0,64}", re.ASCII)
_MOST_PID = 2**31 - 1
_MOST_TIME = 10**12
_KEYS = frozenset({"declaration", "digest", "state", "renewed", "seen", "holder", "before"})
_DECLARED = frozenset(
    {"id", "reason", "allowed", "related", "forbidden", "work_tree", "git_dir", "base", "tree", "declared"}
    | {"ttl", "lease", "dirty", "analyses"}
)


class DamagedError(ValueError):
    """These bytes are not a stored intent; the text is safe to print."""


def serialize(intent: Intent) -> bytes:
    """Serialize an intent."""
    owner = intent.owner
    value = {
        "declaration": declared_values(intent),
        "digest": intent.digest,
        "state": intent.state.value,
        "renewed": _plain(intent.renewed),
        "seen": _plain(intent.seen),
        "holder": None if owner is None else [owner.host, owner.pid, owner.boot_id, owner.started],
        "before": intent.before,
    }
    body = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    return _seal(body) + b"\n" + body + b"\n"


def parse(raw: bytes, name: str) -> Intent:
    """Parse the file of the intent of this id.

    Raises:
        DamagedError: it is damaged.
    """
    if len(raw) > MOST_BYTES:
        raise DamagedError(f"it has more than {MOST_BYTES} bytes")
    seal, _, rest = raw.partition(b"\n")
    body = rest.removesuffix(b"\n")
    if len(body) + 1 != len(rest) or seal != _seal(body):
        raise DamagedError("its checksum does not match")
    value = _object(_loaded(body), _KEYS)
    declared = value["declaration"]
    has_budget = isinstance(declared, dict) and "budget" in declared
    intent = _intent(_object(declared, _DECLARED | ({"budget"} if has_budget else frozenset())), value)
    if intent.id != name:
        raise DamagedError("its id differs from its file name")
    if intent.digest != value["digest"]:
        raise DamagedError("its digest does not match its declaration")
    return intent


def moment_text(moment: Moment) -> bytes:
    """Serialize a moment as one line."""
    return json.dumps(_plain(moment), separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def moment_from(raw: bytes) -> Moment | None:
    """Parse a moment; None if it is damaged."""
    try:
        return _moment(_loaded(raw))
    except DamagedError:
        return None


def _seal(body: bytes) -> bytes:
    return hashlib.sha256(FORM.encode("ascii") + b"\n" + body).hexdigest().encode("ascii")


def _loaded(body: bytes) -> Any:
    try:
        # Python also reads NaN, which every key refuses later.
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DamagedError("it is not JSON") from error


def _intent(declared: dict[str, Any], value: dict[str, Any]) -> Intent:
    scope = IntentScope(
        _paths(declared["allowed"]), _paths(declared["related"]), _paths(declared["forbidden"])
    )
    if not scope.allowed:
        raise DamagedError("it allows no file")
    if value["state"] not in list(State):
        raise DamagedError("its state is unknown")
    return Intent(
        id=_matching(declared["id"], ID),
        reason=_text(declared["reason"]),
        scope=scope,
        work_tree=_text(declared["work_tree"]),
        git_dir=_text(declared["git_dir"]),
        base=None if declared["base"] is None else _matching(declared["base"], _OID),
        tree=_matching(declared["tree"], _OID),
        declared=_moment(declared["declared"]),
        ttl=_seconds(declared["ttl"]),
        lease=_seconds(declared["lease"]),
        dirty=_dirty(declared["dirty"]),
        analyses=_text(declared["analyses"]),
        budget=_budget(declared.get("budget", {})),
        state=State(value["state"]),
        renewed=None if value["renewed"] is None else _moment(value["renewed"]),
        seen=None if value["seen"] is None else _moment(value["seen"]),
        owner=None if value["holder"] is None else _holder(value["holder"]),
        before=None if value["before"] is None else _matching(value["before"], _DIGEST),
    )


def _budget(value: Any) -> IntentBudget:
    if not isinstance(value, dict) or not value.keys() <= set(IntentBudget.__slots__):
        raise DamagedError("its budget is malformed")
    if not all(type(limit) is int and 0 < limit < 10**9 for limit in value.values()):
        raise DamagedError("its budget is malformed")
    return IntentBudget(**value)


def _object(value: Any, keys: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise DamagedError("it lacks a key, or has an unknown one")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DamagedError("a text is not a string")
    return value


def _matching(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise DamagedError("an id is malformed")
    return value


def _seconds(value: Any) -> int:
    if type(value) is not int or not 0 < value < 10**9:
        raise DamagedError("a time is malformed")
    return value


def _number(value: Any) -> float:
    if type(value) not in {int, float} or not abs(value) <= _MOST_TIME:
        raise DamagedError("a time is malformed")
    # Not converted: the digest of a declaration differs for 1 and 1.0.
    number: float = value
    return number


def _moment(value: Any) -> Moment:
    if not isinstance(value, list) or len(value) != 3:
        raise DamagedError("a moment is malformed")
    return Moment(_number(value[0]), _matching(value[1], _BOOT_ID), _number(value[2]))


def _plain(moment: Moment | None) -> list[object] | None:
    return None if moment is None else [moment.wall, moment.boot_id, moment.boot]


def _holder(value: Any) -> IntentOwner:
    if not isinstance(value, list) or len(value) != 4:
        raise DamagedError("its owner is malformed")
    host, pid, boot_id, started = value
    if type(pid) is not int or not 0 < pid <= _MOST_PID:
        raise DamagedError("its owner is malformed")
    return IntentOwner(_text(host), pid, _matching(boot_id, _BOOT_ID), _text(started))


def _path(value: Any) -> RepoPath:
    return RepoPath(bytes.fromhex(_matching(value, _PATH)))


def _paths(value: Any) -> tuple[RepoPath, ...]:
    if not isinstance(value, list):
        raise DamagedError("a list is malformed")
    return tuple(map(_path, value))


def _dirty(value: Any) -> dict[RepoPath, tuple[str | None, ...]]:
    if not isinstance(value, dict) or not all(isinstance(oids, list) and oids for oids in value.values()):
        raise DamagedError("its list of dirty files is malformed")
    return {
        _path(path): tuple(None if oid is None else _matching(oid, _OID) for oid in oids)
        for path, oids in value.items()
    }


MARKER = "patchgate-intents"

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_MARKER = 1 << 20
_MARKER_MODE = 0o600
_TO_REMOVE = (
    "remove it; then clear the intents of this worktree (git patchgate intent list) and declare them again"
)


def marked_ids(git_dir: str) -> tuple[str, ...]:
    """Return the ids in the marker of a worktree; none if it has no marker.

    Raises:
        DamagedIntentError: it is unreadable or damaged.
    """
    place = os.path.join(git_dir, MARKER)
    try:
        raw = read_regular_file(place, _MOST_MARKER)
    except FileNotFoundError:
        return ()
    except OSError as error:
        is_file = os.path.isfile(place) and not os.path.islink(place)
        raise DamagedIntentError(
            f"{place!r} cannot be read: {error.strerror or error}",
            "fix the mode of that file" if is_file else _TO_REMOVE,
        ) from error
    names = raw.decode("ascii", "replace").split("\n")
    if names[-1] or not all(ID.fullmatch(name) for name in names[:-1]):
        raise DamagedIntentError(
            f"{place!r} is damaged: it must contain the ids of the intents of this worktree", _TO_REMOVE
        )
    return tuple(dict.fromkeys(names[:-1]))


def add_to_marker(git_dir: str, name: str) -> None:
    """Add an intent to the marker of its worktree, flushed; call it before storing the intent.

    Raises:
        DamagedIntentError: the marker is damaged.
        OSError: the marker could not be written.
    """
    names = marked_ids(git_dir)
    if name not in names:
        _write_marker(git_dir, (*names, name))


def remove_from_marker(git_dir: str, name: str) -> None:
    """Remove an intent from the marker of its worktree, and an empty marker; call it after the removal.

    Does nothing if the worktree or the id is gone.

    Raises:
        DamagedIntentError: the marker is damaged.
        OSError: the marker could not be written.
    """
    names = marked_ids(git_dir)
    left = tuple(each for each in names if each != name)
    if left == names:
        return
    if left:
        _write_marker(git_dir, left)
    else:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(git_dir, MARKER))


def git_dirs(common_dir: str) -> Iterator[str]:
    """Yield the git directory of the main worktree, then those of the linked ones (gitrepository-layout)."""
    yield common_dir
    linked = os.path.join(common_dir, "worktrees")
    with suppress(OSError):
        yield from (os.path.join(linked, name) for name in sorted(os.listdir(linked)))


def _write_marker(git_dir: str, names: tuple[str, ...]) -> None:
    from pathlib import Path

    from patchgate.storage.atomic_write import write_atomically

    content = "".join(f"{name}\n" for name in names).encode("ascii")
    write_atomically(Path(git_dir, MARKER), content, mode=_MARKER_MODE)


def read_regular_file(place: str, most: int) -> bytes:
    """Read a regular file; follows no link, and waits for no FIFO."""
    import stat

    descriptor = os.open(place, _READING)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(most + 1)
