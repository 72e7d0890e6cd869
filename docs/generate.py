"""Make what the documentation takes from the program: the reference, and the outputs in the other pages.

    python -m docs.generate

The reference comes from the registry of rules, the model of the config and the commands themselves. In the
pages of `PAGES` every line that begins with `$ ` in a `console` block is run, in order, in a throw-away
repository, and what it printed is put under it. A test fails where a page is not what this makes.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from docs.places import (
    make_bakery,
    make_garage,
    make_kiosk,
    make_market,
    make_office,
    make_shop,
    make_store,
    make_studio,
    make_workshop,
    output,
)
from patchgate.cli.cli import COMMANDS
from patchgate.policy.config import json_schema
from patchgate.policy.file_kinds import CLASSES
from patchgate.report.rules import RULES, Rule

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference.md"
MANUAL = ROOT / "docs" / "git-patchgate.1"
REPOSITORIES = {"bakery": make_bakery, "shop": make_shop, "store": make_store, "kiosk": make_kiosk}
"""What `<!-- new NAME -->` in a page makes: the commands below it run there."""
PAGES = {
    "README.md": make_shop,
    "docs/tour.md": make_shop,
    "docs/apply.md": make_kiosk,
    "docs/patches.md": make_market,
    "docs/components.md": make_studio,
    "docs/verify.md": make_workshop,
    "docs/commands.md": make_garage,
    "docs/claims.md": make_office,
    "docs/agents.md": make_market,
}
"""The pages whose commands are run, each with what makes the repository for it."""

_HEAD = """\
# Reference

`python -m docs.generate` makes this page from the program; a test fails if the page is stale.
`git patchgate -h`, `git patchgate schema config` and `git patchgate explain RULE` print the same.
"""
_EXIT_CODES = """\
## Exit codes

| exit | means |
| --- | --- |
| 0 | accepted, warnings included |
| 1 | rejected |
| 2 | the arguments, or the config that the command was given, are wrong |
| 3 | undecided: it could not be judged |
| 130, 143 | interrupted (SIGINT; SIGTERM, SIGHUP) |
"""
_MANUAL = (
    '.TH GIT-PATCHGATE 1 "" patchgate',
    ".nh",
    ".ad l",
    ".SH NAME",
    r"git-patchgate \- judge what git will really do, before it lands",
    ".SH SYNOPSIS",
    r"\fBgit patchgate\fR [\fB-C\fR \fIDIR\fR] \fICOMMAND\fR [\fIARGS\fR]",
    ".SH DESCRIPTION",
    r"\fBgit patchgate\fR \fICOMMAND\fR \fB-h\fR lists the options of a command,",
    r"\fBgit patchgate explain\fR the rules, \fBgit patchgate schema config\fR the keys of the config.",
    ".SH COMMANDS",
)
_CONFIG = """\
`patchgate.toml` at the root of the repository, or `[tool.patchgate]` in `pyproject.toml`. Unknown keys are
errors, and all mistakes of a file are reported at once."""


_PATTERNS = """\
## Patterns

`deny`, `allow_delete`, `generated`, `[[overrides]] paths` and the globs of components are gitignore patterns
without negation. `allow_delete`, `generated` and `[[overrides]]` match exactly what `git check-ignore` does.
The others match all of that, and in addition what these rows list; no pattern matches less than in git.
What denies or owns all below a folder (`deploy/**`) also names `deploy`: a submodule or a symlink there.
Where the last part of that name has a star (`env-*/**`), it does not: write `env-*` too.

| pattern | path | git | matches here in |
| --- | --- | --- | --- |
"""
PATTERN_DIFFERENCES = {
    "folder": ("dir/", "dir", "`deny`, components: a file with the name of the folder"),
    "own text": (
        "[id].tsx",
        "[id].tsx",
        "`deny`, components: brackets also match literally",
    ),
    "folded": (
        "*.KEY",
        "a.key",
        "`deny`: case and normal forms are ignored, `?` is a byte or a character",
    ),
}
"""Where a pattern matches more than in git: an example of each class, and where it does."""


def reference() -> str:
    """Write the reference page."""
    parts = [_HEAD, _commands(), _EXIT_CODES, _config(), _patterns(), _classes(), _rules()]
    return "\n".join(parts)


def _commands() -> str:
    lines = ["## Commands", ""]
    for name, module, about in COMMANDS:
        command = getattr(importlib.import_module(f"patchgate.cli.{module}"), f"{name}_command")
        for words, each in _leaves(f"git patchgate {name}", command):
            arguments = [part.make_metavar(click.Context(each)) for part in _arguments(each)]
            lines += [f"### `{' '.join([words, *arguments])}`", ""]
            lines += [" ".join((each.help or about).split()), ""]
            lines += ["| option | |", "| --- | --- |", *_options(each), ""]
    return "\n".join(lines)


def manual() -> str:
    """Write the manual page, which `git patchgate --help` opens."""
    lines = list(_MANUAL)
    for name, module, about in COMMANDS:
        command = getattr(importlib.import_module(f"patchgate.cli.{module}"), f"{name}_command")
        for words, each in _leaves(f"git patchgate {name}", command):
            arguments = [part.make_metavar(click.Context(each)) for part in _arguments(each)]
            help_text = " ".join((each.help or about).split()).replace("\b ", "")
            lines += [".TP", f".B {_roff(' '.join([words, *arguments]))}", _roff(help_text)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in re.findall(r"^\| (\d[^|]*) \| (.*) \|$", _EXIT_CODES, re.MULTILINE):
        lines += [".TP", f".B {code}", _roff(meaning)]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Escape what troff would read as its own, and let it break a line between alternatives."""
    for char, written in (("\\", "\\e"), ("-", "\\-"), ("|", "|\\:"), ("…", "...")):
        text = text.replace(char, written)
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _leaves(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Give the commands that do something: instead of a group, those in it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from _leaves(f"{words} {name}".rstrip(), inner)


def _arguments(command: click.Command) -> list[click.Argument]:
    return [part for part in command.params if isinstance(part, click.Argument)]


def _options(command: click.Command) -> Iterator[str]:
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        value = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
        if isinstance(option.type, click.Choice):
            value = " " + "\\|".join(option.type.choices)
        default = f" Default: `{option.default}`." if isinstance(option.default, str) else ""
        about = _cell(option.help or "")
        yield f"| `{', '.join(option.opts)}{value}` | {(about + default).strip()} |"
    yield "| `-h, --help` | Show the help of the command. |"


def _config() -> str:
    schema = json_schema()
    lines = ["## Config", "", _CONFIG]
    for title, table in _tables(schema, "", schema):
        lines += ["", f"### {title}", ""]
        if table.get("description") and title != "Top level":
            lines += [table["description"], ""]
        lines += ["| key | takes | default | |", "| --- | --- | --- | --- |"]
        for name, each in table["properties"].items():
            if not (_resolve(each, schema).get("properties") or _named(each, schema)):
                about = _cell(each.get("description", ""))
                default = "required" if name in table.get("required", ()) else _default(name, each)
                lines.append(f"| `{name}` | {_takes(each, schema)} | {default} | {about} |")
    return "\n".join(lines) + "\n"


def _patterns() -> str:
    rows = PATTERN_DIFFERENCES.values()
    return _PATTERNS + "".join(
        f"| `{pattern}` | `{path}` | no | {about} |\n" for pattern, path, about in rows
    )


def _tables(node: dict[str, Any], name: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every table of the config with its name as it is written in TOML."""
    yield (f"`{name}`" if name else "Top level"), node
    for key, each in node["properties"].items():
        inner = _resolve(each, schema)
        if inner.get("properties"):
            yield from _tables(inner, f"[{f'{name[1:-1]}.{key}' if name else key}]", schema)
        elif (element := _resolve(each.get("items", {}), schema)).get("properties"):
            yield from _tables(element, f"[[{f'{name[1:-1]}.{key}' if name else key}]]", schema)
        elif (named := _named(each, schema)) and not each.get("deprecated"):
            yield from _tables(named, f"[{key}.NAME]", schema)


def _named(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the table in each key of a table of tables; None if there is none."""
    element = node.get("additionalProperties")
    found = _resolve(element, schema) if isinstance(element, dict) else {}
    return found if found.get("properties") else None


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    if reference is None:
        return node
    found = schema["$defs"][reference.rpartition("/")[2]]
    assert isinstance(found, dict)
    return found


def _takes(node: dict[str, Any], schema: dict[str, Any]) -> str:
    """Say in words what a key takes."""
    node = _resolve(node, schema)
    if "anyOf" in node:
        return " or ".join(_takes(each, schema) for each in node["anyOf"])
    if "const" in node:
        return f'`"{node["const"]}"`'
    if "enum" in node:
        return ", ".join(f'`"{each}"`' for each in node["enum"])
    if node["type"] == "array":
        element = _resolve(node["items"], schema)
        return "tables" if element.get("properties") else f"list of {_takes(element, schema)}"
    if node["type"] == "object":
        return f"table of {_takes(node['additionalProperties'], schema)}"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}[
        node["type"]
    ]


def _default(name: str, node: dict[str, Any]) -> str:
    if "default" not in node:
        return "`{}`" if name in {"rules", "env", "role_timeouts"} else "absent"
    value = node["default"]
    if isinstance(value, list):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{str(value).lower()}`"


def _classes() -> str:
    lines = ["## Classes of files", "", "What the names in `deny_classes` and `deny_new_classes` mean.", ""]
    for name, patterns in CLASSES.items():
        lines += [f"- **{name}**: " + ", ".join(f"`{pattern}`" for pattern in patterns)]
    return "\n".join(lines) + "\n"


def _rules() -> str:
    lines = ["## Rules", "", "A rule never changes its meaning. Invariants apply in every repository."]
    for rule in RULES.values():
        traits = [
            rule.level.value,
            f"stage `{rule.stage.value}`",
            f"code `{rule.code}`",
            f"gate `{rule.gate}`",
        ]
        traits += ["invariant"] if rule.invariant else []
        traits += ["can be allowed on the line"] if rule.inline else []
        lines += ["", f"### {rule.id}", "", f"{', '.join(traits)}", ""]
        lines += [
            f"{rule.summary} {rule.reason}",
            "",
            f"- Example: `` {rule.example} ``",
            f"- Next step: {rule.help}",
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _with_rules(page: str, named: list[Rule]) -> str:
    rows = ["| rule | what is wrong | how to fix it |", "| --- | --- | --- |"]
    rows += [f"| `{rule.id}` | {_cell(rule.summary)} | {_cell(rule.help)} |" for rule in named]
    table = "\n".join(rows)
    return re.sub(
        r"(?<=<!-- patch-rules -->\n).*(?=\n<!-- /patch-rules -->)", lambda _: table, page, flags=re.DOTALL
    )


def page(name: str) -> str:
    """Make a page anew: run its commands, and list the rules that it lists.

    Args:
        name: a key of `PAGES`.
    """
    text = (ROOT / name).read_text(encoding="utf-8")
    if name == "docs/patches.md":
        text = _with_rules(
            text,
            [
                rule
                for rule in RULES.values()
                if rule.stage.value in {"parse", "git_check"}
                and rule.level.value == "error"
                and rule.gate != "reply"
            ],
        )
    elif name == "docs/agents.md":
        text = _with_rules(text, [rule for rule in RULES.values() if rule.gate == "reply"])
    first, *others = re.split(r"(?<=<!-- new )(\w+)(?= -->)", text)
    parts = [tour(first, PAGES[name], is_today=name == "docs/components.md")]
    for place, part in zip(others[::2], others[1::2], strict=True):
        parts += [place, tour(part, REPOSITORIES[place])]
    return "".join(parts)


def tour(page: str, make: Callable[[Path, dict[str, str]], None], *, is_today: bool = False) -> str:
    """Run the commands in the console blocks of a page, and put what they print under them.

    Args:
        page: the page, or a part of one.
        make: makes the repository where they run.
        is_today: whether commits have the date of today; their ids then differ at each run.
    """
    with tempfile.TemporaryDirectory(prefix="patchgate-tour-") as folder:
        shop = Path(folder, "shop")
        environment = _pinned(folder)
        if is_today:
            environment = {name: value for name, value in environment.items() if not name.endswith("_DATE")}
        make(shop, environment)
        steady = _Steady(folder)

        def run(block: re.Match[str]) -> str:
            lines = ["```console\n"]
            for command in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE):
                lines.append(f"$ {command}\n")
                lines.append(steady.output(output(steady.command(command), shop, environment)))
            return "".join(lines) + "```"

        return re.sub(r"^```console\n(.*?)^```", run, page, flags=re.MULTILINE | re.DOTALL)


def _pinned(folder: str) -> dict[str, str]:
    """Pin what git takes from its environment, so that every id is the same each time."""
    people = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "You"), ("EMAIL", "you@example.com"), ("DATE", "1700000000 +0000"))
    }
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        # The owner of what the pages declare: a shell that a command was typed in would still run.
        "PATCHGATE_OWNER": str(os.getpid()),
        **people,
    }


class _Steady:
    """Makes what differs at each run the same: ids of attempts and intents, times, processes, the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._real: dict[str, str] = {}

    def command(self, text: str) -> str:
        """Put the ids of this run into a command of the page."""
        return re.sub(r"\b[ai]-000\d", lambda found: self._real.get(found[0], found[0]), text)

    def output(self, text: str) -> str:
        """Take out of an output what is of this run alone."""
        text = text.replace(self._folder, "/home/you").replace(os.path.realpath(self._folder), "/home/you")
        text = re.sub(r"/trees/[0-9a-f]+/place-[0-9a-f]+/tree\b", "/trees/…", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:]+Z", "2026-01-01T12:00:00Z", text)
        text = re.sub(r"\b\d+\.\d+ ?s\b", "0.1 s", text)
        # Printed only for tests that take a second.
        text = re.sub(r"(?m)^running the tests of .*\n", "", text)
        text = re.sub(r"\(commit [0-9a-f]{12}\)", "(commit 1a2b3c4d5e6f)", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b", "2026-01-01 13:00", text)
        text = re.sub(r"\bin (59 minutes|1 hour)\b", "in 1 hour", text)
        text = re.sub(r"\bprocess \d+ on [^\s,]+", "process 4711 on here", text)
        for found in re.findall(r"\b[ai]-[0-9a-f]{4,}\b", text):
            if found not in self._real.values():
                self._real[f"{found[0]}-{len(self._real) + 1:04}"] = found
        for steady, real in self._real.items():
            text = text.replace(real, steady)
        return text


def main() -> None:
    """Write the pages."""
    REFERENCE.write_text(reference(), encoding="utf-8")
    MANUAL.write_text(manual(), encoding="utf-8")
    for name in PAGES:
        (ROOT / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
