"""What the tests of a component lost: files, functions, assertions, or that they run.

A missing file or function is an error, unless the judged change also changes the promise of the contract
(more than its version), or the loss is older than the change. Fewer assertions and a skip are warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain

from patchgate.check.case import find
from patchgate.components.baseline_file import Baseline
from patchgate.components.component_facts import ComponentState
from patchgate.components.drift_comparison import (
    DriftComparison,
    changed_python_tests,
    compare,
    emptied_tests,
    is_contract_changed,
    is_different_contract,
    is_unread_test,
)
from patchgate.components.python_tests import PythonTest, PythonTests, read_tests
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of, printable
from patchgate.policy.component import Role
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding
from patchgate.values import dataclass, replace

_NOTHING = PythonTests((), 0)
MOST_NAMED_LOSSES = 20
"""How many names the details of a finding have at most."""
MOST_IN_A_MESSAGE = 5
MOST_OF_A_NAME = 80
"""How many characters of a name they have at most."""
_VERSION = ("version",)

_Lost = tuple[RepoPath, str | None]


class Loss(StrEnum):
    """What tests can lose."""

    FILE = "file"
    FUNCTION = "function"
    ASSERTIONS = "assertions"
    SKIPPED = "skipped"


_SEVERE = frozenset({Loss.FILE, Loss.FUNCTION})


@dataclass(frozen=True, slots=True)
class Weakening:
    """One loss.

    Args:
        loss: which kind.
        path: the file: the old one for what is gone, else the new one.
        line: of the first function in the new file; None if there is none.
        functions: the names of the functions concerned; none for a file without any, and for assertions that
            are outside of the test functions.
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
class _TestInFile:
    """A test function and its file."""

    path: RepoPath
    test: PythonTest


# The keys by which an old function is found again, in this order.
_KEYS: tuple[Callable[[_TestInFile], object], ...] = (
    lambda placed: (placed.path, placed.test.name),
    lambda placed: placed.test.name,
    lambda placed: placed.test.body,
)


def find_weakenings(
    before: Mapping[RepoPath, bytes | None],
    after: Mapping[RepoPath, bytes | None],
    *,
    gone: frozenset[RepoPath] = frozenset(),
) -> Iterator[Weakening]:
    """Find what tests lost.

    Args:
        before: the contents of the test files that differ or are gone, as they were recorded; None for
            what is not Python, or not a file.
        after: those that differ or were added, as they are.
        gone: which of `before` are gone (and did not move).
    """
    old, new = (
        {path: _NOTHING if content is None else read_tests(content) for path, content in sorted(side.items())}
        for side in (before, after)
    )
    pairs, lost = _paired(_tests_with_files(old), _tests_with_files(new))
    yield from _gone(old, lost, gone)
    yield from _fewer(pairs)
    yield from _skipped(pairs)
    elsewhere = sum(tests.elsewhere for tests in old.values()), sum(tests.elsewhere for tests in new.values())
    if elsewhere[0] > elsewhere[1]:
        path = max(old, key=lambda each: old[each].elsewhere - new.get(each, _NOTHING).elsewhere)
        yield Weakening(Loss.ASSERTIONS, path, None, (), *elsewhere)


def _tests_with_files(files: Mapping[RepoPath, PythonTests]) -> list[_TestInFile]:
    return [_TestInFile(path, test) for path, tests in files.items() for test in tests.functions]


def _paired(
    old: Sequence[_TestInFile], new: Sequence[_TestInFile]
) -> tuple[list[tuple[_TestInFile, _TestInFile]], list[_TestInFile]]:
    """Pair each old function with a new one; return the pairs, and the old ones without a pair."""
    pairs: list[tuple[_TestInFile, _TestInFile]] = []
    for key in _KEYS:
        waiting: dict[object, list[_TestInFile]] = {}
        for each in reversed(new):
            waiting.setdefault(key(each), []).append(each)
        left: list[_TestInFile] = []
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


def _gone(
    old: Mapping[RepoPath, PythonTests], lost: Sequence[_TestInFile], gone: frozenset[RepoPath]
) -> Iterator[Weakening]:
    """Find files and functions that are gone; a file whose functions all moved is not."""
    names: dict[RepoPath, list[str]] = {}
    for each in lost:
        names.setdefault(each.path, []).append(each.test.name)
    for path, tests in old.items():
        missing = tuple(names.get(path, ()))
        if path in gone and (missing or not tests.functions):
            yield Weakening(Loss.FILE, path, None, missing)
        elif missing:
            yield Weakening(Loss.FUNCTION, path, None, missing)


def _fewer(pairs: Sequence[tuple[_TestInFile, _TestInFile]]) -> Iterator[Weakening]:
    """Find tests with fewer assertions, except newly skipped ones, which are reported as skipped."""
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


def _skipped(pairs: Sequence[tuple[_TestInFile, _TestInFile]]) -> Iterator[Weakening]:
    newly = [pair for pair in pairs if _is_newly_skipped(*pair)]
    for path, found in _by_file(newly).items():
        names = tuple(new.test.name for _, new in found)
        yield Weakening(Loss.SKIPPED, path, min(new.test.line for _, new in found), names)


def _is_newly_skipped(old: _TestInFile, new: _TestInFile) -> bool:
    return new.test.is_skipped and not old.test.is_skipped


def _by_file(
    pairs: Sequence[tuple[_TestInFile, _TestInFile]],
) -> dict[RepoPath, list[tuple[_TestInFile, _TestInFile]]]:
    found: dict[RepoPath, list[tuple[_TestInFile, _TestInFile]]] = {}
    for pair in sorted(pairs, key=lambda each: (each[1].path, each[1].test.line)):
        found.setdefault(pair[1].path, []).append(pair)
    return found


def weakened_findings(
    state: ComponentState,
    found: DriftComparison,
    beside: Baseline,
    only: frozenset[RepoPath] | None,
    *,
    may_excuse: bool = True,
) -> Iterator[Finding]:
    """Report what the tests lost.

    Args:
        found: how the component differs from the baseline `beside`.
        only: the files to report, and what was lost of others only now; None means all.
        may_excuse: whether a changed promise of the contract makes a loss a warning.
    """
    all_losses, gone, empty = _losses(state, found)
    losses = all_losses
    if only is not None and not only.issuperset(each.path for each in all_losses):
        # A test may have moved since it was recorded, and be removed from where it was by then.
        older = _lost_before(state, beside)
        losses = [each for each in losses if each.path in only or not older.issuperset(_lost([each]))]
    grave = frozenset(_lost(each for each in losses if each.loss in _SEVERE))
    if may_excuse:
        grave -= _excused(state, found, beside, grave)
    each_one = [
        ([each], _loss(state, each, is_gone=each.path in gone, is_empty=each.path in empty))
        for each in losses
    ]
    reported = each_one[:MOST_NAMED_LOSSES]
    if rest := losses[MOST_NAMED_LOSSES:]:
        name = state.component.id
        message = f"and {len(rest)} more losses in the tests of component {name}"
        about = {"component": name}
        summary = find("drift-tests-weakened", message, rest[0].path, "restore the tests", details=about)
        unnamed = [(each.message, *each.unnamed) for _, each in each_one[MOST_NAMED_LOSSES:]]
        reported.append((rest, replace(summary, unnamed=tuple(chain.from_iterable(unnamed)))))
    for some, finding in reported:
        is_grave = any(each.loss in _SEVERE and not grave.isdisjoint(_lost([each])) for each in some)
        yield finding if is_grave else replace(finding, level=Level.WARNING)


def keeps_no_test(state: ComponentState, found: DriftComparison) -> bool:
    """Return whether none of the recorded test functions in files that differ still exists."""
    before, _ = changed_python_tests(found, state.texts)
    had = {
        (path, test.name)
        for path, content in before.items()
        if content is not None
        for test in read_tests(content).functions
    }
    return had <= frozenset(_lost(_losses(state, found)[0]))


def _losses(
    state: ComponentState, found: DriftComparison
) -> tuple[list[Weakening], frozenset[RepoPath], frozenset[RepoPath]]:
    """Return what the tests lost, which of the files are gone, and which are empty."""
    before, after = changed_python_tests(found, state.texts)
    if not before:
        return [], frozenset(), frozenset()
    gone, empty = frozenset(found.gone) & before.keys(), emptied_tests(found, state.texts)
    return list(find_weakenings(before, after, gone=gone | empty)), gone, empty


def _lost(losses: Iterable[Weakening]) -> Iterator[_Lost]:
    """Yield the lost functions, each with its file; None for a file without any."""
    for loss in losses:
        yield from ((loss.path, name) for name in loss.functions or (None,))


def _excused(
    state: ComponentState, found: DriftComparison, beside: Baseline, grave: frozenset[_Lost]
) -> frozenset[_Lost]:
    """Choose the losses that are excused because the contract's promise changed."""
    contract, texts = state.component.contract, state.texts
    if (
        not grave
        or contract not in state.files
        or is_contract_changed(found, texts, but=_VERSION) is not True
    ):
        return frozenset()
    if state.is_merge or not state.touches_tests:
        return grave
    if contract in state.old:
        new = state.files[contract][1]
        if is_different_contract(state.old[contract], new, texts, but=_VERSION) is True:
            return grave
    # The promise changed earlier: that does not excuse more losses now.
    return grave & _lost_before(state, beside, _SEVERE)


def _lost_before(
    state: ComponentState, beside: Baseline, kinds: Collection[Loss] = frozenset(Loss)
) -> frozenset[_Lost]:
    """List what was lost before the change; none where that is not known."""
    was = compare(state.files_before, beside, state.unclaimed)
    if is_unread_test(was, state.texts):
        return frozenset()
    return frozenset(_lost(each for each in _losses(state, was)[0] if each.loss in kinds))


def _loss(state: ComponentState, loss: Weakening, *, is_gone: bool, is_empty: bool) -> Finding:
    name = state.component.id
    names = [_named(each) for each in loss.functions[:MOST_NAMED_LOSSES]]
    functions = first_of(loss.functions, MOST_IN_A_MESSAGE, _named)
    where = f" in {functions}" if functions else ""
    message, hint = {
        Loss.FILE: (
            f"the test file {loss.path.quoted} of component {name} is {'empty' if is_empty else 'missing'}"
            + (f", with {functions}" if functions else ""),
            "restore it; if the promise changed, change the contract in the same commit"
            if state.component.role(loss.path) is Role.TESTS
            else f"it is no longer declared; once the tests pass: git patchgate baseline capture {name}",
        ),
        Loss.FUNCTION: (
            f"{functions} removed from the tests of component {name}",
            "restore it; if the promise changed, change the contract in the same commit",
        ),
        Loss.ASSERTIONS: (
            f"tests of component {name} have fewer assertions{where}: {loss.after} instead of {loss.before}",
            f"restore the assertions, or record the tests as they are: git patchgate baseline capture {name}",
        ),
        Loss.SKIPPED: (
            f"tests of component {name} no longer count: {functions} skipped or allowed to fail",
            "remove the mark and fix the test",
        ),
    }[loss.loss]
    found = find(
        "drift-tests-weakened",
        message,
        loss.path,
        hint,
        line=loss.line,
        side="old" if is_gone else "new",
        details={"component": name, "loss": loss.loss.value, "functions": names},
    )
    unnamed = (
        printable(each, 10 * len(each) + 10)
        for number, each in enumerate(loss.functions)
        if number >= MOST_IN_A_MESSAGE or len(_named(each)) >= MOST_OF_A_NAME
    )
    return replace(found, unnamed=tuple(unnamed))


def _named(function: str) -> str:
    return printable(function, MOST_OF_A_NAME)
