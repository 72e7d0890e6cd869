"""The message rules: what a commit's message should be like. Their level is that of `[message]`."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _message(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.MESSAGE, "message", Level.WARNING, what, why, example, fix)


MESSAGE_RULES = (
    _message(
        "message-subject-missing",
        "A commit has no message, or one of nothing but sign-offs.",
        "Nobody can tell what the commit is for.",
        "git commit --allow-empty-message -m ''",
        "Say in one line what the commit does.",
    ),
    _message(
        "message-subject-too-long",
        "The first line of a message has more than 72 characters. Subjects that git makes (`Merge …`, "
        '`Revert "…"`, `fixup! …`) are exempt, and so is a number in parentheses at the end.',
        "Lists of commits, mail and forges cut it off.",
        "a subject of 73 letters",
        "Say it in fewer words; details go to the body, after a blank line.",
    ),
    _message(
        "message-subject-period",
        "The first line of a message ends with a period. Subjects that git makes are exempt.",
        "It is a title: mail and lists of commits show it as one.",
        "Add the parser.",
        "Leave the period out.",
    ),
    _message(
        "message-blank-line-missing",
        "The second line of a message is not blank. Messages whose subject git makes are exempt.",
        "git takes everything up to the first blank line for the subject.",
        "Add the parser, and right below it: It reads patches.",
        "Put a blank line after the subject.",
    ),
    _message(
        "message-vague",
        "A message holds a phrase that says nothing which can be checked: best practice, industry standard, "
        "entire class of, works on my machine, scalable and maintainable, robust and reliable, clean "
        "architecture, properly handle, as needed; and more, or etc., at an end. Quotations, code, comments "
        "and trailers are exempt.",
        "It reads like a reason, and tells a reader neither what was done nor how it was checked.",
        "Refactor to follow best practices",
        "Name what was done, where, and how it was checked, or leave the words out.",
    ),
)
