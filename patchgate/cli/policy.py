"""`git patchgate policy show`: the policy in force, and where each key comes from."""

from __future__ import annotations

import click

from patchgate.cli.options import directory_option, open_here
from patchgate.cli.output import complain, write


@click.group("policy", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show the policy in force."""


@command.command("show", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--policy-from", metavar="REV", help="Show the policy of REV.")
@click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
@directory_option
@click.pass_context
def show_policy(context: click.Context, policy_from: str | None, form: str, directory: str | None) -> None:
    """Print every key of the policy in force with its value and its line."""
    import json

    repository = open_here(context, directory)
    from patchgate.check.policy_in_force import differs_on_disk, policy_in_force
    from patchgate.check.terms import Asked, trusted
    from patchgate.git.quoting import printable
    from patchgate.policy.policy import Profile

    force = policy_in_force(repository, Asked(policy_from) if policy_from else trusted(repository))
    other = differs_on_disk(repository, force) if policy_from is None else None
    if other is not None:
        complain(f"note: {other}")
    digests = {profile.value: force.policy.digest(profile) for profile in Profile}
    if form == "json":
        keys = [{"key": each.key, "value": each.value, "from": each.place} for each in force.settings()]
        document = {"schema": "patchgate.policy/1", "from": force.place, "digests": digests, "keys": keys}
        write(json.dumps(document, indent=2) + "\n")
        return
    write(f"policy from {printable(force.place)}\n")
    for setting in force.settings():
        value = printable(json.dumps(setting.value, ensure_ascii=False), 200)
        write(f"  {setting.key} = {value}  ({setting.place})\n")
    for name, digest in digests.items():
        write(f"digest for {name}: {digest}\n")
