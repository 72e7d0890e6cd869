"""Approve one change under one policy.

Decides which change a name means, what of it can be approved, and where the statement is stored: in this
machine's approvals, or, if signed, in a note that can be pushed. The change is judged again: the ledger only
shows where to look. The command line asks who approves, and for confirmation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from patchgate.approvals.apply_approvals import (
    apply_approvals,
    errors_of,
    may_be_approved,
    undecided_gates,
)
from patchgate.approvals.approvals import LocalApprovals, SignedStatement, Statement, identity
from patchgate.approvals.binding import NOT_BOUND, Binding, with_branch
from patchgate.approvals.merge_sides import chosen_sides
from patchgate.approvals.signatures import base_tree, check_signature, sign
from patchgate.approvals.signers import signers_of
from patchgate.check.commits import check_revision
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.notes import APPROVALS_REF, add_line, anchor_of
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.ledger.ledger import Event, Ledger
from patchgate.policy.policy import Profile
from patchgate.policy.tree_policies import TreePolicies, built_in
from patchgate.report.rules import RULES, Stage
from patchgate.report.verdict import (
    OWNER_RULE,
    ChangeVerdict,
    Finding,
    Json,
    Outcome,
    OwnedPaths,
    ProtectedRef,
    Report,
    Verdict,
)
from patchgate.report.wording import SHORT_OID, describe_gate, name_change
from patchgate.values import dataclass, field, replace

STAGED = "@staged"
_ID = re.compile(r"(sha256:)?([0-9a-f]{8,64})")
_NAMES = "name @staged, --last, a change id, or a commit"
_LOOKED_AT = 200


def last_refused_change(repository: Repository, asked: CheckOptions) -> ChangeVerdict:
    """Judge again the last refused change in the ledger.

    Raises:
        UsageError: nothing was refused here, or it is not there any more.
        PatchgateError: it could not be read.
    """
    refused = [event for event in Ledger(repository.common_dir).events() if event.kind == "refused"]
    if not refused:
        raise UsageError("nothing was refused here", _NAMES)
    return _again(repository, refused[-1], asked)


def resolve_change(
    repository: Repository, name: str, asked: CheckOptions, *, signs: bool = False
) -> ChangeVerdict:
    """Judge the change that a name means: `@staged`, a change id or the start of one, a commit.

    Raises:
        UsageError: it means nothing, or more than one change.
        PatchgateError: it could not be read.
    """
    if name == STAGED:
        return _only(check_pending(repository, _or_trusted(repository, asked)))
    if ".." in name:
        raise UsageError(f"{printable(name, 100)} is a range: approve one change at a time", _NAMES)
    written = _ID.fullmatch(name)
    commit = None if written is not None and written.group(1) else _commit(repository, name)
    digits = written.group(2) if written is not None else None
    if commit is not None and digits is not None:
        require_id(digits, commit)
    events = _events_about(repository, digits, commit)
    others = [event for event in events if commit is None or event.about.get("commit") != commit]
    ids = {event.about.get("change_id") for event in others}
    if len(ids) + (commit is not None) > 1:
        raise UsageError(
            f"{printable(name, 100)} means more than one change",
            "write the commit's full id, or sha256: and more digits of the change id",
        )
    if commit is not None:
        require_id(digits or commit, commit, is_whole=signs)
        return _committed(repository, commit, asked, events[-1].about.get("policy") if events else None)
    if others:
        return _again(repository, others[-1], asked)
    pending = _pending(repository, digits, asked) if digits is not None else None
    if pending is None:
        raise UsageError(f"{printable(name, 100)} is not a known change or commit", _NAMES)
    return pending


def require_id(digits: str, commit: str, *, is_whole: bool = False) -> None:
    """Refuse a ref with a name like the beginning of an id: whoever pushes it would choose what is approved.

    `is_whole`: and the beginning of an id: two commits with the same 12 digits are made in half a minute.

    Raises:
        UsageError: it is one.
    """
    if _ID.fullmatch(digits) and not commit.startswith(digits):
        raise UsageError(
            f"{printable(digits)} is a name of {commit[:SHORT_OID]} here, and looks like the id of another",
            "fetch what you mean to approve; of a tag or branch, write its full name: refs/tags/NAME",
        )
    if is_whole and _ID.fullmatch(digits) and len(digits) < len(commit):
        raise UsageError(
            f"{printable(digits)} is the beginning of an id, and another commit may begin so, too",
            "name it by its whole id, as it was printed where it was refused, or by a ref",
        )


def _or_trusted(repository: Repository, asked: CheckOptions) -> CheckOptions:
    if asked.policy_from is not None:
        return asked
    return replace(trusted_options(repository), profile=asked.profile, profile_reason=asked.profile_reason)


def _only(report: Report) -> ChangeVerdict:
    (change,) = report.changes
    return change


def _commit(repository: Repository, name: str) -> str | None:
    with Objects(repository) as objects:
        _, commit = tree_named(objects, name) or (None, None)
    return commit


def _events_about(repository: Repository, digits: str | None, commit: str | None) -> list[Event]:
    """Find the refusals of a commit, and of changes whose id begins so; a damaged ledger ends early."""
    start = None if digits is None else "sha256:" + digits
    found: list[Event] = []
    with suppress(UndecidedError, OSError):
        for event in Ledger(repository.common_dir).events():
            is_of_commit = commit is not None and event.about.get("commit") == commit
            about = event.about.get("change_id")
            is_named = start is not None and isinstance(about, str) and about.startswith(start)
            if event.kind in {"refused", "observed"} and (is_of_commit or is_named):
                found.append(event)
    return found


def _again(repository: Repository, event: Event, asked: CheckOptions) -> ChangeVerdict:
    """Judge again the change of an event; it must still be the same change."""
    commit, wanted = event.about.get("commit"), event.about.get("change_id")
    if not isinstance(wanted, str):
        raise UsageError("the ledger does not say which change was refused", _NAMES)
    short = printable(wanted[: len("sha256:") + 12])
    if isinstance(commit, str):
        if _commit(repository, commit) is None:
            raise UsageError(f"commit {printable(commit[:12])} no longer exists here", _NAMES)
        change = _committed(repository, commit, asked, event.about.get("policy"))
        if change.change_id == wanted:
            return change
        raise UsageError(f"commit {printable(commit[:12])} is no longer the change {short}", _NAMES)
    change_now = _pending(repository, wanted.removeprefix("sha256:"), asked)
    if change_now is None:
        raise UsageError(
            f"the change {short} is no longer staged",
            'git add the files, then: git patchgate approve @staged --reason "..."',
        )
    return change_now


def _pending(repository: Repository, digits: str, asked: CheckOptions) -> ChangeVerdict | None:
    """Judge what is staged, or else the working tree, if its change id begins so."""
    if repository.work_tree is None:
        return None
    terms = _or_trusted(repository, asked)
    for whole_tree in (False, True):
        with suppress(UndecidedError):
            change = _only(check_pending(repository, terms, whole_tree=whole_tree))
            if change.change_id.startswith("sha256:" + digits):
                return change
    return None


def _committed(repository: Repository, commit: str, asked: CheckOptions, digest: Json) -> ChangeVerdict:
    """Judge a commit, by the policy under which it was refused if that can be found."""
    if asked.policy_from is not None and asked.target is not None:
        asked = with_branch(repository, asked, asked.target, commit)
    change = _only(check_revision(repository, commit, _or_trusted(repository, asked)))
    if not isinstance(digest, str) or asked.policy_from is not None or change.policy.digest == digest:
        return change
    place = _place_of(repository, commit, digest, Profile(change.profile))
    if place is None:
        # The policy has changed since; what judges now is what an exception is needed from.
        return change
    return _only(check_revision(repository, commit, replace(asked, policy_from=place)))


def _place_of(repository: Repository, commit: str, digest: str, profile: Profile) -> str | None:
    """Find a commit with this policy: a push is judged by one that the remote has, behind this or a ref."""
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        for place in _places(repository, commit):
            header = objects.header(place + "^{tree}")
            if header is None:
                continue
            with suppress(PatchgateError):
                found = policies.at(policies.key(header.oid))
                policy = built_in() if found.is_absent else found.policy
                if policy is not None and policy.digest(profile) == digest:
                    return place
    return None


def _places(repository: Repository, commit: str) -> Iterator[str]:
    count = f"--max-count={_LOOKED_AT}"
    behind = repository.git("rev-list", "--first-parent", "--skip=1", count, commit)
    refs = repository.git("for-each-ref", f"--count={_LOOKED_AT}", "--format=%(objectname)", "refs/remotes")
    for done in (behind, refs):
        yield from dict.fromkeys(done.out.decode("ascii", "replace").split())


@dataclass(frozen=True, slots=True)
class Exemption:
    """What an approval would allow: the change, the findings that refuse it, and its paths with owners.

    `sides`: the paths of which a merge takes one side, and the parent whose; see `chosen_sides`.
    """

    change: ChangeVerdict
    findings: tuple[Finding, ...]
    owned: tuple[OwnedPaths, ...] = ()
    sides: Mapping[RepoPath, str | None] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The change id."""
        return self.change.change_id

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the approval allows, sorted, each once."""
        owned = {OWNER_RULE} if self.owned else set()
        return tuple(sorted({finding.rule for finding in self.findings} | owned))

    @property
    def name(self) -> str:
        """The change's name for messages."""
        return f"{name_change(self.change)} ({self.id[: len('sha256:') + 12]})"

    def state(self, reason: str, by: str, at: str, bound: Binding = NOT_BOUND) -> Statement:
        """Make the statement of a maintainer.

        Raises:
            UsageError: it cannot name the branch or the repository.
        """
        try:
            return Statement(
                change_id=self.id,
                policy=self.change.policy.digest,
                rules=self.rules,
                reason=reason,
                by=by,
                at=at,
                repository=bound.repository,
                ref=bound.ref,
                rules_state=bound.rules,
                expires=bound.expires,
            )
        except ValueError as error:
            hint = "a branch and [governance] id have at most 300 characters that can be printed"
            raise UsageError(f"no approval can be made: {error}", hint) from error


@dataclass(frozen=True, slots=True)
class Granted:
    """The result of an approval: its author (proven if signed), and warnings."""

    by: str
    warnings: tuple[str, ...] = ()


def exempt(
    repository: Repository,
    change: ChangeVerdict,
    rules: Sequence[str] = (),
    *,
    signed: bool,
    ref: str | None = None,
) -> Exemption:
    """Find what an approval of a change would allow.

    Args:
        change: as it was judged.
        rules: allow only these; empty: everything that refuses the change.
        signed: the approval will be signed, so an unsigned one does not make it needless.
        ref: the branch that it will name, so one for another branch does not either.

    Raises:
        UsageError: nothing is refused, or an invariant refuses, or a rule that was named does not.
        UndecidedError: a part of the change was not judged.
    """
    name = name_change(change)
    owned = change.owned if signed and (not rules or OWNER_RULE in rules) else ()
    _require_judged(change, name, is_owned=bool(owned))
    if any(not may_be_approved(change, finding) for finding in errors_of(change)):
        raise _out_of_reach(change, name)
    # What names a branch makes nothing needless that names another, or none.
    asking = replace(change, owned=(), lands_on=(ProtectedRef(ref, None),)) if signed else change
    left = apply_approvals(repository, Report((asking,)), ApprovalSources(local=not signed)).changes[0]
    left = replace(left, owned=change.owned, lands_on=change.lands_on)
    if left.verdict is Verdict.ACCEPTED and not owned:
        raise UsageError(f"the {name} is approved already", "no approval is needed")
    known = sorted({finding.rule for finding in errors_of(left)} | ({OWNER_RULE} if owned else set()))
    for rule in rules:
        if rule not in known:
            raise _not_refusing(rule, name, known)
    findings = tuple(each for each in errors_of(left) if not rules or each.rule in rules)
    sides = chosen_sides(repository, left) if signed else {}
    return Exemption(left, findings, owned, sides)


def _require_judged(change: ChangeVerdict, name: str, *, is_owned: bool) -> None:
    owing = undecided_gates(change)
    if change.verdict is Verdict.UNDECIDED or owing:
        # An undecided gate comes first: it is why the others were not run.
        owing.sort(key=lambda gate: gate.outcome is Outcome.NOT_RUN)
        why = describe_gate(owing[0]) if owing else "no gate has checked it"
        raise UndecidedError(
            f"the {name} could not be judged, so nobody can approve it: {why}", "fix that first"
        )
    if not change.change.files:
        raise UsageError(
            f"the {name} changes nothing, so there is nothing to approve",
            "git commit -a and git commit PATH stage only when they run: git add the files, then approve",
        )
    if change.verdict is Verdict.ACCEPTED and not is_owned:
        raise UsageError(f"the {name} is accepted: there is nothing to approve", "no approval is needed")


def _out_of_reach(change: ChangeVerdict, name: str) -> UsageError:
    finding = next(each for each in errors_of(change) if not may_be_approved(change, each))
    if finding.definition.invariant:
        what = f"{finding.rule} is an invariant: no approval can allow it"
    elif finding.definition.stage is Stage.MESSAGE:
        what = f"{finding.rule} is about its message: fix that first"
    else:
        what = "only staged changes, working trees and commits can be approved"
    return UsageError(f"the {name} cannot be approved; {what}", finding.hint or finding.definition.hint)


def _not_refusing(rule: str, name: str, known: Sequence[str]) -> UsageError:
    shown = printable(rule, 60)
    if rule not in RULES:
        return UsageError(f"there is no rule {shown}", f"one of: {', '.join(known)}")
    if RULES[rule].invariant:
        return UsageError(f"{shown} is an invariant: no approval can allow it", f"one of: {', '.join(known)}")
    return UsageError(f"{shown} does not refuse the {name}", f"one of: {', '.join(known)}")


def grant(repository: Repository, exemption: Exemption, statement: Statement) -> Granted:
    """Record an approval that counts on this machine, until the push.

    Raises:
        UndecidedError: it could not be written.
    """
    warning = LocalApprovals(repository.common_dir).add(statement)
    warnings = (warning,) if warning else ()
    return Granted(statement.by, warnings + _record(repository, exemption, statement, statement.by, False))


def grant_signed(
    repository: Repository, exemption: Exemption, statement: Statement, environ: Mapping[str, str]
) -> Granted:
    """Sign an approval and add it to the notes, where it counts wherever they are.

    Args:
        environ: the caller's: who commits, and the socket of ssh-agent.

    Raises:
        UsageError: no key is named, or its signature would count nowhere.
        UndecidedError: ssh-keygen is missing or could not sign, or the note could not be written.
    """
    signed = sign(repository, statement, environ.get("SSH_AUTH_SOCK"))
    with Objects(repository) as objects:
        principal, warning = _require_signer(objects, exemption, signed)
        anchor = anchor_of(objects, exemption.id)
    add_line(
        repository,
        APPROVALS_REF,
        anchor,
        signed.to_line(),
        message=f"Approve {', '.join(statement.rules)} for {exemption.id}",
        identity=identity(environ),
    )
    return Granted(principal, warning + _record(repository, exemption, statement, principal, True))


def _require_signer(
    objects: Objects, exemption: Exemption, signed: SignedStatement
) -> tuple[str, tuple[str, ...]]:
    """Check a signature as others will, before it is saved; return the principal, and warnings."""
    change = exemption.change
    tree = base_tree(objects, change)
    signers = signers_of(objects, tree) if tree is not None else None
    place = printable(change.policy.origin)
    hint = "add your public key there, in a separate commit (ssh-keygen(1), ALLOWED SIGNERS, has the form)"
    if signers is None:
        why = f"the signature would not count: there is no .patchgate/allowed_signers for {place}"
    else:
        done = check_signature(signed, signers, objects.repository.environment)
        if done.principal is not None:
            return done.principal, ()
        why = f"the signature would not count for {place}: {done.why}"
    if not any(owned.is_policy for owned in exemption.owned):
        raise UsageError(why, hint)
    # That is how the first signers come in, and how a lost key is replaced.
    where = "it counts only where the command line of the server or of CI names your key (--signer)"
    return signed.statement.by, (f"{place} does not name your key as a signer's; {where}",)


def _record(
    repository: Repository, exemption: Exemption, statement: Statement, by: str, signed: bool
) -> tuple[str, ...]:
    source = exemption.change.source
    about: dict[str, Json] = {
        "change_id": statement.change_id,
        "policy": statement.policy,
        "rules": list(statement.rules),
        "reason": statement.reason,
        "by": by,
        "signed": signed,
        "source": source.kind,
        "commit": source.commit,
        "verdict_id": exemption.change.id,
    }
    warning = Ledger(repository.common_dir).record("approved", about)
    return (warning,) if warning else ()
