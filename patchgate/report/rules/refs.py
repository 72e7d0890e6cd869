"""The rules about refs themselves: what a push may not do to one that is protected."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage

REF_RULES = (
    Rule(
        "ref-deleted",
        Stage.POLICY,
        "refs",
        Level.ERROR,
        "A push deletes a protected ref.",
        "Others build on it. `protected_refs` names such refs; without it the default branch is one.",
        "git push origin --delete main",
        "Leave the deletion out of the push.",
    ),
    Rule(
        "ref-forced",
        Stage.POLICY,
        "refs",
        Level.ERROR,
        "A push moves a protected ref to a commit that does not hold what the ref has, or moves a tag.",
        "What others have already would be lost there.",
        "git push --force origin main, after a rebase of published commits",
        "Fetch, merge or rebase onto what is there, and push without force.",
    ),
)
