"""The rules of `apply`: which patch may be tried again, and what can fail while it is tried and written.

Where something could not be done (a command did not start, the disk is full, a file changed meanwhile) the
patch is not at fault: those rules make the verdict undecided.
"""

from __future__ import annotations

from functools import partial

from patchgate.report.rules.rule import Rule, Stage

_again = partial(Rule, stage=Stage.POLICY, gate="retry", invariant=True)
_try = partial(Rule, stage=Stage.APPLY, gate="commands", invariant=True)
_check = partial(Rule, stage=Stage.GIT_CHECK, gate="git_check")

TRY_RULES = (
    _again(
        "duplicate-patch",
        "A patch with the same id was applied before, and its effect is still there.",
        "Applied twice, it would fail or add the same lines again.",
        "the same patch, sent again after it was applied",
        "Nothing to do: the patch is in place. After a revert it can be applied again; `--if-applied ok` "
        "makes this exit 0.",
    ),
    _again(
        "retry-not-a-diff",
        "A retry is not one whole unified diff, but the full text of a file, prose or edits. If every "
        "refused attempt was edits, or came in the same other format, the retry may be that too.",
        "After a refusal the whole patch is checked again, and only a diff says exactly what it changes.",
        "`--retry-of a-7f3a` with the new text of a file",
        "Send the whole patch again, as `git diff` writes it, from its first `diff --git` line on.",
    ),
    _again(
        "retry-identical",
        "A retry is the same change that was refused, and neither its base nor the policy has changed.",
        "It would be refused again for the same reason.",
        "the same patch with `--retry-of a-7f3a`, or with one more blank line",
        "Fix what the refusal names, then send the whole patch again.",
    ),
    _again(
        "retry-exhausted",
        "This chain of retries has been refused `[apply] max_attempts` times.",
        "After that many refusals a maintainer must look at it.",
        "the sixth attempt where five are allowed",
        "Have a maintainer read the evidence and allow more attempts: git patchgate attempts reset ID.",
    ),
    _check(
        "index-differs",
        "With `--index`, a file that the patch changes differs between the index and the disk.",
        "Staged content would be lost, or mixed with the patch.",
        "`apply --index` for a file with unstaged changes",
        "Stage the file or restore it, or run without `--index`.",
    ),
)

APPLY_RULES = (
    _try(
        "lint-failed",
        "A linter failed in the scratch tree that has the change, or a formatter would change its files.",
        "A change must pass the repository's own checks before it lands.",
        "`ruff check` found an unused import",
        "Fix what the command reports (details.tail), then send the whole patch again.",
        gate="lint",
    ),
    _try(
        "build-failed",
        "A test command of the policy failed in the scratch tree that has the change.",
        "A change that breaks the build or the tests does not land.",
        "`pytest` reported one failure",
        "Fix what the command reports (details.tail), then send the whole patch again.",
        gate="test",
    ),
    _try(
        "failed-before",
        "A command of the policy fails in the same way without the patch: same tests, findings or output.",
        "The patch did not cause this failure, but the failure can hide one that it causes.",
        "a test that fails on HEAD too",
        "Have a maintainer fix what fails on HEAD, or set `[apply] preexisting` to `report`.",
    ),
    _try(
        "command-not-started",
        "A command of the policy could not be started, or a tool that it requires is missing.",
        "The command did not run, so the patch has not passed it. The patch is not at fault.",
        'required_tools = ["ruff"], and ruff is not installed',
        "Install the tool or fix the command in the policy, then apply the same patch again.",
        undecided=True,
    ),
    _try(
        "command-timed-out",
        "A command of the policy ran longer than its `timeout` and was stopped.",
        "The command did not finish, so the patch has not passed it. The patch may not be at fault.",
        'timeout = "5m", and the tests ran longer',
        "Find out why it took so long, or have a maintainer raise `timeout`; then apply the same patch "
        "again.",
        undecided=True,
    ),
    _try(
        "command-no-answer",
        "A command of the policy died, wrote what cannot be read, removed its tree, or wrote to a folder "
        "that is only linked (`provide`).",
        "The command gave no answer that counts, so the change has not passed it.",
        'output = "sarif", and the tool wrote its help',
        "Run the command directly to see why; `optional = true` makes this a warning.",
        undecided=True,
    ),
    _try(
        "command-not-trusted",
        "A command would run at a commit or a push, and its definition is neither in the policy of the "
        "trusted ref nor allowed on this machine.",
        "A branch of somebody else that is checked out must not run code at the next commit.",
        "a branch adds `[commands.x]`, and the default branch of the remote does not have it",
        "Read the command, then allow it on this machine: git patchgate commands trust NAME.",
        undecided=True,
    ),
    _try(
        "command-changed-files",
        "A command of the policy changed tracked files in the scratch tree (a warning for a test command).",
        "Its changes are not written, so a lint command that passes after that has checked other bytes.",
        "`ruff check` where pyproject.toml says `fix = true`",
        "Make the command check only (ruff: `--no-fix`); run a formatter before you make the patch.",
        invariant=False,
    ),
    _try(
        "command-side-effects",
        'A command with `side_effects = "none"` changed tracked files in the scratch tree.',
        "The command does more than it declares, and others rely on the declaration.",
        'side_effects = "none", and the tests rewrite their snapshots',
        "Make the command read only, or remove `side_effects` from its table.",
        invariant=False,
    ),
    _try(
        "concurrent-change",
        "A file, HEAD or the index changed after the patch was checked and before it was written.",
        "The check was of the old content. Nothing was overwritten.",
        "an editor saved src/app.py while the tests ran",
        "Apply the patch again: it is checked against the current files.",
        gate="apply",
        undecided=True,
    ),
    _try(
        "write-failed",
        "The operating system refused a write; all files are as they were.",
        "A patch is written as a whole or not at all.",
        "a full disk, a read-only folder",
        "Fix what the message names, then apply the same patch again.",
        gate="apply",
        undecided=True,
    ),
    _try(
        "dirty-workspace",
        "The operating system refused a write, and then refused to undo the others.",
        "Some files are changed and some are not; the message lists them.",
        "a disk that fails in the middle",
        "Fix the cause, then run git patchgate recover.",
        gate="apply",
        undecided=True,
    ),
)
