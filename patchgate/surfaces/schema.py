"""`git patchgate schema`: the JSON Schema of the config and of each output."""

from __future__ import annotations

import click

from patchgate.surfaces.output import write


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice(["config", "report"]))
def command(name: str) -> None:
    """Print the JSON Schema of the config file, or of the report that `--format json` prints."""
    import json

    if name == "config":
        from patchgate.declared.config_schema import json_schema
    else:
        from patchgate.verdict.json import json_schema
    write(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
