"""No input keeps a door busy, and none ends in a traceback: deep paths, slow expressions, at each door."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchgate.git import diff
from patchgate.process import cpu_limit
from tests.proposals import addition
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

POLICY = "[policy]\ndeny_prefixes = ['runs']\ndeny = ['a/**/b/**/c']\n[policy.agent]\nmax_files = 'off'\n"
# Each way to split the text is tried: no repeat within a repeat, so the policy is read.
SLOW = "[policy]\n[content]\ndeny = [\n  'x',\n  '(a|a)*$',\n]\n"
NAMED = "content.deny[1] ((a|a)*$, patchgate.toml:5) takes too long"
LONG_LINE = "a" * 3000 + "b\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder that is removed by a program: pytest gives up where a thousand folders are nested."""
    yield tmp_path / "deep"
    subprocess.run(["rm", "-rf", tmp_path / "deep"], check=True)


def deep(above: bytes = b"") -> bytes:
    """Name a file below 1,000 folders."""
    return above + b"d/" * 1000 + b"f"


def nest(repo: Repo, path: bytes) -> str:
    """Commit a file with this name without touching the working tree or the branch."""
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"x\n").strip()
    repo.git("update-index", "--index-info", stdin=b"100644 %b\t%b\n" % (blob, path))
    tree = repo.ask("write-tree").strip()
    return repo.ask("commit-tree", tree, "-p", "HEAD", "-m", "Add a file").strip()


def served(repo: Repo, folder: Path) -> Repo:
    """Make the repository's server, which has its branch and judges what is pushed."""
    repo.git("init", "-q", "--bare", "-b", "main", str(folder / "server"))
    server = Repo(folder / "server", repo.env)
    repo.git("remote", "add", "origin", str(server.path))
    repo.git("push", "-q", "origin", "main")
    assert server.install("--server").code == 0
    return server


def at_each_door(repo: Repo, path: bytes) -> dict[str, Answer]:
    """Judge a new file as a patch, as edits, staged, as a commit, as a range."""
    folder = repo.path.parent
    patch, edits = folder / "patch", folder / "edits"
    patch.write_bytes(addition(path))
    one = {"path": path.decode(), "start": 1, "end": 0, "new_text": "x\n"}
    edits.write_text(json.dumps({"patch": {"edits": [one]}}))
    commit = nest(repo, path)
    return {
        "staged": repo.check(),
        "commit": repo.check(commit),
        "range": repo.check(f"HEAD..{commit}"),
        "policy-from": repo.check("--policy-from", "HEAD", f"HEAD..{commit}"),
        "patch": repo.check("--patch", str(patch)),
        "patch on a commit": repo.check("--base", "HEAD", "--patch", str(patch)),
        "edits": repo.check("--edits", str(edits)),
    }


@pytest.mark.parametrize(("path", "verdict"), [(deep(), "accepted"), (deep(b"runs/"), "rejected")])
def test_a_path_of_1000_folders_is_judged_at_each_door(folder: Path, path: bytes, verdict: str) -> None:
    repo = Repo.create(folder)
    repo.policy(POLICY)
    answers = at_each_door(repo, path)
    assert {door: answer.verdict for door, answer in answers.items()} == dict.fromkeys(answers, verdict)


def test_a_path_of_1000_folders_that_collides_is_refused_at_each_door(folder: Path) -> None:
    repo = Repo.create(folder)
    repo.policy(POLICY)
    nest(repo, b"d/" * 1000 + b"F")
    repo.git("commit", "-q", "-m", "Add a file")
    answers = at_each_door(repo, deep())
    for door, answer in answers.items():
        assert answer.errors == ["path-collision"], door


def test_a_path_of_1000_folders_is_applied_committed_and_pushed(folder: Path) -> None:
    repo = Repo.create(folder)
    repo.policy(POLICY)
    served(repo, folder)
    (folder / "patch").write_bytes(addition(deep()))
    applied = repo.cli("apply", str(folder / "patch"))
    assert applied.code == 0, applied
    assert repo.install().code == 0
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "Add a file")
    repo.git("push", "-q", "origin", "main")
    assert repo.ask("rev-parse", "origin/main") == repo.head()


@pytest.mark.parametrize("folders", [5_000, 20_000])
def test_a_patch_with_a_path_of_thousands_of_folders_is_refused_by_its_rule(
    tmp_path: Path, folders: int
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    path = b"/".join([b"d"] * folders)
    (tmp_path / "patch").write_bytes(addition(path))
    one = {"path": path.decode(), "start": 1, "end": 0, "new_text": "x\n"}
    (tmp_path / "edits").write_text(json.dumps({"patch": {"edits": [one]}}))
    assert repo.check("--patch", str(tmp_path / "patch")).rules == ["path-too-long"]
    assert repo.check("--edits", str(tmp_path / "edits")).rules == ["path-too-long"]


def test_a_slow_expression_makes_each_door_undecided_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(SLOW)
    repo.stage({"f": LONG_LINE})
    commit = repo.ask("commit-tree", repo.ask("write-tree").strip(), "-p", "HEAD", "-m", "Add").strip()
    (tmp_path / "patch").write_bytes(addition(b"f", LONG_LINE.encode().strip()))
    monkeypatch.setattr(cpu_limit, "LOCAL_SECONDS", 0.05)
    for arguments in (
        (),
        (commit,),
        (f"HEAD..{commit}",),
        ("--policy-from", "HEAD", f"HEAD..{commit}"),
        ("--base", "HEAD", "--patch", str(tmp_path / "patch")),
    ):
        answer = repo.check(*arguments)
        assert (answer.code, answer.error["kind"]) == (3, "undecided"), arguments
        assert NAMED in answer.error["message"], arguments
    text = repo.cli("hook", "pre-commit")
    assert (text.code, text.err.count(NAMED)) == (3, 1)
    # The way out: the policy is repaired in a commit of its own.
    repo.git("reset", "-q", "--hard")
    repo.stage({"patchgate.toml": "[policy]\n"})
    assert repo.check().code == 0


def test_a_push_with_a_slow_expression_is_undecided_after_two_seconds(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(SLOW)
    served(repo, tmp_path)
    before = repo.head()
    repo.commit({"f": LONG_LINE})
    pushed = repo.try_git("push", "origin", "main")
    assert pushed.returncode != 0
    assert f"{NAMED}: ".encode() in pushed.stderr
    assert b" 2 s " in pushed.stderr
    assert repo.ask("rev-parse", "origin/main") == before


@pytest.mark.parametrize("expression", ["((a{1,1000}){1,1000}){1,1000}", "(a+)+$", r"(a)\\1", "(" * 249])
def test_an_expression_that_may_take_exponential_time_is_an_error_of_the_policy(
    tmp_path: Path, expression: str
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    repo.stage({"patchgate.toml": f'[content]\ndeny = ["{expression}"]\n'})
    answer = repo.check()
    assert answer.errors == ["policy-invalid"]


def test_a_change_of_more_files_than_can_be_read_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    repo.commit({f"many/{number}": "x\n" for number in range(40)})
    assert repo.check("HEAD").verdict == "accepted"
    monkeypatch.setattr(diff, "MOST_RECORDS", 40)
    for arguments in (("HEAD",), ("HEAD~1..HEAD",), ("--policy-from", "HEAD~1", "HEAD~1..HEAD")):
        answer = repo.check(*arguments)
        assert answer.code == 3
        assert "more than 40 " in answer.out
    repo.git("reset", "-q", "--soft", "HEAD~1")
    monkeypatch.setattr(diff, "MOST_RECORDS", 39)
    assert repo.check().code == 3


def test_no_timer_of_pre_receive_outlives_an_error(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert repo.cli("hook", "pre-receive", cwd=tmp_path).code != 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
