"""The real Gemini CLI with a scripted model on loopback: no account, an own home, nothing of this machine.

A long form: it installs the client from npm. Runs with `PATCHGATE_LONG=1` where npm is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.agent_world import governed
from tests.agents.live_client import install_client, needs_npm, run_client
from tests.agents.scripted_model import ScriptedModel, ToolStep

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
    "privacy": {"usageStatisticsEnabled": False},
}


@needs_npm
@pytest.mark.parametrize("is_user", [False, True])
def test_gemini_is_refused_writes_a_commit_without_hooks_and_a_bad_stop(
    tmp_path: Path, is_user: bool
) -> None:
    repo = governed(tmp_path)
    repo.install()
    home = Path(repo.env["HOME"], ".gemini", "settings.json")
    home.parent.mkdir()
    home.write_text(json.dumps(SETTINGS), encoding="utf-8")
    scope = ["--user"] if is_user else []
    assert repo.cli("agent", "install", "gemini", "--seconds", "60", *scope).code == 0
    program = install_client(tmp_path / "client", "@google/gemini-cli", "gemini")
    head = repo.head()
    steps: list[ToolStep | str] = [
        ToolStep("write_file", {"file_path": "runs/new", "content": "x\n"}),
        ToolStep(
            "replace",
            {"file_path": "runs/old", "old_string": "kept", "new_string": "lost", "instruction": "x"},
        ),
        ToolStep("run_shell_command", {"command": "git commit --no-verify --allow-empty -m x"}),
        ToolStep("write_file", {"file_path": "src/c.py", "content": "c = 1\n"}),
        # No rule of ours reads what a program writes: the stop has to find it.
        ToolStep("run_shell_command", {"command": "touch runs/other"}),
        "I am done.",
        "I cannot fix it.",
    ]
    with ScriptedModel(steps) as model:
        # Hooks of a project run only where the folder is trusted before the settings are read.
        trust = {} if is_user else {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        words = [program, "-p", "Do it.", "--yolo", *(["--skip-trust"] if is_user else [])]
        world = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url, **trust}
        done = run_client(repo, words, world)
    said = model.said()
    assert done.returncode == 0, done.stderr
    assert len(model.asked) == len(steps), said
    assert "patchgate checks what you write" in said
    assert "error[deny-prefix] runs/new:" in said
    assert "error[deny-prefix] runs/old:" in said
    assert "error[command-bypasses-hooks]" in said
    assert "error[deny-prefix] runs/other:" in said
    assert not (repo.path / "runs" / "new").exists()
    assert (repo.path / "runs" / "old").read_text() == "kept\n"
    assert (repo.path / "src" / "c.py").read_text() == "c = 1\n"
    assert repo.head() == head
