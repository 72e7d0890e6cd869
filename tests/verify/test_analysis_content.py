"""Which tree is analysed, held against the tree that git itself would write; and whose analyses count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.binary_files import line_reader
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, open_repository
from patchgate.verify.analyze import AnalysedTree, analysis_policy, find_tree
from tests.world import Repo

RUFF = '[analyses.ruff]\ncommand = ["ruff", "check", "."]\n'
Reader = tuple[Repository, Objects, PrivateStore]


@contextmanager
def reading(repo: Repo) -> Iterator[Reader]:
    repository = open_repository(repo.env, str(repo.path))
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        yield repository, objects, store


def source(repo: Repo, what: str) -> AnalysedTree:
    """Find a source; everything in its tree must be there."""
    with reading(repo) as (repository, objects, store):
        found = find_tree(objects, store, what)
        repository.output("ls-tree", "-r", "-t", found.tree, variables=store.variables)
        assert found.tree == objects.empty_tree or objects.header(found.tree) is not None
        return found


def files_before(repo: Repo) -> str:
    return repo.commit({"a/b/c.py": "c = 1\n", "a/d.py": "d = 1\n", "gone.py": "gone\n", "e.py": "e = 1\n"})


def test_the_staged_tree_is_the_one_that_git_would_commit(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    head = files_before(repo)
    repo.git("rm", "-q", "gone.py")
    repo.stage({"a/b/c.py": "c = 2\n", "new/deep/x.py": "x = 1\n"})
    repo.write("a/d.py", "not staged\n")
    repo.write("untracked.py")
    repo.write("intended.py", "later\n")
    repo.git("add", "-N", "intended.py")
    found = source(repo, "staged")
    assert found == (repo.ask("write-tree"), head)


def test_the_tree_of_the_working_tree_has_what_is_not_ignored(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    head = files_before(repo)
    repo.commit({".gitignore": "*.log\n"})
    head = repo.head()
    repo.stage({"a/b/c.py": "c = 2\n"})
    repo.write("a/b/c.py", "c = 3\n")
    repo.write("untracked folder/x.py", "x = 1\n")
    repo.write("noise.log")
    (repo.path / "gone.py").unlink()
    before = repo.git("ls-files", "-s")
    found = source(repo, "worktree")
    assert repo.git("ls-files", "-s") == before
    repo.git("add", "-A")
    assert found == (repo.ask("write-tree"), head)


def test_nothing_staged_is_the_tree_of_head_and_nothing_at_all_is_the_empty_one(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert source(repo, "staged") == (repo.ask("hash-object", "-t", "tree", "/dev/null"), None)
    repo.stage({"first.py": "first\n", "deep/er/x.py": "x\n"})
    assert source(repo, "staged") == (repo.ask("write-tree"), None)
    head = repo.commit()
    assert source(repo, "staged") == (repo.ask("rev-parse", "HEAD^{tree}"), head)


def test_while_a_merge_waits_the_staged_tree_is_that_of_the_merge(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    files_before(repo)
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"other.py": "o = 1\n"})
    repo.git("checkout", "-q", "main")
    head = repo.commit({"e.py": "e = 2\n"})
    repo.git("merge", "-q", "--no-commit", "--no-ff", "other")
    assert source(repo, "staged") == (repo.ask("write-tree"), head)


def test_a_conflict_is_undecided(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    files_before(repo)
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"e.py": "e = 3\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"e.py": "e = 2\n"})
    assert repo.try_git("merge", "-q", "other").returncode == 1
    with pytest.raises(UndecidedError, match=r"e\.py"):
        source(repo, "staged")


@pytest.mark.parametrize("name", ["HEAD", "HEAD~1", "main", "v1", "HEAD^{tree}"])
def test_a_revision_is_its_commit_and_its_tree(tmp_path: Path, name: str) -> None:
    repo = Repo.create(tmp_path)
    files_before(repo)
    repo.commit({"e.py": "e = 2\n"})
    repo.git("tag", "-a", "-m", "One", "v1", "HEAD~1")
    is_tree = name == "HEAD^{tree}"
    tree = repo.ask("rev-parse", name if is_tree else f"{name}^{{tree}}")
    assert source(repo, name) == (tree, None if is_tree else repo.ask("rev-parse", f"{name}^{{commit}}"))


@pytest.mark.parametrize(
    "name", ["nobody", "", "--all", "HEAD:e.py", "HEAD:a", "a\nb", "HEAD\nHEAD", "\x1b[31m", "1" * 40]
)
def test_what_is_no_revision_is_a_wrong_argument(tmp_path: Path, name: str) -> None:
    repo = Repo.create(tmp_path)
    files_before(repo)
    with pytest.raises(UsageError, match="unknown revision") as caught:
        source(repo, name)
    assert caught.value.message.isprintable()


def test_a_branch_named_like_a_source_is_reached_by_its_full_name(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    head = files_before(repo)
    repo.git("branch", "staged")
    repo.stage({"e.py": "e = 2\n"})
    assert source(repo, "staged").tree == repo.ask("write-tree")
    assert source(repo, "refs/heads/staged") == (repo.ask("rev-parse", "HEAD^{tree}"), head)


def test_a_bare_repository_has_revisions_alone(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    head = files_before(repo)
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    bare = repo.at(tmp_path / "bare")
    assert source(bare, "HEAD").commit == head
    for what in ("staged", "worktree"):
        with pytest.raises(UsageError, match="no index"):
            source(bare, what)


def test_in_a_repository_of_sha256_new_trees_have_its_ids(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    files_before(repo)
    repo.stage({"a/b/c.py": "c = 2\n"})
    assert source(repo, "staged").tree == repo.ask("write-tree")


def test_the_index_of_this_very_moment_counts(tmp_path: Path) -> None:
    """In a hook of `git commit PATH` that is another file than `index`."""
    repo = Repo.create(tmp_path)
    files_before(repo)
    other = str(tmp_path / "other-index")
    repo.write("e.py", "e = 5\n")
    repo.git("read-tree", "HEAD", GIT_INDEX_FILE=other)
    repo.git("add", "e.py", GIT_INDEX_FILE=other)
    tree = repo.git("write-tree", GIT_INDEX_FILE=other).decode().strip()
    repository = open_repository({**repo.env, "GIT_INDEX_FILE": other}, str(repo.path))
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        assert find_tree(objects, store, "staged").tree == tree


def test_nothing_is_written_to_the_repository(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    files_before(repo)
    repo.stage({"a/b/c.py": "c = 2\n"})
    repo.write("untracked.py", "u = 1\n")
    before = sorted(each for each in (repo.path / ".git").rglob("*"))
    source(repo, "staged")
    source(repo, "worktree")
    assert sorted(each for each in (repo.path / ".git").rglob("*")) == before


def named(repo: Repo) -> list[str]:
    with reading(repo) as (_, objects, _):
        return sorted(analysis_policy(objects).config.analyses)


def test_the_policy_of_head_names_the_analyses_and_a_staged_one_does_not(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(RUFF)
    repo.stage({"patchgate.toml": RUFF.replace("ruff]", "easier]")})
    assert named(repo) == ["ruff"]


def test_the_policy_of_the_trusted_ref_goes_before_that_of_head(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(RUFF)
    repo.git("branch", "trusted")
    repo.policy(RUFF.replace("ruff]", "easier]"))
    assert named(repo) == ["easier"]
    repo.git("config", "patchgate.trustRef", "refs/heads/trusted")
    assert named(repo) == ["ruff"]


@pytest.mark.parametrize("policy", [None, "[policy]\n"])
def test_a_policy_without_analyses_is_told_with_what_to_write(tmp_path: Path, policy: str | None) -> None:
    repo = Repo.create(tmp_path)
    for _ in range(2):
        with pytest.raises(UsageError, match=" HEAD ") as caught:
            named(repo)
        assert "[commands." in (caught.value.hint or "")
        if policy is not None:
            repo.policy(policy)


def test_a_policy_that_cannot_be_used_is_no_policy_without_analyses(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[analyses.ruff]\ncommand = 1\n")
    with pytest.raises(ConfigError):
        named(repo)


def test_lines_are_those_of_the_tree_and_not_of_the_disk(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.link("link", "a/d.py")
    files_before(repo)
    repo.write("a/d.py", "written since\n")
    with reading(repo) as (_, objects, store):
        lines = line_reader(objects, find_tree(objects, store, "HEAD").tree)
        found = {
            name: lines(RepoPath(os.fsencode(name)))
            for name in ("a/d.py", "a", "link", "no", "a//d.py", "e.py/x")
        }
        assert found == {
            "a/d.py": [b"d = 1", b""],
            "a": None,
            "link": (),
            "no": None,
            "a//d.py": None,
            "e.py/x": None,
        }
