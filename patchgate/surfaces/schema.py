"""`git patchgate schema`: the JSON Schema of each file that is read, and of each output."""

from __future__ import annotations

import click

from patchgate.surfaces.output import write


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "name",
    type=click.Choice(
        [
            *("config", "contract", "baseline", "report", "event", "doctor", "reply", "attempts", "attempt"),
            *("components", "component-graph", "capture", "baselines"),
        ]
    ),
)
def command(name: str) -> None:
    """Print the JSON Schema of a file (config, contract, baseline) or of an output (report, event, …)."""
    import json

    if name == "config":
        from patchgate.declared.config_schema import json_schema
    elif name == "contract":
        from patchgate.declared.contract import json_schema
    elif name == "baseline":
        from patchgate.declared.baseline_schema import json_schema
    elif name == "baselines":
        from patchgate.operations.tell.baselines_document import json_schema
    elif name == "event":
        from patchgate.operations.tell.history import json_schema
    elif name == "reply":
        from patchgate.operations.judge.replies import json_schema
    elif name == "attempts":
        from patchgate.operations.tell.attempts_document import list_schema as json_schema
    elif name == "attempt":
        from patchgate.operations.tell.attempts_document import show_schema as json_schema
    elif name == "components":
        from patchgate.operations.hold.components_document import list_schema as json_schema
    elif name == "component-graph":
        from patchgate.operations.hold.components_document import graph_schema as json_schema
    elif name == "capture":
        from patchgate.operations.hold.capture_telling import json_schema
    elif name == "doctor":
        from patchgate.operations.tell.doctor_document import json_schema
    else:
        from patchgate.verdict.json import json_schema
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
