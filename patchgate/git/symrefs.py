"""Symbolic refs: which ref git writes where another one is named, here and in another repository.

Git follows a symbolic ref before it writes, also to delete, and before 2.46 no hook runs when one is set.
So what a ref is called decides nothing: what it names in the end does. Source: git-symbolic-ref, refs.c.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.git.pushes import RefUpdate
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository, failed

_LIST = ("for-each-ref", "--format=%(if)%(symref)%(then)%(refname) %(symref)%(end)")
_FILE_URL = "file://"
# What git says of a folder that is no repository, or another user's.
_CLOSED = (b"not a git repository", b"dubious ownership")


def symbolic_refs(repository: Repository, *folders: str) -> dict[str, str]:
    """Map the symbolic refs of a repository to the refs that they name in the end, if these are there.

    Raises:
        UndecidedError: git could not list them.
    """
    return _pairs(repository.output(*_LIST, *folders))


def symbolic_refs_at(repository: Repository, url: str) -> dict[str, str]:
    """Do as `symbolic_refs` for the repository at a URL where that is a folder; elsewhere none are known."""
    there = _repository_at(repository, url)
    # Git says 128 of a folder that is no repository, or another user's: then it can't push there either.
    done = there.git(*_LIST, answers=(0, 128)) if there is not None else None
    return _pairs(done.out) if done is not None and done.code == 0 else {}


def is_empty_at(repository: Repository, url: str) -> bool:
    """Tell whether the repository at a URL is a folder, and has no commit yet; False where nobody knows."""
    there = _repository_at(repository, url)
    done = there.git("rev-list", "--max-count=1", "--all", answers=(0, 128)) if there is not None else None
    return done is not None and (done.code, done.out) == (0, b"")


def is_default_at(repository: Repository, url: str, branch: str, oid: str) -> bool:
    """Tell whether the repository at a URL is a folder whose HEAD names this branch, which has this value.

    Raises:
        UndecidedError: git could not tell.
    """
    there = _repository_at(repository, url)
    if there is None:
        return False
    done = there.git("for-each-ref", "--format=%(HEAD)%(objectname) %(refname)", branch, answers=(0, 128))
    if done.code != 0 and not any(each in done.err for each in _CLOSED):
        raise failed("for-each-ref", done)
    return os.fsdecode(done.out) == f"*{oid} {branch}\n"


def _repository_at(repository: Repository, url: str) -> Repository | None:
    """Open the repository at a URL where git takes that for a folder; None elsewhere.

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
    place = os.path.join(repository.work_tree or repository.git_dir, url)
    found = next((each for each in (place + "/.git", place, place + ".git") if os.path.isdir(each)), None)
    if found is None:
        return None
    own = {"GIT_INDEX_FILE", "GIT_COMMON_DIR"}
    environment = {name: value for name, value in repository.environment.items() if name not in own}
    return replace(repository, git_dir=found, work_tree=None, environment=environment)


def _pairs(raw: bytes) -> dict[str, str]:
    lines = raw.decode("utf-8", "surrogateescape").split("\n")
    return {name: target for name, _, target in (line.partition(" ") for line in lines) if target}


def target_of(repository: Repository, ref: str) -> str | None:
    """Find the ref that a symbolic one names in the end, there or not; None where it is none.

    A file tells whether it may be one, so that git is not asked for each ref.

    Raises:
        UndecidedError: it leads nowhere, in a circle, or over more steps than git goes.
    """
    if not _may_be_symbolic(repository, ref):
        return None
    done = repository.git("symbolic-ref", "--quiet", ref, answers=ANY_CODE)
    if done.code == 0:
        return os.fsdecode(done.out.rstrip(b"\n"))
    if done.code == 1:
        return None
    shown = printable(ref)
    raise UndecidedError(f"git cannot follow the symbolic ref {shown}", f"git symbolic-ref --delete {shown}")


def _may_be_symbolic(repository: Repository, ref: str) -> bool:
    if not _are_files(repository):
        return True
    for folder in {repository.git_dir, repository.common_dir}:
        place = os.path.join(folder, ref)
        if os.path.islink(place):
            return True
        with suppress(OSError), open(place, "rb") as file:
            if file.read(4) == b"ref:":
                return True
    return False


def _are_files(repository: Repository) -> bool:
    """Tell whether each symbolic ref is a file in git's folder: other stores are named in the config."""
    try:
        with open(os.path.join(repository.common_dir, "config"), "rb") as file:
            return b"refstorage" not in file.read().lower()
    except OSError:
        return False


def as_written(
    repository: Repository, updates: Sequence[RefUpdate], symbolic: Mapping[str, str]
) -> tuple[list[RefUpdate], list[str]]:
    """Give the refs that git will write for these updates, and a sentence on each that is another one.

    Args:
        repository: where they are written.
        symbolic: its symbolic refs, as far as they name one that is there.

    Raises:
        UndecidedError: a symbolic ref cannot be followed.
    """
    targets = {each.ref: symbolic.get(each.ref) or target_of(repository, each.ref) for each in updates}
    return _renamed(updates, targets)


def as_known(updates: Sequence[RefUpdate], symbolic: Mapping[str, str]) -> tuple[list[RefUpdate], list[str]]:
    """Do as `as_written` for another repository, of which nothing more can be asked."""
    return _renamed(updates, symbolic)


def _renamed(
    updates: Sequence[RefUpdate], targets: Mapping[str, str | None]
) -> tuple[list[RefUpdate], list[str]]:
    found: dict[RefUpdate, None] = {}
    said: list[str] = []
    for update in updates:
        target = targets.get(update.ref) or update.ref
        if target != update.ref:
            names = printable(update.ref, 200), printable(target, 200)
            said.append("{} is a symbolic ref there: git writes {}, which is judged".format(*names))
        found[replace(update, ref=target)] = None
    return list(found), said


def told_of(repository: Repository, refs: Iterable[str]) -> list[str]:
    """Say of each of these refs that is a symbolic one what git writes in its place.

    Raises:
        UndecidedError: one cannot be followed.
    """
    targets = [(ref, target) for ref in dict.fromkeys(refs) if (target := target_of(repository, ref))]
    return [sentence_on(ref, target) for ref, target in targets]


def sentence_on(ref: str, target: str) -> str:
    """Say what a symbolic ref means for the hooks."""
    names = printable(ref, 200), printable(target, 200)
    return "{} is a symbolic ref to {}: git writes that one, and no hook saw the change".format(*names)
