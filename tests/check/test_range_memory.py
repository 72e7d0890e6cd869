"""What is remembered of an accepted range: read by the next local check of the same commits alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.check.bulk_check import BulkCheck, check_range
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import Repository, open_repository
from patchgate.report.verdict import Report
from patchgate.report.wording import tally_line, verdict_line
from tests.check.push_world import Local
from tests.world import Repo

pytestmark = pytest.mark.turns(3)
ASKED = CheckOptions(in_bulk=True, remembers=True)
_BAD = b"AKIA" + b"QWERTYUIOPASDFGH\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def _grow(repo: Repo, last: bytes = b"last\n", number: int = 70) -> str:
    """Add so many commits to a file; give the one before them."""
    first = repo.commit({"a": "one\n"})
    lines = []
    for place in range(number):
        text = b"%d\n" % place if place < number - 1 else last
        lines.append(
            b"commit refs/heads/main\ncommitter A <a@example.com> %d +0000" % (1_700_000_000 + place)
        )
        lines.append(b"data 6\nChange" + (b"\nfrom refs/heads/main^0" if place == 0 else b""))
        lines.append(b"M 100644 inline a\ndata %d\n%b" % (len(text), text))
    repo.git("fast-import", "--quiet", stdin=b"\n".join([*lines, b""]))
    return first


def _check(repo: Repo, first: str, asked: CheckOptions = ASKED) -> Report:
    return check_range(open_repository(repo.env, str(repo.path)), f"{first}..main", asked)


def _is_remembered(repo: Repo, first: str, asked: CheckOptions = ASKED) -> bool:
    """Check a range where none can be judged."""

    def refuse(*_: object) -> list[object]:
        raise AssertionError("judged again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BulkCheck, "rest", refuse)
        try:
            _check(repo, first, asked)
        except AssertionError:
            return False
    return True


def test_the_second_check_says_the_same_and_judges_nothing(repo: Repo) -> None:
    first = _grow(repo)
    once = _check(repo, first)
    assert _is_remembered(repo, first)
    again = _check(repo, first)
    assert (verdict_line(again), tally_line(again)) == (verdict_line(once), tally_line(once))


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, remembers=False),
        replace(ASKED, policy_from="main~3"),
        replace(ASKED, fallback="main~3"),
        replace(ASKED, branches=("main~3",)),
    ],
    ids=["as a server, CI and --policy-from ask", "another policy", "another fallback", "another branch"],
)
def test_what_was_asked_otherwise_is_judged(repo: Repo, asked: CheckOptions) -> None:
    first = _grow(repo)
    _check(repo, first)
    assert not _is_remembered(repo, first, asked)


def test_other_commits_are_judged(repo: Repo) -> None:
    first = _grow(repo)
    _check(repo, first)
    assert not _is_remembered(repo, repo.ask("rev-parse", "main~68"))
    repo.git("update-ref", "refs/heads/main", "main~1")
    assert not _is_remembered(repo, first)


def test_a_range_with_a_finding_is_judged_again(repo: Repo) -> None:
    first = _grow(repo, last=_BAD)
    assert _check(repo, first).verdict == "rejected"
    assert not _is_remembered(repo, first)


def test_a_range_with_a_root_commit_is_judged_again(repo: Repo) -> None:
    first = _grow(repo)
    root = repo.ask("commit-tree", "-m", "Root", "main^{tree}")
    repo.git(
        "update-ref",
        "refs/heads/main",
        repo.ask("commit-tree", "-m", "Join", "-p", "main", "-p", root, "main^{tree}"),
    )
    _check(repo, first)
    assert not _is_remembered(repo, first)


def test_a_damaged_memory_is_ignored(repo: Repo) -> None:
    first = _grow(repo)
    _check(repo, first)
    (kept,) = (repo.path / ".git" / "patchgate" / "ranges").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b"70", b"71"))
    assert not _is_remembered(repo, first)


def test_a_clone_that_others_may_write_to_remembers_nothing(repo: Repo) -> None:
    first = _grow(repo)
    opened: Repository = replace(open_repository(repo.env, str(repo.path)), trusts_caches=False)
    check_range(opened, f"{first}..main", ASKED)
    assert not (repo.path / ".git" / "patchgate" / "ranges").exists()


def test_a_push_in_bulk_says_what_it_says_one_by_one_also_the_second_time(tmp_path: Path) -> None:
    local = Local.create(tmp_path)
    first = _grow(local)
    line = f"refs/heads/main {local.head()} refs/heads/main {first}\n".encode("ascii")
    from patchgate.hooks.pre_push import judge_push

    opened = open_repository(local.env, str(local.path))
    said = [
        (report.verdict, report.n_judged, report.warnings)
        for in_bulk in (False, True, True)
        for report in [judge_push(opened, "file:///nowhere", "file:///nowhere", line, in_bulk=in_bulk)]
    ]
    assert said[0] == said[1] == said[2]
    assert said[0][1] == 70
