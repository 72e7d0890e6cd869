"""The rules of how work is declared, verified and described: intents, verifications, placeholders, messages.

Intents and verifications are circumstances: an intent is no part of a change. The placeholder rules can be
allowed on the line; the level of the message rules is that of `[message]`.
"""

from __future__ import annotations

from functools import partial

from patchgate.report.rules.rule import Level, Rule, Stage

_scope = partial(Rule, stage=Stage.SCOPE, gate="scope")
_verify = partial(Rule, stage=Stage.VERIFY, gate="verify")
_placeholder = partial(Rule, stage=Stage.PLACEHOLDERS, gate="placeholders", level=Level.WARNING, inline=True)
_message = partial(Rule, stage=Stage.MESSAGE, gate="message", level=Level.WARNING)

SCOPE_RULES = (
    _scope(
        "scope-unexpected",
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
        "A commit, a patch for this worktree, or the whole work that is verified, touches a file that the "
        "active intent forbids by `--forbid`; control files are always forbidden.",
        "Who works under a declaration does not change the rules on the way.",
        "an intent is active, and patchgate.toml is in the commit",
        "Take the file out of the commit (`git restore --staged PATH`); change it without an intent.",
    ),
    _scope(
        "intent-expired",
        "The time of an intent of this worktree is over, so commits are not held to it any more, and "
        "`verify` ends as expired.",
        "Work goes on that no declaration covers.",
        "a commit, two hours after an intent of one hour",
        "Go on with it (`git patchgate intent recover ID`), or end it (`git patchgate intent clear ID`).",
        level=Level.WARNING,
    ),
    _scope(
        "intent-queued",
        "An intent of this worktree waits for another one to be cleared. Until then commits may touch only "
        "those of its files that no other intent has.",
        "Somebody else is at work on a file that it wants.",
        "git patchgate intent declare --queue, then git commit",
        "`git patchgate intent show` makes it active once the other intent is cleared.",
        level=Level.WARNING,
    ),
    _scope(
        "intent-reserved",
        "A commit or a patch of a worktree without an intent touches a file that an active intent of another "
        "worktree declares. `[intents] reserve` sets the level.",
        "Two pieces of work on one file end in a conflict, or one undoes the other.",
        "git patchgate intent declare --allow src/a.py in one worktree, git commit src/a.py in another",
        "Wait until the intent is cleared, or ask whoever holds it (`git patchgate intent list`).",
        level=Level.WARNING,
    ),
    _scope(
        "intent-trailer",
        "A commit that was made while an intent was active does not name it by `Patchgate-Intent`, or names "
        "another one. The name is a help to readers, and proves nothing.",
        "Who reads the history learns from it what belongs together.",
        "git commit --no-verify, which no commit-msg hook sees",
        "Nothing has to be done; `git commit --amend --no-edit` lets the hook write it.",
        level=Level.NOTE,
    ),
)

VERIFY_RULES = (
    _verify(
        "regression",
        "An analysis finds something that it did not find before; with an intent, in one of its files "
        "(allowed or related), or in no file at all. A warning where "
        "`strictness` is `relaxed`.",
        "What was clean stays clean.",
        "an unused import in a new line, which ruff reports",
        "Fix what the analysis reports, then `git patchgate verify`; of commits, `verify HEAD --base REV`.",
    ),
    _verify(
        "regression-external",
        "An analysis finds something new, only in files that are not the intent's.",
        "Somebody else made it: it is reported, and nobody here has to fix it.",
        "a pull brought a finding in another folder",
        "Nothing has to be done here; tell whoever works there.",
        level=Level.NOTE,
    ),
    _verify(
        "threshold-crossed",
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
        "A threshold that passed before fails, or fails by more, and the metric rose only outside the files "
        "of the intent.",
        "Somebody else crossed it: it is reported, and nobody here has to fix it.",
        "a pull brought a function that is over the limit",
        "Nothing has to be done here; tell whoever works there.",
        level=Level.NOTE,
    ),
    _verify(
        "threshold-preexisting",
        "A threshold fails as it did before: no value that is over it is new or higher.",
        "Nobody made it worse here; it is reported so that it is not forgotten.",
        "a threshold of 10, and a function of complexity 12 that the change does not touch",
        'Nothing has to be done here; `[verify] preexisting = "refuse"` makes it count.',
        level=Level.NOTE,
    ),
    _verify(
        "baseline-abuse",
        "A file of `[verify] baselines` changed while there are new findings; or one, or the set of "
        "suppressions, grew: with changed code, without an intent, or so that a failing threshold passes.",
        "A finding that is written into a list of exceptions is not fixed.",
        "the same commit adds a finding, and its entry in ruff-baseline.json",
        "Take the new entries out, fix what they hide, and verify again.",
    ),
    _verify(
        "unverified",
        "It cannot be told whether anything got worse: an analysis could not be evaluated, before and after "
        "were not made alike, or the intent waits in the queue, expired, or is not what was declared.",
        "What was not examined never counts as good.",
        "the analysis names a tool that is not installed",
        "Do what the reason asks for, then `git patchgate verify`.",
        undecided=True,
    ),
)

PLACEHOLDER_RULES = (
    _placeholder(
        "placeholder-word",
        "An added line holds TODO, FIXME, TBD, XXX or PLACEHOLDER where it is a mark: at the beginning of a "
        "comment, a heading or a list element, as a whole value, or followed by a colon.",
        "It says that the work is not done.",
        "# TODO: handle the empty list",
        "Do what it says, or take it out and open an issue.",
    ),
    _placeholder(
        "placeholder-bracket",
        "An added line holds `[TBD]`, `[TODO]`, `[INSERT]`, `[PLACEHOLDER]` or `[MISSING]`.",
        "Something was to be filled in there.",
        "Owner: [TBD]",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-hole",
        "An added line holds a hole of a template that was not filled, such as `<your name>`.",
        "A reader gets the template instead of the text.",
        "Dear <your name>,",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-filler",
        "An added line holds filler text: lorem ipsum.",
        "It stands for a text that was not written.",
        "Lorem ipsum dolor sit amet",
        "Write the text.",
    ),
    _placeholder(
        "placeholder-body",
        "An added line makes a function that does nothing, or not all: it raises NotImplementedError or the "
        "like of another language, or its body is only `...` or `pass`. Protocols, abstract methods, "
        "overloads and stub files are no placeholders, nor are classes, handlers and loops.",
        "It is there to be called, and does not do what its name says.",
        "def total(rows): raise NotImplementedError",
        "Write the body; make abstract what others are to write; what is to do nothing has a docstring "
        "instead of `pass`.",
    ),
    _placeholder(
        "placeholder-marker",
        "An added line matches one of the policy's own `[claims] markers`.",
        "The policy calls it a placeholder.",
        'markers = [{ name = "ticket", pattern = "ABC-0000", example = "see ABC-0000" }]',
        "Replace it by what it stands for.",
    ),
)

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
