"""The matcher against `git check-ignore`, on generated patterns: no answer is looser in either use.

What allows (`exact`) answers as git does. What denies (folded) and what assigns files to components match
wherever git does; each match more belongs to a class of the table in docs/reference.md. The long form
(`PATCHGATE_LONG=1`) compares more than 50,000 pairs.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from docs.generate import PATTERN_DIFFERENCES
from patchgate.git.path import fold
from patchgate.policy.glob_matching import PatternError, PatternSet

LONG = os.environ.get("PATCHGATE_LONG") == "1"
PATTERNS = 3000 if LONG else 150
PATHS_EACH = 20

NAMES = ["a", "b", "ab", "abc", "A", "x.y", "é", "É", "e\u0301", "aé", "日本", "[a]", "[é]", "a b", "-", "^}"]
CLASSES = ["[ab]", "[!a]", "[^b]", "[a-é]", "[é]", "[!é]", "[]a]"]
ATOMS = [*NAMES, *CLASSES, "*", "*", "**", "***", "?", "?", r"\a", r"\["]
# Those that differed once.
KNOWN = [
    *(("a**/**", "abc"), ("a**/*/**/*", "abc/b"), ("z**/**", "zz"), ("^}**/**", "^}x")),
    *(("x.y/a**/*", "x.y/abc"), ("/a**/?", "ab"), ("/??*", "é"), ("a**/b", "ax/y/b"), ("a**/b**/c", "abx/c")),
    *(("a**/**/b", "ab"), ("[!A].py", "a.py"), ("x/a**/", "x/a"), ("e*", "e\u0301"), ("dir/", "dir")),
    ("[id].tsx", "[id].tsx"),
]

Pairs = list[tuple[str, list[bytes]]]


def _pattern(chance: random.Random) -> str:
    count = chance.choice((1, 2, 2, 3, 4))
    parts = ["".join(chance.choices(ATOMS, k=chance.choice((1, 1, 2, 3)))) for _ in range(count)]
    return chance.choice(("", "", "/")) + "/".join(parts) + chance.choice(("", "", "", "/", " "))


def _path(chance: random.Random, pattern: str) -> bytes:
    """Make a path of any names, or one that the pattern nearly matches."""
    if chance.random() < 0.3:
        count = chance.choice((1, 2, 3))
        return "/".join(
            "".join(chance.choices(NAMES, k=chance.choice((1, 1, 2)))) for _ in range(count)
        ).encode()

    def filled(wildcard: re.Match[str]) -> str:
        return "".join(chance.choices([*NAMES, "/", ""], k=2 if wildcard[0] == "**" else 1))

    filling = re.sub(r"\*\*|\*|\?|\[[!^]?[^\]]+\]", filled, pattern.replace("\\", ""))
    parts = [part for part in filling.strip(" ").split("/") if part] or ["a"]
    raw = "/".join(
        [*chance.choice(([], [], [], ["b"])), *parts, *chance.choice(([], [], [], ["ab"]))]
    ).encode()
    return raw + b"\xe9" if chance.random() < 0.05 else raw


def _is_supported(pattern: str) -> bool:
    try:
        return bool(PatternSet([pattern], folded=True))
    except PatternError:
        return False


def _pairs() -> Pairs:
    chance = random.Random(20240607)
    known = [(pattern, [path.encode()]) for pattern, path in KNOWN]
    patterns = [_pattern(chance) for _ in range(PATTERNS)]
    pairs = [(pattern, [_path(chance, pattern) for _ in range(PATHS_EACH)]) for pattern in patterns]
    return [pair for pair in [*known, *pairs] if _is_supported(pair[0])]


def _ignored_by_git(folder: Path, pairs: Pairs) -> set[tuple[int, bytes]]:
    """Ask about all pairs in one batch: each pattern holds in a folder of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    subprocess.run(["git", "init", "-q", "--template=", str(folder)], check=True, env=environment)
    asked = bytearray()
    for number, (pattern, paths) in enumerate(pairs):
        (folder / str(number)).mkdir()
        (folder / str(number) / ".gitignore").write_bytes(pattern.encode() + b"\n")
        asked += b"".join(b"%d/%b\0" % (number, path) for path in paths)
    done = subprocess.run(
        ("git", "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "-z", "--stdin", "-v", "-n"),
        cwd=folder,
        env=environment,
        input=bytes(asked),
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    fields = done.stdout.split(b"\0")[:-1]
    assert len(fields) == 4 * asked.count(b"\0")
    found = set()
    for source, place in zip(fields[::4], fields[3::4], strict=True):
        name, _, path = place.partition(b"/")
        if source:
            found.add((int(name), path))
    return found


def _why(pattern: str, path: bytes) -> str | None:
    """Name the class of a match that git does not have; None where there is none."""

    def git_would(said: str) -> bool:
        return PatternSet([said], folded=False, exact=True).match(path) is not None

    body = pattern.rstrip(" ").removesuffix("/")
    if git_would(body):
        return "folder"
    parts = [
        (part, re.sub(r"([\\\[\]*?!#])", r"\\\1", part)) if re.search(r"[\[\\]", part) else (part,)
        for part in body.split("/")
    ]
    slash = "" if "/" in body else "**/"
    if any(git_would(slash + "/".join(chosen)) for chosen in itertools.product(*parts)):
        return "own text"
    both = (pattern, path.decode("utf-8", "replace"))
    is_plain = all(each.isascii() and fold(each.encode()) == each for each in both)
    return None if is_plain else "folded"


def test_no_answer_is_looser_than_gits_and_each_stricter_one_is_listed(tmp_path: Path) -> None:
    pairs = _pairs()
    by_git = _ignored_by_git(tmp_path, pairs)
    seen: Counter[str | None] = Counter()
    wrong: list[tuple[str, str, bytes]] = []
    for number, (pattern, paths) in enumerate(pairs):
        allows = PatternSet([pattern], folded=False, exact=True)
        assigns = PatternSet([pattern], folded=False)
        denies = PatternSet([pattern], folded=True)
        for path in paths:
            ignored = (number, path) in by_git
            if (allows.match(path) is not None) != ignored:
                wrong.append(("allows", pattern, path))
            for use, compiled in (("assigns", assigns), ("denies", denies)):
                matched = compiled.match(path) is not None
                if ignored and not matched:
                    wrong.append((use, pattern, path))
                elif matched and not ignored:
                    why = _why(pattern, path)
                    seen[why] += 1
                    if why is None or (why == "folded" and use == "assigns"):
                        wrong.append((use, pattern, path))
    assert wrong == []
    assert set(seen) == set(PATTERN_DIFFERENCES)
    assert len(by_git) > (5_000 if LONG else 300)
    assert sum(len(paths) for _, paths in pairs) >= (50_000 if LONG else 1_500)


@pytest.mark.parametrize("kind", PATTERN_DIFFERENCES)
def test_the_example_of_each_difference_is_one(tmp_path: Path, kind: str) -> None:
    pattern, path, _ = PATTERN_DIFFERENCES[kind]
    assert _ignored_by_git(tmp_path, [(pattern, [path.encode()])]) == set()
    assert PatternSet([pattern], folded=True).match(path.encode()) == 0
    assert (PatternSet([pattern], folded=False).match(path.encode()) == 0) == (kind != "folded")
    assert PatternSet([pattern], folded=False, exact=True).match(path.encode()) is None
    assert _why(pattern, path.encode()) == kind
