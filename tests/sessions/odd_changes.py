"""Odd changes, made object by object, and an oracle that knows what each of them must not get away with.

The objects are written without git, so that nothing normalises them: trees with duplicate, unsorted or empty
entries, unknown modes, links, folders that become files, shared subtrees, more roots, evil merges.
The oracle reads the same objects with a parser of its own. It speaks of four things only: a tree that is
malformed, a path below `runs/` that changes, FORBIDDEN in a file that is new, and too many new files.
"""

from __future__ import annotations

import hashlib
import os
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Chance = random.Random
Folder: TypeAlias = "dict[bytes, tuple[bytes, str | Folder]]"
"""The entries of a tree, by name: the mode, and an object id or the entries below."""

POLICY = b"""\
[policy]
deny_prefixes = ["runs"]
[policy.commit]
max_files = 20
[rules]
max-files = "error"
[content]
deny = ["FORBIDDEN"]
[message]
level = "off"
"""
MOST_FILES = 20
FILE, EXECUTABLE, SYMLINK, TREE, GITLINK = b"100644", b"100755", b"120000", b"40000", b"160000"
# Git wrote 100664 in its first year, and reads it as 100644.
_MODES = {FILE, EXECUTABLE, SYMLINK, TREE, GITLINK, b"100664"}
_NULL = "0" * 40
_NAMES = (
    *(
        b"src/a.py",
        b"src/b.py",
        b"src/new/c.py",
        b"docs/x.md",
        b"docs/y z.md",
        b"README.md",
        b"lib/deep/er/f.c",
    ),
    *(b"runs2/x", b"x/runs/y", b"a", b"src/\xc3\xbc.py", b"app/[id].tsx", b"link2"),
)
_DENIED = (b"runs/record", b"runs/new", b"runs/a/b/c", b"RUNS/record", b"Runs/x", b"runs")
_LINES = (b"import os\n", b"x = 1\n", b"text\n", b"\n", b"    return x\n", b"def f():\n", b"\x00\n", b"x\r\n")


Files: TypeAlias = dict[bytes, tuple[bytes, str]]
"""The files of a tree: mode and object id by path."""


class MalformedError(Exception):
    """A tree is not what git writes."""


class Store:
    """Writes loose objects into a repository, and remembers them."""

    def __init__(self, git_dir: Path) -> None:
        self._objects = git_dir / "objects"
        self.known: dict[str, tuple[bytes, bytes]] = {}

    def write(self, kind: bytes, body: bytes) -> str:
        """Write one object; give its id."""
        raw = b"%s %d\0%s" % (kind, len(body), body)
        oid = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        if oid not in self.known:
            self.known[oid] = kind, body
            place = self._objects / oid[:2] / oid[2:]
            if not place.exists():
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(zlib.compress(raw, 1))
        return oid

    def blob(self, content: bytes) -> str:
        """Write a blob."""
        return self.write(b"blob", content)

    def entries(self, rows: list[tuple[bytes, bytes, str]]) -> str:
        """Write a tree with exactly these rows: mode, name, object id."""
        return self.write(b"tree", b"".join(b"%s %s\0" % row[:2] + bytes.fromhex(row[2]) for row in rows))

    def tree(self, folder: Folder) -> str:
        """Write a well-formed tree."""
        return self.entries(self.rows(folder))

    def rows(self, folder: Folder) -> list[tuple[bytes, bytes, str]]:
        """List the rows of a folder in git's order; the trees below it are written."""
        rows = [
            (mode, name, self.tree(below) if isinstance(below, dict) else below)
            for name, (mode, below) in folder.items()
        ]
        return sorted(rows, key=lambda row: row[1] + (b"/" if row[0] == TREE else b""))

    def commit(
        self, tree: str, parents: tuple[str, ...], message: bytes = b"Change\n", more: bytes = b""
    ) -> str:
        """Write a commit; `more` are further header lines."""
        lines = b"".join(b"parent %s\n" % parent.encode() for parent in parents)
        who = b"A U Thor <author@example.com> 1700000000 +0000"
        head = b"tree %s\n%sauthor %s\ncommitter %s\n%s\n" % (tree.encode(), lines, who, who, more)
        return self.write(b"commit", head + message)


def flattened(store: Store, tree: str) -> Files:
    """List the files of a tree: mode and object id by path.

    Raises:
        MalformedError: it, or a tree below it, is not what git writes.
    """
    found: Files = {}
    _flatten(store, tree, b"", found)
    return found


def _flatten(store: Store, tree: str, prefix: bytes, found: Files) -> None:
    kind, body = store.known.get(tree, (b"missing", b""))
    if kind != b"tree":
        raise MalformedError(f"{tree} is a {kind.decode()}")
    last, seen, at = b"", set[bytes](), 0
    while at < len(body):
        space, end = body.find(b" ", at), body.find(b"\0", at)
        if not at < space < end or end + 21 > len(body):
            raise MalformedError("cut off")
        mode, name, oid = body[at:space], body[space + 1 : end], body[end + 1 : end + 21].hex()
        at = end + 21
        order = name + (b"/" if mode == TREE else b"")
        is_odd = mode not in _MODES or name in {b"", b".", b".."} or b"/" in name or oid == _NULL
        if is_odd or name in seen or order <= last or name.lower() == b".git":
            raise MalformedError(f"entry {name!r}")
        last = order
        seen.add(name)
        if mode == TREE:
            _flatten(store, oid, prefix + name + b"/", found)
        else:
            if mode != GITLINK and store.known.get(oid, (b"missing",))[0] != b"blob":
                raise MalformedError(f"{name!r} names no blob")
            found[prefix + name] = mode, oid


@dataclass(frozen=True)
class Odd:
    """What a branch gets: its commits, parents first, what was done, and why it must be refused, if so."""

    commits: tuple[str, ...]
    done: tuple[str, ...]
    forbidden: str | None

    @property
    def tip(self) -> str:
        """The last commit, which the branch would be moved to."""
        return self.commits[-1]

    @property
    def is_single(self) -> bool:
        """Tell whether it is one ordinary commit, which could be staged as well."""
        return len(self.commits) == 1 and "merge" not in self.done


@dataclass
class Maker:
    """Makes odd changes of one base commit."""

    store: Store
    chance: Chance
    base: str = ""
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    trees: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Write the base: a small tree with a policy, a record that it protects, and a side branch."""
        files = {b"patchgate.toml": POLICY, b"runs/record": b"run 1: 2\n", b"README.md": b"read\n"}
        files |= {
            b"src/a.py": b"a = 1\n" * 5,
            b"src/b.py": b"b = 2\n" * 5,
            b"docs/x.md": b"x\n",
            b"lib/c": b"c\n",
        }
        folder: Folder = {}
        for path, content in files.items():
            put(folder, path, FILE, self.store.blob(content))
        put(folder, b"link", SYMLINK, self.store.blob(b"src/a.py"))
        put(folder, b"module", GITLINK, "1" * 40)
        self._folder = folder
        self.base = self._commit(self.store.tree(folder))
        side = copied(folder)
        put(side, b"side.txt", FILE, self.store.blob(b"side\n"))
        self.side = self._commit(self.store.tree(side), self.base)

    def make(self) -> Odd:
        """Make one change."""
        folder, done = copied(self._folder), list[str]()
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            step = self.chance.choice(_STEPS)
            done.append(step.__name__.strip("_"))
            step(self, folder)
        rows = self.store.rows(folder)
        if self.chance.random() < 0.3:
            damage = self.chance.choice(_DAMAGES)
            done.append(damage.__name__.strip("_"))
            tree = damage(self, folder, rows)
        else:
            tree = self.store.entries(rows)
        commits = self._shaped(tree, done)
        return Odd(commits, tuple(done), self._forbidden(commits))

    def _shaped(self, tree: str, done: list[str]) -> tuple[str, ...]:
        """Bring a tree to the branch in one of git's ways."""
        shape = self.chance.choice(
            ["plain"] * 6 + ["merge", "octopus", "orphan", "healed", "steps", "odd header"]
        )
        done.append("merge" if shape in {"octopus", "orphan"} else shape)
        if shape == "merge":
            return self.side, self._commit(tree, self.base, self.side)
        if shape == "octopus":
            other = self._commit(self.trees[self.base], self.base, message=b"Nothing\n")
            return self.side, other, self._commit(tree, self.base, self.side, other)
        if shape == "orphan":
            root = self._commit(tree, message=b"Begin anew\n")
            return root, self._commit(tree, self.base, root)
        if shape == "healed":
            first = self._commit(tree, self.base)
            return first, self._commit(self.trees[self.base], first, message=b"Back\n")
        if shape == "steps":
            folder = copied(self._folder)
            _edit(self, folder)
            first = self._commit(self.store.tree(folder), self.base)
            return first, self._commit(tree, first)
        more = b""
        if shape == "odd header":
            more = self.chance.choice(
                [
                    b"encoding latin-1\n",
                    b"gpgsig x\n y\n",
                    b"tree %s\n" % (b"1" * 40),
                    b"mergetag x\n",
                    b"x\n",
                ]
            )
        return (self._commit(tree, self.base, more=more),)

    def _commit(self, tree: str, *parents: str, message: bytes = b"Change\n", more: bytes = b"") -> str:
        oid = self.store.commit(tree, parents, message, more)
        self.parents[oid], self.trees[oid] = parents, tree
        return oid

    def _forbidden(self, commits: tuple[str, ...]) -> str | None:
        """Say why a change must not be accepted, whatever else is said of it."""
        for commit in commits:
            try:
                after = flattened(self.store, self.trees[commit])
                before = [flattened(self.store, self.trees[parent]) for parent in self.parents[commit]]
            except MalformedError as error:
                return f"malformed: {error}"
            if not before:
                before = [{}]
            if reason := self._reason(before, after):
                return reason
        return None

    def _reason(self, before: list[Files], after: Files) -> str | None:
        changed = {
            path
            for path in {*after, *(each for one in before for each in one)}
            if all(one.get(path) != after.get(path) for one in before)
        }
        for path in changed:
            if path.lower() == b"runs" or path.lower().startswith(b"runs/"):
                return f"changes {path!r}"
            mode, oid = after.get(path, (b"", ""))
            is_new = all(path not in one for one in before)
            if is_new and mode in {FILE, EXECUTABLE}:
                content = self.store.known[oid][1]
                if b"FORBIDDEN" in content and b"\0" not in content:
                    return f"FORBIDDEN in {path!r}"
        moved = {entry for one in before for path, entry in one.items() if path not in after}
        new = [path for path in changed if path in after and after[path] not in moved]
        return f"{len(new)} files" if len(new) > MOST_FILES else None


def copied(folder: Folder) -> Folder:
    """Copy a folder with all that is below it."""
    return {
        name: (mode, copied(below) if isinstance(below, dict) else below)
        for name, (mode, below) in folder.items()
    }


def put(folder: Folder, path: bytes, mode: bytes, what: str | Folder) -> None:
    """Put an entry at a path, in the place of whatever is in its way."""
    *above, name = path.split(b"/")
    for each in above:
        below = folder.get(each, (b"", ""))[1]
        if not isinstance(below, dict):
            below = {}
            folder[each] = TREE, below
        folder = below
    folder[name] = mode, what


def _paths(folder: Folder, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes, str]]:
    for name, (mode, below) in folder.items():
        if isinstance(below, dict):
            yield from _paths(below, prefix + name + b"/")
        else:
            yield prefix + name, mode, below


def _drop(folder: Folder, path: bytes) -> None:
    *above, name = path.split(b"/")
    trail = [folder]
    for each in above:
        below = trail[-1][each][1]
        assert isinstance(below, dict)
        trail.append(below)
    del trail[-1][name]
    for parent, each, below in zip(trail[-2::-1], above[::-1], trail[:0:-1], strict=False):
        if not below:
            del parent[each]


# ---- what may be done to the files ------------------------------------------------------------------------


def _content(make: Maker) -> bytes:
    chance = make.chance
    lines = chance.choices(_LINES, k=chance.choice([0, 1, 3, 10]))
    if chance.random() < 0.25:
        word = chance.choice(
            [b"FORBIDDEN\n", b"x FORBIDDEN", b"y" * 9000 + b"FORBIDDEN\n", b"\xff FORBIDDEN\r\n"]
        )
        lines.insert(chance.randint(0, len(lines)), word)
    return b"".join(lines)


def _edit(make: Maker, folder: Folder) -> None:
    path, mode, oid = make.chance.choice([each for each in _paths(folder) if each[1] == FILE])
    if path == b"patchgate.toml":
        return
    content = make.store.known[oid][1] + _content(make)
    put(folder, path, mode, make.store.blob(content))


def _add(make: Maker, folder: Folder) -> None:
    name = make.chance.choice([*_NAMES, *_NAMES, *_DENIED])
    put(folder, name, make.chance.choice([FILE, FILE, FILE, EXECUTABLE]), make.store.blob(_content(make)))


def _add_many(make: Maker, folder: Folder) -> None:
    for number in range(make.chance.choice([5, 19, 20, 21, 60])):
        put(folder, b"many/%d/f%d" % (number % 3, number), FILE, make.store.blob(b"%d\n" % number))


def _remove(make: Maker, folder: Folder) -> None:
    _drop(folder, make.chance.choice([path for path, *_ in _paths(folder)]))


def _rename(make: Maker, folder: Folder) -> None:
    path, mode, oid = make.chance.choice(list(_paths(folder)))
    _drop(folder, path)
    put(folder, make.chance.choice([*_NAMES, *_DENIED]), mode, oid)


def _relink(make: Maker, folder: Folder) -> None:
    target = make.chance.choice(
        [b"src/a.py", b"../x", b"/etc/passwd", b"runs", b".git/config", b"", b"x" * 5000]
    )
    put(
        folder,
        make.chance.choice([b"link", b"link2", b"src/l", b"src", b"runs"]),
        SYMLINK,
        make.store.blob(target),
    )


def _change_mode(make: Maker, folder: Folder) -> None:
    path, _, oid = make.chance.choice(list(_paths(folder)))
    put(folder, path, make.chance.choice([FILE, EXECUTABLE, SYMLINK, GITLINK]), oid)


def _graft(make: Maker, folder: Folder) -> None:
    """Put one folder in the place of another, or beside it."""
    folders = [name for name, (mode, _) in folder.items() if mode == TREE]
    if folders:
        source = folder[make.chance.choice(folders)][1]
        place = make.chance.choice([*folders, b"grafted", b"src/inner"])
        put(folder, place, TREE, copied(source) if isinstance(source, dict) else source)


def _attributes(make: Maker, folder: Folder) -> None:
    text = make.chance.choice(
        [b"* -diff\n", b"* binary\n", b"*.py -diff\n", b"* diff=x\n", b"* filter=x -text\n"]
    )
    put(folder, make.chance.choice([b".gitattributes", b"src/.gitattributes"]), FILE, make.store.blob(text))


def _nest(make: Maker, folder: Folder) -> None:
    """Put a few files at many places: folders that hold the same folder again and again."""
    tree = make.store.tree({b"f": (FILE, make.store.blob(b"f\n"))})
    for _ in range(make.chance.choice([1, 2])):
        tree = make.store.entries([(TREE, b"d%d" % number, tree) for number in range(6)])
    put(folder, b"nested", TREE, tree)


def _bury(make: Maker, folder: Folder) -> None:
    """Put a file below many folders."""
    tree = make.store.tree({b"f": (FILE, make.store.blob(_content(make)))})
    for _ in range(make.chance.choice([50, 400])):
        tree = make.store.entries([(TREE, b"d", tree)])
    put(folder, b"d", TREE, tree)


def _change_policy(make: Maker, folder: Folder) -> None:
    put(folder, b"patchgate.toml", FILE, make.store.blob(make.chance.choice([POLICY[:8], b"", b"[policy\n"])))


_STEPS: tuple[Callable[[Maker, Folder], None], ...] = (
    *(
        _edit,
        _edit,
        _add,
        _add,
        _add,
        _add_many,
        _remove,
        _rename,
        _relink,
        _change_mode,
        _graft,
        _attributes,
    ),
    *(_nest, _bury, _change_policy),
)

# ---- what may be wrong with a tree ------------------------------------------------------------------------

Rows = list[tuple[bytes, bytes, str]]


def _duplicate(make: Maker, folder: Folder, rows: Rows) -> str:
    """Name a file twice, once with other content, and sometimes below a folder."""
    at = make.chance.randrange(len(rows))
    mode, name, _ = rows[at]
    other = (
        make.chance.choice([mode if mode != TREE else FILE, FILE]),
        name,
        make.store.blob(_content(make)),
    )
    return make.store.entries([*rows[:at], *make.chance.sample([rows[at], other], 2), *rows[at + 1 :]])


def _duplicate_policy(make: Maker, folder: Folder, rows: Rows) -> str:
    weak = make.store.blob(b"[policy]\n")
    doubled: Rows = []
    for row in rows:
        both = [row, (FILE, row[1], weak)] if row[1] == b"patchgate.toml" else [row]
        doubled += both if make.chance.random() < 0.5 else both[::-1]
    return make.store.entries(doubled)


def _unsort(make: Maker, folder: Folder, rows: Rows) -> str:
    shuffled = make.chance.sample(rows, len(rows))
    return make.store.entries(shuffled)


def _name_oddly(make: Maker, folder: Folder, rows: Rows) -> str:
    names = [b"", b".", b"..", b".git", b".GIT", b"a/b", b"runs/x", b"/", b".gIt"]
    row = (make.chance.choice([FILE, TREE]), make.chance.choice(names))
    oid = (
        make.store.tree({b"x": (FILE, make.store.blob(b"x\n"))})
        if row[0] == TREE
        else make.store.blob(b"x\n")
    )
    return _sorted(make, [*rows, (*row, oid)])


def _mode_oddly(make: Maker, folder: Folder, rows: Rows) -> str:
    mode = make.chance.choice(
        [b"0100644", b"040000", b"100664", b"100600", b"0", b"644", b"140000", b"177777"]
    )
    return _sorted(make, [*rows, (mode, b"zz", make.store.blob(b"x\n"))])


def _point_oddly(make: Maker, folder: Folder, rows: Rows) -> str:
    tree = make.store.tree({b"x": (FILE, make.store.blob(b"x\n"))})
    chosen = [(FILE, _NULL), (TREE, _NULL), (FILE, "2" * 40), (TREE, "3" * 40), (FILE, tree)]
    mode, oid = make.chance.choice([*chosen, (TREE, make.store.blob(b"blob\n"))])
    return _sorted(make, [*rows, (mode, b"zz", oid)])


def _cut(make: Maker, folder: Folder, rows: Rows) -> str:
    body = b"".join(b"%s %s\0" % row[:2] + bytes.fromhex(row[2]) for row in rows)
    return make.store.write(b"tree", body[: make.chance.randint(1, len(body) - 1)])


def _below(make: Maker, folder: Folder, rows: Rows) -> str:
    """Do one of the others in a folder below."""
    inner = make.store.rows({b"a": (FILE, make.store.blob(b"a\n")), b"b": (FILE, make.store.blob(b"b\n"))})
    damage = make.chance.choice([_duplicate, _unsort, _name_oddly, _mode_oddly, _point_oddly, _cut])
    return _sorted(make, [*rows, (TREE, b"zz", damage(make, folder, inner))])


def _sorted(make: Maker, rows: Rows) -> str:
    return make.store.entries(sorted(rows, key=lambda row: row[1] + (b"/" if row[0] == TREE else b"")))


_DAMAGES = (
    *(_duplicate, _duplicate_policy, _unsort, _name_oddly, _mode_oddly, _point_oddly, _cut, _below, _below),
)


def made_in(git_dir: Path, chance: Chance) -> Maker:
    """Make the base of a repository whose objects folder is there."""
    os.makedirs(git_dir / "objects", exist_ok=True)
    return Maker(Store(git_dir), chance)
