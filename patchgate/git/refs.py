"""Follow symbolic refs as git does before it writes, and read the reflog of a worktree.

Before git 2.46 no hook runs when a symbolic ref is set, so the ref that is written counts, not its name.
Git writes `logs/HEAD` even with `--no-verify`, but a user can edit it: it is evidence, not proof. Sources:
git-symbolic-ref, git-reflog, and git 2.39's refs.c, sequencer.c, builtin/{commit,merge,am}.c.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import AnyStr

from patchgate.errors import UndecidedError
from patchgate.git.pushes import RefUpdate
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import ANY_CODE, Repository, failed
from patchgate.values import replace

_MOST_BYTES = 32 << 20
_LONGEST_PATH = 1 << 16
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# The name is any text without a line feed; git reads the time after its last `>`.
_ENTRY = re.compile(
    rb"([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) [^\t]*> ([0-9]{1,18}) [+-][0-9]{4}\t(.*)",
    re.DOTALL,
)
# The action of a pull and of a rebase contains its arguments, up to a word in brackets.
_MAKING = (
    re.compile(rb"(commit(?: \((?:initial|amend|merge|cherry-pick)\))?|am|cherry-pick|revert): "),
    re.compile(rb"(rebase|pull)\b.*? (\((?:pick|reword|edit|squash|fixup|continue|merge)\)): ", re.DOTALL),
    re.compile(rb"(merge|pull)\b.*?: (?:Merge made by |In-index merge)", re.DOTALL),
)


def commits_made_in(git_dir: str, since: float) -> dict[str, str]:
    """Map the commits that were made in a worktree, by its reflog, to the action, oldest first.

    An entry is no older than those before it: a forged commit date hides a commit only if
    nothing was done since.

    Args:
        git_dir: git's directory of that worktree.
        since: seconds since the epoch; the reflog has whole seconds, so all of that second counts.

    Raises:
        UndecidedError: it cannot be read, or is too long to go back that far.
    """
    raw, is_whole = _content(os.path.join(git_dir, "logs", "HEAD"))
    wanted = math.floor(since)
    found: dict[str, str] = {}
    newest, is_first = 0, True
    for old, new, stamp, message in _entries(raw, is_whole):
        newest = max(newest, stamp)
        if is_first and not is_whole and newest >= wanted:
            raise UndecidedError(
                f"the reflog of {git_dir!r} is too long to read back that far",
                "shorten it: git reflog expire --expire=7.days HEAD",
            )
        is_first = False
        action = _making(message)
        if newest >= wanted and action and new != old and new.strip(b"0"):
            found[new.decode("ascii")] = action
    return found


def git_dirs(repository: Repository) -> tuple[str, ...]:
    """Return git's directory of every worktree, the main one's first (gitrepository-layout, `worktrees`)."""
    linked = os.path.join(repository.common_dir, "worktrees")
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(linked))
    return (repository.common_dir, *(os.path.join(linked, name) for name in names))


def work_trees(repository: Repository) -> frozenset[str]:
    """Return the folders of this repository's worktrees, with links resolved, also of missing ones."""
    found = {repository.work_tree} if repository.work_tree is not None else set()
    main, *linked = git_dirs(repository)
    if os.path.basename(main) == ".git":
        found.add(os.path.dirname(main))
    for each in linked:
        with suppress(OSError), open(os.path.join(each, "gitdir"), "rb") as file:
            # `.git` of that worktree (gitrepository-layout, worktrees/<id>/gitdir).
            found.add(os.path.dirname(os.fsdecode(file.read(_LONGEST_PATH).rstrip(b"\n"))))
    return frozenset(os.path.realpath(each) for each in found)


def _content(path: str) -> tuple[bytes, bool]:
    """Read a reflog, or the end of a very long one; return whether it is complete. A missing one is empty."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        with open(os.open(path, _READING), "rb") as file:
            left_out = max(0, status.st_size - _MOST_BYTES)
            file.seek(left_out)
            return file.read(_MOST_BYTES), left_out == 0
    except (FileNotFoundError, NotADirectoryError):
        return b"", True
    except OSError as error:
        raise UndecidedError(
            f"the reflog {path!r} cannot be read: {error.strerror or error}",
            "fix the permissions of that file",
        ) from error


def _entries(raw: bytes, is_whole: bool) -> Iterator[tuple[bytes, bytes, int, bytes]]:
    """Yield old value, new value, time and message of each line; skip other lines, as git does."""
    for line in raw.split(b"\n")[0 if is_whole else 1 : -1]:
        entry = _ENTRY.fullmatch(line)
        if entry is not None and len(entry[1]) == len(entry[2]):
            yield entry[1], entry[2], int(entry[3]), entry[4]


def _making(message: bytes) -> str | None:
    """Return the action of an entry that makes a commit; None if it only moves HEAD."""
    for pattern in _MAKING:
        found = pattern.match(message)
        if found is not None:
            return b" ".join(found.groups()).decode("ascii")
    return None


_LIST = ("for-each-ref", "--format=%(if)%(symref)%(then)%(refname) %(symref)%(end)")
_REFS = "refs/"
_FILE_URL = "file://"
# What git prints for a folder that is not a repository, or that belongs to another user.
_CLOSED = (b"not a git repository", b"dubious ownership")


def symbolic_refs(repository: Repository, *folders: str) -> dict[str, str]:
    """Map the symbolic refs of a repository to their final targets, if these exist.

    Raises:
        UndecidedError: git could not list them.
    """
    return _pairs(repository.output(*_LIST, "--", *folders))


def symbolic_refs_for(repository: Repository, updates: Sequence[RefUpdate]) -> dict[str, str]:
    """Map the symbolic refs that may name what some updates write to their final targets, also missing ones.

    Raises:
        UndecidedError: a symbolic ref that is updated cannot be followed, or git could not list them.
    """
    found = symbolic_refs(repository)
    if any(each.old is None for each in updates):
        found |= _dangling(repository, found)
    for each in updates:
        target = found.get(each.ref) or target_of(repository, each.ref)
        if target is not None:
            found[each.ref] = target
    return found


def missing_targets(
    repository: Repository, names: Iterable[str], listed: Mapping[str, str]
) -> dict[str, str]:
    """Map those of some names that are symbolic refs, and not listed, to their targets, which are missing.

    What git cannot follow names nothing.
    """
    found: dict[str, str] = {}
    for name in names:
        if name.startswith(_REFS) and name not in listed:
            with suppress(UndecidedError):
                target = target_of(repository, name)
                if target is not None:
                    found[name] = target
    return found


def _dangling(repository: Repository, listed: Mapping[str, str]) -> dict[str, str]:
    """Map the symbolic refs whose target is missing to that target: git leaves them out of every list.

    Only where refs are files: another storage answers only for a name.

    Raises:
        UndecidedError: a folder of refs cannot be read.
    """
    if not _are_files(repository):
        return {}
    top = repository.common_dir
    paths = files_below(os.path.join(top, "refs"), _unreadable_folder)
    # A name that ends so is git's lock on a ref.
    chosen = (path for path in paths if not path.endswith(".lock") and _is_symbolic_file(path))
    names = [os.path.relpath(path, top) for path in chosen]
    return missing_targets(repository, names, listed)


def files_below(top: AnyStr, fail: Callable[[OSError], None] = lambda error: None) -> Iterator[AnyStr]:
    """Yield the path of everything below a folder that is no folder; `os.walk` ends at 1,000 nested ones.

    Args:
        fail: gets the errors of folders that cannot be listed.
    """
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = list(entries)
        except OSError as error:
            fail(error)
            continue
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                yield entry.path


def _unreadable_folder(error: OSError) -> None:
    # Of a name that is too long git leaves folders behind, and reads no ref there.
    if isinstance(error, FileNotFoundError) or error.errno == errno.ENAMETOOLONG:
        return
    raise UndecidedError(
        f"the refs of this repository cannot be read: {error.strerror or error}",
        "fix the permissions of its folder refs",
    ) from error


def symbolic_refs_at(repository: Repository, url: str) -> dict[str, str]:
    """Like `symbolic_refs` for the repository at a URL, if that is a folder; otherwise empty."""
    there = _repository_at(repository, url)
    # Git exits with 128 if it is not a repository or another user's: then it can't push there either.
    done = there.git(*_LIST, answers=(0, 128)) if there is not None else None
    return _pairs(done.out) if done is not None and done.code == 0 else {}


def is_empty_at(repository: Repository, url: str) -> bool:
    """Return whether the repository at a URL is a folder without commits; False if that is not known."""
    there = _repository_at(repository, url)
    done = there.git("rev-list", "--max-count=1", "--all", answers=(0, 128)) if there is not None else None
    return done is not None and (done.code, done.out) == (0, b"")


def is_default_at(repository: Repository, url: str, branch: str, oid: str) -> bool:
    """Return whether the repository at a URL is a folder whose HEAD names this branch, which has this value.

    Raises:
        UndecidedError: git has no answer.
    """
    there = _repository_at(repository, url)
    if there is None:
        return False
    done = there.git("for-each-ref", "--format=%(HEAD)%(objectname) %(refname)", branch, answers=(0, 128))
    if done.code != 0 and not any(each in done.err for each in _CLOSED):
        raise failed("for-each-ref", done)
    return os.fsdecode(done.out) == f"*{oid} {branch}\n"


def _repository_at(repository: Repository, url: str) -> Repository | None:
    """Open the repository at a URL if git takes that for a folder; otherwise None.

    A colon before the first slash makes it a host or a scheme (connect.c, `url_is_local_not_ssh`), even if
    there is a folder of that name, which a commit can bring.
    """
    if url.startswith(_FILE_URL):
        from urllib.parse import unquote

        url = unquote(url.removeprefix(_FILE_URL), errors="surrogateescape")
    elif ":" in url.partition("/")[0]:
        return None
    if not url or "\0" in url:
        return None
    path = os.path.join(repository.work_tree or repository.git_dir, url)
    found = next((each for each in (path + "/.git", path, path + ".git") if os.path.isdir(each)), None)
    if found is None:
        return None
    own = {"GIT_INDEX_FILE", "GIT_COMMON_DIR"}
    environment = {name: value for name, value in repository.environment.items() if name not in own}
    return replace(repository, git_dir=found, work_tree=None, environment=environment)


def _pairs(raw: bytes) -> dict[str, str]:
    lines = raw.decode("utf-8", "surrogateescape").split("\n")
    return {name: target for name, _, target in (line.partition(" ") for line in lines) if target}


def target_of(repository: Repository, ref: str) -> str | None:
    """Find the ref that a symbolic one finally names, even if missing; None if it is not symbolic.

    A file shows whether it may be one, so git does not run for each ref.

    Raises:
        UndecidedError: it leads nowhere, in a circle, or over more steps than git follows.
    """
    if not _may_be_symbolic(repository, ref):
        return None
    done = repository.git("symbolic-ref", "--quiet", ref, answers=ANY_CODE)
    if done.code == 0:
        return os.fsdecode(done.out.rstrip(b"\n"))
    if done.code == 1:
        return None
    raise UndecidedError(
        f"git cannot follow the symbolic ref {printable(ref)}",
        f"git symbolic-ref --delete {in_shell(ref, 'REF')}",
    )


def _may_be_symbolic(repository: Repository, ref: str) -> bool:
    if not _are_files(repository):
        return True
    folders = {repository.git_dir, repository.common_dir}
    return any(_is_symbolic_file(os.path.join(folder, ref)) for folder in folders)


def _is_symbolic_file(path: str) -> bool:
    if os.path.islink(path):
        return True
    with suppress(OSError), open(os.open(path, _READING), "rb") as file:
        return file.read(4) == b"ref:"
    return False


def _are_files(repository: Repository) -> bool:
    """Return whether each symbolic ref is a file in git's folder: another ref storage is named in the
    config.
    """
    try:
        with open(os.path.join(repository.common_dir, "config"), "rb") as file:
            return b"refstorage" not in file.read().lower()
    except OSError:
        return False


def follow_symbolic_refs(
    updates: Sequence[RefUpdate], symbolic: Mapping[str, str]
) -> tuple[list[RefUpdate], list[str]]:
    """Return the refs that git will write for these updates, and a sentence on each that differs.

    Args:
        symbolic: the symbolic refs there, as far as they are known, and their final targets.
    """
    found: dict[RefUpdate, None] = {}
    said: list[str] = []
    for update in updates:
        target = symbolic.get(update.ref) or update.ref
        if target != update.ref:
            names = printable(update.ref, 200), printable(target, 200)
            said.append("{} is a symbolic ref there: git writes {}, so that ref is checked".format(*names))
        found[replace(update, ref=target)] = None
    return list(found), said


def describe_symbolic_refs(repository: Repository, refs: Iterable[str]) -> list[str]:
    """Describe each of these refs that is symbolic, and the ref that git writes instead.

    Raises:
        UndecidedError: one cannot be followed.
    """
    targets = [(ref, target) for ref in dict.fromkeys(refs) if (target := target_of(repository, ref))]
    return [describe_symbolic_ref(ref, target) for ref, target in targets]


def describe_symbolic_ref(ref: str, target: str) -> str:
    """Describe what a symbolic ref means for the hooks."""
    names = printable(ref, 200), printable(target, 200)
    return "{} is a symbolic ref to {}: git writes that ref, and no hook checked the change".format(*names)
