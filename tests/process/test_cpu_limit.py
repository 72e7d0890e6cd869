"""The limit of processor time: what is stopped, what is counted, what is left as it was."""

from __future__ import annotations

import re
import signal
import threading

import pytest

from patchgate.errors import OutOfTimeError, UndecidedError
from patchgate.policy.content_rules import ContentRules
from patchgate.policy.placeholder_markers import Markers
from patchgate.policy.settings import MarkerSettings
from patchgate.process.cpu_limit import CpuBudget

SHORT = 0.02
LINE = b"a" * 3000 + b"b"
SLOW = {
    "alternatives": rb"(a|a)*$",
    "a repeat in a repeat": rb"(?:a?){99}(?:a?){99}c",
    "many stars": rb".*.*.*.*x",
    "without case": rb"(?i)(?:a|aa|A)*c",
    "a look ahead at each place": rb"(?:(?=[^z]*z|)a){0,99}(?:(?=[^z]*z|)a){0,99}Q",
    "a look behind": rb"(?<=a)(?:aa|a)*?c",
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_slow_expression_is_stopped_and_named(kind: str) -> None:
    rules = ContentRules(False, False, (re.compile(b"x"), re.compile(SLOW[kind])), CpuBudget(SHORT))
    with pytest.raises(UndecidedError, match=r"content\.deny\[1\]") as raised:
        rules.suspects([b"short", LINE])
    assert raised.value.hint


def test_an_expression_without_time_left_is_not_tried_again_and_others_are() -> None:
    limit = CpuBudget(SHORT)
    slow = ContentRules(False, False, (re.compile(SLOW["alternatives"]),), limit)
    quick = ContentRules(False, False, (re.compile(b"b$"),), limit)
    for _ in range(2):
        with pytest.raises(UndecidedError):
            slow.denied_in(LINE)
    with pytest.raises(OutOfTimeError):
        limit.run(SLOW["alternatives"], lambda: pytest.fail("it ran"))
    assert quick.suspects([LINE, b"a"]) == [0]


def test_all_expressions_together_have_five_times_the_time_of_one() -> None:
    limit = CpuBudget(SHORT)
    search = re.compile(SLOW["alternatives"]).search
    names = [b"%d" % number for number in range(9)]
    for name in names:
        with pytest.raises(OutOfTimeError):
            limit.run(name, lambda: search(LINE))
    with pytest.raises(OutOfTimeError):
        limit.run(b"another", lambda: pytest.fail("it ran"), earned=9.0)


def test_a_large_input_earns_time() -> None:
    limit = CpuBudget(0.0)
    with pytest.raises(OutOfTimeError):
        limit.run(b"name", lambda: pytest.fail("it ran"))
    assert limit.run(b"name", lambda: "done", earned=5.0) == "done"


def test_the_handler_of_the_signal_and_the_timer_are_as_before() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    limit = CpuBudget(SHORT)
    assert limit.run(b"quick", lambda: 1) == 1
    with pytest.raises(OutOfTimeError):
        limit.run(b"slow", lambda: re.search(SLOW["alternatives"], LINE))
    with pytest.raises(KeyError):
        limit.run(b"failing", lambda: dict[str, int]()["absent"])
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_another_thread_gets_its_result() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(CpuBudget(1.0).run(b"name", lambda: 1)))
    thread.start()
    thread.join()
    assert found == [1]


def test_a_slow_marker_of_the_policy_is_stopped_and_named() -> None:
    own = MarkerSettings("mine", SLOW["alternatives"].decode(), "a")
    markers = Markers([own], CpuBudget(SHORT))
    with pytest.raises(UndecidedError, match=r"\bmine of claims\.markers"):
        markers.own_in(markers.all[-1], LINE)
