"""What authors report of their calls is recorded and added up, and no call follows a cap that is reached."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.ledger.ledger import Event, Ledger
from patchgate.policy.run_settings import RunSettings, run_from
from patchgate.runs.cost import (
    CostBudget,
    Spend,
    Usage,
    UsageReportError,
    contradictions,
    money,
    read_usage,
    total,
)
from patchgate.runs.phase_task import PhaseOutcome
from patchgate.runs.phases import Phase
from patchgate.runs.run_cost import cost_schema
from patchgate.runs.run_record import runs_folder
from patchgate.runs.run_state import RunStatus
from patchgate.runs.triage import FaultKind
from tests.component_world import opened
from tests.runs.phase_world import RIGHT, Desk
from tests.runs.test_runs import World
from tests.schemas import require_valid

pytestmark = pytest.mark.turns(3)

REPORT = {"model": "m-1", "input_tokens": 1200, "output_tokens": 300, "cost": 0.25}
CODE, SHAPING = Phase.IMPLEMENTATION, Phase.SHAPING


def spent(cost: float, phase: Phase = CODE) -> Spend:
    return Spend(phase, Usage(cost=cost), "calc", "coder")


def reporting(report: object) -> str:
    """Write the lines of an author that report a call."""
    text = report if isinstance(report, str) else json.dumps(report)
    return f"printf '%s' '{text}' > \"$PATCHGATE_USAGE\""


def spends(desk: Desk) -> list[dict[str, Any]]:
    events = Ledger(desk.repo.common_dir).find_events({"run"})
    return [dict(event.about) for event in events if event.about["action"] == "spent"]


# ---- budgets ---------------------------------------------------------------------------------------------


def test_without_a_limit_nothing_is_reached() -> None:
    assert CostBudget().reached(CODE, [spent(10**6)]) is None


def test_a_phase_may_spend_less_than_its_share_of_the_total() -> None:
    budget = CostBudget(10.0, {"implementation": 0.6})
    assert budget.reached(CODE, [spent(5.99)]) is None
    assert "phase_caps" in (budget.reached(CODE, [spent(6.0)]) or "")
    assert budget.reached(SHAPING, [spent(6.0)]) is None


def test_the_total_still_holds_where_no_phase_has_reached_its_cap() -> None:
    budget = CostBudget(10.0, {"implementation": 0.6, "shaping": 0.6})
    assert "total_cost" in (budget.reached(CODE, [spent(5.0), spent(5.0, SHAPING)]) or "")


def test_the_summary_has_what_each_phase_spent_its_cap_and_what_remains() -> None:
    budget = CostBudget(10.0, {"implementation": 0.6, "tests": 0.1})
    found = budget.summary([spent(2.5), spent(0.1, SHAPING), spent(0.2, SHAPING)])
    assert {phase: (each.spent, each.cap, each.remaining) for phase, each in found.items()} == {
        SHAPING: (0.3, None, None),
        Phase.TESTS: (0.0, 1.0, 1.0),
        CODE: (2.5, 6.0, 3.5),
    }


def test_shaping_budget_pct_is_the_cap_of_shaping() -> None:
    settings = run_from({"total_cost": 20.0, "shaping_budget_pct": 0.1, "phase_caps": {"tests": 0.5}})
    assert settings.phase_caps == {"tests": 0.5, "shaping": 0.1}
    assert CostBudget.of(settings).cap(SHAPING) == 2.0
    assert CostBudget.of(RunSettings()).cap(SHAPING) is None


@given(st.lists(st.integers(0, 10**12).map(lambda each: each / 10**6), max_size=50))
def test_amounts_add_up_exactly_in_any_order(amounts: list[float]) -> None:
    whole = sum(round(each * 10**6) for each in amounts) / 10**6
    assert (
        total(map(spent, amounts)) == total(map(spent, reversed(amounts))) == pytest.approx(whole, abs=1e-6)
    )


def test_money_has_two_digits_and_more_only_where_there_are_more() -> None:
    amounts = (0, 2.5, 1234.0, 0.000125, 1.0000001, 0.0000004, 0.0000009)
    shown = ["0.00", "2.50", "1,234.00", "0.000125", "1.00", "under 0.000001", "0.000001"]
    assert [money(each) for each in amounts] == shown


# ---- reports ---------------------------------------------------------------------------------------------


def test_a_report_is_read(tmp_path: Path) -> None:
    place = tmp_path / "usage"
    place.write_text(json.dumps({**REPORT, "more": [1]}))
    assert read_usage(str(place)) == Usage("m-1", 1200, 300, 0.25)
    assert read_usage(str(tmp_path / "none")) is None


BAD = (
    *(
        "",
        "{",
        "[]",
        "1",
        '{"cost": -1}',
        '{"cost": NaN}',
        '{"cost": 1e999}',
        '{"cost": true}',
        '{"cost": "1"}',
    ),
    *('{"input_tokens": -1}', '{"output_tokens": 1.5}', '{"input_tokens": true}', '{"model": 1}'),
    *('{"cost": 1, "cost": 2}', '{"more": {"a": 1, "a": 1}}'),
    *('{"cost": 1e10}', "[" * 100_000, json.dumps({"model": "m" * 300}), "\udcff"),
)


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_report_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    place = tmp_path / "usage"
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageReportError):
        read_usage(str(place))


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "100 MB"])
def test_a_report_that_is_no_small_file_is_told(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "usage"
    if kind == "link":
        (tmp_path / "real").write_text(json.dumps(REPORT))
        place.symlink_to("real")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        with place.open("wb") as file:
            file.truncate(100 << 20)
    with pytest.raises(UsageReportError):
        read_usage(str(place))


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_report_is_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    place = tmp_path_factory.getbasetemp() / "usage"
    place.write_bytes(raw)
    with suppress(UsageReportError):
        read_usage(str(place))


# ---- calls -----------------------------------------------------------------------------------------------


def test_each_call_is_recorded_with_what_it_cost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, b"no patch\n", RIGHT, script=reporting(REPORT))
    result = desk.perform()
    assert (result.outcome, result.cost) == (PhaseOutcome.PASSED, 0.5)
    about = {"run": "r-1", "action": "spent", "phase": "implementation", "component": "calc"}
    assert spends(desk) == [{**about, "author": "writer", **REPORT}] * 2


def test_a_call_that_failed_is_recorded_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path, script=reporting(REPORT) + "\nexit 1")
    assert desk.perform().outcome is PhaseOutcome.FAILED
    assert len(spends(desk)) == 1


def test_a_call_without_a_report_is_recorded_with_its_author(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    assert desk.perform().outcome is PhaseOutcome.PASSED
    unknown = {"model": None, "input_tokens": 0, "output_tokens": 0, "cost": None}
    about = {"run": "r-1", "action": "spent", "phase": "implementation", "component": "calc"}
    assert spends(desk) == [{**about, "author": "writer", **unknown}]


def test_an_author_that_was_not_started_is_no_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = (desk.repo.path / "patchgate.toml").read_text()
    lines = ['command = ["no-such-author"]' if "briefs" in line else line for line in text.splitlines()]
    desk.repo.policy("\n".join(lines) + "\n")
    desk.perform()
    assert spends(desk) == []


def test_a_call_that_is_stopped_is_recorded_too(tmp_path: Path) -> None:
    began = tmp_path / "began"
    desk = Desk(tmp_path, RIGHT, script=f"{reporting(REPORT)}; touch {began}; exec sleep 60")
    result = desk.perform(is_wanted=lambda: not began.exists())
    assert (result.outcome, result.cost) == (PhaseOutcome.FAULT, 0.25)
    assert [each["cost"] for each in spends(desk)] == [0.25]


@pytest.mark.parametrize(
    "limits", ["total_cost = 0.5", "total_cost = 1.0\nphase_caps = { implementation = 0.5 }"]
)
def test_no_call_follows_a_cap_that_is_reached(tmp_path: Path, limits: str) -> None:
    bad = b"no patch\n"
    desk = Desk(tmp_path, bad, bad, RIGHT, script=reporting(REPORT), more=f"[run]\n{limits}\n")
    result = desk.perform()
    assert (result.outcome, result.kind) == (PhaseOutcome.WAITING, FaultKind.BUDGET_SPENT)
    assert (len(desk.briefs), result.cost) == (2, 0.5)
    assert "git patchgate run resume r-1" in (result.hint or "")
    assert desk.staged == []
    # Nor does the next work of the run call one.
    assert desk.perform().kind is FaultKind.BUDGET_SPENT
    assert len(desk.briefs) == 2


@pytest.mark.parametrize("has_limit", [True, False])
def test_a_report_that_cannot_be_used_ends_the_work_only_where_there_is_a_cap(
    tmp_path: Path, has_limit: bool
) -> None:
    more = "[run]\ntotal_cost = 5.0\n" if has_limit else ""
    desk = Desk(tmp_path, RIGHT, script=reporting('{"cost": -1}'), more=more)
    result = desk.perform()
    assert result.outcome is (PhaseOutcome.FAILED if has_limit else PhaseOutcome.PASSED)
    assert "cannot be used" in (result.reason if has_limit else result.warnings[0])
    assert bool(desk.staged) is not has_limit


def test_an_author_without_a_report_is_told_where_there_is_a_cap(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, more="[run]\ntotal_cost = 5.0\n")
    result = desk.perform()
    assert result.outcome is PhaseOutcome.PASSED
    assert "did not report" in result.warnings[0]


# ---- commands --------------------------------------------------------------------------------------------


def made(tmp_path: Path, limits: str = "") -> World:
    world = World.make(tmp_path)
    script = tmp_path / "author.sh"
    script.write_text(reporting(REPORT) + "\n" + script.read_text())
    if limits:
        world.repo.policy((world.repo.path / "patchgate.toml").read_text() + f"[run]\n{limits}\n")
    return world


def test_the_cost_of_a_run_is_shown_by_phase_and_model_and_added_to_by_hand(tmp_path: Path) -> None:
    world = made(tmp_path, "total_cost = 5.0\nphase_caps = { implementation = 0.6 }")
    state = world.start("left", "base")
    shown = world.repo.cli("run", "cost")
    assert shown.out.splitlines() == [
        f"{state.id}: 0.50 of 5.00 in 2 calls, 2,400 tokens in, 600 out",
        "  implementation: 0.50 of 3.00, 2.50 left",
        "  m-1: 0.50 in 2 calls, 2,400 tokens in, 600 out",
    ]
    (runs_folder(opened(world.repo)) / f"{state.id}.json").unlink()
    added = world.repo.cli("run", "cost", "add", "1.25", "--phase", "shaping", "--component", "base")
    lines = {"  shaping: 1.25", "  without a model: 1.25 in 1 call, 0 tokens in, 0 out"}
    assert lines <= set(added.out.splitlines())
    document = json.loads(world.repo.cli("run", "cost", state.id, "--format", "json").out)
    require_valid(document, cost_schema())
    assert (document["cost"], len(document["calls"])) == (1.75, 3)
    # What was added by hand belongs to no call of the work, and the cache has it too.
    rebuilt = world.repo.cli("run", "rebuild")
    assert ("warning" in rebuilt.out, "the cache agrees" in rebuilt.err) == (False, True)


def test_a_run_pauses_at_its_cap_and_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    world = made(tmp_path, "total_cost = 0.5")
    state = world.start()
    assert (state.status, "base (implementation)" in (state.reason or "")) == (RunStatus.PAUSED, False)
    assert len(list((world.repo.path / "src").glob("*/code.txt"))) == 2
    text = (world.repo.path / "patchgate.toml").read_text()
    world.repo.stage({"patchgate.toml": text.replace("total_cost = 0.5", "total_cost = 50.0")})
    assert world.resume().status is RunStatus.COMPLETED


@pytest.mark.parametrize("amount", ["-1", "nan", "inf", "1e12", "x", "--", ""])
def test_an_amount_that_is_none_is_refused(tmp_path: Path, amount: str) -> None:
    world = made(tmp_path)
    world.start("base")
    before = world.actions()
    assert "Choose from: interview, shaping" in world.repo.cli("run", "cost", "add", "1").err
    assert world.repo.cli("run", "cost", "add", "--phase", "tests", "--", amount).code == 2
    assert world.repo.cli("run", "cost", "add", "1", "--phase", "tests", "--component", "no").code == 2
    assert world.repo.cli("run", "cost", "add", "1", "--phase", "tests", "--run", "r-no").code == 2
    assert world.repo.cli("run", "cost", "r-no").code == 2
    assert world.actions() == before


def test_a_worker_that_is_killed_in_a_call_leaves_costs_that_add_up(tmp_path: Path) -> None:
    world = made(tmp_path)
    script = tmp_path / "author.sh"
    first = f"test -e {tmp_path}/1 || {{ touch {tmp_path}/1; echo no patch; exit; }}"
    second = f"test -e {tmp_path}/2 || {{ touch {tmp_path}/2; kill -9 $PPID; }}"
    script.write_text("\n".join([reporting(REPORT), first, second, script.read_text()]))
    answer = world.repo.cli("run", "start", "base")
    assert (answer.code, "is tried again" in answer.out) == (0, True), answer.out
    rebuilt = world.repo.cli("run", "rebuild", "--format", "json")
    assert json.loads(rebuilt.out)["warnings"] == []


def test_costs_that_do_not_add_up_are_told_by_rebuild() -> None:
    def event(**about: Any) -> Event:
        return Event("run", {"run": "r-1", "component": "a", "phase": "tests", **about})

    def said(*events: Event) -> bool:
        return bool(contradictions(events, "r-1"))

    began, call = event(action="began"), event(action="spent", author="x", cost=0.1)
    assert not said(began, call, call, event(action="finished", cost=0.2))
    assert said(began, call, event(action="finished", cost=0.2))
    assert said(began, event(action="faulted", cost=0.2))
    # A work that was killed has no sum, and one that goes on has none yet.
    assert not said(began, call, began, call, event(action="finished", cost=0.1))
    assert not said(began, call)
    lost = event(action="retried", cost=None)
    assert not said(began, call, lost, began, call, event(action="finished", cost=0.1))
    assert not said(began, call, event(action="faulted", cost=None))
    assert not said(began, event(action="spent", author=None, cost=9.0), event(action="finished", cost=0.0))
