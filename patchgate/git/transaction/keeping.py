"""Contents that belong to nobody's plan: kept below `patchgate/kept` in the common directory, never removed.

Decides where they go. What comes here is a person's, or was in a person's way; nothing here is read again.
"""

from __future__ import annotations

import os
from contextlib import suppress

from patchgate.git.transaction.places import EXECUTABLE, LINK, join, name_of, parent_of, standing
from patchgate.storage.folder import Folder
from patchgate.storage.steps import Steps

_KEPT = b"patchgate/kept"


class Keeping:
    """The folder of one transaction's kept contents; it is made when the first one comes."""

    def __init__(self, common_dir: str, identity: str, steps: Steps) -> None:
        self._common_dir = common_dir
        self._folder = join(_KEPT, os.fsencode(identity))
        self._steps = steps

    def save(self, folder: Folder, name: bytes, path: bytes) -> bytes:
        """Copy a file or a link, as it is, under the path that it had; return where it is now.

        It is on the disk when this returns. The same content, kept before, is kept once.
        """
        found = standing(folder, name)
        with Folder.open(self._common_dir, self._steps) as root:
            below = join(self._folder, parent_of(path)) if parent_of(path) else self._folder
            _make_below(root, below)
            with root.child(below) as kept:
                free = name_of(path)
                while (there := standing(kept, free)) is not None and there != found:
                    free += b"~"
                if there is None:
                    if found is not None and found.mode == LINK:
                        kept.symlink(free, folder.read_link(name))
                    else:
                        mode = 0o700 if found is not None and found.mode == EXECUTABLE else 0o600
                        growing = free + b".part"
                        with suppress(FileNotFoundError):
                            kept.unlink(growing)
                        kept.write(growing, folder.read(name), mode=mode)
                        kept.rename(growing, free)
                    kept.flush()
                return kept.at(free)


def _make_below(root: Folder, path: bytes) -> None:
    """Make every folder of a path that is missing, each name on the disk."""
    parts = path.split(b"/")
    for depth in range(len(parts)):
        with root.child(b"/".join(parts[:depth])) as above:
            if above.status(parts[depth]) is None:
                above.make(parts[depth], 0o700)
                above.flush()
