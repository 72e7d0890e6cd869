"""What remains to do once a landing is in force; it can be begun again at any point.

Decides that order alone: the old contents go, then the folders that deletions left empty, then git's lock.
"""

from __future__ import annotations

import errno
import os

from patchgate.git.transaction import index_lock
from patchgate.git.transaction.journal import Journal
from patchgate.git.transaction.keeping import Keeping
from patchgate.git.transaction.places import is_reachable
from patchgate.git.transaction.rollback import drop_aside, emptied
from patchgate.git.transaction.site import Site
from patchgate.storage.folder import Folder

_STAYING = {
    errno.ENOTEMPTY,
    errno.EEXIST,
    errno.EBUSY,
    errno.EINVAL,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}


def tidy(site: Site, transaction: Folder, journal: Journal, keeping: Keeping) -> tuple[str, ...]:
    """Remove what a landing left, on the disk when this returns; name what was kept, for it was a person's.

    Raises:
        OSError: a step failed; the rest is for another time.
    """
    kept = []
    try:
        for place in journal.places:
            if is_reachable(site.root(place), place.folder):
                saved = drop_aside(site, place, keeping)
                if saved is not None:
                    kept.append(os.fsdecode(saved))
        _remove_emptied(site, journal)
    except OSError:
        # What is in force need not keep git out.
        index_lock.release_quietly(site, transaction, journal)
        raise
    index_lock.release(site, transaction, journal)
    site.touch_index()
    site.flush()
    return tuple(kept)


def _remove_emptied(site: Site, journal: Journal) -> None:
    """Remove the folders that deletions left empty; one that must stay, stays, as git leaves it."""
    for path in emptied(journal):
        if is_reachable(site.tree, path):
            try:
                site.remove_folder(path)
            except OSError as error:
                if error.errno not in _STAYING:
                    raise
