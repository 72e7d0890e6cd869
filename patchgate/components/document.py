"""Lists and graphs of components as text, as JSON and as Mermaid; and the schemas of the JSON.

Decides the layout and the keys alone. Every key is always there, null where there is nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from patchgate.components.content import ComponentGraph, Dependency, Listed
from patchgate.components.names import How
from patchgate.git.quoting import printable
from patchgate.report.json import plain_json
from patchgate.report.schema import (
    COUNT,
    Schema,
    Shape,
    document_schema,
    one_of,
)
from patchgate.report.wording import safe

LIST_SCHEMA = "patchgate.components/1"
GRAPH_SCHEMA = "patchgate.component-graph/1"
_STATES = ("readable", "unreadable", "missing", "not-a-file")
_MOST_NAME = 100
_HEAD = ("COMPONENT", "PARENT", "CONTRACT", "TESTS", "IMPLEMENTATION", "BASELINE")


def list_text(components: Sequence[Listed]) -> list[str]:
    """Write one line for each component below a line of titles; no line where there is none."""
    if not components:
        return []
    rows = [_HEAD, *(_row(each) for each in components)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _row(each: Listed) -> tuple[str, ...]:
    contract = each.contract.version or each.contract.state
    baseline = "yes" if each.has_baseline else "no"
    parent = each.parent or "-"
    return each.id, parent, safe(contract, 40), str(each.tests), str(each.implementation), baseline


def list_json(content: str, components: Sequence[Listed]) -> str:
    """Write the list as one JSON document, ended by a line feed."""
    rows = [
        {
            "id": each.id,
            "parent": each.parent,
            "contract": {
                "path": plain_json(each.contract.path),
                "state": each.contract.state,
                "version": plain_json(each.contract.version),
            },
            "tests": each.tests,
            "implementation": each.implementation,
            "baseline": each.has_baseline,
        }
        for each in components
    ]
    return json.dumps({"schema": LIST_SCHEMA, "from": content, "components": rows}) + "\n"


def graph_text(graph: ComponentGraph) -> list[str]:
    """Write the tree, below each component what it depends on, and the cycles as paths at the end."""
    lines: list[str] = []
    children: dict[str | None, list[str]] = {}
    for name in sorted({*graph.parents, *graph.groups}):
        children.setdefault(graph.parents.get(name), []).append(name)
    waiting = [(name, "") for name in reversed(children.get(None, []))]
    while waiting:
        name, indent = waiting.pop()
        lines.append(f"{indent}{name}" + ("" if name in graph.parents else " (a group, no component)"))
        lines += [f"{indent}  {_told(each)}" for each in graph.dependencies if each.source == name]
        waiting += [(below, indent + "  ") for below in reversed(children.get(name, []))]
    return [*lines, *(f"cycle: {' -> '.join([*path, path[0]])}" for path in graph.cycles)]


def _told(each: Dependency) -> str:
    name = safe(each.name, _MOST_NAME)
    if each.is_external:
        return f"=> {name} (external)"
    if each.to is None:
        return f"=> {name} (no component)"
    said = [f"written {name}"] if each.how is not How.EXACT else []
    said += ["across the tree"] if each.is_across else []
    said += ["in a cycle"] if each.is_in_cycle else []
    return f"-> {each.to}" + (f" ({', '.join(said)})" if said else "")


def graph_json(graph: ComponentGraph) -> str:
    """Write the graph as one JSON document, ended by a line feed."""
    document = {
        "schema": GRAPH_SCHEMA,
        "from": graph.content,
        "components": [{"id": name, "parent": parent} for name, parent in graph.parents.items()],
        "groups": list(graph.groups),
        "dependencies": [
            {
                "from": each.source,
                "name": plain_json(each.name),
                "to": each.to,
                "how": None if each.how is None else each.how.value,
                "is_external": each.is_external,
                "is_across": each.is_across,
                "is_in_cycle": each.is_in_cycle,
            }
            for each in graph.dependencies
        ],
        "cycles": [list(path) for path in graph.cycles],
    }
    return json.dumps(document) + "\n"


def mermaid(graph: ComponentGraph) -> Iterator[str]:
    """Write the graph as a Mermaid flowchart, line by line.

    A thin line leads from parent to child, an arrow to what is depended on; it is thick in a cycle, and
    bears the name that the contract writes where that is another. Nodes have numbers, so no name is syntax.
    """
    yield "flowchart LR"
    inner = [*graph.parents, *graph.groups]
    outer = sorted({each.name for each in graph.dependencies if each.to is None})
    nodes = {name: f"c{number}" for number, name in enumerate(inner)}
    beyond = {name: f"x{number}" for number, name in enumerate(outer)}
    for name, node in nodes.items():
        yield f'  {node}["{_escaped(name)}"]' if name in graph.parents else f'  {node}(["{_escaped(name)}"])'
    for name, node in beyond.items():
        yield f'  {node}>"{_escaped(name)}"]'
    for name, parent in graph.parents.items():
        if parent is not None:
            yield f"  {nodes[parent]} --- {nodes[name]}"
    for each in graph.dependencies:
        if each.to is None:
            yield f"  {nodes[each.source]} -.-> {beyond[each.name]}"
            continue
        arrow = "==>" if each.is_in_cycle else "-->"
        label = "" if each.how is How.EXACT else f'|"{_escaped(each.name)}"|'
        yield f"  {nodes[each.source]} {arrow}{label} {nodes[each.to]}"


def _escaped(text: str) -> str:
    """Write text for Mermaid: what is not a plain letter becomes the entity of its number (`#35;`)."""
    shown = printable(text, _MOST_NAME)
    return re.sub(r"[^A-Za-z0-9_./ -]", lambda match: f"#{ord(match[0])};", shown)


_CONTENT = one_of("index", "HEAD")


def list_schema() -> Schema:
    """Build the JSON Schema of `component list --format json`."""
    row: Shape = {
        "id": str,
        "parent": str | None,
        "contract": {"path": str, "state": one_of(*_STATES), "version": str | None},
        "tests": COUNT,
        "implementation": COUNT,
        "baseline": bool,
    }
    title = "The components, with what there is of each"
    return document_schema(LIST_SCHEMA, title, {"from": _CONTENT, "components": [row]})


def graph_schema() -> Schema:
    """Build the JSON Schema of `component graph --format json`."""
    edge: Shape = {
        "from": str,
        "name": str,
        "to": str | None,
        "how": How | None,
        "is_external": bool,
        "is_across": bool,
        "is_in_cycle": bool,
    }
    graph: dict[str, Shape] = {
        "from": _CONTENT,
        "components": [{"id": str, "parent": str | None}],
        "groups": [str],
        "dependencies": [edge],
        "cycles": [[str]],
    }
    return document_schema(GRAPH_SCHEMA, "The component tree, dependencies and cycles", graph)
