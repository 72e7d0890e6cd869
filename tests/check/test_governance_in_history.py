"""No change judges itself: the policy comes from before the change, staged and committed alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.world import Answer, Content, Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
BROKEN = '[policy]\ndeny_prefixes = "runs"\n'
PROJECT = '[project]\nname = "x"\n\n[tool.patchgate.policy]\ndeny_prefixes = ["runs"]\n'
HOOKS = "repos:\n- repo: https://example.com/patchgate\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a policy and a file."""
    made = Repo.create(tmp_path)
    made.commit({"a": "a\n"}, "First")
    made.policy(POLICY)
    return made


def judge_twice(repo: Repo, change: Callable[[], None] | None = None) -> Answer:
    """Judge the staged change, commit it, judge the commit; both must say the same."""
    if change is not None:
        change()
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "x")
    committed = repo.check("HEAD")
    ranged = repo.check("HEAD~1..HEAD")
    assert ranged.changes == committed.changes
    assert staged.code == committed.code
    for key in ("id", "change_id", "verdict", "files", "findings", "gates"):
        assert staged.change[key] == committed.change[key], key
    return staged


def stage(repo: Repo, files: dict[str, Content]) -> Answer:
    repo.stage(files)
    return judge_twice(repo)


def test_a_policy_that_is_weakened_and_broken_at_once_is_refused(repo: Repo) -> None:
    answer = stage(repo, {"patchgate.toml": "[policy]\n", "runs/x": "x\n"})
    assert sorted(answer.errors) == ["deny-prefix", "policy-change-not-alone"]


def test_a_policy_that_is_weakened_with_anything_else_is_refused(repo: Repo) -> None:
    answer = stage(repo, {"patchgate.toml": "[policy]\n", "b": "x\n"})
    assert answer.errors == ["policy-change-not-alone"]
    assert answer.findings[0]["details"]["split"] == [["patchgate.toml"], ["b"]]


@pytest.mark.parametrize("text", ["[policy]\n", "", POLICY + 'deny = ["*.tmp"]\n'])
def test_a_policy_change_by_itself_passes(repo: Repo, text: str) -> None:
    assert stage(repo, {"patchgate.toml": text}).verdict == "accepted"


def test_after_a_policy_change_the_new_policy_judges(repo: Repo) -> None:
    stage(repo, {"patchgate.toml": "[policy]\n"})
    assert stage(repo, {"runs/x": "x\n"}).verdict == "accepted"


def test_a_new_policy_judges_its_own_change_too(repo: Repo) -> None:
    answer = stage(repo, {"patchgate.toml": '[policy]\ndeny_prefixes = ["patchgate.toml"]\n'})
    assert answer.errors == ["deny-prefix"]


def test_what_the_old_policy_denies_of_a_policy_change_stays_denied(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = [".patchgate"]\n')
    answer = stage(repo, {".patchgate/allowed_signers": "x\n"})
    assert answer.errors == ["deny-prefix"]


def test_removing_the_policy_is_refused(repo: Repo) -> None:
    (repo.path / "patchgate.toml").unlink()
    assert stage(repo, {}).errors == ["policy-removed"]


def test_moving_the_policy_to_another_name_removes_it(repo: Repo) -> None:
    repo.git("mv", "patchgate.toml", "old.toml")
    assert sorted(judge_twice(repo).errors) == ["policy-change-not-alone", "policy-removed"]


def test_turning_the_policy_into_a_folder_removes_it(repo: Repo) -> None:
    (repo.path / "patchgate.toml").unlink()
    assert stage(repo, {"patchgate.toml/x": "x\n"}).verdict != "accepted"


def test_a_proposed_policy_that_cannot_be_read_is_refused_with_every_mistake(repo: Repo) -> None:
    answer = stage(repo, {"patchgate.toml": BROKEN + 'deny = ["!x"]\nunknown = 1\n'})
    assert answer.errors == ["policy-invalid"] * 3
    assert all("patchgate.toml:" in finding["message"] for finding in answer.findings)


def test_a_policy_that_is_a_symlink_is_refused(repo: Repo) -> None:
    (repo.path / "patchgate.toml").rename(repo.path / "real.toml")
    repo.link("patchgate.toml", "real.toml")
    assert "policy-invalid" in stage(repo, {}).errors


def test_two_policies_are_refused(repo: Repo) -> None:
    assert "policy-invalid" in stage(repo, {"pyproject.toml": PROJECT}).errors


def test_a_policy_of_too_many_bytes_is_refused(repo: Repo) -> None:
    answer = stage(repo, {"patchgate.toml": POLICY + "# x\n" * 20_000})
    assert answer.errors == ["policy-invalid"]


@pytest.mark.parametrize(
    "text", [b"\xff\xfe", "a = " + "[" * 10_000, ".".join(["k"] * 20_000) + " = 1\n", "\0"]
)
def test_a_policy_that_is_no_document_is_refused(repo: Repo, text: Content) -> None:
    assert stage(repo, {"patchgate.toml": text}).errors == ["policy-invalid"]


def test_the_first_policy_judges_the_change_that_brings_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    good = {"patchgate.toml": POLICY, "b": "b\n"}
    repo.stage(dict(good))
    answer = repo.check()
    assert (answer.verdict, answer.change["policy"]["from"]) == ("accepted", "this change:patchgate.toml")
    assert stage(repo, {"runs/x": "x\n"}).errors == ["deny-prefix"]


def test_the_first_commit_may_bring_policy_and_files_under_its_own_policy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": POLICY, "a": "a\n"})
    staged = repo.check()
    assert (staged.verdict, staged.change["policy"]["from"]) == ("accepted", "this change:patchgate.toml")
    root = repo.commit()
    assert repo.check(root).change["id"] == staged.change["id"]


def test_budgets_do_not_count_the_first_commit(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    files: dict[str, Content] = {f"{number}": "x\n" * 100 for number in range(60)}
    repo.stage(files)
    assert (repo.check().rules, repo.check().change["limits"]) == ([], {})
    assert repo.check(repo.commit()).rules == []


def test_a_first_policy_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    assert stage(repo, {"patchgate.toml": BROKEN}).errors == ["policy-invalid"]


def test_without_any_policy_the_defaults_judge(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    repo.stage({"b": "<<<<<<< ours\n"})
    assert repo.check().errors == ["conflict-marker"]
    assert repo.check().change["policy"]["from"] == "built-in defaults"


@pytest.fixture
def broken(tmp_path: Path) -> Repo:
    """A repository whose policy cannot be read."""
    made = Repo.create(tmp_path)
    made.commit({"a": "a\n"}, "First")
    made.policy(BROKEN)
    return made


def test_under_a_broken_policy_nothing_else_can_be_judged(broken: Repo) -> None:
    answer = stage(broken, {"b": "b\n"})
    assert (answer.verdict, answer.code) == ("undecided", 3)
    reasons = [gate.get("reason") for gate in answer.change["gates"] if gate["gate"] == "governance"]
    assert "cannot be read" in str(reasons[0])
    assert "patchgate.toml:2" in str(reasons[0])


def test_mending_a_broken_policy_by_itself_is_a_note(broken: Repo) -> None:
    answer = stage(broken, {"patchgate.toml": POLICY})
    assert (answer.verdict, answer.rules) == ("accepted", ["policy-repaired"])
    assert answer.findings[0]["level"] == "note"
    assert stage(broken, {"runs/x": "x\n"}).errors == ["deny-prefix"]


def test_mending_a_broken_policy_with_anything_else_is_refused(broken: Repo) -> None:
    assert stage(broken, {"patchgate.toml": POLICY, "b": "b\n"}).errors == ["policy-change-not-alone"]


def test_a_broken_policy_is_not_mended_by_another_broken_one(broken: Repo) -> None:
    assert set(stage(broken, {"patchgate.toml": "nonsense"}).errors) == {"policy-invalid"}


def test_a_broken_policy_is_not_mended_by_removing_it(broken: Repo) -> None:
    (broken.path / "patchgate.toml").unlink()
    assert "policy-removed" in stage(broken, {}).errors


def test_two_policies_are_mended_by_removing_one(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"patchgate.toml": POLICY, "pyproject.toml": PROJECT})
    assert stage(repo, {"b": "x\n"}).code == 3
    repo.git("reset", "-q", "--hard", "HEAD~1")
    (repo.path / "patchgate.toml").unlink()
    answer = stage(repo, {})
    assert (answer.verdict, answer.rules) == ("accepted", ["policy-repaired"])


def test_a_policy_in_pyproject_is_a_control_file_where_it_changes(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": PROJECT, "a": "a\n"})
    weak = PROJECT.replace('["runs"]', "[]")
    assert stage(repo, {"pyproject.toml": weak, "b": "b\n"}).errors == ["policy-change-not-alone"]


def test_other_parts_of_pyproject_are_no_control(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": PROJECT, "a": "a\n"})
    other = PROJECT.replace('name = "x"', 'name = "y"\nversion = "2"')
    assert stage(repo, {"pyproject.toml": other, "b": "b\n"}).verdict == "accepted"
    assert stage(repo, {"pyproject.toml": other + "# comment\n", "runs/x": "x\n"}).errors == ["deny-prefix"]


def test_a_pyproject_without_a_policy_is_no_control(repo: Repo) -> None:
    assert stage(repo, {"pyproject.toml": "[project]\n", "b": "b\n"}).verdict == "accepted"
    assert stage(repo, {"pyproject.toml": "not a document", "b": "c\n"}).verdict == "accepted"


def test_removing_the_policy_from_pyproject_is_refused(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": PROJECT, "a": "a\n"})
    assert stage(repo, {"pyproject.toml": '[project]\nname = "x"\n'}).errors == ["policy-removed"]


def test_a_policy_may_move_between_its_two_places_by_itself(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": PROJECT, "a": "a\n"})
    moved: dict[str, Content] = {"pyproject.toml": '[project]\nname = "x"\n', "patchgate.toml": POLICY}
    assert stage(repo, moved).verdict == "accepted"


def test_a_recaptured_baseline_is_no_policy_change(repo: Repo) -> None:
    answer = stage(repo, {".patchgate/baselines/core.json": "{}\n", "b": "b\n"})
    assert answer.verdict == "accepted"


@pytest.mark.parametrize("name", [".patchgate/allowed_signers", ".patchgate/x", ".patchgate/baselines"])
def test_other_files_of_the_tool_are_control_files(repo: Repo, name: str) -> None:
    assert stage(repo, {name: "x\n", "b": "b\n"}).errors == ["policy-change-not-alone"]


def test_a_hook_config_that_names_the_tool_is_a_control_file(repo: Repo) -> None:
    first = stage(repo, {".pre-commit-config.yaml": HOOKS, "b": "b\n"})
    assert first.verdict == "accepted"
    assert stage(repo, {".pre-commit-config.yaml": "repos: []\n", "b": "c\n"}).errors == [
        "policy-change-not-alone"
    ]


def test_a_hook_config_that_does_not_name_the_tool_is_none(repo: Repo) -> None:
    repo.commit({".pre-commit-config.yaml": "repos: []\n"})
    assert stage(repo, {".pre-commit-config.yaml": "repos: [] # x\n", "b": "b\n"}).verdict == "accepted"


def test_a_range_judges_each_commit_by_the_policy_before_it(repo: Repo) -> None:
    start = repo.head()
    repo.commit({"secret/1": "x\n"})
    repo.policy('[policy]\ndeny_prefixes = ["runs", "secret"]\n')
    repo.commit({"secret/2": "x\n"})
    repo.policy("[policy]\n")
    repo.commit({"runs/3": "x\n", "secret/3": "x\n"})
    answer = repo.check(f"{start}..HEAD")
    verdicts = [change["verdict"] for change in answer.changes]
    assert verdicts == ["accepted", "accepted", "rejected", "accepted", "accepted"]
    assert answer.errors == ["deny-prefix"]
    for change in answer.changes:
        assert repo.check(change["commit"]).changes == [change]


def test_a_range_that_begins_to_read_lines_midway_reads_them(repo: Repo) -> None:
    quiet = "[content]\nsecrets = false\nconflict_markers = false\n"
    limits = '[policy]\nmax_file_bytes = "off"\n[policy.commit]\nmax_added_lines = "off"\n'
    repo.policy(limits + quiet)
    start = repo.head()
    marker = "<<<<<<< ours\n"
    repo.commit({"1": marker})
    repo.policy(limits + '[content]\nsecrets = false\ndeny = ["ours"]\n')
    repo.commit({"2": marker})
    repo.policy("[policy]\nmax_file_bytes = 3\n" + quiet)
    repo.commit({"3": marker})
    answer = repo.check(f"{start}..HEAD")
    assert [[finding["rule"] for finding in change["findings"]] for change in answer.changes] == [
        [],
        [],
        ["conflict-marker", "deny-content"],
        ["max-file-bytes"],
        ["max-file-bytes"],
    ]
    for change in answer.changes:
        assert repo.check(change["commit"]).changes == [change]


def test_two_branches_of_a_range_are_each_judged_by_their_own_policy(repo: Repo) -> None:
    start = repo.head()
    repo.git("checkout", "-q", "-b", "side")
    repo.policy("[policy]\n")
    repo.commit({"runs/side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"runs/main": "x\n"})
    repo.git("merge", "-q", "--no-edit", "side")
    by_commit = {change["commit"]: change["verdict"] for change in repo.check(f"{start}..main").changes}
    assert by_commit[repo.ask("rev-parse", "main^1")] == "rejected"
    assert by_commit[repo.ask("rev-parse", "main^2")] == "accepted"
    assert by_commit[repo.ask("rev-parse", "main")] == "accepted"


def test_a_value_that_python_calls_equal_is_another_policy(tmp_path: Path) -> None:
    """`100.0` is not a whole number, so the default counts in its place."""
    repo = Repo.create(tmp_path)
    text = "[tool.patchgate.policy]\n[tool.patchgate.claims]\ncontradiction_scan_max_files = {}\n"
    repo.commit({"pyproject.toml": text.format("100")})
    repo.stage({"pyproject.toml": text.format("100.0"), "a": "1\n"})
    assert "policy-change-not-alone" in {each["rule"] for each in repo.check().findings}
    repo.stage({"pyproject.toml": text.format("100") + "# the same\n"})
    assert "policy-change-not-alone" not in {each["rule"] for each in repo.check().findings}
