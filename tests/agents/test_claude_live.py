"""The real Claude Code with a scripted model on loopback: no account, an own home, nothing of this machine.

A long form: it installs the client from npm. Runs with `PATCHGATE_LONG=1` where npm is.
"""

from __future__ import annotations

from pathlib import Path

from tests.agents.agent_world import governed
from tests.agents.live_client import install_client, needs_npm, run_client
from tests.agents.scripted_model import ScriptedModel, ToolStep


@needs_npm
def test_claude_code_is_refused_a_write_a_commit_without_hooks_and_a_bad_stop(tmp_path: Path) -> None:
    repo = governed(tmp_path)
    repo.install()
    assert repo.cli("agent", "install", "claude", "--seconds", "60").code == 0
    program = install_client(tmp_path / "client", "@anthropic-ai/claude-code", "claude")
    head = repo.head()
    steps: list[ToolStep | str] = [
        ToolStep("Write", {"file_path": str(repo.path / "runs" / "new"), "content": "x\n"}),
        ToolStep("Bash", {"command": "git commit --no-verify --allow-empty -m x", "description": "commit"}),
        ToolStep("Write", {"file_path": str(repo.path / "src" / "c.py"), "content": "c = 1\n"}),
        # No rule of ours reads what a program writes: the stop has to find it.
        ToolStep("Bash", {"command": "touch runs/other", "description": "touch"}),
        "I am done.",
        "I cannot fix it.",
    ]
    with ScriptedModel(steps) as model:
        words = [program, "-p", "Do it.", "--allowedTools", "Write,Bash", "--max-turns", "20"]
        world = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }
        done = run_client(repo, words, world)
    said = model.said()
    assert done.returncode == 0, done.stderr
    assert len(model.asked) == len(steps), said
    assert "patchgate checks what you write" in said
    assert "runs/new" in said
    assert "error[command-bypasses-hooks]" in said
    assert said.count("Stop hook feedback") == 1
    assert "runs/other" in said
    assert not (repo.path / "runs" / "new").exists()
    assert (repo.path / "src" / "c.py").read_text() == "c = 1\n"
    assert repo.head() == head
