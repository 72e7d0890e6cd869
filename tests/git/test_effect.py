"""Git makes a patch in private: what it made, what it refused, and what it would have hidden."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from patchgate.git.diff import Detail
from patchgate.git.model import EXECUTABLE, REGULAR, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import open_repository
from patchgate.patches.git_apply import Effect, GitApply, PatchId, find_differences
from tests.proposals import addition, change_of, deletion, moved, snapshot
from tests.world import Repo

ALL = Detail(lines=True)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": "a\nb\nc\n", "x": "x\n"})
    return made


def made_of(repo: Repo, patch: bytes, *names: bytes, times: int = 1) -> Effect:
    """Let git make a patch of the files of HEAD; `names` are the touched paths."""
    repository = open_repository(repo.env, str(repo.path))
    before = snapshot(repo)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        tree = repo.ask("rev-parse", "HEAD^{tree}")
        entries: Mapping[RepoPath, Entry | None] = {
            RepoPath(name): objects.entry(tree, name) for name in names
        }
        for _ in range(times):
            with GitApply(repository, store, entries, patch) as making:
                effect = making.read(objects, ALL)
    assert snapshot(repo) == before
    return effect


def blob(repo: Repo, content: bytes) -> str:
    return repo.git("hash-object", "--stdin", stdin=content).decode().strip()


def test_the_effect_names_each_path_with_mode_blob_and_counts(repo: Repo) -> None:
    patch = change_of() + addition(b"run", b"echo", b"100755") + deletion(b"x")
    effect = made_of(repo, patch, b"f", b"run", b"x")
    assert not effect.refused
    assert {file.path.raw: (file.new, file.added_lines, file.removed_lines) for file in effect.files} == {
        b"f": (Entry(REGULAR, blob(repo, b"a\nB\nc\n")), 1, 1),
        b"run": (Entry(EXECUTABLE, blob(repo, b"echo\n")), 1, 0),
        b"x": (None, 0, 1),
    }


def test_both_sides_of_a_rename_are_seen(repo: Repo) -> None:
    """`git apply --numstat` shows the new one alone."""
    effect = made_of(repo, moved(b"f", b"g"), b"f", b"g")
    assert [(file.path.raw, file.new is None) for file in effect.files] == [(b"f", True), (b"g", False)]


def test_a_patch_that_git_does_not_take_is_refused_with_its_last_words(repo: Repo) -> None:
    effect = made_of(repo, change_of(old=b"nope"), b"f")
    assert effect.refused
    assert effect.files == []
    assert effect.said == ("error: patch failed: f:1", "error: f: patch does not apply")


def test_an_error_that_git_forgives_itself_is_a_refusal(repo: Repo) -> None:
    """Exit 0 is not enough: git reports a corrupt binary section on stderr, and applies what came before."""
    corrupt = b"diff --git a/y b/y\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 9\nzzz\n\n"
    assert made_of(repo, change_of() + corrupt, b"f").refused


def test_a_patch_can_be_made_twice_in_one_store(repo: Repo) -> None:
    """The second time nothing of the first is left, or a new file would exist already."""
    assert not made_of(repo, addition(b"new"), b"new", times=2).refused


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("apply.whitespace", "error"),
        ("apply.ignoreWhitespace", "change"),
        ("core.autocrlf", "true"),
        ("core.ignoreCase", "true"),
        ("diff.noprefix", "true"),
        ("diff.context", "0"),
        ("color.ui", "always"),
        ("diff.orderFile", "/etc/hosts"),
        ("core.bigFileThreshold", "1"),
        ("core.splitIndex", "true"),
    ],
)
def test_no_setting_of_the_repository_changes_the_effect(repo: Repo, setting: str, value: str) -> None:
    repo.git("config", setting, value)
    effect = made_of(repo, change_of(new=b"B \t"), b"f")
    assert [(file.path.raw, file.new, file.added_lines) for file in effect.files] == [
        (b"f", Entry(REGULAR, blob(repo, b"a\nB \t\nc\n")), 1)
    ]


def test_whitespace_is_compared_exactly(repo: Repo) -> None:
    repo.git("config", "apply.ignoreWhitespace", "change")
    assert made_of(repo, change_of(old=b"b "), b"f").refused


def test_any_difference_between_plan_and_effect_is_named() -> None:
    one, two = Entry(REGULAR, "1" * 40), Entry(REGULAR, "2" * 40)
    a, b = RepoPath(b"a"), RepoPath(b"b")
    made = [FileChange(a, None, one)]
    assert find_differences(made, {a: one}) == []
    assert find_differences(made, {a: two}) == [a]
    assert find_differences(made, {a: Entry(EXECUTABLE, one.oid)}) == [a]
    assert find_differences(made, {}) == [a]
    assert find_differences(made, {a: one, b: None}) == [b]
    assert find_differences([FileChange(b, one, None)], {b: None}) == []


def test_the_patch_id_is_gits_own_stable_one(repo: Repo) -> None:
    repository = open_repository(repo.env, str(repo.path))
    patch = change_of() + addition(b"new")
    expected = repo.git("patch-id", "--stable", stdin=patch).split()[0].decode()
    repo.git("config", "patchid.stable", "false")
    for raw, said in ((patch, expected), (addition(b"new") + change_of(), expected), (b"prose\n", None)):
        with PatchId(repository, raw) as patch_id:
            assert patch_id.read() == said


def test_a_making_that_is_given_up_leaves_nothing_behind(repo: Repo) -> None:
    repository = open_repository(repo.env, str(repo.path))
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        for _ in range(3):
            with GitApply(repository, store, {RepoPath(b"new"): None}, addition(b"new")):
                pass
        with GitApply(repository, store, {RepoPath(b"new"): None}, addition(b"new")) as making:
            assert not making.read(objects, ALL).refused
