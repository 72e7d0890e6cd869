"""`git patchgate claim` takes no claim back too early, and confirms none by a file that it is not about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.world import Answer, Repo

CODE = "incomplete_deliverable_placeholder"
MARK = "Totals: [TBD]\n"
# What an answer says in sentences.
WORDS = {"reason", "next_step", "warnings"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with two finished documents."""
    made = Repo.create(tmp_path)
    made.commit({"docs/report.md": "# Report\n", "docs/method.md": "# Method\n"})
    return made


def claimed(repo: Repo, *arguments: str) -> dict[str, Any]:
    """Claim by options that a placeholder remains; the answer as JSON."""
    return answered(repo.cli("claim", "--reason", CODE, *arguments, "--format", "json"))


def verdict(repo: Repo, *arguments: str, **keys: Any) -> dict[str, Any]:
    """Claim it as a verdict with these keys."""
    said = {"passed": False, "reason_code": CODE, "feedback": "A TODO remains."} | keys
    (repo.path.parent / "verdict.json").write_text(json.dumps(said), encoding="utf-8")
    return answered(repo.cli("claim", "../verdict.json", *arguments, "--format", "json"))


def answered(answer: Answer) -> dict[str, Any]:
    assert answer.code == {"passed": 0, "contradicted": 3}.get(answer.report["outcome"], 1)
    return answer.report


def of_scan(answer: dict[str, Any], *keys: str) -> tuple[Any, ...]:
    return (answer["outcome"], *(answer["metadata"][key] for key in keys))


def recorded(repo: Repo) -> dict[str, Any]:
    """The last event of the ledger."""
    event = json.loads(repo.cli("log", "--kind", "adjudicated", "-n", "1", "--format", "json").out)
    assert isinstance(event, dict)
    return event


# --- never a wrong downgrade -----------------------------------------------------------------------------


def test_work_that_is_not_staged_is_read_where_the_claim_names_it(repo: Repo) -> None:
    """C2: what `apply` wrote is on disk and not in the index; so are new files, ignored ones too."""
    repo.commit({".gitignore": "out/\n"})
    repo.write("docs/report.md", "# Report\n\n" + MARK)
    repo.write("docs/new.md", MARK)
    repo.write("out/made.md", MARK)
    places = {
        "docs/report.md": "docs/report.md:3",
        "docs/new.md": "docs/new.md:1",
        "out/made.md": "out/made.md:1",
    }
    for name, place in places.items():
        found = claimed(repo, "--deliverable", name, "--changed", "docs/method.md")
        assert of_scan(found, "read_from", "samples") == ("upheld", "the working tree", [place])
        assert len(found["metadata"]["warnings"]) == 1
    repo.git("checkout", "-q", "--", "docs/report.md")
    found = claimed(repo, "--deliverable", "docs/report.md", "--changed", "docs/method.md")
    assert of_scan(found, "read_from", "warnings") == ("contradicted", "the index", [])


def test_the_unstaged_work_of_an_intent_is_not_taken_for_read(repo: Repo) -> None:
    """C2, C6: what changed since its declaration counts, staged or not; what was so before does not."""
    repo.write("docs/old.md", MARK)
    declared = ("-m", "write the method", "--allow", "docs/method.md", "--allow", "docs/new.md")
    assert repo.cli("intent", "declare", *declared).code == 0
    asked = ("--deliverable", "docs/report.md")
    assert claimed(repo, *asked)["outcome"] == "contradicted"
    for name in ("docs/method.md", "docs/new.md"):
        repo.write(name, MARK)
        found = claimed(repo, *asked)
        assert of_scan(found, "read_from", "skipped_samples") == (
            *("undecided", "the index"),
            [{"path": name, "tier": "current_attempt", "reason": "unstaged"}],
        )
        assert of_scan(claimed(repo, *asked, "--worktree"), "samples") == ("upheld", [f"{name}:1"])
        repo.git("add", name)
        assert of_scan(claimed(repo, *asked), "samples") == ("upheld", [f"{name}:1"])
        repo.git("rm", "-q", "-f", "--", name)


def test_the_unstaged_work_of_an_earlier_attempt_is_not_taken_for_read(repo: Repo) -> None:
    """C2, C32: files that the claim does not name, but that count all the same."""
    passed = {"passed": True, "subject": "s", "changed_files": ["docs/method.md"]}
    verdict(repo, reason_code=None, feedback="", **passed)
    repo.write("docs/method.md", MARK)
    found = verdict(repo, subject="s", deliverables=["docs/report.md"])
    assert of_scan(found, "coverage_insufficient_reason", "read_from") == (
        *("undecided", "priority_candidate_unscanned:unstaged"),
        "the index",
    )
    assert found["metadata"]["next_step"].startswith("git add docs/method.md, ")
    assert found["metadata"]["next_step"].endswith(" --worktree")
    found = verdict(repo, "--worktree", subject="s", deliverables=["docs/report.md"])
    assert of_scan(found, "samples") == ("upheld", ["docs/method.md:1"])
    repo.stage()
    assert of_scan(verdict(repo, subject="s", deliverables=["docs/report.md"]), "samples") == (
        "upheld",
        ["docs/method.md:1"],
    )


def test_two_versions_of_one_file_contradict_nobody_until_one_is_chosen(repo: Repo) -> None:
    """C2: the staged one would be committed, the other is the newer work."""
    repo.stage({"docs/report.md": "# Report\n\n" + MARK})
    repo.write("docs/report.md", "# Report\n")
    for changed in ("docs/method.md", "docs/new.md"):
        found = claimed(repo, "--deliverable", "docs/report.md", "--changed", changed)
        assert found["outcome"] == "undecided"
        assert "priority_candidate_unscanned:unstaged" in found["metadata"]["coverage_insufficient_reason"]
        repo.write("docs/new.md", "# New\n")
    asked = ("--deliverable", "docs/report.md", "--changed", "docs/method.md")
    assert claimed(repo, *asked, "--worktree")["outcome"] == "contradicted"
    # The file that is named is not staged at all, and one that is not named has two versions.
    repo.git("reset", "-q", "--hard")
    repo.stage({"docs/method.md": MARK})
    repo.write("docs/method.md", "# Method\n\nmore\n")
    repo.write("docs/report.md", "# Report\n\nmore\n")
    found = claimed(repo, "--deliverable", "docs/report.md")
    assert of_scan(found, "read_from", "skipped_samples") == (
        *("undecided", "the working tree"),
        [{"path": "docs/method.md", "tier": "current_attempt", "reason": "unstaged"}],
    )


def test_a_file_that_was_only_touched_or_belongs_to_nobody_changes_nothing(repo: Repo) -> None:
    """C2: contents are compared, of the files that count."""
    repo.write("docs/report.md", "# Report\n")
    repo.write("notes.md", MARK)
    repo.write("docs/method.md", MARK)
    found = claimed(repo, "--deliverable", "docs/report.md", "--evidence", "docs/method.md")
    assert of_scan(found, "read_from", "coverage_sufficient") == ("contradicted", "the index", True)


def test_a_file_that_is_gone_from_the_disk_alone_is_not_read(repo: Repo) -> None:
    (repo.path / "docs/report.md").unlink()
    found = claimed(repo, "--deliverable", "docs/report.md", "--changed", "docs/method.md")
    assert of_scan(found, "read_from", "skipped_samples") == (
        *("undecided", "the index"),
        [{"path": "docs/report.md", "tier": "canonical", "reason": "unstaged"}],
    )


def test_a_passed_verdict_remembers_its_files_though_nothing_is_staged(repo: Repo) -> None:
    """C32."""
    repo.write("docs/report.md", "# Report\n\nmore\n")
    verdict(repo, passed=True, reason_code=None, feedback="", subject="s", deliverables=["docs/report.md"])
    assert recorded(repo)["changed_files"] == [{"path": "docs/report.md"}]


HARD: tuple[dict[str, Any], ...] = (
    {"reason_code": "hard_invariant_failed"},
    {"reason_code": "hard_invariant"},
    {"hard_invariant_failed": True},
    {"hardInvariantFailed": "yes"},
    {"metadata": {"hard_invariant": 1}},
    {"severity_class": "hard_invariant_failed"},
    {"severity_class": "hardInvariant"},
    {"issues": [{"severity": "hard_invariant", "message": "A TODO remains."}]},
    {"issues": [[{"code": "Hard-Invariant-Failed"}]]},
    {"passed": True, "hard_invariant_failed": True},
)
DENIALS: tuple[Any, ...] = (False, None, 0, "", "no", "false", [], {})
SOFT: tuple[dict[str, Any], ...] = (
    *({"hard_invariant_failed": value} for value in DENIALS),
    {"issues": ["hard_invariant_failed", {"severity": "hard_invariant", "status": "resolved"}]},
)


def test_a_hard_invariant_blocks_whatever_it_is_called(repo: Repo) -> None:
    """C1: as reason code, as key, as severity, also of an issue; and what denies it does not."""
    for more in HARD:
        found = verdict(repo, deliverables=["docs/report.md"], **more)
        assert (found["passed"], *of_scan(found, "scan_mode")) == (False, "upheld", None), more
    for more in SOFT:
        assert verdict(repo, deliverables=["docs/report.md"], **more)["outcome"] == "contradicted", more


def test_the_fallback_of_the_working_tree_has_its_untracked_files(repo: Repo) -> None:
    """C8: they come first, as the newest work; ignored files and nested repositories are not read."""
    repo.commit({".gitignore": "*.tmp.md\n", "a.md": "- TODO\n"})
    repo.write("unt.md", "- TODO\n")
    repo.write("x.tmp.md", "- TODO\n")
    repo.git("init", "-q", "nested")
    repo.write("nested/n.md", "- TODO\n")
    asked = ("--worktree", "--deliverable", "docs/report.md", "--changed", "docs/method.md")
    assert of_scan(claimed(repo, *asked), "samples") == ("upheld", ["unt.md:1"])
    (repo.path / "unt.md").unlink()
    assert of_scan(claimed(repo, *asked), "samples") == ("upheld", ["a.md:1"])


# --- never a wrong confirmation ---------------------------------------------------------------------------


def test_a_placeholder_in_another_file_upholds_a_claim_and_does_not_corroborate_it(repo: Repo) -> None:
    """C20, C40: it is counted apart; a claim that names no file is about all of them."""
    repo.commit({"docs/template.md": "Name: <your name>\n", "z.md": "- TODO\n"})
    found = claimed(repo, "--deliverable", "docs/report.md")
    assert of_scan(found, "corroborated", "samples") == ("upheld", False, ["docs/template.md:1"])
    assert of_scan(claimed(repo), "corroborated") == ("upheld", True)
    found = claimed(repo, "--deliverable", "docs/template.md")
    assert of_scan(found, "corroborated") == ("upheld", True)
    found = claimed(repo, "--deliverable", "docs/report.md", "--evidence", "z.md")
    assert of_scan(found, "corroborated", "samples") == ("upheld", True, ["z.md:1"])
    stats = repo.cli("claim", "stats", "--format", "json").report
    assert (stats["corroborated_count"], stats["uncorroborated_count"]) == (3, 1)
    assert " in other files only: 1 (25 %)\n" in repo.cli("claim", "stats").out


def test_what_the_config_excludes_is_read_only_where_a_claim_names_it(repo: Repo) -> None:
    """C13: patterns as everywhere; the files that are left out are counted."""
    repo.policy('[claims]\nexclude = ["docs/templates/**", "*.tpl.md"]\n')
    repo.commit({"docs/templates/a.md": MARK, "b.tpl.md": MARK})
    found = claimed(repo, "--deliverable", "docs/report.md")
    assert of_scan(found, "coverage_sufficient") == ("contradicted", True)
    assert found["metadata"]["skipped_counts"]["excluded"] == 2
    found = claimed(repo, "--deliverable", "docs/templates/a.md")
    assert of_scan(found, "samples") == ("upheld", ["docs/templates/a.md:1"])


# --- coverage, the record, the config ---------------------------------------------------------------------


def test_a_fallback_that_a_cap_cut_contradicts_nobody_and_is_counted(repo: Repo) -> None:
    """C25, C35, C40: the placeholder is in the file behind the cap."""
    repo.policy("[claims]\ncontradiction_scan_max_files = 3\n")
    repo.commit({"a.md": "# A\n", "z.md": MARK})
    found = claimed(repo, "--deliverable", "docs/report.md")
    assert of_scan(found, "coverage_insufficient_reason", "cap_exhausted") == (
        *("undecided", "cap_exhausted_in_fallback"),
        True,
    )
    assert repo.cli("claim", "stats", "--format", "json").report["cap_exhaustion_count"] == 1
    # Nobody counts what comes after the file at which the scan ended.
    words = ("--reason", "incomplete_deliverable_placeholder", "--deliverable", "docs/report.md")
    assert "1 and all " in repo.cli("claim", *words).out
    repo.policy("[claims]\ncontradiction_scan_max_files = 5\n")
    found = claimed(repo, "--deliverable", "docs/report.md")
    assert of_scan(found, "cap_exhausted", "corroborated") == ("upheld", False, False)


def test_an_event_has_the_fields_of_the_answer(repo: Repo) -> None:
    """C24, C25: by the same names, whatever came of it."""
    repo.stage({"docs/report.md": MARK})
    for arguments in (
        ("--deliverable", "docs/report.md"),
        ("--deliverable", "docs/method.md", "--changed", "docs/none.md"),
        ("--deliverable", "docs/method.md", "--tree", "HEAD"),
    ):
        metadata = claimed(repo, *arguments)["metadata"]
        event = recorded(repo)
        assert {key: event.get(key, ...) for key in metadata.keys() - WORDS} == {
            key: value for key, value in metadata.items() if key not in WORDS
        }
    Draft202012Validator(json.loads(repo.cli("schema", "claim").out)).validate(
        claimed(repo, "--deliverable", "docs/report.md")
    )


def test_the_strict_answer_stands_beside_the_permissive_one(repo: Repo) -> None:
    """C28: in the answer, in its text, in the record and in the statistics."""
    repo.policy("[claims]\ncontradiction_guard_strict_coverage = false\n")
    found = claimed(repo, "--deliverable", "docs/never.md")
    assert of_scan(found, "coverage_sufficient", "strict_outcome") == ("contradicted", True, "undecided")
    assert "priority_candidate_unscanned:missing" in found["metadata"]["strict_insufficient_reason"]
    assert recorded(repo)["strict_outcome"] == "undecided"
    said = repo.cli("claim", "--reason", CODE, "--deliverable", "docs/never.md").out
    assert "strict outcome is undecided" in said
    assert repo.cli("claim", "stats", "--format", "json").report["permissive_downgrade_count"] == 2
    found = claimed(repo, "--deliverable", "docs/report.md", "--changed", "docs/method.md")
    assert of_scan(found, "strict_outcome", "strict_insufficient_reason") == (
        *("contradicted", "contradicted"),
        None,
    )


def test_an_unknown_key_of_claims_is_a_warning_and_no_adjudication_ends_by_it(repo: Repo) -> None:
    """C26: whatever its value is; the key that may be meant is named."""
    repo.policy("[claims]\ncontradiction_scan_max_file = nan\nwhen = 2026-01-01\nexclude = [3, '!a']\n")
    told = repo.cli("claim", "--reason", CODE, "--deliverable", "docs/report.md")
    assert told.code == 3
    lines = told.err.splitlines()
    assert [line.split(":")[2] for line in lines if line.startswith("warning: ")] == ["2", "3", "4", "4"]
    assert "claims.contradiction_scan_max_file: " in lines[0]
    assert "`claims.contradiction_scan_max_file" in lines[0]
    assert repo.cli("check").code == 0


def test_a_passed_verdict_passes_beside_a_conflict_and_its_files_are_not_on_record(repo: Repo) -> None:
    base = repo.head()
    repo.commit({"docs/report.md": "# One\n"})
    repo.git("checkout", "-q", "-b", "other", base)
    repo.commit({"docs/report.md": "# Other\n"})
    assert repo.try_git("merge", "-q", "main").returncode
    said = {"passed": True, "reason_code": None, "feedback": "", "subject": "s"}
    found = verdict(repo, deliverables=["docs/report.md"], **said)
    assert found["outcome"] == "passed"
    assert any("not recorded" in warning for warning in found["metadata"]["warnings"])
