"""What is wrong with the repository that the hooks judge in: policy, ledger, leftovers, missing receipts.

Decides what of it stops every verdict (errors) and what a person should know (warnings, notes). The hooks
themselves are looked at elsewhere.

The programs that the policy's commands and analyses need: are they there?
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from patchgate.check.terms import trusted
from patchgate.commands.runner import command_environment, located, not_found
from patchgate.errors import PatchgateError
from patchgate.git.history import Commit, listed
from patchgate.git.hooks_in_force import Worktree
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of
from patchgate.git.refs import sentence_on, symbolic_refs
from patchgate.git.repository import Repository
from patchgate.hooks.doctor_findings import Finding, git_in, quoted
from patchgate.intents.intent_form import MARKER, marked
from patchgate.intents.intents import Intents
from patchgate.ledger.history import describe_contradiction
from patchgate.ledger.ledger import Event, Ledger, iso
from patchgate.ledger.receipts import Receipts, settled
from patchgate.policy.policies import Found, Policies, require_version
from patchgate.policy.policy import Policy
from patchgate.report.rules import Level
from patchgate.report.wording import SHORT_OID, count, safe
from patchgate.storage.record import CONTRADICTED

# No folder of PATH is in it, so none is left out as part of a scratch tree.
_NO_TREE = os.path.join(os.sep, "nowhere", "tree")


def tool_findings(policy: Policy, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Name each command and analysis of a policy that cannot run here, and what it misses."""
    config = policy.config
    for table, settings in (("commands", config.commands), ("analyses", config.analyses)):
        for name, each in settings.items():
            _, missing = located(each, command_environment(environ, each.env, _NO_TREE))
            if missing:
                reason, hint = not_found(missing)
                place = policy.line_of((table, name))
                what = f"[{table}.{name}]{f' ({place})' if place else ''} cannot run: {reason}"
                yield Finding(Level.ERROR, what, hint)


MOST_COMMITS = 1000
_NAMED = 5
_PENDING = "patchgate-pending"
_LANDING = "patchgate-landing"
_REMOTES = "refs/remotes/"
_SLOW_DAYS = 7


def policy_findings(
    repository: Repository, worktrees: Sequence[Worktree], git: str, environ: Mapping[str, str]
) -> Iterator[tuple[Worktree | None, Finding]]:
    """Tell about the policy that judges the next commit of each worktree, each policy once.

    None instead of a worktree is the whole repository; `git` is how a command for it begins. `environ` is the
    caller's, where the programs of commands and analyses are looked for.
    """
    try:
        asked = trusted(repository)
    except PatchgateError as error:
        hint = error.hint or ""
        line = f"{git} {hint.removeprefix('git ')}" if hint.startswith("git ") else hint
        yield None, Finding(Level.ERROR, f"{error.message}: every verdict is undecided", line or None)
        return
    seen = set()
    with Objects(repository) as objects:
        policies = Policies(objects)
        for worktree in worktrees:
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
                        for finding in tool_findings(found.policy, environ):
                            yield worktree, finding
            except PatchgateError as error:
                yield (
                    worktree,
                    Finding(Level.ERROR, f"the policy cannot be read: {error.message}", error.hint),
                )


def _about_policy(worktree: Worktree, found: Found, place: str) -> Iterator[Finding]:
    show = f"{git_in(worktree)} patchgate policy show"
    if found.fault is not None:
        what = f"the policy at {safe(place)} cannot be used: {safe(found.fault.in_one_line)}"
        yield Finding(Level.ERROR, f"{what}; only a commit that mends it is accepted", show)
        return
    policy = found.policy
    if policy is None:
        what = f"there is no policy at {safe(place)}: only the defaults judge"
        yield Finding(Level.NOTE, what, None if worktree.is_bare else f"{git_in(worktree)} patchgate init")
        return
    try:
        require_version(policy)
    except PatchgateError as error:
        hint = error.hint or ""
        yield Finding(
            Level.ERROR, f"{error.message}: every verdict is undecided", hint.removeprefix("install it: ")
        )
    yield from _mode(policy)


def _mode(policy: Policy) -> Iterator[Finding]:
    if policy.config.hooks.mode == "observe":
        line = policy.line_of(("hooks", "mode"))
        at = f" ({safe(line)})" if line else ""
        yield Finding(
            Level.NOTE, f"[hooks] mode is observe{at}: the hooks tell and record, and refuse nothing"
        )


def ledger_findings(repository: Repository, git: str) -> Iterator[Finding]:
    """Tell whether the ledger is whole to its end, and whether the next event can be written."""
    ledger = Ledger(repository.common_dir)
    try:
        problems = ledger.verify()
        comparison = ledger.compare_head()
        if comparison.state == CONTRADICTED:
            yield Finding(Level.WARNING, describe_contradiction(comparison), f"{git} patchgate log --verify")
    except PatchgateError as error:
        yield Finding(
            Level.WARNING, f"the ledger cannot be read: {error.message}", f"{git} patchgate log --verify"
        )
        problems = []
    except OSError as error:
        what = f"the ledger cannot be read: {error.strerror or error}"
        yield Finding(Level.WARNING, what, f"ls -l {quoted(str(ledger.path))}")
        problems = []
    if problems:
        first = problems[0]
        what = f"line {first.line} of the ledger {safe(first.message)}"
        yield Finding(Level.WARNING, what, f"{git} patchgate log --verify")
    folder = str(ledger.path.parent)
    place = folder if os.path.exists(folder) else repository.common_dir
    if not os.access(place, os.W_OK):
        what = f"{safe(place)} may not be written: no receipts, and no record of what is refused"
        yield Finding(Level.WARNING, what, f"chmod u+w {quoted(place)}")


def slow_findings(repository: Repository, git: str, clock: Callable[[], float] = time.time) -> list[Finding]:
    """Report the hooks that took longer than their budget within the last days, each once."""
    since = iso(clock() - _SLOW_DAYS * 86_400)
    taken: dict[str, list[int]] = {}
    for event in Ledger(repository.common_dir).mentions({"slow"}):
        hook, milliseconds = event.about.get("hook"), event.about.get("ms")
        if event.at >= since and isinstance(hook, str) and type(milliseconds) is int:
            taken.setdefault(hook, []).append(milliseconds)
    return [
        Finding(
            Level.WARNING,
            f"{safe(hook, 60)} took longer than [hooks] budget_ms {count(len(times), 'time')} within "
            f"{_SLOW_DAYS} days, up to {max(times):,} ms",
            f"{git} patchgate log --kind slow",
        )
        for hook, times in sorted(taken.items())
    ]


def leftover_findings(worktree: Worktree) -> Iterator[Finding]:
    """Tell what a killed hook has left in a worktree's git directory; it changes no verdict.

    The shim empties what is used up.
    """
    landing = os.path.join(worktree.git_dir, _LANDING)
    if os.path.exists(landing) and os.path.getsize(landing):
        what = f"{safe(landing)} is left from a commit that was cut short; it is judged again when it matters"
        yield Finding(Level.NOTE, what, f"rm {quoted(landing)}")
    pending = os.path.join(worktree.git_dir, _PENDING)
    try:
        with open(pending, "rb") as file:
            lines = file.read(1 << 12).split(b"\n")
    except OSError:
        return
    head = lines[1].split(b" ")[0].decode("ascii", "replace") if len(lines) > 1 else ""
    if lines != [b""] and (head if head.strip("0") else None) != worktree.head:
        what = f"{safe(pending)} is left from a commit that was not made"
        yield Finding(Level.NOTE, what, f"rm {quoted(pending)}")


def marker_findings(repository: Repository, worktree: Worktree) -> Iterator[Finding]:
    """Tell of a worktree whose marker names no intent that is stored: its commits are not the fast ones."""
    place = os.path.join(worktree.git_dir, MARKER)
    if not os.path.lexists(place):
        return
    try:
        if set(marked(worktree.git_dir)).isdisjoint(Intents(repository.common_dir).names()):
            what = f"{safe(place)} names no intent that is there, and makes commits here slower"
            yield Finding(Level.NOTE, what, f"{git_in(worktree)} patchgate intent show")
    except PatchgateError as error:
        yield Finding(Level.WARNING, safe(error.message), f"rm -r {quoted(place)}")


def kind_findings(repository: Repository, git: str) -> Iterator[Finding]:
    """Tell what of the repository's kind limits what can be read."""
    for limit in repository.limits:
        yield Finding(Level.NOTE, safe(limit))
    if repository.shallow:
        what = "this clone is shallow: a change whose parent is cut off is undecided"
        yield Finding(Level.NOTE, what, f"{git} fetch --unshallow")
    asked = ("config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$")
    if repository.git(*asked, answers=(0, 1)).code == 0:
        yield Finding(
            Level.NOTE, "this clone is partial: a change with objects that are not here is undecided"
        )


def symbolic_findings(repository: Repository, git: str) -> Iterator[Finding]:
    """Tell of each symbolic ref that git did not make itself: no hook runs when one is set."""
    for ref, target in symbolic_refs(repository).items():
        if not (ref.endswith("/HEAD") and ref.startswith(_REMOTES) and target.startswith(_REMOTES)):
            line = f"{git} update-ref --no-deref {quoted(ref)} {quoted(ref)}"
            yield Finding(Level.WARNING, sentence_on(ref, target), line)


def unseen_findings(repository: Repository, git: str) -> Iterator[Finding]:
    """Name the commits of local branches that no hook accepted since install: what walked past the gate.

    At most 1,000 commits are looked at. Those that were skipped with a reason, or observed, the ledger names.
    """
    if not os.path.exists(os.path.join(repository.common_dir, "patchgate", "settled")):
        return
    commits = _unseen(repository)
    if not commits:
        return
    named = first_of(
        commits, _NAMED, lambda commit: f"{commit.oid[:SHORT_OID]}{_branch_of(repository, commit)}"
    )
    subject = f"{count(len(commits), 'commit')} on local branches {'has' if len(commits) == 1 else 'have'}"
    what = f"{subject} no receipt, no hook accepted them here: {named}"
    if len(commits) == 1:
        line = f"{git} patchgate check {commits[0].oid}"
    else:
        # The branch may have forked anywhere, so each commit is named.
        oids = " ".join(commit.oid[:SHORT_OID] for commit in commits[:_NAMED])
        line = f"for commit in {oids}; do {git} patchgate check $commit; done"
    yield Finding(Level.WARNING, what, line)


def _unseen(repository: Repository) -> list[Commit]:
    """List the commits without a receipt, newest first; a rewrite that changed no tree raises no alarm."""
    tips = "".join(f"^{oid}\n" for oid in settled(repository.common_dir)).encode("ascii")
    chosen = (
        f"--max-count={MOST_COMMITS}",
        "--branches",
        "--ignore-missing",
        "--stdin",
        "--not",
        "--remotes",
    )
    commits = listed(repository, *chosen, stdin=tips)
    receipts = Receipts(repository.common_dir)
    open_ones = [commit for commit in commits if not receipts.has(commit.oid)]
    if not open_ones:
        return []
    told = _told_of(repository)
    parents = {parent for commit in open_ones for parent in commit.parents[:1]}
    known: dict[str, list[tuple[str, str | None]]] = {
        each.oid: receipts.by_tree(each.tree) for each in open_ones
    }
    parents |= {parent for pairs in known.values() for _, parent in pairs if parent}
    with Objects(repository) as objects:
        trees = {oid: header.oid for oid in parents if (header := objects.header(oid + "^{tree}"))}

    def same(commit: Commit) -> bool:
        base = trees.get(commit.parents[0]) if commit.parents else None
        return any((trees.get(parent) if parent else None) == base for _, parent in known[commit.oid])

    return [each for each in open_ones if each.oid not in told and not (len(each.parents) < 2 and same(each))]


def _told_of(repository: Repository) -> set[str]:
    """Read from the ledger which commits were skipped with a reason, or observed; damage names none."""
    found: set[str] = set()
    with suppress(OSError):
        for event in Ledger(repository.common_dir).lines():
            if isinstance(event, Event) and event.kind in {"skipped", "observed"}:
                commits = event.about.get("commits")
                named = (event.about.get("commit"), *(commits if isinstance(commits, list) else ()))
                found.update(commit for commit in named if isinstance(commit, str))
    return found


def _branch_of(repository: Repository, commit: Commit) -> str:
    """Name one branch that holds a commit."""
    chosen = (
        "for-each-ref",
        "--count=1",
        "--format=%(refname:short)",
        f"--contains={commit.oid}",
        "refs/heads/",
    )
    done = repository.git(*chosen)
    name = done.out.decode("utf-8", "surrogateescape").strip()
    return f" ({safe(name, 100)})" if name else ""
