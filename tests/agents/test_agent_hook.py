"""The hook of each agent: the same verdict as `check`, said as each agent reads it; every failure refuses."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchgate.agents.hooks.answers import MOST_TEXT, EventAnswer, write_answer
from patchgate.agents.hooks.hook_input import HookEvent
from tests.agents.agent_world import (
    PROTOCOLS,
    START,
    STOP,
    command,
    event,
    governed,
    is_refused,
    reason,
    send,
    tool,
    write,
)
from tests.proposals import snapshot
from tests.world import EXECUTABLE, AskedGit, Repo

pytestmark = pytest.mark.turns(2)
SECRET = "AK" + "IA" + "ABCDEFGHIJKLMNOP"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return governed(tmp_path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_write_to_a_denied_path_is_refused(repo: Repo, protocol: str) -> None:
    before = snapshot(repo)
    answer = send(repo, protocol, write(protocol, repo, "runs/new", "x\n"))
    assert is_refused(protocol, answer)
    said = reason(protocol, answer)
    assert "error[deny-prefix]" in said
    assert "runs/new" in said
    assert "help: " in said
    assert snapshot(repo) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_ordinary_write_is_allowed(repo: Repo, protocol: str) -> None:
    answer = send(repo, protocol, write(protocol, repo, "src/new.py", "x = 1\n"))
    assert answer.code == 0
    assert not is_refused(protocol, answer)
    assert answer.err == ""
    assert answer.out == ('{"permission": "allow"}\n' if protocol == "cursor" else "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_without_hooks_is_refused(repo: Repo, protocol: str) -> None:
    answer = send(repo, protocol, command(protocol, repo, "git add -A && git commit -nm x"))
    assert is_refused(protocol, answer)
    assert "error[command-bypasses-hooks]" in reason(protocol, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_not_understood_is_said_and_not_refused(repo: Repo, protocol: str) -> None:
    answer = send(repo, protocol, command(protocol, repo, 'eval "$x"'))
    assert not is_refused(protocol, answer)
    assert "the git hooks decide" in answer.out


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_at_a_stop_the_working_tree_is_judged_and_refused_once(repo: Repo, protocol: str) -> None:
    stop = event(STOP[protocol], repo, stop_hook_active=False, loop_count=0, status="completed")
    assert not is_refused(protocol, send(repo, protocol, stop))
    repo.write("runs/new")
    answer = send(repo, protocol, stop)
    assert is_refused(protocol, answer)
    assert "error[deny-prefix]" in reason(protocol, answer)
    again = send(repo, protocol, {**stop, "stop_hook_active": True, "loop_count": 1})
    assert again.code == 0
    assert not is_refused(protocol, again)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_session_begins_with_the_policy_the_intent_and_what_was_refused(repo: Repo, protocol: str) -> None:
    assert repo.cli("intent", "declare", "-m", "tidy up", "--allow", "src/a.py").code == 0
    answer = send(repo, protocol, event(START[protocol], repo, source="startup"))
    said = json.loads(answer.out)
    text = (
        said["additional_context"]
        if protocol == "cursor"
        else said["hookSpecificOutput"]["additionalContext"]
    )
    assert "runs" in text
    assert "2 files" in text
    assert "src/a.py" in text
    assert len(text) <= 3 * 1500


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_policy_is_cut_at_the_limit_of_a_session(repo: Repo, protocol: str) -> None:
    allowed = [option for number in range(300) for option in ("--allow", f"src/{number:0100}.py")]
    assert repo.cli("intent", "declare", "-m", "many", *allowed).code == 0
    said = json.loads(send(repo, protocol, event(START[protocol], repo)).out)
    text = (
        said["additional_context"]
        if protocol == "cursor"
        else said["hookSpecificOutput"]["additionalContext"]
    )
    assert len(text) <= 3 * 1500
    assert "git patchgate explain RULE" in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_session_begins_with_is_not_cut_again(protocol: str) -> None:
    begun = HookEvent("session", START[protocol])
    context = "x" * (2 * MOST_TEXT) + "end"
    assert context in write_answer(protocol, begun, EventAnswer(context=context)).out


CHANGES: dict[str, tuple[str, str | None]] = {
    "denied": ("runs/new", "x\n"),
    "denied change": ("runs/old", "x\n"),
    "fine": ("src/c.py", "c = 1\n"),
    "a secret": ("src/c.py", f"key = '{SECRET}'\n"),
    "a placeholder": ("src/c.py", "def f():\n    raise NotImplementedError  # TODO\n"),
    "conflict marker": ("src/a.py", "<<<<<<< ours\n"),
    "too many lines": ("src/c.py", "x\n" * 401),
    "as many lines as allowed": ("src/c.py", "x\n" * 400),
    "lock file": ("uv.lock", "x\n"),
    "binary": ("src/x", "\0\n"),
    "artifact": ("node_modules/x.js", "x\n"),
    "settings": (".claude/settings.json", "{}\n"),
    "settings below": ("sub/.codex/config.toml", "\n"),
    "name but for case": ("SRC/a.py", "x\n"),
    "nothing new": ("src/b.py", "b = 1\n"),
    "emptied": ("src/b.py", ""),
    "attributes": (".gitattributes", "*.py filter=x\n"),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("policy", ["", '[placeholders]\nlevel = "error"\n[content]\ndeny = ["forbidden"]\n'])
def test_a_write_is_judged_as_check_judges_it_once_it_is_written(
    repo: Repo, case: tuple[str, str], policy: str
) -> None:
    """Twice: the second answer may come from the compiled policy."""
    if policy:
        repo.policy('[policy]\ndeny_prefixes = ["runs"]\n' + policy)
    repo.install()
    path, content = case
    sent = tool("claude", repo, "Write", file_path=path, content=content)
    # The policy is compiled after the first verdict that is accepted.
    send(repo, "claude", tool("claude", repo, "Write", file_path="src/z.py", content="z = 1\n"))
    answers = [send(repo, "claude", sent) for _ in range(2)]
    repo.write(path, content)
    checked = repo.check("--worktree", "--profile", "agent")
    assert [is_refused("claude", each) for each in answers] == [checked.code == 1] * 2
    for rule in checked.errors:
        assert f"error[{rule}]" in answers[0].err


def test_the_second_ordinary_write_is_recognised_without_the_pipeline(repo: Repo) -> None:
    repo.install()
    asked = AskedGit(repo.path.parent, repo.env)
    for number, times in ((1, 1), (2, 1), (3, 1)):
        sent = tool("claude", repo, "Write", file_path=f"src/n{number}.py", content="x = 1\n")
        assert send(repo, "claude", sent, PATH=asked.path).code == 0
        assert asked.times("hash-object") == times
    denied = tool("claude", repo, "Write", file_path="runs/x", content="x = 1\n")
    assert send(repo, "claude", denied, PATH=asked.path).code == 2
    assert asked.times("hash-object") == 2


def test_an_edit_is_judged_with_what_is_there(repo: Repo) -> None:
    sent = tool(
        "claude", repo, "Edit", file_path="src/a.py", old_string="one = 1", new_string=f"key = '{SECRET}'"
    )
    answer = send(repo, "claude", sent)
    assert "error[secret]" in answer.err
    assert SECRET not in answer.err
    repo.write("src/a.py", f"key = '{SECRET}'\ntwo = 2\n")
    away = tool("claude", repo, "Edit", file_path="src/a.py", old_string=SECRET, new_string="none")
    assert send(repo, "claude", away).code == 0


def test_an_edit_whose_text_is_not_there_is_judged_by_its_name(repo: Repo) -> None:
    for path, code in (("src/a.py", 0), ("runs/old", 2)):
        sent = tool("claude", repo, "Edit", file_path=path, old_string="none", new_string=SECRET)
        answer = send(repo, "claude", sent)
        assert answer.code == code
    assert (
        "only the name"
        in send(
            repo, "claude", tool("claude", repo, "NotebookEdit", notebook_path="src/a.py", new_source="x")
        ).out
    )


def test_an_intent_binds_writes(repo: Repo) -> None:
    assert repo.cli("intent", "declare", "-m", "tidy up", "--allow", "src/a.py").code == 0
    inside = tool("claude", repo, "Write", file_path="src/a.py", content="one = 2\n")
    outside = tool("claude", repo, "Write", file_path="src/b.py", content="b = 2\n")
    assert send(repo, "claude", inside).code == 0
    answer = send(repo, "claude", outside)
    assert answer.code == 2
    assert "error[scope-unexpected]" in answer.err


def test_an_intent_binds_writes_under_a_compiled_policy_too(repo: Repo) -> None:
    repo.install()
    fine = tool("claude", repo, "Write", file_path="src/b.py", content="b = 2\n")
    assert [send(repo, "claude", fine).code for _ in range(2)] == [0, 0]
    assert repo.cli("intent", "declare", "-m", "tidy up", "--allow", "src/a.py").code == 0
    assert "error[scope-unexpected]" in send(repo, "claude", fine).err


def test_what_a_filter_of_git_makes_of_a_write_is_judged(repo: Repo) -> None:
    repo.install()
    fine = tool("claude", repo, "Write", file_path="src/b.py", content="b = 2\n")
    assert [send(repo, "claude", fine).code for _ in range(2)] == [0, 0]
    repo.write(".gitattributes", "*.py filter=key\n")
    repo.git("config", "filter.key.clean", f"cat; echo key = {SECRET}")
    assert "error[secret]" in send(repo, "claude", fine).err


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/pre-commit", "src/../.git/HEAD", ".GIT/x", "link/config", "{}/.git/x"]
)
def test_a_write_into_gits_own_folder_is_refused(repo: Repo, path: str) -> None:
    repo.link("link", ".git")
    answer = send(
        repo, "claude", tool("claude", repo, "Write", file_path=path.format(repo.path), content="x")
    )
    assert answer.code == 2
    assert "error[path-git-dir]" in answer.err


def test_a_write_into_the_common_folder_of_a_worktree_is_refused(repo: Repo) -> None:
    other = repo.path.parent / "other"
    repo.git("worktree", "add", "-q", str(other))
    place = repo.path / ".git" / "worktrees" / "other" / "HEAD"
    there = repo.at(other)
    assert send(there, "claude", tool("claude", there, "Write", file_path=str(place), content="x")).code == 2
    assert send(there, "claude", tool("claude", there, "Write", file_path="runs/x", content="x")).code == 2
    assert send(there, "claude", tool("claude", there, "Write", file_path=".git", content="x")).code == 2


def test_a_link_is_followed_to_the_file_that_is_really_written(repo: Repo) -> None:
    repo.link("src/link", "../runs/old")
    repo.link("src/out", str(repo.path.parent / "elsewhere"))
    sent = tool("claude", repo, "Write", file_path="src/link", content="x")
    assert "error[deny-prefix]" in send(repo, "claude", sent).err
    assert send(repo, "claude", tool("claude", repo, "Write", file_path="src/out", content="x")).code == 0


def test_a_file_outside_of_any_repository_is_not_judged(repo: Repo, tmp_path: Path) -> None:
    sent = tool("claude", repo, "Write", file_path=str(tmp_path / "runs" / "x"), content=SECRET)
    assert send(repo, "claude", sent).code == 0


def test_a_repository_without_patchgate_is_not_judged(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    for name in "bcdefghij":
        repo.write(name)
    assert send(repo, "claude", event("Stop", repo)).code == 0
    assert send(repo, "claude", event("SessionStart", repo)).out == ""
    assert send(repo, "claude", tool("claude", repo, "Write", file_path="x", content=SECRET)).code == 0
    assert send(repo, "claude", command("claude", repo, "rm -rf .git/hooks")).code == 0


def test_an_ignored_file_is_not_judged_but_for_the_settings_of_agents(repo: Repo) -> None:
    repo.commit({".gitignore": "out/\n.claude/\n"})
    fine = tool("claude", repo, "Write", file_path="out/x.py", content=f"k = '{SECRET}'\n")
    assert send(repo, "claude", fine).code == 0
    settings = tool("claude", repo, "Write", file_path=".claude/settings.local.json", content="{}")
    assert "error[agent-settings]" in send(repo, "claude", settings).err


@pytest.mark.parametrize(
    ("path", "content", "refused"),
    [
        ("patchgate.toml", "[policy]\n", True),
        ("patchgate.toml", "[policy\n", True),
        (".patchgate/allowed_signers", "x\n", True),
        (".patchgate/baselines/x.json", "{}\n", False),
        ("pyproject.toml", "[tool.patchgate.policy]\n", True),
        ("pyproject.toml", "[project]\nname = 'x'\n", False),
        (".pre-commit-config.yaml", "repos: []\n", True),
        ("sub/.pre-commit-config.yaml", "repos: []\n", False),
    ],
)
def test_an_agent_may_not_change_the_policy(repo: Repo, path: str, content: str, refused: bool) -> None:
    repo.commit({".pre-commit-config.yaml": "repos: [] # patchgate\n"})
    sent = tool("claude", repo, "Write", file_path=path, content=content)
    answer = send(repo, "claude", sent)
    assert ("error[agent-settings]" in answer.err) is refused
    if refused:
        repo.write(path, content)
        assert "error[agent-settings]" in send(repo, "claude", event("Stop", repo)).err


@pytest.mark.parametrize(
    ("path", "variable", "folder"),
    [
        (".claude/settings.json", "HOME", ""),
        (".codex/config.toml", "HOME", ""),
        (".cursor/hooks.json", "HOME", ""),
        (".gemini/settings.json", "HOME", ""),
        ("other/settings.json", "CLAUDE_CONFIG_DIR", "other"),
        ("other/hooks.json", "CODEX_HOME", "other"),
        (".gitconfig", "HOME", ""),
        ("other/git/config", "XDG_CONFIG_HOME", "other"),
    ],
)
def test_the_hooks_of_the_user_are_left_alone(
    repo: Repo, tmp_path: Path, path: str, variable: str, folder: str
) -> None:
    home = tmp_path / "someone"
    place = home / path
    sent = tool("claude", repo, "Write", file_path=str(place), content="{}")
    env = {variable: str(home / folder)}
    assert "error[agent-settings]" in send(repo, "claude", sent, **env).err
    removed = command("claude", repo, f"rm {place}")
    assert "error[command-bypasses-hooks]" in send(repo, "claude", removed, **env).err
    fine = tool("claude", repo, "Write", file_path=f"{place}.txt", content="{}")
    assert send(repo, "claude", fine, **env).code == 0


def test_a_file_that_an_outer_repository_tracks_is_judged_by_it_too(repo: Repo) -> None:
    repo.git("init", "-q", "runs")
    answer = send(repo, "claude", tool("claude", repo, "Write", file_path="runs/old", content="x"))
    assert "error[deny-prefix]" in answer.err
    assert send(repo, "claude", tool("claude", repo, "Write", file_path="runs/x", content="x")).code == 0


def test_a_patch_of_many_files_is_one_change(repo: Repo) -> None:
    lines = "".join(f"*** Add File: src/n{number}.py\n+x = {number}\n" for number in range(3))
    patch = f"*** Begin Patch\n{lines}*** End Patch\n"
    answer = send(repo, "codex", tool("codex", repo, "apply_patch", command=patch))
    assert answer.code == 2
    assert "error[max-files]" in answer.err


@pytest.mark.turns(3)
@pytest.mark.parametrize("budget", [(), ("--max-minutes", "5")])
def test_an_agent_ends_an_intent_only_without_a_budget(repo: Repo, budget: tuple[str, ...]) -> None:
    repo.cli("intent", "declare", "-m", "count lines", "--allow", "src/", "--lazy", *budget)
    answer = send(repo, "claude", command("claude", repo, "git patchgate intent clear"))
    assert is_refused("claude", answer) is bool(budget)


def envelope(path: str, line: str = "x = 1") -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch\n"


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"apply_patch <<'EOF'\n{envelope('runs/new')}EOF\n", "deny-prefix"),
        (f"cd src && apply_patch <<'EOF'\n{envelope('../runs/new')}EOF\n", "deny-prefix"),
        (f"bash -lc \"apply_patch <<'EOF'\n{envelope('runs/new')}EOF\n\"", "deny-prefix"),
        (f"apply_patch <<'EOF'\n{envelope('src/c.py', SECRET)}EOF\n", "secret"),
        (f"apply_patch <<'EOF'\n{envelope('patchgate.toml')}EOF\n", "agent-settings"),
        (f"apply_patch <<'EOF'\n{envelope('.git/hooks/x')}EOF\n", "path-git-dir"),
        ("apply_patch <<'EOF'\nnothing\nEOF\n", "undecided"),
        (f"apply_patch <<'EOF'\n{envelope('src/c.py')}EOF\n", ""),
    ],
)
def test_an_envelope_through_the_shell_is_judged_as_a_write(repo: Repo, text: str, rule: str) -> None:
    answer = send(repo, "codex", command("codex", repo, text))
    assert is_refused("codex", answer) is bool(rule)
    assert rule in answer.err
    assert rule or not answer.out


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("git push -f origin main", True),
        ("git push origin +HEAD:main", True),
        ("git push --force", True),
        ("git push -f origin feature", False),
        ("git push origin main", False),
        ("rm .git/hooks/pre-commit", True),
        ("echo x > .claude/settings.json", True),
        ("cd src && tee ../.codex/hooks.json", True),
        ("cat .claude/settings.json", False),
        ("rm -rf .claude", True),
        ("mv .codex x", True),
        ("echo x > patchgate.toml", True),
        ("rm -rf .patchgate", True),
        ("mkdir -p .patchgate/baselines", False),
        ("echo x > link/config", True),
        ("b=main; git push -f origin $b", True),
        ("rm -rf .g*", True),
        ("rm $HOME/.gitconfig", True),
    ],
)
def test_a_command_is_judged_where_it_runs(repo: Repo, text: str, refused: bool) -> None:
    remote = repo.path.parent / "remote"
    repo.git("clone", "-q", "--bare", ".", str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("fetch", "-q", "origin")
    repo.link("link", ".git")
    assert is_refused("claude", send(repo, "claude", command("claude", repo, text))) is refused


def test_git_s_own_folder_may_have_another_name(repo: Repo) -> None:
    repo.git("init", "-q", "--separate-git-dir", str(repo.path.parent / "kept"))
    repo.install()
    for text in ("rm ../kept/hooks/pre-commit", "echo x > ../kept/config", "rm -rf ../kept"):
        assert is_refused("claude", send(repo, "claude", command("claude", repo, text)))
    assert not is_refused("claude", send(repo, "claude", command("claude", repo, "rm ../keptx")))
    sent = tool(
        "claude", repo, "Write", file_path=str(repo.path.parent / "kept" / "hooks" / "x"), content="x"
    )
    assert "error[path-git-dir]" in send(repo, "claude", sent).err


def test_cursor_asks_before_a_command_in_its_own_event(repo: Repo) -> None:
    sent = event("beforeShellExecution", repo, command="git commit -n", workspace_roots=[str(repo.path)])
    assert is_refused("cursor", send(repo, "cursor", {**sent, "cwd": ""}))


def test_settings_that_a_maintainer_installed_are_not_held_against_the_agent(repo: Repo) -> None:
    assert repo.cli("agent", "install", "claude").code == 0
    stop = event("Stop", repo, stop_hook_active=False)
    assert send(repo, "claude", stop).code == 0
    repo.write(".claude/settings.json", "{}\n")
    assert "error[agent-settings]" in send(repo, "claude", stop).err


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "another JSON": b"[]",
    "no UTF-8": b'{"hook_event_name": "\xff"}',
    "too deep": b"[" * 100_000,
    "no event": b"{}",
    "an event that is no text": b'{"hook_event_name": 1}',
    "an unknown event": b'{"hook_event_name": "Unknown"}',
    "larger than the limit": b'{"hook_event_name": "' + b"x" * (50 << 20) + b'"}',
}


def test_a_folder_that_is_gone_and_an_input_that_is_closed_are_no_fault_of_ours(repo: Repo) -> None:
    script = 'mkdir gone; cd gone; rmdir ../gone; "$0" agent hook --protocol claude'
    refused = json.dumps(command("claude", repo, "git commit -n") | {"cwd": None}).encode()
    for end, sent, said in (("", refused, b"command-bypasses-hooks"), (" <&-", b"", b"cannot be read")):
        done = subprocess.run(
            ["sh", "-c", script + end, EXECUTABLE],
            cwd=repo.path,
            env=repo.env,
            input=sent,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 2
        assert said in done.stderr
        assert b"trace" not in done.stderr


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broken_input_is_refused_in_one_line(repo: Repo, protocol: str, raw: bytes) -> None:
    if len(raw) > 1 << 20 and protocol != "claude":
        pytest.skip("the size is asked for once, before the protocol matters")
    answer = send(repo, protocol, raw)
    assert answer.code == 2
    assert answer.err.startswith("patchgate: undecided: ")
    assert answer.err.count("\n") == 1
    if protocol == "cursor":
        assert json.loads(answer.out)["permission"] == "deny"


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": 1},
        {"tool_name": "Write"},
        {"tool_name": "Write", "tool_input": []},
        {"tool_name": "Write", "tool_input": {}},
        {"tool_name": "Write", "tool_input": {"file_path": 1, "content": "x"}},
        {"tool_name": "Write", "tool_input": {"file_path": "x", "content": None}},
        {"tool_name": "Edit", "tool_input": {"file_path": "x", "old_string": "a"}},
        {"tool_name": "Bash", "tool_input": {"command": ["git"]}},
        {"tool_name": "Bash", "tool_input": {"command": "x"}, "cwd": 1},
        {"tool_name": "apply_patch", "tool_input": {}},
        {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** End Patch"}},
        {"tool_name": "apply_patch", "tool_input": {"command": "*** Add File: x\0\n+x"}},
        {"tool_name": "Write", "tool_input": {"file_path": "x", "path": "y", "content": "x"}},
        {"tool_name": "Write", "tool_input": {"file_path": "x", "content": "x", "contents": "y"}},
        {"tool_name": "Write", "tool_input": {"file_path": "x\0", "content": "x"}},
        {"tool_name": "Write", "tool_input": {"file_path": "x\ud800", "content": "x"}},
        {
            "tool_name": "replace",
            "tool_input": {"file_path": "x", "content": "x", "old_string": "a", "new_string": "b"},
        },
        {"tool_name": "MultiEdit", "tool_input": {"file_path": "x", "edits": ["x"]}},
        {"tool_name": "Bash", "tool_input": {"command": "ls \0"}},
        {"tool_name": "Bash", "tool_input": {"command": "ls \ud800"}},
        {"tool_name": "Bash", "tool_input": {"command": "x", "cwd": "a\0"}},
        {"tool_name": "Bash", "tool_input": {"command": "x"}, "cwd": "\udfff"},
    ],
)
def test_fields_of_another_type_are_refused(repo: Repo, fields: dict[str, Any]) -> None:
    answer = send(repo, "claude", {**event("PreToolUse", repo), **fields})
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "internal" not in answer.err


def test_unknown_fields_and_tools_are_ignored(repo: Repo) -> None:
    assert send(repo, "claude", tool("claude", repo, "Read", file_path="runs/old")).code == 0
    assert send(repo, "claude", {**command("claude", repo, "ls"), "new": [1]}).code == 0
    assert send(repo, "claude", tool("claude", repo, "mcp__x__Write", file_path="runs/x")).code == 0


@pytest.mark.parametrize("path", ["a\0b", "\n", "runs/\x1b[31m", "x" * 5000, "../" * 50 + "x"])
def test_a_hostile_path_never_reaches_the_terminal_raw(repo: Repo, path: str) -> None:
    answer = send(repo, "claude", tool("claude", repo, "Write", file_path=path, content="x\n"))
    assert answer.code in {0, 2}
    assert "\x1b" not in answer.err
    assert "\0" not in answer.err


def blocked_git(repo: Repo) -> dict[str, str]:
    """Make a git that never answers: it waits for a reader of a pipe that has none."""
    folder = repo.path.parent / "bin"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    git = folder / "git"
    git.write_text(f'#!/bin/sh\nexec cat "{folder}/pipe"\n')
    git.chmod(0o755)
    return {"PATH": f"{folder}:{repo.env['PATH']}"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_takes_too_long_is_refused(repo: Repo, protocol: str) -> None:
    sent = write(protocol, repo, "src/new.py", "def f():\n    return 1\n")
    answer = send(repo, protocol, sent, "--seconds", "0.5", **blocked_git(repo))
    assert answer.code == 2
    assert answer.err == (
        "patchgate: undecided: no answer within 0.5 s; ask a maintainer, who can raise --seconds\n"
    )


def test_an_input_that_never_ends_is_refused(repo: Repo) -> None:
    words = [str(EXECUTABLE), "agent", "hook", "--protocol", "claude", "--seconds", "0.5"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=repo.path, env=repo.env
    ) as child:
        assert child.stderr is not None
        assert b"no answer within" in child.stderr.read()
        assert child.wait() == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_failure_of_ours_refuses_unless_that_was_chosen(repo: Repo, protocol: str) -> None:
    sent = write(protocol, repo, "src/new.py", "x = 1\n")
    closed = send(repo, protocol, sent, PATH="/nonexistent")
    assert (closed.code, closed.err.count("\n")) == (2, 1)
    opened = send(repo, protocol, sent, "--fail-open", PATH="/nonexistent")
    assert opened.code == 0
    assert not is_refused(protocol, opened)
    assert "--fail-open" in opened.err


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_failure_at_a_repeated_stop_lets_the_agent_end(repo: Repo, protocol: str) -> None:
    stop = event(STOP[protocol], repo, stop_hook_active=True, loop_count=1)
    answer = send(repo, protocol, stop, PATH="/nonexistent")
    assert answer.code == 0
    assert not is_refused(protocol, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_failure_at_the_start_of_a_session_is_told_to_the_model(repo: Repo, protocol: str) -> None:
    answer = send(repo, protocol, event(START[protocol], repo), PATH="/nonexistent")
    assert answer.code == 0
    assert "undecided" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--protocol", "other"],
        ["--protocol", "claude", "--seconds", "0"],
        ["--protocol", "claude", "--seconds", "x"],
        ["--protocol", "claude", "more"],
    ],
)
def test_wrong_arguments_are_refused_too(repo: Repo, arguments: list[str]) -> None:
    assert repo.run("agent", "hook", *arguments, stdin=b"{}").code == 2
