"""The config: what is accepted, every mistake with its line and words, and what a hostile file can do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError
from typing import Any

import jsonschema
import pytest
import tomlkit
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchgate.errors import ConfigError, Mistake
from patchgate.policy import config, toml_lines
from patchgate.policy.compiled_policy import checks_of
from patchgate.policy.config import parse, parse_pyproject
from patchgate.policy.file_kinds import may_have_table
from patchgate.policy.glob_matching import PatternSet, with_folder
from patchgate.policy.settings import Config
from patchgate.policy.validators import check_pattern, version_satisfies
from patchgate.report.rules import RULES
from tests.amount import often

FULL = """
required_version = ">=0.1,<2"

[policy]
allow_roots = ["src/", "README.md"]
deny_prefixes = ["runs", "meta/keys/"]
deny = ["*.pem", "/vault/", '\\!odd', "a/**/b"]
allow_delete = ["old.pem"]
deny_suffixes = [".exe"]
deny_classes = ["media"]
max_file_bytes = "off"
generated = ["*.lock"]

[policy.commit]
max_files = 0
max_added_lines = "off"
deny_classes = []
allow_modes = false
allow_symlinks = true
allow_gitlinks = "bump"

[policy.agent]
allow_symlinks = "inside"

[content]
secrets = false
conflict_markers = false
deny = ['TODO\\(\\w+\\)', "(?i)do not merge"]

[rules]
max-files = "error"
secret = "off"

[[overrides]]
paths = ["docs/"]
max_files = 100
allow_gitlinks = false

[[overrides]]
paths = ["vendor/", "third_party/"]
max_file_bytes = 10
deny_classes = ["binary"]

[commands.ruff]
kind = "lint"
command = ["ruff", "check", "{files}"]
timeout = "5m"

[apply]
max_attempts = 3
"""


def mistakes(text: str | bytes, *, pyproject: bool = False) -> tuple[Mistake, ...]:
    """Give every mistake in a text that must have some."""
    raw = text.encode() if isinstance(text, str) else text
    reader = parse_pyproject if pyproject else parse
    with pytest.raises(ConfigError) as raised:
        reader(raw, "patchgate.toml")
    return raised.value.mistakes


def mistake(text: str | bytes) -> Mistake:
    """Give the one mistake in a text."""
    (found,) = mistakes(text)
    return found


def is_accepted(text: str) -> bool:
    return isinstance(parse(text.encode(), "patchgate.toml"), Config)


# ---- what is accepted ------------------------------------------------------------------------------------


def test_an_empty_file_holds_the_defaults_of_the_design() -> None:
    empty = parse(b"", "patchgate.toml")
    assert empty == Config()
    assert empty.required_version is None
    policy = empty.policy
    assert policy.allow_roots is None
    assert policy.max_file_bytes == 1_048_576
    assert policy.deny_prefixes == policy.deny == policy.allow_delete == policy.deny_suffixes == ()
    assert policy.deny_classes == policy.generated == ()
    commit, agent = policy.commit, policy.agent
    assert (commit.max_files, commit.max_added_lines, commit.deny_classes) == (50, 2000, ("artifact",))
    assert (commit.allow_modes, commit.allow_symlinks, commit.allow_gitlinks) == (True, "inside", "bump")
    assert (agent.max_files, agent.max_added_lines) == (5, 400)
    assert agent.deny_classes == ("lock", "binary", "artifact")
    assert (agent.deny_new_classes, commit.deny_new_classes) == (("media", "output"), ())
    assert (agent.allow_modes, agent.allow_symlinks, agent.allow_gitlinks) == (False, False, False)
    assert (empty.content.secrets, empty.content.conflict_markers, empty.content.deny) == (True, True, ())
    assert (empty.rules, empty.overrides) == ({}, ())


def test_every_key_is_read() -> None:
    full = parse(FULL.encode(), "patchgate.toml")
    assert full.required_version == ">=0.1,<2"
    assert full.policy.allow_roots == ("src/", "README.md")
    assert full.policy.deny == ("*.pem", "/vault/", "\\!odd", "a/**/b")
    assert full.policy.max_file_bytes == "off"
    assert full.policy.commit.max_files == 0
    assert full.policy.commit.allow_symlinks is True
    assert full.policy.agent.allow_symlinks == "inside"
    assert full.policy.agent.max_files == 5
    assert full.content.deny == ("TODO\\(\\w+\\)", "(?i)do not merge")
    assert full.rules == {"max-files": "error", "secret": "off"}
    docs, vendor = full.overrides
    assert (docs.max_files, docs.max_added_lines, docs.allow_gitlinks) == (100, None, False)
    assert (vendor.paths, vendor.max_file_bytes, vendor.deny_classes) == (
        ("vendor/", "third_party/"),
        10,
        ("binary",),
    )


def test_allow_roots_that_are_empty_are_not_absent() -> None:
    assert parse(b"[policy]\nallow_roots = []", "patchgate.toml").policy.allow_roots == ()


def test_a_config_cannot_be_changed() -> None:
    full = parse(FULL.encode(), "patchgate.toml")
    with pytest.raises(FrozenInstanceError):
        full.policy.deny = ()  # type: ignore[misc]
    assert isinstance(hash(full.policy), int)


def test_the_written_keys_are_exactly_those_of_the_file() -> None:
    assert parse(FULL.encode(), "patchgate.toml").written == tomllib.loads(FULL)
    assert parse(b"", "patchgate.toml").written == {}
    assert parse(b"[policy.commit]\nmax_files = 50", "patchgate.toml").written == {
        "policy": {"commit": {"max_files": 50}}
    }
    assert json.dumps(parse(b"[policy]", "patchgate.toml").written) == '{"policy": {}}'


# ---- pyproject.toml ----------------------------------------------------------------------------------------


def test_a_pyproject_without_the_table_has_no_config() -> None:
    for raw in (
        b"",
        b"[project]\nname = 'x'\n",
        b"[project]\ndependencies = ['patchgate']\n",
        b"[tool.ruff]\n[tool.other.patchgate]\n",
        b"tool = 'patchgate'",
        b"this is not TOML, but nobody asked us",
        b"x = 1\n" * 300_000,
    ):
        assert parse_pyproject(raw, "pyproject.toml") is None


def test_a_pyproject_is_read_from_its_table_and_may_be_larger() -> None:
    raw = b"[project]\n# " + b"x" * 100_000 + b"\n[tool.patchgate.policy]\ndeny = ['a']\n"
    found = parse_pyproject(raw, "pyproject.toml")
    assert found is not None
    assert found.written == {"policy": {"deny": ["a"]}}
    assert parse_pyproject(b"[tool.patchgate]", "pyproject.toml") == Config()


def test_a_table_whose_name_is_spelled_with_escapes_is_found() -> None:
    found = parse_pyproject(b'[tool."\\u0070atchgate".policy]\ndeny = ["a"]', "pyproject.toml")
    assert found is not None
    assert found.policy.deny == ("a",)


@pytest.mark.parametrize(
    "line",
    ['a = ["patchgate>=1"]', "a = ['patchgate[x] ~= 1']", 'a = "\\\\."', '"patchgate >= 1" = 2', "a = 1"],
)
def test_a_file_that_names_no_table_is_none_also_where_it_is_no_toml(line: str) -> None:
    assert parse_pyproject(line.encode(), "pyproject.toml") is None
    assert parse_pyproject(f"{line}\n[the guide".encode(), "pyproject.toml") is None


_NAMES = ["patchgate", "patch\\u0067ate", "\\U00000070atchgate", "patchgate>=1", "patchgate [x]", "a"]
_MARKS = ['"', "'", '"""', "'''", ".", "=", ",", "[", "]", "{", "}", " ", "\n", "#", "\\", "1", '="x"\n']
_STARTS = ["tool", "tool.", '[tool."', "[tool]\n", "=1\n"]


@settings(max_examples=often(20_000))
@given(st.lists(st.sampled_from([*_NAMES, *_MARKS, *_STARTS]), max_size=8).map("".join))
def test_what_toml_reads_as_the_table_is_found_by_the_quick_look(text: str) -> None:
    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return
    if isinstance(tool, dict) and "patchgate" in tool:
        assert may_have_table(text.encode())


def test_keys_of_mistakes_in_a_pyproject_begin_with_the_table() -> None:
    (found,) = mistakes("[tool.x]\na = 1\n[tool.patchgate.policy]\ndeny = ['a', 1]\n", pyproject=True)
    assert (found.key, found.line) == ("tool.patchgate.policy.deny[1]", 4)
    (found,) = mistakes("tool.patchgate = 1", pyproject=True)
    assert found.key == "tool.patchgate"
    assert re.search("table.*integer", found.message)


# ---- mistakes --------------------------------------------------------------------------------------------


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines() -> None:
    found = mistakes(
        "\n".join(
            (
                "max_files = 3",
                "[policy]",
                'deny = ["fine", 1, "!not", ',
                '  "[open"]',
                "[policy.agent]",
                "max_files = true",
                "[rules]",
                'max-file = "eror"',
                "[[overrides]]",
                "max_files = 1",
            )
        )
    )
    assert [(each.line, each.key) for each in found] == [
        (1, "max_files"),
        (3, "policy.deny[1]"),
        (3, "policy.deny[2]"),
        (4, "policy.deny[3]"),
        (6, "policy.agent.max_files"),
        (8, "rules.max-file"),
        (8, "rules.max-file"),
        (9, "overrides[0].paths"),
    ]
    assert all(each.file == "patchgate.toml" and each.hint for each in found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy = 5", "table integer"),
        ("[policy]\ndeny = 5", "list strings integer"),
        ("[policy]\ndeny = [1.0]", "string float"),
        ("[policy]\ndeny = [[]]", "string list"),
        ("[policy]\ndeny = {a = 1}", "list strings table"),
        ("[policy]\ndeny = 1979-05-27", "list strings date"),
        ("[policy]\nallow_roots = 'src'", "list strings string"),
        ("[policy]\nmax_file_bytes = 1.0", 'whole number 0 "off" float'),
        ("[policy]\nmax_file_bytes = true", 'whole number 0 "off" boolean'),
        ("[policy]\nmax_file_bytes = -1", 'whole number 0 "off" -1'),
        ("[policy]\nmax_file_bytes = '1'", 'whole number 0 "off" "1"'),
        ("[policy.commit]\nallow_modes = 'true'", "true false string"),
        ("[policy.commit]\nallow_symlinks = 1", 'true false "inside" integer'),
        ("[policy.commit]\nallow_gitlinks = 'inside'", 'true false "bump" "inside"'),
        (
            "[policy]\ndeny_classes = 'lock'",
            'list "lock" "binary" "media" "artifact" "output" "lock"',
        ),
        (
            "[policy]\ndeny_classes = ['lok']",
            '"lock" "binary" "media" "artifact" "output" "lok"',
        ),
        ("required_version = 1.0", "string float"),
        ("[content]\nsecrets = 'off'", "true false string"),
        ("rules = []", "table list"),
        ("[rules]\nsecret = true", '"error" "warning" "note" "off" boolean'),
        ("[overrides]\npaths = ['a']", "list tables table"),
        ("overrides = [1]", "table integer"),
        ("[[overrides]]\npaths = []", "list empty"),
        ("[[overrides]]", "`paths` missing"),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_what_is_expected_and_what_is_there(
    text: str, words: str
) -> None:
    assert re.search(".*".join(map(re.escape, words.split())), mistake(text).message)


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("[polcy]", "polcy", "`policy`"),
        ("[policy]\ndeny_prefix = []", "policy.deny_prefix", "`deny_prefixes`"),
        ("[policy.commit]\nmax-files = 1", "policy.commit.max-files", "`max_files`"),
        ("deny_suffixes = []", "deny_suffixes", "[policy]"),
        ("conflict_markers = true", "conflict_markers", "[content]"),
        (
            "allow_symlinks = true",
            "allow_symlinks",
            "[policy.commit], [policy.agent] or [[overrides]]",
        ),
        (
            "[content]\nq = 1",
            "content.q",
            "secrets, conflict_markers, deny",
        ),
        ("[policy]\n'a b' = 1", 'policy."a b"', None),
        ("[rules]\nmax-file = 'off'", "rules.max-file", "`max-files`"),
        ("[rules]\nsecret = 'of'", "rules.secret", "`off`"),
        ("[overrides]\npaths = ['a']", "overrides", "[[overrides]]"),
        ("[policy]\ndeny = 'a'", "policy.deny", "brackets"),
        ("[content]\nsecrets = 'true'", "content.secrets", "quotes"),
    ],
)
def test_a_mistake_says_what_was_probably_meant(text: str, key: str, hint: str | None) -> None:
    found = mistake(text)
    assert found.key == key
    assert found.hint
    assert hint is None or hint in found.hint


def test_the_level_of_an_invariant_cannot_be_set() -> None:
    invariants = [rule.id for rule in RULES.values() if rule.invariant]
    assert "path-traversal" in invariants
    for rule in invariants:
        for level in ("off", "error"):
            found = mistake(f"[rules]\n{rule} = '{level}'")
            assert f"`{rule}`" in found.message
            assert "invariant" in found.message
            assert found.line == 2


def test_the_level_of_every_other_rule_can_be_set() -> None:
    free = [rule.id for rule in RULES.values() if not rule.invariant]
    assert is_accepted("[rules]\n" + "".join(f"{rule} = 'note'\n" for rule in free))


def test_a_name_with_control_characters_is_told_without_them() -> None:
    (found,) = mistakes('"a\\u001b[31m\\u202e" = 1')
    assert "\x1b" not in found.message + found.key + (found.hint or "")
    assert "\u202e" not in found.message + found.key + (found.hint or "")


# ---- single texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("/", "empty"),
        ("//", "empty"),
        ("!keep", "negation"),
        ("#note", "comment"),
        ("name\\", "escapes nothing"),
        ("name\\\\\\", "escapes nothing"),
        ("[[:alpha:]]x", "[[:class:]]"),
        ("[a", "never closed"),
        ("a*b*c*d*e*f", "4 runs"),
        ("**/a/**/b/**/c/**/d/**", "4 runs"),
        ("x" * 1001, "1000 characters"),
        ("a\0b", "NUL"),
        ("a\nb", "newline"),
        ("a//b", "empty component"),
        ("\u200c/**", "empty component"),
        ("a/\u200c\u200d/*", "empty component"),
        ("\u200c", "empty component"),
        ("./a", "component"),
        ("a/../b", "component"),
    ],
)
@pytest.mark.parametrize("key", ["deny", "generated", "allow_delete", "paths"])
def test_a_pattern_that_is_invalid_or_matches_nothing_is_a_mistake(pattern: str, word: str, key: str) -> None:
    table = "overrides = [{%s}]" if key == "paths" else "policy = {%s}"
    found = mistake(table % f"{key} = ['fine', {json.dumps(pattern)}]")
    assert word in found.message
    assert found.key.endswith(f"{key}[1]")


@pytest.mark.parametrize(
    "pattern",
    ["a", "*.pem", "/a/", "a*b*c*d", "\\!a", "\\#a", "a\\ ", "a\\\\", "[]a]", "[!a]", "é", "x" * 1000],
)
def test_an_ordinary_pattern_is_accepted(pattern: str) -> None:
    assert is_accepted(f"policy.deny = [{json.dumps(pattern)}]")


# U+200C is a letter that HFS+ ignores, U+0301 an accent.
@given(st.text("ab*?[]!^-/\\ #.:\n\0\u200c\u0301", max_size=12))
@example("\u200c/**")
@settings(max_examples=often(300), deadline=None)
def test_a_pattern_that_is_accepted_can_be_compiled(pattern: str) -> None:
    try:
        check_pattern(pattern)
    except ValueError:
        return
    for each in (pattern, with_folder(pattern)):
        assert PatternSet([each], folded=True).patterns == (each,)
        checks_of(each)


@pytest.mark.parametrize(
    "prefix", ["", "/", "/etc", "a//b", "..", "a/../b", "../a", "a\0", "a\nb", "runs/*", "a//", "a/\u200c"]
)
@pytest.mark.parametrize("key", ["allow_roots", "deny_prefixes"])
def test_a_prefix_that_no_path_can_have_is_a_mistake(prefix: str, key: str) -> None:
    found = mistake(f"policy.{key} = [{json.dumps(prefix)}]")
    assert (found.key, found.line) == (f"policy.{key}[0]", 1)


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b.c", ".github/", "app/[id].tsx", "a b", "é", "..a", "."])
def test_a_literal_path_is_accepted_as_a_prefix(prefix: str) -> None:
    assert is_accepted(f"policy.deny_prefixes = [{json.dumps(prefix)}]")


@pytest.mark.parametrize(
    "text",
    [
        'owners = [{paths = ["infra/**\\u200b"]}]',
        'owners = [{paths = ["infra/**"], signers = ["alice\\u00ad@example.com"]}]',
        'push.protected_refs = ["refs/heads/release/*\\ufe0f"]',
    ],
)
def test_who_guards_what_is_named_by_characters_that_are_seen(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), "patchgate.toml")
    assert "U+" in caught.value.mistakes[0].message


@pytest.mark.parametrize("suffix", ["", "*.pem", "a/b", "a\nb", "x" * 256, "\u200c"])
def test_a_suffix_that_is_no_end_of_a_name_is_a_mistake(suffix: str) -> None:
    assert mistake(f"policy.deny_suffixes = [{json.dumps(suffix)}]").key == "policy.deny_suffixes[0]"


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("", "1 to 500"),
        ("x" * 501, "1 to 500"),
        ("(", "not a regular expression"),
        ("[[a]", "not a regular expression"),
        ("\\p{L}", "not a regular expression"),
        ("(" * 250 + ")" * 250, ""),
        ("a{99999999999}", "not a regular expression"),
        ("(a+)+", "unbounded"),
        ("(?:a*b?)*", "unbounded"),
        ("(?:x|(?:y|z+?))*", "unbounded"),
        ("((?=a+)b){2,}", "unbounded"),
        ("(a{1,500})*", "unbounded"),
        ("(?>a+)*", "unbounded"),
        ("(a)\\1", "back-reference"),
        ("(?P<q>['\"]).(?P=q)", "back-reference"),
        ("(a)?(?(1)b|c)", "back-reference"),
        ("(?L)a", "flag L"),
        ("(?L:a)", "flag L"),
    ],
)
def test_an_expression_that_is_invalid_or_too_costly_is_a_mistake(expression: str, word: str) -> None:
    text = f"content.deny = [{json.dumps(expression)}]"
    if word:
        assert word in mistake(text).message
    else:
        # How deep Python's own parser goes is not ours to say; it must only not end in a traceback.
        assert read(text.encode())


@pytest.mark.parametrize(
    "expression",
    ["a+b*", "(ab)+", "[0-9a-f]{40}", "([0-9a-f]{128} )+", "(a{1,3})*", "(a{0,9}){0,9}", "é", "\\(?L"],
)
def test_an_ordinary_expression_is_accepted(expression: str) -> None:
    assert is_accepted(f"content.deny = [{json.dumps(expression)}]")
    assert re.compile(expression.encode())


# ---- versions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "specifier", ["", ",", "1.0", ">=", ">=1,", "=1", ">=x", f">={'9' * 5000}", "~=1", ">=1.*", "==1a1.*"]
)
def test_a_version_specifier_that_cannot_be_read_is_a_mistake(specifier: str) -> None:
    found = mistake(f"required_version = {json.dumps(specifier)}")
    assert (found.key, "clauses" in found.message) == ("required_version", True)
    with pytest.raises(ValueError, match="clauses"):
        version_satisfies(specifier, "1.0")


@pytest.mark.parametrize(
    ("specifier", "version", "holds"),
    [
        (">=0.1,<2", "0.1", True),
        (">=0.1,<2", "2", False),
        ("<2", "2rc1", False),
        ("<2.post0", "2.dev0", True),
        (">2", "2.post1", False),
        (">2a1", "2.post0", True),
        (">2a1.dev1", "2a1.post1", True),
        ("~=1.4.2", "1.4.9", True),
        ("~=1.4.2", "1.5", False),
        ("==1.0.*", "1", True),
        ("==1.0", "1.0.0+local.1", True),
    ],
)
def test_a_version_lies_within_its_clauses(specifier: str, version: str, holds: bool) -> None:
    assert version_satisfies(specifier, version) is holds


# ---- hostile files -----------------------------------------------------------------------------------------


def read(raw: bytes) -> Config | tuple[Mistake, ...]:
    """Read a file that may hold anything."""
    try:
        return parse(raw, "patchgate.toml")
    except ConfigError as error:
        return error.mistakes


@pytest.mark.parametrize(
    ("raw", "line", "word"),
    [
        (b"#" * 65_537, None, "65,537 bytes"),
        (b"\xef\xbb\xbfx = 1", 1, "byte-order mark"),
        (b"\n\nx = '\0'", 3, "NUL"),
        (b"\n# caf\xe9", 2, "not UTF-8"),
        (b"\nx = " + b"[" * 33, 2, "32 deep"),
        (b"x = " + b"[" * 60_000, 1, "32 deep"),
        (b"x = " + b"{a=" * 20_000, 1, "32 deep"),
        (b"\n" + b".".join([b"a"] * 20_000) + b" = 1", 2, "32 parts"),
        (b"[" + b".".join([b"a"] * 33) + b"]", 1, "32 parts"),
        (b"".join(b"k%d=1\n" % number for number in range(4001)), 4001, "4000 keys"),
        (b"[policy]\nx = = 1", 2, "not valid TOML"),
        (b"[policy]\n\nx = 'open", 3, "not valid TOML"),
        (b"x = 1\nx = 2\n", 2, "cannot overwrite"),
        (b"\n\nx = " + b"9" * 5000, 3, "too long"),
        (b"[policy.commit]\nmax_files = 0x" + b"f" * 60_000, 2, "beyond 64 bits"),
        (b"[rules]\nmax-files = 0x" + b"f" * 4_000, 2, "expected"),
        (b"[rules]\nmax-files = [0x" + b"f" * 4_000 + b"]", 2, "expected"),
        (b"[placeholders]\nlevel = {a = 0x" + b"f" * 4_000 + b"}", 2, "expected"),
        (b"x = 2024-02-31", 1, "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(raw: bytes, line: int | None, word: str) -> None:
    found = mistake(raw)
    assert (found.line, word in found.message) == (line, True)
    assert found.hint


def test_the_faults_of_a_files_bytes_are_told_at_once() -> None:
    assert [each.line for each in mistakes(b"\xef\xbb\xbf\n\0\n\xff")] == [1, 2, 3]


def test_a_nesting_that_only_the_parser_notices_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(_: str) -> dict[str, Any]:
        raise RecursionError

    monkeypatch.setattr(tomllib, "loads", overflow)
    assert "32 deep" in mistake(b"x = 1").message


def test_a_file_of_4000_unknown_names_is_told_whole() -> None:
    rules = "[rules]\n" + "".join(f"r{number}='off'\n" for number in range(3990))
    assert len(mistakes(rules)) == 3990


@given(st.binary(max_size=60) | st.text("[]{}=,.\"'\\\n#ab1 \0é", max_size=60).map(str.encode))
@settings(max_examples=often(300), deadline=None)
def test_any_bytes_end_in_a_config_or_in_mistakes(raw: bytes) -> None:
    found = read(raw)
    if isinstance(found, Config):
        return
    assert found
    assert "pydantic" not in str(found)
    assert all(each.line is None or 1 <= each.line <= raw.count(b"\n") + 1 for each in found)


KEYS = [
    "policy",
    "commit",
    "deny",
    "max_files",
    "allow_symlinks",
    "rules",
    "overrides",
    "paths",
    "secret",
    "content",
    "commands",
    "command",
    "timeout",
    "env",
    "apply",
    "max_attempts",
]
values = st.recursive(
    st.none().map(lambda _: "off")
    | st.integers(-(2**70), 2**70)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.dates()
    | st.sampled_from(["error", "a*", "!", "inside", "bool", "[key]"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, "bool", "[key]", "0"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
@settings(max_examples=often(150), deadline=None)
def test_any_values_end_in_a_config_or_in_mistakes_that_have_lines(table: dict[str, Any]) -> None:
    found = read(tomlkit.dumps(table).encode())
    if not isinstance(found, Config):
        assert all(each.line and each.key and each.message and each.hint for each in found)


# ---- where a key stands, the schema, what is imported ----------------------------------------------------


def test_a_key_is_located_or_else_what_encloses_it() -> None:
    raw = b"[policy]\ndeny = [\n  'a',\n  'b',\n]\n[[overrides]]\n[[overrides]]\npaths = ['x']\n"
    assert toml_lines.locate(raw, ("policy", "deny", 1)) == 4
    assert toml_lines.locate(raw, ("policy", "deny", 7)) == 2
    assert toml_lines.locate(raw, ("policy", "commit", "max_files")) == 1
    assert toml_lines.locate(raw, ("overrides", 1, "paths", 0)) == 8
    assert toml_lines.locate(raw, ("overrides", 0, "paths")) == 6
    assert toml_lines.locate(raw, ("content",)) is None


def test_the_schema_is_valid_and_agrees_with_the_reader() -> None:
    schema = config.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(tomllib.loads(FULL))
    assert validator.is_valid({})
    mistaken: list[dict[str, Any]] = [
        {"polcy": {}},
        {"policy": {"allow_roots": None}},
        {"policy": {"max_file_bytes": -1}},
        {"overrides": [{}]},
        {"overrides": [{"paths": []}]},
        {"rules": {"secret": "fatal"}},
    ]
    assert not any(validator.is_valid(each) for each in mistaken)
    assert "null" not in json.dumps(schema)


def test_every_key_of_the_schema_has_a_description() -> None:
    schema = config.json_schema()
    for table, definition in {"": schema, **schema["$defs"]}.items():
        assert definition["description"].endswith(".")
        for key, value in definition["properties"].items():
            if "$ref" not in value:
                assert value.get("description", "").endswith("."), f"{table}.{key}"


def test_the_reader_imports_nothing_that_a_good_commit_does_not_need() -> None:
    program = (
        "import sys; import patchgate.policy.config as config; "
        "heavy = {'tomlkit', 'pygit2', 'pathspec', 'click', 'difflib', 'patchgate.policy.toml_lines'}; "
        "assert not heavy & set(sys.modules) and 'tomllib' not in sys.modules; "
        "config.parse(b'[policy]\\ndeny = [\"a\"]\\n[rules]\\nsecret = \"off\"', 'patchgate.toml'); "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
