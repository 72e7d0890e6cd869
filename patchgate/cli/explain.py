"""`git patchgate explain`: what a rule means and how to satisfy it; which line decides about a path."""

from __future__ import annotations

import textwrap

import click

from patchgate.cli.options import directory_option, open_here
from patchgate.cli.output import complain, write
from patchgate.errors import UsageError
from patchgate.report.rules import RULES, Rule

_LISTED = 68


@click.command("explain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("rule", required=False)
@click.option("--path", metavar="P", help="Say which line of which file decides about P.")
@click.option("--policy-from", metavar="REV", help="With --path: by the policy of REV.")
@click.option("--profile", type=click.Choice(["commit", "agent"]), default="commit", help="With --path.")
@directory_option
@click.pass_context
def command(
    context: click.Context,
    rule: str | None,
    path: str | None,
    policy_from: str | None,
    profile: str,
    directory: str | None,
) -> None:
    """Say what RULE means: what, why, an example, the next step. Without RULE: list them all."""
    if path is not None:
        _path(context, path, policy_from, profile, directory)
    elif rule is not None:
        write(_rule(rule))
    else:
        write(_listing())


def _rule(name: str) -> str:
    rule = RULES.get(name)
    if rule is None:
        import difflib

        close = difflib.get_close_matches(name, RULES, n=1)
        raise UsageError(
            "there is no such rule",
            f"did you mean {close[0]}?" if close else "git patchgate explain lists them",
        )
    about = f"{rule.level.value}, stage {rule.stage.value}, code {rule.code}, gate {rule.gate}"
    lines = [
        f"{rule.id} ({about})",
        "",
        rule.what,
        "",
        f"why:     {rule.why}",
        f"example: {rule.example}",
        f"help:    {rule.fix}",
    ]
    return "\n".join(lines) + "\n" + _more(rule)


def _more(rule: Rule) -> str:
    text = ""
    if rule.invariant:
        text += "\nIt is an invariant: no policy, level, approval or suppression touches it.\n"
    else:
        text += f'\nIts level can be set: [rules] {rule.id} = "error", "warning", "note" or "off".\n'
    if rule.inline:
        text += f"On the line, in the commits of people: patchgate: allow {rule.id} REASON\n"
    if rule.id == "deny-class":
        from patchgate.policy.classes import CLASSES

        for name, patterns in CLASSES.items():
            text += f"\n{name}: {' '.join(patterns)}\n"
    if rule.id == "secret":
        from patchgate.policy.content import SECRET_FORMS

        text += "\nforms: " + ", ".join(form.name for form in SECRET_FORMS) + "\n"
    return text


def _listing() -> str:
    width = max(len(name) for name in RULES)
    stages: dict[str, list[str]] = {}
    for rule in RULES.values():
        lines = stages.setdefault(f"{rule.stage.value} ({rule.code})", [])
        what = textwrap.shorten(rule.what, _LISTED, placeholder=" …")
        lines.append(f"  {rule.id:<{width}}  {rule.level.value:<7}  {what}\n")
    listed = "\n".join(f"{stage}\n{''.join(lines)}" for stage, lines in stages.items())
    return f"{listed}\ngit patchgate explain RULE says more\n"


def _path(
    context: click.Context, path: str, policy_from: str | None, profile: str, directory: str | None
) -> None:
    from patchgate.check.policy_in_force import about_path, differs_on_disk, policy_in_force
    from patchgate.check.terms import Asked, trusted
    from patchgate.git.path import RepoPath
    from patchgate.git.quoting import printable
    from patchgate.policy.policy import Profile

    repository = open_here(context, directory)
    named = RepoPath.from_user(path, repository.prefix)
    force = policy_in_force(repository, Asked(policy_from) if policy_from else trusted(repository))
    write(f"{named.quoted}, by {printable(force.place)}\n")
    for says, because in about_path(force, named, Profile(profile)):
        write(f"  {says}: {because}\n")
    other = differs_on_disk(repository, force) if policy_from is None else None
    if other is not None:
        complain(f"note: {other}")
