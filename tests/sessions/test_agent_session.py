"""An agent's session: refused with a reason, mended by what the reason says, tried, applied, on record."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from patchgate.apply.attempt_records import ResetRecord, record_reset
from patchgate.ledger.ledger import Ledger
from tests.proposals import ABC, change_of
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

ROOT = Path(__file__).parents[2]
POLICY = """\
[policy]
deny_prefixes = ["runs"]

[commands.tests]
kind = "test"
command = ["sh", "tests.sh"]

[apply]
max_attempts = 4
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "runs/record": ABC, "tests.sh": "grep -q '^[Bb]$' f\n"})
    made.policy(POLICY)
    return made


def apply(repo: Repo, patch: bytes, *arguments: str) -> Answer:
    return repo.run("apply", "-", "--format", "json", *arguments, stdin=patch)


def test_a_session_from_a_refusal_to_a_landed_patch(repo: Repo) -> None:
    """B1, B19, B20, B21: each answer holds what the next step needs, and only a whole diff goes on."""
    first = apply(repo, change_of(old=b"bee") + change_of(b"runs/record"))
    assert (first.code, sorted(first.errors)) == (1, ["deny-prefix", "hunk-mismatch"])
    attempt = first.report["attempt"]["id"]
    assert first.report["retry"] == {
        "allowed": True,
        "number": 2,
        "of": 4,
        "command": f"git patchgate apply - --retry-of {attempt}",
        "chain": attempt,
        "reason": None,
    }
    prose = apply(repo, b"I have changed line 2 to B.\n", "--retry-of", attempt)
    assert "retry-not-a-diff" in prose.errors
    second = apply(repo, change_of(new=b"broken"), "--retry-of", prose.report["attempt"]["id"])
    assert second.errors == ["build-failed"]
    again = apply(repo, change_of(new=b"broken"), "--retry-of", second.report["attempt"]["id"])
    assert again.errors == ["retry-identical"]
    assert again.report["retry"]["allowed"] is False
    assert (repo.path / "f").read_text() == ABC
    exhausted = apply(repo, change_of(), "--retry-of", again.report["attempt"]["id"])
    assert exhausted.errors == ["retry-exhausted"]
    assert apply(repo, change_of()).errors == ["retry-exhausted"]
    assert record_reset(Ledger(str(repo.path / ".git")), ResetRecord(attempt, "looked at", "A")) is None
    landed = apply(repo, change_of())
    assert (landed.code, landed.report["attempt"]["applied"]) == (0, True)
    assert (repo.path / "f").read_text() == "a\nB\nc\n"
    with zipfile.ZipFile(Path(second.report["attempt"]["dir"], "failure_bundle.zip")) as bundle:
        assert bundle.read("artifacts/diff.patch") == change_of(new=b"broken")
        assert b"build-failed" in bundle.read("events.jsonl")


@pytest.mark.parametrize(
    "blob",
    [
        b"a\nB\nc\n",
        b"```diff\n" + change_of() + b"```\n",
        b'{"patch": {"edits": [{"path": "f", "start": 2, "end": 2, "new_text": "B\\n"}]}, "summary": "x"}\n',
    ],
)
def test_neither_a_full_file_nor_another_channel_comes_in_by_a_retry(repo: Repo, blob: bytes) -> None:
    """B22."""
    first = apply(repo, change_of(old=b"bee")).report["attempt"]["id"]
    answer = apply(repo, blob, "--retry-of", first)
    assert (answer.code, "retry-not-a-diff" in answer.errors) == (1, True)
    file = repo.path.parent / "edits.json"
    file.write_bytes(
        b'{"patch": {"edits": [{"path": "f", "start": 2, "end": 2, "new_text": "B\\n"}]}, "summary": "x"}'
    )
    edits = repo.run("apply", "--edits", str(file), "--retry-of", first, "--format", "json")
    assert "retry-not-a-diff" in edits.errors
    assert (repo.path / "f").read_text() == ABC


DIRTY = """\
import errno, os, sys
from patchgate.storage.filesystem import FaultPoints
from patchgate.git.repository import open_repository
from patchgate.check.policy_lookup import CheckOptions
from patchgate.apply.apply import apply
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.report.json import render

class Failing(FaultPoints):
    seen = 0
    def reach(self):
        Failing.seen += 1
        if Failing.seen >= int(sys.argv[2]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return False

place = ApplyEnvironment(dict(os.environ), sys.argv[1], faults=Failing())
request = ApplyRequest(sys.stdin.buffer.read(), CheckOptions())
print(render(apply(open_repository(os.environ, os.getcwd()), request, place)))
"""


def test_where_even_the_way_back_fails_the_list_says_what_is_where(repo: Repo) -> None:
    """E16: a partial write is told, path by path, and recover mends it."""
    for step in range(8, 60):
        done = subprocess.run(
            [sys.executable, "-c", DIRTY, str(repo.path.parent / "cache"), str(step)],
            input=change_of(),
            cwd=repo.path,
            env=repo.env,
            capture_output=True,
            check=True,
        )
        report = json.loads(done.stdout)
        rules = [each["rule"] for each in report["changes"][0]["findings"]]
        if rules == ["dirty-workspace"]:
            break
        repo.run("recover")
    (finding,) = report["changes"][0]["findings"]
    assert report["verdict"] == "undecided"
    assert any(place.startswith("f") for place in finding["details"]["paths"])
    assert repo.run("recover").code == 0
    assert (repo.path / "f").read_text() == ABC
    assert repo.git("status", "--porcelain") == b""


SCRIPTED = """\
import pathlib, sys
told = sys.stdin.read()
count = pathlib.Path(sys.argv[1])
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))
(pathlib.Path(sys.argv[1]).parent / f"told-{number}").write_text(told)
print(pathlib.Path(sys.argv[2], str(number)).read_text())
"""


def reply(patch: bytes) -> str:
    subplan = '<param name="subplan">Change line 2</param>'
    return f'<function=repair>{subplan}<param name="patch"><![CDATA[{patch.decode()}]]></param></function>'


def test_the_loop_of_the_examples_brings_an_agents_patch_in(repo: Repo) -> None:
    """B21: from a reply that does not hold, over two refusals, to a landed patch."""
    place = repo.path.parent / "agent"
    place.mkdir()
    replies = [
        "I will change it.",
        reply(change_of(old=b"bee")),
        reply(change_of(new=b"bad")),
        reply(change_of()),
    ]
    for number, text in enumerate(replies):
        (place / str(number)).write_text(text)
    (place / "agent.py").write_text(SCRIPTED)
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "examples/agent_loop.py",
            sys.executable,
            place / "agent.py",
            place / "count",
            place,
        ],
        input=b"Change line 2 of f to B.\n",
        cwd=repo.path,
        env=repo.env,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:8]) == (0, b"landed: "), done.stderr
    assert (repo.path / "f").read_text() == "a\nB\nc\n"
    told = [(place / f"told-{number}").read_text() for number in range(4)]
    assert "<function=" in told[1]
    assert "hunk-mismatch" in told[2]
    assert replies[1] in told[2]  # what was refused goes back with the refusal
    assert "build-failed" in told[3]
