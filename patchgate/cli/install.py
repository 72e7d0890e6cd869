"""`git patchgate init`, `install`, `uninstall` and `hook`: the first policy, and the hooks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import ask_person, directory_of, in_repository, open_to_write
from patchgate.cli.output import read_input, warn, write
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import first_of, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchgate.git.repository import Repository
    from patchgate.hooks.install import Installed
    from patchgate.policy.policy import Policy
    from patchgate.questions.recorded_answers import AuditedAnswer

_REHEARSED = 200
_MOST_LISTS = 10
_SUBMODULES, _REPAIR = "init-submodules", "init-repair"
_QUESTIONS = {
    _SUBMODULES: "May commits add submodules?",
    _REPAIR: "Repair mechanical faults of patches (fences, headers, counts) before they are judged?",
}


@click.command("init")
@click.option("--yes", is_flag=True, help="Use the defaults and ask nothing.")
@click.option(
    "--show", "only_show", is_flag=True, help="Show the policy and hooks that are there; write nothing."
)
@click.option("--assume", metavar="FILE", help="Assumptions that may answer the questions, one in each line.")
@in_repository
def init_command(context: click.Context, yes: bool, only_show: bool, assume: str | None) -> None:
    """Write a first patchgate.toml, try it on the last 200 commits, install the hooks.

    Overwrites nothing: an existing policy is kept and tried, and existing hooks run before ours. With CI=true
    in the environment, no hooks are installed.
    """
    repository = open_to_write(context)
    from patchgate.check.effective_policy import effective_policy
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.quoting import printable
    from patchgate.hooks.first_policy import exception_lists, existing_policy_file, write_first_policy
    from patchgate.runs.run_questions import read_assumptions

    assumptions = read_assumptions(read_input(assume, directory_of(context))) if assume else ()
    force = effective_policy(repository, CheckOptions())
    policy = force.policy
    there = printable(force.place) if policy.file else existing_policy_file(repository)
    if only_show:
        _show_state(repository, there)
        return
    answers: Sequence[AuditedAnswer] = ()
    if not yes:
        _require_yes("Write patchgate.toml and install the hooks?" if there is None else "Install the hooks?")
    if there is None:
        answers = _interview(repository, assumptions, is_asked=not yes)
    if policy.file:
        write(f"found a policy ({there}); nothing was written\n")
    elif there is not None:
        write(f"found {there}, which is not committed; nothing was written ({force.place} in effect)\n")
    else:
        lists = exception_lists(repository)
        agreed = {each.question for each in answers if each.answer == "yes"}
        policy = write_first_policy(
            repository, lists, adds_submodules=_SUBMODULES in agreed, repairs=_REPAIR in agreed
        )
        write("wrote patchgate.toml; commit it alone: git add patchgate.toml && git commit\n")
        _record(repository, answers)
    _report_suppression_files(exception_lists(repository), policy)
    _rehearse(repository, policy)
    _install_hooks(repository)


def _interview(
    repository: Repository, assumptions: Sequence[str], *, is_asked: bool
) -> Sequence[AuditedAnswer]:
    """Find out what the first policy depends on; with `--yes` nobody is asked.

    Earlier answers do not count: they were about a policy that is not there any more.
    """
    from patchgate.questions.facts import repository_facts
    from patchgate.questions.interview import InterviewInputs, interview
    from patchgate.questions.question import Question, QuestionType

    questions = [
        Question(name, text, QuestionType.BOOLEAN, default="no") for name, text in _QUESTIONS.items()
    ]
    inputs = InterviewInputs(
        facts=repository_facts(repository), assumptions=assumptions, ask=ask_person if is_asked else None
    )
    return interview(questions, inputs).fresh


def _record(repository: Repository, answers: Sequence[AuditedAnswer]) -> None:
    from patchgate.questions.recorded_answers import record_answers

    try:
        record_answers(repository.common_dir, answers)
    except UndecidedError as error:
        # The policy has the answer too.
        warn([error.message])


def _report_suppression_files(lists: Sequence[str], policy: Policy) -> None:
    """Report which suppression files the policy names, and which it does not."""
    from patchgate.git.quoting import printable

    known = policy.config.verify.suppressions
    for is_named, said in ((True, "in [verify] suppressions"), (False, "could be in [verify] suppressions")):
        found = [name for name in lists if (name in known) is is_named]
        if found:
            write(f"suppression files {said}: {first_of(found, _MOST_LISTS, printable)}\n")


def _require_yes(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("init asks before it writes, but standard input is not a terminal", "add --yes")
    if not click.confirm(question, default=True, err=True):
        raise click.Abort


def _show_state(repository: Repository, policy: str | None) -> None:
    """Print what init would find: the policy, and the installed hooks."""
    from patchgate.git.active_hooks import LOCAL_EVENTS
    from patchgate.git.hook_managers import read_hook
    from patchgate.hooks.hooks_folder import find_hooks_folder
    from patchgate.questions.recorded_answers import newest_answers

    folder = find_hooks_folder(repository, os.environ)
    ours = [name for name in LOCAL_EVENTS if read_hook(str(folder.path / name)).is_ours]
    write(f"policy: {policy or 'none'}\n")
    write(f"patchgate hooks in {folder.name}: {', '.join(ours) or 'none'}\n")
    newest = newest_answers(repository.common_dir)
    for answered in (newest[name] for name in _QUESTIONS if name in newest):
        shown = f"{answered.text} {answered.answer}"
        write(f"answered {printable(answered.at)}: {printable(shown, 200)} ({answered.source.value})\n")


def _rehearse(repository: Repository, policy: Policy) -> None:
    from patchgate.check.commits import rehearse
    from patchgate.git.quoting import printable
    from patchgate.report.wording import count

    try:
        rehearsal = rehearse(repository, policy, _REHEARSED)
    except UndecidedError as error:
        # The hooks are installed even if the history cannot be read.
        write(f"trial run: not possible: {printable(error.message, 500)}\n")
        return
    if not rehearsal.commits:
        write("trial run: no commits yet\n")
        return
    write(
        f"trial run on the last {count(rehearsal.commits, 'commit')}: {rehearsal.refused} would be rejected, "
        f"{rehearsal.undecided} undecided\n"
    )
    for tally in rehearsal.tallies:
        write(
            f"  {tally.rule} ({tally.level.value}): {count(tally.findings, 'finding')} in "
            f"{count(tally.commits, 'commit')}; {printable(tally.remedy)}\n"
        )


def _install_hooks(repository: Repository) -> None:
    from patchgate.hooks.install import install_hooks

    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
    elif repository.work_tree is None:
        write("no hooks installed: this is a bare repository; on a server: git patchgate install --server\n")
    else:
        report_installed(install_hooks(repository, os.environ, find_program()))


@click.command("hook")
@click.argument("name", metavar="NAME")
@click.argument("arguments", nargs=-1, metavar="[ARGS]")
@in_repository
def hook_command(context: click.Context, name: str, arguments: tuple[str, ...]) -> int:
    """Answer git at a hook. The installed hooks call this; use `check` yourself."""
    from patchgate.cli.hooks import run_hook

    return run_hook(name, arguments, directory_of(context))


@click.command("uninstall")
@click.option("--global", "everywhere", is_flag=True, help="Also remove them from a global core.hooksPath.")
@in_repository
def uninstall_command(context: click.Context, everywhere: bool) -> None:
    """Remove the hooks and restore what was there before.

    Reads no policy. The ledger and the receipts stay in the git directory.
    """
    repository = open_to_write(context)
    from patchgate.hooks.install import record_uninstall, uninstall_hooks

    done = uninstall_hooks(repository, os.environ, is_global=everywhere)
    if not done.folders:
        write("no patchgate hooks were installed here\n")
    for folder, removed in done.folders:
        write(f"removed from {folder.name}: {', '.join(hook.name for hook in removed)}\n")
        restored = [hook.name for hook in removed if hook.is_restored]
        if restored:
            write(f"  restored: {', '.join(restored)}\n")
        for hook in removed:
            for note in hook.notes:
                write(f"  {hook.name}: {note}\n")
    if done.trust_ref is not None:
        write(f"patchgate.trustRef is unset; it was {printable(done.trust_ref)}\n")
    warn(record_uninstall(repository, done))


_PROGRAM = "git-patchgate"


@click.command("install")
@click.option("--server", is_flag=True, help="Install pre-receive in a bare repository.")
@click.option("--global", "everywhere", is_flag=True, help="Install into a global core.hooksPath.")
@click.option(
    "--trust-ref", metavar="REF", help="Always use the policy of REF, such as refs/remotes/origin/main."
)
@click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="KEY|FILE",
    help="With --server: an SSH key whose approvals count, or a file of them; repeatable.",
)
@in_repository
def install_command(
    context: click.Context, server: bool, everywhere: bool, trust_ref: str | None, signers: tuple[str, ...]
) -> None:
    """Install the hooks; existing hooks run before them.

    Installing again updates the hooks, or changes nothing. With CI=true in the environment, nothing is
    installed.
    """
    if signers and not server:
        raise UsageError("--signer needs --server", "elsewhere .patchgate/allowed_signers names the signers")
    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
        return
    repository = open_to_write(context)
    from patchgate.approvals.signers import read_signers, write_server_signers
    from patchgate.hooks.install import install_hooks
    from patchgate.report.wording import count

    keys = read_signers(signers)
    done = install_hooks(
        repository,
        os.environ,
        find_program(),
        is_server=server,
        is_global=everywhere,
        trust_ref=trust_ref,
    )
    report_installed(done)
    if keys:
        write_server_signers(repository, keys)
        named = count(keys.count(b"\n"), "key")
        write(f"named by this server: {named}, whose approvals of changes to the rules always count\n")


NOTHING_IN_CI = "CI=true: no hooks installed; run git patchgate check in the build instead"


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether a CI build runs this; nobody commits in its checkout."""
    return environ.get("CI", "").lower() in {"true", "1"}


def report_installed(done: Installed) -> None:
    """Print which hooks were installed where, with their notes."""
    if done.changed:
        write(f"installed in {done.folder.name}: {', '.join(done.changed)}\n")
    else:
        new = "rebuilt the cache for fast commits" if done.has_copy else "nothing changed"
        write(f"the hooks in {done.folder.name} are up to date; {new}\n")
    for hook in done.hooks:
        for note in hook.notes:
            write(f"  {hook.name}: {note}\n")
    if done.trust_ref is not None:
        write(f"changes here are checked by the policy of {printable(done.trust_ref)} from now on\n")
    for note in done.notes:
        write(f"note: {note}\n")
    warn(done.warnings)


def find_program() -> str:
    """Find the git-patchgate that runs this; hooks may run with a PATH that lacks it.

    Raises:
        UndecidedError: it was not found.
    """
    folders = (os.path.dirname(os.path.abspath(sys.argv[0])), os.path.dirname(sys.executable))
    for folder in folders:
        place = os.path.join(folder, _PROGRAM)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    found = shutil.which(_PROGRAM)
    if found is None:
        raise UndecidedError(
            f"{_PROGRAM} was not found, neither next to this patchgate nor on PATH", "install patchgate again"
        )
    return os.path.abspath(found)
