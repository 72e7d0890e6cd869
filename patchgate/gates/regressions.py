"""What is different between the analyses of two trees, and which of it is one piece of work's own.

Decides when two results are the same one: equal analysis, tool, rule, path and mark, each as often as it
occurs. No line number is part of it, so moved lines make nothing new, and a renamed file keeps what it had;
a line that was edited makes its finding, or its suppression, a new one. Cuts nothing, and does not decide
what follows. A finding that names no file of the tree is always the work's own (A5).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from patchgate.change.path import RepoPath
from patchgate.declared.intent import Scope
from patchgate.declared.settings import ThresholdSettings
from patchgate.gates.thresholds import highest, states, worse
from patchgate.verdict.comparison import Comparison, Result, TreeRuns, Worsened

Signal = TypeVar("Signal", Result, Worsened)
_Key: TypeAlias = tuple[str, str, str, bytes | None, str]


def compare(
    before: TreeRuns,
    after: TreeRuns,
    thresholds: Sequence[ThresholdSettings],
    renamed: Mapping[RepoPath, RepoPath],
) -> Comparison:
    """Compare the analyses of two trees.

    Args:
        before: those of the tree before.
        after: those of the tree after; the same analyses.
        thresholds: the limits of the policy.
        renamed: the files that have another path now: new path to old path.
    """
    moved = {old: new for new, old in renamed.items()}
    had, has = _all(before, suppressed=False), _all(after, suppressed=False)
    new, fixed = _unlike(had, has, moved)
    hidden, _ = _unlike(_all(before, suppressed=True), _all(after, suppressed=True), moved)
    old_values, values = highest(before, moved), highest(after, {})
    return Comparison(
        new=_in_order(new),
        fixed=_in_order(_still_there(fixed, hidden, moved)),
        unchanged=len(has) - len(new),
        worsened=worse(old_values, values, thresholds),
        thresholds=states(thresholds, old_values, values, findings=(len(had), len(has)), new=_in_order(new)),
        suppressed=_in_order(hidden),
    )


def part(results: Sequence[Result], scope: Scope | None) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
    """Part results into the work's own and external ones; without a scope all are its own (A6).

    Own are those of which any path is the scope's (A2), and those without a path (A5).
    """
    return _parted(results, scope, lambda result: result.paths)


def part_worsened(
    worsened: Sequence[Worsened], scope: Scope | None
) -> tuple[tuple[Worsened, ...], tuple[Worsened, ...]]:
    """Part worsened metrics in the same way, by the path of the symbol."""
    return _parted(worsened, scope, lambda each: (each.path,))


def _parted(
    signals: Sequence[Signal], scope: Scope | None, paths_of: Callable[[Signal], tuple[RepoPath, ...]]
) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
    if scope is None:
        return tuple(signals), ()
    known: dict[RepoPath, bool] = {}

    def is_own(path: RepoPath) -> bool:
        # Thousands of findings lie in a few files, and each pattern is tried on each path.
        if path not in known:
            known[path] = scope.attributes(path)
        return known[path]

    own: list[Signal] = []
    external: list[Signal] = []
    for signal in signals:
        paths = paths_of(signal)
        (own if not paths or any(map(is_own, paths)) else external).append(signal)
    return tuple(own), tuple(external)


def _all(runs: TreeRuns, *, suppressed: bool) -> list[Result]:
    return [
        result
        for name in sorted(runs.runs)
        for result in (runs.runs[name].suppressed if suppressed else runs.runs[name].results)
    ]


def _unlike(
    before: Sequence[Result], after: Sequence[Result], moved: Mapping[RepoPath, RepoPath]
) -> tuple[list[Result], list[Result]]:
    """Give what only `after` has, and what only `before` has."""
    old_keys, keys = _keys(before, moved), _keys(after, {})
    old_counts, counts = Counter(old_keys), Counter(keys)
    if old_counts == counts:
        return [], []
    return _surplus(after, keys, counts, old_counts), _surplus(before, old_keys, old_counts, counts)


def _surplus(
    results: Sequence[Result], keys: Sequence[_Key], counts: Counter[_Key], others: Counter[_Key]
) -> list[Result]:
    """Give the results that the other side has not; of alike ones the last in the file."""
    more = {key: number - others[key] for key, number in counts.items() if number > others[key]}
    alike: defaultdict[_Key, list[Result]] = defaultdict(list)
    for key, result in zip(keys, results, strict=True):
        if key in more:
            alike[key].append(result)
    found: list[Result] = []
    for key, group in alike.items():
        group.sort(key=lambda result: result.line or 0)
        found += group[-more[key] :]
    return found


def _still_there(
    fixed: Iterable[Result], hidden: Sequence[Result], moved: Mapping[RepoPath, RepoPath]
) -> list[Result]:
    """Leave out of what is gone that which is only suppressed now: nobody mended it."""
    left = Counter(_keys(hidden, {}))
    found: list[Result] = []
    for result in fixed:
        (key,) = _keys([result], moved)
        if left[key]:
            left[key] -= 1
        else:
            found.append(result)
    return found


def _keys(results: Iterable[Result], moved: Mapping[RepoPath, RepoPath]) -> list[_Key]:
    """Give the identity of each result; how often it occurs is counted by whoever asks."""
    # Two loops, and bytes in the key: 100,000 paths hash as bytes in a third of the time.
    if not moved:
        return [
            (each.analysis, each.tool, each.rule, each.paths[0].raw if each.paths else None, each.mark)
            for each in results
        ]
    keys: list[_Key] = []
    for each in results:
        path = each.path
        raw = None if path is None else moved.get(path, path).raw
        keys.append((each.analysis, each.tool, each.rule, raw, each.mark))
    return keys


def _in_order(results: Iterable[Result]) -> tuple[Result, ...]:
    return tuple(
        sorted(
            results,
            key=lambda each: (
                each.paths[0].raw if each.paths else b"",
                each.line or 0,
                each.analysis,
                each.rule,
                each.mark,
            ),
        )
    )
