"""What an agent reads at the start of a session: the policy, the active intent, what was refused last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patchgate.check.policy_lookup import requested_policy, trusted_options
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.ledger.ledger import Ledger
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import TreePolicies, built_in

_CHARACTERS = 3
"""Characters of a token, at the least: English text has four, paths and code about three."""
_MOST_NAMED = 12
_MOST_REFUSED = 3


def brief_text(repository: Repository, max_tokens: int) -> str:
    """Write the policy for agents, the active intent and the last refusals, in at most so many tokens.

    Raises:
        PatchgateError: the policy cannot be read.
    """
    lines: list[str] = []
    left = max_tokens * _CHARACTERS
    for line in _lines(repository):
        if len(line) + 1 > left:
            lines.append("…")
            break
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def _lines(repository: Repository) -> Iterator[str]:
    yield "patchgate checks what you write, each commit and the whole working tree when you stop."
    yield "Facts of this repository:"
    yield from _policy_lines(_policy(repository))
    yield from _intent_lines(repository)
    yield from _refused_lines(repository)
    yield "- The git hooks run for every commit; --no-verify and other hooks are refused."
    yield "- git patchgate explain RULE says how to satisfy a rule; explain --path P what decides for a path."


def _policy(repository: Repository) -> Policy:
    asked = replace(trusted_options(repository), profile=Profile.AGENT)
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        header = objects.header("HEAD^{tree}")
        tree = objects.empty_tree if header is None else header.oid
        found = requested_policy(objects, policies, asked) or policies.at(policies.key(tree))
        if found.fault is not None:
            raise found.fault
        return found.policy or built_in()


def _policy_lines(policy: Policy) -> Iterator[str]:
    section, limits = policy.config.policy, policy.limits(Profile.AGENT, None)
    if section.allow_roots is not None:
        yield f"- Only below these folders may files change: {_named(section.allow_roots)}"
    denied = (*section.deny_prefixes, *section.deny)
    if denied:
        yield f"- These may not change: {_named(denied)}"
    if section.deny_suffixes or limits.deny_classes:
        kinds = (*section.deny_suffixes, *sorted(limits.deny_classes))
        yield f"- No files of these kinds: {_named(kinds)}"
    numbers = ((limits.max_files, "files"), (limits.max_added_lines, "added lines"))
    said = [f"{number:,} {what}" for number, what in numbers if number is not None]
    if said:
        yield f"- One change has at most {' and '.join(said)}"


def _named(names: tuple[str, ...]) -> str:
    return first_of(list(names), _MOST_NAMED, lambda name: printable(name, 80)) or "none"


def _intent_lines(repository: Repository) -> Iterator[str]:
    here = ScopeGate(repository).here
    if here is None:
        return
    for intent in here.own:
        entries = [path.quoted for path in sorted(intent.scope.allowed)]
        reason = printable(intent.reason, 200)
        yield f"- The active intent {intent.id} ({reason}) allows only: {first_of(entries, _MOST_NAMED)}"


def _refused_lines(repository: Repository) -> Iterator[str]:
    refused = list(Ledger(repository.common_dir).find_events({"refused"}))[-_MOST_REFUSED:]
    for event in reversed(refused):
        rules = event.about.get("rules")
        if isinstance(rules, list | tuple) and rules:
            named = first_of([printable(str(rule), 60) for rule in rules], _MOST_NAMED)
            yield f"- Refused lately: {named}"
