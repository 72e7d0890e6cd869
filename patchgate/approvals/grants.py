"""Which approvals count for a report: those of this machine, and the signed ones of the notes.

Without a signature one counts only where it was given; a signed one by the signers of the tree whose policy
judged, at a push one that is there already, never what the change itself or a commit before it in the same
push brings. What does not count gets a warning where it is about a refused change.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

from patchgate.approvals.approvals import LocalApprovals, SignedStatement, Statement, read_lines
from patchgate.approvals.signatures import SignatureCheck, base_tree, check_signature
from patchgate.approvals.signers import signers_of
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.refs import show_ref
from patchgate.errors import UndecidedError
from patchgate.git.notes import anchor_of, read_notes
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import iso
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.report.verdict import ChangeVerdict
from patchgate.values import dataclass

# Pushed notes must not keep a server busy. A check usually takes ten milliseconds; with many signers, of some
# kinds of keys, minutes.
_MOST_CHECKS = 32
_SECONDS_IN_ALL = 15.0
# A push of many approved commits is no error: a signature that counts takes no time from the others, up to
# what an ordinary one takes on a busy machine, and up to so much in all.
_SECONDS_GIVEN_BACK = 0.1
_SECONDS_GIVEN_BACK_IN_ALL = 30.0
_MOST_BYTES_IN_ALL = 32 << 20
# Seconds of processor time to find the notes: a tree of notes may have very many names.
_MOST_SECONDS_OF_NOTES = 5.0
_NO_SIGNERS = "there is no .patchgate/allowed_signers in"


@dataclass(frozen=True, slots=True)
class Grant:
    """An approval that counts: the statement, its author, and whether a signature proves the author.

    `key` is the fingerprint of the key that signed. `from_base` is whether the signers' file of the base
    names it, `from_server` whether the server (or the command line of CI) does; `in_base` and `in_server` are
    all who may sign with it there.
    """

    statement: Statement
    by: str
    signed: bool
    key: str = ""
    in_base: tuple[str, ...] = ()
    in_server: tuple[str, ...] = ()
    from_base: bool = False
    from_server: bool = False

    @property
    def principals(self) -> set[str]:
        """All who may sign with the key."""
        return {*self.in_base, *self.in_server}

    def counts_for(self, ref: str | None) -> bool:
        """Return whether it counts for a branch that gets the change; None is an unknown one."""
        return not self.signed or self.statement.is_for(ref)


@dataclass(frozen=True, slots=True)
class _RefusedChange:
    """A refused change: its id, its policy, and the rules that refuse it."""

    change: ChangeVerdict
    id: str
    rules: frozenset[str]

    def is_meant_by(self, statement: Statement) -> bool:
        """Return whether a statement is about this change under this policy, and one of its rules."""
        about = (statement.change_id, statement.policy)
        return about == (self.id, self.change.policy.digest) and not self.rules.isdisjoint(statement.rules)


def find_grants(
    objects: Objects,
    changes: Sequence[ChangeVerdict],
    refusing: Sequence[frozenset[str]],
    sources: ApprovalSources,
) -> tuple[list[list[Grant]], list[str]]:
    """Find, for each change, the approvals that count, with warnings about those that do not.

    What counts for one change says nothing about another of the same id: its base may name other signers.

    Args:
        refusing: the rules that refuse each of them; none if nothing can be approved.
    """
    warnings: list[str] = []
    is_read = sources.local or not sources.is_final
    own, fault = _of_this_machine(objects.repository) if is_read else ({}, None)
    if fault is not None and sources.local:
        warnings.append(fault)
    grants: list[list[Grant]] = [[] for _ in changes]
    reader = _Notes(objects, sources, warnings)
    for mine, change, rules in zip(grants, changes, refusing, strict=True):
        if not rules:
            continue
        wanted = _RefusedChange(change, change.change_id, rules)
        signed = reader.read(wanted)
        mine.extend(reader.checked(wanted, signed))
        unsigned = own.get(wanted.id, [])
        if sources.local:
            mine.extend(Grant(each, each.by, False) for each in unsigned if wanted.is_meant_by(each))
        if not wanted.rules.issubset(itertools.chain.from_iterable(grant.statement.rules for grant in mine)):
            warnings += _hints(wanted, unsigned, signed, local=sources.local)
        warnings += _of_other_branches(wanted, mine)
    return grants, list(dict.fromkeys(warnings))


def _of_this_machine(repository: Repository) -> tuple[dict[str, list[Statement]], str | None]:
    """Read the approvals without a signature, by their change id, with a warning where some are missing."""
    statements, fault = LocalApprovals(repository.common_dir).read()
    by_change: dict[str, list[Statement]] = {}
    for statement in statements:
        by_change.setdefault(statement.change_id, []).append(statement)
    return by_change, fault


def _of_other_branches(wanted: _RefusedChange, grants: Sequence[Grant]) -> Iterator[str]:
    """Say which branches that get a change still need an approval, where another has one."""
    for landing in wanted.change.lands_on:
        counting = [grant for grant in grants if grant.counts_for(landing.ref)]
        if counting != list(grants) and not wanted.rules.issubset(
            itertools.chain.from_iterable(grant.statement.rules for grant in counting)
        ):
            other = next(grant.statement for grant in grants if grant not in counting)
            yield f"{_named(wanted, other)} does not count for {_branch(landing.ref)}"


def _hints(
    wanted: _RefusedChange, own: Sequence[Statement], signed: Sequence[SignedStatement], *, local: bool
) -> Iterator[str]:
    """Say why the approvals of a change that stays refused do not help."""
    if not local and (meant := [each for each in own if wanted.is_meant_by(each)]):
        yield (
            f"the approval by {printable(meant[-1].by)} has no signature and counts only on this machine; "
            "the push needs a signature: approve again with --sign"
        )
    about = [each.statement for each in signed if each.statement.change_id == wanted.id]
    for statement in [*about, *(own if local else ())]:
        is_other = statement.policy != wanted.change.policy.digest
        if is_other and not wanted.rules.isdisjoint(statement.rules):
            yield (
                f"the approval by {printable(statement.by)} of {statement.at} was given under another "
                "policy; this one needs a new approval"
            )


class _Notes:
    """Reads the notes about refused changes and checks their signatures."""

    def __init__(
        self,
        objects: Objects,
        sources: ApprovalSources,
        warnings: list[str],
    ) -> None:
        self._objects = objects
        self._sources = sources
        self._now = iso(time.time() if sources.now is None else sources.now)
        self._warnings = warnings
        self._signers: dict[str, bytes | None] = {}
        self._n_bytes = 0
        self._seconds = _SECONDS_IN_ALL
        self._seconds_to_give_back = _SECONDS_GIVEN_BACK_IN_ALL
        self._seconds_of_notes = _MOST_SECONDS_OF_NOTES
        self._checked: dict[tuple[SignedStatement, str | None], SignatureCheck] = {}

    def read(self, wanted: _RefusedChange) -> list[SignedStatement]:
        """Read every signed statement of the notes about a change, not yet verified."""
        anchor = anchor_of(self._objects, wanted.id)
        everything: list[SignedStatement] = []
        for place in self._sources.notes:
            try:
                for note in self._read_notes(place, anchor):
                    found, n_bad = read_lines(note)
                    everything += found
                    if n_bad:
                        lines = "1 line" if n_bad == 1 else f"{n_bad} lines"
                        self._warnings.append(f"{lines} of the approvals of {_name(wanted)} cannot be read")
            except UndecidedError as error:
                self._warnings.append(f"the approvals of {_name(wanted)} do not count: {error.sentence}")
        return list(dict.fromkeys(everything))

    def _read_notes(self, place: str, anchor: str) -> Iterator[bytes]:
        """Yield the notes about a change, until too much was read of all changes."""
        notes = read_notes(self._objects, place, anchor)
        while self._n_bytes <= _MOST_BYTES_IN_ALL and self._seconds_of_notes > 0:
            began = time.process_time()
            note = next(notes, None)
            self._seconds_of_notes -= time.process_time() - began
            if note is None:
                return
            self._n_bytes += len(note)
            yield note
        raise UndecidedError("the notes about all changes are too large together, or are among too many")

    def checked(self, wanted: _RefusedChange, found: Sequence[SignedStatement]) -> Iterator[Grant]:
        """Yield those that are about this change under this policy, and whose signature is valid."""
        meant = []
        for signed in found:
            if wanted.is_meant_by(signed.statement):
                fault = self._fault(wanted, signed.statement)
                meant += [] if fault else [signed]
                self._warnings += [fault] if fault else []
        if not meant:
            return
        try:
            tree = base_tree(self._objects, wanted.change)
            signers = self._signers_of(tree)
        except UndecidedError as error:
            self._warnings.append(f"the approvals of {_name(wanted)} do not count: {error.sentence}")
            return
        if (tree is None or signers is None) and not self._sources.signers:
            origin = printable(wanted.change.policy.origin)
            self._warnings.append(
                f"{_NO_SIGNERS} the tree that the policy {origin} is from, so no signature counts"
            )
            return
        if len(meant) > _MOST_CHECKS:
            more = len(meant) - _MOST_CHECKS
            self._warnings.append(f"{more} more approvals of {_name(wanted)} were not checked")
        for signed in meant[:_MOST_CHECKS]:
            left = self._seconds
            done = self._check(signed, tree, signers or b"")
            by_server = self._check(signed, None, self._sources.signers)
            from_base, in_base = done.principal is not None, done.principals
            if not from_base:
                done = by_server if self._sources.signers else done
            if done.principal is not None:
                self._give_back(left - self._seconds)
                yield Grant(
                    statement=signed.statement,
                    by=done.principal,
                    signed=True,
                    key=done.key,
                    in_base=in_base if from_base else (),
                    in_server=by_server.principals,
                    from_base=from_base,
                    from_server=by_server.principal is not None,
                )
            else:
                claimed = printable(signed.statement.by)
                self._warnings.append(
                    f"an approval of {_name(wanted)} in the name of {claimed} does not count: {done.why}"
                )

    def _give_back(self, seconds: float) -> None:
        """Give back the time that a signature took which counts."""
        seconds = min(seconds, _SECONDS_GIVEN_BACK, self._seconds_to_give_back)
        self._seconds += seconds
        self._seconds_to_give_back -= seconds

    def _fault(self, wanted: _RefusedChange, statement: Statement) -> str | None:
        """Say why a statement about a change does not count, whoever signed it."""
        name = _named(wanted, statement)
        if statement.expires is not None and statement.expires <= self._now:
            return f"{name} does not count: it expired at {statement.expires}"
        here = {wanted.change.repository_for(ref) for ref in wanted.change.lands_on}
        others = (here or {wanted.change.policy.repository}) - {statement.repository}
        if others:
            this = first_of(sorted(filter(None, others)), 1, printable) or "not set"
            of = "no repository" if statement.repository is None else printable(statement.repository)
            return f"{name} does not count: it names {of}, and [governance] id is {this} here"
        refs = [ref.ref for ref in wanted.change.lands_on]
        if statement.ref is not None and refs and not any(map(statement.is_for, refs)):
            where = _branch(refs[0])
            return f"{name} does not count: it is for {show_ref(statement.ref)}, and this lands on {where}"
        return None

    def _check(self, signed: SignedStatement, tree: str | None, signers: bytes) -> SignatureCheck:
        """Check a signature, once for each tree that names signers; None: those of the server."""
        if not signers:
            return SignatureCheck(None, f"there is no {ALLOWED_SIGNERS.quoted}")
        key = (signed, tree)
        if key not in self._checked:
            if self._seconds <= 0:
                return SignatureCheck(None, "the signatures before it took too long to check")
            begin = time.monotonic()
            try:
                done = check_signature(signed, signers, self._objects.repository.environment, self._seconds)
            except UndecidedError as error:
                done = SignatureCheck(None, f"its signature could not be checked: {error.sentence}")
            self._checked[key] = done
            self._seconds -= time.monotonic() - begin
        return self._checked[key]

    def _signers_of(self, tree: str | None) -> bytes | None:
        if tree is None:
            return None
        if tree not in self._signers:
            self._signers[tree] = signers_of(self._objects, tree)
        return self._signers[tree]


def _branch(ref: str | None) -> str:
    return "an unknown branch" if ref is None else show_ref(ref)


def _named(wanted: _RefusedChange, statement: Statement) -> str:
    return f"the approval of {_name(wanted)} by {printable(statement.by)} of {statement.at}"


def _name(wanted: _RefusedChange) -> str:
    commit = wanted.change.source.commit
    return f"commit {commit[:12]}" if commit else f"change {wanted.id[7:19]}"
