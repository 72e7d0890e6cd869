"""What every failure says of itself, in the JSON and in the ledger; and the numbers that any report gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from patchgate.report.schema import json_schema
from tests.apply.test_apply import apply, attempt_of, command
from tests.proposals import ABC, addition, change_of, moved
from tests.schemas import require_valid
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(2)

NO_LIMITS = """[policy]
max_file_bytes = "off"

[policy.commit]
max_files = "off"
max_added_lines = "off"
deny_classes = []

[policy.agent]
max_files = "off"
max_added_lines = "off"
deny_classes = []

[content]
secrets = false
conflict_markers = false

[placeholders]
level = "off"
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC})
    return made


def last_event(repo: Repo) -> dict[str, Any]:
    told = repo.cli("log", "--kind", "attempted", "--format", "json").out.splitlines()
    events = [json.loads(line) for line in told if line.startswith("{")]
    return dict(events[0] if "attempt" in events[0] else events[0]["events"][0])


def checked(answer: Answer) -> dict[str, Any]:
    require_valid(answer.report, json_schema())
    return answer.report


def test_every_failure_says_why_in_the_json_and_in_its_event(repo: Repo) -> None:
    """E24: also of a check, whose attempt is null; nothing of it where a patch is accepted."""
    repo.policy(command("test", "grep -q b f || exit 3") + '[policy]\ndeny_prefixes = ["sub"]\n')
    counted = {"n_hunks": 1, "added_lines": 1, "removed_lines": 1}
    denied = apply(repo, change_of(b"sub/g"))
    failure = checked(denied)["failure"]
    assert failure.pop("patch_id") == denied.change["stats"]["patch_id"]
    why = {"stage": "policy", "code": "PATCH_POLICY_DENY", "fallback_reason": "deny-prefix"}
    assert failure == {**why, **counted, "temp_path": None}
    failed = apply(repo, change_of(), "--keep-scratch")
    kept = failed.report["attempt"]["temp_path"]
    assert kept is not None
    assert checked(failed)["failure"]["temp_path"] == kept
    event = last_event(repo)
    assert (event["fallback_reason"], event["temp_path"]) == ("build-failed", kept)
    assert (event["n_hunks"], event["patch_id"]) == (1, failed.change["stats"]["patch_id"])
    check = repo.run("check", "--patch", "-", "--format", "json", stdin=change_of(b"sub/g"))
    assert checked(check)["attempt"] is None
    assert check.report["failure"] == {**why, **counted, "temp_path": None} | {
        "patch_id": denied.change["stats"]["patch_id"]
    }
    repo.policy('[commands.test]\nkind = "test"\ncommand = ["./nothing"]\n')
    assert apply(repo, change_of()).report["failure"]["fallback_reason"] == "command-not-started"
    repo.policy("")
    assert checked(apply(repo, change_of()))["failure"] is None
    repo.stage({"sub/h": "x\n" * 3000, "\\x": "y\n"})
    staged = checked(repo.check("--profile", "agent"))
    assert staged["failure"]["fallback_reason"] in {each["rule"] for each in staged["changes"][0]["findings"]}


def test_a_refusal_of_gits_check_has_gits_command_and_its_words(repo: Repo) -> None:
    """B18: the first finding has them, for all of the patch."""
    for patch, arguments, rule in (
        (change_of(old=b"other") + change_of(b"sub/g", old=b"other"), (), "hunk-mismatch"),
        (addition(b"f"), (), "already-exists"),
        (change_of(b"none"), ("--base", "HEAD"), "target-missing"),
    ):
        report = checked(repo.run("check", "--patch", "-", "--format", "json", *arguments, stdin=patch))
        found = [each for each in report["changes"][0]["findings"] if each["stage"] == "git_check"]
        assert found[0]["rule"] == rule
        said = found[0]["details"]["git"]
        assert said["command"].startswith("git -c core.looseCompression=0 apply --cached -p1 ")
        assert said["exit_code"] == 1
        assert any(line.startswith("error: ") for line in said["stderr"])
        assert ["git" in each["details"] for each in found[1:]] == [False] * len(found[1:])


def test_an_error_names_its_attempt(repo: Repo) -> None:
    """E24: where git dies in the middle, and where patchgate itself fails."""
    own = repo.path.parent / "bin"
    own.mkdir()
    script = own / "git"
    real = next(
        place
        for folder in repo.env["PATH"].split(":")
        if (place := Path(folder, "git")).exists() and os.access(place, os.X_OK)
    )
    script.write_text(f'#!/bin/sh\ncase "$*" in *" apply --cached "*) kill -9 $$;; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    answer = apply(repo, change_of(), PATH=f"{own}:{repo.env['PATH']}")
    event = last_event(repo)
    assert (answer.code, answer.report["schema"]) == (3, "patchgate.error/1")
    named = answer.report["attempt"]
    assert (named["applied"], named["fallback_reason"], named["temp_path"]) == (False, "undecided", None)
    assert (event["attempt"], event["fallback_reason"]) == (named["id"], "undecided")
    assert (event["n_hunks"], event["added_lines"], event["removed_lines"]) == (1, 1, 1)
    assert event["patch_id"]
    assert (attempt_of(answer) / "artifacts/diff.patch").read_bytes() == change_of()
    patch = repo.path.parent / "patch"
    patch.write_bytes(change_of())
    # Nothing that a user can do is known to fail so.
    with mock.patch("patchgate.apply.apply.find_duplicate", side_effect=RecursionError):
        told = repo.cli("apply", str(patch))
        document = json.loads(repo.cli("apply", str(patch), "--format", "json").out)
    assert (told.code, "RecursionError" in told.err, "Traceback" in told.err) == (3, True, False)
    assert any(line.startswith("attempt a-") for line in told.err.splitlines())
    event = last_event(repo)
    assert (event["attempt"], event["fallback_reason"]) == (document["attempt"]["id"], "internal")
    assert "interrupted" not in repo.run("attempts", "list").out


def test_lines_and_patch_id_are_given_by_every_source_whatever_the_policy_limits(repo: Repo) -> None:
    repo.policy(NO_LIMITS)
    repo.commit({"moved/old": ABC * 9, "gone": ABC})
    patch = change_of() + moved(b"moved/old", b"moved/new") + addition(b"new/h", b"x y")
    proposed = repo.run("check", "--patch", "-", "--format", "json", stdin=patch)
    wanted = dict(proposed.change["stats"])
    assert (wanted["added_lines"], wanted["removed_lines"]) == (2, 1)

    def same(*arguments: str) -> None:
        change = repo.check(*arguments).changes[-1]
        assert change["stats"] == wanted, arguments
        counts = {row["path"]: (row["added_lines"], row["removed_lines"]) for row in change["files"]}
        assert counts == {"f": (1, 1), "moved/new": (0, 0), "new/h": (1, 0)}

    repo.git("apply", stdin=patch)
    same("--worktree")
    repo.stage()
    same()
    commit = repo.commit()
    repo.commit({"z": "z\n"})
    same(commit)
    same(f"{commit}~2..{commit}")
    told = repo.git("patch-id", "--stable", stdin=repo.git("show", commit)).decode()
    assert told.split() == [wanted["patch_id"], commit]
    everything = repo.check("--all").change
    assert everything["stats"]["patch_id"]
    assert everything["stats"]["added_lines"] == sum(row["added_lines"] for row in everything["files"])
    # A merge has the id of what it does itself, a root that of all it brings.
    repo.git("checkout", "-q", "-b", "side", commit)
    repo.commit({"side": "s\n"})
    repo.git("merge", "-q", "--no-ff", "-m", "Merge", "main")
    assert repo.check("HEAD").change["stats"]["patch_id"] is None
    repo.write("own", "o\n")
    repo.git("add", "own")
    repo.git("commit", "-q", "--amend", "--no-edit")
    own = repo.check("HEAD").change["stats"]
    told = repo.git("patch-id", "--stable", stdin=addition(b"own", b"o")).decode()
    assert (own["files"], told.split()[0]) == (1, own["patch_id"])
    root = repo.ask("rev-list", "--max-parents=0", "HEAD")
    assert repo.check(root).change["stats"]["patch_id"]
