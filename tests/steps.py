"""Counting what work costs, in steps instead of seconds: the same on every machine.

A step is a line of patchgate that runs. A new text that is bound to a name adds one step for each 16 bytes,
so that making a text of every beginning of a path shows, although each takes one line. What the interpreter
does inside one line, and what git does, is not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import patchgate

_ROOT = str(Path(patchgate.__file__).parent)
_BYTES_A_STEP = 16


def steps_of(work: Callable[[], object]) -> int:
    """Do some work, and count its steps."""
    steps = 0
    seen: dict[int, object] = {}  # kept, so that no other text gets its id

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if event == "line":
            steps += 1
            for value in frame.f_locals.values():
                if isinstance(value, bytes | str) and len(value) >= _BYTES_A_STEP and id(value) not in seen:
                    seen[id(value)] = value
                    steps += len(value) // _BYTES_A_STEP
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(_ROOT) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def growth(make: Callable[[int], Callable[[], object]], size: int) -> float:
    """Divide the steps for four times the input by those for the input: 4 is linear, 16 quadratic.

    `make` prepares the work for an input of a size; only the work itself is counted.
    """
    # What is made once and kept is not counted; of another size, for a kept answer is no work at all.
    make(size + 1)()
    small, large = (steps_of(make(each)) for each in (size, 4 * size))
    return large / max(small, 1)
