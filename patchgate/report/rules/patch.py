"""The rules of what a model or a person hands in: patches, edits, and the agents' reply protocol.

The parse stage is invariant as a whole: what has no single meaning, or can be read in two ways, cannot be
judged. The rules of `git_check` say how a patch must meet the files.
"""

from __future__ import annotations

from functools import partial

from patchgate.report.rules.rule import Level, Rule, Stage

_parse = partial(Rule, stage=Stage.PARSE, gate="parse", invariant=True)
_check = partial(Rule, stage=Stage.GIT_CHECK, gate="git_check")
_reply = partial(Rule, stage=Stage.PARSE, gate="reply", invariant=True)

PATCH_RULES = (
    _parse(
        "not-a-unified-diff",
        "The input holds no `diff --git` line: it is empty, prose, or another kind of diff.",
        "Only git's own form says exactly which file, mode and lines a change means.",
        "I have changed the file as you asked.",
        "Send a unified diff as `git diff` writes it, from its first `diff --git` line on.",
    ),
    _parse(
        "prose-around-patch",
        "A line before, between or after the sections belongs to no diff: prose, a Markdown fence, "
        "mail headers, an empty line.",
        "`git apply` skips what it does not understand, so a section could hide among such lines.",
        "```diff",
        "Send only the diff: nothing before, between or after its sections.",
    ),
    _parse(
        "invalid-unified-diff",
        "A header or a line of a hunk is not as git writes it, or contradicts another header.",
        "Readers of patches resolve contradictions differently; a second name or mode could slip "
        "past the one that was judged.",
        "diff --git a/a.py b/a.py, then +++ b/runs/x",
        "Send the headers exactly as `git diff` writes them; every line of a hunk begins with "
        "space, `+` or `-`.",
    ),
    _parse(
        "missing-file-header",
        "A file lacks its `diff --git` line, one of `---` and `+++`, or the `new file mode` that "
        "/dev/null needs.",
        "Without all of them, readers disagree on which file is meant; git even writes to a file `dev/null`.",
        "--- a/a.py without a `diff --git` line above it",
        "Begin each file with `diff --git a/… b/…`, then `--- a/…` and `+++ b/…`; add `new file "
        "mode 100644` where the file is new.",
    ),
    _parse(
        "missing-hunk",
        "A section announces a change of content but has no `@@` hunk, or a hunk has no lines.",
        "A patch that was cut off must not pass for a smaller one.",
        "--- a/a.py and +++ b/a.py with nothing under them",
        "Write the hunks that belong to the section, or leave the section out.",
    ),
    _parse(
        "hunk-count-mismatch",
        "The numbers in a hunk header are not the numbers of lines under it.",
        "The counts say where a hunk ends; wrong ones let lines count as headers, or headers as lines.",
        "@@ -1,2 +1,2 @@ above three lines",
        "Write the counts of the lines that follow, or the lines that are missing.",
    ),
    _parse(
        "patch-truncated",
        "The input ends inside a hunk, or an ellipsis (`...`) stands for lines of the patch.",
        "What was cut off or left out is not known, and half a change must not land as a whole one.",
        "@@ -0,0 +1,60 @@ above nine lines, and nothing after them",
        "Send the whole patch again, with every line of it.",
    ),
    _parse(
        "blank-context-line",
        "An empty line inside a hunk has lost the space that marks it as context.",
        "An editor or a chat has stripped it; what else was stripped cannot be known.",
        "an empty line between two lines of context",
        "Write one space on that line.",
    ),
    _parse(
        "carriage-return-in-header",
        "A header line of the patch ends in CR LF, and not every line does.",
        "git would take the CR for a part of the name or skip the line.",
        "+++ b/a.py\\r",
        "End header lines with LF alone; only the lines of a file may end in CR LF.",
    ),
    _parse(
        "binary-payload",
        "The patch changes a binary file, or holds a NUL byte.",
        "Nobody can read what such a patch does.",
        "GIT binary patch",
        "Leave binary files out of the patch.",
    ),
    _parse(
        "combined-diff",
        "The patch is the combined diff of a merge.",
        "It describes a result against several parents and cannot be applied.",
        "@@@ -1,2 -1,2 +1,3 @@@",
        "Send the difference to one parent: `git diff A B`.",
    ),
    _parse(
        "duplicate-section",
        "Two sections of the patch write the same path.",
        "The result would hang on their order.",
        "two sections for src/a.py",
        "Put all that happens to one path into one section.",
    ),
    _parse(
        "patch-too-large",
        "The input is past a fixed limit: bytes, length of a line or of headers, sections, hunks, edits.",
        "What is judged must be judged in bounded time and memory.",
        "a patch of 300 MB",
        "Split the change into several patches.",
    ),
    _parse(
        "newline-missing",
        "The last line of the patch, or of an edit's text, has no newline at its end.",
        "It may have been cut off.",
        '"new_text": "x"',
        "End the patch, or the text, with a newline.",
    ),
    _parse(
        "range-invalid",
        "The line numbers of a hunk or an edit cannot be: unreadable, out of order, overlapping, "
        "past the file's end.",
        "Lines that are named twice or not at all have no one meaning.",
        "@@ ... @@",
        "Count lines from 1, sort by line, join what touches the same lines.",
    ),
    _parse(
        "path-missing",
        "A header or an edit names no file.",
        "Nothing can be judged without a path.",
        '"path": ""',
        "Name the file, relative to the repository's root.",
    ),
    _parse(
        "encoding-unsupported",
        "The patch begins with a byte-order mark, or edits (or the file that they edit) are not UTF-8.",
        "Bytes that have to be guessed at cannot be judged.",
        "a patch in UTF-16",
        "Send plain bytes without a byte-order mark; JSON in UTF-8; for other files, a unified diff.",
    ),
    _parse(
        "multi-file-diff",
        "Structured edits name more than one file.",
        "Edits are for one file; a unified diff can change several.",
        "edits of a.py and b.py in one message",
        "Send one file at a time, or a unified diff.",
    ),
    _parse(
        "invalid-patch-schema",
        "Structured edits are not JSON, lack a field, have an unknown or repeated one, or one of "
        "the wrong type.",
        "Reading something near what was written would change other lines than were meant.",
        '"start": 1.9',
        'Send {"patch": {"edits": [{"path", "start", "end", "new_text"}]}, "summary"}, line numbers '
        "as whole numbers; `old_text` or `old_sha256` may be added.",
    ),
    _check(
        "hunk-mismatch",
        "The lines that a hunk expects are not in the file, or git may not put it where they are.",
        "The file has changed since the patch was made, or the patch was made from memory.",
        "the patch has `foo`, line 12 of the file is `bar`",
        "Read the file again at the line that is named, and make the patch from it.",
    ),
    _check(
        "anchor-mismatch",
        "The lines that an edit replaces are not its `old_text`, or their digest is not its `old_sha256`.",
        "The file has changed since it was read, and the line numbers point at other lines.",
        '"start": 3, "old_text": "two", and line 3 of the file is `one`',
        "Read the file again, and give the lines that hold the text.",
    ),
    _check(
        "anchor-missing",
        "An edit does not say what it replaces, and `[apply] require_anchor` asks for it, or the file has "
        "changed since edits of it were last checked.",
        "Line numbers alone point at other lines as soon as the file changes above them.",
        "an edit without `old_text` under `require_anchor = true`",
        "Read the file again, and give `old_text`: the lines as they are.",
    ),
    _check(
        "hunk-ambiguous",
        "The lines of a hunk are not where it says, and stand in the file more than once.",
        "git would take the nearest place; that is a guess.",
        "a hunk of three closing braces at a wrong line",
        "Give the right line number in the hunk header, or more context.",
    ),
    _check(
        "hunk-offset",
        "A hunk stands at another line than it says; its lines occur exactly once, so it was put there.",
        "The reader should know that the file has moved on.",
        "a hunk for line 10 that stands at line 12",
        "Nothing has to be done.",
        level=Level.NOTE,
    ),
    _check(
        "eol-adapted",
        "The lines of the patch end in LF and those of the file in CR LF, or the reverse, or every line of "
        "the patch ends in CR LF, its headers too; the patch was adapted.",
        "The bytes that are judged are the adapted ones.",
        "a patch in LF for a file in CR LF",
        "Nothing has to be done.",
        level=Level.NOTE,
    ),
    _check(
        "eol-mixed",
        "A line of a hunk and of the file differ only in LF and CR LF, and the ends are mixed, so "
        "nothing was adapted.",
        "Which of the two is meant cannot be known.",
        "` line 9` in LF among lines in CR LF",
        "Give each line of the hunk the line end that the file has there.",
    ),
    _check(
        "target-missing",
        "The file that is to be changed does not exist.",
        "There is nothing to apply the change to.",
        "an edit of src/absent.py",
        "Name a file that exists; to make one, send one edit with `start` 1 and `end` 0, or `new "
        "file mode 100644`.",
    ),
    _parse(
        "effect-mismatch",
        "What git makes of the patch is not what the patch says it does.",
        "A patch whose effect differs from its text could not be judged by reading it.",
        "old mode 100644 for a file that is executable",
        "Make the patch anew from the file as it is: `git diff`.",
    ),
    _check(
        "already-exists",
        "A file that the patch creates, or renames or copies to, exists already.",
        "Creating it would overwrite what is there.",
        "new file mode 100644 for src/app.py, which exists",
        "Change the existing file instead, or give the new one another name.",
    ),
    _check(
        "base-conflict",
        "The patch applies to the commit named by --base, but conflicts with what came after it.",
        "Both sides changed the same lines; only its author knows what is meant.",
        "--base HEAD~3, and HEAD changed the same function",
        "Make the patch from the present files.",
    ),
    _check(
        "git-refused",
        "`git apply` itself refuses the patch; its own words are in the details.",
        "What git does not take cannot land.",
        "a file where a folder is",
        "Mend what git names, or make the patch anew with `git diff`.",
    ),
)

REPLY_RULES = (
    _reply(
        "missing-function-tag",
        "A reply holds no `<function=NAME>` block, or the block, a parameter or a CDATA section in it is "
        "not closed.",
        "A reply that was cut off must not pass for a shorter one.",
        "I have finished.",
        "Send one whole block: `<function=NAME>`, its parameters, `</function>`.",
    ),
    _reply(
        "invalid-multi-block",
        "A reply holds more than one `<function=NAME>` tag outside CDATA.",
        "One reply asks for one action; of two nobody could say which was meant, or in which order.",
        "<function=repair>…</function><function=submit></function>",
        "Send one block; text that holds the tag goes into `<![CDATA[…]]>`.",
    ),
    _reply(
        "duplicate-param",
        "A parameter is given twice, or two are given of which only one may be.",
        "Readers differ on which of two values counts.",
        'two of <param name="subplan">; or patch and edits in one repair',
        "Leave one of them out.",
    ),
    _reply(
        "unknown-param",
        "A parameter is none of those that the action takes.",
        "A misspelt parameter would be ignored, and another value used than was meant.",
        '<param name="anchor"> in explore',
        "Use the parameters that `git patchgate agent reply --describe` lists for the action.",
    ),
    _reply(
        "missing-required-param",
        "A parameter that the action needs is not there, or is empty.",
        "Nothing is guessed in its place.",
        "repair without subplan",
        "Add the parameter.",
    ),
    _reply(
        "invalid-json-param",
        "The value of a JSON parameter is not JSON, or not what the parameter takes.",
        "Reading something near what was written would do something else than was meant.",
        '<param name="anchors">src/app.py</param>',
        'Write JSON: `["src/app.py"]` for a list, `1` for a number, without quotes.',
    ),
    _reply(
        "unknown-action",
        "The name in `<function=NAME>` is no action.",
        "Only what stands in the table of actions can be asked for.",
        "<function=repiar>",
        "Use an action that `git patchgate agent reply --describe` lists.",
    ),
    _reply(
        "extra-text",
        "There is text outside the block, between its parameters, or beside a CDATA section.",
        "What stands there would be dropped without a word, and it may be what was meant.",
        "Here is my reply: <function=noop></function>",
        "Send the block alone, with each value inside its own parameter.",
    ),
)
