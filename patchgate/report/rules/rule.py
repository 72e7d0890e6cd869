"""What a rule is: its level, its stage with the stable code, and the words that explain it."""

from __future__ import annotations

from enum import StrEnum

from patchgate.values import dataclass


class Level(StrEnum):
    """SARIF's levels; `error` refuses."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Stage(StrEnum):
    """Where in the order of judging a rule speaks."""

    PARSE = "parse"
    POLICY = "policy"
    GIT_CHECK = "git_check"
    APPLY = "apply"
    CONTRACTS = "contracts"
    DRIFT = "drift"
    SCOPE = "scope"
    VERIFY = "verify"
    PLACEHOLDERS = "placeholders"
    MESSAGE = "message"

    @property
    def order(self) -> int:
        """The position of the stage; the first that failed names the whole."""
        return list(Stage).index(self)

    @property
    def code(self) -> str:
        """The stable code of the stage."""
        return _CODES[self]


_CODES = {
    Stage.PARSE: "PATCH_PARSE_INVALID",
    Stage.POLICY: "PATCH_POLICY_DENY",
    Stage.GIT_CHECK: "PATCH_GIT_CHECK_FAIL",
    Stage.APPLY: "PATCH_APPLY_FAIL",
    Stage.CONTRACTS: "CONTRACT_INVALID",
    Stage.DRIFT: "DRIFT_DETECTED",
    Stage.SCOPE: "SCOPE_VIOLATED",
    Stage.VERIFY: "VERIFY_FAILED",
    Stage.PLACEHOLDERS: "PLACEHOLDER_FOUND",
    Stage.MESSAGE: "MESSAGE_REFUSED",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it means, why it exists, an example that breaks it, and the next step.

    `level` is the level without any config (for limits: that of the `commit` profile). An `invariant` is
    out of reach of policy, levels, approvals and suppressions; `inline` rules can be suppressed on the line.
    An `undecided` rule says that something could not be done, which is not the fault of the change: its
    error makes the verdict undecided.
    """

    id: str
    summary: str
    reason: str
    example: str
    help: str
    stage: Stage
    gate: str
    level: Level = Level.ERROR
    invariant: bool = False
    inline: bool = False
    undecided: bool = False

    @property
    def code(self) -> str:
        """The stable code that goes with the rule's stage."""
        return self.stage.code

    @property
    def hint(self) -> str:
        """The help as a finding has it: a part of a line, not a sentence."""
        return self.help[:1].lower() + self.help[1:].removesuffix(".")
