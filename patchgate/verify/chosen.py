"""Which intent a verification is held against, and what it cannot be held against.

Decides, of several in a worktree, by whose a commit is (the ledger, its trailer) and else by what is touched,
as the hooks do; that what is staged belongs to no other worktree's work, and that a commit from before an
intent is verified without it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchgate.errors import UsageError
from patchgate.git.quoting import printable
from patchgate.intents.commits import Here, active_here, binding_of
from patchgate.intents.intent import Intent
from patchgate.report.wording import SHORT_OID
from patchgate.verify.content import Analysed

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.verify.verify import Asked, Scene

_MOST_PATH = 200


def intent_for(scene: Scene, asked: Asked, after: Analysed) -> Intent | None:
    """Choose the intent; None where this worktree has none, and none was named.

    Raises:
        UsageError: there is no such intent, or what is staged here is not of its worktree.
        UndecidedError: an intent cannot be read.
    """
    if asked.intent is not None:
        from patchgate.verify.intent import named_intent

        intent = named_intent(scene.repository, asked.intent)
        if asked.revision is None:
            _require_here(scene, intent)
        return intent
    here = active_here(scene.repository)
    if here is None:
        return None
    from patchgate.verify.intent import intent_here

    return intent_here(here, lambda: _bound(scene, here, asked, after))


def _require_here(scene: Scene, intent: Intent) -> None:
    if intent.git_dir == scene.repository.git_dir:
        return
    from patchgate.intents.reservations import is_gone

    place = printable(intent.work_tree, _MOST_PATH)
    if is_gone(intent, scene.repository):
        raise UsageError(
            f"{intent.id} is of the worktree {place}, which is gone, and not of what is staged here",
            f"git patchgate intent recover {intent.id} takes it into this worktree",
        )
    shown = shlex.quote(intent.work_tree) if place == intent.work_tree else "WORKTREE"
    raise UsageError(
        f"{intent.id} is of the worktree {place}, and not of what is staged here",
        f"git -C {shown} patchgate verify, or name a commit",
    )


def _bound(scene: Scene, here: Here, asked: Asked, after: Analysed) -> Intent | None:
    """Choose among several: by whose the commit is, or else by what it touches, or what is staged."""
    if asked.revision is None:
        from patchgate.check.pending import pending_change

        change = pending_change(scene.repository, scene.objects, scene.store)
        return binding_of(here, change.files)
    from patchgate.intents.made_commits import owners_of

    assert after.commit is not None
    owner = owners_of(scene.repository, here.own, [after.commit]).get(after.commit)
    named = next((intent for intent in here.own if intent.id == owner), None)
    return named or binding_of(here, _files_of(scene, after.commit))


def _files_of(scene: Scene, commit: str) -> Sequence[FileChange]:
    from patchgate.git.intent_commits import changes_of, with_ids

    ((_, change),) = changes_of(scene.repository, with_ids(scene.repository, [commit]))
    return change.files


def was_before(scene: Scene, intent: Intent, after: Analysed) -> bool:
    """Tell whether a commit was there when an intent began, below the one that it began on."""
    if intent.base is None or after.commit is None or after.commit == intent.base:
        return False
    from patchgate.git.pushes import is_ancestor

    return is_ancestor(scene.repository, after.commit, intent.base)


def set_aside(asked: Asked, intent: Intent, after: Analysed) -> str:
    """Say that a commit from before an intent is verified without it.

    Raises:
        UsageError: that very intent was asked for.
    """
    said = f"{str(after.commit)[:SHORT_OID]} was there before {intent.id} began"
    if asked.intent is not None:
        raise UsageError(said, "name a commit of the work, or leave --intent out")
    return f"{said}: it is verified without the intent"
