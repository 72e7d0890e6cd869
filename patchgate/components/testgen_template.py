"""The functions of generated test modules: this file is read and copied, never imported.

Decides how a function is found and called, and when a result equals the contract's. `testgen` copies the
parts that it needs (of a test only the body) and writes its own constants. The layout is stable under any
line length from 79 on: no line is broken that could be joined.
"""

from __future__ import annotations

# Part imports
import asyncio
import builtins
import copy
import functools
import importlib
import inspect
import math
import pkgutil
import sys
import time
import tracemalloc
from collections.abc import Collection, Iterator, Mapping, Set
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

# Part constants
CONTRACT = ""
SOURCE_ROOTS: list[str] = []
MODULES: list[str] = []
TYPES: dict[str, dict[str, list[str]]] = {}


# Part find
Case = dict[str, Any]


def roots() -> list[str]:
    """Return the folders where modules begin, in the tree that contains this file."""
    for folder in Path(__file__).resolve().parents:
        if (folder / CONTRACT).is_file():
            return [str(folder / root) for root in SOURCE_ROOTS]
    return []


def imported(name: str) -> list[Any]:
    """Import one module; record why it cannot be imported."""
    try:
        return [importlib.import_module(name)]
    except Exception as error:
        BROKEN[name] = repr(error)
        return []


BROKEN: dict[str, str] = {}


def modules() -> Iterator[Any]:
    """Import the implementation's modules, then those below, as the caller iterates."""
    # What the caller put on the path counts first.
    sys.path.extend(root for root in roots() if root not in sys.path)
    named = [module for name in MODULES for module in imported(name)]
    yield from named
    for module in named:
        places = getattr(module, "__path__", [])
        start = f"{module.__name__}."
        for below in pkgutil.walk_packages(places, start, lambda _: None):
            if not below.name.endswith(".__main__"):
                yield from imported(below.name)


@functools.cache
def look_up(name: str) -> Any:
    """Find what the implementation calls by a name; None if nothing is."""
    foreign = []
    for module in modules():
        found = getattr(module, name, None)
        if found is None or inspect.ismodule(found):
            continue
        home = f"{getattr(found, '__module__', '')}."
        if any(home.startswith(f"{each}.") for each in MODULES):
            return found
        foreign.append(found)
    return foreign[0] if foreign else None


def find(name: str) -> Any:
    """Find a function of the contract."""
    found = look_up(name)
    where = ", ".join(MODULES)
    broken = "; ".join(f"{each}: {why}" for each, why in BROKEN.items())
    problem = f"no function {name} in or below {where}. {broken}"
    assert found is not None, problem
    assert callable(found), f"{name} is {found!r}, which cannot be called"
    return found


def run(function: Any, inputs: Case) -> Any:
    """Call a function; wait for a coroutine, and take all that an iterator gives."""
    result = function(**inputs)
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    return list(result) if isinstance(result, Iterator) else result


# Part fresh
def fresh(case: Case, number: int = 0) -> Case:
    """Copy inputs of a case, so that no call sees what another did to them."""
    given = case["inputs"]
    chosen = given[number % len(given)] if isinstance(given, list) else given
    return dict(copy.deepcopy(chosen))


# Part fresh_made
def fresh_made(case: Case, number: int = 0) -> Case:
    """Copy inputs of a case, and make of them what the contract's types say."""
    given = case["inputs"]
    chosen = given[number % len(given)] if isinstance(given, list) else given
    kinds = case.get("kinds", {})
    return made_fields(copy.deepcopy(chosen), kinds)


def made_fields(fields: Case, kinds: dict[str, list[str]]) -> Case:
    """Make values of their kinds."""
    done = {}
    for key, value in fields.items():
        done[key] = made(value, kinds.get(key, []))
    return done


def made(value: Any, kind: list[str]) -> Any:
    """Make a value of a kind: bytes, a collection, a type of the contract."""
    if not kind:
        return value
    outer, inner = kind[0], kind[1:]
    if outer == "bytes":
        return value.encode() if isinstance(value, str) else value
    if outer in COLLECTIONS:
        if not isinstance(value, list):
            return value
        return COLLECTIONS[outer](made(each, inner) for each in value)
    if not isinstance(value, dict):
        return value
    if outer == "dict":
        return {key: made(each, inner) for key, each in value.items()}
    fields = made_fields(value, TYPES[outer])
    type_found = look_up(outer)
    return type_found(**fields) if callable(type_found) else fields


COLLECTIONS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


# Part same
def same(actual: Any, expected: Any) -> bool:
    """Return whether a result equals what is expected, which is often written as JSON."""
    actual = plain(actual)
    expected = plain(expected)
    if isinstance(expected, dict):
        return same_fields(actual, expected)
    if isinstance(expected, list):
        return same_items(actual, expected)
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, NUMBERS) and isinstance(expected, NUMBERS):
        if isinstance(actual, int) and isinstance(expected, int):
            return actual == expected
        if actual != actual and expected != expected:
            return True
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-12)
    if actual == expected:
        return True
    if type(actual) is not type(expected) or not hasattr(actual, "__dict__"):
        return False
    return same_fields(actual, vars(expected))


NUMBERS = (int, float, Decimal)


def plain(value: Any) -> Any:
    """Write a value as JSON would, where there is one way to."""
    if isinstance(value, Enum):
        return plain(value.value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.__fspath__() if hasattr(value, "__fspath__") else value


def same_fields(actual: Any, expected: dict[str, Any]) -> bool:
    """Compare an object, or any value with such attributes, with named values."""
    if isinstance(actual, dict):
        if actual.keys() != expected.keys():
            return False
        return all(same(actual[key], each) for key, each in expected.items())
    if not all(hasattr(actual, key) for key in expected):
        return False
    own = {key: getattr(actual, key) for key in expected}
    return all(same(own[key], each) for key, each in expected.items())


def same_items(actual: Any, expected: list[Any]) -> bool:
    """Compare a sequence one by one; a set in any order."""
    if isinstance(actual, (str, dict)) or not isinstance(actual, Collection):
        return False
    if len(actual) != len(expected):
        return False
    if not isinstance(actual, Set):
        pairs = zip(actual, expected, strict=True)
        return all(same(one, other) for one, other in pairs)
    left = list(actual)
    for each in expected:
        matching = [one for one in left if same(one, each)]
        if not matching:
            return False
        left.remove(matching[0])
    return True


# Part error_class
def error_class(name: str) -> Any:
    """Find an error: of the module that is named, of Python, of the implementation."""
    module, _, last = name.rpartition(".")
    holders = [*(imported(module) if module else []), builtins]
    found = [getattr(each, last) for each in holders if hasattr(each, last)]
    error = found[0] if found else look_up(last)
    is_error = isinstance(error, type) and issubclass(error, BaseException)
    assert is_error, f"no error {name} in Python or in {', '.join(MODULES)}"
    return error


# Part kept
def kept(value: Any) -> Any:
    """Copy a result, so that the next call cannot change it; some cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


# Part measure_latency
def measure_latency(case: Case) -> float:
    """Return the 95th percentile of repeated calls in milliseconds, after a warm-up."""
    function = find(case["function"])
    for number in range(5):
        run(function, fresh(case, number))
    times: list[float] = []
    # A hundred calls; for slow functions as many as fit in five seconds, at least 20.
    while len(times) < 100 and (len(times) < 20 or sum(times) < 5000):
        inputs = fresh(case, len(times))
        start = time.perf_counter()
        run(function, inputs)
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    return times[math.ceil(len(times) * 0.95) - 1]


# Part measure_memory
def measure_memory(case: Case) -> float:
    """Return the peak memory of the calls, in MiB (tracemalloc)."""
    function = find(case["function"])
    numbers = range(len(case["inputs"]))
    return max(peak(function, fresh(case, number)) for number in numbers)


def peak(function: Any, inputs: Case) -> float:
    """Return the peak memory of one call, in MiB."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        run(function, inputs)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return (most - before) / 2**20


# Part is_there
def test_is_there(case: Case) -> None:
    assert find(case["function"]) is not None


# Part example
def test_example(case: Case) -> None:
    result = run(find(case["function"]), fresh(case))
    expected = case["output"]
    assert same(result, expected), f"{result!r} is not {expected!r}"


# Part error
# Only the function's own call is inside `raises`: other errors prove nothing.
def test_error(case: Case) -> None:
    function = find(case["function"])
    error = error_class(case["error"])
    inputs = fresh(case)
    with pytest.raises(error):
        run(function, inputs)


# Part is_idempotent
def test_is_idempotent(case: Case) -> None:
    function = find(case["function"])
    for number in range(len(case["inputs"])):
        first = kept(run(function, fresh(case, number)))
        second = run(function, fresh(case, number))
        assert same(second, first), f"first {first!r}, then {second!r}"


# Part p95_latency_ms
def test_p95_latency_ms(case: Case) -> None:
    measured = measure_latency(case)
    assert measured <= case["p95_latency_ms"], f"{measured:.3f} ms"


# Part max_memory_mb
def test_max_memory_mb(case: Case) -> None:
    measured = measure_memory(case)
    assert measured <= case["max_memory_mb"], f"{measured:.3f} MiB"
