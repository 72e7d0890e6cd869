"""A compiled policy: it catches whatever a rule of the policy reports, and never ordinary work.

`is_suspicious` and `reads` read a `CompiledPolicy` as its docstring says: the reference for `recognise`.
"""

from __future__ import annotations

import marshal
import re
import string
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.placeholders.placeholder_matches import find_matches
from patchgate.policy.compiled_policy import ADDED_LINE, CompiledPolicy, checks_of, compile_policy
from patchgate.policy.config import parse
from patchgate.policy.config_types import FileClass
from patchgate.policy.content_rules import SECRET_FORMS, is_conflict_marker
from patchgate.policy.file_kinds import CLASSES, MANIFESTS, is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.regular_expressions import check_expression
from patchgate.policy.settings import (
    ClaimsSettings,
    ComponentSettings,
    Config,
    ContentSettings,
    MarkerSettings,
    OverrideSettings,
    PlaceholdersSettings,
    PolicySettings,
    ProfileSettings,
)
from patchgate.policy.validators import TextError, check_pattern, check_prefix
from patchgate.report.rules import RULES
from patchgate.values import asdict
from tests.amount import often

PLAIN = string.ascii_letters + string.digits + "_+=,@%()[]{}!#$&;'^. -"


def policy(toml: str = "") -> Policy:
    return Policy(parse(toml.encode(), "patchgate.toml"))


def suspicion(toml: str = "") -> CompiledPolicy:
    found = compile_policy(policy(toml))
    assert found is not None, "everything is suspicious"
    return found


def is_suspicious(found: CompiledPolicy, path: str) -> bool:
    assert path.isascii()
    if found.roots is not None and not any(
        path == root or path.startswith(root + "/") for root in found.roots
    ):
        return True
    folded = path.lower()
    return any(folded == prefix or folded.startswith(prefix + "/") for prefix in found.prefixes) or any(
        name in found.names
        or name.endswith(found.endings)
        or name.startswith(found.beginnings)
        or any(part in name for part in found.parts)
        for name in folded.split("/")
    )


def reads(found: CompiledPolicy, output: bytes) -> bool:
    return any(text in output for text in found.texts) or any(
        text in output.lower() for text in found.small_texts
    )


# ---- ordinary work ----------------------------------------------------------------------------------------

ORDINARY = [
    "src/app/main.py",
    "docs/index.md",
    "app/blog/[id].tsx",
    "README.md",
    "Makefile",
    ".github/workflows/ci.yml",
    ".gitignore",
    "package.json",
    "Cargo.toml",
    "src/key.rs",
    "web/Button (copy).jsx",
    "build/index.js",
    "tests/data/case-1.txt",
    "img/logo.svg",
]
TYPICAL = """
required_version = ">=0.0.1"
[policy]
allow_roots = ["./"]
deny_prefixes = ["vendor/", "infra/prod"]
deny = [
  "*.key", "*.pem", ".env*", "**/secrets/", "*.py[co]", "/dist", "*credential*",
  "src/generated/*.py", "config/*.prod.yaml",
]
deny_suffixes = [".exe", ".jks"]
max_file_bytes = 500000
[policy.commit]
deny_classes = ["artifact", "binary"]
[content]
deny = ['(?i)do not commit', '\\bpdb\\.set_trace\\(']
[[overrides]]
paths = ["docs/"]
max_added_lines = 5000
max_files = 20
"""


@pytest.mark.parametrize("toml", ["", TYPICAL], ids=["default", "typical"])
@pytest.mark.parametrize("path", ORDINARY)
def test_an_ordinary_path_is_not_suspicious(toml: str, path: str) -> None:
    assert not is_suspicious(suspicion(toml), path)


@pytest.mark.parametrize(
    "path",
    [
        "vendor/x.c",
        "Vendor",
        "infra/PROD/main.tf",
        "a/server.KEY",
        ".env.local",
        "a/Secrets/b.txt",
        "a/secrets",
        "a.pyc",
        "dist/a",
        "a/my_Credentials/b",
        "src/generated/a.py",
        "config/db.prod.yaml",
        "tool.EXE",
        "lib/x.jar",
        "uv.lock",
        "a/node_modules/b/c.js",
        "patchgate.toml",
        "PatchGate.toml",
        ".patchgate/allowed_signers",
        "pyproject.toml",
        ".pre-commit-config.yaml",
        "a/.gitattributes",
        ".gitmodules",
        ".git/config",
        "a/.git./b",
        ".GIT /config",
        "..",
    ],
)
def test_what_a_policy_speaks_of_is_suspicious(path: str) -> None:
    assert is_suspicious(suspicion(TYPICAL), path)


def test_an_ordinary_change_of_text_is_not_suspicious() -> None:
    lines = (
        b"--- a/x.py",
        b"+++ b/x.py",
        b"@@ -1 +1,3 @@ def main():",
        b"-pass",
        b"+=======",
        b"+ <<<<<<< x",
    )
    output = b"\n".join(lines) + b"\n"
    assert not reads(suspicion(), output)
    assert not reads(suspicion(TYPICAL), output)


def test_it_holds_nothing_but_what_marshal_takes() -> None:
    for toml in ("", TYPICAL):
        values = asdict(suspicion(toml))
        assert marshal.loads(marshal.dumps(values)) == values


# ---- patterns ---------------------------------------------------------------------------------------------

PATTERNS: list[tuple[str, list[tuple[str, str]]]] = [
    ("/x/Y", [("prefixes", "x/y")]),
    ("x/y/", [("prefixes", "x/y")]),
    ("src/**", [("prefixes", "src")]),
    ("x", [("names", "x")]),
    ("**/x/", [("names", "x")]),
    ("*.key", [("endings", ".key")]),
    ("src/*.key", [("endings", ".key")]),
    ("foo*", [("beginnings", "foo")]),
    ("a*bc", [("endings", "bc")]),
    ("ab*c", [("beginnings", "ab")]),
    ("*secret*", [("parts", "secret")]),
    ("?a?", [("parts", "a")]),
    ("src/generated/*.py", [("prefixes", "src/generated")]),
    ("packages/*/dist/**", [("names", "dist")]),
    ("**/secrets/*.json", [("names", "secrets")]),
    ("migrations/*", [("prefixes", "migrations")]),
    ("*.py[co]", [("endings", ".pyc"), ("endings", ".pyo"), ("names", "*.py[co]")]),
    ("[id].tsx", [("names", "d.tsx"), ("names", "i.tsx"), ("names", "[id].tsx")]),
    ("[!a]bc[a-z]d", [("parts", "bc"), ("names", "[!a]bc[a-z]d")]),
    ("log[0-9]", [*(("names", f"log{digit}") for digit in range(10)), ("names", "log[0-9]")]),
    (
        "log[0-9][0-9]x",
        [*(("beginnings", f"log{digit}") for digit in range(10)), ("names", "log[0-9][0-9]x")],
    ),
    (r"\#A", [("names", "#a"), ("names", r"\#a")]),
    ("ſecret*", [("beginnings", "secret")]),
    ("*.\u212aey", [("endings", ".key")]),
    ("/Stra\N{LATIN SMALL LETTER SHARP S}e", [("prefixes", "strasse")]),
    ("docs/É*", []),
    ("[é]a/bc", [("names", "bc")]),
    ("*", [("prefixes", "")]),
    ("**", [("prefixes", "")]),
    ("*/?", [("prefixes", "")]),
    ("[a-z]?", [("prefixes", "")]),
]


@pytest.mark.parametrize(("pattern", "checks"), PATTERNS, ids=[pattern for pattern, _ in PATTERNS])
def test_a_pattern_is_looked_for_by_its_longest_literal_text(
    pattern: str, checks: list[tuple[str, str]]
) -> None:
    assert checks_of(pattern) == checks


@pytest.mark.parametrize(
    "section",
    [
        'deny = ["*.key", "*"]',
        'deny = ["?"]',
        'deny_prefixes = ["."]',
        'deny_prefixes = ["./"]',
        "allow_roots = []",
        'allow_roots = ["é"]',
    ],
)
def test_where_every_path_is_suspicious_there_is_no_suspicion(section: str) -> None:
    assert compile_policy(policy(f"[policy]\n{section}")) is None


def test_what_no_plain_path_can_hold_is_left_out() -> None:
    found = suspicion(
        "[policy]\nallow_roots = ['a', 'é']\n"
        "deny_prefixes = ['é']\ndeny_suffixes = ['.é']\ndeny = ['É*', '[é]b']"
    )
    texts = [
        *found.prefixes,
        *found.names,
        *found.endings,
        *found.beginnings,
        *found.parts,
        *(found.roots or ()),
    ]
    assert all(text.isascii() for text in texts)
    assert found.roots == ("a",)


def test_a_version_that_may_not_judge_recognises_nothing() -> None:
    assert compile_policy(policy('required_version = ">=99"')) is None
    assert compile_policy(policy('required_version = ">=0"')) is not None


def test_a_suffix_with_a_slash_ends_in_a_whole_name() -> None:
    found = compile_policy(Policy(Config(policy=PolicySettings(deny_suffixes=("x/Id_RSA",)))))
    assert found is not None
    assert is_suspicious(found, "a/x/id_rsa")
    assert not is_suspicious(found, "a/my_id_rsa")


# ---- rules that are off -----------------------------------------------------------------------------------


def with_rule(rule: str, level: str, rest: str) -> CompiledPolicy:
    assert rule in RULES
    return suspicion(f'{rest}\n[rules]\n{rule} = "{level}"')


@pytest.mark.parametrize(
    ("rule", "toml", "path"),
    [
        ("deny-prefix", 'policy.deny_prefixes = ["x"]', "x/a"),
        ("deny-pattern", 'policy.deny = ["x*"]', "x/a"),
        ("deny-suffix", 'policy.deny_suffixes = [".x"]', "a.x"),
        ("deny-class", "", "a.orig"),
        ("lock-without-manifest", "", "uv.lock"),
        ("outside-allow-roots", 'policy.allow_roots = ["x"]', "y"),
    ],
)
def test_a_path_is_suspicious_unless_its_rule_is_off(rule: str, toml: str, path: str) -> None:
    for level in ("error", "warning", "note"):
        assert is_suspicious(with_rule(rule, level, toml), path)
    assert not is_suspicious(with_rule(rule, "off", toml), path)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("secret", b"-----BEGIN " + b"PRIVATE KEY-----"),
        ("conflict-marker", b"<" * 7),
        ("deny-content", b"TODO"),
    ],
)
def test_a_line_is_suspicious_unless_its_rule_is_off(rule: str, line: bytes) -> None:
    output = b"@@ -0,0 +1 @@\n+" + line + b"\n"
    for level in ("error", "warning", "note"):
        assert reads(with_rule(rule, level, 'content.deny = ["TODO"]'), output)
    assert not reads(with_rule(rule, "off", 'content.deny = ["TODO"]'), output)


@pytest.mark.parametrize("name", ["max_files", "max_added_lines", "max_file_bytes"])
def test_a_limit_is_the_least_of_all_unless_its_rule_is_off(name: str) -> None:
    rule = name.replace("_", "-")
    place = "policy" if name == "max_file_bytes" else "policy.commit"
    override = '\n[[overrides]]\npaths = ["%s"]\n%s = %s'
    own = f"[{place}]\n{name} = 7"
    assert getattr(suspicion(own), name) == 7
    assert getattr(suspicion(own + override % ("a", name, 0)), name) == 0
    assert getattr(suspicion(own + override % ("a", name, 9) + override % ("b", name, 8)), name) == 7
    assert getattr(suspicion(own + override % ("a", name, '"off"')), name) == 7
    without = f'[{place}]\n{name} = "off"'
    assert getattr(suspicion(without), name) is None
    assert getattr(suspicion(without + override % ("a", name, 9)), name) == 9
    assert getattr(with_rule(rule, "note", own), name) == 7
    assert getattr(with_rule(rule, "off", own), name) is None


def test_contents_are_read_where_anybody_denies_binary_files() -> None:
    assert not suspicion().reads_contents
    assert suspicion('policy.deny_classes = ["binary"]').reads_contents
    assert suspicion('policy.commit.deny_classes = ["binary"]').reads_contents
    assert suspicion('policy.commit.deny_new_classes = ["binary"]').reads_contents
    assert suspicion('[[overrides]]\npaths = ["a"]\ndeny_classes = ["binary"]').reads_contents
    assert not suspicion('policy.agent.deny_classes = ["binary"]').reads_contents
    assert not with_rule("deny-class", "off", 'policy.deny_classes = ["binary"]').reads_contents


def test_text_is_read_only_where_a_rule_speaks_of_it() -> None:
    off = "content = {secrets = false, conflict_markers = false}"
    assert suspicion().texts
    assert not suspicion(off).texts + suspicion(off).small_texts
    quiet = "[rules]\nsecret = 'off'\nconflict-marker = 'off'"
    assert not suspicion(quiet).texts + suspicion(quiet).small_texts
    assert suspicion(quiet + "\n[content]\ndeny = ['(?i)todo']").small_texts


def test_messages_are_judged_and_refused_as_the_policy_says() -> None:
    for level in ("error", "warning", "note", "off"):
        judged = policy(f'message.level = "{level}"')
        found = compile_policy(judged)
        assert found is not None
        assert (found.judges_messages, found.refuses_messages) == (level != "off", level == "error")


# ---- texts ------------------------------------------------------------------------------------------------


def test_every_conflict_marker_is_searched_for() -> None:
    found = suspicion("content.secrets = false")
    lines = [bytes([byte]) * 7 for byte in range(256) if byte != 0x0A]
    for line in lines:
        assert reads(found, b"@@\n+" + line + b"\n") == is_conflict_marker(line)


def test_every_literal_of_a_secret_is_searched_for() -> None:
    found = suspicion("content.conflict_markers = false")
    assert set(found.texts) == {literal for form in SECRET_FORMS for literal in form.literals}


def test_an_expression_without_literals_makes_every_added_line_suspicious() -> None:
    found = suspicion(r"content.deny = ['\s+$', '(?i)todo']")
    assert (found.texts, found.small_texts) == ((ADDED_LINE,), ())


def test_what_ignores_case_is_searched_in_lower_case() -> None:
    found = suspicion("content = {secrets = false, conflict_markers = false, deny = ['(?i)ToDo', 'FIXME']}")
    assert (found.texts, found.small_texts) == ((b"FIXME",), (b"todo",))
    assert reads(found, b"@@\n+x tODO\n")
    assert not reads(found, b"@@\n+x fixme\n")


# ---- whatever a policy says of a path ---------------------------------------------------------------------

ODD = {"ſ": "s", "\u212a": "K", "ß": "SS", "ﬁ": "fi", "\u037e": ";", "É": "e", "e\u0301": "e"}
WORDS = ["a", "b", "ab", "A", "src", "key", ".key", "Src", "-", "[a]", " ", ".", "K"]
SPECIAL = [
    "*",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[a-z]",
    "[0-9]",
    "[ſ]",
    "[\u212a-\u212b]",
    r"\a",
    r"\*",
    r"\[",
    r"\K",
]
NAMES = st.lists(st.sampled_from([*WORDS, *SPECIAL, *ODD]), min_size=1, max_size=4).map("".join)
FOLDERS = st.one_of(st.sampled_from(["**", "src", "a", "Key"]), NAMES)
GLOBS = st.tuples(
    st.sampled_from(["", "", "/"]),
    st.lists(FOLDERS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
).map("".join)
LITERALS = st.lists(
    st.lists(st.sampled_from([*WORDS, *ODD]), min_size=1, max_size=2).map("".join), min_size=1, max_size=2
).map("/".join)


def accepted(check: str, text: str) -> bool:
    try:
        {"pattern": check_pattern, "prefix": check_prefix}[check](text)
    except TextError:
        return False
    return True


PATTERN_TEXTS = GLOBS.filter(lambda text: accepted("pattern", text))
PREFIX_TEXTS = LITERALS.filter(lambda text: accepted("prefix", text))
SUFFIX_TEXTS = st.one_of(
    st.lists(st.sampled_from([*WORDS, *ODD]), min_size=1, max_size=3).map("".join), LITERALS
)
CLASS_SETS: st.SearchStrategy[tuple[FileClass, ...]] = st.lists(
    st.sampled_from(sorted(CLASSES)), max_size=2, unique=True
).map(tuple)  # type: ignore[arg-type]
LEVELS = st.dictionaries(
    st.sampled_from(
        [
            "deny-prefix",
            "deny-pattern",
            "deny-suffix",
            "deny-class",
            "lock-without-manifest",
            "outside-allow-roots",
        ]
    ),
    st.sampled_from(["off", "note", "error"]),
    max_size=3,
)


def few(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(texts, max_size=2).map(tuple)


CONFIGS = st.builds(
    Config,
    policy=st.builds(
        PolicySettings,
        allow_roots=st.none() | st.none() | few(PREFIX_TEXTS | st.just("src")),
        deny_prefixes=few(PREFIX_TEXTS),
        deny=few(PATTERN_TEXTS),
        deny_suffixes=few(SUFFIX_TEXTS),
        deny_classes=CLASS_SETS,
        commit=st.builds(ProfileSettings, deny_classes=CLASS_SETS, deny_new_classes=CLASS_SETS),
    ),
    overrides=st.lists(
        st.builds(
            OverrideSettings,
            paths=st.lists(PATTERN_TEXTS, min_size=1, max_size=2).map(tuple),
            deny_classes=st.none() | CLASS_SETS,
        ),
        max_size=2,
    ).map(tuple),
    rules=LEVELS,
)


def texts_in(config: Config) -> Sequence[str]:
    """List what paths can be near to."""
    section = config.policy
    found = [*section.deny, *section.deny_prefixes, *section.deny_suffixes, *(section.allow_roots or ())]
    found += [pattern for override in config.overrides for pattern in override.paths]
    names = [pattern for patterns in CLASSES.values() for pattern in patterns]
    return [
        *found,
        *found,
        *found,
        *names[:: max(1, len(names) // 5)],
        "src/a.py",
        "Uv.lock",
        "patchgate.toml",
    ]


@st.composite
def near(draw: st.DrawFn, text: str) -> str:
    """Make a path that a text could mean: as it is written, or with something in place of what is special."""
    filler = st.text(st.sampled_from("abksABK.-;[] 0"), max_size=3)
    if draw(st.booleans()):
        text = re.sub(
            r"\\(.)", r"\1", re.sub(r"\[[^\]]*\]", lambda _: draw(st.sampled_from("abszkK0")), text)
        )
    text = re.sub(r"\*+|\?", lambda _: draw(filler), text)
    for odd, plain in ODD.items():
        text = text.replace(odd, plain)
    before = draw(st.sampled_from(["", "", "", "x/", "src/", "x/y/", "x"]))
    after = draw(st.sampled_from(["", "", "", "/x", "/a.py", "x"]))
    kept = "".join(character for character in before + text + after if character in PLAIN + "/")
    kept = "/".join(part for part in kept.split("/") if part) or "x"
    return draw(st.sampled_from([kept, kept.upper(), kept.swapcase()]))


def is_spoken_of(judged: Policy, path: str) -> bool:
    """Tell whether a gate could say anything of a plain file at a path, by its name."""
    ruling = judged.ruling(RepoPath(path.encode()))
    limits = judged.limits(Profile.COMMIT, ruling.owner)

    def speaks(rule: str) -> bool:
        return judged.level(rule, Profile.COMMIT) is not None

    return (
        (ruling.rule is not None and speaks(ruling.rule))
        or (ruling.suffix is not None and speaks("deny-suffix"))
        or (ruling.outside and speaks("outside-allow-roots"))
        or (bool(ruling.classes & limits.deny_classes) and speaks("deny-class"))
        or ("lock" in ruling.classes and speaks("lock-without-manifest"))
        or ruling.is_control
    )


@settings(
    max_examples=often(400),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data(), CONFIGS)
def test_whatever_the_policy_speaks_of_is_suspicious(data: st.DataObject, config: Config) -> None:
    judged = Policy(config)
    found = compile_policy(judged)
    if found is None:
        return
    texts = texts_in(config)
    for _ in range(5):
        path = data.draw(near(data.draw(st.sampled_from(texts))))
        if is_spoken_of(judged, path):
            event("spoken of")
            assert is_suspicious(found, path), (path, found)


@settings(max_examples=often(400), deadline=None)
@given(st.data(), PATTERN_TEXTS)
def test_whatever_a_pattern_matches_is_suspicious(data: st.DataObject, pattern: str) -> None:
    judged = Policy(Config(policy=PolicySettings(deny=(pattern,)), rules={"deny-class": "off"}))
    found = compile_policy(judged)
    path = data.draw(near(pattern))
    if found is not None and judged.ruling(RepoPath(path.encode())).denied is not None:
        event("matched")
        assert is_suspicious(found, path), (path, found)


@settings(max_examples=often(400), deadline=None)
@given(st.data(), PATTERN_TEXTS, PATTERN_TEXTS, PREFIX_TEXTS)
def test_whatever_is_near_a_component_is_suspicious(
    data: st.DataObject, tests: str, implementation: str, contract: str
) -> None:
    settings = ComponentSettings(contract.strip("/"), (tests,), (implementation,))
    judged = Policy(Config(components={"one": settings}))
    found = compile_policy(judged)
    path = data.draw(near(data.draw(st.sampled_from([tests, implementation, contract]))))
    if found is not None and judged.components.affected_by([RepoPath(path.encode())]):
        event("near")
        assert is_suspicious(found, path), (path, found)


def test_a_component_makes_its_baseline_and_every_deletion_suspicious() -> None:
    one = "[components.one]\ncontract = 'c/i.json'\ntests = ['t/*']\nimplementation = ['src/one/**']\n"
    assert is_suspicious(suspicion(one), ".patchgate/baselines/one.json")
    assert suspicion(one).has_components
    assert not suspicion().has_components
    assert not is_suspicious(suspicion(one), "src/two/a.py")


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_name_of_a_denied_class_is_suspicious(name: str) -> None:
    found = suspicion(f'policy.deny_classes = ["{name}"]')
    for pattern in CLASSES[name]:
        path = pattern.replace("*", "A").rstrip("/")
        assert "a.py" not in {path, path.lower()}
        for each in (path, path.upper(), f"x/{path}", f"x/{path}/y"):
            assert is_suspicious(found, each)


def test_every_lock_file_that_could_be_lonely_is_suspicious() -> None:
    assert all(is_suspicious(suspicion(), f"x/{name}") for name in MANIFESTS)


@given(st.text(st.sampled_from("patchgate.toml/PYPROJECTbaselines-"), max_size=30))
def test_every_control_file_is_suspicious(text: str) -> None:
    for path in (text, f".patchgate/{text}", f"patchgate.toml{text}"):
        if is_control_by_name(RepoPath(path.encode())):
            assert is_suspicious(suspicion(), path)


# ---- whatever a policy says of a line ---------------------------------------------------------------------


def test_placeholders_are_searched_for_only_where_a_rule_speaks_of_them() -> None:
    quiet = "content = {secrets = false, conflict_markers = false}\n"
    assert not suspicion(quiet).texts + suspicion(quiet).small_texts
    assert suspicion() == suspicion('placeholders.level = "off"')
    for level in ("error", "warning", "note"):
        found = suspicion(f'{quiet}placeholders.level = "{level}"')
        assert reads(found, b"@@ -0,0 +1 @@\n+# TODO: x\n")
        assert reads(found, b"@@ -0,0 +2 @@\n+def f():\n+    pass\n\\ No newline at end of file\n")
        assert not reads(found, b"@@ -0,0 +1 @@\n+x = 1\n")
    one = with_rule("placeholder-filler", "note", quiet)
    assert reads(one, b"@@ -0,0 +1 @@\n+Lorem ipsum\n")


def test_a_marker_of_the_policy_without_literals_makes_every_added_line_suspicious() -> None:
    own = 'claims.markers = [{{name = "own", pattern = "{}", example = "{}"}}]\nplaceholders.level = "note"'
    assert reads(suspicion(own.format("ABC-0", "ABC-0")), b"@@\n+ABC-0\n")
    found = suspicion(own.format("^[0-9a-z]+$", "1"))
    assert (found.texts, found.small_texts) == ((ADDED_LINE,), ())


EXPRESSIONS = st.lists(
    st.sampled_from(
        [
            r"\bTODO\b",
            "(?i)todo:",
            r"print\(",
            r"\s+$",
            "^x*$",
            "a[bc]d",
            "(?i:Do) not",
            "ab|cd",
            r"\d{3}-\d{4}",
        ]
    ),
    max_size=3,
    unique=True,
)
LINES = st.lists(
    st.sampled_from(
        ["TODO", "todo:", "print(", " ", "x", "abd", "ACD", "dO not", "cd", "555-1234", "\r", "<<<<<<<"]
    )
    | st.text(max_size=3),
    max_size=5,
).map(lambda parts: "".join(parts).encode("utf-8", "surrogateescape").replace(b"\n", b""))


@settings(max_examples=often(300))
@given(EXPRESSIONS, LINES, st.booleans(), st.booleans())
def test_whatever_a_content_rule_objects_to_is_suspicious(
    expressions: list[str], line: bytes, secrets: bool, markers: bool
) -> None:
    content = ContentSettings(secrets, markers, tuple(map(check_expression, expressions)))
    judged = Policy(Config(content=content))
    found = compile_policy(judged)
    assert found is not None
    if judged.content.suspects([line]):
        assert reads(found, b"@@ -0,0 +1 @@\n+" + line + b"\n")


MARKED = st.lists(
    st.sampled_from(
        [
            *("TODO", "todo", "FIXME:", "TBD", "XXX", "[TBD]", "[INSERT name]", "<your name>", "{{TODO}}"),
            *("YOUR_API_KEY", "lorem ipsum", "Lorem  Ipsum", "pass", "...", "raise NotImplementedError"),
            *(
                "# ",
                "- ",
                "    ",
                "def f(): ",
                "def f():",
                "def\tf(\\",
                ": ",
                " ",
                "x",
                "todo!()",
                "'not implemented'",
                ";",
                "\r",
                "ABC-1",
            ),
        ]
    ),
    max_size=4,
).map(lambda parts: "".join(parts).encode())
OWN = st.lists(
    st.sampled_from([r"\bABC-\d", "(?i)abc", "[Xx]yz", "^x$"]).map(
        lambda text: MarkerSettings("own", text, "x")
    ),
    max_size=1,
).map(tuple)


@settings(max_examples=often(300))
@given(OWN, st.lists(MARKED, max_size=4), st.sampled_from(["a.py", "a.md", "a.rs", "a.csv", "a"]))
def test_whatever_the_placeholder_gate_speaks_of_is_suspicious(
    own: tuple[MarkerSettings, ...], lines: list[bytes], name: str
) -> None:
    content = ContentSettings(secrets=False, conflict_markers=False)
    claims, level = ClaimsSettings(markers=own), PlaceholdersSettings("note")
    judged = Policy(Config(content=content, placeholders=level, claims=claims))
    found = compile_policy(judged)
    assert found is not None
    text = b"".join(line + b"\n" for line in lines)
    matches = find_matches(text, name.encode(), judged.markers)
    event("a placeholder" if matches else "none")
    for match in matches:
        # Whichever lines of the file are added, the one that is told is among them, or the function's head.
        for line in {match.line, match.head or match.line}:
            assert reads(found, b"@@ -0,0 +1 @@\n+" + lines[line - 1] + b"\n")


@pytest.mark.parametrize(
    ("lines", "endings"),
    [
        ('on = ["apply", "push"]', ()),
        ('on = ["commit"]\nfiles = ["*.py", "*.pyi"]\nroot = "a"', (b".py", b".pyi")),
        ('on = ["commit"]', (b"",)),
        ('on = ["commit"]\nfiles = ["*.py", "src/**"]', (b"",)),
    ],
)
def test_the_paths_that_a_command_at_a_commit_may_be_for_are_known_by_their_endings(
    lines: str, endings: tuple[bytes, ...]
) -> None:
    compiled = compile_policy(
        Policy(parse(f'[commands.x]\nkind = "lint"\ncommand = ["a"]\n{lines}'.encode(), ""))
    )
    assert compiled is not None
    assert compiled.commands == endings
    assert compiled.verifies_pushes == ("push" in lines)
