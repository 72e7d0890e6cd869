"""The promises of the patch contract that no single rule keeps: the door, the root, the stages and codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchgate.apply.selftest_cases import RULES_WITH_A_CASE
from patchgate.cli.selftest import CASES
from patchgate.cli.selftest_intents import RULES_OF_INTENTS
from patchgate.report.rules import RULES, Level
from patchgate.report.schema import json_schema
from tests.proposals import check
from tests.world import Repo

STAGES = {"parse": "PATCH_PARSE_INVALID", "policy": "PATCH_POLICY_DENY", "git_check": "PATCH_GIT_CHECK_FAIL"}
GOOD = b"diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one file in a folder."""
    repo = Repo.create(tmp_path)
    repo.commit({"src/a.py": "one\n", "docs/page.md": "text\n"})
    return repo


@pytest.mark.parametrize(
    "sent",
    [
        b"def whole_file():\n    return 1\n",
        b'{"files": {"src/a.py": "two\\n"}}\n',
        b"*** Begin Patch\n*** Update File: src/a.py\n-one\n+two\n*** End Patch\n",
        b"*** src/a.py\n--- src/a.py\n***************\n*** 1 ****\n! one\n--- 1 ----\n! two\n",
        b"1c\ntwo\n.\n",
    ],
    ids=["a whole file", "another channel", "an envelope", "a context diff", "an ed script"],
)
def test_only_a_unified_diff_comes_through_the_door(repo: Repo, sent: bytes) -> None:
    """B1, B5."""
    answer = check(repo, sent)
    assert (answer.code, answer.errors) == (1, ["not-a-unified-diff"])
    assert check(repo, GOOD).verdict == "accepted"
    assert (repo.path / "src" / "a.py").read_text(encoding="utf-8") == "one\n"


def test_paths_are_those_of_the_root_wherever_the_command_is_called(repo: Repo) -> None:
    """B6, B14: from a subfolder `git apply` itself skips what lies outside of it, and says nothing."""
    (repo.path.parent / "good.patch").write_bytes(GOOD)
    patch = str(repo.path.parent / "good.patch")
    verdicts = []
    for place in (repo.path, repo.path / "src", repo.path / "docs"):
        answer = repo.check("--patch", patch, cwd=place)
        assert list(answer.files) == ["src/a.py"]
        verdicts.append((answer.verdict, answer.change["id"]))
    assert len(set(verdicts)) == 1
    assert verdicts[0][0] == "accepted"


def test_every_rule_has_one_of_the_stages_and_the_code_that_goes_with_it() -> None:
    """B16, B17."""
    codes = {rule.stage.value: rule.code for rule in RULES.values()}
    assert codes == STAGES | {
        "apply": "PATCH_APPLY_FAIL",
        "contracts": "CONTRACT_INVALID",
        "drift": "DRIFT_DETECTED",
        "scope": "SCOPE_VIOLATED",
        "verify": "VERIFY_FAILED",
        "placeholders": "PLACEHOLDER_FOUND",
        "message": "MESSAGE_REFUSED",
    }


@pytest.mark.parametrize("stage", STAGES)
def test_a_refusal_tells_the_stage_and_code_of_what_failed_first(repo: Repo, stage: str) -> None:
    """B16, B17, B18."""
    broken = {
        "parse": GOOD.replace(b"@@ -1 +1 @@", b"@@ -1,7 +1,7 @@"),
        "policy": GOOD.replace(b"src/a.py", b".git/a.py"),
        "git_check": GOOD.replace(b"-one", b"-eins"),
    }
    answer = check(repo, broken[stage])
    assert (answer.change["stage"], answer.change["code"]) == (stage, STAGES[stage])
    for finding in answer.findings:
        assert finding["message"]
        assert finding["hint"]


def test_the_registry_is_the_one_source_of_rules_codes_and_cases(repo: Repo) -> None:
    """E1: the cases, the schema and a real report know the rules of the registry and no others."""
    assert {case.rule for case in CASES} | RULES_WITH_A_CASE | RULES_OF_INTENTS == set(RULES)
    schema = json.dumps(json_schema())
    assert all(code in schema for code in STAGES.values())
    answer = check(repo, GOOD.replace(b"-one", b"-eins"))
    for finding in answer.findings:
        rule = RULES[finding["rule"]]
        assert (finding["stage"], finding["code"]) == (rule.stage.value, rule.code)
        assert Level(finding["level"]) is rule.level


NAMED = {
    "changed": b"diff --git a/%b b/%b\n--- a/%b\n+++ b/%b\n@@ -1 +1 @@\n-one\n+two\n",
    "deleted": (
        b"diff --git a/%b b/%b\ndeleted file mode 100644\n--- a/%b\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    ),
    "made executable": b"diff --git a/%b b/%b\nold mode 100644\nnew mode 100755\n",
    "renamed away": b"diff --git a/%b b/x\nsimilarity index 100%%\nrename from %b\nrename to x\n",
    "renamed to": b"diff --git a/x b/%b\nsimilarity index 100%%\nrename from x\nrename to %b\n",
    "copied": b"diff --git a/%b b/x\nsimilarity index 100%%\ncopy from %b\ncopy to x\n",
}


@pytest.mark.parametrize("how", NAMED)
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (b".git/config", "path-git-dir"),
        (b"../x", "path-traversal"),
        (b"/etc/passwd", "path-absolute"),
        (b"C:x", "path-drive-letter"),
        (b"notes:hidden", "path-colon"),
    ],
)
def test_a_name_that_may_not_be_is_refused_whatever_the_patch_does_to_it(
    repo: Repo, how: str, name: bytes, rule: str
) -> None:
    """B7: such a file was never looked up, and yet a patch that changed it in place was accepted."""
    form = NAMED[how]
    answer = check(repo, form % ((name,) * form.count(b"%b")))
    assert rule in answer.errors
    assert (answer.verdict, answer.change["stage"]) == ("rejected", "policy")
    outcomes = {gate["gate"]: gate["outcome"] for gate in answer.change["gates"]}
    assert outcomes["git_check"] == "not-run"
