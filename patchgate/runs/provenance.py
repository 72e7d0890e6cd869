"""Where a file came from: `FILE.meta.json` beside each file that a run made.

It is made of the ledger and the index alone, so it can be written again at any time; nothing here believes
it. Git does not see it (`info/exclude`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from patchgate import __version__
from patchgate.apply.attempt_records import AttemptRecord
from patchgate.components.contract_versions import version_of
from patchgate.components.drift_gathering import files_of
from patchgate.components.policy_tree import PolicyTree
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.component import Component, Role
from patchgate.report.json import plain_json
from patchgate.report.wording import safe
from patchgate.runs.cost import Spend, money, total
from patchgate.runs.phase_task import PhaseTask
from patchgate.runs.phases import Phase
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.record import Json

SCHEMA = "patchgate.provenance/1"
SUFFIX = b".meta.json"
"""Appended to the whole name, so that those of `a.py` and `a.ts` are two files."""
_MOST_BYTES = 256 << 10
_MOST_SOURCES = 100


class ArtifactKind(StrEnum):
    """What a file is to its component."""

    CONTRACT = "contract"
    TEST_SUITE = "test_suite"
    IMPLEMENTATION = "implementation"
    COMPOSITION = "composition"
    """An implementation that the integration of its parts has changed."""


_KINDS: Mapping[Role, ArtifactKind] = {
    Role.CONTRACT: ArtifactKind.CONTRACT,
    Role.TESTS: ArtifactKind.TEST_SUITE,
    Role.IMPLEMENTATION: ArtifactKind.IMPLEMENTATION,
}
_MADE_FROM: Mapping[ArtifactKind, tuple[Role, ...]] = {
    ArtifactKind.CONTRACT: (),
    ArtifactKind.TEST_SUITE: (Role.CONTRACT,),
    ArtifactKind.IMPLEMENTATION: (Role.CONTRACT, Role.TESTS),
    ArtifactKind.COMPOSITION: (Role.CONTRACT, Role.TESTS),
}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who made a file, for what, of what, and at what cost.

    `sha256` is the digest of the file as it landed; `made_from` maps the paths of the contract and the tests
    to their object ids then. Tokens and cost are those of all calls of the work (`RUN/COMPONENT/PHASE`).
    """

    component: str
    kind: str
    phase: str
    run: str
    attempt: str
    at: str
    sha256: str
    author: str | None = None
    model: str | None = None
    contract_version: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    made_from: Mapping[str, str] | None = None
    tool: str = "patchgate"
    tool_version: str = __version__

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        values: dict[str, Json] = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"schema": SCHEMA, **values, "made_from": dict(self.made_from or {})}

    @classmethod
    def from_plain(cls, value: object) -> Provenance | None:
        """Read what `plain` made; None if it is something else."""
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            return None
        known = {each.name: value[each.name] for each in fields(cls) if each.name in value}
        texts = ("component", "kind", "phase", "run", "attempt", "at", "sha256", "tool", "tool_version")
        optional = ("author", "model", "contract_version")
        is_text = all(isinstance(known.get(name), str) for name in texts)
        is_text &= all(isinstance(known.get(name, ""), str | None) for name in optional)
        is_counted = all(type(known.get(name, 0)) is int for name in ("input_tokens", "output_tokens"))
        is_counted &= type(known.get("cost")) in {int, float, type(None)}
        return cls(**known) if is_text and is_counted and isinstance(known.get("made_from"), dict) else None


def read_provenance(repository: Repository, path: RepoPath) -> Provenance | None:
    """Read what a run wrote about a file; None if there is nothing that can be read."""
    if repository.work_tree is None:
        return None
    place = os.path.join(os.fsencode(repository.work_tree), path.raw + SUFFIX)
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        return Provenance.from_plain(json.loads(raw)) if len(raw) <= _MOST_BYTES else None
    return None


def provenance_lines(repository: Repository, path: RepoPath) -> list[str]:
    """Say in lines where a file came from; none if no run made it."""
    found = read_provenance(repository, path)
    if found is None:
        return []
    by = "" if found.author is None else f" by {safe(found.author, 60)}"
    model = "" if found.model is None else f" ({safe(found.model, 60)})"
    cost = "" if found.cost is None else f", {money(found.cost)}"
    contract = "" if found.contract_version is None else f", contract {safe(found.contract_version, 40)}"
    work = f"{safe(found.phase, 40)} of {safe(found.component, 80)}"
    about = f"{work}, attempt {safe(found.attempt, 60)}{cost}{contract}"
    lines = [f"made{by}{model} in run {safe(found.run, 40)}: {about}"]
    place = os.path.join(os.fsencode(repository.work_tree or ""), path.raw)
    with suppress(OSError), open(place, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != found.sha256:
            lines.append("changed since")
    return lines


def write_provenance(
    repository: Repository,
    task: PhaseTask,
    content: PolicyTree,
    attempts: Iterable[AttemptRecord],
    spends: Sequence[Spend],
) -> list[str]:
    """Write what a work made beside each of its files; return a sentence for each that could not be written.

    Args:
        content: the index, with the component.
        attempts: those of the work.
        spends: those of the run.
    """
    component = content.components[task.component]
    own = [each for each in spends if (each.component, each.phase) == (task.component, task.phase)]
    made = {
        file.path: (file.new, each)
        for each in attempts
        if each.applied
        for file in each.files
        if file.new is not None and file.new.is_file
    }
    # What was changed since has another origin.
    left = {path: each for path, each in made.items() if content.view.entry(path.raw) == each[0]}
    if not left or repository.work_tree is None:
        return []
    sources = files_of(component, content.view)
    warnings = []
    try:
        _exclude(repository, [path.raw + SUFFIX for path in left])
    except OSError as error:
        return [f"where its files came from could not be written: {printable(str(error))}"]
    for path, (entry, attempt) in left.items():
        assert entry is not None
        found = _describe(task, content, component, sources, path, entry, attempt, own)
        if (warning := _write(repository, content, path, found)) is not None:
            warnings.append(warning)
    return warnings


def _describe(
    task: PhaseTask,
    content: PolicyTree,
    component: Component,
    sources: Mapping[RepoPath, tuple[Role, Entry]],
    path: RepoPath,
    entry: Entry,
    attempt: AttemptRecord,
    spends: Sequence[Spend],
) -> Provenance:
    objects = content.view.objects
    role = component.role(path) or Role.IMPLEMENTATION
    kind = _KINDS[role]
    if role is Role.IMPLEMENTATION and task.phase is Phase.INTEGRATION:
        kind = ArtifactKind.COMPOSITION
    contract = next((each for each, (role, _) in sources.items() if role is Role.CONTRACT), None)
    version = None if contract is None else version_of(objects.read(sources[contract][1].oid))
    named = [(each, found) for each, (role, found) in sources.items() if role in _MADE_FROM[kind]]
    last = spends[-1] if spends else None
    return Provenance(
        component=task.component,
        kind=kind.value,
        phase=task.phase.value,
        run=task.run,
        attempt=attempt.attempt,
        at=attempt.at,
        sha256=hashlib.sha256(objects.read(entry.oid)).hexdigest(),
        author=None if last is None else last.author,
        model=None if last is None else last.usage.model,
        contract_version=version,
        input_tokens=sum(each.usage.input_tokens for each in spends),
        output_tokens=sum(each.usage.output_tokens for each in spends),
        cost=total(spends) if any(each.usage.cost is not None for each in spends) else None,
        made_from={str(plain_json(each.quoted)): found.oid for each, found in named[:_MOST_SOURCES]},
    )


def _write(repository: Repository, content: PolicyTree, path: RepoPath, found: Provenance) -> str | None:
    """Write one; a file of somebody else is left alone."""
    place = Path(os.path.join(repository.work_tree or "", os.fsdecode(path.raw + SUFFIX)))
    shown = f"{path.quoted}{os.fsdecode(SUFFIX)}"
    is_foreign = os.path.lexists(place) and read_provenance(repository, path) is None
    if is_foreign or content.view.entry(path.raw + SUFFIX) is not None:
        return f"{shown} is not a run's, so it was left as it is"
    try:
        write_atomically(place, json.dumps(found.plain(), indent=1, sort_keys=True).encode("ascii") + b"\n")
    except OSError as error:
        return f"{shown} could not be written: {error.strerror or error}"
    return None


def _exclude(repository: Repository, names: Sequence[bytes]) -> None:
    """Add exact paths to `info/exclude`, each once, as gitignore(5) escapes them."""
    place = Path(repository.common_dir) / "info" / "exclude"
    place.parent.mkdir(exist_ok=True)
    known = place.read_bytes() if place.exists() else b"\n"
    lines = [b"/" + b"".join(_ESCAPES.get(byte, bytes([byte])) for byte in name) for name in names]
    missing = [line for line in lines if line not in known.split(b"\n") and b"\n" not in line]
    if missing:
        # Not replaced: it may be a link to a file that several repositories share.
        with place.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in ([] if known.endswith(b"\n") else [b""]) + missing))


_ESCAPES = {ord(sign): b"\\" + sign.encode() for sign in "\\*?[ "}
