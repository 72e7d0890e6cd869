"""Both halves of the pending protocol: what pre-commit really leaves, and what the shim makes of it.

The hooks are installed as by a user; only the program that reference-transaction would start is a recorder,
so that a commit which is judged twice shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.hook_world import Recorder
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Some files of each kind, the real hooks, and none of its own config."""
    made = Repo.create(tmp_path)
    made.write("tool", "x\n", executable=True)
    made.link("link", "a")
    made.stage({"a": "1\n", "b": "1\n", "dir/c": "1\n", "gone": "1\n"})
    made.gitlink("module")
    made.git("commit", "-q", "-m", "First")
    made.install()
    return made


def watch(repo: Repo) -> Recorder:
    """Let reference-transaction start a recorder instead of patchgate."""
    recorder = Recorder(repo.path.parent)
    hook = repo.path / ".git/hooks/reference-transaction"
    text = hook.read_text(encoding="utf-8")
    quoted = str(recorder.program).replace("'", "'\\''")
    changed = re.sub(r"^patchgate=.*$", lambda _: f"patchgate='{quoted}'", text, flags=re.MULTILINE)
    assert changed != text
    hook.write_text(changed, encoding="utf-8")
    return recorder


def make_folder_of_file(repo: Repo) -> None:
    repo.git("rm", "-q", "a")
    repo.stage({"a/b": "1\n"})


def intend_to_add(repo: Repo) -> None:
    repo.stage({"a": "3\n"})
    repo.write("later")
    repo.git("add", "-N", "later")


def stage_a_part(repo: Repo) -> None:
    repo.stage({"a": "3\n"})
    repo.write("a", "4\n")


CHANGES: dict[str, Callable[[Repo], object]] = {
    "nothing": lambda repo: None,
    "modified": lambda repo: repo.write("a", "2\n") and repo.git("add", "a"),
    "added": lambda repo: repo.write('dir/ü "quoted"') and repo.write("a.b") and repo.git("add", "-A"),
    "deleted": lambda repo: repo.git("rm", "-q", "gone"),
    "renamed": lambda repo: repo.git("mv", "gone", "dir/gone"),
    "mode": lambda repo: repo.git("update-index", "--chmod=+x", "a"),
    "link to file": lambda repo: repo.git("update-index", "--cacheinfo", f"100644,{blob(repo)},link"),
    "module": lambda repo: repo.git("update-index", "--cacheinfo", f"160000,{'2' * 40},module"),
    "file to folder": make_folder_of_file,
    "intended": intend_to_add,
    "partly staged": stage_a_part,
}


def blob(repo: Repo) -> str:
    return repo.ask("hash-object", "-w", "b")


@pytest.mark.parametrize("name", CHANGES)
def test_a_commit_is_judged_once_and_has_its_receipt(repo: Repo, name: str) -> None:
    recorder = watch(repo)
    CHANGES[name](repo)
    repo.git("commit", "-q", "--allow-empty", "-m", "Change it")
    assert recorder.asked == []
    line = repo.ask("log", "-1", "--format=%H %T %P") + "\n"
    assert (repo.path / ".git/patchgate/receipts").read_text(encoding="ascii") == line


@pytest.mark.parametrize("arguments", [["-a"], ["a"], ["-i", "b"], ["--only", "a"]])
def test_each_form_of_commit_is_judged_once(repo: Repo, arguments: list[str]) -> None:
    recorder = watch(repo)
    repo.write("a", "5\n")
    repo.write("b", "5\n")
    repo.git("commit", "-q", "-m", "Change it", *arguments)
    assert recorder.asked == []


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_the_first_commit_of_all_is_judged_once(tmp_path: Path, object_format: str) -> None:
    repo = Repo.create(tmp_path, f"--object-format={object_format}")
    repo.install()
    recorder = watch(repo)
    for number in range(2):
        repo.stage({"a": f"{number}\n"})
        repo.git("commit", "-q", "-m", "Change it")
    assert recorder.asked == []
    assert (repo.path / ".git/patchgate/receipts").read_text(encoding="ascii").count("\n") == 2


def test_a_commit_under_a_trusted_ref_is_judged_once_and_again_when_that_ref_moves(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repo.install("--trust-ref", "origin/main")
    recorder = watch(repo)
    repo.stage({"a": "6\n"})
    repo.git("commit", "-q", "-m", "Change it")
    assert recorder.asked == []
    repo.stage({"a": "7\n"})
    pending = repo.path / ".git/patchgate-pending"
    repo.run("hook", "pre-commit")
    assert b"\nrefs/remotes/origin/main:patchgate.toml " in pending.read_bytes()
    other = repo.ask("commit-tree", "-m", "x", repo.ask("mktree"))
    repo.git("update-ref", "refs/remotes/origin/main", other)
    repo.git("commit", "-q", "-n", "-m", "Change it")
    assert recorder.asked == ["reference-transaction prepared"]


def test_a_commit_with_no_verify_is_judged_by_the_transaction(repo: Repo) -> None:
    recorder = watch(repo)
    repo.stage({"a": "8\n"})
    repo.git("commit", "-q", "-n", "-m", "Change it")
    assert recorder.asked == ["reference-transaction prepared"]
