"""Remember which commands accepted what: one sealed file for each command and everything that it depends on.

An answer is kept by what the command saw, so it is found again after an amend, a rebase or a switch of
branches, and at the push. Only accepted answers are kept. Local hooks write and read it; where others may
have written to git's folder, nothing is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from patchgate.git.repository import Repository
from patchgate.policy.sealed_file import SealedFile, drop_oldest

FORM = "patchgate.command-answers/1"
MOST_ANSWERS = 20_000
_MOST_FILES = 400
_MOST_BYTES = 8 << 20
# What names a session or a place, not an input of a tool.
_SESSION = frozenset(
    {
        *(
            "_",
            "PWD",
            "OLDPWD",
            "SHLVL",
            "TERM",
            "COLORTERM",
            "COLUMNS",
            "LINES",
            "DISPLAY",
            "WINDOWID",
            "TMUX",
        ),
        *("STY", "LS_COLORS", "EDITOR", "VISUAL", "PAGER", "MAIL", "HISTFILE", "PS1", "PROMPT_COMMAND"),
        *("WAYLAND_DISPLAY", "COMMAND_MODE", "SECURITYSESSIONID", "LaunchInstanceID", "INVOCATION_ID"),
    }
)
_SESSIONS = (
    *("SSH_", "XDG_SESSION_", "TERM_", "GPG_", "DBUS_", "VSCODE_", "KITTY_", "ITERM_", "GIT_", "PATCHGATE_"),
    *("WEZTERM_", "ALACRITTY_", "GNOME_", "KDE_", "__CF", "XPC_", "PYTEST_CURRENT_TEST"),
)


def digest(parts: object) -> str:
    """Return the digest of JSON values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def lasting_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out the variables that differ from terminal to terminal, and say nothing to a tool."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _SESSION and not name.startswith(_SESSIONS)
    }


class RememberedAnswers:
    """The accepted answers of a repository, for all its worktrees."""

    def __init__(self, repository: Repository) -> None:
        self._folder = os.path.join(repository.common_dir, "patchgate", "answers")
        self._is_usable = repository.trusts_caches and not repository.is_receiving
        self._loaded: dict[str, dict[str, Any]] = {}

    def known(self, context: str, answers: Iterable[str]) -> set[str]:
        """Return those of some answers that are known for a context."""
        kept = self._load(context).get("answers", {})
        return {each for each in answers if each in kept}

    def value(self, context: str, name: str) -> Any:
        """Return a value that was kept for a context; None if there is none."""
        return self._load(context).get("values", {}).get(name)

    def keep(
        self, context: str, answers: Sequence[str] = (), values: Mapping[str, Any] | None = None
    ) -> None:
        """Keep accepted answers, and other values, of a context; the oldest are dropped."""
        if not self._is_usable:
            return
        # Another process may have added some meanwhile.
        self._loaded.pop(context, None)
        kept = self._load(context)
        listed = {**dict.fromkeys(kept.get("answers", ())), **dict.fromkeys(answers)}
        body = {"answers": dict.fromkeys(list(listed)[-MOST_ANSWERS:], 1), "values": kept.get("values", {})}
        body["values"] = dict(list({**body["values"], **(values or {})}.items())[-_MOST_FILES:])
        is_new = not kept
        self._loaded[context] = body
        self._file(context).store(json.dumps(body).encode("ascii"))
        if is_new:
            drop_oldest(self._folder, _MOST_FILES)

    def _load(self, context: str) -> dict[str, Any]:
        if context not in self._loaded:
            self._loaded[context] = self._file(context).load() if self._is_usable else {}
        return self._loaded[context]

    def _file(self, context: str) -> SealedFile:
        return SealedFile(os.path.join(self._folder, context), f"{FORM} {context}", _MOST_BYTES)
