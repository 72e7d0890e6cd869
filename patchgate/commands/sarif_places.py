"""Which file of the tree a SARIF location names.

Decides what a URI is to us: relative to the root of the scratch tree, to a base of `originalUriBaseIds`, or a
`file:` URI; all under that root, or it names no path. So does one that is no file's, that ends in `/`, or
that has a query or a fragment (a name that was not encoded would lose its end). One that the tree has no file
for names no path either: a tool that was started in another folder, or cannot write the name, would else put
all that it finds outside of everybody's files. Sources: SARIF 2.1.0, 3.4 (artifactLocation) and 3.14.14
(originalUriBaseIds); RFC 8089.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from patchgate.git.path import RepoPath

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MOST_BASES = 32


class Location(NamedTuple):
    """An artifactLocation as it is written; `artifact` is -1 where it has no number of the run's."""

    uri: str | None
    base: str | None
    artifact: int


class Places:
    """What the locations of one run stand for.

    Args:
        root: the scratch tree; a tool may name it as it was told, or by its real path.
        bases: `originalUriBaseIds`. A base that is not there, or has no URI, is the root.
        artifacts: the locations of the run's artifacts.
        has: tells whether the tree has a file.
    """

    def __init__(
        self,
        root: str,
        bases: Mapping[str, Location],
        artifacts: Mapping[int, Location],
        has: Callable[[RepoPath], bool],
    ) -> None:
        named = os.fsencode(os.path.normpath(root))
        self._root = named
        self._prefixes = tuple(dict.fromkeys(_prefix(each) for each in (named, os.path.realpath(named))))
        self._plain = tuple(os.fsdecode(prefix) for prefix in self._prefixes)
        self._bases = bases
        self._artifacts = artifacts
        self._has = has
        self._known: dict[Location, RepoPath | None] = {}

    def path_of(self, location: Location) -> RepoPath | None:
        """Give the path of the tree's file that a location names; None where it names none."""
        if location in self._known:
            return self._known[location]
        absolute = self._absolute(self.written(location), 0)
        found = self._below_root(absolute) if absolute is not None else None
        if found is not None and not self._has(found):
            found = None
        self._known[location] = found
        return found

    def written(self, location: Location) -> Location:
        """Give a location that names an artifact of the run only by its number as that artifact's."""
        return self._artifacts.get(location.artifact, location) if location.uri is None else location

    def without_root(self, text: str) -> str:
        """Take the scratch tree's own path out of a text, which is another on another day."""
        for prefix in self._plain:
            if prefix in text:
                text = text.replace(prefix, "")
        return text

    def _absolute(self, location: Location, steps: int) -> bytes | None:
        """Resolve a location to the absolute path of a file, or of a folder (then it ends with `/`)."""
        uri = location.uri or ""
        scheme = _SCHEME.match(uri)
        if "?" in uri or "#" in uri:
            return None
        if scheme is None and not uri.startswith("/"):
            above = self._base(location.base, steps)
            inner = _decoded(uri)
            return None if above is None or inner is None else _prefix(above) + inner
        if scheme is not None:
            if scheme[1].lower() != "file":
                return None
            uri = uri[scheme.end() :]
            if uri.startswith("//"):
                host, _, rest = uri[2:].partition("/")
                if host.lower() not in {"", "localhost"}:
                    return None
                uri = f"/{rest}"
        return None if not uri.startswith("/") or uri.startswith("//") else _decoded(uri)

    def _base(self, name: str | None, steps: int) -> bytes | None:
        """Resolve a base to its absolute folder; None where it stands on itself."""
        base = self._bases.get(name) if name is not None else None
        if base is None or (base.uri is None and base.base is None):
            return self._root
        return None if steps >= _MOST_BASES else self._absolute(base, steps + 1)

    def _below_root(self, absolute: bytes) -> RepoPath | None:
        if absolute.endswith((b"/", b"/.", b"/..")):
            return None
        parts: list[bytes] = []
        for part in absolute.split(b"/"):
            if part == b"..":
                del parts[-1:]
            elif part not in {b"", b"."}:
                parts.append(part)
        plain = b"/" + b"/".join(parts)
        for prefix in self._prefixes:
            if plain.startswith(prefix):
                return RepoPath(plain[len(prefix) :])
        return None


def _prefix(folder: bytes) -> bytes:
    return folder.rstrip(b"/") + b"/"


def _decoded(uri: str) -> bytes | None:
    """Decode percent-encoding; what is not encoded is UTF-8. None where no file can be named so."""
    try:
        raw = unquote_to_bytes(uri)
    except UnicodeEncodeError:
        return None
    return None if b"\0" in raw else raw
