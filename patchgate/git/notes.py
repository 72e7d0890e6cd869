"""Notes about a change: which object they belong to, how to read them at any commit, how to add a line.

The object is the id that git gives a blob of the text `patchgate.change <change id>` and LF. It need not
exist, so a note survives every rebase of the commits that make the change. Source of the tree's format:
git-notes, and `notes.c` for its fan-out: the id in hex, its first pairs of digits split off as folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchgate.errors import UndecidedError
from patchgate.git.model import REGULAR, TREE_MODE, Entry, FileChange
from patchgate.git.new_commits import ref_value
from patchgate.git.objects import Header, Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import ANY_CODE, Repository, failed
from patchgate.git.revisions import tree_named
from patchgate.git.trees import resulting_tree

APPROVALS_REF = "refs/notes/patchgate-approvals"
MOST_BYTES = 1 << 20
_TRIES = 5


def anchor_of(objects: Objects, change_id: str) -> str:
    """Compute the object id that notes about a change hang on."""
    return objects.hash("blob", f"patchgate.change {change_id}\n".encode("ascii"))


def read_notes(objects: Objects, revision: str, anchor: str) -> Iterator[bytes]:
    """Yield the notes about one object; more than one if the tree has different ones under several paths.

    Args:
        place: a commit of notes, or a full ref that names one; none are there where it does not exist.
        anchor: what the notes are about, as a full id.

    Raises:
        UndecidedError: an object is missing or damaged, or a note has more than 1 MiB.
    """
    tree, _ = tree_named(objects, revision) or (None, None)
    if tree is not None:
        for oid in dict.fromkeys(notes_at(objects, tree, anchor)):
            yield objects.read(oid, MOST_BYTES)


def notes_at(objects: Objects, tree: str, anchor: str) -> Iterator[str]:
    """Find the blobs that are notes about one object, by a tree of notes; one may be there twice.

    Raises:
        UndecidedError: a tree is missing or damaged.
    """
    for _, entry in _places(objects, tree, anchor, ""):
        yield entry.oid


def _places(objects: Objects, tree: str, rest: str, above: str) -> Iterator[tuple[str, Entry]]:
    """Find the paths in a tree of notes that spell an id, with any fan-out, and what is there."""
    entries = objects.tree(tree)
    note = entries.get(rest.encode("ascii"))
    if note is not None and note.is_file:
        yield above + rest, note
    folder = entries.get(rest[:2].encode("ascii"))
    if folder is not None and folder.mode == TREE_MODE and len(rest) > 2:
        yield from _places(objects, folder.oid, rest[2:], f"{above}{rest[:2]}/")


def require_ref(repository: Repository, ref: str) -> None:
    """Make sure that a line can be added to the notes of a ref.

    Raises:
        UndecidedError: it names something else than a commit, or git cannot read it.
    """
    named = ref_value(repository, ref)
    if named is None:
        wanted = f"verify {ref} {repository.zero_oid}\n".encode("ascii")
        repository.git("update-ref", "--no-deref", "--stdin", stdin=wanted)
        return
    with Objects(repository) as objects:
        _require_commit(ref, objects.header(named))


def _require_commit(ref: str, named: Header | None) -> None:
    if named is None or named.type != "commit":
        hint = f"inspect it (git rev-parse {ref}), then remove it: git update-ref -d {ref}"
        raise UndecidedError(f"{ref} does not point to a commit, so no note can be added", hint)


def add_line(
    repository: Repository, ref: str, anchor: str, line: bytes, *, message: str, identity: Mapping[str, str]
) -> str:
    """Add one line to the note about an object, as a new commit of the ref; return that commit.

    The lines of a note are sorted and unique, as `git notes merge -s cat_sort_uniq` leaves them. The ref is
    moved only from the value that was read; if it moved meanwhile, it is read again.

    Args:
        line: with its LF.
        message: of the commit.
        identity: the variables by which the caller names author and committer.

    Raises:
        UndecidedError: git refused, or the ref kept changing.
    """
    for _ in range(_TRIES):
        with Objects(repository) as objects:
            head = ref_value(repository, ref)
            if head is not None:
                _require_commit(ref, objects.header(head))
            tree = objects.header(head + "^{tree}") if head is not None else None
            base = tree.oid if tree is not None else objects.empty_tree
            tree_oid = _write_tree(repository, objects, base, anchor, line)
        parent = ["-p", head] if head is not None else []
        made = repository.output(
            "commit-tree", tree_oid, *parent, stdin=message.encode("utf-8") + b"\n", variables=identity
        )
        commit = made.decode("ascii").strip()
        old = head if head is not None else repository.zero_oid
        # Not through a symbolic ref: only this one ref is ever moved.
        moving = ("update-ref", "--no-deref", "-m", message, ref, commit, old)
        done = repository.git(*moving, variables=dict(identity), answers=ANY_CODE)
        if done.code == 0:
            return commit
        if ref_value(repository, ref) == head:
            raise failed("update-ref", done)
    raise UndecidedError(
        f"{ref} keeps changing",
        f"inspect it (git rev-parse {ref}), then try again",
    )


def _write_tree(repository: Repository, objects: Objects, base: str, anchor: str, line: bytes) -> str:
    """Write the tree `base` with one more line in a note; its fan-out stays as it is."""
    path, old = next(_places(objects, base, anchor, ""), (None, None))
    lines = {line}
    if path is None or old is None:
        path = _new_path(objects, base, anchor)
    else:
        before = objects.read(old.oid, MOST_BYTES)
        lines |= {each + b"\n" for each in before.split(b"\n") if each}
    blob = _write(repository, "blob", b"".join(sorted(lines)))
    written: list[bytes] = []
    change = FileChange(RepoPath.from_git(path.encode("ascii")), old, Entry(REGULAR, blob))
    result = resulting_tree(objects, base, [change], lambda _, content: written.append(content))
    for content in written:
        _write(repository, "tree", content)
    return result.tree


def _new_path(objects: Objects, tree: str, anchor: str) -> str:
    """Choose the path of a new note: as deep as folders of its first digits exist."""
    path, rest = "", anchor
    while (folder := objects.tree(tree).get(rest[:2].encode("ascii"))) is not None:
        if folder.mode != TREE_MODE or len(rest) <= 2:
            break
        path, rest, tree = f"{path}{rest[:2]}/", rest[2:], folder.oid
    return path + rest


def _write(repository: Repository, kind: str, content: bytes) -> str:
    oid = repository.output("hash-object", "-w", "-t", kind, "--stdin", stdin=content)
    return oid.decode("ascii").strip()
