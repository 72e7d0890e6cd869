"""Recognise a boring change in git's answer: no mode, name, number or text in it that a rule looks for.

The same conditions as in `hooks.fast.recognise`, over git's answer for many commits: plain names alone,
added, changed and deleted regular files, nothing that the compiled policy names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from patchgate.git.objects import Objects
from patchgate.git.tree_chain import Record, TreeChain
from patchgate.policy.compiled_policy import ADDED_LINE, CompiledPolicy
from patchgate.values import dataclass, field

_PLAIN = rb"A-Za-z0-9_+=,@%()\[\]{}!#$&;'^. /-"
_PLAIN_NAME = re.compile(rb"[%b]{1,2000}" % _PLAIN)
_FORMS = rb"000000 100644|100644 100644|100755 100755|100644 000000|100755 000000"
_MOST_RECORDS = 1_000
_MOST_KNOWN = 50_000
# Each component of a path, between slashes, ends as `.git` does on some file system.
_ALIASES = rb"/(?:\.git)?[. ]*/"
_TOO_LONG = rb"[^/]{256}"


@dataclass(frozen=True, slots=True)
class Found:
    """A change that looks boring: its records, the paths of its files, its new blobs and its added files."""

    records: Sequence[Record]
    paths: Sequence[bytes]
    blobs: Sequence[bytes]
    added: Sequence[bytes]

    def fits(self, chain: TreeChain, objects: Objects, old: str, new: str) -> bool:
        """Return whether it makes the new tree of the old one, and no added name is that of a neighbour."""
        if old == new:
            return not self.records
        return chain.follow(objects, old, new, self.records) and all(map(chain.is_free_above, self.added))


@dataclass(frozen=True, slots=True)
class BoringChanges:
    """What makes a change boring under one policy.

    `needs_patch` is whether git's answer must have the patch too: for its texts or its lines, or because
    binary files are denied.
    """

    compiled: CompiledPolicy
    needs_patch: bool
    record: re.Pattern[bytes]
    odd_path: re.Pattern[bytes]
    text: re.Pattern[bytes] | None
    small_text: re.Pattern[bytes] | None
    width: int
    _known: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, compiled: CompiledPolicy, width: int) -> BoringChanges | None:
        """Prepare the search; None if a rule could say something about any added line.

        Args:
            width: how many digits an object id has.
        """
        if ADDED_LINE in compiled.texts or compiled.has_components:
            return None
        oid = rb"[0-9a-f]{%d}" % width
        record = rb":(%b) (%b) (%b) ([AMD])\0([%b]{1,2000})\0" % (_FORMS, oid, oid, _PLAIN)
        has_texts = bool(compiled.texts or compiled.small_texts)
        return cls(
            compiled=compiled,
            needs_patch=has_texts or compiled.max_added_lines is not None or compiled.reads_contents,
            record=re.compile(record),
            odd_path=re.compile(_odd_path(compiled)),
            text=_any_of(compiled.texts),
            small_text=_any_of(compiled.small_texts),
            width=width,
        )

    def recognise(self, answer: bytes) -> Found | None:
        """Recognise a boring change in git's answer about it; None: it is not, or may not be."""
        raw, patch = answer, b""
        if self.needs_patch and answer:
            end = answer.find(b"\0\0") + 1
            raw, patch = answer[:end], answer[end + 1 :]
            if not patch:
                return None
        records = self.record.findall(raw)
        # Each of them has, besides its name, so many bytes; what is not in one is in none of these forms.
        each = 20 + 2 * self.width
        if len(records) > _MOST_RECORDS or sum([len(one[4]) for one in records]) + each * len(records) != len(
            raw
        ):
            return None
        paths = [one[4] for one in records]
        most = self.compiled.max_files
        if most is not None and len(records) > most:
            return None
        if not (self._known.issuperset(paths) or all(map(self.is_plain, paths))):
            return None
        if patch and not self._is_plain_patch(patch):
            return None
        added = [one[4] for one in records if one[3] == b"A"]
        gone = {one[1] for one in records if one[3] == b"D"}
        if gone and added and any(one[2] in gone for one in records):
            # The old name of an exact rename counts as no file.
            return None
        return Found(records, paths, [one[2] for one in records if one[3] != b"D"], added)

    def is_plain(self, path: bytes) -> bool:
        """Return whether a name is of plain ASCII, and no rule looks for it."""
        if path in self._known:
            return True
        if _PLAIN_NAME.fullmatch(path) is None:
            return False
        framed = b"/%b/" % path
        roots = self.compiled.roots
        if roots is not None and not (path.decode("ascii") + "/").startswith(
            tuple([each + "/" for each in roots])
        ):
            return False
        if self.odd_path.search(framed.lower()) is not None:
            return False
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(path)
        return True

    def _is_plain_patch(self, patch: bytes) -> bool:
        """Return whether a patch has no binary file, none of the texts, and few enough lines."""
        if b"\nBinary files " in patch:
            return False
        # No line of a file comes before the first hunk.
        start = max(patch.find(b"\n@@ "), 0)
        if self.text is not None and self.text.search(patch, start) is not None:
            return False
        if self.small_text is not None and self.small_text.search(patch.lower()) is not None:
            return False
        most = self.compiled.max_added_lines
        # An added line has two bytes or more, so most changes need no count.
        return most is None or len(patch) <= 2 * most or patch.count(ADDED_LINE) <= most

    def is_allowed_blob(self, fact: bytes) -> bool:
        """Return whether what git says of a new file's object is a blob, and not too large."""
        kind, _, size = fact.partition(b" ")
        most = self.compiled.max_file_bytes
        return kind == b"blob" and (most is None or int(size) <= most)


def _any_of(texts: Sequence[bytes]) -> re.Pattern[bytes] | None:
    return re.compile(b"|".join(map(re.escape, texts))) if texts else None


def _odd_path(compiled: CompiledPolicy) -> bytes:
    """Write the expression for a path in lower case, between slashes, that a rule may look for."""

    def any_of(texts: Iterable[str]) -> bytes:
        return b"(?:" + b"|".join(re.escape(each.encode("ascii")) for each in texts) + b")"

    forms = [_ALIASES, _TOO_LONG]
    for texts, form in (
        (compiled.prefixes, rb"\A/%b/"),
        (compiled.names, rb"/%b/"),
        (compiled.endings, rb"%b/"),
        (compiled.beginnings, rb"/%b"),
        (compiled.parts, rb"%b"),
    ):
        if texts:
            forms.append(form % any_of(sorted(texts)))
    return b"|".join(forms)
