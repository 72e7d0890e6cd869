"""`git patchgate schema`: the JSON Schema of the config and of each output."""

from __future__ import annotations

import click

from patchgate.surfaces.output import write


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "name", type=click.Choice(["config", "report", "event", "doctor", "reply", "attempts", "attempt"])
)
def command(name: str) -> None:
    """Print the JSON Schema of the config file, of the JSON report, or of a line of `log --format json`."""
    import json

    if name == "config":
        from patchgate.declared.config_schema import json_schema
    elif name == "event":
        from patchgate.operations.tell.history import json_schema
    elif name == "reply":
        from patchgate.operations.judge.replies import json_schema
    elif name == "attempts":
        from patchgate.operations.tell.attempts_document import list_schema as json_schema
    elif name == "attempt":
        from patchgate.operations.tell.attempts_document import show_schema as json_schema
    elif name == "doctor":
        from patchgate.operations.tell.doctor_document import json_schema
    else:
        from patchgate.verdict.json import json_schema
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
