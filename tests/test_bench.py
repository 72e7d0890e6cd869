"""The benchmarks: all of them have their place in the documentation, and one command makes all tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import run
from bench.pairs import Rounds, Spread
from bench.run import TABLES, Result, Table, as_json, measure, put_in_docs
from bench.tables import Row

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_every_table_has_one_place_in_the_docs_and_takes_its_arguments(table: Table) -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    for mark in (f"<!-- bench:{table.name} -->", f"<!-- /bench:{table.name} -->"):
        assert pages.count(mark) == 1
    for arguments in (table.full, table.quick or ""):
        assert table.options(arguments).rounds > 0


def test_a_table_is_measured_and_written_as_json_and_into_its_page(tmp_path: Path) -> None:
    result = measure(Table("compare", "compare", ""), "--rounds 2 --results 2000")
    document = json.loads(as_json([result], {"revision": "abc", "against": None}))
    (table,) = document["tables"]
    assert (document["version"], document["revision"], table["name"]) == (1, "abc", "compare")
    assert {len(times) for times in table["seconds"].values()} == {2}
    assert len(table["rows"]) == len(table["seconds"]) - 1
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- bench:compare -->\nold\n<!-- /bench:compare -->\nend\n", "utf-8")
    assert put_in_docs([result], "today", tmp_path) == []
    text = page.read_text("utf-8")
    assert text.startswith("# Page\n<!-- bench:compare -->\n\n| what |")
    assert text.endswith(
        "`python -m bench.compare --rounds 2 --results 2000`, today\n\n<!-- /bench:compare -->\nend\n"
    )
    assert "old" not in text
    assert put_in_docs([result], "today", tmp_path) == []
    assert page.read_text("utf-8") == text


def test_a_table_without_a_place_is_named() -> None:
    row = Row("a", "b", 1.0, Spread(1.0, 1.0, 1.0))
    assert put_in_docs([Result("none", "-", [row], Rounds({}))], "today", DOCS / "decisions") == ["none"]


@pytest.mark.turns(3)
def test_another_revision_is_timed_in_the_same_rounds() -> None:
    with run.installed("HEAD") as old:
        result = measure(Table("runs", "verify", ""), "--rounds 1 --files 30 --results 10", old)
    assert result.compared is not None
    assert set(result.rounds.seconds) == {name + end for name in result.compared for end in ("", " (old)")}
    assert all(spread.least > 0 for spread in result.compared.values())
