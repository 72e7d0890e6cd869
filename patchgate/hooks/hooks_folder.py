"""The folder whose hooks git runs, and installing one hook in it next to an existing one.

Git names the folder, under the config of the caller. An existing hook is not copied: it gets a second name,
or is renamed, and keeps its bytes, mode and symlink. After a kill between any two steps, the same call
finishes the work.
"""

from __future__ import annotations

import filecmp
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.active_hooks import GitEnvironment
from patchgate.git.hook_managers import PREVIOUS_SUFFIX, read_hook
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.lock import acquire
from patchgate.values import dataclass

_KEY = "core.hooksPath"
_PATIENCE_SECONDS = 10.0
_SHARED = frozenset({"global", "system"})


@dataclass(frozen=True, slots=True)
class HooksFolder:
    """Where git looks for hooks: `path` is absolute, `top` the folder in which hooks run.

    `scope` is that of core.hooksPath, empty if it is not set; `is_relative`: it begins elsewhere than
    at the root (`~` is the home folder of whoever runs git).
    """

    path: Path
    top: str
    scope: str = ""
    is_relative: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether the global or system config names it, for every repository."""
        return self.scope in _SHARED

    @property
    def name(self) -> str:
        """The path, safe to print; relative to the top of the working tree if it is inside."""
        inner = _is_inside(str(self.path), self.top)
        return printable(os.path.relpath(self.path, self.top) if inner else str(self.path))


def find_hooks_folder(repository: Repository, environ: Mapping[str, str]) -> HooksFolder:
    """Ask git for its hooks folder.

    Raises:
        UndecidedError: git failed.
    """
    around = GitEnvironment(repository, environ)
    top = _top(repository)
    place = [f"--git-dir={repository.git_dir}"]
    if repository.work_tree is not None:
        place.append(f"--work-tree={repository.work_tree}")
    asked = around.ask(place, top, "rev-parse", "--git-path", "hooks")
    if asked.code != 0:
        raise UndecidedError("git did not report its hooks folder", "run git rev-parse --git-path hooks")
    # A relative core.hooksPath counts from where hooks run; an empty one makes git look in the root folder.
    folder = os.path.normpath(os.path.join(top, os.fsdecode(asked.out.removesuffix(b"\n")) or "/"))
    named = around.ask(place, top, "config", "--show-scope", "-z", "--get-all", _KEY, answers=(0, 1))
    scopes = named.out.split(b"\0")
    if len(scopes) < 3:
        return HooksFolder(Path(folder), top)
    is_relative = not scopes[-2].startswith(b"/")
    return HooksFolder(Path(folder), top, scopes[-3].decode("ascii"), is_relative)


def default_folder(repository: Repository) -> HooksFolder:
    """Return the folder that git uses by default."""
    return HooksFolder(Path(repository.common_dir, "hooks"), _top(repository))


def check_folder(repository: Repository, folder: HooksFolder, *, is_global: bool) -> None:
    """Refuse a folder into which hooks may not be installed without an option.

    Args:
        is_global: whether `--global` asked for a folder that every repository shares.

    Raises:
        UsageError: the folder is shared and `is_global` is false, or the reverse, or it is not a folder, or
            depends on the path of a push.
    """
    own = printable(shlex.quote(str(default_folder(repository).path)))
    if folder.scope == "command":
        raise UsageError(
            f"{_KEY} is set by -c or the environment, so later commands would not find the hooks",
            f"unset it, or make it permanent: git config {_KEY} DIR",
        )
    if folder.is_relative and repository.work_tree is None:
        raise UsageError(
            f"{_KEY} is not absolute, so a push by another path or account would run no hooks, or others",
            f"git config {_KEY} {own}",
        )
    if folder.is_shared and not is_global:
        raise UsageError(
            f"{_KEY} is set in the {folder.scope} config: hooks in {folder.name} run in every repository",
            f"add --global to install there, or give this repository its own: git config {_KEY} {own}",
        )
    if is_global and not folder.is_shared:
        raise UsageError(
            f"no global {_KEY} is set, so there is no hooks folder that all repositories share",
            f"remove --global, or first run: git config --global {_KEY} DIR",
        )
    if folder.path.exists() and not folder.path.is_dir():
        scope = f"--{folder.scope} " if folder.scope else ""
        raise UsageError(
            f"git looks for hooks in {folder.name}, which is not a folder, so it runs none",
            f"git config {scope}--unset-all {_KEY}",
        )


@contextmanager
def lock_folder(repository: Repository, folder: HooksFolder) -> Iterator[None]:
    """Lock a hooks folder; the lock of a shared folder is inside it."""
    place = Path(repository.common_dir, "patchgate", "install.lock")
    if folder.is_shared:
        place = folder.path / ".patchgate.lock"
    try:
        with acquire(place, timeout_seconds=_PATIENCE_SECONDS):
            yield
    except OSError as error:
        raise UndecidedError(
            f"{printable(str(place))} could not be locked: {error.strerror}", "fix that, then run this again"
        ) from error


def describe_folder(repository: Repository, folder: HooksFolder) -> tuple[str, ...]:
    """Return notes about a hooks folder."""
    if folder.is_shared:
        return (f"{folder.name} is set in your {folder.scope} config: these hooks run in every repository",)
    real = os.path.realpath(folder.path)
    if _is_inside(real, os.path.realpath(repository.common_dir)):
        return ()
    top = repository.work_tree
    if top is None or not _is_inside(real, os.path.realpath(top)):
        return (f"{folder.name} is outside this repository: the hooks run wherever {_KEY} names it",)
    found = []
    inner = os.path.relpath(folder.path / "pre-commit", top)
    asked = ("check-ignore", "--quiet", "--", inner)
    if repository.git(*asked, in_work_tree=True, answers=ANY_CODE).code == 1:
        found.append(
            f"{folder.name} is not ignored: do not commit its hooks, which contain a path of your machine"
        )
    if os.path.isdir(os.path.join(repository.common_dir, "worktrees")):
        found.append(f"{folder.name} is used by this worktree only: install in the other worktrees too")
    return tuple(found)


def _top(repository: Repository) -> str:
    return repository.work_tree or repository.git_dir


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


_MODE = 0o755
# These tools overwrite their own files with newer ones, so patchgate does not keep the older one either.
_REPLACED_BY_ITS_TOOL = (b"File generated by pre-commit", b"File generated by prek", b"LEFTHOOK")
_MOST_READ = 1 << 16
_GUARD = ".patchgate-legacy"


@dataclass(frozen=True, slots=True)
class InstalledHook:
    """The result of installing one hook; `notes` are sentences, safe to print."""

    name: str
    is_changed: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedHook:
    """The result of removing one hook; `is_restored`: the previous hook is back."""

    name: str
    is_restored: bool
    notes: tuple[str, ...] = ()


def install_hook(folder: Path, name: str, text: bytes) -> InstalledHook:
    """Install our hook, and keep the existing one, which ours runs first.

    Raises:
        UsageError: the name is taken by a folder.
        UndecidedError: the file could not be written.
    """
    own, previous = folder / name, _previous(folder, name)
    try:
        for place in (own, previous):
            if place.is_dir():
                raise UsageError(f"{printable(str(place))} is a folder, which git cannot run", "move it away")
        notes: list[str] = []
        if read_hook(str(previous)).is_ours:
            previous.unlink()
        if os.path.lexists(own) and not read_hook(str(own)).is_ours:
            notes += _undo_for_other_tool(folder, name)
            notes += _free_previous_name(own, previous)
            _keep_previous(own, previous)
        else:
            _drop_displaced(folder, name)
        is_changed = _write(own, text)
        _guard_legacy(folder, name)
    except OSError as error:
        what = f"{printable(str(own))} could not be written: {error.strerror}"
        raise UndecidedError(what, "fix that, then install again") from error
    if is_changed and os.path.lexists(previous):
        kept = previous.name
        if os.access(previous, os.X_OK):
            notes.insert(0, f"the existing hook runs first (kept as {kept})")
        else:
            notes.insert(0, f"the existing hook is not executable and does not run (kept as {kept})")
    return InstalledHook(name, is_changed, tuple(notes))


def remove_hook(folder: Path, name: str) -> RemovedHook | None:
    """Remove our hook and restore the previous one; None: there was no hook of ours.

    Raises:
        UndecidedError: the file could not be removed.
    """
    own, previous = folder / name, _previous(folder, name)
    notes: tuple[str, ...] = ()
    try:
        ours = [own] if read_hook(str(own)).is_ours else []
        if not ours and not os.path.lexists(previous) and not list(_displaced(folder, name)):
            return None
        is_restored = os.path.lexists(previous)
        if ours or not os.path.lexists(own):
            if is_restored:
                os.rename(previous, own)
            else:
                own.unlink(missing_ok=True)
            _drop_displaced(folder, name)
        else:
            notes = tuple(_undo_for_other_tool(folder, name))
            if os.path.lexists(previous) and _is_replaceable(previous, own):
                previous.unlink()
            elif os.path.lexists(previous):
                is_restored = False
                notes += (
                    f"another tool has installed its own; {previous.name}, the hook before ours, stays",
                )
        (folder / f"{name}{_GUARD}").unlink(missing_ok=True)
    except OSError as error:
        what = f"{printable(str(own))} could not be removed: {error.strerror}"
        raise UndecidedError(what, "fix that, then run this again") from error
    return RemovedHook(name, is_restored, notes)


def _previous(folder: Path, name: str) -> Path:
    return folder / (name + PREVIOUS_SUFFIX)


def _displaced(folder: Path, name: str) -> Iterator[Path]:
    """Find our hook under another name: pre-commit and prek move it to NAME.legacy, lefthook to NAME.old."""
    if not folder.is_dir():
        return
    for each in sorted(os.listdir(folder)):
        if each.startswith(f"{name}.") and not each.startswith(f"{name}.patchgate-"):
            place = folder / each
            if read_hook(str(place)).is_ours:
                yield place


def _drop_displaced(folder: Path, name: str) -> None:
    for moved in list(_displaced(folder, name)):
        if not _restore_legacy(folder, name, moved):
            moved.unlink()


def _guard_legacy(folder: Path, name: str) -> None:
    """Give NAME.legacy of pre-commit or prek a second name, as long as ours runs before theirs.

    When they are installed again, they would move our hook over that file, which would be lost.
    """
    legacy, guard = folder / f"{name}.legacy", folder / f"{name}{_GUARD}"
    has_legacy = os.path.lexists(legacy)
    if os.path.lexists(guard) and not (has_legacy and os.path.samestat(os.lstat(legacy), os.lstat(guard))):
        guard.unlink()
    if has_legacy and not os.path.lexists(guard):
        # Without hard links, the file keeps its one name.
        with suppress(OSError, NotImplementedError):
            os.link(legacy, guard, follow_symlinks=False)


def _restore_legacy(folder: Path, name: str, moved: Path) -> bool:
    """Restore the file that ours was moved over; return whether there was one."""
    guard = folder / f"{name}{_GUARD}"
    if moved.name != f"{name}.legacy" or not os.path.lexists(guard):
        return False
    os.rename(guard, moved)
    return True


def _undo_for_other_tool(folder: Path, name: str) -> Iterator[str]:
    """If another tool moved our hook away, put the hook that we kept in that place.

    Without us, that tool would have moved that hook there.
    """
    own, previous = folder / name, _previous(folder, name)
    for moved in list(_displaced(folder, name)):
        if _restore_legacy(folder, name, moved):
            continue
        if os.path.lexists(previous) and not _is_replaceable(previous, own):
            os.rename(previous, moved)
            yield f"another tool has installed its own, and keeps the previous hook as {moved.name}"
        else:
            moved.unlink()


def _free_previous_name(own: Path, previous: Path) -> Iterator[str]:
    """Free the name for the previous hook if an older one still has it."""
    if not os.path.lexists(previous):
        return
    if _is_replaceable(previous, own):
        previous.unlink()
        return
    aside, number = previous.with_name(f"{own.name}.patchgate-aside"), 1
    while os.path.lexists(aside):
        number += 1
        aside = previous.with_name(f"{own.name}.patchgate-aside-{number}")
    os.rename(previous, aside)
    yield f"the hook was replaced after the last install; the one before that is kept as {aside.name}"


def _is_replaceable(older: Path, newer: Path) -> bool:
    """Whether the older file may be dropped: it is the same, or its own tool would overwrite it."""
    if os.path.samestat(os.lstat(older), os.lstat(newer)):
        return True
    if older.is_symlink() or newer.is_symlink():
        return older.is_symlink() and newer.is_symlink() and os.readlink(older) == os.readlink(newer)
    if filecmp.cmp(older, newer, shallow=False):
        return True
    with older.open("rb") as first, newer.open("rb") as second:
        texts = (first.read(_MOST_READ), second.read(_MOST_READ))
    return any(all(mark in text for text in texts) for mark in _REPLACED_BY_ITS_TOOL)


def _keep_previous(own: Path, previous: Path) -> None:
    """Give a hook a second name; rename it where hard links are not possible."""
    try:
        os.link(own, previous, follow_symlinks=False)
    except (OSError, NotImplementedError):
        os.rename(own, previous)


def _write(own: Path, text: bytes) -> bool:
    """Write our file if it differs; return whether it did."""
    is_there = not own.is_symlink() and own.is_file() and own.read_bytes() == text
    if is_there and os.access(own, os.X_OK):
        return False
    if not is_there:
        own.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(own, text, mode=_MODE)
    # Independent of the umask: git ignores a hook that the user may not execute.
    own.chmod(_MODE)
    return True
