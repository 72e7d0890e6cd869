"""Decides for the recogniser that the commands of an ordinary commit accept it: remembered, or run here.

It refuses nothing. What it cannot decide exactly as the full check does raises an error, and the full check
decides. It imports only what is quick; `command_runs` starts what is not remembered.
"""

from __future__ import annotations

import os

from patchgate.commands.programs import NO_TREE, command_environment, identity_in
from patchgate.commands.remembered_answers import RememberedAnswers, context_of, version_context
from patchgate.hooks.fast.quick_plan import TREE, QuickChange, QuickPlan, files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from patchgate.hooks.fast.quick_plan import Folders

# The full check reads the first, and no hook of a commit has the second; with the others the Python of the
# full check, which is not isolated, gives a tool other variables.
_LEFT_TO_FULL = ("PATCHGATE_SKIP_ONLY", "GIT_QUARANTINE_PATH", "PYTHONCOERCECLOCALE", "PYTHONUTF8")
# As git writes it.
_ORIGIN = b'[remote "origin"]\n\turl = '
# The first that is there is the default branch of `origin`, as in the full check.
# Where git looks for a name (gitrevisions), and how much of the packed refs is read at most.
_SEARCHED = ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
_MOST_PACKED = 4 << 20
ORIGINS = (b"refs/remotes/origin/HEAD", b"refs/remotes/origin/main", b"refs/remotes/origin/master")


def _has_other_refs_of_full_names(packed: bytes, common_dir: str) -> bool:
    """Return whether there may be a tag like `refs/tags/refs/…`: git takes it for a ref that is missing.

    The full check asks for the ref alone. Another storage of refs than files cannot be read here.
    """
    if os.path.lexists(common_dir + "/reftable"):
        return True
    return len(packed) >= _MOST_PACKED or any(
        os.path.lexists(f"{common_dir}/{folder}refs") or f" {folder}refs/".encode() in packed
        for folder in _SEARCHED
    )


class QuickTrust:
    """Which commands may run: those of the default branch of `origin`, and those allowed on this machine."""

    def __init__(
        self,
        change: QuickChange,
        policy: Mapping[str, Any],
        trusted: Sequence[tuple[bytes, bytes]],
        common_dir: str,
    ) -> None:
        self._change = change
        self._common_dir = common_dir
        self._trusted: tuple[bytes, dict[str, Any]] | None = None
        tools = change.tools
        there = [
            (name, content) for name, (kind, content) in zip(ORIGINS, trusted, strict=True) if kind == b"tree"
        ]
        if there and _ORIGIN in tools.read(common_dir + "/config", tools.WHOLE_FILE):
            name, content = there[0]
            packed = tools.read(common_dir + "/packed-refs", _MOST_PACKED)
            if _has_other_refs_of_full_names(packed, common_dir):
                return
            root = dict(tools.entries(content, len(change.tree) // 2))
            change.add_commit(name, root)
            try:
                theirs = tools.load_policy(common_dir + "/patchgate/fast", root, policy["tool"][0])
            except (ValueError, OSError, EOFError, TypeError):
                # Nothing was compiled for it: what was allowed here may do.
                return
            self._trusted = name, {each["name"]: each for each in theirs["commit_commands"] or ()}

    def is_trusted(self, compiled: Mapping[str, Any]) -> bool:
        """Whether a command may run; false where only the full check can find out."""
        text = self._text(compiled, b"")
        if self._trusted is not None:
            name, commands = self._trusted
            theirs = commands.get(compiled["name"])
            if theirs is not None and self._text(theirs, name) == text:
                return True
        # Imported here: most commands are trusted by the ref.
        from patchgate.commands.trusted_commands import is_surely_allowed

        return is_surely_allowed(self._common_dir, text)

    def _text(self, compiled: Mapping[str, Any], commit: bytes) -> str:
        """Write the definition with the files of the resulting tree, or of a commit."""
        paths = [os.fsencode(path) for path in compiled["programs"]]
        found = self._change.at(commit, paths) if commit else self._change.entries(paths)
        files = {
            os.fsdecode(path): entry.replace(".", " ")
            for path, entry in found.items()
            if entry is not None and not entry.startswith(f"{TREE}.")
        }
        if not files:
            text: str = compiled["definition"]
            return text
        from patchgate.commands.trusted_commands import definition_text

        return definition_text(compiled["name"], compiled["table"], compiled["environment"], files)


def require_accepted(
    tools: Any,
    policy: Mapping[str, Any],
    raw: bytes,
    tree: bytes,
    folders: Folders,
    trusted: Sequence[tuple[bytes, bytes]],
    environ: Mapping[str, str],
    git_dir: str,
    common_dir: str,
) -> None:
    """Require that every command of a commit accepts an ordinary change.

    Args:
        tools: the functions of the recogniser.
        policy: what it recognised the change by.
        raw: the change, as git writes it.
        tree: what it results in.
        folders: the folders of HEAD above its files.
        trusted: type and content of the root folders of `ORIGINS`.
        environ: the environment of the hook.

    Raises:
        ValueError: one does not, or the full check must decide; any other error means the same.
    """
    tools.require(not any(name in environ for name in _LEFT_TO_FULL))
    tools.require(policy["commit_commands"] is not None)
    change = QuickChange(tools, raw, tree, folders, git_dir)
    trust = QuickTrust(change, policy, trusted, common_dir)
    memory = RememberedAnswers(common_dir)
    left = []
    for compiled in policy["commit_commands"]:
        files = files_of(compiled, change)
        if files is None:
            continue
        tools.require(trust.is_trusted(compiled))
        plan = QuickPlan(compiled, change, files)
        if not _is_remembered(plan, compiled["text"], change, memory, environ):
            left.append(plan)
    if left:
        # Imported here: what is remembered starts nothing.
        from patchgate.hooks.fast.command_runs import require_passing

        require_passing(left, change, memory, environ, common_dir)


def _is_remembered(
    plan: QuickPlan, text: str, change: QuickChange, memory: RememberedAnswers, environ: Mapping[str, str]
) -> bool:
    """Whether the answer of a command is known; the files whose answers are known are taken from its plan."""
    settings = plan.settings
    environment = command_environment(environ, settings.env, NO_TREE)
    tool = identity_in(settings, environment)
    change.tools.require(tool is not None)
    if settings.version is not None:
        asked = settings.version_command or (settings.command[0], "--version")
        change.tools.require(memory.known(version_context(tool, asked, settings.version), ["ok"]))
    provided: list[list[str]] = []
    if settings.provide:
        from patchgate.commands.provided_folders import state_of

        # A hook starts at the top of the working tree.
        provided = state_of(".", settings.provide)
    plan.context = context_of(plan.name, text, tool, environment, provided)
    if not settings.remember:
        return False
    with_base = plan.with_base(change) if settings.new_only else {}
    kept = memory.known(plan.context, [*plan.answers.values(), *with_base.values()])
    unknown = {
        path: each
        for path, each in plan.answers.items()
        if each not in kept and with_base.get(path) not in kept
    }
    if settings.per_file:
        plan.answers = unknown
        plan.files = list(unknown)
    return not unknown
