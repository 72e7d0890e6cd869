"""What a config says: every key with its type, its default and what is said of it in the schema.

The one place where a section is declared, as a plain dataclass: what its annotations name is known to
`config_tables` alone, which makes the models of pydantic of them that check a document. So a commit under a
known policy, which a cache keeps as it was written (`loader`), loads no pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

if TYPE_CHECKING:
    from patchgate.policy import config_types as types

MessageLevel = Literal["error", "warning", "note", "off"]
ReserveLevel = Literal["error", "warning", "off"]
HookMode = Literal["enforce", "observe"]
CommandKind = Literal["lint", "test"]
CommandScope = Literal["files", "tree"]
SideEffects = Literal["none"]
AnalysisFormat = Literal["sarif", "metrics"]
Strictness = Literal["strict", "relaxed"]
Preexisting = Literal["report", "refuse"]
NO_KEY = {"is_key": False}
"""Marks a field that no config sets."""


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """The limits of a profile; the defaults are those of the commits of people."""

    max_files: types.MaxFiles = 50
    max_added_lines: types.MaxAddedLines = 2000
    deny_classes: types.DenyClasses = ("artifact",)
    deny_new_classes: types.DenyNewClasses = ()
    allow_modes: types.AllowModes = True
    allow_symlinks: types.AllowSymlinks = "inside"
    allow_gitlinks: types.AllowGitlinks = "bump"


@dataclass(frozen=True, slots=True)
class CommitSettings(ProfileSettings):
    """Limits on the commits of people."""


@dataclass(frozen=True, slots=True)
class AgentSettings(ProfileSettings):
    """Limits on patches, edits and the commits of agents."""

    max_files: types.MaxFiles = 5
    max_added_lines: types.MaxAddedLines = 400
    deny_classes: types.DenyClasses = ("lock", "binary", "artifact")
    deny_new_classes: types.DenyNewClasses = ("media", "output")
    allow_modes: types.AllowModes = False
    allow_symlinks: types.AllowSymlinks = False
    allow_gitlinks: types.AllowGitlinks = False


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which paths may be touched, and what may be put there."""

    allow_roots: Annotated[
        types.Prefixes | None,
        "The only files and folders that may be touched; without this key, the whole repository.",
    ] = None
    deny_prefixes: Annotated[types.Prefixes, "Files and folders that may not be touched."] = ()
    deny: Annotated[types.Patterns, "Gitignore patterns of paths that may not be touched."] = ()
    allow_delete: Annotated[types.Patterns, "Patterns of denied paths that may be deleted all the same."] = ()
    deny_suffixes: Annotated[
        types.Suffixes, "Ends of file names, in any case, that may be neither added nor changed."
    ] = ()
    deny_classes: types.DenyClasses = ()
    max_file_bytes: types.MaxFileBytes = 1 << 20
    generated: Annotated[types.Patterns, "Patterns of paths that count against no limit on a change."] = ()
    commit: CommitSettings = CommitSettings()
    agent: AgentSettings = AgentSettings()


@dataclass(frozen=True, slots=True)
class ContentSettings:
    """What added lines may not hold."""

    secrets: Annotated[bool, "Whether added lines are searched for keys and passwords."] = True
    conflict_markers: Annotated[bool, "Whether left-over conflict markers are refused."] = True
    deny: Annotated[
        types.Expressions,
        "Regular expressions (Python, for bytes) that no added line may match. Each may use 10 s "
        "of processor time, in pre-receive 2 s; then the verdict is undecided.",
    ] = ()


@dataclass(frozen=True, slots=True)
class OverrideSettings:
    """Limits of its own for some paths; what is not set is that of the profile."""

    paths: Annotated[
        types.OverridePaths, "Patterns of its paths; a path belongs to the first override that matches it."
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
class MessageSettings:
    """What a commit's message should be like."""

    level: Annotated[MessageLevel, "How the message gate speaks; `off` ends it."] = "warning"


@dataclass(frozen=True, slots=True)
class HooksSettings:
    """What the hooks on a developer's machine do with a refusal."""

    mode: Annotated[HookMode, "`observe`: tell and record a refusal, and let it through."] = "enforce"
    draft_refs: Annotated[
        types.Refs, "Branches (full names, `*` allowed) where a refusal is only told; the push judges."
    ] = ()
    budget_ms: Annotated[
        types.Milliseconds | None,
        "How many milliseconds a hook may take. One that took longer is recorded, and `doctor` "
        "and `log` report it; it stops nothing.",
    ] = None


@dataclass(frozen=True, slots=True)
class PushSettings:
    """What a push may do to the refs of a remote."""

    protected_refs: Annotated[
        types.Refs | None,
        "Refs (full names, `*` allowed) that may be neither deleted nor forced; without this "
        "key, the remote's default branch.",
    ] = None


# In a document `timeout` may also be a text; here it is in seconds.
@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command that is run in a scratch tree which has the patch; it must end with exit code 0."""

    kind: Annotated[CommandKind, "Lint commands run first; tests only after all of them passed."]
    command: Annotated[
        types.FileCommand,
        "The program and its arguments, without a shell; an argument that is `{files}` stands "
        "for the added and changed files.",
    ]
    scope: Annotated[CommandScope, "What the scratch tree holds: all of it, or the touched files."] = "tree"
    timeout: float = 600
    env: types.Variables = field(default_factory=dict, hash=False)
    required_tools: types.Tools = ()
    side_effects: Annotated[
        SideEffects | None,
        '`"none"`: it changes no tracked file; one that does so all the same refuses the patch, '
        "whatever its kind.",
    ] = None


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """How `apply` deals with one patch that comes again and again."""

    max_attempts: Annotated[
        types.UpTo100, "How often a patch may be refused before a person has to let it be tried again."
    ] = 5
    require_anchor: Annotated[
        bool, "Whether structured edits must say what they replace (`old_text` or `old_sha256`)."
    ] = False
    preexisting: Annotated[
        Preexisting,
        "What becomes of a patch where a command fails in the same way without it: `refuse` it, "
        "or `report` the failure as a warning.",
    ] = "refuse"


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """A named group of files whose contract, tests and implementation must not drift apart."""

    contract: Annotated[types.ContractPath, "The path of its contract, an `interface.json`."]
    tests: Annotated[types.Globs, "Patterns of the tests that hold it to its contract, from the root."]
    implementation: Annotated[types.Globs, "Patterns of its implementation, from the root."]
    parent: Annotated[
        types.ComponentId | None, "The component, or the name of the group, that it belongs to."
    ] = None
    test_command: Annotated[
        types.TestCommand,
        "The program and its arguments that run its tests, without a shell; an argument that "
        "is `{tests}` stands for the files of its tests.",
    ] = ("python", "-m", "pytest", "-q", "{tests}")


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """How long a verified baseline is fresh, and where the modules of the implementations begin."""

    staleness_window_days: Annotated[
        types.WindowDays, "For how many days a verification counts, the last one included."
    ] = 90
    require_fresh: Annotated[bool, "Whether a push is refused while a baseline is not fresh."] = False
    source_roots: Annotated[
        types.Roots, "The folders in which modules begin; they are on PYTHONPATH of the tests."
    ] = ("src", ".")


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """A command that tells findings or metrics of a whole tree, so that two trees can be compared."""

    command: Annotated[
        types.AnalysisCommand,
        "The program and its arguments, without a shell; it runs in a scratch tree, and writes "
        "to its standard output.",
    ]
    format: Annotated[
        AnalysisFormat,
        'What it writes: SARIF 2.1.0, or `{"metrics": [{"path", "symbol", "name", "value"}]}`.',
    ] = "sarif"
    timeout: float = 600
    env: types.Variables = field(default_factory=dict, hash=False)
    required_tools: types.Tools = ()


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """A limit on what the analyses tell."""

    name: Annotated[types.AnalysisName, "Its name, as it is told."]
    metric: Annotated[
        types.MetricName,
        "What it limits: `findings:new`, `findings`, or a metric of every symbol, by its name.",
    ]
    max: Annotated[types.MostOfMetric, "The most that is allowed, inclusive."]


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """How what got worse counts."""

    on_push: Annotated[bool, "Whether pre-push verifies each branch that is pushed."] = False
    strictness: Annotated[
        Strictness, "`relaxed`: regressions and thresholds are told, and refuse nothing."
    ] = "strict"
    preexisting: Annotated[
        Preexisting,
        "`refuse`: without an intent every threshold that fails counts, also one that failed "
        "before and is no worse. `report`: such a one is reported, and refuses nothing.",
    ] = "report"
    baselines: Annotated[
        types.SuppressionFiles,
        "Files that hold findings which a tool leaves out; their growth is suspicious, as is "
        "that of suppressions.",
    ] = ()


@dataclass(frozen=True, slots=True)
class IntentsSettings:
    """What the intents of other worktrees mean for the commits of this one."""

    reserve: Annotated[
        ReserveLevel,
        "How a file is reported that is changed without an intent while an active intent of "
        "another worktree declares it.",
    ] = "warning"


@dataclass(frozen=True, slots=True)
class PlaceholdersSettings:
    """How loud the placeholder gate speaks of added lines; `[rules]` goes before it."""

    level: Annotated[
        MessageLevel | None,
        "The level of every placeholder rule; without this key, `warning` for agents and `off` for people.",
    ] = None


@dataclass(frozen=True, slots=True)
class MarkerSettings:
    """A placeholder of the repository's own, found besides the built-in ones."""

    name: Annotated[types.MarkerName, "Its name, unique: small letters, digits and hyphens."]
    pattern: Annotated[
        types.MarkerExpression,
        "A regular expression (Python, for bytes) that a line matches which holds it; with few "
        "repeats, so that none takes long.",
    ]
    example: Annotated[types.MarkerExample, "A line that it finds."]


SUFFIXES = (
    *(".md", ".txt", ".rst", ".adoc", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"),
    *(".conf", ".xml", ".html", ".htm", ".css", ".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".sql", ".sh"),
)


# Every number is inclusive and counts bytes as stored; the suffixes are compared without case.
@dataclass(frozen=True, slots=True)
class ClaimsSettings:
    """How a claim that a placeholder remains is held against the files.

    A number beyond its bounds is brought within them, a value of the wrong type is replaced by the default,
    and an unknown key changes nothing. Every command that reads the policy warns of it: nothing here stops an
    adjudication.
    """

    contradiction_guard_enabled: Annotated[
        bool, "Whether a claim is held against the files at all; if not, every claim stands."
    ] = True
    contradiction_guard_strict_coverage: Annotated[
        bool,
        "Whether every file that matters has to be read whole before a claim is contradicted; "
        "`false` is for an emergency: any file that was read is enough.",
    ] = True
    contradiction_scan_max_files: Annotated[int, "How many files are read at most: 1 to 1000."] = 80
    contradiction_scan_max_total_bytes: Annotated[
        int, "How many bytes are read at most, of all files together: 1024 to 50000000."
    ] = 2_500_000
    contradiction_scan_max_file_bytes: Annotated[
        int,
        "How large a file may be that is read besides deliverables and changed files: 1 to "
        "10000000, and no more than the total.",
    ] = 300_000
    contradiction_scan_min_files_for_sufficiency: Annotated[
        int,
        "How many files have to be read before a claim is contradicted, unless there is one "
        "deliverable alone: 1 to 100.",
    ] = 2
    contradiction_scan_allowed_suffixes: Annotated[
        tuple[str, ...],
        'Ends of the names of files that are read, in any case; `""` stands for names without a '
        "suffix. It replaces the default list.",
    ] = SUFFIXES
    contradiction_scan_timeout_seconds: Annotated[
        float, "After how many seconds reading ends, and the claim stands: 1 to 30."
    ] = 8
    markers: Annotated[
        tuple[MarkerSettings, ...],
        "Placeholders of the repository's own, at most 50; one that cannot be used "
        "finds nothing, and until it is mended no claim is contradicted.",
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        "Patterns of files that are not read besides those of the claim: what they hold neither "
        "upholds nor contradicts one.",
    ] = ()
    # Whether a marker that the policy wanted is not among `markers`.
    has_unusable_markers: bool = field(default=False, metadata=NO_KEY)


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """A value of the config that cannot be used as it is, and what is used instead: a warning, no error.

    `key` is that of the value; `message` says the rest, safe for a terminal: "5000 is more than 1000, …".
    """

    key: tuple[str | int, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Config:
    """What a repository's config file says; every field has the value that holds without any file."""

    required_version: Annotated[
        types.Specifier | None, 'The versions of patchgate that may judge this repository, like ">=0.1,<2".'
    ] = None
    policy: PolicySettings = PolicySettings()
    content: ContentSettings = ContentSettings()
    rules: Annotated[
        Mapping[types.RuleId, types.RuleLevel],
        "The level of single rules, by id; invariants cannot be changed.",
    ] = field(default_factory=dict)
    overrides: Annotated[tuple[OverrideSettings, ...], "Limits of their own for some paths."] = ()
    message: MessageSettings = MessageSettings()
    hooks: HooksSettings = HooksSettings()
    push: PushSettings = PushSettings()
    commands: Annotated[
        Mapping[types.CommandName, CommandSettings], "The commands by which `apply` tries a patch, by name."
    ] = field(default_factory=dict)
    apply: ApplySettings = ApplySettings()
    components: Annotated[Mapping[types.ComponentId, ComponentSettings], "The components, by id."] = field(
        default_factory=dict
    )
    baselines: BaselineSettings = BaselineSettings()
    analyses: Annotated[Mapping[types.AnalysisName, AnalysisSettings], "The analyses, by name."] = field(
        default_factory=dict
    )
    thresholds: Annotated[tuple[ThresholdSettings, ...], "Limits on what the analyses tell."] = ()
    verify: VerifySettings = VerifySettings()
    intents: IntentsSettings = IntentsSettings()
    placeholders: PlaceholdersSettings = PlaceholdersSettings()
    claims: ClaimsSettings = ClaimsSettings()
    warnings: tuple[ConfigWarning, ...] = field(default=(), metadata=NO_KEY)
    # The keys as they stand in the file, without defaults.
    written: Mapping[str, Any] = field(default_factory=dict, compare=False, metadata=NO_KEY)
