"""The report as GitHub's workflow commands and as GitLab's code quality."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from patchgate.git.quoting import LOG_COMMANDS, without_log_commands
from patchgate.report.ci_formats import github, gitlab
from patchgate.report.rules import Level
from patchgate.report.verdict import Report
from tests.report.verdict_reports import BLIND, COMMIT, HOSTILE, commits, finding, hostile, judged, report

COMMAND = re.compile(r"::(?P<name>[a-z]+)(?: (?P<properties>[^:]*))?::(?P<text>.*)")


def decode(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as GitHub's runner does: split at `,` and the first `=`, then unescape."""
    found = COMMAND.fullmatch(line)
    assert found, line
    properties = dict(each.split("=", 1) for each in (found["properties"] or "").split(","))
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        properties = {key: value.replace(escape, character) for key, value in properties.items()}
    text = found["text"].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
    return found["name"], properties, text


def read_gitlab(given: Report) -> Any:
    text = gitlab(given)
    assert text.isascii()
    issues = json.loads(text)
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] >= 1
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    return issues


def test_github_gets_a_command_for_each_finding_and_the_count_at_the_end() -> None:
    text = github(
        report(
            finding(),
            finding("secret", "src/b.py", 12, message="looks like a token, 100%", hint=None),
            finding("max-files", None, level=Level.WARNING, hint=None),
            finding("lock-without-manifest", "uv.lock", level=Level.NOTE, hint=None),
            finding("deny-content", "src/c.py", 9, side="old"),
        )
    )
    assert text == (
        "::error title=deny-prefix,file=runs/x::runs/ is denied%0Ahelp: leave it unchanged\n"
        "::error title=secret,file=src/b.py,line=12::looks like a token, 100%25%0Ahelp: remove it, "
        "revoke it if it was ever real, and read it from the environment or a secret store\n"
        "::warning title=max-files::runs/ is denied\n"
        "::notice title=lock-without-manifest,file=uv.lock::runs/ is denied\n"
        "::error title=deny-content,file=src/c.py::runs/ is denied%0Ahelp: leave it unchanged\n"
        "rejected: 3 errors, 1 warning, 1 note in 3 files (policy HEAD:patchgate.toml)\n"
    )


def test_github_escapes_what_separates_properties() -> None:
    text = github(report(finding(name="a:b,line=9%0A")))
    assert text.startswith("::error title=deny-prefix,file=a%3Ab%2Cline=9%250A::")


def test_github_is_told_of_a_gate_that_could_not_decide() -> None:
    lines = github(Report((judged(gates=BLIND),), ("the remote differs",))).splitlines()
    assert lines[:3] == [
        "::error title=undecided::content could not decide (object 9af3 is missing)",
        "::error title=undecided::shape was not run",
        "::warning title=patchgate::the remote differs",
    ]


def test_github_is_told_the_commit_of_a_range() -> None:
    lines = github(commits((), (finding(hint="h"),))).splitlines()
    assert lines == [
        "::error title=deny-prefix,file=runs/x::runs/ is denied (commit 200000000000)%0Ahelp: h",
        "2 commits: 1 accepted, 1 rejected",
        "rejected: 1 error in 1 file (policy HEAD:patchgate.toml)",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_forges_no_command(name: str) -> None:
    given = hostile(HOSTILE[name])
    *commands, closing = github(given).removesuffix("\n").split("\n")
    decoded = [decode(line) for line in commands]
    assert [(kind, properties["title"]) for kind, properties, _ in decoded] == [
        ("error", "conflict-marker"),
        ("error", "deny-prefix"),
        ("error", "undecided"),
        ("warning", "patchgate"),
    ]
    path = given.changes[0].findings[0].path
    assert path is not None
    file = without_log_commands(path.quoted)
    assert decoded[0][1] == {"title": "conflict-marker", "file": file, "line": "7"}
    assert decoded[1][1] == {"title": "deny-prefix", "file": file}
    assert not any(command in line for command in LOG_COMMANDS for line in commands)
    assert closing.startswith("rejected: 2 errors in 1 file")
    assert not set("".join(commands)) & {"\x1b", "\r", "\u202e", "\u009b"}


def test_gitlab_gets_an_issue_for_each_finding() -> None:
    issues = read_gitlab(report(finding("secret", "src/b.py", 12), finding("path-control", "x")))
    assert issues[0]["description"] == "runs/ is denied"
    assert issues[0]["check_name"] == "secret"
    assert issues[0]["location"] == {"path": "src/b.py", "lines": {"begin": 12}}
    assert [issue["severity"] for issue in issues] == ["major", "critical"]


def test_gitlab_tells_levels_apart() -> None:
    levels = [finding(level=level) for level in Level]
    assert [issue["severity"] for issue in read_gitlab(report(*levels))] == ["major", "minor", "info"]


def test_gitlab_fingerprints_differ_also_between_commits_of_a_range() -> None:
    same = (finding(), finding())
    assert len(read_gitlab(commits(same, same, same))) == 6


def test_gitlab_fingerprints_do_not_depend_on_the_line() -> None:
    one, other = (read_gitlab(report(finding("secret", "a", line, excerpt=b"k"))) for line in (1, 99))
    assert one[0]["fingerprint"] == other[0]["fingerprint"]


def test_gitlab_does_not_take_an_undecided_change_for_a_clean_one() -> None:
    issues = read_gitlab(Report((judged(gates=BLIND, commit=COMMIT),)))
    assert [(issue["check_name"], issue["severity"]) for issue in issues] == [("undecided", "blocker")] * 2
    assert read_gitlab(report()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_gitlab_takes_any_name(name: str) -> None:
    assert len(read_gitlab(hostile(HOSTILE[name]))) == 3
