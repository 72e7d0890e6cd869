"""Duplicates: a patch that an earlier attempt has applied here, and whose effect is still there.

Decides that alone, from the ledger and from the files as they stand. The id of a patch says nothing of white
space, so two patches that turn each other's spaces and tabs round share one: only the same bytes, or git
taking this very patch back, is believed. After a revert the files say so, and the patch may come again.
"""

from __future__ import annotations

from patchgate.apply.attempts import AttemptRecord, records
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.preimages import Ground, ground_on_disk
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.patches.effect import Making
from patchgate.patches.patch import parse
from patchgate.patches.patch_model import Patch
from patchgate.patches.proposed import paths_of
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding


def find_duplicate(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    ledger: Ledger,
    *,
    tree: str,
    patch: bytes,
    patch_id: str | None,
    patch_sha256: str,
) -> Finding | None:
    """Say that an attempt in this working tree has applied the patch, and that its effect is still there.

    It is where each file stands as that attempt left it and the bytes are the same, or where git takes the
    patch back from the files as they stand, in private. Without an id (no hunks) the bytes must be the same.

    Args:
        repository: where it is applied.
        objects: reads through `store`.
        store: where files on disk are read into; its index is used.
        ledger: where the attempts are recorded.
        tree: a tree of the repository, HEAD's or another.
        patch: what is judged, byte for byte.
        patch_id: its id.
        patch_sha256: the digest of its bytes.

    Raises:
        UndecidedError: a file or the index could not be read.
    """
    for applied in _last_applied(repository, ledger, patch_id, patch_sha256):
        paths = [file.path for file in applied.files]
        if any(faults(path, from_text=True) for path in paths):
            continue
        ground = ground_on_disk(repository, objects, store, tree, paths)
        if _was_reverted(ground, applied):
            # Among lines that repeat, git would take the patch back all the same.
            continue
        is_same = applied.patch_sha256 == patch_sha256
        if (is_same and _stands_as_left(ground, applied)) or _can_be_taken_back(
            repository, objects, store, tree, patch
        ):
            return Finding(
                "duplicate-patch",
                RULES["duplicate-patch"].level,
                f"attempt {applied.attempt} has applied this patch already, and its effect is still there",
                hint="nothing has to be done; after a revert it may come again",
                details={"pattern": None, "limit": None, "actual": None, "attempt": applied.attempt},
            )
    return None


def _last_applied(
    repository: Repository, ledger: Ledger, patch_id: str | None, patch_sha256: str
) -> list[AttemptRecord]:
    """Find the last attempt here that applied these bytes, and the last with this id (edits have many)."""
    found: dict[str, AttemptRecord] = {}
    for digest in (patch_sha256, patch_id):
        here = [
            each
            for each in (records(ledger, digest) if digest else ())
            if each.applied
            and each.work_tree is not None
            and each.work_tree == repository.work_tree
            and digest in {each.patch_sha256, each.patch_id}
        ]
        if here:
            found[here[-1].attempt] = here[-1]
    return list(found.values())


def _was_reverted(ground: Ground, applied: AttemptRecord) -> bool:
    """Tell whether every file stands as it did before the attempt."""
    files = applied.files
    return bool(files) and all(ground.entries[file.path] == file.old for file in files)


def _stands_as_left(ground: Ground, applied: AttemptRecord) -> bool:
    """Tell whether every file stands as the attempt left it."""
    files = applied.files
    return bool(files) and all(ground.entries[file.path] == file.new for file in files)


def _can_be_taken_back(
    repository: Repository, objects: Objects, store: PrivateStore, tree: str, patch: bytes
) -> bool:
    """Tell whether git takes the patch back from the files as they stand."""
    parsed = parse(patch)
    if isinstance(parsed, tuple):
        return False
    paths = paths_of(parsed)
    if any(faults(path, from_text=True) for path in paths):
        return False
    ground = ground_on_disk(repository, objects, store, tree, paths, _taken_back(parsed))
    if ground.blocked:
        return False
    with Making(repository, store, ground.entries, patch, reverse=True) as making:
        return making.is_taken()


def _taken_back(patch: Patch) -> frozenset[RepoPath]:
    """Name the paths that taking the patch back would remove."""
    return frozenset(
        section.new_path
        for section in patch.sections
        if section.new_path is not None and section.new_path != section.old_path
    )
