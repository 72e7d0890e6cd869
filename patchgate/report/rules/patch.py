"""The rules of what an agent or a maintainer submits: patches, edits, and the agents' reply protocol.

The parse stage is invariant as a whole: what has no single meaning, or can be read in two ways, cannot be
checked. The rules of `git_check` say how a patch must match the files.
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
        "The input has no `diff --git` line: it is empty, prose, or another kind of diff.",
        "Only git's own format says exactly which file, mode and lines a change means.",
        "I have changed the file as you asked.",
        "Send a unified diff as `git diff` writes it, from its first `diff --git` line on.",
    ),
    _parse(
        "prose-around-patch",
        "A line before, between or after the sections is not part of a diff: prose, a Markdown fence, "
        "mail headers, an empty line.",
        "`git apply` skips what it does not understand, so such lines could hide a section.",
        "```diff",
        "Send only the diff: nothing before, between or after its sections.",
    ),
    _parse(
        "invalid-unified-diff",
        "A header or a line of a hunk is not as git writes it, or contradicts another header.",
        "Tools resolve contradictions differently: another name or mode could be applied than was checked.",
        "diff --git a/a.py b/a.py, then +++ b/runs/x",
        "Send the headers exactly as `git diff` writes them; every line of a hunk begins with "
        "space, `+` or `-`.",
    ),
    _parse(
        "missing-file-header",
        "A file has no `diff --git` line, lacks one of `---` and `+++`, or lacks the `new file mode` that "
        "/dev/null needs.",
        "Without all of them, tools disagree on which file is meant; git even writes to a file `dev/null`.",
        "--- a/a.py without a `diff --git` line above it",
        "Begin each file with `diff --git a/… b/…`, then `--- a/…` and `+++ b/…`; add `new file "
        "mode 100644` for a new file.",
    ),
    _parse(
        "missing-hunk",
        "A section announces a change of content but has no `@@` hunk, or a hunk has no lines.",
        "A patch that was cut off must not be taken for a smaller one.",
        "--- a/a.py and +++ b/a.py with nothing under them",
        "Write the hunks of the section, or leave the section out.",
    ),
    _parse(
        "hunk-count-mismatch",
        "The counts in a hunk header differ from the number of lines under it.",
        "The counts say where a hunk ends; with wrong ones, lines are read as headers, or headers as lines.",
        "@@ -1,2 +1,2 @@ above three lines",
        "Write the counts of the lines that follow, or add the missing lines.",
    ),
    _parse(
        "patch-truncated",
        "The input ends inside a hunk, a block, an envelope or a fence, or an ellipsis (`...`) replaces "
        "lines of it.",
        "The missing lines are not known, and half a change must not be applied as a whole one.",
        "@@ -0,0 +1,60 @@ above nine lines, and nothing after them",
        "Send the whole patch again, with every line of it.",
    ),
    _parse(
        "blank-context-line",
        "An empty line inside a hunk has lost the space that marks it as context.",
        "An editor or a chat removed it, and may have removed more.",
        "an empty line between two lines of context",
        "Write one space on that line.",
    ),
    _parse(
        "carriage-return-in-header",
        "A header line of the patch ends in CR LF, but not every line does.",
        "git would read the CR as a part of the name, or skip the line.",
        "+++ b/a.py\\r",
        "End header lines with LF alone; only the lines of a file may end in CR LF.",
    ),
    _parse(
        "binary-payload",
        "The patch changes a binary file, or has a NUL byte.",
        "Nobody can review such a patch.",
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
        "The result would depend on their order.",
        "two sections for src/a.py",
        "Put all changes of one path into one section.",
    ),
    _parse(
        "patch-too-large",
        "The input exceeds a fixed limit: bytes, length of a line or of headers, sections, hunks, edits.",
        "A check must end in bounded time and memory.",
        "a patch of 300 MB",
        "Split the change into several patches.",
    ),
    _parse(
        "input-invalid",
        "The input is not whole and unambiguous in the format that `--input` names, or it has changes in "
        "several formats.",
        "A guess at what was meant would change something else.",
        "two envelopes in one reply, or a block with two lines `=======`",
        "Send the whole change once, in one format, as the message says.",
    ),
    _parse(
        "patch-repaired",
        "A mechanical fault of the patch was repaired before it was judged: a fence, a header, a count.",
        "Content is never repaired; the repaired patch is the one that is judged and applied.",
        "a diff in a closed Markdown fence, with `--repair`",
        "Nothing to do.",
        level=Level.NOTE,
    ),
    _parse(
        "newline-missing",
        "The last line of the patch, or of an edit's text, does not end with a newline.",
        "It may have been cut off.",
        '"new_text": "x"',
        "End the patch, or the text, with a newline.",
    ),
    _parse(
        "range-invalid",
        "The line numbers of a hunk or an edit are unreadable, out of order, overlapping, or past the "
        "file's end.",
        "It is not clear which lines are meant.",
        "@@ ... @@",
        "Count lines from 1, sort by line, join what touches the same lines.",
    ),
    _parse(
        "path-missing",
        "A header or an edit names no file.",
        "A change without a path cannot be checked.",
        '"path": ""',
        "Name the file, relative to the repository's root.",
    ),
    _parse(
        "encoding-unsupported",
        "The patch begins with a byte-order mark, or edits (or the file that they edit) are not UTF-8.",
        "Guessed bytes cannot be checked.",
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
        "A guess at what was meant would change other lines.",
        '"start": 1.9',
        'Send {"patch": {"edits": [{"path", "start", "end", "new_text"}]}, "summary"}, line numbers '
        "as whole numbers; `old_text` or `old_sha256` may be added.",
    ),
    _check(
        "hunk-mismatch",
        "The lines that a hunk or a block expects are not in the file, or git cannot apply it where they "
        "are.",
        "The file has changed since the patch was made, or the patch was made from memory.",
        "the patch has `foo`, line 12 of the file is `bar`",
        "Read the file again at the named line, and make the patch from it.",
    ),
    _check(
        "anchor-mismatch",
        "The lines that an edit replaces are not its `old_text`, or their digest is not its `old_sha256`.",
        "The file has changed since it was read, and the line numbers mean other lines.",
        '"start": 3, "old_text": "two", and line 3 of the file is `one`',
        "Read the file again, and give the lines that have the text.",
    ),
    _check(
        "anchor-missing",
        "An edit does not say what it replaces, and `[apply] require_anchor` requires it, or the file has "
        "changed since edits of it were last checked.",
        "Line numbers alone mean other lines as soon as the file changes above them.",
        "an edit without `old_text` under `require_anchor = true`",
        "Read the file again, and give `old_text`: the lines as they are.",
    ),
    _check(
        "hunk-ambiguous",
        "The lines of a hunk are not where it says, or its format says no place, and they are in the file "
        "more than once.",
        "git would take the closest place, which is a guess.",
        "a hunk of three closing braces at a wrong line",
        "Give the right line number in the hunk header, or more context.",
    ),
    _check(
        "hunk-offset",
        "A hunk was applied at another line than it says; its lines are in the file exactly once.",
        "The file has changed since the patch was made.",
        "a hunk for line 10 that was applied at line 12",
        "Nothing to do.",
        level=Level.NOTE,
    ),
    _check(
        "eol-adapted",
        "The patch was adapted to the line ends of the file: one has LF and the other CR LF, or every line "
        "of the patch ends in CR LF, its headers too.",
        "The adapted bytes are checked and applied.",
        "a patch in LF for a file in CR LF",
        "Nothing to do.",
        level=Level.NOTE,
    ),
    _check(
        "eol-mixed",
        "A line of a hunk and of the file differ only in LF and CR LF, and the line ends are mixed, so "
        "nothing was adapted.",
        "It is not clear which of the two is meant.",
        "` line 9` in LF among lines in CR LF",
        "Give each line of the hunk the line end that it has in the file.",
    ),
    _check(
        "target-missing",
        "The file to change does not exist.",
        "There is nothing to apply the change to.",
        "an edit of src/absent.py",
        "Name an existing file; to create one, send one edit with `start` 1 and `end` 0, or `new "
        "file mode 100644`.",
    ),
    _parse(
        "effect-mismatch",
        "What git makes of the patch differs from what the patch says.",
        "A reviewer reads the text, so its effect must be the same.",
        "old mode 100644 for a file that is executable",
        "Make the patch again from the file as it is: `git diff`.",
    ),
    _check(
        "already-exists",
        "A file that the patch creates, renames to or copies to exists already.",
        "Creating it would overwrite the existing file.",
        "new file mode 100644 for src/app.py, which exists",
        "Change the existing file instead, or give the new one another name.",
    ),
    _check(
        "base-conflict",
        "The patch applies to the commit named by --base, but conflicts with later commits.",
        "Both changed the same lines; only the author of the patch knows what is meant.",
        "--base HEAD~3, and HEAD changed the same function",
        "Make the patch from the current files.",
    ),
    _check(
        "git-refused",
        "`git apply` refuses the patch; its message is in the details.",
        "git could not apply it.",
        "a file where a folder is",
        "Fix what git names, or make the patch again with `git diff`.",
    ),
)

REPLY_RULES = (
    _reply(
        "missing-function-tag",
        "A reply has no `<function=NAME>` block, or the block, a parameter or a CDATA section in it is "
        "not closed.",
        "A reply that was cut off must not be taken for a shorter one.",
        "I have finished.",
        "Send one whole block: `<function=NAME>`, its parameters, `</function>`.",
    ),
    _reply(
        "invalid-multi-block",
        "A reply has more than one `<function=NAME>` tag outside CDATA.",
        "One reply requests one action; with two, neither the right one nor their order is known.",
        "<function=repair>…</function><function=submit></function>",
        "Send one block; put text that has the tag into `<![CDATA[…]]>`.",
    ),
    _reply(
        "duplicate-param",
        "A parameter is given twice, or two are given that exclude each other.",
        "It is not clear which value counts.",
        'two of <param name="subplan">; or patch and edits in one repair',
        "Leave one of them out.",
    ),
    _reply(
        "unknown-param",
        "The action has no such parameter.",
        "A misspelt parameter would be ignored, and the default used instead.",
        '<param name="anchor"> in explore',
        "Use the parameters that `git patchgate agent reply --describe` lists for the action.",
    ),
    _reply(
        "missing-required-param",
        "A parameter that the action requires is missing or empty.",
        "Its value is not guessed.",
        "repair without subplan",
        "Add the parameter.",
    ),
    _reply(
        "invalid-json-param",
        "The value of a JSON parameter is not JSON, or not of the type that the parameter requires.",
        "A guess at what was meant would do something else.",
        '<param name="anchors">src/app.py</param>',
        'Write JSON: `["src/app.py"]` for a list, `1` for a number, without quotes.',
    ),
    _reply(
        "unknown-action",
        "The name in `<function=NAME>` is not an action.",
        "Only the listed actions can be requested.",
        "<function=repiar>",
        "Use an action that `git patchgate agent reply --describe` lists.",
    ),
    _reply(
        "extra-text",
        "There is text outside the block, between its parameters, or beside a CDATA section.",
        "That text would be ignored, and it may be what was meant.",
        "Here is my reply: <function=noop></function>",
        "Send the block alone, with each value inside its own parameter.",
    ),
)
