"""`git patchgate schema`: the JSON Schema of each file that is read, and of each output."""

from __future__ import annotations

import importlib

import click

from patchgate.surfaces.output import write

# Name, the module that makes it, the function there. Shown in this order.
SCHEMAS = (
    ("config", "declared.config_schema", "json_schema"),
    ("contract", "declared.contract", "json_schema"),
    ("baseline", "declared.baseline_schema", "json_schema"),
    ("report", "verdict.json", "json_schema"),
    ("error", "verdict.report_schema", "error_schema"),
    ("event", "operations.tell.history", "json_schema"),
    ("doctor", "operations.tell.doctor_document", "json_schema"),
    ("reply", "operations.judge.replies", "json_schema"),
    ("attempts", "operations.tell.attempts_document", "list_schema"),
    ("attempt", "operations.tell.attempts_document", "show_schema"),
    ("components", "operations.hold.components.document", "list_schema"),
    ("component-graph", "operations.hold.components.document", "graph_schema"),
    ("capture", "operations.hold.components.capture_telling", "json_schema"),
    ("baselines", "operations.tell.baselines_document", "json_schema"),
    ("intent", "operations.hold.intents.document", "intent_schema"),
    ("intents", "operations.hold.intents.document", "intents_schema"),
    ("analysis", "operations.hold.verify.analysis_document", "json_schema"),
    ("verification", "operations.hold.verify.document", "json_schema"),
    ("claim", "operations.hold.claims.document", "json_schema"),
    ("claim-stats", "operations.tell.claim_stats_telling", "json_schema"),
)


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice([name for name, _, _ in SCHEMAS]))
def command(name: str) -> None:
    """Print the JSON Schema of a file (config, contract, baseline) or of an output (report, event, …)."""
    import json

    module, function = next((module, function) for each, module, function in SCHEMAS if each == name)
    json_schema = getattr(importlib.import_module(f"patchgate.{module}"), function)
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
