"""The config: every key with its type, its default and its description in the schema.

Each section is declared here once, as a plain dataclass. `config_models` generates the pydantic models from
the annotations, so a commit under a cached policy (`settings_loader`) does not import pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from patchgate.policy.command_settings import CommandSettings
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.policy import config_types as types
    from patchgate.policy.run_settings import EnvironmentSettings, RunSettings

MessageLevel = Literal["error", "warning", "note", "off"]
ReserveLevel = Literal["error", "warning", "off"]
HookMode = Literal["enforce", "observe"]
Strictness = Literal["strict", "relaxed"]
Preexisting = Literal["report", "refuse"]
NO_KEY = {"is_key": False}  # Marks a field that is not a config key.


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """The limits of a profile; the defaults are those of human commits."""

    max_files: types.MaxFiles = 50
    max_added_lines: types.MaxAddedLines = 2000
    deny_classes: types.DenyClasses = ("artifact",)
    deny_new_classes: types.DenyNewClasses = ()
    allow_modes: types.AllowModes = True
    allow_symlinks: types.AllowSymlinks = "inside"
    allow_gitlinks: types.AllowGitlinks = "bump"


@dataclass(frozen=True, slots=True)
class CommitSettings(ProfileSettings):
    """Limits on human commits."""


@dataclass(frozen=True, slots=True)
class AgentSettings(ProfileSettings):
    """Limits on patches, edits and commits of agents."""

    max_files: types.MaxFiles = 5
    max_added_lines: types.MaxAddedLines = 400
    deny_classes: types.DenyClasses = ("lock", "binary", "artifact")
    deny_new_classes: types.DenyNewClasses = ("media", "output")
    allow_modes: types.AllowModes = False
    allow_symlinks: types.AllowSymlinks = False
    allow_gitlinks: types.AllowGitlinks = False


@dataclass(frozen=True, slots=True)
class DetectionSettings:
    """Which commits are an agent's, besides those with a trailer of patchgate."""

    detect: Annotated[
        bool,
        "Whether commits that are made where a known agent has set its variables get the trailer "
        "`Patchgate-Profile: agent`.",
    ] = False
    agent_trailers: types.Trailers = ()


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which paths may be changed, and how."""

    allow_roots: Annotated[
        types.Prefixes | None,
        "The only files and folders that may be changed; without this key, the whole repository.",
    ] = None
    deny_prefixes: Annotated[types.Prefixes, "Files and folders that may not be changed."] = ()
    deny: Annotated[types.Patterns, "Gitignore patterns of paths that may not be changed."] = ()
    allow_delete: Annotated[types.Patterns, "Patterns of denied paths that may still be deleted."] = ()
    deny_suffixes: Annotated[
        types.Suffixes, "File suffixes, in any case, that may not be added or changed."
    ] = ()
    deny_classes: types.DenyClasses = ()
    max_file_bytes: types.MaxFileBytes = 1 << 20
    generated: Annotated[
        types.Patterns, "Patterns of paths that do not count toward the limits on a change."
    ] = ()
    commit: CommitSettings = CommitSettings()
    agent: AgentSettings = AgentSettings()


@dataclass(frozen=True, slots=True)
class ContentSettings:
    """What added lines may not contain."""

    secrets: Annotated[bool, "Whether added lines are searched for credentials."] = True
    conflict_markers: Annotated[bool, "Whether conflict markers are refused."] = True
    deny: Annotated[
        types.Expressions,
        "Regular expressions (Python, for bytes) that no added line may match. Each may use 10 s "
        "of processor time, in pre-receive 2 s; then the verdict is undecided.",
    ] = ()


@dataclass(frozen=True, slots=True)
class OverrideSettings:
    """Different limits for some paths; keys that are not set keep the value of the profile."""

    paths: Annotated[
        types.OverridePaths, "Patterns of the paths; the first override that matches a path applies to it."
    ]
    max_files: types.MaxFiles | None = None
    max_added_lines: types.MaxAddedLines | None = None
    max_file_bytes: types.MaxFileBytes | None = None
    deny_classes: types.DenyClasses | None = None
    deny_new_classes: types.DenyNewClasses | None = None
    allow_modes: types.AllowModes | None = None
    allow_symlinks: types.AllowSymlinks | None = None
    allow_gitlinks: types.AllowGitlinks | None = None


@dataclass(frozen=True, slots=True)
class OwnersSettings:
    """Who must approve changes to some paths before they land on a protected branch."""

    paths: types.OwnedPaths
    signers: types.Principals = ()
    approvals: Annotated[types.UpTo100, "How many of them must approve, each with their own key."] = 1


@dataclass(frozen=True, slots=True)
class GovernanceSettings:
    """What names this repository in signed approvals."""

    id: Annotated[
        types.RepositoryId | None,
        "A random name, which `init` writes, and which a protected branch keeps. A fork changes it before "
        "its checks are installed, so that it needs its own approvals.",
    ] = None


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """Rules for commit messages."""

    level: Annotated[MessageLevel, "The level of every message rule; `off` turns the gate off."] = "warning"


@dataclass(frozen=True, slots=True)
class HooksSettings:
    """What the hooks on a developer's machine do with a refusal."""

    mode: Annotated[
        HookMode, "`observe`: report and record a refusal, but let the commit or push through."
    ] = "enforce"
    draft_refs: Annotated[
        types.Refs, "Branches (full names, `*` allowed) where a commit is only warned; the push is checked."
    ] = ()
    budget_ms: Annotated[
        types.Milliseconds | None,
        "How many milliseconds a hook may take. A slower run is recorded, and `doctor` and `log` "
        "report it; it refuses nothing.",
    ] = None


@dataclass(frozen=True, slots=True)
class PushSettings:
    """What a push may do to the refs of a remote."""

    protected_refs: Annotated[
        types.Refs | None,
        "Refs (full names, `*` allowed) that may not be deleted or force-pushed; without this "
        "key, the remote's default branch.",
    ] = None


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """How `apply` treats patches."""

    max_attempts: Annotated[
        types.UpTo100, "How often a patch may be refused before a maintainer must allow another attempt."
    ] = 5
    require_anchor: Annotated[
        bool, "Whether structured edits must state what they replace (`old_text` or `old_sha256`)."
    ] = False
    preexisting: Annotated[
        Preexisting,
        "What happens to a patch if a command fails the same way without it: `refuse` it, "
        "or `report` the failure as a warning.",
    ] = "refuse"
    repair: Annotated[
        bool, "Whether mechanical faults of a patch are repaired before it is judged, as with `--repair`."
    ] = False
    inputs: types.Inputs = ("diff",)


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """A named group of files whose contract, tests and implementation must not drift apart."""

    contract: Annotated[types.ContractPath, "The path of its contract, an `interface.json`."]
    tests: Annotated[types.Globs, "Patterns of the tests of its contract, from the root."]
    implementation: Annotated[types.Globs, "Patterns of its implementation, from the root."]
    parent: Annotated[types.ComponentId | None, "The component or group that it belongs to."] = None
    test_command: types.TestCommand = ("python", "-m", "pytest", "-q", "{tests}")


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """How long a verified baseline is fresh, and the source roots of the implementations."""

    staleness_window_days: Annotated[
        types.WindowDays, "For how many days a verification is valid, including the last one."
    ] = 90
    require_fresh: Annotated[bool, "Whether a push is refused while a baseline is not fresh."] = False
    source_roots: Annotated[
        types.Roots, "The source roots of the modules; they are on PYTHONPATH of the tests."
    ] = ("src", ".")


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """A limit on findings or on a metric."""

    name: Annotated[types.AnalysisName, "Its name in reports."]
    metric: types.MetricName
    max: Annotated[types.MostOfMetric, "The most that is allowed, inclusive."]


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How regressions count."""

    on_push: Annotated[bool, "Whether pre-push verifies each pushed branch."] = False
    strictness: Annotated[
        Strictness, "`relaxed`: regressions and thresholds are reported, but refuse nothing."
    ] = "strict"
    preexisting: Annotated[
        Preexisting,
        "`refuse`: without an intent every failing threshold counts, even if it failed before "
        "and is not worse. `report`: such a threshold is reported, but refuses nothing.",
    ] = "report"
    suppressions: types.SuppressionFiles = ()


@dataclass(frozen=True, slots=True)
class IntentsSettings:
    """How intents of other worktrees affect commits in this one."""

    reserve: Annotated[
        ReserveLevel,
        "The level for a file that is changed without an intent while an active intent of "
        "another worktree declares it.",
    ] = "warning"


@dataclass(frozen=True, slots=True)
class PlaceholdersSettings:
    """The level of the placeholder gate on added lines; `[rules]` has priority."""

    level: Annotated[
        MessageLevel | None,
        "The level of every placeholder rule; without this key, `warning` for agents and `off` for humans.",
    ] = None


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """A custom placeholder, in addition to the built-in ones."""

    name: Annotated[types.MarkerName, "Its unique name: lowercase letters, digits and hyphens."]
    pattern: Annotated[
        types.MarkerExpression,
        "A regular expression (Python, for bytes) that matches a line with the placeholder. It "
        "must have few repeats, so that no search takes long.",
    ]
    example: Annotated[types.MarkerExample, "A line that the pattern matches."]


SUFFIXES = (
    *(".md", ".txt", ".rst", ".adoc", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"),
    *(".conf", ".xml", ".html", ".htm", ".css", ".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".sql", ".sh"),
)


# Every number is inclusive and counts bytes as stored; suffixes are compared without case.
@dataclass(frozen=True, slots=True)
class ClaimsSettings:
    """How a claim that a placeholder remains is checked against the files.

    A number out of bounds is clamped, a value of the wrong type is replaced by the default, and an unknown
    key has no effect. Every command that reads the policy warns about it: nothing here stops an adjudication.
    """

    contradiction_guard_enabled: Annotated[
        bool, "Whether claims are checked against the files; if not, every claim is upheld."
    ] = True
    contradiction_guard_strict_coverage: Annotated[
        bool,
        "Whether every relevant file must be read completely before a claim is contradicted; "
        "`false` is for emergencies: one file is enough.",
    ] = True
    contradiction_scan_max_files: Annotated[int, "The most files to read: 1 to 1000."] = 80
    contradiction_scan_max_total_bytes: Annotated[
        int, "The most bytes to read, of all files together: 1024 to 50000000."
    ] = 2_500_000
    contradiction_scan_max_file_bytes: Annotated[
        int,
        "The largest file to read, except deliverables and changed files: 1 to 10000000 bytes, "
        "and no more than the total.",
    ] = 300_000
    contradiction_scan_min_files_for_sufficiency: Annotated[
        int,
        "How many files must be read before a claim is contradicted, unless there is only one "
        "deliverable: 1 to 100.",
    ] = 2
    contradiction_scan_allowed_suffixes: Annotated[
        tuple[str, ...],
        'Suffixes of the files to read, in any case; `""` means names without a suffix. It '
        "replaces the default list.",
    ] = SUFFIXES
    contradiction_scan_timeout_seconds: Annotated[
        float, "After how many seconds reading stops and the claim is upheld: 1 to 30."
    ] = 8
    markers: Annotated[
        tuple[MarkerSettings, ...],
        "Custom placeholders, at most 50. One that cannot be used is ignored, and until it is "
        "fixed no claim is contradicted.",
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        "Patterns of files that are not read unless the claim names them; their content does "
        "not support or contradict a claim.",
    ] = ()
    # Whether a marker of the config is missing from `markers` because it cannot be used.
    has_unusable_markers: bool = field(default=False, metadata=NO_KEY)


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """A warning: a value of the config cannot be used, and something else is used instead.

    `key` is the key of the value. `message` is safe for a terminal: "5000 is more than 1000, …".
    """

    key: tuple[str | int, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Config:
    """The config of a repository; the defaults apply without a file."""

    required_version: Annotated[
        types.Specifier | None, 'The versions of patchgate that may check this repository, like ">=0.1,<2".'
    ] = None
    policy: PolicySettings = PolicySettings()
    content: ContentSettings = ContentSettings()
    rules: Annotated[
        Mapping[types.RuleId, types.RuleLevel],
        "The levels of rules, by id; invariants cannot be changed.",
    ] = field(default_factory=dict)
    overrides: Annotated[tuple[OverrideSettings, ...], "Different limits for some paths."] = ()
    owners: Annotated[
        tuple[OwnersSettings, ...], "Who must approve changes to some paths, at most 100 tables."
    ] = ()
    governance: GovernanceSettings = GovernanceSettings()
    profile: DetectionSettings = DetectionSettings()
    message: MessageSettings = MessageSettings()
    hooks: HooksSettings = HooksSettings()
    push: PushSettings = PushSettings()
    commands: Annotated[
        Mapping[types.CommandName, CommandSettings],
        "The tools that run at a commit, a push, `apply` and `verify`, and authors, by name.",
    ] = field(default_factory=dict)
    apply: ApplySettings = ApplySettings()
    components: Annotated[Mapping[types.ComponentId, ComponentSettings], "The components, by id."] = field(
        default_factory=dict
    )
    baselines: BaselineSettings = BaselineSettings()
    # The commands of `verify`, and the tables `[analyses.NAME]`, their old form.
    analyses: Mapping[str, CommandSettings] = field(default_factory=dict, metadata=NO_KEY)
    thresholds: Annotated[tuple[ThresholdSettings, ...], "Limits on findings and metrics."] = ()
    verify: VerifySettings = VerifySettings()
    intents: IntentsSettings = IntentsSettings()
    placeholders: PlaceholdersSettings = PlaceholdersSettings()
    claims: ClaimsSettings = ClaimsSettings()
    warnings: tuple[ConfigWarning, ...] = field(default=(), metadata=NO_KEY)
    # The keys as written in the file, without defaults.
    written: Mapping[str, Any] = field(default_factory=dict, compare=False, metadata=NO_KEY)

    @property
    def old_analyses(self) -> Mapping[str, CommandSettings]:
        """The analyses that are still written as `[analyses.NAME]`."""
        return {name: self.analyses[name] for name in self.written.get("analyses", ())}

    @property
    def environment(self) -> EnvironmentSettings:
        """What `[environment]` says."""
        # Made when it is asked for: a commit needs neither section, and each class takes 0.5 ms to make.
        from patchgate.policy.run_settings import environment_from

        return environment_from(self.written.get("environment", {}))

    @property
    def run(self) -> RunSettings:
        """What `[run]` says."""
        from patchgate.policy.run_settings import run_from

        return run_from(self.written.get("run", {}))
