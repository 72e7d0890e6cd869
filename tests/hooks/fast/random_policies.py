"""Random policies, as texts of config files: ordinary ones, odd ones, and such that nobody can read.

Decides what is tried, never what a policy means; a text that the config's own checks refuse is left out.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from patchgate.errors import ConfigError
from patchgate.policy.config import parse
from patchgate.policy.regular_expressions import check_expression
from patchgate.policy.validators import TextError, check_pattern, check_prefix, check_rule, check_suffix
from patchgate.report.rules import RULES

Chance = random.Random

WORDS = (
    *("src", "docs", "lib", "app", "secrets", "vendor", "dist", "runs", "test", "a", "b", "ab", "k", "s"),
    *("main.py", "notes.txt", "key.pem", "id_rsa", ".env", "x.py", "README.md", "data.json", "[id].tsx"),
    *("Makefile", "a b", "x.min.js", "TODO", "conf", "git~1", "K", "straße", "ſ", "É", "日本", "..a"),
)
_ATOMS = (
    *WORDS,
    *("*", "*", "?", "/", "/", "/", "**", "***", "[ab]", "[a-c]", "[!x]", "[^k]", "[]a]", "[K]", "[kK]"),
    *("[0-9]", "[z-a]", "[a-]", "\\*", "\\[", "\\a", "\\ ", "\\\\", "[\\]x]", ".", "-", "_", "~", "{", " "),
    *("}", "[é]"),
)
EXPRESSIONS = {
    r"\bTODO\b": "a TODO",
    "(?i)todo:": "ToDo: x",
    r"print\(": "print(1)",
    "^x*$": "xx",
    "a[bc]d": "acd",
    "(?i:Do) not": "dO not",
    "ab|cd": "cd",
    r"\d{3}-\d{4}": "555-1234",
    r"^import os": "import os",
    r"password\s*=": "password  = 1",
    "(?i)k(ey|it)": "KEY",
    "(?=secret)s": "secrets",
    "(?<!no)pe": "ape",
    r"\s+$": "x ",
    "colou?r": "color",
    "(debug|trace)er": "tracer",
    "[Tt]emp": "temp",
    "^$": "",
    r"(?m)^eval": "eval",
    "(?s)a.b": "a.b",
    "(?x) a b  # c": "ab",
    "é": "é",
    r"\xff": "ÿ",
    "(?i)É": "É",
    "FIXME$": "FIXME",
    "x{3,5}": "xxxx",
    "(?i)do not commit": "Do Not Commit",
    r"\bprint\(": "print()",
}
"""Expressions for `[content] deny`, and a line that each of them matches, in Latin-1."""
MARKERS = (
    ("ticket", "ABC-0{4}", "ABC-0000"),
    ("later", "(?i)do it later", "Do It Later"),
    ("blank", "^ +$", "  "),
)
"""Markers of a policy's own: name, expression, and a line that it matches."""
_ORDINARY = (
    "",
    "[policy]\nallow_roots = ['src', 'docs', 'lib', 'test', 'README.md', 'app']\n",
    "[policy]\ndeny_prefixes = ['vendor', 'runs']\ndeny = ['*.pem', '.env', 'secrets/']\n",
    "[policy]\ndeny = ['**/secrets/**', 'id_rsa*', '*.min.js']\ndeny_suffixes = ['.key', '.sqlite']\n",
    "[policy.commit]\nmax_files = 20\nmax_added_lines = 400\ndeny_classes = ['artifact', 'binary', 'lock']\n",
    "[content]\ndeny = ['\\bprint\\(', '(?i)do not commit', 'breakpoint\\(\\)']\n",
    "[message]\nlevel = 'off'\n[rules]\nmax-files = 'error'\nmax-added-lines = 'error'\n",
    "[placeholders]\nlevel = 'error'\n[claims]\nmarkers = [{name = 'x', pattern = 'QQQ', example = 'QQQ'}]\n",
    "[[owners]]\npaths = ['@policy', 'vendor/', '*.md']\n",
    "[[overrides]]\npaths = ['docs/', '*.md']\nmax_added_lines = 300\n[policy]\ndeny = ['vendor/']\n",
)
_CLASSES = ("lock", "binary", "media", "artifact")


@dataclass(frozen=True)
class RootFiles:
    """What a root folder holds of policy (mode, content of each file), and whether many have such a one."""

    files: dict[bytes, tuple[bytes, bytes]]
    is_ordinary: bool = False


def random_root(chance: Chance) -> RootFiles:
    """Choose what a root folder holds of policy: none, an ordinary one, mostly a random or a broken one."""
    kind = chance.random()
    mode = b"100755" if chance.random() < 0.05 else b"100644"
    project = b"[project]\nname = 'x'\n" if chance.random() < 0.5 else b"[tool.other]\npatchgate = 1\n"
    beside = {b"pyproject.toml": (b"100644", project)} if chance.random() < 0.3 else {}
    if kind < 0.1:
        return RootFiles(beside, is_ordinary=True)
    if kind < 0.35:
        ordinary = chance.choice(_ORDINARY).encode()
        return RootFiles({b"patchgate.toml": (mode, ordinary), **beside}, is_ordinary=True)
    if kind < 0.4:
        return RootFiles(_odd(chance))
    text = random_policy(chance)
    if chance.random() < 0.25:
        inside = re.sub(r"(?m)^(\[\[?)(?=[a-z])", r"\1tool.patchgate.", text)
        inside = f"[project]\nname = 'x'\n[tool.patchgate]\n{inside}"
        return RootFiles({b"pyproject.toml": (mode, inside.encode())})
    return RootFiles({b"patchgate.toml": (mode, text.encode()), **beside})


def _odd(chance: Chance) -> dict[bytes, tuple[bytes, bytes]]:
    """Choose a policy that cannot be used, or one in an odd place."""
    good = random_policy(chance).encode()
    return chance.choice(
        [
            {b"patchgate.toml": (b"100644", b"[policy\n")},
            {b"patchgate.toml": (b"100644", b"policy.unknown = 1\n")},
            {b"patchgate.toml": (b"120000", b"src/main.py")},
            {b"patchgate.toml": (b"100644", b"required_version = '<0.0.1'\n")},
            {b"patchgate.toml/x": (b"100644", good)},
            {b"pyproject.toml": (b"100644", b"[tool.patchgate]\nx = 1\n")},
            {b"pyproject.toml": (b"100644", b"[tool.patch\\\n")},
            {b"patchgate.toml": (b"100644", good), b"pyproject.toml": (b"100644", b"[tool.patchgate]\n")},
        ]
    )


def random_policy(chance: Chance) -> str:
    """Write a config that can be read, of any shape."""
    while True:
        text = _config(chance)
        try:
            parse(text.encode(), "patchgate.toml")
        except ConfigError:
            continue
        return text


def _config(chance: Chance) -> str:
    sections: list[str] = []
    if chance.random() < 0.1:
        sections.append("required_version = '>=0.0.1'\n")
    policy = ""
    if chance.random() < 0.25:
        roots = _several(chance, _prefix, check_prefix, 4)
        policy += _key("allow_roots", [*roots, "src", "docs", "a", "lib"])
    policy += _maybe(chance, 0.4, "deny_prefixes", lambda: _several(chance, _prefix, check_prefix, 3))
    policy += _maybe(chance, 0.6, "deny", lambda: _several(chance, _pattern, check_pattern, 4))
    policy += _maybe(chance, 0.2, "allow_delete", lambda: _several(chance, _pattern, check_pattern, 2))
    policy += _maybe(chance, 0.3, "deny_suffixes", lambda: _several(chance, _suffix, check_suffix, 3))
    policy += _maybe(chance, 0.2, "deny_classes", lambda: _classes(chance))
    policy += _maybe(chance, 0.3, "max_file_bytes", lambda: _limit(chance, 0, 20, 200, 5000, 1 << 20))
    policy += _maybe(chance, 0.2, "generated", lambda: _several(chance, _pattern, check_pattern, 2))
    sections.append("[policy]\n" + policy)
    commit = _maybe(chance, 0.5, "deny_classes", lambda: _classes(chance))
    commit += _maybe(chance, 0.2, "deny_new_classes", lambda: _classes(chance))
    sections.append("[policy.commit]\n" + _limits(chance, 0.3) + commit + _permissions(chance))
    content = _maybe(chance, 0.2, "secrets", lambda: False)
    content += _maybe(chance, 0.2, "conflict_markers", lambda: False)
    content += _maybe(chance, 0.4, "deny", lambda: _several(chance, _expression, check_expression, 3))
    sections.append("[content]\n" + content)
    rules = chance.sample(list(RULES), chance.randint(0, 4)) if chance.random() < 0.5 else []
    levels = {rule: chance.choice(["error", "warning", "note", "off"]) for rule in rules if _is_rule(rule)}
    sections.append("[rules]\n" + "".join(_key(rule, level) for rule, level in levels.items()))
    message = _maybe(chance, 0.4, "level", lambda: chance.choice(["off", "error", "note"]))
    sections.append("[message]\n" + message)
    level = _maybe(chance, 0.25, "level", lambda: chance.choice(["off", "error", "warning", "note"]))
    sections.append("[placeholders]\n" + level)
    if chance.random() < 0.15:
        own = chance.sample(MARKERS, chance.randint(1, 2))
        markers = [
            f"{{ name = {name!r}, pattern = {text!r}, example = {line!r} }}" for name, text, line in own
        ]
        sections.append(f"[claims]\nmarkers = [{', '.join(markers)}]\n")
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        paths = _several(chance, _pattern, check_pattern, 2) or ["docs/"]
        size = _maybe(chance, 0.3, "max_file_bytes", lambda: _limit(chance, 0, 20, 5000))
        classes = _maybe(chance, 0.4, "deny_classes", lambda: _classes(chance))
        sections.append("[[overrides]]\n" + _key("paths", paths) + _limits(chance, 0.5) + size + classes)
    for name in chance.sample(["one", "Two", "t.3"], chance.choice([0, 0, 0, 1, 2])):
        files = _key("contract", chance.choice(["a/", "docs/", ""]) + chance.choice(WORDS))
        files += _key("tests", _several(chance, _pattern, check_pattern, 2) or ["test/x"])
        files += _key("implementation", _several(chance, _pattern, check_pattern, 2) or ["src/app/**"])
        sections.append(f"[components.'{name}']\n" + files)
    return "".join(section for section in sections if section.count("\n") > 1 or "=" in section)


def _key(name: str, value: object) -> str:
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"


def _maybe(chance: Chance, share: float, name: str, value: Callable[[], object]) -> str:
    return _key(name, value()) if chance.random() < share else ""


def _limit(chance: Chance, *sizes: int) -> int | str:
    limits: list[int | str] = [*sizes, "off"]
    return chance.choice(limits)


def _limits(chance: Chance, share: float) -> str:
    files = _maybe(chance, share, "max_files", lambda: _limit(chance, 0, 1, 2, 3, 10, 50))
    return files + _maybe(chance, share, "max_added_lines", lambda: _limit(chance, 0, 1, 3, 10, 100, 3000))


def _permissions(chance: Chance) -> str:
    modes = _maybe(chance, 0.2, "allow_modes", lambda: chance.choice([True, False]))
    links = _maybe(chance, 0.2, "allow_symlinks", lambda: chance.choice([True, False, "inside"]))
    return modes + links + _maybe(chance, 0.2, "allow_gitlinks", lambda: chance.choice([True, False, "bump"]))


def _classes(chance: Chance) -> list[str]:
    return chance.sample(_CLASSES, chance.randint(0, 3))


def _several(
    chance: Chance, make: Callable[[Chance], str], check: Callable[[str], object], most: int
) -> list[str]:
    found: list[str] = []
    for _ in range(chance.randint(1, most)):
        text = make(chance)
        try:
            check(text)
        except TextError:
            continue
        found.append(text)
    return found


def _pattern(chance: Chance) -> str:
    word, other = chance.choice(WORDS), chance.choice(WORDS)
    word = chance.choice([word, word, word.upper(), word.swapcase()])
    form = chance.random()
    if form < 0.75:
        forms = ("{0}", "/{0}", "{0}/", "*.{0}", "*{0}*", "**/{0}", "{0}/**", "{0}/**/{1}", "{0}/*")
        more = ("{0}*", "[{0}]{1}", "{0}[!x]", "{0}[0-9].log", "{0}?.py", "\\{0}", "{0}\\ ", "*/{0}")
        return chance.choice([*forms, *more, "{0}*{1}", "/{0}/{1}"]).format(word, other)
    if form > 0.99:
        return chance.choice(["*", "**", "?", "**/*", "[a-z]*", "*.*"])
    return "".join(chance.choices(_ATOMS, k=chance.randint(2, 5)))


def _prefix(chance: Chance) -> str:
    words = [chance.choice([word, word.upper()]) for word in chance.choices(WORDS, k=chance.randint(1, 3))]
    return chance.choice(["", "", "./"]) + "/".join(words) + chance.choice(["", "/"])


def _suffix(chance: Chance) -> str:
    return chance.choice([".pem", ".KEY", ".py", "_test.py", ".É", "txt", "~", "]", ".min.js", "/x.py", " b"])


def _expression(chance: Chance) -> str:
    text = chance.choice(list(EXPRESSIONS))
    return chance.choice(
        [text, text, text + "|" + chance.choice(list(EXPRESSIONS)), f"({text})?z", f"x({text})+"]
    )


def _is_rule(rule: str) -> bool:
    try:
        check_rule(rule)
    except TextError:
        return False
    return True
