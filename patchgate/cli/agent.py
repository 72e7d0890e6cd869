"""`git patchgate agent`: what is for agents and the people who run them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import (
    directory_of,
    document_options,
    in_repository,
    names_directory,
    open_here,
    open_to_write,
    refuse_agents,
)
from patchgate.cli.output import cache_folder, read_input, show, write, write_error, write_lines
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchgate.agents.settings.install import AgentScope, SettingsChange
    from patchgate.patches.check_reply import ReplyVerdict

_NAMES = ("claude", "codex", "cursor", "gemini")


@click.group("agent")
def agent_command() -> None:
    """For agents: hooks in their settings, replies, briefs, instructions, and an MCP server."""


def _scope_options(command: Callable[..., int]) -> Callable[..., int]:
    for add in (
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        click.option("--user", "for_user", is_flag=True, help="Use the settings below your home folder."),
        click.option("--project", is_flag=True, help="Use the settings of this repository (the default)."),
    ):
        command = add(command)
    return command


@agent_command.command("install")
@click.argument("client", type=click.Choice(_NAMES))
@_scope_options
@click.option("--fail-open", is_flag=True, help="Let the agent go on where patchgate fails.")
@click.option("--seconds", type=float, default=2.0, show_default=True, help="The time limit of an answer.")
@in_repository
def install_hooks(
    context: click.Context,
    client: str,
    *,
    project: bool,
    for_user: bool,
    dry_run: bool,
    fail_open: bool,
    seconds: float,
) -> int:
    """Add the hooks to the settings of a coding agent.

    Other settings, comments and the layout stay as they are.
    """
    from patchgate.agents.settings.clients import CLIENTS
    from patchgate.agents.settings.install import plan_install

    if not 0 < seconds <= 600:
        raise UsageError("--seconds must be more than 0, at most 600", "use --seconds 5")
    scope = _scope(context, project=project, for_user=for_user)
    change = plan_install(CLIENTS[client], scope, fail_open=fail_open, seconds=seconds)
    _carry_out(change, scope, CLIENTS[client].title, dry_run=dry_run)
    step = CLIENTS[client].next_step
    if step and change.is_change and not dry_run and not (for_user and client == "gemini"):
        write(f"next: {step}\n")
    return 0


@agent_command.command("uninstall")
@click.argument("client", type=click.Choice(_NAMES), required=False)
@_scope_options
@in_repository
def uninstall_hooks(
    context: click.Context, client: str | None, *, project: bool, for_user: bool, dry_run: bool
) -> int:
    """Remove the hooks from the settings of a coding agent, or of all."""
    from patchgate.agents.settings.clients import CLIENTS
    from patchgate.agents.settings.install import plan_uninstall

    scope = _scope(context, project=project, for_user=for_user)
    changes = [
        (plan_uninstall(each, scope), each.title)
        for each in CLIENTS.values()
        if client is None or each.name == client
    ]
    for change, title in changes:
        if change.is_change or client is not None:
            _carry_out(change, scope, title, dry_run=dry_run)
    if client is None and not any(change.is_change for change, _ in changes):
        write("nothing to remove\n")
    return 0


@agent_command.command("doctor")
@document_options
def examine_hooks(context: click.Context, form: str) -> int:
    """Check that the installed hooks of coding agents are complete and answer.

    Exits with 1 if one does not.
    """
    from patchgate.agents.settings.clients import CLIENTS
    from patchgate.agents.settings.doctor import diagnose, document
    from patchgate.git.quoting import printable

    scopes = {
        "project": _scope(context, project=True, for_user=False),
        "user": _scope(context, project=False, for_user=True),
    }
    found = [
        diagnose(client, name, scope, os.environ)
        for client in CLIENTS.values()
        for name, scope in scopes.items()
    ]
    has_problems = any(each.problems for each in found)
    if form == "json":
        import json

        write(json.dumps(document(found), indent=2) + "\n")
        return 1 if has_problems else 0
    for client in CLIENTS.values():
        said = [each for each in found if each.name == client.name and (each.is_installed or each.problems)]
        if not said:
            write(f"{client.title}: not installed; git patchgate agent install {client.name}\n")
        for each in said:
            state = "installed in" if each.is_installed else "not installed in"
            write(f"{each.title}: {state} {printable(each.place)}\n")
            write_lines(f"  problem: {problem}" for problem in each.problems)
    return 1 if has_problems else 0


@agent_command.command("hook", context_settings={"ignore_unknown_options": True})
@click.option("--protocol", type=click.Choice(_NAMES), required=True, help="The agent that calls.")
@click.option("--seconds", default="2", metavar="N", help="The time limit of an answer.")
@click.option("--fail-open", is_flag=True, help="Let the agent go on where patchgate fails.")
@in_repository
def answer_hook(context: click.Context, protocol: str, seconds: str, *, fail_open: bool) -> int:
    """Called by the installed hooks: answer the event on standard input."""
    from patchgate.cli.agent_hook import run_agent_hook

    words = ["--protocol", protocol, "--seconds", seconds, *(["--fail-open"] if fail_open else [])]
    return run_agent_hook(words, directory_of(context))


def _scope(context: click.Context, *, project: bool, for_user: bool) -> AgentScope:
    """Return where the settings are that the options name."""
    from patchgate.agents.settings.clients import CLIENTS
    from patchgate.agents.settings.install import AgentScope, record_of

    if project and for_user:
        raise UsageError("--project and --user cannot be combined", "use one of them")
    if for_user:
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            raise UsageError("there is no home folder", "set HOME")
        state = os.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
        named = {each.name: os.environ.get(each.home, "") for each in CLIENTS.values() if each.home}
        folders = {name: folder for name, folder in named.items() if os.path.isabs(folder)}
        return AgentScope(home, os.path.join(state, "patchgate", "agents.json"), folders)
    repository = open_here(context)
    if repository.work_tree is None:
        raise UsageError("a bare repository has no settings of agents", "use --user")
    return AgentScope(repository.work_tree, record_of(repository.common_dir), {})


def _carry_out(change: SettingsChange, scope: AgentScope, title: str, *, dry_run: bool) -> None:
    from patchgate.agents.settings.install import carry_out
    from patchgate.git.quoting import printable

    place = printable(change.path)
    if not change.is_change:
        write(f"{title}: {place} stays as it is\n")
    elif dry_run:
        write(f"{title}: would {_deed(change)} {place}:\n")
        write_lines(_difference(change))
    else:
        refuse_agents("the hooks of agents")
        carry_out(change, scope)
        write(f"{title}: {_deed(change)}d {place}\n")


def _deed(change: SettingsChange) -> str:
    return "delete" if change.after is None else "create" if change.before is None else "change"


def _difference(change: SettingsChange) -> list[str]:
    import difflib

    from patchgate.git.quoting import printable

    before, after = ((text or "").removesuffix("\n").split("\n") for text in (change.before, change.after))
    lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=1)
    return [printable(line, 400) for line in lines]


@agent_command.command("reply")
@click.argument("file", required=False, metavar="FILE")
@click.option("--describe", is_flag=True, help="Print the actions and their parameters, for a prompt.")
@click.option("--base", metavar="REV", help="Apply the patch of a repair to REV, then merge.")
@document_options
def judge_reply(
    context: click.Context,
    file: str | None,
    describe: bool,
    base: str | None,
    form: str,
) -> int:
    """Check an agent's reply and the patch in it.

    FILE is the raw reply; - is standard input. Nothing is applied. Exits with 0 if the reply follows the
    protocol and its patch is accepted, with 1 if not.
    """
    if describe:
        if file is not None or base is not None:
            raise UsageError("--describe takes neither FILE nor --base", "remove them")
        _describe_actions(form)
        return 0
    if file is None:
        raise UsageError(
            "agent reply needs a reply", "give a file, or - for standard input; or use --describe"
        )
    from patchgate.patches.check_reply import check_reply

    raw = read_input(file, directory_of(context))
    judged = check_reply(raw, lambda: open_here(context), base=base, now=time.time())
    if form == "json":
        import json

        from patchgate.patches.check_reply import reply_document

        write(json.dumps(reply_document(judged)) + "\n")
    else:
        _print_reply(judged)
    return judged.verdict.exit_code


def _describe_actions(form: str) -> None:
    from patchgate.patches.reply_actions import describe, table

    if form == "json":
        import json

        write(json.dumps(table(), indent=2) + "\n")
    else:
        write(describe())


def _print_reply(judged: ReplyVerdict) -> None:
    """Print the findings of the protocol, or the report on the proposed change; the verdict comes last."""
    from patchgate.report import wording

    for note in judged.reading.notes:
        write(f"note: {wording.safe(note)}\n")
    for finding in judged.refusals:
        write(f"{finding.level.value}[{finding.rule}]: {wording.safe(finding.message)}\n")
        write(f"help: {wording.safe(wording.hint_of(finding) or '')}\n\n")
    if judged.refusals:
        write(f"rejected: {wording.count_levels(judged.refusals)} in the reply\n")
    elif judged.report is None:
        write(f"accepted: {judged.reading.action}\n")
    else:
        if judged.report.verdict == "accepted":
            write("note: nothing was applied; git patchgate apply does that\n")
        show(judged.report, "full", "auto", verbose=False, quiet=False)


@agent_command.command("brief")
@click.argument("names", nargs=-1, metavar="[ID|PATH]...")
@click.option(
    "--max-tokens", type=click.IntRange(1), default=8000, show_default=True, help="How long it may be."
)
@click.option("--research", is_flag=True, help="Add history, earlier attempts and the last run.")
@in_repository
def brief_command(context: click.Context, names: tuple[str, ...], max_tokens: int, research: bool) -> int:
    """Print what an agent must know for components, intents or paths.

    Without any, for the intents of this worktree. The contract and the tests, or the files of an intent, are
    never cut. Then come the policy, the last refusal, intents, approvals, answers and lessons, as far as
    there is room. Its end says what was left out, and how tokens are counted.
    """
    repository = open_here(context)
    from patchgate.agents.brief import make_brief

    write(make_brief(repository, names, max_tokens=max_tokens, with_research=research).text)
    return 0


@agent_command.command("instructions")
@click.option("--check", "file", metavar="FILE", help="Exit with 1 if the section in FILE is out of date.")
@in_repository
def instructions_command(context: click.Context, file: str | None) -> int:
    """Print a section for AGENTS.md or CLAUDE.md, made from the policy.

    With --check, nothing is printed if FILE has the section of the policy in effect. Exits with 2 if FILE has
    no section.
    """
    repository = open_here(context)
    from patchgate.agents.instructions import MOST_FILE, check_section, instructions

    section = instructions(repository)
    if file is None:
        write(section)
        return 0
    state = check_section(read_input(file, directory_of(context), MOST_FILE), file, section)
    if state.is_current:
        return 0
    write_lines([state.reason])
    write_error(f"help: {state.hint}")
    return 1


@agent_command.command("mcp")
@click.option("--repository", metavar="DIR", help="Serve the repository in DIR.")
@click.option("--allow-changes", is_flag=True, help="Offer declare_intent, apply and resume too.")
@in_repository
def mcp_command(context: click.Context, repository: str | None, allow_changes: bool) -> int:
    """Serve a repository to one client over MCP, on standard input and output.

    Needs `pip install "patchgate[mcp]"`. The repository is that of --repository or of the working directory,
    else the first of the client's roots. Without one, each call says so.
    """
    from patchgate.agents.mcp.served_place import ServerPlace, require_mcp

    require_mcp()
    # A server lives long, other than a command.
    import gc

    gc.enable()
    from patchgate.agents.mcp.server import serve

    directory = os.path.join(directory_of(context), repository or "")
    is_named = repository is not None or names_directory(context)
    serve(ServerPlace(os.environ, directory, is_named=is_named), allows_changes=allow_changes)
    return 0


@agent_command.command("call", hidden=True)
@document_options
def call_command(context: click.Context, form: str) -> int:
    """Answer one call of a client; called by the MCP server."""
    from patchgate.agents.mcp.call import answer, read_call

    call = read_call(read_input("-"))
    repository = (open_to_write if call.changes else open_here)(context)
    write(answer(repository, call, os.environ, cache_folder()))
    return 0
