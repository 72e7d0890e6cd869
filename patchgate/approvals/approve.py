"""Grant one exception: a person's word for one change under one policy.

Decides what can be approved (what is refused, by rules that are no invariants, in a change that was judged
whole), what the statement says, and where it goes: without a signature into this machine's approvals, with
one into a note that travels. Who the person is and whether they meant it, the surface asks. Which change is
meant is found in `approve_target`.

Sign a statement by the SSH key that git signs with.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchgate.approvals.approvals import LocalApprovals, Signed, Statement
from patchgate.approvals.effects import errors_of, honoured, may_be_approved, undecided_gates
from patchgate.approvals.signers import (
    NAMESPACE,
    SSH_KEYGEN,
    base_tree,
    check_signature,
    signers_of,
    without_git,
)
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.model import change_id
from patchgate.git.notes import APPROVALS_REF, add_line, anchor_of
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.ledger.ledger import Ledger
from patchgate.process import run
from patchgate.report.rules import RULES, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, Json, Outcome, Report, Verdict
from patchgate.report.wording import describe_gate, name_change

AGENT = "SSH_AUTH_SOCK"
_HINT = "git config user.signingKey ~/.ssh/id_ed25519.pub (a path, or key:: and the public key)"
_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def sign(repository: Repository, statement: Statement, agent: str | None) -> Signed:
    """Sign a statement in the namespace `patchgate`.

    Args:
        repository: whose config names the key.
        statement: what is signed.
        agent: the socket of ssh-agent, if there is one.

    Raises:
        UsageError: no key is named, or there is no such file.
        UndecidedError: ssh-keygen is missing, or could not sign.
    """
    named = _key(repository)
    environment = without_git(repository.environment)
    if agent:
        environment[AGENT] = agent
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        place = named
        if (literal := _literal(named)) is not None:
            place = os.path.join(folder, "key.pub")
            with open(place, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(literal + "\n")
        elif not os.path.isfile(place):
            raise UsageError(f"user.signingKey names no file: {printable(named, 200)}", _HINT)
        # Without a file's name it signs what it reads. It has no terminal, so it cannot ask for a passphrase.
        done = run(
            [SSH_KEYGEN, "-Y", "sign", "-n", NAMESPACE, "-f", place],
            cwd=folder,
            env=environment,
            stdin=statement.to_bytes(),
            max_output=1 << 16,
        )
    if done.code == 0:
        try:
            return Signed(statement, done.out.decode("ascii", "replace").replace("\r\n", "\n"))
        except ValueError as error:
            raise UndecidedError(f"ssh-keygen answered with something else: {error}", _HINT) from error
    said = [line.strip() for line in done.err.split(b"\n") if line.strip()]
    why = printable(said[-1], 200) if said else f"exit code {done.code}"
    raise UndecidedError(
        f"ssh-keygen could not sign: {why}",
        "load the key first: ssh-add FILE; or name another: git config user.signingKey FILE",
    )


def _key(repository: Repository) -> str:
    done = repository.git("config", "--type=path", "--null", "--get", "user.signingKey", answers=(0, 1))
    named = os.fsdecode(done.out.rstrip(b"\0"))
    if done.code != 0 or not named:
        raise UsageError("git is told no key to sign with", _HINT)
    if _literal(named) is not None:
        return named
    # As for git, a relative path starts at the top of the working tree.
    return os.path.join(repository.work_tree or repository.git_dir, named)


def _literal(named: str) -> str | None:
    """Give the public key that a setting holds itself; None where it is a path."""
    if named.startswith("key::"):
        return named.removeprefix("key::")
    return named if named.startswith(_KINDS) and " " in named else None


_IDENTITY = tuple(f"GIT_{role}_{key}" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL"))
_STAMP = re.compile(r" -?\d+ [+-]\d{4}$")


@dataclass(frozen=True, slots=True)
class Exemption:
    """What an approval would let through: the change, and the findings that refuse it."""

    change: ChangeVerdict
    findings: tuple[Finding, ...]

    @property
    def id(self) -> str:
        """The change id."""
        return change_id(self.change.change)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that are to be set aside, sorted, each once."""
        return tuple(sorted({finding.rule for finding in self.findings}))

    @property
    def name(self) -> str:
        """The change's name for people."""
        return f"{name_change(self.change)} ({self.id[: len('sha256:') + 12]})"

    def state(self, reason: str, by: str, at: str) -> Statement:
        """Write the statement of a person."""
        return Statement(self.id, self.change.policy.digest, self.rules, reason, by, at)


@dataclass(frozen=True, slots=True)
class Granted:
    """What became of an approval: who stands for it (proven, if a signature does), and warnings."""

    by: str
    warnings: tuple[str, ...] = ()


def exempt(
    repository: Repository, change: ChangeVerdict, rules: Sequence[str] = (), *, signed: bool
) -> Exemption:
    """Find what an approval of a change would let through.

    Args:
        change: as it was judged.
        rules: set these aside alone; empty: everything that refuses the change.
        signed: the approval will be signed, so that one without a signature does not make it needless.

    Raises:
        UsageError: nothing is refused, or an invariant refuses, or a rule that was named does not.
        UndecidedError: a part of the change was not judged.
    """
    name = name_change(change)
    _require_judged(change, name)
    if any(not may_be_approved(change, finding) for finding in errors_of(change)):
        raise _out_of_reach(change, name)
    left = honoured(repository, Report((change,)), local=not signed).changes[0]
    if left.verdict is Verdict.ACCEPTED:
        raise UsageError(f"the {name} is approved already", "go on with it")
    known = sorted({finding.rule for finding in errors_of(left)})
    for rule in rules:
        if rule not in known:
            raise _not_refusing(rule, name, known)
    findings = tuple(each for each in errors_of(left) if not rules or each.rule in rules)
    return Exemption(left, findings)


def _require_judged(change: ChangeVerdict, name: str) -> None:
    owing = undecided_gates(change)
    if change.verdict is Verdict.UNDECIDED or owing:
        # Who could not decide comes first: it is why the others were not run.
        owing.sort(key=lambda gate: gate.outcome is Outcome.NOT_RUN)
        why = describe_gate(owing[0]) if owing else "no gate has looked at it"
        raise UndecidedError(
            f"the {name} could not be judged, so nobody can approve it: {why}", "mend that first"
        )
    if not change.change.files:
        raise UsageError(
            f"the {name} changes nothing, so there is nothing to approve",
            "git commit -a and git commit PATH stage by themselves: git add what is meant, then approve",
        )
    if change.verdict is Verdict.ACCEPTED:
        raise UsageError(f"the {name} is accepted: there is nothing to approve", "go on with it")


def _out_of_reach(change: ChangeVerdict, name: str) -> UsageError:
    finding = next(each for each in errors_of(change) if not may_be_approved(change, each))
    if finding.definition.invariant:
        what = f"{finding.rule} is an invariant: no approval touches it"
    elif finding.definition.stage is Stage.MESSAGE:
        what = f"{finding.rule} is about its message: mend that first"
    else:
        what = f"a {change.source.kind} is nothing that can be approved"
    return UsageError(f"the {name} cannot be approved; {what}", finding.hint or finding.definition.fix)


def _not_refusing(rule: str, name: str, known: Sequence[str]) -> UsageError:
    shown = printable(rule, 60)
    if rule not in RULES:
        return UsageError(f"there is no rule {shown}", f"one of: {', '.join(known)}")
    if RULES[rule].invariant:
        return UsageError(f"{shown} is an invariant: no approval touches it", f"one of: {', '.join(known)}")
    return UsageError(f"{shown} does not refuse the {name}", f"one of: {', '.join(known)}")


def who_approves(repository: Repository, environ: Mapping[str, str]) -> str:
    """Ask git who commits here: `Name <address>`.

    Raises:
        UsageError: git does not know.
    """
    done = repository.git("var", "GIT_COMMITTER_IDENT", variables=identity(environ), answers=ANY_CODE)
    said = _STAMP.sub("", done.out.decode("utf-8", "surrogateescape").strip())
    who = printable(" ".join(said.split()), 280)
    if done.code != 0 or not who:
        raise UsageError("git does not know who you are", "git config user.name NAME, and user.email")
    return who


def identity(environ: Mapping[str, str]) -> dict[str, str]:
    """Take from an environment what git goes by to name who writes a note."""
    return {name: environ[name] for name in _IDENTITY if environ.get(name)}


def grant(repository: Repository, exemption: Exemption, statement: Statement) -> Granted:
    """Let an approval hold on this machine, until the push.

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
        principal = _require_signer(objects, exemption.change, signed)
        anchor = anchor_of(objects, exemption.id)
    add_line(
        repository,
        APPROVALS_REF,
        anchor,
        signed.to_line(),
        message=f"Approve {', '.join(statement.rules)} for {exemption.id}",
        identity=identity(environ),
    )
    return Granted(principal, _record(repository, exemption, statement, principal, True))


def _require_signer(objects: Objects, change: ChangeVerdict, signed: Signed) -> str:
    """Check a signature as everybody else will, before it is kept; give the principal."""
    tree = base_tree(objects, change)
    signers = signers_of(objects, tree) if tree is not None else None
    place = printable(change.policy.origin)
    hint = "add your public key there, in a commit of its own (ssh-keygen(1), ALLOWED SIGNERS, has the form)"
    if signers is None:
        raise UsageError(
            f"the signature would not count: there is no .patchgate/allowed_signers beside {place}", hint
        )
    done = check_signature(signed, signers, objects.repository.environment)
    if done.principal is None:
        raise UsageError(f"the signature would not count beside {place}: {done.why}", hint)
    return done.principal


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
