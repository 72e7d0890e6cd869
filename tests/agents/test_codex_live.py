"""The real Codex with a scripted model on loopback: no account, an own home, nothing of this machine.

A long form: it installs the client from npm. Runs with `PATCHGATE_LONG=1` where npm is.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.agents.agent_world import governed
from tests.agents.live_client import install_client, needs_npm, run_client
from tests.agents.scripted_model import ScriptedModel, ToolStep
from tests.world import Repo

CONFIG = """\
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[projects."PROJECT"]
trust_level = "trusted"

[analytics]
enabled = false

[features]
enable_request_compression = false
"""


def patch_of(path: str) -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+x = 1\n*** End Patch\n"


def model_with_patches(repo: Repo, program: str) -> str:
    """Choose a model that Codex gives its `apply_patch` as a tool of its own."""
    known = json.loads(run_client(repo, [program, "debug", "models"], {}).stdout)["models"]
    return str([each["slug"] for each in known if each.get("apply_patch_tool_type") == "freeform"][-1])


@needs_npm
def test_codex_is_refused_writes_a_commit_without_hooks_and_a_bad_stop(tmp_path: Path) -> None:
    repo = governed(tmp_path)
    repo.install()
    assert repo.cli("agent", "install", "codex", "--seconds", "60").code == 0
    program = install_client(tmp_path / "client", "@openai/codex", "codex")
    head = repo.head()
    steps: list[ToolStep | str] = [
        ToolStep("apply_patch", patch_of("runs/new")),
        ToolStep("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch_of('runs/newer')}EOF"}),
        ToolStep("exec_command", {"cmd": "git commit --no-verify --allow-empty -m x"}),
        # What is typed into a running shell reaches no hook.
        ToolStep("exec_command", {"cmd": "bash -i", "tty": True}),
        ToolStep("apply_patch", patch_of("src/c.py")),
        # No rule of ours reads what a program writes: the stop has to find it.
        ToolStep("exec_command", {"cmd": "env >env.log; touch runs/other"}),
        "I am done.",
        "I cannot fix it.",
    ]
    with ScriptedModel(steps) as model:
        home = Path(repo.env["HOME"], ".codex")
        home.mkdir()
        config = CONFIG.replace("URL", model.url).replace("PROJECT", str(repo.path))
        (home / "config.toml").write_text(config, encoding="utf-8")
        chosen = model_with_patches(repo, program)
        # Nobody is here to trust the hooks with /hooks.
        words = [program, "exec", "--dangerously-bypass-hook-trust", "-m", chosen, "Do it."]
        done = run_client(repo, words, {})
    said = model.said()
    assert done.returncode == 0, done.stderr
    assert len(model.asked) == len(steps), said
    assert "patchgate checks what you write" in said
    assert said.count("error[deny-prefix] runs/new:") == 1
    assert said.count("error[deny-prefix] runs/newer:") == 1
    assert said.count("error[command-bypasses-hooks]") == 2
    assert said.count("<hook_prompt") == 1
    assert "error[deny-prefix] runs/other:" in said
    assert not (repo.path / "runs" / "new").exists()
    assert not (repo.path / "runs" / "newer").exists()
    assert (repo.path / "src" / "c.py").read_text() == "x = 1\n"
    assert repo.head() == head
    # By this a commit is an agent's.
    assert "CODEX_THREAD_ID=" in (repo.path / "env.log").read_text()
