"""The exact bytes on disk, before and after: what a judged change between blobs means for the files.

A file keeps its form: if it equals the blob, the new one does too; if it is what a checkout writes for the
blob (line ends, `ident`, an encoding, a filter), so is the new one; if only its line ends differ, unchanged
lines keep theirs. Bytes that differ from the blob are written only if git would store the judged blob.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import Enum

from patchgate.errors import UndecidedError
from patchgate.git.base_files import is_emptied_on_disk, read_files, sparse_files
from patchgate.git.conversion import (
    MOST_BYTES,
    BlockedPath,
    CheckoutConverter,
    ContentAttributes,
    hash_as_stored,
    is_switched_off,
    read_worktree_file,
)
from patchgate.git.model import GITLINK, SYMLINK, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.staging import index_entries
from patchgate.git.transaction.entries import FileContent, Write
from patchgate.patches.line_ends import carry_line_ends, is_same_but_ends
from patchgate.patches.proposed_files import Preimages, content_of
from patchgate.values import dataclass, field

_Asked = tuple[FileChange, Entry, bytes]


@dataclass(frozen=True, slots=True)
class FileState:
    """What is on disk where a change is to be written.

    `contents` has every touched path that has a form on disk (gitlinks have none). `as_blob` are the files
    whose bytes are the judged blob itself, `differing` the paths that differ from what was judged, in the
    order of the change.
    """

    contents: Mapping[RepoPath, FileContent | None]
    as_blob: frozenset[RepoPath]
    differing: tuple[RepoPath, ...]


@dataclass(frozen=True, slots=True)
class PlannedWrites:
    """What is to be written.

    `unstable` are files that are written as they were judged, byte for byte, although `git add` will store
    other line endings because of attributes or `core.autocrlf`.
    """

    writes: tuple[Write, ...]
    unstable: tuple[RepoPath, ...]


def read_file_state(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    files: Sequence[FileChange],
    *,
    with_index: bool = False,
) -> FileState:
    """Read every touched path on disk, and compare it with the old side of the change.

    Args:
        objects: reads through `store`.
        with_index: the index is changed too, which is where a gitlink changes.

    Raises:
        UndecidedError: something cannot be read, or has no form on disk that could be written.
    """
    _require_forms(repository, files, with_index=with_index)
    looked = [file for file in files if not _is_gitlink(file)]
    removed = {file.path: file.old for file in files if file.new is None}
    contents: dict[RepoPath, FileContent | None] = {}
    paths: dict[_DiskMatch, list[RepoPath]] = {look: [] for look in _DiskMatch}
    for file in looked:
        found = read_worktree_file(repository, file.path)
        if isinstance(found, BlockedPath):
            contents[file.path] = None
            is_free = file.old is None and _makes_room(repository, found, file.path, removed)
            look = _DiskMatch.NOTHING if is_free else _DiskMatch.DIFFERS
        else:
            contents[file.path] = found
            look = _match(objects, file.old, found)
        paths[look].append(file.path)
    differing = set(paths[_DiskMatch.DIFFERS])
    modes = [file.path for file in looked if _differs_in_mode(file, contents[file.path])]
    if modes and not is_switched_off(repository, "core.fileMode"):
        differing.update(modes)
    old = {file.path: file.old for file in looked if file.old is not None}
    if absent := {path: old[path] for path in paths[_DiskMatch.ABSENT]}:
        # A sparse checkout leaves it out: it was judged as the index has it.
        skipped = sparse_files(repository, absent)
        differing.update(path for path, entry in absent.items() if skipped.get(path) != entry)
        hidden = [path for path in skipped if path in removed and path not in differing]
        if hidden and not with_index:
            raise UndecidedError(
                f"{hidden[0].quoted} is excluded by the sparse checkout, so it cannot be deleted here",
                "use --index, or check it out: git sparse-checkout add",
            )
    converted = {path: old[path] for path in paths[_DiskMatch.OTHER_BYTES]}
    differing.update(_stored_otherwise(repository, store, converted, contents))
    ordered = tuple(file.path for file in looked if file.path in differing)
    return FileState(contents, frozenset(paths[_DiskMatch.BLOB]), ordered)


class _DiskMatch(Enum):
    """How a path on disk compares with the old side of the change, before git is asked."""

    NOTHING = "nothing, as there should be"
    BLOB = "the judged blob itself"
    OTHER_BYTES = "bytes that git may store as the judged blob"
    ABSENT = "nothing, where a file should be"
    DIFFERS = "something else"


def _match(objects: Objects, old: Entry | None, found: FileContent | None) -> _DiskMatch:
    if found is None:
        return _DiskMatch.NOTHING if old is None else _DiskMatch.ABSENT
    if old is None or (found.mode == SYMLINK) != (old.mode == SYMLINK):
        return _DiskMatch.DIFFERS
    if objects.hash("blob", found.data) == old.oid:
        return _DiskMatch.BLOB
    return _DiskMatch.DIFFERS if found.mode == SYMLINK else _DiskMatch.OTHER_BYTES


def _is_gitlink(file: FileChange) -> bool:
    return any(side is not None and side.mode == GITLINK for side in (file.old, file.new))


def _differs_in_mode(file: FileChange, found: FileContent | None) -> bool:
    return found is not None and file.old is not None and found.mode != file.old.mode


def _require_forms(repository: Repository, files: Sequence[FileChange], *, with_index: bool) -> None:
    """Refuse what cannot be written to this disk."""
    for file in files:
        if not _is_gitlink(file):
            continue
        if not with_index:
            raise UndecidedError(
                f"{file.path.quoted} is a submodule, which only the index can change", "use --index"
            )
        if any(side is not None and side.mode != GITLINK for side in (file.old, file.new)):
            raise UndecidedError(
                f"{file.path.quoted} would change between a submodule and a file",
                "remove it by hand, then apply the rest",
            )
    links = [file for file in files for side in (file.old, file.new) if side and side.mode == SYMLINK]
    if links and is_switched_off(repository, "core.symlinks"):
        said = f"{links[0].path.quoted} is a symlink, and core.symlinks is false here"
        raise UndecidedError(said, "apply this in a working tree that has symlinks")


def _makes_room(
    repository: Repository, found: BlockedPath, path: RepoPath, removed: Mapping[RepoPath, Entry | None]
) -> bool:
    """Return whether the change removes what is in the way of a new file."""
    if found.path == path:
        root = os.fsencode(repository.work_tree or "")
        return found.is_folder and is_emptied_on_disk(root, path.raw, removed.keys())
    above = removed.get(found.path)
    return above is not None and above.is_file


def _stored_otherwise(
    repository: Repository,
    store: PrivateStore,
    files: Mapping[RepoPath, Entry],
    contents: Mapping[RepoPath, FileContent | None],
) -> list[RepoPath]:
    """Find the files that git would not store as the blob that was judged."""
    asked = [(path, content.data) for path in files if (content := contents[path]) is not None]
    oids = hash_as_stored(repository, store, asked)
    wrong = [path for (path, _), oid in zip(asked, oids, strict=True) if oid != files[path].oid]
    if not wrong:
        return []
    # The index has a say too (`read_files`); this reads the files again, and who writes compares the bytes.
    staged = index_entries(repository, wrong)
    known: dict[RepoPath, Entry | None] = {path: staged.get(path) for path in wrong}
    again = read_files(repository, store, {path: files[path].mode for path in wrong}, known)
    return [path for path in wrong if again.get(path) != files[path]]


def plan_writes(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    files: Sequence[FileChange],
    state: FileState,
) -> PlannedWrites:
    """Make the bytes that are to be written.

    Args:
        objects: reads through `store`, where the new blobs are.
        state: the state of the same files, without differences.

    Raises:
        UndecidedError: no bytes were found that git would store as what was judged.
    """
    attributes = ContentAttributes(repository)
    blobs = Preimages(objects, {file.path: file.new for file in files})
    made: dict[RepoPath, FileContent | None] = {}
    asked: list[_Asked] = []
    for file in files:
        if _is_gitlink(file):
            continue
        if file.new is None:
            made[file.path] = None
            continue
        old, new = state.contents[file.path], file.new
        mode = _mode(file, new, old)
        if old is not None and _changes_mode_alone(file):
            made[file.path] = FileContent(mode, old.data)
            continue
        blob = content_of(blobs[file.path]) or b""
        made[file.path] = FileContent(mode, blob)
        if new.mode != SYMLINK and not _is_plainly_the_blob(file, blob, state, attributes):
            asked.append((file, new, blob))
    unstable: list[RepoPath] = []
    if asked:
        answers = _Conversions(
            repository=repository, objects=objects, store=store, attributes=attributes, state=state
        )
        for (file, new, _), data in zip(asked, answers.of(asked), strict=True):
            made[file.path] = FileContent(_mode(file, new, state.contents[file.path]), data)
        unstable = answers.unstable
    writes = (Write(path, state.contents[path], content) for path, content in made.items())
    return PlannedWrites(tuple(each for each in writes if each.old != each.new), tuple(unstable))


def _changes_mode_alone(file: FileChange) -> bool:
    if file.old is None or file.new is None:
        return False
    return file.old.is_file and file.new.is_file and file.old.oid == file.new.oid


def _mode(file: FileChange, new: Entry, old: FileContent | None) -> str:
    """Return the mode to write: that on disk, if the change does not change it (`core.fileMode=false`)."""
    stays = file.old is not None and file.old.mode == new.mode
    return old.mode if stays and old is not None else new.mode


def _is_plainly_the_blob(
    file: FileChange, blob: bytes, state: FileState, attributes: ContentAttributes
) -> bool:
    """Return whether, without asking git, the blob itself can be written and is stored unchanged.

    If only line endings can be converted: a file without newlines has none to convert. A file that equals its
    blob and has newlines shows which ones git keeps, and git does not change a CR LF that it kept before.
    """
    if attributes.may_convert(file.path):
        return False
    if b"\n" not in blob:
        return True
    old = state.contents[file.path]
    if old is None or file.path not in state.as_blob or old.mode == SYMLINK or b"\n" not in old.data:
        return False
    return b"\r\n" not in blob or b"\r\n" in old.data


@dataclass(slots=True)
class _Conversions:
    """Finds the bytes of files that git may convert, and verifies them.

    `unstable` are the files whose line endings git will not keep.
    """

    repository: Repository
    objects: Objects
    store: PrivateStore
    attributes: ContentAttributes
    state: FileState
    unstable: list[RepoPath] = field(default_factory=list)

    def of(self, asked: Sequence[_Asked]) -> list[bytes]:
        """Return the bytes for each file.

        Raises:
            UndecidedError: git would store no bytes as what was judged.
        """
        with CheckoutConverter(self.repository, self.store) as git:
            found = [self._form(git, *question) for question in asked]
        self._let_index_speak(asked, found)
        # If only line endings can be converted, a blob without CR LF is stored unchanged.
        doubtful = [
            (*question, data)
            for question, data in zip(asked, found, strict=True)
            if data != question[2] or b"\r\n" in data or self.attributes.may_convert(question[0].path)
        ]
        oids = hash_as_stored(
            self.repository, self.store, [(file.path, data) for file, _, _, data in doubtful]
        )
        for (file, new, blob, data), oid in zip(doubtful, oids, strict=True):
            if oid == new.oid:
                continue
            if data != blob or oid != self.objects.hash("blob", blob.replace(b"\r\n", b"\n")):
                raise _no_form(file.path)
            old = self.state.contents[file.path]
            if old is None or file.path not in self.state.as_blob or b"\r\n" not in old.data:
                self.unstable.append(file.path)
        return found

    def _form(self, git: CheckoutConverter, file: FileChange, new: Entry, blob: bytes) -> bytes:
        old = self.state.contents[file.path]
        if old is None or old.mode == SYMLINK or file.old is None:
            return git.convert(file.path, new.oid)
        is_blob = file.path in self.state.as_blob
        shows_ends = is_blob and b"\n" in old.data
        if shows_ends and not self.attributes.may_convert(file.path):
            return blob
        if git.convert(file.path, file.old.oid) == old.data:
            form = git.convert(file.path, new.oid)
            return blob if shows_ends and is_same_but_ends(form, blob) else form
        if is_blob:
            return blob
        carried = carry_line_ends(old.data, self.objects.read(file.old.oid, MOST_BYTES), blob)
        if carried is None:
            raise _no_form(file.path)
        return carried

    def _let_index_speak(self, asked: Sequence[_Asked], found: list[bytes]) -> None:
        """Keep LF if the index contains CR LF: `git add` would then keep the CR LF of a checkout."""
        doubtful = {
            file.path: position
            for position, (file, _, blob) in enumerate(asked)
            if self._may_be_kept(file.path)
            and b"\r\n" in found[position]
            and b"\r\n" not in blob
            and is_same_but_ends(found[position], blob)
        }
        if not doubtful:
            return
        staged = index_entries(self.repository, doubtful.keys())
        for path, position in doubtful.items():
            entry = staged.get(path)
            if entry and entry.is_file and b"\r\n" in self.objects.read(entry.oid, MOST_BYTES):
                found[position] = asked[position][2]

    def _may_be_kept(self, path: RepoPath) -> bool:
        """Return whether nothing on disk shows yet that git removes CR LF here."""
        return self.state.contents[path] is None or path in self.state.as_blob


def _no_form(path: RepoPath) -> UndecidedError:
    return UndecidedError(
        f"{path.quoted} cannot be written so that git stores what was judged: an"
        " attribute or a filter changes it",
        "see what converts it: git check-attr -a, git config core.autocrlf",
    )
