"""The rules of `apply`: which patch may be tried again, and what can go wrong when one is tried and written.

What could not be done (a command that did not start, a full disk, a file that changed meanwhile) says nothing
against a patch: the rules for it make the verdict undecided.
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
        "Applying it twice would at best fail, and at worst put the same lines in twice.",
        "the same patch sent again after it was applied",
        "Nothing has to be done; after a revert it may come again. `--if-applied ok` makes this exit 0.",
    ),
    _again(
        "retry-not-a-diff",
        "A retry is something else than one whole unified diff: a file's full text, prose, edits. Where all "
        "that was refused came as edits, edits may come again.",
        "After a refusal the whole patch is judged anew, and only a diff says exactly what it changes.",
        "`--retry-of a-7f3a` with the new text of a file",
        "Send the whole patch again, as `git diff` writes it, from its first `diff --git` line on.",
    ),
    _again(
        "retry-identical",
        "A retry is the very change that was refused, while what it is laid on and the policy are the same.",
        "It would be refused again for the same reason.",
        "the same patch with `--retry-of a-7f3a`, or with a blank line more",
        "Mend what the refusal names, then send the whole patch again.",
    ),
    _again(
        "retry-exhausted",
        "The chain of retries has had all the refusals that `[apply] max_attempts` allows.",
        "An agent that does not find the way needs a person, not another try.",
        "the sixth attempt where five are allowed",
        "A person looks at the evidence and lets retries begin again: git patchgate attempts reset ID.",
    ),
    _check(
        "index-differs",
        "With `--index`, the index does not hold a touched file as it is on disk.",
        "What is staged would be lost, or would be mixed with the patch.",
        "`apply --index` for a file with unstaged changes",
        "Stage the file or put it back, or leave `--index` out.",
    ),
)

APPLY_RULES = (
    _try(
        "lint-failed",
        "A lint command of the policy ended with an error in the scratch tree that has the patch.",
        "What the repository's own checks refuse does not land.",
        "`ruff check` found an unused import",
        "Mend what the command names (details.tail), then send the whole patch again.",
        gate="lint",
    ),
    _try(
        "build-failed",
        "A test command of the policy ended with an error in the scratch tree that has the patch.",
        "A patch that breaks the build or the tests does not land.",
        "`pytest` reported one failure",
        "Mend what the command names (details.tail), then send the whole patch again.",
        gate="test",
    ),
    _try(
        "failed-before",
        "A command of the policy fails as it fails without the patch: the same tests, findings or output.",
        "What failed before is not the patch's fault, but nobody knows what that failure hides.",
        "a test that fails on HEAD too",
        "A maintainer repairs what fails on HEAD, or sets `[apply] preexisting` to `report`.",
    ),
    _try(
        "command-not-started",
        "A command of the policy could not be started, or a tool that it requires is missing.",
        "What was not tried has not passed; the patch is not at fault.",
        'required_tools = ["ruff"], and there is no ruff',
        "Install the tool or mend the command in the policy, then apply the same patch again.",
        undecided=True,
    ),
    _try(
        "command-timed-out",
        "A command of the policy took longer than its `timeout` and was ended.",
        "What did not come to an end has not passed; the patch need not be at fault.",
        'timeout = "5m", and the tests ran for longer',
        "Look why it took so long, or have a person raise `timeout`; then apply the same patch again.",
        undecided=True,
    ),
    _try(
        "command-changed-files",
        "A command of the policy changed tracked files in the scratch tree (a warning for a test command).",
        "What it changed does not land, so a lint command that then passes has checked other bytes.",
        "`ruff check` where pyproject.toml says `fix = true`",
        "Let the command check and not change (ruff: `--no-fix`); run a formatter before the patch is made.",
        invariant=False,
    ),
    _try(
        "command-side-effects",
        'A command with `side_effects = "none"` changed tracked files in the scratch tree, of whatever kind.',
        "It is not what its declaration says, and who relies on that is misled.",
        'side_effects = "none", and the tests rewrite their snapshots',
        "Make the command only read, or take `side_effects` out of its table.",
        invariant=False,
    ),
    _try(
        "concurrent-change",
        "A file, HEAD or the index was changed between the judgement and the writing.",
        "The judgement was about what stood there before, and nobody's work is overwritten.",
        "an editor saved src/app.py while the tests ran",
        "Apply the patch again: it is judged against what stands there now.",
        gate="apply",
        undecided=True,
    ),
    _try(
        "write-failed",
        "The system refused a write; everything is as it was.",
        "A patch lands whole or not at all.",
        "a full disk, a read-only folder",
        "Mend what the message names, then apply the same patch again.",
        gate="apply",
        undecided=True,
    ),
    _try(
        "dirty-workspace",
        "The system refused a write, and putting things back was refused too.",
        "What is where has to be known before anybody goes on; the message lists it.",
        "a disk that fails in the middle",
        "Mend the cause, then run git patchgate recover.",
        gate="apply",
        undecided=True,
    ),
)
