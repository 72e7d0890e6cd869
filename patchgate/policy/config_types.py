"""The value types of config keys, as pydantic annotations; `settings` declares the keys.

`validators` and `regular_expressions` check single texts. `config` derives the error messages from the
annotations.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from patchgate.policy.command_files import FILES
from patchgate.policy.command_validators import (
    check_command_root,
    check_needed,
    check_occasions,
    check_provided,
)
from patchgate.policy.regular_expressions import MAX_EXPRESSION, check_expression
from patchgate.policy.run_validators import (
    MAX_COST,
    AuthorRole,
    PhaseName,
    check_cost,
    check_path_folder,
    check_phase,
    check_program,
    check_questions_file,
    check_role,
    check_role_timeout,
    check_share,
    check_shared_variable,
)
from patchgate.policy.validators import (
    MARKER_NAME,
    MAX_EXAMPLE,
    MAX_NAME,
    MAX_SECONDS,
    TESTS,
    TIMEOUT,
    argument_with,
    check_analysis,
    check_analysis_argument,
    check_analysis_command,
    check_contract,
    check_id,
    check_metric,
    check_most,
    check_name,
    check_owned,
    check_pattern,
    check_prefix,
    check_principal,
    check_ref,
    check_repository_id,
    check_root,
    check_rule,
    check_specifier,
    check_suffix,
    check_suppression_file,
    check_timeout,
    check_tool,
    check_trailer,
    check_variable,
    check_words,
    command_with,
    without_nul,
)

MAX_INTEGER = 2**63 - 1


class ConfigSection(BaseModel):
    """A table of the config: strict, frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# TOML has lists where a frozen model needs tuples: the container is lax, its elements stay strict.
_LIST = Field(strict=False)
_SOME = Field(strict=False, min_length=1)
_FILLED = Field(strict=False, json_schema_extra={"minItems": 1})

Pattern: TypeAlias = Annotated[str, AfterValidator(check_pattern)]
Patterns: TypeAlias = Annotated[tuple[Pattern, ...], _LIST]
Globs: TypeAlias = Annotated[tuple[Pattern, ...], _SOME]
OwnedPaths: TypeAlias = Annotated[
    Annotated[tuple[Annotated[str, AfterValidator(check_owned)], ...], _LIST],
    Field(
        min_length=1,
        description='Patterns of the paths; `"@policy"` means the control files. '
        "Both sides of a rename count.",
    ),
]
Principals: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_principal)], ...],
    _LIST,
    Field(
        description="Principals of `.patchgate/allowed_signers`, whose approvals count; "
        "without this key, all of them."
    ),
]
Trailers: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_trailer)], ...],
    _LIST,
    Field(
        max_length=100,
        description='Further trailers that mark a commit as an agent\'s, each as `"Key: value"`, without '
        "patterns; the key in any case. The policy that judges the commit decides.",
    ),
]
RepositoryId: TypeAlias = Annotated[str, AfterValidator(check_repository_id)]
OverridePaths: TypeAlias = Annotated[Patterns, Field(min_length=1)]
Prefixes: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_prefix)], ...], _LIST]
Suffixes: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_suffix)], ...], _LIST]
Expressions: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_expression)], ...], _LIST]
Refs: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_ref)], ...], _LIST]
Roots: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_root)], ...], _SOME]
SuppressionFiles: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_suppression_file)], ...],
    _LIST,
    Field(
        description="Suppression files: lists of findings that a tool leaves out. If they or the "
        "suppressions in the code grow, that is reported as abuse."
    ),
]

Specifier: TypeAlias = Annotated[str, AfterValidator(check_specifier)]
RuleId: TypeAlias = Annotated[str, AfterValidator(check_rule)]
RuleLevel: TypeAlias = Literal["error", "warning", "note", "off"]
CommandName: TypeAlias = Annotated[str, AfterValidator(check_name)]
ComponentId: TypeAlias = Annotated[str, AfterValidator(check_id)]
ContractPath: TypeAlias = Annotated[str, AfterValidator(check_contract)]
AnalysisName: TypeAlias = Annotated[str, AfterValidator(check_analysis)]
MetricName: TypeAlias = Annotated[
    str,
    AfterValidator(check_metric),
    Field(
        description="What it limits: `findings:new`, `findings`, or a metric of every symbol, by its name."
    ),
]
MarkerName: TypeAlias = Annotated[
    str, Field(json_schema_extra={"pattern": f"^{MARKER_NAME}$", "maxLength": MAX_NAME})
]
MarkerExpression: TypeAlias = Annotated[
    str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_EXPRESSION})
]
MarkerExample: TypeAlias = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_EXAMPLE})]

Limit: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INTEGER)] | Literal["off"]
Milliseconds: TypeAlias = Annotated[int, Field(ge=1, le=3_600_000)]
UpTo100: TypeAlias = Annotated[int, Field(ge=1, le=100)]
WindowDays: TypeAlias = Annotated[int, Field(ge=1, le=36500)]
MostOfMetric: TypeAlias = Annotated[
    float, AfterValidator(check_most), Field(json_schema_extra={"minimum": 0})
]

MaxFiles: TypeAlias = Annotated[Limit, Field(description='How many files a change may touch, or "off".')]
MaxAddedLines: TypeAlias = Annotated[Limit, Field(description='How many lines a change may add, or "off".')]
MaxFileBytes: TypeAlias = Annotated[
    Limit, Field(description='How large an added or changed file may be, in bytes, or "off".')
]
FileClass: TypeAlias = Literal["lock", "binary", "media", "artifact", "output"]
DenyClasses: TypeAlias = Annotated[
    tuple[FileClass, ...],
    Field(strict=False, description="Classes of files that may not be added or changed."),
]
DenyNewClasses: TypeAlias = Annotated[
    tuple[FileClass, ...],
    Field(strict=False, description="Classes of files that may not be added; existing files may change."),
]
Inputs: TypeAlias = Annotated[
    tuple[Literal["diff", "envelope", "search-replace", "edits", "files", "auto"], ...],
    Field(
        strict=False,
        description="What `--input` may name: `envelope` (`*** Begin Patch`), `search-replace`, `edits` "
        "(`old_string` and `new_string`), `files` (whole new files), `auto` (each of them, as it is found). "
        "A unified diff, `diff`, is always read.",
    ),
]
AllowModes: TypeAlias = Annotated[
    bool, Field(description="Whether a change may set or clear an executable bit.")
]
AllowSymlinks: TypeAlias = Annotated[
    bool | Literal["inside"],
    Field(description='Whether symlinks may be added or changed; "inside": only within the repository.'),
]
AllowGitlinks: TypeAlias = Annotated[
    bool | Literal["bump"],
    Field(description='Whether gitlinks may be added or changed; "bump": only to another commit.'),
]

FileCommand: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(partial(argument_with, placeholder=FILES))], ...],
    _FILLED,
    AfterValidator(partial(command_with, placeholder=FILES, like='["ruff", "check", "--no-fix", "{files}"]')),
    BeforeValidator(check_words),
    Field(
        description="The program and its arguments, without a shell; the argument `{files}` is replaced "
        "by the added and changed files."
    ),
]
FixCommand: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(partial(argument_with, placeholder=FILES))], ...],
    _FILLED,
    AfterValidator(
        partial(command_with, placeholder=FILES, like='["ruff", "check", "--fix-only", "{files}"]')
    ),
    BeforeValidator(check_words),
    Field(description="A command that fixes what it can; `git patchgate fix` runs it."),
]
VersionCommand: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(without_nul)], ...],
    Field(
        strict=False, description="What prints the version; without this key, the program with `--version`."
    ),
]
Occasions: TypeAlias = Annotated[
    tuple[Literal["commit", "push", "apply", "verify"], ...],
    Field(
        strict=False,
        json_schema_extra={"minItems": 1},
        description="When it runs: at a `commit`, at a `push`, when `apply` tries a patch, when `verify` "
        "compares two trees.",
    ),
    AfterValidator(check_occasions),
]
CommandRoot: TypeAlias = Annotated[
    str,
    AfterValidator(check_command_root),
    Field(description="The folder in which it runs, and to which `{files}` are relative; empty: the root."),
]
Needs: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_needed)], ...],
    Field(
        strict=False,
        description="Files and folders, from the root, that it reads besides the changed files.",
    ),
]
Provided: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_provided)], ...],
    Field(
        strict=False,
        description="Folders of the working tree, from the root, that are linked into the scratch tree "
        "for tools that are in them. Nothing may write to them.",
    ),
]
Jobs: TypeAlias = Annotated[
    int,
    Field(ge=1, le=64, description="Into how many parts `{files}` is divided, which run at the same time."),
]
TestCommand: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(partial(argument_with, placeholder=TESTS))], ...],
    _FILLED,
    AfterValidator(partial(command_with, placeholder=TESTS, like='["python", "-m", "pytest", "{tests}"]')),
    BeforeValidator(check_words),
    Field(
        description="The program and its arguments that run its tests, without a shell; the argument "
        "`{tests}` is replaced by its test files."
    ),
]
AnalysisCommand: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_analysis_argument)], ...],
    _FILLED,
    AfterValidator(check_analysis_command),
    BeforeValidator(check_words),
    Field(
        description="The program and its arguments, without a shell; it runs in a scratch tree, and "
        "writes to its standard output."
    ),
]
_TIMEOUT_TEXT = {"type": "string", "pattern": f"^{TIMEOUT}$"}
Timeout: TypeAlias = Annotated[
    float | str,
    AfterValidator(check_timeout),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS}, _TIMEOUT_TEXT]}
    ),
    Field(description='In seconds, or like "90s", "5m", "1h"; at most a day.'),
]
"""A `timeout` as written in the config; in the settings it is a number of seconds."""
Variables: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(check_variable)], Annotated[str, AfterValidator(without_nul)]],
    Field(description="Environment variables to set for it, besides those of the caller."),
]
_Tool: TypeAlias = Annotated[str, AfterValidator(check_tool)]
Tools: TypeAlias = Annotated[
    tuple[_Tool, ...],
    Field(
        strict=False,
        description="Programs that must be on PATH; if one is missing, the command is not started.",
    ),
]

_VARIABLE_TEXT: TypeAlias = Annotated[str, AfterValidator(without_nul)]
SharedVariables: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(check_shared_variable)], _VARIABLE_TEXT],
    Field(description="Environment variables to set; those of a command or an analysis have priority."),
]
SharedTools: TypeAlias = Annotated[
    tuple[_Tool, ...],
    Field(strict=False, description="Programs that must be on PATH; if one is missing, nothing is started."),
]
PythonPath: TypeAlias = Annotated[
    str,
    AfterValidator(check_program),
    Field(
        min_length=1,
        description="The Python of the repository: a name that is looked up on PATH, or a path, whose "
        "folder then comes first on PATH. A relative path begins at the repository's root.",
    ),
]
PathFolders: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(check_path_folder)], ...],
    Field(
        strict=False,
        description="Folders after the others on PATH. A relative one begins at the repository's root, "
        "outside the scratch tree.",
    ),
]
Role: TypeAlias = Annotated[
    AuthorRole, Field(description="What an author does; its time limit depends on it. Only for authors.")
]
PhaseOfAuthor: TypeAlias = Annotated[
    PhaseName, Field(description="The phase whose work the author does; at most one author has it.")
]
SchedulingName: TypeAlias = Annotated[
    Literal["phased", "wavefront"],
    Field(
        description="`phased`: all components finish a phase before the next one begins. `wavefront`: "
        "each goes on as soon as its dependencies allow it."
    ),
]
MaxConcurrent: TypeAlias = Annotated[
    int, Field(ge=1, le=64, description="How many components are worked on at once.")
]
MaxRetries: TypeAlias = Annotated[
    int, Field(ge=0, le=20, description="How often a temporary fault is tried again.")
]
SystemicThreshold: TypeAlias = Annotated[
    int,
    Field(ge=2, le=100, description="On how many components of a phase the same fault pauses the run."),
]
ImpatienceName: TypeAlias = Annotated[
    Literal["patient", "normal", "impatient"],
    Field(description="`patient` doubles the time limits, `impatient` halves them."),
]
RoleTimeouts: TypeAlias = Annotated[
    dict[
        Annotated[str, AfterValidator(check_role)],
        Annotated[
            float | str,
            AfterValidator(check_role_timeout),
            WithJsonSchema(
                {"anyOf": [{"type": "number", "minimum": 30, "maximum": MAX_SECONDS}, _TIMEOUT_TEXT]}
            ),
        ],
    ],
    Field(
        description='The time limit of each role of an author, in seconds, or like "90s", "5m", "1h"; '
        "from 30 s to a day.",
        json_schema_extra={"propertyNames": {"enum": list(get_args(AuthorRole))}},
    ),
]
"""`role_timeouts` as written in the config; in the settings each is a number of seconds."""
_SHARE = WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
TotalCost: TypeAlias = Annotated[
    Annotated[
        float,
        AfterValidator(check_cost),
        WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_COST}),
    ]
    | None,
    Field(
        description="What a run may cost, in the unit of what its authors report: when it is reached, no "
        "author is called and the run pauses."
    ),
]
PhaseCaps: TypeAlias = Annotated[
    dict[
        Annotated[str, AfterValidator(check_phase)],
        Annotated[float, AfterValidator(check_share), _SHARE],
    ],
    Field(
        description="What each phase may cost at most, as a share of `total_cost`.",
        json_schema_extra={"propertyNames": {"enum": list(get_args(PhaseName))}},
    ),
]
ShapingBudget: TypeAlias = Annotated[
    Annotated[float, AfterValidator(check_share), _SHARE] | None,
    Field(description="The same as `phase_caps.shaping`, under the name of older configs."),
]
QuestionsFile: TypeAlias = Annotated[
    Annotated[str, AfterValidator(check_questions_file)] | None,
    Field(
        description="The file with the questions of a run (`git patchgate schema questions`); authors get "
        "the answers."
    ),
]
LeastConfidence: TypeAlias = Annotated[
    Annotated[float, AfterValidator(check_share), _SHARE],
    Field(description="A run waits where an answer has a lower confidence than this."),
]
