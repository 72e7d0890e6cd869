"""Check a commit's message: in the commit-msg hook, and in commits that exist.

The policy from before the commit judges, and git's config says how the message will be cleaned. Messages of
existing commits are read only where the policy refuses some, because `commit -n` bypasses commit-msg. There
the gate is a context gate, not part of the verdict id.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from patchgate.check.case import Case
from patchgate.check.gate import Gate, GateResults, judge
from patchgate.check.judging_policy import BUILT_IN, OWN_POLICY, reference
from patchgate.check.message_rules import (
    CUT_LINE,
    MODES,
    Cleanup,
    Message,
    clean,
    examine,
    is_abandoned,
    message_of,
)
from patchgate.check.policy_lookup import requested_policy, trusted_options
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.model import Change, Entry, Source
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import BIG_FILE, Repository, git_version
from patchgate.git.revisions import tree_named
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in, require_version
from patchgate.report.rules.scope import MESSAGE_RULES
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report
from patchgate.values import replace

GATE = "message"
# The two names of one key; git before 2.45 knows the first alone.
_COMMENT, _COMMENT_STRING = "core.commentchar", "core.commentstring"
_KEYS = r"^(core\.comment(char|string)|commit\.(cleanup|verbose)|i18n\.commitencoding)$"
_KNOWS_STRINGS = (2, 45)
_MOST_READ = 2 * BIG_FILE


def check_message(
    repository: Repository, file: str, *, edited: bool = True, profile: Profile = Profile.COMMIT
) -> Report:
    """Judge the message that a commit is about to get, as git will clean it.

    A message that git itself will refuse as empty is left to git.

    Args:
        file: the file that git names to commit-msg, as seen from the working directory.
        edited: whether git opens an editor for this commit; if not, it sets `GIT_EDITOR=:` for hooks.
        profile: that of agents where an intent binds the commit.

    Raises:
        PatchgateError: the message or the policy could not be read.
    """
    raw = read_message(file)
    with Objects(repository) as objects:
        policy, place = policy_of_pending(repository, objects)
        nothing = Change(objects.empty_tree, objects.empty_tree, ())
    require_version(policy)
    if all(policy.level(rule.id, profile) is None for rule in MESSAGE_RULES):
        return Report(())
    cleanup, encoding = message_settings(repository)
    text = clean(raw, cleanup, edited=edited)
    if len(text) > BIG_FILE:
        raise _too_long()
    outcomes: tuple[GateOutcome, ...] = (GateOutcome(GATE, Outcome.PASS),)
    findings: tuple[Finding, ...] = ()
    if not is_abandoned(text):
        outcomes, findings = _judge(Message(text, encoding), nothing, policy, profile)
    if outcomes[0].outcome is Outcome.FAIL:
        # git starts the next commit with an empty message, and few users know where the old one is.
        last = replace(findings[-1], notes=(f"the message is saved in {printable(file)}",))
        findings = (*findings[:-1], last)
    about = reference(policy, place, profile)
    return Report(
        (
            ChangeVerdict(
                change=nothing,
                source=Source("message"),
                profile=profile.value,
                policy=about,
                gates=outcomes,
                findings=findings,
            ),
        )
    )


def with_message(
    verdict: ChangeVerdict, policy: Policy | None, profile: Profile, read: Callable[[], bytes]
) -> ChangeVerdict:
    """Check a commit's message where the policy refuses some; `read` returns the commit object."""
    if policy is None or not policy.refuses_messages(profile):
        return verdict
    try:
        require_version(policy)
        outcomes, findings = _judge(message_of(read()), verdict.change, policy, profile)
    except PatchgateError as error:
        outcomes, findings = (GateOutcome(GATE, Outcome.UNDECIDED, error.message),), ()
    return replace(
        verdict,
        context_gates=(*verdict.context_gates, *outcomes),
        findings=(*verdict.findings, *findings),
    )


def _judge(message: Message, change: Change, policy: Policy, profile: Profile) -> GateResults:
    gate = Gate(GATE, lambda case: examine(message), lambda case: True)
    return judge(Case(change, policy, profile), (gate,))


def read_message(file: str) -> bytes:
    """Read the file of a message; below git's scissors line there may be a diff of any size.

    Raises:
        UsageError: it cannot be read.
        UndecidedError: it is longer than any message that is read.
    """
    try:
        # Do not wait for a writer of a pipe.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            raw = stream.read(_MOST_READ)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a file name"
        message = f"the message {printable(file)} cannot be read: {why}"
        raise UsageError(message, "pass the file that git gives to commit-msg") from error
    if len(raw) == _MOST_READ and CUT_LINE not in raw:
        raise _too_long()
    return raw


def _too_long() -> UndecidedError:
    return UndecidedError(f"the message is longer than {BIG_FILE >> 20} MiB", "make it shorter")


def policy_of_pending(repository: Repository, objects: Objects) -> tuple[Policy, str]:
    """Find the policy that judges the pending commit, and say where it is from.

    Raises:
        UndecidedError: it cannot be read, and this commit does not fix it.
    """
    policies = TreePolicies(objects)
    terms = trusted_options(repository)
    before = requested_policy(objects, policies, terms)
    if before is None:
        head = tree_named(objects, "HEAD")
        before = FoundPolicy() if head is None else policies.at(policies.key(head[0]))
    if before.policy is not None:
        return before.policy, terms.place or "HEAD"
    own = policies.at(_staged(repository, policies))
    if own.policy is not None:
        return own.policy, OWN_POLICY
    fault = before.fault or own.fault
    if fault is not None:
        raise UndecidedError(
            f"the policy that judges this commit cannot be read: {fault.in_one_line}",
            "fix it in a separate commit",
        )
    return built_in(), BUILT_IN


def _staged(repository: Repository, policies: TreePolicies) -> tuple[str | None, str | None]:
    """Name the policy in the index: a first policy judges itself, and so does a repaired one."""
    names = [path.raw.decode("ascii") for path in (CONFIG_FILE, PYPROJECT_FILE)]
    found: dict[bytes, Entry] = {}
    for line in repository.output("ls-files", "--stage", "-z", "--", *names).split(b"\0")[:-1]:
        about, _, name = line.partition(b"\t")
        mode, oid, _ = about.decode("ascii").split(" ")
        found[name] = Entry(mode, oid)
    return policies.key_of(found.get(CONFIG_FILE.raw), found.get(PYPROJECT_FILE.raw))


def message_settings(repository: Repository) -> tuple[Cleanup, str | None]:
    """Read how git cleans messages here, and which encoding they have."""
    settings: dict[str, bytes | None] = {}
    done = repository.git("config", "--null", "--show-scope", "--get-regexp", _KEYS, answers=(0, 1))
    fields = done.out.split(b"\0")
    for scope, setting in zip(fields[0:-1:2], fields[1::2], strict=True):
        # What this program sets for its own children is not a setting of the user's.
        if scope != b"command":
            key, has_value, value = setting.partition(b"\n")
            name = key.decode("utf-8", "replace").lower()
            if name == _COMMENT_STRING:
                if git_version(repository.environment) < _KNOWS_STRINGS:
                    continue
                name = _COMMENT
            # The last one counts.
            settings[name] = value if has_value else None
    mode = (settings.get("commit.cleanup") or b"").decode("ascii", "replace")
    comment = settings.get(_COMMENT) or b"#"
    cleanup = Cleanup(
        mode if mode in MODES else None,
        None if comment.lower() == b"auto" else comment,
        "commit.verbose" in settings and _is_true(settings["commit.verbose"]),
    )
    encoding = settings.get("i18n.commitencoding")
    return cleanup, encoding.decode("ascii", "replace") if encoding else None


def _is_true(value: bytes | None) -> bool:
    # A key without a value is true (git-config); `commit.verbose` may be a number too.
    return value is None or value.lower() not in {b"", b"0", b"false", b"no", b"off"}
