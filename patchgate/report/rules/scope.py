"""The rules about intents and verifications. They are circumstances: an intent is no part of a change."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _scope(name: str, level: Level, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.SCOPE, "scope", level, what, why, example, fix)


def _verify(name: str, level: Level, what: str, why: str, example: str, fix: str, **more: bool) -> Rule:
    return Rule(name, Stage.VERIFY, "verify", level, what, why, example, fix, **more)


SCOPE_RULES = (
    _scope(
        "scope-unexpected",
        Level.ERROR,
        "A commit, a patch for this worktree, or the whole work that is verified, touches a file that the "
        "active intent of this worktree allows neither by `--allow` nor by `--related`; or, "
        "while the intent waits, that another intent has. A rename counts on both sides. A file that was "
        "changed before the intent was declared, and is as it was then, does not count.",
        "What was declared is what others expect to find changed.",
        "an intent that allows src/a.py, and a commit of src/b.py",
        "Take the file out of the commit (`git restore --staged PATH`), or clear the intent and declare one "
        "that allows it.",
    ),
    _scope(
        "scope-forbidden",
        Level.ERROR,
        "A commit, a patch for this worktree, or the whole work that is verified, touches a file that the "
        "active intent forbids by `--forbid`; control files are always forbidden.",
        "Who works under a declaration does not change the rules on the way.",
        "an intent is active, and patchgate.toml is in the commit",
        "Take the file out of the commit (`git restore --staged PATH`); change it without an intent.",
    ),
    _scope(
        "intent-expired",
        Level.WARNING,
        "The time of an intent of this worktree is over, so commits are not held to it any more, and "
        "`verify` ends as expired.",
        "Work goes on that no declaration covers.",
        "a commit, two hours after an intent of one hour",
        "Go on with it (`git patchgate intent recover ID`), or end it (`git patchgate intent clear ID`).",
    ),
    _scope(
        "intent-queued",
        Level.WARNING,
        "An intent of this worktree waits for another one to be cleared. Until then commits may touch only "
        "those of its files that no other intent has.",
        "Somebody else is at work on a file that it wants.",
        "git patchgate intent declare --queue, then git commit",
        "`git patchgate intent show` makes it active once the other intent is cleared.",
    ),
    _scope(
        "intent-reserved",
        Level.WARNING,
        "A commit or a patch of a worktree without an intent touches a file that an active intent of another "
        "worktree declares. `[intents] reserve` sets the level.",
        "Two pieces of work on one file end in a conflict, or one undoes the other.",
        "git patchgate intent declare --allow src/a.py in one worktree, git commit src/a.py in another",
        "Wait until the intent is cleared, or ask whoever holds it (`git patchgate intent list`).",
    ),
    _scope(
        "intent-trailer",
        Level.NOTE,
        "A commit that was made while an intent was active does not name it by `Patchgate-Intent`, or names "
        "another one. The name is a help to readers, and proves nothing.",
        "Who reads the history learns from it what belongs together.",
        "git commit --no-verify, which no commit-msg hook sees",
        "Nothing has to be done; `git commit --amend --no-edit` lets the hook write it.",
    ),
)

VERIFY_RULES = (
    _verify(
        "regression",
        Level.ERROR,
        "An analysis finds something that it did not find before; with an intent, in one of its files "
        "(allowed or related), or in no file at all. A warning where "
        "`strictness` is `relaxed`.",
        "What was clean stays clean.",
        "an unused import in a new line, which ruff reports",
        "Fix what the analysis reports, then `git patchgate verify`; of commits, `verify HEAD --base REV`.",
    ),
    _verify(
        "regression-external",
        Level.NOTE,
        "An analysis finds something new, only in files that are not the intent's.",
        "Somebody else made it: it is reported, and nobody here has to fix it.",
        "a pull brought a finding in another folder",
        "Nothing has to be done here; tell whoever works there.",
    ),
    _verify(
        "threshold-crossed",
        Level.ERROR,
        "A threshold fails that passed before, or fails by more than before; with an intent, where the "
        'metric rose in one of the intent\'s files. With `preexisting = "refuse"` and without an intent, '
        "any that fails. A warning where `strictness` is `relaxed`.",
        "A limit that somebody set is not passed unseen.",
        "a function of complexity 11, and a threshold of 10",
        "Bring the value down to the limit, then `git patchgate verify`; of commits, `verify HEAD --base "
        "REV`.",
    ),
    _verify(
        "threshold-external",
        Level.NOTE,
        "A threshold that passed before fails, or fails by more, and the metric rose only outside the files "
        "of the intent.",
        "Somebody else crossed it: it is reported, and nobody here has to fix it.",
        "a pull brought a function that is over the limit",
        "Nothing has to be done here; tell whoever works there.",
    ),
    _verify(
        "threshold-preexisting",
        Level.NOTE,
        "A threshold fails as it did before: no value that is over it is new or higher.",
        "Nobody made it worse here; it is reported so that it is not forgotten.",
        "a threshold of 10, and a function of complexity 12 that the change does not touch",
        'Nothing has to be done here; `[verify] preexisting = "refuse"` makes it count.',
    ),
    _verify(
        "baseline-abuse",
        Level.ERROR,
        "A file of `[verify] baselines` changed while there are new findings; or one, or the set of "
        "suppressions, grew: with changed code, without an intent, or so that a failing threshold passes.",
        "A finding that is written into a list of exceptions is not fixed.",
        "the same commit adds a finding, and its entry in ruff-baseline.json",
        "Take the new entries out, fix what they hide, and verify again.",
    ),
    _verify(
        "unverified",
        Level.ERROR,
        "It cannot be told whether anything got worse: an analysis could not be evaluated, before and after "
        "were not made alike, or the intent waits in the queue, expired, or is not what was declared.",
        "What was not examined never counts as good.",
        "the analysis names a tool that is not installed",
        "Do what the reason asks for, then `git patchgate verify`.",
        undecided=True,
    ),
)
