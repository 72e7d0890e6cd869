"""commit-msg, where an intent binds the commit: its message names it, by a trailer.

Decides which intent a message names, and which messages are left as they are: one that git will refuse, for a
trailer would make a message of it, and one that names an intent of this worktree while nothing is staged.
The trailer is a help to readers and proves nothing, so nothing stops where it cannot be written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate.change.message import STRIP, Cleanup, clean, comment_of, is_abandoned, strip_space
from patchgate.change.path import RepoPath
from patchgate.declared.intent import Intent, binding
from patchgate.durable.replace import write_atomically
from patchgate.gates.scope import TRAILER
from patchgate.git.repository import BIG_FILE, Repository
from patchgate.git.trailers import with_trailer
from patchgate.operations.judge.message import message_settings, read_message

if TYPE_CHECKING:
    from patchgate.operations.judge.intents import Here


def add_trailer(repository: Repository, file: str, here: Here, *, edited: bool) -> str | None:
    """Let the message of a commit name the intent that binds it; return a warning where it could not.

    Args:
        file: the file that git names to commit-msg, as seen from the working directory.
        here: the intents of this worktree.
        edited: whether git opens an editor for this commit.

    Raises:
        PatchgateError: the message could not be read.
    """
    if not here.active:
        return None
    raw = read_message(file)
    cleanup, _ = message_settings(repository)
    text = clean(raw, cleanup, edited=edited)
    if len(text) > BIG_FILE or is_abandoned(text) or _is_template(repository, text, cleanup, edited=edited):
        return None
    intent = _bound(repository, here.active, text)
    if intent is None:
        return None
    line = f"{TRAILER}: {intent.id}"
    # Where no editor is opened git keeps what looks like a comment.
    comment = comment_of(raw, cleanup, edited=edited) if edited else None
    made = with_trailer(repository, raw, line, comment)
    if made == raw:
        return None
    if made is None or not _has(clean(made, cleanup, edited=edited), line):
        return f"the message does not name {intent.id}: no trailer could be put into it"
    try:
        mode = os.stat(file).st_mode & 0o777
        write_atomically(Path(file), made, mode=mode)
    except OSError as error:
        return f"the message does not name {intent.id}: {error.strerror or error}"
    return None


def _bound(repository: Repository, active: tuple[Intent, ...], text: bytes) -> Intent | None:
    """Choose the intent for a message to name; None where it names one and nothing tells of another."""
    if len(active) == 1:
        return active[0]
    touched = _staged(repository)
    # An amend that changes nothing but the message keeps the intent that it was made under.
    if not touched and any(_has(text, f"{TRAILER}: {intent.id}") for intent in active):
        return None
    return binding(active, touched)


def _staged(repository: Repository) -> tuple[RepoPath, ...]:
    """List what is otherwise than in HEAD; where there is none, nothing."""
    command = ("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ita-invisible-in-index")
    done = repository.git(*command, "HEAD", "--")
    return tuple(RepoPath.from_git(name) for name in done.out.split(b"\0") if name) if done.code == 0 else ()


def _has(text: bytes, line: str) -> bool:
    return line.encode("ascii") in text.split(b"\n")


def _is_template(repository: Repository, text: bytes, cleanup: Cleanup, *, edited: bool) -> bool:
    """Tell whether a message is the template of the config as it was, which git refuses (git-commit, -t)."""
    done = repository.git("config", "--type=path", "--get", "commit.template")
    if done.code != 0:
        return False
    place = os.path.join(repository.work_tree or "", os.fsdecode(done.out.removesuffix(b"\n")))
    try:
        with open(place, "rb") as file:
            template = file.read(BIG_FILE)
    except OSError:
        return False
    comment = (cleanup.comment or b"#") if (cleanup.mode or STRIP) == STRIP and edited else None
    start = strip_space(template, comment)
    return bool(start) and text.startswith(start) and is_abandoned(text[len(start) :])
