"""How far each branch has been told of: the file `told`, which spares a commit the question.

Decides the form of the file, and when what lies below a commit needs no question: a line of commits leads
from it to one below which everything is answered for (on that branch, at install, or a root commit), each
with a receipt and none a merge. The fast path decides the same from the same files. What has to be told, and
on which branch, it does not decide.

A line is `<commit> <branch>` and LF, the branch by its full name: all below that commit has been told there.
Only that is ever written, so a line that is old is true, and of two writers at once either may win. The file
is a hint about a warning: nothing is accepted for it, and where it is missing or damaged, git is asked.
"""

from __future__ import annotations

import os
from contextlib import suppress

from patchgate.ledger.receipts import Receipts, is_oid, settled

_MODE = 0o600
_MOST_BRANCHES = 200
_MOST_BYTES = 64 << 10


class Told:
    """What the branches of one repository have been told, shared by its worktrees.

    Args:
        common_dir: git's common directory; nothing is made in it.
    """

    def __init__(self, common_dir: str) -> None:
        self.path = os.path.join(common_dir, "patchgate", "told")
        self._common_dir = common_dir

    def covers(self, branch: str, tip: str, receipts: Receipts) -> bool:
        """Tell whether all that lies below a commit is answered for on a branch, without asking git."""
        stops = {self.tips().get(branch), *settled(self._common_dir)}
        parents = receipts.recent_parents()
        at: str | None = tip
        while at is not None and at not in stops:
            if at not in parents:
                return False
            # Taken out, so that receipts which nobody should have written lead in no circle.
            at = parents.pop(at)
        return True

    def tips(self) -> dict[str, str]:
        """Give the commit that each branch has been told of, those noted last at the end."""
        found: dict[str, str] = {}
        for line in self._lines():
            oid, _, branch = line.partition(b" ")
            if branch and is_oid(oid):
                found[branch.decode("utf-8", "surrogateescape")] = oid.decode("ascii")
        return found

    def note(self, branch: str, tip: str) -> None:
        """Write down that all below a commit has been told on a branch; a failure costs only a question."""
        tips = self.tips()
        if tips.pop(branch, None) == tip:
            return
        tips[branch] = tip
        lines = [f"{oid} {name}\n".encode("utf-8", "surrogateescape") for name, oid in tips.items()]
        content = b"".join(lines[-_MOST_BRANCHES:])
        if len(content) > _MOST_BYTES:
            content = lines[-1]
        from pathlib import Path

        from patchgate.storage.replace import write_atomically

        with suppress(OSError):
            write_atomically(Path(self.path), content, mode=_MODE)

    def _lines(self) -> list[bytes]:
        """Read the whole lines; none where it cannot be read, or is longer than it ever gets."""
        with suppress(OSError), open(self.path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
            if len(content) <= _MOST_BYTES:
                return content.split(b"\n")[:-1]
        return []
