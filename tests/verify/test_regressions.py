"""Two reports compared: what is new, what is gone, and whose it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisResult,
    AnalysisRun,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.git.path import RepoPath
from patchgate.intents.intent import IntentScope
from patchgate.verify.regressions import compare
from patchgate.verify.verification_verdict import VerificationInputs, decide, ownership_test, split_by_owner
from tests.verify.analysis_cases import found, intent_of, path, report, scope_of


def compared(
    before: list[AnalysisResult], after: list[AnalysisResult], renamed: dict[RepoPath, RepoPath] | None = None
) -> AnalysisComparison:
    """Compare the findings of two trees."""
    return compare(report("before", before), report("after", after), (), renamed or {})


def test_lines_inserted_on_top_make_nothing_new_and_nothing_fixed() -> None:
    before = [found("a.py", line=line, mark=mark) for line, mark in ((3, "x"), (9, "y"), (12, "x"))]
    after = [replace(each, line=(each.line or 0) + 40) for each in before]
    assert compared(before, after) == AnalysisComparison(unchanged=3)


def test_a_renamed_file_keeps_its_findings() -> None:
    moved = {path("new/b.py"): path("a.py")}
    before = [found("a.py"), found("a.py", mark="gone")]
    comparison = compared(before, [found("new/b.py"), found("new/b.py", mark="new")], moved)
    assert comparison.new == (found("new/b.py", mark="new"),)
    assert comparison.fixed == (found("a.py", mark="gone"),)
    assert comparison.unchanged == 1


def test_two_files_that_change_places_keep_their_findings() -> None:
    swapped = {path("a.py"): path("b.py"), path("b.py"): path("a.py")}
    before, after = [found("a.py", "F1"), found("b.py", "F2")], [found("b.py", "F1"), found("a.py", "F2")]
    assert compared(before, after, swapped) == AnalysisComparison(unchanged=2)
    assert len(compared(before, after).new) == 2


def test_a_new_file_at_the_place_of_a_renamed_one_inherits_nothing() -> None:
    comparison = compared([found("a.py")], [found("b.py"), found("a.py")], {path("b.py"): path("a.py")})
    assert comparison.new == (found("a.py"),)
    assert comparison.fixed == ()


def test_of_alike_findings_the_last_in_the_file_are_new() -> None:
    before = [found("a.py", line=line) for line in (2, 8)]
    after = [found("a.py", line=line) for line in (30, 12, 4, 20)]
    assert [each.line for each in compared(before, after).new] == [20, 30]
    assert [each.line for each in compared(after, before).fixed] == [20, 30]
    assert compared(after, before).unchanged == 2


@pytest.mark.parametrize(
    "other",
    [
        replace(found("a.py"), analysis="other"),
        replace(found("a.py"), tool="other"),
        found("a.py", "other"),
        found("other.py"),
        found("a.py", mark="other"),
        found(""),
    ],
)
def test_each_part_of_the_identity_tells_findings_apart(other: AnalysisResult) -> None:
    comparison = compared([found("a.py")], [other])
    assert comparison.new == (other,)
    assert comparison.fixed == (found("a.py"),)


def test_level_message_line_and_further_paths_are_no_part_of_the_identity() -> None:
    other = replace(found("a.py", line=99), level="note", message="said otherwise")
    other = replace(other, paths=(*other.paths, path("b.py")))
    assert compared([found("a.py")], [other]) == AnalysisComparison(unchanged=1)


def test_what_is_only_suppressed_now_is_not_fixed_and_is_told() -> None:
    before = report("before", [found("a.py"), found("b.py"), found("b.py")])
    after = report("after", [found("b.py")], suppressed=[found("b.py")])
    comparison = compare(before, after, (), {})
    assert comparison.suppressed == (found("b.py"),)
    assert comparison.fixed == (found("a.py"),)
    one = compare(before, report("after", suppressed=[found("b.py")]), (), {})
    assert one.fixed == (found("a.py"), found("b.py"))


def test_a_suppression_in_a_renamed_file_is_the_same() -> None:
    before, after = (
        report(when, suppressed=[found(name)]) for when, name in (("before", "a.py"), ("after", "b.py"))
    )
    assert compare(before, after, (), {path("b.py"): path("a.py")}).suppressed == ()
    assert compare(before, after, (), {}).suppressed == (found("b.py"),)


def test_a_suppressed_line_that_was_edited_or_moved_is_no_more_debt_and_one_more_is() -> None:
    """Suppressions grow by their number for each analysis, tool, rule and file."""

    def more(before: list[AnalysisResult], after: list[AnalysisResult]) -> tuple[AnalysisResult, ...]:
        moved = {path("new.py"): path("a.py")}
        both = report("before", suppressed=before), report("after", suppressed=after)
        return compare(*both, (), moved).suppressed

    old = found("a.py", mark="old", line=3)
    edited, later = (found("new.py", mark="edited", line=line) for line in (3, 9))
    assert more([old], [edited]) == ()
    assert more([old, old], [edited]) == ()
    assert more([old], [edited, later]) == (later,)
    assert more([old], [later, found("new.py", mark="old", line=2)]) == (later,)
    for other in (found("new.py", "F2"), found("b.py"), replace(edited, tool="x"), found("")):
        assert more([old], [other]) == (other,)
        assert more([old, other], [edited]) == ()


def test_a_finding_is_not_fixed_by_a_suppression_that_takes_the_place_of_another() -> None:
    before = report("before", [found("a.py", mark="x")], suppressed=[found("a.py", mark="y")])
    comparison = compare(before, report("after", suppressed=[found("a.py", mark="x")]), (), {})
    assert (comparison.suppressed, comparison.fixed) == ((), ())


def test_a_finding_whose_suppression_was_taken_away_is_new() -> None:
    before, after = report("before", suppressed=[found("a.py")]), report("after", [found("a.py")])
    assert compare(before, after, (), {}).new == (found("a.py"),)


def test_an_analysis_that_only_one_side_has_is_all_new_or_all_gone() -> None:
    empty = TreeRuns("1" * 40, "sha256:a", {})
    assert compare(empty, report("after", [found("a.py")]), (), {}).new == (found("a.py"),)
    assert compare(report("before", [found("a.py")]), empty, (), {}).fixed == (found("a.py"),)


def test_nothing_is_cut_and_all_is_in_the_order_of_the_files() -> None:
    after = [found(f"f{number:05}.py") for number in range(30_000)]
    comparison = compared([], after[::-1])
    assert comparison.new == tuple(after)


def test_findings_are_the_intents_where_any_path_is_within_its_scope() -> None:
    """A2: any path in the allowed or the related files; external are those entirely outside."""
    scope = scope_of("src/a.py", related=["tests/test_a.py"])
    inside = [
        found("src/a.py"),
        found("tests/test_a.py"),
        found("x.py", "F1", "m", 1, "y.py", "src/a.py"),
    ]
    outside = [found("src/b.py"), found("src/a.py.bak"), found("x.py", "F1", "m", 1, "y.py")]
    assert split_by_owner([*outside, *inside], ownership_test(scope)) == (tuple(inside), tuple(outside))


def test_a_finding_without_a_path_is_the_intents() -> None:
    """A5: what names no file cannot be somebody else's."""
    assert split_by_owner([found("")], ownership_test(scope_of("a.py"))) == ((found(""),), ())


def test_without_a_scope_everything_is_the_changes_own() -> None:
    """A1 and A6: attribution runs only with an intent; without one nothing is external."""
    results = [found("a.py"), found("b.py"), found("")]
    assert split_by_owner(results, None) == (tuple(results), ())
    worsened = [WorsenedMetric(path("b.py"), "f", "complexity", 1, 2)]
    assert split_by_owner(worsened, None) == (tuple(worsened), ())


def test_attribution_takes_patterns_as_fnmatch_does_and_literal_names_first() -> None:
    """A8: `*` goes over slashes; `[id].tsx` is that very file."""
    scope = scope_of("src/*.py", "app/[id].tsx")
    own = [found("src/a.py"), found("src/deep/b.py"), found("app/[id].tsx"), found("app/i.tsx")]
    external = [found("SRC/a.py"), found("app/x.tsx")]
    assert split_by_owner([*own, *external], ownership_test(scope)) == (tuple(own), tuple(external))


def test_a_scope_of_names_that_are_no_text_attributes_them() -> None:
    name = path(b"caf\xe9 \xe2\x86\x92 'x'.py")
    result = replace(found("a.py"), paths=(name,))
    for entry in (name, path(b"caf\xe9*.py")):
        assert split_by_owner([result], ownership_test(replace(scope_of(), allowed=(entry,)))) == (
            (result,),
            (),
        )
    assert split_by_owner([result], ownership_test(replace(scope_of(), allowed=(path(b"caf\xe8*.py"),)))) == (
        (),
        (result,),
    )


def test_worsened_metrics_are_parted_by_their_path() -> None:
    """A17: intent_worsened and external_worsened."""
    inside, outside = (WorsenedMetric(path(name), "f", "complexity", 1, 2) for name in ("a.py", "b.py"))
    assert split_by_owner([outside, inside], ownership_test(scope_of("a.py"))) == ((inside,), (outside,))


def test_what_is_only_in_files_that_were_dirty_before_and_still_are_so_is_external() -> None:
    scope, dirty = scope_of("a.py", "b.py"), {path("b.py"), path("c.py")}
    own = [found("a.py"), found("b.py", "F1", "m", 1, "a.py"), found("")]
    external = [found("b.py"), found("b.py", "F1", "m", 1, "c.py"), found("x.py", "F1", "m", 1, "b.py")]
    assert split_by_owner([*own, *external], ownership_test(scope, dirty, AnalysisComparison())) == (
        tuple(own),
        tuple(external),
    )
    assert split_by_owner(external, None) == (tuple(external), ())
    inside, outside = (WorsenedMetric(path(name), "f", "complexity", 1, 2) for name in ("a.py", "b.py"))
    assert split_by_owner([outside, inside], ownership_test(scope, dirty, AnalysisComparison())) == (
        (inside,),
        (outside,),
    )


def test_what_is_new_since_the_declaration_in_a_file_that_was_dirty_is_the_works() -> None:
    scope, dirty = scope_of("a.py", "b.py"), {path("b.py")}
    there, fresh = found("b.py", "F1"), found("b.py", "F2")
    was, grew = (WorsenedMetric(path("b.py"), name, "complexity", 1, 9) for name in ("was", "grew"))
    since = AnalysisComparison(new=(fresh,), worsened=(replace(grew, before=5),))
    assert split_by_owner([there, fresh], ownership_test(scope, dirty, since)) == ((fresh,), (there,))
    assert split_by_owner([was, grew], ownership_test(scope, dirty, since)) == ((grew,), (was,))
    # Outside of the scope it stays somebody else's; and where nobody knows what was there, all is the work's.
    assert split_by_owner([there, fresh], ownership_test(scope_of("a.py"), dirty, since)) == (
        (),
        (there, fresh),
    )
    assert split_by_owner([there, fresh], ownership_test(scope, dirty)) == ((there, fresh), ())


def test_whether_a_path_is_the_scopes_is_asked_once_for_all_signals() -> None:
    """Each question tries every pattern: 100,000 findings of a few files must not ask 100,000 times."""
    asked: list[RepoPath] = []

    class Asked(IntentScope):
        def covers(self, path: RepoPath) -> bool:
            asked.append(path)
            return IntentScope.covers(self, path)

    new = [found(name, mark=str(n)) for n in range(50) for name in ("x.py", "y.py")]
    worsened = [WorsenedMetric(path("x.py"), str(n), "complexity", 1, 12) for n in range(50)]
    states = [
        ThresholdState(name, "m", 1, 0, 2, False, True, tuple(over))
        for name, over in (("a", new), ("b", worsened))
    ]
    intent = intent_of(Asked((path("in.py"),)))
    comparison = AnalysisComparison(new=tuple(new), worsened=tuple(worsened), thresholds=tuple(states))
    answer = decide(VerificationInputs(report("before"), report("after"), comparison, intent=intent))
    assert (len(answer.external_regressions), len(answer.external_thresholds)) == (100, 2)
    assert sorted(asked) == [path("x.py"), path("y.py")]


def test_a_finding_in_scope_behind_many_external_ones_is_found() -> None:
    """A2: parting comes before any cut, however many there are."""
    many = [found(f"other/{number}.py", mark=str(number)) for number in range(2500)]
    own, external = split_by_owner(compared([], [*many, found("z.py")]).new, ownership_test(scope_of("z.py")))
    assert own == (found("z.py"),)
    assert len(external) == 2500


_RESULTS = some.lists(
    some.builds(
        found,
        some.sampled_from(["a.py", "b.py", "c.py", ""]),
        some.sampled_from(["F1", "F2"]),
        some.sampled_from(["m", "n"]),
        some.integers(1, 9),
    ),
    max_size=30,
)


@given(_RESULTS, _RESULTS)
def test_before_less_what_is_fixed_and_more_what_is_new_is_after(
    before: list[AnalysisResult], after: list[AnalysisResult]
) -> None:
    comparison = compared(before, after)
    assert len(before) - len(comparison.fixed) == comparison.unchanged
    assert len(after) - len(comparison.new) == comparison.unchanged

    def kinds(results: list[AnalysisResult]) -> list[tuple[str, str, str]]:
        return sorted((str(each.path), each.rule, each.mark) for each in results)

    rest = kinds(before)
    for kind in kinds(list(comparison.fixed)):
        rest.remove(kind)
    assert sorted([*rest, *kinds(list(comparison.new))]) == kinds(after)
    assert not {*kinds(list(comparison.new))} & {*kinds(list(comparison.fixed))}


@given(_RESULTS, some.randoms(use_true_random=False))
def test_the_order_of_a_report_and_moved_lines_change_nothing(
    before: list[AnalysisResult], chance: object
) -> None:
    after = [replace(each, line=None if each.line is None else each.line + 7) for each in before]
    chance.shuffle(after)  # type: ignore[attr-defined]
    assert compared(before, after) == AnalysisComparison(unchanged=len(before))


@given(_RESULTS, some.lists(some.sampled_from(["a.py", "b.py", "c.py", "*", "[ab].py"]), max_size=3))
def test_parting_loses_nothing_and_doubles_nothing(results: list[AnalysisResult], names: list[str]) -> None:
    own, external = split_by_owner(results, ownership_test(scope_of(*names)))
    assert sorted(map(repr, (*own, *external))) == sorted(map(repr, results))
    assert all(each.path is not None for each in external)


def test_runs_of_several_analyses_are_compared_each_with_its_own() -> None:
    def two(when: str, results: list[AnalysisResult]) -> TreeRuns:
        runs = report(when)
        of = {
            name: AnalysisRun(
                name,
                name,
                "",
                runs.runs["ruff"].outcome,
                results=tuple(
                    replace(each, analysis=name, tool=name) for each in results if each.rule == name
                ),
            )
            for name in ("bandit", "ruff")
        }
        return replace(runs, runs=of)

    before = two("before", [found("a.py", "ruff")])
    after = two("after", [found("a.py", "ruff"), found("a.py", "bandit")])
    assert [each.analysis for each in compare(before, after, (), {}).new] == ["bandit"]
