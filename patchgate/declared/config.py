"""The config: bytes of `patchgate.toml` or `pyproject.toml` in, one strict frozen `Config` out.

Decides which keys exist, what each may hold, its default, and how a mistake is told; all mistakes of a file
are told at once. Does not decide which policy judges a change, nor what a limit or a pattern means for a
path (`policy`). To add a section: one model here, one dataclass in
`settings`, where the defaults stand. What a single text must be
`texts` checks; how a mistake is told follows from the annotations (`mistakes`).

A config is hostile until it is read: the caps below hold before tomllib sees the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from patchgate.change.quoting import printable
from patchgate.declared.refs import check_ref
from patchgate.declared.settings import (
    AGENT,
    COMMIT,
    Config,
    ContentSettings,
    FileClass,
    HookMode,
    HooksSettings,
    MessageLevel,
    MessageSettings,
    PolicySettings,
    settings_from,
)
from patchgate.declared.texts import (
    check_expression,
    check_pattern,
    check_prefix,
    check_rule,
    check_specifier,
    check_suffix,
    version_satisfies,
)
from patchgate.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from patchgate.declared.toml_lines import Key

__all__ = [
    "Config",
    "check_pattern",
    "parse",
    "parse_pyproject",
    "version_satisfies",
    "written",
]

MAX_BYTES = 64 * 1024
MAX_PYPROJECT_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_KEY_PARTS = 32
MAX_KEYS = 4000
MAX_INTEGER = 2**63 - 1

# The sections.

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
AllowModes = Annotated[bool, Field(description="Whether a change may set or clear an executable bit.")]
AllowSymlinks = Annotated[
    bool | Literal["inside"],
    Field(description='Whether symlinks may be added or changed; "inside": if they stay in the repository.'),
]
AllowGitlinks = Annotated[
    bool | Literal["bump"],
    Field(description='Whether gitlinks may be added or changed; "bump": only moved to another commit.'),
]


class Section(BaseModel):
    """A table of the config: strict, frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CommitTable(Section):
    """Limits on the commits of people."""

    max_files: MaxFiles = COMMIT.max_files
    max_added_lines: MaxAddedLines = COMMIT.max_added_lines
    deny_classes: DenyClasses = COMMIT.deny_classes
    allow_modes: AllowModes = COMMIT.allow_modes
    allow_symlinks: AllowSymlinks = COMMIT.allow_symlinks
    allow_gitlinks: AllowGitlinks = COMMIT.allow_gitlinks


class AgentTable(Section):
    """Limits on patches, edits and the commits of agents."""

    max_files: MaxFiles = AGENT.max_files
    max_added_lines: MaxAddedLines = AGENT.max_added_lines
    deny_classes: DenyClasses = AGENT.deny_classes
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
        (), description="Regular expressions (Python, for bytes) that no added line may match."
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


class PushTable(Section):
    """What a push may do to the refs of a remote."""

    protected_refs: Refs | None = Field(
        None,
        description="Refs (full names, `*` allowed) that may be neither deleted nor forced; without this "
        "key, the remote's default branch.",
    )


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


# From bytes to a config.


def parse(raw: bytes, file: str) -> Config:
    """Read a `patchgate.toml`.

    Args:
        raw: its bytes, at most 64 KiB.
        file: its name, for the mistakes.

    Raises:
        ConfigError: with every mistake in it.
    """
    return _config(_read(raw, file, MAX_BYTES), raw, file, ())


def parse_pyproject(raw: bytes, file: str) -> Config | None:
    """Read `[tool.patchgate]` of a `pyproject.toml`, at most 1 MiB; None where there is no such table.

    Raises:
        ConfigError: with every mistake in it; their keys begin with `tool.patchgate`.
    """
    # Without the word, or an escape that could spell it, there is no table, and no need for tomllib (17 ms).
    if b"patchgate" not in raw and b"\\" not in raw:
        return None
    tool = _read(raw, file, MAX_PYPROJECT_BYTES).get("tool")
    if not isinstance(tool, dict) or "patchgate" not in tool:
        return None
    return _config(tool["patchgate"], raw, file, ("tool", "patchgate"))


def written(config: Config) -> dict[str, Any]:
    """Give the keys as the user wrote them, without defaults, ready for JSON: what a digest is made of."""
    return dict(config.written)


def _read(raw: bytes, file: str, most: int) -> dict[str, Any]:
    """Read TOML within the caps."""
    if len(raw) > most:
        message = f"the file has {len(raw):,} bytes, and at most {most:,} are read"
        raise ConfigError((Mistake(file, None, "", message, "make it shorter"),))
    mistakes: list[Mistake] = []
    if raw.startswith(b"\xef\xbb\xbf"):
        mistakes.append(Mistake(file, 1, "", "the file begins with a byte-order mark", "save it without one"))
    if (position := raw.find(b"\0")) >= 0:
        line = raw.count(b"\n", 0, position) + 1
        mistakes.append(Mistake(file, line, "", "the file holds a NUL byte", "save it as UTF-8 text"))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        mistakes.append(Mistake(file, line, "", "the file is not UTF-8", "save it as UTF-8 text"))
    if not mistakes and (fault := _cap_fault(text, file)):
        mistakes.append(fault)
    if mistakes:
        raise ConfigError(tuple(mistakes))
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        message, line = f"lists and tables may be nested at most {MAX_DEPTH} deep", 0
    except ValueError as error:
        message, line = _syntax_fault(str(error), text)
    raise ConfigError((Mistake(file, line or None, "", message, "see https://toml.io for the syntax"),))


def _cap_fault(text: str, file: str) -> Mistake | None:
    """Find what tomllib must not see: too deep, keys of too many parts, too many keys."""
    # Counting costs microseconds and is never too low, so most files need no closer look.
    brackets = text.count("[")
    longest = max(line.count(".") for line in text.split("\n")) + 1
    if (
        brackets + text.count("{") <= MAX_DEPTH
        and longest <= MAX_KEY_PARTS
        and brackets + text.count("=") <= MAX_KEYS
    ):
        return None
    from patchgate.declared.toml_lines import excess

    found = excess(text, MAX_DEPTH, MAX_KEY_PARTS, MAX_KEYS)
    return Mistake(file, found.line, "", found.message, "make the file plainer") if found else None


def _syntax_fault(reason: str, text: str) -> tuple[str, int]:
    """Turn the message of tomllib, which ends in a place, into a message and a line (0: none)."""
    found = re.fullmatch(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", reason, re.DOTALL)
    if not found:
        # The one ValueError without a place: int() refuses more than 4,300 digits.
        number = re.search(r"[0-9_]{4300}", text)
        return "a number is too long", text.count("\n", 0, number.start()) + 1 if number else 0
    what = printable(found[1][:1].lower() + found[1][1:])
    if found[2]:
        return f"not valid TOML: {what} (column {found[3]})", int(found[2])
    return f"not valid TOML: {what} (at the end of the file)", text.rstrip("\n").count("\n") + 1


def _config(data: Any, raw: bytes, file: str, prefix: Key) -> Config:
    try:
        checked = ConfigDocument.model_validate(data)
        return settings_from(checked.model_dump(mode="json", exclude_unset=True))
    except ValidationError as error:
        details = error.errors(include_url=False)
    from patchgate.declared.mistakes import tell

    raise ConfigError(tell(details, ConfigDocument, data, raw, file, prefix))
