"""The typed results of the MCP tools: what a client finds in their structured content."""

from pydantic import BaseModel, Field


class ToolFinding(BaseModel):
    """One finding: rule, level, place, message and the next step."""

    rule: str
    level: str
    place: str | None
    message: str
    help: str | None


class JudgedResult(BaseModel):
    """A verdict with its first findings; `text` is the same for a model to read."""

    verdict: str = Field(description="accepted, rejected or undecided")
    findings: list[ToolFinding]
    more: int = Field(description="how many findings are not listed")
    text: str


class CheckToolResult(JudgedResult):
    """What check found."""

    digest: str | None = Field(description="for apply and declare_intent; null if it was not accepted")


class ValidateToolResult(JudgedResult):
    """What validate found, and how many contracts and baselines it looked at."""

    contracts: int
    baselines: int


class ApplyToolResult(JudgedResult):
    """Whether the patch was applied, and the attempt that a retry names."""

    applied: bool
    attempt: str | None


class ExplainToolResult(BaseModel):
    """An explanation."""

    text: str


class VerifyToolResult(BaseModel):
    """Whether something got worse."""

    verdict: str = Field(description="accepted, rejected or undecided")
    status: str
    reason: str
    next_step: str | None
    text: str


class BriefToolResult(BaseModel):
    """A brief, its tokens (bytes of UTF-8 divided by 4, rounded up), and what was left out."""

    tokens: int
    left_out: list[str]
    text: str


class ListedRun(BaseModel):
    """A run that is not complete; `digest` is for resume."""

    id: str
    status: str
    reason: str | None
    digest: str


class ListedIntent(BaseModel):
    """An intent."""

    id: str
    is_active: bool
    reason: str


class StatusToolResult(BaseModel):
    """Where the repository stands, and what comes next."""

    runs: list[ListedRun]
    intents: list[ListedIntent]
    next: list[str]
    missing: list[str] = Field(description="what could not be read")
    text: str


class DeclareToolResult(BaseModel):
    """What was done with the intent: declared, queued or refused."""

    action: str
    intent: str | None
    text: str


class ResumeToolResult(BaseModel):
    """How the run ended this time."""

    run: str
    status: str
    digest: str
    text: str


class Confirmation(BaseModel):
    """The answer of a person who is asked before a change."""

    confirm: bool = Field(description="Do it?")
