"""Read files on disk, and convert between their bytes and git's blobs in both directions.

No symlink is followed. The attributes come from the files on disk, never from the index alone or the user's
global file, because the patch is checked that way (`base_files`). A `.gitattributes` that the patch changes
counts in its old form, as in `git apply`. Filters are the user's and run at the root of the tree.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.base_files import is_special, special_file
from patchgate.git.model import EXECUTABLE, REGULAR, SYMLINK, Descent
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, failed
from patchgate.git.transaction.entries import FileContent
from patchgate.git.working_tree import FILE, Obstruction, folder_above, open_file, open_root
from patchgate.process.child import Child
from patchgate.values import dataclass

MOST_BYTES = 256 << 20
"""How large a file may be that is written: as large as a patch may be."""
# A filter has a file in memory two or three times.
_MEMORY = 4 << 30
_PIECE = 1 << 20
_AT_ONCE = 500
_CONVERTING = ("text", "crlf", "eol", "ident", "filter", "working-tree-encoding")
_CONTENT_WORDS = (b"ident", b"filter", b"working-tree-encoding")
_MOST_ATTRIBUTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BlockedPath:
    """Something that is neither a file nor a symlink, at a path or above it.

    `path` is where it is; `is_folder` is whether it is a folder, at the path itself.
    """

    path: RepoPath
    is_folder: bool


def read_worktree_file(repository: Repository, path: RepoPath) -> FileContent | BlockedPath | None:
    """Read the file or symlink at a path on disk; None for nothing.

    Raises:
        UndecidedError: it cannot be read, or is larger than `MOST_BYTES`; or git would find a special file
            where it looks for the attributes of the path.
    """
    try:
        with open_root(repository.work_tree or "") as root:
            _refuse_special_attributes(root, b"")
            with folder_above(root, path, _refuse_special_attributes) as above:
                if isinstance(above, Obstruction):
                    return BlockedPath(RepoPath(above.path), False)
                return _read_in(above, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UndecidedError(
            f"{path.quoted} cannot be read: {error.strerror}",
            "check the permissions of the file and its folders",
        ) from error


def _refuse_special_attributes(folder: int, name: bytes) -> None:
    """Refuse an attributes file that is a FIFO: git would block on it for ever."""
    try:
        mode = os.stat(b".gitattributes", dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if is_special(mode):
        raise special_file(RepoPath(os.path.join(name, b".gitattributes")))


def _read_in(folder: int, path: RepoPath) -> FileContent | BlockedPath:
    found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return FileContent(SYMLINK, os.readlink(path.name, dir_fd=folder))
    if not stat.S_ISREG(found.st_mode):
        return BlockedPath(path, stat.S_ISDIR(found.st_mode))
    with open_file(path.name, folder) as file:
        # The open file counts: it may have been exchanged since.
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return BlockedPath(path, stat.S_ISDIR(found.st_mode))
        if found.st_size > MOST_BYTES:
            raise UndecidedError(
                f"{path.quoted} has {found.st_size >> 20} MiB; patchgate writes at most {MOST_BYTES >> 20}",
                "change this file by hand",
            )
        return FileContent(EXECUTABLE if found.st_mode & 0o100 else REGULAR, file.read())


def is_switched_off(repository: Repository, key: str) -> bool:
    """Return whether git's config turns off a setting that is on by default (`core.fileMode`)."""
    return repository.git("config", "--type=bool", "--get", key, answers=(0, 1)).out.strip() == b"false"


class ContentAttributes:
    """Finds paths where attributes may change more than line ends: a filter, `ident`, an encoding.

    Their names are in an attributes file literally, even if a macro sets them; a file with none of
    them needs no call of git.
    """

    def __init__(self, repository: Repository) -> None:
        self._root = os.fsencode(repository.work_tree or "")
        self._everywhere = _names_content(
            os.path.join(os.fsencode(repository.common_dir), b"info", b"attributes")
        )
        self._folders = Descent(
            self._names_content_in(b""), lambda above, folder: above or self._names_content_in(folder)
        )

    def may_convert(self, path: RepoPath) -> bool:
        """Return whether such an attribute may be set for a path."""
        return self._everywhere or self._folders.at(path.parent)

    def _names_content_in(self, folder: bytes) -> bool:
        return _names_content(os.path.join(self._root, folder, b".gitattributes"))


def _names_content(file_path: bytes) -> bool:
    try:
        descriptor = os.open(file_path, FILE)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    with open(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return True
        content = file.read(_MOST_ATTRIBUTES + 1)
    return len(content) > _MOST_ATTRIBUTES or any(word in content for word in _CONTENT_WORDS)


class CheckoutConverter:
    """Asks git what a checkout would write for a blob; a context manager that owns one child.

    Measured: with `--filters` git prints the size of the blob, not of the result, so each answer is
    followed by that to a name that nothing has, made up for this child.
    """

    def __init__(self, repository: Repository, store: PrivateStore) -> None:
        self._repository = repository
        self._variables = store.variables
        self._mark = b"patchgate-" + secrets.token_hex(16).encode("ascii")
        self._child = Child(
            repository.argv(("cat-file", "--batch", "--filters", "-z"), in_work_tree=True),
            cwd=repository.work_tree,
            env={**repository.environment, **store.variables},
            memory=_MEMORY,
        )

    def __enter__(self) -> CheckoutConverter:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()

    def convert(self, path: RepoPath, oid: str) -> bytes:
        """Return the bytes that a checkout would write at a path.

        Raises:
            UndecidedError: the blob is missing, or a filter failed.
        """
        if path.raw.startswith((b" ", b"\t")):
            # cat-file strips blanks before a name, and would use another file's attributes.
            return self._alone(path, oid)
        self._child.write(oid.encode("ascii") + b" " + path.raw + b"\0" + self._mark + b"\0")
        end = b"\n" + self._mark + b" missing\n"
        answer = bytearray()
        while not answer.endswith(end):
            piece = os.read(self._child.out.fileno(), _PIECE)
            if not piece:
                raise failed("cat-file", self._child.finish())
            answer += piece
        start = answer.find(b"\n") + 1
        if not answer.startswith(oid.encode("ascii") + b" blob "):
            raise UndecidedError(f"object {oid[:12]} is not in this repository", "run git fsck")
        with memoryview(answer) as view:
            return bytes(view[start : -len(end)])

    def _alone(self, path: RepoPath, oid: str) -> bytes:
        arguments = ("cat-file", "--filters", "--path=" + os.fsdecode(path.raw), oid)
        return self._repository.git(
            *arguments, variables=self._variables, in_work_tree=True, memory=_MEMORY
        ).out


def hash_as_stored(
    repository: Repository, store: PrivateStore, files: Sequence[tuple[RepoPath, bytes]]
) -> list[str]:
    """Compute which blob git would store for some bytes at a path; nothing is stored.

    Files with the same attributes are hashed together, except those with a filter, which may look
    at the name. The index is not read; if it has a file with CR LF, `git add` keeps these in a file
    that is text by guess alone (`text=auto`, `core.autocrlf`), and this answer is another one.

    Raises:
        UndecidedError: git or a filter failed.
    """
    if len(files) < 2:
        return [oid for path, content in files for oid in _hashed(repository, path, ["--stdin"], content)]
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for position, attributes in enumerate(
        _conversion_attributes(repository, store, [path for path, _ in files])
    ):
        groups.setdefault(attributes, []).append(position)
    found: dict[int, str] = {}
    folder = store.index_file + "-forms"
    os.makedirs(folder, exist_ok=True)
    for positions in groups.values():
        for start in range(0, len(positions), _AT_ONCE):
            chosen = positions[start : start + _AT_ONCE]
            temporary = [os.path.join(folder, str(position)) for position in chosen]
            for position, file_path in zip(chosen, temporary, strict=True):
                with open(file_path, "wb") as file:
                    file.write(files[position][1])
            oids = _hashed(repository, files[chosen[0]][0], ["--", *temporary])
            found.update(zip(chosen, oids, strict=True))
            for file_path in temporary:
                os.unlink(file_path)
    return [found[position] for position in range(len(files))]


def _hashed(repository: Repository, path: RepoPath, what: list[str], stdin: bytes = b"") -> list[str]:
    named = ("hash-object", "--path=" + os.fsdecode(path.raw), *what)
    done = repository.git(*named, stdin=stdin, in_work_tree=True, memory=_MEMORY)
    return done.out.decode("ascii").split()


def _conversion_attributes(
    repository: Repository, store: PrivateStore, paths: Sequence[RepoPath]
) -> list[tuple[bytes, ...]]:
    """Ask for the attributes that convert; under a filter the path itself is among them."""
    # Without an index, as cat-file and hash-object see them.
    variables: Mapping[str, str] = {"GIT_INDEX_FILE": store.index_file + "-none"}
    names = b"".join(path.raw + b"\0" for path in paths)
    done = repository.git(
        "check-attr", "-z", "--stdin", *_CONVERTING, stdin=names, variables=variables, in_work_tree=True
    )
    values = done.out.split(b"\0")[2::3]
    if len(values) != len(paths) * len(_CONVERTING):
        raise failed("check-attr", done)
    found = []
    for position, path in enumerate(paths):
        attributes = tuple(values[position * len(_CONVERTING) : (position + 1) * len(_CONVERTING)])
        filtered = attributes[_CONVERTING.index("filter")] not in {b"unspecified", b"unset"}
        found.append((*attributes, path.raw) if filtered else attributes)
    return found
