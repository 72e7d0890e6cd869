"""Which work may start when: order, limits, failures, and both kinds of scheduling (requirement D 4.1)."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import UsageError
from patchgate.runs.phases import PHASES, BlockedWork, Phase, Schedule, Scheduling, Work

CHECKED = (Phase.CONTRACT, Phase.TESTS, Phase.IMPLEMENTATION)
BOTH = pytest.mark.parametrize("scheduling", Scheduling)


@dataclass(frozen=True)
class Plan:
    """The components of a run: their phases, dependencies and parents."""

    phases: Mapping[str, Sequence[Phase]]
    needs: Mapping[str, Collection[str]] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)

    def schedule(
        self,
        scheduling: Scheduling = Scheduling.WAVEFRONT,
        most: int = 4,
        done: Collection[Work] = (),
    ) -> Schedule:
        return Schedule(
            phases=self.phases,
            needs=self.needs,
            parents=self.parents,
            scheduling=scheduling,
            most=most,
            done=done,
        )

    @property
    def works(self) -> set[Work]:
        return {Work(name, phase) for name, some in self.phases.items() for phase in some}

    def reached(self, name: str, graph: Mapping[str, Collection[str]]) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            new = set(graph.get(waiting.pop(), ())) - found
            found |= new
            waiting += new
        return found

    def may_not_meet(self, one: str, other: str) -> bool:
        above = {name: {parent} for name, parent in self.parents.items() if parent is not None}
        return any(
            last in self.reached(first, graph)
            for first, last in ((one, other), (other, one))
            for graph in (self.needs, above)
        )

    def waits_for(self, work: Work) -> set[Work]:
        """Write rule 1 down once more, as slowly as it reads."""
        found = {each for each in self.works if each.component == work.component and each < work}
        up_to = min(work.phase.number, Phase.IMPLEMENTATION.number)
        for each in self.works:
            if each.component in self.reached(work.component, self.needs) and each.phase.number <= up_to:
                found.add(each)
        if work.phase is Phase.INTEGRATION:
            below = {name for name in self.parents if work.component in ancestors(name, self.parents)}
            found |= {each for each in self.works if each.component in below}
        return found

    def blocked_by(self, failed: Collection[Work]) -> set[Work]:
        found: set[Work] = set()
        while new := {
            work for work in self.works - found - set(failed) if self.waits_for(work) & (found | set(failed))
        }:
            found |= new
        return found


def ancestors(name: str, parents: Mapping[str, str | None]) -> set[str]:
    found = set()
    above = parents.get(name)
    while above is not None:
        found.add(above)
        above = parents.get(above)
    return found


@dataclass
class Result:
    """What a simulated run did: the seconds it took, and each work with its begin and end, as started."""

    schedule: Schedule
    seconds: int = 0
    spans: list[tuple[Work, int, int]] = field(default_factory=list)


def simulate(
    schedule: Schedule, seconds: Mapping[Work, int] | None = None, failing: Collection[Work] = ()
) -> Result:
    """Run a schedule on a virtual clock: all that is ready starts at once; equal ends come in order."""
    result = Result(schedule)
    running: list[tuple[int, Work]] = []
    while not schedule.is_over:
        for work in schedule.ready():
            schedule.start(work)
            end = result.seconds + (seconds or {}).get(work, 1)
            heapq.heappush(running, (end, work))
            result.spans.append((work, result.seconds, end))
        assert running, "a run that is not over has something to do"
        result.seconds, ended = heapq.heappop(running)
        (schedule.fail if ended in failing else schedule.finish)(ended)
    assert running == []
    return result


NAMES = "abcdefg"


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw some components, some of which lack phases, and one name that is not part of the run."""
    order = draw(st.permutations(NAMES))
    needs = {
        name: draw(st.sets(st.sampled_from(order[:at]), max_size=3)) if at else set()
        for at, name in enumerate(order)
    }
    order = draw(st.permutations(NAMES))
    parents = {name: draw(st.sampled_from((None, *order[:at]))) for at, name in enumerate(order)}
    inside = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    phases = {
        name: sorted(draw(st.sets(st.sampled_from(PHASES))), key=PHASES.index) for name in sorted(inside)
    }
    return Plan(phases, needs, parents)


@st.composite
def timed_plans(draw: st.DrawFn) -> tuple[Plan, dict[Work, int], set[Work]]:
    plan = draw(plans())
    works = sorted(plan.works)
    lasting = draw(st.lists(st.integers(1, 9), min_size=len(works), max_size=len(works)))
    failing = draw(st.sets(st.sampled_from(works), max_size=3)) if works else set()
    return plan, dict(zip(works, lasting, strict=True)), failing


@given(timed_plans(), st.sampled_from(Scheduling), st.integers(1, 5))
def test_a_run_never_starts_two_dependents_or_too_many_at_once_and_each_work_once(
    drawn: tuple[Plan, dict[Work, int], set[Work]], scheduling: Scheduling, most: int
) -> None:
    plan, seconds, failing = drawn
    spans = simulate(plan.schedule(scheduling, most), seconds, failing).spans
    assert len({work for work, _, _ in spans}) == len(spans)
    for work, begin, _ in spans:
        beside = [other for other, start, end in spans if start <= begin < end and other != work]
        assert len(beside) < most
        assert not any(
            other.component == work.component or plan.may_not_meet(work.component, other.component)
            for other in beside
        )


@given(timed_plans(), st.sampled_from(Scheduling), st.integers(1, 5))
def test_a_work_starts_after_all_that_it_waits_for(
    drawn: tuple[Plan, dict[Work, int], set[Work]], scheduling: Scheduling, most: int
) -> None:
    plan, seconds, _ = drawn
    spans = simulate(plan.schedule(scheduling, most), seconds).spans
    ends = {work: end for work, _, end in spans}
    assert ends.keys() == plan.works
    for work, begin, _ in spans:
        assert all(ends[other] <= begin for other in plan.waits_for(work))
        if scheduling is Scheduling.PHASED:
            assert all(ends[other] <= begin for other in ends if other.phase.number < work.phase.number)


@given(timed_plans(), st.integers(1, 5))
def test_phased_and_wavefront_end_with_the_same_work_done_failed_and_blocked(
    drawn: tuple[Plan, dict[Work, int], set[Work]], most: int
) -> None:
    plan, seconds, failing = drawn
    ends = [simulate(plan.schedule(each, most), seconds, failing).schedule for each in Scheduling]
    one, other = ends
    # A work that fails is only known to fail if it starts: what it waits for may have failed before.
    assert (one.done, one.failed, one.blocked()) == (other.done, other.failed, other.blocked())
    assert {each.work for each in one.blocked()} == plan.blocked_by(one.failed)
    assert plan.works == {*one.done, *one.failed, *(each.work for each in one.blocked())}
    for each in one.blocked():
        assert set(each.failed) == {work for work in one.failed if each.work in plan.blocked_by([work])}


@given(timed_plans(), st.sampled_from(Scheduling), st.integers(1, 5))
def test_a_run_that_goes_on_from_what_is_done_does_the_rest(
    drawn: tuple[Plan, dict[Work, int], set[Work]], scheduling: Scheduling, most: int
) -> None:
    plan, seconds, failing = drawn
    before = simulate(plan.schedule(scheduling, most), seconds, failing).schedule
    after = simulate(plan.schedule(scheduling, most, before.done), seconds)
    assert {work for work, _, _ in after.spans} == plan.works - set(before.done)
    assert set(after.schedule.done) == plan.works


@given(timed_plans(), st.sampled_from(Scheduling), st.integers(1, 5))
def test_the_order_of_the_input_does_not_matter(
    drawn: tuple[Plan, dict[Work, int], set[Work]], scheduling: Scheduling, most: int
) -> None:
    plan, seconds, failing = drawn
    turned = Plan(
        dict([*plan.phases.items()][::-1]),
        {name: sorted(others) for name, others in [*plan.needs.items()][::-1]},
        dict([*plan.parents.items()][::-1]),
    )
    one, other = (
        simulate(each.schedule(scheduling, most), seconds, failing).spans for each in (plan, turned)
    )
    assert one == other


LEAVES = Plan(dict.fromkeys("abcde", CHECKED))
LASTING = {"a": (5, 1, 1), "b": (1, 5, 1), "c": (1, 1, 5), "d": (1, 1, 1), "e": (1, 1, 1)}


def test_wavefront_saves_at_least_30_percent_on_five_independent_leaves() -> None:
    seconds = {
        Work(name, phase): length
        for name, lengths in LASTING.items()
        for phase, length in zip(CHECKED, lengths, strict=True)
    }
    phased, wavefront = (simulate(LEAVES.schedule(each, 5), seconds) for each in Scheduling)
    assert (phased.seconds, wavefront.seconds) == (15, 7)
    assert wavefront.seconds <= 0.7 * phased.seconds
    assert phased.schedule.done == wavefront.schedule.done


def names(works: Collection[Work]) -> list[str]:
    return [str(work) for work in works]


def test_the_order_of_phases_is_that_of_their_life_and_not_of_their_letters() -> None:
    assert [phase.value for phase in PHASES] == [
        *("interview", "shaping", "contract", "tests", "implementation", "integration")
    ]
    assert [phase.number for phase in PHASES] == [0, 1, 2, 3, 4, 5]
    works = [Work(name, phase) for name in "ba" for phase in reversed(PHASES)]
    assert sorted(works) == [Work(name, phase) for name in "ab" for phase in PHASES]


def test_a_component_is_ready_when_its_dependency_has_finished_the_same_phase() -> None:
    schedule = Plan({"app": CHECKED, "store": CHECKED}, {"app": ["store"]}).schedule()
    assert names(schedule.ready()) == ["store (contract)"]
    schedule.start(Work("store", Phase.CONTRACT))
    assert schedule.ready() == []
    schedule.finish(Work("store", Phase.CONTRACT))
    # Both could go on, but never together; the dependency comes first.
    assert names(schedule.ready()) == ["store (tests)"]
    schedule.start(Work("app", Phase.CONTRACT))
    assert schedule.ready() == []
    schedule.finish(Work("app", Phase.CONTRACT))
    assert names(schedule.ready()) == ["store (tests)"]


def test_an_implementation_waits_for_those_of_its_dependencies_and_not_for_their_integration() -> None:
    whole = (Phase.IMPLEMENTATION, Phase.INTEGRATION)
    spans = simulate(Plan({"app": whole, "store": whole}, {"app": {"store"}}).schedule(most=1)).spans
    assert names([work for work, _, _ in spans]) == [
        *("store (implementation)", "store (integration)", "app (implementation)", "app (integration)")
    ]
    schedule = Plan({"app": whole, "store": whole}, {"app": {"store"}}).schedule()
    schedule.start(Work("store", Phase.IMPLEMENTATION))
    schedule.finish(Work("store", Phase.IMPLEMENTATION))
    schedule.start(Work("app", Phase.IMPLEMENTATION))


def test_a_parent_integrates_after_all_its_children_have_ended_their_last_phase() -> None:
    plan = Plan(
        {"top": (Phase.INTEGRATION,), "left": CHECKED, "right": (Phase.CONTRACT, Phase.INTEGRATION)},
        parents={"left": "top", "right": "group", "group": "top", "top": None},
    )
    spans = simulate(plan.schedule()).spans
    assert spans[-1][0] == Work("top", Phase.INTEGRATION)
    schedule = plan.schedule(done=plan.works - {Work("right", Phase.INTEGRATION), spans[-1][0]})
    assert names(schedule.ready()) == ["right (integration)"]


@BOTH
def test_a_child_may_depend_on_its_parent_and_a_parent_on_its_child(scheduling: Scheduling) -> None:
    plan = Plan(
        {"top": PHASES, "above": PHASES, "below": PHASES},
        {"below": ["above"], "top": ["below"]},
        {"below": "above", "above": "top", "top": None},
    )
    assert set(simulate(plan.schedule(scheduling)).schedule.done) == plan.works


def test_parent_and_child_are_never_worked_on_together() -> None:
    schedule = Plan(
        {"a": CHECKED, "b": CHECKED, "c": CHECKED}, parents={"a": "b", "b": "c", "c": None}
    ).schedule()
    assert names(schedule.ready()) == ["a (contract)"]
    schedule.start(Work("a", Phase.CONTRACT))
    assert schedule.ready() == []
    for above in "bc":
        with pytest.raises(ValueError, match="may not start now"):
            schedule.start(Work(above, Phase.CONTRACT))


@pytest.mark.parametrize(("first", "other"), [("store", "app"), ("app", "store")])
def test_components_that_depend_on_each_other_through_others_are_never_worked_on_together(
    first: str, other: str
) -> None:
    plan = Plan(dict.fromkeys(("app", "cache", "store"), CHECKED), {"app": ["cache"], "cache": ["store"]})
    both = {"app": Work("app", Phase.CONTRACT), "store": Work("store", Phase.TESTS)}
    schedule = plan.schedule(done=[Work("store", Phase.CONTRACT), Work("cache", Phase.CONTRACT)])
    schedule.start(both[first])
    assert both[other] not in schedule.ready()
    with pytest.raises(ValueError, match="may not start now"):
        schedule.start(both[other])
    schedule.finish(both[first])
    schedule.start(both[other])


def test_a_dependency_without_a_phase_counts_by_the_phases_before() -> None:
    plan = Plan({"app": CHECKED, "store": (Phase.CONTRACT, Phase.IMPLEMENTATION)}, {"app": ["store"]})
    schedule = plan.schedule(done=[Work("app", Phase.CONTRACT)])
    assert names(schedule.ready()) == ["store (contract)"]
    schedule.start(Work("store", Phase.CONTRACT))
    schedule.finish(Work("store", Phase.CONTRACT))
    schedule.start(Work("app", Phase.TESTS))


def test_a_name_that_is_not_part_of_the_run_keeps_the_order_on_both_sides_of_it() -> None:
    plan = Plan({"app": CHECKED, "store": CHECKED}, {"app": ["between"], "between": ["store"]})
    assert names(plan.schedule().ready()) == ["store (contract)"]
    alone = Plan({"app": CHECKED}, {"app": ["between"]})
    assert names(alone.schedule().ready()) == ["app (contract)"]


def test_phased_waits_for_every_component_and_wavefront_does_not() -> None:
    plan = Plan(dict.fromkeys("ab", CHECKED))
    for scheduling, expected in (
        (Scheduling.PHASED, []),
        (Scheduling.WAVEFRONT, ["a (tests)"]),
    ):
        schedule = plan.schedule(scheduling)
        for work in schedule.ready():
            schedule.start(work)
        schedule.finish(Work("a", Phase.CONTRACT))
        assert names(schedule.ready()) == expected


@BOTH
def test_after_a_failure_the_rest_goes_on_and_exactly_the_dependents_are_blocked(
    scheduling: Scheduling,
) -> None:
    plan = Plan(
        dict.fromkeys(("app", "cache", "other", "store"), CHECKED),
        {"app": ["cache"], "cache": ["store"]},
    )
    failed = Work("store", Phase.TESTS)
    schedule = simulate(plan.schedule(scheduling), failing=[failed]).schedule
    assert schedule.failed == [failed]
    assert names(schedule.done) == [
        *("app (contract)", "cache (contract)", "other (contract)", "other (tests)"),
        *("other (implementation)", "store (contract)"),
    ]
    assert schedule.blocked() == [
        BlockedWork(work, (failed,)) for work in sorted(plan.works - {*schedule.done, failed})
    ]


def test_blocked_work_names_every_failure_that_it_waits_for() -> None:
    plan = Plan({"app": CHECKED[:1], "a": CHECKED[:1], "b": CHECKED[:1]}, {"app": ["a", "b"]})
    failing = [Work("a", Phase.CONTRACT), Work("b", Phase.CONTRACT)]
    schedule = simulate(plan.schedule(), failing=failing).schedule
    assert schedule.blocked() == [BlockedWork(Work("app", Phase.CONTRACT), tuple(failing))]


def test_what_is_started_is_not_handed_out_twice_and_counts_towards_the_limit() -> None:
    schedule = LEAVES.schedule(most=2)
    first = schedule.ready()
    assert names(first) == ["a (contract)", "b (contract)"]
    assert schedule.ready() == first
    schedule.start(first[0])
    assert names(schedule.ready()) == ["b (contract)"]
    assert schedule.started == first[:1]
    schedule.start(first[1])
    assert schedule.ready() == []
    with pytest.raises(ValueError, match=r"c \(contract\) may not start now"):
        schedule.start(Work("c", Phase.CONTRACT))


@BOTH
def test_what_is_not_ready_cannot_be_started(scheduling: Scheduling) -> None:
    schedule = Plan({"app": CHECKED, "store": CHECKED}, {"app": ["store"]}).schedule(scheduling)
    for work in (
        Work("app", Phase.CONTRACT),
        Work("store", Phase.TESTS),
        Work("store", Phase.SHAPING),
        Work("new", Phase.CONTRACT),
    ):
        with pytest.raises(ValueError, match="may not start now"):
            schedule.start(work)
    schedule.start(Work("store", Phase.CONTRACT))
    with pytest.raises(ValueError, match=r"store \(contract\) may not start now"):
        schedule.start(Work("store", Phase.CONTRACT))


def test_under_phased_no_work_of_a_later_phase_can_be_started() -> None:
    schedule = LEAVES.schedule(Scheduling.PHASED, done=[Work("a", Phase.CONTRACT)])
    with pytest.raises(ValueError, match=r"a \(tests\) may not start now"):
        schedule.start(Work("a", Phase.TESTS))


def test_only_what_is_started_can_end() -> None:
    schedule = LEAVES.schedule()
    for end in (schedule.finish, schedule.fail):
        with pytest.raises(ValueError, match=r"a \(contract\) is not started"):
            end(Work("a", Phase.CONTRACT))


def test_a_run_without_work_is_over_and_one_whose_work_is_started_is_not() -> None:
    assert Plan({}).schedule().is_over
    assert LEAVES.schedule(done=LEAVES.works).is_over
    schedule = Plan({"a": CHECKED[:1]}).schedule()
    schedule.start(Work("a", Phase.CONTRACT))
    assert not schedule.is_over
    schedule.finish(Work("a", Phase.CONTRACT))
    assert schedule.is_over


def test_a_cycle_of_dependencies_is_refused_with_its_path() -> None:
    plan = Plan(LEAVES.phases, {"a": ["c"], "c": ["b"], "b": ["a"], "d": ["d"]})
    with pytest.raises(UsageError) as error:
        plan.schedule()
    assert error.value.message == ("these components depend on each other: a -> c -> b -> a; d -> d")


def test_a_cycle_of_parents_is_refused_with_its_path() -> None:
    with pytest.raises(UsageError) as error:
        Plan(LEAVES.phases, parents={"a": "b", "b": "a", "c": "a"}).schedule()
    assert error.value.message == "these components are parents of each other: a -> b -> a"
    with pytest.raises(UsageError, match="parents of each other: a -> a"):
        Plan(LEAVES.phases, parents={"a": "a"}).schedule()


def test_a_schedule_that_could_never_run_is_refused() -> None:
    with pytest.raises(ValueError, match="0 works at once"):
        LEAVES.schedule(most=0)
    with pytest.raises(ValueError, match="the phases of a are not in order"):
        Plan({"a": (Phase.TESTS, Phase.CONTRACT)}).schedule()
    with pytest.raises(ValueError, match="the phases of a are not in order"):
        Plan({"a": (Phase.TESTS, Phase.TESTS)}).schedule()


def test_thousands_of_components_are_planned_in_one_go() -> None:
    many = [f"c{at:04}" for at in range(1000)]
    plan = Plan(dict.fromkeys(many, CHECKED), {name: [many[at // 2]] for at, name in enumerate(many) if at})
    schedule = plan.schedule(most=8)
    assert names(schedule.ready()) == ["c0000 (contract)"]
