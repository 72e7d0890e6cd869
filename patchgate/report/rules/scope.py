"""The rules of how work is declared, verified and described: intents, verification, placeholders, messages.

Intents and verification are gates of the context: an intent is not part of a change. Placeholders can be
allowed on the line. The level of the message rules is that of `[message]`.
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
        "A commit, a patch for this worktree, or the work that is verified changes a file that the active "
        "intent of this worktree allows neither by `--allow` nor by `--related`. While the intent is queued: "
        "a file of another intent. A rename counts on both sides. A file that was changed before the intent "
        "was declared, and has not changed since, does not count.",
        "Others expect changes only in the declared files.",
        "an intent that allows src/a.py, and a commit of src/b.py",
        "Take the file out of the commit (`git restore --staged PATH`), or clear the intent and declare one "
        "that allows it.",
    ),
    _scope(
        "scope-forbidden",
        "A commit, a patch for this worktree, or the work that is verified changes a file that the active "
        "intent forbids by `--forbid`. Control files are always forbidden.",
        "Work under an intent may not change the rules that apply to it.",
        "an intent is active, and patchgate.toml is in the commit",
        "Take the file out of the commit (`git restore --staged PATH`); change it without an intent.",
    ),
    _scope(
        "intent-budget",
        "An attempt or a commit exceeds what the active intent of this worktree may take in all: attempts of "
        "`apply`, lines added to its files since it was declared, or minutes. Also a change under the agent "
        "profile, in any worktree, of a file of another intent that has a budget.",
        "A piece of work that needs more than was planned should be looked at, not continued.",
        "git patchgate intent declare --max-added-lines 100 --allow src/, then commits that add 101 lines",
        "Do the rest with fewer lines, or end the work (`git patchgate intent clear ID`): a maintainer "
        "decides what comes next.",
    ),
    _scope(
        "intent-expired",
        "An intent of this worktree has expired: commits are no longer checked against it, and `verify` ends "
        "as expired.",
        "The work goes on without a declaration.",
        "a commit, two hours after an intent of one hour",
        "Continue it (`git patchgate intent recover ID`), or end it (`git patchgate intent clear ID`).",
        level=Level.WARNING,
    ),
    _scope(
        "intent-queued",
        "An intent of this worktree waits until another one is cleared. Until then commits may change only "
        "those of its files that no other intent has.",
        "Another intent is active on a file that this one needs.",
        "git patchgate intent declare --queue, then git commit",
        "Wait until the other intent is cleared, then activate this one: `git patchgate intent show`.",
        level=Level.WARNING,
    ),
    _scope(
        "intent-reserved",
        "A commit or a patch of a worktree without an intent changes a file that an active intent of another "
        "worktree declares. `[intents] reserve` sets the level.",
        "Two pieces of work on one file end in a conflict, or one undoes the other.",
        "git patchgate intent declare --allow src/a.py in one worktree, git commit src/a.py in another",
        "Wait until the intent is cleared, or ask its owner (`git patchgate intent list`).",
        level=Level.WARNING,
    ),
    _scope(
        "intent-trailer",
        "A commit made under an active intent has no `Patchgate-Intent` trailer, or one that names another "
        "intent. The trailer helps readers and proves nothing.",
        "Readers of the history see from it which commits belong together.",
        "git commit --no-verify, which skips the commit-msg hook",
        "Nothing to do; `git commit --amend --no-edit` lets the hook add it.",
        level=Level.NOTE,
    ),
)

VERIFY_RULES = (
    _verify(
        "regression",
        "An analysis reports something that it did not report before; with an intent: in one of its files "
        "(allowed or related), or without a file. A warning where `strictness` is `relaxed`.",
        "A change may not add new problems.",
        "an unused import in a new line, which ruff reports",
        "Fix what the analysis reports, then run `git patchgate verify`; for commits, `verify HEAD --base "
        "REV`.",
    ),
    _verify(
        "regression-external",
        "An analysis reports something new, but only in files outside the intent.",
        "This work did not cause it, so it does not have to fix it.",
        "a pull brought a finding in another folder",
        "Nothing to do here; report it to the owner of those files.",
        level=Level.NOTE,
    ),
    _verify(
        "threshold-crossed",
        "A threshold fails that passed before, or fails by more; with an intent, where the metric rose in "
        'one of its files. With `preexisting = "refuse"` and no intent, any threshold that fails. A warning '
        "where `strictness` is `relaxed`.",
        "The policy sets this limit.",
        "a function of complexity 11, and a threshold of 10",
        "Bring the value down to the limit, then run `git patchgate verify`; for commits, `verify HEAD "
        "--base REV`.",
    ),
    _verify(
        "threshold-external",
        "A threshold that passed before fails, or fails by more, and the metric rose only outside the files "
        "of the intent.",
        "This work did not cause it, so it does not have to fix it.",
        "a pull brought a function that is over the limit",
        "Nothing to do here; report it to the owner of those files.",
        level=Level.NOTE,
    ),
    _verify(
        "threshold-preexisting",
        "A threshold fails as it did before: no value over the limit is new or higher.",
        "This change did not make it worse; it is reported so that it is not forgotten.",
        "a threshold of 10, and a function of complexity 12 that the change does not touch",
        'Nothing to do here; `[verify] preexisting = "refuse"` makes it an error.',
        level=Level.NOTE,
    ),
    _verify(
        "suppression-abuse",
        "A file of `[verify] suppressions` changed while there are new findings; or such a file, or the set "
        "of suppressions in the code, grew: together with code, without an intent, or so that a failing "
        "threshold passes.",
        "A finding that is suppressed is not fixed.",
        "one commit adds a finding and its entry in ruff-baseline.json",
        "Remove the new entries, fix what they hide, and verify again.",
    ),
    _verify(
        "unverified",
        "Whether anything got worse is not known: an analysis could not be evaluated, the runs before and "
        "after are not comparable, or the intent is queued, has expired, or is not what was declared.",
        "What was not analysed never counts as good.",
        "the analysis names a tool that is not installed",
        "Do what the reason asks for, then run `git patchgate verify`.",
        undecided=True,
    ),
)

PLACEHOLDER_RULES = (
    _placeholder(
        "placeholder-word",
        "An added line has TODO, FIXME, TBD, XXX or PLACEHOLDER as a mark: at the start of a comment, a "
        "heading or a list item, as a whole value, or before a colon.",
        "It says that the work is not done.",
        "# TODO: handle the empty list",
        "Do what it says, or remove it and open an issue.",
    ),
    _placeholder(
        "placeholder-bracket",
        "An added line has `[TBD]`, `[TODO]`, `[INSERT]`, `[PLACEHOLDER]` or `[MISSING]`.",
        "A value is missing there.",
        "Owner: [TBD]",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-hole",
        "An added line has a template field that was not filled in, such as `<your name>`.",
        "A reader gets the template instead of the text.",
        "Dear <your name>,",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-filler",
        "An added line has filler text: lorem ipsum, or a comment that replaces code, such as "
        "`# ... rest of the code` or `// ... existing code ...`.",
        "The real text or code is missing.",
        "Lorem ipsum dolor sit amet",
        "Write the text.",
    ),
    _placeholder(
        "placeholder-body",
        "An added line makes a function that does nothing, or not everything: it raises NotImplementedError "
        "or the equivalent of another language, or its body is only `...` or `pass`. Protocols, abstract "
        "methods, overloads and stub files do not count, and neither do classes, handlers and loops.",
        "Callers get a function that does not do what its name says.",
        "def total(rows): raise NotImplementedError",
        "Write the body; if others must write it, make it abstract; if it should do nothing, give it a "
        "docstring instead of `pass`.",
    ),
    _placeholder(
        "placeholder-marker",
        "An added line matches one of the policy's own `[claims] markers`.",
        "The policy calls it a placeholder.",
        'markers = [{ name = "ticket", pattern = "ABC-0000", example = "see ABC-0000" }]',
        "Replace it with the real value.",
    ),
)

MESSAGE_RULES = (
    _message(
        "message-subject-missing",
        "A commit has no message, or nothing but sign-offs.",
        "Nobody can see what the commit is for.",
        "git commit --allow-empty-message -m ''",
        "Say in one line what the commit does.",
    ),
    _message(
        "message-subject-too-long",
        "The first line of a message has more than 72 characters. Subjects that git writes (`Merge …`, "
        '`Revert "…"`, `fixup! …`) are exempt, and so is a number in parentheses at the end.',
        "Lists of commits, mail and code hosts cut it off.",
        "a subject of 73 letters",
        "Use fewer words; details go to the body, after a blank line.",
    ),
    _message(
        "message-subject-period",
        "The first line of a message ends with a period. Subjects that git writes are exempt.",
        "It is a title: mail and lists of commits show it as one.",
        "Add the parser.",
        "Leave the period out.",
    ),
    _message(
        "message-blank-line-missing",
        "The second line of a message is not blank. Messages whose subject git writes are exempt.",
        "git takes everything up to the first blank line as the subject.",
        "Add the parser, and right below it: It reads patches.",
        "Put a blank line after the subject.",
    ),
    _message(
        "message-vague",
        "A message has a phrase that says nothing which can be checked: best practice, industry standard, "
        "entire class of, works on my machine, scalable and maintainable, robust and reliable, clean "
        "architecture, properly handle, as needed; and more, or etc., at an end. Quotations, code, comments "
        "and trailers are exempt.",
        "It does not say what was done or how it was checked.",
        "Refactor to follow best practices",
        "Name what was done, where, and how it was checked, or leave the words out.",
    ),
)
