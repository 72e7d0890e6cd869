"""JSON documents against their published schemas, the changelog's table of keys, and what 0.1.0 stored."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.cli.explain import SCHEMAS
from tests.world import Repo

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "corpus" / "stored"
WHEN = 1795437000.0
"""A minute after the stored files were written."""
VERIFIED_REF = "refs/notes/patchgate-verified"

# The files that the stored baseline records and the stored intents name.
FILES = {
    "shaping/interface.json": '{"component_id": "shaping", "version": "1.0.0", "description": "shapes", '
    '"dependencies": [], "external_dependencies": [], "types": [], "functions": [], "invariants": []}\n',
    "shaping/src/a.py": "def f():\n    return 1\n",
    "shaping/tests/test_a.py": "def test_f():\n    assert True\n",
    "notes.txt": "a\nb\nc\n",
    "analysis.json": '{"metrics": [{"path": "notes.txt", "symbol": "", "name": "lines", "value": 3}]}\n',
}
POLICY = """\
[policy]
deny_prefixes = ["runs"]

[components.shaping]
contract = "shaping/interface.json"
implementation = ["shaping/src/"]
tests = ["shaping/tests/"]
test_command = ["true"]

[analyses.lines]
command = ["cat", "analysis.json"]
format = "metrics"
"""
PATCH = b"""\
diff --git a/notes.txt b/notes.txt
--- a/notes.txt
+++ b/notes.txt
@@ -1,3 +1,3 @@
 a
-b
+B
 c
"""
CLAIM = "incomplete_deliverable_placeholder"
# What is a file, and no output of a command.
FILES_ONLY = {"questions", "config", "contract", "baseline"}


def schema_of(name: str) -> dict[str, Any]:
    module, function = next(each[1:] for each in SCHEMAS if each[0] == name)
    schema: dict[str, Any] = getattr(importlib.import_module(f"patchgate.{module}"), function)()
    return schema


def version_of(schema: dict[str, Any]) -> tuple[str, int] | None:
    """Name a document and its version; None for a schema without one."""
    urn = re.fullmatch(r"urn:patchgate:([a-z-]+):([0-9]+)", str(schema.get("$id")))
    const = schema.get("properties", {}).get("schema", {}).get("const")
    if const is not None:
        named = re.fullmatch(r"patchgate\.([a-z-]+)/([0-9]+)", const)
        assert named is not None
        assert urn is None or urn.groups() == named.groups()
        return named[1], int(named[2])
    return None if urn is None else (urn[1], int(urn[2]))


def worked_in(folder: Path) -> Repo:
    """Make a repository with the policy, the files and the baseline that belong to what is stored."""
    repo = Repo.create(folder)
    repo.commit({**FILES, "patchgate.toml": POLICY}, "Begin with a policy")
    repo.commit({".patchgate/baselines/shaping.json": (STORED / "shaping.json").read_bytes()})
    return repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return worked_in(tmp_path)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with the files of its git directory, and the note, that 0.1.0 wrote."""
    repo = worked_in(tmp_path)
    shutil.copytree(STORED / "common", repo.path / ".git" / "patchgate", dirs_exist_ok=True)
    baseline = repo.ask("rev-parse", "HEAD:.patchgate/baselines/shaping.json")
    repo.git("notes", "--ref", VERIFIED_REF, "add", "-F", str(STORED / "note"), baseline)
    monkeypatch.setattr(time, "time", lambda: WHEN)
    return repo


def test_every_output_is_what_its_published_schema_says(repo: Repo) -> None:
    patch, wrong = repo.path.parent / "ok.diff", repo.path.parent / "bad.diff"
    patch.write_bytes(PATCH)
    wrong.write_bytes(PATCH.replace(b"-b", b"-x"))
    reply = repo.path.parent / "reply"
    reply.write_bytes(b'<function=repair>\n<param name="subplan">x</param>\n</function>\n')
    refused = repo.cli("apply", str(wrong), "--format", "json")
    attempt = refused.report["attempt"]["id"]
    repo.cli("run", "start", "shaping", "--phase", "contract")
    answers = [
        ("report", refused),
        ("report", repo.cli("apply", str(patch), "--format", "json")),
        ("report", repo.check("HEAD")),
        ("report", repo.check("HEAD~1..HEAD")),
        ("report", repo.check("--all")),
        ("report", repo.cli("component", "validate", "--all", "--format", "json")),
        ("error", repo.check("no-such-revision")),
        ("attempts", repo.cli("attempts", "list", "--format", "json")),
        ("attempt", repo.cli("attempts", "show", attempt, "--format", "json")),
        ("policy", repo.cli("policy", "show", "--format", "json")),
        ("doctor", repo.cli("doctor", "--format", "json")),
        ("agent-doctor", repo.cli("agent", "doctor", "--format", "json")),
        ("actions", repo.cli("agent", "reply", "--describe", "--format", "json")),
        ("reply", repo.cli("agent", "reply", str(reply), "--format", "json")),
        ("components", repo.cli("component", "list", "--format", "json")),
        ("component-graph", repo.cli("component", "graph", "--format", "json")),
        ("capture", repo.cli("baseline", "capture", "shaping", "--reverify", "--format", "json")),
        ("baselines", repo.cli("baseline", "status", "--format", "json")),
        ("analysis", repo.cli("analyze", "--format", "json")),
        ("intent", repo.cli("intent", "declare", "-m", "Notes", "--allow", "notes.txt", "--format", "json")),
        ("intents", repo.cli("intent", "list", "--format", "json")),
        ("verification", repo.cli("verify", "--format", "json")),
        ("claim", repo.cli("claim", "--reason", CLAIM, "--deliverable", "notes.txt", "--format", "json")),
        ("claim-stats", repo.cli("claim", "stats", "--format", "json")),
        ("runs", repo.cli("run", "list", "--format", "json")),
        ("run", repo.cli("run", "show", "--format", "json")),
        ("answers", repo.cli("run", "answer", "--format", "json")),
        ("run-cost", repo.cli("run", "cost", "--format", "json")),
        ("run-retro", repo.cli("run", "retro", "--format", "json")),
        ("status", repo.cli("status", "--format", "json")),
        ("ledger", repo.cli("log", "--verify", "--format", "json")),
    ]
    for name, answer in answers:
        Draft202012Validator(schema_of(name)).validate(answer.report)
    events = repo.cli("log", "--format", "json").out.splitlines()
    for line in events:
        Draft202012Validator(schema_of("event")).validate(json.loads(line))
    assert len(events) >= 5
    assert {name for name, _ in answers} | {"event"} | FILES_ONLY == {each[0] for each in SCHEMAS}


def test_the_changelog_names_each_document_of_which_keys_changed_and_no_other() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^  \| `patchgate\.([a-z-]+)/([0-9]+)`[^|]*\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE
    )
    named = {(name, int(number)) for name, number, _, _ in rows}
    known = [version_of(schema_of(name)) for name, _, _ in SCHEMAS]
    assert named == {each for each in known if each is not None and each[1] > 1}
    assert len(rows) == len(set(rows)) > 40
    for name, _, old, new in rows:
        written = json.dumps(schema_of(name))
        # The details of a finding are open: their keys are no part of the schema.
        for key in re.findall(r"`([^`/]+)`", new if "details" not in new else ""):
            assert f'"{key.rpartition(".")[2]}"' in written, (name, key)
        assert old != new


def test_the_ledger_of_0_1_0_is_read(stored: Repo) -> None:
    intact = stored.cli("log", "--verify", "--format", "json").report
    assert (intact["is_intact"], intact["events"], intact["head"]["state"]) == (True, 10, "last")
    events = [json.loads(line) for line in stored.cli("log", "--format", "json").out.splitlines()]
    written = (STORED / "common" / "events.jsonl").read_text(encoding="ascii").splitlines()
    for event, line in zip(reversed(events), written, strict=True):
        assert event.items() >= json.loads(line)["event"].items()
    stats = stored.cli("claim", "stats", "--format", "json").report
    assert (stats["adjudications"], stats["outcomes"]["upheld"], stats["corroborated_count"]) == (2, 2, 2)
    assert stats["is_complete"] is True


def test_the_attempts_of_0_1_0_are_listed(stored: Repo) -> None:
    answer = stored.cli("attempts", "list", "--format", "json")
    Draft202012Validator(schema_of("attempts")).validate(answer.report)
    applied, refused = answer.report["attempts"]
    assert (applied["attempt"], applied["state"], applied["retry_of"]) == ("a-c8bb", "applied", "a-133b")
    assert (refused["attempt"], refused["state"], refused["rules"]) == (
        "a-133b",
        "rejected",
        ["hunk-mismatch"],
    )
    assert [each["counts_toward_retries"] for each in (applied, refused)] == [False, True]
    assert refused["worktree"] == "/tmp/patchgate-example"
    shown = stored.cli("attempts", "show", "a-133b", "--format", "json").report
    assert shown["dir"].endswith("/patchgate/attempts/a-133b")
    # Without the ledger, the marker beside the evidence still names the attempt.
    (stored.path / ".git" / "patchgate" / "events.jsonl").unlink()
    (stored.path / ".git" / "patchgate" / "events.jsonl.head").unlink()
    found = stored.cli("attempts", "list", "--format", "json").report["attempts"]
    assert {(each["attempt"], each["worktree"]) for each in found} == {
        ("a-c8bb", "/tmp/patchgate-example"),
        ("a-133b", "/tmp/patchgate-example"),
    }


def test_the_intents_of_0_1_0_are_listed(stored: Repo) -> None:
    answer = stored.cli("intent", "list", "--format", "json")
    Draft202012Validator(schema_of("intents")).validate(answer.report)
    first, second = answer.report["intents"]
    assert (first["id"], first["reason"], first["stored_state"]) == (
        "i-cff661fadd",
        "Shape the notes",
        "active",
    )
    assert (first["allowed"], first["related"]) == (["notes.txt"], ["shaping/tests/"])
    assert (second["id"], second["stored_state"]) == ("i-ff2de3279e", "queued")
    assert (first["owner"]["host"], first["before_digest"]) == ("vm", second["before_digest"])
    assert first["last_seen_at"] == "2026-11-23T12:29:43Z"
    assert answer.report["warnings"] == []


def test_the_baseline_and_the_verification_of_0_1_0_are_read(stored: Repo) -> None:
    answer = stored.cli("baseline", "status", "--format", "json")
    Draft202012Validator(schema_of("baselines")).validate(answer.report)
    (row,) = answer.report["components"]
    assert (row["drifted"], row["findings"]) == (False, [])
    assert (row["verified_at"], row["verified_source"]) == ("2026-11-23T12:29:39Z", "note")
    # What was recorded then is written in the same bytes now.
    unchanged = stored.cli("baseline", "capture", "shaping", "--format", "json").report
    assert [each["result"] for each in unchanged["components"]] == ["unchanged"]
