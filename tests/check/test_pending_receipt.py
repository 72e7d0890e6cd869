"""The pending receipt: its bytes are those that git's own pinned diff gives, whatever is staged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.check.pending import check_pending, drop_pending, leave_pending, raw_diff
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from tests.world import Repo

NAMES = ["a", "a-b", "a/b", "a/c", "a.d", "b", "sub/deep/x", "sub/deep.x", "é", "with space", "tab\tname"]
STEPS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["text", "exec", "link", "gone", "gitlink"])),
    max_size=8,
)


def stage(repo: Repo, name: str, what: str) -> None:
    """Put one entry into the index; a file may take a folder's place and the other way round."""
    if what == "gone":
        repo.try_git("update-index", "--force-remove", name)
        return
    if what == "gitlink":
        repo.git("update-index", "--add", "--replace", "--cacheinfo", f"160000,{'1' * 40},{name}")
        return
    mode = {"text": "100644", "exec": "100755", "link": "120000"}[what]
    oid = repo.git("hash-object", "-w", "--stdin", stdin=f"{what} of {name}\n".encode()).decode().strip()
    repo.git("update-index", "--add", "--replace", "--cacheinfo", f"{mode},{oid},{name}")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=STEPS, after=STEPS)
def test_the_raw_diff_is_git_s_own_byte_for_byte(
    before: list[tuple[str, str]], after: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    repo = Repo.create(tmp_path_factory.mktemp("world"))
    for name, what in before:
        stage(repo, name, what)
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "before")
    for name, what in after:
        stage(repo, name, what)
    tree = repo.ask("write-tree")
    opened = open_repository(repo.env, str(repo.path))
    (judged,) = check_pending(opened, CheckOptions()).changes
    pinned = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
    assert raw_diff(judged.change, opened.zero_oid) == repo.git("diff-tree", *pinned, "HEAD", tree)


def test_a_pending_receipt_holds_head_branch_and_policy_before_the_diff(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"a": "a\n"})
    opened = open_repository(repo.env, str(repo.path))
    (judged,) = check_pending(opened, CheckOptions()).changes
    warning = leave_pending(
        opened, judged.change, status="accepted", head="0" * 40, branch="refs/heads/main", policy=("-", "-")
    )
    assert warning is None
    with Objects(opened) as objects:
        blob = objects.hash("blob", b"a\n")
    place = repo.path / ".git" / "patchgate-pending"
    lines = place.read_bytes().split(b"\n", 3)
    assert lines[0].startswith(b"patchgate.pending/2 ")
    assert lines[0].endswith(b" accepted " + repo.ask("write-tree").encode())
    assert lines[1:3] == [b"0" * 40 + b" refs/heads/main", b"- -"]
    assert lines[3] == b":000000 100644 " + b"0" * 40 + b" " + blob.encode() + b" A\0a\0"
    drop_pending(opened)
    assert not place.exists()


def test_a_pending_receipt_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"a": "a\n"})
    opened = open_repository(repo.env, str(repo.path))
    (judged,) = check_pending(opened, CheckOptions()).changes
    (repo.path / ".git" / "patchgate-pending").mkdir()
    warning = leave_pending(
        opened, judged.change, status="accepted", head="0" * 40, branch="refs/heads/main", policy=("-", "-")
    )
    assert warning is not None
    assert "judged again" in warning
