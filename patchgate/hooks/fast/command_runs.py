"""Runs for the fast path what is not remembered, in scratch trees like those of the full check.

Only linters and formatters that read their files, and only for a moment: a refusal or a slow tool is started
again by the full check. Imports only what is quick.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import stat
import time

from patchgate.commands.programs import (
    argument_room,
    command_environment,
    find_program,
    locate_program,
    working_folder,
)
from patchgate.commands.quick_sarif import is_clean_sarif
from patchgate.commands.remembered_answers import digest
from patchgate.git.pinned import CHECKOUT_FLAGS, FIXED, PINNED
from patchgate.git.scratch_record import claim_folder, identity_of
from patchgate.git.small_index import small_index
from patchgate.policy.command_files import expand_names
from patchgate.process.child_environment import allowed_environment
from patchgate.process.quick_runs import QuickTask, run_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from patchgate.commands.remembered_answers import RememberedAnswers
    from patchgate.hooks.fast.quick_plan import QuickChange, QuickPlan

_SECONDS, _MANY_SECONDS = 1.0, 3.0
"""Tools that take longer are left to the full check for the rest of the day: there is little to save, and a
refusal starts them twice. After the second time they are ended here.
"""
_DAY = 86_400
_MOST_BYTES = 16 << 20
_MOST_OUTPUT = 1 << 20
_FILE_MODES = ("100644", "100755")
_OWN = b".git"


def require_passing(
    plans: Sequence[QuickPlan],
    change: QuickChange,
    memory: RememberedAnswers,
    environ: Mapping[str, str],
    common_dir: str,
) -> None:
    """Run commands at the same time, require that all accept the change, and remember that.

    Raises:
        ValueError: one does not, or the full check must run it; any other error means the same.
    """
    require = change.tools.require
    today = str(int(time.time()) // _DAY)
    slow = [digest(["slow", plan.context]) for plan in plans]
    for plan, context in zip(plans, slow, strict=True):
        settings = plan.settings
        require(plan.may_run and settings.kind in ("lint", "format") and not plan.takes_tree)
        require(not settings.provide and settings.jobs == 1 and settings.output in ("text", "sarif"))
        require(not memory.known(context, [today]))
    for number in (_signal.SIGTERM, _signal.SIGHUP):
        # Ended like this, it removes its tree too.
        _signal.signal(number, _leave)
    began = time.monotonic()
    try:
        with _QuickTrees(plans, change, environ, common_dir) as trees:
            trees.run()
    finally:
        if time.monotonic() - began > _SECONDS:
            for context in slow:
                memory.keep(context, [today])
    for plan in plans:
        # What passed has no log; one of an earlier refusal would mislead.
        _drop(os.path.join(change.git_dir, "patchgate-logs", f"{plan.name}.log"))
        if plan.settings.remember:
            memory.keep(plan.context, list(plan.answers.values()))


def _leave(number: int, frame: Any) -> NoReturn:
    raise SystemExit(1)


class _QuickTrees:
    """A context manager: a folder with one scratch tree for each plan, written by git; removed at the end."""

    def __init__(
        self, plans: Sequence[QuickPlan], change: QuickChange, environ: Mapping[str, str], common_dir: str
    ) -> None:
        self._plans = plans
        self._change = change
        self._environ = environ
        self._common_dir = common_dir
        self._written: dict[bytes, tuple[int, bytes]] = {}
        self._folder = self._record = ""

    def __enter__(self) -> _QuickTrees:
        require = self._change.tools.require
        records = os.path.join(self._common_dir, "patchgate", "scratch")
        os.makedirs(records, 0o700, exist_ok=True)
        # What killed processes left is removed by the full check.
        require(not os.listdir(records))
        parent = os.path.join(_cache_folder(self._environ, self._change), "touched")
        self._folder, self._record = claim_folder(os.path.abspath(records), parent)
        return self

    def __exit__(self, *error: object) -> None:
        _remove(self._folder)
        if not os.path.lexists(self._folder):
            _drop(self._record)

    def run(self) -> None:
        """Run the commands, and require that each accepts its files and changes none."""
        require = self._change.tools.require
        source = os.path.join(self._folder, "tree")
        self._check_out(source)
        places = [os.path.join(self._folder, f"tree-{plan.name}") for plan in self._plans]
        for plan, place in zip(self._plans[1:], places[1:], strict=True):
            self._copy(plan, place)
        if set(_paths_of(self._plans[0])) == self._written.keys():
            os.chmod(source, 0o700)
            os.rename(source, places[0])
        else:
            self._copy(self._plans[0], places[0])
        tasks = [self._task(plan, place) for plan, place in zip(self._plans, places, strict=True)]
        identities = [identity_of(place) for place in places]
        run_all(tasks, _MANY_SECONDS)
        for plan, place, task, identity in zip(self._plans, places, tasks, identities, strict=True):
            require(task.code == 0 and identity is not None and identity_of(place) == identity)
            require(plan.settings.output != "sarif" or is_clean_sarif(task.output))
            for path in _paths_of(plan):
                require(_read(place, path) == self._written[path])

    def _check_out(self, root: str) -> None:
        """Let git write every file once, as a checkout would, and read it back."""
        change = self._change
        require = change.tools.require
        entries: dict[bytes, tuple[str, str]] = {}
        for plan in self._plans:
            for path in _paths_of(plan):
                mode, _, oid = (plan.entries[path] or "").partition(".")
                require(mode in _FILE_MODES)
                require(not any(part.lower().startswith(_OWN) for part in path.split(b"/")))
                entries[path] = mode, oid
        names = list(entries)
        for folder, listed in change.folders_above(b"HEAD", names).items():
            attributes = listed.get(b".gitattributes")
            if attributes is not None:
                mode, _, oid = attributes.partition(".")
                entries[(folder + b"/" if folder else b"") + b".gitattributes"] = mode, oid
        os.mkdir(root)
        if not names:
            return
        index = os.path.join(self._folder, "index")
        with open(index, "wb") as file:
            file.write(small_index(entries))
        git_dir = os.path.abspath(change.git_dir)
        pinned = [part for setting in PINNED for part in ("-c", setting)]
        words = ["git", f"--git-dir={git_dir}", f"--work-tree={root}", *pinned, *CHECKOUT_FLAGS]
        argv = [*map(os.fsencode, [*words, "checkout-index", "-f", "--"]), *names]
        env = {**allowed_environment(self._environ), **FIXED, "GIT_INDEX_FILE": index}
        program = find_program("git", env)
        require(program is not None)
        task = QuickTask(program or "", argv, root, env, _MOST_OUTPUT)
        run_all([task], _MANY_SECONDS)
        require(task.code == 0)
        self._written = {path: _read(root, path) for path in names}
        require(sum(len(content) for _, content in self._written.values()) <= _MOST_BYTES)

    def _copy(self, plan: QuickPlan, place: str) -> None:
        """Write the files of a plan into a tree of its own."""
        os.mkdir(place, 0o700)
        for path in _paths_of(plan):
            target = os.path.join(os.fsencode(place), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            mode, content = self._written[path]
            with open(target, "xb") as file:
                file.write(content)
            os.chmod(target, mode)

    def _task(self, plan: QuickPlan, place: str) -> QuickTask:
        settings = plan.settings
        folder = working_folder(settings, place)
        env = command_environment(self._environ, settings.env, place, folder)
        program, missing = locate_program(settings, env)
        require = self._change.tools.require
        require(program is not None and not missing and os.path.isabs(program))
        argv = expand_names(settings, plan.files)
        require(sum(len(word) + 9 for word in argv) <= argument_room(env))
        return QuickTask(program or "", argv, folder, env, _MOST_OUTPUT)


def _paths_of(plan: QuickPlan) -> list[bytes]:
    return list(dict.fromkeys([*plan.files, *plan.needed]))


def _cache_folder(environ: Mapping[str, str], change: QuickChange) -> str:
    """Return the folder for scratch trees that the full check uses, outside the repository."""
    cache = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        home = environ.get("HOME", "")
        change.tools.require(os.path.isabs(home))
        cache = os.path.join(home, ".cache")
    real = os.path.realpath(os.path.join(cache, "patchgate"))
    for inside in (".", change.git_dir):
        folder = os.path.realpath(inside)
        change.tools.require(os.path.commonpath([real, folder]) != folder)
    return real


def _read(place: str, path: bytes) -> tuple[int, bytes]:
    """Return the permissions and the content of a regular file; no folder above it may be a link."""
    root = os.fsencode(place)
    parts = path.split(b"/")
    for count in range(1, len(parts)):
        if not stat.S_ISDIR(os.lstat(os.path.join(root, *parts[:count])).st_mode):
            raise ValueError
    file = os.open(os.path.join(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise ValueError
        content = b""
        while piece := os.read(file, _MOST_BYTES):
            content += piece
    finally:
        os.close(file)
    return stat.S_IMODE(found.st_mode), content


def _remove(folder: str) -> None:
    """Remove a folder of ours, following no link; what a tool locked is left to the full check."""
    try:
        with os.scandir(folder) as entries:
            listed = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for path, is_folder in listed:
            if is_folder:
                _remove(path)
            else:
                os.unlink(path)
        os.rmdir(folder)
    except (OSError, RecursionError):
        return


def _drop(file: str) -> None:
    try:  # noqa: SIM105 - contextlib takes 2 ms to import
        os.unlink(file)
    except OSError:
        pass
