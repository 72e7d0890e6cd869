"""Send SIGINT, SIGTERM and SIGHUP at moments that nobody chose, and recover nothing afterwards.

Decides when. Half of the moments are any time of the run, half are exactly after a call that changes
something, where it hurts. The exit code is 130 or 143; before Python can handle a signal it is the signal's
own end, and then nothing may have been written.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Sequence

from tests.crash.aftermath import Aftermath, look, told
from tests.crash.cases import Case, Place
from tests.crash.comparer import Kind
from tests.crash.kill_points import Point, injecting
from tests.crash.programs import Program, ended, started
from tests.world import Answer

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}


def seconds_of_a_run(program: Program, place: Place) -> float:
    """Measure one undisturbed run."""
    start = time.monotonic()
    answer = program.run(place)
    assert answer.code == 0, told(answer)
    return time.monotonic() - start


def after_a_time(program: Program, place: Place, number: signal.Signals, seconds: float) -> Answer:
    """Send a signal after so many seconds, if the program still runs."""
    process = program.popen(place)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    return ended(process)


def at_a_call(program: Program, place: Place, number: signal.Signals, point: Point) -> Answer:
    """Send a signal with a call: the call is made, then the program hears of the signal."""
    log = place.folder.with_suffix(".signal")
    prefix = injecting(point, log, f"signal={number.name.removeprefix('SIG')}")
    return ended(started([*prefix, *program.command(place.patch)], place))


def trial(
    program: Program, case: Case, place: Place, points: Sequence[Point], seconds: float, chance: random.Random
) -> tuple[str, Aftermath]:
    """Send one signal at one moment; give where, and what was found without recover."""
    number = chance.choice(list(CODES))
    if points and chance.random() < 0.5:
        point = chance.choice(points)
        where = f"{number.name} at {point}"
        answer = at_a_call(program, place, number, point)
    else:
        moment = chance.uniform(0, 1.1 * seconds)
        where = f"{number.name} after {moment:.3f} s of {seconds:.3f}"
        answer = after_a_time(program, place, number, moment)
    found = look(case, place, program, recovering=False)
    if not program.ours:
        return where, found
    return where, Aftermath(
        found.at_once, found.left, found.afterwards, (*found.failures, *_misanswered(answer, number, found))
    )


def _misanswered(answer: Answer, number: signal.Signals, found: Aftermath) -> list[str]:
    """Hold the exit code against what was found."""
    kind = found.at_once.kind
    problems: list[str] = []
    if kind is Kind.OLD and answer.err and "surfaces" not in answer.err and answer.code in {1, -number}:
        # Python itself, or the script that pip wrote, was not up yet: no line of ours had run.
        return problems
    if "Traceback" in answer.err:
        problems.append(f"a traceback: {told(answer)}")
    # Its own end by the signal: Python was not up yet.
    if answer.code not in {0, CODES[number], -number} or (answer.code == -number and kind is not Kind.OLD):
        problems.append(f"exit code {answer.code} with {kind}: {told(answer)}")
    if answer.code == 0 and kind is not Kind.NEW:
        problems.append(f"said 0 and left {kind}")
    return problems
