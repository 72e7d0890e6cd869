"""What makes two findings of two trees the same: analysis, tool, rule, path and mark, as often as it occurs.

Line numbers do not count, and a renamed file is followed. `verify` and `new_only` decide by this alone what
is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from patchgate.commands.analysis_results import AnalysisResult
from patchgate.git.path import RepoPath

ExactKey: TypeAlias = tuple[str, str, str, bytes | None, str]
"""Analysis, tool, rule, path and mark."""


def differing(
    before: Sequence[AnalysisResult], after: Sequence[AnalysisResult], moved: Mapping[RepoPath, RepoPath]
) -> tuple[list[AnalysisResult], list[AnalysisResult]]:
    """Return the results only in `after`, and those only in `before`."""
    old_keys, keys = exact_keys(before, moved), exact_keys(after, {})
    old_counts, counts = Counter(old_keys), Counter(keys)
    if old_counts == counts:
        return [], []
    return surplus(after, keys, counts, old_counts), surplus(before, old_keys, old_counts, counts)


def surplus(
    results: Sequence[AnalysisResult],
    keys: Sequence[ExactKey],
    counts: Counter[ExactKey],
    others: Counter[ExactKey],
) -> list[AnalysisResult]:
    """Return the results that the other side lacks; of equal ones the last in the file."""
    more = {key: number - others[key] for key, number in counts.items() if number > others[key]}
    alike: defaultdict[ExactKey, list[AnalysisResult]] = defaultdict(list)
    for key, result in zip(keys, results, strict=True):
        if key in more:
            alike[key].append(result)
    found: list[AnalysisResult] = []
    for key, group in alike.items():
        group.sort(key=lambda result: result.line or 0)
        found += group[-more[key] :]
    return found


def exact_keys(results: Iterable[AnalysisResult], moved: Mapping[RepoPath, RepoPath]) -> list[ExactKey]:
    """Return the identity of each result; the caller counts how often it occurs."""
    # Two loops, and bytes in the key: 100,000 paths hash as bytes in a third of the time.
    if not moved:
        return [
            (each.analysis, each.tool, each.rule, each.paths[0].raw if each.paths else None, each.mark)
            for each in results
        ]
    keys: list[ExactKey] = []
    for each in results:
        path = each.path
        raw = None if path is None else moved.get(path, path).raw
        keys.append((each.analysis, each.tool, each.rule, raw, each.mark))
    return keys
