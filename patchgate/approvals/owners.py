"""Ask for the approvals of owners: of paths with owners, on the protected refs that get them.

Nothing else replaces them: neither a commit's own signature nor an approval without one. For control files
an approval names the repository, the ref, and the commits there that have changed control files, so none
counts twice. The owners and the signers are those of the base.
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress

from patchgate.approvals.approvals import Statement
from patchgate.approvals.approved_commits import Contents
from patchgate.approvals.binding import RulesState, rules_state
from patchgate.approvals.grants import Grant
from patchgate.approvals.owned_refs import compare_ref
from patchgate.approvals.owner_finding import GATE, owner_finding
from patchgate.approvals.signatures import base_tree
from patchgate.approvals.signers import signers_of
from patchgate.check.gate import MOST_FINDINGS
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.refs import show_ref
from patchgate.errors import UndecidedError
from patchgate.git.notes import APPROVALS_REF
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES
from patchgate.git.quoting import first_of, in_shell, printable
from patchgate.git.revisions import tree_named
from patchgate.policy.codeowners import MOST_BYTES, PLACES, CodeOwners
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    OWNER_RULE,
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    OwnedPaths,
    ProtectedRef,
    Report,
    Verdict,
)
from patchgate.report.wording import SHORT_OID, count
from patchgate.values import dataclass, replace

_MOST_NAMED = 5
# A file of 2,450 sections takes 4 ms for each path.
_MOST_LOOKED_UP = 500
_MOST_COMPARED = 5
# How many of the keys with the fewest or the most names are left out to find more people.
_FIRST_LEFT_OUT = 2
# Seconds of processor time, git's too, to find which commits have changed the rules, for all branches.
_MOST_SECONDS_OF_RULES = 10.0


def require_owners(
    objects: Objects, report: Report, grants: Sequence[Sequence[Grant]], sources: ApprovalSources
) -> Report:
    """Add to each change of a report what approvals of owners it lacks.

    Where a change lands on no protected ref, a warning names whom the server will ask.

    Args:
        grants: the approvals that count for each change.
    """
    warnings: dict[str, None] = {}
    check = _OwnersCheck(objects, sources, warnings)
    changes = [check.judge(change, mine) for change, mine in zip(report.changes, grants, strict=True)]
    of_refs = [change for change in changes if change.source.kind == "ref"]
    refused = {change.source.ref for change in of_refs if change.verdict is Verdict.REJECTED}
    # The walks of a history cost much: what a refused ref would also lose is said of the first ones only.
    spared = {each.ref for each in report.lands_on if each.is_forced and each.ref in refused}
    spared -= set(sorted(filter(None, spared))[:_MOST_COMPARED])
    contents = Contents(objects, TreePolicies(objects))
    # Many refs may get many commits: each list is made once.
    gets: dict[ProtectedRef, list[ChangeVerdict]] = {ref: [] for ref in report.lands_on}
    for change in changes:
        for ref in change.lands_on:
            gets.setdefault(ref, []).append(change)
    for ref in report.lands_on:
        rules_of = check.rules_of if ref.is_forced and ref.ref not in spared else None
        changes += compare_ref(objects, ref, gets[ref], sources, rules_of, contents)
    return replace(report, changes=tuple(changes), warnings=(*report.warnings, *warnings))


def name_code_owners(objects: Objects, report: Report) -> Report:
    """Add to the first errors of a report who owns their paths by the CODEOWNERS file of the base."""
    known: dict[str, CodeOwners | None] = {}
    reader, left = _CodeOwnersReader(objects), _MOST_LOOKED_UP

    def named(change: ChangeVerdict, finding: Finding) -> Finding:
        nonlocal left
        if finding.level is not Level.ERROR or finding.path is None or not left:
            return finding
        left -= 1
        tree = base_tree(objects, change) or change.change.base
        if tree not in known:
            known[tree] = reader.of(tree)
        file = known[tree]
        owners = file.of(finding.path) if file is not None else ()
        if not owners:
            return finding
        note = f"owner: {first_of(owners, _MOST_NAMED, printable)}"
        return replace(finding, notes=(*finding.notes, note), details={**finding.details, "owner": owners})

    changes = (
        replace(change, findings=tuple(named(change, finding) for finding in change.findings))
        if change.findings
        else change
        for change in report.changes
    )
    return replace(report, changes=tuple(changes))


class _CodeOwnersReader:
    """Reads the CODEOWNERS files of trees: each content once, all together as much as one may have."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._files: dict[str, CodeOwners] = {}
        self._left = MOST_BYTES

    def of(self, tree: str) -> CodeOwners | None:
        """Return the file of a tree; None if it has none, or that is not read."""
        # Nothing depends on it: a file that cannot be read names nobody.
        with suppress(UndecidedError):
            for place in PLACES:
                entry = self._objects.entry(tree, place)
                if entry is not None and entry.is_file:
                    return self._read(entry.oid)
        return None

    def _read(self, oid: str) -> CodeOwners:
        if oid not in self._files:
            content = self._objects.read(oid, self._left)
            self._left -= len(content)
            self._files[oid] = CodeOwners(content)
        return self._files[oid]


def describe_owners(owned: OwnedPaths) -> str:
    """Name the owners of some paths, for messages."""
    if owned.signers:
        return first_of(owned.signers, _MOST_NAMED, printable)
    return f"the signers in {ALLOWED_SIGNERS.quoted}" + (" or of the server" if owned.is_policy else "")


@dataclass(frozen=True, slots=True)
class _Counted:
    """The approvals for some paths on one ref: by whom, and why others do not count."""

    owned: OwnedPaths
    ref: ProtectedRef
    given: tuple[str, ...]
    why: tuple[str, ...]


class _OwnersCheck:
    """Counts the approvals of owners."""

    def __init__(self, objects: Objects, sources: ApprovalSources, warnings: dict[str, None]) -> None:
        self._objects = objects
        self._sources = sources
        self._warnings = warnings
        self._rules: dict[str | None, RulesState] = {}
        self._seconds_of_rules = _MOST_SECONDS_OF_RULES
        self._n_findings = 0
        self._found_people: dict[tuple[tuple[int, ...], frozenset[str]], list[Grant]] = {}

    def judge(self, change: ChangeVerdict, grants: Sequence[Grant]) -> ChangeVerdict:
        """Add what a change lacks: a finding for each table and ref, and the outcome of the gate.

        Raises:
            UndecidedError: all changes together lack too much.
        """
        if not change.owned:
            return change
        if not change.lands_on:
            self._warnings.update(dict.fromkeys(_announced(change)))
            return change
        try:
            owned = self._required(change)
            counted = [self._count(change, paths, ref, grants) for paths in owned for ref in change.lands_on]
        except UndecidedError as error:
            outcome = GateOutcome(GATE, Outcome.UNDECIDED, error.sentence)
            return replace(change, context_gates=(*change.context_gates, outcome))
        if not owned:
            return change
        lacking = [each for each in counted if len(each.given) < each.owned.approvals]
        given = dict.fromkeys(printable(by) for each in counted for by in each.given)
        reason = f"approved by {', '.join(given)}" if given else None
        outcome = GateOutcome(GATE, Outcome.FAIL if lacking else Outcome.PASS, reason)
        self._warnings.update(dict.fromkeys(why for each in lacking for why in each.why))
        if lacking and not self._has_notes():
            self._warnings[f"there are no approvals here: push or fetch {APPROVALS_REF} too"] = None
        is_first = self._sources.is_final and bool(lacking) and not self._has_signers(change)
        self._n_findings += len(lacking)
        if self._n_findings > MOST_FINDINGS:
            raise UndecidedError(
                f"the commits lack more than {MOST_FINDINGS:,} approvals of owners together",
                "get those of the first commits, and push fewer commits at once",
            )
        findings = tuple(_finding(change, each, is_first=is_first) for each in lacking)
        return replace(
            change, findings=(*change.findings, *findings), context_gates=(*change.context_gates, outcome)
        )

    def _has_notes(self) -> bool:
        return any(tree_named(self._objects, place) is not None for place in self._sources.notes)

    def _required(self, change: ChangeVerdict) -> list[OwnedPaths]:
        """List the paths of a change whose owners must approve.

        Without a table they are those that only a signer may change; where the base names none, only the
        server can, so pre-push warns.
        """
        found = [owned for owned in change.owned if owned.table is not None]
        covered = {path for owned in found for path in owned.paths}
        plain = [each for each in change.owned if each.table is None and not covered.issuperset(each.paths)]
        if self._has_signers(change):
            return found + plain
        if self._sources.is_final:
            return found + [each for each in plain if each.has_tables or ALLOWED_SIGNERS in each.paths]
        if any(ALLOWED_SIGNERS in owned.paths for owned in change.owned):
            self._warnings[
                f"{ALLOWED_SIGNERS.quoted} names the first signers: the server accepts them only with the "
                "approval of one whom its own command line named (git patchgate install --server --signer)"
            ] = None
        return [each for each in found if not each.is_policy]

    def _has_signers(self, change: ChangeVerdict) -> bool:
        tree = base_tree(self._objects, change)
        in_base = tree is not None and signers_of(self._objects, tree) is not None
        return in_base or bool(self._sources.signers)

    def _count(
        self, change: ChangeVerdict, owned: OwnedPaths, ref: ProtectedRef, grants: Sequence[Grant]
    ) -> _Counted:
        """Count the owners of some paths who have approved a change for a ref."""
        if ref.repository == "":
            raise UndecidedError(
                "the default branch of the remote is not known here, so it is not known for which repository "
                "an approval must be",
                "git fetch origin '+refs/heads/*:refs/remotes/origin/*' && git remote set-head origin --auto",
            )
        counted: list[Grant] = []
        why: list[str] = []
        for grant in grants:
            if OWNER_RULE not in grant.statement.rules or not grant.signed:
                continue
            fault = _not_an_owner(owned, grant) or self._unbound(change, owned, ref, grant.statement)
            if fault is not None:
                why.append(fault)
            else:
                counted.append(grant)
        people = self._people(counted, frozenset(owned.signers))
        given = tuple(grant.by for grant in people)
        chosen = set(map(id, people))
        others = (grant for grant in counted if id(grant) not in chosen)
        why += (
            f"the approval by {printable(each.by)} may be of the same person as another" for each in others
        )
        return _Counted(owned, ref, given, tuple(dict.fromkeys(why)))

    def _people(self, grants: Sequence[Grant], named: frozenset[str]) -> list[Grant]:
        """Choose approvals of different people, once for the same ones: many tables and refs ask for them."""
        key = (tuple(map(id, grants)), named)
        if key not in self._found_people:
            self._found_people[key] = _different_people(grants, named)
        return self._found_people[key]

    def _unbound(
        self, change: ChangeVerdict, owned: OwnedPaths, ref: ProtectedRef, statement: Statement
    ) -> str | None:
        """Say what a statement is bound to instead of this repository, ref and state of the rules."""
        if not owned.is_policy and statement.ref in {None, ref.ref}:
            return None
        name = f"the approval by {printable(statement.by)} of {statement.at}"
        if statement.ref is None:
            return f"{name} names no branch; approve again with --for"
        if ref.ref is None:
            return f"{name} is for {show_ref(statement.ref)}, and it is not known which branch gets this"
        if statement.ref != ref.ref:
            return f"{name} is for {show_ref(statement.ref)}, not for {show_ref(ref.ref)}"
        if statement.repository != change.repository_for(ref):
            return f"{name} does not name this repository ([governance] id)"
        state = self.rules_of(ref.commit)
        states = itertools.chain([state], map(self.rules_of, ref.been))
        if all(statement.rules_state != each.digest for each in states):
            where = show_ref(ref.ref)
            if state.lacks is not None or state.newest is None:
                return f"{name} is for another commit of {where}, which lacks {state.lacks or 'any commit'}"
            return (
                f"{name} was given before the rules changed: {state.newest[:SHORT_OID]} changed them last "
                f"on {where}"
            )
        return None

    def rules_of(self, commit: str | None) -> RulesState:
        """Return which commits that a branch has, or would get, have changed control files.

        Raises:
            UndecidedError: git failed, the history is cut off, or it took too long for other branches.
        """
        if commit not in self._rules:
            if self._seconds_of_rules <= 0:
                raise UndecidedError(
                    "it takes too long to compare what has changed the rules of so many branches",
                    "push fewer branches at once",
                )
            begin = sum(os.times()[:4])
            self._rules[commit] = rules_state(self._objects, commit)
            self._seconds_of_rules -= sum(os.times()[:4]) - begin
        return self._rules[commit]


def _different_people(grants: Sequence[Grant], named: frozenset[str] = frozenset()) -> list[Grant]:
    """Choose approvals that are of different people for certain: each has a principal that no other has.

    Args:
        named: the principals that a table names, each one person: only these count then. So the server has
            to name a key by one of them, where that is to count beside another.
    """

    def own_names(one: Grant, *others: Grant) -> set[str]:
        found = one.principals.intersection(*(_own_names(one, other) for other in others))
        return found & named if named else found

    def chosen(ordered: Sequence[Grant]) -> list[Grant]:
        found: list[tuple[Grant, set[str]]] = []
        for grant in ordered:
            own = own_names(grant, *(each for each, _ in found))
            others = [(each, names & own_names(each, grant)) for each, names in found]
            # One key without a name of its own is somebody, too.
            if (own or not found) and all(names for _, names in others):
                found = [*others, (grant, own)]
        return [grant for grant, _ in found]

    # A key with all names of others, or with none of its own, must not take their places.
    ordered = sorted(grants, key=lambda each: len(each.principals))
    tried = [order[number:] for order in (ordered, ordered[::-1]) for number in range(_FIRST_LEFT_OUT + 1)]
    return max(map(chosen, tried), key=len)


def _own_names(one: Grant, other: Grant) -> set[str]:
    """List the principals of a key that another key lacks: where it has none, it may be the same person's.

    They are those of the base if its list has both keys: the server's may name keys by the machines of one
    person. A key that only a pattern fits has none: it may be anybody's.
    """
    if one.key == other.key:
        return set()
    if one.from_base and other.from_base:
        return set(one.in_base).difference(other.in_base)
    if one.from_server and other.from_server:
        return set(one.in_server).difference(other.in_server)
    return one.principals - other.principals


def _not_an_owner(owned: OwnedPaths, grant: Grant) -> str | None:
    """Say that the signer of an approval is not an owner of some paths; None if he is.

    The signers that the server names may always change the rules: that is how a lost key is replaced. Of
    other paths they are owners only where a table names them.
    """
    is_owner = not grant.principals.isdisjoint(owned.signers) if owned.signers else grant.from_base
    if is_owner or (grant.from_server and owned.is_policy):
        return None
    return f"{printable(grant.by)} approved, but is not an owner"


def _announced(change: ChangeVerdict) -> Iterator[str]:
    for owned in change.owned:
        if owned.table is not None:
            yield (
                f"{_paths(owned)} has owners: before it lands on a protected branch, it needs "
                f"{count(owned.approvals, 'signed approval')} by {describe_owners(owned)}"
            )


def _paths(owned: OwnedPaths) -> str:
    more = len(owned.paths) - 1
    return owned.paths[0].quoted + (f" (and {count(more, 'other path')})" if more else "")


def _finding(change: ChangeVerdict, lacking: _Counted, *, is_first: bool) -> Finding:
    owned, ref = lacking.owned, lacking.ref
    where = f" on {show_ref(ref.ref)}" if ref.ref is not None else ""
    message = (
        f"{_paths(owned)} needs {count(owned.approvals, 'signed approval')} by {describe_owners(owned)}"
        f"{where}, and has {len(lacking.given)}"
    )
    return owner_finding(
        message,
        owned.paths[0],
        _hint(change, lacking, is_first=is_first),
        ref,
        owned,
        approved=lacking.given,
        not_counted=lacking.why,
    )


def _judging(change: ChangeVerdict, ref: ProtectedRef, name: str) -> str:
    """Name in a clone what has the policy that judges a branch: the trusted ref, the default branch or it."""
    origin = change.policy.origin.partition(":")[0]
    named = origin if origin.startswith(BRANCHES) else name
    # A new branch is not there yet, and another may have moved since.
    is_other = (ref.is_new or ref.is_past or ref.commit not in (None, ref.policy)) and named == name
    if ref.policy is not None and is_other and len(ref.policy) >= 40:
        return ref.policy
    return "refs/remotes/origin/" + named.removeprefix(BRANCHES)


def _hint(change: ChangeVerdict, lacking: _Counted, *, is_first: bool) -> str:
    if lacking.ref.ref is None:
        return "name the branch, so that approvals for it count: --policy-from refs/remotes/origin/main"
    asked = "ask an owner to approve it"
    if lacking.owned.table is None and is_first:
        named = "git patchgate install --server --signer KEY, or check --signer KEY"
        return f"{asked}; the first signers are named by {named}"
    if change.source.kind == "range":
        return f"rebase onto {show_ref(lacking.ref.ref)}, so that one commit makes this change, and {asked}"
    line = f"git patchgate approve {change.source.commit or '@staged'} --for {shlex.quote(lacking.ref.ref)}"
    base = (change.source.base_commit or "")[:SHORT_OID]
    is_other = (
        lacking.ref.is_past or change.source.kind == "merge" or not change.policy.origin.startswith(base)
    )
    if change.source.commit and is_other and lacking.ref.ref.startswith(BRANCHES):
        # Its parent has another policy, of the same push; a merge is seen whole only beside the branch.
        line += f" --policy-from {shlex.quote(_judging(change, lacking.ref, lacking.ref.ref))}"
    repository = change.repository_for(lacking.ref)
    if repository:
        line += f" --repository {in_shell(repository, 'ID')}"
    return f'{asked}: {line} --reason "..." --sign'
