"""Findings, and the verdict that follows from them.

A change is accepted where every gate has passed or does not apply. An error makes it rejected. A gate that
was not run, or could not decide, makes it undecided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import StrEnum
from typing import TypeAlias

from patchgate.exit_codes import ACCEPTED, REJECTED, UNDECIDED
from patchgate.git.model import Change, Source, change_id
from patchgate.git.path import RepoPath
from patchgate.report.rules import RULES, Level, Rule
from patchgate.values import dataclass, field

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Detail: TypeAlias = "bool | int | float | str | RepoPath | Sequence[Detail] | Mapping[str, Detail] | None"


class Verdict(StrEnum):
    """The three verdicts, from best to worst: accepted, undecided, rejected."""

    ACCEPTED = "accepted"
    UNDECIDED = "undecided"
    REJECTED = "rejected"

    @property
    def exit_code(self) -> int:
        """The exit code that carries this verdict: 0, 3, 1."""
        return {"accepted": ACCEPTED, "undecided": UNDECIDED, "rejected": REJECTED}[self.value]


class Outcome(StrEnum):
    """How one gate ended."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not-applicable"
    NOT_RUN = "not-run"
    UNDECIDED = "undecided"


_OWING = (Outcome.UNDECIDED, Outcome.NOT_RUN, Outcome.FAIL)


class Fixer(StrEnum):
    """Who can fix a finding."""

    AGENT = "agent"
    PERSON = "person"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Fix:
    """A mechanical fix of a patch: the text that replaces some lines.

    They are `patch_line` (from 1) to `last_patch_line`, or that one alone. An LF in `replace_with` means two
    lines; None leaves the lines out.
    """

    applicability: str
    patch_line: int
    replace_with: str | None
    last_patch_line: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a gate.

    `line` counts from 1 in the resulting file (`side` new) or in the base (`side` old). `message` and
    `hint` are safe for a terminal. `excerpt` is the source line itself, raw: renderers escape it, JSON
    leaves it out (it may be a secret). `notes` are further lines of text; JSON has them as details.
    A path in `details` is a `RepoPath`: each form of a report writes it as it writes the others. `unnamed` is
    what the message only counts (safe for a terminal): reports leave it out, and who approves is shown it.
    """

    rule: str
    level: Level
    message: str
    path: RepoPath | None = None
    line: int | None = None
    side: str = "new"
    hint: str | None = None
    who_can_fix: Fixer = Fixer.AGENT
    details: Mapping[str, Detail] = field(default_factory=dict)
    fix: Fix | None = None
    excerpt: bytes | None = None
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rule: str,
        message: str,
        path: RepoPath | None = None,
        *,
        line: int | None = None,
        side: str = "new",
        hint: str | None = None,
        who_can_fix: Fixer = Fixer.AGENT,
        details: Mapping[str, Detail] | None = None,
        fix: Fix | None = None,
        excerpt: bytes | None = None,
        notes: tuple[str, ...] = (),
    ) -> Finding:
        """Make a finding at its rule's own level; the arguments are the fields."""
        level = RULES[rule].level
        about = {} if details is None else details
        return cls(
            rule=rule,
            level=level,
            message=message,
            path=path,
            line=line,
            side=side,
            hint=hint,
            who_can_fix=who_can_fix,
            details=about,
            fix=fix,
            excerpt=excerpt,
            notes=notes,
        )

    @property
    def definition(self) -> Rule:
        """The rule's entry in the registry."""
        return RULES[self.rule]


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """How one gate ended, and why where it could not decide (one sentence).

    `trace` is the traceback where the gate itself failed: for a file, never for a terminal.
    """

    gate: str
    outcome: Outcome
    reason: str | None = None
    trace: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit (None is no limit) and how much of it the change uses."""

    limit: int | None
    used: int


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """Which policy judged: its digest (`sha256:…`) and where it was read (`HEAD:patchgate.toml`).

    `observes` is whether its local hooks only report a refusal, `draft_refs` are the branches where they
    do. `refuses_messages` is whether a message can change the verdict, `judges_messages` whether it says
    anything of any. `tree` is its tree, where that is not the tree of the change's base commit. `budget_ms`
    is how long its local hooks may take; None: as long as they want. `repository` names it in approvals.
    `runs` is whether it has commands for a commit.
    """

    digest: str
    origin: str
    observes: bool = False
    draft_refs: tuple[str, ...] = ()
    refuses_messages: bool = False
    judges_messages: bool = True
    tree: str | None = None
    budget_ms: int | None = None
    repository: str | None = None
    runs: bool = False


OWNER_RULE = "owner-approval-missing"
# In the details of a finding: that it depends on what the change does not change, or on which path of that.
UNCHANGED = "with_unchanged"
# What these gates find depends on the whole tree.
_OF_TREES = frozenset({"contracts", "drift", "staleness"})
REPAIR_RULE = "patch-repaired"


@dataclass(frozen=True, slots=True)
class OwnedPaths:
    """Paths of a change that have owners: some of `signers` (none: any signer) must approve it.

    `table` is the index in `[[owners]]`; None where the control files are owned without one, by all signers.
    `is_policy` is whether the paths are control files, `has_tables` whether the policy has any table.
    """

    paths: tuple[RepoPath, ...]
    table: int | None = None
    signers: tuple[str, ...] = ()
    approvals: int = 1
    is_policy: bool = False
    has_tables: bool = False


@dataclass(frozen=True, slots=True)
class ProtectedRef:
    """A protected ref that gets a change.

    `ref` is its full name (None: not known), `commit` the commit that it has, or that the default branch
    has. `policy` is the revision whose policy names the owners. `tip` is what the ref becomes (None: not
    compared), and `base` what is there already: the old commit, or where a new branch forks; None: nothing.
    `other_bases` are further commits where the two histories part, after merges that cross. `is_new` is
    whether the ref is made, `is_forced` whether it loses commits. `been` are commits that it may have had
    after `commit`. `has_landed` is whether a new tag is one of what `commit` has, `is_past` whether the ref
    has become it already, so that approvals are asked for afterwards. `repository` is the `[governance] id`
    that approvals for it must name; None: that of the policy that judges; empty: not known.
    """

    ref: str | None
    commit: str | None
    policy: str | None = None
    tip: str | None = None
    base: str | None = None
    other_bases: tuple[str, ...] = ()
    is_new: bool = False
    is_forced: bool = False
    been: tuple[str, ...] = ()
    has_landed: bool = False
    is_past: bool = False
    repository: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeVerdict:
    """The verdict on one change, with its evidence.

    `profile_reason` is why the agent profile judged it, where that is not plain. `owned` are its paths that
    have owners by the policy that judged, `lands_on` the protected refs that get it.
    """

    change: Change
    source: Source
    profile: str
    policy: PolicyReference
    gates: tuple[GateOutcome, ...]
    findings: tuple[Finding, ...]
    context_gates: tuple[GateOutcome, ...] = ()
    limits: Mapping[str, Budget] = field(default_factory=dict)
    n_hunks: int | None = None
    patch_id: str | None = None
    owned: tuple[OwnedPaths, ...] = ()
    lands_on: tuple[ProtectedRef, ...] = ()
    profile_reason: str = ""

    def repository_for(self, ref: ProtectedRef) -> str | None:
        """Return the `[governance] id` that an approval for a ref must name; None if nothing has one."""
        return ref.repository if ref.repository is not None else self.policy.repository

    @property
    def verdict(self) -> Verdict:
        """Compute the verdict from the evidence."""
        errors = [finding for finding in self.findings if finding.level is Level.ERROR]
        if any(not finding.definition.undecided for finding in errors):
            return Verdict.REJECTED
        if errors:
            return Verdict.UNDECIDED
        # Called several times for each change of a range: hashing an enumeration is slow, so compare.
        for gate in (*self.gates, *self.context_gates):
            if gate.outcome is not Outcome.PASS and gate.outcome is not Outcome.NOT_APPLICABLE:
                return Verdict.UNDECIDED
        return Verdict.ACCEPTED if self.gates else Verdict.UNDECIDED

    @property
    def change_id(self) -> str:
        """The change id: that of the same change under any policy, after a rebase too.

        Where what refuses it depends on what it does not change, that and the whole tree are a part of it: on
        another base it may be something else, and nobody approves what he was not shown.
        """
        refusing = [
            each
            for each in self.findings
            if each.rule != OWNER_RULE and (each.level is Level.ERROR or "approved" in each.details)
        ]
        own = {None, *(file.path for file in self.change.files)} if refusing else {None}
        refused = [
            (
                f"{each.rule} {each.line or 0}",
                other if isinstance(other := each.details.get(UNCHANGED), RepoPath) else each.path,
            )
            for each in refusing
            if UNCHANGED in each.details or each.definition.gate in _OF_TREES or each.path not in own
        ]
        return change_id(self.change, parents=self.source.parents, unchanged=refused)

    @property
    def id(self) -> str:
        """The verdict id: equal wherever the same change is judged under the same policy."""
        text = f"patchgate.verdict/1\n{self.change.base}\n{self.change.after}\n{self.policy.digest}\n"
        return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def decisive(self) -> Finding | None:
        """The first error in the order of the stages; its stage and code are those of the whole."""
        errors = [finding for finding in self.findings if finding.level is Level.ERROR]
        return min(errors, key=lambda finding: finding.definition.stage.order, default=None)

    @property
    def fallback_reason(self) -> str | None:
        """Why the change is not accepted: the decisive rule, else the gate that gave no answer."""
        if self.verdict is Verdict.ACCEPTED:
            return None
        if self.decisive is not None:
            return self.decisive.rule
        owing = [each for each in (*self.gates, *self.context_gates) if each.outcome in _OWING]
        return min(owing, key=lambda each: _OWING.index(each.outcome)).gate if owing else None


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """A step after a refusal: one sentence, and the command to run."""

    message: str
    command: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One `apply` of one patch: its id, the folder of its evidence, whether the patch was written.

    `fallback_reason` is why it was not, `temp_path` the scratch tree while it exists.
    """

    id: str
    dir: str | None
    applied: bool
    fallback_reason: str | None = None
    temp_path: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """What may be tried after a refusal: the number of the next attempt in its chain, of how many.

    `command` is what to run next: the retry, or where none is left the command that allows more. `chain` is
    the id of the chain's first attempt; `reason` says what makes an attempt without `--retry-of` part of
    it.
    """

    allowed: bool
    number: int
    of: int
    command: str
    chain: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ClearedCommits:
    """Commits that were accepted together, because no rule can say anything about them: how many.

    `paths` are the raw paths that they change, `n_paths` how many more are not named. `origins` are some of
    the places where their policies were read (two if there are more than one), `budget_ms` is the least that
    a policy allows local hooks.
    """

    number: int
    paths: Set[bytes] = frozenset()
    origins: Set[str] = frozenset()
    budget_ms: int | None = None
    n_paths: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What one command reports: the verdict on each change, and warnings about the circumstances.

    `cleared` are commits besides, which were accepted without a verdict on each; None: there are none.

    `recovery` has the steps after a refusal; `approve` is the command that approves it, None if it
    cannot be approved. `attempt` and `retry` are those of an `apply`. `lands_on` are the protected refs that
    get the changes together.
    """

    changes: tuple[ChangeVerdict, ...]
    warnings: tuple[str, ...] = ()
    recovery: tuple[RecoveryStep, ...] = ()
    approve: str | None = None
    attempt: Attempt | None = None
    retry: Retry | None = None
    lands_on: tuple[ProtectedRef, ...] = ()
    cleared: ClearedCommits | None = None

    @property
    def is_ranged(self) -> bool:
        """Whether several changes were judged, so that a finding needs the name of its change."""
        return self.n_judged > 1

    @property
    def n_judged(self) -> int:
        """How many changes were judged, those without a verdict of their own included."""
        return len(self.changes) + (self.cleared.number if self.cleared is not None else 0)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all changes; accepted where there is nothing to judge."""
        verdicts = {change.verdict for change in self.changes}
        for worst in (Verdict.REJECTED, Verdict.UNDECIDED):
            if worst in verdicts:
                return worst
        return Verdict.ACCEPTED


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """Give each finding an identity that survives moved lines.

    SHA-256 of the rule, the path, the stripped source line (or the message's pattern), and how often that
    same combination came before. No line number is part of it.
    """
    seen: dict[bytes, int] = {}
    marks: list[str] = []
    for finding in findings:
        text = finding.excerpt.strip() if finding.excerpt is not None else b""
        pattern = str(finding.details.get("pattern") or "").encode("utf-8", "surrogateescape")
        path = finding.path.raw if finding.path else b""
        key = b"\0".join((finding.rule.encode("ascii"), path, text, pattern))
        seen[key] = seen.get(key, 0) + 1
        marks.append(hashlib.sha256(key + b"\0%d" % seen[key]).hexdigest())
    return marks
