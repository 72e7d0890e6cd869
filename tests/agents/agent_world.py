"""Events as the agents send them, and a repository whose policy refuses some of what they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.world import Answer, Repo

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n[policy.agent]\nmax_files = 2\n'
FILES = {"src/a.py": "one = 1\ntwo = 2\n", "src/b.py": "b = 1\n", "runs/old": "kept\n"}
# Each protocol's names: a tool that runs a command, one that writes a file, the events.
SHELL = {"claude": "Bash", "codex": "Bash", "cursor": "Shell", "gemini": "run_shell_command"}
BEFORE = {"claude": "PreToolUse", "codex": "PreToolUse", "cursor": "preToolUse", "gemini": "BeforeTool"}
STOP = {"claude": "Stop", "codex": "Stop", "cursor": "stop", "gemini": "AfterAgent"}
START = {
    "claude": "SessionStart",
    "codex": "SessionStart",
    "cursor": "sessionStart",
    "gemini": "SessionStart",
}
PROTOCOLS = tuple(SHELL)


def governed(folder: Path) -> Repo:
    """Make a repository with a policy and files."""
    repo = Repo.create(folder)
    repo.policy(POLICY)
    repo.commit(FILES)
    return repo


def event(name: str, repo: Repo, **fields: Any) -> dict[str, Any]:
    """Write an event with the fields that all of them have."""
    common = {"session_id": "s-1", "transcript_path": None, "cwd": str(repo.path), "hook_event_name": name}
    return {**common, **fields}


def tool(protocol: str, repo: Repo, name: str, **arguments: Any) -> dict[str, Any]:
    """Write the event before a tool is used."""
    return event(BEFORE[protocol], repo, tool_name=name, tool_input=arguments, tool_use_id="t-1")


def command(protocol: str, repo: Repo, text: str) -> dict[str, Any]:
    """Write the event before a shell command."""
    return tool(protocol, repo, SHELL[protocol], command=text)


def write(protocol: str, repo: Repo, path: str, content: str) -> dict[str, Any]:
    """Write the event before a file is written, by the tool that each agent has for it."""
    if protocol == "codex":
        lines = "".join(f"+{line}\n" for line in content.removesuffix("\n").split("\n"))
        patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
        return tool(protocol, repo, "apply_patch", command=patch)
    name = {"claude": "Write", "cursor": "Write", "gemini": "write_file"}[protocol]
    return tool(protocol, repo, name, file_path=str(repo.path / path), content=content)


def send(repo: Repo, protocol: str, sent: dict[str, Any] | bytes, *options: str, **env: str) -> Answer:
    """Send an event to the hook."""
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    # Long enough for a busy machine; one test is about the limit.
    words = options if "--seconds" in options else ("--seconds", "120", *options)
    there = Repo(repo.path, repo.env | env)
    answer = there.run("agent", "hook", "--protocol", protocol, *words, stdin=raw)
    assert "Traceback" not in answer.err
    return answer


def is_refused(protocol: str, answer: Answer) -> bool:
    """Whether an answer stops what the agent was about to do, as the agent reads it."""
    if protocol != "cursor":
        assert answer.code in {0, 2}
        return answer.code == 2 and bool(answer.err.strip())
    said = json.loads(answer.out)
    return said.get("permission") == "deny" or bool(said.get("followup_message"))


def reason(protocol: str, answer: Answer) -> str:
    """Return what the model reads of a refusal."""
    if protocol != "cursor":
        return answer.err
    said = json.loads(answer.out)
    return str(said.get("user_message") or said.get("followup_message") or "")
