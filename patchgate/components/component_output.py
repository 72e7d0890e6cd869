"""Output of `component` and `baseline`: JSON documents with their schemas, and text.

Decides layout and keys only. Every key is always present; null means that the value is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from patchgate.components.attestations import VERIFIED_REF
from patchgate.components.baseline_file import SCHEMA as BASELINE_SCHEMA
from patchgate.components.baseline_file import Hashes
from patchgate.components.baseline_status import BaselineStatus, BaselineStatuses
from patchgate.components.capture_run import Capture, CapturedComponent, CaptureResult
from patchgate.components.component_list import ComponentGraph, Dependency, ListedComponent
from patchgate.components.component_names import How
from patchgate.components.staleness import Freshness, freshness
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK
from patchgate.git.quoting import first_of, printable
from patchgate.ledger.timestamps import iso_if_any
from patchgate.policy.component import Role
from patchgate.policy.validators import COMPONENT_ID
from patchgate.report.json import finding_documents, json_line, path_list
from patchgate.report.schema import (
    COUNT,
    DRAFT,
    FINDING,
    HEX,
    MAYBE_COUNT,
    OID,
    Schema,
    Shape,
    about,
    document_schema,
    map_of,
    maybe,
    one_of,
    or_null,
    path_keys,
    schema_of,
)
from patchgate.report.verdict import Json
from patchgate.report.wording import safe

CAPTURE_SCHEMA = "patchgate.capture/2"
_ADDED = 20
_GOOD = {
    CaptureResult.RECORDED: "recorded in",
    CaptureResult.UNCHANGED: "unchanged, as recorded in",
    CaptureResult.VERIFIED: "verified again, as recorded in",
}


def capture_text(capture: Capture) -> Iterator[str]:
    """Write a capture as lines of text, safe for a terminal."""
    for each in capture.components:
        yield f"{each.component.id}: {_first(each)}"
        if each.result in _GOOD:
            yield f"  {_GOOD[each.result]} {each.component.baseline.quoted}"
            yield f"  {each.hashes.shown}"
        yield from (f"    {line}" for line in each.mistakes)
        if each.run is not None:
            yield from (f"    {line}" for line in each.run.tail)
        if each.hint is not None:
            yield f"  help: {each.hint}"
    yield from _closing(capture)


def _first(each: CapturedComponent) -> str:
    if each.result is CaptureResult.NOT_RECORDED:
        return f"{each.reason}, but nothing was recorded"
    return each.reason


def _closing(capture: Capture) -> Iterator[str]:
    bad = [each.component.id for each in capture.components if each.result not in _GOOD]
    if bad:
        whose = [
            each.component.id
            for each in capture.components
            if each.result in {CaptureResult.REFUSED, CaptureResult.UNDECIDED}
        ]
        word = "refused" if capture.exit_code == 1 else "undecided"
        yield f"{word}: nothing was captured, because of {', '.join(whose)}"
        return
    results = {each.result for each in capture.components}
    if CaptureResult.VERIFIED in results:
        yield (
            f"this counts wherever the note is pushed: git push REMOTE {VERIFIED_REF}"
            if capture.has_notes
            else "this counts only on this machine; for other machines, "
            f"add --commit-note and push {VERIFIED_REF}"
        )
        return
    to_add = [each.component.baseline for each in capture.components if not each.is_staged]
    to_add += capture.to_add
    if to_add:
        yield f"to commit it: git add {first_of(to_add, _ADDED, lambda path: path.in_shell, ' ')}"
    elif not all(each.is_committed for each in capture.components):
        yield "to commit it: git commit"
    elif results == {CaptureResult.UNCHANGED}:
        ids = " ".join(each.component.id for each in capture.components)
        again = f"git patchgate baseline capture {ids} --reverify"
        yield f"nothing to commit; to record that the tests passed today: {again}"


def capture_json(capture: Capture) -> str:
    """Write it as one JSON document, ended by a line feed."""
    value: Json = {
        "schema": CAPTURE_SCHEMA,
        "components": [_capture_entry(each) for each in capture.components],
        "warnings": list(capture.warnings),
    }
    return json_line(value)


def _capture_entry(each: CapturedComponent) -> Mapping[str, Json]:
    run = each.run
    counts = run.counts if run is not None else None
    return {
        "component": each.component.id,
        "result": each.result.value,
        "reason": each.reason,
        "hint": each.hint,
        "baseline": each.component.baseline.quoted,
        "is_staged": each.is_staged,
        "is_committed": each.is_committed,
        "mistakes": list(each.mistakes),
        **each.hashes.named(),
        "tests": None if counts is None else {**counts.named()},
        "seconds": None if run is None else round(run.seconds, 1),
        "tail": [] if run is None else list(run.tail),
    }


def capture_schema() -> Schema:
    """Make the JSON Schema of the document."""
    entry: Shape = {
        "component": str,
        "result": CaptureResult,
        "reason": str,
        "hint": str | None,
        "baseline": str,
        "is_staged": about(bool, "Whether the index has this very baseline."),
        "is_committed": about(bool, "Whether HEAD has this very baseline."),
        "mistakes": about([str], "The first mistakes of a contract that cannot be read."),
        **dict.fromkeys(Hashes().named(), or_null(HEX)),
        "tests": about(
            or_null(dict.fromkeys(("passed", "failed", "errors", "skipped"), COUNT)),
            "Null if the command reported no counts.",
        ),
        "seconds": float | None,
        "tail": [str],
    }
    whole = schema_of({"schema": Schema(const=CAPTURE_SCHEMA), "components": [entry], "warnings": [str]})
    return Schema({"$schema": DRAFT, "title": CAPTURE_SCHEMA, **whole})


def baseline_schema() -> Schema:
    """Return the JSON Schema of a baseline."""
    file: Shape = {
        "mode": one_of(REGULAR, EXECUTABLE, SYMLINK, GITLINK),
        "oid": OID,
        "role": Role,
        "sha256": about(maybe(HEX), "of the content; null for a gitlink"),
    }
    by_path = "by path; one that is not plain is written as git quotes it"
    baseline: dict[str, Shape] = {
        "component": Schema(type="string", pattern=f"^{COMPONENT_ID}$"),
        "files": about(map_of(file), by_path, propertyNames={"minLength": 1}),
    }
    schema = document_schema(BASELINE_SCHEMA, "The baseline of a component", baseline)
    # The file is written with its keys in this order.
    return Schema(schema, required=sorted(schema["required"]))


BASELINES_SCHEMA = "patchgate.baselines/2"


def baselines_json(baselines: BaselineStatuses) -> str:
    """Write it as one JSON document, ended by a line feed."""
    value: dict[str, Json] = {
        "schema": BASELINES_SCHEMA,
        "commit": baselines.commit,
        "window_days": baselines.window,
        "has_errors": baselines.has_errors,
        "components": [_component(each, baselines) for each in baselines.components],
        **path_list("orphans", baselines.orphans),
    }
    return json_line(value)


def _component(shown: BaselineStatus, baselines: BaselineStatuses) -> dict[str, Json]:
    status, verified = shown.status, shown.verified
    state = reason = days = at = where = commit = None
    changed: list[str] = []
    if verified is not None:
        state = freshness(verified, baselines.window, baselines.now).value
        reason, days, changed = verified.unknown, verified.days(baselines.now), verified.unlike
        where, commit = verified.verified_by, verified.commit
        if verified.seconds is not None:
            at = iso_if_any(verified.seconds)
    value: dict[str, Json] = {
        "id": status.component.id,
        "parent": status.component.parent,
        "baseline": None if status.baseline is None else status.component.baseline.quoted,
        **status.hashes.named(),
        "drifted": None if status.baseline is None else status.has_drifted,
        "staleness": state,
        "reason": reason,
        "verified_at": at,
        "verified_source": where,
        "verified_commit": commit,
        "age_days": days,
        "dependencies": list(status.dependencies),
        "changed_dependencies": [*changed],
        "tests": None if shown.results is None or shown.results.tests is None else {**shown.results.tests},
        "tests_at": None if shown.results is None else iso_if_any(shown.results.seconds),
        "tests_source": None if shown.results is None else shown.results.where,
        "findings": finding_documents(shown.findings),
    }
    return value


def baselines_schema() -> Schema:
    """Build the JSON Schema of `baseline status --format json`."""
    tests = or_null(dict.fromkeys(("passed", "failed", "errors", "skipped"), COUNT))
    component: Shape = {
        "id": str,
        "parent": str | None,
        "baseline": str | None,
        **dict.fromkeys(Hashes().named(), or_null(HEX)),
        "drifted": bool | None,
        "staleness": Freshness | None,
        "reason": str | None,
        "verified_at": str | None,
        "verified_source": one_of("commit", "note", "ledger", None),
        "verified_commit": str | None,
        "age_days": about(MAYBE_COUNT, "since it was verified"),
        "dependencies": [str],
        "changed_dependencies": [str],
        "tests": about(
            tests, "of the newest run on the files that the baseline records; null if no counts are known"
        ),
        "tests_at": str | None,
        "tests_source": one_of("note", "ledger", None),
        "findings": [FINDING],
    }
    baselines: dict[str, Shape] = {
        "commit": str,
        "window_days": COUNT,
        "has_errors": bool,
        "components": [component],
        **path_keys("orphans"),
    }
    return document_schema(BASELINES_SCHEMA, "The status of the baselines", baselines)


LIST_SCHEMA = "patchgate.components/1"
GRAPH_SCHEMA = "patchgate.component-graph/2"
_STATES = ("readable", "unreadable", "missing", "not-a-file")
_MOST_NAME = 100
_HEAD = ("COMPONENT", "PARENT", "CONTRACT", "TESTS", "IMPLEMENTATION", "BASELINE")


def list_text(components: Sequence[ListedComponent]) -> list[str]:
    """Write a table of the components; no line if there are none."""
    if not components:
        return []
    rows = [_HEAD, *(_row(each) for each in components)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _row(each: ListedComponent) -> tuple[str, ...]:
    contract = each.contract.version or each.contract.state
    baseline = "yes" if each.has_baseline else "no"
    parent = each.parent or "-"
    return each.id, parent, safe(contract, 40), str(each.tests), str(each.implementation), baseline


def list_json(content: str, components: Sequence[ListedComponent]) -> str:
    """Write the list as one JSON document, ended by a line feed."""
    rows = [
        {
            "id": each.id,
            "parent": each.parent,
            "contract": {
                "path": each.contract.path,
                "state": each.contract.state,
                "version": each.contract.version,
            },
            "tests": each.tests,
            "implementation": each.implementation,
            "baseline": each.has_baseline,
        }
        for each in components
    ]
    return json_line({"schema": LIST_SCHEMA, "from": content, "components": rows})


def graph_text(graph: ComponentGraph) -> list[str]:
    """Write the tree with each component's dependencies, and the cycles at the end."""
    lines: list[str] = []
    children: dict[str | None, list[str]] = {}
    for name in sorted({*graph.parents, *graph.groups}):
        children.setdefault(graph.parents.get(name), []).append(name)
    waiting = [(name, "") for name in reversed(children.get(None, []))]
    while waiting:
        name, indent = waiting.pop()
        lines.append(f"{indent}{name}" + ("" if name in graph.parents else " (a group, not a component)"))
        lines += [f"{indent}  {_told(each)}" for each in graph.dependencies if each.source == name]
        waiting += [(below, indent + "  ") for below in reversed(children.get(name, []))]
    return [*lines, *(f"cycle: {' -> '.join([*path, path[0]])}" for path in graph.cycles)]


def _told(each: Dependency) -> str:
    name = safe(each.name, _MOST_NAME)
    if each.is_external:
        return f"=> {name} (external)"
    if each.to is None:
        return f"=> {name} (unknown component)"
    said = [f"written as {name}"] if each.how is not How.EXACT else []
    said += ["across the component tree"] if each.is_across else []
    said += ["in a cycle"] if each.is_in_cycle else []
    return f"-> {each.to}" + (f" ({', '.join(said)})" if said else "")


def graph_json(graph: ComponentGraph, jobs: Mapping[str, Json]) -> str:
    """Write the graph and the jobs of its components as one JSON document, ended by a line feed."""
    document: Json = {
        "schema": GRAPH_SCHEMA,
        "from": graph.content,
        "components": [{"id": name, "parent": parent} for name, parent in graph.parents.items()],
        "groups": list(graph.groups),
        "dependencies": [
            {
                "from": each.source,
                "name": each.name,
                "to": each.to,
                "matched_by": None if each.how is None else each.how.value,
                "is_external": each.is_external,
                "crosses_subtrees": each.is_across,
                "is_in_cycle": each.is_in_cycle,
            }
            for each in graph.dependencies
        ],
        "cycles": [list(path) for path in graph.cycles],
        **jobs,
    }
    return json_line(document)


def mermaid(graph: ComponentGraph) -> Iterator[str]:
    """Write the graph as a Mermaid flowchart, line by line.

    A thin line leads from parent to child, an arrow to what is depended on; it is thick in a cycle, and
    is labelled with the contract's name for it if that differs. Nodes have numbers, so no name is syntax.
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
    """Write text for Mermaid: special characters become numeric entities (`#35;`)."""
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
    title = "The components, each with its contract, files and baseline"
    return document_schema(LIST_SCHEMA, title, {"from": _CONTENT, "components": [row]})


def graph_schema(jobs: Mapping[str, Shape]) -> Schema:
    """Build the JSON Schema of `component graph --format json`, with the keys of the jobs."""
    edge: Shape = {
        "from": str,
        "name": str,
        "to": str | None,
        "matched_by": How | None,
        "is_external": bool,
        "crosses_subtrees": bool,
        "is_in_cycle": bool,
    }
    graph: dict[str, Shape] = {
        "from": _CONTENT,
        "components": [{"id": str, "parent": str | None}],
        "groups": [str],
        "dependencies": [edge],
        "cycles": [[str]],
        **jobs,
    }
    return document_schema(GRAPH_SCHEMA, "The component tree, dependencies and cycles", graph)
