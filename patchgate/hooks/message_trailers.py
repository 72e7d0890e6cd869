"""The trailers that commit-msg adds to a message: of the intent that binds, and of the agent profile.

Leaves alone a message that git will refuse (a trailer would make it valid), and one that already names an
intent of this worktree while nothing is staged. The trailers help readers and prove nothing, so a failure
only warns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate.check.commit_message import message_settings, read_message
from patchgate.check.message_rules import STRIP, Cleanup, clean, comment_of, is_abandoned, strip_space
from patchgate.check.pending import pending_change
from patchgate.check.profiles import AGENT
from patchgate.check.profiles import TRAILER as PROFILE_TRAILER
from patchgate.errors import UndecidedError
from patchgate.git.change_sources import is_merging
from patchgate.git.intent_commits import with_trailer
from patchgate.git.new_commits import ref_value
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import BIG_FILE, Repository
from patchgate.intents.intent import Intent
from patchgate.intents.scope import TRAILER
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.intents.worktree_intents import WorktreeIntents


def add_intent_trailer(
    repository: Repository, file: str, here: WorktreeIntents, *, edited: bool
) -> str | None:
    """Add the trailer of the binding intent to a message; return a warning if that failed.

    Args:
        file: the message file that git gives to commit-msg, relative to the working directory.
        here: the intents of this worktree.
        edited: whether git opens an editor for this commit.

    Raises:
        PatchgateError: the message could not be read.
    """
    if not here.own or here.fault is not None:
        return None
    message = _PendingMessage.read(repository, file, edited=edited)
    if message is None:
        return None
    try:
        intent = _binding_intent(repository, here, message.text)
    except UndecidedError as error:
        return f"the message names no intent: {error.message}"
    if intent is None:
        return None
    return message.add(repository, f"{TRAILER}: {intent.id}")


def add_profile_trailer(repository: Repository, file: str, *, edited: bool) -> str | None:
    """Add the trailer that gives a commit the agent profile; return a warning if that failed.

    Raises:
        PatchgateError: the message could not be read.
    """
    message = _PendingMessage.read(repository, file, edited=edited)
    return None if message is None else message.add(repository, f"{PROFILE_TRAILER}: {AGENT}")


@dataclass(frozen=True, slots=True)
class _PendingMessage:
    """A message that git is about to use: its file, its bytes, and its text as git will clean it."""

    file: str
    raw: bytes
    text: bytes
    cleanup: Cleanup
    edited: bool

    @classmethod
    def read(cls, repository: Repository, file: str, *, edited: bool) -> _PendingMessage | None:
        """Read a message; None for one that git will refuse, which a trailer would make valid."""
        raw = read_message(file)
        cleanup, _ = message_settings(repository)
        text = clean(raw, cleanup, edited=edited)
        is_refused = is_abandoned(text) or _is_template(repository, text, cleanup, edited=edited)
        return None if is_refused or len(text) > BIG_FILE else cls(file, raw, text, cleanup, edited)

    def add(self, repository: Repository, line: str) -> str | None:
        """Add a trailer to the file; return a warning if that failed."""
        # Without an editor, git keeps lines that look like comments.
        comment = comment_of(self.raw, self.cleanup, edited=self.edited) if self.edited else None
        made = with_trailer(repository, self.raw, line, comment)
        if made == self.raw:
            return None
        failed = f"the trailer `{line}` was not added to the message"
        if made is None or not _has_line(clean(made, self.cleanup, edited=self.edited), line):
            return failed
        try:
            mode = os.stat(self.file).st_mode & 0o777
            write_atomically(Path(self.file), made, mode=mode)
        except OSError as error:
            return f"{failed}: {error.strerror or error}"
        return None


def _binding_intent(repository: Repository, here: WorktreeIntents, text: bytes) -> Intent | None:
    """Choose the intent that a message must name; None if it already names one that fits."""
    own = here.own
    if len(own) == 1:
        return own[0]
    files = _pending(repository)
    if files:
        return here.choose_binding_intent(files)
    # A commit that only changes the message stays with its intent.
    if any(_has_line(text, f"{TRAILER}: {intent.id}") for intent in own):
        return None
    head = ref_value(repository, "HEAD")
    if head is None or is_merging(repository):
        return here.choose_binding_intent(())
    from patchgate.git.intent_commits import changes_of, with_ids
    from patchgate.intents.intent_commits import intents_of

    owner = intents_of(repository, own, [head]).get(head)
    named = next((intent for intent in own if intent.id == owner), None)
    if named is not None:
        return named
    ((_, change),) = changes_of(repository, with_ids(repository, [head]))
    return here.choose_binding_intent(change.files)


def _pending(repository: Repository) -> Sequence[FileChange]:
    if not is_merging(repository):
        with Objects(repository) as objects:
            return pending_change(repository, objects).files
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        return pending_change(repository, objects, store).files


def _has_line(text: bytes, line: str) -> bool:
    return line.encode("ascii") in text.split(b"\n")


def _is_template(repository: Repository, text: bytes, cleanup: Cleanup, *, edited: bool) -> bool:
    """Whether a message is the unchanged template of the config, which git refuses (git-commit, -t)."""
    done = repository.git("config", "--type=path", "--get", "commit.template", answers=(0, 1))
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
