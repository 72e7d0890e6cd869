"""How a branch may have moved between two of its commits, of which an engine names only the first.

Decides which moves have to be judged besides the one from end to end, so that what a server would have seen
between is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import islice

from patchgate.errors import UndecidedError
from patchgate.git.commit_lists import commits_with_parents
from patchgate.git.model import TREE_MODE, Entry
from patchgate.git.objects import Objects
from patchgate.git.trees import entries_at
from patchgate.policy.file_kinds import CONFIG_FILE, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, field

_PATHS = (CONFIG_FILE.raw, PYPROJECT_FILE.raw, PRE_COMMIT_FILE.raw, b".patchgate")
_BASELINES = b"baselines"
_MOST_BYTES = 64 << 10
# Each move costs a check of what came with it. A merge is one onto each of its parents, by each of the rules.
_MOST_RULES, _MOST_JOINED, _MOST_MOVES = 16, 200, 800


Move = tuple[str, str, str | None]
"""From where, to where, and whose policy judges; None: that of where it came from."""


@dataclass(frozen=True, slots=True)
class MovesBetween:
    """What may have happened between two commits.

    The last one is judged as it came after each of `changing`, which changed the rules, parents first, and
    compared with each of `learned`, which have other baselines: several commits may unlearn together what a
    component had there. `joined` are the merges as they came onto their parents.
    """

    changing: Sequence[str] = ()
    learned: Sequence[str] = ()
    joined: Sequence[Move] = ()


def moves_between(
    objects: Objects, policies: TreePolicies, before: str, head: str, *, is_proposed: bool = False
) -> MovesBetween:
    """Find how a branch may have moved between a commit and a later one, where that matters.

    What is proposed has not moved it yet: nothing matters there unless it changes the rules.

    What comes after a change of the rules is judged by them, and a merge as it came onto each of its
    parents: it may bring back what was there before. Its author chooses which parent is the first, and may
    have loosened the rules for it and restored them: those of before and of each change count for it too,
    but for changes that came after it.

    Raises:
        UndecidedError: git failed, or there are too many.
    """
    listed = commits_with_parents(objects.repository, "--ancestry-path", f"{before}..{head}")
    # A branch was at none that began elsewhere.
    parents = {
        commit: [each for each in above if each == before or each in listed]
        for commit, above in listed.items()
    }
    merges = [commit for commit in reversed(listed) if len(listed[commit]) > 1]
    commits = list(reversed(parents))
    rules = _rules_of(objects, [before, *commits])
    changes = (
        commit
        for commit in commits
        if commit != head
        and not any(_have_same_rules(policies, rules[commit], rules[each]) for each in parents[commit])
    )
    changing = list(islice(changes, _MOST_RULES + 1))
    if is_proposed and not changing:
        return MovesBetween()
    learned = [
        commit
        for commit in commits
        if rules[commit].baselines not in {rules[each].baselines for each in (head, *parents[commit])}
    ]
    joined: list[Move] = []
    if len(changing) <= _MOST_RULES and len(merges) <= _MOST_JOINED:
        joined = list(islice(_joined(parents, merges, before, changing, rules), _MOST_MOVES + 1))
    for number, most, what in (
        (len(changing), _MOST_RULES, "changes of the rules"),
        (len(merges), _MOST_JOINED, "merges"),
        (len(joined), _MOST_MOVES, "merges onto a parent, by other rules,"),
        (len(learned), _MOST_JOINED, "changes of baselines"),
    ):
        if number > most:
            raise UndecidedError(
                f"more than {most} {what} have come since {before[:SHORT_OID]}",
                "propose or build a part of them first",
            )
    return MovesBetween(changing, learned, joined)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a commit has of control files, and the tree of its baselines.

    `controls` count as they are; of `project` and `hooks` only what they say of patchgate counts.
    """

    controls: tuple[Entry | None, frozenset[tuple[bytes, Entry]]]
    project: Entry | None
    hooks: Entry | None
    baselines: str | None
    tree: str = field(compare=False)


def _rules_of(objects: Objects, commits: Sequence[str]) -> dict[str, _Rules]:
    headers = objects.headers([commit + "^{tree}" for commit in commits])
    trees = {
        commit: header.oid for commit, header in zip(commits, headers, strict=True) if header is not None
    }
    asked = dict.fromkeys(trees.values())
    config, project, hooks, folders = (entries_at(objects, asked, path) for path in _PATHS)
    sizes = objects.sizes({each.oid for each in folders.values() if each.mode == TREE_MODE})
    read = cache(objects.tree)
    found: dict[str, _Rules] = {}
    for commit, tree in trees.items():
        folder, inside = folders.get(tree), dict[bytes, Entry]()
        if folder is not None:
            is_read = sizes.get(folder.oid, _MOST_BYTES + 1) <= _MOST_BYTES
            inside = dict(read(folder.oid)) if is_read else {b"": folder}
        baselines = inside.get(_BASELINES)
        if baselines is not None and baselines.mode == TREE_MODE:
            del inside[_BASELINES]
        found[commit] = _Rules(
            controls=(config.get(tree), frozenset(inside.items())),
            project=project.get(tree),
            hooks=hooks.get(tree),
            baselines=None if baselines is None else baselines.oid,
            tree=tree,
        )
    return found


def _have_same_rules(policies: TreePolicies, one: _Rules, other: _Rules) -> bool:
    """Return whether what two commits have of control files is the same, and what the files with other
    things say of patchgate: the policy as it is written.
    """
    if one.controls != other.controls:
        return False
    if one.hooks != other.hooks and any(policies.names_patchgate(each.tree) for each in (one, other)):
        return False
    if one.project == other.project:
        return True
    written = [policies.at(policies.key(each.tree)) for each in (one, other)]
    if all(each.is_absent for each in written):
        return True
    mine, others = (each.policy for each in written)
    return mine is not None and others is not None and mine.is_written_as(others)


def _joined(
    parents: Mapping[str, Sequence[str]],
    merges: Sequence[str],
    before: str,
    changing: Sequence[str],
    rules: Mapping[str, _Rules],
) -> Iterator[Move]:
    """Yield merges as they came onto each of their parents, by its rules, and by others."""
    has_merged, has_changed = (_among_ancestors(parents, frozenset(some)) for some in (merges, changing))
    for merge in merges:
        places = [before, *(each for each in changing if merge not in has_merged[each])]
        for each in parents[merge]:
            # What comes beside or after a change that a merge brings is judged as it came onto that, not the
            # change itself.
            brought = has_changed[merge] - has_changed.get(each, frozenset())
            others = _others(each, [place for place in places if place not in brought], rules)
            if each != before:
                yield from ((each, merge, place) for place in (None, *others))


def _among_ancestors(parents: Mapping[str, Sequence[str]], some: Set[str]) -> dict[str, frozenset[str]]:
    """Map each commit to those of some that it has, itself among them.

    Args:
        parents: of each commit, of those before it last.
    """
    found: dict[str, frozenset[str]] = {}
    for commit in reversed(list(parents)):
        above = {found[each] for each in parents[commit] if each in found}
        joined = frozenset[str]().union(*above) if len(above) != 1 else above.pop()
        found[commit] = joined | {commit} if commit in some else joined
    return found


def _others(commit: str, places: Sequence[str], rules: Mapping[str, _Rules]) -> list[str]:
    """Choose one place for each of the rules that differ from those of a commit."""
    chosen: list[str] = []
    for place in places:
        if all(_differ(rules[place], rules[each]) for each in (commit, *chosen)):
            chosen.append(place)
    return chosen


def _differ(one: _Rules, other: _Rules) -> bool:
    return (one.controls, one.project, one.hooks) != (other.controls, other.project, other.hooks)
