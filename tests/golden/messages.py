"""Render what the program says into one text, to be read from top to bottom.

    python -m tests.golden.messages

writes `messages.txt` anew. A test fails where the file is not what the program says now.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

import patchgate
from patchgate.cli.cli import COMMANDS, cli
from patchgate.cli.selftest import Raised, refusals, selftest
from tests.world import Repo

GOLDEN = Path(__file__).parent / "messages.txt"
PACKAGE = Path(patchgate.__file__).parent
WIDTH = 100
MISTAKES = (
    "",
    "chek",
    "check nowhere",
    "check a.py",
    "check HEAD..nowhere",
    "check --format yaml",
    "check --patch missing.diff",
    "check --patch a.py --edits a.py",
    "check --base HEAD",
    "check --policy-from nowhere",
    "-C nowhere check",
    "apply missing.diff",
    "apply empty.diff",
    "attempts show a-0000",
    "recover nothing",
    "approve",
    "approve --last --reason tested",
    "approve v-0000 --reason x",
    "explain no-such-rule",
    "explain --path ../outside",
    "policy shw",
    "schema nothing",
    "log --since yesterdayish",
    "intent show i-0000",
    "intent declare",
    "component validate nothing",
    "baseline capture nothing",
    "verify",
    "analyze",
    "claim nothing.json",
    "uninstall --nothing",
)
"""What is typed wrong, in a repository with a policy and one commit; words are split at spaces."""
BROKEN_CONFIG = """\
[policy]
deny = ["[", "!keep", "a*b*c*d*e*f"]
deny_prefixes = ["/absolute", "../up"]
deny_sufixes = [".exe"]
[policy.commit]
max_files = "five"
[content]
deny = ["(", "(a+)+$"]
[rules]
path-control = "off"
deny-prefx = "error"
[commands.lint]
kind = "lint"
"""
_VARIABLE = (
    (r"\b\d+\.\d+ ?s\b", "0.1 s"),
    (r"\b([ai])-[0-9a-f]{4,}\b", r"\1-0001"),
    (r"[^\s:]*/patchgate-selftest-\w+", "/tmp/selftest"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-01-01 13:00 UTC"),
    (r"\b(59 minutes|1 hour)\b", "1 hour"),
    (r"\b\d\d,\d{3} days ago\b", "20,000 days ago"),
    (r"\bprocess \d+ on [^\s,]+", "process 4711 on host"),
)
SPEAKING = {"Fault", "Mistake", "of"}
"""Calls beside `raise` whose first sentence reaches a user: `Finding.of` among them."""


def golden() -> dict[str, str]:
    """Render everything but the refusals: mistakes on the command line, help pages, all other sentences."""
    return {
        "MISTAKES ON THE COMMAND LINE": _steady(_mistakes()),
        "HELP": _steady("\n".join(_help_pages())),
        "SENTENCES": _steady("\n".join(_sentences()) + "\n"),
    }


def refused(results: list[Raised]) -> dict[str, str]:
    """Render the refusal of each rule."""
    return {"REFUSALS": _steady(refusals(results))}


def recorded() -> dict[str, str]:
    """Read the sections of the golden file."""
    text = GOLDEN.read_text(encoding="utf-8")
    parts = re.split(r"(?m)^([A-Z ]+)\n=+\n\n", text)
    return {title: part.removesuffix("\n") for title, part in zip(parts[1::2], parts[2::2], strict=True)}


def _mistakes() -> str:
    blocks: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo.create(Path(folder, "repo"))
        repo.policy('[policy]\ndeny = ["*.pem"]\n')
        repo.commit({"a.py": "one\n", "empty.diff": ""})
        for typed in MISTAKES:
            answer = repo.cli(*typed.split())
            if typed:
                assert answer.code != 0, typed
            blocks.append(f"$ git patchgate {typed}".rstrip() + f"\n{answer.out}{answer.err}")
        repo.write("patchgate.toml", BROKEN_CONFIG)
        repo.git("add", "-A")
        for typed in ("check", "policy show --tree staged"):
            answer = repo.cli(*typed.split())
            blocks.append(f"$ git patchgate {typed}\n{answer.out}{answer.err}")
        return "\n".join(blocks).replace(os.path.realpath(folder), "/home/you").replace(folder, "/home/you")


def _help_pages() -> Iterator[str]:
    for name, module, _ in COMMANDS:
        command = getattr(importlib.import_module(f"patchgate.cli.{module}"), f"{name}_command")
        yield from _help(name, command, click.Context(cli, info_name="git patchgate", **cli.context_settings))


def _help(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    yield command.get_help(context) + "\n"
    if isinstance(command, click.Group):
        for inner_name, inner in command.commands.items():
            yield from _help(inner_name, inner, context)


def _sentences() -> Iterator[str]:
    """List what is raised, and what findings and mistakes say; `{…}` stands for a value."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        constants = _constants(tree)
        found: list[tuple[int, str]] = []
        for node in ast.walk(tree):
            call = node.exc if isinstance(node, ast.Raise) else node
            if isinstance(call, ast.Call) and (node is not call or _name(call) in SPEAKING):
                sentence = "; ".join(filter(None, (_text(each, constants) for each in _arguments(call))))
                if " " in sentence:
                    found.append((call.lineno, sentence))
        lines = list(dict.fromkeys(sentence for _, sentence in sorted(found)))
        if lines:
            module = path.relative_to(PACKAGE).with_suffix("").as_posix()
            yield f"{module}\n" + "".join(f"  {line}\n" for line in lines)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords if each.arg in {"hint", "message"})]


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """Write a string expression with its values as `{…}`; nothing where it is no sentence."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(each, constants) or "{…}" for each in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left, constants) or "{…}") + (_text(right, constants) or "{…}")
        case ast.IfExp(body=body, orelse=other):
            return " | ".join(filter(None, (_text(body, constants), _text(other, constants))))
        case ast.Name(id=name) if name in constants:
            return _text(constants[name], {})
    return ""


def _steady(text: str) -> str:
    """Replace what differs at each run."""
    for pattern, instead in _VARIABLE:
        text = re.sub(pattern, instead, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main() -> None:
    """Write the file."""
    sections = golden() | refused(list(selftest(os.environ)))
    parts = (f"{title}\n{'=' * len(title)}\n\n{sections[title]}\n" for title in sorted(sections))
    GOLDEN.write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
