"""List attempts, show one, as text and as JSON; remove the evidence of old ones.

Attempts are those in the ledger, and folders whose attempt was never recorded. A folder is not removed if it
only has the right name, is used by a running attempt, or is elsewhere. No value is trusted: everyone who can
write `.git` could have put it there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from patchgate.apply.attempt_records import (
    KEYS,
    AttemptRecord,
    RecoveredRecord,
    ResetRecord,
    TouchedFile,
    age_of,
    list_events,
    records,
)
from patchgate.apply.evidence_folders import EvidenceFolder, contents, folders, read_evidence, remove
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import first_of, printable, quote_path
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.report.json import json_line, place_member
from patchgate.report.schema import COUNT, Schema, Shape, about, document_schema, one_of, path_key
from patchgate.report.verdict import Json, Verdict
from patchgate.report.wording import count, safe, show_path
from patchgate.values import dataclass, replace

LIST_SCHEMA = "patchgate.attempts/2"
ATTEMPT_SCHEMA = "patchgate.attempt/2"

STATES = ("applied", "accepted", "rejected", "undecided", "interrupted", "running")

KEPT = 100
"""How many attempts keep their evidence by default."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_TAIL_BYTES = 4096
_TAIL_LINES = 20
_MOST_FILES = 50
_MOST_RULES = 5
_AGE = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One attempt: its record in the ledger, if any, and its folder, if any.

    `recovered` is what `recover` did after it was interrupted: undone or landed.
    """

    id: str
    record: AttemptRecord | None
    folder: EvidenceFolder | None
    recovered: str | None = None

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.record is None:
            if self.recovered == "landed":
                return "applied"
            return "running" if self.folder is not None and self.folder.is_running else "interrupted"
        if self.record.applied:
            return "applied"
        return self.record.verdict if self.record.verdict in list(Verdict) else "undecided"

    @property
    def at(self) -> str:
        """The time of the attempt; empty if it is unknown or not a time."""
        at = self.record.at if self.record is not None else self.folder.at if self.folder is not None else ""
        return at if _TIME.fullmatch(at) else ""

    @property
    def dir(self) -> str | None:
        """The folder of its evidence; None if it is unknown or not an absolute path."""
        known = (each.dir for each in (self.record, self.folder) if each is not None)
        return next((each for each in known if each is not None and _is_absolute(each)), None)


def _is_absolute(text: str) -> bool:
    try:
        return os.path.isabs(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def list_attempts(repository: Repository) -> list[AttemptInfo]:
    """List the attempts, the newest first.

    Raises:
        UndecidedError: the folder of their evidence cannot be read.
    """
    ledger = Ledger(repository.common_dir)
    records: dict[str, AttemptRecord] = {}
    outcomes: dict[str, str] = {}
    for each in list_events(ledger):
        if isinstance(each, AttemptRecord):
            records[each.attempt] = each
        elif isinstance(each, RecoveredRecord):
            outcomes[each.attempt] = each.outcome
    by_id = {each.id: each for each in _folders(repository)}
    names = [*records, *(name for name, folder in by_id.items() if name not in records and folder.says)]
    found = [
        AttemptInfo(name, records.get(name), by_id.get(name), recovered=outcomes.get(name)) for name in names
    ]
    # The ledger is in the order of events; attempts of the same second stay in that order.
    found.sort(key=lambda each: each.at)
    return found[::-1]


def resolve_attempt(known: Sequence[AttemptInfo], text: str) -> AttemptInfo:
    """Find the attempt with an id, or with a unique beginning of one.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [each for each in known if each.id == text] or [
        each for each in known if len(text) > len("a-") and each.id.startswith(text)
    ]
    if len(found) == 1:
        return found[0]
    shown = printable(text, 60)
    if found:
        names = ", ".join(each.id for each in found[:10])
        raise UsageError(f"{shown} matches several attempts", f"name one of: {names}")
    raise UsageError(f"there is no attempt {shown}", "git patchgate attempts list shows them")


def chain_of(repository: Repository, attempt: AttemptInfo) -> list[AttemptRecord | ResetRecord]:
    """List the events of an attempt's chain, oldest first."""
    if attempt.record is None:
        return []
    chain = attempt.record.chain
    return [
        each
        for each in list_events(Ledger(repository.common_dir), chain)
        if not isinstance(each, RecoveredRecord) and each.chain == chain
    ]


def list_text(known: Sequence[AttemptInfo]) -> list[str]:
    """Write one line for each attempt."""
    width = max((len(each.id) for each in known), default=0)
    return [f"{each.id:<{width}}  {each.at or '(no time)':<20}  {_line(each)}" for each in known]


def _line(attempt: AttemptInfo) -> str:
    parts = [_state(attempt)]
    record = attempt.record
    if record is not None:
        if record.rules:
            parts.append(_rules(record.rules))
        if record.retry_of is not None:
            parts.append(f"retry {record.number} of chain {safe(record.chain, 60)}")
        if record.verdict == Verdict.ACCEPTED:
            parts.append(count(len(record.files), "file"))
    return ", ".join(parts)


def _state(attempt: AttemptInfo) -> str:
    dry = " (dry run)" if attempt.record is not None and attempt.record.dry_run else ""
    recovered = f" ({safe(attempt.recovered, 40)} by recover)" if attempt.recovered is not None else ""
    return f"{attempt.state}{dry}{recovered}"


def _rules(rules: Sequence[str]) -> str:
    return first_of(rules, _MOST_RULES, lambda rule: safe(rule, 60), " ")


def show_text(repository: Repository, attempt: AttemptInfo) -> list[str]:
    """Write one attempt as text: the patch, the result, the evidence, the ends of the logs."""
    lines = [f"attempt {attempt.id}: {_state(attempt)}", f"  when: {attempt.at or '(no time)'}"]
    if attempt.record is not None:
        lines += _record_lines(attempt.record)
        lines += [f"  chain: {line}" for line in _chain_lines(chain_of(repository, attempt))]
        lines += _file_lines(attempt.record.files)
    return lines + _evidence_lines(attempt)


def _record_lines(record: AttemptRecord) -> list[str]:
    rows: list[tuple[str, object]] = [
        ("stage", record.stage),
        ("code", record.code),
        ("rules", ", ".join(record.rules) or None),
        ("kind", record.kind),
        ("patch SHA-256", record.patch_sha256),
        ("patch id", record.patch_id),
        ("policy", record.policy),
        ("base tree", record.base),
        ("resulting tree", record.after),
        (
            "lines",
            None if record.added_lines is None else f"+{record.added_lines} -{record.removed_lines or 0}",
        ),
        ("working tree", record.work_tree),
        ("run", record.run),
    ]
    return [f"  {name}: {safe(str(value))}" for name, value in rows if value is not None]


def _chain_lines(chain: Sequence[AttemptRecord | ResetRecord]) -> list[str]:
    lines = []
    for each in chain:
        if isinstance(each, ResetRecord):
            lines.append(f"reset by {safe(each.by, 100)}: {safe(each.reason, 200)}")
        else:
            rules = f" {_rules(each.rules)}" if each.rules else ""
            what = "applied" if each.applied else safe(each.verdict, 40)
            lines.append(f"{each.attempt} {what}{rules}{'' if each.counts else ' (does not count)'}")
    return lines


def _file_lines(files: Sequence[TouchedFile]) -> list[str]:
    lines = [f"  file: {show_path(file.path)} ({_what_happened(file)})" for file in files[:_MOST_FILES]]
    more = len(files) - _MOST_FILES
    return lines + ([f"  and {count(more, 'more file')}"] if more > 0 else [])


def _what_happened(file: TouchedFile) -> str:
    if file.old is None:
        return "named" if file.new is None else "added"
    return "deleted" if file.new is None else "changed"


def _evidence_lines(attempt: AttemptInfo) -> list[str]:
    if attempt.dir is None:
        return ["  evidence: none"]
    kept = contents(attempt.dir)
    if not kept:
        return [f"  evidence: {_show_folder(attempt.dir)} (empty or gone)"]
    lines = [f"  evidence: {_show_folder(attempt.dir)}"]
    lines += [f"    {safe(quote_path(os.fsencode(name)))} ({count(size, 'byte')})" for name, size in kept]
    for name, tail in log_tails(attempt.dir, kept):
        lines.append(f"  the end of {safe(quote_path(os.fsencode(name)))}:")
        lines += [f"    | {safe(line, 400)}" for line in tail]
    return lines


def _show_folder(folder: str) -> str:
    return safe(quote_path(os.fsencode(folder)), 4096)


def log_tails(place: str, kept: Sequence[tuple[str, int]]) -> list[tuple[str, list[str]]]:
    """Return the last lines of each log that is not empty."""
    found = []
    for name, size in kept:
        if not name.startswith("logs/") or not size:
            continue
        try:
            raw = read_evidence(place, name, _TAIL_BYTES)
        except OSError:
            continue
        lines = raw.removesuffix(b"\n").split(b"\n")
        # The first line is incomplete if the file is longer than what was read.
        whole = lines[1:] if size > _TAIL_BYTES and len(lines) > 1 else lines
        found.append((name, [printable(line, 400) for line in whole[-_TAIL_LINES:]]))
    return found


@dataclass(frozen=True, slots=True)
class Pruned:
    """What prune did, or would do: evidence removed, attempts kept, and why some could not be removed."""

    removed: tuple[str, ...]
    kept: int
    warnings: tuple[str, ...]


def seconds_of(text: str) -> int:
    """Read an age, like `30d`: a number and s, m, h, d or w.

    Raises:
        UsageError: it is not an age.
    """
    match = _AGE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{printable(text, 40)} is not an age", "write a number and s, m, h, d or w, like 30d"
        )
    return int(match[1]) * _SECONDS[match[2]]


def prune(
    repository: Repository,
    *,
    keep: int | None = None,
    older_than: int | None = None,
    now: float,
    dry_run: bool = False,
) -> Pruned:
    """Remove the evidence of old attempts.

    Args:
        keep: keep the evidence of this many attempts, the newest; `KEPT` if neither is given.
        older_than: remove only what is older than this many seconds.
        now: seconds since the epoch.
        dry_run: only report what would be removed.

    Raises:
        UndecidedError: the folder of all evidence cannot be read.
    """
    ours = _ours(repository)
    if older_than is not None:
        old = [each for each in ours if age_of(each.at, now) > older_than]
    else:
        old = ours[KEPT if keep is None else keep :]
    going = [each for each in old if not each.is_running]
    removed: list[str] = []
    warnings: list[str] = []
    for each in reversed(going):
        why = None if dry_run else remove(each)
        if why is None:
            removed.append(each.id)
        else:
            warnings.append(f"the evidence of {each.id} was not removed: {printable(why)}")
    return Pruned(tuple(removed), len(ours) - len(removed), tuple(warnings))


def _folders(repository: Repository) -> list[EvidenceFolder]:
    try:
        return folders(repository.common_dir)
    except OSError as error:
        raise UndecidedError(
            f"the evidence of the attempts cannot be read: {error.strerror or error}",
            "fix the permissions of the folder patchgate/attempts in the git directory",
        ) from error


def _ours(repository: Repository) -> list[EvidenceFolder]:
    """List the folders that belong to an attempt by their marker or by the ledger, the newest first."""
    recorded = {each.attempt: each for each in records(Ledger(repository.common_dir))}
    ours: list[EvidenceFolder] = []
    for each in _folders(repository):
        record = recorded.get(each.id)
        if each.says is not None:
            ours.append(each)
        elif record is not None and record.dir == each.path:
            ours.append(replace(each, at=record.at))
    # Within a second, the ledger gives the order; an attempt that it does not have yet is the newest.
    order = {name: number for number, name in enumerate(recorded)}
    return sorted(ours, key=lambda each: (each.at, order.get(each.id, len(order))), reverse=True)


def render_pruned(pruned: Pruned, *, dry_run: bool) -> str:
    """Write in one line what prune did."""
    what = "would remove" if dry_run else "removed"
    return f"{what} the evidence of {count(len(pruned.removed), 'attempt')}; {pruned.kept} kept"


def list_json(known: Sequence[AttemptInfo]) -> str:
    """Write the list as one JSON document, ended by a line feed."""
    return json_line({"schema": LIST_SCHEMA, "attempts": [_entry(each) for each in known]})


def show_json(repository: Repository, attempt: AttemptInfo) -> str:
    """Write one attempt as one JSON document, ended by a line feed."""
    place = attempt.dir
    kept = contents(place) if place is not None else []
    value: dict[str, Json] = {
        "schema": ATTEMPT_SCHEMA,
        **_entry(attempt),
        "attempts_of_chain": [
            each.attempt for each in chain_of(repository, attempt) if isinstance(each, AttemptRecord)
        ],
        "evidence": [{"name": name, "bytes": size} for name, size in kept],
        "logs": [
            {"name": name, "tail": "\n".join(tail)}
            for name, tail in (log_tails(place, kept) if place is not None else [])
        ],
    }
    return json_line(value)


def _entry(attempt: AttemptInfo) -> dict[str, Json]:
    """Return the keys of one attempt, all of them present; null for what is unknown."""
    plain = (
        attempt.record.plain()
        if attempt.record is not None
        else {**dict.fromkeys(KEYS), "rules": [], "files": []}
    )
    if attempt.record is None:
        says = dict(attempt.folder.says or {}) if attempt.folder is not None else {}
        says["source"] = says.get("kind")
        known = ("chain", "retry_of", "source", "patch_sha256", "work_tree")
        plain |= {key: each for key in known if isinstance(each := says.get(key), str)}
    plain |= {"attempt": attempt.id, "dir": attempt.dir}
    entry: dict[str, Json] = {
        "state": attempt.state,
        "at": attempt.at or None,
        "recovery_outcome": attempt.recovered,
        "is_recorded": attempt.record is not None,
    }
    # The ledger's events keep the keys that they have always had.
    work_tree, counts = plain.pop("work_tree", None), plain.pop("counts", None)
    entry = plain | entry | {"counts_toward_retries": counts} | place_member("dir", attempt.dir)
    return entry | place_member("worktree", work_tree if isinstance(work_tree, str) else None)


_ENTRY: dict[str, Shape] = {
    "attempt": str,
    "state": one_of(*STATES),
    "is_recorded": bool,
    **dict.fromkeys(("chain", "retry_of", "verdict", "source", "patch_sha256", "patch_id"), str | None),
    **dict.fromkeys(("base", "after", "policy", "stage", "code"), str | None),
    **path_key("dir", str | None),
    **path_key("worktree", str | None),
    **dict.fromkeys(("at", "fallback_reason", "temp_path"), str | None),
    "run": about(str | None, "the work of a run that asked for it: RUN/COMPONENT/PHASE"),
    "recovery_outcome": about(str | None, "of an attempt that was interrupted: undone or landed"),
    **dict.fromkeys(("applied", "counts_toward_retries", "dry_run"), bool | None),
    **dict.fromkeys(("number", "n_hunks", "added_lines", "removed_lines"), int | None),
    "rules": [str],
    "files": [
        {
            "path": str,
            **dict.fromkeys(("old_mode", "old_oid", "new_mode", "new_oid"), str | None),
            "path_b64?": str,
        }
    ],
}


def list_schema() -> Schema:
    """Build the JSON Schema of `attempts list --format json`."""
    return document_schema(LIST_SCHEMA, "The attempts, newest first", {"attempts": [_ENTRY]})


def show_schema() -> Schema:
    """Build the JSON Schema of `attempts show --format json`."""
    shown: dict[str, Shape] = {
        **_ENTRY,
        "attempts_of_chain": [str],
        "evidence": [{"name": str, "bytes": COUNT}],
        "logs": [{"name": str, "tail": str}],
    }
    return document_schema(ATTEMPT_SCHEMA, "One attempt, its chain and its evidence", shown)
