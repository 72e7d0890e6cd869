"""Apply as a whole: the order of its steps, what is written and what never is, what each attempt leaves."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchgate.report.schema import json_schema
from tests.proposals import ABC, PERMISSIVE, addition, change_of, deletion, moved
from tests.schemas import require_valid
from tests.world import EXECUTABLE, Answer, Repo

pytestmark = pytest.mark.turns(3)

TRUE = '[commands.lint]\nkind = "lint"\ncommand = ["true"]\n'


def command(kind: str, script: str, name: str | None = None, **more: Any) -> str:
    """Write a command of the policy that runs a line of sh."""
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    words = json.dumps(["sh", "-c", script])
    return f'[commands.{name or kind}]\nkind = "{kind}"\ncommand = {words}\n{keys}'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def apply(repo: Repo, patch: bytes, *arguments: str, cwd: Path | None = None, **env: str) -> Answer:
    """Apply a patch that comes on standard input; the report is held to its schema."""
    answer = repo.run("apply", "-", "--format", "json", *arguments, stdin=patch, cwd=cwd, **env)
    if answer.code in {0, 1, 3} and "changes" in answer.report:
        require_valid(answer.report, json_schema())
    return answer


def attempt_of(answer: Answer) -> Path:
    return Path(answer.report["attempt"]["dir"])


def status(repo: Repo) -> str:
    return repo.git("status", "--porcelain", "--no-renames").decode()


def test_a_good_patch_lands_and_nothing_is_staged(repo: Repo) -> None:
    """B13: written only after all gates; E22, E23."""
    answer = apply(repo, change_of())
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert answer.report["attempt"]["applied"]
    assert answer.report["retry"] is None
    assert (repo.path / "f").read_text() == "a\nB\nc\n"
    assert status(repo) == " M f\n"


def test_a_patch_wholly_in_crlf_lands_once_and_is_kept_as_it_was_sent(repo: Repo) -> None:
    """B19, E20."""
    patch = change_of().replace(b"\n", b"\r\n")
    answer = apply(repo, patch)
    assert (answer.code, answer.rules) == (0, ["eol-adapted"])
    assert (repo.path / "f").read_bytes() == b"a\nB\nc\n"
    assert (attempt_of(answer) / "artifacts/diff.patch").read_bytes() == patch
    assert apply(repo, patch).errors == apply(repo, change_of()).errors == ["duplicate-patch"]


def test_with_index_the_result_is_staged_and_clean(repo: Repo) -> None:
    patch = change_of() + addition(b"new/h") + deletion(b"sub/g", b"x")
    repo.commit({"sub/g": "x\n"})
    assert apply(repo, patch, "--index").code == 0
    assert sorted(status(repo).splitlines()) == ["A  new/h", "D  sub/g", "M  f"]
    assert not (repo.path / "sub").exists()
    assert repo.git("diff-files") == b""
    repo.git("fsck", "--strict")


def test_all_findings_of_policy_and_git_are_given_and_nothing_runs(repo: Repo) -> None:
    """B13: the commands come after the gates."""
    repo.policy('[policy]\ndeny_prefixes = ["sub"]\n' + command("lint", "echo ran >$WITNESS"))
    witness = repo.path.parent / "witness"
    answer = apply(repo, change_of(old=b"other") + change_of(b"sub/g"), WITNESS=str(witness))
    assert answer.code == 1
    assert sorted(answer.errors) == ["deny-prefix", "hunk-mismatch"]
    assert not witness.exists()
    assert status(repo) == ""
    assert not answer.report["attempt"]["applied"]
    assert answer.report["attempt"]["fallback_reason"] == "deny-prefix"


def test_lint_comes_before_tests_and_stops_them(repo: Repo) -> None:
    told = repo.path.parent / "told"
    lint = command("lint", f"echo lint >>{told}; grep -q b f || exit 3")
    repo.policy(command("test", f"echo test >>{told}") + lint)
    answer = apply(repo, change_of())
    assert answer.code == 1
    (finding,) = answer.findings
    assert (finding["rule"], finding["stage"], finding["code"]) == (
        "lint-failed",
        "apply",
        "PATCH_APPLY_FAIL",
    )
    assert finding["details"]["exit_code"] == 3
    # The second time without the patch.
    assert told.read_text() == "lint\nlint\n"
    outcomes = {gate["gate"]: gate["outcome"] for gate in answer.change["gates"]}
    assert (outcomes["lint"], outcomes["test"]) == ("fail", "not-run")
    assert (repo.path / "f").read_text() == ABC


def test_a_lint_command_that_changes_files_has_judged_other_bytes(repo: Repo) -> None:
    """E22: what lands is what the commands have seen; the level is the policy's, and a test only warns."""
    fixes = "echo fixed >f"
    cases = [
        (command("lint", fixes), 1, ["error"]),
        (command("lint", f"{fixes}; exit 1"), 1, ["error", "error"]),
        ('[rules]\ncommand-changed-files = "note"\n' + command("lint", fixes), 0, ["note"]),
        ('[rules]\ncommand-changed-files = "off"\n' + command("lint", fixes), 0, []),
        (command("test", fixes), 0, ["warning"]),
        ('[rules]\ncommand-changed-files = "error"\n' + command("test", fixes), 1, ["error"]),
        (command("lint", f"{fixes}; sleep 60", timeout=0.3), 3, ["error"]),
    ]
    for policy, code, levels in cases:
        repo.policy(policy)
        answer = apply(repo, change_of(), "--dry-run")
        assert (answer.code, [each["level"] for each in answer.findings]) == (code, levels), policy
        changed = [each for each in answer.findings if each["rule"] == "command-changed-files"]
        assert [(each["path"], each["details"]["actual"]) for each in changed] in ([], [("f", ["f"])])
    assert answer.errors == ["command-timed-out"]


def test_a_command_that_declares_no_side_effects_and_changes_files_refuses(repo: Repo) -> None:
    """Requirement D 5.2: whatever its kind; of what is not tracked nobody speaks."""
    declared = 'side_effects = "none"\n'
    cases = [
        (command("test", "echo fixed >f") + declared, 1, ["command-side-effects"]),
        (command("lint", "echo fixed >f") + declared, 1, ["command-side-effects"]),
        (command("test", "echo fixed >f; exit 1") + declared, 1, ["build-failed", "command-side-effects"]),
        (command("test", "echo new >report.xml; touch f") + declared, 0, []),
        ('[rules]\ncommand-changed-files = "off"\n' + command("test", "rm f") + declared, 1, None),
        ('[rules]\ncommand-side-effects = "note"\n' + command("test", "rm f") + declared, 0, []),
    ]
    for policy, code, errors in cases:
        repo.policy(policy)
        answer = apply(repo, change_of(), "--dry-run")
        assert (answer.code, answer.errors) == (code, errors or answer.errors), policy
    assert answer.rules == ["command-side-effects"]
    repo.policy(command("test", "true") + 'side_effects = "writes_file"\n')
    assert repo.cli("policy", "show").code == 2


@pytest.mark.parametrize("also", ["", command("test", "true")])
def test_an_author_is_never_run_by_apply(repo: Repo, tmp_path: Path, also: str) -> None:
    """An author writes patches in a run; it is no judge of one."""
    left = tmp_path / "author-ran"
    author = command("author", f"touch {left}; exit 1", name="writer")
    repo.policy(author + 'role = "code_author"\nphase = "implementation"\n' + also)
    answer = apply(repo, change_of(), "-v")
    assert (answer.code, left.exists()) == (0, False)
    gates = {each["gate"]: each["outcome"] for each in answer.change["gates"]}
    assert (gates["lint"], gates["test"]) == ("not-applicable", "pass" if also else "not-applicable")
    logs = attempt_of(answer) / "logs"
    assert [each.name for each in logs.iterdir()] == (["test.log"] if also else [])


def test_the_linter_of_the_page_about_apply_refuses_what_it_could_fix(repo: Repo) -> None:
    """A project whose own settings say `fix = true` is linted all the same."""
    page = (Path(__file__).parents[2] / "docs/apply.md").read_text()
    repo.policy(page[page.index("[commands.ruff]") : page.index("[commands.tests]")])
    repo.commit({"pyproject.toml": "[tool.ruff]\nfix = true\n", "m.py": '"""A module."""\n'})
    imports = b'--- a/m.py\n+++ b/m.py\n@@ -1 +1,3 @@\n """A module."""\n+\n+import json\n'
    answer = apply(repo, b"diff --git a/m.py b/m.py\n" + imports)
    assert (answer.code, answer.errors) == (1, ["lint-failed"])
    assert (repo.path / "m.py").read_text() == '"""A module."""\n'


def test_a_test_that_fails_refuses_with_its_exit_code_and_the_end_of_its_output(repo: Repo) -> None:
    """E23: build-failed."""
    repo.policy(command("test", "grep -q b f && exit 0; for i in 1 2 3; do echo line $i; done; exit 7"))
    answer = apply(repo, change_of())
    (finding,) = answer.findings
    assert finding["rule"] == "build-failed"
    assert finding["details"]["exit_code"] == 7
    assert finding["details"]["tail"] == ["line 1", "line 2", "line 3"]
    assert (attempt_of(answer) / "logs/test.log").read_text() == "line 1\nline 2\nline 3\n"


@pytest.mark.parametrize("scope", ["tree", "files"])
def test_the_commands_see_the_patch_and_never_the_working_tree(repo: Repo, scope: str) -> None:
    script = 'cat f; pwd >"$PLACE"; echo scribbled >f; echo litter >litter'
    repo.policy(command("test", script, scope=scope))
    place = repo.path.parent / "place"
    answer = apply(repo, change_of(), PLACE=str(place))
    assert answer.code == 0
    assert (attempt_of(answer) / "logs/test.log").read_text() == "a\nB\nc\n"
    assert not Path(place.read_text().strip()).is_relative_to(repo.path)
    assert (repo.path / "f").read_text() == "a\nB\nc\n"
    assert "command-changed-files" in answer.rules
    assert status(repo) == " M f\n"


def test_the_scratch_tree_has_uncommitted_changes_of_tracked_files_and_no_untracked_ones(repo: Repo) -> None:
    repo.policy(command("test", "cat sub/g; ls"))
    repo.write("sub/g", "changed\n")
    repo.write("untracked")
    answer = apply(repo, change_of())
    assert (attempt_of(answer) / "logs/test.log").read_text() == "changed\nf\npatchgate.toml\nsub\n"


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ('[commands.c]\nkind = "test"\ncommand = ["./nothing"]\n', "command-not-started"),
        (TRUE + 'required_tools = ["no-such-tool"]\n', "command-not-started"),
        ('[commands.c]\nkind = "test"\ncommand = ["sleep", "60"]\ntimeout = 0.1\n', "command-timed-out"),
    ],
)
def test_what_could_not_be_tried_is_undecided_and_no_fault_of_the_patch(
    repo: Repo, policy: str, rule: str
) -> None:
    repo.policy(policy)
    answer = apply(repo, change_of())
    assert (answer.code, answer.verdict, answer.errors) == (3, "undecided", [rule])
    assert answer.findings[0]["who_can_fix"] in {"environment", "person"}
    assert answer.report["retry"] is None
    assert (repo.path / "f").read_text() == ABC


def test_a_command_that_hangs_with_children_leaves_none(repo: Repo) -> None:
    script = "sleep 600.125 & (setsid sleep 600.125 &) ; sleep 600.125"
    repo.policy(command("test", script, timeout=0.3))
    assert apply(repo, change_of()).errors == ["command-timed-out"]
    listed = subprocess.run(["pgrep", "-f", "sleep 600.125"], capture_output=True, check=False)
    assert listed.stdout == b""


def test_a_dry_run_tries_everything_and_writes_nothing(repo: Repo) -> None:
    repo.policy(command("test", "grep -q B f"))
    answer = apply(repo, change_of(), "--dry-run")
    assert (answer.code, answer.report["attempt"]["applied"]) == (0, False)
    assert status(repo) == ""
    assert apply(repo, change_of()).report["attempt"]["applied"]


def test_only_narrows_the_patch_before_it_is_judged(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = ["sub"]\n')
    patch = change_of() + change_of(b"sub/g")
    answer = apply(repo, patch, "--only", "f")
    assert answer.code == 0
    candidate = (attempt_of(answer) / "artifacts/diff.patch").read_bytes()
    assert candidate == change_of()
    assert (
        hashlib.sha256(candidate).hexdigest() in (attempt_of(answer) / "reviews/review_patch.md").read_text()
    )
    assert status(repo) == " M f\n"
    wrong = repo.run("apply", "-", "--only", "g", stdin=patch)
    assert (wrong.code, " name g\n" in wrong.err) == (2, True)


def test_a_patch_for_an_older_commit_is_merged_and_applied(repo: Repo) -> None:
    repo.commit({"f": "a\nb\nc\nd\ne\nf\ng\n"})
    base = repo.commit({"f": "a\nb\nc\nd\ne\nf\ng\nh\n"})
    repo.commit({"f": "0\na\nb\nc\nd\ne\nf\ng\nh\n"})
    patch = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -6,3 +6,3 @@\n f\n g\n-h\n+H\n"
    assert apply(repo, patch, "--base", base).code == 0
    assert (repo.path / "f").read_text() == "0\na\nb\nc\nd\ne\nf\ng\nH\n"


def test_with_a_base_a_file_with_uncommitted_changes_is_no_ground(repo: Repo) -> None:
    repo.write("f", "a\nb\nc\nlocal\n")
    answer = apply(repo, change_of(), "--base", "HEAD")
    assert (answer.code, answer.errors) == (1, ["base-conflict"])
    assert (repo.path / "f").read_text() == "a\nb\nc\nlocal\n"


def test_edits_become_a_patch_and_land(repo: Repo) -> None:
    edits = {"path": "f", "start": 2, "end": 2, "new_text": "B\n"}
    file = repo.path.parent / "edits.json"
    file.write_text(json.dumps({"patch": {"edits": [edits]}, "summary": "Change b"}))
    answer = repo.run("apply", "--edits", str(file), "--format", "json")
    assert answer.code == 0
    assert (repo.path / "f").read_text() == "a\nB\nc\n"


def test_several_edits_whose_lines_shift_land_where_they_say(repo: Repo) -> None:
    edits = [
        {"path": "f", "start": 1, "end": 1, "new_text": "A\nA2\nA3\n"},
        {"path": "f", "start": 3, "end": 3, "new_text": "C\n"},
    ]
    file = repo.path.parent / "edits.json"
    file.write_text(json.dumps({"patch": {"edits": edits}, "summary": "Change a and c"}))
    assert repo.run("apply", "--edits", str(file)).code == 0
    assert (repo.path / "f").read_text() == "A\nA2\nA3\nb\nC\n"


def test_new_deleted_and_renamed_files_land_and_modes_stay(repo: Repo) -> None:
    repo.policy(PERMISSIVE)
    repo.write("run.sh", "a\nb\nc\n", executable=True)
    repo.commit({"old": "x\n", "gone": "x\n"})
    patch = (
        addition(b"deep/down/new")
        + deletion(b"gone")
        + moved(b"old", b"other/place")
        + change_of(b"run.sh")
        + addition(b"tool", mode=b"100755")
    )
    assert apply(repo, patch).code == 0
    assert (repo.path / "deep/down/new").read_text() == "x\n"
    assert not (repo.path / "gone").exists()
    assert not (repo.path / "old").exists()
    assert (repo.path / "other/place").read_text() == "x\n"
    assert os.access(repo.path / "run.sh", os.X_OK)
    assert os.access(repo.path / "tool", os.X_OK)
    assert not os.access(repo.path / "deep/down/new", os.X_OK)


def test_line_ends_a_byte_order_mark_and_a_missing_last_newline_stay(repo: Repo) -> None:
    repo.write("dos", b"a\r\nb\r\nc\r\n")
    repo.write("bom", b"\xef\xbb\xbfa\nb\nc\n")
    repo.write("unended", b"a\nb\nc\nd")
    repo.commit()
    first = b"diff --git a/bom b/bom\n--- a/bom\n+++ b/bom\n@@ -2,2 +2,2 @@\n-b\n+B\n c\n"
    assert apply(repo, change_of(b"dos") + first + change_of(b"unended")).code == 0
    assert (repo.path / "dos").read_bytes() == b"a\r\nB\r\nc\r\n"
    assert (repo.path / "bom").read_bytes() == b"\xef\xbb\xbfa\nB\nc\n"
    assert (repo.path / "unended").read_bytes() == b"a\nB\nc\nd"


def test_a_path_that_leaves_the_repository_is_refused(repo: Repo) -> None:
    """B7."""
    answer = apply(repo, addition(b"../outside"))
    assert (answer.code, "path-traversal" in answer.errors) == (1, True)
    assert not (repo.path.parent / "outside").exists()


def test_a_file_that_is_changed_while_the_tests_run_is_not_overwritten(repo: Repo) -> None:
    repo.policy(command("test", 'echo mine >"$ORIGINAL"'))
    answer = apply(repo, change_of(), ORIGINAL=str(repo.path / "f"))
    assert (answer.code, answer.verdict, answer.errors) == (3, "undecided", ["concurrent-change"])
    assert (repo.path / "f").read_text() == "mine\n"
    assert answer.report["retry"] is None


@pytest.mark.parametrize("what", ["commit", "stage"])
def test_head_or_an_index_that_moves_while_the_tests_run_is_a_concurrent_change(
    repo: Repo, what: str
) -> None:
    script = {
        "commit": 'git -C "$TOP" -c user.name=N -c user.email=e commit -q -m x -- sub/g',
        "stage": 'git -C "$TOP" add sub/g',
    }
    repo.write("sub/g", "staged\n")
    repo.policy(command("test", f'echo more >>"$TOP/sub/g"; {script[what]}'))
    answer = apply(repo, change_of(), TOP=str(repo.path))
    assert (answer.code, answer.errors) == (3, ["concurrent-change"])
    assert (repo.path / "f").read_text() == ABC


def test_an_index_that_is_only_refreshed_meanwhile_is_none(repo: Repo) -> None:
    repo.policy(command("test", 'touch "$TOP/sub/g"; git -C "$TOP" update-index -q --refresh'))
    assert apply(repo, change_of(), TOP=str(repo.path)).code == 0


def test_the_commands_are_those_of_the_policy_before_the_patch(repo: Repo) -> None:
    free = '[rules]\nagent-settings = "off"\n'
    repo.policy(command("test", "exit 1") + free)
    mine = (TRUE + free).encode().replace(b"\n", b"\n+").removesuffix(b"+")
    old = (repo.path / "patchgate.toml").read_bytes()
    patch = (
        b"diff --git a/patchgate.toml b/patchgate.toml\n--- a/patchgate.toml\n+++ b/patchgate.toml\n"
        b"@@ -1,%d +1,%d @@\n"
        % (old.count(b"\n"), mine.count(b"\n"))
        + b"".join(b"-%b\n" % line for line in old.splitlines())
        + b"+"
        + mine
    )
    assert apply(repo, patch).errors == ["build-failed"]


def test_a_bare_repository_has_nothing_to_apply_to(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--bare")
    answer = repo.run("apply", "-", stdin=change_of())
    assert (answer.code, "bare repository" in answer.err) == (2, True)


def test_below_the_root_a_patch_still_speaks_from_the_root(repo: Repo) -> None:
    """B14."""
    assert apply(repo, change_of(), cwd=repo.path / "sub").code == 0
    assert (repo.path / "f").read_text() == "a\nB\nc\n"


@pytest.mark.parametrize("inside", [True, False])
def test_evidence_among_the_files_is_refused_unless_it_is_ignored(repo: Repo, inside: bool) -> None:
    """B15."""
    repo.commit({".gitignore": "evidence/\n"})
    place = "runs/1" if inside else "evidence"
    (repo.path / "runs").mkdir()
    answer = apply(repo, change_of(), "--run-dir", place)
    assert answer.code == (2 if inside else 0)
    assert (repo.path / place / "artifacts/diff.patch").exists() is not inside


def test_a_rejection_keeps_the_candidate_and_tells_its_reason_three_times(repo: Repo) -> None:
    """B18, B19, B20, E24."""
    repo.policy('[policy]\ndeny_prefixes = ["sub"]\n')
    patch = change_of(b"sub/g")
    answer = apply(repo, patch)
    place = attempt_of(answer)
    assert (place / "artifacts/diff.patch").read_bytes() == patch
    for name in ("reviews/review_patch.md", "outbox/feedback.md", "artifacts/report.json"):
        assert "deny-prefix" in (place / name).read_text()
    assert (place / "failure_bundle.zip").exists()
    stats = answer.change["stats"]
    assert (stats["n_hunks"], stats["added_lines"], stats["removed_lines"]) == (1, 1, 1)
    assert stats["patch_id"]
    assert answer.report["attempt"]["fallback_reason"] == "deny-prefix"
    assert answer.report["attempt"]["temp_path"] is None


def test_the_feedback_has_the_fix_of_what_is_mechanical(repo: Repo) -> None:
    """The `fix` of the JSON reaches who reads the feedback alone; what was cut off has none."""
    whole = change_of()
    header = next(line for line in whole.splitlines() if line.startswith(b"@@"))
    for patch, words in (
        (b"Here it is:\n" + whole, "fix: leave out patch line 1\n"),
        (whole.replace(header, b"@@ -1,2 +1,2 @@"), f"`{header.decode()}`\n"),
        (whole.replace(header, b"@@ -1,9 +1,9 @@"), None),
    ):
        answer = apply(repo, patch)
        assert answer.code == 1
        said = (attempt_of(answer) / "outbox/feedback.md").read_text()
        assert words in said if words is not None else "fix: " not in said


def test_a_kept_scratch_tree_is_named_and_is_there(repo: Repo) -> None:
    """E23: temp_path only while it exists."""
    repo.policy(command("test", "echo left >left; exit 1"))
    kept = apply(repo, change_of(), "--keep-scratch").report["attempt"]["temp_path"]
    assert (Path(kept) / "left").read_text() == "left\n"
    assert (Path(kept) / "f").read_text() == "a\nB\nc\n"
    assert apply(repo, change_of()).report["attempt"]["temp_path"] is None


def test_check_counts_for_no_retry_and_leaves_no_attempt(repo: Repo) -> None:
    repo.run("check", "--patch", "-", stdin=change_of(old=b"other"))
    assert not (repo.path / ".git/patchgate/attempts").exists()


def test_what_is_no_patch_is_refused_with_evidence_and_a_retry_line(repo: Repo) -> None:
    """B1, B2, B5."""
    answer = repo.run("apply", "-", stdin=b"I have changed the file as you asked.\n")
    assert answer.code == 1
    last = answer.out.splitlines()[-1]
    assert last.startswith("try 2 of 5: ")
    assert ": git patchgate apply - " in last


def test_one_input_is_needed_and_one_only(repo: Repo) -> None:
    assert repo.run("apply").code == 2
    assert repo.run("apply", "x", "--edits", "y").code == 2
    assert repo.run("apply", "nowhere").code == 2
    assert EXECUTABLE.exists()


def test_a_ledger_that_cannot_be_written_refuses_before_anything(repo: Repo) -> None:
    (repo.path / ".git/patchgate/events.jsonl").mkdir(parents=True)
    answer = apply(repo, change_of())
    assert (answer.code, "events.jsonl" in answer.error["message"]) == (3, True)
    assert status(repo) == ""
    assert not (repo.path / ".git/patchgate/attempts").exists()


def test_a_ledger_that_fails_after_the_patch_landed_is_a_warning_and_recorded_later(repo: Repo) -> None:
    repo.policy(command("test", 'rm -f "$LEDGER"; mkdir "$LEDGER"'))
    ledger = repo.path / ".git/patchgate/events.jsonl"
    answer = apply(repo, change_of(), LEDGER=str(ledger))
    assert (answer.code, answer.report["attempt"]["applied"]) == (0, True)
    assert any("not recorded" in warning for warning in answer.report["warnings"])
    ledger.rmdir()
    assert "now recorded" in repo.run("recover").out
    assert apply(repo, change_of()).errors == ["duplicate-patch"]
    assert repo.run("recover").out == "nothing to recover\n"


def test_a_new_process_knows_what_an_old_one_applied_until_it_is_reverted(repo: Repo) -> None:
    """E17."""
    first = apply(repo, change_of()).report["attempt"]["id"]
    again = apply(repo, change_of())
    assert (again.code, again.errors, again.report["retry"]) == (1, ["duplicate-patch"], None)
    assert first in again.findings[0]["message"]
    assert again.change["stage"] == "policy"
    fine = apply(repo, change_of(), "--if-applied", "ok")
    assert (fine.code, fine.report["attempt"]["applied"], fine.rules) == (0, False, ["duplicate-patch"])
    repo.git("checkout", "-q", "f")
    assert apply(repo, change_of()).report["attempt"]["applied"]


def test_what_looks_like_a_secret_is_masked_in_logs_and_never_in_the_candidate(repo: Repo) -> None:
    repo.policy(command("test", 'echo "token $MY_API_TOKEN"; exit 1'))
    answer = apply(repo, change_of(), MY_API_TOKEN="hunter2-hunter2")
    for file in attempt_of(answer).rglob("*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes()
    assert "hunter2" not in answer.out


@pytest.mark.parametrize("arguments", [(), ("--keep-scratch",)])
def test_what_one_command_changes_the_next_does_not_see(repo: Repo, arguments: tuple[str, ...]) -> None:
    allowed = '[rules]\ncommand-changed-files = "warning"\n'
    repo.policy(allowed + command("lint", "echo B >f") + command("test", "cat f"))
    answer = apply(repo, change_of(), *arguments)
    assert (attempt_of(answer) / "logs/test.log").read_text() == "a\nB\nc\n"
    assert "command-changed-files" in answer.rules


def test_what_an_attempt_leaves_in_the_scratch_tree_does_not_let_the_next_one_pass(repo: Repo) -> None:
    repo.commit({".gitignore": "ignored\n"})
    repo.policy(command("test", "[ -e ignored ] && exit 0; echo x >ignored; echo x >untracked; exit 1"))
    assert apply(repo, change_of()).errors == ["build-failed"]
    assert apply(repo, change_of(new=b"BB")).errors == ["build-failed"]


def test_a_patch_that_no_command_tried_says_so(repo: Repo) -> None:
    assert repo.run("apply", "-", stdin=change_of()).out.endswith(
        "accepted: 1 file, no findings; no commands ran\n"
    )
    repo.policy(TRUE)
    done = repo.run("apply", "-", stdin=change_of(b"sub/g"))
    assert done.out.endswith("accepted: 1 file, no findings\n")


def test_a_command_that_had_nothing_to_look_at_did_not_pass(repo: Repo) -> None:
    repo.policy('[commands.c]\nkind = "lint"\ncommand = ["true", "{files}"]\n')
    repo.commit({"gone": "x\n"})
    answer = apply(repo, deletion(b"gone"))
    outcomes = {gate["gate"]: gate["outcome"] for gate in answer.change["gates"]}
    assert (answer.code, outcomes["lint"]) == (0, "not-applicable")


def test_what_could_not_land_is_refused_before_the_commands_take_their_time(repo: Repo) -> None:
    repo.policy(command("test", "echo ran >$WITNESS"))
    repo.write("f", "a\nb\nc\nlocal\n")
    witness = repo.path.parent / "witness"
    answer = apply(repo, change_of(), "--index", WITNESS=str(witness))
    assert (answer.code, answer.errors) == (1, ["index-differs"])
    assert not witness.exists()


def test_a_file_is_named_from_where_the_command_is_told_to_run(repo: Repo) -> None:
    repo.write("sub/p.patch", change_of())
    done = repo.run("-C", str(repo.path / "sub"), "apply", "p.patch", cwd=repo.path.parent)
    assert done.code == 0
    refused = repo.run("-C", "sub", "check", "--patch", "p.patch")
    assert (refused.code, "hunk-mismatch" in refused.out) == (1, True)


def test_a_retry_line_keeps_what_was_asked(repo: Repo) -> None:
    answer = apply(repo, change_of(old=b"other"), "--index", "--only", "f")
    assert answer.report["retry"]["command"].endswith(" --index --only f")


def test_a_kept_tree_that_somebody_wrote_to_between_two_attempts_lets_nothing_pass(repo: Repo) -> None:
    repo.commit({"check.sh": "exit 1\n"})
    place = repo.path.parent / "place"
    repo.policy('[commands.t]\nkind = "test"\ncommand = ["sh", "-c", "pwd >$PLACE; . ./check.sh"]\n')
    assert apply(repo, change_of(), PLACE=str(place)).errors == ["build-failed"]
    Path(place.read_text().strip(), "check.sh").write_text("exit 0\n")
    answer = apply(repo, change_of(new=b"BB"), PLACE=str(place))
    assert (answer.errors, answer.rules) == (["build-failed"], ["build-failed"])


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("writing", "named"),
    [
        ("echo bad >sub/g", ["sub/g"]),
        ("rm -f sub/g", ["sub/g"]),
        ("rm -f sub/g; ln -s f sub/g", ["sub/g"]),
        ("chmod +x sub/g", ["sub/g"]),
        ("echo bad >dirty; echo bad >sub/g", ["dirty", "sub/g"]),
    ],
)
def test_a_patch_does_not_land_beside_another_file_than_it_was_tried_with(
    repo: Repo, writing: str, named: list[str]
) -> None:
    repo.commit({"dirty": "good\n"})
    repo.policy(command("test", f"cd $TOP; {writing}"))
    repo.write("dirty", "uncommitted\n")
    answer = apply(repo, change_of(), TOP=str(repo.path))
    assert (answer.code, answer.errors) == (3, ["concurrent-change"] * len(named))
    assert [finding["path"] for finding in answer.findings] == named
    assert (repo.path / "f").read_text() == ABC
    again = apply(repo, change_of(), TOP=str(repo.path))
    assert (again.code, again.errors) == (0, []), "nothing changes any more"


def test_what_is_written_beside_the_tracked_files_while_tests_run_keeps_no_patch_back(repo: Repo) -> None:
    repo.policy(command("test", "cd $TOP; echo x >new; touch sub/g; cat sub/g >t; cat t >sub/g"))
    repo.write("sub/g", "uncommitted\n")
    answer = apply(repo, change_of(), TOP=str(repo.path))
    assert (answer.code, answer.verdict) == (0, "accepted")
