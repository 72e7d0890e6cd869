"""Problems of the repository beyond its hooks: one probe for each, in `PROBES`.

An error is what makes every verdict undecided. A problem of the fast path is never an error: without it every
commit gets the full check, which then rebuilds the cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from patchgate import __version__
from patchgate.check.policy_lookup import trusted_options
from patchgate.errors import PatchgateError
from patchgate.git.active_hooks import Worktree
from patchgate.git.commit_lists import Commit, list_commits
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of
from patchgate.git.refs import describe_symbolic_ref, symbolic_refs
from patchgate.git.repository import Repository
from patchgate.hooks.doctor_environment import missing_program_findings
from patchgate.hooks.doctor_hooks import DoctorFinding, WorktreeHooks, git_in, quoted
from patchgate.hooks.fast.cache_files import (
    ACTIVE,
    COPY,
    Active,
    active_in,
    is_whole_copy,
    key_of,
    place_of,
    policy_in,
    read_copy,
    stamp_of,
)
from patchgate.intents.intent_file import MARKER, marked_ids
from patchgate.intents.stored_intents import StoredIntents
from patchgate.ledger.history import describe_contradiction
from patchgate.ledger.ledger import Event, Ledger, iso
from patchgate.ledger.receipts import Receipts, settled
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, require_version
from patchgate.process.child import run
from patchgate.report.rules import Level
from patchgate.report.wording import SHORT_OID, count, safe
from patchgate.storage.record import CONTRADICTED
from patchgate.values import dataclass

MOST_COMMITS = 1000
_NAMED = 5
_REMOTES = "refs/remotes/"
_SLOW_DAYS = 7
_ASK = "import sys, _frozen_importlib_external as e; print(sys.hexversion, e.MAGIC_NUMBER.hex())"
_SECONDS = 20.0
_SLOW = "so every commit gets the slower full check"


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """What the probes use: the repository, the environment of the caller, the worktrees with their hooks.

    `git` is the start of a command for the repository, `now` the time in seconds since the epoch.
    """

    repository: Repository
    environ: Mapping[str, str]
    git: str
    worktree_hooks: tuple[WorktreeHooks, ...]
    now: float

    @property
    def worktrees(self) -> tuple[Worktree, ...]:
        """The worktrees that could be checked."""
        return tuple(place.worktree for place in self.worktree_hooks)


Probed = Iterator[tuple[Worktree | None, DoctorFinding]]
"""The findings of a probe, each with its worktree; None is the whole repository."""


def policy_findings(context: DoctorContext) -> Probed:
    """Check the policy in effect for the next commit of each worktree, each policy once."""
    try:
        asked = trusted_options(context.repository)
    except PatchgateError as error:
        hint = error.hint or ""
        line = f"{context.git} {hint.removeprefix('git ')}" if hint.startswith("git ") else hint
        yield None, DoctorFinding(Level.ERROR, f"{error.message}: every verdict is undecided", line or None)
        return
    seen = set()
    with Objects(context.repository) as objects:
        policies = TreePolicies(objects)
        for worktree in context.worktrees:
            revision = asked.policy_from or worktree.head
            header = objects.header(revision + "^{tree}") if revision else None
            if header is None:
                continue
            try:
                key = policies.key(header.oid)
                if key not in seen:
                    seen.add(key)
                    found = policies.at(key)
                    for finding in _about_policy(worktree, found, asked.place or "HEAD"):
                        yield worktree, finding
                    if found.policy is not None and not worktree.is_bare:
                        for finding in missing_program_findings(found.policy, context.environ, worktree.path):
                            yield worktree, finding
            except PatchgateError as error:
                what = f"the policy cannot be read: {error.message}"
                yield worktree, DoctorFinding(Level.ERROR, what, error.hint)


def _about_policy(worktree: Worktree, found: FoundPolicy, place: str) -> Iterator[DoctorFinding]:
    git, policy = git_in(worktree), found.policy
    if found.fault is not None:
        what = f"the policy at {safe(place)} cannot be used: {safe(found.fault.in_one_line)}"
        what += "; only a commit that fixes it is accepted"
        yield DoctorFinding(Level.ERROR, what, f"{git} patchgate policy show")
        return
    if policy is None:
        what = f"no policy at {safe(place)}: only the defaults apply"
        yield DoctorFinding(Level.NOTE, what, None if worktree.is_bare else f"{git} patchgate init")
        return
    try:
        require_version(policy)
    except PatchgateError as error:
        line = (error.hint or "").removeprefix("install it: ")
        yield DoctorFinding(Level.ERROR, f"{error.message}: every verdict is undecided", line)
    if policy.config.hooks.mode == "observe":
        line = policy.line_of(("hooks", "mode")) or ""
        at = f" ({safe(line)})" if line else ""
        what = f"[hooks] mode is observe{at}: the hooks report and record, and refuse nothing"
        yield DoctorFinding(Level.NOTE, what)


def leftover_findings(context: DoctorContext) -> Probed:
    """Report files that a killed hook left in a git directory; they change no verdict.

    The shim empties them after use.
    """
    for worktree in context.worktrees:
        landing = os.path.join(worktree.git_dir, "patchgate-landing")
        if os.path.exists(landing) and os.path.getsize(landing):
            what = "is left from an interrupted commit, which is checked again if needed"
            yield worktree, DoctorFinding(Level.NOTE, f"{safe(landing)} {what}", f"rm {quoted(landing)}")
        pending = os.path.join(worktree.git_dir, "patchgate-pending")
        lines = [b""]
        with suppress(OSError), open(pending, "rb") as file:
            lines = file.read(1 << 12).split(b"\n")
        head = lines[1].split(b" ")[0].decode("ascii", "replace") if len(lines) > 1 else ""
        if lines != [b""] and (head if head.strip("0") else None) != worktree.head:
            what = f"{safe(pending)} is left from a commit that was never made"
            yield worktree, DoctorFinding(Level.NOTE, what, f"rm {quoted(pending)}")


def marker_findings(context: DoctorContext) -> Probed:
    """Report a marker that names no stored intent: it makes the commits of its worktree slower."""
    for worktree in context.worktrees:
        place = os.path.join(worktree.git_dir, MARKER)
        if not os.path.lexists(place):
            continue
        try:
            if set(marked_ids(worktree.git_dir)).isdisjoint(
                StoredIntents(context.repository.common_dir).names()
            ):
                what = f"{safe(place)} names no existing intent, and makes commits here slower"
                yield worktree, DoctorFinding(Level.NOTE, what, f"{git_in(worktree)} patchgate intent show")
        except PatchgateError as error:
            yield worktree, DoctorFinding(Level.WARNING, safe(error.message), f"rm -r {quoted(place)}")


def ledger_findings(context: DoctorContext) -> Probed:
    """Check that the ledger is complete, and that the next event can be written."""
    ledger = Ledger(context.repository.common_dir)
    verify = f"{context.git} patchgate log --verify"
    try:
        problems = ledger.verify()
        comparison = ledger.compare_head()
        if comparison.state == CONTRADICTED:
            yield None, DoctorFinding(Level.WARNING, describe_contradiction(comparison), verify)
        for first in problems[:1]:
            what = f"line {first.line} of the ledger {safe(first.message)}"
            yield None, DoctorFinding(Level.WARNING, what, verify)
    except PatchgateError as error:
        yield None, DoctorFinding(Level.WARNING, f"the ledger cannot be read: {error.message}", verify)
    except OSError as error:
        what = f"the ledger cannot be read: {error.strerror or error}"
        yield None, DoctorFinding(Level.WARNING, what, f"ls -l {quoted(str(ledger.path))}")
    folder = str(ledger.path.parent)
    place = folder if os.path.exists(folder) else context.repository.common_dir
    if not os.access(place, os.W_OK):
        what = f"{safe(place)} is not writable: no receipts, and refusals are not recorded"
        yield None, DoctorFinding(Level.WARNING, what, f"chmod u+w {quoted(place)}")


def unchecked_findings(context: DoctorContext) -> Probed:
    """Report commits on local branches that no hook has accepted since install.

    Checks at most 1,000 commits. Leaves out those that the ledger names as skipped or observed.
    """
    repository = context.repository
    if not os.path.exists(os.path.join(repository.common_dir, "patchgate", "settled")):
        return
    commits = _unchecked(repository)
    if not commits:
        return
    named = first_of(commits, _NAMED, lambda each: f"{each.oid[:SHORT_OID]}{_branch_of(repository, each)}")
    subject = f"{count(len(commits), 'commit')} on local branches {'has' if len(commits) == 1 else 'have'}"
    what = f"{subject} no receipt, so no hook accepted them here: {named}"
    line = f"{context.git} patchgate check {commits[0].oid}"
    if len(commits) > 1:
        # The branch may have forked anywhere, so the command names each commit.
        oids = " ".join(commit.oid[:SHORT_OID] for commit in commits[:_NAMED])
        line = f"for commit in {oids}; do {context.git} patchgate check $commit; done"
    yield None, DoctorFinding(Level.WARNING, what, line)


def _unchecked(repository: Repository) -> list[Commit]:
    """List the commits without a receipt, newest first, except rewrites that changed no tree."""
    tips = "".join(f"^{oid}\n" for oid in settled(repository.common_dir)).encode("ascii")
    most = f"--max-count={MOST_COMMITS}"
    chosen = ("--branches", "--ignore-missing", "--stdin", "--not", "--remotes")
    receipts = Receipts(repository.common_dir)
    open_ones = [
        each for each in list_commits(repository, most, *chosen, stdin=tips) if not receipts.has(each.oid)
    ]
    if not open_ones:
        return []
    recorded = _recorded_in(Ledger(repository.common_dir))
    parents = {parent for commit in open_ones for parent in commit.parents[:1]}
    known = {each.oid: receipts.by_tree(each.tree) for each in open_ones}
    parents |= {parent for pairs in known.values() for _, parent in pairs if parent}
    with Objects(repository) as objects:
        trees = {oid: header.oid for oid in parents if (header := objects.header(oid + "^{tree}"))}

    def is_rewrite(commit: Commit) -> bool:
        base = trees.get(commit.parents[0]) if commit.parents else None
        is_known = any((trees.get(old) if old else None) == base for _, old in known[commit.oid])
        return is_known and len(commit.parents) < 2

    return [each for each in open_ones if each.oid not in recorded and not is_rewrite(each)]


def _recorded_in(ledger: Ledger) -> set[str]:
    """Read from the ledger which commits were skipped with a reason, or observed."""
    found: set[str] = set()
    with suppress(OSError):
        for event in ledger.lines():
            if isinstance(event, Event) and event.kind in {"skipped", "observed"}:
                commits = event.about.get("commits")
                named = (event.about.get("commit"), *(commits if isinstance(commits, list) else ()))
                found.update(commit for commit in named if isinstance(commit, str))
    return found


def _branch_of(repository: Repository, commit: Commit) -> str:
    """Return one branch that contains a commit."""
    form = ("--count=1", "--format=%(refname:short)", f"--contains={commit.oid}")
    done = repository.git("for-each-ref", *form, "refs/heads/")
    name = done.out.decode("utf-8", "surrogateescape").strip()
    return f" ({safe(name, 100)})" if name else ""


def slow_findings(context: DoctorContext) -> Probed:
    """Report the hooks that exceeded their budget within the last days, each once."""
    since = iso(context.now - _SLOW_DAYS * 86_400)
    taken: dict[str, list[int]] = {}
    for event in Ledger(context.repository.common_dir).find_events({"slow"}):
        hook, milliseconds = event.about.get("hook"), event.about.get("ms")
        if event.at >= since and isinstance(hook, str) and type(milliseconds) is int:
            taken.setdefault(hook, []).append(milliseconds)
    for hook, times in sorted(taken.items()):
        what = f"{safe(hook, 60)} took longer than [hooks] budget_ms {count(len(times), 'time')}"
        what += f" within {_SLOW_DAYS} days, up to {max(times):,} ms"
        yield None, DoctorFinding(Level.WARNING, what, f"{context.git} patchgate log --kind slow")


def symbolic_findings(context: DoctorContext) -> Probed:
    """Report symbolic refs that git did not create: no hook runs when one is set."""
    for ref, target in symbolic_refs(context.repository).items():
        if not (ref.endswith("/HEAD") and ref.startswith(_REMOTES) and target.startswith(_REMOTES)):
            line = f"{context.git} update-ref --no-deref {quoted(ref)} {quoted(ref)}"
            yield None, DoctorFinding(Level.WARNING, describe_symbolic_ref(ref, target), line)


def kind_findings(context: DoctorContext) -> Probed:
    """Report properties of the repository that limit what can be read."""
    repository = context.repository
    for limit in repository.limits:
        yield None, DoctorFinding(Level.NOTE, safe(limit))
    if repository.shallow:
        what = "this clone is shallow: a change whose parent is missing is undecided"
        yield None, DoctorFinding(Level.NOTE, what, f"{context.git} fetch --unshallow")
    asked = ("config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$")
    if repository.git(*asked, answers=(0, 1)).code == 0:
        what = "this clone is partial: a change with missing objects is undecided"
        yield None, DoctorFinding(Level.NOTE, what)


def skip_findings(context: DoctorContext) -> Probed:
    """Report that the environment of the caller skips the hooks."""
    if "PATCHGATE_SKIP" in context.environ:
        what = "PATCHGATE_SKIP is set: all local hooks are skipped"
        yield None, DoctorFinding(Level.WARNING, what, "unset PATCHGATE_SKIP")


@dataclass(frozen=True, slots=True)
class _Interpreter:
    """An interpreter: its version as a number, and the magic number of its compiled code."""

    hexversion: int
    magic: bytes


def fast_findings(context: DoctorContext) -> Probed:
    """Report what keeps the fast path from working, if a hook of ours uses it."""
    ours = [
        place.worktree
        for place in context.worktree_hooks
        if not place.worktree.is_bare
        and any(hook.event == "pre-commit" and hook.ours for hook in place.hooks)
    ]
    if not ours:
        return
    common_dir = context.repository.common_dir
    place = safe(place_of(common_dir, ACTIVE))
    found: _Interpreter | str
    try:
        active = active_in(common_dir)
    except FileNotFoundError:
        if all(each.hooks_path and each.hooks_path.scope in {"global", "system"} for each in ours):
            # With shared hooks, the first commit creates it.
            return
        found = f"{place} is missing, {_SLOW}"
    except OSError as error:
        found = f"{place} cannot be read ({error.strerror}), {_SLOW}"
    else:
        found = _check_copy(context.repository, active)
    if isinstance(found, str):
        yield None, _renewed(Level.WARNING, found, context)
        return
    seen = set()
    with Objects(context.repository) as objects:
        for worktree in ours:
            header = objects.header(worktree.head + "^{tree}") if worktree.head else None
            key = key_of(objects.tree(header.oid)) if header is not None else None
            if key is None or key in seen:
                continue
            seen.add(key)
            fault = _fault_of_policy(common_dir, key, found)
            if fault is not None:
                what = f"the compiled policy at HEAD is {fault}; the next commit gets the slower full check"
                yield None, _renewed(Level.NOTE, what, context)


def _renewed(level: Level, what: str, context: DoctorContext) -> DoctorFinding:
    remedy = f"{context.git} patchgate doctor --fix"
    return DoctorFinding(level, what, remedy, events=("pre-commit",), is_fixed_by_renewal=True)


def _check_copy(repository: Repository, active: Active | None) -> _Interpreter | str:
    """Start the Python that runs the copy; or return why the shim could not run it, or would not run ours."""
    if active is None:
        return f"{safe(place_of(repository.common_dir, ACTIVE))} is damaged, {_SLOW}"
    if active.version != __version__:
        said = f"the fast path was made by patchgate {safe(active.version, 40)}, but this is {__version__}"
        return f"{said}; the next commit gets the slower full check"
    interpreter = safe(active.interpreter)
    python = _ask_interpreter(repository, active.interpreter)
    if python is None:
        gone = "is gone" if not os.path.exists(active.interpreter) else "does not start as a Python"
        return f"{interpreter}, which runs the fast path, {gone}, {_SLOW}"
    place = safe(place_of(repository.common_dir, active.version, COPY))
    try:
        copy = read_copy(repository.common_dir, active.version)
    except FileNotFoundError:
        return f"{place} is missing, {_SLOW}"
    except OSError as error:
        return f"{place} cannot be read ({error.strerror}), {_SLOW}"
    if copy[:4] != python.magic:
        return f"{place} was compiled for another Python than {interpreter}, {_SLOW}"
    if not is_whole_copy(copy, python.magic):
        return f"{place} is damaged, or of another build of patchgate {__version__}"
    return python


def _ask_interpreter(repository: Repository, interpreter: str) -> _Interpreter | None:
    """Start the interpreter as the shim does."""
    try:
        argv = [interpreter, "-I", "-S", "-c", _ASK]
        done = run(argv, cwd=repository.git_dir, env=repository.environment, seconds=_SECONDS)
        number, magic = done.out.split()
        return _Interpreter(int(number), bytes.fromhex(magic.decode("ascii")))
    except (PatchgateError, OSError, ValueError):
        return None


def _fault_of_policy(common_dir: str, key: str, python: _Interpreter) -> str | None:
    """Return what keeps the recogniser from using a compiled policy.

    A missing one is normal after an install, and after every change of the policy.
    """
    try:
        held = policy_in(common_dir, __version__, key)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"not readable ({error.strerror})"
    made_by, stamp = (held or {}).get("tool"), (held or {}).get("stamp")
    if not (isinstance(made_by, tuple) and isinstance(stamp, tuple) and len(made_by) == 3 and stamp):
        return "damaged"
    is_there = False
    with suppress(OSError):
        is_there = stamp_of(str(stamp[0])) == stamp
    is_of_this = made_by[0] == __version__ and made_by[2] == python.hexversion
    return None if is_there and is_of_this else "of another patchgate or another Python"


PROBES: tuple[Callable[[DoctorContext], Probed], ...] = (
    policy_findings,
    leftover_findings,
    marker_findings,
    ledger_findings,
    unchecked_findings,
    slow_findings,
    symbolic_findings,
    kind_findings,
    fast_findings,
    skip_findings,
)
"""All probes; their findings are shown in this order."""
