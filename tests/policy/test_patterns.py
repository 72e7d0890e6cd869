"""The matcher against git, against pathspec, and against each promise where it differs from both."""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec, PathSpec

from patchgate.errors import UndecidedError
from patchgate.git.path import fold
from patchgate.policy import gitignore_pattern, literal_index
from patchgate.policy import glob_matching as patterns_module
from patchgate.policy.glob_matching import PatternError, PatternSet, PrefixSet
from patchgate.policy.glob_syntax import STAR, parse
from tests.amount import often
from tests.world import Repo


def matches(pattern: str, path: str | bytes, *, folded: bool = False) -> bool:
    raw = path.encode() if isinstance(path, str) else path
    return PatternSet([pattern], folded=folded).match(raw) == 0


# ---- the oracles ------------------------------------------------------------------------------------------


class Git:
    """`git check-ignore` in an empty repository of its own, where nothing but the given patterns holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.run(["init", "--quiet", "--template=", "."])
        self.run(["config", "core.ignoreCase", "false"])
        (folder / ".git" / "info").mkdir()

    def run(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    def ignored(self, patterns: Sequence[str], paths: Sequence[str]) -> set[str]:
        (self.folder / ".git" / "info" / "exclude").write_text("".join(f"{each}\n" for each in patterns))
        asked = "".join(f"{path}\0" for path in paths).encode()
        answer = self.run(["check-ignore", "--no-index", "--stdin", "-z"], asked)
        return set(answer.decode().split("\0")) - {""}


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("oracle"))


def in_gitignore_words(pattern: str) -> list[str]:
    """Say a pattern with the deliberate differences in patterns that git and pathspec read alike.

    `dir/` is said as `dir`; a component with a class or an escape is said both as it is and as its own text.
    """
    body = pattern.removesuffix("/")
    readings = [
        (part, re.sub(r"([\\\[\]*?!#])", r"\\\1", part)) if re.search(r"[\[\\]", part) else (part,)
        for part in body.split("/")
    ]
    slash = "" if "/" in body or "*" in body else "**/"
    return [slash + "/".join(chosen) for chosen in itertools.product(*readings)]


def first_by_pathspec(patterns: Sequence[str], path: str) -> int | None:
    for index, pattern in enumerate(patterns):
        if any(GitIgnoreSpec.from_lines([each]).match_file(path) for each in in_gitignore_words(pattern)):
            return index
    return None


NAMES = ["a", "b", "ab", "ba", "aab", "a.b", "abab", "[a]b", "[ab]", "#a", "!b", "a ", "b-a", "]"]
PATHS = [
    "/".join(parts)
    for count in (1, 2, 3)
    for parts in itertools.product(NAMES if count == 1 else NAMES[: 10 - count * 2], repeat=count)
] + ["a/b/a/b", "a/b/ab/ba/a", "b/b/b/b/b", "ab/[ab]", "a/[ab]/b", "a/[ab]/x.b", "#a/b", "a/!b", "a /b"]

CLASSES = ["[ab]", "[a-b]", "[]a]", r"[\]a]", "[b-]", "[b-a]", "[.#]", "[[]"]
NEGATED = ["[!a]", "[^b]", "[!]]", "[^b-a]"]
WORDS = ["a", "b", "ab", ".b", "-", r"\a", r"\*", r"\#a", r"\!b", r"a\ ", r"\[", "]"]


def components(atoms: Sequence[str]) -> st.SearchStrategy[str]:
    parts = st.lists(st.sampled_from([*atoms, "*", "?", "*"]), min_size=1, max_size=4).map("".join)
    return st.one_of(st.just("**"), st.sampled_from(NAMES[:7]), parts)


def written(atoms: Sequence[str]) -> st.SearchStrategy[str]:
    body = st.lists(components(atoms), min_size=1, max_size=4).map("/".join)
    whole = st.tuples(st.sampled_from(["", "/"]), body, st.sampled_from(["", "/"])).map("".join)
    # git compares the literal beginning by itself, and so reads `a**/b` as `a` and `**/b`: see its own test.
    return whole.filter(lambda pattern: pattern[0] not in "#!" and not re.search(r"[^/*]\*\*+/", pattern))


@given(patterns=st.lists(written([*WORDS, *CLASSES, *NEGATED]), min_size=1, max_size=3))
@settings(max_examples=often(200), deadline=None)
@example(patterns=["[!a]b"])
@example(patterns=["a***b", "***", "a/***/b"])
@example(patterns=["a/**b", "**a/b"])
@example(patterns=["a/**/", "**/"])
@example(patterns=["a\\/b"])
def test_what_matches_is_what_git_ignores(git: Git, patterns: list[str]) -> None:
    said = [each for pattern in patterns for each in in_gitignore_words(pattern)]
    compiled = PatternSet(patterns, folded=False)
    assert {path for path in PATHS if compiled.match(path.encode()) is not None} == git.ignored(said, PATHS)


@given(
    patterns=st.lists(written([*WORDS, "[ab]", "[a-b]", "[]a]", "[.#]"]), min_size=1, max_size=5),
    paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=10),
    folded=st.booleans(),
)
@settings(max_examples=often(300), deadline=None)
def test_the_first_match_is_the_first_that_pathspec_finds(
    patterns: list[str], paths: list[str], folded: bool
) -> None:
    compiled = PatternSet(patterns, folded=folded)
    for path in paths:
        assert compiled.match(path.encode()) == first_by_pathspec(patterns, path)


@given(
    patterns=st.lists(written(["a", "B", "aB", "[Ab]", "É"]), min_size=1, max_size=3),
    paths=st.lists(
        st.lists(st.sampled_from(["a", "B", "Ab", "bA", "É", "e\u0301b"]), min_size=1), min_size=1
    ),
)
@settings(max_examples=often(200), deadline=None)
@example(patterns=["?"], paths=[["É"]])
def test_folded_is_the_same_as_folding_both_sides_first(patterns: list[str], paths: list[list[str]]) -> None:
    """But for `?`, which is a byte here and a byte or a character there."""
    compiled = PatternSet(patterns, folded=True)
    plain = PatternSet([fold(pattern.encode()) for pattern in patterns], folded=False)
    for path in ["/".join(parts) for parts in paths]:
        if path.isascii() or not any("?" in pattern for pattern in patterns):
            assert compiled.match(path.encode()) == plain.match(fold(path.encode()).encode())


@given(patterns=st.lists(written([*WORDS, *CLASSES, *NEGATED]), min_size=1, max_size=6))
@settings(max_examples=often(100), deadline=None)
def test_many_patterns_together_answer_as_each_alone_whatever_was_asked_before(patterns: list[str]) -> None:
    together = PatternSet(patterns, folded=False)
    alone = [PatternSet([pattern], folded=False) for pattern in patterns]
    for path in [*PATHS[:200], *reversed(PATHS[-30:])]:
        expected = next((at for at, one in enumerate(alone) if one.match(path.encode()) == 0), None)
        assert together.match(path.encode()) == expected


# ---- gitignore, sentence by sentence ----------------------------------------------------------------------

MATCHING = [
    ("*.key", "deep/in/a.key"),
    ("name", "name"),
    ("name", "x/name/y"),
    ("/name", "name/y"),
    ("x/name", "x/name"),
    ("**/name", "name"),
    ("**/x/*.pem", "a/x/b.pem"),
    ("a/**", "a/b/c"),
    ("a/**/b", "a/b"),
    ("a/**/b", "a/x/y/b/z"),
    ("**", "a"),
    ("*", "a/b"),
    ("*/", "a"),
    ("a?c", "abc"),
    ("[a-c]x", "bx"),
    ("[c-a]x", "cx"),
    ("[!a-c]x", "dx"),
    ("[^a-c]x", "dx"),
    (r"\#a", "#a"),
    (r"\!a", "!a"),
    (r"a\ ", "a "),
    ("a   ", "a"),
    (r"a\   ", "a "),
    (r"\*", "*"),
    ("a*b*c", "a-b-b-c"),
    ("id_rsa*", "id_rsa"),
    ("/t*.sh", "t1.sh"),
    ("Documentation/*/*.adoc", "Documentation/x/y.adoc"),
]
NOT_MATCHING = [
    ("*.key", "a.keys"),
    ("/name", "x/name"),
    ("x/name", "y/x/name"),
    ("a/**", "a"),
    ("a/**/b", "ab"),
    ("a/*/b", "a/b"),
    ("a/*/b", "a/x/y/b"),
    ("a?c", "a/c"),
    ("a[!b]c", "a/c"),
    ("*.py", ".pyx"),
    ("aa*aa", "aaa"),
    (r"\*", "a"),
    ("name", "rename"),
    ("name", "names"),
    ("a\\ ", "a"),
    (" a", "a"),
    ("NAME", "name"),
    ("[b-a]", "a"),
]


@pytest.mark.parametrize(("pattern", "path"), MATCHING)
def test_a_pattern_matches_where_gitignore_says_so(git: Git, pattern: str, path: str) -> None:
    assert matches(pattern, path)
    assert git.ignored(in_gitignore_words(pattern) if pattern.endswith("/") else [pattern], [path]) == {path}


@pytest.mark.parametrize(("pattern", "path"), NOT_MATCHING)
def test_a_pattern_does_not_match_where_gitignore_says_no(git: Git, pattern: str, path: str) -> None:
    assert not matches(pattern, path)
    assert git.ignored([pattern], [path]) == set()


def test_the_first_pattern_of_the_list_is_named_even_where_a_folder_was_matched_by_a_later_one() -> None:
    compiled = PatternSet(["*.pem", "secrets/", "secrets/a/b.pem", "s*"], folded=False)
    assert compiled.match(b"secrets/a/b.pem") == 0
    assert compiled.match(b"secrets/a/b.txt") == 1
    assert compiled.match(b"secret") == 3
    assert compiled.match(b"public/b.txt") is None


def test_a_set_without_patterns_is_false_and_matches_nothing() -> None:
    assert not PatternSet([], folded=True)
    assert PatternSet([], folded=True).match(b"a/b") is None
    assert PatternSet(["a"], folded=True)


def test_a_slash_inside_a_class_anchors_the_pattern_and_is_never_matched(git: Git) -> None:
    paths = ["abb", "aab", "x/abb", "a/b", "a[a/b]b"]
    assert git.ignored(["a[a/b]b"], paths) == {"abb", "aab"}
    assert {path for path in paths if matches("a[a/b]b", path)} == {"abb", "aab"}


def test_stars_behind_a_literal_beginning_go_over_folders_as_git_lets_them(git: Git) -> None:
    """gitignore(5): other consecutive asterisks are regular asterisks; git's dir.c does not keep to it."""
    paths = ["ab", "ax/b", "ax/y/b", "xab", "b", "a/b"]
    assert git.ignored(["a**/b"], paths) == {"ab", "ax/b", "ax/y/b", "a/b"}
    assert {path for path in paths if matches("a**/b", path)} == {"ab", "ax/b", "ax/y/b", "a/b"}


# ---- the deliberate differences ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "position", "said"),
    [
        ("!a", 1, "negation"),
        ("", 1, "empty"),
        ("  ", 1, "empty"),
        ("/", 1, "empty"),
        ("#a", 1, "comment"),
        ("a[b", 1, "never closed"),
        ("a\\", 1, "escapes nothing"),
        ("a//b", 1, "empty component"),
        ("//a", 1, "empty component"),
        ("a[/b", 1, "never closed"),
        ("a[!]", 1, "never closed"),
        ("[[:alpha:]]", 1, "not supported"),
    ],
)
def test_a_pattern_that_is_negated_or_can_match_nothing_is_refused(
    pattern: str, position: int, said: str
) -> None:
    with pytest.raises(PatternError, match=said) as caught:
        PatternSet(["fine", pattern], folded=True)
    assert caught.value.position == position


@pytest.mark.parametrize("pattern", ["vault", "vault/", "va[u]lt/", "v*t/", "/vault/", "**/vault/"])
def test_a_pattern_that_matches_a_folder_matches_everything_beneath(pattern: str) -> None:
    assert matches(pattern, "vault/deep/er/key.txt")


@pytest.mark.parametrize("pattern", ["vault/", "/vault/", "**/vault/", "v?ult/"])
def test_a_pattern_for_a_folder_matches_a_file_of_that_name_too(pattern: str) -> None:
    """hardening, Measured 6: pathspec's `/vault/` does not deny a file `vault`."""
    assert not GitIgnoreSpec.from_lines([pattern]).match_file("vault")
    assert matches(pattern, "vault")


@pytest.mark.parametrize(
    "pattern", ["secrets/", "**/secrets/**", "**/secrets/*", "key", "k*y", "**/[s]ecrets/"]
)
def test_a_newline_in_a_folder_does_not_hide_what_is_below(pattern: str) -> None:
    """hardening, Measured 6: pathspec finds nothing here for `secrets/` and `**/secrets/**`."""
    assert matches(pattern, b"a\nb/secrets/key")
    assert matches(pattern, b"a\nb/secrets/key", folded=True)


@pytest.mark.parametrize(
    ("pattern", "path"), [("a?b", b"a\nb"), ("[!x]*", b"\n"), ("*.py", b"\n.py"), ("?b*", b"\nb\n")]
)
def test_a_newline_is_a_character_like_any_other(pattern: str, path: bytes) -> None:
    assert matches(pattern, path)
    assert matches(pattern, b"x/" + path + b"/y")


def test_a_name_with_a_newline_at_its_end_is_another_name() -> None:
    assert not matches("a.py", b"a.py\n")
    assert not matches("[a].py", b"a.py\n")
    assert not matches("*.py", b"a.py\n")
    assert not matches("a*[p]y", b"a.py\n")


@given(st.characters(exclude_characters="/bB", exclude_categories=["Cs"]))
@example("\u200c")
@example("\u00df")
@example("\U0001d15e")
@settings(max_examples=often(2_000), deadline=None)
def test_a_question_mark_and_a_class_match_each_character(character: str) -> None:
    """Also one that folds to none, or to several."""
    assert matches("stra\u00dfe-?/**", f"stra\u00dfe-{character}/x", folded=True)
    assert matches("a-[!b]", f"A-{character}", folded=True)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("zone-[A-Za-z\u00c0-\u00ff]/**", "zone-\u00df/x"),
        ("zone-[\u00df-\u00fc]/**", "zone-\u1e9e/x"),
        ("stra\u00dfe-?/**", "STRA\u1e9eE-\u200c/x"),
        ("infra-?/**", "in\u200cfra-\u00df/x"),
        ("infra-[!0-9]/**", "INFRA-\ufeff/x"),
        ("zone-[!\u00e9]/**", "zone-\u00c9/x"),
        ("d-??/**", "d-e\u0301/x"),
        ("caf\u00e9-?/**", "CAFE\u0301-\u1e9e/x"),
        ("caf\u00e9-?/**", "cafe\u0301-\U0001d15e/x"),
        ("infra/**", "in\u00adfra\ufe0f/x"),
    ],
)
def test_what_folds_to_several_or_none_is_a_character_of_a_class_too(pattern: str, path: str) -> None:
    assert matches(pattern, path, folded=True)


@pytest.mark.parametrize("folded", [False, True])
def test_bytes_that_are_not_utf8_match_like_any_other_character(folded: bool) -> None:
    for pattern in ("*.key", "a?.key", "a[!b].key", "**/x/a*", "x/"):
        assert matches(pattern, b"x/a\xff.key", folded=folded), pattern
    assert not matches("a??.key", b"x/a\xff.key", folded=folded)


def test_a_name_with_brackets_matches_itself_and_what_its_class_matches() -> None:
    """design 10: `a[1].py` is a character class to a glob, and Next.js has `[id].tsx`."""
    assert matches("a[1].py", "a[1].py")
    assert matches("a[1].py", "a1.py")
    assert matches("[id].tsx", "app/users/[id].tsx")
    assert matches("[id].tsx", "app/users/i.tsx")
    assert not matches("[id].tsx", "app/users/id.tsx")
    assert matches("app/[id]/*.tsx", "app/[id]/page.tsx")
    assert matches("app/[id]/", "app/[id]/page.tsx")
    assert matches("App/[ID]/", "app/[id]/page.tsx", folded=True)


def test_a_literal_name_keeps_its_place_in_the_list() -> None:
    compiled = PatternSet(["*.py", "[id].tsx", "\\[id\\].tsx"], folded=False)
    assert compiled.match(b"[id].tsx") == 1
    assert PatternSet(["\\[id\\].tsx", "[id].tsx"], folded=False).match(b"[id].tsx") == 0


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("SECRETS/", "secrets/key"),
        ("secrets/", "SECRETS/key"),
        ("Secrets/**/*.KEY", "secrets/a/b.key"),
        ("[A-Z].py", "q.py"),
        ("[a-z].py", "Q.py"),
        ("[Z-a]", "z"),
        ("caf\u00e9/", "cafe\u0301/menu"),
        ("cafe\u0301*", "CAF\u00c9.txt"),
        ("caf[e\u0301]", "caf\u00e9"),
        ("stra\u00dfe", "STRASSE"),
    ],
)
def test_folded_matches_across_case_and_normal_forms(pattern: str, path: str) -> None:
    """hardening, Policy and output: deny matches after NFC and case folding, allow matches exactly."""
    assert matches(pattern, path, folded=True)
    assert not matches(pattern, path, folded=False)


def test_a_folded_negated_class_matches_where_git_does_though_folding_would_leave_it_out() -> None:
    assert matches("[!A].py", "a.py", folded=True)
    assert matches("[!a].py", "A.py", folded=True)
    assert matches("[!a].py", "B.py", folded=True)
    assert not matches("[!a].py", "a.py", folded=True)


# ---- cost -------------------------------------------------------------------------------------------------

HOSTILE_PATTERNS = [
    "a*a*a*a*b",
    "*a*a*a*[b]",
    "*?*?*?*?b",
    "**/a/**/a/**/a/**/b",
    "**/a*/**/a*/**/[b]",
    "/a/**/a/**/a/**/a*b",
    "[a]/**/[!b]/**/?/**/b*b",
]


@pytest.mark.parametrize("folded", [False, True])
def test_hostile_paths_of_4096_bytes_are_answered(folded: bool) -> None:
    """hardening, Measured 6: eight stars in one pattern took pathspec over 20 s."""
    compiled = PatternSet([*HOSTILE_PATTERNS, "*a" * 40 + "[b]", "**/a/" * 40 + "b"], folded=folded)
    for path in (b"a" * 4096, b"a/" * 2047 + b"a", b"aa/" * 1365 + b"a", b"/" * 4096, b"\xff" * 4096):
        assert compiled.match(path) is None
    assert compiled.match(b"a" * 4095 + b"b") == 0
    assert compiled.match(b"a/" * 2047 + b"b") == 3


def test_what_is_remembered_stays_bounded_and_forgetting_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(literal_index, "_MAX_FOLDERS", 10)
    monkeypatch.setattr(patterns_module, "_MAX_SPECS", 1)
    compiled = PatternSet(["f3/", "*.key", "*.pem"], folded=False)
    for _ in range(2):
        for number in range(100):
            expected = 0 if number == 3 else 1
            assert compiled.match(b"f%d/x/y/a.key" % number) == expected
            assert compiled.match(b"f%d/x/y/a.pem" % number) == (0 if number == 3 else 2)
            assert sum(map(len, compiled._index._folders)) <= 50 + len("f99f99/xf99/x/y")
            assert len(compiled._specs) == 1
    compiled.match(b"a" * 3000 + b"/b")
    assert all(len(folder) <= 512 for folder in compiled._index._folders)


def test_the_folders_of_a_long_path_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = literal_index.LiteralIndex._with_name

    def counting(self: literal_index.LiteralIndex, found: frozenset[int], name: str) -> frozenset[int]:
        looked.append(name)
        return real(self, found, name)

    monkeypatch.setattr(literal_index.LiteralIndex, "_with_name", counting)
    compiled = PatternSet(["*.key"], folded=False)
    for number in range(100):
        assert compiled.match(b"a/" * 1000 + b"b%d/c" % number) is None
    assert len(looked) == 1000 + 100 * 2


def test_what_is_known_of_one_long_path_is_not_taken_for_another() -> None:
    chance = random.Random(5)
    patterns = ["*.key", "b/**/cc/x", "a/a/**/ab", "x/a/**/x/b/x"]
    kept = PatternSet(patterns, folded=False)
    names = [b"a", b"b", b"ab", b"cc", b"a.key", b"x"]
    path: list[bytes] = []
    found = set()
    for _ in range(400):
        path = path[: chance.randrange(len(path) + 1)]
        path += chance.choices(names, weights=[600, 9, 1, 1, 1, 3], k=chance.randrange(400, 500) - len(path))
        raw = b"/".join(path)
        answer = kept.match(raw)
        assert answer == PatternSet(patterns, folded=False).match(raw)
        found.add(answer)
    assert len(found) > 2


def test_pathspec_is_loaded_by_the_first_path_that_could_match() -> None:
    """design 3, the fast path: what a hook imports is what it costs, and pathspec costs 47 ms."""
    code = (
        "import sys; from patchgate.policy.glob_matching import PatternSet;"
        "deny = PatternSet(['*.pem', 'runs/', '**/x/**'], folded=True);"
        "found = [deny.match(path) for path in (b'src/a.py', b'README.md')];"
        "print(found, 'pathspec' in sys.modules, end=' ');"
        "print(deny.match(b'keys/a.PEM'), 'pathspec' in sys.modules, 'pydantic' in sys.modules)"
    )
    root = Path(patterns_module.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout == "[None, None] False 0 True False\n"


def test_a_list_is_matched_by_a_pathspec_of_those_patterns_that_could_match() -> None:
    deny = PatternSet(["*.pem", "keys/*.pem", "runs/"], folded=True)
    assert deny.match(b"keys/a.pem") == 0
    (spec, positions) = next(iter(deny._specs.values()))
    assert isinstance(spec._spec, PathSpec)
    assert positions == [1, 0]


@pytest.mark.parametrize(("earned", "is_ended"), [(0.0, True), (1.0, False)])
def test_patterns_that_take_longer_than_their_paths_earn_end_undecided(
    earned: float, is_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand patterns of many `?` take a second for one path of 4,000 bytes."""
    monkeypatch.setattr(gitignore_pattern.TimedPatterns, "overdrawn", 0.0)
    monkeypatch.setattr(gitignore_pattern, "_MOST_SECONDS", 0.0)
    monkeypatch.setattr(gitignore_pattern, "_EARNED", earned)
    deny = PatternSet(["a*" + "?" * 50 + "[b]"], folded=True)
    assert deny.match(b"a" * 200) is None
    with pytest.raises(UndecidedError) if is_ended else nullcontext():
        assert deny.match(b"a" * 201) is None
        assert not is_ended


def test_a_change_is_undecided_where_the_patterns_of_its_policy_take_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[policy]\ndeny = ["*.pem"]\n')
    repo.stage({"a.pem": "x\n"})
    assert repo.cli("check").code == 1
    monkeypatch.setattr(gitignore_pattern.TimedPatterns, "overdrawn", 1e9)
    answer = repo.cli("check")
    assert (answer.code, "fewer wildcards" in answer.out + answer.err) == (3, True)


# ---- prefixes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["runs", "runs/", "/runs", "./runs//"])
def test_a_prefix_is_a_folder_or_file_at_the_root_and_all_below(prefix: str) -> None:
    compiled = PrefixSet([prefix], folded=False)
    assert compiled.match(b"runs") == 0
    assert compiled.match(b"runs/a/b") == 0
    assert compiled.match(b"runs_evil") is None
    assert compiled.match(b"runs_evil/a") is None
    assert compiled.match(b"x/runs/a") is None
    assert compiled.match(b"run") is None
    assert compiled.match(b"RUNS/a") is None


def test_a_prefix_is_literal() -> None:
    compiled = PrefixSet(["a[1]/*", "src/a b"], folded=False)
    assert compiled.match(b"a[1]/*/x") == 0
    assert compiled.match(b"a1/x") is None
    assert compiled.match(b"src/a b") == 1


def test_the_first_prefix_of_the_list_is_named() -> None:
    assert PrefixSet(["src/a/b", "src"], folded=False).match(b"src/a/b/c") == 0
    assert PrefixSet(["src", "src/a/b"], folded=False).match(b"src/a/b/c") == 0
    assert PrefixSet(["lib", "src/a", "src"], folded=False).match(b"src/b") == 2


def test_prefixes_fold_case_and_normal_forms_where_asked() -> None:
    compiled = PrefixSet(["Runs/Caf\u00e9"], folded=True)
    assert compiled.match("RUNS/cafe\u0301/x".encode()) == 0
    assert compiled.match(b"runs") is None
    assert compiled.match(b"a\xff/" * 1000) is None


def test_no_prefix_matches_nothing_and_the_empty_prefix_everything() -> None:
    assert not PrefixSet([], folded=False)
    assert PrefixSet([], folded=False).match(b"a") is None
    assert PrefixSet([""], folded=False)
    assert PrefixSet(["."], folded=False).match(b"a/b") == 0


@given(st.text(alphabet="ab*?[]!-\\/ \n.É", max_size=12))
@settings(max_examples=often(300), deadline=None)
def test_any_text_is_either_refused_or_read_into_components_that_are_not_empty(pattern: str) -> None:
    try:
        segments = parse(pattern, fold)
    except PatternError:
        return
    assert segments
    assert all(segment.pieces for segment in segments)
    assert segments[-1].pieces == (STAR,) or not segments[-1].is_any_depth
    PatternSet([pattern], folded=True).match(b"a/b")
