"""Which commits have the limits of agents: trailers decide, and the hooks write them for an agent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from patchgate.check.profiles import MARKERS, find_agent_trailer
from patchgate.policy.config import parse
from patchgate.policy.policy import Policy
from tests.world import Repo

pytestmark = pytest.mark.turns(2)

TRAILER = "Patchgate-Profile: agent"
BOT = "Co-Authored-By: Bot <bot@example.com>"
LIMITED = "[policy.agent]\nmax_files = 1\n"
TWO = {"a": "1\n", "b": "1\n"}


def made(folder: Path, policy: str = "") -> Repo:
    repo = Repo.create(folder)
    repo.policy(LIMITED + policy)
    repo.commit({"README.md": "hello\n"}, "Add a page")
    repo.install()
    return repo


def try_commit(repo: Repo, *more: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return Repo(repo.path, repo.env | env).try_git("commit", "-m", "Add two files", *more)


def message(repo: Repo) -> list[str]:
    return repo.ask("log", "-1", "--format=%B").splitlines()


def test_the_variable_gives_a_commit_the_trailer_and_the_limits_of_agents(tmp_path: Path) -> None:
    repo = made(tmp_path)
    before = repo.head()
    repo.stage(TWO)
    refused = try_commit(repo, PATCHGATE_PROFILE="agent")
    assert refused.returncode == 1
    assert b"max-files" in refused.stderr
    assert b"agent profile: PATCHGATE_PROFILE=agent" in refused.stderr
    assert repo.cli("check", "--format", "json", PATCHGATE_PROFILE="agent").errors == ["max-files"]
    assert repo.head() == before
    repo.git("reset", "-q", "b")
    assert try_commit(repo, PATCHGATE_PROFILE="agent").returncode == 0
    assert message(repo) == ["Add two files", "", TRAILER]
    (change,) = repo.cli("check", "HEAD", "--format", "json").changes
    assert (change["profile"], change["profile_reason"]) == ("agent", f"trailer {TRAILER}")


def test_the_case_of_the_profile_does_not_matter(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.stage(TWO)
    refused = try_commit(repo, PATCHGATE_PROFILE="AGENT")
    assert b"max-files" in refused.stderr
    assert b"max-files" in try_commit(repo, "--trailer", "Patchgate-Profile: Agent").stderr


def test_a_profile_that_there_is_not_is_said(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.stage({"a": "1\n"})
    said = try_commit(repo, PATCHGATE_PROFILE="agnet")
    assert said.returncode == 0
    assert b"PATCHGATE_PROFILE is not agent" in said.stderr
    repo.stage({"b": "1\n"})
    assert b"PATCHGATE_PROFILE" not in try_commit(repo, PATCHGATE_PROFILE="person").stderr


@pytest.mark.parametrize("name", MARKERS)
def test_the_variables_of_known_agents_count_where_the_policy_says_so(tmp_path: Path, name: str) -> None:
    repo = made(tmp_path, "[profile]\ndetect = true\n")
    repo.stage({"a": "1\n"})
    assert try_commit(repo, **{name: "1"}).returncode == 0
    assert message(repo)[-1] == TRAILER
    repo.stage({"b": "1\n", "c": "1\n"})
    assert b"max-files" in try_commit(repo, **{name: "1"}).stderr


def test_without_a_word_in_the_policy_the_variables_of_agents_do_not_count(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.stage(TWO)
    assert try_commit(repo, **dict.fromkeys(MARKERS, "1"), PATCHGATE_PROFILE="person").returncode == 0
    assert message(repo) == ["Add two files"]


def test_a_trailer_of_the_policy_refuses_alike_at_the_commit_the_check_the_push_and_the_server(
    tmp_path: Path,
) -> None:
    repo = made(tmp_path, f'[profile]\nagent_trailers = ["{BOT}"]\n')
    before = repo.head()
    repo.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "server.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "server.git"))
    repo.git("push", "-q", "--no-verify", "origin", "main")
    server = repo.at(tmp_path / "server.git")
    assert server.run("install", "--server").code == 0
    repo.stage(TWO)
    refused = try_commit(repo, "--trailer", BOT)
    assert refused.returncode != 0
    assert f"agent profile: trailer {BOT}".encode() in refused.stderr
    assert repo.head() == before
    # A commit made behind the hooks.
    tree = repo.ask("write-tree")
    commit = repo.ask(
        "commit-tree", tree, "-p", "HEAD", "-m", f"Add two files\n\n{BOT.upper()[:14]}{BOT[14:]}"
    )
    found = repo.cli("check", commit, "--format", "json")
    assert (found.errors, found.change["profile"]) == (["max-files"], "agent")
    for options in ((), ("--no-verify",)):
        pushed = repo.try_git("push", *options, "origin", f"{commit}:refs/heads/main")
        assert pushed.returncode == 1
        assert b"max-files" in pushed.stdout + pushed.stderr
    plain = repo.ask(
        "commit-tree", tree, "-p", "HEAD", "-m", "Add two files\n\nCo-Authored-By: A U Thor <a@b.c>"
    )
    repo.git("push", "origin", f"{plain}:refs/heads/main")


def test_a_person_commits_the_same_without_that_trailer(tmp_path: Path) -> None:
    repo = made(tmp_path, f'[profile]\nagent_trailers = ["{BOT}"]\n')
    repo.stage(TWO)
    assert try_commit(repo).returncode == 0
    assert repo.cli("check", "HEAD", "--format", "json").change["profile_reason"] is None


def test_trailers_are_literal() -> None:
    policy = Policy(
        parse(f'[profile]\nagent_trailers = ["{BOT}", "Made-By: .*"]\n'.encode(), "patchgate.toml")
    )
    for trailer in (BOT, BOT.replace("Co-Authored-By", "co-authored-by"), "Patchgate-Run: r-1", TRAILER):
        assert find_agent_trailer(["Signed-off-by: a", trailer], policy) == trailer
    for trailer in (
        BOT.lower(),
        "Made-By: x",
        "Patchgate-Profile: commit",
        "Patchgate-Run:",
        "Co-Authored-By: ",
    ):
        assert find_agent_trailer([trailer], policy) is None
    assert find_agent_trailer([BOT], None) is None


@pytest.mark.parametrize("text", ["no colon", ": x", "Key:", "Key: a\\nb", "Kéy: x", "-Key: x"])
def test_what_is_no_trailer_is_a_mistake_with_its_line(tmp_path: Path, text: str) -> None:
    repo = Repo.create(tmp_path)
    repo.write("patchgate.toml", f'[profile]\nagent_trailers = ["{text}"]\n')
    repo.stage()
    refused = repo.cli("check")
    assert refused.code == 1
    assert "policy-invalid" in refused.out
    assert "patchgate.toml:2" in refused.out


STRICT_FOR_PEOPLE = '[policy.commit]\nmax_added_lines = 3\n[rules]\nmax-added-lines = "error"\n'


def test_no_hook_lets_an_agent_do_what_people_may_not(tmp_path: Path) -> None:
    repo = made(tmp_path, STRICT_FOR_PEOPLE)
    before = repo.head()
    repo.stage({"a": "1\n2\n3\n4\n"})
    refused = try_commit(repo, PATCHGATE_PROFILE="agent")
    assert (refused.returncode, b"max-added-lines" in refused.stderr) == (1, True)
    for more in ((), ("--no-verify",)):
        refused = try_commit(repo, "-m", "Patchgate-Intent: any", *more)
        assert refused.returncode != 0
        assert b"max-added-lines" in refused.stderr
    assert repo.head() == before


SETTINGS = (".claude/settings.json", ".codex/hooks.json", ".cursor/hooks.json", ".gemini/settings.json")


@pytest.mark.parametrize("path", ["patchgate.toml", ".patchgate/allowed_signers", *SETTINGS])
def test_an_agent_changes_neither_the_policy_nor_the_settings_with_its_hooks(
    tmp_path: Path, path: str
) -> None:
    repo = made(tmp_path)
    repo.stage({path: LIMITED.replace("1", "2") if path == "patchgate.toml" else "{}\n"})
    refused = try_commit(repo, PATCHGATE_PROFILE="agent")
    assert refused.returncode == 1
    assert (
        f"error[agent-settings]: the change {'modifies' if path == 'patchgate.toml' else 'adds'} {path}"
        in (refused.stderr.decode())
    )
    # The effect decides, behind the hooks too.
    tree = repo.ask("write-tree")
    for trailer in (TRAILER, "Patchgate-Run: r-1"):
        commit = repo.ask("commit-tree", tree, "-p", "HEAD", "-m", f"Change it\n\n{trailer}")
        assert "agent-settings" in repo.cli("check", commit, "--format", "json").errors
        assert repo.try_git("update-ref", "refs/heads/main", commit).returncode != 0
    assert try_commit(repo).returncode == 0


def test_an_agent_may_bring_the_first_policy_and_change_baselines_of_components(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": LIMITED})
    assert try_commit(repo, "--trailer", TRAILER).returncode == 0
    assert repo.cli("check", "HEAD", "--format", "json").code == 0
    repo.stage({".patchgate/baselines/x.json": "{}\n"})
    assert "agent-settings" not in repo.cli("check", "--profile", "agent", "--format", "json").errors


def test_a_policy_may_let_agents_change_it(tmp_path: Path) -> None:
    repo = made(tmp_path, '[rules]\nagent-settings = "off"\n')
    repo.stage({"patchgate.toml": LIMITED + '[rules]\nagent-settings = "warning"\n'})
    assert try_commit(repo, PATCHGATE_PROFILE="agent").returncode == 0


def test_an_agent_does_not_repair_a_broken_policy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"patchgate.toml": "[policy\n", "README.md": "hello\n"}, "Add a page")
    repo.install()
    repo.stage({"patchgate.toml": LIMITED})
    assert b"agent-settings" in try_commit(repo, "--trailer", TRAILER).stderr
    assert try_commit(repo).returncode == 0
