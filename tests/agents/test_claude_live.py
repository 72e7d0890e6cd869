"""The real Claude Code with a scripted model on loopback: no account, an own home, nothing of this machine.

A long form: it installs the client from npm. Runs with `PATCHGATE_LONG=1` where npm is.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.agents.agent_world import governed
from tests.agents.scripted_model import ScriptedModel, ToolStep
from tests.amount import IS_LONG

PACKAGE = "@anthropic-ai/claude-code"
SECONDS = 600


@pytest.mark.skipif(not IS_LONG or shutil.which("npm") is None, reason="needs PATCHGATE_LONG=1 and npm")
def test_claude_code_is_refused_a_write_a_commit_without_hooks_and_a_bad_stop(tmp_path: Path) -> None:
    repo = governed(tmp_path)
    repo.install()
    assert repo.cli("agent", "install", "claude", "--seconds", "60").code == 0
    client = tmp_path / "client"
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(client), PACKAGE]
    # npm has the settings of this machine, the client has not.
    subprocess.run(install, check=True, capture_output=True, timeout=SECONDS)
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
        world = {
            **repo.env,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }
        program = str(client / "node_modules" / ".bin" / "claude")
        words = [program, "-p", "Do it.", "--allowedTools", "Write,Bash", "--max-turns", "20"]
        done = subprocess.run(
            words,
            cwd=repo.path,
            env=world,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
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
