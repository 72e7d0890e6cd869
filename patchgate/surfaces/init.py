"""`git patchgate init`: the first policy, and what it would have said to the last commits."""

from __future__ import annotations

import sys

import click

from patchgate.errors import UsageError
from patchgate.surfaces.output import directory_option, open_here, write

_REHEARSED = 200


@click.command("init", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--yes", is_flag=True, help="Take the defaults, ask nothing.")
@directory_option
@click.pass_context
def command(context: click.Context, yes: bool, directory: str | None) -> None:
    """Write patchgate.toml with the reason for each key, and rehearse it on the last 200 commits.

    Nothing is overwritten: where there is a policy already, that one is rehearsed.
    """
    repository = open_here(context, directory)
    from patchgate.change.quoting import printable
    from patchgate.operations.judge.rehearsal import rehearse
    from patchgate.operations.judge.terms import Asked
    from patchgate.operations.land.policy_file import existing_policy_file, first_policy, write_first_policy
    from patchgate.operations.tell.policy_in_force import policy_in_force
    from patchgate.verdict.wording import count

    force = policy_in_force(repository, Asked())
    policy = force.policy
    if policy.file:
        write(f"there is a policy already ({printable(force.place)}); nothing was written\n")
    elif (there := existing_policy_file(repository)) is not None:
        write(f"{there} is there already, not committed; nothing was written ({force.place} judge)\n")
    else:
        if not yes:
            _confirm()
        write_first_policy(repository)
        policy = first_policy()
        write("wrote patchgate.toml; commit it by itself: git add patchgate.toml && git commit\n")
    rehearsal = rehearse(repository, policy, _REHEARSED)
    if not rehearsal.commits:
        write("rehearsal: there are no commits yet\n")
        return
    write(
        f"rehearsal on the last {count(rehearsal.commits, 'commit')}: {rehearsal.refused} would be rejected, "
        f"{rehearsal.undecided} undecided\n"
    )
    for tally in rehearsal.tallies:
        write(
            f"  {tally.rule} ({tally.level.value}): {count(tally.findings, 'finding')} in "
            f"{count(tally.commits, 'commit')}; none with {printable(tally.remedy)}\n"
        )


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UsageError("init asks before it writes, and there is nobody to ask", "add --yes")
    if not click.confirm("Write patchgate.toml?", default=True, err=True):
        raise click.Abort
