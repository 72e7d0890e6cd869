"""`git patchgate schema`: the JSON Schema of each file that is read, and of each output."""

from __future__ import annotations

import importlib

import click

from patchgate.cli.output import write

# Name, the module that makes it, the function there. Shown in this order.
SCHEMAS = (
    ("config", "policy.config_schema", "json_schema"),
    ("contract", "components.contract", "json_schema"),
    ("baseline", "components.baseline_schema", "json_schema"),
    ("report", "report.json", "json_schema"),
    ("error", "report.report_schema", "error_schema"),
    ("event", "ledger.history", "json_schema"),
    ("doctor", "hooks.doctor_document", "json_schema"),
    ("reply", "patches.replies", "json_schema"),
    ("attempts", "apply.attempts_document", "list_schema"),
    ("attempt", "apply.attempts_document", "show_schema"),
    ("components", "components.document", "list_schema"),
    ("component-graph", "components.document", "graph_schema"),
    ("capture", "components.capture_telling", "json_schema"),
    ("baselines", "components.baselines_document", "json_schema"),
    ("intent", "intents.document", "intent_schema"),
    ("intents", "intents.document", "intents_schema"),
    ("analysis", "verify.analysis_document", "json_schema"),
    ("verification", "verify.document", "json_schema"),
    ("claim", "placeholders.claims.document", "json_schema"),
    ("claim-stats", "placeholders.claims.claim_stats_telling", "json_schema"),
)


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice([name for name, _, _ in SCHEMAS]))
def command(name: str) -> None:
    """Print the JSON Schema of a file (config, contract, baseline) or of an output (report, event, …)."""
    import json

    module, function = next((module, function) for each, module, function in SCHEMAS if each == name)
    json_schema = getattr(importlib.import_module(f"patchgate.{module}"), function)
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
