"""What the commands of an ordinary commit would see: the change, and for each command files and digests.

The same as `CommandTarget` and `CommandPlan` for the full check, from what the recogniser has read already.
"""

from __future__ import annotations

import sys

from patchgate.commands.remembered_answers import answer_on_files, answer_on_tree, answer_with_base
from patchgate.policy.command_files import CommandFiles, needs_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from patchgate.policy.command_settings import CommandSettings

    Folders = dict[bytes, dict[bytes, str]]

TREE = "40000"
"""The mode of a folder, as a tree has it."""


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
    """List what a command needs besides its files, and the tree has; no run here takes a folder."""
    paths = [name.encode() for name in settings.needs]
    entries = change.entries(paths)
    for path, entry in entries.items():
        change.tools.require(
            entry is not None or not any(each.startswith(path + b"/") for each in change.after)
        )
    return [path for path in paths if entries[path] is not None]


def files_of(compiled: Mapping[str, Any], change: QuickChange) -> list[bytes] | None:
    """Choose the files that a command gets; None if it has nothing to do."""
    settings = settings_of(compiled)
    chosen = CommandFiles(settings, is_quick=True)
    matching = [path for path in change.after if chosen.match(path)]
    files = sorted(path for path in matching if change.after[path] is not None)
    return files if matching and (files or not needs_files(settings)) else None
