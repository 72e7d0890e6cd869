"""`git patchgate claim` from outside: the three cases, the documents, the arguments, the exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.world import Answer, Repo

CODE = "incomplete_deliverable_placeholder"
VERDICT = {
    "verifier": {"name": "v", "run": 12345678901234567890},
    "passed": False,
    "reason_code": CODE,
    "severity_class": "major",
    "feedback": "A placeholder remains.",
    "confidence": 0.9,
    "subject": "report",
    "deliverables": ["docs/report.md"],
    "changed_files": ["docs/report.md", "docs/method.md"],
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a report that is done, and what a verifier says of it."""
    made = Repo.create(tmp_path)
    made.commit({"docs/report.md": "# Report\n\nSales rose.\n", "docs/method.md": "# Method\n\nWe add.\n"})
    ask(made)
    return made


def ask(repo: Repo, **more: Any) -> None:
    """Write the verifier's verdict where no commit sees it."""
    (repo.path.parent / "verdict.json").write_text(json.dumps(VERDICT | more), encoding="utf-8")


def claim(repo: Repo, *arguments: str) -> Answer:
    return repo.cli("claim", *arguments, "../verdict.json")


def document(repo: Repo, *arguments: str) -> dict[str, Any]:
    """Ask for JSON: it is as its schema says, and the exit code is that of the outcome."""
    answer = claim(repo, "--format", "json", *arguments)
    assert answer.out.isascii()
    value = answer.report
    Draft202012Validator(json.loads(repo.cli("schema", "claim").out)).validate(value)
    expected = {"passed": 0, "contradicted": 3}.get(value["outcome"], 1)
    assert answer.code == expected
    return value


def data(repo: Repo, *arguments: str) -> dict[str, Any]:
    found = document(repo, *arguments)["metadata"]
    assert isinstance(found, dict)
    return found


def test_a_false_claim_is_contradicted_with_exit_code_3(repo: Repo) -> None:
    """C2, C5, C21."""
    told = claim(repo)
    assert (told.code, told.err) == (3, "")
    lines = told.out.splitlines()
    assert lines[0].startswith("contradicted: ")
    (scanned,) = (line for line in lines if line.startswith("scanned in the index: "))
    assert re.findall(r"\d+", scanned) == ["2", "40", "1", "1"]
    assert "coverage: sufficient" in lines
    assert lines[-1].startswith("inconclusive, not passed: parse_inconclusive ")
    assert re.findall(rf"{CODE}|0\.\d", lines[-1]) == [CODE, "0.5", "0.9"]
    value = document(repo)
    assert (value["passed"], value["reason_code"], value["severity_class"], value["confidence"]) == (
        *(False, "parse_inconclusive", "inconclusive"),
        0.5,
    )
    assert (value["contradicted_reason_code"], value["metadata"]["contradiction_detected"]) == (CODE, True)


def test_a_true_claim_is_upheld_with_its_place_and_exit_code_1(repo: Repo) -> None:
    """C20, C38."""
    repo.stage({"docs/report.md": "# Report\n\nOwner: [TBD] secret words\n"})
    told = claim(repo)
    assert (told.code, told.err) == (1, "")
    lines = told.out.splitlines()
    assert lines[0].startswith("upheld: ")
    assert lines[2] == "placeholders (1):"
    assert lines[3].startswith("  docs/report.md:3  placeholder-bracket")
    assert lines[-1].startswith(f"not passed: {CODE}, ")
    assert "secret words" not in told.out
    value = document(repo)
    assert {key: value[key] for key in VERDICT} == VERDICT
    found = value["metadata"]
    assert (found["contradiction_detected"], found["contradiction_marker_found"]) == (False, True)
    assert (found["samples"], found["matched_file_count"]) == (["docs/report.md:3"], 1)


def test_a_claim_that_cannot_be_judged_names_the_file_and_the_next_step_with_exit_code_1(repo: Repo) -> None:
    """C19, C22."""
    ask(repo, deliverables=["docs/never-written.md"])
    told = claim(repo)
    assert (told.code, told.err) == (1, "")
    lines = told.out.splitlines()
    assert lines[0].startswith("undecided: ")
    assert any(line.startswith("coverage: insufficient: ") for line in lines)
    (missing,) = (line for line in lines if line.startswith("  docs/never-written.md: "))
    assert missing.endswith(" (deliverable)")
    assert lines[-2].startswith("help: ")
    assert lines[-1].startswith(f"not passed: {CODE}, ")
    value = document(repo)
    assert (value["reason_code"], value["confidence"]) == (CODE, 0.9)
    found = value["metadata"]
    assert found["contradiction_detected"] is False
    assert found["contradiction_detected_no_downgrade"] is True
    assert found["coverage_sufficient"] is False
    assert found["coverage_insufficient_reason"] == "priority_candidate_unscanned:missing"


def test_what_claims_nothing_of_a_placeholder_is_handed_back_unchanged(repo: Repo) -> None:
    """C23."""
    ask(repo, reason_code="wrong_numbers", feedback="The sum is wrong.")
    value = document(repo)
    assert value["outcome"] == "unchanged"
    assert {key: value[key] for key in VERDICT if key not in {"reason_code", "feedback"}} == {
        key: each for key, each in VERDICT.items() if key not in {"reason_code", "feedback"}
    }
    assert (value["metadata"]["scan_mode"], value["metadata"]["scanned_file_count"]) == (None, 0)
    assert claim(repo).out.splitlines()[-1].startswith("not passed: wrong_numbers, ")


def test_a_hard_invariant_blocks_whatever_a_scan_would_say(repo: Repo) -> None:
    """C1."""
    for more in ({"severity_class": "hard_invariant"}, {"reason_code": "PATCH_ANYTHING"}):
        ask(repo, **more)
        value = document(repo)
        assert (value["outcome"], value["passed"], value["metadata"]["scan_mode"]) == ("upheld", False, None)
    ask(repo, passed=True, severity_class="hard_invariant")
    assert document(repo)["passed"] is False
    last = claim(repo).out.splitlines()[-1]
    assert last.startswith("not passed: ")
    assert " blocks, " in last
    ask(repo, passed=True, reason_code=None, severity_class="hard_invariant")
    last = claim(repo).out.splitlines()[-1]
    assert last.startswith("not passed: a hard invariant blocks, ")


def test_only_a_verdict_that_had_passed_ends_with_0(repo: Repo) -> None:
    ask(repo, passed=True, reason_code=None, severity_class=None, feedback="")
    told = claim(repo)
    assert (told.code, told.out.splitlines()[-1].startswith("passed: ")) == (0, True)
    assert claim(repo, "-q") == Answer(0, "", "")
    assert document(repo)["outcome"] == "passed"


def test_quiet_is_silent_for_what_had_passed_alone(repo: Repo) -> None:
    assert claim(repo, "-q") == claim(repo)


def test_a_verdict_can_come_from_standard_input_or_be_said_in_options(repo: Repo) -> None:
    raw = (repo.path.parent / "verdict.json").read_bytes()
    piped = repo.run("claim", "--format", "json", "-", stdin=raw)
    assert (piped.code, piped.report["outcome"]) == (3, "contradicted")
    told = repo.cli(
        *("claim", "--reason", CODE, "--deliverable", "docs/report.md", "--changed", "docs/method.md"),
        *("--subject", "s", "--feedback", "a placeholder remains", "--format", "json"),
    )
    assert (told.code, told.report["outcome"]) == (3, "contradicted")
    assert told.report["deliverables"] == ["docs/report.md"]
    inside = repo.cli(
        "claim", "--reason", CODE, "--deliverable", "report.md", "--format", "json", cwd=repo.path / "docs"
    )
    assert (inside.code, inside.report["outcome"]) == (3, "contradicted")
    assert inside.report["metadata"]["candidate_source_counts"]["canonical"] == 1


def test_options_of_each_tier_are_counted_in_their_tier(repo: Repo) -> None:
    """C6, C24."""
    repo.commit({"a.md": "a\n", "b.md": "b\n", "log.txt": "ok\n"})
    tiers = (
        "--deliverable",
        "docs/report.md",
        "--changed",
        "a.md",
        "--prior",
        "b.md",
        "--evidence",
        "log.txt",
    )
    told = repo.cli("claim", "--reason", CODE, *tiers, "--format", "json")
    counts = told.report["metadata"]["candidate_source_counts"]
    assert {tier: counts[tier] for tier in list(counts)[:4]} == {
        "canonical": 1,
        "current_attempt": 1,
        "prior_attempt": 1,
        "evidence_artifact": 1,
    }


def test_the_tree_that_was_asked_for_is_the_one_that_is_scanned(repo: Repo) -> None:
    repo.write("docs/report.md", "# Report\n\nTODO: write it\n")
    assert (claim(repo).code, claim(repo, "--tree", "HEAD").code, claim(repo, "--worktree").code) == (1, 3, 1)
    repo.stage()
    assert (claim(repo).code, claim(repo, "--tree", "HEAD").code) == (1, 3)
    assert "scanned in HEAD: " in claim(repo, "--tree", "HEAD").out
    assert "scanned in the working tree: " in claim(repo, "--worktree").out
    assert [data(repo, *how)["read_from"] for how in ([], ["--tree", "HEAD"], ["--worktree"])] == [
        "the index",
        "HEAD",
        "the working tree",
    ]


def test_the_permissive_rule_and_a_guard_that_is_off_are_told(repo: Repo) -> None:
    """C27, C28."""
    ask(repo, deliverables=["docs/never-written.md"])
    repo.policy("[claims]\ncontradiction_guard_strict_coverage = false\n")
    assert "contradiction_guard_strict_coverage = false" in claim(repo).out
    assert (document(repo)["outcome"], data(repo)["strict_coverage"]) == ("contradicted", False)
    repo.policy("[claims]\ncontradiction_guard_enabled = false\n")
    value = document(repo)
    assert (value["outcome"], value["reason_code"], value["metadata"]["guard_enabled"]) == (
        *("unchanged", CODE),
        False,
    )


def test_a_faulty_value_of_the_config_is_a_warning_and_stops_nothing(repo: Repo) -> None:
    """C26."""
    repo.policy('[claims]\ncontradiction_scan_max_files = 5000\ncontradiction_scan_timeout_seconds = "x"\n')
    told = claim(repo)
    assert told.code == 3
    for key in ("claims.contradiction_scan_max_files", "claims.contradiction_scan_timeout_seconds"):
        assert sum(key in line for line in told.err.splitlines()) == 1
        assert sum(key in line for line in data(repo)["warnings"]) == 1


def test_nothing_is_touched_by_an_adjudication_but_the_ledger(repo: Repo) -> None:
    repo.stage({"docs/report.md": "new\n"})
    repo.write("other.md", "TODO: untracked\n")
    before = (repo.git("status", "--porcelain=v2"), (repo.path / ".git/index").read_bytes())
    claim(repo)
    assert (repo.git("status", "--porcelain=v2"), (repo.path / ".git/index").read_bytes()) == before
    assert repo.cli("log", "--kind", "adjudicated", "--format", "json").out.count("\n") == 1


def test_what_was_adjudicated_is_counted(repo: Repo) -> None:
    """C25, C40: a claim is contradicted, then a placeholder is found in the same subject."""
    claim(repo)
    repo.stage({"docs/report.md": "TODO: write it\n"})
    claim(repo)
    repo.stage({"docs/report.md": "# Report\n"})
    ask(repo, subject=None, deliverables=["docs/gone.md"])
    claim(repo)
    value = json.loads(repo.cli("claim", "stats", "--format", "json").out)
    Draft202012Validator(json.loads(repo.cli("schema", "claim-stats").out)).validate(value)
    assert value["outcomes"] == {
        "passed": 0,
        "upheld": 1,
        "contradicted": 1,
        "undecided": 1,
        "unchanged": 0,
    }
    assert value["reversals"] == [{"subject": "report", "downgrades": 1, "reversed": 1}]
    assert value["contradiction_detected_no_downgrade_count"] == 1


@pytest.mark.parametrize(
    "arguments",
    [["-C", ".", "stats"], ["--format", "full", "stats"], ["stats", "-C."], ["-C", "stats", "stats"]],
)
def test_options_may_stand_before_stats(repo: Repo, arguments: Sequence[str]) -> None:
    (repo.path / "stats").mkdir()
    told = repo.cli("claim", *arguments)
    assert (told.code, told.out) == (0, "0 adjudications\n")


def test_a_file_that_is_called_stats_is_named_with_its_folder(repo: Repo) -> None:
    repo.write("stats", (repo.path.parent / "verdict.json").read_text(encoding="utf-8"))
    for arguments in (["./stats"], ["--", "stats"]):
        told = repo.cli("claim", *arguments)
        assert (told.code, told.out.split(":")[0]) == (3, "contradicted")


def test_the_answer_to_a_path_that_is_not_utf_8_is_a_verdict_again(repo: Repo) -> None:
    told = repo.cli("claim", "--reason", CODE, "--deliverable", "\udcff.md", "--format", "json")
    again = repo.run("claim", "-", "--format", "json", stdin=told.out.encode())
    assert (again.code, again.report["outcome"]) == (1, "undecided")


FAULTY = {
    "no JSON": b"{",
    "no object": b"[]",
    "passed is missing": b"{}",
    "wrong types": b'{"passed": "no", "deliverables": "x", "confidence": []}',
    "an empty path": b'{"passed": false, "deliverables": [""]}',
    "metadata is no object": b'{"passed": false, "metadata": 3}',
    "not UTF-8": b'{"passed": false, "feedback": "\xff"}',
    "a terminal's escape": b'{"\x1b[31m',
}


@pytest.mark.parametrize("raw", FAULTY.values(), ids=FAULTY)
def test_input_that_cannot_be_read_is_exit_code_2_and_no_record(repo: Repo, raw: bytes) -> None:
    (repo.path.parent / "verdict.json").write_bytes(raw)
    told = claim(repo)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("error: ../verdict.json")
    assert "\nhelp: " in told.err
    assert told.err.replace("\n", "").isprintable()
    assert claim(repo, "--format", "json").error["kind"] == "usage"
    assert repo.cli("log", "--kind", "adjudicated").out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a verdict"),
        (["--deliverable", "docs/report.md"], "a verdict"),
        (["../verdict.json", "--reason", "x"], "both: --reason"),
        (["../verdict.json", "--deliverable", "x"], "both: --deliverable"),
        (["../verdict.json", "--evidence", "x"], "both: --evidence"),
        (["../verdict.json", "--feedback", ""], "both: --feedback"),
        (["--reason", ""], "--reason is empty"),
        (["--tree", "HEAD", "stats"], "--tree"),
        (["--reason", "stats", "stats"], "--reason"),
        (["../verdict.json", "--tree", "HEAD", "--worktree"], "--tree and --worktree "),
        (["../verdict.json", "--tree", "nobody"], "nobody"),
        (["../verdict.json", "--tree=--all"], "--all"),
        (["../gone\x1b.json"], "../gone\\x1b.json "),
        (["../verdict.json", "more"], "more"),
        (["--nonsense"], "--nonsense"),
        (["stats", "--tree", "HEAD"], "--tree"),
    ],
)
def test_arguments_that_make_no_sense_are_exit_code_2(
    repo: Repo, arguments: Sequence[str], message: str
) -> None:
    told = repo.cli("claim", *arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err
    assert told.err.replace("\n", "").isprintable()


def test_names_in_a_verdict_reach_no_terminal_raw(repo: Repo) -> None:
    hostile = "\x1b[31m\n::error::\u202e##[error].md"
    repo.stage({hostile: "TODO: write it\n"})
    ask(repo, deliverables=[hostile, f"../{hostile}"], changed_files=[f"C:\\{hostile}"], subject=hostile)
    told = claim(repo)
    assert told.code == 1
    assert [line for line in told.out.splitlines() if not line.isprintable()] == []
    assert "##[" not in told.out
    assert not any(line.startswith("::") for line in told.out.splitlines())
    assert document(repo)["deliverables"] == [hostile, f"../{hostile}"]


def test_the_help_loads_nothing_heavy_and_an_adjudication_neither(repo: Repo) -> None:
    program = (
        "import json, sys\nfrom patchgate.cli import program\nprogram.run(sys.argv[1:])\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    for arguments in (("claim", "-h"), ("claim", "../verdict.json"), ("claim", "stats")):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=repo.path,
            env=repo.env,
            capture_output=True,
            check=True,
        )
        loaded = set(json.loads(done.stderr.splitlines()[-1]))
        assert loaded & {"pydantic", "pygit2", "pathspec"} == set(), arguments


def test_the_list_of_commands_asks_whether_the_reviewer_is_right(repo: Repo) -> None:
    told = " ".join(repo.cli("-h").out.split())
    assert re.search(r" check: .*\? verify: .*\? claim: .*\?", told)
    assert "git patchgate claim [OPTIONS] [FILE|-]" in repo.cli("claim", "-h").out
    assert "\nCommands:\n  stats  " in repo.cli("claim", "-h").out
    assert "git patchgate claim stats" in repo.cli("claim", "stats", "-h").out
