"""The retry rule: what may be sent after a refusal, how often, and what the last line says of it.

Attempts at one change are a chain: joined by `--retry-of`, or sent within an hour of a refusal in the same
worktree with the same patch or one of its files. Only refusals count: not an undecided attempt, not a dry
run, not `check`. A reset by a maintainer removes them from the count.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from patchgate.apply.attempt_records import (
    AttemptRecord,
    ResetRecord,
    age_of,
    find,
    list_chain_since_reset,
    list_events,
    pick_record,
    record_reset,
    records,
    reset_command,
)
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.patches.check_patch import EDITS
from patchgate.patches.git_apply import finding_of
from patchgate.patches.patch_parser import parse
from patchgate.patches.proposals import PATCH, option_of
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, Fixer, Json, Retry, Verdict
from patchgate.values import dataclass, replace

OPEN_SECONDS = 3600
"""How long after its last refusal a chain continues without `--retry-of`."""

_NO_DIFF = frozenset({"not-a-unified-diff", "prose-around-patch"})
# The ledger's line of each attempt that counts contains this.
_COUNTED = '"counts":true'
_JSON = re.compile(rb"\s*[\[{]")


@dataclass(frozen=True, slots=True)
class Chain:
    """The attempts at one change so far, from the view of the current one.

    `first` is the id of the first attempt and `retry_of` that of the one that is retried; both are None for a
    new chain. `refusals` are those that count, since the last reset. `why` says why an attempt without
    `--retry-of` belongs to the chain.
    """

    first: str | None = None
    retry_of: str | None = None
    refusals: tuple[AttemptRecord, ...] = ()
    why: str | None = None

    @property
    def named(self) -> str:
        """Name the chain, and why the attempt belongs to it if `--retry-of` was not given."""
        why = f" (this attempt belongs to it because it {self.why})" if self.why else ""
        return f"the chain {self.first}{why}"

    @property
    def number(self) -> int:
        """The number of the current attempt; earlier ones that do not count are left out."""
        return len(self.refusals) + 1

    def id_with(self, attempt: str) -> str:
        """Return the chain's id; `attempt` is the id of the current attempt."""
        return self.first or attempt


def find_chain(ledger: Ledger, retry_of: str | None) -> Chain:
    """Find the chain that an attempt continues; without `retry_of` it starts a new one.

    An attempt that was refused or undecided may be retried, also by a dry run.

    Raises:
        UsageError: the ledger does not have the attempt, or it needs no retry.
    """
    if retry_of is None:
        return Chain()
    tried = find(ledger, retry_of)
    if tried is None:
        raise UsageError(
            f"there is no attempt {printable(retry_of, 60)}",
            "git patchgate attempts list shows them; without --retry-of a new chain begins",
        )
    for each in records(ledger, f'"{tried.chain}"'):
        if each.chain == tried.chain and each.applied:
            by = "" if each.attempt == tried.attempt else f" as {each.attempt}"
            raise UsageError(
                f"attempt {tried.attempt} was applied{by}, so there is nothing to retry",
                "leave --retry-of out: another change is a new attempt",
            )
    if tried.verdict == Verdict.ACCEPTED:
        raise UsageError(
            f"attempt {tried.attempt} was accepted, so there is nothing to retry",
            "leave --retry-of out: what a dry run accepted is applied as a new attempt",
        )
    refusals = tuple(each for each in list_chain_since_reset(ledger, tried.chain) if each.counts)
    return Chain(tried.chain, tried.attempt, refusals)


def open_chain(
    ledger: Ledger,
    work_tree: str | None,
    now: float,
    sent: Sequence[str | None],
    paths: Collection[RepoPath],
    *,
    run: str | None = None,
) -> Chain:
    """Find the chain that an attempt without `--retry-of` belongs to; a new one if there is none.

    Args:
        work_tree: the attempt's.
        now: seconds since the epoch.
        sent: the digest and the id of its patch.
        paths: the files that it changes, or that it names if it cannot be read.
        run: the work of a run that it is for; the answers of one never continue those of another.
    """
    known = records(ledger, _COUNTED, since=now - OPEN_SECONDS)
    recent = [each for each in known if _is_open(each, work_tree, now) and _is_for_same_work(each.run, run)]
    alike = {each.chain for each in recent if _similarity(each, sent, paths) is not None}
    for chain in dict.fromkeys(each.chain for each in reversed(recent) if each.chain in alike):
        tried = list_chain_since_reset(ledger, chain)
        refusals = tuple(each for each in tried if each.counts)
        if any(each.applied for each in tried):
            continue
        for each in reversed([each for each in refusals if _is_open(each, work_tree, now)]):
            why = _similarity(each, sent, paths)
            if why is not None:
                return Chain(first=chain, retry_of=refusals[-1].attempt, refusals=refusals, why=why)
    return Chain()


def _is_open(refused: AttemptRecord, work_tree: str | None, now: float) -> bool:
    """Return whether a refusal still counts here; nothing was wrong with a patch that was applied before."""
    is_here = refused.counts and refused.work_tree == work_tree and set(refused.rules) != {"duplicate-patch"}
    return is_here and age_of(refused.at, now) <= OPEN_SECONDS


def _is_for_same_work(one: str | None, other: str | None) -> bool:
    """Whether two attempts may be for the same `COMPONENT/PHASE`, in whatever run."""
    return one is None or other is None or one.partition("/")[2] == other.partition("/")[2]


def _similarity(
    refused: AttemptRecord, sent: Sequence[str | None], paths: Collection[RepoPath]
) -> str | None:
    """Describe how an attempt resembles a refused one; None if it does not."""
    if {refused.patch_sha256, refused.patch_id}.difference({None}).intersection(sent):
        return f"sends the patch of {refused.attempt} again"
    same = next((file.path for file in refused.files if file.path in paths), None)
    return None if same is None else f"changes {same.quoted} as {refused.attempt} did"


def check_before_judging(chain: Chain, raw: bytes, kind: str, limit: int) -> Finding | None:
    """Report what refuses a retry before it is judged: too many refusals, or not a whole unified diff.

    `raw` is the candidate, `kind` the format in which it was sent; `limit` is `[apply] max_attempts`.
    """
    if chain.first is None or chain.retry_of is None:
        return None
    return _exhausted(chain, limit) or _not_a_diff(chain, raw, kind)


def _exhausted(chain: Chain, limit: int) -> Finding | None:
    refused = len(chain.refusals)
    if chain.retry_of is None or refused < limit:
        return None
    return _refuse(
        "retry-exhausted",
        f"{refused} attempts of {chain.named} were refused; the limit is {limit}",
        f"a maintainer reads the evidence, then runs {reset_command(chain.retry_of)}",
        {"limit": limit, "actual": refused, "chain": chain.first},
        who=Fixer.PERSON,
    )


def reload_chain(ledger: Ledger, chain: Chain) -> Chain:
    """Read a chain again: other attempts may have been refused since."""
    if chain.first is None:
        return chain
    refusals = tuple(each for each in list_chain_since_reset(ledger, chain.first) if each.counts)
    return replace(chain, refusals=refusals)


def refuse_meanwhile(
    ledger: Ledger, chain: Chain, limit: int, unrecorded: Sequence[Mapping[str, Json]] = ()
) -> Finding | None:
    """Report what others did to a chain since it was read, if this attempt must not be applied any more.

    Args:
        chain: the chain, read again.
        limit: `[apply] max_attempts`.
        unrecorded: the notes of writes that the ledger may not have yet, read before the chain was.
    """
    if chain.first is None:
        return None
    landed = [str(note.get("attempt")) for note in unrecorded if note.get("chain") == chain.first]
    landed += [
        each.attempt
        for each in records(ledger, f'"{chain.first}"')
        if each.chain == chain.first and each.applied
    ]
    if landed:
        return _refuse(
            "concurrent-change",
            f"attempt {printable(landed[0], 40)} of the same chain was applied meanwhile",
            "look at what it changed; another change is a new attempt, without --retry-of",
            {"attempt": landed[0]},
            who=Fixer.ENVIRONMENT,
        )
    return _exhausted(chain, limit)


def _not_a_diff(chain: Chain, raw: bytes, kind: str) -> Finding | None:
    what = f"a retry in {chain.named}" if chain.why else "a retry"
    hint = "send the whole patch again, as git diff writes it, from its first diff --git line on"
    begun = _kind_of(chain) or kind
    if kind not in {PATCH, begun}:
        other = "" if begun == PATCH else f", or {begun} as in the first attempt,"
        message = f"{what} was sent as {kind}; only a unified diff{other} is allowed"
        return _refuse("retry-not-a-diff", message, hint)
    if kind != PATCH:
        # What was refused was sent the same way, and goes through the same gates.
        return None
    parsed = parse(raw)
    if not isinstance(parsed, tuple):
        return None
    found = [fault for fault in parsed if fault.rule in _NO_DIFF]
    if not found:
        return None
    first = finding_of(found[0])
    if found[0].rule == "not-a-unified-diff":
        other = "JSON" if _JSON.match(raw) else "not a diff: it is text, or the content of a file"
        return _refuse("retry-not-a-diff", f"{what} is {other}", hint)
    return _refuse(
        "retry-not-a-diff",
        f"{what} contains more than a diff: {first.message}",
        "send the whole patch again, and nothing before, between or after its sections",
        {"patch_line": found[0].line},
        first,
    )


def _kind_of(chain: Chain) -> str | None:
    """Return the format of the first attempt of a chain that was not refused for its format."""
    return next((each.kind for each in chain.refusals if "retry-not-a-diff" not in each.rules), None)


def check_after_judging(chain: Chain, verdict: ChangeVerdict, patch: bytes) -> Finding | None:
    """Report a retry that is the change that was refused, if it would be refused again.

    It would be if base, policy and cause are the same: the same rule refuses it now, or a command refused it,
    which is not run again for the same result on the same base. The form of the patch does not matter.
    """
    now = {each.rule for each in verdict.findings if each.level is Level.ERROR}
    for earlier in reversed(chain.refusals):
        if (
            earlier.base == verdict.change.base
            and earlier.policy == verdict.policy.digest
            and _is_same(earlier, verdict, patch)
            and (earlier.stage == Stage.APPLY or now.intersection(earlier.rules))
        ):
            cause = ", ".join(printable(rule, 40) for rule in earlier.rules[:3])
            return _refuse(
                "retry-identical",
                f"this is the very change that attempt {earlier.attempt} was refused for ({cause}), "
                "and its base and the policy are the same",
                "fix what that refusal reports, then send the whole patch again",
                {"attempt": earlier.attempt, "rules": list(earlier.rules[:20])},
            )
    return None


def _is_same(earlier: AttemptRecord, verdict: ChangeVerdict, patch: bytes) -> bool:
    """Return whether a patch has the same result as an earlier one.

    Patches without a result are compared as text, without blank lines around them.
    """
    change = verdict.change
    if change.after != change.base:
        return earlier.after == change.after
    texts = (patch, patch.strip(b"\r\n") + b"\n")
    return earlier.patch_sha256 in {hashlib.sha256(text).hexdigest() for text in texts}


def plan_retry(
    chain: Chain, attempt: str, *, limit: int, kind: str = PATCH, also: Sequence[str] = ()
) -> Retry:
    """Say what may be sent after a refusal that counts.

    The chain is as it was before this attempt, which was sent as `kind`; `also` are further arguments of the
    command, as they were given.
    """
    is_last = chain.number >= limit
    words = ["git", "patchgate", "apply", *_channel(chain, kind), "--retry-of", attempt, *also]
    return Retry(
        allowed=not is_last,
        number=limit if is_last else chain.number + 1,
        of=limit,
        command=reset_command(attempt) if is_last else shlex.join(words),
        chain=chain.id_with(attempt),
        reason=chain.why,
    )


def _channel(chain: Chain, kind: str) -> list[str]:
    """Write how a retry is sent: as the first attempt was, or as a diff after one."""
    begun = kind if kind == PATCH else _kind_of(chain) or kind
    if begun == EDITS:
        return ["--edits", "-"]
    option = option_of(begun)
    return ["-"] if option is None else ["-", "--input", option]


def _refuse(
    rule: str,
    message: str,
    hint: str,
    details: dict[str, Json] | None = None,
    like: Finding | None = None,
    *,
    who: Fixer = Fixer.AGENT,
) -> Finding:
    """Make a finding; `like` is another finding whose fix it takes."""
    fix = like.fix if like is not None else None
    return Finding.of(rule, message, hint=hint, who_can_fix=who, details=details, fix=fix)


def find_chain_to_reset(repository: Repository, text: str | None) -> str:
    """Find the chain to reset: that of an attempt, or of the one that was refused last.

    Raises:
        UsageError: there is no such attempt, or its chain has no refusals since the last reset.
    """
    ledger = Ledger(repository.common_dir)
    known = records(ledger)
    if text is not None:
        chosen = pick_record(known, text)
    else:
        chosen = next((each for each in reversed(known) if each.counts), None)
    if chosen is None:
        what = "no attempt was refused" if text is None else f"there is no attempt {printable(text, 60)}"
        raise UsageError(what, "git patchgate attempts list shows them")
    if not any(each.counts for each in list_chain_since_reset(ledger, chosen.chain)):
        raise UsageError(f"the chain {chosen.chain} has no refusals to reset", "continue with --retry-of")
    return chosen.chain


def list_refusals(repository: Repository, chain: str) -> Sequence[AttemptRecord]:
    """List the refusals in a chain that a reset would remove from the count, oldest first."""
    return [each for each in list_chain_since_reset(Ledger(repository.common_dir), chain) if each.counts]


def reset(repository: Repository, chain: str, reason: str, by: str) -> str | None:
    """Reset the retries of a chain; returns None, or a warning.

    Raises:
        UndecidedError: the ledger cannot be written, so nothing was reset.
    """
    ledger = Ledger(repository.common_dir)
    before = _resets(ledger, chain)
    warning = record_reset(ledger, ResetRecord(chain, reason, by))
    if _resets(ledger, chain) == before:
        raise UndecidedError(f"nothing was reset: {warning}", "fix that, then reset again")
    return warning


def _resets(ledger: Ledger, chain: str) -> int:
    return sum(isinstance(each, ResetRecord) and each.chain == chain for each in list_events(ledger, chain))
