"""What the hooks of a commit have shown already, so that a later hook of the same commit does not repeat it.

Some commits are judged twice: by pre-commit, and by the transaction once their message or their intent is
known. What the first hooks show is noted in the worktree's git directory, bound to the tree of the commit.
The transaction leaves it out of what it shows, never out of what it decides or records. A note that is lost
or forged costs a repetition or a warning, never a verdict: an error that stops something is always shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from patchgate.git.repository import Repository
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, Report, Verdict

_NAME = "patchgate-shown"
_MOST = 1 << 20


def note_shown(repository: Repository, report: Report, *, begins: bool) -> None:
    """Note what a hook shows; a note that cannot be written is none.

    Args:
        begins: this is the first hook of a commit; a later one adds to what is there.
    """
    keys = [*_keys(report), *map(_of_text, repository.doubts)]
    place = Path(repository.git_dir, _NAME)
    with suppress(OSError):
        if not begins and not place.exists():
            return
        with place.open("w" if begins else "a", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in keys)


def drop_shown(repository: Repository) -> None:
    """Forget what was shown for an earlier commit."""
    with suppress(OSError):
        Path(repository.git_dir, _NAME).unlink(missing_ok=True)


def without_repeats(repository: Repository, report: Report, *, stops: bool) -> Report:
    """Leave out what was shown for this commit just now, and forget it.

    Args:
        stops: git is stopped by this report, so its errors are shown.
    """
    known: frozenset[str] = frozenset()
    with suppress(OSError), Path(repository.git_dir, _NAME).open("rb") as file:
        known = frozenset(file.read(_MOST).decode("ascii", "replace").split("\n"))
    if not known:
        return report
    drop_shown(repository)
    repository.doubts[:] = [each for each in repository.doubts if _of_text(each) not in known]
    pairs = [(each, _trimmed(each, known, stops)) for each in report.changes]
    # A refusal that is only reported here (`[hooks] mode`, a draft ref) is not reported again either.
    changes = tuple(
        left for each, left in pairs if stops or left.findings or each.verdict is not Verdict.REJECTED
    )
    warnings = tuple(each for each in report.warnings if _of_text(each) not in known)
    return replace(report, changes=changes, warnings=warnings)


def _trimmed(change: ChangeVerdict, known: frozenset[str], stops: bool) -> ChangeVerdict:
    left = tuple(
        each
        for each in change.findings
        if (stops and each.level is Level.ERROR) or _of_finding(change, each) not in known
    )
    return change if len(left) == len(change.findings) else replace(change, findings=left)


def _keys(report: Report) -> Iterator[str]:
    yield from map(_of_text, report.warnings)
    for change in report.changes:
        yield from (_of_finding(change, each) for each in change.findings)


def _of_finding(change: ChangeVerdict, finding: Finding) -> str:
    # commit-msg knows no tree yet.
    tree = "" if finding.definition.stage is Stage.MESSAGE else change.change.after
    path = finding.path.raw if finding.path is not None else b""
    about = (tree, finding.rule, finding.level.value, str(finding.line), finding.message)
    return _digest([path, *(each.encode("utf-8", "surrogateescape") for each in about)])


def _of_text(text: str) -> str:
    return _digest([text.encode("utf-8", "surrogateescape")])


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
