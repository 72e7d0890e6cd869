"""Let git apply a patch in private and read the effect back; turn faults of a patch into findings.

`git apply --cached` works on a private index, which contains only the touched paths, and a private object
directory. Only the resulting index is trusted, not the exit code or the output (measured: `--numstat` shows
one side of a rename; the exit code is 0 even if a section was skipped).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from patchgate.errors import UndecidedError
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, fill_index
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository, failed
from patchgate.patches.hunk_mismatch import render_mismatch
from patchgate.patches.patch_hunks import restore_carriage_returns
from patchgate.patches.patch_model import Fault, PatchFix
from patchgate.patches.patch_parser import parse, strip_carriage_returns
from patchgate.process.child import Child, Completed
from patchgate.report.rules import Stage
from patchgate.report.verdict import ChangeVerdict, Finding, Fix, Json
from patchgate.values import dataclass, field, replace

_MISMATCHES = {"hunk-mismatch", "hunk-ambiguous", "eol-mixed"}

_APPLY = (
    "-c",
    "core.looseCompression=0",
    "apply",
    "--cached",
    "-p1",
    "--whitespace=nowarn",
    "--no-ignore-whitespace",
)
COMMAND = " ".join(("git", *_APPLY))
"""The command line that applies a patch; the patch is its standard input."""
_TAIL = 10
# A component `.` of a name in a header line: after a slash, or at the start of a rename's name.
_DOTTED = re.compile(rb'(/|^(?:rename|copy) (?:from|to) "?)(?:\./)+', re.MULTILINE)
# Measured: 690 MB for a patch of 200 MB; four times that stays below what a machine has.
_MEMORY = 4 << 30


@dataclass(frozen=True, slots=True)
class Effect:
    """What git made: the changed files, which of them it calls binary, and its last lines on stderr.

    `refused` is true if git did not accept the patch; then nothing changed. `code` is git's exit code.
    """

    files: list[FileChange] = field(default_factory=list)
    binary: set[int] = field(default_factory=set)
    refused: bool = False
    said: tuple[str, ...] = ()
    code: int = 0


class _GitChild:
    """A git process that runs in parallel with the caller; a context manager that ends it."""

    _child: Child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """End git, if it still runs; doing it twice changes nothing."""
        self._child.end()


class GitApply(_GitChild):
    """git applies a patch to `entries` in private, while the caller plans.

    Args:
        entries: every touched path with its entry (None: nothing).
        patch: the very bytes that are judged.
        reverse: git applies the patch in reverse.

    Raises:
        UndecidedError: git itself failed; a refusal of the patch is not a failure.
    """

    def __init__(
        self,
        repository: Repository,
        store: PrivateStore,
        entries: Mapping[RepoPath, Entry | None],
        patch: bytes,
        *,
        reverse: bool = False,
    ) -> None:
        self._repository = repository
        self._variables = {**store.variables, "GIT_INDEX_FILE": store.index_file}
        self._base = fill_index(repository, entries, self._variables)
        arguments = (*_APPLY, "-R") if reverse else _APPLY
        self._child = repository.child(*arguments, stdin=patch, variables=self._variables, memory=_MEMORY)

    def read(self, objects: Objects, detail: Detail, counted: Callable[[int], None] | None = None) -> Effect:
        """Wait for git, and read back what became of the entries.

        Args:
            counted: is called now and then, with the number of files whose lines are read.

        Raises:
            UndecidedError: git took too long, or its diff failed.
        """
        applied = self._finish()
        said = _last_words(applied.err)
        if _is_refused(applied):
            return Effect(refused=True, said=said, code=applied.code)
        command = ("diff-index", "--cached")
        files, binary = read_difference(
            self._repository, objects, command, [self._base], detail, self._variables, counted
        )
        return Effect(files, binary, said=said)

    def last_words(self) -> Effect | None:
        """Wait for git, and return only what it said; None if git itself failed."""
        try:
            applied = self._finish()
        except UndecidedError:
            return None
        return Effect(refused=_is_refused(applied), said=_last_words(applied.err), code=applied.code)

    def is_accepted(self) -> bool:
        """Wait for git, and return whether it accepted the patch.

        Raises:
            UndecidedError: git took too long, or needs more memory than patchgate allows.
        """
        return not _is_refused(self._finish())

    def _finish(self) -> Completed:
        while self._child.out.read(1 << 16):
            pass
        applied = self._child.finish()
        if _is_unable(applied):
            raise failed("apply", applied)
        return applied


def _is_refused(applied: Completed) -> bool:
    return applied.code != 0 or b"error:" in applied.err


def _is_unable(applied: Completed) -> bool:
    """Return whether git itself failed (no memory, disk full, killed), which says nothing about the patch.

    What is wrong with a patch, git reports as `error:`.
    """
    hindrances = (b"ut of memory", b"fatal:", b"unable to write", b"o space left", b"ile too large")
    return applied.code < 0 or any(each in applied.err for each in hindrances)


def _last_words(stderr: bytes) -> tuple[str, ...]:
    lines = [line for line in stderr.split(b"\n") if line.strip()]
    return tuple(printable(line, 200) for line in lines[-_TAIL:])


def find_differences(files: Sequence[FileChange], planned: Mapping[RepoPath, Entry | None]) -> list[RepoPath]:
    """List the paths where git's result differs from the plan; `planned` has every path that changes."""
    made = {file.path: file.new for file in files}
    wrong = [path for path, entry in planned.items() if path not in made or made[path] != entry]
    return sorted(wrong + [path for path in made if path not in planned])


class PatchId(_GitChild):
    """`git patch-id --stable` of a patch, computed while the caller works.

    `./a` and `a` are one file, so they have one id.
    """

    def __init__(self, repository: Repository, patch: bytes) -> None:
        self._size = len(repository.zero_oid)
        plain = _with_plain_names(strip_carriage_returns(patch))
        self._child = repository.child("patch-id", "--stable", stdin=plain)

    def read(self) -> str | None:
        """Wait for the id; None if the patch has none (no hunks).

        Raises:
            UndecidedError: git failed.
        """
        said = b""
        while data := self._child.out.read(1 << 16):
            said = said or data
        ended = self._child.finish()
        if ended.code != 0:
            raise failed("patch-id", ended)
        word = said.split(b" ")[0].decode("ascii")
        return word if len(word) == self._size else None


def _with_plain_names(patch: bytes) -> bytes:
    """Remove the components `.` from the names in a patch's headers; its hunks are not changed."""
    if b"./" not in patch or not _DOTTED.search(patch):
        return patch
    parsed = parse(patch)
    if isinstance(parsed, tuple):
        return patch
    pieces: list[bytes] = []
    for section in parsed.sections:
        body = section.rows[0][6] if section.rows else section.end
        headers = _DOTTED.sub(rb"\1", parsed.raw[section.start : body])
        pieces += (headers, parsed.raw[body : section.end])
    return b"".join(pieces)


def finding_of(fault: Fault, path: RepoPath | None = None, also: str | None = None) -> Finding:
    """Turn a fault (of a file, if it is known) into a finding; `also` is another hint for a mismatch."""
    where = "" if fault.line is None else f"patch line {fault.line}: "
    hint = fault.hint if also is None or fault.rule not in _MISMATCHES else f"{fault.hint}; {also}"
    fix = None if fault.fix is None else Fix("mechanical", *fault.fix)
    notes = tuple(line.strip() for line in render_mismatch(fault)[1:-1]) if fault.rule in _MISMATCHES else ()
    line = fault.details.get("file_line")
    return Finding.of(
        fault.rule,
        where + fault.message,
        path,
        line=line if isinstance(line, int) and line > 0 else None,
        side="old",
        hint=hint,
        details={**fault.details, "patch_line": fault.details.get("patch_line", fault.line)},
        fix=fix,
        notes=notes,
    )


def with_crlf_fixes(verdict: ChangeVerdict) -> ChangeVerdict:
    """Report that a patch was read without the CR of its lines; fixes get a CR, like the sent patch."""
    found = tuple(
        each if each.fix is None else replace(each, fix=_with_returns(each.fix)) for each in verdict.findings
    )
    if not any(each.rule == "eol-adapted" for each in found):
        message = "every line of the patch ends in CR LF; it was read without the CR"
        found = (*found, finding_of(Fault("eol-adapted", 1, message, hint="nothing to do")))
    return replace(verdict, findings=found)


def _with_returns(fix: Fix) -> Fix:
    restored = restore_carriage_returns(
        PatchFix(fix.patch_line, fix.replace_with, fix.last_patch_line or fix.patch_line)
    )
    return fix if restored is None else replace(fix, replace_with=restored.text)


def report_git_refusal(said: Sequence[str]) -> Finding:
    """Report that git refuses a patch that our own reading accepted."""
    last = said[-1] if said else "it gave no reason"
    return Finding.of(
        "git-refused",
        f"git apply refuses the patch: {last}",
        hint="fix what git names, or make the patch again with git diff",
        details={"stderr": list(said)},
    )


def add_git_output(findings: Sequence[Finding], effect: Effect | None) -> list[Finding]:
    """Add git's command line, exit code and last lines to the first finding of git's check."""
    found = list(findings)
    first = next((at for at, each in enumerate(found) if each.definition.stage is Stage.GIT_CHECK), None)
    if effect is not None and first is not None:
        said: Json = {"command": COMMAND, "exit_code": effect.code, "stderr": list(effect.said)}
        found[first] = replace(found[first], details={**found[first].details, "git": said})
    return found


def report_wrong_effect(paths: Sequence[RepoPath]) -> Finding:
    """Report that git's result differs from what the patch says."""
    named = ", ".join(path.quoted for path in paths[:5]) + (", …" if len(paths) > 5 else "")
    return Finding.of(
        "effect-mismatch",
        f"git's result for {named} differs from what the patch says",
        paths[0],
        hint="make the patch again from the current files: git diff",
        details={"actual": paths[:100]},
    )
