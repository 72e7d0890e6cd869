"""A path inside a repository, as bytes, and what can be wrong with one.

There is one constructor for each origin. A `RepoPath` may be hostile: git can store nearly any bytes.
`faults` names the path rules that it breaks; the `paths` gate decides what follows. Sources: git's
`verify_path` and `is_ntfs_dotgit`/`is_hfs_dotgit` (path.c, utf8.c) for the aliases of `.git`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from patchgate.errors import UsageError
from patchgate.git.quoting import in_shell, quote_path
from patchgate.values import dataclass

MAX_COMPONENT = 255
MAX_PATH = 4096

# utf8.c, next_hfs_char: code points that HFS+ ignores in names.
_HFS_IGNORED = dict.fromkeys(
    [0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
# Default_Ignorable_Code_Point (Unicode, DerivedCoreProperties): what ext4 and F2FS ignore where they ignore
# case (fs/unicode of Linux). HFS+'s are among them.
_IGNORED_RANGES = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)
IGNORED = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _IGNORED_RANGES) + "]")
"""A character that no reader sees, and that some file systems ignore in names."""
# utf8.c, pick_one_utf8_char: to the check for HFS+ a name ends where it is not UTF-8, or at a noncharacter.
_MALFORMED = re.compile("[\udc80-\udcff\ufffe\uffff]")
_BORING = rb"[A-Za-z0-9_+=,@%()\[\]{}!#$&;'^-][A-Za-z0-9_+=,@%()\[\]{}!#$&;'^. -]*+"
_BORING_PATH = re.compile(rb"(?:%b/)*+%b" % (_BORING, _BORING))
# refs.c, check_refname_component.
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|(?:/|\A)\.|\.lock(?:/|\Z)|\.\Z|(?:/|\A)(?:/|\Z)")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_DOTS = frozenset({b".", b".."})
_DRIVE = re.compile(rb"[A-Za-z]:")


@dataclass(frozen=True, slots=True, order=True)
class RepoPath:
    """A path relative to the repository's root, `/` between components, ordered by its bytes as git does."""

    raw: bytes

    @classmethod
    def from_git(cls, raw: bytes) -> RepoPath:
        """Take a name as git's plumbing gave it with `-z`."""
        return cls(raw)

    @classmethod
    def from_patch(cls, raw: bytes) -> RepoPath:
        """Take a name as a patch or an edit wrote it, unquoted, `a/` or `b/` stripped; faults are kept."""
        return cls(raw)

    @classmethod
    def from_user(cls, text: str, prefix: str = "") -> RepoPath:
        """Take a path typed in a terminal, relative to `prefix` (the folder inside the repository).

        Raises:
            UsageError: the path is absolute, empty, or leaves the repository.
        """
        parts: list[str] = [part for part in prefix.split("/") if part]
        if text.startswith("/"):
            raise UsageError(
                f"{quote_path(text.encode('utf-8', 'surrogateescape'))} is an absolute path",
                "write it relative to the repository",
            )
        for part in text.split("/"):
            if part in {"", "."}:
                continue
            if part == "..":
                if not parts:
                    raise UsageError("that path leaves the repository", "name a path inside the repository")
                parts.pop()
            else:
                parts.append(part)
        if not parts:
            raise UsageError("that path names the repository itself", "name a file or folder in it")
        return cls("/".join(parts).encode("utf-8", "surrogateescape"))

    @property
    def quoted(self) -> str:
        """The path as git quotes it; safe for a terminal."""
        return quote_path(self.raw)

    @property
    def in_shell(self) -> str:
        """The path as one word of a git command in a shell; `PATH` if it must be escaped for a terminal."""
        text = self.raw.decode("utf-8", "surrogateescape")
        # A leading dash would be an option of git, a leading colon pathspec magic.
        return in_shell(f"./{text}" if text.startswith(("-", ":")) else text, "PATH")

    @property
    def is_plain(self) -> bool:
        """Return whether the path is UTF-8 and has no character that must be escaped."""
        return not self.quoted.startswith('"')

    @property
    def name(self) -> bytes:
        """The last component."""
        return self.raw.rpartition(b"/")[2]

    @property
    def parent(self) -> bytes:
        """The bytes before the last `/`; empty at the root."""
        return self.raw.rpartition(b"/")[0]

    @property
    def folded(self) -> str:
        """The key under which names collide (`fold`); bytes that are not UTF-8 stay."""
        return fold(self.raw)

    @property
    def is_too_long(self) -> bool:
        """Return whether this name is too long for a file: more than 4,096 bytes, or 255 in one component."""
        if len(self.raw) <= MAX_COMPONENT:
            return False
        return len(self.raw) > MAX_PATH or max(map(len, self.raw.split(b"/"))) > MAX_COMPONENT

    def parents(self) -> Iterator[bytes]:
        """Yield each folder above the path, the root (empty) first; for many paths see
        `model.folders_above`.
        """
        yield b""
        position = self.raw.find(b"/")
        while position >= 0:
            yield self.raw[:position]
            position = self.raw.find(b"/", position + 1)

    def is_within(self, folder: bytes) -> bool:
        """Return whether the path is `folder` or is below it."""
        return self.raw == folder or self.raw.startswith(folder + b"/")

    def __str__(self) -> str:
        return self.quoted


def bounded(raw: bytes) -> bytes:
    """Return the part of a path that patterns match: if it is too long, its first folders and the end of its
    name.

    No change may bring such a path, but it may remove one. Matching takes time for each folder above a
    name.
    """
    if len(raw) <= MAX_PATH:
        return raw
    above = raw[:MAX_PATH].rpartition(b"/")[0]
    name = raw.rpartition(b"/")[2][-MAX_COMPONENT:]
    return above + b"/" + name if above else name


def fold(raw: bytes) -> str:
    """Fold a name as a case-insensitive, normalising file system would: NFC, then case folding.

    What HFS+ and such an ext4 ignore is left out.
    """
    if raw.isascii():
        return raw.decode("ascii").lower()
    text = IGNORED.sub("", raw.decode("utf-8", "surrogateescape"))
    if len(raw) > MAX_PATH:
        # To normalise takes time quadratic in the accents, and no file has such a name.
        return text.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@lru_cache(maxsize=64)
def fold_simply(raw: bytes, *, with_ignored: bool = True) -> str:
    """Fold a name so that each character stays one, also one that `fold` makes several of.

    Args:
        raw: the name.
        with_ignored: keep what `fold` leaves out.
    """
    text = raw.decode("utf-8", "surrogateescape")
    text = text if with_ignored else IGNORED.sub("", text)
    if len(raw) <= MAX_PATH:
        # But for what NFC takes apart.
        apart = "".join({each for each in text if len(unicodedata.normalize("NFC", each)) > 1})
        parts = re.split(f"([{re.escape(apart)}])", text) if apart else [text]
        text = "".join(each if each in apart else unicodedata.normalize("NFC", each) for each in parts)
    return "".join(lower if len(lower := each.lower()) == 1 else each for each in text)


def is_ref_format(name: str) -> bool:
    """Return whether git takes a text for the name of a ref, or a part of one (git-check-ref-format)."""
    return _NO_REF.search(name) is None


def faults(path: RepoPath, *, from_text: bool = False) -> tuple[str, ...]:
    """List every path rule that a path breaks, in a fixed order.

    Args:
        path: the path.
        from_text: it was written in a patch or an edit, where `\\` and `:` are refused too.
    """
    raw = path.raw
    if not raw:
        return ("path-empty",)
    is_too_long = path.is_too_long
    if _BORING_PATH.fullmatch(raw):
        return ("path-too-long",) if is_too_long else ()
    found: list[str] = []
    if raw.startswith(b"/"):
        found.append("path-absolute")
    if _DRIVE.match(raw):
        found.append("path-drive-letter")
    components = raw.split(b"/")
    if not _DOTS.isdisjoint(components):
        found.append("path-traversal")
    if b"" in components[1:]:
        found.append("path-empty")
    # Normalising takes time quadratic in the accents, so names that are too long are not normalised.
    if not is_too_long and any(map(is_git_alias, set(components))):
        found.append("path-git-dir")
    if _CONTROL.search(raw):
        found.append("path-control")
    if is_too_long:
        found.append("path-too-long")
    if from_text and b":" in raw and "path-drive-letter" not in found:
        found.append("path-colon")
    if from_text and b"\\" in raw:
        found.append("path-backslash")
    return tuple(found)


@lru_cache(maxsize=4096)
def is_git_alias(component: bytes) -> bool:
    """Return whether a component means `.git` on some file system: case, HFS+, NTFS names and streams."""
    text = component.decode("utf-8", "surrogateescape").translate(_HFS_IGNORED)
    if len(component) <= MAX_PATH:  # see `fold`; nothing else becomes one of these letters by it
        text = unicodedata.normalize("NFC", text)
    text = text.casefold()
    if _MALFORMED.split(text, maxsplit=1)[0] == ".git":
        return True
    # NTFS: a stream follows a colon, a backslash separates, trailing dots and spaces are dropped.
    for part in text.replace("\\", "/").split("/"):
        bare = part.split(":", 1)[0].rstrip(". ")
        if bare == ".git" or re.fullmatch(r"git~[0-9]+", bare):
            return True
    return False


"""How many bytes the names of all folders may have together. 100,000 usual folders have 6 MB."""
