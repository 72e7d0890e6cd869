"""The merge that a branch would get: a head that lacks commits of its base is merged by a host, later.

What only that merge combines is judged here: an edit that it carries to where the base moved a file, a
symlink that leaves the repository, names that collide, a policy that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from patchgate.check.host_merges import HostMerges
from patchgate.check.judging_policy import PolicySides, is_control, judge_reading, restriction, undecided
from patchgate.check.policy_lookup import CheckOptions, detail_for
from patchgate.check.repository_ids import repository_of
from patchgate.errors import UndecidedError
from patchgate.git.change_sources import LoadedChange, carried_files, solver
from patchgate.git.diff import Detail
from patchgate.git.merge_paths import Landing, carried_paths
from patchgate.git.merges import Merged, TipMerges, automatic_merges
from patchgate.git.model import GITLINK, TREE_MODE, Change, Entry, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.pushes import is_ancestor
from patchgate.git.repository import Repository
from patchgate.git.revisions import commit_named
from patchgate.policy.policy import Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in
from patchgate.report.verdict import ChangeVerdict, OwnedPaths, Report, Verdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import replace

_ATTRIBUTES = b".gitattributes"


def add_coming_merge(
    repository: Repository,
    report: Report,
    revision: str,
    asked: CheckOptions,
    merges: TipMerges,
    attributes_from: str | None = None,
) -> Report:
    """Add to the report on a range `A..B` what its merge into the branch of the policy would combine.

    Nothing is added where B has all of that branch. Files in conflict are left to the commit that solves it,
    but for those that not everybody may change.

    Args:
        attributes_from: a revision whose `.gitattributes` a host may follow, besides those of both sides;
            empty: one that is not here, so a host may join every conflict.

    Raises:
        UsageError: there is no such revision.
        UndecidedError: git failed, or an object is missing.
    """
    _, dots, last = revision.partition("..")
    if not dots or last.startswith(".") or asked.policy_from is None:
        return report
    store = merges.store
    with Objects(repository, store.variables) as objects:
        header = objects.header((asked.branch or asked.policy_from) + "^{commit}")
        tip = commit_named(objects, last or "HEAD")
        if header is None:
            return report
        base = header.oid
        if is_ancestor(repository, base, tip) or is_ancestor(repository, tip, base):
            return report
        _require_common_history(repository, base, tip)
        merged, sides = merges.of(base, tip), (base, tip)
        found = objects.headers([base + "^{tree}", tip + "^{tree}"])
        trees = [each.oid for each in found if each is not None]
        joined = _joined_by_host(objects, sides, attributes_from, merges)
        rules = _rules(objects, trees, joined, asked)
        detail = detail_for([rules.before.policy or built_in()], Profile.COMMIT, in_full=asked.in_full)
        change = Change.of(merged.tree, merged.tree, ())
        _require_same_repository(objects, asked, rules.base, sides, [merged.tree, joined.tree])
        reading = LoadedChange(
            change=change,
            source=Source("range", ref=revision, base_commit=base, parents=sides),
            parents=tuple(trees),
            carried=partial(_carried, objects, merges, sides, change, detail, rules),
            solved=solver(repository, objects, joined, joined.tree, detail, store.variables),
        ).with_overlay(merged.tree, ())
        verdict = _judge(objects, reading, rules, sides)
    if verdict.verdict is Verdict.ACCEPTED and not verdict.owned:
        return report
    note = f"the merge of {tip[:SHORT_OID]} into this branch"
    findings = tuple(replace(each, notes=(*each.notes, f"by {note}")) for each in verdict.findings)
    return replace(report, changes=(*report.changes, replace(verdict, findings=findings)))


def _judge(
    objects: Objects, reading: LoadedChange, rules: PolicySides, sides: tuple[str, str]
) -> ChangeVerdict:
    """Judge what the merge combines: undecided where another host may combine something else."""
    owned: tuple[OwnedPaths, ...] = ()
    try:
        hosts = HostMerges(objects, sides)
        hosts.require_one_policy()
        verdict = judge_reading(reading, rules, Profile.COMMIT, objects)
        owned = verdict.owned
        if verdict.verdict is Verdict.ACCEPTED:
            hosts.require_one_result(restriction(rules, (Profile.COMMIT,)))
    except UndecidedError as error:
        # What its owners have not approved is refused all the same.
        return replace(undecided(reading, rules, Profile.COMMIT, error), owned=owned)
    return verdict


def _carried(
    objects: Objects,
    merges: TipMerges,
    sides: tuple[str, str],
    change: Change,
    detail: Detail,
    rules: PolicySides,
    landing: Landing,
) -> list[FileChange]:
    """List what only the merge of both sides combines, without conflicts that everybody may solve."""
    repository, merged, variables = objects.repository, merges.of(*sides), merges.store.variables
    trees = [header.oid for header in objects.headers([f"{each}^{{tree}}" for each in sides]) if header]
    pairs = list(zip(sides, trees, strict=True))
    paths = carried_paths(repository, objects, pairs, change.after, variables)
    found = carried_files(repository, objects, trees, change, detail, variables, landing, paths)
    # A host may solve a conflict by itself (`merge=union` in .gitattributes).
    return [
        file
        for file in found
        if file.path.raw not in merged.conflicts
        or landing.is_restricted(file.path)
        or is_control(file.path, rules)
    ]


class _UnionAttributes:
    """Says of paths, in their order, whether a `.gitattributes` of some trees may ask for `merge=union`."""

    def __init__(self, objects: Objects, trees: Sequence[str]) -> None:
        self._objects = objects
        # Many folders may have the same large file.
        self._is_union = cache(lambda oid: b"union" in objects.read(oid))
        listed = [objects.tree(tree) for tree in trees]
        # The folders of the last path: name, trees, and whether a file in it or above it asks.
        self._folders: list[tuple[bytes, list[dict[bytes, Entry]], bool]] = [
            (b"", listed, self._asks(listed))
        ]

    def may_ask_for(self, path: bytes) -> bool:
        """Return it for one path; its folders are those of the last one as far as the two are alike."""
        names = path.split(b"/")[:-1]
        known = 0
        for (name, _, _), other in zip(self._folders[1:], names, strict=False):
            if name != other:
                break
            known += 1
        del self._folders[known + 1 :]
        for name in names[known:]:
            _, above, is_asked = self._folders[-1]
            inner = [
                self._objects.tree(entry.oid)
                for each in above
                if (entry := each.get(name)) is not None and entry.mode == TREE_MODE
            ]
            self._folders.append((name, inner, is_asked or self._asks(inner)))
        return self._folders[-1][2]

    def _asks(self, folders: Sequence[Mapping[bytes, Entry]]) -> bool:
        # In a bare repository git reads the text of a symlink too.
        files = {entry for each in folders if (entry := each.get(_ATTRIBUTES)) is not None}
        kept = (entry for entry in files if entry.mode not in {GITLINK, TREE_MODE})
        return any(self._is_union(entry.oid) for entry in kept)


def _joined_by_host(
    objects: Objects, sides: tuple[str, str], attributes_from: str | None, merges: TipMerges
) -> Merged:
    """Make the merge of a host that follows `merge=union`: the paths that it joins on its own, and its tree.

    Those are the paths in conflict for which a `.gitattributes` may ask for it: that of a side, or of the
    default branch, which a bare repository follows (git 2.43 to 2.45; GitLab).
    """
    merged = merges.of(*sides)
    named = [f"{each}^{{tree}}" for each in (*sides, attributes_from) if each]
    trees = [header.oid for header in objects.headers(named) if header is not None]
    is_unknown = attributes_from == ""
    attributes = _UnionAttributes(objects, trees)
    asked = {
        path: merged.conflicts[path]
        for path in sorted(merged.conflicts)
        if is_unknown or attributes.may_ask_for(path)
    }
    if not asked:
        return Merged(merged.tree)
    (joined,) = automatic_merges(merges.store, [sides], "* merge=union")
    left = {path: commits for path, commits in asked.items() if path not in joined.conflicts}
    return Merged(joined.tree, left)


def _require_same_repository(
    objects: Objects,
    asked: CheckOptions,
    had: FoundPolicy,
    sides: tuple[str, str],
    trees: Sequence[str],
) -> None:
    """Require that a merge keeps the id of the repository, which nobody may change, approved or not.

    Args:
        had: the policy of the branch.
        trees: what git makes of both sides, and what a host may. With a conflict in it, a policy cannot be
            read.

    Raises:
        UndecidedError: the branch would get another id, or lose it.
    """
    policies = TreePolicies(objects)
    named = repository_of(objects, policies, asked)
    becomes = [policies.at(policies.key(tree)) for tree in trees]
    kept = {named} if had.fault is not None else {named, had.id}
    if named and any(each.fault is None and each.id not in kept for each in becomes):
        base, tip = (side[:SHORT_OID] for side in sides)
        raise UndecidedError(
            f"the merge of {tip} into {base} would have another [governance] id, or none: approvals that are "
            "for another repository would count there",
            f"merge or rebase onto {base}, and keep the id that it has",
        )


def _rules(objects: Objects, trees: Sequence[str], joined: Merged, asked: CheckOptions) -> PolicySides:
    """Find the policies around a merge into the first of two trees.

    Args:
        joined: what a host may make of it, with the conflicts that it joins on its own.
    """
    policies = TreePolicies(objects)
    policy_from = asked.policy_from or ""
    header = objects.header(policy_from + "^{tree}")
    judging = trees[0] if header is None else header.oid
    before, base, theirs = (policies.at(policies.key(tree)) for tree in (judging, *trees))
    return PolicySides(
        replace(before, tree=judging),
        policies.at(policies.key(joined.tree)),
        place=asked.place or policy_from[:SHORT_OID],
        hooks_named=policies.names_patchgate(trees[0]),
        base=base,
        parents=(base, theirs),
        branches={trees[0]: ()},
    )


def _require_common_history(repository: Repository, base: str, tip: str) -> None:
    """Refuse a clone whose history is cut off after the merge base: git would merge from another one."""
    shallow = repository.shallow
    if shallow and not shallow.isdisjoint(repository.output("rev-list", f"{base}...{tip}").decode().split()):
        raise UndecidedError(
            "this clone is shallow: the history that must be checked is missing",
            "git fetch --unshallow origin",
        )
