"""What a config means for a path, a file and a profile, and what the policy digest covers."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.policy import policy as policy_module
from patchgate.policy.config import parse, parse_pyproject
from patchgate.policy.file_kinds import CLASSES, MANIFESTS, is_control_by_name
from patchgate.policy.policy import Decision, Policy, Profile
from patchgate.report.rules import RULES, RULES_VERSION, Level
from tests.amount import often


def policy(toml: str = "", file: str = "patchgate.toml") -> Policy:
    return Policy(parse(toml.encode(), file), file, toml.encode())


def path(name: str) -> RepoPath:
    return RepoPath(name.encode())


# ---- control files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_control"),
    [
        ("patchgate.toml", True),
        (".patchgate", True),
        (".patchgate/allowed_signers", True),
        (".patchgate/baselines", True),
        (".patchgate/baselinesx", True),
        (".patchgate/baselines/core.json", False),
        (".patchgatex", False),
        ("patchgate.toml/x", True),
        ("patchgate.tomlx", False),
        ("sub/patchgate.toml", False),
        ("sub/.patchgate/x", False),
        ("Patchgate.toml", False),
        ("pyproject.toml", False),
        (".pre-commit-config.yaml", False),
    ],
)
def test_which_names_are_control_files(name: str, is_control: bool) -> None:
    assert is_control_by_name(path(name)) == is_control
    assert policy().ruling(path(name)).is_control == is_control


# ---- rulings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "is_named"),
    [
        ("deploy/**", "deploy", True),
        ("deploy/**", "deploy/a/b", True),
        ("deploy/**", "sub/deploy", False),
        ("/deploy/*", "Deploy", True),
        ("a/deploy/**/*", "a/deploy", True),
        ("**/deploy/**", "a/b/deploy", True),
        ("*/**", "readme", False),
        ("a/*/**", "a/readme", False),
        ("deploy/*.tf", "deploy", False),
        ("/**", "readme", True),
        ("deploy /**", "deploy /a", True),
        ("a/deploy  /*", "a/deploy  ", True),
        *((f"deploy{end}", "deploy", True) for end in ("/** ", "/**/", "/*/", "/**/**", "/***")),
        ("my\\\\ deploy/**", "my deploy", True),
        ("app/[id]/**", "app/[id]", True),
        ("stage?/**", "stage1", True),
        ("env-*/**", "env-1", False),
    ],
)
def test_who_owns_all_below_a_folder_owns_its_name(pattern: str, name: str, is_named: bool) -> None:
    """A submodule or a symlink there brings another content for all that is below."""
    ruled = policy(f'policy.deny = ["{pattern}"]\n[[owners]]\npaths = ["{pattern}"]\n')
    assert (ruled.ruling(path(name)).denied is not None) == is_named
    assert [owned.paths for owned in ruled.owned([path(name)], ())] == [(path(name),)] * is_named


def test_a_ruling_tells_which_key_decides() -> None:
    ruled = policy(
        'policy = {allow_roots = ["src"], deny = ["*.key", "*.pem"], allow_delete = ["old/"], '
        'generated = ["gen/", "*.pem"], deny_suffixes = [".x", ".PEM"]}\n[[overrides]]\npaths = ["docs/"]\n'
        '[[overrides]]\npaths = ["*.pem"]'
    ).ruling(path("old/a.pem"))
    assert (ruled.rule, ruled.denied) == ("deny-pattern", Decision(("policy", "deny", 1), "*.pem"))
    assert ruled.deletable == Decision(("policy", "allow_delete", 0), "old/")
    assert ruled.generated == Decision(("policy", "generated", 1), "*.pem")
    assert ruled.suffix == Decision(("policy", "deny_suffixes", 1), ".PEM")
    assert (ruled.outside, ruled.owner, ruled.classes) == (True, 1, frozenset())


def test_a_path_of_which_nothing_is_said() -> None:
    ruled = policy().ruling(path("src/a.py"))
    assert (ruled.rule, ruled.denied, ruled.outside, ruled.owner) == (None, None, False, None)
    assert (ruled.deletable, ruled.generated, ruled.suffix) == (None, None, None)


def test_a_prefix_is_told_before_a_pattern_unless_it_weighs_less() -> None:
    both = 'policy = {deny_prefixes = ["a", "runs"], deny = ["*.pem"]}\n'
    key = path("runs/a.pem")
    assert policy(both).ruling(key).denied == Decision(("policy", "deny_prefixes", 1), "runs")
    for level in ("off", "note", "warning"):
        ruled = policy(both + f'rules.deny-prefix = "{level}"').ruling(key)
        assert (ruled.rule, ruled.denied) == ("deny-pattern", Decision(("policy", "deny", 0), "*.pem"))
    even = policy(both + 'rules = {deny-prefix = "note", deny-pattern = "note"}').ruling(key)
    assert even.rule == "deny-prefix"


def test_a_decision_is_shown_safely() -> None:
    decision = Decision(("overrides", 2, "paths", 0), "a\x1b[2J" + "x" * 200)
    assert decision.dotted == "overrides[2].paths[0]"
    assert "\x1b" not in decision.shown
    assert len(decision.shown) < 130


def test_rulings_are_remembered_and_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_module, "_MANY_PATHS", 3)
    judged = policy('policy.deny = ["*.pem"]')
    assert judged.ruling(path("a.pem")) is judged.ruling(path("a.pem"))
    for number in range(10):
        assert judged.ruling(path(f"{number}.pem")).rule == "deny-pattern"
        assert judged.ruling(path(f"{number}.txt")).rule is None


# ---- classes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("uv.lock", {"lock"}),
        ("a/Package-Lock.JSON", {"lock"}),
        ("yarn.lock.md", set()),
        ("a.tar.gz", {"binary"}),
        ("A.CLASS", {"binary", "artifact"}),
        ("logo.SVGZ", {"media"}),
        ("logo.svg", set()),
        ("x/__pycache__/a.py", {"artifact"}),
        ("__pycache__", {"artifact"}),
        ("build/a.js", {"output"}),
        ("bin/run", set()),
        ("Thumbs.db", {"artifact", "binary"}),
    ],
)
def test_the_classes_of_a_name(name: str, classes: set[str]) -> None:
    assert policy().ruling(path(name)).classes == classes


def test_every_lock_file_with_manifests_is_of_the_class_lock() -> None:
    assert set(MANIFESTS) <= set(CLASSES["lock"])
    assert all(name == name.lower() for name in MANIFESTS)
    assert all(name == name.lower() for manifests in MANIFESTS.values() for name in manifests)


# ---- levels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", sorted(RULES))
def test_without_any_config_a_rule_has_its_own_level_but_agents_budgets_refuse(rule: str) -> None:
    expected = RULES[rule].level
    # The placeholder gate is off for people, unless the config says otherwise.
    assert policy().level(rule, Profile.COMMIT) is (None if rule.startswith("placeholder") else expected)
    is_budget = rule in {"max-files", "max-added-lines"}
    assert policy().level(rule, Profile.AGENT) is (Level.ERROR if is_budget else expected)


@pytest.mark.parametrize("rule", sorted(rule.id for rule in RULES.values() if not rule.invariant))
def test_the_config_chooses_the_level_for_every_profile(rule: str) -> None:
    for profile in Profile:
        for level in Level:
            assert policy(f'rules.{rule} = "{level}"').level(rule, profile) is level
        assert policy(f'rules.{rule} = "off"').level(rule, profile) is None


def test_invariants_keep_their_level_even_if_a_config_came_with_another() -> None:
    settings_with = dataclasses.replace(policy().config, rules={"path-control": "off", "secret": "off"})
    made = Policy(settings_with)
    assert made.level("path-control", Profile.COMMIT) is Level.ERROR
    assert made.level("secret", Profile.COMMIT) is None


# ---- limits -----------------------------------------------------------------------------------------------


def test_the_limits_of_the_profiles_without_any_config() -> None:
    people, agents = (policy().limits(profile, None) for profile in Profile)
    assert (people.max_files, people.max_added_lines, people.max_file_bytes) == (50, 2000, 1024 * 1024)
    assert (people.allow_modes, people.allow_symlinks, people.allow_gitlinks) == (True, "inside", "bump")
    assert people.deny_classes == {"artifact"}
    assert (agents.max_files, agents.max_added_lines, agents.max_file_bytes) == (5, 400, 1024 * 1024)
    assert (agents.allow_modes, agents.allow_symlinks, agents.allow_gitlinks) == (False, False, False)
    assert agents.deny_classes == {"lock", "binary", "artifact"}


def test_an_override_has_the_profiles_limits_where_it_sets_none() -> None:
    made = policy(
        'policy.deny_classes = ["media"]\n[[overrides]]\npaths = ["a"]\n'
        '[[overrides]]\npaths = ["b"]\nmax_files = "off"\nmax_added_lines = 0\ndeny_classes = []\n'
        "allow_modes = false\nallow_symlinks = true\nallow_gitlinks = false\nmax_file_bytes = 7"
    )
    plain, own = made.limits(Profile.COMMIT, 0), made.limits(Profile.COMMIT, 1)
    assert (plain.max_files, plain.has_own_files, plain.has_own_lines) == (50, False, False)
    assert plain.deny_classes == {"artifact", "media"}
    assert (own.max_files, own.max_added_lines, own.max_file_bytes) == (None, 0, 7)
    assert (own.has_own_files, own.has_own_lines) == (True, True)
    assert (own.allow_modes, own.allow_symlinks, own.allow_gitlinks) == (False, True, False)
    assert own.deny_classes == {"media"}
    assert [each.owner for each in made.all_limits(Profile.AGENT)] == [None, 0, 1]


def test_what_has_to_be_read_follows_from_the_rules() -> None:
    quiet = "content = {secrets = false, conflict_markers = false}\n"
    off = 'policy.commit = {max_added_lines = "off"}\npolicy.max_file_bytes = "off"\n'
    assert policy().needs_lines(Profile.COMMIT)
    assert policy().needs_sizes(Profile.COMMIT)
    assert not policy(quiet + off).needs_lines(Profile.COMMIT)
    assert not policy(quiet + off).needs_sizes(Profile.COMMIT)
    assert policy(quiet).needs_lines(Profile.COMMIT)
    assert policy('content = {secrets = false, conflict_markers = false, deny = ["x"]}\n' + off).needs_lines(
        Profile.COMMIT
    )
    assert policy(quiet + off + 'policy.deny_classes = ["binary"]').needs_lines(Profile.COMMIT)
    own = '[[overrides]]\npaths = ["a"]\nmax_added_lines = 3\nmax_file_bytes = 3'
    assert policy(quiet + off + own).needs_lines(Profile.COMMIT)
    assert policy(quiet + off + own).needs_sizes(Profile.COMMIT)


# ---- digest -----------------------------------------------------------------------------------------------


def test_the_digest_covers_the_profile_the_keys_as_written_and_the_version_of_the_rules() -> None:
    made = policy('policy.deny = ["é"]\n[policy.agent]\nmax_files = 5')
    keys = '{"policy":{"agent":{"max_files":5},"deny":["\\u00e9"]}}'
    for profile in Profile:
        text = f"patchgate.policy/1\n{profile}\n{keys}\n{RULES_VERSION}\n"
        assert made.digest(profile) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        assert made.digest(profile) == made.digest(profile)
    assert json.loads(keys) == made.as_written()


def test_a_key_that_says_the_default_is_still_a_key() -> None:
    written = policy("policy.commit.max_files = 50")
    assert written.digest(Profile.COMMIT) != policy().digest(Profile.COMMIT)


def test_comments_order_and_file_do_not_change_the_digest() -> None:
    one = policy('[content]\ndeny = ["x"]\n[policy]\ndeny = ["y"] # why\n')
    other = policy('policy.deny = ["y"]\ncontent.deny = ["x"]')
    raw = b'[tool.patchgate]\npolicy.deny = ["y"]\ncontent.deny = ["x"]'
    config = parse_pyproject(raw, "pyproject.toml")
    assert config is not None
    assert (
        len({each.digest(Profile.COMMIT) for each in (one, other, Policy(config, "pyproject.toml", raw))})
        == 1
    )


# ---- lines ------------------------------------------------------------------------------------------------


def test_the_place_of_a_key_is_named_by_file_and_line() -> None:
    made = policy('[policy]\ndeny = [\n  "a",\n  "b",\n]\n')
    assert made.line_of(("policy", "deny", 1)) == "patchgate.toml:4"
    assert made.line_of(("policy", "commit", "max_files")) == "patchgate.toml:1"
    assert made.line_of(("content", "deny", 0)) == "patchgate.toml"


def test_in_pyproject_the_keys_stand_below_their_table() -> None:
    raw = b'[project]\nname = "x"\n[tool.patchgate.policy]\ndeny = ["a"]\n'
    config = parse_pyproject(raw, "pyproject.toml")
    assert config is not None
    assert Policy(config, "pyproject.toml", raw).line_of(("policy", "deny", 0)) == "pyproject.toml:4"


def test_the_built_in_defaults_stand_nowhere() -> None:
    assert policy(file="").line_of(("policy", "deny", 0)) is None


@settings(max_examples=often(200))
@given(st.binary(min_size=1, max_size=12))
def test_any_name_has_a_ruling(name: bytes) -> None:
    made = policy('policy = {deny = ["*.pem"], deny_suffixes = [".x"], allow_roots = ["a"]}')
    ruled = made.ruling(RepoPath(name))
    assert (ruled.rule is None) == (ruled.denied is None)
