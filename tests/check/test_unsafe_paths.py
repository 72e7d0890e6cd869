"""Names that a change introduces: faults, and collisions with their neighbours (section 5, hardening)."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest

from patchgate.git.model import EXECUTABLE
from patchgate.report.rules import Level
from patchgate.report.verdict import Outcome, Verdict
from tests.check.gate_cases import (
    added,
    agents,
    case,
    chmod,
    deleted,
    findings,
    modified,
    moved,
    only,
    outcome,
    path,
    rules,
    symlink,
    verdict,
)

BAD = ".git/hooks/post-checkout"


# ---- faults -----------------------------------------------------------------------------------------------


def test_only_names_that_a_change_introduces_are_judged() -> None:
    assert rules(case(added(BAD))) == ["path-git-dir"]
    assert rules(case(modified(BAD), chmod("a\nb", EXECUTABLE))) == []


def test_a_bad_name_may_be_removed_though_deny_still_judges_its_bytes() -> None:
    assert rules(case(deleted("a\nb"), deleted(BAD))) == []
    assert rules(case(deleted("runs/a\nb"), toml='policy.deny_prefixes = ["runs"]')) == ["deny-prefix"]


def test_moving_a_bad_name_away_is_allowed_and_moving_to_one_is_not() -> None:
    assert rules(case(moved("a\nb", "ab"))) == []
    assert rules(case(moved("ab", "a\nb"))) == ["path-control"]


def test_one_name_can_break_several_rules() -> None:
    """B7: absolute, drive letter, `..` and empty paths are refused."""
    found = rules(case(added("/C:/../.git//\n")))
    assert found == ["path-absolute", "path-control", "path-empty", "path-git-dir", "path-traversal"]
    assert rules(case(added("C:/x"))) == ["path-drive-letter"]
    assert rules(case(added(""))) == ["path-empty"]


@pytest.mark.parametrize("rule", ["path-control", "path-git-dir"])
def test_path_rules_are_invariants_and_no_profile_or_text_softens_them(rule: str) -> None:
    name = "a\n" if rule == "path-control" else BAD
    for given in (case(added(name)), agents(added(name)), agents(added(name), from_text=True)):
        assert only(given).level is Level.ERROR
        assert verdict(given).verdict is Verdict.REJECTED


def test_a_rule_level_for_an_invariant_is_refused_by_the_config() -> None:
    from patchgate.errors import ConfigError

    for rule in ("path-control", "policy-removed", "policy-invalid", "policy-change-not-alone"):
        with pytest.raises(ConfigError, match="invariant"):
            case(added("a"), toml=f'rules.{rule} = "off"')


# ---- collisions -------------------------------------------------------------------------------------------


def test_a_new_name_that_differs_only_in_case_is_refused() -> None:
    finding = only(case(added("docs/readme.md"), beside=["docs/README.md"]))
    assert (finding.rule, finding.path) == ("path-collision", path("docs/readme.md"))
    assert finding.details["actual"] == path("docs/README.md")
    assert "docs/README.md" in str(finding.hint)


def test_a_new_name_that_differs_only_in_normalisation_is_refused() -> None:
    composed, decomposed = (unicodedata.normalize(form, "café.md") for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert rules(case(added(decomposed), beside=[composed])) == ["path-collision"]
    assert rules(case(added("STRASSE"), beside=["straße"])) == ["path-collision"]


def test_two_new_names_that_collide_are_both_told() -> None:
    assert rules(case(added("a.md"), added("A.md"))) == ["path-collision"] * 2


def test_a_file_that_is_also_a_folder_is_refused() -> None:
    assert only(case(added("Docs/a.md"), beside=["docs"])).details["actual"] == path("docs")
    assert only(case(added("docs"), beside=["Docs/a.md"])).details["actual"] == path("Docs")


def test_a_new_folder_that_differs_only_in_case_is_told_once() -> None:
    given = case(added("Src/a.py"), added("Src/b.py"), beside=["src/c.py"])
    assert [each.path for each in findings(given)] == [path("Src/a.py")]


def test_a_symlink_beside_a_folder_of_the_same_name_is_refused() -> None:
    assert rules(case(symlink("A", b"b"), beside=["a/x"])) == ["path-collision"]


def test_renaming_only_the_case_is_allowed() -> None:
    assert rules(case(moved("README.md", "readme.md"))) == []
    assert rules(case(*[moved(f"Src/{each}", f"src/{each}") for each in "abc"])) == []


def test_the_other_name_may_go_in_the_same_change() -> None:
    assert rules(case(added("readme.md"), deleted("README.md"))) == []
    assert rules(case(added("docs"), deleted("Docs/a.md"))) == []


def test_names_that_were_there_before_collide_without_a_word() -> None:
    given = case(modified("README.md"), added("new.md"), beside=["readme.md"])
    assert rules(given) == []


def test_equal_names_in_different_folders_do_not_collide() -> None:
    assert rules(case(added("a/x"), added("b/X"), beside=["c/x"])) == []


def test_names_that_are_not_utf_8_do_not_collide_by_their_replacement() -> None:
    assert rules(case(added(b"\xff"), added(b"\xfe"))) == []


def test_of_several_others_the_first_by_its_bytes_is_named() -> None:
    given = case(added("readme"), beside=["README", "Readme", "rEADME"])
    assert only(given).details["actual"] == path("README")
    listing = given.folders[b""]
    turned = replace(given, folders={b"": listing[::-1]})
    assert findings(turned) == findings(given)


def test_a_folder_that_was_not_listed_leaves_the_verdict_undecided() -> None:
    given = replace(case(added("docs/a.md")), folders={b"": [b"docs"]})
    ended = outcome(given, "paths")
    assert ended.outcome is Outcome.UNDECIDED
    assert "folder docs " in str(ended.reason)
    root = replace(case(added("a.md")), folders={})
    ended = outcome(root, "paths")
    assert ended.outcome is Outcome.UNDECIDED
    assert "root folder" in str(ended.reason)
    assert verdict(root).verdict is Verdict.UNDECIDED


def test_a_name_with_a_fault_is_refused_though_its_folder_has_no_list() -> None:
    assert rules(replace(case(added("a//b")), folders={b"": [b"a"]})) == ["path-empty"]


def test_what_only_changes_or_goes_needs_no_lists() -> None:
    assert rules(replace(case(modified("a/b"), deleted("c/d")), folders={})) == []


def test_a_change_without_files_does_not_concern_the_gate() -> None:
    assert outcome(case(), "paths").outcome is Outcome.NOT_APPLICABLE


def test_a_path_behind_a_symlink_is_refused_though_its_folder_has_no_list() -> None:
    given = agents(added("link/deep/a"), blocked={b"link/deep/a": b"link"})
    finding = only(replace(given, folders={b"": [b"link"]}))
    assert (finding.rule, finding.path) == ("path-symlink", path("link/deep/a"))
    assert finding.details["actual"] == path("link")


def test_what_already_stands_behind_a_symlink_may_not_be_changed_either() -> None:
    assert rules(agents(modified("link/a"), blocked={b"link/a": b"link"})) == ["path-symlink"]
