"""What fails without the patch too is not its fault: it is run there once, and the failures are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.apply.apply import apply as land
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import open_repository
from tests.apply.test_apply import apply, attempt_of, command, status
from tests.proposals import ABC, addition, change_of
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

REPORT = '[apply]\npreexisting = "report"\n'
TESTS = (
    '[commands.tests]\nkind = "test"\ncommand = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]\n'
)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def tried(repo: Repo, patch: bytes, witness: Path | None = None) -> tuple[int, list[tuple[str, str]], Answer]:
    """Try a patch without writing; give the exit code and the rules with their levels."""
    answer = apply(repo, patch, "--dry-run", WITNESS=str(witness))
    return answer.code, [(each["rule"], each["level"]) for each in answer.findings], answer


def test_tests_that_fail_on_head_are_not_the_fault_of_the_patch(repo: Repo) -> None:
    old = (
        "def test_old():\n    assert False\n\n\ndef test_good():\n    assert 'bad' not in open('f').read()\n"
    )
    repo.commit({"test_it.py": old})
    repo.policy(TESTS)
    more = b"diff --git a/test_new.py b/test_new.py\nnew file mode 100644\n--- /dev/null\n+++ b/test_new.py\n"
    more += b"@@ -0,0 +1,2 @@\n+def test_new():\n+    assert True\n"
    answer = apply(repo, change_of() + more)
    assert (answer.code, answer.errors) == (1, ["failed-before"])
    (finding,) = answer.findings
    assert (finding["stage"], finding["who_can_fix"]) == ("apply", "person")
    assert finding["details"]["failed"] == ["test_it::test_old"]
    assert finding["details"]["before"] == {"exit_code": 1, "same": True}
    # Nothing is asked of who sent the patch, and nothing counts against it.
    assert answer.report["retry"] is None
    assert (attempt_of(answer) / "logs/tests-before.log").exists()
    assert "tests without the patch" in (attempt_of(answer) / "reviews/review_patch.md").read_text()
    worse = apply(repo, change_of(new=b"bad"))
    assert (worse.code, worse.errors) == (1, ["build-failed"])
    assert worse.findings[0]["details"]["before"] == {
        "exit_code": 1,
        "same": False,
        "new": ["test_it::test_good"],
    }
    assert worse.report["retry"]["number"] == 2
    # Known from the first attempt.
    assert not (attempt_of(worse) / "logs/tests-before.log").exists()


def test_no_failure_is_hidden_behind_an_old_one_by_a_run_that_stops_in_colour(repo: Repo) -> None:
    old = "def test_a():\n    assert 0\n\n\ndef test_b():\n    assert 'bad' not in open('f').read()\n"
    repo.commit({"test_it.py": old})
    repo.policy(REPORT + TESTS.replace('"-q"', '"-q", "-x", "--color=yes"'))
    assert tried(repo, change_of(new=b"bad"))[:2] == (1, [("build-failed", "error")])


def test_the_policy_may_let_a_patch_land_beside_an_old_failure(repo: Repo) -> None:
    old = command("lint", "cat sub/g; exit 3") + command("test", "cat sub/g; exit 4")
    repo.policy(REPORT + old)
    answer = apply(repo, change_of())
    assert (answer.code, answer.report["attempt"]["applied"]) == (0, True)
    assert [(each["rule"], each["level"]) for each in answer.findings] == [("failed-before", "warning")] * 2
    outcomes = {gate["gate"]: gate["outcome"] for gate in answer.change["gates"]}
    assert (outcomes["lint"], outcomes["test"]) == ("pass", "pass")
    assert status(repo) == " M f\n"
    # Another output, another exit code or silence cannot be compared: refused all the same.
    for script in ("cat f sub/g; exit 3", "cat sub/g; grep -q X f && exit 3; exit 2", "exit 3"):
        repo.policy(REPORT + command("lint", script))
        code, rules, told = tried(repo, change_of(old=b"B", new=b"X"))
        assert (code, rules) == (1, [("lint-failed", "error")]), script
        assert told.findings[0]["details"]["before"]["same"] is None


def test_what_only_fails_with_the_patch_is_refused_as_before(repo: Repo) -> None:
    cases = [
        (command("lint", "echo bad; ! grep -q B f"), change_of()),
        # Without the patch it has nothing to look at.
        ('[commands.l]\nkind = "lint"\ncommand = ["false", "{files}"]\n', addition(b"new")),
        (command("lint", "echo late; grep -q B f && exit 1; exec sleep 60", timeout=0.3), change_of()),
    ]
    for policy, patch in cases:
        repo.policy(REPORT + policy)
        assert tried(repo, patch)[:2] == (1, [("lint-failed", "error")]), policy


def test_findings_are_compared_one_by_one(repo: Repo) -> None:
    def document(*lines: int) -> str:
        places = ({"artifactLocation": {"uri": "sub/g"}, "region": {"startLine": each}} for each in lines)
        results = [
            {"ruleId": "R", "message": {"text": "m"}, "locations": [{"physicalLocation": place}]}
            for place in places
        ]
        runs = [{"tool": {"driver": {"name": "it"}}, "results": results}]
        return json.dumps({"version": "2.1.0", "runs": runs})

    repo.commit({"one": document(1, 3), "two": document(3), "three": document(2, 3)})
    repo.policy(
        REPORT + command("lint", "case $(sed -n 2p f) in b) cat one;; *) cat $(sed -n 2p f);; esac; exit 1")
    )
    assert tried(repo, change_of(new=b"two"))[:2] == (0, [("failed-before", "warning")])
    code, rules, answer = tried(repo, change_of(new=b"three"))
    assert (code, rules) == (1, [("lint-failed", "error")])
    assert answer.findings[0]["details"]["before"]["new"] == ["sub/g:2: R"]


def test_the_base_is_what_stands_there_now_and_is_asked_once(repo: Repo) -> None:
    witness = repo.path.parent / "witness"
    repo.policy(command("lint", 'cat sub/g; echo x >>"$WITNESS"; grep -q bad sub/g && exit 1; exit 0'))
    repo.write("sub/g", "bad\n")

    def runs(patch: bytes) -> int:
        witness.write_text("")
        assert tried(repo, patch, witness)[1] == [("failed-before", "error")]
        return witness.read_text().count("x")

    assert [runs(change_of()), runs(change_of(new=b"C"))] == [2, 1]
    repo.write("sub/g", "bad\nbad\n")
    assert runs(change_of()) == 2
    kept = list((repo.path / ".git/patchgate/before").iterdir())
    assert len(kept) == 2
    # What is damaged counts for nothing, nor does what is older than an hour.
    for file in kept:
        file.write_bytes(file.read_bytes().replace(b"exit_code", b"exit_cod3"))
    assert [runs(change_of()), runs(change_of())] == [2, 1]
    repository = open_repository(repo.env, str(repo.path))
    environ = {**repo.env, "WITNESS": str(witness)}
    request = ApplyRequest(change_of(), CheckOptions(), is_dry_run=True)
    place = ApplyEnvironment(environ, str(repo.path.parent / "cache"))
    witness.write_text("")
    land(repository, request, replace(place, clock=lambda: 4e9))
    assert witness.read_text().count("x") == 2


def test_with_both_trees_in_use_each_sees_its_own_and_nothing_is_left(repo: Repo) -> None:
    repo.policy(
        REPORT + command("lint", "cat sub/g; pwd; echo left >left; exit 1") + command("test", "cat f")
    )
    answer = apply(repo, change_of(), "--keep-scratch")
    assert (answer.code, answer.rules) == (0, ["failed-before"])
    kept = Path(answer.report["attempt"]["temp_path"])
    assert (kept / "f").read_text() == (attempt_of(answer) / "logs/test.log").read_text() == "a\nB\nc\n"
    assert not (kept / "left").exists()
    assert any("kept too" in warning for warning in answer.report["warnings"])
