"""What the tests of a component lost: files, test functions, assertions, or that they run.

Decides which test function of before is which one of after: by its place, then by its name in another file,
then by an equal body under another name. What is left over is gone. Tests that are no Python are whole files
here. How grave a loss is, is for `drift`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from patchgate.components.python_tests import PythonTest, PythonTests, read_tests
from patchgate.git.path import RepoPath

_NOTHING = PythonTests((), 0)


class Loss(StrEnum):
    """What tests can lose."""

    FILE = "file"
    FUNCTION = "function"
    ASSERTIONS = "assertions"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Weakening:
    """One loss.

    Args:
        loss: which kind.
        path: the file: of before for what is gone, else of after.
        line: of the first function in the file of after; None where there is none.
        functions: the names of the functions concerned; none for a file without any, and for assertions that
            stand outside of the test functions.
        before: the number of their assertions before.
        after: and after.
    """

    loss: Loss
    path: RepoPath
    line: int | None = None
    functions: tuple[str, ...] = ()
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class _Placed:
    """A test function and its file."""

    path: RepoPath
    test: PythonTest


def weakenings(
    before: Mapping[RepoPath, bytes | None],
    after: Mapping[RepoPath, bytes | None],
    *,
    gone: frozenset[RepoPath] = frozenset(),
) -> Iterator[Weakening]:
    """Tell what tests lost.

    Args:
        before: the contents of the test files that differ or are gone, as they were recorded; None for
            what is no Python, or no file.
        after: those that differ or were added, as they are.
        gone: which of `before` are gone (and did not move).
    """
    old = {path: _read(before[path]) for path in sorted(before)}
    new = {path: _read(after[path]) for path in sorted(after)}
    pairs, lost = _paired(_placed(old), _placed(new))
    yield from _gone(old, lost, gone)
    yield from _fewer(pairs)
    yield from _skipped(pairs)
    elsewhere = sum(tests.elsewhere for tests in old.values()), sum(tests.elsewhere for tests in new.values())
    if elsewhere[0] > elsewhere[1]:
        path = max(old, key=lambda each: old[each].elsewhere - new.get(each, _NOTHING).elsewhere)
        yield Weakening(Loss.ASSERTIONS, path, None, (), *elsewhere)


def _read(content: bytes | None) -> PythonTests:
    return _NOTHING if content is None else read_tests(content)


def _placed(files: Mapping[RepoPath, PythonTests]) -> list[_Placed]:
    return [_Placed(path, test) for path, tests in files.items() for test in tests.functions]


def _paired(
    old: Sequence[_Placed], new: Sequence[_Placed]
) -> tuple[list[tuple[_Placed, _Placed]], list[_Placed]]:
    """Pair each function of before with one of after; give the pairs, and what has none."""
    pairs: list[tuple[_Placed, _Placed]] = []
    for key in (_by_place, _by_name, _by_body):
        waiting: dict[object, list[_Placed]] = {}
        for each in reversed(new):
            waiting.setdefault(key(each), []).append(each)
        left: list[_Placed] = []
        taken: set[int] = set()
        for each in old:
            candidates = waiting.get(key(each))
            if candidates:
                found = candidates.pop()
                taken.add(id(found))
                pairs.append((each, found))
            else:
                left.append(each)
        old, new = left, [each for each in new if id(each) not in taken]
    return pairs, list(old)


def _by_place(placed: _Placed) -> object:
    return placed.path, placed.test.name


def _by_name(placed: _Placed) -> object:
    return placed.test.name


def _by_body(placed: _Placed) -> object:
    return placed.test.body


def _gone(
    old: Mapping[RepoPath, PythonTests], lost: Sequence[_Placed], gone: frozenset[RepoPath]
) -> Iterator[Weakening]:
    """Tell which files and functions are gone; a file whose functions are all elsewhere is not."""
    names: dict[RepoPath, list[str]] = {}
    for each in lost:
        names.setdefault(each.path, []).append(each.test.name)
    for path, tests in old.items():
        missing = tuple(names.get(path, ()))
        if path in gone and (missing or not tests.functions):
            yield Weakening(Loss.FILE, path, None, missing)
        elif missing:
            yield Weakening(Loss.FUNCTION, path, None, missing)


def _fewer(pairs: Sequence[tuple[_Placed, _Placed]]) -> Iterator[Weakening]:
    """Tell which tests assert less; of those that are newly skipped it is told that they are."""
    fewer = [
        (old, new)
        for old, new in pairs
        if new.test.assertions < old.test.assertions and not _is_newly_skipped(old, new)
    ]
    for path, found in _by_file(fewer).items():
        yield Weakening(
            Loss.ASSERTIONS,
            path,
            min(new.test.line for _, new in found),
            tuple(new.test.name for _, new in found),
            sum(old.test.assertions for old, _ in found),
            sum(new.test.assertions for _, new in found),
        )


def _skipped(pairs: Sequence[tuple[_Placed, _Placed]]) -> Iterator[Weakening]:
    newly = [pair for pair in pairs if _is_newly_skipped(*pair)]
    for path, found in _by_file(newly).items():
        names = tuple(new.test.name for _, new in found)
        yield Weakening(Loss.SKIPPED, path, min(new.test.line for _, new in found), names)


def _is_newly_skipped(old: _Placed, new: _Placed) -> bool:
    return new.test.is_skipped and not old.test.is_skipped


def _by_file(pairs: Sequence[tuple[_Placed, _Placed]]) -> dict[RepoPath, list[tuple[_Placed, _Placed]]]:
    found: dict[RepoPath, list[tuple[_Placed, _Placed]]] = {}
    for pair in sorted(pairs, key=lambda each: (each[1].path, each[1].test.line)):
        found.setdefault(pair[1].path, []).append(pair)
    return found
