"""A built-in selftest case of a rule: a repository, and a proposal that breaks the rule."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from patchgate.values import dataclass, field


class ProposalKind(StrEnum):
    """What a case proposes, and how it is submitted."""

    PATCH = "patch"
    EDITS = "edits"
    ENVELOPE = "envelope"
    MESSAGE = "message"
    PUSH = "push"
    REPLY = "reply"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class SelftestCase:
    """A proposal that breaks one rule, and the policy before it.

    `neighbour` is a similar proposal that does not break the rule; None: the good one of its kind. `files`
    are added to those of every case, `then` is what a second commit changes; both commits are dated
    `seconds` after the epoch.
    """

    rule: str
    proposal: bytes
    policy: str = "[policy]\n"
    kind: ProposalKind = ProposalKind.PATCH
    neighbour: bytes | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    then: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 0
