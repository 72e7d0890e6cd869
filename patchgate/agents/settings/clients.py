"""The coding agents whose hooks are known: where each reads them, and the entries that call patchgate.

Every fact is from the vendor's documentation; docs/agents.md lists which page, and of which date.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.values import dataclass

MARK = "git-patchgate agent hook --protocol "
"""What the command of each of our entries contains."""
SECONDS = 2.0
"""The time limit of an answer. The agent's own is longer: after it, an agent goes on without an answer."""
_THEIR_SECONDS = 8
# Events of Cursor, which goes on after a failed hook unless its entry says otherwise.
_STOPPABLE = frozenset({"preToolUse", "beforeShellExecution"})

Entries = Mapping[str, Mapping[str, object]]
"""For each event, the entry of its list."""


@dataclass(frozen=True, slots=True)
class AgentClient:
    """An agent: its settings file in a project and below the home folder, and how its entries are nested.

    `home` is the environment variable that names its folder, where it has one. `root` are further keys of a
    new file. `is_flat`: an entry is the handler itself; else it is a group with a list of handlers. `scale`
    turns seconds into its unit of time. `next_step` is what the user does before it runs hooks of a project.
    """

    name: str
    title: str
    file: str
    matchers: Mapping[str, str]
    home: str = ""
    root: Mapping[str, object] | None = None
    is_flat: bool = False
    scale: int = 1
    next_step: str = ""

    def command(self, *, fail_open: bool = False, seconds: float = SECONDS) -> str:
        """Write the command of the entries.

        A patchgate that cannot even be started refuses too: for these agents any exit code but 2 goes on.
        """
        options = "" if seconds == SECONDS else f" --seconds {seconds:g}"
        words = f"{MARK}{self.name}{options}"
        return f"{words} --fail-open" if fail_open else f"{words} || exit 2"

    def entries(self, *, fail_open: bool = False, seconds: float = SECONDS) -> Entries:
        """Make the entry of each event."""
        limit = max(_THEIR_SECONDS, round(2 * seconds + 4)) * self.scale
        command = self.command(fail_open=fail_open, seconds=seconds)
        handler: dict[str, object] = {"type": "command", "command": command, "timeout": limit}
        made: dict[str, Mapping[str, object]] = {}
        for event, matcher in self.matchers.items():
            matching = {"matcher": matcher} if matcher else {}
            if self.is_flat:
                more = {"loop_limit": 1} if event == "stop" else {}
                closed = {"failClosed": not fail_open} if event in _STOPPABLE else {}
                made[event] = {"command": command, "timeout": limit, **matching, **more, **closed}
            else:
                made[event] = {**matching, "hooks": [handler]}
        return made


CLIENTS: Mapping[str, AgentClient] = {
    each.name: each
    for each in (
        AgentClient(
            "claude",
            "Claude Code",
            ".claude/settings.json",
            {"SessionStart": "", "PreToolUse": "Bash|Edit|MultiEdit|NotebookEdit|Write", "Stop": ""},
            home="CLAUDE_CONFIG_DIR",
        ),
        AgentClient(
            "codex",
            "Codex",
            ".codex/hooks.json",
            {"SessionStart": "", "PreToolUse": "^(Bash|apply_patch)$", "Stop": ""},
            home="CODEX_HOME",
            next_step="start codex and trust the hooks with /hooks; until then it does not run them",
        ),
        AgentClient(
            "cursor",
            "Cursor",
            ".cursor/hooks.json",
            {
                "sessionStart": "",
                "preToolUse": "^(Write|TabWrite|StrReplace|Edit|MultiEdit|EditNotebook|ApplyPatch|Delete)$",
                "beforeShellExecution": "",
                "stop": "",
            },
            root={"version": 1},
            is_flat=True,
        ),
        AgentClient(
            "gemini",
            "Gemini CLI",
            ".gemini/settings.json",
            {"SessionStart": "", "BeforeTool": "^(write_file|replace|run_shell_command)$", "AfterAgent": ""},
            scale=1000,
            next_step="trust the folder in gemini; elsewhere, or with --skip-trust, it runs no hooks of it",
        ),
    )
}
CODEX_CONFIG = ".codex/config.toml"
"""Where Codex can have its hooks too; a layer should have them in one of the two files."""
