"""How a capture is told: in lines, and as JSON (`patchgate.capture/1`) with its schema; the words alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping

from patchgate.components.baseline import Hashes
from patchgate.components.capture_run import Capture, Captured, Result
from patchgate.components.verifications import VERIFIED_REF
from patchgate.git.path import RepoPath
from patchgate.report.json import plain_json
from patchgate.report.schema import (
    COUNT,
    DRAFT,
    HEX,
    Schema,
    Shape,
    about,
    or_null,
    schema_of,
)
from patchgate.report.verdict import Json

SCHEMA = "patchgate.capture/1"
_ADDED = 20
_GOOD = {
    Result.RECORDED: "recorded in",
    Result.UNCHANGED: "unchanged, as recorded in",
    Result.VERIFIED: "verified once more, as recorded in",
}


def text(capture: Capture) -> Iterator[str]:
    """Tell it line by line; everything in it is safe for a terminal."""
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


def _first(each: Captured) -> str:
    if each.result is Result.HELD_BACK:
        return f"{each.reason}, but nothing was kept"
    return each.reason


def _closing(capture: Capture) -> Iterator[str]:
    bad = [each.component.id for each in capture.components if each.result not in _GOOD]
    if bad:
        whose = [
            each.component.id
            for each in capture.components
            if each.result in {Result.REFUSED, Result.UNDECIDED}
        ]
        word = "refused" if capture.exit_code == 1 else "undecided"
        yield f"{word}: nothing was captured, because of {', '.join(whose)}"
        return
    results = {each.result for each in capture.components}
    if Result.VERIFIED in results:
        yield (
            f"this counts wherever the note is: git push REMOTE {VERIFIED_REF}"
            if capture.has_notes
            else "this counts on this machine alone; to let it count elsewhere, "
            f"add --commit-note and push {VERIFIED_REF}"
        )
        return
    to_add = [each.component.baseline for each in capture.components if not each.is_staged]
    to_add += capture.to_add
    if to_add:
        more = f" and {len(to_add) - _ADDED} more" if len(to_add) > _ADDED else ""
        yield f"to commit it: git add {' '.join(map(_argument, to_add[:_ADDED]))}{more}"
    elif not all(each.is_committed for each in capture.components):
        yield "to commit it: git commit"
    elif results == {Result.UNCHANGED}:
        ids = " ".join(each.component.id for each in capture.components)
        again = f"git patchgate baseline capture {ids} --reverify"
        yield f"nothing to commit; to record that the tests passed today: {again}"


def _argument(path: RepoPath) -> str:
    """Write a path for a shell; one that a terminal cannot show as git quotes it."""
    return shlex.quote(path.quoted) if path.is_plain else path.quoted


def document(capture: Capture) -> str:
    """Write it as one JSON document, ended by a line feed."""
    value = {
        "schema": SCHEMA,
        "components": [_entry(each) for each in capture.components],
        "warnings": [plain_json(each) for each in capture.warnings],
    }
    return json.dumps(value) + "\n"


def _entry(each: Captured) -> Mapping[str, Json]:
    run = each.run
    counts = run.counts if run is not None else None
    return {
        "component": each.component.id,
        "result": each.result.value,
        "reason": plain_json(each.reason),
        "hint": None if each.hint is None else plain_json(each.hint),
        "baseline": each.component.baseline.quoted,
        "is_staged": each.is_staged,
        "is_committed": each.is_committed,
        "mistakes": [plain_json(line) for line in each.mistakes],
        **each.hashes.named(),
        "tests": None if counts is None else {**counts.named()},
        "seconds": None if run is None else round(run.seconds, 1),
        "tail": [] if run is None else [plain_json(line) for line in run.tail],
    }


def json_schema() -> Schema:
    """Make the JSON Schema of the document."""
    entry: Shape = {
        "component": str,
        "result": Result,
        "reason": str,
        "hint": str | None,
        "baseline": str,
        "is_staged": about(bool, "Whether the index has this very baseline."),
        "is_committed": about(bool, "Whether HEAD has this very baseline."),
        "mistakes": about([str], "The first mistakes of a contract that cannot be read."),
        **dict.fromkeys(Hashes().named(), or_null(HEX)),
        "tests": about(
            or_null(dict.fromkeys(("passed", "failed", "errors", "skipped"), COUNT)),
            "Null where the command told no numbers.",
        ),
        "seconds": float | None,
        "tail": [str],
    }
    whole = schema_of({"schema": Schema(const=SCHEMA), "components": [entry], "warnings": [str]})
    return Schema({"$schema": DRAFT, "title": SCHEMA, **whole})
