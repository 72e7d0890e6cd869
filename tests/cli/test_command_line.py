"""The command line itself: help, what is loaded for it, wrong words, `-C DIR`, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world import Repo

HEAVY = {"pygit2", "pydantic", "pydantic_core", "pathspec", "tomllib", "importlib.metadata"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a policy and one more commit."""
    made = Repo.create(tmp_path)
    made.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    made.commit({"a.py": "one\n"})
    return made


def loaded_by(repo: Repo, *arguments: str) -> set[str]:
    """Run a command in a fresh interpreter and give the names of every module that it loaded."""
    program = (
        "import json, sys\nfrom patchgate.cli import program\n"
        "code = program.run(sys.argv[1:])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=repo.path,
        env=repo.env,
        capture_output=True,
        check=True,
    )
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names)


def from_git(names: set[str]) -> set[str]:
    """Name the modules of `git` among some: those of pure values may be loaded."""
    return {name.removeprefix("patchgate.git.") for name in names if name.startswith("patchgate.git.")}


def folders(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("patchgate.")}


@pytest.mark.parametrize("arguments", [("-h",), ("--help",), ("-V",)])
def test_help_loads_nothing_heavy_and_no_folder_but_the_command_line(
    repo: Repo, arguments: tuple[str, ...]
) -> None:
    names = loaded_by(repo, *arguments)
    assert HEAVY & names == set()
    assert folders(names) <= {"cli", "errors", "exit_codes", "git", "values"}
    assert from_git(names) <= {"path", "quoting"}


@pytest.mark.parametrize("command", ["init", "check", "policy", "schema"])
def test_help_of_a_command_loads_nothing_heavy(repo: Repo, command: str) -> None:
    names = loaded_by(repo, command, "-h")
    assert HEAVY & names == set()
    assert folders(names) <= {"cli", "errors", "exit_codes", "git", "values"}
    assert from_git(names) <= {"path", "quoting"}


@pytest.mark.parametrize("arguments", [("explain",), ("explain", "deny-prefix"), ("explain", "-h")])
def test_explaining_a_rule_loads_only_the_registry(repo: Repo, arguments: tuple[str, ...]) -> None:
    names = loaded_by(repo, *arguments)
    assert HEAVY & names == set()
    assert folders(names) <= {"cli", "errors", "exit_codes", "git", "values", "report"}
    assert from_git(names) <= {"path", "quoting"}


def test_a_clean_check_under_a_known_policy_loads_neither_pygit2_nor_pydantic(repo: Repo) -> None:
    repo.stage({"b.py": "two\n"})
    assert repo.cli("check").code == 0
    names = loaded_by(repo, "check")
    assert HEAVY & names == set()
    assert "patchgate.check.gate" in names


def test_a_check_without_any_policy_loads_neither_pygit2_nor_pydantic(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"b.py": "two\n"})
    assert HEAVY & loaded_by(repo, "check") == set()


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_both_help_flags_work_everywhere_and_are_told_on_standard_output(repo: Repo, flag: str) -> None:
    for command in ([], ["init"], ["check"], ["explain"], ["policy"], ["policy", "show"], ["schema"]):
        answer = repo.cli(*command, flag)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.startswith("Usage: git patchgate")


def test_top_help_lists_the_commands_in_the_order_of_use_and_says_the_exit_codes(repo: Repo) -> None:
    out = repo.cli("-h").out
    places = [out.index(f"\n  {name} ") for name in ("init", "check", "explain", "policy", "schema")]
    assert places == sorted(places)
    last = " ".join(out.split("\n\n")[-1].split())
    numbers = [last.index(code) for code in ("0 accepted", "1 rejected", "2 wrong", "3 undecided")]
    assert numbers == sorted(numbers)


def test_git_finds_the_command_as_its_own(repo: Repo) -> None:
    assert repo.git("patchgate", "-V").startswith(b"patchgate ")
    patchgate = subprocess.run(["patchgate", "-V"], env=repo.env, capture_output=True, check=True)
    assert patchgate.stdout == repo.git("patchgate", "-V")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["chek"], "check"),
        (["polcy", "show"], "policy"),
        (["policy", "shwo"], "show"),
        (["explian"], "explain"),
    ],
)
def test_an_unknown_command_gets_a_did_you_mean(repo: Repo, typed: list[str], meant: str) -> None:
    answer = repo.cli(*typed)
    assert answer.code == 2
    assert answer.out == ""
    assert f"'{meant}'?" in answer.err


def test_a_command_that_resembles_none_gets_no_guess(repo: Repo) -> None:
    answer = repo.cli("zzz")
    assert answer.code == 2
    assert "'zzz'" in answer.err
    assert "?" not in answer.err


def test_an_unknown_rule_gets_a_did_you_mean(repo: Repo) -> None:
    answer = repo.cli("explain", "deny-prefx")
    assert answer.code == 2
    assert " deny-prefix?" in answer.err


def test_the_directory_can_be_named_before_and_after_the_command(repo: Repo, tmp_path: Path) -> None:
    repo.stage({"runs/x": "no\n"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments in (
        ["-C", str(repo.path), "check"],
        ["check", "-C", str(repo.path)],
        ["-C", str(tmp_path), "check", "-C", "repo"],
        ["-C", "../repo", "check"],
    ):
        answer = repo.cli(*arguments, cwd=elsewhere)
        assert answer.code == 1, answer.err
        assert "runs/x" in answer.out
    assert repo.cli("check", cwd=elsewhere).code == 2
    shown = repo.cli("-C", str(repo.path), "policy", "show", cwd=elsewhere)
    assert 'policy.deny_prefixes = ["runs"]' in shown.out


def test_explain_reads_a_path_from_where_the_user_stands(repo: Repo) -> None:
    repo.commit({"runs/deep/x": "x\n"}, "Records")
    answer = repo.cli("explain", "--path", "x", cwd=repo.path / "runs" / "deep")
    assert answer.out.startswith("runs/deep/x, by HEAD:patchgate.toml\n  refused: deny-prefix")
    above = repo.cli("explain", "--path", "../../../x", cwd=repo.path / "runs" / "deep")
    assert above.code == 2
    assert "leaves" in above.err


def test_exit_codes_are_0_accepted_1_rejected_2_usage_3_undecided(repo: Repo) -> None:
    repo.stage({"b.py": "two\n"})
    assert repo.cli("check").code == 0
    repo.stage({"runs/x": "no\n"})
    assert repo.cli("check").code == 1
    assert repo.cli("check", "--exit-zero").code == 0
    assert repo.cli("check", "--cached", "--all").code == 2
    assert repo.cli("check", "no-such-revision").code == 2
    repo.git("rm", "-qrf", "--cached", "runs")
    repo.policy('required_version = ">=99"\n')
    repo.stage({"c.py": "three\n"})
    undecided = repo.cli("check", "--exit-zero")
    assert undecided.code == 3, "--exit-zero must not turn what was not judged into a yes"


def test_warnings_are_accepted(repo: Repo) -> None:
    repo.stage({"large": b"x" * (1 << 20) + b"x\n"})
    answer = repo.check()
    assert (answer.code, answer.verdict, answer.rules) == (0, "accepted", ["max-file-bytes"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "no-such-revision"],
        ["check", "--cached", "--all"],
        ["check", "--no-such-option"],
        ["check", "HEAD", "HEAD"],
        ["-C", "/no/such/folder", "check"],
    ],
)
@pytest.mark.parametrize("form", [["--format", "json"], ["--format=json"]])
def test_wrong_arguments_give_a_json_document_where_json_was_asked_for(
    repo: Repo, arguments: list[str], form: list[str]
) -> None:
    answer = repo.cli(*arguments, *form)
    assert (answer.code, answer.err) == (2, "")
    assert answer.report["schema"] == "patchgate.error/1"
    assert answer.error["kind"] == "usage"
    assert answer.error["message"]
    assert answer.error["hint"]


def test_what_could_not_be_begun_is_an_error_document_with_exit_3(repo: Repo) -> None:
    (repo.path / ".git" / "index").write_bytes(b"no index at all, but long enough to be looked at\n")
    answer = repo.check()
    assert (answer.code, answer.err) == (3, "")
    assert answer.report["schema"] == "patchgate.error/1"
    assert answer.error["kind"] == "undecided"


def test_a_revision_that_looks_like_an_option_is_a_revision_after_two_dashes(repo: Repo) -> None:
    answer = repo.cli("check", "--", "--all")
    assert answer.code == 2
    assert answer.err.startswith("error: --all ")


def test_init_asks_only_where_somebody_can_answer(repo: Repo) -> None:
    fresh = Repo.create(repo.path.parent / "fresh")
    answer = fresh.run("init")
    assert answer.code == 2
    assert "add --yes" in answer.err
    assert not (fresh.path / "patchgate.toml").exists()


def test_a_file_is_no_revision_and_the_way_to_check_it_is_named(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"src/a.py": "a\n", "b.patch": "x\n"})
    for name, *ways in (
        ("src/a.py", "git add src/a.py && git patchgate check", "git patchgate explain --path src/a.py"),
        ("b.patch", "git patchgate check --patch b.patch"),
    ):
        answer = repo.check(name)
        assert answer.code == 2
        assert all(way in answer.error["hint"] for way in ways)
    assert "git patchgate" not in repo.check("nothing").error["hint"]
    assert "a.py" in repo.check("a.py", cwd=repo.path / "src").error["hint"]


def test_staged_has_one_spelling_and_git_s_own_is_the_same(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    repo.stage({"a": "b\n"})
    ids = {repo.check(*asked).change["change_id"] for asked in ([], ["--staged"], ["--cached"])}
    assert len(ids) == 1
    assert repo.check("--staged", "HEAD").code == 2


def test_no_variable_makes_a_command_exit_in_place_of_a_verdict(repo: Repo) -> None:
    """click takes one for its completions: the program's name with `_COMPLETE` after it."""
    for name in ("_GIT PATCHGATE_COMPLETE", "_GIT_PATCHGATE_COMPLETE", "_PATCHGATE_COMPLETE"):
        done = subprocess.run(
            [sys.executable, "-m", "patchgate", "check", "missing"],
            cwd=repo.path,
            env=repo.env | {name: "bash_source"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, b"missing" in done.stderr) == (2, True)
