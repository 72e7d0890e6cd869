"""At a commit: whose commands run, on which tree, what a refusal and a skip are, and who starts none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchgate.check.command_changes import untrusted_commands
from patchgate.check.policy_lookup import TRUST_KEY
from patchgate.ledger.ledger import Event, Ledger
from tests.command_world import Tools, tool
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

SEEN = 'printf "%s\\n" "$0 $*" >>"$RUNS"'


def skips(repo: Tools) -> list[dict[str, object]]:
    lines = Ledger(repo.common_dir).lines()
    return [dict(line.about) for line in lines if isinstance(line, Event) and line.kind == "skipped"]


def stranger(tmp_path: Path, text: str) -> Tools:
    """Make a clone whose remote's default branch has this policy, with nothing allowed on this machine."""
    there = Repo.create(tmp_path / "there")
    there.commit({"patchgate.toml": text, "lint.sh": "exit 0\n"})
    here = Repo.create(tmp_path / "here")
    here.git("remote", "add", "origin", str(there.path))
    here.git("fetch", "-q", "origin")
    here.git("remote", "set-head", "origin", "main")
    here.git("reset", "-q", "--hard", "origin/main")
    return Tools(here.path, {**here.env, "RUNS": str(tmp_path / "runs")})


# ---- whose commands --------------------------------------------------------------------------------------


def test_a_command_of_the_remotes_default_branch_runs_and_another_definition_does_not(tmp_path: Path) -> None:
    policy = tool("x", SEEN, "a")
    repo = stranger(tmp_path, policy)
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 0
    assert repo.runs == ["x a"]
    repo.git("reset", "-q", "--hard")
    for changed in (
        policy + "timeout = 5\n",
        policy + '[environment]\nextra_path_dirs = ["bin"]\n',
        policy.replace("[commands.x]", "[commands.y]"),
    ):
        repo.commit({"patchgate.toml": changed})
        repo.stage({"a": "2\n"})
        done = repo.pre_commit()
        assert done.code == 3
        assert "git patchgate commands trust" in done.out
        assert repo.runs == ["x a"]
        repo.git("reset", "-q", "--hard", "HEAD^")


def test_a_script_of_the_tree_is_part_of_the_definition(tmp_path: Path) -> None:
    policy = (
        '[commands.x]\nkind = "lint"\ncommand = ["sh", "lint.sh"]\nneeds = ["lint.sh"]\non = ["commit"]\n'
    )
    repo = stranger(tmp_path, policy)
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 0
    repo.stage({"lint.sh": 'touch "$RUNS"\n'})
    done = repo.pre_commit()
    assert (done.code, "command-not-trusted" in done.out) == (3, True)
    assert repo.runs == []


def test_a_remote_of_a_stranger_is_not_the_trusted_one_and_the_trusted_ref_wins(tmp_path: Path) -> None:
    repo = stranger(tmp_path, tool("x", SEEN, "a"))
    repo.git("remote", "add", "evil", str(tmp_path / "there"))
    repo.commit({"patchgate.toml": tool("x", f"{SEEN}; true", "a")})
    repo.git("update-ref", "refs/remotes/evil/main", "HEAD")
    repo.git("branch", "-q", "--set-upstream-to=evil/main")
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 3
    repo.git("branch", "trusted")
    repo.git("config", TRUST_KEY, "refs/heads/trusted")
    assert repo.pre_commit().code == 0
    assert repo.runs == ["x a"]


@pytest.mark.parametrize("name", ["refs/remotes/origin/HEAD", "refs/remotes/origin/main"])
def test_a_tag_with_the_full_name_of_the_trusted_ref_is_not_it(tmp_path: Path, name: str) -> None:
    """Git takes it where that ref is missing, and everybody may push tags."""
    repo = stranger(tmp_path, tool("x", SEEN, "a"))
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 0
    repo.git("update-ref", f"refs/tags/{name}", "HEAD")
    for ref in ("HEAD", "main"):
        repo.git("update-ref", "--no-deref", "-d", f"refs/remotes/origin/{ref}")
    repo.stage({"a": "2\n"})
    done = repo.pre_commit()
    assert (done.code, "command-not-trusted" in done.out) == (3, True)


def test_what_was_allowed_here_runs_until_its_definition_changes(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", SEEN, "a"))
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 0
    repo.git("stash", "-q")
    repo.commit({"patchgate.toml": tool("x", f"{SEEN}; echo more", "a")})
    repo.git("stash", "pop", "-q")
    assert repo.pre_commit().code == 3
    _, wanted = untrusted_commands(repo.opened(), ())
    ((_, difference),) = wanted.values()
    added = [line for line in difference if line.startswith("+")]
    assert len(added) == 1
    assert "echo more" in added[0]
    repo.allow()
    assert repo.pre_commit().code == 0


def test_nobody_is_asked_without_a_terminal_and_no_agent_at_all(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, "")
    repo.commit({"patchgate.toml": tool("x", "true")})
    for env in ({}, {"CLAUDECODE": "1"}):
        done = repo.at(repo.path).cli("commands", "trust", cwd=None, **env)
        assert done.code == 2
    repo.stage({"a": "1\n"})
    assert repo.pre_commit().code == 3
    assert repo.cli("commands", "trust", "no-such").code == 2


def test_a_damaged_list_of_what_is_allowed_allows_nothing(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", "true"))
    repo.stage({"a": "1\n"})
    place = Path(repo.common_dir, "patchgate", "allowed-commands.json")
    for content in ("", "[]", '{"form": "patchgate.allowed-commands/1", "allowed": [3, "x"]}', "{" * 5000):
        place.write_text(content)
        assert repo.pre_commit().code == 3


# ---- which tree ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("-a",), ("a",), ("--amend",)])
def test_each_form_of_a_commit_runs_them_on_the_tree_that_it_makes(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    script = 'cat "$@" >>"$RUNS"; ! grep -q bad "$@"'
    repo = Tools.with_commands(tmp_path, tool("x", script, more='files = ["a"]\n'), {"a": "0\n", "b": "0\n"})
    repo.install()
    repo.stage({"a": "good\n", "b": "1\n"})
    repo.git("commit", "-qm", "Make a good")
    repo.stage({"a": "staged\n"})
    repo.write("a", "bad\n")
    head = repo.head()
    done = repo.try_git("commit", "-m", "Change the word in a", *arguments)
    takes_worktree = bool(arguments) and arguments != ("--amend",)
    assert (done.returncode != 0) == takes_worktree
    # What the fast path does not accept, the full check runs again.
    assert set(repo.runs[1:]) == ({"bad"} if takes_worktree else {"staged"})
    assert (repo.head() != head) != takes_worktree
    assert (repo.path / "a").read_text() == "bad\n"


def test_a_merge_runs_on_what_it_does_itself_and_on_the_whole_tree(tmp_path: Path) -> None:
    policy = tool("few", SEEN) + tool("whole", 'cat a b >>"$RUNS"', "x", more='scope = "tree"\n')
    repo = Tools.with_commands(tmp_path, policy, {"a": "0\n", "b": "0\n"})
    repo.install()
    repo.git("checkout", "-q", "-b", "side")
    repo.stage({"a": "side\n"})
    repo.git("commit", "-q", "-n", "-m", "Change a on the side")
    repo.git("checkout", "-q", "main")
    repo.stage({"b": "main\n"})
    repo.git("commit", "-q", "-n", "-m", "Change b on main")
    # Without its hook nothing runs.
    assert repo.runs == []
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.runs == ["side", "main"]


# ---- what is skipped, and who starts none ----------------------------------------------------------------


def test_skipping_some_needs_names_and_a_reason_and_is_recorded(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("bad", "exit 1") + tool("good", SEEN))
    repo.stage({"a": "1\n"})
    for text in ("", "bad", "bad:", "bad: x", ": the linter is broken today"):
        assert repo.pre_commit(text).code == 2
    assert repo.pre_commit("bad: the linter is broken today").code == 0
    assert repo.runs == ["good ./a"]
    (skipped,) = skips(repo)
    assert (skipped["commands"], skipped["reason"]) == (["bad"], "the linter is broken today")


def test_check_and_a_policy_from_elsewhere_start_none(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", SEEN), {"b": "1\n"})
    repo.stage({"a": "1\n"})
    for arguments in (("check",), ("check", "--policy-from", "HEAD"), ("check", "--all")):
        assert repo.cli(*arguments).code == 0
    repo.commit()
    assert repo.cli("check", "HEAD").code == 0
    assert repo.runs == []


def test_by_hand_a_range_and_every_file_are_run_without_trust(tmp_path: Path) -> None:
    policy = tool("x", SEEN, on='["apply"]') + tool("y", SEEN)
    repo = Tools.with_commands(tmp_path, policy, {"b": "1\n"})
    Path(repo.common_dir, "patchgate", "allowed-commands.json").unlink()
    repo.commit({"a": "1\n"})
    assert repo.cli("commands", "run", "HEAD^..HEAD").code == 0
    assert sorted(repo.runs) == ["x ./a", "y ./a"]
    assert repo.cli("commands", "run", "--all", "x").code == 0
    assert repo.runs[2:] == ["x ./a ./b ./patchgate.toml"]
    repo.stage({"a": "2\n"})
    assert repo.cli("commands", "run").code == 0
    assert repo.runs[3:] == ["y ./a"]
    assert repo.cli("commands", "run", "no-such").code == 2
    assert repo.cli("commands", "run", "no..such").code == 2
    assert repo.cli("commands", "run", "--all", "HEAD^..HEAD").code == 2


def test_the_report_of_a_run_by_hand_has_the_lines_as_json(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", 'echo "a: bad"; exit 1'))
    repo.stage({"a": "1\n"})
    done = repo.cli("commands", "run", "--format", "json")
    assert done.code == 1
    (change,) = json.loads(done.out)["changes"]
    (finding,) = change["findings"]
    assert (finding["rule"], finding["details"]["tail"]) == ("lint-failed", ["a: bad"])
    assert [(each["gate"], each["outcome"]) for each in change["context_gates"]] == [("lint", "fail")]


def test_the_list_says_what_does_not_run_here_and_what_is_not_there(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", "true", more='needs = ["absent"]\n'))
    assert "absent" in repo.cli("commands", "list").out
    assert "commands trust" not in repo.cli("commands", "list").out
    repo.commit({"patchgate.toml": tool("x", "false")})
    assert "git patchgate commands trust x" in repo.cli("commands", "list").out
