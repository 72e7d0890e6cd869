"""Whether words name a failure besides a placeholder: a corpus of what does, and of what does not."""

from __future__ import annotations

import pytest

from patchgate.placeholders.claims.claim_decision import names_other_failure
from patchgate.placeholders.claims.feedback_parsing import MOST_TEXT, asserts_placeholder

OTHER = """
12 tests fail with a segfault. A TODO remains in a.md.
A TODO remains in a.md, and two tests fail.
A TODO remains in a.md and two tests fail.
The build fails and a TODO remains in a.md.
A TODO remains in a.md. The sum in row 3 is wrong.
A TODO remains in a.md; parse() raises ValueError.
A placeholder remains. The link is broken.
A placeholder remains. It does not compile.
A placeholder remains. The page doesn't load.
A placeholder remains. The file cannot be read.
A TODO remains, but the worse thing is the regression in the parser.
A TODO remains - and the server crashes.
A TODO remains. The log says "the build failed".
A TODO remains. The answer is incorrect.
A TODO remains. An exception is swallowed.
The TODO app crashes on start. A TODO comment remains in a.md.
A TODO remains. Section 4 is missing.
Error. A TODO remains.
A TODO remains. The page hangs/crashes.
The page fails.It is empty. A TODO remains.
"""

NONE_OTHER = """
A TODO remains in a.md.
The function still raises NotImplementedError.
The author failed to replace the placeholder.
The TODO was not removed.
The file reads "TODO: handle errors and crashes".
a.md:3: TODO: handle errors and crashes
src/errors.py contains a TODO.
`src/errors.py` contains a TODO.
The tests pass without errors, but a TODO remains.
No test fails, but a TODO remains.
None of the tests fails. A TODO remains.
It does not fail. A TODO remains.
Errors: 0. A TODO remains.
The work is not finished. A TODO remains.
This can't be accepted. A TODO remains.
I did not find more. A TODO remains.
No FIXME is left, but TODO remains in b.md.
There isn't a FIXME. A TODO remains.
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("text", lines(OTHER))
def test_what_complains_of_something_else_as_well_names_another_failure(text: str) -> None:
    assert asserts_placeholder([text])
    assert names_other_failure([text])


@pytest.mark.parametrize("text", lines(NONE_OTHER))
def test_what_complains_of_a_placeholder_alone_names_no_other_failure(text: str) -> None:
    assert asserts_placeholder([text])
    assert not names_other_failure([text])


def test_a_failure_in_any_of_the_texts_is_one() -> None:
    assert names_other_failure(["A TODO remains.", "fail"])
    assert not names_other_failure(["A TODO remains.", "[TBD] in a.md", ""])
    assert not names_other_failure([])


def test_what_is_too_long_to_be_read_may_name_one() -> None:
    long = "word " * 600
    assert names_other_failure([f"A TODO remains. {long}fails{long}."])
    assert not names_other_failure([f"A TODO remains. {long}."])
    assert names_other_failure(["A TODO remains. " + "Fine. " * MOST_TEXT])
    assert names_other_failure(["x" * MOST_TEXT, "y"])
