"""How a branch may have moved between two of its commits, of which an engine names only the first.

Decides which moves have to be judged besides the one from end to end, so that what a server would have seen
between is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.wording import SHORT_OID

_RULES = (CONFIG_FILE, PYPROJECT_FILE, ALLOWED_SIGNERS)
# Each move costs a check of what came with it.
_MOST_RULES, _MOST_JOINED = 16, 200


Move = tuple[str, str, str | None]
"""From where, to where, and whose policy judges; None: that of where it came from."""


def moves_between(objects: Objects, policies: TreePolicies, before: str, head: str) -> list[Move]:
    """List how a branch may have moved between a commit and a later one, where that matters.

    What comes after a change of the rules is judged by them, and a merge as it came onto each of its
    parents: it may bring back what was there before. Its author chooses which parent is the first, and may
    have loosened the rules for it and restored them: those of before and of each change count for it too.

    Raises:
        UndecidedError: git failed, or there are too many.
    """
    listed = objects.repository.output("rev-list", "--ancestry-path", "--parents", f"{before}..{head}")
    parents = {line[0]: line[1:] for line in map(str.split, listed.decode("ascii").splitlines())}
    every = list(dict.fromkeys([*parents, *(each for above in parents.values() for each in above)]))
    asked = [f"{each}:{path.raw.decode('ascii')}" for each in every for path in _RULES]
    headers = iter(objects.headers(asked))
    rules = {each: [next(headers) for _ in _RULES] for each in every}

    def has_changed_rules(commit: str) -> bool:
        others = [each for each in parents[commit] if rules[each] != rules[commit]]
        return not all(_have_same_rules(objects, policies, commit, each) for each in others)

    commits = list(reversed(parents))
    changing = [each for each in commits if each != head and has_changed_rules(each)]
    found: list[Move] = [(each, head, None) for each in changing]
    merges = [each for each in commits if len(parents[each]) > 1]
    joined: list[Move] = [
        (each, merge, place)
        for merge in merges
        for each in parents[merge]
        if each in parents
        for place in (None, *_others(each, [before, *changing], rules))
    ]
    if len(found) > _MOST_RULES or len(joined) > _MOST_JOINED:
        raise UndecidedError(
            f"{len(found)} changes of the rules and {len(merges)} merges have come since the build of "
            f"{before[:SHORT_OID]}",
            "build the commits between first",
        )
    return [*found, *joined]


def _others(commit: str, places: Sequence[str], rules: Mapping[str, object]) -> list[str]:
    """Choose one place for each of the rules that differ from those of a commit."""
    chosen: list[str] = []
    for place in places:
        if all(rules[place] != rules[each] for each in (commit, *chosen)):
            chosen.append(place)
    return chosen


def _have_same_rules(objects: Objects, policies: TreePolicies, one: str, other: str) -> bool:
    """Return whether two commits have the same policy, as it is written, and the same signers."""
    signers, written = [], []
    for each in (one, other):
        header = objects.header(each + "^{tree}")
        policy = None if header is None else policies.at(policies.key(header.oid)).policy
        if policy is None:
            return False
        written.append(policy)
        signers.append(objects.header(f"{each}:{ALLOWED_SIGNERS.raw.decode('ascii')}"))
    return written[0].is_written_as(written[1]) and signers[0] == signers[1]
