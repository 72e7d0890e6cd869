"""Remember which commands accepted what: one sealed file for each command and everything that it depends on.

An answer is kept by what the command saw, so it is found again after an amend, a rebase or a switch of
branches, and at the push. Only accepted answers are kept. Local hooks write and read it; where others may
have written to git's folder, nothing is read.
"""

from __future__ import annotations

import os

from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.storage.digest import sha256_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Seen = Sequence[tuple[str, str, str]]
    """What a command sees of some files: path, mode and object id."""

FORM = "patchgate.command-answers/2"
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
    """Return the digest of texts, numbers, lists and tuples of them; what is equal must have equal types."""
    return sha256_text(ascii(parts).encode("ascii"))


def context_of(
    name: str, settings: str, tool: str | None, environment: Mapping[str, str], provided: Sequence[object]
) -> str:
    """Return the digest of all that the answer of a command depends on besides its files.

    Args:
        settings: what `settings_text` gives.
        tool: what `tool_identity` gives.
        environment: its variables, from `command_environment`.
        provided: what `state_of` gives.
    """
    variables = sorted(lasting_variables(environment).items())
    return digest([FORM, name, settings, tool, variables, list(provided)])


def answer_on_files(files: Seen, needed: Seen) -> str:
    """Return by what an answer about some files is known."""
    return digest([list(files), list(needed)])


def answer_on_tree(tree: str, names: Sequence[str]) -> str:
    """Return by what an answer about a whole tree is known; `names` are the quoted paths of `{files}`."""
    return digest([tree, list(names)])


def answer_with_base(answer: str, base: str | Seen) -> str:
    """Return by what an answer is known that depends on the tree before, or its files, too."""
    return digest([answer, base if isinstance(base, str) else list(base)])


def version_context(tool: str | None, asked: Sequence[str], wanted: str) -> str:
    """Return the digest under which a program's version is known to be a wanted one."""
    return digest(["version", tool, list(asked), wanted])


def lasting_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out the variables that differ from terminal to terminal, and say nothing to a tool."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _SESSION and not name.startswith(_SESSIONS)
    }


class RememberedAnswers:
    """The accepted answers of a repository, for all its worktrees.

    Args:
        common_dir: git's common directory.
        is_usable: false where others may have written to it: then nothing is read or written.
    """

    def __init__(self, common_dir: str, *, is_usable: bool = True) -> None:
        self._folder = os.path.join(common_dir, "patchgate", "answers")
        self._is_usable = is_usable
        self._loaded: dict[str, tuple[dict[str, None], bytes]] = {}

    def known(self, context: str, answers: Iterable[str]) -> set[str]:
        """Return those of some answers that are known for a context."""
        kept, _ = self._load(context)
        return {each for each in answers if each in kept}

    def value(self, context: str, name: str) -> Any:
        """Return a value that was kept for a context; None if there is none."""
        return self._values(context).get(name)

    def keep(
        self, context: str, answers: Sequence[str] = (), values: Mapping[str, Any] | None = None
    ) -> None:
        """Keep accepted answers, and other values, of a context; the oldest are dropped."""
        if not self._is_usable:
            return
        # Another process may have added some meanwhile.
        self._loaded.pop(context, None)
        kept, more = self._load(context)
        is_new = not (kept or more)
        listed = dict.fromkeys(list({**kept, **dict.fromkeys(answers)})[-MOST_ANSWERS:])
        if values:
            # 6 ms to import: the fast path keeps answers alone.
            import json

            merged = list({**self._values(context), **values}.items())[-_MOST_FILES:]
            more = json.dumps(dict(merged)).encode("ascii")
        self._loaded[context] = listed, more
        self._file(context).store("".join(f"{each}\n" for each in listed).encode("ascii") + b"\n" + more)
        if is_new:
            drop_oldest(self._folder, _MOST_FILES)

    def _values(self, context: str) -> dict[str, Any]:
        _, more = self._load(context)
        if not more:
            return {}
        import json

        values: dict[str, Any] = json.loads(more)
        return values

    def _load(self, context: str) -> tuple[dict[str, None], bytes]:
        """Read the answers, one a line, and the JSON of the values, after an empty line."""
        if context not in self._loaded:
            body = self._file(context).read() if self._is_usable else None
            *answers, more = (body or b"").split(b"\n")
            self._loaded[context] = dict.fromkeys(each.decode("ascii") for each in answers if each), more
        return self._loaded[context]

    def _file(self, context: str) -> SealedFile:
        return SealedFile(os.path.join(self._folder, context), f"{FORM} {context}", _MOST_BYTES)
