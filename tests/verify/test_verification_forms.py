"""A verification as JSON and as SARIF: every key, valid by independent readers, and nothing cut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sarif_pydantic import Sarif

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.git.path import RepoPath
from patchgate.intents.intent import ScopeCheck
from patchgate.verify.verification_json import json_schema, render
from patchgate.verify.verification_result import ExternalCommit, VerificationResult, VerificationStatus
from patchgate.verify.verification_sarif import render as render_sarif
from tests.report.verdict_reports import HOSTILE

SCHEMA = Draft202012Validator(json_schema())
COMMIT = "c0ffee" + "0" * 34


def path(raw: bytes | str) -> RepoPath:
    return RepoPath.from_git(raw.encode() if isinstance(raw, str) else raw)


def result(place: str | bytes, line: int | None = 1, rule: str = "F401", **more: Any) -> AnalysisResult:
    made = AnalysisResult("ruff", "ruff", rule, "error", "`os` imported", (path(place),), line, "0" * 32)
    return replace(made, **more)


def runs(
    tree: str, *results: AnalysisResult, outcome: AnalysisOutcome = AnalysisOutcome.FINDINGS
) -> TreeRuns:
    run = AnalysisRun("ruff", tree * 64, "sha256:" + tree * 64, outcome, "/bin/ruff", results=results)
    return TreeRuns(tree * 40, "sha256:" + "0" * 64, {"ruff": run})


def whole(*, raw: bytes = b"src/a.py", text: str = "x") -> VerificationResult:
    """Make a verification in which everything has something to say."""
    own = result(raw, rule=text, message=text)
    other = result("lib/b.py", 2)
    old = result("lib/b.py", 9)
    gone = result("lib/c.py", 4)
    worse = WorsenedMetric(path(raw), text, "complexity", None, 11.5)
    over = ThresholdState("limit", "complexity", 10, 3, 11.5, False, True, (worse, own))
    return VerificationResult(
        VerificationStatus.VIOLATED,
        text,
        intent="i-0123abcd",
        before=runs("a", old, gone),
        after=runs("b", old, own, other),
        comparison=AnalysisComparison((own, other), (gone,), 1, (worse,), (over,)),
        intent_regressions=(own,),
        external_regressions=(other,),
        intent_worsened=(worse,),
        gate_worsened=True,
        before_gate=False,
        after_gate=True,
        intent_caused_gate=True,
        caused=(over,),
        scope=ScopeCheck((path(raw),), (path("patchgate.toml"),), (path("t.py"),), ()),
        abuse=("baseline_updated_without_intent",),
        suppression_files=(path("known.json"),),
        violations=("structural_regressions", "gate_failures", "scope_violation"),
        reported_only=(),
        next_step=text,
        external_commits=(ExternalCommit(COMMIT, text),),
        dirty=(path(raw),),
        warnings=(text,),
    )


VERIFICATIONS = {
    "whole": whole(),
    "nothing known": VerificationResult(VerificationStatus.EXPIRED, "its time is over"),
    "not evaluated": VerificationResult(
        VerificationStatus.UNVERIFIED,
        "ruff is missing",
        before=runs("a"),
        after=runs("b", outcome=AnalysisOutcome.NOT_EVALUATED),
    ),
    **{
        f"hostile {name}": whole(raw=raw, text=raw.decode("utf-8", "surrogateescape"))
        for name, raw in HOSTILE.items()
    },
}


@pytest.mark.parametrize("name", VERIFICATIONS)
def test_the_document_fits_its_schema_in_pure_ascii(name: str) -> None:
    text = render(VERIFICATIONS[name])
    assert text.isascii()
    assert text.endswith("}\n")
    document = json.loads(text)
    SCHEMA.validate(document)
    json.dumps(document, ensure_ascii=False).encode("utf-8")


def test_a17_the_answer_has_every_key_also_where_nothing_is_known() -> None:
    full, empty = (json.loads(render(VERIFICATIONS[name])) for name in ("whole", "nothing known"))
    assert full.keys() == empty.keys()
    assert full.keys() >= {
        *("status", "reason", "intent", "before", "after", "intent_regressions", "external_regressions"),
        *("intent_worsened", "external_worsened", "gate_worsened", "before_gate", "after_gate"),
        *("intent_caused_gate", "scope", "baseline_abuse", "contract_violations", "next_step"),
    }
    assert full["scope"].keys() >= {"unexpected_files", "forbidden_touched", "expanded", "untouched"}
    assert full["baseline_abuse"].keys() >= {"detected", "triggers"}
    assert empty["before_gate"] is None


def test_no_list_is_cut() -> None:
    many = tuple(result(f"lib/{number}.py") for number in range(500))
    document = json.loads(render(replace(whole(), external_regressions=many)))
    assert len(document["external_regressions"]) == 500


def test_a_path_that_is_no_plain_text_has_its_bytes_beside_it() -> None:
    document = json.loads(render(whole(raw=b"caf\xe9")))
    assert document["intent_regressions"][0]["path"] == r'"caf\351"'
    assert document["intent_regressions"][0]["path_b64"] == "Y2Fm6Q=="


def states(verification: VerificationResult) -> list[tuple[str, int | None, str | None, str | None]]:
    """Tell of each result where it is, what became of it and whose it is."""
    log = json.loads(render_sarif(verification))
    found = []
    for run in log["runs"][1:]:
        for each in run["results"]:
            physical = each["locations"][0]["physicalLocation"]
            whose = each.get("properties", {}).get("attribution")
            line = physical.get("region", {}).get("startLine")
            found.append((physical["artifactLocation"]["uri"], line, each.get("baselineState"), whose))
    return found


def test_sarif_has_every_result_with_its_baseline_state_and_whose_it_is() -> None:
    assert states(whole()) == [
        ("lib/b.py", 9, "unchanged", None),
        ("src/a.py", 1, "new", "intent"),
        ("lib/b.py", 2, "new", "external"),
        ("lib/c.py", None, "absent", None),
    ]


def test_of_equal_results_only_as_many_are_new_as_were_found_to_be() -> None:
    twin = result("a.py")
    verification = replace(
        whole(),
        after=runs("b", twin, twin),
        comparison=AnalysisComparison((twin,)),
        intent_regressions=(twin,),
    )
    assert [state for _, _, state, _ in states(verification)] == ["new", "unchanged"]


def test_without_a_comparison_no_result_has_a_baseline_state() -> None:
    verification = replace(whole(), comparison=None, intent_regressions=(), external_regressions=())
    assert {state for _, _, state, _ in states(verification)} == {None}


def test_without_an_intent_what_is_new_is_the_changes_own() -> None:
    own = result("a.py")
    verification = replace(
        whole(),
        intent=None,
        after=runs("b", own),
        comparison=AnalysisComparison((own,)),
        intent_regressions=(own,),
    )
    assert states(verification) == [("a.py", 1, "new", "change")]


def test_an_analysis_that_could_not_be_evaluated_was_not_executed_successfully() -> None:
    log = json.loads(render_sarif(VERIFICATIONS["not evaluated"]))
    own, ruff = log["runs"]
    assert [own["invocations"][0]["executionSuccessful"], ruff["invocations"][0]["executionSuccessful"]] == [
        False,
        False,
    ]
    assert own["invocations"][0]["exitCode"] == 3


@pytest.mark.parametrize("name", VERIFICATIONS)
def test_models_of_the_schema_that_others_wrote_read_the_sarif(name: str) -> None:
    text = render_sarif(VERIFICATIONS[name])
    assert text.isascii()
    read = Sarif.model_validate_json(text)
    assert read.version == "2.1.0"
    for run in read.runs:
        names = [rule.id for rule in run.tool.driver.rules or []]
        for each in run.results or []:
            assert names[each.rule_index or 0] == each.rule_id


def test_an_independent_reader_counts_the_same(tmp_path: Path) -> None:
    loader = pytest.importorskip("sarif.loader", reason="the extra `oracles` is not installed")
    place = tmp_path / "report.sarif"
    place.write_text(render_sarif(whole()))
    read = loader.load_sarif_file(str(place))
    assert read.get_distinct_tool_names() == ["patchgate", "ruff"]
    assert len(read.get_results()) == 4
