"""What doctor says of the fast path: each fault in one sentence, nothing where nothing can be wrong."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate import __version__
from patchgate.git.repository import open_repository
from patchgate.hooks.doctor import Diagnosis, examine
from patchgate.hooks.fast.cache_files import sealed_policy, stamp, tool
from patchgate.hooks.fast.renewal import renew_all
from patchgate.report.rules import Level
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


def installed(folder: Path) -> Repo:
    """A repository with hooks, and everything that the fast path keeps."""
    repo = Repo.create(folder)
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    assert repo.cli("install").code == 0
    assert renew_all(open_repository(repo.env, str(repo.path))).has_policy
    return repo


def fast(repo: Repo) -> Path:
    return repo.path / ".git" / "patchgate" / "fast"


def copy(repo: Repo) -> Path:
    return fast(repo) / __version__ / "recognise.pyc"


def policy(repo: Repo) -> Path:
    (found,) = (fast(repo) / __version__).glob("*-*")
    return found


def active(repo: Repo, text: str) -> object:
    return (fast(repo) / "active").write_text(text)


def policy_with(repo: Repo, **changed: object) -> object:
    return policy(repo).write_bytes(sealed_policy({"tool": tool(), "stamp": stamp(), **changed}))


def starting(repo: Repo, text: str) -> object:
    """Record an interpreter that is this script."""
    script = repo.path.parent / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return active(repo, f"1 {__version__} {script}\n")


def examined(repo: Repo) -> Diagnosis:
    return examine(open_repository(repo.env, str(repo.path)), repo.env)


COPY_PATH = f"{{fast}}/{__version__}/recognise.pyc"
# What is damaged, and pieces of the warning about it, in their order.
FAULTS: dict[str, tuple[Callable[[Repo], object], tuple[str, ...]]] = {
    "nothing": (lambda repo: shutil.rmtree(fast(repo)), ("{fast}/active", "missing")),
    "no active": (lambda repo: (fast(repo) / "active").unlink(), ("{fast}/active", "missing")),
    "active has no end": (
        lambda repo: active(repo, f"1 {__version__} /x"),
        ("{fast}/active", "damaged"),
    ),
    "active of other shims": (
        lambda repo: active(repo, f"2 {__version__} /x\n"),
        ("{fast}/active", "damaged"),
    ),
    "active leads elsewhere": (
        lambda repo: active(repo, "1 ../../x /bin/sh\n"),
        ("{fast}/active", "damaged"),
    ),
    "another version": (
        lambda repo: active(repo, f"1 0.0.9 {sys.executable}\n"),
        ("patchgate 0.0.9", __version__),
    ),
    "interpreter gone": (
        lambda repo: active(repo, f"1 {__version__} /no/such\x1b[31mpython\n"),
        ("/no/such\\x1b[31mpython", "gone"),
    ),
    "interpreter fails": (lambda repo: starting(repo, "exit 3"), ("{folder}/python", "start")),
    "another Python": (
        lambda repo: starting(repo, "echo 51057136 2b0e0d0a"),
        (COPY_PATH, "another Python", "{folder}/python"),
    ),
    "no copy": (lambda repo: copy(repo).unlink(), (COPY_PATH, "missing")),
    "copy cut short": (
        lambda repo: copy(repo).write_bytes(copy(repo).read_bytes()[:-1]),
        (COPY_PATH, "damaged", f"patchgate {__version__}"),
    ),
}
NOTES: dict[str, tuple[Callable[[Repo], object], str]] = {
    "damaged": (lambda repo: policy(repo).write_bytes(b"12345678"), "damaged"),
    "bound to nothing": (lambda repo: policy_with(repo, tool=()), "damaged"),
    "another version": (
        lambda repo: policy_with(repo, tool=("0.0.9", *tool()[1:])),
        "another",
    ),
    "another Python": (
        lambda repo: policy_with(repo, tool=(*tool()[:2], 1)),
        "another",
    ),
    "upgraded": (
        lambda repo: policy_with(repo, stamp=(*stamp()[:3], stamp()[3] + 1)),
        "another",
    ),
    "removed": (
        lambda repo: policy_with(repo, stamp=("/no/such", *stamp()[1:])),
        "another",
    ),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_keeps_the_fast_path_from_working_is_one_warning_that_fix_mends(
    tmp_path: Path, fault: str
) -> None:
    repo = installed(tmp_path)
    assert examined(repo).findings == ()
    damage, pieces = FAULTS[fault]
    damage(repo)
    diagnosis = examined(repo)
    (found,) = diagnosis.findings
    assert found.level is Level.WARNING
    places = [found.what.find(piece.format(fast=fast(repo), folder=tmp_path)) for piece in pieces]
    assert min(places) >= 0, found.what
    assert places == sorted(places), found.what
    assert (found.remedy, diagnosis.runs) == ("git patchgate doctor --fix", True)
    answer = repo.cli("doctor", "--fix")
    assert answer.out.startswith("fixed: ")
    assert examined(repo).findings == ()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("fault", NOTES)
def test_a_compiled_policy_that_cannot_be_used_is_one_note_that_fix_mends(tmp_path: Path, fault: str) -> None:
    repo = installed(tmp_path)
    damage, word = NOTES[fault]
    damage(repo)
    (found,) = examined(repo).findings
    assert found.level is Level.NOTE
    assert -1 < found.what.find(" HEAD ") < found.what.find(word)
    assert repo.cli("doctor", "--fix").out.startswith("fixed: ")
    assert examined(repo).findings == ()


def test_a_policy_that_two_worktrees_have_is_told_once_and_each_of_two_is_mended(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "../linked", "-b", "side")
    linked = repo.at(tmp_path / "linked")
    policy_with(repo, tool=())
    assert len(examined(repo).findings) == 1
    linked.git("-c", "core.hooksPath=/dev/null", "rm", "-q", "patchgate.toml")
    linked.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "No policy")
    assert renew_all(open_repository(linked.env, str(linked.path))).has_policy
    for place in (fast(repo) / __version__).glob("*-*"):
        place.write_bytes(b"")
    assert [each.level for each in examined(repo).findings if each.is_fixed_by_renewal] == [Level.NOTE] * 2
    repo.cli("doctor", "--fix")
    assert [each for each in examined(repo).findings if each.is_fixed_by_renewal] == []


def test_a_policy_that_is_not_compiled_yet_is_no_finding(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    policy(repo).unlink()
    assert examined(repo).findings == ()


def test_where_no_hook_of_ours_stands_the_fast_path_is_not_spoken_of(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    (repo.path / ".git/hooks/pre-commit").unlink()
    shutil.rmtree(fast(repo))
    assert examined(repo).findings == ()


def test_under_hooks_that_all_repositories_share_the_first_commit_makes_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    repo.git("config", "--global", "core.hooksPath", str(tmp_path / "shared"))
    assert repo.cli("install", "--global").code == 0
    shutil.rmtree(fast(repo))
    assert examined(repo).findings == ()
    fast(repo).mkdir()
    active(repo, "damaged\n")
    assert repo.cli("doctor", "--fix").out.startswith("fixed: ")
    assert examined(repo).findings == ()


def test_json_says_that_fix_may_mend_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    copy(repo).unlink()
    (found,) = repo.cli("doctor", "--format", "json").report["findings"]
    assert (found["level"], found["fixable"], found["events"]) == ("warning", True, ["pre-commit"])
    (fixed,) = repo.cli("doctor", "--fix", "--format", "json").report["fixed"]
    assert fixed.startswith("fixed: ")
    assert repo.cli("doctor", "--format", "json").report["findings"] == []


def test_what_cannot_be_mended_is_told_in_one_line(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    shutil.rmtree(fast(repo))
    fast(repo).write_text("in the way")
    answer = repo.cli("doctor", "--fix")
    assert answer.code == 0
    assert answer.out.startswith("not fixed: ")


def test_a_folder_in_the_way_is_told_and_stays(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    (fast(repo) / "active").unlink()
    (fast(repo) / "active").mkdir()
    answer = repo.cli("doctor", "--fix")
    assert answer.out.startswith("not fixed: ")
    (line,) = (line for line in answer.out.splitlines() if f"warning: {fast(repo)}/active " in line)
    assert "(Is a directory)" in line
    assert (fast(repo) / "active").is_dir()


def test_asking_writes_nothing(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    copy(repo).unlink()
    policy_with(repo, tool=())
    before = {place: os.stat(place).st_mtime_ns for place in fast(repo).rglob("*")}
    examined(repo)
    assert {place: os.stat(place).st_mtime_ns for place in fast(repo).rglob("*")} == before
