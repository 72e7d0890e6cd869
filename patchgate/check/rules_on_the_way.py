"""The rules that commits make on their way: what is not before such a commit is judged by its rules too.

A result of a proposal outlives its base: where a change of the rules lands before the rest (a fast-forward,
an earlier entry of a merge queue), the rest lands under the new rules. A push is judged alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from patchgate.check.commits import judge_commits
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git.history import Commit, commits_of
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import Key, TreePolicies
from patchgate.report.verdict import ChangeVerdict, Report, Verdict

_Rules = tuple[Key, Entry | None]
_FILES = frozenset({CONFIG_FILE, PYPROJECT_FILE, ALLOWED_SIGNERS})
_MOST_MAKERS = 100
_MOST_VERDICTS = 50_000


def add_rules_on_the_way(
    repository: Repository, report: Report, revision: str, asked: CheckOptions
) -> Report:
    """Add to the report on a range `A..B` what the rules that it makes say of its commits.

    Raises:
        UsageError: there is no such revision.
        UndecidedError: git failed, an object is missing, or the rules change too often.
    """
    if ".." not in revision or not _touches_rules(report.changes):
        return report
    with Objects(repository) as objects:
        commits = commits_of(repository, objects, revision).commits
    found = judge_by_rules_on_the_way(repository, commits, report.changes, asked)
    return replace(report, changes=(*report.changes, *found))


def judge_by_rules_on_the_way(
    repository: Repository, commits: Sequence[Commit], judged: Sequence[ChangeVerdict], asked: CheckOptions
) -> list[ChangeVerdict]:
    """Judge commits by the rules that others of them make, where those are not after them.

    Only what these rules refuse, or want an approval for, is returned.

    Args:
        commits: parents first.
        judged: their verdicts under the policy of `asked`; without one, nothing is judged.

    Raises:
        UndecidedError: git failed, an object is missing, or the rules change too often.
    """
    if asked.policy_from is None or not _touches_rules(judged):
        return []
    touching = {each.source.commit for each in judged if _touches_rules([each])}
    # What a merge joins cleanly is in no verdict.
    candidates = [each for each in commits if each.oid in touching or len(each.parents) > 1]
    graph = {commit.oid: commit.parents for commit in commits}
    with Objects(repository) as objects:
        before = {
            maker: _ancestors(maker, graph)
            for maker in _makers(objects, candidates, graph, asked.policy_from)
        }
    after = {maker: [each for each in commits if each.oid not in older] for maker, older in before.items()}
    number = sum(map(len, after.values()))
    if len(after) > _MOST_MAKERS or number > _MOST_VERDICTS:
        raise UndecidedError(
            f"these commits make other rules {len(after)} times, which is too much to compare",
            "let some of them land first",
        )
    digests = {each.source.commit: each.policy.digest for each in judged}
    found = []
    for maker, left in after.items():
        terms = replace(asked, policy_from=maker, policy_name=None, branches=())
        for each in judge_commits(repository, left, terms).changes:
            if each.owned or each.verdict is not Verdict.ACCEPTED:
                policy = replace(each.policy, of_branch=digests.get(each.source.commit))
                found.append(replace(each, policy=policy))
    return found


def _touches_rules(changes: Sequence[ChangeVerdict]) -> bool:
    return any(file.path in _FILES for change in changes for file in change.change.files)


def _makers(
    objects: Objects, candidates: Sequence[Commit], graph: Mapping[str, Sequence[str]], policy_from: str
) -> Iterator[str]:
    """Yield the commits that make other rules than those that judge, each kind once in a line of history."""
    policies = TreePolicies(objects)
    header = objects.header(policy_from + "^{tree}")
    known = _rules_of(objects, policies, objects.empty_tree if header is None else header.oid)
    makers: dict[_Rules, set[str]] = {}
    for commit in candidates:
        rules = _rules_of(objects, policies, commit.tree)
        if rules == known or policies.at(rules[0]).is_absent:
            continue
        trees = [
            found.oid for oid in commit.parents if (found := objects.header(oid + "^{tree}")) is not None
        ]
        if rules in (_rules_of(objects, policies, tree) for tree in trees):
            continue
        same = makers.setdefault(rules, set())
        if same.isdisjoint(_ancestors(commit.oid, graph)):
            same.add(commit.oid)
            yield commit.oid


def _rules_of(objects: Objects, policies: TreePolicies, tree: str) -> _Rules:
    return policies.key(tree), objects.entry(tree, ALLOWED_SIGNERS.raw)


def _ancestors(oid: str, graph: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a commit of the graph, and those of the graph before it."""
    found: set[str] = set()
    left = [oid]
    while left:
        each = left.pop()
        if each in graph and each not in found:
            found.add(each)
            left.extend(graph[each])
    return found
