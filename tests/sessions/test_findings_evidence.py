"""What a policy's command prints: no control of it reaches evidence or terminal, named secrets are masked."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from tests.proposals import ABC, change_of
from tests.world import Answer, Repo

SECRETS = ("hunter2-in-the-open", "hunter2-in-json", "hunter2-behind-an-option", "hunter2-at-the-border")
# A title (OSC), a colour, a C1 control, a control for the direction of text, CR, backspace, NUL, no UTF-8.
PRINTED = (
    b"\x1b]0;owned\x07\x1b[31mred\x1b[0m \xc2\x9b2J \xe2\x80\xae \r over \b\x00 \xff\ttab caf\xc3\xa9\n"
    b"password=hunter2-in-the-open\n"
    b'{"api_key": "hunter2-in-json"}\n'
    b"curl --token hunter2-behind-an-option https://h\n"
    + b"x"
    * 65_520
    + b" DB_PASSWORD=hunter2-at-the-border\n"
    b"\x1b]0;owned again\x1b\\\xc2\x9d0;and again\xc2\x9c\n"
    b"self.token = next(tokens)\n"
    b"PGPASSWORD=hunter2-in-the-open\n"
)
CONTROLS = (b"\x1b", b"\xc2\x9b", b"\xc2\x9d", b"\xe2\x80\xae", b"\x08", b"\x00", b"\xff", b"\x07")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def tried(repo: Repo, tmp_path: Path, kind: str, end: str, *arguments: str) -> Answer:
    """Apply a patch under a policy whose command prints all of it and ends so."""
    printed = tmp_path / "printed"
    printed.write_bytes(PRINTED)
    script = f"cat '{printed}'; {end} # --password {SECRETS[2]}"
    command = json.dumps(["sh", "-c", script, "sh", "--secret", SECRETS[0]])
    repo.policy(f'[commands.{kind}]\nkind = "{kind}"\ncommand = {command}\n')
    return repo.run("apply", "-", *arguments, stdin=change_of(), cwd=None)


def written(repo: Repo) -> dict[str, bytes]:
    """Read all that patchgate wrote, also what is in archives, but the candidate and copies of the policy."""
    found: dict[str, bytes] = {}
    for file in (repo.path / ".git/patchgate").rglob("*"):
        if file.is_file() and file.name != "diff.patch" and file.parent.name != "policies":
            found[file.name] = content = file.read_bytes()
            if file.suffix == ".zip":
                with zipfile.ZipFile(io.BytesIO(content)) as archived:
                    found |= {
                        f"zip:{name}": archived.read(name)
                        for name in archived.namelist()
                        if not name.endswith("diff.patch")
                    }
    return found


@pytest.mark.parametrize("form", ["text", "full", "json"])
@pytest.mark.parametrize(
    ("kind", "end", "code"), [("test", "exit 0", 0), ("test", "exit 1", 1), ("lint", "exit 1", 1)]
)
def test_no_secret_and_no_control_of_a_command_is_written_or_shown(
    repo: Repo, tmp_path: Path, kind: str, end: str, code: int, form: str
) -> None:
    answer = tried(repo, tmp_path, kind, end, "--format", form)
    assert answer.code == code, answer.out + answer.err
    everything = written(repo) | {"terminal": (answer.out + answer.err).encode("utf-8", "surrogateescape")}
    assert {f"{kind}.log", "report.json", "review_patch.md", "feedback.md", "events.jsonl"} <= set(everything)
    assert ("zip:events.jsonl" in everything) == (code == 1)
    for name, content in everything.items():
        assert not [each for each in SECRETS if each.encode() in content], name
        if not name.endswith(".zip"):
            assert not [each for each in CONTROLS if each in content], name
    log = everything[f"{kind}.log"].decode()
    assert log.startswith(
        "\\x1b]0;owned\\x07\\x1b[31mred\\x1b[0m \\x9b2J \\u202e \\x0d over \\x08\\x00 \\xff\ttab café\n"
    )
    assert "password=***\n" in log
    assert '{"api_key": "***"}\n' in log
    assert "--token *** https://h\n" in log
    assert " DB_PASSWORD=***\n" in log
    assert "self.token = next(tokens)\n" in log
    if code:
        assert everything[f"zip:logs/{kind}.log"] == everything[f"{kind}.log"]
        for name in ("review_patch.md", "feedback.md", "report.json"):
            assert b"PGPASSWORD=***" in everything[name], name
        assert b"self.token = next(tokens)" in everything["report.json"]


def test_the_candidate_is_kept_byte_for_byte_and_what_is_shown_of_it_is_masked(repo: Repo) -> None:
    repo.commit({"f": "a\npassword=hunter2-in-the-open\nc\n"})
    patch = change_of()
    answer = repo.run("apply", "-", "--format", "json", stdin=patch, cwd=None)
    assert answer.errors == ["hunk-mismatch"]
    (place,) = (Path(answer.report["attempt"]["dir"]),)
    assert (place / "artifacts/diff.patch").read_bytes() == patch
    assert not [name for name, content in written(repo).items() if SECRETS[0].encode() in content]
    assert SECRETS[0] not in answer.out + answer.err
    assert "password=***" in answer.out


def test_the_messages_of_an_analysis_are_masked_where_they_are_kept_and_shown(repo: Repo) -> None:
    told = {"ruleId": "B105", "message": {"text": f"Possible password: '{SECRETS[0]}' \x1b]0;owned\x07"}}
    report = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "told"}}, "results": [told]}]}
    repo.policy(
        '[analyses.told]\nformat = "sarif"\n'
        f"command = {json.dumps(['sh', '-c', f'echo token={SECRETS[1]} >&2; cat told.sarif'])}\n"
    )
    repo.stage({"told.sarif": json.dumps(report)})
    for form in ("text", "json", "sarif"):
        answer = repo.cli("analyze", "--format", form)
        assert "B105" in answer.out, answer.err
        assert "Possible password: '***'" in answer.out
        assert not [each for each in (*SECRETS, "\x1b") if each in answer.out + answer.err]
    assert not [name for name, content in written(repo).items() if b"hunter2" in content]


def test_a_reason_with_a_secret_is_recorded_without_it(repo: Repo) -> None:
    ledger = Ledger(str(repo.path / ".git"))
    reason = "the server was down, try password=hunter2-in-the-open"
    assert ledger.record("skipped", {"hook": "pre-commit", "reason": reason}) is None
    assert [each.about["reason"] for each in ledger.events()] == ["the server was down, try password=***"]


def test_a_log_has_no_control_and_no_secret_while_the_command_still_runs(repo: Repo, tmp_path: Path) -> None:
    """A kill of patchgate leaves what was logged so far, so the command itself looks into its log."""
    seen = tmp_path / "seen"
    logs = repo.path / ".git/patchgate/attempts"
    script = (
        f"printf '\\033]0;owned\\007password=hunter2-in-the-open\\n'; i=0; "
        f"while [ $i -lt 100000 ]; do i=$((i+1)); cat '{logs}'/*/logs/test.log >'{seen}'; "
        f"[ -s '{seen}' ] && exit 0; done; exit 1"
    )
    repo.policy(f'[commands.test]\nkind = "test"\ncommand = {json.dumps(["sh", "-c", script])}\n')
    answer = repo.run("apply", "-", stdin=change_of(), cwd=None)
    assert answer.code == 0, answer.out + answer.err
    assert seen.read_bytes() == b"\\x1b]0;owned\\x07password=***\n"
