"""Random trees and random changes of them, as one stream for git fast-import.

Decides what is tried: half of the changes are ordinary work, the others have whatever git can hold. Names are
near to what the policy speaks of; so are the lines. Nothing here knows what a verdict will be.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.hooks.fast.random_policies import EXPRESSIONS, WORDS

Chance = random.Random
FILE, EXECUTABLE, SYMLINK, GITLINK = b"100644", b"100755", b"120000", b"160000"

_PLAIN_NAMES = (
    *("main.py", "util.py", "index.md", "[id].tsx", "a b.txt", "data.json", "test_x.py", "x.c", "y"),
    *(
        "$type.ts",
        "it's.md",
        "x{1}.ts",
        "@scope",
        "a+b=c.txt",
        "n%20.txt",
        "k.py",
        "#x#",
        "(a)",
        "^{}",
        "Makefile",
    ),
)
_PLAIN_FOLDERS = (
    *("", "", "src/", "src/app/", "docs/", "lib/", "test/", "a/", "a/b/", "app/[id]/", "@{u}/", "n/e/w/"),
)
_ODD_NAMES = (
    *("patchgate.toml", ".patchgate/x", ".patchgate/baselines/b.json", ".PATCHGATE/x", "pyproject.toml"),
    *(".pre-commit-config.yaml", ".gitattributes", "src/.gitattributes", ".gitmodules", ".gitignore"),
    *("uv.lock", "docs/uv.lock", "package-lock.json", "package.json", "a/go.sum", "a/go.mod", "Cargo.lock"),
    *("data.bin", "x.zip", "logo.png", "app.exe", "x.class", "node_modules/x.js", "__pycache__/x.py"),
    *("SRC/main.py", "Src/new.py", "src/MAIN.py", "Docs/x", "lib", "LIB/x", "A/b/c", "a/B/c", "README.MD"),
    *("ünï.txt", "日本.txt", "straße", "STRASSE", "\u212a.py", "K.py", "ſ.go", "e\u0301.txt", "a/É/x"),
    *("tab\tx", "nl\nx", 'q"x', "back\\x", "co:lon", "C:x", "*.py", "~", "`x`", "<x>", "a|b", "x?", "\x7f"),
    *("dot.", "space ", "x./y", "x /y", "...", "..x", "a..b", "-x", "--", " x", "x.", "git~1", "GIT~2/x"),
    *(".git.x", ".gitx", ".git-x/y", ".gi\u200dt/x", "n" * 255, "n" * 256, "/".join(["deep"] * 60)),
    *("/".join(["d" * 240] * 18), "x.min.js", "key.pem", "KEY.PEM", "Secrets/K", "vendor", "vendor/x"),
)
GIT_LIKE = (".git/x", ".GIT/x", "src/.Git", ".git./x", ".git /x", ".gIt", "a/.git.. ./x")
_LINES = (
    *(b"import os", b"def f(x):", b"    return x + 1", b"", b"x", b"# a comment", b"the end", b"}", b"a = 1"),
    *(b"colour = 2", b"const k = 3;", b"- item", b"text", b"+++ b/x", b"--- a/x", b"@@ -1 +1 @@", b"\\ No"),
)
_PLACEHOLDERS = (
    *(b"# TODO: x", b"- [ ] TBD", b"[INSERT name]", b"<your name>", b"Lorem ipsum", b"def f(): pass"),
    *(b"def f():\n    pass", b"def f():\n    ...", b"raise NotImplementedError", b"ABC-0000", b"do it later"),
    *(b"\xff\xfeT\0O\0D\0O\0", b"    pass", b"todo!()", b"QQQ", b"  "),
)
_TELLING = (
    *(b"TODO", b"todo:", b"print(1)", b"ABD", b"abd", b"dO NOT", b"555-1234", b"password  = 1", b"FIXME"),
    *(b"AKIAABCDEFGHIJKLMNOP", b"ghp_" + b"a" * 36, b"-----BEGIN PRIVATE KEY-----", b"sk_live_" + b"1" * 20),
    *(b"<<<<<<< HEAD", b"=======", b">>>>>>> x", b"||||||| y", b"<<<<<<<", b"<<<<<<<x", b"||||||| \r"),
    *(b"trailing ", b"\t", b"\r", b"x\r", b"breakpoint()", b"Do Not Commit", b"colr", b"xxxxx", b"Temp"),
    *(b"AKIA", b"xox", b"SG.", b"k_live_", b"secret", b"tracer", b"\xff", b"\xc3\xa9", b"\xc3\x89"),
    *(b"\0", b"a\0b", b"a\rb", b"\x0c", b"\x1b[0m", b"\xff\xfeT\0", b"\xef\xbb\xbfx", b"y" * 5000 + b"TODO"),
    *_PLACEHOLDERS,
    *(b"\0whole", b"eval", b"pe", b" <<<<<<<", b"\xe2\x84\xaa"),
)
_ATTRIBUTES = (
    *(b"*.py -diff\n", b"*.bin diff\n", b"* binary\n", b"*.md text\n", b"*.c working-tree-encoding=UTF-16\n"),
    *(b"* diff\n", b"*.py diff=odd\n*.md diff=python\n", b"* -text eol=crlf\n", b"*.json -diff\n"),
)
_LARGE = (
    b"".join(b"line %d\n" % number for number in range(2500)),
    b"z" * (1200 << 10) + b"\n",
    (b"wide " * 20 + b"\n") * 11_000,
    b"early\n" * 2000 + b"\0late\n",
)
_SPECIAL = re.compile(rb'[^!-~]|["\\]')


@dataclass(frozen=True)
class Tree:
    """The files that all changes start from: mode and content of each (a gitlink's id has `width` digits)."""

    width: int
    files: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    def put(self, path: bytes, mode: bytes, content: bytes) -> None:
        """Put a file, where neither a folder nor a file stands in its way."""
        above = [path[:at] for at in range(len(path)) if path[at : at + 1] == b"/"]
        if not any(each in self.files for each in above) and not any(
            each.startswith(path + b"/") for each in self.files
        ):
            self.files[path] = (mode, content)


@dataclass(frozen=True)
class Near:
    """What a policy speaks of: texts that names can be near to, and lines."""

    names: tuple[str, ...]
    lines: tuple[bytes, ...] = _TELLING

    @classmethod
    def to(cls, text: str) -> Near:
        """Find the texts in a config, and the lines that its expressions match."""
        quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', text.replace("'", '"'))
        written = [each.replace("\\\\", "\\") for each in quoted]
        lines = [line.encode("latin-1") for expression, line in EXPRESSIONS.items() if expression in written]
        lines += [line.swapcase() for line in lines]
        if "[placeholders]" in text:
            lines += _PLACEHOLDERS
        return cls((*filter(None, written), *WORDS[:12]), (*_TELLING, *lines * (60 // max(1, len(lines)))))


def random_tree(chance: Chance, policy: dict[bytes, tuple[bytes, bytes]], kind: str) -> Tree:
    """Make a tree with this policy in its root folder; most of it is ordinary, and sometimes all of it."""
    tree = Tree(64 if kind == "sha256" else 40)
    for path, (mode, content) in policy.items():
        tree.put(path, mode, content)
    for _ in range(chance.randint(5, 40)):
        content = _content(chance, 0.05)
        tree.put(_plain_name(chance), chance.choice([FILE, FILE, FILE, EXECUTABLE]), content)
    for path in (b"src/main.py", b"src/app/util.py", b"docs/index.md", b"README.md", b"lib/x.c", b"a/b/y"):
        tree.put(path, FILE, _content(chance, 0.0))
    odd = chance.choice([0, 0, 2, 8, 20])
    for _ in range(odd):
        content = chance.choice([_content(chance, 0.4), chance.choice(_TELLING)])
        if chance.random() < 0.05:
            content = chance.choice(_LARGE)
        path = _odd_name(chance, Near(()))
        if path.split(b"/")[0] not in {b"patchgate.toml", b"pyproject.toml"}:
            tree.put(path, chance.choice([FILE, FILE, EXECUTABLE]), content)
    if odd:
        tree.put(b"link", SYMLINK, chance.choice([b"src/main.py", b"../out", b"/etc/passwd"]))
        tree.put(b"src/link.py", SYMLINK, b"main.py")
        tree.put(b"module", GITLINK, b"1" * tree.width)
    if chance.random() < 0.15:
        # Some letters that are not ASCII fold to ones that are.
        tree.put(
            chance.choice(["\u212a.py", "src/\u212a.py", "lib/ſ.go", "src/a\u212a"]).encode(), FILE, b"x\n"
        )
    if chance.random() < 0.3:
        where = chance.choice([b".gitattributes", b"src/.gitattributes"])
        tree.put(where, FILE, attributes(chance, tree))
    return tree


def stream(chance: Chance, tree: Tree, near: Near, count: int, *, git_like: bool) -> Iterator[bytes]:
    """Write a base commit (mark 1) and `count` children of it (marks from 2) for git fast-import."""
    for number, large in enumerate(_LARGE):
        yield b"blob\nmark :%d\n" % (1_000_000 + number) + _data(large)
    yield from _commit(1, None, [_put(path, *entry) for path, entry in tree.files.items()])
    for number in range(2, count + 2):
        yield from _commit(number, 1, list(_change(chance, tree, near, git_like=git_like)))


def attributes(chance: Chance, tree: Tree) -> bytes:
    """Choose lines of gitattributes; some make text of what is binary, and then there is more of that."""
    chosen = chance.choice([*_ATTRIBUTES, b"* diff\n", b"* diff\n"])
    if b" diff\n" in chosen:
        for _ in range(6):
            tree.put(_plain_name(chance), FILE, b"a\nb\nc\n\0\n" + _content(chance, 0.0))
    return chosen


def _commit(mark: int, parent: int | None, lines: list[bytes]) -> Iterator[bytes]:
    when = 1_700_000_000 + mark
    yield b"commit refs/heads/made\nmark :%d\ncommitter A <a@example.com> %d +0000\n" % (mark, when)
    yield _data(b"Change what is there\n") + (b"from :%d\n" % parent if parent else b"")
    yield from lines


def _change(chance: Chance, tree: Tree, near: Near, *, git_like: bool) -> Iterator[bytes]:
    """Make one change: of a few files, seldom of many."""
    is_ordinary = chance.random() < 0.55
    count = chance.choice([1, 1, 1, 2, 2, 3, 4]) if chance.random() < 0.98 else chance.choice([0, 12, 51])
    if git_like and chance.random() < 0.01:
        yield _put(chance.choice(GIT_LIKE).encode(), FILE, b"x\n")
    paths = list(tree.files)
    telling = 0.05 if is_ordinary else 0.3
    for _ in range(count):
        kind = chance.random()
        path = chance.choice(paths)
        mode, content = tree.files[path]
        if is_ordinary and (mode in {SYMLINK, GITLINK} or not path.isascii()):
            continue
        if kind < 0.4:
            name = _odd_name(chance, near) if chance.random() < (0.15 if is_ordinary else 0.7) else b""
            if not name or (is_ordinary and not name.isascii()):
                name = _plain_name(chance)
            if is_ordinary and name in tree.files:
                mode = tree.files[name][0]
            else:
                mode = FILE if is_ordinary or chance.random() < 0.9 else EXECUTABLE
            yield _put(name, mode, _content(chance, telling, near))
        elif kind < 0.75:
            yield _put(
                path, mode, _edited(chance, content, telling, near) if mode != GITLINK else b"2" * tree.width
            )
        elif kind < 0.85:
            yield b"D " + _quoted(path) + b"\n"
        elif is_ordinary:
            # A file under another name, which git calls a rename or a copy.
            if chance.random() < 0.5:
                yield b"D " + _quoted(path) + b"\n"
            yield _put(_plain_name(chance), mode, content)
        else:
            yield from _oddly(chance, tree, path, near)


def _oddly(chance: Chance, tree: Tree, path: bytes, near: Near) -> Iterator[bytes]:
    """Do to one file what is done seldom."""
    kind = chance.randrange(10)
    mode, content = tree.files[path]
    if kind == 0:
        yield b"M %s :%d " % (FILE, 1_000_000 + chance.randrange(len(_LARGE))) + _quoted(path) + b"\n"
    elif kind == 1:
        yield b"D " + _quoted(path) + b"\n"
        yield _put(_odd_name(chance, near), mode, content)
    elif kind == 2:
        yield _put(path + chance.choice([b"/x", b"/X/y"]), FILE, b"in place of a file\n")
    elif kind == 3 and b"/" in path:
        yield _put(path.rpartition(b"/")[0], FILE, b"in place of a folder\n")
    elif kind == 4:
        yield b"D " + _quoted(path) + b"\n"
        yield _put(chance.choice([path.swapcase(), path.upper(), path.title()]), mode, content)
    elif kind == 5:
        yield _put(path.upper(), FILE, b"beside it\n")
    elif kind == 6:
        yield _put(path, SYMLINK, chance.choice([b"x", b"../../x", b"/x"]))
    elif kind == 7:
        yield _put(chance.choice([path, _odd_name(chance, near)]), GITLINK, b"3" * tree.width)
    elif kind == 8:
        name = _plain_name(chance)
        yield _put(name, FILE, b"one of two\n")
        yield _put(chance.choice([name.swapcase(), name.capitalize()]), FILE, b"the other\n")
    elif mode != GITLINK:
        yield _put(path, chance.choice([FILE, EXECUTABLE]), content)


def _plain_name(chance: Chance) -> bytes:
    name = chance.choice(_PLAIN_NAMES)
    if chance.random() < 0.5:
        name = f"{chance.choice('abcdefgxyz')}{chance.randrange(100)}{name}"
    return (chance.choice(_PLAIN_FOLDERS) + name).encode()


def _odd_name(chance: Chance, near: Near) -> bytes:
    if near.names and chance.random() < 0.6:
        return _neighbour(chance, chance.choice(near.names))
    return (chance.choice(["", "", "", "src/", "x/"]) + chance.choice(_ODD_NAMES)).encode()


def _neighbour(chance: Chance, text: str) -> bytes:
    """Make a name that a text of the policy could mean, with something in place of what is special."""
    if chance.random() < 0.6:
        text = re.sub(r"\[[^\]]*\]", lambda _: chance.choice("abcszxkK0\u212a"), text)
        text = re.sub(r"\\(.)", r"\1", text)
    text = re.sub(r"\*+|\?", lambda _: chance.choice(["", "a", "b", "k", "x.y", "0", "K", "x/y"]), text)
    if chance.random() < 0.3:
        text = text.replace("\u212a", "k").replace("ſ", "s").replace("ß", "ss").replace("É", "é")
    if chance.random() < 0.15 and text:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(["", "x", ".", "/", " "]) + text[at + 1 :]
    text = chance.choice(["", "", "", "x/", "src/", "x"]) + text
    text += chance.choice(["", "", "", "/x", "/a.py", "x"])
    text = chance.choice([text, text, text.upper(), text.swapcase(), text.lower()])
    parts = [part for part in text.split("/") if part not in {"", ".", ".."} and part.casefold() != ".git"]
    return "/".join(parts or ["x"]).encode("utf-8", "surrogateescape").replace(b"\0", b"")


def _content(chance: Chance, telling: float, near: Near | None = None) -> bytes:
    lines = [chance.choice(_LINES) for _ in range(chance.choice([0, 1, 1, 2, 3, 5, 12]))]
    return _with_end(chance, _told(chance, lines, telling, near))


def _edited(chance: Chance, content: bytes, telling: float, near: Near) -> bytes:
    lines = content.split(b"\n")
    if len(lines) > 5000:
        return content[: chance.choice([100, 7999, 8000, 8001, len(content) - 1])]
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(lines))
        new = [chance.choice(_LINES) for _ in range(chance.choice([0, 1, 2]))]
        lines[at : at + chance.choice([0, 0, 1, 2])] = new
    return _with_end(chance, _told(chance, lines, telling, near))


def _told(chance: Chance, lines: list[bytes], telling: float, near: Near | None) -> list[bytes]:
    if chance.random() < telling:
        word = chance.choice(near.lines if near else _TELLING)
        if chance.random() < 0.2:
            word = chance.choice([word.upper(), word.lower(), word.swapcase()])
        if chance.random() < 0.5:
            word = chance.choice([b"x", b" ", b"= "]) + word + chance.choice([b"", b" ", b"x"])
        lines.insert(chance.randint(0, len(lines)), word)
    return lines


def _with_end(chance: Chance, lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + chance.choice([b"\n", b"\n", b"\n", b"", b"\r\n"])


def _put(path: bytes, mode: bytes, content: bytes) -> bytes:
    if mode == GITLINK:
        return b"M %s %s " % (mode, content) + _quoted(path) + b"\n"
    for number, large in enumerate(_LARGE):
        if content is large:
            return b"M %s :%d " % (mode, 1_000_000 + number) + _quoted(path) + b"\n"
    return b"M %s inline " % mode + _quoted(path) + b"\n" + _data(content)


def _data(content: bytes) -> bytes:
    return b"data %d\n" % len(content) + content + b"\n"


def _quoted(path: bytes) -> bytes:
    return b'"' + _SPECIAL.sub(lambda found: b"\\%03o" % found[0][0], path) + b'"'
