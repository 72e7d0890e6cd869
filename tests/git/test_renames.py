"""Which files have another name in an older tree: real renames, in commits and in a private store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import file_history as module
from patchgate.git.file_history import find_renames
from patchgate.git.model import print_tree
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import MemoryLimitError, Repository, open_repository
from tests.world import Repo

LINES = "".join(f"line {number}\n" for number in range(40))


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def renamed(repo: Repo, before: str, after: str) -> dict[bytes, bytes]:
    one, other = (repo.ask("rev-parse", f"{each}^{{tree}}") for each in (before, after))
    return {new.raw: old.raw for new, old in find_renames(opened(repo), one, other).items()}


def test_a_renamed_file_is_found_by_its_new_name(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    before = repo.commit({"old/name.py": LINES, "stays.py": "stays\n"})
    repo.git("mv", "old/name.py", "new.py")
    after = repo.commit({"added.py": "added\n", "stays.py": "changed\n"})
    assert renamed(repo, before, after) == {b"new.py": b"old/name.py"}
    assert renamed(repo, after, before) == {b"old/name.py": b"new.py"}


def test_a_file_that_was_changed_a_little_is_renamed_and_one_that_was_rewritten_is_not(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    before = repo.commit({"a.py": LINES, "b.py": "".join(f"other {n * n}\n" for n in range(40))})
    repo.git("mv", "a.py", "c.py")
    repo.git("rm", "-q", "b.py")
    after = repo.commit({"c.py": LINES + "one more\n", "d.py": "".join(f"{n} new\n" for n in range(40))})
    assert renamed(repo, before, after) == {b"c.py": b"a.py"}


def test_the_same_tree_has_no_renames_and_a_copy_is_none(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    before = repo.commit({"a.py": LINES})
    after = repo.commit({"copy.py": LINES})
    assert renamed(repo, before, before) == {}
    assert renamed(repo, before, after) == {}


def test_names_with_quotes_arrows_line_feeds_and_other_bytes_come_out_as_they_are(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    names = [b'"quoted" -> x.py', b"line\nfeed\t.py", b"\xff\xfe.py"]
    before = repo.commit(
        {os.fsdecode(name): LINES + os.fsdecode(name).encode("utf-8", "replace").hex() for name in names}
    )
    for name in names:
        repo.git("mv", "--", name, b"moved-" + name)
    after = repo.commit()
    assert renamed(repo, before, after) == {b"moved-" + name: name for name in names}


def test_the_users_config_has_no_say(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    other = "".join(f"other {number * number}\n" for number in range(40))
    before = repo.commit({"a.py": LINES, "b.py": other})
    repo.git("mv", "a.py", "c.py")
    repo.git("mv", "b.py", "d.py")
    after = repo.commit({"c.py": LINES + "more\n", "d.py": other + "more\n"})
    for name, value in (("diff.renames", "false"), ("diff.renameLimit", "1"), ("diff.noprefix", "true")):
        repo.git("config", name, value)
    repo.write(".gitattributes", "*.py binary\n")
    assert renamed(repo, before, after) == {b"c.py": b"a.py", b"d.py": b"b.py"}


def test_symlinks_and_submodules_are_no_files(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.link("link", "somewhere/far/away")
    repo.gitlink("module")
    repo.git("add", "link")
    repo.git("commit", "-q", "--no-verify", "-m", "Links")
    before = repo.head()
    repo.git("mv", "link", "moved")
    repo.git("rm", "-q", "--cached", "module")
    repo.gitlink("other")
    repo.git("commit", "-q", "--no-verify", "-m", "Moved")
    assert renamed(repo, before, "HEAD") == {}


def test_trees_of_a_private_store_are_read_through_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a.py": LINES})
    repository = opened(repo)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        before = repo.ask("rev-parse", "HEAD^{tree}")
        entry = objects.tree(before)[b"a.py"]
        after = store.write("tree", print_tree({b"z.py": entry}))
        assert find_renames(repository, before, after, store.variables) == {
            RepoPath(b"z.py"): RepoPath(b"a.py")
        }
        with pytest.raises(UndecidedError):
            find_renames(repository, before, after)


def test_a_missing_tree_is_undecided(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a.py": LINES})
    with pytest.raises(UndecidedError, match="diff-tree"):
        find_renames(opened(repo), "1" * 40, repo.ask("rev-parse", "HEAD^{tree}"))


def test_where_git_needs_too_much_memory_exact_renames_are_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    before = repo.commit({"a.py": LINES, "b.py": "other\n" * 40})
    repo.git("mv", "a.py", "c.py")
    repo.git("mv", "b.py", "d.py")
    after = repo.commit({"c.py": LINES + "more\n"})
    really = module._listed

    def short_of_memory(
        repository: Repository, one: str, other: str, likeness: str, variables: None
    ) -> bytes:
        if likeness != "-M100%":
            raise MemoryLimitError("git needs more memory than patchgate allows", "split the change")
        return really(repository, one, other, likeness, variables)

    monkeypatch.setattr(module, "_listed", short_of_memory)
    assert renamed(repo, before, after) == {b"d.py": b"b.py"}
