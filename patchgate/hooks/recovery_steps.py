"""The commands that undo what git did before a refusal; and leaving out what was shown already."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from patchgate.errors import UndecidedError
from patchgate.git.new_commits import BRANCHES, BranchUpdate, ref_value
from patchgate.git.operations import Operation, is_past_aborting, operation_in_progress
from patchgate.git.quoting import in_shell
from patchgate.git.repository import Repository
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, RecoveryStep, Report, Verdict
from patchgate.values import replace

_MOVED_FILES = frozenset({"merge", "pull", "reset", "checkout", "switch", "revert", "cherry-pick"})
_UNLIKE_INDEX = ("diff-files", "--ignore-submodules=all", "--name-only", "-z")
_OF_OPERATIONS = frozenset({"", "rebase", "am", "cherry-pick", "revert", "merge", "pull", "commit"})
_ABORT = {
    Operation.REBASE: RecoveryStep("undo the rebase:", "git rebase --abort"),
    Operation.AM: RecoveryStep("undo what git am has applied:", "git am --abort"),
    Operation.CHERRY_PICK: RecoveryStep("undo the cherry-pick:", "git cherry-pick --abort"),
    Operation.REVERT: RecoveryStep("undo the revert:", "git revert --abort"),
    Operation.MERGE: RecoveryStep("abort the merge (this drops resolved conflicts):", "git merge --abort"),
}
_CONTINUE = RecoveryStep(
    "or fix the last commit (git commit --amend), if that is the bad one, and continue:",
    "git rebase --continue",
)


def recovery_steps(repository: Repository, update: BranchUpdate, command: str) -> tuple[RecoveryStep, ...]:
    """Return the commands that undo a refused update, by the operation in progress.

    Git has often changed files and index before it runs the hook. Each command works alone, and keeps other
    staged or edited changes. Where git changed nothing (a commit, a branch by name) there is none.

    Args:
        repository: where it happened.
        update: the branch that was refused.
        command: the running git command, empty if unknown.
    """
    # For a command outside the operation in progress (`git branch x`), that is not aborted.
    operation = operation_in_progress(repository) if command in _OF_OPERATIONS else None
    if operation is Operation.REBASE and is_past_aborting(repository):
        branch = in_shell(update.ref.removeprefix(BRANCHES), "BRANCH")
        return (
            RecoveryStep(
                "end the rebase and return to the branch:", f"git rebase --quit && git checkout -q {branch}"
            ),
        )
    if operation is not None:
        return (_ABORT[operation], *((_CONTINUE,) if operation is Operation.REBASE else ()))
    head = ref_value(repository, "HEAD")
    if command not in _MOVED_FILES or head is None:
        return ()
    try:
        way = _back(repository, head, update.new)
    except UndecidedError:
        # No advice is better than advice from an incomplete listing.
        return ()
    return () if way is None else (RecoveryStep("git has already changed files or index; undo that:", way),)


def _back(repository: Repository, head: str, new: str) -> str | None:
    """Find the command that undoes what git did to index and files before the hook; None for nothing."""
    concerned = _names(repository, "diff-tree", "-r", "--name-only", "-z", head, new)
    otherwise = _names(repository, "diff-index", "--cached", "--name-only", "-z", new)
    if not concerned or concerned & otherwise:
        return None
    if concerned & _names(repository, *_UNLIKE_INDEX, in_work_tree=True):
        # Only the index changed (`git reset REV`), and that command dropped whatever else was staged.
        return "git reset --quiet"
    if otherwise:
        # Something else is staged, which `git reset --merge` would drop.
        return f"git read-tree -m -u {new} {head}"
    stashed = os.path.exists(os.path.join(repository.git_dir, "MERGE_AUTOSTASH"))
    return "git reset --merge" + (" && git stash pop --quiet --index" if stashed else "")


def _names(repository: Repository, *command: str, in_work_tree: bool = False) -> frozenset[bytes]:
    done = repository.git(*command, in_work_tree=in_work_tree and repository.work_tree is not None)
    return frozenset(done.out.split(b"\0")) - {b""}


def recovery_of_commit(repository: Repository, hook: str) -> tuple[RecoveryStep, ...]:
    """Return the command that aborts the operation during which a commit was refused."""
    if hook == "pre-merge-commit":
        return (_ABORT[Operation.MERGE],)
    operation = operation_in_progress(repository)
    return () if operation is None else (_ABORT[operation],)


_NAME = "patchgate-shown"
_MOST = 1 << 20


def remember_shown(repository: Repository, report: Report, *, begins: bool) -> None:
    """Remember what a hook shows, so that a later hook of the same commit does not repeat it.

    If the file is lost or forged, a finding is shown twice or not at all; the verdict stays the same.

    Args:
        begins: this is the first hook of a commit; a later one appends.
    """
    keys = [*_keys(report), *map(_of_text, repository.config_warnings)]
    place = Path(repository.git_dir, _NAME)
    with suppress(OSError):
        if not begins and not place.exists():
            return
        with place.open("w" if begins else "a", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in keys)


def forget_shown(repository: Repository) -> None:
    """Forget what was shown for an earlier commit."""
    with suppress(OSError):
        Path(repository.git_dir, _NAME).unlink(missing_ok=True)


def without_repeats(repository: Repository, report: Report, *, stops: bool) -> Report:
    """Leave out what an earlier hook of this commit showed; the verdict and the record stay the same.

    Args:
        stops: this report stops git, so its errors are shown.
    """
    known: frozenset[str] = frozenset()
    with suppress(OSError), Path(repository.git_dir, _NAME).open("rb") as file:
        known = frozenset(file.read(_MOST).decode("ascii", "replace").split("\n"))
    if not known:
        return report
    forget_shown(repository)
    repository.config_warnings[:] = [
        each for each in repository.config_warnings if _of_text(each) not in known
    ]
    pairs = [(each, _trimmed(each, known, stops)) for each in report.changes]
    # A refusal that does not stop git (`[hooks] mode`, a draft ref) is not repeated either.
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
    # In commit-msg there is no tree yet.
    tree = "" if finding.definition.stage is Stage.MESSAGE else change.change.after
    path = finding.path.raw if finding.path is not None else b""
    about = (tree, finding.rule, finding.level.value, str(finding.line), finding.message)
    return _digest([path, *(each.encode("utf-8", "surrogateescape") for each in about)])


def _of_text(text: str) -> str:
    return _digest([text.encode("utf-8", "surrogateescape")])


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
