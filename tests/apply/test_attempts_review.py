"""The review and the feedback of an attempt: all that has to be in them, and nothing in them but text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.apply.attempt_records import AttemptRecord
from patchgate.apply.review import AttemptSummary, CommandRun, feedback, review
from patchgate.git.model import FileChange
from patchgate.git.quoting import is_printable
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Attempt, Finding, Report, Retry
from tests.amount import often
from tests.report.verdict_reports import HOSTILE, POLICY, entry, finding, judged, path

SHA = "sha256:" + "9" * 64
RECORD = AttemptRecord(
    attempt="a-7f3a",
    chain="a-7f3a",
    retry_of=None,
    number=1,
    verdict="rejected",
    applied=False,
    counts=True,
    dry_run=False,
    kind="patch",
    patch_sha256=SHA,
)
TRIED = AttemptSummary(RECORD, 2.25, limit=5)
HERE = Attempt("a-7f3a", "/x/attempts/a-7f3a", False, "deny-prefix")
NEXT = Retry(True, 2, 5, "git patchgate apply - --retry-of a-7f3a")
MARKUP = (
    "`x` ``` ~~~ <img src=x onerror=y> [click](http://x) ![i](y) **b** # h | t | https://www.x.y @who &lt;"
)


def refused(*findings: Finding, **more: tuple[FileChange, ...]) -> Report:
    """A report on a refused attempt, by default one denied folder."""
    change = judged(*(findings or (finding(),)), files=more.get("files"), profile="agent")
    return Report((change,), attempt=HERE, retry=NEXT)


ACCEPTED = Report((judged(profile="agent"),), attempt=replace(HERE, applied=True, fallback_reason=None))


def outside_code(text: str) -> str:
    """Give what of a Markdown text is not in a code block or a code span (CommonMark 0.31, 4.5 and 6.1)."""
    lines, fence = [], ""
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip().strip("`~"):
                fence = ""
        elif found:
            fence = found[1]
        else:
            lines.append(line)
    assert not fence, "a code block has no end"
    rest, at = [], 0
    together = "\n".join(lines)
    for run in re.finditer("`+", together):
        if run.start() < at:
            continue
        end = re.search(f"(?<!`){run[0]}(?!`)", together[run.end() :])
        assert end is not None, "a code span has no end"
        assert "\n" not in together[run.end() : run.end() + end.start()]
        rest.append(together[at : run.start()])
        at = run.end() + end.end()
    return "".join([*rest, together[at:]])


def test_the_reader_of_markdown_sees_what_is_no_code() -> None:
    """The tests below can fail."""
    assert outside_code("a `b` ``c`d`` e\n```text\nf `\n```\ng") == "a   e\ng"
    assert "<img" in outside_code("`a` <img> `b`")


# What has to be there.


def test_a_refusal_says_verdict_stage_code_reason_patch_policy_and_files() -> None:
    text = review(refused(finding("deny-prefix", "runs/x", 7)), TRIED)
    for said in (
        "# a-7f3a: rejected\n",
        "- verdict: rejected\n- stage: policy\n- code: PATCH_POLICY_DENY\n- reason: `deny-prefix`\n",
        f"- SHA-256: {SHA}\n",
        f"- policy: `HEAD:patchgate.toml` ({POLICY.digest}), profile `agent`\n",
        "- error `deny-prefix` at `runs/x:7`\n  - `runs/ is denied`\n  - help: `leave it unchanged`\n",
        "- added lines: 3, removed lines: 1, hunks: 1\n",
        "- modified `src/a.py`: +3 -1\n",
        "- `max_files`: 1 used, limit 50\n",
        "- `max_added_lines`: 3 used, no limit\n",
        "- none was run\n",
        "- this apply started a new chain",
        "try 2 of 5: send the whole patch again: git patchgate apply - --retry-of a-7f3a",
        "- a retry is one whole unified diff",
        "the full text of a file, prose, the same patch again",
        "a part of a patch is never applied",
        "- nothing was written to the working tree\n",
        "Total duration: 2.2 s.",
        "byte for byte, in artifacts/diff.patch (nothing in it is masked)",
    ):
        assert said in text, said


def test_a_retry_names_its_chain_and_its_number() -> None:
    tried = replace(TRIED, record=replace(RECORD, chain="a-0001", retry_of="a-0002", number=3))
    assert "- retry 3 of 5 in the chain `a-0001`, after `a-0002`\n" in review(refused(), tried)
    assert "new chain" not in review(refused(), tried)


def test_the_last_refusal_says_who_lets_it_go_on() -> None:
    report = replace(refused(), retry=Retry(False, 6, 5, "git patchgate attempts reset a-7f3a"))
    assert "git patchgate attempts reset a-7f3a" in review(report, TRIED)
    assert feedback(report).endswith(
        "no attempts left of 5; a maintainer can allow more: git patchgate attempts reset a-7f3a\n```\n"
    )


def test_what_was_applied_is_said() -> None:
    assert "- the whole patch was written to the working tree\n" in review(ACCEPTED, TRIED)
    assert "nothing needs to be sent again" in review(ACCEPTED, TRIED)
    dry = replace(ACCEPTED, attempt=HERE)
    assert ": it was a dry run\n" in review(dry, replace(TRIED, record=replace(RECORD, dry_run=True)))


def test_commands_are_listed_with_outcome_code_duration_and_log() -> None:
    runs = (
        CommandRun("ruff", "lint", "passed", 0.31, 0, "logs/ruff.log"),
        CommandRun("unit", "test", "not run"),
    )
    text = review(
        refused(),
        replace(TRIED, record=replace(RECORD, kind="edits"), commands=runs, only=("src/a.py", "b`")),
    )
    assert "- lint `ruff`: `passed`, exit code 0, 0.3 s, output in `logs/ruff.log`\n" in text
    assert "- test `unit`: `not run`\n" in text
    assert "- it came as `edits`\n" in text
    assert "- reduced with --only to: `src/a.py`, `` b` ``\n" in text


def test_the_end_of_a_commands_output_is_shown_whatever_fences_it_holds() -> None:
    tail = "first\n```\n<b>not bold</b>\n````\n\x1b[31mred"
    made = finding("lint-failed", None, details={"tail": tail.split("\n")})
    text = review(refused(replace(made, notes=("first", "exit code 1"))), TRIED)
    assert text.count("first") == 1
    assert "- `exit code 1`" in text
    assert "`````text\nfirst\n```\n<b>not bold</b>\n````\n\\x1b[31mred\n`````\n" in text
    assert "not bold" not in outside_code(text)


def test_what_could_not_be_decided_is_said_and_does_not_count() -> None:
    report = Report((judged(finding("concurrent-change", "a")),), attempt=HERE)
    assert report.verdict == "undecided"
    text = review(report, TRIED)
    assert "- verdict: undecided\n- stage: apply\n- code: PATCH_APPLY_FAIL\n" in text
    assert "does not count" in text
    assert "retry 2" not in text


def test_many_findings_and_files_are_summed_up() -> None:
    findings = tuple(finding("deny-prefix", f"runs/{number}") for number in range(80))
    files = tuple(FileChange(path(f"f{number:03}"), entry("a"), entry("b"), 1, 0, 1) for number in range(250))
    text = review(refused(*findings, files=files), TRIED)
    assert "- and 30 more: artifacts/report.json has them all" in text
    assert "- and 50 more: artifacts/report.json has them all" in text
    assert len(text) < 40_000


def test_a_report_without_a_change_has_a_review_too() -> None:
    assert "# attempt: accepted" in review(Report(()), TRIED)
    assert "accepted" in feedback(Report(()))


# Feedback.


def test_the_feedback_says_the_verdict_the_errors_with_their_hints_and_last_what_comes_next() -> None:
    report = refused(
        finding("deny-prefix", "runs/x", 7), finding("max-files", None, level=Level.WARNING, message="many")
    )
    assert feedback(report) == (
        "# a-7f3a: rejected\n\n"
        "```text\n"
        "rejected: 1 error, 1 warning in 1 file (policy HEAD:patchgate.toml)\n"
        "error[deny-prefix] runs/x:7: runs/ is denied\n"
        "help: leave it unchanged\n"
        "warning[max-files]: many\n"
        "help: leave it unchanged\n"
        "try 2 of 5: send the whole patch again: git patchgate apply - --retry-of a-7f3a\n"
        "```\n"
    )


def test_an_error_without_a_hint_has_that_of_its_rule() -> None:
    assert f"help: {RULES['deny-prefix'].hint}" in feedback(refused(finding(hint=None)))


@pytest.mark.parametrize("message", ["x", "é" * 150, "`" * 180])
def test_the_whole_feedback_about_ten_thousand_findings_has_40_lines_and_4_kilobytes(message: str) -> None:
    made = [finding("deny-prefix", f"runs/{n}", n + 1, message=message) for n in range(10_000)]
    text = feedback(refused(*made))
    assert text.count("\n") <= 40
    assert len(text.encode()) <= 4000
    assert text.rstrip("`\n").endswith("--retry-of a-7f3a")


# Inert.


def hostile_report(text: str, raw: bytes) -> tuple[Report, AttemptSummary]:
    """A report and an attempt in which every foreign text is this one."""
    made = replace(
        finding("deny-prefix", raw, 3, message=text, hint=text, details={"tail": f"{text}\n{text}"}),
        notes=(f"note {text}",),
    )
    files = (FileChange(path(raw), entry("a"), entry("b"), 1, 1, 1),)
    change = judged(made, files=files, policy=replace(POLICY, origin=text), profile="agent")
    attempt = replace(HERE, fallback_reason=text, temp_path=text)
    runs = (CommandRun(text, "lint", text, 1.0, 1, text),)
    return (
        Report((change,), warnings=(text,), attempt=attempt, retry=replace(NEXT, command=text)),
        replace(
            TRIED,
            record=replace(RECORD, kind=text, retry_of=text, chain=text),
            commands=runs,
            only=(text, text),
        ),
    )


@pytest.mark.parametrize("raw", [*HOSTILE.values(), MARKUP.encode()], ids=[*HOSTILE, "markup"])
def test_hostile_names_and_texts_stand_in_code_alone(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    report, tried = hostile_report("MARK" + text + "MARK", b"MARK" + raw + b"MARK")
    for written in (review(report, tried), feedback(report)):
        assert "MARK" in written
        assert "MARK" not in outside_code(written)
        assert all(is_printable(each) or each in "\n\t" for each in written)


@settings(max_examples=often(300), deadline=None)
@given(text=st.text(st.sampled_from("`~ \n\t<>[]()!*_#|&\\-+1.ab\x1b\u202e"), max_size=60))
def test_no_text_gets_out_of_its_code(text: str) -> None:
    report, tried = hostile_report(f"{text}MARK{text}", f"{text}MARK{text}".encode())
    plain_report, plain = hostile_report("x", b"x")
    for written, bare in (
        (review(report, tried), review(plain_report, plain)),
        (feedback(report), feedback(plain_report)),
    ):
        assert outside_code(written) == outside_code(bare)
