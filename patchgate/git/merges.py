"""The merge that git makes by itself: the base against which a merge commit is judged.

What a person added while merging is the difference between that merge and the result. Where git cannot
merge by itself (conflicts, more than two heads) there is no such tree, and the paths that differ from every
parent are judged. Source: git-merge-tree, `--write-tree --stdin`.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.git.private import PrivateStore
from patchgate.git.repository import failed

_PINNED = (
    ("merge.renames", "true"),
    ("merge.directoryRenames", "conflict"),
    ("merge.renameLimit", "7000"),
)


def automatic_merges(store: PrivateStore, merges: Sequence[tuple[str, ...]]) -> list[str | None]:
    """Merge each tuple of commits as git would; give the resulting trees, None where git could not.

    The trees live in `store`. Octopus merges have none. No setting or attribute of the repository counts.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    pairs = [heads for heads in merges if len(heads) == 2]
    settings = [part for name, value in _PINNED for part in ("-c", f"{name}={value}")]
    arguments = (*settings, "merge-tree", "--write-tree", "--no-messages", "--allow-unrelated-histories")
    trees: dict[tuple[str, ...], str | None] = {}
    if pairs:
        asked = b"".join(" ".join(heads).encode("ascii") + b"\n" for heads in pairs)
        done = store.bare().git(*arguments, "--stdin", "-z", stdin=asked, variables=store.variables)
        # Git 2.39 takes a tree that is missing for an empty one, says so, and ends with 0.
        if done.code != 0 or b"error:" in done.err:
            raise failed("merge-tree", done)
        words = iter(done.out.split(b"\0"))
        for heads in pairs:
            status, tree = next(words), next(words)
            trees[heads] = tree.decode("ascii") if status == b"1" else None
            # What is in conflict is listed up to an empty word.
            while next(words, b""):
                pass
    return [trees.get(heads) for heads in merges]
