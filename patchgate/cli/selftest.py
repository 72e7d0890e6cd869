"""`git patchgate selftest`: does every rule still speak?"""

from __future__ import annotations

import os

import click

from patchgate.cli.output import write


@click.command("selftest")
@click.option("-q", "--quiet", is_flag=True, help="Print only what went wrong.")
def selftest_command(quiet: bool) -> int:
    """Raise every rule from its built-in case, in a throw-away repository."""
    from patchgate.apply.selftest_cases import raised_by_applying
    from patchgate.cli.selftest_run import selftest, summary
    from patchgate.cli.selftest_verify import raised_by_working

    results = list(selftest(os.environ, (raised_by_applying, raised_by_working)))
    is_whole = all(each.is_raised for each in results)
    if not (quiet and is_whole):
        write(summary(results))
    return 0 if is_whole else 1
