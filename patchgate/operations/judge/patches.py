"""The check of a patch or of edits: what each is laid on, and what comes of bytes that cannot be read.

A proposal is laid on the files as they are on disk, or on a commit (`--base`), whose result is merged with
what came after it. The trial itself is in `trial`.
"""

from __future__ import annotations

from dataclasses import replace

from patchgate.change.edits import parse_edits
from patchgate.change.patch import parse
from patchgate.change.path import faults
from patchgate.git.effect import PatchId
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.operations.judge.bases import find_footing
from patchgate.operations.judge.terms import Asked
from patchgate.operations.judge.trial import Trial
from patchgate.verdict.verdict import Report


def check_patch(
    repository: Repository, raw: bytes, asked: Asked, *, base: str | None = None, kind: str = "patch"
) -> Report:
    """Judge a patch by what git would make of it.

    Args:
        raw: the patch, byte for byte.
        base: a revision that it was made for; None lays it on the files as they are.
        kind: patch or edits, for the report.

    Raises:
        UsageError: the revision is unknown, or there is neither a working tree nor a base.
        UndecidedError: something could not be read.
    """
    with (
        PrivateStore(repository) as store,
        _objects_of(repository, store) as objects,
        PatchId(repository, raw) as patch_id,
    ):
        footing = find_footing(repository, objects, base)
        trial = Trial(repository, objects, store, footing, asked, kind)
        parsed = parse(raw)
        verdict = trial.unreadable(parsed) if isinstance(parsed, tuple) else trial.judge(parsed)
        if not isinstance(parsed, tuple):
            verdict = replace(verdict, n_hunks=parsed.n_hunks)
        return Report((replace(verdict, patch_id=patch_id.read()),), repository.limits)


def check_edits(repository: Repository, raw: bytes, asked: Asked, *, base: str | None = None) -> Report:
    """Judge structured edits of one file: they become a unified diff, which goes through the same gates.

    Args:
        raw: the JSON document.
        base: as in `check_patch`.

    Raises:
        UsageError, UndecidedError: as `check_patch`.
    """
    edits = parse_edits(raw)
    with PrivateStore(repository) as store, _objects_of(repository, store) as objects:
        footing = find_footing(repository, objects, base)
        trial = Trial(repository, objects, store, footing, asked, "edits")
        if not isinstance(edits, tuple) and faults(edits.path, from_text=True):
            return Report((trial.misnamed(edits.path),), repository.limits)
        made = edits if isinstance(edits, tuple) else trial.diff_of(edits)
        if isinstance(made, tuple):
            return Report((trial.unreadable(made),), repository.limits)
    return check_patch(repository, made, asked, base=base, kind="edits")


def _objects_of(repository: Repository, store: PrivateStore) -> Objects:
    """Read the repository's objects and the private ones, also where another child reads a large one."""
    environment = {**repository.environment, **store.variables}
    return Objects(replace(repository, environment=environment), store.variables)
