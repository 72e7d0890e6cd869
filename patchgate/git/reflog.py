"""What the reflog of a worktree shows as made there: commits, amends, picks, merges, patches of a mail.

Decides which actions of git make a commit and which only move `HEAD` (checkout, reset, fast-forward, the
begin and the end of a rebase), and which entries are as new as asked for. Nothing is concluded from it here.
`logs/HEAD` is a worktree's own, and git writes it whatever hook is left out; whoever may write into git's
folder can change it as well, so it is a witness and no proof. Source: git-reflog, and the messages that
git 2.39 writes (builtin/commit.c, sequencer.c, builtin/merge.c, builtin/am.c).
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from patchgate.errors import UndecidedError
from patchgate.git.repository import Repository

_MOST_BYTES = 32 << 20
_LONGEST_PATH = 1 << 16
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# The name is anybody's text without a line feed; git reads the time behind its last `>`.
_ENTRY = re.compile(
    rb"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) [^\t]*> ([0-9]{1,18}) [+-][0-9]{4}\t(.*)",
    re.DOTALL,
)
# The action of a pull and of a rebase holds what it was called with, up to a word in brackets.
_MAKING = (
    re.compile(rb"(commit(?: \((?:initial|amend|merge|cherry-pick)\))?|am|cherry-pick|revert): "),
    re.compile(rb"(rebase|pull)\b.*? (\((?:pick|reword|edit|squash|fixup|continue|merge)\)): ", re.DOTALL),
    re.compile(rb"(merge|pull)\b.*?: (?:Merge made by |In-index merge)", re.DOTALL),
)


def made_in(git_dir: str, since: float) -> dict[str, str]:
    """Map the commits that a worktree's reflog shows as made there to the action, the oldest first.

    An entry is no older than those before it: a date that somebody chose for a commit hides it only where
    nothing was done since.

    Args:
        git_dir: git's directory of that worktree.
        since: seconds since the epoch; the reflog has whole ones, so that whole second counts.

    Raises:
        UndecidedError: there is one, and it cannot be read, or is too long for that time.
    """
    raw, is_whole = _content(os.path.join(git_dir, "logs", "HEAD"))
    wanted = math.floor(since)
    found: dict[str, str] = {}
    newest, is_first = 0, True
    for old, new, stamp, message in _entries(raw, is_whole):
        newest = max(newest, stamp)
        if is_first and not is_whole and newest >= wanted:
            raise UndecidedError(
                f"the reflog of {git_dir!r} is too long to be read back so far",
                "git reflog expire --expire=7.days HEAD shortens it",
            )
        is_first = False
        action = _making(message)
        if newest >= wanted and action and new != old and new.strip(b"0"):
            found[new.decode("ascii")] = action
    return found


def git_dirs(repository: Repository) -> tuple[str, ...]:
    """Name git's directory of every worktree: the main one's first (gitrepository-layout, `worktrees`)."""
    linked = os.path.join(repository.common_dir, "worktrees")
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(linked))
    return (repository.common_dir, *(os.path.join(linked, name) for name in names))


def work_trees(repository: Repository) -> frozenset[str]:
    """Name the folders of this repository's worktrees, with links resolved; one that is gone as well."""
    found = {repository.work_tree} if repository.work_tree is not None else set()
    main, *linked = git_dirs(repository)
    if os.path.basename(main) == ".git":
        found.add(os.path.dirname(main))
    for each in linked:
        with suppress(OSError), open(os.path.join(each, "gitdir"), "rb") as file:
            # `.git` of that worktree (gitrepository-layout, worktrees/<id>/gitdir).
            found.add(os.path.dirname(os.fsdecode(file.read(_LONGEST_PATH).rstrip(b"\n"))))
    return frozenset(os.path.realpath(each) for each in found)


def _content(place: str) -> tuple[bytes, bool]:
    """Read a reflog, of a very long one the end; tell whether that is all. A missing one is empty."""
    try:
        status = os.stat(place)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no regular file")
        with open(os.open(place, _READING), "rb") as file:
            left_out = max(0, status.st_size - _MOST_BYTES)
            file.seek(left_out)
            return file.read(_MOST_BYTES), left_out == 0
    except (FileNotFoundError, NotADirectoryError):
        return b"", True
    except OSError as error:
        raise UndecidedError(
            f"the reflog {place!r} cannot be read: {error.strerror or error}", "mend the mode of that file"
        ) from error


def _entries(raw: bytes, is_whole: bool) -> Iterator[tuple[bytes, bytes, int, bytes]]:
    """Yield old value, new value, time and message of each line; as git does, pass by what is none of its."""
    for line in raw.split(b"\n")[0 if is_whole else 1 : -1]:
        entry = _ENTRY.fullmatch(line)
        if entry is not None and len(entry[1]) == len(entry[2]):
            yield entry[1], entry[2], int(entry[3]), entry[4]


def _making(message: bytes) -> str | None:
    """Name the action of an entry that makes a commit; None where it only moves."""
    for pattern in _MAKING:
        found = pattern.match(message)
        if found is not None:
            return b" ".join(found.groups()).decode("ascii")
    return None
