"""Recognise that a write of a coding agent is ordinary, at the cost of one short git child.

Like `hooks.fast.recognise`, whose questions it asks: it has no rules, only a policy that the full check has
compiled for the agent profile. What is not recognised goes to the full check. All new lines between the first
and the last that differ count as added, which is never fewer than git counts.
"""

from __future__ import annotations

import os
import sys
from _imp import source_hash
from collections.abc import Mapping, Sequence
from marshal import loads
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.hooks.fast import recognise as fast
from patchgate.hooks.fast.recognise import above, entries, read, require, take

if TYPE_CHECKING:
    from patchgate.agents.hooks.places import Place

PROFILE = "agent"
_CONVERTING = (b"filter", b"ident", b"encoding")
_ATTRIBUTES = ".gitattributes"
_NOT_RECOGNISED = (ValueError, LookupError, TypeError, EOFError, OSError)


def are_ordinary(place: Place, contents: Mapping[bytes, bytes | None]) -> bool:
    """Return whether no gate can report anything about these files; false if that is not known.

    Args:
        place: the working tree.
        contents: what each of its files will be; None for no file.
    """
    try:
        _require_ordinary(place, contents)
    except _NOT_RECOGNISED:
        return False
    return True


def _require_ordinary(place: Place, contents: Mapping[bytes, bytes | None]) -> None:
    paths = list(contents)
    require(paths and not any(path.translate(None, fast.PLAIN) for path in paths))
    folders = list(dict.fromkeys(each for path in paths for each in above(path)))
    _require_plain_files(place.root, paths, folders)
    asked = [b"info HEAD\n", b"contents HEAD^{tree}\n"]
    asked += [b"contents HEAD:%s\n" % each for each in (*folders, *paths)]
    answers = fast.ask(place.git_dir, asked)
    fast.check_trust(place.git_dir, place.common_dir)
    fast.check_intents(place.common_dir)
    _require_no_conversion(place, folders)
    said = fast.listen(answers)
    head, kind, _, _ = take(said)
    require(kind == b"commit")
    width = len(head) // 2
    trees = {b"": dict(entries(take(said, with_content=True)[3], width))}
    for folder in folders:
        _, kind, _, tree = take(said, with_content=True)
        require(kind in (b"tree", b"missing"))
        trees[folder] = dict(entries(tree, width))
    policy = _load_policy(place.common_dir, trees[b""])
    fast.check_names(paths, policy)
    old = [_old_content(said, trees, path) for path in paths]
    _require_names(paths, old, trees)
    require(policy["max_files"] is None or len(paths) <= policy["max_files"])
    added = 0
    for path, before in zip(paths, old, strict=True):
        added += _require_content(contents[path], before, policy)
    require(policy["max_added_lines"] is None or added <= policy["max_added_lines"])


def _load_policy(common_dir: str, root: Mapping[bytes, str]) -> fast.Policy:
    """Load what the full check compiled from the policy of HEAD, for the agent profile and this very tool."""
    key = "-".join(root.get(name, "none") for name in (b"patchgate.toml", b"pyproject.toml"))
    kept = read(f"{common_dir}/patchgate/fast/{__version__}/{key}-{PROFILE}", fast.WHOLE_FILE)
    require(kept[:8] == source_hash(fast.SEAL, kept[8:]))
    policy: fast.Policy = loads(kept[8:])
    require(policy["tool"][::2] == (__version__, sys.hexversion))
    status = os.stat(policy["stamp"][0])
    require(policy["stamp"][1:] == (status.st_mtime_ns, status.st_size, status.st_ino))
    return policy


def _require_plain_files(root: str, paths: Sequence[bytes], folders: Sequence[bytes]) -> None:
    """Require regular files without the executable bit, or none, in folders that are no repositories."""
    for path in paths:
        place = os.path.join(os.fsencode(root), path)
        if os.path.lexists(place):
            require(os.path.isfile(place) and not os.path.islink(place) and not os.access(place, os.X_OK))
    for folder in folders:
        require(not os.path.lexists(os.path.join(os.fsencode(root), folder, b".git")))


def _require_no_conversion(place: Place, folders: Sequence[bytes]) -> None:
    """Require that no attribute lets git store something else than what is written."""
    files = [f"{place.common_dir}/info/attributes", f"{place.root}/{_ATTRIBUTES}"]
    files += [f"{place.root}/{os.fsdecode(folder)}/{_ATTRIBUTES}" for folder in folders]
    said = b"\n".join(read(each, fast.WHOLE_FILE) for each in files)
    require(len(said) < fast.WHOLE_FILE and not any(word in said for word in _CONVERTING))


def _old_content(said: bytearray, trees: Mapping[bytes, Mapping[bytes, str]], path: bytes) -> bytes | None:
    """Take the content of a file at HEAD; None if it has none."""
    _, kind, _, content = take(said, with_content=True)
    require(kind in (b"blob", b"missing"))
    folder, _, name = path.rpartition(b"/")
    entry = trees[folder].get(name, "")
    require(entry.startswith("100644.") if kind == b"blob" else not entry)
    return content if kind == b"blob" else None


def _require_names(
    paths: Sequence[bytes], old: Sequence[bytes | None], trees: Mapping[bytes, Mapping[bytes, str]]
) -> None:
    """Require that no new name is that of a neighbour but for case."""
    new = [path for path, before in zip(paths, old, strict=True) if before is None]
    folders = list(dict.fromkeys(each for path in new for each in above(path)))
    listings = {folder + b"/" * bool(folder): list(trees[folder]) for folder in (b"", *folders)}
    fast.check_collisions([*folders, *new], listings if new else {})


def _require_content(content: bytes | None, before: bytes | None, policy: fast.Policy) -> int:
    """Require that nothing in the new lines is searched for; return how many there are at most."""
    if content is None:
        require(not policy["has_components"])
        return 0
    require(b"\0" not in content)
    require(policy["max_file_bytes"] is None or len(content) <= policy["max_file_bytes"])
    lines = _added_lines(content, before or b"")
    patch = b"".join(b"\n+" + line for line in lines)
    require(not any(text in patch for text in policy["texts"]))
    small = patch.lower() if policy["small_texts"] else b""
    require(not any(text in small for text in policy["small_texts"]))
    return len(lines)


def _added_lines(content: bytes, before: bytes) -> list[bytes]:
    """Return the new lines without the first and the last ones that are as before."""
    new, old = content.split(b"\n"), before.split(b"\n")
    first = 0
    while first < min(len(new), len(old)) and new[first] == old[first]:
        first += 1
    last = 0
    while last < min(len(new), len(old)) - first and new[-1 - last] == old[-1 - last]:
        last += 1
    return new[first : len(new) - last]
