"""Tree objects and commits that git would not write, made byte by byte as loose objects.

`git hash-object --literally` differs from version to version; zlib does not.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence

from tests.world import Repo

Row = tuple[bytes, bytes, str]
"""Mode, name and object id of an entry."""
FILE, RUN, FOLDER, LINK, MODULE = b"100644", b"100755", b"40000", b"120000", b"160000"


def put(repo: Repo, kind: str, content: bytes) -> str:
    """Write an object without any check; give its id."""
    raw = b"%s %d\0" % (kind.encode("ascii"), len(content)) + content
    oid = hashlib.sha1(raw).hexdigest()
    folder = repo.path / repo.ask("rev-parse", "--git-dir") / "objects" / oid[:2]
    folder.mkdir(exist_ok=True)
    if not (folder / oid[2:]).exists():
        (folder / oid[2:]).write_bytes(zlib.compress(raw))
    return oid


def blob(repo: Repo, content: bytes) -> str:
    """Write a blob."""
    return put(repo, "blob", content)


def tree(repo: Repo, rows: Sequence[Row]) -> str:
    """Write a tree object of these entries, in this order."""
    return put(
        repo, "tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in rows)
    )


def rows_of(repo: Repo, revision: str) -> list[Row]:
    """Read the entries of a well-formed tree."""
    found: list[Row] = []
    for line in repo.git("ls-tree", "-z", revision).split(b"\0")[:-1]:
        about, _, name = line.partition(b"\t")
        mode, _, oid = about.split(b" ")
        found.append((mode.lstrip(b"0"), name, oid.decode("ascii")))
    return found


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Sort entries as git does."""
    return sorted(rows, key=lambda row: row[1] + (b"/" if row[0].lstrip(b"0") == FOLDER else b""))


def commit_of(repo: Repo, root: str, *parents: str, message: str = "Change") -> str:
    """Write a commit of a tree, which git need not be able to read."""
    who = "A U Thor <author@example.com> 1700000000 +0000"
    above = "".join(f"parent {parent}\n" for parent in parents)
    text = f"tree {root}\n{above}author {who}\ncommitter {who}\n\n{message}\n"
    return put(repo, "commit", text.encode("utf-8"))


Making = Callable[[Repo, list[Row]], str]


def _with(*extra: Row) -> Making:
    def make(repo: Repo, rows: list[Row]) -> str:
        return tree(repo, ordered([*rows, *extra]))

    return make


def _filled(mode: bytes, name: bytes, content: bytes = b"new\n") -> Making:
    def make(repo: Repo, rows: list[Row]) -> str:
        return tree(repo, ordered([*rows, (mode, name, blob(repo, content))]))

    return make


def _folder(name: bytes, *inside: bytes, mode: bytes = FOLDER) -> Making:
    def make(repo: Repo, rows: list[Row]) -> str:
        inner = tree(repo, [(FILE, each, blob(repo, b"new\n")) for each in inside])
        return tree(repo, ordered([*rows, (mode, name, inner)]))

    return make


def _unsorted(repo: Repo, rows: list[Row]) -> str:
    return tree(repo, [(FILE, b"zz", blob(repo, b"new\n")), *ordered(rows)])


def _folder_sorted_as_file(repo: Repo, rows: list[Row]) -> str:
    # By its bytes `sub` comes before `sub.a`; as a folder (`sub/`) it comes after.
    inner = tree(repo, [(FILE, b"x", blob(repo, b"new\n"))])
    more = [(FOLDER, b"sub", inner), (FILE, b"sub.a", blob(repo, b"new\n"))]
    return tree(repo, sorted([*rows, *more], key=lambda row: row[1]))


def _twice(name: bytes) -> Making:
    def make(repo: Repo, rows: list[Row]) -> str:
        again = (FILE, name, blob(repo, b"[policy]\n"))
        place = next(index for index, row in enumerate(rows) if row[1] == name)
        return tree(repo, [*rows[: place + 1], again, *rows[place + 1 :]])

    return make


def _file_and_folder(repo: Repo, rows: list[Row]) -> str:
    inner = tree(repo, [(FILE, b"x", blob(repo, b"new\n"))])
    more = [
        (FILE, b"new", blob(repo, b"new\n")),
        (FILE, b"new.a", blob(repo, b"a\n")),
        (FOLDER, b"new", inner),
    ]
    return tree(repo, ordered([*rows, *more]))


def _cut_off(repo: Repo, rows: list[Row]) -> str:
    return put(repo, "tree", b"100644 new\0" + bytes(9))


def _no_end(repo: Repo, rows: list[Row]) -> str:
    return put(repo, "tree", b"100644 new")


def _below(make: Making) -> Making:
    """Put the malformed tree below a folder that is new."""

    def made(repo: Repo, rows: list[Row]) -> str:
        inner = make(repo, [(FILE, b"patchgate.toml", blob(repo, b"x\n"))])
        return tree(repo, ordered([*rows, (FOLDER, b"newer", tree(repo, [(FOLDER, b"deep", inner)]))]))

    return made


NOTHING = "0" * 40
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _blob_as_tree(repo: Repo, rows: list[Row]) -> str:
    # Its content has the form of a tree object.
    inner = blob(repo, b"100644 x\0" + bytes.fromhex(blob(repo, b"new\n")))
    return tree(repo, ordered([*rows, (FOLDER, b"new", inner)]))


MALFORMED: dict[str, Making] = {
    "a name twice": _twice(b"patchgate.toml"),
    "a file and a folder of one name": _file_and_folder,
    "not sorted": _unsorted,
    "a folder sorted as a file": _folder_sorted_as_file,
    "an empty name": _filled(FILE, b""),
    "a slash in a name": _filled(FILE, b"new/er"),
    "an entry cut off": _cut_off,
    "a name without an end": _no_end,
    "a zero-padded folder": _folder(b"new", b"x", mode=b"040000"),
    "a zero-padded file": _filled(b"0100644", b"new"),
    "an unknown kind of mode": _filled(b"060000", b"new"),
    "a mode of no file": _filled(b"0", b"new"),
    "a mode that is not octal": _filled(b"10064x", b"new"),
    "a file with no object": _with((FILE, b"new", NOTHING)),
    "a folder with no object": _with((FOLDER, b"new", NOTHING)),
    "a submodule with no object": _with((MODULE, b"new", NOTHING)),
    "a folder that is a blob": _blob_as_tree,
    "a file that is a folder": _folder(b"new", b"x", mode=FILE),
    "a link that is a folder": _folder(b"new", b"x", mode=LINK),
    "a submodule that is a folder": _folder(b"new", b"x", mode=MODULE),
    "a submodule that is a file": _filled(MODULE, b"new"),
    "the folder .git": _folder(b".git", b"config"),
    "the folder .GIT": _folder(b".GIT", b"config"),
    "a file .git": _filled(FILE, b".git"),
    "a short name": _folder(b"git~1", b"config"),
    "a name with a dot at its end": _folder(b".git.", b"config"),
    "a name with a space at its end": _folder(b".git ", b"config"),
    "a stream of .git": _folder(b".git::$INDEX_ALLOCATION", b"config"),
    "an ignored code point": _folder(b".g\xe2\x80\x8cit", b"config"),
    "the folder .": _folder(b".", b"x"),
    "the folder ..": _folder(b"..", b"x"),
    "an empty folder .git": _folder(b".git"),
    "an empty folder ..": _folder(b".."),
    "below a new folder: a name twice": _below(_twice(b"patchgate.toml")),
    "below a new folder: not sorted": _below(_unsorted),
    "below a new folder: an empty folder .git": _below(_folder(b".git")),
    "below a new folder: a submodule with no object": _below(_with((MODULE, b"new", NOTHING))),
}
"""What makes a malformed root tree out of a good one, by what is wrong with it."""
