"""What a config says, as plain values: every key with its default.

The one place of the defaults. `config` checks documents and makes these values; a cache keeps `written` and
makes them again, so that a commit under a known policy loads no pydantic. To add a section: one
dataclass here, one model in `config_tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

Limit = int | Literal["off"]
"""A limit: a number, or "off"."""
FileClass = Literal["lock", "binary", "media", "artifact", "output"]
Symlinks = bool | Literal["inside"]
Gitlinks = bool | Literal["bump"]
MessageLevel = Literal["error", "warning", "note", "off"]
ReserveLevel = Literal["error", "warning", "off"]
HookMode = Literal["enforce", "observe"]
CommandKind = Literal["lint", "test"]
CommandScope = Literal["files", "tree"]
SideEffects = Literal["none"]
AnalysisFormat = Literal["sarif", "metrics"]
Strictness = Literal["strict", "relaxed"]
Preexisting = Literal["report", "refuse"]
TEST_COMMAND = ("python", "-m", "pytest", "-q", "{tests}")
Values = TypeVar("Values")
Runnable = TypeVar("Runnable", "CommandSettings", "AnalysisSettings")


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """The limits of a profile; the defaults are those of the commits of people."""

    max_files: Limit = 50
    max_added_lines: Limit = 2000
    deny_classes: tuple[FileClass, ...] = ("artifact",)
    deny_new_classes: tuple[FileClass, ...] = ()
    allow_modes: bool = True
    allow_symlinks: Symlinks = "inside"
    allow_gitlinks: Gitlinks = "bump"


COMMIT = ProfileSettings()
AGENT = ProfileSettings(
    max_files=5,
    max_added_lines=400,
    deny_classes=("lock", "binary", "artifact"),
    deny_new_classes=("media", "output"),
    allow_modes=False,
    allow_symlinks=False,
    allow_gitlinks=False,
)


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which paths may be touched, and what may be put there; `allow_roots` None is the whole repository."""

    allow_roots: tuple[str, ...] | None = None
    deny_prefixes: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_delete: tuple[str, ...] = ()
    deny_suffixes: tuple[str, ...] = ()
    deny_classes: tuple[FileClass, ...] = ()
    max_file_bytes: Limit = 1 << 20
    generated: tuple[str, ...] = ()
    commit: ProfileSettings = COMMIT
    agent: ProfileSettings = AGENT


@dataclass(frozen=True, slots=True)
class ContentSettings:
    """What added lines may not hold."""

    secrets: bool = True
    conflict_markers: bool = True
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OverrideSettings:
    """Limits of their own for some paths; what is None is that of the profile."""

    paths: tuple[str, ...] = ()
    max_files: Limit | None = None
    max_added_lines: Limit | None = None
    max_file_bytes: Limit | None = None
    deny_classes: tuple[FileClass, ...] | None = None
    deny_new_classes: tuple[FileClass, ...] | None = None
    allow_modes: bool | None = None
    allow_symlinks: Symlinks | None = None
    allow_gitlinks: Gitlinks | None = None


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """How loud the message gate speaks."""

    level: MessageLevel = "warning"


@dataclass(frozen=True, slots=True)
class HooksSettings:
    """What the local hooks do with a refusal, for which refs it is told only, and how long one may take.

    `budget_ms` None: no time is recorded.
    """

    mode: HookMode = "enforce"
    draft_refs: tuple[str, ...] = ()
    budget_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PushSettings:
    """Which refs of a remote may be neither deleted nor forced; None is the remote's default branch."""

    protected_refs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command that tries a patch; `timeout` is in seconds, `scope` is what of the tree it sees.

    `side_effects` "none": it says of itself that it changes no tracked file.
    """

    kind: CommandKind = "lint"
    command: tuple[str, ...] = ()
    scope: CommandScope = "tree"
    timeout: float = 600
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    required_tools: tuple[str, ...] = ()
    side_effects: SideEffects | None = None


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """How often one patch may be refused before a person has to look, and what failed before it means."""

    max_attempts: int = 5
    require_anchor: bool = False
    preexisting: Preexisting = "refuse"


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """A named group of files: the path of its contract, patterns of its tests and of its implementation."""

    contract: str = ""
    tests: tuple[str, ...] = ()
    implementation: tuple[str, ...] = ()
    parent: str | None = None
    test_command: tuple[str, ...] = TEST_COMMAND


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """How long a verified baseline is fresh, and where the modules of the implementations begin."""

    staleness_window_days: int = 90
    require_fresh: bool = False
    source_roots: tuple[str, ...] = ("src", ".")


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """A command that tells findings or metrics of a whole tree; `timeout` is in seconds."""

    command: tuple[str, ...] = ()
    format: AnalysisFormat = "sarif"
    timeout: float = 600
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    required_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """A limit: on new findings (`findings:new`), on all (`findings`), or on a metric of each symbol."""

    name: str = ""
    metric: str = ""
    max: float = 0


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How a comparison counts; `baselines` are paths of files whose growth is suspicious."""

    on_push: bool = False
    strictness: Strictness = "strict"
    preexisting: Preexisting = "report"
    baselines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IntentsSettings:
    """How a file is reported that is changed without an intent while one of another worktree declares it."""

    reserve: ReserveLevel = "warning"


@dataclass(frozen=True, slots=True)
class PlaceholdersSettings:
    """How loud the placeholder gate speaks; None: as a warning under `agent`, not at all under `commit`."""

    level: MessageLevel | None = None


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """A placeholder of the policy's own: an expression (Python, for bytes), and a line that it finds."""

    name: str = ""
    pattern: str = ""
    example: str = ""


SUFFIXES = (
    *(".md", ".txt", ".rst", ".adoc", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"),
    *(".conf", ".xml", ".html", ".htm", ".css", ".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".sql", ".sh"),
)


@dataclass(frozen=True, slots=True)
class ClaimsSettings:
    """How a claim that a placeholder remains is held against the files.

    Caps are inclusive and count bytes as stored; the suffixes are compared without case. `exclude` are
    patterns of paths that no fallback reads. It is no key that `has_unusable_markers`: a marker that the
    policy wanted is not among `markers`.
    """

    contradiction_guard_enabled: bool = True
    contradiction_guard_strict_coverage: bool = True
    contradiction_scan_max_files: int = 80
    contradiction_scan_max_total_bytes: int = 2_500_000
    contradiction_scan_max_file_bytes: int = 300_000
    contradiction_scan_min_files_for_sufficiency: int = 2
    contradiction_scan_allowed_suffixes: tuple[str, ...] = SUFFIXES
    contradiction_scan_timeout_seconds: float = 8
    markers: tuple[MarkerSettings, ...] = ()
    exclude: tuple[str, ...] = ()
    has_unusable_markers: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """A value of the config that cannot be used as it is, and what is used instead: a warning, no error.

    `key` is that of the value; `message` says the rest, safe for a terminal: "5000 is more than 1000, …".
    """

    key: tuple[str | int, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Config:
    """What a repository's config says; `written` are its keys as they stand there, without defaults."""

    required_version: str | None = None
    policy: PolicySettings = PolicySettings()
    content: ContentSettings = ContentSettings()
    rules: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[OverrideSettings, ...] = ()
    message: MessageSettings = MessageSettings()
    hooks: HooksSettings = HooksSettings()
    push: PushSettings = PushSettings()
    commands: Mapping[str, CommandSettings] = field(default_factory=dict)
    apply: ApplySettings = ApplySettings()
    components: Mapping[str, ComponentSettings] = field(default_factory=dict)
    baselines: BaselineSettings = BaselineSettings()
    analyses: Mapping[str, AnalysisSettings] = field(default_factory=dict)
    thresholds: tuple[ThresholdSettings, ...] = ()
    verify: VerifySettings = VerifySettings()
    intents: IntentsSettings = IntentsSettings()
    placeholders: PlaceholdersSettings = PlaceholdersSettings()
    claims: ClaimsSettings = ClaimsSettings()
    doubts: tuple[Doubt, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict, compare=False)


def settings_from(written: Mapping[str, Any]) -> Config:
    """Make the values of keys that were checked: what is not written has its default."""
    policy = dict(written.get("policy", {}))
    policy["commit"] = _filled(COMMIT, policy.get("commit", {}))
    policy["agent"] = _filled(AGENT, policy.get("agent", {}))
    claims, doubts = _claims(written)
    return Config(
        written.get("required_version"),
        _filled(PolicySettings(), policy),
        _filled(ContentSettings(), written.get("content", {})),
        dict(written.get("rules", {})),
        tuple(_filled(OverrideSettings(), each) for each in written.get("overrides", ())),
        _filled(MessageSettings(), written.get("message", {})),
        _filled(HooksSettings(), written.get("hooks", {})),
        _filled(PushSettings(), written.get("push", {})),
        {name: _command(CommandSettings(), each) for name, each in written.get("commands", {}).items()},
        _filled(ApplySettings(), written.get("apply", {})),
        {name: _filled(ComponentSettings(), each) for name, each in written.get("components", {}).items()},
        _filled(BaselineSettings(), written.get("baselines", {})),
        {name: _command(AnalysisSettings(), each) for name, each in written.get("analyses", {}).items()},
        tuple(_filled(ThresholdSettings(), each) for each in written.get("thresholds", ())),
        _filled(VerifySettings(), written.get("verify", {})),
        _filled(IntentsSettings(), written.get("intents", {})),
        _filled(PlaceholdersSettings(), written.get("placeholders", {})),
        claims,
        doubts,
        written,
    )


def _claims(written: Mapping[str, Any]) -> tuple[ClaimsSettings, tuple[Doubt, ...]]:
    if "claims" not in written:
        return ClaimsSettings(), ()
    from patchgate.policy.claims import claims_from

    return claims_from(written["claims"])


def _command(defaults: Runnable, written: Mapping[str, Any]) -> Runnable:
    # Only where there is a command: what checks its texts is not loaded for a plain commit.
    from patchgate.policy.command_texts import seconds

    settings = _filled(defaults, written)
    return replace(settings, timeout=seconds(settings.timeout), env=dict(settings.env))


def _filled(defaults: Values, written: Mapping[str, Any]) -> Values:
    """Copy a dataclass with the written keys in it; lists become tuples."""
    names = {each.name for each in fields(defaults)}  # type: ignore[arg-type]
    chosen = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in written.items()
        if name in names
    }
    return type(defaults)(**{name: getattr(defaults, name) for name in names} | chosen)
