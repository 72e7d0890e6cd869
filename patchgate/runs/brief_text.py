"""What every brief has: the two fixed rules, the limits, the contract and the tests of a component.

The briefs of a run's authors and those of `agent brief` are made of these parts. All foreign text is in code
blocks that it cannot leave.
"""

from __future__ import annotations

import re

from patchgate.components.drift_gathering import files_of
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Role
from patchgate.policy.policy import Policy, Profile
from patchgate.report.wording import count

RULES_TEXT = """\
Two rules for everything below:

1. Every claim is specific and testable: it names the file, the command or the number that proves it.
2. Every function declares its side effects: what it reads, writes, sends or changes besides its result; if
   there are none, it says so."""
"""The two rules that every brief begins with."""

_READ_IT = "Read it in the working directory."
_RUNS = re.compile("`+")


def limit_lines(policy: Policy) -> list[str]:
    """Write the limits of the agent profile, and which commands must pass; one line for each."""
    limits = policy.limits(Profile.AGENT, None)
    numbers = (
        ("files", limits.max_files),
        ("added lines", limits.max_added_lines),
        ("bytes of one file", limits.max_file_bytes),
    )
    lines = [f"at most {number} {what}" for what, number in numbers if number is not None]
    lines.append("no changed modes" if not limits.allow_modes else "modes may change")
    if denied := sorted({*limits.deny_classes, *limits.deny_new_classes}):
        lines.append(f"no files of these classes: {', '.join(denied)}")
    checks = [name for name, each in policy.config.commands.items() if each.kind != "author"]
    if checks:
        lines.append(f"these commands must pass: {', '.join(checks)}")
    return lines


def contract_blocks(view: TreeView, component: Component, most: int | None = None) -> list[str]:
    """Write the contract of a component as blocks of Markdown.

    Args:
        most: a larger one is not shown; None shows any.
    """
    entry = view.entry(component.contract.raw)
    title = f"## Contract: {component.contract.quoted}"
    if entry is None or not entry.is_file:
        return [title, "It does not exist yet."]
    raw = view.objects.read(entry.oid)
    if most is not None and len(raw) > most:
        return [title, f"It has {count(len(raw), 'byte')}. {_READ_IT}"]
    return [title, fenced(raw)]


def blocks_of_tests(view: TreeView, component: Component, most: int | None = None) -> list[str]:
    """Write the tests of a component as blocks of Markdown.

    Args:
        most: so many bytes of them are shown, and the names of the others; None shows all.
    """
    parts, room = ["## Tests"], most
    for path, (role, entry) in files_of(component, view).items():
        if role is not Role.TESTS or not entry.is_file:
            continue
        raw = view.objects.read(entry.oid)
        if room is not None:
            room -= len(raw)
        has_room = room is None or room >= 0
        shown = fenced(raw) if has_room and b"\0" not in raw else _READ_IT
        parts.append(f"### {path.quoted}\n\n{shown}")
    return parts if len(parts) > 1 else [*parts, "There are none yet."]


def fenced(raw: bytes) -> str:
    """Write foreign text as a code block, whose fence is longer than any run of backticks in it."""
    text = raw.decode("utf-8", "replace")
    fence = "`" * max(3, max(map(len, _RUNS.findall(text)), default=0) + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
