"""Whether words claim that a placeholder remains: a corpus of what does, and of what does not."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.placeholders.claims import feedback_parsing
from patchgate.placeholders.claims.feedback_parsing import asserts_placeholder

if TYPE_CHECKING:
    from _typeshed import TraceFunction

ASSERTED = """
TODO remains in README.md
A TODO remains in docs/out.md
docs/out.md still contains TODO
The deliverable still contains a TODO.
The report contains placeholder text.
There are two TODO comments in src/app.py.
TODO/FIXME markers are left in the code.
Section 3 is just [TBD].
[TODO] in the summary
The owner is [INSERT NAME].
[MISSING] on line 12
The table has [PLACEHOLDER] cells.
[TODO: describe the fallback] was left in section 2
Placeholders remain.
Placeholder content remains in the deliverable.
The introduction is a placeholder.
The conclusion is still a placeholder
lorem ipsum in the second paragraph
The body is lorem ipsum.
It contains "Lorem ipsum dolor sit amet".
parse() raises NotImplementedError.
The function still raises `NotImplementedError`.
src/lib.rs calls todo!() in main
FIXME on line 40 of parser.c
XXX in tokenizer.py
TBD: the launch date
Owner: TBD
a.md:3: TODO: write the introduction
The introduction reads "TODO: write the introduction".
TODO: still in a.md
FIXME: line 12 of parser.c
The file has `# TODO: handle errors that are not covered`.
Line 12 says "TODO: no idea how to do this"
The document has unresolved TODOs.
Leftover placeholders in the appendix
Unreplaced placeholder in line 7
Replace the placeholder in section 2.
Please replace the placeholders with real values.
Please fill in the TBD cells.
Fill in [TBD] and resubmit.
Remove the TODO before this is accepted.
The TODO must be removed.
The placeholder needs to be replaced.
The placeholders have to be replaced.
The TODO should be resolved.
The TODO should have been removed.
The TBD values are to be filled in.
The TBD has yet to be resolved.
The TODO was not removed.
The TODO wasn't removed.
The placeholder has not been replaced.
The placeholder hasn't been replaced yet.
The placeholders were never replaced.
The TODO is not resolved
The TODO is not yet resolved.
The author did not remove the TODO.
The agent did not replace the placeholder.
It doesn't replace the placeholder in the header.
The change fails to replace the placeholder.
The author failed to fill in the TBD.
The agent forgot to remove the TODO.
It was submitted without replacing the placeholders.
The work was handed in without filling in [TBD].
Nobody removed the TODO.
Not all placeholders were replaced.
Not every TODO was resolved.
No placeholder was replaced.
The file is not free of placeholders.
It isn't free of TODOs.
There is nothing but placeholders in the file.
Nothing besides a TODO was written.
No content other than [TBD]
Not only TODO but also FIXME is in there.
It contains not just one TODO.
The report is not complete because section 3 contains TODO.
This can't be accepted because a placeholder remains in the summary.
The work isn't finished, and it contains TODO markers.
The work is not finished and contains TODO markers.
Not acceptable: TODO in a.md
Not resolved: TODO in a.md
Rejected: placeholder text in the deliverable
Incomplete: [TBD] in the cost table
The tests pass, but a TODO remains.
No FIXME is left, but TODO remains in b.md.
The introduction is fine; the conclusion is a placeholder.
The first TODO was removed. A second TODO is in c.md.
Although all tests pass, docs/out.md has a TODO.
However, the summary contains [TODO].
Missing content, [TBD] in section 4
Content is missing: TODO in section 2
a.md:3: TODO
src/app.py:12 has a FIXME comment
Found 3 TODO markers in src/app.py.
Found placeholder text in docs/out.md
I see a TODO comment in the header.
The TODO is still there.
The TODO is still present in a.md
Some TODOs were resolved, some TODOs remain.
The removed section left a TODO behind; TODO remains.
Stub implementation in service.py
The function is stubbed out.
The handler is still a stub.
The section is dummy text.
Filler text in the body
Template holes are left: <your name>
unfilled template fields
The date is to be determined.
Todo comments remain in the module.
todo comments are everywhere
A leftover todo in main.js
The field `owner` still holds the placeholder TBD.
The value is 'TBD'
The summary reads “TODO”.
It’s full of TODOs.
The TODO items remain unresolved in the report.
TODO list items still remain in section 2
The deliverable contains a TODO-comment.
TODO(alice): is in the code
Placeholder values such as 0 and foo remain.
The placeholder was partially replaced, part of it remains.
Previously there was a TODO, and it still remains: TODO in a.md
I confirmed that a TODO remains in a.md.
This is a hard no: TODO in the header.
PLACEHOLDER in config.yaml
The config has PLACEHOLDER as its key.
Every section is a TODO.
any remaining TODO must be removed
- TODO in a.md
* placeholder in section 1
1. The conclusion is [TBD].
Deliverable `docs/out.md` contains unresolved placeholder markers ([TBD], [TODO]).
Placeholder text detected in output.
The output includes placeholders that need to be filled in.
Found unresolved [INSERT DATE] in paragraph 4; no date was given.
The final document has several sections marked "TBD".
Incomplete deliverable: placeholder content present in report.md (section "Budget").
Section 2.1 reads "[INSERT NAME HERE]" and was never filled in.
There's a TODO in line 14 that says the validation isn't done.
Several functions are left as stubs (raise NotImplementedError).
Function `parse` body is just `pass` with a TODO.
Code contains TODO comments indicating unfinished work.
The work is incomplete. There are TODOs.
The deliverable cannot be accepted: it still has TODO markers in sections 3 and 4.
Although no FIXME comments were found, a TBD remains in the pricing table.
The agent claims the work is done, but docs/out.md still contains [TODO].
Evidence shows placeholder values.
The results table is filled with "XXX".
missing real data - placeholder values used instead
Document uses placeholder text instead of real content
I verified the file and it contains 'TODO: add references'.
TODO was left behind.
docs/out.md: "TBD" (line 3)
Unfinished: see TODO in main.py
FAIL - placeholder found at docs/out.md:12
Contains lorem ipsum filler.
The placeholder tokens {{name}} were not substituted.
Placeholder tokens remain
Not a single TODO was resolved.
The TODOs that were supposed to be removed are still in the file.
Required section is a placeholder ("coming soon").
The file is mostly placeholders.
The summary section contains only a placeholder
Contains the text TODO.
The email template still has placeholder text.
A placeholder is present in the input section of the report.
It was there before this change: the text TODO, and it is still there.
The change never removes the TODO.
The TODO was not taken care of.
The TODO has not become real text.
The TODO from last time has still not been dealt with.
The function raises NotImplementedError on line 12.
The conclusion has become a placeholder.
Bad: the placeholder in section 2
The scan found a TODO in a.md.
The date cell is XXX.
The clock is a stub implementation.
Unresolved placeholder
TODO remains
Contains TODO
Wrong: the placeholder in section 2
The total is wrong and reads [TBD].
It's wrong that a TODO remains.
A placeholder's still in the summary.
Not accepted: "TODO: remove the old code"
[TODO: describe it]
"""

NOT_ASSERTED = """

The work looks good.
Tests fail in test_parser.py.
no TODO found
No TODO found.
No TODOs
No placeholders.
No placeholder remains.
No placeholders remain in the deliverable.
There are no TODO, FIXME or TBD markers.
There is no TODO left.
There's no placeholder in the file.
None of the files contains a TODO.
None of the placeholders remain.
TODO: none
TODOs: 0
Placeholders: none found
Placeholders: not found
Placeholders: all replaced
Remaining TODO markers: no
The deliverable does not contain a TODO.
The deliverable doesn't contain any placeholder.
It contains no placeholders.
It contains neither TODO nor FIXME.
Neither TODO nor placeholder text was found.
It has zero TODOs.
0 TODOs were found
The file is free of placeholders.
The file is free from TODO markers.
The document is complete, without placeholders.
Delivered without any TODO
I did not find a TODO.
I didn't see any placeholder.
I could not find a placeholder.
I cannot find TODO in a.md.
We found no lorem ipsum.
The file never mentions TODO.
The report lacks placeholders.
The absence of TODO markers was verified.
The TODO was removed.
The TODO has been removed.
All TODOs were resolved.
All placeholders are replaced.
All the placeholders have been replaced with real values.
The placeholder is gone.
The placeholder text was replaced by the real one.
The TODOs are done.
The author removed all TODOs.
After removing the TODO the tests fail.
Replaced the placeholder, but tests fail now.
Removed [TBD]; the total is wrong.
The FIXME was addressed in this attempt.
The TODO is no longer there.
Placeholders are no longer present.
TODO not found
TODO is not present in the file.
Placeholder text isn't there any more.
TODO does not remain.
Not found: TODO in a.md
parse() no longer raises NotImplementedError.
The test expects NotImplementedError to be raised.
The loader catches NotImplementedError.
The TODO app crashes on start.
The TODO list page does not load.
A todo app without persistence
The todos endpoint returns 500.
POST /todos returns 404
src/todo.py has a syntax error
TODO.md is not linked from the README.
The to-do list is sorted wrongly.
useTodos() is called twice
The TODO application does not persist items.
The TODO model has no migration.
The `todo_items` table is missing an index.
The --todo flag is ignored.
todo items are not deleted
The input's placeholder attribute has low contrast.
The placeholder attribute is missing.
The search field placeholder is not translated.
The placeholder text of the input is too long.
The placeholder in the search box is wrong.
The `::placeholder` selector has the wrong color.
placeholder="Name" should be translated
The input placeholder is cut off on mobile.
The email placeholder is misspelled.
The placeholder image does not load.
The placeholder icon is blurred.
The placeholder color fails contrast checks.
The SQL placeholders are not escaped.
The query placeholder count is wrong.
A positional placeholder is used in the statement.
The format string placeholder is %d instead of %s.
Placeholder detection is broken.
The placeholder check crashes.
The TODO scanner is slow.
The placeholder rule is too strict.
Make sure that no placeholders remain.
Make sure the TODO is resolved.
Ensure there are no TODOs.
Check for TODO markers.
Checked for placeholders: fine.
Searched for TODO and FIXME.
I looked for placeholders in every file.
I scanned the files for lorem ipsum.
Are there any TODOs?
Is a placeholder left?
If a TODO remains, remove it.
I could not tell whether a placeholder remains.
Unless a placeholder remains, this is fine.
The file may contain placeholders.
It might contain a TODO.
Verify that the TODO is replaced.
Confirm that the placeholder is replaced.
Placeholders are forbidden by the policy.
The policy forbids TODO comments.
The deliverable should not contain placeholders.
The deliverable must not contain TODO.
Avoid placeholders.
Add a TODO for the follow-up.
Add a placeholder for the logo.
Consider a placeholder while data is loading.
The claim that a TODO remains is wrong.
The TODO is a false positive.
The earlier version had a TODO.
Previously it contained placeholders.
The TODO is missing from the list.
The section on TBD_LIST is too short.
The constant TODO_LIMIT is unused.
mktemp XXXXXX is not portable
The phone number 555-XXXX-1 is invalid.
The total is wrong and the summary is empty.
The function is missing.
Insert the missing section.
Content is missing in section 2.
The template is not used.
The stub server does not start.
The README is incomplete.
The report isn't done.
The work fails for reasons other than formatting.
The deliverable is complete and contains no placeholder markers such as [TBD] or [TODO].
No unresolved placeholders, but the total in section 3 is wrong.
All [TBD] entries have been filled; formatting is off.
Neither TODOs nor stubs were detected; tests fail.
I grepped for TODO and FIXME and got nothing.
The document has been fully filled in, with no TBD values remaining.
No evidence of placeholder content.
There were no hits for TODO.
Placeholder scan: clean.
TODO count: 0
The report avoids placeholder text.
Does not include any lorem ipsum.
File does not have TODO, TBD, or FIXME.
No [TODO], [TBD] or lorem ipsum found.
Nothing is marked TODO.
Free of TODO/TBD markers.
The previous TODO has been replaced with content.
It is unclear if the TODO is intentional.
Test for the TODO app fails: expected 3 items.
The TODO-app has no tests.
Form inputs lack placeholder and label attributes.
Inputs should have placeholder text.
Login form placeholder text is wrong language.
The component ignores the placeholder prop.
The output omits the TODO feature.
Users cannot delete a TODO.
A TODO cannot be marked as done in the app.
Creating a TODO returns 500.
The API does not return the TODO after creation.
clicking a todo marks the wrong item
The new todo is not saved.
Todos are not persisted.
KeyError: 'placeholder'
The function raises NotImplementedError for negative input where ValueError was asked for.
It raises NotImplementedError when the list is empty.
The SSN is masked as XXX in the log, it has to be hashed.
The card number is redacted to XXX.
Error code XXX is returned.
Tests fail in parser.py; the old TODO comment in it is unrelated.
The TODO is intentional.
The TODO comment is fine.
The TODO was there before this change. The build fails.
The TODO was already there. The build fails.
The TODO predates the attempt.
The diff removes a TODO but breaks the build.
The commit replaces the placeholder with real text.
TODO: run the tests again
- TODO: run the tests again
The build is red. TODO: run the tests again.
TODO for the author: add a test
FIXME: the sum
The TODO state is lost on reload.
A TODO entry is shown twice.
A stub function in the test hides the failure.
The mock uses a stub implementation of the clock, and the test is flaky.
The fake clock is still a stub.
The dummy text generator crashes
The filler text detection is broken.
The lorem ipsum generator is slow.
The scanner misses TODO in comments.
The linter ignores TODO comments.
It should fail when a TODO is found.
The run stops once a placeholder is seen.
The TODO from last time has been taken care of. Sum wrong.
The placeholder was dealt with.
Good: the placeholder has become real content. Sum wrong.
The placeholder became a chapter.
Fixed: TODO in a.md
Resolved: the placeholder in section 2
OK: placeholder section
The test expects TODO, but gets DONE.
Expected 'TODO' and got 'DONE'.
The parser rejects TODO.
The TODO column is empty.
The regex should match TODO and FIXME.
The check should flag TODO only in comments.
assert status == "TODO"
The commit message says "remove TODO".
The README explains how TODO comments are found.
The function that strips TODO comments is broken.
TODOs are counted twice.
The list of TODO comments is wrong.
The TODO was ticked off.
The card stays in TODO after the drag.
The placeholder's escaping is wrong.
The word TODO is translated wrongly.
The string "TODO" is matched in the middle of words.
The tokenizer splits XXX wrongly.
A real name is used instead of a placeholder.
Dragging a card from TODO to DONE fails.
TODO
todo
placeholder
Placeholders
[TBD]
"TODO"
TODO, FIXME
- TODO
a placeholder
Placeholder text
lorem ipsum
TODO comments
NotImplementedError
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("text", lines(ASSERTED))
def test_what_names_a_placeholder_and_does_not_deny_it_is_a_claim(text: str) -> None:
    assert asserts_placeholder([text])


@pytest.mark.parametrize("text", lines(NOT_ASSERTED))
def test_what_denies_a_placeholder_or_means_another_thing_is_no_claim(text: str) -> None:
    assert not asserts_placeholder([text])


def test_the_corpus_has_both_sides() -> None:
    assert len(lines(ASSERTED)) >= 100
    assert len(lines(NOT_ASSERTED)) >= 100


def test_what_stands_on_many_blanks_is_one_sentence() -> None:
    """No expression sees two blanks in a row, so none can try each of them in turn."""
    blanks = " \t\u00a0" * 3_000
    assert asserts_placeholder([f"A TODO{blanks}remains{blanks}in a.md{blanks}"])
    assert not asserts_placeholder([f"There is{blanks}no{blanks}TODO."])


def steps(text: str) -> int:
    """Count the steps of the interpreter that the words take; a clock would tell of the machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal count
        if frame.f_globals.get("__name__") != feedback_parsing.__name__:
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        asserts_placeholder([text])
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", ["not ", "no ", "not removed ", "filled with ", "fails to be "])
def test_twice_the_words_take_twice_the_steps(unit: str) -> None:
    few, many = (steps(f"{unit * times}TODO") for times in (20, 40))
    assert 20 < few < many <= 2.5 * few


def test_one_claim_among_denials_is_enough() -> None:
    assert asserts_placeholder(["No TODO found.", "All placeholders were replaced.", "[TBD] in a.md"])
    assert asserts_placeholder(["No TODO found.\nAll is well.\nA TODO remains in a.md.\nThe end."])
    assert not asserts_placeholder(["No TODO found.", "All placeholders were replaced."])
    assert not asserts_placeholder([])


@given(st.lists(st.text(), max_size=4))
def test_no_text_is_too_strange_and_the_order_does_not_matter(texts: list[str]) -> None:
    assert asserts_placeholder(texts) == asserts_placeholder(texts[::-1])


PARTS = st.sampled_from(
    [
        "TODO",
        "not",
        "removed",
        "`",
        '"',
        "placeholder",
        ":",
        " ",
        ",",
        "\n",
        "no",
        "[TBD]",
        "in",
        "/",
        "s",
        "TODO app",
    ]
)


@given(st.lists(PARTS, max_size=60).map(" ".join))
def test_words_in_any_order_are_answered(text: str) -> None:
    answer = asserts_placeholder([text])
    assert answer == asserts_placeholder([text])
    assert asserts_placeholder([text, "A TODO remains in a.md"])


def test_a_long_text_is_read_only_at_its_beginning() -> None:
    assert asserts_placeholder(["TODO in a.md. " + "word " * 50_000])
    assert not asserts_placeholder(["word " * 50_000 + ". TODO in a.md"])


@pytest.mark.parametrize("words", range(360, 420, 7))
def test_a_denial_is_never_cut_off_from_its_name(words: int) -> None:
    text = "word " * words + "and there is no TODO in a.md"
    assert not asserts_placeholder([text])
    assert not asserts_placeholder([f"{text}. {text}. {text}."])


@pytest.mark.parametrize(
    "unit", ["TODO ", "`", "not ", "[TODO", "placeholder in the ", "not not removed ", "a:"]
)
def test_a_hostile_text_of_full_length_is_answered(unit: str) -> None:
    """Each takes some milliseconds; an expression that backtracks would not come back."""
    sentence = unit * (1_900 // len(unit)) + ". "
    assert asserts_placeholder([sentence * 60]) in {True, False}
    assert not asserts_placeholder([f"no {unit * 100_000} TODO"])
