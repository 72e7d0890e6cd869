"""The keys of `[commands.NAME]`, and those of its old form `[analyses.NAME]`.

Declared like the sections in `settings`; both import nothing, so that a commit without commands pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.policy import config_types as types

CommandKind = Literal["lint", "format", "test", "author"]
CommandScope = Literal["files", "tree"]
CommandOutput = Literal["text", "sarif", "metrics", "junit"]
Occasion = Literal["commit", "push", "apply", "verify"]
SideEffects = Literal["none"]
AnalysisFormat = Literal["sarif", "metrics"]


# In the file `timeout` may also be a string; here it is in seconds.
@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A tool that runs in a scratch tree with the change, never in the working tree."""

    kind: Annotated[
        CommandKind,
        "`lint`: passes with exit code 0, or without findings; runs before the tests. `format`: passes if it "
        "changes nothing. `test`: runs only after these passed. `author`: writes patches, and only in a run.",
    ]
    command: types.FileCommand
    scope: Annotated[
        CommandScope | None,
        "What the scratch tree contains: the changed files and `needs`, or the whole tree. Without this "
        "key: `files` at a commit and a push, `tree` at `apply`. `verify` always takes the whole tree.",
    ] = None
    timeout: float = 600
    env: types.Variables = field(default_factory=dict, hash=False)
    required_tools: types.Tools = ()
    side_effects: Annotated[
        SideEffects | None,
        '`"none"`: the command changes no tracked file; if it does, the change is refused, '
        "for every kind of command.",
    ] = None
    role: types.Role | None = None
    phase: types.PhaseOfAuthor | None = None
    output: Annotated[
        CommandOutput,
        "What it writes to standard output: text for people, SARIF 2.1.0, "
        '`{"metrics": [{"path", "symbol", "name", "value"}]}`, or a JUnit report.',
    ] = "text"
    new_only: Annotated[
        bool, "With `sarif` or `metrics`: only what this change brings refuses it, not what was there before."
    ] = False
    files: Annotated[
        types.Patterns,
        "Gitignore patterns, from the root, of the files that it is for. If no changed file matches, it does "
        "not run; without this key every file matches.",
    ] = ()
    exclude: Annotated[types.Patterns, "Patterns of files that it is not for."] = ()
    root: types.CommandRoot = ""
    needs: types.Needs = ()
    provide: types.Provided = ()
    on: types.Occasions = ("apply",)
    fix: types.FixCommand | None = None
    optional: Annotated[
        bool, "Whether it may be missing, time out or die: then there is a warning and nothing is refused."
    ] = False
    version: Annotated[
        types.Specifier | None, 'The versions of the program that may run, like ">=0.9"; checked once.'
    ] = None
    version_command: types.VersionCommand = ()
    remember: Annotated[
        bool,
        "Whether an accepted answer is used again for the same files, `needs`, command line, environment and "
        "program. `false` for a tool that reads more: the network, the time, other folders.",
    ] = True
    per_file: Annotated[bool, "Whether its answer about a file depends on that file and `needs` alone."] = (
        False
    )
    each_commit: Annotated[
        bool, "Whether a push runs it for every new commit, and not only for the tip of each ref."
    ] = False
    jobs: types.Jobs = 1

    @property
    def has_findings(self) -> bool:
        """Whether its output is read as findings or metrics."""
        return self.output in {"sarif", "metrics"}


# The old form of a command with `on = ["verify"]`: read, and mentioned nowhere but in the note about it.
@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """The old form of `[commands.NAME]` with `on = ["verify"]`; see there."""

    command: types.AnalysisCommand
    format: Annotated[AnalysisFormat, "The old name of `output`."] = "sarif"
    timeout: float = 600
    env: types.Variables = field(default_factory=dict, hash=False)
    required_tools: types.Tools = ()


def as_command(written: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the written keys of `[analyses.NAME]` into those of a command."""
    kept = {name: value for name, value in written.items() if name != "format"}
    return {"kind": "lint", **kept, "output": written.get("format", "sarif"), "on": ["verify"]}
