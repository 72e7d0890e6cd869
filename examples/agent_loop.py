"""A loop around a coding agent, from a task to an applied patch; Python's standard library is enough.

    (cat task.txt; git patchgate agent reply --describe) | python examples/agent_loop.py AGENT [ARGUMENT...]

AGENT is a command that reads a prompt on standard input and writes one reply to standard output.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

MOST_REPLIES = 20
"""Invalid replies are no attempts, so patchgate does not count them."""


def ask(agent: list[str], prompt: bytes) -> bytes:
    """Ask the agent for one reply."""
    return subprocess.run(agent, input=prompt, stdout=subprocess.PIPE, check=True).stdout


def gate(*words: str, sent: bytes) -> dict[str, Any]:
    """Run `git patchgate` on what was sent, and return its JSON; stop where another reply cannot help."""
    command = ["git", "patchgate", *words, "-", "--format", "json"]
    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):  # 3 is undecided
        sys.exit(f"{done.stdout.decode()}\nstopped with exit code {done.returncode}: a maintainer must look")
    return dict(json.loads(done.stdout))


def main(agent: list[str], task: bytes) -> None:
    """Send the task, and after each refusal the refused reply with its feedback."""
    answer = b""
    retry: tuple[str, ...] = ()
    for _ in range(MOST_REPLIES):
        raw = ask(agent, task + answer)
        sent = b"You sent:\n" + raw  # the feedback names its lines
        reply = gate("agent", "reply", sent=raw)
        if reply["findings"] and reply["report"] is None:
            said = "".join(f"{each['message']}\n{each['hint']}\n" for each in reply["findings"])
            answer = sent + said.encode()
            continue
        if "patch" not in reply["params"]:
            sys.exit(f"the agent asks for something else: {reply['action']} {reply['params']}")
        report = gate("apply", *retry, sent=reply["params"]["patch"].encode())
        attempt = report["attempt"]
        if attempt["applied"]:
            print("landed:", attempt["id"])
            return
        if report["retry"] is None or not report["retry"]["allowed"]:
            sys.exit(f"stopped: {attempt['fallback_reason']}, see {attempt['dir']}")
        retry = ("--retry-of", attempt["id"])
        answer = sent + pathlib.Path(attempt["dir"], "outbox", "feedback.md").read_bytes()
    sys.exit(f"stopped: {MOST_REPLIES} replies")


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin.buffer.read())
