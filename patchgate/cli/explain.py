"""`git patchgate explain`, `policy`, `schema`, `selftest`: the rules, the policy, the output formats."""

from __future__ import annotations

import importlib
import os

import click

from patchgate.cli.options import document_options, in_repository, open_here
from patchgate.cli.output import write, write_error

# Name, the module that makes it, the function there. Shown in this order.
SCHEMAS = (
    ("config", "policy.config", "json_schema"),
    ("contract", "components.contract_model", "json_schema"),
    ("baseline", "components.component_output", "baseline_schema"),
    ("report", "report.schema", "json_schema"),
    ("error", "report.schema", "error_schema"),
    ("policy", "check.effective_policy", "json_schema"),
    ("event", "ledger.history", "json_schema"),
    ("ledger", "ledger.history", "verified_schema"),
    ("doctor", "hooks.doctor", "json_schema"),
    ("agent-doctor", "agents.settings.doctor", "json_schema"),
    ("actions", "patches.check_reply", "actions_schema"),
    ("reply", "patches.check_reply", "json_schema"),
    ("attempts", "apply.attempt_list", "list_schema"),
    ("attempt", "apply.attempt_list", "show_schema"),
    ("components", "components.component_output", "list_schema"),
    ("component-graph", "runs.ci_pipelines", "json_schema"),
    ("capture", "components.component_output", "capture_schema"),
    ("baselines", "components.component_output", "baselines_schema"),
    ("intent", "intents.document", "intent_schema"),
    ("intents", "intents.document", "intents_schema"),
    ("analysis", "verify.analysis_output", "analysis_schema"),
    ("verification", "verify.verification_json", "json_schema"),
    ("run", "runs.run_output", "run_schema"),
    ("runs", "runs.run_output", "list_schema"),
    ("questions", "questions.question", "questions_schema"),
    ("answers", "runs.run_questions", "answers_schema"),
    ("run-cost", "runs.run_cost", "cost_schema"),
    ("run-retro", "runs.retrospective", "retrospective_schema"),
    ("status", "runs.status", "status_schema"),
    ("claim", "placeholders.claims.claim_json", "json_schema"),
    ("claim-stats", "placeholders.claims.claim_stats", "json_schema"),
)


@click.command("schema")
@click.argument("name", type=click.Choice([name for name, _, _ in SCHEMAS]))
def schema_command(name: str) -> None:
    """Print the JSON Schema of a file or of an output.

    Files are config, contract and baseline; the other names are outputs.
    """
    import json

    module, function = next((module, function) for each, module, function in SCHEMAS if each == name)
    json_schema = getattr(importlib.import_module(f"patchgate.{module}"), function)
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")


@click.group("policy")
def policy_command() -> None:
    """Show the policy in effect."""


@policy_command.command("show")
@click.option("--policy-from", metavar="REV", help="Show the policy of REV.")
@document_options
def show_policy(context: click.Context, policy_from: str | None, form: str) -> None:
    """Print every key of the policy in effect, with its value and line."""
    import json

    repository = open_here(context)
    from patchgate.check.effective_policy import POLICY_SCHEMA, differs_on_disk, effective_policy
    from patchgate.check.policy_lookup import CheckOptions, trusted_options
    from patchgate.git.quoting import printable
    from patchgate.policy.policy import Profile

    force = effective_policy(
        repository, CheckOptions(policy_from) if policy_from else trusted_options(repository)
    )
    other = differs_on_disk(repository, force) if policy_from is None else None
    if other is not None:
        write_error(f"note: {other}")
    digests = {profile.value: force.policy.digest(profile) for profile in Profile}
    if form == "json":
        keys = [{"key": each.key, "value": each.value, "from": each.place} for each in force.settings()]
        document = {"schema": POLICY_SCHEMA, "from": force.place, "digests": digests, "keys": keys}
        write(json.dumps(document, indent=2) + "\n")
        return
    write(f"policy from {printable(force.place)}\n")
    for setting in force.settings():
        value = printable(json.dumps(setting.value, ensure_ascii=False), 200)
        write(f"  {setting.key} = {value}  ({setting.place})\n")
    for name, digest in digests.items():
        write(f"digest for {name}: {digest}\n")


@click.command("explain")
@click.argument("rule", required=False)
@click.option("--path", metavar="P", help="Show which line of which file decides about P.")
@click.option("--policy-from", metavar="REV", help="With --path: use the policy of REV.")
@click.option(
    "--profile",
    type=click.Choice(["commit", "agent"]),
    default="commit",
    help="With --path: use this profile.",
)
@in_repository
def explain_command(
    context: click.Context,
    rule: str | None,
    path: str | None,
    policy_from: str | None,
    profile: str,
) -> None:
    """Explain a rule: what it reports, why, an example, the next step.

    Without RULE, list all rules. With --path, show which line decides about a path.
    """
    if path is not None:
        _decide_path(context, path, policy_from, profile)
    elif rule is not None:
        from patchgate.report.rule_text import DETAILED, rule_text

        text = rule_text(rule)
        if rule in DETAILED:
            from patchgate.policy.rule_details import rule_details

            text += rule_details(rule)
        write(text)
    else:
        from patchgate.report.rule_text import list_rules

        write(list_rules())


def _decide_path(context: click.Context, path: str, policy_from: str | None, profile: str) -> None:
    from patchgate.check.effective_policy import differs_on_disk, effective_policy, explain_path
    from patchgate.check.policy_lookup import CheckOptions, trusted_options
    from patchgate.git.path import RepoPath
    from patchgate.git.quoting import printable
    from patchgate.policy.policy import Profile

    repository = open_here(context)
    named = RepoPath.from_user(path, repository.prefix)
    force = effective_policy(
        repository, CheckOptions(policy_from) if policy_from else trusted_options(repository)
    )
    write(f"{named.quoted}, by {printable(force.place)}\n")
    for says, because in explain_path(force, named, Profile(profile)):
        write(f"  {says}: {because}\n")
    if policy_from is None:
        from patchgate.runs.provenance import provenance_lines

        for line in provenance_lines(repository, named):
            write(f"  {line}\n")
    other = differs_on_disk(repository, force) if policy_from is None else None
    if other is not None:
        write_error(f"note: {other}")


@click.command("selftest")
@click.option("-q", "--quiet", is_flag=True, help="Print only failures.")
@click.option("-v", "--verbose", is_flag=True, help="Print the refusal of each rule first.")
def selftest_command(quiet: bool, verbose: bool) -> int:
    """Trigger every rule with its built-in case, in a temporary repository."""
    from patchgate.cli.selftest import refusals, selftest, summary

    results = list(selftest(os.environ))
    if verbose:
        write(refusals(results) + "\n")
    is_whole = all(each.is_raised for each in results)
    if not (quiet and is_whole):
        write(summary(results))
    return 0 if is_whole else 1
