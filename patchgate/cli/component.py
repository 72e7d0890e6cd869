"""`git patchgate component` and `baseline`: declared components, their contracts, tests and baselines."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import document_options, in_repository, open_here, open_to_write, report_options
from patchgate.cli.output import cache_folder, show, warn, write, write_error, write_lines
from patchgate.cli.progress import Progress

if TYPE_CHECKING:
    from patchgate.components.validate import Validated


_TEXTS = frozenset({"full", "text", "concise"})


@click.group("component")
def component_command() -> None:
    """Show components, validate their contracts, generate tests."""


@component_command.command("list")
@document_options
def list_components(context: click.Context, form: str) -> int:
    """List the components of the index.

    Each with its contract, the number of its files, and whether it has a baseline.
    """
    repository = open_here(context)
    from patchgate.components.component_list import list_components
    from patchgate.components.component_output import list_json, list_text
    from patchgate.components.policy_tree import no_components_message

    content, found = list_components(repository)
    if form == "json":
        write(list_json(content, found))
        return 0
    if not found:
        write_error(no_components_message(content))
    write_lines(list_text(found))
    return 0


@component_command.command("validate")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Validate every component.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first error.")
@report_options
def validate_components(
    context: click.Context,
    ids: tuple[str, ...],
    everything: bool,
    fail_fast: bool,
    form: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Validate contracts and drift.

    Validates the components of the index that you name, or those that the staged change touches. Components
    that depend on a touched contract are validated too.
    """
    repository = open_here(context)
    from patchgate.components.validate import validate

    validated = validate(repository, ids, everything=everything, fail_fast=fail_fast)
    show(validated.report, form, color, verbose=verbose, quiet=quiet)
    if form in _TEXTS and not quiet:
        write_error(_validated_text(validated, fail_fast=fail_fast))
    return validated.report.verdict.exit_code


def _validated_text(validated: Validated, *, fail_fast: bool) -> str:
    """Say how much was validated, because a report without findings does not."""
    from patchgate.components.policy_tree import no_components_message
    from patchgate.report import wording

    if not validated.declares:
        return no_components_message(validated.content)
    if not validated.is_touched:
        return "no staged file touches a component; --all validates every component"
    is_cut = fail_fast and validated.report.verdict != "accepted"
    until = ", up to the first error" if is_cut else ""
    compared = f", {wording.count(validated.baselines, 'baseline')} compared" if validated.baselines else ""
    return f"{wording.count(validated.contracts, 'contract')} validated{compared}{until}"


@component_command.command("graph")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "text", "json", "mermaid", "github", "gitlab"]),
    default="full",
    help="github: a list of matrices, one for each wave; gitlab: a child pipeline.",
)
@click.option(
    "--changed",
    is_flag=True,
    help="Only components that differ from their baseline, and those that depend on them or contain them.",
)
@in_repository
def graph_components(context: click.Context, form: str, changed: bool) -> int:
    """Show the tree, the dependencies and the cycles.

    Shows the components of the index. The formats github and gitlab, and `jobs` of json, have a job for each
    component, for runs on several machines.
    """
    repository = open_here(context)
    from patchgate.components.component_list import affected_part, build_graph, changed_components
    from patchgate.components.component_output import graph_text, mermaid
    from patchgate.components.policy_tree import no_components_message

    whole = build_graph(repository)
    graph = affected_part(whole, changed_components(repository)) if changed else whole
    if form in {"json", "github", "gitlab"}:
        from patchgate.runs.ci_pipelines import write_jobs

        text, limits = write_jobs(repository, whole, graph, form)
        write(text)
        warn(limits)
        return 0
    if not whole.parents:
        write_error(no_components_message(graph.content))
    elif not graph.parents:
        write_error("every component is as its baseline records it")
    write_lines(list(mermaid(graph)) if form == "mermaid" else graph_text(graph))
    return 0


@component_command.command("tests")
@click.argument("name", metavar="ID")
@click.option(
    "--staged", "--cached", "cached", is_flag=True, help="Use the contract in the index instead of HEAD."
)
@in_repository
def make_tests(context: click.Context, name: str, cached: bool) -> int:
    """Print tests generated from a contract.

    The output is a pytest module that checks a component against its contract in HEAD. Examples, error cases,
    idempotence and budgets become assertions. An unchanged contract gives the same bytes.
    """
    repository = open_here(context)
    from patchgate.components.testgen import generate_tests

    made = generate_tests(repository, name, cached=cached)
    write(made.text)
    for function, measure in made.untested:
        write_error(f"warning: `{function}` promises {measure}, but no test measures it: it has no examples")
    if made.is_staged_otherwise:
        write_error("these are the tests of HEAD; the staged contract differs: use --staged")
    return 0


@click.group("baseline")
def baseline_command() -> None:
    """Record components whose tests pass; show what changed since."""


@baseline_command.command("status")
@document_options
def show_baselines(context: click.Context, form: str) -> int:
    """Show the drift and age of each component.

    Reads HEAD. Exits with 1 if one of the findings is an error.
    """
    repository = open_here(context)
    from patchgate.components.baseline_status import baselines_of_head, status_text

    found = baselines_of_head(repository, time.time())
    if form == "json":
        from patchgate.components.component_output import baselines_json

        write(baselines_json(found))
    else:
        write_lines(status_text(found))
    return 1 if found.has_errors else 0


@baseline_command.command("capture")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--worktree", is_flag=True, help="Record the working tree instead of the index.")
@click.option(
    "--reverify",
    is_flag=True,
    help="Run the tests of unchanged components again, and record that they passed.",
)
@click.option(
    "--commit-note", is_flag=True, help="With --reverify: record it in refs/notes/patchgate-verified too."
)
@click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@in_repository
def capture_baselines(
    context: click.Context,
    ids: tuple[str, ...],
    worktree: bool,
    reverify: bool,
    commit_note: bool,
    form: str,
    quiet: bool,
) -> int:
    """Record components whose tests pass.

    Records exactly the files that the tests ran on: a scratch tree of the index. If the tests of any
    component fail, are empty or cannot run, nothing is written. Commit the baselines alone, or with the
    files that they record.
    """
    repository = open_to_write(context)
    from patchgate.components.capture import capture
    from patchgate.components.capture_run import CaptureEnvironment, CaptureRequest
    from patchgate.components.component_output import capture_json, capture_text

    request = CaptureRequest(ids, from_disk=worktree, reverify=reverify, with_note=commit_note)
    with Progress(quiet=quiet) as progress:
        environment = CaptureEnvironment(
            environ=os.environ, cache=cache_folder(), now=time.time(), report=progress.report
        )
        done = capture(repository, request, environment)
    if form == "json":
        write(capture_json(done))
    else:
        warn(done.warnings)
        write_lines(capture_text(done))
    return done.exit_code
