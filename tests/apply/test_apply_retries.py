"""Retries of one chain at the same time, changes that come in another dress, patches of many files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.apply.apply import apply as apply_here
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.apply.attempt_records import AttemptRecord, find, record
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.git.transaction import FileContent, Write, write_files
from patchgate.ledger.ledger import Ledger
from patchgate.report.verdict import Report, Verdict
from patchgate.storage.filesystem import FaultPoints
from tests.apply.test_apply import apply, command, status
from tests.proposals import ABC, PERMISSIVE, addition, change_of, deletion, moved
from tests.world import EXECUTABLE, Answer, Repo

pytestmark = pytest.mark.turns(3)

TWO = "[apply]\nmax_attempts = 2\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def refused(repo: Repo, patch: bytes, *arguments: str) -> str:
    """Apply a patch that is refused, and give the attempt's id."""
    answer = apply(repo, patch, *arguments)
    assert (answer.code, answer.verdict) == (1, "rejected")
    return str(answer.report["attempt"]["id"])


def beside(repo: Repo, patch: bytes, also: str) -> str:
    """Write a test command that refuses `bad`, and once sends another retry of the attempt $FIRST itself."""
    other = repo.path.parent / "other.diff"
    other.write_bytes(patch)
    mark = repo.path.parent / "mark"
    act = f"{EXECUTABLE} apply {other} --retry-of $FIRST >{repo.path.parent}/told 2>&1"
    script = f'here=$PWD; if [ -n "$FIRST" ] && [ ! -e {mark} ]; then : >{mark}; cd {repo.path}; {act}; fi; '
    return command("test", script + f"cd $here; ! grep -q bad f; {also}", scope="files")


def ran(repo: Repo) -> str:
    return (repo.path.parent / "told").read_text()


def test_a_good_retry_does_not_land_once_others_have_used_up_the_chain(repo: Repo) -> None:
    repo.policy(TWO + beside(repo, change_of(new=b"bad 2"), "! grep -q bad f"))
    first = refused(repo, change_of(new=b"bad"))
    late = apply(repo, change_of(), "--retry-of", first, FIRST=first)
    assert "build-failed" in ran(repo)
    assert (late.code, late.errors, late.report["attempt"]["applied"]) == (1, ["retry-exhausted"], False)
    assert late.findings[0]["details"]["actual"] == 2
    assert not late.report["retry"]["allowed"]
    assert status(repo) == ""


def test_a_bad_retry_that_others_overtook_says_that_the_chain_is_used_up(repo: Repo) -> None:
    repo.policy(TWO + beside(repo, change_of(new=b"bad 2"), "! grep -q bad f"))
    first = refused(repo, change_of(new=b"bad"))
    late = apply(repo, change_of(new=b"bad 3"), "--retry-of", first, FIRST=first)
    assert late.errors == ["retry-exhausted", "build-failed"]
    assert (late.report["retry"]["allowed"], late.report["retry"]["number"]) == (False, 2)


def test_two_retries_of_one_attempt_do_not_both_land(repo: Repo) -> None:
    repo.policy(beside(repo, change_of(b"sub/g"), "! grep -qs bad f"))
    first = refused(repo, change_of(new=b"bad"))
    late = apply(repo, change_of(), "--retry-of", first, FIRST=first)
    assert "accepted" in ran(repo)
    assert (late.code, late.errors) == (3, ["concurrent-change"])
    assert "same chain" in late.findings[0]["message"]
    assert status(repo) == " M sub/g\n"


def test_a_refusal_beside_an_attempt_that_landed_offers_no_retry(repo: Repo) -> None:
    repo.policy(beside(repo, change_of(b"sub/g"), "! grep -qs bad f"))
    first = refused(repo, change_of(new=b"bad"))
    late = apply(repo, change_of(new=b"bad 2"), "--retry-of", first, FIRST=first)
    assert "accepted" in ran(repo)
    assert (late.code, late.errors, late.report["retry"]) == (1, ["build-failed"], None)
    assert any("meanwhile" in warning for warning in late.report["warnings"])


class Meanwhile(FaultPoints):
    """Somebody does something before the landing's first step."""

    def __init__(self, act: object) -> None:
        self._act = act

    def reach(self) -> bool:
        act, self._act = self._act, None
        if callable(act):
            act()
        return False


def here(repo: Repo) -> tuple[Repository, ApplyEnvironment]:
    """Give what an apply in this process needs."""
    return open_repository(repo.env, str(repo.path)), ApplyEnvironment(
        repo.env, str(repo.path.parent / "cache")
    )


def attempt_id(report: Report) -> str:
    assert report.attempt is not None
    return report.attempt.id


def test_a_landing_that_the_ledger_does_not_know_yet_counts_too(repo: Repo) -> None:
    repository, place = here(repo)
    first = attempt_id(apply_here(repository, ApplyRequest(change_of(old=b"no"), CheckOptions()), place))

    def other_lands() -> None:
        write = Write(RepoPath.from_git(b"h"), None, FileContent("100644", b"x\n"))
        write_files(repository, [write], note={"chain": first, "attempt": "a-ffff"})

    report = apply_here(
        repository,
        ApplyRequest(change_of(), CheckOptions(), retry_of=first),
        replace(place, faults=Meanwhile(other_lands)),
    )
    assert report.verdict is Verdict.UNDECIDED
    assert [each.rule for each in report.changes[0].findings] == ["concurrent-change"]
    assert "a-ffff" in report.changes[0].findings[0].message
    assert (repo.path / "f").read_text() == ABC
    assert (repo.path / "h").exists()


def test_a_retry_is_asked_about_before_its_commands_run(repo: Repo) -> None:
    """A retry that waited while others used the chain up does not run the tests."""
    witness = repo.path.parent / "witness"
    repo.policy("[apply]\nmax_attempts = 1\n" + command("test", f": >>{witness}"))
    repository, place = here(repo)
    ledger = Ledger(repository.common_dir)
    first = attempt_id(apply_here(repository, ApplyRequest(change_of(old=b"no"), CheckOptions()), place))
    known = find(ledger, first)
    assert isinstance(known, AttemptRecord)
    assert record(ledger, replace(known, attempt="a-fffe")) is None
    report = apply_here(repository, ApplyRequest(change_of(), CheckOptions(), retry_of=first), place)
    assert [each.rule for each in report.changes[0].findings] == ["retry-exhausted"]
    assert not witness.exists()


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "written",
    [
        change_of(),
        b"\n" + change_of(),
        change_of().replace(b"--- a/f", b"index 1234567..89abcde 100644\n--- a/f"),
        change_of().replace(b"1,3 @@", b"1,3 @@ some section"),
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\n-b\n+a\n+B\n c\n",
    ],
)
def test_the_very_change_in_another_dress_is_not_tried_again(repo: Repo, written: bytes) -> None:
    flag = repo.path.parent / "flag"
    repo.policy(command("test", f"[ -e {flag} ] || {{ : >{flag}; exit 1; }}"))
    first = refused(repo, change_of())
    again = apply(repo, written, "--retry-of", first)
    assert (again.code, again.errors) == (1, ["retry-identical"])
    assert status(repo) == ""
    assert apply(repo, change_of(new=b"C"), "--retry-of", first).code == 0


def test_a_blank_line_does_not_make_a_refused_change_another(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = ["sub"]\n')
    first = refused(repo, change_of(b"sub/g"))
    assert apply(repo, b"\n" + change_of(b"sub/g"), "--retry-of", first).errors[:1] == ["retry-identical"]


def many() -> bytes:
    """Write a patch whose list of files is longer than one record may be."""
    above = "/".join(letter * 220 for letter in "abcd").encode()
    return b"".join(addition(b"%b/%d" % (above, number)) for number in range(1_300))


def test_a_patch_of_very_many_files_lands_and_is_on_record(repo: Repo) -> None:
    repo.policy(PERMISSIVE)
    answer = apply(repo, many())
    assert (answer.code, answer.report["attempt"]["applied"], answer.report["warnings"]) == (0, True, [])
    made = find(Ledger(str(repo.path / ".git")), answer.report["attempt"]["id"])
    assert made is not None
    assert len(made.files) == 1_300
    assert apply(repo, many()).errors == ["duplicate-patch"]


def test_recovery_records_such_a_patch_without_its_files(repo: Repo) -> None:
    repo.policy(PERMISSIVE + command("test", 'rm -f "$LEDGER"; mkdir "$LEDGER"', scope="files"))
    place = repo.path / ".git/patchgate/events.jsonl"
    answer = apply(repo, many(), LEDGER=str(place))
    assert (answer.code, answer.report["attempt"]["applied"]) == (0, True)
    place.rmdir()
    assert "now recorded" in repo.run("recover").out
    made = find(Ledger(str(repo.path / ".git")), answer.report["attempt"]["id"])
    assert made is not None
    assert (made.applied, made.files, made.patch_id) == (True, (), None)
    assert apply(repo, many()).errors == ["duplicate-patch"]


def again_fine(repo: Repo, patch: bytes) -> Answer:
    return apply(repo, patch, "--if-applied", "ok")


def test_what_is_there_already_is_fine_only_while_the_policy_allows_it(repo: Repo) -> None:
    assert apply(repo, change_of(b"sub/g")).code == 0
    assert again_fine(repo, change_of(b"sub/g")).code == 0
    repo.write("patchgate.toml", '[policy]\ndeny_prefixes = ["sub"]\n')
    repo.git("add", "patchgate.toml")
    repo.git("commit", "-q", "-m", "Set the policy")
    denied = again_fine(repo, change_of(b"sub/g"))
    assert (denied.code, denied.verdict, denied.errors) == (1, "rejected", ["deny-prefix"])
    assert "duplicate-patch" in denied.rules
    assert apply(repo, change_of(b"sub/g")).errors == ["duplicate-patch"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "patch",
    [
        change_of(),
        addition(b"new/h"),
        deletion(b"one"),
        moved(b"one", b"two"),
        change_of() + deletion(b"one"),
    ],
)
def test_whatever_a_patch_does_it_is_fine_when_it_is_there(repo: Repo, patch: bytes) -> None:
    repo.commit({"one": "x\n"})
    assert apply(repo, patch).code == 0
    again = again_fine(repo, patch)
    assert (again.code, again.errors, again.report["attempt"]["applied"]) == (0, [], False)
