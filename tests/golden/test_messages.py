"""Every sentence of the program as one text to read, and words that no reader should meet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden.messages import GOLDEN, golden, recorded

ROOT = Path(__file__).parents[2]
PAGES = [
    GOLDEN,
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "docs" / "git-patchgate.1",
]
# Words that readers stumbled over; names in backquotes are data.
UNCLEAR = re.compile(
    r"\b(told|mend(s|ed|ing)?|stands alone|held against|a person|nobody shall|walks? past)\b", re.IGNORECASE
)


def test_the_golden_file_has_what_the_program_says() -> None:
    """`python -m tests.golden.messages` writes it again; read the difference before you commit it.

    The refusals are compared in `tests/cli/test_selftest.py`, which raises all rules anyway.
    """
    expected = recorded()
    assert expected.pop("REFUSALS")
    assert golden() == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_and_no_message_uses_an_unclear_word(page: Path) -> None:
    found = [
        f"{number}: {line}"
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        if UNCLEAR.search(re.sub(r"`[^`]*`", "", line))
    ]
    assert found == []
