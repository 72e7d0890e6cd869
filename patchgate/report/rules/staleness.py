"""The rules about the age of baselines. They are a circumstance: the date is no part of a change."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage

_MEND = (
    "Run `git patchgate baseline capture ID --reverify`, add `--commit-note` if others need to know, then "
    "`git push origin refs/notes/patchgate-verified`."
)


def _staleness(name: str, what: str, why: str, example: str, fix: str = _MEND) -> Rule:
    return Rule(name, Stage.DRIFT, "staleness", Level.WARNING, what, why, example, fix)


STALENESS_RULES = (
    _staleness(
        "baseline-stale",
        "A component was verified longer ago than `staleness_window_days`. The last day of the window still "
        "counts. An error where `require_fresh`.",
        "Its tests passed once; what they run on has changed since, unseen.",
        "a baseline whose newest commit is 91 days old, with a window of 90",
    ),
    _staleness(
        "baseline-aging",
        "A component that this one depends on has another contract or implementation than when this one was "
        "verified, or is gone. An error where `require_fresh`.",
        "Its tests passed with something else below them.",
        "a commit changes src/agents/, and nobody has run the tests of what builds on it",
    ),
    _staleness(
        "baseline-unknown",
        "Nobody can tell when a component was verified: the history is shallow, or the date lies in the "
        "future. An error where `require_fresh`.",
        "What is not known is never taken for fresh.",
        "git clone --depth 1, then git patchgate baseline status",
        "Fetch the history (`git fetch --unshallow`), or verify it again: `git patchgate baseline capture ID "
        "--reverify`.",
    ),
)
