"""The sections of the config about analyses, as the models that read them: `config_tables` puts them in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from patchgate.policy.command_texts import (
    check_analysis,
    check_analysis_argument,
    check_analysis_command,
    check_baseline_file,
    check_metric,
    check_most,
    check_words,
)
from patchgate.policy.settings import (
    AnalysisFormat,
    AnalysisSettings,
    Preexisting,
    Strictness,
    VerifySettings,
)
from patchgate.policy.table import ENV_TEXT, TIMEOUT_TEXT, TOOLS_TEXT, Section, Timeout, Tools, Variables


class AnalysisTable(Section):
    """A command that tells findings or metrics of a whole tree, so that two trees can be compared."""

    command: Annotated[
        tuple[Annotated[str, AfterValidator(check_analysis_argument)], ...],
        Field(strict=False, json_schema_extra={"minItems": 1}),
        AfterValidator(check_analysis_command),
        BeforeValidator(check_words),
    ] = Field(
        description="The program and its arguments, without a shell; it runs in a scratch tree, and writes "
        "to its standard output."
    )
    format: AnalysisFormat = Field(
        AnalysisSettings().format,
        description='What it writes: SARIF 2.1.0, or `{"metrics": [{"path", "symbol", "name", "value"}]}`.',
    )
    timeout: Timeout = Field(AnalysisSettings().timeout, description=TIMEOUT_TEXT)
    env: Variables = Field({}, description=ENV_TEXT)
    required_tools: Tools = Field((), description=TOOLS_TEXT)


class ThresholdTable(Section):
    """A limit on what the analyses tell."""

    name: Annotated[str, AfterValidator(check_analysis)] = Field(description="Its name, as it is told.")
    metric: Annotated[str, AfterValidator(check_metric)] = Field(
        description="What it limits: `findings:new`, `findings`, or a metric of every symbol, by its name."
    )
    max: Annotated[float, AfterValidator(check_most)] = Field(
        description="The most that is allowed, inclusive.", json_schema_extra={"minimum": 0}
    )


class VerifyTable(Section):
    """How what got worse counts."""

    on_push: bool = Field(
        VerifySettings().on_push, description="Whether pre-push verifies each branch that is pushed."
    )
    strictness: Strictness = Field(
        VerifySettings().strictness,
        description="`relaxed`: regressions and thresholds are told, and refuse nothing.",
    )
    preexisting: Preexisting = Field(
        VerifySettings().preexisting,
        description="`refuse`: without an intent every threshold that fails counts, also one that failed "
        "before and is no worse. `report`: such a one is reported, and refuses nothing.",
    )
    baselines: Annotated[
        tuple[Annotated[str, AfterValidator(check_baseline_file)], ...], Field(strict=False)
    ] = Field(
        (),
        description="Files that hold findings which a tool leaves out; their growth is suspicious, as is "
        "that of suppressions.",
    )
