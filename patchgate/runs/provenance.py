"""Where a file came from: `FILE.meta.json` beside each file that a run made.

It is made of the ledger and the index alone, so it can be written again at any time. Nothing here believes
it: what is printed of it is compared with the ledger, so the version of the contract and what the file was
made from, of which the ledger has nothing, are not printed. Git does not see it (`info/exclude`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from io import BufferedReader
from pathlib import Path

from patchgate import __version__
from patchgate.apply.attempt_records import AttemptRecord, find
from patchgate.components.contract_versions import version_of
from patchgate.components.drift_gathering import files_of
from patchgate.components.policy_tree import PolicyTree
from patchgate.errors import PatchgateError
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.working_tree import FILE
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import Component, Role
from patchgate.report.json import plain_json
from patchgate.report.wording import safe, show_path
from patchgate.runs.author import roles_of
from patchgate.runs.cost import Spend, is_amount, money, recorded_spends, total
from patchgate.runs.phase_task import PhaseTask
from patchgate.runs.phases import Phase
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.record import Json
from patchgate.values import dataclass, fields

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
        is_counted &= known.get("cost") is None or is_amount(known["cost"])
        return cls(**known) if is_text and is_counted and isinstance(known.get("made_from"), dict) else None


def read_provenance(repository: Repository, path: RepoPath) -> Provenance | None:
    """Read what a run wrote about a file; None if there is nothing that can be read."""
    raw = _read_beside(repository, path)
    with suppress(ValueError, RecursionError):
        return Provenance.from_plain(json.loads(raw or b""))
    return None


def _read_beside(repository: Repository, path: RepoPath) -> bytes | None:
    """Read what is beside a file; None if that is no small regular file."""
    with suppress(OSError), open_regular(repository, path.raw + SUFFIX) as file:
        raw = file.read(_MOST_BYTES + 1)
        return raw if len(raw) <= _MOST_BYTES else None
    return None


def open_regular(repository: Repository, name: bytes) -> BufferedReader:
    """Open a regular file of the working tree; follows no link, waits for no FIFO.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    descriptor = os.open(os.path.join(os.fsencode(repository.work_tree or ""), name), FILE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return open(descriptor, "rb")


def provenance_lines(repository: Repository, path: RepoPath) -> list[str]:
    """Say in lines where a file came from; none if no run made it."""
    found = None if repository.work_tree is None else read_provenance(repository, path)
    if found is None:
        return []
    by = "" if found.author is None else f" by {safe(found.author, 60)}"
    model = "" if found.model is None else f" ({safe(found.model, 60)})"
    cost = "" if found.cost is None else f", {money(found.cost)}"
    kind = safe(found.kind.replace("_", " "), 40)
    work = f"{kind} of {safe(found.component, 80)} in the phase {safe(found.phase, 40)}"
    about = f"{work}, attempt {safe(found.attempt, 60)}{cost}"
    lines = [f"made{by}{model} in run {safe(found.run, 40)}: {about}"]
    try:
        is_confirmed = _is_confirmed(repository, path, found)
    except PatchgateError:
        is_confirmed = False
    if not is_confirmed:
        lines.append("the ledger does not confirm it")
    try:
        with open_regular(repository, path.raw) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != found.sha256:
                lines.append("changed since")
    except FileNotFoundError:
        lines.append("removed since")
    except OSError:
        lines.append("changed since")
    return lines


def provenance_of_attempt(repository: Repository, attempt: AttemptRecord) -> list[str]:
    """Say where the files of an attempt came from, if that is written beside them."""
    lines = []
    for file in attempt.files:
        found = None if repository.work_tree is None else read_provenance(repository, file.path)
        if found is not None and found.attempt == attempt.attempt:
            lines += [f"{show_path(file.path)}: {line}" for line in provenance_lines(repository, file.path)]
    return lines


def _is_confirmed(repository: Repository, path: RepoPath, found: Provenance) -> bool:
    """Return whether the ledger has the attempt, the file as it landed, and the calls that it names."""
    attempt = find(Ledger(repository.common_dir), found.attempt)
    work = f"{found.run}/{found.component}/{found.phase}"
    if attempt is None or not attempt.applied or attempt.attempt != found.attempt:
        return False
    if (attempt.run, attempt.at) != (work, found.at) or found.kind not in _kinds_of(found.phase):
        return False
    landed = next((file.new for file in attempt.files if file.path == path), None)
    if landed is None:
        return False
    with Objects(repository) as objects:
        if hashlib.sha256(objects.read(landed.oid)).hexdigest() != found.sha256:
            return False
    calls = _calls_of(recorded_spends(repository.common_dir, found.run), found.component, found.phase)
    told = (found.author, found.model, found.input_tokens, found.output_tokens, found.cost)
    # Later calls of the same work may have left this file as it was; one at least has made it.
    return any(_spent(calls[:number]) == told for number in range(min(1, len(calls)), len(calls) + 1))


def _kinds_of(phase: str) -> set[str]:
    """Return what a file can be that a phase has made."""
    known = [each for each in Phase if each.value == phase]
    return {_kind(role, each).value for each in known for role in roles_of(each)}


def _kind(role: Role, phase: Phase) -> ArtifactKind:
    is_composed = role is Role.IMPLEMENTATION and phase is Phase.INTEGRATION
    return ArtifactKind.COMPOSITION if is_composed else _KINDS[role]


def _calls_of(spends: Iterable[Spend], component: str, phase: str) -> list[Spend]:
    """Choose the calls of a work; what a person has added is none."""
    own = [each for each in spends if each.author is not None]
    return [each for each in own if (each.component, each.phase.value) == (component, phase)]


def _spent(calls: Sequence[Spend]) -> tuple[str | None, str | None, int, int, float | None]:
    """Add up calls: the author and the model of the last, the tokens of all, and the cost as far as known."""
    return (
        calls[-1].author if calls else None,
        calls[-1].usage.model if calls else None,
        sum(each.usage.input_tokens for each in calls),
        sum(each.usage.output_tokens for each in calls),
        total(calls) if any(each.usage.cost is not None for each in calls) else None,
    )


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
    calls = _calls_of(spends, task.component, task.phase.value)
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
    own = {path: each for path, each in left.items() if _is_ours(repository, content, path)}
    warnings = [f"{_shown(path)} is not a run's, so it was left as it is" for path in left if path not in own]
    try:
        _exclude(repository, [path.raw + SUFFIX for path in own])
    except OSError as error:
        return [*warnings, f"where its files came from could not be written: {printable(str(error))}"]
    for path, (entry, attempt) in own.items():
        assert entry is not None
        found = _describe(task, content, component, sources, path, entry, attempt, calls)
        if (warning := _write(repository, path, found)) is not None:
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
    calls: Sequence[Spend],
) -> Provenance:
    objects = content.view.objects
    role = component.role(path) or Role.IMPLEMENTATION
    kind = _kind(role, task.phase)
    contract = next((each for each, (role, _) in sources.items() if role is Role.CONTRACT), None)
    version = None if contract is None else version_of(objects.read(sources[contract][1].oid))
    named = [(each, found) for each, (role, found) in sources.items() if role in _MADE_FROM[kind]]
    author, model, input_tokens, output_tokens, cost = _spent(calls)
    return Provenance(
        component=task.component,
        kind=kind.value,
        phase=task.phase.value,
        run=task.run,
        attempt=attempt.attempt,
        at=attempt.at,
        sha256=hashlib.sha256(objects.read(entry.oid)).hexdigest(),
        author=author,
        model=model,
        contract_version=version,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=cost,
        made_from={str(plain_json(each.quoted)): found.oid for each, found in named[:_MOST_SOURCES]},
    )


def _is_ours(repository: Repository, content: PolicyTree, path: RepoPath) -> bool:
    """Return whether what is beside a file may be replaced: nothing, or what a run wrote, also if damaged.

    Damaged is what is no JSON any more, where git was told to ignore just this path.
    """
    name = path.raw + SUFFIX
    if content.view.entry(name) is not None:
        return False
    if not os.path.lexists(os.path.join(os.fsencode(repository.work_tree or ""), name)):
        return True
    raw = _read_beside(repository, path)
    if raw is None or SCHEMA.encode() in raw:
        return raw is not None
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return _excluding(name) in _excluded(repository).split(b"\n")
    return False


def _shown(path: RepoPath) -> str:
    return f"{path.quoted}{os.fsdecode(SUFFIX)}"


def _write(repository: Repository, path: RepoPath, found: Provenance) -> str | None:
    place = Path(os.path.join(repository.work_tree or "", os.fsdecode(path.raw + SUFFIX)))
    try:
        write_atomically(place, json.dumps(found.plain(), indent=1, sort_keys=True).encode("ascii") + b"\n")
    except OSError as error:
        return f"{_shown(path)} could not be written: {error.strerror or error}"
    return None


def _exclude(repository: Repository, names: Iterable[bytes]) -> None:
    """Add exact paths to `info/exclude`, each once."""
    known = _excluded(repository)
    lines = [line for line in map(_excluding, names) if b"\n" not in line]
    missing = [line for line in lines if line not in known.split(b"\n")]
    if missing:
        if not known.endswith(b"\n") and known:
            missing.insert(0, b"")
        # Not replaced: it may be a link to a file that several repositories share.
        place = _exclude_file(repository)
        place.parent.mkdir(exist_ok=True)
        with place.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in missing))


def _exclude_file(repository: Repository) -> Path:
    return Path(repository.common_dir) / "info" / "exclude"


def _excluded(repository: Repository) -> bytes:
    place = _exclude_file(repository)
    return place.read_bytes() if place.exists() else b""


def _excluding(name: bytes) -> bytes:
    """Write the line that excludes an exact path, as gitignore(5) escapes it."""
    return b"/" + b"".join(_ESCAPES.get(byte, bytes([byte])) for byte in name)


_ESCAPES = {ord(sign): b"\\" + sign.encode() for sign in "\\*?[ "}
