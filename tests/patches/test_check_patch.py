"""`check --patch`: what it is laid on, what is judged, and that the verdict is that of what git will make."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz_patches import (
    Trial,
    a_damaged_byte_is_refused_or_harmless,
    the_order_of_sections_changes_no_verdict,
    what_is_accepted_is_what_git_makes,
)
from tests.proposals import (
    ABC,
    PERMISSIVE,
    UNENDED,
    addition,
    assert_lands_as_judged,
    change_of,
    check,
    deletion,
    moved,
    refusal,
)
from tests.sessions.scripted_fixer import mend
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

_FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SEEDS = st.integers(min_value=0, max_value=2**32)
BUMP = (
    b"diff --git a/module b/module\nindex 1111111..2222222 160000\n--- a/module\n+++ b/module\n@@ -1 +1 @@\n"
    b"-Subproject commit " + b"1" * 40 + b"\n+Subproject commit " + b"2" * 40 + b"\n"
)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "g": ABC, "x": "x\n"})
    return made


def test_an_accepted_patch_has_the_verdict_that_its_commit_will_have(repo: Repo) -> None:
    """Promise 3."""
    patch = change_of() + addition(b"new", b"y") + deletion(b"x") + moved(b"g", b"folder/g")
    answer = assert_lands_as_judged(repo, patch)
    assert {path: row["status"] for path, row in answer.files.items()} == {
        "f": "modified",
        "new": "added",
        "x": "deleted",
        "folder/g": "renamed",
    }
    assert answer.change["source"]["kind"] == "patch"
    assert answer.change["profile"] == "agent"


def test_counts_and_patch_id_are_in_every_report(repo: Repo) -> None:
    for patch in (change_of() + addition(b"new"), change_of(old=b"nope")):
        stats = check(repo, patch).change["stats"]
        expected = repo.git("patch-id", "--stable", stdin=patch).split()[0].decode()
        assert stats["patch_id"] == expected
        assert stats["n_hunks"] == patch.count(b"\n@@ ")
        assert (stats["added_lines"], stats["removed_lines"]) == (
            patch.count(b"\n+") - patch.count(b"\n+++"),
            1,
        )


def test_unstaged_edits_of_a_touched_file_are_part_of_its_base(repo: Repo) -> None:
    repo.write("f", "a\nb\nc\nmore\n")
    patch = change_of().replace(b"-1,3 +1,3", b"-1,4 +1,4") + b" more\n"
    after = check(repo, patch).change["after"]
    repo.stage({"f": "a\nB\nc\nmore\n"})
    assert repo.ask("write-tree") == after


def test_unstaged_edits_of_other_files_are_no_part_of_the_base_and_staged_ones_are(repo: Repo) -> None:
    repo.stage({"g": "staged\n"})
    repo.write("x", "unstaged\n")
    answer = assert_lands_as_judged_over(repo, change_of())
    assert answer == ["f"]


def assert_lands_as_judged_over(repo: Repo, patch: bytes) -> list[str]:
    """Compare base and result with the index, before and after `git apply --index`; name the files."""
    answer = check(repo, patch)
    assert answer.code == 0
    assert repo.ask("write-tree") == answer.change["base"]
    repo.git("apply", "--index", "-", stdin=patch)
    assert repo.ask("write-tree") == answer.change["after"]
    return list(answer.files)


def test_an_untracked_file_in_the_way_exists_already(repo: Repo) -> None:
    repo.write("new", "mine\n")
    assert refusal(check(repo, addition(b"new"))) == ("git_check", "PATCH_GIT_CHECK_FAIL", ["already-exists"])


def test_a_file_that_is_deleted_on_disk_is_missing(repo: Repo) -> None:
    (repo.path / "f").unlink()
    assert refusal(check(repo, change_of()))[2] == ["target-missing"]


@pytest.mark.parametrize("attributes", ["f text eol=crlf\n", "f text=auto eol=crlf\n", "* text=auto\n"])
@pytest.mark.parametrize("autocrlf", ["true", "input", "false"])
def test_a_file_that_git_checks_out_as_crlf_takes_a_patch_in_lf(
    repo: Repo, attributes: str, autocrlf: str
) -> None:
    repo.git("config", "core.autocrlf", autocrlf)
    repo.commit({".gitattributes": attributes})
    repo.write("f", ABC.replace("\n", "\r\n"))
    repo.git("add", "f")
    assert assert_lands_as_judged(repo, change_of()).rules == []


def test_a_patch_in_lf_is_adapted_to_a_file_in_crlf_and_the_adapted_bytes_are_judged(repo: Repo) -> None:
    """E20."""
    repo.commit({"f": ABC.replace("\n", "\r\n")})
    answer = check(repo, change_of())
    assert (answer.code, answer.rules) == (0, ["eol-adapted"])
    repo.stage({"f": "a\r\nB\r\nc\r\n"})
    assert repo.ask("write-tree") == answer.change["after"]


def test_a_patch_in_crlf_is_adapted_to_a_file_in_lf(repo: Repo) -> None:
    patch = change_of()
    head, body = patch.split(b"@@\n", 1)
    answer = check(repo, head + b"@@\n" + body.replace(b"\n", b"\r\n"))
    assert (answer.code, answer.rules) == (0, ["eol-adapted"])
    repo.stage({"f": "a\nB\nc\n"})
    assert repo.ask("write-tree") == answer.change["after"]


def test_what_is_wrong_with_each_hunk_of_a_section_is_told_at_once_and_what_was_cut_has_no_fix(
    repo: Repo,
) -> None:
    repo.commit({"f": "".join(f"{number}\n" for number in range(1, 31))})
    head = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    hunks = [b"@@ -%d,2 +%d,2 @@\n %d\n-%d\n+x\n %d\n" % (n, n, n, n + 1, n + 2) for n in (1, 10, 20)]
    refused = check(repo, head + b"".join(hunks))
    assert (refused.errors, [each["details"]["patch_line"] for each in refused.findings]) == (
        ["hunk-count-mismatch"] * 3,
        [4, 9, 14],
    )
    assert check(repo, mend(head + b"".join(hunks), refused.report)).verdict == "accepted"
    whole = addition(b"new").replace(b"+1 @@", b"+1,60 @@") + b"+y\n" * 8
    cut = check(repo, whole)
    assert (refusal(cut)[2], cut.findings[0]["fix"]) == (["patch-truncated"], None)
    assert cut.findings[0]["details"]["expected"] == [0, 60]


def test_a_patch_that_is_wholly_in_crlf_is_adapted_like_its_body(repo: Repo) -> None:
    """E20: headers too; a new file gets LF, a file in CR LF keeps it, and a fix is for what was sent."""
    repo.commit({"g": ABC.replace("\n", "\r\n")})
    for patch, files in (
        (change_of(), {"f": "a\nB\nc\n"}),
        (change_of(b"g"), {"g": "a\r\nB\r\nc\r\n"}),
        (change_of() + addition(b"new"), {"f": "a\nB\nc\n", "new": "x\n"}),
        (b"\n" + change_of(), {"f": "a\nB\nc\n"}),
    ):
        answer = check(repo, patch.replace(b"\n", b"\r\n"))
        assert (answer.code, answer.rules) == (0, ["eol-adapted"])
        assert answer.change["stats"]["patch_id"] == check(repo, patch).change["stats"]["patch_id"]
        repo.stage(files)
        assert repo.ask("write-tree") == answer.change["after"]
        repo.git("reset", "-q", "--hard")
    for broken in (
        change_of().replace(b"-1,3", b"-1,2"),
        change_of().replace(b" a\n", b" z\n").replace(b"1,3", b"1,5") + b" d\n e\n",
        change_of().removesuffix(b"\n"),
        b"So:\n" + change_of(),
    ):
        repo.commit({"f": ABC + "d\ne\n"})
        sent = broken.replace(b"\n", b"\r\n")
        refused = check(repo, sent)
        mended = mend(sent, refused.report)
        assert (refused.code, mended.count(b"\n")) == (1, mended.count(b"\r\n"))
        assert check(repo, mended).rules == ["eol-adapted"], mended
    mixed = check(repo, change_of().replace(b"\n", b"\r\n", 3))
    assert "carriage-return-in-header" in refusal(mixed)[2]


def test_mixed_line_ends_are_refused_with_the_line(repo: Repo) -> None:
    repo.commit({"f": "a\r\nb\r\nc\n"})
    answer = check(repo, change_of())
    assert refusal(answer)[2] == ["eol-mixed"]
    assert isinstance(answer.findings[0]["details"]["patch_line"], int)


def test_a_hunk_that_stands_elsewhere_is_taken_with_a_note_where_its_lines_occur_once(repo: Repo) -> None:
    repo.commit({"f": "new\nnew\n" + ABC})
    patch = change_of().replace(b"-1,3 +1,3", b"-2,3 +2,3")
    assert assert_lands_as_judged(repo, patch).rules == ["hunk-offset"]


def test_a_hunk_whose_lines_occur_twice_is_ambiguous(repo: Repo) -> None:
    repo.commit({"f": "new\n" + ABC + ABC})
    patch = change_of().replace(b"-1,3 +1,3", b"-3,3 +3,3")
    assert refusal(check(repo, patch))[2] == ["hunk-ambiguous"]


def test_a_hunk_that_does_not_fit_names_line_expectation_and_what_is_there(repo: Repo) -> None:
    """E14."""
    (finding,) = check(repo, change_of(old=b"nope")).findings
    assert finding["rule"] == "hunk-mismatch"
    assert finding["path"] == "f"
    assert finding["details"]["patch_line"] == 6
    assert "nope" in str(finding["details"]["expected"])
    assert "b" in str(finding["details"]["actual"])


def test_the_help_names_what_was_sent_and_fits_what_is_judged(repo: Repo) -> None:
    """Other forms of a patch, white space alone, and steps that a patch or the working tree can take."""
    for raw, words in (
        (b"*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n*** End Patch\n", "*** Begin Patch"),
        (b"f\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n", "SEARCH/REPLACE"),
        (b'{"patch": {"edits": []}}\n', "--edits"),
        (b"Only words.\n", "send only the diff"),
    ):
        (finding,) = check(repo, raw).findings
        assert finding["rule"] == "not-a-unified-diff"
        assert words in str(finding["hint"])
    spaces = check(repo, change_of(old=b"  b")).findings[0]
    assert spaces["rule"] == "hunk-mismatch"
    assert "white space only" in str(spaces["message"])
    assert "white space only" not in str(check(repo, change_of(old=b"nope")).findings[0]["message"])
    (mode,) = check(repo, b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n").findings
    assert mode["rule"] == "mode-change"
    assert "git update-index" not in str(mode["hint"])
    assert repo.cli("intent", "declare", "-m", "Work on another file", "--allow", "g").code == 0
    (scope,) = check(repo, change_of()).findings
    assert (scope["rule"], scope["path"]) == ("scope-unexpected", "f")
    (repo.path / "f").write_text("z\n")
    (unstaged,) = repo.check("--worktree").findings
    assert (unstaged["rule"], unstaged["path"]) == ("scope-unexpected", "f")
    for found in (scope, unstaged):
        assert "--staged" not in str(found["hint"])
    (repo.path / "new").write_text("n\n")
    repo.git("add", "f")
    for found in repo.check("--worktree").findings:
        command = re.search(r"\((git stash push -u -- [^)]*)\)", str(found["hint"]))
        assert command is not None
        repo.git(*command[1].split()[1:])
    assert repo.git("status", "--porcelain") == b""


def test_what_git_says_is_in_the_details_of_its_refusal(repo: Repo) -> None:
    """B18."""
    patch = b"diff --git a/f b/f\ndeleted file mode 100644\n"
    answer = check(repo, patch)
    assert refusal(answer)[2] == ["git-refused"]
    assert "error: removal patch leaves file contents" in answer.findings[0]["details"]["stderr"]


def test_policy_and_gits_check_are_both_evaluated(repo: Repo) -> None:
    """All findings come at once; the stage is that of the first that failed."""
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    answer = check(repo, change_of(old=b"nope") + addition(b"runs/x") + addition(b"F"))
    assert refusal(answer) == (
        "policy",
        "PATCH_POLICY_DENY",
        ["deny-prefix", "hunk-mismatch", "path-collision"],
    )
    assert {gate["outcome"] for gate in answer.change["gates"]} <= {"pass", "fail", "not-applicable"}


@pytest.mark.parametrize("path", [b"runs/old", b"f"])
def test_both_sides_of_a_rename_are_judged(repo: Repo, path: bytes) -> None:
    repo.commit({"runs/old": ABC})
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    patch = moved(path, b"runs/new" if path == b"f" else b"new")
    answer = check(repo, patch)
    assert refusal(answer)[2] == ["deny-prefix"]


def test_the_source_of_a_copy_counts_as_touched(repo: Repo) -> None:
    repo.commit({"runs/old": ABC})
    assert_lands_as_judged(repo, moved(b"runs/old", b"new", b"copy"))
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    assert refusal(check(repo, moved(b"runs/old", b"new", b"copy")))[2] == ["deny-prefix"]


def test_a_copy_may_stand_beside_a_change_or_a_removal_of_its_source(repo: Repo) -> None:
    copy = moved(b"f", b"new", b"copy")
    for patch in (copy + change_of(), change_of() + copy, copy + moved(b"f", b"other")):
        assert_lands_as_judged(repo, patch)


@pytest.mark.parametrize(
    ("patch", "rule"),
    [
        (b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "mode-change"),
        (addition(b"new", mode=b"100755"), "mode-change"),
        (addition(b"new", b"f", b"120000", UNENDED), "symlink"),
        (addition(b"new", b"Subproject commit " + b"2" * 40, b"160000"), "gitlink"),
        (BUMP, "gitlink"),
    ],
    ids=["exec bit", "new program", "symlink", "gitlink", "gitlink bump"],
)
def test_modes_links_and_submodules_need_a_policy_that_allows_them(
    repo: Repo, patch: bytes, rule: str
) -> None:
    repo.gitlink("module")
    repo.git("commit", "-q", "-m", "Add a module")
    (repo.path / "module").mkdir()
    assert refusal(check(repo, patch)) == ("policy", "PATCH_POLICY_DENY", [rule])
    repo.policy(PERMISSIVE)
    (repo.path / "module").mkdir(exist_ok=True)
    assert_lands_as_judged(repo, patch)


def test_a_file_can_give_way_to_a_folder_of_its_name_and_back(repo: Repo) -> None:
    repo.commit({"d/x": "x\n"})
    assert_lands_as_judged(repo, deletion(b"d/x") + addition(b"d"))
    assert_lands_as_judged(repo, deletion(b"x") + addition(b"x/y"))


def test_a_patch_that_brings_the_first_policy_is_judged_by_it(repo: Repo) -> None:
    assert_lands_as_judged(repo, addition(b"patchgate.toml", b"[policy]"))
    denied = addition(b"patchgate.toml", b"policy.deny_prefixes = ['new']") + addition(b"new/x")
    assert "deny-prefix" in refusal(check(repo, denied))[2]


def test_a_patch_cannot_weaken_the_policy_that_judges_it(repo: Repo) -> None:
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    header = b"diff --git a/patchgate.toml b/patchgate.toml\n--- a/patchgate.toml\n+++ b/patchgate.toml\n"
    weaker = header + b"@@ -1,2 +1 @@\n [policy]\n-deny_prefixes = ['runs']\n"
    assert refusal(check(repo, weaker))[2] == ["agent-settings"]
    both = refusal(check(repo, weaker + addition(b"runs/x")))[2]
    assert both == ["agent-settings", "deny-prefix", "policy-change-not-alone"]
    assert refusal(check(repo, weaker + addition(b"new")))[2] == ["agent-settings", "policy-change-not-alone"]
    broken = header + b"@@ -1,2 +1,2 @@\n [policy]\n-deny_prefixes = ['runs']\n+deny_prefixes = 7\n"
    assert refusal(check(repo, broken))[2] == ["agent-settings", "policy-invalid"]
    removed = check(repo, moved(b"patchgate.toml", b"old.toml"))
    assert "policy-removed" in refusal(removed)[2]


def test_a_policy_that_is_only_on_disk_or_staged_does_not_judge(repo: Repo) -> None:
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    repo.write("patchgate.toml", "[policy]\n")
    assert refusal(check(repo, addition(b"runs/x")))[2] == ["deny-prefix"]
    repo.git("add", "-A")
    assert refusal(check(repo, addition(b"runs/x")))[2] == ["deny-prefix"]


def test_a_repository_without_a_commit_takes_a_patch(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert_lands_as_judged(repo, addition(b"new"))


def test_a_repository_of_sha256_takes_a_patch(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    repo.commit({"f": ABC})
    assert_lands_as_judged(repo, change_of() + addition(b"new"))


def test_an_index_with_conflicts_leaves_it_undecided(repo: Repo) -> None:
    oid = repo.ask("rev-parse", "HEAD:f")
    repo.git("update-index", "--force-remove", "f")
    lines = "".join(f"100644 {oid} {stage}\tf\n" for stage in (1, 2, 3))
    repo.git("update-index", "--index-info", stdin=lines.encode())
    answer = check(repo, change_of())
    assert (answer.code, answer.error["kind"]) == (3, "undecided")


def test_the_patch_is_read_from_standard_input_below_the_root_too(repo: Repo) -> None:
    (repo.path / "below").mkdir()
    done = repo.run("check", "--patch", "-", "--format", "json", stdin=change_of(), cwd=repo.path / "below")
    assert (done.code, list(done.files)) == (0, ["f"])


def test_a_missing_file_is_a_wrong_argument(repo: Repo) -> None:
    assert repo.check("--patch", str(repo.path / "nowhere")).code == 2
    assert repo.check("--patch", os.devnull).code == 1


@_FEW
@given(SEEDS)
def test_what_is_accepted_is_what_git_makes(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    repo = Repo.create(tmp_path_factory.mktemp("made"))
    what_is_accepted_is_what_git_makes(Trial(repo, random.Random(seed)))


@_FEW
@given(SEEDS)
def test_the_order_of_sections_changes_no_verdict(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    repo = Repo.create(tmp_path_factory.mktemp("order"))
    the_order_of_sections_changes_no_verdict(Trial(repo, random.Random(seed)))


@_FEW
@given(SEEDS)
def test_a_damaged_byte_is_refused_or_harmless(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    repo = Repo.create(tmp_path_factory.mktemp("damage"))
    a_damaged_byte_is_refused_or_harmless(Trial(repo, random.Random(seed)))
