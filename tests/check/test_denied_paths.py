"""Where a change may go and which kinds of file it may bring (design, section 5)."""

from __future__ import annotations

import unicodedata

import pytest

from patchgate.check.case import Governance
from patchgate.git.model import EXECUTABLE, SYMLINK, Entry
from patchgate.report.rules import Level
from tests.check.gate_cases import (
    added,
    agents,
    binary,
    case,
    chmod,
    deleted,
    findings,
    modified,
    moved,
    oid,
    only,
    path,
    rules,
    symlink,
)

RUNS = 'policy.deny_prefixes = ["runs"]'
PEM = 'policy.deny = ["*.pem"]'
EXE = 'policy.deny_suffixes = [".exe"]'


# ---- deny: both sides -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "does"),
    [
        (added("runs/x"), "adds"),
        (modified("runs/x"), "modifies"),
        (deleted("runs/x"), "deletes"),
        (chmod("runs/x", EXECUTABLE), "changes the mode of"),
        (symlink("runs/x", b"y", Entry("100644", oid("x"))), "changes the type of"),
    ],
)
def test_whatever_happens_to_a_denied_path_is_refused(file: object, does: str) -> None:
    """B9: deny_prefixes."""
    finding = only(case(file, toml=RUNS))  # type: ignore[arg-type]
    assert finding.rule == "deny-prefix"
    assert finding.message.startswith(f"the change {does} runs/x,")
    assert finding.details["pattern"] == "runs"
    assert finding.details["key"] == "policy.deny_prefixes[0]"
    assert finding.side == ("old" if does == "deletes" else "new")


def test_a_rename_out_of_a_denied_folder_is_refused() -> None:
    finding = only(case(moved("runs/x", "src/x"), toml=RUNS))
    assert (finding.rule, finding.path, finding.side) == ("deny-prefix", path("runs/x"), "old")
    assert "renames runs/x" in finding.message


def test_a_rename_into_a_denied_folder_is_refused() -> None:
    finding = only(case(moved("src/x", "runs/x"), toml=RUNS))
    assert (finding.rule, finding.path, finding.side) == ("deny-prefix", path("runs/x"), "new")
    assert "adds runs/x" in finding.message


def test_a_rename_within_a_denied_folder_is_refused_on_both_sides() -> None:
    found = findings(case(moved("runs/x", "runs/y"), toml=RUNS))
    assert [(each.rule, each.path) for each in found] == [
        ("deny-prefix", path("runs/x")),
        ("deny-prefix", path("runs/y")),
    ]


def test_a_prefix_denies_the_folder_the_file_of_that_name_and_nothing_that_only_begins_so() -> None:
    given = case(added("runs"), toml='policy.deny_prefixes = ["runs/"]')
    assert rules(given) == ["deny-prefix"]
    assert rules(case(added("runs_evil/x"), added("src/runs/x"), toml=RUNS)) == []


@pytest.mark.parametrize("name", ["RUNS/x", "Runs", unicodedata.normalize("NFD", "cafés/x")])
def test_deny_matches_after_case_folding_and_normalisation(name: str) -> None:
    toml = 'policy.deny_prefixes = ["runs", "cafés"]'
    assert rules(case(added(name), toml=toml)) == ["deny-prefix"]


def test_allow_matches_exactly() -> None:
    assert rules(case(added("SRC/x"), toml='policy.allow_roots = ["src"]')) == ["outside-allow-roots"]
    given = case(deleted("A.PEM"), toml='policy = {deny = ["*.pem"], allow_delete = ["*.pem"]}')
    assert rules(given) == ["deny-pattern"]


def test_the_refusal_names_the_line_of_the_config_that_denies() -> None:
    toml = '[policy]\ndeny = [\n  "*.key",\n  "*.pem",\n]\n'
    finding = only(case(added("a.pem"), toml=toml))
    assert "policy.deny[1] in patchgate.toml:4 " in str(finding.hint)


def test_the_built_in_policy_has_no_line_to_name() -> None:
    from patchgate.policy.policy import Policy
    from patchgate.policy.settings import Config

    given = case(added("node_modules/x"), judged_by=Policy(Config()))
    assert only(given).rule == "deny-class"


# ---- allow_delete -----------------------------------------------------------------------------------------

CLEAN_UP = 'policy = {deny = ["*.pem"], allow_delete = ["old/"]}'


def test_a_denied_path_that_allow_delete_names_may_be_deleted() -> None:
    assert rules(case(deleted("old/a.pem"), toml=CLEAN_UP)) == []


@pytest.mark.parametrize("file", [added("old/a.pem"), modified("old/a.pem"), chmod("old/a.pem", EXECUTABLE)])
def test_allow_delete_allows_nothing_but_deleting(file: object) -> None:
    assert rules(case(file, toml=CLEAN_UP)) == ["deny-pattern"]  # type: ignore[arg-type]


def test_a_deletable_path_may_be_moved_to_a_place_that_is_allowed() -> None:
    assert rules(case(moved("old/a.pem", "docs/a.txt"), toml=CLEAN_UP)) == []
    assert rules(case(moved("old/a.pem", "new/a.pem"), toml=CLEAN_UP)) == ["deny-pattern"]


def test_the_refusal_of_a_deletion_names_allow_delete_and_other_refusals_do_not() -> None:
    hint = str(only(case(deleted("new/a.pem"), toml=CLEAN_UP)).hint)
    assert "policy.allow_delete (patchgate.toml:1)" in hint
    assert "allow_delete" not in str(only(case(modified("new/a.pem"), toml=CLEAN_UP)).hint)


def test_a_deletable_path_still_has_to_lie_inside_the_allowed_roots() -> None:
    toml = 'policy = {deny = ["*.pem"], allow_delete = ["old/"], allow_roots = ["src"]}'
    assert rules(case(deleted("old/a.pem"), toml=toml)) == ["outside-allow-roots"]


# ---- allow_roots ------------------------------------------------------------------------------------------


def test_without_allow_roots_the_whole_repository_is_allowed() -> None:
    """B8: allow_roots."""
    assert rules(case(added("any/where"))) == []


def test_empty_allow_roots_allow_nothing() -> None:
    finding = only(case(added("src/x"), toml="policy.allow_roots = []"))
    assert finding.rule == "outside-allow-roots"
    assert "(nothing)" in finding.message


def test_allow_roots_judge_both_sides_of_a_rename() -> None:
    toml = 'policy.allow_roots = ["src"]'
    out = only(case(moved("src/x", "docs/x"), toml=toml))
    into = only(case(moved("docs/x", "src/x"), toml=toml))
    assert (out.path, out.side) == (path("docs/x"), "new")
    assert (into.path, into.side) == (path("docs/x"), "old")


def test_a_refusal_names_five_roots_and_says_that_there_are_more() -> None:
    toml = 'policy.allow_roots = ["a", "b", "c", "d", "e", "f"]'
    assert "(a, b, c, d, e, …)" in only(case(added("x"), toml=toml)).message


def test_control_files_are_exempt_from_allow_roots() -> None:
    toml = 'policy.allow_roots = ["src"]'
    assert rules(case(modified("patchgate.toml"), modified(".patchgate/allowed_signers"), toml=toml)) == []
    hooks = ".pre-commit-config.yaml"
    assert rules(case(modified(hooks), toml=toml)) == ["outside-allow-roots"]
    given = case(modified(hooks), toml=toml, governance=Governance(frozenset({path(hooks)})))
    assert rules(given) == []


def test_baselines_are_not_exempt_from_allow_roots() -> None:
    given = case(modified(".patchgate/baselines/core.json"), toml='policy.allow_roots = ["src"]')
    assert rules(given) == ["outside-allow-roots"]


def test_control_files_are_not_exempt_from_deny() -> None:
    assert rules(case(modified("patchgate.toml"), toml='policy.deny = ["*.toml"]')) == ["deny-pattern"]


# ---- deny wins --------------------------------------------------------------------------------------------


def test_deny_wins_over_allow_and_says_so_once() -> None:
    toml = 'policy = {allow_roots = ["src"], deny_prefixes = ["src/vendor"], deny = ["*.pem"]}'
    assert rules(case(added("src/vendor/a.pem"), toml=toml)) == ["deny-prefix"]
    assert rules(case(added("etc/a.pem"), toml=toml)) == ["deny-pattern"]


def test_a_deny_rule_that_is_off_hides_no_path_that_lies_outside_the_roots() -> None:
    toml = 'policy = {allow_roots = ["src"], deny = ["*.pem"]}\nrules.deny-pattern = "off"'
    assert rules(case(added("etc/a.pem"), toml=toml)) == ["outside-allow-roots"]


def test_a_prefix_that_only_warns_hides_no_pattern_that_refuses() -> None:
    toml = 'policy = {deny_prefixes = ["etc"], deny = ["*.pem"]}\nrules.deny-prefix = "warning"'
    assert only(case(added("etc/a.pem"), toml=toml)).rule == "deny-pattern"
    assert only(case(added("etc/a.txt"), toml=toml)).rule == "deny-prefix"


# ---- suffixes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.exe", "a.EXE", "dir/a.eXe", ".exe"])
def test_a_suffix_is_denied_whatever_its_case(name: str) -> None:
    """B10: deny_suffixes."""
    finding = only(case(added(name), toml=EXE))
    assert (finding.rule, finding.details["pattern"]) == ("deny-suffix", ".exe")


def test_a_suffix_is_denied_however_its_accents_are_encoded() -> None:
    composed, decomposed = (unicodedata.normalize(form, ".café") for form in ("NFC", "NFD"))
    for suffix in (composed, decomposed):
        for name in ("a" + composed, "a" + decomposed):
            assert rules(case(added(name), toml=f'policy.deny_suffixes = ["{suffix}"]')) == ["deny-suffix"]


def test_git_rm_of_a_denied_suffix_is_allowed() -> None:
    assert rules(case(deleted("a.exe"), toml=EXE)) == []


def test_moving_a_file_of_a_denied_suffix_as_it_is_is_allowed() -> None:
    assert rules(case(moved("a.exe", "old/a.exe"), toml=EXE)) == []


def test_a_move_that_gives_a_file_a_denied_suffix_is_refused() -> None:
    assert rules(case(moved("a.bin", "a.exe"), toml=EXE)) == ["deny-suffix"]


def test_making_a_file_of_a_denied_suffix_executable_brings_no_content() -> None:
    assert rules(case(chmod("a.exe", EXECUTABLE), toml=EXE)) == []


def test_changing_a_file_of_a_denied_suffix_is_refused() -> None:
    assert rules(case(modified("a.exe"), toml=EXE)) == ["deny-suffix"]


def test_the_name_must_end_in_the_suffix() -> None:
    assert rules(case(added("a.exe.txt"), added("exe"), toml=EXE)) == []


# ---- classes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "of_class"),
    [
        ("uv.lock", "lock"),
        ("sub/Cargo.lock", "lock"),
        ("a.zip", "binary"),
        ("a.PNG", "media"),
        ("web/node_modules/x.js", "artifact"),
        ("__pycache__/a.txt", "artifact"),
    ],
)
def test_a_class_is_known_by_the_name(name: str, of_class: str) -> None:
    toml = f'policy.deny_classes = ["{of_class}"]\npolicy.commit.deny_classes = []'
    finding = only(case(added(name), toml=toml))
    assert (finding.rule, finding.details["pattern"]) == ("deny-class", of_class)
    assert rules(case(deleted(name), toml=toml)) == []
    assert rules(case(added("a.py"), toml=toml)) == []


def test_the_profiles_deny_other_classes() -> None:
    """B10: lock, binary and artifact-like targets are denied to agents."""
    files = (added("uv.lock"), added("a.zip"), added("x.pyc"))
    assert [each.path for each in findings(case(*files))] == [path("x.pyc")]
    assert [each.details["pattern"] for each in findings(agents(*files))] == ["binary", "lock", "artifact"]


def test_what_builds_and_runs_leave_and_media_are_denied_to_agents_when_they_are_new() -> None:
    """B10: a file that is there may change; a list of the policy's own lifts it, for some paths or all."""
    for name, of_class in (
        ("my.lock", "output"),
        ("a.LOG", "output"),
        ("dist/app.js", "output"),
        ("web/build/x", "output"),
        ("out/a.py", "output"),
        ("target/x", "output"),
        ("img/a.png", "media"),
    ):
        assert only(agents(added(name))).details["pattern"] == of_class
        assert rules(agents(modified(name))) == rules(case(added(name))) == []
        assert rules(agents(added(name), toml="policy.agent.deny_new_classes = []")) == []
        lifted = f'[[overrides]]\npaths = ["{name}"]\ndeny_new_classes = []'
        assert rules(agents(added(name), toml=lifted)) == []
    assert (
        rules(agents(added("uv.lock"), added("pyproject.toml"), toml="policy.agent.deny_classes = []")) == []
    )
    finding = only(agents(added("a.png")))
    assert "policy.agent.deny_new_classes" in f"{finding.hint} {finding.details}"
    assert rules(agents(added("builder/a.py"))) == rules(agents(added("outer.py"))) == []
    toml = 'policy.commit.deny_new_classes = ["binary"]'
    assert rules(case(binary("notes.txt"), toml=toml)) == ["deny-class"]
    assert rules(case(binary("notes.txt", old=Entry("100644", oid("text"))), toml=toml)) == []


def test_a_file_of_binary_content_is_of_the_class_binary_whatever_its_name() -> None:
    assert only(agents(binary("notes.txt"))).details["pattern"] == "binary"
    old = Entry("100644", oid("text"))
    assert only(agents(binary("notes.txt", old=old))).details["pattern"] == "binary"


def test_media_are_not_of_the_class_binary() -> None:
    assert rules(agents(binary("logo.png", old=Entry("100644", oid("text"))))) == []
    toml = 'policy.agent.deny_classes = ["media", "binary"]'
    assert [each.details["pattern"] for each in findings(agents(binary("logo.png"), toml=toml))] == ["media"]


def test_a_moved_binary_file_arrives_with_nothing_new() -> None:
    from dataclasses import replace

    old, new = moved("data.txt", "other/data.txt")
    assert rules(agents((old, replace(new, binary=True, added_lines=None)))) == []
    assert rules(agents(moved("a.zip", "b.zip"))) == []


def test_a_move_that_makes_a_file_a_lock_is_refused() -> None:
    assert rules(agents(moved("a.txt", "uv.lock"))) == ["deny-class"]


def test_a_file_of_two_classes_is_told_of_both() -> None:
    toml = 'policy.deny_classes = ["binary", "artifact"]'
    found = findings(case(added("A.class"), toml=toml))
    assert [each.details["pattern"] for each in found] == ["artifact", "binary"]


def test_who_refuses_a_class_is_the_profile_or_the_root() -> None:
    assert "agent" in only(agents(added("uv.lock"))).message


# ---- lock files without their manifest --------------------------------------------------------------------


def test_a_lock_that_changes_alone_is_noted_and_refuses_nothing() -> None:
    finding = only(case(modified("web/package-lock.json")))
    assert (finding.rule, finding.level) == ("lock-without-manifest", Level.NOTE)
    assert "package.json" in finding.message


@pytest.mark.parametrize("manifest", [modified("package.json"), deleted("Package.JSON")])
def test_a_lock_that_changes_with_its_manifest_is_not_noted(manifest: object) -> None:
    given = case(modified("pnpm-lock.yaml"), manifest)  # type: ignore[arg-type]
    assert rules(given) == []


def test_a_manifest_in_another_folder_is_not_the_locks() -> None:
    assert rules(case(modified("a/uv.lock"), modified("b/pyproject.toml"))) == ["lock-without-manifest"]


def test_a_new_lock_or_a_removed_one_is_not_noted() -> None:
    assert rules(case(added("uv.lock"), deleted("poetry.lock"))) == []


def test_a_lock_without_known_manifests_is_not_noted() -> None:
    assert rules(case(modified("packages.lock.json"), modified(".terraform.lock.hcl"))) == []


# ---- levels -----------------------------------------------------------------------------------------------


def test_a_symlink_in_the_place_of_a_denied_file_is_refused() -> None:
    before = Entry("100644", oid("before"))
    given = case(symlink("runs/x", b"y", before), toml=RUNS)
    assert given.change.files[0].status == "type-changed"
    assert rules(given) == ["deny-prefix"]
    assert rules(case(symlink("a.exe", b"y", Entry(SYMLINK, oid("old"))), toml=EXE)) == ["deny-suffix"]


@pytest.mark.parametrize("level", ["error", "warning", "note"])
def test_the_policy_chooses_the_level_of_a_rule(level: str) -> None:
    assert only(case(added("runs/x"), toml=f'{RUNS}\nrules.deny-prefix = "{level}"')).level == Level(level)


def test_a_rule_that_is_off_says_nothing() -> None:
    assert rules(case(added("runs/x"), toml=f'{RUNS}\nrules.deny-prefix = "off"')) == []


# ---- moves ------------------------------------------------------------------------------------------------


def test_an_exact_move_of_300_files_is_not_refused() -> None:
    files = [moved(f"old/{number}.py", f"new/{number}.py", lines=100) for number in range(300)]
    assert rules(case(*files)) == []
    assert rules(agents(*files)) == []


# ---- copies -----------------------------------------------------------------------------------------------


def test_the_source_of_a_copy_counts_as_touched() -> None:
    finding = only(agents(added("src/x"), toml=RUNS, copied=["runs/x"]))
    assert (finding.rule, finding.path) == ("deny-prefix", path("runs/x"))
    assert "copies runs/x" in finding.message
    assert rules(agents(added("src/x"), toml=RUNS, copied=["src/y"])) == []


def test_the_source_of_a_copy_has_to_lie_inside_the_allowed_roots() -> None:
    toml = 'policy.allow_roots = ["src"]'
    assert rules(agents(added("src/x"), toml=toml, copied=["docs/x"])) == ["outside-allow-roots"]
    assert rules(agents(added("src/x"), toml=toml, copied=["patchgate.toml"])) == []


def test_a_deny_that_only_warns_hides_no_copy_from_outside_the_roots() -> None:
    toml = 'policy = {allow_roots = ["src"], deny = ["*.pem"]}\n'
    copies = ["etc/a.pem"]
    assert rules(agents(added("src/x"), toml=toml, copied=copies)) == ["deny-pattern"]
    mild = toml + 'rules.deny-pattern = "off"'
    assert rules(agents(added("src/x"), toml=mild, copied=copies)) == ["outside-allow-roots"]


def test_every_lock_that_changes_alone_is_noted() -> None:
    given = case(modified("a/uv.lock"), modified("b/Cargo.lock"))
    assert rules(given) == ["lock-without-manifest"] * 2
