"""`git patchgate approve`: a maintainer allows one refused change, with a reason."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import (
    confirm,
    in_repository,
    open_to_write,
    refuse_agents,
    require_terminal,
)
from patchgate.cli.output import warn, write, write_error
from patchgate.errors import UsageError
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.approvals.approve import Exemption
    from patchgate.approvals.binding import Binding
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import ChangeVerdict

_MOST_PATHS = 20
# A message may have several paths, each of 4,096 bytes that are quoted.
_LONGEST = 1 << 20
_ONE_CHANGE = 'git patchgate approve @staged --reason "..."; or --last, or an ID'


@click.command("approve")
@click.argument("change", required=False, metavar="[@staged | ID]")
@click.option("--last", is_flag=True, help="The change that was refused last.")
@click.option("--reason", metavar="TEXT", help="Why this change is right; it is recorded.")
@click.option(
    "--rule", "rules", multiple=True, metavar="RULE", help="Allow it for this rule only; repeatable."
)
@click.option("--sign", is_flag=True, help="Sign it with user.signingKey, so that the push accepts it too.")
@click.option(
    "--for",
    "branch",
    metavar="REF",
    help="With --sign: the branch that gets the change, such as refs/heads/main.",
)
@click.option(
    "--repository",
    "repository_id",
    metavar="ID",
    help="With --sign: the [governance] id that it must be for.",
)
@click.option("--expires", metavar="TIME", help="With --sign: after this it does not count: 30d, 12h, 2w.")
@click.option("--policy-from", metavar="REV", help="Use the policy of REV.")
@click.option("--profile", type=click.Choice(["commit", "agent"]), help="Use the limits of this profile.")
@in_repository
def approve_command(
    context: click.Context,
    change: str | None,
    last: bool,
    reason: str | None,
    rules: tuple[str, ...],
    sign: bool,
    branch: str | None,
    repository_id: str | None,
    expires: str | None,
    policy_from: str | None,
    profile: str | None,
) -> int:
    """Allow one refused change, with a reason.

    The reason is recorded. The approval is valid for exactly this change under the policy that refused it,
    also after a rebase. ID is a commit, or the first 8 or more digits of a change id. Without --sign it is
    valid on this machine, until the push. With --sign it is a note in refs/notes/patchgate-approvals, and
    valid wherever .patchgate/allowed_signers has the key; a commit is then named by its whole id, or a ref.
    """
    if (change is None) == (not last):
        raise UsageError("approve takes one change", _ONE_CHANGE)
    from patchgate.check.message_rules import check_reason
    from patchgate.ledger.timestamps import parse_span

    reason = check_reason(reason or "")
    lasts = None if expires is None else parse_span(expires)
    _require_person(signs=sign, is_bound=any(each is not None for each in (branch, expires, repository_id)))
    repository = open_to_write(context)
    from patchgate.approvals.approvals import who_approves
    from patchgate.approvals.approve import exempt, grant, grant_signed, last_refused_change, resolve_change
    from patchgate.approvals.binding import NOT_BOUND, bind, full_name
    from patchgate.ledger.ledger import iso

    branch = None if branch is None else full_name(branch)
    asked = _options(repository, policy_from, profile, branch, signs=sign)
    if change is None:
        found = last_refused_change(repository, asked)
    else:
        found = resolve_change(repository, change, asked, signs=sign)
    if sign:
        _require_no_merge(found, policy_from)
    exemption = exempt(repository, found, rules, signed=sign, ref=branch)
    by = who_approves(repository, os.environ)
    # A signature counts wherever the note is, so nothing is left out.
    _show_exemption(exemption, reason, by, None if sign else _MOST_PATHS)
    at, end = iso(time.time()), None if lasts is None else iso(time.time() + lasts)
    bound = bind(repository, exemption.change, branch, end, asked, repository_id) if sign else NOT_BOUND
    statement = exemption.state(reason, by, at, bound)
    if sign:
        _show_binding(bound)
        granted = grant_signed(repository, exemption, statement, os.environ)
    elif confirm("Approve this change?"):
        granted = grant(repository, exemption, statement)
    else:
        write_error("nothing was approved: you did not answer yes")
        return 1
    warn([*bound.warnings, *granted.warnings])
    write(_approved_text(exemption, granted.by, signed=sign))
    return 0


def _options(
    repository: Repository, policy_from: str | None, profile: str | None, branch: str | None, *, signs: bool
) -> CheckOptions:
    from patchgate.approvals.approve import require_id
    from patchgate.check.policy_lookup import CheckOptions, resolve_policy_from
    from patchgate.policy.policy import Profile

    asked = CheckOptions() if policy_from is None else resolve_policy_from(repository, policy_from)
    if policy_from is not None and asked.policy_from is not None:
        require_id(policy_from, asked.policy_from, is_whole=signs)
    # A push judges what an agent made by the rules for people, too: nobody approves what he was not shown.
    why = "--profile agent" if profile == "agent" else ""
    # What --policy-from names as the branch is what it has.
    target = None if branch == asked.target else branch
    return replace(asked, profile=Profile(profile) if profile else None, profile_reason=why, target=target)


def _require_no_merge(found: ChangeVerdict, policy_from: str | None) -> None:
    """Refuse a merge under way, and one without the branch that gets it: what it brings back is seen there.

    Raises:
        UsageError: it is one.
    """
    if found.source.parents and found.source.commit is None:
        raise UsageError("a merge is signed as a commit", "git commit, then approve the commit")
    if found.source.kind == "merge" and policy_from is None:
        raise UsageError(
            "a merge is approved as it is judged where it lands",
            "name that: --policy-from refs/remotes/origin/main, or the branch that gets it",
        )


def _require_person(*, signs: bool, is_bound: bool) -> None:
    """Refuse agents, and anyone who can neither sign nor answer a question.

    Raises:
        UsageError: an agent runs this, there is no terminal, or something is bound that is not signed.
    """
    if is_bound and not signs:
        raise UsageError("--for, --repository and --expires need --sign", "add --sign, or leave them out")
    refuse_agents("an approval")
    if not signs:
        require_terminal(
            "an approval needs a terminal, to ask you, or a signature", "run it in a terminal, or add --sign"
        )


def _show_exemption(exemption: Exemption, reason: str, by: str, most: int | None) -> None:
    """Show on standard error what would be approved: of each rule so many findings, and so many paths."""
    from patchgate.git.quoting import printable
    from patchgate.report.wording import MAX_TEXT, SHORT_OID, safe, show_place

    longest = _LONGEST if most is None else MAX_TEXT

    def listed(lines: list[str]) -> None:
        for line in "\n".join(lines[:most]).split("\n"):
            write_error(line)
        if most is not None and len(lines) > most:
            write_error(f"    and {len(lines) - most} more")

    judged = "refused" if exemption.findings else "judged"
    write_error(f"{exemption.name}, {judged} by {safe(exemption.change.policy.origin)}:")
    for rule in exemption.rules:
        findings = [finding for finding in exemption.findings if finding.rule == rule]
        texts = []
        for each in findings:
            parts = [f"  {rule}: {safe(each.message, longest)}", show_place(each)]
            parts += [safe(name, longest) for name in each.unnamed] if most is None else []
            texts.append("\n    ".join(filter(None, parts)))
        listed(list(dict.fromkeys(texts)))
    owned = sorted({path for each in exemption.owned for path in each.paths})
    if owned:
        write_error("  paths that have owners:")
        listed([f"    {path.quoted}" for path in owned])
    if exemption.sides:
        write_error("  approved too, as git would merge them otherwise:")
        listed(
            [
                f"    {path.quoted}, as {'the branch' if side is None else side[:SHORT_OID]} has it"
                for path, side in exemption.sides.items()
            ]
        )
    write_error(f"reason: {printable(reason, 1000)}")
    write_error(f"by: {by}")


def _show_binding(bound: Binding) -> None:
    """Show for what a signed approval will be."""
    from patchgate.check.refs import show_ref
    from patchgate.git.quoting import printable

    where = "any repository" if bound.repository is None else printable(bound.repository, 300)
    write_error(f"for: {where}, {'any branch' if bound.ref is None else show_ref(bound.ref)}")


def _approved_text(exemption: Exemption, by: str, *, signed: bool) -> str:
    from patchgate.git.quoting import printable

    what = f"approved: {', '.join(exemption.rules)} for the {exemption.name}"
    if signed:
        along = "push its note too: git push REMOTE BRANCH refs/notes/patchgate-approvals"
        return f"{what}, signed by {printable(by)}\n{along}\n"
    return f"{what}, on this machine until the push\n"
