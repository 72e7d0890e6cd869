"""`git patchgate run`: components through their phases, with what happens shown line by line."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import (
    ask_person,
    directory_of,
    document_options,
    in_repository,
    open_here,
    open_to_write,
)
from patchgate.cli.output import cache_folder, read_input, warn, write, write_error, write_lines
from patchgate.cli.progress import Progress
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from patchgate.git.repository import Repository
    from patchgate.runs.run_state import RunState
    from patchgate.runs.start import RunEnvironment

_MOST_WARNINGS = 5
_EXIT = {"completed": 0, "failed": 1, "paused": 1}
_PHASES = ("interview", "shaping", "contract", "tests", "implementation", "integration")


@click.group("run")
def run_command() -> None:
    """Take components through their phases; survives a kill at any moment."""


@run_command.command("start")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--changed", is_flag=True, help="Only components that differ from their baseline.")
@click.option("--phase", type=click.Choice(_PHASES), help="Stop after this phase.")
@click.option("--jobs", type=click.IntRange(1, 64), help="How many works run at once.")
@click.option(
    "--scheduling",
    type=click.Choice(["phased", "wavefront"]),
    help="wavefront: a component goes on without waiting for those it does not depend on.",
)
@click.option("--run", metavar="RUN", help="The id of the run, which several jobs may share (r- and digits).")
@click.option("--assume", metavar="FILE", help="Assumptions that may answer the questions, one in each line.")
@click.option("-q", "--quiet", is_flag=True, help="Print only how it ended.")
@in_repository
def start_command(
    context: click.Context,
    ids: tuple[str, ...],
    changed: bool,
    phase: str | None,
    jobs: int | None,
    scheduling: str | None,
    run: str | None,
    assume: str | None,
    quiet: bool,
) -> int:
    """Start a run of some components, or of all.

    A phase that has an author (a command with kind = "author") asks it where the check of the phase fails;
    what it answers goes through apply.
    """
    repository = open_to_write(context)
    from patchgate.runs.phases import Phase, Scheduling
    from patchgate.runs.run_questions import read_assumptions
    from patchgate.runs.start import RunRequest, start_run

    request = RunRequest(
        ids=ids,
        changed=changed,
        until=None if phase is None else Phase(phase),
        jobs=jobs,
        scheduling=None if scheduling is None else Scheduling(scheduling),
        assumptions=read_assumptions(read_input(assume, directory_of(context))) if assume else (),
        run=run,
    )
    with Progress(quiet=quiet) as progress:
        state = start_run(repository, request, _environment(progress, quiet=quiet))
    if state is None:
        write_lines(["every component is as its baseline records it: nothing to do"])
        return 0
    return _end(repository, state, quiet=quiet)


@run_command.command("resume")
@click.argument("run", required=False)
@click.option("--from-phase", type=click.Choice(_PHASES), help="Do this phase again, and all after it.")
@click.option("-q", "--quiet", is_flag=True, help="Print only how it ended.")
@in_repository
def resume_command(context: click.Context, run: str | None, from_phase: str | None, quiet: bool) -> int:
    """Go on with a run that failed, paused or was interrupted: the newest, or RUN.

    Nothing is deleted. What the disk shows as done stays done; everything else is checked again.
    """
    repository = open_to_write(context)
    from patchgate.runs.phases import Phase
    from patchgate.runs.start import resume_run

    with Progress(quiet=quiet) as progress:
        phase = None if from_phase is None else Phase(from_phase)
        state = resume_run(repository, run, phase, _environment(progress, quiet=quiet))
    return _end(repository, state, quiet=quiet)


def _environment(progress: Progress, *, quiet: bool) -> RunEnvironment:
    from patchgate.runs.start import RunEnvironment

    def report_end(sentence: str) -> None:
        progress.end()
        write_lines([sentence])

    def report(sentence: str) -> None:
        if not quiet:
            report_end(sentence)

    is_person = sys.stdin.isatty() and sys.stderr.isatty() and not quiet
    return RunEnvironment(
        os.environ,
        report=report,
        report_end=report_end,
        progress=progress.report,
        ask=ask_person if is_person else None,
    )


def _end(repository: Repository, state: RunState, *, quiet: bool) -> int:
    from patchgate.runs.retrospective import retrospective_of
    from patchgate.runs.run_loop import report_lines

    warn(state.warnings[:_MOST_WARNINGS])
    write_lines(report_lines(state))
    if not quiet:
        lessons = retrospective_of(repository, state.id, time.time()).lessons
        write_lines(f"  lesson: {lesson}" for lesson in lessons)
    return _EXIT.get(state.status.value, 3)


@run_command.command("answer")
@click.argument("question", required=False)
@click.argument("answer", required=False)
@click.option(
    "--source",
    type=click.Choice(["cli_approve", "integration_slack", "integration_linear"]),
    default="cli_approve",
    help="Where the answer comes from.",
)
@click.option("--confidence", type=click.FloatRange(0, 1), default=1.0, help="How sure it is, from 0 to 1.")
@document_options
def answer_command(
    context: click.Context,
    question: str | None,
    answer: str | None,
    source: str,
    confidence: float,
    form: str,
) -> int:
    """Show the questions that apply, with their answers; or answer QUESTION.

    The newest answer counts; the earlier ones stay in the ledger.
    """
    if (question is None) != (answer is None):
        raise UsageError("a question needs an answer", "git patchgate run answer QUESTION ANSWER")
    repository = open_here(context) if question is None else open_to_write(context)
    from patchgate.questions.recorded_answers import AnswerSource
    from patchgate.runs.run_questions import answer_question, answers_json, answers_text, ask_questions

    if question is not None and answer is not None:
        warning = answer_question(repository, question, answer, AnswerSource(source), confidence)
        warn([warning] if warning is not None else ())
    asked = ask_questions(repository)
    if form == "json":
        write(answers_json(asked))
    else:
        write_lines(answers_text(asked))
    return 0


@run_command.command("list")
@document_options
def list_command(context: click.Context, form: str) -> int:
    """List the runs, oldest first."""
    repository = open_here(context)
    from patchgate.runs.run_output import list_json, list_text
    from patchgate.runs.run_record import list_runs

    states, damaged = list_runs(repository)
    warn(damaged[:_MOST_WARNINGS])
    if form == "json":
        write(list_json(states, time.time()))
    else:
        write_lines(list_text(states, time.time()))
    return 0


@run_command.command("show")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "text", "json", "in-toto", "events"]),
    default="full",
    help="in-toto: a statement with the SLSA provenance of the files that it made; events: for run merge.",
)
@click.option("--sign", is_flag=True, help="With in-toto: sign it with user.signingKey (DSSE).")
@in_repository
def show_command(context: click.Context, run: str | None, form: str, sign: bool) -> int:
    """Show the newest run, or RUN: what is done, what failed and why, what comes next."""
    if sign and form != "in-toto":
        raise UsageError("--sign needs --format in-toto", "add it, or leave --sign out")
    repository = open_here(context)
    from patchgate.runs.components_on_disk import what_is_wrong
    from patchgate.runs.run_output import show_json, show_text
    from patchgate.runs.run_record import checked_run

    state = checked_run(repository, run)
    if form == "in-toto":
        from patchgate.runs.attestation import signed, statement_of

        statement = statement_of(repository, state)
        write(signed(repository, statement, os.environ.get("SSH_AUTH_SOCK")) if sign else statement)
        return 0
    if form == "events":
        from patchgate.runs.run_events import events_text

        write(events_text(repository, state))
        return 0
    wrong = what_is_wrong(repository, state)
    if form == "json":
        write(show_json(state, wrong, time.time()))
    else:
        write_lines(show_text(state, wrong, time.time()))
    return 0


@run_command.command("merge")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if all is done.")
@in_repository
def merge_command(context: click.Context, files: tuple[str, ...], quiet: bool) -> int:
    """Merge the events of runs that worked in other clones.

    FILE is what `run show --format events` printed there. All files are merged, or none. Events that are
    known are dropped. Bring the files of the components here too, by git or as patches.
    """
    repository = open_to_write(context)
    from patchgate.runs.merge import merge_runs, merged_lines
    from patchgate.runs.run_loop import report_lines

    merged = merge_runs(repository, files, directory_of(context))
    warn(merged.warnings[:_MOST_WARNINGS])
    codes = [_EXIT.get(each.state.status.value, 3) for each in merged.runs]
    if not quiet or any(codes):
        write_lines(merged_lines(merged))
        for each in merged.runs:
            write_lines(report_lines(each.state))
    return max(codes)


class _CostCommands(click.Group):
    """`run cost [RUN]`: what is no subcommand is the name of a run."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in {"--help", "-h"}):
            args = ["show", *args]
        return super().parse_args(context, args)


@run_command.group("cost", cls=_CostCommands, subcommand_metavar="[RUN] | add AMOUNT ...")
def cost_command() -> None:
    """Show what a run has cost, by phase and model; `add` records what was spent elsewhere.

    An author reports a call in the file that PATCHGATE_USAGE names.
    """


@cost_command.command("show", hidden=True)
@click.argument("run", required=False)
@document_options
def cost_show_command(context: click.Context, run: str | None, form: str) -> int:
    """Show what the newest run, or RUN, has cost."""
    repository = open_here(context)
    from patchgate.runs.run_cost import cost_json, cost_of_run, cost_text

    cost = cost_of_run(repository, run)
    if form == "json":
        write(cost_json(cost))
    else:
        write_lines(cost_text(cost))
    return 0


@cost_command.command("add")
@click.argument("amount", type=float)
@click.option("--phase", type=click.Choice(_PHASES), required=True, help="The phase that it was spent for.")
@click.option("--run", help="The run; without it, the newest.")
@click.option("--component", help="The component that it was spent for.")
@click.option("--model", help="The model that was used.")
@click.option("--input-tokens", type=int, default=0, show_default=True)
@click.option("--output-tokens", type=int, default=0, show_default=True)
@in_repository
def cost_add_command(
    context: click.Context,
    amount: float,
    phase: str,
    run: str | None,
    component: str | None,
    model: str | None,
    input_tokens: int,
    output_tokens: int,
) -> int:
    """Record what was spent for a run elsewhere, such as in a chat."""
    repository = open_to_write(context)
    from patchgate.runs.phases import Phase
    from patchgate.runs.run_cost import add_cost, cost_of_run, cost_text

    report = {
        "cost": amount,
        "model": model,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    name = add_cost(repository, run, Phase(phase), component, report)
    write_lines(cost_text(cost_of_run(repository, name)))
    return 0


@run_command.command("retro")
@click.argument("run", required=False)
@document_options
def retro_command(context: click.Context, run: str | None, form: str) -> int:
    """Show what the newest run, or RUN, has taught: cost, time, what failed how often, what to change."""
    repository = open_here(context)
    from patchgate.runs.retrospective import retrospective_json, retrospective_of, retrospective_text

    found = retrospective_of(repository, run, time.time())
    if form == "json":
        write(retrospective_json(found))
    else:
        write_lines(retrospective_text(found))
    return 0


@run_command.command("rebuild")
@click.argument("run", required=False)
@click.option("--dry-run", is_flag=True, help="Show it, and write nothing.")
@document_options
def rebuild_command(context: click.Context, run: str | None, dry_run: bool, form: str) -> int:
    """Make the state of the newest run, or of RUN, of the ledger alone; correct its cache.

    Damaged events are left out, with a warning each.
    """
    repository = open_here(context)
    from patchgate.runs.run_output import show_json, show_text
    from patchgate.runs.run_record import rebuild

    done = rebuild(repository, run, is_dry_run=dry_run)
    if form == "json":
        write(show_json(done.state, [], time.time()))
    else:
        write_lines(show_text(done.state, [], time.time()))
        said = "the cache agrees" if done.differs is False else "the cache differs, or is missing"
        write_error(said + ("; it was written" if done.is_written else ""))
    return 0


@run_command.command("work", hidden=True)
@in_repository
def work_command(context: click.Context) -> int:
    """Do one work of a run; called by the run."""
    repository = open_to_write(context)
    from patchgate.runs.worker import do_work

    def say(line: str) -> None:
        write(line + "\n")

    do_work(repository, read_input("-"), say, os.environ, cache_folder())
    return 0
