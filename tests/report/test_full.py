"""The report for a terminal: its exact text, and that nothing foreign gets through it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from patchgate.git.model import FileChange
from patchgate.report.rules import Level
from patchgate.report.text import concise, full
from patchgate.report.verdict import (
    Attempt,
    ChangeVerdict,
    GateOutcome,
    Outcome,
    PolicyReference,
    Report,
    Retry,
)
from tests.report.verdict_reports import (
    BLIND,
    COMMIT,
    HOSTILE,
    commits,
    finding,
    hostile,
    judged,
    modified,
    report,
)

REFUSED = Report(
    (
        judged(
            finding(
                "max-files", None, level=Level.WARNING, message="51 files, limit 50", hint=None, details={}
            ),
            finding(),
            finding(
                "conflict-marker",
                "src/app.py",
                112,
                message="a left-over conflict marker",
                hint="resolve the conflict",
                excerpt=b"<<<<<<< HEAD",
                details={},
            ),
        ),
    ),
    ("the policy on the remote differs",),
)

REFUSED_TEXT = """\
error[deny-prefix]: runs/ is denied
 --> runs/x
help: leave it unchanged

error[conflict-marker]: a left-over conflict marker
   --> src/app.py:112
    |
112 | <<<<<<< HEAD
    |
help: resolve the conflict

warning[max-files]: 51 files, limit 50

warning: the policy on the remote differs
help: if intended, add a comment to the line: "patchgate: allow conflict-marker REASON"
help: if intended, change the policy in a separate commit before this one
rejected: 2 errors, 1 warning in 2 files (policy HEAD:patchgate.toml)
try 2 of 5: send the whole patch again: git patchgate apply - --retry-of a-7f3a
"""

RANGE = Report(
    (
        *commits((), (finding(),)).changes,
        judged(gates=BLIND, commit=COMMIT),
    )
)

RANGE_TEXT = """\
commit 200000000000: rejected

error[deny-prefix]: runs/ is denied
 --> runs/x
help: leave it unchanged

commit c0ffee000000: undecided

undecided: content could not decide (object 9af3 is missing)

undecided: shape was not run

help: if intended, change the policy in a separate commit before this one
3 commits: 1 accepted, 1 undecided, 1 rejected
rejected: 1 error in 1 file (policy HEAD:patchgate.toml); \
content could not decide (object 9af3 is missing); shape was not run
"""

VERBOSE_TEXT = f"""\
staged change: undecided under the commit profile
  verdict id: {judged().id}
  policy: HEAD:patchgate.toml sha256:{"5" * 64}
  paths: pass
  content: undecided (object 9af3 is missing.)
  shape: not-run
  max_files: 1 used, limit 50
  max_added_lines: 3 used, no limit

undecided: content could not decide (object 9af3 is missing); shape was not run (policy HEAD:patchgate.toml)
"""


def plain(given: Report, limit: int = 20) -> str:
    return full(given, color=False, limit=limit)


def last_line(given: Report) -> str:
    return plain(given).splitlines()[-1]


def test_a_refusal_reads_from_rule_to_help_and_ends_with_verdict_and_retry() -> None:
    again = "git patchgate apply - --retry-of a-7f3a"
    refused = replace(REFUSED, retry=Retry(True, 2, 5, again))
    assert full(refused, color=False) == REFUSED_TEXT


def test_a_range_names_the_commits_that_have_something_to_say() -> None:
    assert plain(RANGE) == RANGE_TEXT


def test_verbose_adds_the_evidence() -> None:
    text = full(Report((judged(gates=BLIND),)), color=False, verbose=True)
    assert text == VERBOSE_TEXT


def test_the_text_is_the_same_without_colour() -> None:
    for given in (REFUSED, RANGE, report()):
        coloured = full(given, color=True, verbose=True)
        assert "\x1b[" in coloured
        uncoloured = full(given, color=False, verbose=True)
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == uncoloured
        assert "\x1b" not in uncoloured


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (report(), "accepted: 1 file, no findings"),
        (report(files=(modified("a"), modified("b"))), "accepted: 2 files, no findings"),
        (report(files=()), "accepted: 0 files, no findings"),
        (Report(()), "accepted: no commits to judge"),
        (commits((), ()), "accepted: 1 file, no findings"),
        (report(finding(level=Level.WARNING)), "accepted: 1 warning"),
        (report(finding(level=Level.NOTE), finding(level=Level.NOTE)), "accepted: 2 notes"),
        (report(finding(name=None)), "rejected: 1 error (policy HEAD:patchgate.toml)"),
        (report(finding(), finding()), "rejected: 2 errors in 1 file (policy HEAD:patchgate.toml)"),
    ],
)
def test_the_last_line_carries_the_verdict_in_words(given: Report, line: str) -> None:
    assert last_line(given) == line


def test_the_old_half_of_an_exact_rename_is_no_second_file() -> None:
    new = modified("new/x")
    moved = (FileChange(new.path, None, new.new), FileChange(modified("old/x").path, new.new, None))
    assert last_line(report(files=moved)) == "accepted: 1 file, no findings"


def test_an_undecided_change_names_each_gate_and_why() -> None:
    assert last_line(Report((judged(gates=BLIND),))) == (
        "undecided: content could not decide (object 9af3 is missing); shape was not run "
        "(policy HEAD:patchgate.toml)"
    )


def test_a_change_that_no_gate_looked_at_says_so() -> None:
    whole = judged()
    unseen = ChangeVerdict(whole.change, whole.source, whole.profile, whole.policy, (), ())
    assert last_line(Report((unseen,))).startswith(
        "undecided: judge was not run (no gate has checked the change)"
    )


def test_a_gate_that_failed_without_a_finding_is_named() -> None:
    gates = (GateOutcome("content", Outcome.FAIL),)
    assert last_line(Report((judged(gates=gates),))).startswith("undecided: content failed without a finding")


def test_a_gate_that_was_not_needed_after_a_refusal_owes_nothing() -> None:
    gates = (GateOutcome("policy", Outcome.FAIL), GateOutcome("shape", Outcome.NOT_RUN))
    assert "shape" not in last_line(Report((judged(finding(), gates=gates),)))


def test_many_reasons_are_cut_to_the_first_three() -> None:
    gates = tuple(GateOutcome(f"gate{number}", Outcome.UNDECIDED) for number in range(5))
    line = last_line(Report((judged(gates=gates),)))
    assert "gate2 could not decide and 2 more" in line
    assert "gate3" not in line


def test_policies_that_differ_in_a_range_are_not_named() -> None:
    other = PolicyReference("sha256:" + "6" * 64, "parent:patchgate.toml")
    pair = (judged(finding(), commit="a" * 40), judged(finding(), commit="b" * 40, policy=other))
    assert last_line(Report(pair)) == "rejected: 2 errors in 1 file"


def test_more_findings_than_the_limit_are_summed_up_by_rule_and_errors_come_first() -> None:
    notes = [finding("lock-without-manifest", "uv.lock", level=Level.NOTE) for _ in range(3)]
    errors = [finding(name=f"runs/{number:03}") for number in range(140)]
    secrets = [finding("secret", f"s{number}", 1, excerpt=b"k") for number in range(11)]
    text = plain(report(*notes, *errors, *secrets))
    assert text.count(" --> ") == 20
    assert "uv.lock" not in text
    assert "\n\n… and 134 more: 120 deny-prefix, 11 secret, 3 lock-without-manifest\n\n" in text
    assert text.endswith("\nrejected: 151 errors, 3 notes in 151 files (policy HEAD:patchgate.toml)\n")


def test_the_limit_counts_over_all_commits_of_a_range() -> None:
    warning = finding(name="w", level=Level.WARNING)
    text = plain(commits((warning, warning), (finding(name="e"),)), limit=2)
    assert text.index(" --> w") < text.index(" --> e")
    assert "… and 1 more: 1 deny-prefix" in text


def test_exactly_as_many_findings_as_the_limit_are_not_summed_up() -> None:
    assert "more:" not in plain(report(*(finding() for _ in range(20))))


def test_a_secret_is_never_shown_whichever_rule_points_at_its_line() -> None:
    line = b"token = 'ghp_0123456789'"
    text = full(
        report(
            finding("secret", "a.py", 3, excerpt=line, details={"pattern": "github-token"}),
            finding("deny-content", "a.py", 3, excerpt=line, details={"pattern": "token"}),
            finding("deny-content", "a.py", 4, excerpt=b"token here", details={"pattern": "token"}),
        ),
        color=False,
        verbose=True,
    )
    assert "ghp_" not in text
    assert "3 | (hidden: github-token)\n" in text
    assert "3 | (hidden: a secret)\n" in text
    assert "4 | token here\n" in text


def test_a_line_of_the_base_says_that_it_is_from_before() -> None:
    assert " --> gone.py:9 (before the change)\n" in plain(
        report(finding(name="gone.py", line=9, side="old"))
    )


def test_an_excerpt_without_a_number_and_a_very_long_one_are_shown_in_bounds() -> None:
    text = plain(report(finding("conflict-marker", "a", None, excerpt=b"x" * 50_000_000)))
    assert "\n  | " + "x" * 160 + "…\n" in text


def test_an_error_without_a_hint_takes_that_of_its_rule() -> None:
    assert "help: resolve the conflict and remove the markers" in plain(
        report(finding("conflict-marker", hint=None))
    )


def test_an_invariant_offers_no_change_of_the_policy() -> None:
    assert "change the policy" not in plain(report(finding("path-control")))


@pytest.mark.parametrize("rule", ["ref-deleted", "ref-forced"])
def test_what_becomes_of_a_ref_is_not_mended_by_a_commit_before(rule: str) -> None:
    assert "change the policy" not in plain(report(finding(rule, None)))


def test_an_agent_is_offered_no_suppression() -> None:
    agents = Report((judged(finding("secret", "a", 1, excerpt=b"k"), profile="agent"),))
    assert "patchgate: allow" not in plain(agents)


def test_an_accepted_change_has_nothing_to_retry() -> None:
    assert "retry" not in full(report(), color=False)


def test_where_no_retry_is_left_a_person_is_named_the_command() -> None:
    exhausted = replace(REFUSED, retry=Retry(False, 6, 5, "git patchgate attempts reset a-7f3a"))
    assert last_line(exhausted) == (
        "no attempts left of 5; a maintainer can allow more: git patchgate attempts reset a-7f3a"
    )


@pytest.mark.parametrize(
    ("applied", "what"), [(True, "the patch was applied"), (False, "nothing was applied")]
)
def test_an_attempt_is_named_with_its_evidence(applied: bool, what: str) -> None:
    given = replace(report(), attempt=Attempt("a-7f3a", "/evidence", applied))
    assert f"attempt a-7f3a: {what}; evidence: /evidence\n" in full(given, color=False)


def test_concise_has_a_line_for_each_finding_and_the_verdict() -> None:
    assert concise(REFUSED) == (
        "-: warning max-files 51 files, limit 50\n"
        "runs/x: error deny-prefix runs/ is denied\n"
        "src/app.py:112: error conflict-marker a left-over conflict marker\n"
        "warning: the policy on the remote differs\n"
        "rejected: 2 errors, 1 warning in 2 files (policy HEAD:patchgate.toml)\n"
    )


def test_concise_names_the_commit_in_a_range() -> None:
    assert concise(RANGE).splitlines()[:4] == [
        "runs/x: error deny-prefix runs/ is denied (commit 200000000000)",
        "-: undecided content could not decide (object 9af3 is missing) (commit c0ffee000000)",
        "-: undecided shape was not run (commit c0ffee000000)",
        "3 commits: 1 accepted, 1 undecided, 1 rejected",
    ]


def test_concise_counts_what_is_above_its_limit_and_errors_come_first() -> None:
    given = replace(REFUSED, warnings=("one", "two", "three"))
    assert concise(given, 1).splitlines()[:4] == [
        "runs/x: error deny-prefix runs/ is denied",
        "… and 2 more: 1 conflict-marker, 1 max-files",
        "warning: one",
        "… and 2 more warnings",
    ]
    assert "more" not in concise(given, 3)
    assert "… and 1 more gates are undecided" in concise(RANGE, 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_foreign_reaches_a_terminal_or_a_build_log_unescaped(name: str) -> None:
    raw = HOSTILE[name]
    for text in (full(hostile(raw), color=False, verbose=True), concise(hostile(raw))):
        text.encode("utf-8")
        assert not set(text) & {"\x1b", "\x07", "\r", "\u202e", "\u009b", "\u2028"}
        assert not any(line.lstrip().startswith("::") for line in text.split("\n"))
        assert "##[" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_adds_no_line(name: str) -> None:
    harmless = hostile(b"harmless")
    for write in (lambda given: full(given, color=False), concise):
        assert write(hostile(HOSTILE[name])).count("\n") == write(harmless).count("\n")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a\nb", '"a\\nb"'),
        (b"\xff", '"\\377"'),
        (b"::error::x", '"\\072:error::x"'),
        (b"##[group]\x1b", '"#\\043[group]\\033"'),
        (b"##vso[x]", '"#\\043vso[x]"'),
        (b"## title", "## title"),
        (b"app/[id].tsx", "app/[id].tsx"),
    ],
)
def test_a_place_is_quoted_as_git_would(raw: bytes, shown: str) -> None:
    assert concise(report(finding(name=raw, line=1))).startswith(f"{shown}:1: error")


def test_a_message_is_bounded() -> None:
    assert len(concise(report(finding(message="x" * 1_000_000)))) < 1_200


def test_the_forms_for_a_terminal_load_neither_json_nor_xml() -> None:
    code = (
        "import sys; import patchgate.report.text; "
        "print([name for name in ('json', 'xml', 'urllib', 'base64') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
