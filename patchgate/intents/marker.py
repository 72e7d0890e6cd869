"""The marker: which intents are those of one worktree, as its git directory says.

    <git dir>/patchgate-intents              the ids of this worktree's intents, one a line

It is what `sh` looks at, and it says which intents are this worktree's: a worktree that was made anew under
an old name has none. It is written before the first intent and goes after the last. An id in it whose file is
not there was never declared (a kill between the two), or is gone. A marker that cannot be read is never taken
for none. When it is written, who changes intents decides.
"""

from __future__ import annotations

import os
from contextlib import suppress

from patchgate.errors import DamagedIntentError
from patchgate.intents.intent_form import ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "patchgate-intents"

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_MARKER = 1 << 20
_MODE = 0o600
_TO_REMOVE = "remove it; then clear this worktree's intents (git patchgate intent list), declare anew"


def marked(git_dir: str) -> tuple[str, ...]:
    """Give the ids that the marker of a worktree names; none where it has no marker.

    Raises:
        DamagedIntentError: it cannot be read, or holds something else.
    """
    place = os.path.join(git_dir, MARKER)
    try:
        raw = content_of(place, _MOST_MARKER)
    except FileNotFoundError:
        return ()
    except OSError as error:
        is_file = os.path.isfile(place) and not os.path.islink(place)
        raise DamagedIntentError(
            f"{place!r} cannot be read: {error.strerror or error}",
            "mend the mode of that file" if is_file else _TO_REMOVE,
        ) from error
    names = raw.decode("ascii", "replace").split("\n")
    if names[-1] or not all(ID.fullmatch(name) for name in names[:-1]):
        raise DamagedIntentError(
            f"{place!r} is damaged: it has to name the intents of this worktree", _TO_REMOVE
        )
    return tuple(dict.fromkeys(names[:-1]))


def mark(git_dir: str, name: str) -> None:
    """Name an intent in the marker of its worktree, on the disk when this returns; before it is written.

    Raises:
        DamagedIntentError: the marker is damaged.
        OSError: as the system gave it.
    """
    names = marked(git_dir)
    if name not in names:
        _write_marker(git_dir, (*names, name))


def unmark(git_dir: str, name: str) -> None:
    """Take an intent out of the marker of its worktree, after it is gone; with the last the marker goes.

    A worktree that is gone, and an intent that is not named, change nothing.

    Raises:
        DamagedIntentError: the marker is damaged.
        OSError: as the system gave it.
    """
    names = marked(git_dir)
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

    from patchgate.storage.replace import write_atomically

    content = "".join(f"{name}\n" for name in names).encode("ascii")
    write_atomically(Path(git_dir, MARKER), content, mode=_MODE)


def content_of(place: str, most: int) -> bytes:
    """Read a file, of which nothing but a regular one is read: no link is followed, no FIFO waited for."""
    import stat

    descriptor = os.open(place, _READING)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no regular file")
        return file.read(most + 1)
