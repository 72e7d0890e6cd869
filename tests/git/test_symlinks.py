"""Where links lead: the same as the kernel says of the tree when it is checked out."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.errors import UndecidedError
from patchgate.git import symlinks
from patchgate.git.model import REGULAR, SYMLINK, Entry
from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from patchgate.git.symlinks import Links, list_links, read_targets
from patchgate.git.tree_view import TreeView
from patchgate.values import replace
from tests.amount import often
from tests.component_world import opened
from tests.world import AskedGit, Repo

NAMES = ("a", "b", "a/b", "a/c", "b/c", "a/b/c", "l", "a/l", "a/b/l", "b/l")
TARGETS = (
    "a",
    "b",
    "..",
    "../..",
    "a/..",
    "l",
    "l/..",
    "a/l",
    "../l",
    "../b/l",
    "a/b/c/..",
    "./a",
    "l/../..",
    "c",
)

trees = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(st.none(), st.sampled_from(TARGETS)), min_size=2, max_size=7
).map(
    # A name is a file or a folder.
    lambda tree: {
        name: target
        for name, target in tree.items()
        if not any(other.startswith(name + "/") for other in tree)
    }
)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    return Repo.create(tmp_path_factory.mktemp("links"))


def leaves(root: Path, name: str) -> bool | None:
    """Ask the kernel whether a link leaves the root; None where it leads to nothing, or in a circle."""
    inside = root / "r"
    try:
        real = os.path.realpath(inside / name, strict=True)
    except OSError:
        return None
    return os.path.commonpath([real, inside]) != str(inside)


@settings(max_examples=often(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_a_link_that_leaves_on_disk_is_known_to_leave(
    repo: Repo, tree: dict[str, str | None], tmp_path: Path
) -> None:
    root = tmp_path / "disk"
    shutil.rmtree(root, ignore_errors=True)
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        over: dict[bytes, Entry | None] = {}
        targets: dict[str, bytes | None] = {}
        for name, target in tree.items():
            place = root / "r" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if target is None:
                place.write_text("x")
                over[name.encode()] = Entry(REGULAR, objects.empty_blob)
            else:
                place.symlink_to(target)
                oid = objects.hash("blob", target.encode())
                over[name.encode()] = Entry(SYMLINK, oid)
                targets[oid] = target.encode()
        links = Links(TreeView(objects, objects.empty_tree, over), targets)
        for name, target in tree.items():
            if target is not None:
                on_disk = leaves(root, name)
                escape = links.follow(name.encode()).escape
                if on_disk is not None:
                    assert (escape is not None) == on_disk, (name, escape)


def test_a_circle_that_no_kernel_follows_is_an_escape(repo: Repo) -> None:
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        oid = objects.hash("blob", b"l")
        view = TreeView(objects, objects.empty_tree, {b"l": Entry(SYMLINK, oid)})
        route = Links(view, {oid: b"l"}).follow(b"l")
    assert "circle" in (route.escape or "")
    assert route.passed == {b"l"}


@pytest.mark.parametrize("content", [b"", b"/etc", b"a\0b", b"a\\b", b"x" * 4097, b"a/.git/config", b"git~1"])
def test_a_target_that_cannot_be_followed_is_an_escape(repo: Repo, content: bytes) -> None:
    oid = repo.git("hash-object", "-w", "--stdin", stdin=content).decode("ascii").strip()
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        view = TreeView(objects, objects.empty_tree, {b"l": Entry(SYMLINK, oid)})
        assert Links(view, read_targets(objects, [oid])).follow(b"l").escape is not None


def test_the_links_of_many_trees_are_those_of_each_and_listed_once(repo: Repo, tmp_path: Path) -> None:
    trees = []
    for number, (name, target) in enumerate([("x/l", "a"), ("x/m", "b"), ("x/l", ".."), ("y/l", "a")] * 3):
        (repo.path / name).unlink(missing_ok=True)
        repo.link(name, target)
        if number % 4 == 3:
            (repo.path / "x/m").unlink()
        repo.commit({"f": f"{number}\n"})
        trees.append(repo.ask("rev-parse", "HEAD^{tree}"))
    git = AskedGit(tmp_path, repo.env)
    with Objects(opened(repo, PATH=git.path)) as objects:
        together = [list_links(TreeView(objects, tree), {}) for tree in trees]
    assert git.times("ls-tree") == 1
    for tree, found in zip(trees, together, strict=True):
        with Objects(opened(repo)) as objects:
            assert list_links(TreeView(objects, tree), {}) == found
    assert together[0] != together[2]


def test_the_links_of_many_commits_are_followed_for_so_long_together(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.link("far", "f")
    repo.commit({"f": "x\n"})
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    monkeypatch.setattr(symlinks, "_MOST_STEPS_OF_ALL", 8)
    for is_limited in (False, True):
        with Objects(replace(opened(repo), trusts_caches=not is_limited)) as objects:
            assert Links(TreeView(objects, tree), {}).follow(b"far").escape is None
            with (
                pytest.raises(UndecidedError, match="each of these commits") if is_limited else nullcontext()
            ):
                for _ in range(5):
                    Links(TreeView(objects, tree), {}).follow(b"far")
