"""What a built-in case of a rule is: a repository, and a proposal that breaks the rule there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ProposalKind(StrEnum):
    """What a case proposes, and so by which door it comes."""

    PATCH = "patch"
    EDITS = "edits"
    MESSAGE = "message"
    PUSH = "push"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class SelftestCase:
    """What breaks one rule: the policy before, and a proposal of some kind.

    `neighbour` is the nearest proposal that keeps the rule; None: the good one of its kind. `files` are there
    besides those of every case, `then` are what a second commit changes; both commits were made `seconds`
    after the epoch.
    """

    rule: str
    proposal: bytes
    policy: str = "[policy]\n"
    kind: ProposalKind = ProposalKind.PATCH
    neighbour: bytes | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    then: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 0
