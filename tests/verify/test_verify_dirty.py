"""Files that were changed before an intent began: only what is new in them since is its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verify.verify_world import NEW, Workshop

pytestmark = pytest.mark.turns(3)

# A name that a file takes from `a.py`, which has it not, is a finding there; so many are its metric.
_NAMES = """\
import json, os, sys
with open("a.py") as file:
    known = file.read().split()
results, metrics = [], []
for name in sorted(name for name in os.listdir(".") if name.endswith(".py")):
    with open(name) as file:
        lines = file.read().splitlines()
    wanted = [(number, line[7:]) for number, line in enumerate(lines, 1) if line.startswith("import ")]
    if "stops" in known and wanted:
        sys.exit("this tool stops here")
    for number, word in wanted:
        if word not in known:
            place = {"artifactLocation": {"uri": name}, "region": {"startLine": number}}
            message = {"text": f"no {word}"}
            results.append({"ruleId": "N1", "message": message, "locations": [{"physicalLocation": place}]})
    lacking = sum(word not in known for _, word in wanted)
    metrics.append({"path": name, "symbol": "all", "name": "lacking", "value": lacking})
if sys.argv[1] == "sarif":
    run = {"tool": {"driver": {"name": "names"}}, "results": results}
    print(json.dumps({"version": "2.1.0", "runs": [run]}))
else:
    print(json.dumps({"metrics": metrics}))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    tool = tmp_path / "tools" / "names.py"
    words = [sys.executable, "-IS", str(tool)]
    more = (
        f"[analyses.names]\ncommand = {json.dumps([*words, 'sarif'])}\n"
        f'[analyses.lacking]\ncommand = {json.dumps([*words, "metrics"])}\nformat = "metrics"\n'
        '[[thresholds]]\nname = "none-lacking"\nmetric = "lacking"\nmax = 0\n'
    )
    shop = Workshop.open(tmp_path, {"a.py": "total rest\n"}, thresholds=(NEW,), more=more)
    tool.write_text(_NAMES)
    return shop


def lines_of(told: dict[str, Any], key: str) -> list[tuple[str, int]]:
    return [(each["path"], each["line"]) for each in told[key]]


def test_what_the_work_breaks_in_a_file_that_was_changed_before_is_its_own(shop: Workshop) -> None:
    shop.write("b.py", "import total\n")
    shop.declare("a.py", "b.py")
    shop.stage({"a.py": "rest\n"})
    told = shop.verify()
    assert (told["status"], told["dirty_before"]) == ("violated", ["b.py"])
    assert lines_of(told, "intent_regressions") == [("b.py", 1)]
    assert (told["external_regressions"], told["intent_caused_gate"]) == ([], True)
    assert [each["path"] for each in told["intent_worsened"]] == ["b.py"]


def test_what_was_there_when_it_was_declared_is_nobodys(shop: Workshop) -> None:
    shop.write("b.py", "import absent\n")
    shop.declare("a.py", "b.py")
    shop.stage({"a.py": "total rest more\n"})
    told = shop.verify()
    assert told["status"] == "accepted_with_external_changes"
    assert (told["intent_regressions"], told["intent_worsened"]) == ([], [])
    assert lines_of(told, "external_regressions") == [("b.py", 1)]
    # The same where nothing but that file is staged.
    shop.stage({"a.py": "total rest\n"})
    assert shop.verify()["status"] == "accepted_with_external_changes"


def test_in_one_file_both_are_parted(shop: Workshop) -> None:
    shop.write("b.py", "import absent\nimport total\nimport rest\n")
    shop.declare("a.py", "b.py")
    shop.stage({"a.py": "rest\n"})
    told = shop.verify()
    assert told["status"] == "violated"
    assert lines_of(told, "intent_regressions") == [("b.py", 2)]
    assert lines_of(told, "external_regressions") == [("b.py", 1)]
    assert [each["path"] for each in told["intent_worsened"]] == ["b.py"]


def test_the_commit_of_it_is_answered_for_as_what_is_staged(shop: Workshop) -> None:
    shop.write("b.py", "import absent\nimport total\n")
    name = shop.declare("a.py", "b.py")
    shop.stage({"a.py": "rest\n"})
    shop.commit(message=f"Rename\n\nPatchgate-Intent: {name}\n")
    assert lines_of(shop.verify("HEAD"), "intent_regressions") == [("b.py", 2)]


def test_where_nobody_can_tell_what_was_there_it_counts_as_the_works(shop: Workshop) -> None:
    shop.commit({"a.py": "stops\n"})
    shop.write("b.py", "import absent\n")
    name = shop.declare("a.py", "b.py")
    shop.stage({"a.py": "total\n"})
    told = shop.verify()
    assert told["status"] == "violated"
    assert lines_of(told, "intent_regressions") == [("b.py", 1)]
    assert any(f"before {name} " in each for each in told["warnings"])


def test_nothing_more_is_analysed_where_nothing_is_found_there(shop: Workshop) -> None:
    shop.write("b.py", "import total\n")
    shop.declare("a.py", "b.py")
    shop.stage({"a.py": "total rest more\n"})
    before = shop.runs
    assert shop.verify()["status"] == "accepted"
    assert shop.runs == before + 1


def test_a_file_outside_the_scope_stays_outside(shop: Workshop) -> None:
    shop.write("b.py", "import total\n")
    shop.declare("a.py")
    shop.stage({"a.py": "rest\n"})
    told = shop.verify()
    assert told["status"] == "accepted_with_external_changes"
    assert lines_of(told, "external_regressions") == [("b.py", 1)]
