"""Decides for the recogniser that the commands of an ordinary commit accept it: remembered, or run here.

It refuses nothing. What it cannot decide exactly as the full check does raises an error, and the full check
decides. It imports only what is quick; `command_runs` starts what is not remembered.
"""

from __future__ import annotations

import os
import sys

from patchgate.commands.programs import NO_TREE, command_environment, identity_in
from patchgate.commands.remembered_answers import (
    RememberedAnswers,
    answer_on_files,
    answer_on_tree,
    answer_with_base,
    context_of,
    version_context,
)
from patchgate.policy.command_files import CommandFiles, needs_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from patchgate.policy.command_settings import CommandSettings

    Folders = dict[bytes, dict[bytes, str]]

# At a commit the full check reads the one, and never has the other.
_LEFT_TO_FULL = ("PATCHGATE_SKIP_ONLY", "GIT_QUARANTINE_PATH")
# As git writes it.
_ORIGIN = b'[remote "origin"]\n\turl = '
_ORIGINS = (b"refs/remotes/origin/HEAD", b"refs/remotes/origin/main", b"refs/remotes/origin/master")
_TREE = "40000"


class QuickChange:
    """An ordinary change: its files before and after, each as `MODE.OID`, and the folders of HEAD above them.

    `tools` are the functions of the recogniser, `tree` is what the change results in.
    """

    def __init__(self, tools: Any, raw: bytes, tree: bytes, folders: Folders, git_dir: str) -> None:
        self.tools = tools
        self.tree = tree.decode("ascii")
        self.git_dir = git_dir
        self._folders = {b"HEAD": folders}
        self.before: dict[bytes, str | None] = {}
        self.after: dict[bytes, str | None] = {}
        words = raw.split(b"\0")
        for about, path in zip(words[:-1:2], words[1::2], strict=True):
            old_mode, mode, old, new, _ = about[1:].decode("ascii").split(" ")
            self.before[path] = None if old_mode == "000000" else f"{old_mode}.{old}"
            self.after[path] = None if mode == "000000" else f"{mode}.{new}"

    def add_commit(self, name: bytes, root: dict[bytes, str]) -> None:
        """Add the root folder of another commit."""
        self._folders.setdefault(name, {b"": root})

    def folders_above(self, commit: bytes, paths: Iterable[bytes]) -> Folders:
        """Read every folder above some paths in a commit; one that is not there is empty."""
        known = self._folders[commit]
        wanted = dict.fromkeys([b"", *(each for path in paths for each in self.tools.above(path))])
        asked = [folder for folder in wanted if folder not in known]
        if asked:
            requests = [b"contents %s:%s\n" % (commit, folder) for folder in asked]
            said = self.tools.listen(self.tools.ask(self.git_dir, requests))
            for folder in asked:
                _, kind, _, content = self.tools.take(said, with_content=True)
                self.tools.require(kind in (b"tree", b"missing"))
                known[folder] = dict(self.tools.entries(content, len(self.tree) // 2))
        return {folder: known[folder] for folder in wanted}

    def at(self, commit: bytes, paths: Sequence[bytes]) -> dict[bytes, str | None]:
        """Return the entries of some paths in a commit."""
        # A name of the policy may be anything; folders are asked line by line.
        self.tools.require(not any(path.translate(None, self.tools.PLAIN) for path in paths))
        self.tools.require(all(all(path.split(b"/")) for path in paths))
        folders = self.folders_above(commit, paths)
        return {path: folders[path.rpartition(b"/")[0]].get(path.rpartition(b"/")[2]) for path in paths}

    def entries(self, paths: Sequence[bytes]) -> dict[bytes, str | None]:
        """Return the entries of some paths in the resulting tree."""
        found = self.at(b"HEAD", [path for path in paths if path not in self.after])
        return {path: self.after[path] if path in self.after else found[path] for path in paths}


def seen(entries: Mapping[bytes, str | None], paths: Iterable[bytes]) -> list[tuple[str, str, str]]:
    """List path, mode and object id of some files, as `CommandTarget.seen` does."""
    listed = []
    for path in paths:
        entry = entries[path]
        if entry is not None:
            mode, _, oid = entry.partition(".")
            listed.append((path.decode("ascii"), mode, oid))
    return listed


def settings_of(compiled: Mapping[str, Any]) -> CommandSettings:
    """Give the settings of a command the form that the modules of both paths read."""
    # It has the fields of CommandSettings, whose import takes 10 ms.
    space: Any = type(sys.implementation)
    found: CommandSettings = space(**compiled["settings"])
    return found


class QuickPlan:
    """One command and what it would see; `answers` are by what its answer is known, by file or for all."""

    def __init__(self, compiled: Mapping[str, Any], change: QuickChange, files: list[bytes]) -> None:
        self.name: str = compiled["name"]
        self.may_run: bool = compiled["may_run"]
        self.settings = settings_of(compiled)
        self.files = files
        self.needed = _needed(self.settings, change)
        self.context = ""
        self.entries = change.entries([*files, *self.needed])
        self.answers = self._answers(change)

    @property
    def takes_tree(self) -> bool:
        """Whether it sees the whole tree."""
        return self.settings.scope == "tree"

    def _answers(self, change: QuickChange) -> dict[bytes, str]:
        if self.takes_tree:
            return {b"": answer_on_tree(change.tree, [path.decode("ascii") for path in self.files])}
        needed = seen(self.entries, self.needed)
        if self.settings.per_file:
            return {path: answer_on_files(seen(self.entries, [path]), needed) for path in self.files}
        return {b"": answer_on_files(seen(self.entries, self.files), needed)}

    def with_base(self, change: QuickChange) -> dict[bytes, str]:
        """Return by what answers are known that depend on the tree before, too."""
        # A file that is gone and one that is new may be one that was renamed.
        is_moved = None in change.before.values() and None in change.after.values()
        change.tools.require(not self.takes_tree and not is_moved)
        paths = [*self.files, *self.needed]
        old = change.at(b"HEAD", [path for path in paths if path not in change.before])
        base = seen({**change.before, **old}, paths)
        return {path: answer_with_base(each, base) for path, each in self.answers.items()}


def _needed(settings: CommandSettings, change: QuickChange) -> list[bytes]:
    """List what a command needs besides its files, and the tree has; a folder is left to the full check."""
    paths = [name.encode() for name in settings.needs]
    entries = change.entries(paths)
    for path, entry in entries.items():
        change.tools.require(entry is None or entry.partition(".")[0] != _TREE)
        change.tools.require(
            entry is not None or not any(each.startswith(path + b"/") for each in change.after)
        )
    return [path for path in paths if entries[path] is not None]


class QuickTrust:
    """Which commands may run: those of the default branch of `origin`, and those allowed on this machine."""

    def __init__(
        self, change: QuickChange, policy: Mapping[str, Any], said: bytearray, common_dir: str
    ) -> None:
        self._change = change
        self._common_dir = common_dir
        self._trusted: tuple[bytes, dict[str, Any]] | None = None
        tools = change.tools
        answers = [tools.take(said, with_content=True) for _ in _ORIGINS]
        there = [pair for pair in zip(_ORIGINS, answers, strict=True) if pair[1][1] == b"tree"]
        if there and _ORIGIN in tools.read(common_dir + "/config", tools.WHOLE_FILE):
            name, (_, _, _, content) = there[0]
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
            if entry is not None and not entry.startswith(f"{_TREE}.")
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
    said: bytearray,
    git_dir: str,
    common_dir: str,
) -> None:
    """Require that every command of a commit accepts an ordinary change.

    Raises:
        ValueError: one does not, or the full check must decide; any other error means the same.
    """
    environ = os.environ
    tools.require(not any(name in environ for name in _LEFT_TO_FULL))
    tools.require(policy["commit_commands"] is not None)
    change = QuickChange(tools, raw, tree, folders, git_dir)
    trust = QuickTrust(change, policy, said, common_dir)
    memory = RememberedAnswers(common_dir)
    left = []
    for compiled in policy["commit_commands"]:
        files = _files_of(compiled, change)
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


def _files_of(compiled: Mapping[str, Any], change: QuickChange) -> list[bytes] | None:
    """Choose the files that a command gets; None if it has nothing to do."""
    settings = settings_of(compiled)
    chosen = CommandFiles(settings, is_quick=True)
    matching = [path for path in change.after if chosen.match(path)]
    files = sorted(path for path in matching if change.after[path] is not None)
    return files if matching and (files or not needs_files(settings)) else None


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

        provided = state_of(os.getcwd(), settings.provide)
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
