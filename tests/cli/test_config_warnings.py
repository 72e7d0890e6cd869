"""What cannot be used of the policy: told once by every command that reads it, and it stops none of them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from patchgate.cli.cli import COMMANDS
from tests.world import Answer, Repo

POLICY = """\
[claims]
contradiction_scan_max_files = 5000
contradiction_guard_enabled = "no"

[policy]
deny_prefixes = ["vendor"]

[components.shop]
contract = "shop/interface.json"
tests = ["shop/tests/*.py"]
implementation = ["shop/*.py"]

[analyses.nothing]
command = ["true"]
"""
# Place, key, and the values in the warning: what stands there first, what is used last.
WARNINGS = (
    ("patchgate.toml:2", "claims.contradiction_scan_max_files", ("5000", "1000")),
    ("patchgate.toml:3", "claims.contradiction_guard_enabled", ('"no"', "true")),
)
# Every command that reads a policy, as it reads one.
READERS = {
    "init": ("init", "--show"),
    "check": ("check",),
    "apply": ("apply", "bad.patch"),
    "approve": ("approve", "@staged", "--sign", "--reason", "vendored on purpose"),
    "intent": ("intent", "declare", "-m", "Make the sum right", "--allow", "a.py"),
    "commands": ("commands", "list"),
    "analyze": ("analyze",),
    "verify": ("verify",),
    "fix": ("fix",),
    "claim": ("claim", "--reason", "incomplete_deliverable_placeholder", "--deliverable", "a.py"),
    "component": ("component", "list"),
    "baseline": ("baseline", "status"),
    "explain": ("explain", "--path", "a.py"),
    "doctor": ("doctor",),
    "hook": ("hook", "pre-commit"),
    "policy": ("policy", "show"),
    "run": ("run", "start", "--phase", "contract"),
    "status": ("status",),
}
# The others look at the ledger, at what a command left, or at nothing here.
WITHOUT_POLICY = {
    "log",
    "install",
    "uninstall",
    "recover",
    "attempts",
    "agent",
    "selftest",
    "schema",
    "commands",
}


def warned(answer: Answer) -> list[str]:
    """Give what was told of the policy on standard error."""
    return [line for line in answer.err.splitlines() if " claims." in line]


def read(lines: Iterable[str]) -> tuple[tuple[str, str, tuple[str, str]], ...]:
    """Split warnings as `WARNINGS` has them."""
    found = [line.removeprefix("warning: ").split(": ", 2) for line in lines]
    values = [re.findall(r'\d+|"[^"]*"|\btrue\b(?= is used)', text) for _, _, text in found]
    return tuple(
        (place, key, (each[0], each[-1])) for (place, key, _), each in zip(found, values, strict=True)
    )


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository whose policy has two values that cannot be used, with a change staged."""
    made = Repo.create(tmp_path_factory.mktemp("warnings"))
    made.policy(POLICY)
    made.commit({"a.py": "one = 1\n", "bad.patch": "no patch\n"})
    made.stage({"a.py": "one = 2\n", "vendor/x": "x\n"})
    return made


@pytest.fixture
def repo(origin: Repo, tmp_path: Path) -> Repo:
    """A copy of it, for one test."""
    shutil.copytree(origin.path, tmp_path / "repo")
    return origin.at(tmp_path / "repo")


def test_every_command_is_one_that_reads_a_policy_or_one_that_does_not() -> None:
    assert {name for name, _, _ in COMMANDS} == set(READERS) | WITHOUT_POLICY


@pytest.mark.parametrize("name", READERS)
def test_every_command_tells_once_what_of_the_policy_cannot_be_used(repo: Repo, name: str) -> None:
    """C26: with file, line and key, before the error of a command that ends with one."""
    answer = repo.cli(*READERS[name])
    assert read(warned(answer)) == WARNINGS
    assert all(line.startswith("warning: ") for line in warned(answer))
    assert "Traceback" not in answer.err
    assert not any(f"{place}: {key}" in answer.out for place, key, _ in WARNINGS)


def test_a_document_has_them_among_its_warnings(repo: Repo) -> None:
    for arguments in (("check",), ("apply", "bad.patch")):
        answer = repo.cli(*arguments, "--format", "json")
        assert read(json.loads(answer.out)["warnings"]) == read(warned(answer)) == WARNINGS


def test_a_commit_that_is_judged_in_full_tells_them_once(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    assert repo.install().code == 0
    repo.stage({"a.py": "one = 3\n", "run.sh": "echo\n"})
    repo.git("mv", "-f", "bad.patch", "worse.patch")
    done = repo.try_git("commit", "-m", "Move the patch")
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().count(" claims.contradiction_scan_max_files: ") == 1
    # What is pushed is judged by a command of its own.
    repo.git("init", "-q", "--bare", str(repo.path.parent / "server"))
    pushed = repo.try_git("push", str(repo.path.parent / "server"), "main")
    assert pushed.returncode == 0, pushed.stderr


def test_a_server_tells_them_to_who_pushes(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    server = repo.at(repo.path.parent / "server.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(server.path))
    server.install("--server")
    repo.commit({"a.py": "one = 4\n"})
    done = repo.try_git("push", str(server.path), "main")
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().count("claims.contradiction_scan_max_files: 5000 ") == 1


def test_what_a_staged_change_brings_is_told_too_and_what_it_mends_is_told_no_more(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.stage({"patchgate.toml": POLICY.replace("max_files = 5000", "max_files = 0")})
    told = read(line for line in warned(repo.cli("check")) if "max_files" in line)
    assert [values for _, _, values in told] == [("5000", "1000"), ("0", "1")]
    repo.commit({"patchgate.toml": POLICY.replace("5000", "50").replace('"no"', "true")})
    assert warned(repo.cli("check")) == []


def test_the_policy_that_is_shown_has_the_values_that_are_used(repo: Repo) -> None:
    lines = repo.cli("policy", "show").out.splitlines()
    assert "  claims.contradiction_scan_max_files = 1000  (patchgate.toml:2)" in lines
    assert "  claims.contradiction_guard_enabled = true  (patchgate.toml:3)" in lines
    assert "  claims.contradiction_scan_max_file_bytes = 300000  (default)" in lines
    assert "  placeholders.level = null  (default)" in lines
    assert not any("doubts" in line or "unusable" in line for line in lines)


def test_many_warnings_are_ten_lines_and_a_number_and_nothing_raw_reaches_the_terminal(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.policy('[claims]\nmarkers = ["\\u001b[31m\\u202e", ' + "5, " * 40 + "]\n")
    lines = repo.cli("check").err.splitlines()
    assert len(lines) == 11
    assert lines[-1].startswith("warning: 1 more ")
    assert not any(set("\x1b\u202e") & set(line) for line in lines)
