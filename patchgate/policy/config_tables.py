"""The sections of the config, as the models that read them: which keys there are, and what each may hold.

To add a section: one model here, one dataclass in `settings`, where the defaults stand. What a single text
must be is checked in `texts` (of a command in `command`); how a mistake is told follows from the annotations
(`mistakes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from patchgate.policy.analysis_tables import AnalysisTable, ThresholdTable, VerifyTable
from patchgate.policy.claim_tables import Claims, ClaimsTable, PlaceholdersTable
from patchgate.policy.command_texts import (
    NAME,
    check_analysis,
    check_argument,
    check_command,
    check_name,
    check_test_argument,
    check_test_command,
    check_words,
)
from patchgate.policy.expressions import check_expression
from patchgate.policy.settings import (
    AGENT,
    COMMIT,
    TEST_COMMAND,
    ApplySettings,
    BaselineSettings,
    CommandKind,
    CommandScope,
    CommandSettings,
    ContentSettings,
    FileClass,
    HookMode,
    HooksSettings,
    IntentsSettings,
    MessageLevel,
    MessageSettings,
    PolicySettings,
    Preexisting,
    ReserveLevel,
    SideEffects,
)
from patchgate.policy.table import ENV_TEXT, TIMEOUT_TEXT, TOOLS_TEXT, Section, Timeout, Tools, Variables
from patchgate.policy.texts import (
    COMPONENT_ID,
    TextError,
    check_contract,
    check_id,
    check_pattern,
    check_prefix,
    check_ref,
    check_root,
    check_rule,
    check_specifier,
    check_suffix,
    refuse_circle,
)

MAX_INTEGER = 2**63 - 1

Pattern = Annotated[str, AfterValidator(check_pattern)]
Prefix = Annotated[str, AfterValidator(check_prefix)]
Suffix = Annotated[str, AfterValidator(check_suffix)]
Expression = Annotated[str, AfterValidator(check_expression)]
# TOML gives lists where a frozen model wants tuples: so the container is lax, its elements stay strict.
Ref = Annotated[str, AfterValidator(check_ref)]
Refs: TypeAlias = Annotated[tuple[Ref, ...], Field(strict=False)]
Patterns: TypeAlias = Annotated[tuple[Pattern, ...], Field(strict=False)]
Prefixes: TypeAlias = Annotated[tuple[Prefix, ...], Field(strict=False)]
RuleLevel: TypeAlias = Literal["error", "warning", "note", "off"]
Limit: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INTEGER)] | Literal["off"]


MaxFiles = Annotated[Limit, Field(description='How many files a change may touch, or "off".')]
MaxAddedLines = Annotated[Limit, Field(description='How many lines a change may add, or "off".')]
MaxFileBytes = Annotated[
    Limit, Field(description='How large an added or changed file may be, in bytes, or "off".')
]
DenyClasses = Annotated[
    tuple[FileClass, ...],
    Field(strict=False, description="Classes of files that may be neither added nor changed."),
]
DenyNewClasses = Annotated[
    tuple[FileClass, ...],
    Field(strict=False, description="Classes of files that may not be added; one that is there may change."),
]
AllowModes = Annotated[bool, Field(description="Whether a change may set or clear an executable bit.")]
AllowSymlinks = Annotated[
    bool | Literal["inside"],
    Field(
        description='Whether symlinks may be added or changed; "inside": if none leads out of the repository.'
    ),
]
AllowGitlinks = Annotated[
    bool | Literal["bump"],
    Field(description='Whether gitlinks may be added or changed; "bump": only moved to another commit.'),
]


class CommitTable(Section):
    """Limits on the commits of people."""

    max_files: MaxFiles = COMMIT.max_files
    max_added_lines: MaxAddedLines = COMMIT.max_added_lines
    deny_classes: DenyClasses = COMMIT.deny_classes
    deny_new_classes: DenyNewClasses = COMMIT.deny_new_classes
    allow_modes: AllowModes = COMMIT.allow_modes
    allow_symlinks: AllowSymlinks = COMMIT.allow_symlinks
    allow_gitlinks: AllowGitlinks = COMMIT.allow_gitlinks


class AgentTable(Section):
    """Limits on patches, edits and the commits of agents."""

    max_files: MaxFiles = AGENT.max_files
    max_added_lines: MaxAddedLines = AGENT.max_added_lines
    deny_classes: DenyClasses = AGENT.deny_classes
    deny_new_classes: DenyNewClasses = AGENT.deny_new_classes
    allow_modes: AllowModes = AGENT.allow_modes
    allow_symlinks: AllowSymlinks = AGENT.allow_symlinks
    allow_gitlinks: AllowGitlinks = AGENT.allow_gitlinks


class PolicyTable(Section):
    """Which paths may be touched, and what may be put there."""

    allow_roots: Prefixes | None = Field(
        None,
        description="The only files and folders that may be touched; without this key, the whole repository.",
    )
    deny_prefixes: Prefixes = Field((), description="Files and folders that may not be touched.")
    deny: Patterns = Field((), description="Gitignore patterns of paths that may not be touched.")
    allow_delete: Patterns = Field(
        (), description="Patterns of denied paths that may be deleted all the same."
    )
    deny_suffixes: Annotated[tuple[Suffix, ...], Field(strict=False)] = Field(
        (), description="Ends of file names, in any case, that may be neither added nor changed."
    )
    deny_classes: DenyClasses = ()
    max_file_bytes: MaxFileBytes = PolicySettings().max_file_bytes
    generated: Patterns = Field((), description="Patterns of paths that count against no limit on a change.")
    commit: CommitTable = CommitTable()
    agent: AgentTable = AgentTable()


class ContentTable(Section):
    """What added lines may not hold."""

    secrets: bool = Field(
        ContentSettings().secrets, description="Whether added lines are searched for keys and passwords."
    )
    conflict_markers: bool = Field(
        ContentSettings().conflict_markers, description="Whether left-over conflict markers are refused."
    )
    deny: Annotated[tuple[Expression, ...], Field(strict=False)] = Field(
        (),
        description="Regular expressions (Python, for bytes) that no added line may match. Each may use 10 s "
        "of processor time, in pre-receive 2 s; then the verdict is undecided.",
    )


class OverrideTable(Section):
    """Limits of its own for some paths; what is not set is that of the profile."""

    paths: Annotated[Patterns, Field(min_length=1)] = Field(
        description="Patterns of its paths; a path belongs to the first override that matches it."
    )
    max_files: MaxFiles | None = None
    max_added_lines: MaxAddedLines | None = None
    max_file_bytes: MaxFileBytes | None = None
    deny_classes: DenyClasses | None = None
    deny_new_classes: DenyNewClasses | None = None
    allow_modes: AllowModes | None = None
    allow_symlinks: AllowSymlinks | None = None
    allow_gitlinks: AllowGitlinks | None = None


class MessageTable(Section):
    """What a commit's message should be like."""

    level: MessageLevel = Field(
        MessageSettings().level, description="How the message gate speaks; `off` ends it."
    )


class HooksTable(Section):
    """What the hooks on a developer's machine do with a refusal."""

    mode: HookMode = Field(
        HooksSettings().mode, description="`observe`: tell and record a refusal, and let it through."
    )
    draft_refs: Refs = Field(
        (), description="Branches (full names, `*` allowed) where a refusal is only told; the push judges."
    )
    budget_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = Field(
        HooksSettings().budget_ms,
        description="How many milliseconds a hook may take. One that took longer is recorded, and `doctor` "
        "and `log` report it; it stops nothing.",
    )


class PushTable(Section):
    """What a push may do to the refs of a remote."""

    protected_refs: Refs | None = Field(
        None,
        description="Refs (full names, `*` allowed) that may be neither deleted nor forced; without this "
        "key, the remote's default branch.",
    )


class CommandTable(Section):
    """A command that is run in a scratch tree which has the patch; it must end with exit code 0."""

    kind: CommandKind = Field(description="Lint commands run first; tests only after all of them passed.")
    command: Annotated[
        tuple[Annotated[str, AfterValidator(check_argument)], ...],
        Field(strict=False, json_schema_extra={"minItems": 1}),
        AfterValidator(check_command),
        BeforeValidator(check_words),
    ] = Field(
        description="The program and its arguments, without a shell; an argument that is `{files}` stands "
        "for the added and changed files."
    )
    scope: CommandScope = Field(
        CommandSettings().scope, description="What the scratch tree holds: all of it, or the touched files."
    )
    timeout: Timeout = Field(CommandSettings().timeout, description=TIMEOUT_TEXT)
    env: Variables = Field({}, description=ENV_TEXT)
    required_tools: Tools = Field((), description=TOOLS_TEXT)
    side_effects: SideEffects | None = Field(
        None,
        description='`"none"`: it changes no tracked file; one that does so all the same refuses the patch, '
        "whatever its kind.",
    )


class ApplyTable(Section):
    """How `apply` deals with one patch that comes again and again."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        ApplySettings().max_attempts,
        description="How often a patch may be refused before a person has to let it be tried again.",
    )
    require_anchor: bool = Field(
        ApplySettings().require_anchor,
        description="Whether structured edits must say what they replace (`old_text` or `old_sha256`).",
    )
    preexisting: Preexisting = Field(
        ApplySettings().preexisting,
        description="What becomes of a patch where a command fails in the same way without it: `refuse` it, "
        "or `report` the failure as a warning.",
    )


Globs: TypeAlias = Annotated[tuple[Pattern, ...], Field(strict=False, min_length=1)]


class ComponentTable(Section):
    """A named group of files whose contract, tests and implementation must not drift apart."""

    contract: Annotated[str, AfterValidator(check_contract)] = Field(
        description="The path of its contract, an `interface.json`."
    )
    tests: Globs = Field(description="Patterns of the tests that hold it to its contract, from the root.")
    implementation: Globs = Field(description="Patterns of its implementation, from the root.")
    parent: Annotated[str, AfterValidator(check_id)] | None = Field(
        None, description="The component, or the name of the group, that it belongs to."
    )
    test_command: Annotated[
        tuple[Annotated[str, AfterValidator(check_test_argument)], ...],
        Field(strict=False, json_schema_extra={"minItems": 1}),
        AfterValidator(check_test_command),
        BeforeValidator(check_words),
    ] = Field(
        TEST_COMMAND,
        description="The program and its arguments that run its tests, without a shell; an argument that "
        "is `{tests}` stands for the files of its tests.",
    )


class BaselinesTable(Section):
    """How long a verified baseline is fresh, and where the modules of the implementations begin."""

    staleness_window_days: Annotated[int, Field(ge=1, le=36500)] = Field(
        BaselineSettings().staleness_window_days,
        description="For how many days a verification counts, the last one included.",
    )
    require_fresh: bool = Field(
        BaselineSettings().require_fresh,
        description="Whether a push is refused while a baseline is not fresh.",
    )
    source_roots: Annotated[
        tuple[Annotated[str, AfterValidator(check_root)], ...], Field(strict=False, min_length=1)
    ] = Field(
        BaselineSettings().source_roots,
        description="The folders in which modules begin; they are on PYTHONPATH of the tests.",
    )


class IntentsTable(Section):
    """What the intents of other worktrees mean for the commits of this one."""

    reserve: ReserveLevel = Field(
        IntentsSettings().reserve,
        description="How a file is reported that is changed without an intent while an active intent of "
        "another worktree declares it.",
    )


MAX_THRESHOLDS = 100


def check_components(tables: dict[str, ComponentTable]) -> dict[str, ComponentTable]:
    """Give the components back.

    Raises:
        ValueError: two baselines would share a file on some system, or somebody is his own ancestor.
    """
    folded: dict[str, str] = {}
    for name in tables:
        other = folded.setdefault(name.lower(), name)
        if other != name:
            raise TextError(f"`{other}` and `{name}` differ in case alone", "give one of them another id")
    parents = {name: table.parent for name, table in tables.items()}
    refuse_circle(parents)
    return tables


def check_thresholds(tables: Sequence[ThresholdTable]) -> Sequence[ThresholdTable]:
    """Give the thresholds back.

    Raises:
        ValueError: there are too many, or two have one name.
    """
    if len(tables) > MAX_THRESHOLDS:
        raise TextError(f"there are {len(tables)} thresholds, and at most {MAX_THRESHOLDS} are read")
    names = [table.name for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"two thresholds are named `{twice}`", "give each a name of its own")
    return tables


class ConfigDocument(Section):
    """What a repository's config file says; every field has the value that holds without any file."""

    required_version: Annotated[str, AfterValidator(check_specifier)] | None = Field(
        None, description='The versions of patchgate that may judge this repository, like ">=0.1,<2".'
    )
    policy: PolicyTable = PolicyTable()
    content: ContentTable = ContentTable()
    rules: dict[Annotated[str, AfterValidator(check_rule)], RuleLevel] = Field(
        {}, description="The level of single rules, by id; invariants cannot be changed."
    )
    overrides: Annotated[tuple[OverrideTable, ...], Field(strict=False)] = Field(
        (), description="Limits of their own for some paths."
    )
    message: MessageTable = MessageTable()
    hooks: HooksTable = HooksTable()
    push: PushTable = PushTable()
    commands: dict[Annotated[str, AfterValidator(check_name)], CommandTable] = Field(
        {},
        description="The commands by which `apply` tries a patch, by name.",
        json_schema_extra={"propertyNames": {"pattern": f"^{NAME}$"}},
    )
    apply: ApplyTable = ApplyTable()
    components: Annotated[
        dict[Annotated[str, AfterValidator(check_id)], ComponentTable], AfterValidator(check_components)
    ] = Field(
        {},
        description="The components, by id.",
        json_schema_extra={"propertyNames": {"pattern": f"^{COMPONENT_ID}$"}},
    )
    baselines: BaselinesTable = BaselinesTable()
    analyses: dict[Annotated[str, AfterValidator(check_analysis)], AnalysisTable] = Field(
        {},
        description="The analyses, by name.",
        json_schema_extra={"propertyNames": {"pattern": f"^{NAME}$"}},
    )
    thresholds: Annotated[
        tuple[ThresholdTable, ...], Field(strict=False), AfterValidator(check_thresholds)
    ] = Field((), description="Limits on what the analyses tell.")
    verify: VerifyTable = VerifyTable()
    intents: IntentsTable = IntentsTable()
    placeholders: PlaceholdersTable = PlaceholdersTable()
    claims: Claims = ClaimsTable()
