"""Git's own lock on the index, taken so that it can be proved whose it is.

Decides how `<index>.lock` is taken and when a left one may go: only where it is the very file that lies in
the transaction's folder, or says the transaction's name. Git makes the same file (`O_EXCL`) for everything
that writes the index, so git is shut out meanwhile, and shuts us out.
"""

from __future__ import annotations

import errno
import time
from contextlib import suppress

from patchgate.errors import UndecidedError
from patchgate.git.quoting import quote_path
from patchgate.git.transaction.journal import LOCK, Journal
from patchgate.git.transaction.places import PART, is_same_file, remove_if_there
from patchgate.git.transaction.site import Site
from patchgate.storage.folder import Folder
from patchgate.storage.unbroken import is_asked_to_end

_MODE = 0o644
_POLL_SECONDS = 0.02
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def prepare(transaction: Folder, identity: str) -> None:
    """Make the file that becomes the lock. The flush of its folder is the journal's, its text for people."""
    transaction.write(LOCK, _token(identity), mode=_MODE, flushed=False)


def take(site: Site, transaction: Folder, journal: Journal, patience_seconds: float) -> None:
    """Take the lock, or find that we hold it already.

    Raises:
        UndecidedError: somebody else holds it for longer than we wait, or a signal asks us to end.
    """
    deadline = time.monotonic() + patience_seconds
    while not is_ours(site, transaction, journal):
        try:
            _try_to_take(site, transaction, journal)
        except FileExistsError:
            if time.monotonic() >= deadline or is_asked_to_end():
                raise _held(site) from None
            time.sleep(_POLL_SECONDS)


def release(site: Site, transaction: Folder, journal: Journal) -> None:
    """Remove the lock if it is ours, and what making it left; the folder's flush is the caller's."""
    for name in (journal.lock_aside + PART, journal.lock_aside):
        remove_if_there(site.index, name)
    if is_ours(site, transaction, journal):
        remove_if_there(site.index, _name(site))


def release_quietly(site: Site, transaction: Folder, journal: Journal) -> None:
    """Let git work again, so that a person can put right what is in the way; `recover` takes it anew."""
    with suppress(OSError):
        release(site, transaction, journal)


def is_ours(site: Site, transaction: Folder, journal: Journal) -> bool:
    """Tell whether the lock is there and ours."""
    if is_same_file(transaction, LOCK, site.index, _name(site)):
        return True
    token = _token(journal.id)
    status = site.index.status(_name(site))
    if status is None or status.st_size != len(token):
        return False
    try:
        return site.index.read(_name(site)) == token
    except OSError:
        return False


def _try_to_take(site: Site, transaction: Folder, journal: Journal) -> None:
    if transaction.status(LOCK) is not None:
        try:
            transaction.link(LOCK, site.index, _name(site))
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        else:
            return
    # Another file system than the transaction's, or one without hard links: by its content, which is on the
    # disk before the name is.
    if site.index.status(_name(site)) is not None:
        raise FileExistsError(errno.EEXIST, "held", site.index.at(_name(site)))
    remove_if_there(site.index, journal.lock_aside)
    site.index.write(journal.lock_aside, _token(journal.id), mode=_MODE)
    site.index.move(journal.lock_aside, site.index, _name(site))


def _name(site: Site) -> bytes:
    return site.index_name + b".lock"


def _token(identity: str) -> bytes:
    return f"patchgate transaction {identity}\n".encode()


def _held(site: Site) -> UndecidedError:
    name = quote_path(site.index.at(_name(site)))
    return UndecidedError(
        f"git's lock {name} is held: another git command runs in this repository, or one was killed",
        f"wait until it has ended; if none runs, remove {name}; then run the command again",
    )
