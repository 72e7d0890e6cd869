"""Opening a file folder by folder: what blocks the way is reported, and no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.git.path import RepoPath
from patchgate.git.working_tree import Obstruction, ObstructionKind, folder_above, open_file, open_root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file deep in it, and things that are no folders of a repository."""
    for name in ("a/b", "own/.git", "linked/.git-not"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"here")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/.git").write_text("gitdir: elsewhere\n")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "where", "kind"),
    [
        (b"link/b/c", b"link", ObstructionKind.LINK),
        (b"loop/x", b"loop", ObstructionKind.LINK),
        (b"a/b/c/d", b"a/b/c", ObstructionKind.OTHER),
        (b"pipe/x", b"pipe", ObstructionKind.OTHER),
        (b"own/x", b"own", ObstructionKind.REPOSITORY),
        (b"work/x/y", b"work", ObstructionKind.REPOSITORY),
    ],
)
def test_what_is_no_folder_of_this_repository_is_in_the_way(
    tree: Path, path: bytes, where: bytes, kind: ObstructionKind
) -> None:
    """C14."""
    with open_root(str(tree)) as root, folder_above(root, RepoPath(path)) as above:
        assert above == Obstruction(where, kind)


def test_a_file_is_reached_and_every_folder_on_the_way_is_shown(tree: Path) -> None:
    seen: list[bytes] = []
    with (
        open_root(str(tree)) as root,
        folder_above(root, RepoPath(b"a/b/c"), lambda _, folder: seen.append(folder)) as above,
    ):
        assert isinstance(above, int)
        with open_file(b"c", above) as file:
            assert file.read() == b"here"
    assert seen == [b"a", b"a/b"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(above)


def test_the_root_stays_open_and_alone_may_be_reached_by_a_link(tree: Path) -> None:
    with open_root(str(tree / "link")) as root:
        with folder_above(root, RepoPath(b"b")) as above:
            assert above == root
        with pytest.raises(FileNotFoundError), folder_above(root, RepoPath(b"never/b")):
            pass
        assert os.listdir(root) == ["b"]


def test_neither_a_link_nor_a_pipe_holds_whoever_opens_it(tree: Path) -> None:
    """C14."""
    with open_root(str(tree)) as root:
        with pytest.raises(OSError, match="symbolic links"):
            open_file(b"link", root)
        open_file(b"pipe", root).close()
