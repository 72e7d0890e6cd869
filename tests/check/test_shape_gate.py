"""How much a change brings and which kinds of entry: budgets, sizes, modes, symlinks, gitlinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from patchgate.check.case import Case
from patchgate.check.shape import budgets, stays_inside
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Entry
from patchgate.policy.policy import Profile
from patchgate.report.json import with_paths
from patchgate.report.rules import Level
from patchgate.report.verdict import Budget, Outcome, Verdict
from tests.check.gate_cases import (
    Part,
    added,
    agents,
    binary,
    case,
    chmod,
    deleted,
    findings,
    gitlink,
    modified,
    moved,
    oid,
    only,
    outcome,
    path,
    policy,
    rules,
    symlink,
    verdict,
)

OLD_FILE = Entry(REGULAR, oid("before"))
OLD_LINK = Entry(SYMLINK, oid("before"))
OLD_GITLINK = Entry(GITLINK, oid("before"))


def many(number: int, folder: str = "src", lines: int = 1) -> list[Part]:
    return [added(f"{folder}/{each:03}.py", lines=lines) for each in range(number)]


def used(given: Case) -> dict[str, int]:
    return {name: budget.used for name, budget in budgets(given).items()}


# ---- budgets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "expected"), [(50, []), (51, ["max-files"])])
def test_the_file_budget_of_people_is_inclusive_and_warns(number: int, expected: list[str]) -> None:
    given = case(*many(number))
    assert rules(given) == expected
    assert verdict(given).verdict is Verdict.ACCEPTED
    assert all(finding.level is Level.WARNING for finding in findings(given))


@pytest.mark.parametrize(("number", "expected"), [(5, []), (6, ["max-files"])])
def test_the_file_budget_of_agents_is_inclusive_and_refuses(number: int, expected: list[str]) -> None:
    """B11: max_files is 5 by default, inclusive."""
    given = agents(*many(number))
    assert rules(given) == expected
    assert verdict(given).verdict is (Verdict.REJECTED if expected else Verdict.ACCEPTED)


@pytest.mark.parametrize(("lines", "expected"), [(400, []), (401, ["max-added-lines"])])
def test_the_line_budget_of_agents_is_inclusive_and_refuses(lines: int, expected: list[str]) -> None:
    """B11: max_added_lines is 400 by default, inclusive."""
    given = agents(added("a.py", lines=200), modified("b.py", lines=lines - 200))
    assert rules(given) == expected
    assert verdict(given).verdict is (Verdict.REJECTED if expected else Verdict.ACCEPTED)


@pytest.mark.parametrize(("lines", "expected"), [(2000, []), (2001, ["max-added-lines"])])
def test_the_line_budget_of_people_is_inclusive(lines: int, expected: list[str]) -> None:
    assert rules(case(added("a.py", lines=lines))) == expected


def test_a_limit_of_zero_allows_nothing_that_counts() -> None:
    toml = "policy.commit.max_files = 0"
    assert rules(case(added("a"), toml=toml)) == ["max-files"]
    assert rules(case(deleted("a"), toml=toml)) == []


def test_a_limit_that_is_off_is_no_limit() -> None:
    toml = 'policy = {max_file_bytes = "off", agent = {max_files = "off", max_added_lines = "off"}}'
    files = [replace(added(f"{each}.py"), size=None, added_lines=None) for each in range(9)]
    assert rules(agents(*files, toml=toml + "\ncontent = {secrets = false, conflict_markers = false}")) == []


def test_the_policy_can_make_a_budget_of_people_refuse_and_one_of_agents_warn() -> None:
    toml = 'rules = {max-files = "error", max-added-lines = "warning"}'
    assert only(case(*many(51), toml=toml)).level is Level.ERROR
    given = agents(added("a", lines=401), toml='rules.max-added-lines = "warning"')
    assert (only(given).level, verdict(given).verdict) == (Level.WARNING, Verdict.ACCEPTED)


@pytest.mark.parametrize(
    "parts",
    [
        [moved(f"old/{each}.py", f"new/{each}.py", lines=999) for each in range(9)],
        [deleted(f"{each}.py") for each in range(9)],
        [added(f"{each}/uv.lock", lines=999) for each in range(9)],
        [added(f"gen/{each}.py", lines=999) for each in range(9)],
    ],
    ids=["exact renames", "deletions", "lock files", "generated files"],
)
def test_budgets_never_count(parts: list[Part]) -> None:
    given = agents(*parts, toml='policy = {generated = ["gen/"], agent = {deny_classes = []}}')
    assert rules(given) == []
    assert used(given) == {"max_files": 0, "max_added_lines": 0}


def test_a_rename_that_also_changes_the_content_is_counted() -> None:
    given = agents(deleted("a.py"), added("b.py", lines=401))
    assert rules(given) == ["max-added-lines"]


def test_a_root_commit_has_no_budgets() -> None:
    given = case(*many(500, lines=100), profile=Profile.AGENT, has_budgets=False)
    assert rules(given) == []
    assert budgets(given) == {}


def test_binary_files_symlinks_and_gitlinks_cost_a_file_but_need_no_lines() -> None:
    link = replace(symlink("l", b"a"), added_lines=None)
    module = replace(gitlink("m", OLD_GITLINK), added_lines=None)
    given = case(binary("a.bin"), link, module)
    assert rules(given) == []
    assert used(given) == {"max_files": 3, "max_added_lines": 0}


def test_a_changed_mode_costs_a_file() -> None:
    assert used(case(chmod("a", EXECUTABLE))) == {"max_files": 1, "max_added_lines": 0}


def test_lines_that_nobody_counted_leave_the_verdict_undecided() -> None:
    given = case(
        replace(added("a.py"), added_lines=None), toml="content = {secrets = false, conflict_markers = false}"
    )
    ended = outcome(given, "shape")
    assert ended.outcome is Outcome.UNDECIDED
    assert "lines of a.py" in str(ended.reason)
    assert verdict(given).verdict is Verdict.UNDECIDED


def test_the_split_keeps_every_part_within_the_budgets_and_leaves_out_what_none_can_hold() -> None:
    files = [
        added(f"{each}.py", lines=lines) for each, lines in enumerate([300, 200, 150, 401, 1, 1, 1, 1, 1, 1])
    ]
    found = {finding.rule: finding for finding in findings(agents(*files))}
    for rule in ("max-files", "max-added-lines"):
        details: Any = with_paths(found[rule].details)
        split = details["split"]
        assert details["too_large"] == ["3.py"]
        held = sorted(name for part in split for name in part)
        assert held == sorted(f"{each}.py" for each in range(10) if each != 3)
        sizes = {f"{each}.py": file.added_lines or 0 for each, file in enumerate(files)}
        for part in split:
            assert len(part) <= 5
            assert sum(sizes[name] for name in part) <= 400
        hint = str(found[rule].hint)
        assert hint.startswith("3.py ")
        assert f" {len(split)} changes" in hint


def test_one_file_that_is_too_large_cannot_be_split() -> None:
    finding = only(agents(added("a.py", lines=401)))
    details = with_paths(finding.details)
    assert (details["split"], details["too_large"]) == ([], ["a.py"])
    assert str(finding.hint).startswith("a.py ")


def test_the_report_tells_the_budgets_and_their_use() -> None:
    assert budgets(agents(added("a", lines=3))) == {
        "max_files": Budget(5, 1),
        "max_added_lines": Budget(400, 3),
    }


# ---- overrides --------------------------------------------------------------------------------------------

DOCS = '[[overrides]]\npaths = ["docs/"]\n'


def test_an_override_with_its_own_budget_spends_that_alone() -> None:
    toml = DOCS + "max_files = 2\nmax_added_lines = 20"
    given = agents(*many(5), *many(2, "docs", lines=10), toml=toml)
    assert rules(given) == []
    assert used(given) == {
        "max_files": 5,
        "max_added_lines": 5,
        "overrides[0].max_files": 2,
        "overrides[0].max_added_lines": 20,
    }


def test_the_refusal_of_an_overrides_budget_names_the_override() -> None:
    toml = DOCS + "max_files = 2\nmax_added_lines = 20"
    found = findings(agents(*many(3, "docs", lines=7), toml=toml))
    assert [each.rule for each in found] == ["max-files", "max-added-lines"]
    assert [(each.details["actual"], each.details["limit"]) for each in found] == [(3, 2), (21, 20)]
    assert all("overrides[0]" in each.message for each in found)
    assert all(each.level is Level.ERROR for each in found)


def test_an_override_without_a_budget_spends_the_profiles() -> None:
    given = agents(*many(3), *many(3, "docs"), toml=DOCS + "allow_modes = true")
    assert rules(given) == ["max-files"]
    assert used(given) == {"max_files": 6, "max_added_lines": 6}


def test_an_override_with_one_budget_of_its_own_spends_the_profiles_other() -> None:
    given = agents(*many(3), *many(9, "docs"), toml=DOCS + "max_files = 10")
    assert used(given) == {"max_files": 3, "max_added_lines": 12, "overrides[0].max_files": 9}


def test_an_override_can_lift_a_budget() -> None:
    given = agents(*many(9, "docs", lines=999), toml=DOCS + 'max_files = "off"\nmax_added_lines = "off"')
    assert rules(given) == []


def test_the_first_override_that_matches_owns_a_file() -> None:
    toml = '[[overrides]]\npaths = ["docs/api/"]\nmax_files = 1\n' + DOCS + "max_files = 3"
    given = agents(*many(2, "docs/api"), *many(3, "docs"), toml=toml)
    (found,) = findings(given)
    assert (found.rule, found.details["actual"], found.details["limit"]) == ("max-files", 2, 1)
    assert "overrides[0]" in found.message
    swapped = DOCS + 'max_files = 3\n[[overrides]]\npaths = ["docs/api/"]\nmax_files = 1\n'
    given = agents(*many(2, "docs/api"), *many(3, "docs"), toml=swapped)
    (found,) = findings(given)
    assert (found.rule, found.details["actual"], found.details["limit"]) == ("max-files", 5, 3)
    assert "overrides[0]" in found.message


def test_an_override_has_its_own_size_modes_symlinks_gitlinks_and_classes() -> None:
    toml = (
        DOCS
        + "max_file_bytes = 5\nallow_modes = true\nallow_symlinks = true\nallow_gitlinks = true\n"
        + 'deny_classes = ["media"]'
    )
    inside = (
        chmod("docs/run", EXECUTABLE),
        symlink("docs/link", b"/etc"),
        gitlink("docs/module"),
        added("docs/uv.lock", size=5),
    )
    assert rules(agents(*inside, toml=toml)) == []
    assert rules(agents(added("docs/a.png", size=6), toml=toml)) == ["deny-class", "max-file-bytes"]
    outside = (chmod("run", EXECUTABLE), symlink("link", b"a"), gitlink("module"), added("uv.lock"))
    assert rules(agents(*outside, toml=toml)) == ["deny-class", "gitlink", "mode-change", "symlink"]


def test_an_override_inherits_what_it_does_not_set() -> None:
    toml = DOCS + "max_files = 9"
    files = (chmod("docs/run", EXECUTABLE), symlink("docs/l", b"a"), gitlink("docs/m"), added("docs/uv.lock"))
    assert rules(agents(*files, toml=toml)) == ["deny-class", "gitlink", "mode-change", "symlink"]
    assert rules(case(*files[:2], toml=toml)) == []


def test_an_override_cannot_lift_a_deny_of_the_root() -> None:
    toml = (
        'policy = {deny_prefixes = ["docs/private"], deny = ["*.pem"], deny_suffixes = [".exe"], '
        'deny_classes = ["media"]}\n' + DOCS + "deny_classes = []"
    )
    files = (added("docs/private/x"), added("docs/a.pem"), added("docs/a.exe"), added("docs/a.png"))
    assert rules(case(*files, toml=toml)) == ["deny-class", "deny-pattern", "deny-prefix", "deny-suffix"]


# ---- sizes ------------------------------------------------------------------------------------------------

MIB = 1024 * 1024


@pytest.mark.parametrize(("size", "expected"), [(MIB, []), (MIB + 1, ["max-file-bytes"])])
def test_a_file_of_more_than_a_mebibyte_is_warned_of(size: int, expected: list[str]) -> None:
    assert rules(case(added("a", size=size))) == expected
    assert rules(case(modified("a", size=size))) == expected
    assert verdict(case(added("a", size=size))).verdict is Verdict.ACCEPTED


def test_sizes_judge_only_content_that_arrives() -> None:
    toml = "policy.max_file_bytes = 1"
    large = (deleted("a"), *moved("b", "c"), chmod("d", EXECUTABLE), symlink("e", b"long target"))
    assert rules(case(*large, gitlink("f", OLD_GITLINK), toml=toml)) == []


def test_a_size_that_nobody_read_leaves_the_verdict_undecided() -> None:
    given = case(replace(added("a.py"), size=None))
    ended = outcome(given, "shape")
    assert ended.outcome is Outcome.UNDECIDED
    assert "size of a.py" in str(ended.reason)
    assert verdict(given).verdict is Verdict.UNDECIDED


# ---- modes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (chmod("a", EXECUTABLE), "becomes executable"),
        (chmod("a", REGULAR), "is no longer executable"),
        (added("a", mode=EXECUTABLE), "becomes executable"),
        (added("a", mode=EXECUTABLE, old=OLD_FILE), "becomes executable"),
        (added("a", mode=EXECUTABLE, old=OLD_LINK), "becomes executable"),
    ],
)
def test_a_changed_executable_bit_is_refused_where_modes_are_not_allowed(file: Part, says: str) -> None:
    finding = only(agents(file))
    assert (finding.rule, finding.message) == ("mode-change", f"a {says}")
    assert f"--chmod={'-x' if 'becomes' in says else '+x'}" in str(finding.hint)
    assert rules(case(file)) == []


@pytest.mark.parametrize(
    "file",
    [
        added("a"),
        modified("a", mode=EXECUTABLE),
        deleted("a", EXECUTABLE),
        moved("a", "b", EXECUTABLE),
        added("a", old=OLD_LINK),
    ],
    ids=["new plain file", "executable that stays one", "deletion", "move", "plain file for a symlink"],
)
def test_where_no_bit_changes_no_mode_is_refused(file: Part) -> None:
    assert rules(agents(file)) == []


# ---- symlinks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "target"),
    [
        (b"", b"a"),
        (b"", b"a/../b"),
        (b"docs", b"../src/a"),
        (b"a/b", b"../../c"),
        (b"", b"./a//b/"),
        (b"a", b".."),
        (b"", b".github/x"),
        (b"", b"..."),
    ],
)
def test_a_symlink_that_stays_inside_is_allowed_to_people(folder: bytes, target: bytes) -> None:
    assert stays_inside(folder, target)
    given = symlink(folder + b"/link" if folder else b"link", target)
    assert rules(case(given)) == []
    assert rules(agents(given)) == ["symlink"]


@pytest.mark.parametrize(
    ("folder", "target"),
    [
        (b"", b"/etc/passwd"),
        (b"", b".."),
        (b"a", b"../../b"),
        (b"a", b"../../a/b"),
        (b"", b".git/config"),
        (b"a", b"../.GIT/hooks"),
        (b"", b"git~1"),
        (b"", b""),
        (b"", b"a\\..\\..\\b"),
        (b"", b"a\0b"),
    ],
)
def test_a_symlink_that_leaves_or_enters_git_is_refused(folder: bytes, target: bytes) -> None:
    assert not stays_inside(folder, target)
    given = symlink(folder + b"/link" if folder else b"link", target)
    assert only(case(given)).rule == "symlink"
    assert rules(case(given, toml="policy.commit.allow_symlinks = true")) == []


def test_turning_a_file_into_a_symlink_that_leaves_is_refused() -> None:
    assert rules(case(symlink("a", b"../x", OLD_FILE))) == ["symlink"]
    assert rules(case(symlink("a", b"../x", OLD_LINK))) == ["symlink"]


def test_removing_a_symlink_or_replacing_it_by_a_file_is_allowed() -> None:
    assert rules(agents(deleted("a", SYMLINK))) == []
    assert rules(agents(added("a", old=OLD_LINK))) == []


def test_a_symlink_that_is_moved_is_judged_where_it_arrives() -> None:
    old, new = moved("a/link", "link", SYMLINK)
    assert rules(case((old, replace(new, link_target=b"../x")))) == ["symlink"]


def test_a_target_that_nobody_read_leaves_the_verdict_undecided() -> None:
    given = case(symlink("a", None))
    ended = outcome(given, "shape")
    assert ended.outcome is Outcome.UNDECIDED
    assert "target of a " in str(ended.reason)
    assert verdict(given).verdict is Verdict.UNDECIDED


# ---- gitlinks ---------------------------------------------------------------------------------------------


def test_people_may_move_a_submodule_and_not_add_one() -> None:
    assert rules(case(gitlink("m", OLD_GITLINK))) == []
    refused = only(case(gitlink("m")))
    assert (refused.rule, refused.path) == ("gitlink", path("m"))
    assert " adds " in refused.message
    assert rules(case(gitlink("m", OLD_FILE))) == ["gitlink"]


def test_agents_may_not_even_move_a_submodule() -> None:
    refused = only(agents(gitlink("m", OLD_GITLINK)))
    assert (refused.rule, refused.path) == ("gitlink", path("m"))
    assert " moves " in refused.message


def test_the_policy_can_allow_or_forbid_submodules() -> None:
    assert rules(case(gitlink("m"), toml="policy.commit.allow_gitlinks = true")) == []
    toml = "policy.commit.allow_gitlinks = false"
    assert rules(case(gitlink("m", OLD_GITLINK), toml=toml)) == ["gitlink"]


def test_removing_a_submodule_is_allowed() -> None:
    assert rules(agents(deleted("m", GITLINK))) == []
    assert rules(agents(added("m", old=OLD_GITLINK))) == []


def test_the_owner_of_a_moved_file_is_that_of_its_new_place() -> None:
    given = policy(DOCS + "max_files = 1")
    assert given.ruling(path("docs/x")).owner == 0
    assert given.ruling(path("src/x")).owner is None
