"""Comparisons held against sarif-tools' `diff`, on SARIF written by hand and by chance.

sarif-tools counts the findings of each rule, and where the counts differ it names those at another file or
line. So the two must agree on the counts always, and on the places wherever no line moved.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patchgate.commands.analysis_results import AnalysisComparison, AnalysisResult
from patchgate.git.path import RepoPath
from patchgate.verify.regressions import compare
from tests.verify.analysis_cases import report

loader = pytest.importorskip("sarif.loader", reason="the extra `oracles` is not installed")
diff_op = pytest.importorskip("sarif.operations.diff_op")
Place = tuple[str, int]

BEFORE = """{
  "version": "2.1.0",
  "runs": [{"tool": {"driver": {"name": "hand"}}, "results": [
    {"ruleId": "F401", "level": "error", "message": {"text": "unused import"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.py"},
      "region": {"startLine": 1, "snippet": {"text": "import os"}}}}]},
    {"ruleId": "F401", "level": "error", "message": {"text": "unused import"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/b.py"},
      "region": {"startLine": 4, "snippet": {"text": "import re"}}}}]},
    {"ruleId": "E501", "level": "warning", "message": {"text": "line too long"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.py"},
      "region": {"startLine": 9, "snippet": {"text": "x = 1  # …"}}}}]},
    {"ruleId": "S105", "level": "note", "message": {"text": "password"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/c.py"},
      "region": {"startLine": 2, "snippet": {"text": "p = 'x'"}}}}]}
  ]}]
}"""

# One F401 is mended, two are new in one file; E501 moved from line 9 to 19; S105 is gone; B006 is a new rule.
AFTER = """{
  "version": "2.1.0",
  "runs": [{"tool": {"driver": {"name": "hand"}}, "results": [
    {"ruleId": "F401", "level": "error", "message": {"text": "unused import"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.py"},
      "region": {"startLine": 1, "snippet": {"text": "import os"}}}}]},
    {"ruleId": "F401", "level": "error", "message": {"text": "unused import"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/d.py"},
      "region": {"startLine": 1, "snippet": {"text": "import re"}}}}]},
    {"ruleId": "F401", "level": "error", "message": {"text": "unused import"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/d.py"},
      "region": {"startLine": 2, "snippet": {"text": "import io"}}}}]},
    {"ruleId": "E501", "level": "warning", "message": {"text": "line too long"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.py"},
      "region": {"startLine": 19, "snippet": {"text": "x = 1  # …"}}}}]},
    {"ruleId": "B006", "level": "warning", "message": {"text": "mutable default"},
     "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.py"},
      "region": {"startLine": 5, "snippet": {"text": "def f(a=[]):"}}}}]}
  ]}]
}"""


def ours(before: Any, after: Any) -> AnalysisComparison:
    """Compare two documents of this file by our rules; the mark is of the snippet."""
    return compare(report("before", _read(before)), report("after", _read(after)), (), {})


def _read(document: Any) -> list[AnalysisResult]:
    found = []
    for run in document["runs"]:
        name = run["tool"]["driver"]["name"]
        for each in run["results"]:
            place = each["locations"][0]["physicalLocation"]
            region = place["region"]
            mark = hashlib.sha256(region["snippet"]["text"].strip().encode()).hexdigest()[:32]
            paths = (RepoPath(place["artifactLocation"]["uri"].encode()),)
            text = each["message"]["text"]
            line = region["startLine"]
            found.append(AnalysisResult("hand", name, each["ruleId"], each["level"], text, paths, line, mark))
    return found


def theirs(before: Any, after: Any) -> dict[str, Any]:
    """Let sarif-tools compare the two documents: what it says of each rule."""
    with tempfile.TemporaryDirectory() as folder:
        sets = []
        for name, document in (("before", before), ("after", after)):
            file = Path(folder, f"{name}.sarif")
            file.write_text(json.dumps(document), encoding="utf-8")
            sets.append(loader.load_sarif_files(str(file)))
        found = diff_op._calc_diff(*sets)
    return {
        key.split()[0]: about
        for level, each in found.items()
        if level != "all"
        for key, about in each["codes"].items()
    }


def grew(comparison: AnalysisComparison) -> dict[str, int]:
    """Tell by how many each rule has more or fewer findings."""
    numbers = Counter(each.rule for each in comparison.new)
    numbers.subtract(each.rule for each in comparison.fixed)
    return {rule: number for rule, number in numbers.items() if number}


def places(results: Iterable[AnalysisResult], rule: str) -> list[Place]:
    """Name where the findings of a rule are."""
    return sorted((str(each.path), each.line or 1) for each in results if each.rule == rule)


def test_both_agree_on_sarif_written_by_hand() -> None:
    before, after = json.loads(BEFORE), json.loads(AFTER)
    comparison, counted = ours(before, after), theirs(before, after)
    assert grew(comparison) == {rule: about[">"] - about["<"] for rule, about in counted.items()}
    assert grew(comparison) == {"F401": 1, "B006": 1, "S105": -1}
    for rule, about in counted.items():
        named = sorted((each["Location"], int(each["Line"])) for each in about.get("+@", []))
        assert places(comparison.new, rule) == named
    assert places(comparison.fixed, "F401") == [("src/b.py", 4)]
    # The line that moved is the same finding.
    assert comparison.unchanged == 2


def test_the_command_of_the_other_tool_sees_what_we_see(tmp_path: Path) -> None:
    for name, text in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / f"{name}.sarif").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sarif", "--check", "note", "diff", "before.sarif", "after.sarif"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'New issue "B006' in ended.stdout
    assert "src/d.py:1" in ended.stdout
    assert ended.returncode == 1
    assert ours(json.loads(BEFORE), json.loads(AFTER)).new


def test_a_finding_that_takes_the_place_of_a_mended_one_is_seen_here_alone() -> None:
    before, after = (_document([(name, 1, "F401", "import os")]) for name in ("src/a.py", "src/b.py"))
    assert theirs(before, after) == {}
    comparison = ours(before, after)
    assert places(comparison.new, "F401") == [("src/b.py", 1)]
    assert places(comparison.fixed, "F401") == [("src/a.py", 1)]


def _document(found: Iterable[tuple[str, int, str, str]]) -> Any:
    results = [
        {
            "ruleId": rule,
            "level": "error",
            "message": {"text": f"about {rule}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri},
                        "region": {"startLine": line, "snippet": {"text": text}},
                    }
                }
            ],
        }
        for uri, line, rule, text in found
    ]
    run = {"tool": {"driver": {"name": "hand", "rules": []}}, "results": results}
    return {"version": "2.1.0", "runs": [run]}


_ROWS = some.sets(
    some.tuples(
        some.sampled_from(["a.py", "b.py", "src/c.py"]),
        some.integers(1, 6),
        some.sampled_from(["F1", "E2", "S3"]),
    ),
    max_size=15,
)


@pytest.mark.parametrize("moved", [0, 5])
@given(_ROWS, _ROWS)
def test_both_agree_on_findings_by_chance(moved: int, old: set[Any], new: set[Any]) -> None:
    before = _document((uri, line, rule, f"line {line}") for uri, line, rule in sorted(old))
    after = _document((uri, line + moved, rule, f"  line {line}") for uri, line, rule in sorted(new))
    comparison, counted = ours(before, after), theirs(before, after)
    assert grew(comparison) == {rule: about[">"] - about["<"] for rule, about in counted.items()}
    for rule, about in counted.items():
        named = sorted((each["Location"], int(each["Line"])) for each in about.get("+@", []))
        if not moved:
            assert places(comparison.new, rule) == named
