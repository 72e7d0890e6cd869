"""The rehearsal: what would a policy have said to the last commits?

Counts findings by rule, and tells for each the value that would have given none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from patchgate.check.commits import judge_commits
from patchgate.check.terms import Asked
from patchgate.git.history import recent_commits
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.policy.policy import Policy
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding


@dataclass(frozen=True, slots=True)
class Tally:
    """What one rule would have said: findings, in how many commits, and what would have given none."""

    rule: str
    level: Level
    findings: int
    commits: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How many commits were rehearsed, how many would have been refused, and each rule's tally."""

    commits: int
    refused: int
    undecided: int
    tallies: tuple[Tally, ...]


def rehearse(repository: Repository, policy: Policy, count: int) -> Rehearsal:
    """Judge the last `count` commits of HEAD, merges left out, under a policy.

    Raises:
        PatchgateError: the history cannot be read.
    """
    with Objects(repository) as objects:
        commits = recent_commits(repository, objects, count)
    verdicts = judge_commits(repository, commits, Asked(policy=policy)).changes
    states = [verdict.verdict.value for verdict in verdicts]
    return Rehearsal(
        len(commits), states.count("rejected"), states.count("undecided"), tuple(_tallies(verdicts))
    )


def _tallies(verdicts: Iterable[ChangeVerdict]) -> Iterable[Tally]:
    found: dict[str, list[tuple[int, Finding]]] = {}
    for index, verdict in enumerate(verdicts):
        for finding in verdict.findings:
            if finding.level is not Level.NOTE:
                found.setdefault(finding.rule, []).append((index, finding))
    for rule, each in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        findings = [finding for _, finding in each]
        yield Tally(
            rule, findings[0].level, len(each), len({index for index, _ in each}), _remedy(rule, findings)
        )


def _remedy(rule: str, findings: list[Finding]) -> str:
    """Say which value of the config would have given no finding of this rule, or that none would."""
    numbers = [actual for finding in findings if isinstance(actual := finding.details.get("actual"), int)]
    key = rule.replace("-", "_")
    if numbers:
        return f"none with {key} = {max(numbers)}"
    definition = findings[0].definition
    if definition.invariant:
        return "this rule has no setting"
    patterns = sorted(
        {str(finding.details["pattern"]) for finding in findings if finding.details.get("pattern")}
    )
    named = ", ".join(f'"{pattern}"' for pattern in patterns[:5]) + (", …" if len(patterns) > 5 else "")
    by_rule = {
        "deny-class": f"deny_classes without {named}",
        "mode-change": "allow_modes = true",
        "symlink": "allow_symlinks = true",
        "gitlink": "allow_gitlinks = true",
        "secret": "[content] secrets = false",
        "conflict-marker": "[content] conflict_markers = false",
    }
    return "none with " + by_rule.get(rule, f'[rules] {rule} = "off"')
