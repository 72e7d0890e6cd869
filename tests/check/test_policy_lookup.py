"""What may be asked about how to judge: another policy, another profile, exit code 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate import __version__
from tests.world import Repo

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
PROJECT = '[project]\nname = "x"\n\n[tool.patchgate.policy]\ndeny_prefixes = []\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose policy was strict once, and is not any more."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.git("tag", "strict")
    made.policy("[policy]\n")
    return made


def test_the_policy_of_another_revision_judges(repo: Repo) -> None:
    repo.stage({"runs/x": "x\n"})
    assert repo.check().verdict == "accepted"
    answer = repo.check("--policy-from", "strict")
    assert answer.errors == ["deny-prefix"]
    assert answer.change["policy"]["from"] == "strict:patchgate.toml"
    assert repo.check("--worktree", "--policy-from", "strict").errors == ["deny-prefix"]
    assert repo.check("--all", "--policy-from", "strict").errors == ["deny-prefix"]
    repo.commit()
    assert repo.check("HEAD", "--policy-from", "strict").change["id"] == answer.change["id"]


def test_a_range_is_judged_by_the_policy_that_was_asked_for_throughout(repo: Repo) -> None:
    repo.commit({"runs/1": "x\n"})
    repo.commit({"runs/2": "x\n"})
    answer = repo.check("HEAD~2..HEAD", "--policy-from", "strict")
    assert answer.errors == ["deny-prefix", "deny-prefix"]


def test_a_policy_change_stands_alone_under_another_policy_too(repo: Repo) -> None:
    repo.stage({"patchgate.toml": "[policy]\ndeny = []\n", "b": "x\n"})
    assert repo.check("--policy-from", "strict").errors == ["policy-change-not-alone"]


def test_an_edit_of_pyproject_beside_its_policy_is_no_control_under_another_policy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    old = repo.commit({"pyproject.toml": PROJECT.replace("[]", '["runs"]')})
    repo.commit({"pyproject.toml": PROJECT})
    repo.stage({"pyproject.toml": PROJECT.replace('"x"', '"y"'), "b": "b\n"})
    assert repo.check("--policy-from", old).errors == []
    repo.commit()
    assert repo.check("HEAD", "--policy-from", old).errors == []


def test_a_weaker_pyproject_is_a_control_file_although_the_other_policy_is_as_weak(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    weak = repo.commit({"pyproject.toml": PROJECT})
    repo.commit({"pyproject.toml": PROJECT.replace("[]", '["runs"]')})
    repo.stage({"pyproject.toml": PROJECT, "b": "b\n"})
    assert repo.check("--policy-from", weak).errors == ["policy-change-not-alone"]


@pytest.mark.parametrize("revision", ["nothing", "-x", "", "HEAD:patchgate.toml", "a\nb", "HEAD~9"])
def test_a_policy_of_an_unknown_revision_is_a_wrong_argument(repo: Repo, revision: str) -> None:
    answer = repo.check(f"--policy-from={revision}")
    assert answer.code == 2
    assert answer.error["kind"] == "usage"


def test_under_a_broken_policy_that_was_asked_for_only_its_repair_is_accepted(repo: Repo) -> None:
    broken = repo.policy("[policy]\nunknown = 1\n")
    repo.policy("[policy]\n")
    assert repo.check("HEAD", "--policy-from", broken).rules == ["policy-repaired"]
    for staged in ({"a": "a\n"}, {"patchgate.toml": POLICY}):
        repo.stage(staged)
        answer = repo.check("--policy-from", broken)
        assert (answer.code, answer.verdict == "accepted") == ((0, True) if "a" not in staged else (3, False))
        repo.commit()
    assert repo.check("HEAD~1", "--policy-from", broken).code == 3
    answer = repo.check("--all", "--policy-from", broken)
    assert (answer.code, answer.error["kind"]) == (2, "config")


def test_the_profile_of_agents_is_stricter(repo: Repo) -> None:
    repo.stage({f"{number}": "x\n" for number in range(6)})
    assert repo.check().verdict == "accepted"
    answer = repo.check("--profile", "agent")
    assert (answer.errors, answer.change["profile"]) == (["max-files"], "agent")
    assert answer.change["id"] != repo.check().change["id"]


@pytest.mark.parametrize("trailer", ["Patchgate-Intent: i-1", "Patchgate-Run: r-1", "patchgate-intent: x"])
def test_a_trailer_puts_a_commit_under_the_profile_of_agents(repo: Repo, trailer: str) -> None:
    repo.commit({f"{number}": "x\n" for number in range(6)}, f"Do it\n\nSome words.\n\n{trailer}")
    answer = repo.check("HEAD")
    assert (answer.change["profile"], answer.errors) == ("agent", ["max-files"])
    assert repo.check("HEAD", "--profile", "commit").verdict == "accepted"


STRICT_FOR_PEOPLE = """\
[policy.commit]
deny_classes = ["media"]
max_added_lines = 3
[policy.agent]
deny_new_classes = []
[rules]
max-added-lines = "error"
"""


@pytest.mark.parametrize("trailer", ["Patchgate-Intent: any", "Patchgate-Profile: agent"])
@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [("logo.png", "1\n", "deny-class"), ("long", "1\n2\n3\n4\n", "max-added-lines")],
)
def test_a_trailer_lifts_no_limit_of_people(
    repo: Repo, trailer: str, path: str, text: str, rule: str
) -> None:
    repo.commit({"patchgate.toml": STRICT_FOR_PEOPLE})
    repo.commit({path: text}, f"Do it\n\n{trailer}")
    answer = repo.check("HEAD")
    assert (answer.change["profile"], answer.errors) == ("agent", [rule])
    assert repo.check("HEAD", "--policy-from", "HEAD~1").errors == [rule]
    assert repo.check("HEAD", "--profile", "agent").verdict == "accepted"


def test_a_policy_that_an_agent_proposes_must_allow_people_what_the_change_does(repo: Repo) -> None:
    repo.commit({"patchgate.toml": "[policy]\n"})
    repo.stage({"patchgate.toml": "[policy.commit]\nallow_modes = false\n"})
    repo.git("update-index", "--chmod=+x", "patchgate.toml")
    repo.git("commit", "-q", "-m", "Do it\n\nPatchgate-Run: r")
    assert repo.check("HEAD").errors == ["agent-settings", "mode-change"]


def test_a_trailer_makes_no_warning_for_people_of_an_agent_s_commit(repo: Repo) -> None:
    repo.commit({"patchgate.toml": "[policy.commit]\nmax_files = 1\n[policy.agent]\nmax_files = 9\n"})
    repo.commit({"a": "x\n", "b": "x\n"}, "Do it\n\nPatchgate-Run: r")
    assert repo.check("HEAD").rules == []


@pytest.mark.parametrize(
    "message", ["Patchgate-Intent in the subject", "Do\n\nOther: x", "Do\n\nno Patchgate-Run: x y"]
)
def test_other_messages_leave_a_commit_to_people(repo: Repo, message: str) -> None:
    repo.commit({"a": "x\n"}, message)
    assert repo.check("HEAD").change["profile"] == "commit"


def test_commits_of_agents_and_people_in_one_range_are_judged_each_by_its_profile(repo: Repo) -> None:
    start = repo.head()
    for index, message in enumerate(["One", "Two\n\nPatchgate-Run: r", "Three"]):
        repo.commit({f"{index}/{number}": "x\n" for number in range(6)}, message)
    changes = repo.check(f"{start}..HEAD").changes
    assert [change["profile"] for change in changes] == ["commit", "agent", "commit"]
    assert [change["verdict"] for change in changes] == ["accepted", "rejected", "accepted"]


def test_a_refusal_can_be_asked_to_end_with_zero(repo: Repo) -> None:
    repo.stage({"runs/x": "x\n"})
    assert repo.check("--policy-from", "strict").code == 1
    answer = repo.check("--policy-from", "strict", "--exit-zero")
    assert (answer.code, answer.verdict) == (0, "rejected")


def test_what_is_undecided_or_wrong_does_not_end_with_zero(repo: Repo) -> None:
    assert repo.check("nothing", "--exit-zero").code == 2
    repo.policy('required_version = ">=999"\n')
    assert repo.check("HEAD~1", "--exit-zero").code == 0
    repo.stage({"a": "a\n"})
    assert repo.check("--exit-zero").code == 3


def test_another_version_than_the_required_one_is_undecided(repo: Repo) -> None:
    repo.policy('required_version = ">=999"\n')
    repo.stage({"a": "a\n"})
    answer = repo.check()
    assert (answer.code, answer.verdict) == (3, "undecided")
    assert "patchgate >=999" in str(answer.change["gates"])
    repo.commit()
    assert repo.check("HEAD").code == 3
    assert repo.check("--all").code == 3


def test_a_policy_that_this_version_could_not_judge_by_is_undecided_when_it_is_proposed(repo: Repo) -> None:
    repo.stage({"patchgate.toml": 'required_version = ">=999"\n'})
    answer = repo.check()
    assert (answer.code, answer.verdict) == (3, "undecided")
    assert "patchgate >=999" in str(answer.change["gates"])


def test_the_required_version_judges(repo: Repo) -> None:
    repo.policy(f'required_version = "=={__version__}"\n')
    repo.stage({"a": "a\n"})
    assert repo.check().verdict == "accepted"


def test_an_empty_range_is_accepted(repo: Repo) -> None:
    answer = repo.check("HEAD..HEAD")
    assert (answer.verdict, answer.changes, answer.code) == ("accepted", [], 0)


@pytest.mark.parametrize("revision", ["strict..", "..HEAD", "strict..HEAD"])
def test_a_range_may_leave_out_one_end(repo: Repo, revision: str) -> None:
    assert len(repo.check(revision).changes) == (0 if revision == "..HEAD" else 1)


def test_a_tag_names_its_commit(repo: Repo) -> None:
    repo.git("tag", "-a", "-m", "x", "annotated")
    assert repo.check("annotated").change["commit"] == repo.head()


def test_one_thing_is_judged_at_a_time(repo: Repo) -> None:
    for arguments in (("HEAD", "--cached"), ("--all", "--worktree"), ("--cached", "--worktree")):
        assert repo.check(*arguments).code == 2


def test_all_tracked_files_are_judged_without_budgets(repo: Repo) -> None:
    files: dict[str, str | bytes] = {f"{number:03}": "x\n" for number in range(600)}
    repo.commit({**files, "599": "<<<<<<< ours\n", "runs/x": "x\n"})
    answer = repo.check("--all", "--policy-from", "strict")
    assert sorted(answer.errors) == ["conflict-marker", "deny-prefix"]
    assert len(answer.files) == 602
    assert answer.change["after"] == repo.ask("write-tree")
