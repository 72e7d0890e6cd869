"""Each loop over foreign input takes linear time: four times the input, about four times the steps.

Steps are counted, not seconds. `PATCHGATE_LONG=1` tries larger inputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from patchgate.check.gate import judge
from patchgate.check.message_rules import Message
from patchgate.check.message_rules import examine as examine_message
from patchgate.components.contract_reading import facts_of, read_contract
from patchgate.errors import ConfigError
from patchgate.git.path import RepoPath, faults
from patchgate.patches.edit_diff import edits_to_diff
from patchgate.patches.edits import Edits, parse_edits
from patchgate.patches.patch_parser import Patch, parse
from patchgate.patches.planning import fit
from patchgate.patches.reply_actions import read_reply
from patchgate.placeholders.placeholder_matches import find_matches
from patchgate.policy.config import parse as parse_config
from patchgate.policy.content_rules import ContentRules
from patchgate.policy.glob_matching import PatternError, PatternSet
from patchgate.report import json as json_report
from patchgate.report.text import concise, full
from tests.check.gate_cases import added, agents, case
from tests.proposals import addition
from tests.report.verdict_reports import finding, report
from tests.steps import growth, steps_of

SIZE = 400 if os.environ.get("PATCHGATE_LONG") else 60
MOST_GROWTH = 5.5
HEAD = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"
RANGES = b"@@ -1,9 +1,9 @@\n"
Make = Callable[[int], Callable[[], object]]


def reading(text: Callable[[int], bytes]) -> Make:
    """Read a patch of a size."""

    def make(size: int) -> Callable[[], object]:
        raw = text(size)
        return lambda: parse(raw)

    return make


def fitting(hunks: Callable[[int], bytes], file: Callable[[int], bytes]) -> Make:
    """Fit a patch of a size into a file."""

    def make(size: int) -> Callable[[], object]:
        patch, preimage = parse(HEAD + hunks(size)), file(size)
        assert isinstance(patch, Patch)
        return lambda: [fit(section, preimage) for section in patch.sections]

    return make


def far_hunks(size: int) -> bytes:
    """Write hunks that stand nowhere near the line that they name."""
    starts = (100_000 + number * 4 for number in range(size))
    return b"".join(b"@@ -%d,3 +%d,3 @@\n a\n-a\n+b\n a\n" % (start, start) for start in starts)


def own_name(number: int) -> str:
    """Name files that differ by case alone."""
    return "".join("aA"[number >> bit & 1] for bit in range(12))


def judging(files: Callable[[int], list[str]], toml: str = "", *, by_agent: bool = False) -> Make:
    """Judge a change that adds so many files."""

    def make(size: int) -> Callable[[], object]:
        make_case = agents if by_agent else case
        given = make_case(*map(added, files(size)), toml=toml)
        return lambda: judge(given)

    return make


def matching(pattern: Callable[[int], str], path: bytes = b"") -> Make:
    """Match a pattern with a path; each time anew, so that no folder is remembered."""

    def make(size: int) -> Callable[[], object]:
        written, name = pattern(size), path or b"a/b/" * size + b"d"
        return lambda: PatternSet([written], folded=True).match(name)

    return make


def config(text: Callable[[int], str]) -> Make:
    """Read a config that may be wrong."""

    def make(size: int) -> Callable[[], object]:
        raw = text(size).encode()

        def work() -> object:
            try:
                return parse_config(raw, "patchgate.toml")
            except ConfigError as error:
                return error

        return work

    return make


def denying(table: str, form: str, size: int) -> str:
    """Write a config that denies so many patterns or expressions."""
    listed = ", ".join(f'"{form % number}"' for number in range(size))
    return f"[{table}]\ndeny = [{listed}]\n"


def contract(document: Callable[[int], dict[str, object]]) -> Make:
    """Read a contract."""

    def make(size: int) -> Callable[[], object]:
        raw = json.dumps({"component_id": "c", "version": "1.0.0", **document(size)}, indent=1).encode()
        return lambda: (facts_of(raw), read_contract(raw))

    return make


def of_type(number: int, other: int) -> dict[str, object]:
    """Declare a type with a field of another one."""
    return {"name": f"T{number}", "fields": [{"name": "a", "type": f"T{other}"}]}


def edits(size: int) -> Callable[[], object]:
    """Read edits, and write them as a patch."""
    one = {"path": "f", "new_text": "x\n"}
    listed = [{**one, "start": number * 3 + 1, "end": number * 3 + 1} for number in range(size)]
    raw = json.dumps({"patch": {"edits": listed}}).encode()

    def work() -> object:
        found = parse_edits(raw)
        assert isinstance(found, Edits)
        return edits_to_diff(found, b"a\n" * (3 * size))

    return work


def reporting(render: Callable[..., str]) -> Make:
    """Write a report of so many findings."""

    def make(size: int) -> Callable[[], object]:
        whole = report(*(finding() for _ in range(size)))
        return lambda: render(whole)

    return make


CASES: dict[str, Make] = {
    "names: one path of many folders": reading(lambda size: addition(b"/".join([b"d"] * size))),
    "names: many files": reading(lambda size: b"".join(addition(b"f%d" % n) for n in range(size))),
    "names: one file many times": reading(lambda size: addition(b"f") * size),
    "names: an escape for each byte": reading(lambda size: addition(b"f").replace(b"a/f", b"\\001" * size)),
    "headers: sections that are none": reading(lambda size: b"diff --git a/f b/f\nno\n" * size),
    "headers: prose between": reading(lambda size: (addition(b"f") + b"prose\n") * size),
    "hunks: wrong counts": reading(lambda size: HEAD + b"@@ -1,2 +1,2 @@\n-a\n+b\n" * size),
    "hunks: groups in one": reading(lambda size: HEAD + RANGES + b"-a\n+b\n c\n" * size),
    "hunks: no space before context": reading(
        lambda size: HEAD + b"@@ -1,9 +1,9 @@\n" + b"f\n-x\n+y\n" * size
    ),
    "fitting: equal lines": fitting(far_hunks, lambda size: b"a\n" * size),
    "fitting: nearly equal lines": fitting(far_hunks, lambda size: b"a\nb\na\n" * size),
    "edits": edits,
    "paths: a deep one": judging(lambda size: [f"{size:03}/" * size + "f"]),
    "paths: files of one deep folder": judging(lambda size: [f"{'d/' * 99}{n}" for n in range(size)]),
    "paths: all collide": judging(lambda size: [own_name(n) for n in range(size)]),
    "paths: folders collide": judging(lambda size: [own_name(n) + "/f" for n in range(size)]),
    "splitting: control files and others": judging(
        lambda size: [f"{above}{n}" for n in range(size) for above in ("", ".patchgate/")],
        "[policy.commit]\nmax_files = 5\n",
    ),
    "splitting: an agent's files": judging(lambda size: [f"f{n}" for n in range(size)], by_agent=True),
    "patterns: folders": matching(lambda size: "a/**/b/**/c"),
    "patterns: stars": matching(lambda size: "*a" * size + "b", b"a" * 200),
    "config: a dotted key": config(lambda size: ".".join(["a"] * size) + " = 1"),
    "config: patterns": config(lambda size: denying("policy", "a%d*b", size)),
    "config: expressions": config(lambda size: denying("content", "a%d+b", size)),
    "contracts: functions": contract(lambda size: {"functions": [{"name": f"f{n}"} for n in range(size)]}),
    "contracts: types in a ring": contract(
        lambda size: {
            "types": [
                {"name": f"T{n}", "fields": [{"name": "a", "type": f"T{(n + 1) % size}"}]}
                for n in range(size)
            ]
        }
    ),
    "contracts: a deep type": contract(
        lambda size: {"functions": [{"name": "f", "output": {"type": "list[" * size + "int" + "]" * size}}]}
    ),
    "replies: blocks": lambda size: lambda: read_reply(b"<function=noop></function>" * size),
    "replies: values": lambda size: (
        lambda: read_reply(
            b'<function=noop><param name="reason">' + b"<![CDATA[x]]>" * size + b"</param></function>"
        )
    ),
    "messages: lines": lambda size: (
        lambda: list(examine_message(Message(b"Subject\n\n" + b"various fixes\n" * size)))
    ),
    "messages: trailers": lambda size: (
        lambda: list(examine_message(Message(b"Subject\n\n" + b"Signed-off-by: a\n" * size)))
    ),
    "content: lines": lambda size: lambda: ContentRules(True, True).suspects([b"AKIA"] * size),
    "placeholders: calls that never end": lambda size: (
        lambda: find_matches(b"raise NotImplementedError(\n" * size, b"f.py", case().policy.markers)
    ),
    "reports: text": reporting(lambda whole: full(whole, color=False)),
    "reports: concise": reporting(concise),
    "reports: JSON": reporting(json_report.render),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_grow_with_the_input_and_no_faster(name: str) -> None:
    assert growth(CASES[name], SIZE) < MOST_GROWTH


@pytest.mark.parametrize("folders", [20_000, 100_000])
def test_a_path_that_is_too_long_is_refused_before_anything_else_looks_at_it(folders: int) -> None:
    path = RepoPath(b"/".join([b"d"] * folders))
    change = replace(case(added("d")).change, files=(replace(added("d"), path=path),))
    refused = replace(agents(added("d"), from_text=True), change=change)
    assert [each.rule for each in judge(refused)[1]] == ["path-too-long"]
    assert faults(path) == ("path-too-long",)
    assert steps_of(lambda: judge(refused)) < 3 * folders


def test_a_denied_path_that_is_too_long_is_still_denied() -> None:
    judged_by = case(toml='[policy]\ndeny_prefixes = ["runs"]\ndeny = ["*.pem"]\n').policy
    assert judged_by.ruling(RepoPath(b"runs/" + b"d/" * 9000 + b"f")).rule == "deny-prefix"
    assert judged_by.ruling(RepoPath(b"d/" * 9000 + b"f.pem")).rule == "deny-pattern"


def test_a_pattern_has_a_limit_of_components() -> None:
    PatternSet(["a/" * 127 + "b"], folded=True)
    with pytest.raises(PatternError, match="128 components"):
        PatternSet(["a/" * 128 + "b"], folded=True)
