"""The evidence of an apply: nothing secret is shown or kept, and it lies where it harms nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from patchgate.report.schema import json_schema
from tests.proposals import ABC, change_of
from tests.schemas import require_valid
from tests.world import Answer, Repo

SECRET = "s3cr3tvalue"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def policy_with(script: str) -> str:
    """Write a policy with one command, a line of sh."""
    return f'[commands.test]\nkind = "test"\ncommand = {json.dumps(["sh", "-c", script])}\n'


def apply(repo: Repo, patch: bytes, *arguments: str, **env: str) -> Answer:
    return repo.run("apply", "-", *arguments, stdin=patch, cwd=None, **env)


def kept(repo: Repo) -> dict[str, bytes]:
    """Read all evidence but the candidate, which is never masked."""
    files = (repo.path / ".git/patchgate/attempts").rglob("*")
    return {str(file): file.read_bytes() for file in files if file.is_file() and file.name != "diff.patch"}


def status(repo: Repo) -> str:
    return repo.git("status", "--porcelain").decode()


# ---- secrets ---------------------------------------------------------------------------------------------


@pytest.mark.sweep(7)
@pytest.mark.parametrize("form", ["text", "full", "json"])
@pytest.mark.parametrize(
    ("script", "env"),
    [
        (r"printf '\033[1ms3cr\033[0m3tvalue\n'; exit 1", {"MY_TOKEN": SECRET}),
        ("echo $DATABASE_URL; exit 1", {"DATABASE_URL": f"postgres://u:{SECRET}@h/db"}),
        ('echo "${DATABASE_URL#*//}"; exit 1', {"DATABASE_URL": f"postgres://u:{SECRET}@h/db"}),
        (f"echo https://u:{SECRET}@h/x; exit 1", {}),
        (f"exit 1 # {SECRET}", {"MY_TOKEN": SECRET}),
        ("exit 1", {"MY_TOKEN": SECRET}),
    ],
)
def test_a_secret_in_a_commands_output_or_arguments_is_neither_shown_nor_kept(
    repo: Repo, script: str, env: dict[str, str], form: str
) -> None:
    repo.policy(policy_with(script))
    answer = apply(repo, change_of(), "--format", form, **env)
    assert answer.code == 1
    assert SECRET not in answer.out + answer.err
    assert not [name for name, content in kept(repo).items() if SECRET.encode() in content]


@pytest.mark.parametrize("form", ["text", "full", "json"])
def test_a_line_of_a_file_that_is_a_secret_is_not_shown_by_a_finding(repo: Repo, form: str) -> None:
    repo.commit({"f": f"{SECRET}\nb\nc\n"})
    answer = apply(repo, change_of(), "--format", form, MY_TOKEN=SECRET)
    assert answer.code == 1
    assert "hunk-mismatch" in answer.out
    assert SECRET not in answer.out + answer.err
    assert "***" in answer.out
    if form == "json":
        require_valid(answer.report, json_schema())
        (place,) = (Path(answer.report["attempt"]["dir"]) / "artifacts/report.json",)
        assert json.loads(place.read_bytes())["changes"] == answer.report["changes"]


def test_paths_and_ids_stay_though_a_secret_is_like_them(repo: Repo) -> None:
    repo.commit({"folder/g": ABC})
    patch = change_of(b"folder/g", old=b"other")
    answer = apply(repo, patch, "--format", "json", MY_TOKEN="hunk-mismatch", A_TOKEN="folder/g")
    assert answer.errors == ["hunk-mismatch"]
    require_valid(answer.report, json_schema())
    assert answer.findings[0]["path"] == "folder/g"


# ---- where it lies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "refs/heads/run",
        "objects/zz",
        "run",
        "hooks/run",
        "patchgate",
        "patchgate/../run",
        "patchgate/transactions/run",
        "patchgate/attempts/run",
        "patchgate/scratch",
        "patchgate/components",
        "patchgate/contracts/run",
    ],
)
def test_in_gits_own_folders_evidence_lies_in_patchgates_alone(repo: Repo, place: str) -> None:
    before = sorted(os.listdir(repo.path / ".git"))
    (repo.path / ".git/patchgate").mkdir()
    answer = apply(repo, change_of(), "--run-dir", f".git/{place}")
    assert answer.code == 2, answer.out
    assert "git's own folders" in answer.err
    assert sorted({*os.listdir(repo.path / ".git")} - {"patchgate"}) == before
    assert place == "patchgate" or not (repo.path / ".git" / place / "artifacts").exists()
    assert status(repo) == ""


def test_below_patchgates_folder_evidence_may_lie(repo: Repo) -> None:
    (repo.path / ".git/patchgate/runs").mkdir(parents=True)
    assert apply(repo, change_of(), "--run-dir", ".git/patchgate/runs/1").code == 0
    assert (repo.path / ".git/patchgate/runs/1/artifacts/diff.patch").exists()


def test_from_a_linked_working_tree_the_common_folder_counts_too(repo: Repo, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    own = repo.path / ".git/worktrees/linked/run"
    for place in (repo.path / ".git/objects/zz", own, repo.path / ".git/worktrees/linked/patchgate/run"):
        place.parent.mkdir(exist_ok=True)
        assert apply(repo.at(linked), change_of(), "--run-dir", str(place)).code == 2
        assert not place.exists()
    (repo.path / ".git/patchgate").mkdir(exist_ok=True)
    assert apply(repo.at(linked), change_of(), "--run-dir", str(repo.path / ".git/patchgate/run")).code == 0


def test_in_any_working_tree_of_the_repository_evidence_lies_only_where_it_is_ignored(
    repo: Repo, tmp_path: Path
) -> None:
    repo.commit({".gitignore": "evidence/\n"})
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    for here, there in ((repo.path, linked), (linked, repo.path)):
        answer = apply(repo.at(here), change_of(), "--run-dir", str(there / "run"))
        assert (answer.code, "not ignored" in answer.err) == (2, True)
        assert not (there / "run").exists()
        assert apply(repo.at(here), change_of(), "--run-dir", str(there / "evidence")).code == 0
        assert b"evidence" not in repo.git("status", "--porcelain", cwd=there)
    link = tmp_path / "by-a-link"
    link.symlink_to(linked)
    assert apply(repo, change_of(old=b"B"), "--run-dir", str(link / "run")).code == 2


def test_a_main_working_tree_whose_git_folder_lies_elsewhere_counts_too(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, f"--separate-git-dir={tmp_path / 'store'}")
    repo.commit({"f": ABC})
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    repo.git("config", "core.worktree", str(repo.path))
    answer = apply(repo.at(linked), change_of(), "--run-dir", str(repo.path / "run"))
    assert (answer.code, (repo.path / "run").exists()) == (2, False)
    assert apply(repo.at(linked), change_of(), "--run-dir", str(tmp_path / "store/refs/run")).code == 2


def test_a_working_tree_that_is_gone_is_no_hindrance(repo: Repo, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    os.rename(linked, tmp_path / "away")
    assert apply(repo, change_of(), "--run-dir", str(tmp_path / "run")).code == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_of_attempts_that_is_a_symlink_is_not_followed(
    repo: Repo, tmp_path: Path, exists: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if exists:
        elsewhere.mkdir()
    (repo.path / ".git/patchgate").mkdir()
    (repo.path / ".git/patchgate/attempts").symlink_to(elsewhere)
    answer = apply(repo, change_of())
    assert (answer.code, ".git/patchgate/attempts is a symlink" in answer.err) == (3, True)
    assert not exists or os.listdir(elsewhere) == []
    assert (repo.path / "f").read_text() == ABC
