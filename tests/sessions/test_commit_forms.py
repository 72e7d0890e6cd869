"""Every form of `git commit`: the check in its hook sees exactly what is committed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
TEXT = "".join(f"{number}\n" for number in range(40))


class Session:
    """A repository whose pre-commit hook writes the check's report beside it."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo = repo
        self.place = folder / "report.json"
        self.command = f"'{EXECUTABLE}' check --format json > '{self.place}'"

    def install(self, where: str = ".git/hooks") -> None:
        """Write the hook, as a person would."""
        self.repo.write(f"{where}/pre-commit", f"#!/bin/sh\n{self.command}\n", executable=True)

    def commit(self, *arguments: str, cwd: Path | None = None, stdin: bytes = b"") -> Repo:
        """Commit, which must succeed."""
        self.repo.git("commit", "-q", "-m", "Change", *arguments, cwd=cwd, stdin=stdin)
        return self.repo

    def seen(self) -> dict[str, Any]:
        """What the check in the hook said of its only change."""
        (change,) = json.loads(self.place.read_text(encoding="utf-8"))["changes"]
        return dict(change)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A repository with a policy, some files, a hook, and changes that are not staged."""
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.commit({"a": TEXT, "b": "b\n", "dir/c": "c\n", "dir/gone": "x\n"}, "First")
    made = Session(repo, tmp_path)
    made.install()
    repo.write("staged", "s\n")
    repo.git("add", "staged")
    repo.write("a", "first\n" + TEXT + "last\n")
    repo.write("b", "changed\n", executable=True)
    (repo.path / "dir/gone").unlink()
    repo.write("untracked", "u\n")
    return made


def equals_the_commit(session: Session, base: str = "HEAD~1^{tree}", repo: Repo | None = None) -> set[str]:
    """Assert that trees, modes and ids in the hook were those of the commit; give the paths."""
    repo = repo or session.repo
    change = session.seen()
    before = base if base == EMPTY_TREE else repo.ask("rev-parse", base)
    assert change["after"] == repo.ask("rev-parse", "HEAD^{tree}")
    assert change["base"] == before
    fields = repo.git("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", before, "HEAD^{tree}")
    words = fields.split(b"\0")
    digest = hashlib.sha256(b"patchgate.change/1\n")
    modes = {}
    for path, about in sorted(zip(words[1::2], words[0:-1:2], strict=True)):
        old, new, old_oid, new_oid, _ = about.removeprefix(b":").split(b" ")
        digest.update(b"%s\0%s %s %s %s\n" % (path, old, old_oid, new, new_oid))
        modes[path.decode()] = tuple(None if mode == b"000000" else mode.decode() for mode in (old, new))
    assert change["change_id"] == "sha256:" + digest.hexdigest()
    assert {row["path"]: (row["old_mode"], row["new_mode"]) for row in change["files"]} == modes
    if base == "HEAD~1^{tree}":
        assert repo.check("HEAD").change["id"] == change["id"]
    return set(modes)


def test_a_plain_commit(session: Session) -> None:
    session.commit()
    assert equals_the_commit(session) == {"staged"}


def test_a_commit_of_all(session: Session) -> None:
    session.commit("-a")
    assert equals_the_commit(session) == {"staged", "a", "b", "dir/gone"}


def test_a_commit_of_one_path_leaves_out_what_is_staged(session: Session) -> None:
    session.commit("b")
    assert equals_the_commit(session) == {"b"}


def test_a_commit_of_a_deleted_path(session: Session) -> None:
    session.commit("--", "dir/gone")
    assert equals_the_commit(session) == {"dir/gone"}


def test_a_commit_of_a_folder(session: Session) -> None:
    session.repo.write("dir/c", "changed\n")
    session.commit("dir")
    assert equals_the_commit(session) == {"dir/c", "dir/gone"}


def test_a_commit_that_includes_a_path(session: Session) -> None:
    session.commit("-i", "b")
    assert equals_the_commit(session) == {"staged", "b"}


def test_a_commit_of_chosen_hunks(session: Session) -> None:
    session.commit("-p", "a", stdin=b"y\nn\n")
    assert equals_the_commit(session) == {"staged", "a"}
    assert session.repo.ask("show", "HEAD:a").startswith("first\n")
    assert not session.repo.ask("show", "HEAD:a").endswith("last")


def test_an_amended_commit(session: Session) -> None:
    session.commit("--amend")
    # Amending looks like a plain commit to this hook: what it sees is measured from the old commit.
    assert equals_the_commit(session, "HEAD@{1}^{tree}") == {"staged"}


def test_an_amended_commit_of_all(session: Session) -> None:
    session.commit("--amend", "-a")
    assert equals_the_commit(session, "HEAD@{1}^{tree}") == {"staged", "a", "b", "dir/gone"}


def test_an_amended_commit_of_one_path(session: Session) -> None:
    session.commit("--amend", "b")
    assert equals_the_commit(session, "HEAD@{1}^{tree}") == {"b"}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [(), ("-a",), ("gone",), ("-i", "../b"), ("../b",)])
def test_a_commit_from_a_subfolder(session: Session, arguments: tuple[str, ...]) -> None:
    session.commit(*arguments, cwd=session.repo.path / "dir")
    assert equals_the_commit(session)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [(), ("-a",), ("a",), ("-i", "a")])
def test_a_commit_in_a_linked_worktree(session: Session, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    session.repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = session.repo.at(tmp_path / "linked")
    linked.write("a", "linked\n")
    linked.write("new", "n\n")
    linked.git("add", "new")
    linked.git("commit", "-q", "-m", "x", *arguments)
    assert equals_the_commit(session, repo=linked) <= {"a", "new"}


@pytest.mark.parametrize("arguments", [("-a",), ("b",), ()])
def test_a_commit_with_a_split_index(session: Session, arguments: tuple[str, ...]) -> None:
    session.repo.git("config", "core.splitIndex", "true")
    session.repo.git("update-index", "--split-index")
    session.commit(*arguments)
    assert equals_the_commit(session)


@pytest.mark.parametrize("arguments", [(), ("-a",), ("a",)])
def test_the_first_commit(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    session = Session(Repo.create(tmp_path), tmp_path)
    session.install()
    session.repo.stage({"a": "a\n", "b": "b\n"})
    session.repo.write("a", "changed\n")
    session.commit(*arguments)
    assert "a" in equals_the_commit(session, EMPTY_TREE)
    assert session.repo.check("HEAD").change["id"] == session.seen()["id"]


def test_an_empty_commit(session: Session) -> None:
    session.repo.git("reset", "-q")
    session.commit("--allow-empty")
    assert equals_the_commit(session) == set()


def test_a_commit_with_a_git_directory_of_the_environment(session: Session, tmp_path: Path) -> None:
    named = {"GIT_DIR": str(session.repo.path / ".git"), "GIT_WORK_TREE": str(session.repo.path)}
    Repo(tmp_path, session.repo.env | named).git("commit", "-q", "-a", "-m", "x")
    assert equals_the_commit(session) == {"staged", "a", "b", "dir/gone"}


def test_a_commit_with_an_index_of_the_environment(session: Session) -> None:
    other = Repo(session.repo.path, {**session.repo.env, "GIT_INDEX_FILE": ".git/other"})
    other.git("read-tree", "HEAD")
    other.git("add", "b")
    other.git("commit", "-q", "-m", "x", cwd=session.repo.path / "dir")
    assert equals_the_commit(session) == {"b"}


def test_a_conflicted_merge_is_judged_by_what_no_parent_has(session: Session) -> None:
    repo = session.repo
    repo.git("reset", "-q", "--hard")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"a": "side\n", "from-side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "main\n", "from-main": "x\n"})
    assert repo.try_git("merge", "side").returncode == 1
    repo.write("a", "both\n")
    repo.write("evil", "x\n")
    repo.git("add", "-A")
    session.commit()
    seen = session.seen()
    assert seen["source"]["kind"] == "merge"
    assert {row["path"] for row in seen["files"]} == {"a", "evil"}
    assert seen["after"] == repo.ask("rev-parse", "HEAD^{tree}")
    later = repo.check("HEAD").change
    assert (later["id"], later["change_id"], later["files"]) == (
        seen["id"],
        seen["change_id"],
        seen["files"],
    )


def test_a_clean_merge_that_waits_to_be_committed_changes_nothing(session: Session) -> None:
    repo = session.repo
    repo.git("reset", "-q", "--hard")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"runs/log": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"from-main": "x\n"})
    repo.git("merge", "-q", "--no-commit", "side")
    session.commit()
    seen = session.seen()
    assert (seen["source"]["kind"], seen["files"], seen["verdict"]) == ("merge", [], "accepted")
    assert seen["id"] == repo.check("HEAD").change["id"]


@pytest.mark.parametrize("where", ["hooks", ".githooks"])
def test_a_commit_with_hooks_in_another_folder(session: Session, where: str) -> None:
    (session.repo.path / ".git/hooks/pre-commit").unlink()
    session.install(where)
    session.repo.git("config", "core.hooksPath", where)
    session.commit("b")
    assert equals_the_commit(session) == {"b"}


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [((), {"staged"}), (("-a",), {"staged", "a", "b", "dir/gone"}), (("b",), {"b"})],
)
def test_a_commit_under_another_hook_manager(
    session: Session, arguments: tuple[str, ...], paths: set[str]
) -> None:
    config = {
        "repos": [
            {
                "repo": "local",
                "hooks": [
                    {
                        "id": "patchgate",
                        "name": "patchgate",
                        "language": "system",
                        "entry": f"sh -c \"git patchgate check --format json > '{session.place}'\"",
                        "pass_filenames": False,
                        "always_run": True,
                    }
                ],
            }
        ]
    }
    repo = session.repo
    (repo.path / ".git/hooks/pre-commit").unlink()
    repo.git("stash", "-q", "--include-untracked")
    repo.commit({".pre-commit-config.yaml": json.dumps(config)}, "Hooks")
    repo.git("stash", "pop", "-q", "--index")
    subprocess.run(
        [sys.executable, "-m", "pre_commit", "install"],
        cwd=repo.path,
        env=repo.env,
        check=True,
        capture_output=True,
    )
    session.commit(*arguments)
    assert equals_the_commit(session) == paths


def test_a_refusal_in_the_hook_stops_the_commit_and_keeps_everything(session: Session) -> None:
    repo = session.repo
    repo.write(".git/hooks/pre-commit", f"#!/bin/sh\nexec '{EXECUTABLE}' check\n", executable=True)
    repo.write("runs/x", "x\n")
    repo.git("add", "runs/x")
    head, status = repo.head(), repo.git("status", "--porcelain")
    done = repo.try_git("commit", "-m", "x")
    assert done.returncode == 1
    assert b"deny-prefix" in done.stdout + done.stderr
    assert (repo.head(), repo.git("status", "--porcelain")) == (head, status)
