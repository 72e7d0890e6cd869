"""The content rules: what added lines may not hold. They can be allowed on the line, with a reason."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _content(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.POLICY, "content", Level.ERROR, what, why, example, fix, inline=True)


CONTENT_RULES = (
    _content(
        "secret",
        "An added line holds what looks like a credential: a private key or a token of a known form.",
        "History keeps it for ever: whoever can read the repository has it, also after it is removed.",
        "-----BEGIN PRIVATE KEY-----",
        "Remove it, revoke it if it was ever real, and read it from the environment or a secret store.",
    ),
    _content(
        "conflict-marker",
        "An added line is a left-over conflict marker.",
        "The conflict was not resolved: both sides are in the file.",
        "<<<<<<< HEAD",
        "Resolve the conflict and remove the markers.",
    ),
    _content(
        "deny-content",
        "An added line matches an expression in `[content] deny`.",
        "The repository's policy forbids this content.",
        'deny = ["DO NOT COMMIT"]',
        "Remove the matching text, or the line.",
    ),
)
