"""What changed in a working tree and its index past `apply`: by a comparison of two looks at git's status.

Cheap, so it sees no change in an ignored file. Files are compared by size and time, not by content. In git's
own folder hooks, `info/`, the settings and the branch are compared too: they decide what git runs, ignores,
converts, and where the next commit goes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from patchgate.apply.attempt_records import records
from patchgate.components.attestations import CAPTURED
from patchgate.git.active_hooks import GitEnvironment
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import BASELINES, Component, Components
from patchgate.policy.file_kinds import is_control_by_name
from patchgate.runs.provenance import open_regular
from patchgate.values import dataclass

Look = Mapping[RepoPath, tuple[bytes, tuple[int, ...]]]
"""The files that differ from HEAD: git's record of each, and size, times and inode of the file on disk."""

_STATUS = (
    *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    "--ignore-submodules=dirty",
)
# The fields before the path of the three kinds of records (git-status, porcelain format version 2).
_FIELDS = {b"1": 8, b"u": 10, b"?": 1}
# What `provenance` excludes.
_OF_RUNS = b".meta.json"
_MOST_EXCLUDE = 1 << 20
_MOST_GIT_FILES = 1000
_MOST_HEAD = 4096
_MOST_BASELINE = 64 << 20
_APPLIED = '"applied":true'


def look_at(repository: Repository) -> Look:
    """Look at the working tree and the index.

    Raises:
        UndecidedError: git failed.
    """
    found: dict[RepoPath, tuple[bytes, tuple[int, ...]]] = {}
    for line in repository.git(*_STATUS, in_work_tree=True).out.split(b"\0"):
        number = _FIELDS.get(line[:1])
        if number is None:
            continue
        parts = line.split(b" ", number)
        path = RepoPath.from_git(parts[-1])
        # A file that was removed from the index alone has two records.
        record = b" ".join(parts[:-1])
        before = found.get(path)
        found[path] = (record if before is None else before[0] + b"\n" + record, _stamp(repository, path))
    return found


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed past `apply`: `wrong` is what a work relies on, `other` may be a user at work; sorted."""

    wrong: Sequence[RepoPath]
    other: Sequence[RepoPath]


def look_at_git_files(repository: Repository, environ: Mapping[str, str]) -> Mapping[str, object]:
    """Look at the hooks, the settings, the branch, and `info/` without the lines that a run adds itself.

    A hooks folder in the working tree is left out: its files are files of the user.

    Raises:
        UndecidedError: git did not name its hooks folder.
    """
    top = repository.work_tree or repository.git_dir
    asked = ("rev-parse", "--git-path", "hooks/pre-commit")
    said = GitEnvironment(repository, environ).ask((), top, *asked, answers=(0,)).out
    hooks = os.path.normpath(os.path.join(top, os.path.dirname(os.fsdecode(said).rstrip("\n"))))
    folders = [os.path.join(repository.common_dir, "info"), os.path.join(repository.git_dir, "info")]
    is_in_tree = os.path.commonpath([top, hooks]) == top
    if not is_in_tree or os.path.commonpath([repository.common_dir, hooks]) == repository.common_dir:
        folders.append(hooks)
    single = [
        os.path.join(repository.common_dir, "config"),
        os.path.join(repository.git_dir, "config.worktree"),
        os.path.join(repository.git_dir, "HEAD"),
    ]

    def shown(place: str) -> str:
        return printable(os.path.relpath(place, top) if is_in_tree else place)

    found = {shown(place): _git_file(place) for place in single}
    for folder in dict.fromkeys(folders):
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in os.listdir(folder)[:_MOST_GIT_FILES]:
                place = os.path.join(folder, name)
                found[shown(place)] = _git_file(place)
    return found


def _git_file(place: str) -> object:
    """Describe one of git's own files so that a change shows."""
    try:
        if os.path.basename(place) == "HEAD" and not os.path.islink(place):
            with open(place, "rb") as file:
                return file.read(_MOST_HEAD)
        if os.path.basename(place) == "exclude":
            with open(place, "rb") as file:
                lines = file.read(_MOST_EXCLUDE).split(b"\n")
            # A run may have made the file.
            return [line for line in lines if line and not line.endswith(_OF_RUNS)] or None
        about = os.lstat(place)
    except OSError as error:
        return error.errno
    return about.st_mode, about.st_size, about.st_mtime_ns, about.st_ino


def unstaged(look: Look) -> list[RepoPath]:
    """List the files on disk that the index has otherwise, or not at all."""
    return [path for path in look if not _is_clean(look, path)]


def _stamp(repository: Repository, path: RepoPath) -> tuple[int, ...]:
    try:
        found = os.lstat(os.path.join(os.fsencode(repository.work_tree or ""), path.raw))
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino


def changed_since(
    repository: Repository, before: Look, recorded: int, component: Component, components: Components
) -> Changes:
    """List the files that changed since a look, without what attempts wrote.

    A work relies on the files of its component, the staged files of all, the baselines, and the control
    files. Baselines that others have captured since are left out.

    Args:
        recorded: the size of the ledger before the look.

    Raises:
        UndecidedError: git failed.
    """
    now = look_at(repository)
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    landed = _landed(repository, changed, now) if changed else set()
    captured = _captured(
        repository, [path for path in changed if path != component.baseline], before, now, recorded
    )
    left = [path for path in changed if path not in landed and path not in captured]
    wrong = [
        path
        for path in left
        if component.role(path) is not None
        or is_control_by_name(path)
        or path.raw.startswith(BASELINES)
        or (_staged(before, path) != _staged(now, path) and _belongs(path, components))
    ]
    return Changes(wrong, [path for path in left if path not in wrong])


def _belongs(path: RepoPath, components: Components) -> bool:
    return any(components[name].role(path) is not None for name in components.ids)


def _staged(look: Look, path: RepoPath) -> tuple[bytes, ...] | None:
    """Return mode and object of a staged change; None if the index has what HEAD has."""
    fields = look[path][0].split(b"\n")[0].split(b" ") if path in look else []
    if not fields or fields[0] == b"?" or (fields[0] == b"1" and fields[1][:1] == b"."):
        return None
    return (fields[4], fields[7]) if fields[0] == b"1" else tuple(fields)


def _landed(repository: Repository, changed: Sequence[RepoPath], now: Look) -> set[RepoPath]:
    """Return the paths that are as an attempt left them, in the index and on disk."""
    asked = (
        "ls-files",
        "-z",
        "--stage",
        "--",
        *(f":(literal,top){os.fsdecode(path.raw)}" for path in changed),
    )
    staged: dict[RepoPath, str] = {}
    for line in repository.git(*asked, in_work_tree=True).out.split(b"\0")[:-1]:
        about, _, raw = line.partition(b"\t")
        staged[RepoPath.from_git(raw)] = about.split(b" ")[1].decode("ascii")
    found: set[RepoPath] = set()
    for attempt in records(Ledger(repository.common_dir), _APPLIED):
        if attempt.work_tree != repository.work_tree:
            continue
        for file in attempt.files:
            oid = None if file.new is None else file.new.oid
            if file.path in changed and staged.get(file.path) == oid and _is_clean(now, file.path):
                found.add(file.path)
    return found


def _captured(
    repository: Repository, changed: Sequence[RepoPath], before: Look, now: Look, recorded: int
) -> set[RepoPath]:
    """Return the baselines that are, on disk and where staged, as a capture recorded them since."""
    baselines = [path for path in changed if path.raw.startswith(BASELINES)]
    if not baselines:
        return set()
    events = Ledger(repository.common_dir).find_events({CAPTURED}, after=recorded)
    known = {(event.about.get("component"), event.about.get("baseline")) for event in events}
    found = set()
    with Objects(repository) as objects:
        for path in baselines:
            name = path.raw.removeprefix(BASELINES).removesuffix(b".json").decode("utf-8", "replace")
            with suppress(OSError), open_regular(repository, path.raw) as file:
                oids = [objects.hash("blob", file.read(_MOST_BASELINE))]
                if (staged := _staged(now, path)) != _staged(before, path):
                    oids.append("" if staged is None else staged[1].decode("ascii"))
                if all((name, oid) in known for oid in oids):
                    found.add(path)
    return found


def _is_clean(now: Look, path: RepoPath) -> bool:
    """Whether the file on disk is the one in the index: no record, or one, `XY` with a dot for Y."""
    record = b"1 .." if path not in now else now[path][0]
    return record[:1] == b"1" and record[3:4] == b"." and b"\n" not in record
