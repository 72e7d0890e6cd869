"""Whatever the repository is like, and wherever one stands: a verdict, or a clear sentence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchgate.errors import UsageError
from patchgate.git.repository import open_repository
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a policy that denies `runs/`, and one more commit."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.commit({"src/a.py": "one\n", "runs/log": "log\n"}, "First")
    return made


def staged_as_written(repo: Repo, answer: Answer) -> None:
    """Assert that the change ends in the tree that git would write."""
    assert answer.change["after"] == repo.ask("write-tree")


def refused_to_judge(answer: Answer, code: int, *words: str) -> None:
    """Assert on an error document: the exit code, one clear sentence, no crash of ours."""
    assert answer.code == code, answer.out
    assert answer.report["schema"] == "patchgate.error/1"
    text = answer.error["message"] + " / " + str(answer.error["hint"])
    for word in words:
        assert word in text
    assert "patchgate itself failed" not in text


@pytest.mark.parametrize("folder", [".", "src", "new/deep"])
def test_from_any_folder_the_whole_staged_change_is_judged(repo: Repo, folder: str) -> None:
    repo.stage({"runs/x": "x\n", "src/b.py": "b\n", "new/deep/c": "c\n"})
    answer = repo.check(cwd=repo.path / folder)
    assert sorted(answer.files) == ["new/deep/c", "runs/x", "src/b.py"]
    assert answer.errors == ["deny-prefix"]


def test_a_linked_worktree_has_its_own_index(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = repo.at(tmp_path / "linked")
    repo.stage({"main-only": "x\n"})
    linked.stage({"runs/x": "x\n"})
    assert list(linked.check().files) == ["runs/x"]
    assert list(repo.check().files) == ["main-only"]
    assert linked.check(cwd=linked.path / "runs").errors == ["deny-prefix"]


def test_outside_a_repository_the_arguments_are_wrong(repo: Repo, tmp_path: Path) -> None:
    refused_to_judge(repo.check(cwd=tmp_path), 2, "not a git repository")
    refused_to_judge(repo.check("-C", str(tmp_path / "none")), 2, "does not exist")


def test_inside_the_git_directory_there_is_no_staged_change(repo: Repo) -> None:
    refused_to_judge(repo.check(cwd=repo.path / ".git"), 2, "working tree")


def test_another_folder_is_named_before_or_after_the_command(repo: Repo, tmp_path: Path) -> None:
    repo.stage({"runs/x": "x\n"})
    assert repo.check("-C", "repo", cwd=tmp_path).errors == ["deny-prefix"]
    before = repo.cli("-C", str(repo.path), "check", "--format", "json", cwd=tmp_path)
    assert before.errors == ["deny-prefix"]
    assert repo.cli("-C", "repo", "check", "-C", "src", "--format", "json", cwd=tmp_path).code == 1


def test_a_repository_without_a_commit_is_judged_against_nothing(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert repo.check().verdict == "accepted"
    assert repo.check().change["files"] == []
    assert repo.check().change["base_commit"] is None
    repo.stage({"a": "a\n"})
    assert list(repo.check().files) == ["a"]
    staged_as_written(repo, repo.check())
    assert repo.check("--worktree").verdict == "accepted"
    refused_to_judge(repo.check("HEAD"), 2, "unknown revision HEAD")


def test_on_an_unborn_branch_of_an_old_repository_everything_is_new(repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "fresh")
    answer = repo.check()
    assert answer.change["base_commit"] is None
    assert sorted(answer.files) == ["patchgate.toml", "runs/log", "src/a.py"]


def test_a_detached_head_is_judged_like_a_branch(repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach")
    repo.stage({"runs/x": "x\n"})
    assert repo.check().errors == ["deny-prefix"]


@pytest.mark.parametrize(
    "revision",
    ["nothing", "HEAD~9", "A..nothing", "HEAD...HEAD", "-x", "", "HEAD^{blob}", "a\nb", "HEAD:src"],
)
def test_an_unknown_revision_is_a_wrong_argument(repo: Repo, revision: str) -> None:
    answer = repo.check("--", revision)
    assert answer.code == 2
    assert "patchgate itself failed" not in answer.out


def test_a_branch_that_points_nowhere_is_undecided(repo: Repo) -> None:
    repo.write(".git/refs/heads/main", "1" * 40 + "\n")
    refused_to_judge(repo.check(), 3)


@pytest.mark.parametrize("content", ["", "nonsense"])
def test_a_broken_branch_is_never_taken_for_an_unborn_one(repo: Repo, content: str) -> None:
    repo.write(".git/refs/heads/main", content)
    refused_to_judge(repo.check(), 3)


def test_a_bare_repository_judges_commits_but_has_nothing_staged(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"runs/x": "x\n"})
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare"))
    bare = repo.at(tmp_path / "bare")
    assert bare.check("main").errors == ["deny-prefix"]
    assert bare.check("main").change["id"] == repo.check("main").change["id"]
    assert len(bare.check("main~2..main").changes) == 2
    refused_to_judge(bare.check(), 2, "bare")
    refused_to_judge(bare.check("--worktree"), 2, "bare")
    refused_to_judge(bare.check("--all"), 2, "bare")


def test_an_object_format_of_sha256_is_read_and_said(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    repo.policy(POLICY)
    repo.stage({"runs/x": "x\n", "b.bin": b"\0", "c": "c\n"})
    staged = repo.check()
    assert staged.errors == ["deny-prefix"]
    assert len(staged.change["after"]) == 64
    staged_as_written(repo, staged)
    assert any("sha256" in warning for warning in staged.report["warnings"])
    repo.git("commit", "-q", "-m", "x")
    assert repo.check("HEAD").change["id"] == staged.change["id"]
    assert repo.check("HEAD~1..HEAD").change["change_id"] == staged.change["change_id"]
    repo.write(".gitattributes", "* -diff\n")
    repo.write("b.bin", "text\n")
    assert repo.check("--worktree").code == 0


def test_a_split_index_is_read(repo: Repo) -> None:
    repo.git("update-index", "--split-index")
    repo.stage({"runs/x": "x\n"})
    repo.write("untracked")
    answer = repo.check()
    assert answer.errors == ["deny-prefix"]
    staged_as_written(repo, answer)
    assert sorted(repo.check("--worktree").files) == ["runs/x", "untracked"]


def test_a_sparse_index_is_read_whole(repo: Repo) -> None:
    repo.commit({f"{folder}/{name}": "x\n" for folder in ("one", "two", "three") for name in "abc"})
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "one")
    assert not (repo.path / "two").exists()
    assert repo.check("--worktree").files == {}
    repo.stage({"one/a": "y\n"})
    repo.git("rm", "-q", "--cached", "--sparse", "two/b")
    answer = repo.check()
    assert {path: row["status"] for path, row in answer.files.items()} == {
        "one/a": "modified",
        "two/b": "deleted",
    }
    staged_as_written(repo, answer)
    assert len(repo.check("--all").files) == 11


def test_a_shallow_clone_is_undecided_where_history_is_cut(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"b": "b\n"})
    repo.git("clone", "-q", "--depth=2", repo.path.as_uri(), str(tmp_path / "shallow"))
    shallow = repo.at(tmp_path / "shallow")
    assert shallow.check("HEAD").change["id"] == repo.check("HEAD").change["id"]
    refused_to_judge(shallow.check("HEAD~1"), 3, "shallow", "git fetch")
    shallow.stage({"runs/x": "x\n"})
    assert shallow.check().errors == ["deny-prefix"]


def test_a_partial_clone_is_undecided_and_fetches_nothing(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"src/a.py": "two\n"})
    repo.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", repo.path.as_uri(), str(clone))
    partial = repo.at(clone)
    before = partial.ask("count-objects", "-v")
    answer = partial.check("HEAD")
    refused_to_judge(answer, 3)
    assert "fetch" in str(answer.error["hint"])
    refused_to_judge(partial.check("HEAD~1..HEAD"), 3)
    assert partial.ask("count-objects", "-v") == before


def test_git_missing_from_the_path_is_undecided(repo: Repo, tmp_path: Path) -> None:
    refused_to_judge(repo.check(PATH=str(tmp_path)), 3, "git was not found")


@pytest.mark.parametrize("version", ["git version 2.39.1", "git version 1.8.3.1", "git version 2.9"])
def test_a_git_that_is_too_old_is_undecided(repo: Repo, tmp_path: Path, version: str) -> None:
    real = shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo "{version}" || exec {real} "$@"\n')
    fake.chmod(0o755)
    refused_to_judge(repo.check(PATH=f"{fake.parent}:{repo.env['PATH']}"), 3, "too old", "2.39.2")


@pytest.mark.parametrize(
    "content",
    [b"", b"DIRC", b"nonsense", b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 60],
    ids=["empty", "short", "nonsense", "zeroes"],
)
def test_a_damaged_index_is_undecided(repo: Repo, content: bytes) -> None:
    repo.write(".git/index", content)
    for arguments in ((), ("--worktree",), ("--all",)):
        refused_to_judge(repo.check(*arguments), 3)


def test_a_damaged_index_of_an_unborn_branch_is_undecided(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.write(".git/index", b"nonsense")
    for arguments in ((), ("--worktree",), ("--all",)):
        refused_to_judge(repo.check(*arguments), 3)


def object_file(repo: Repo, name: str) -> Path:
    oid = repo.ask("rev-parse", name)
    return repo.path / ".git" / "objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize(
    "name", ["HEAD:src/a.py", "HEAD:src", "HEAD^{tree}", "HEAD", "HEAD~1:patchgate.toml"]
)
@pytest.mark.parametrize("damage", ["gone", "garbage", "empty"])
def test_a_damaged_object_is_undecided(repo: Repo, name: str, damage: str) -> None:
    place = object_file(repo, name)
    commit = repo.head()
    place.chmod(0o644)
    if damage == "gone":
        place.unlink()
    else:
        place.write_bytes(b"" if damage == "empty" else b"garbage")
    answer = repo.check(commit)
    if name == "HEAD" and answer.code == 2:
        assert "unknown revision" in answer.error["message"]
    else:
        refused_to_judge(answer, 3)


def test_a_tree_that_is_no_tree_is_undecided(repo: Repo) -> None:
    tree = repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=b"100644 a\0short")
    commit = repo.ask("commit-tree", "-m", "x", "-p", "HEAD", tree.decode().strip())
    refused_to_judge(repo.check(commit), 3)


def test_a_staged_blob_that_is_not_there_is_undecided(repo: Repo) -> None:
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},ghost")
    refused_to_judge(repo.check(), 3)


def test_a_conflict_in_the_index_is_undecided(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"src/a.py": "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"src/a.py": "main\n"})
    assert repo.try_git("merge", "side").returncode == 1
    for arguments in ((), ("--all",)):
        refused_to_judge(repo.check(*arguments), 3, "src/a.py", "conflict")


def test_an_entry_that_is_only_intended_is_not_part_of_the_staged_change(repo: Repo) -> None:
    repo.write("later", "x\n")
    repo.git("add", "-N", "later")
    assert repo.check().files == {}
    assert repo.check().change["after"] == repo.ask("rev-parse", "HEAD^{tree}")
    assert list(repo.check("--worktree").files) == ["later"]


def test_replaced_objects_and_grafts_are_not_believed(repo: Repo) -> None:
    bad = repo.commit({"runs/x": "x\n"})
    honest = repo.check(bad)
    good = repo.ask("commit-tree", "-m", "good", "-p", "HEAD~1", "HEAD~1^{tree}")
    repo.git("replace", bad, good)
    assert repo.check(bad).changes == honest.changes
    assert repo.check("HEAD~1..HEAD").errors == ["deny-prefix"]
    repo.git("replace", "-d", bad)
    blob = repo.ask("rev-parse", "HEAD:patchgate.toml")
    empty = repo.git("hash-object", "-w", "--stdin", stdin=b"").decode().strip()
    repo.git("replace", blob, empty)
    assert repo.check(bad).changes == honest.changes
    repo.write(".git/info/grafts", f"{bad}\n")
    assert repo.check(bad).changes == honest.changes


def test_another_index_is_named_relative_or_absolute(repo: Repo) -> None:
    shutil.copy(repo.path / ".git" / "index", repo.path / ".git" / "other")
    repo.write("runs/x", "x\n")
    repo.git("update-index", "--add", "runs/x", GIT_INDEX_FILE=".git/other")
    assert repo.check().files == {}
    for name in (".git/other", str(repo.path / ".git" / "other")):
        assert repo.check(GIT_INDEX_FILE=name).errors == ["deny-prefix"]
    # Git goes to the root of the working tree before it looks for a relative one.
    assert repo.check(GIT_INDEX_FILE=".git/other", cwd=repo.path / "src").errors == ["deny-prefix"]
    assert list(repo.check("--worktree", GIT_INDEX_FILE=".git/other").files) == ["runs/x"]


def test_an_index_that_is_not_there_is_an_empty_one(repo: Repo) -> None:
    answer = repo.check(GIT_INDEX_FILE=".git/none")
    assert {row["status"] for row in answer.files.values()} == {"deleted"}


@pytest.mark.parametrize("relative", [True, False])
def test_a_git_directory_is_named_by_the_environment(repo: Repo, tmp_path: Path, relative: bool) -> None:
    repo.stage({"runs/x": "x\n"})
    git_dir = ".git" if relative else str(repo.path / ".git")
    assert repo.check(GIT_DIR=git_dir).errors == ["deny-prefix"]
    place = os.path.relpath(repo.path, tmp_path) if relative else str(repo.path)
    answer = repo.check(GIT_DIR=f"{place}/.git", GIT_WORK_TREE=place, cwd=tmp_path)
    assert answer.errors == ["deny-prefix"]


def test_the_environment_of_a_caller_does_not_steer_the_check(repo: Repo, tmp_path: Path) -> None:
    repo.stage({"runs/x": "x\n"})
    plain = repo.check().changes
    trace = tmp_path / "trace"
    hostile = {
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_TRACE": str(trace),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.external",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_DIFF_OPTS": "-u9",
        "GIT_PAGER": "false",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NAMESPACE": "other",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_OBJECT_DIRECTORY": str(tmp_path),
        "GIT_SHALLOW_FILE": str(tmp_path / "shallow"),
        "GIT_REPLACE_REF_BASE": "refs/heads/",
    }
    steered = Repo(repo.path, repo.env | hostile)
    assert steered.check().changes == plain
    assert not trace.exists()


def test_a_repository_of_another_user_is_undecided(repo: Repo) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a repository to another user")
    for place in (repo.path, repo.path / ".git"):
        os.chown(place, 54321, 54321)
    refused_to_judge(repo.check(), 3, "belongs to another user", "safe.directory")
    repo.git("config", "--global", "--add", "safe.directory", str(repo.path))
    assert repo.check().code == 0


@pytest.mark.parametrize("extension", ["core.repositoryFormatVersion=9", "extensions.future=true"])
def test_a_repository_of_the_future_is_undecided(repo: Repo, extension: str) -> None:
    repo.git("config", "core.repositoryFormatVersion", "1")
    key, _, value = extension.partition("=")
    repo.git("config", key, value)
    assert repo.check().code == 3
    assert "patchgate itself failed" not in repo.check().out


@pytest.mark.parametrize("config", ["[core\n", "[core]\n\tbare = maybe\n", "\0"])
def test_a_broken_config_of_git_is_undecided(repo: Repo, config: str) -> None:
    repo.write(".git/config", config)
    answer = repo.check()
    assert answer.code in {2, 3}
    assert "patchgate itself failed" not in answer.out


@pytest.mark.parametrize("folder", ["a b", "a:b", 'a"b', "\u00fc", "-x", "a;b"])
def test_a_repository_may_lie_in_a_folder_of_any_name(tmp_path: Path, folder: str) -> None:
    repo = Repo.create(tmp_path / folder)
    repo.policy(POLICY)
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"main": "x\n"})
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.check("HEAD").files == {}
    repo.write("runs/x", "x\n")
    assert repo.check("--worktree").errors == ["deny-prefix"]


def test_a_repository_in_a_folder_with_a_newline_is_never_taken_for_another(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "a\nb")
    repo.stage({"a": "a\n"})
    answer = repo.check()
    assert "patchgate itself failed" not in answer.out
    assert answer.code == 3 or list(answer.files) == ["a"]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"new\nline", '"new\\nline"'),
        (b"esc\x1b[31m", '"esc\\033[31m"'),
        (b"latin\xff", '"latin\\377"'),
        ("bidi\u202e".encode(), '"bidi\\342\\200\\256"'),
        (b'quo"te', 'quo"te'),
        (b"tab\there", '"tab\\there"'),
        ("\u00fcber".encode(), "\u00fcber"),
        (b"-dash", "-dash"),
        (b":colon", ":colon"),
        (b"star*[1]", "star*[1]"),
        (b" space ", " space "),
    ],
)
def test_a_name_of_any_bytes_is_told_safely_and_judged_alike(repo: Repo, name: bytes, shown: str) -> None:
    repo.write(b"dir/" + name, "x\n")
    repo.git("add", "-A")
    quoted = '"dir/' + shown[1:] if shown.startswith('"') else "dir/" + shown
    staged = repo.check()
    assert list(staged.files) == [quoted]
    staged_as_written(repo, staged)
    for form in ("full", "concise", "json", "sarif", "github", "gitlab", "junit"):
        out = repo.cli("check", "--format", form, "--color", "never", "-v").out
        assert not any(mark in out for mark in ("\x1b", "\u202e", "\udcff"))
    assert repo.check("--worktree").change["id"] == staged.change["id"]
    repo.git("commit", "-q", "-m", "x")
    assert repo.check("HEAD").change["files"] == staged.change["files"]


def test_a_bare_repository_that_is_made_of_tracked_files_is_refused(tmp_path: Path) -> None:
    """A commit could bring one, and git finds it before the repository around it."""
    repo = Repo.create(tmp_path)
    folder = repo.path / "svc"
    for name in ("objects/info", "refs/heads", "sub"):
        (folder / name).mkdir(parents=True)
    for name, text in {
        "HEAD": "ref: refs/heads/built\n",
        "objects/info/alternates": "../../.git/objects\n",
        "refs/heads/x": "0" * 40 + "\n",
        "config": "[core]\n\tbare = true\n\trepositoryformatversion = 0\n",
        "sub/a": "1\n",
    }.items():
        (folder / name).write_text(text)
    # Nobody's tracked files: such a folder may lie in a repository.
    assert repo.cli("check", "--ci", cwd=folder).code != 0
    assert open_repository(repo.env, str(folder)).git_dir == str(folder)
    repo.git("add", "-f", "svc")
    for place in (folder, folder / "sub"):
        with pytest.raises(UsageError, match="svc"):
            open_repository(repo.env, str(place))
    assert open_repository({**repo.env, "GIT_DIR": str(folder)}, str(folder)).work_tree is None
