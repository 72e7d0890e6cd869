"""Print what a pattern set costs: microseconds for each path, and milliseconds to build.

    python -m bench.patterns [--paths 100000] [--rounds 3] [--pathspec]

The paths are a synthetic tree of some 8,000 folders, two to six deep; the patterns are a mix of the forms
that people write. Each figure is the best of the rounds, with nothing remembered at the start of a round.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from patchgate.policy.glob_matching import PatternSet

_FORMS = (
    "*.x{0}",
    "name{0}.key",
    "dir{0}/",
    "/pkg{0:03}/secret/**",
    "**/mod{0}/*.pem",
    "build{0}/**",
    "id_rsa{0}*",
    "/pkg03/t/t{0:04}*.sh",
    "Documentation/x{0}/*.adoc",
    ".env.{0}",
)
_WORDS = ("src", "lib", "core", "api", "web", "tests", "docs", "tools", "pkg03", "t", "Documentation", "util")
_ENDINGS = (".py", ".c", ".h", ".js", ".tsx", ".md", ".json", ".go", ".yaml", ".x10", ".pem", "")


def make_patterns(count: int) -> list[str]:
    """Make a mix of ten forms; none of them is negated."""
    return [_FORMS[number % len(_FORMS)].format(number) for number in range(count)]


def make_paths(count: int, chance: random.Random) -> list[bytes]:
    """Make `count` paths in about 8,000 folders; one folder name in fifty is one that a pattern may name."""
    folders = [f"{word}{number:02}" for word in _WORDS for number in range(4)] + list(_WORDS)
    while len(folders) < 8000:
        parent = chance.choice(folders)
        if parent.count("/") < 5:
            word = (
                chance.choice(("mod", "dir", "build", "x"))
                if chance.random() < 0.02
                else chance.choice(_WORDS)
            )
            folders.append(f"{parent}/{word}{chance.randrange(60)}")
    paths: set[str] = set()
    while len(paths) < count:
        name = f"{chance.choice(_WORDS)}_{chance.randrange(3000)}{chance.choice(_ENDINGS)}"
        paths.add(f"{chance.choice(folders)}/{name}")
    return sorted(path.encode() for path in paths)


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """Run the work several times, and give the least of the times in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(patterns: Sequence[str], paths: Sequence[bytes], folded: bool, rounds: int) -> tuple[float, int]:
    """Measure one pass over the paths with a fresh set: seconds, and how many paths matched."""
    matched = 0
    fastest = float("inf")
    for _ in range(rounds):
        match = PatternSet(patterns, folded=folded).match
        start = time.perf_counter()
        matched = sum(1 for path in paths if match(path) is not None)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest, matched


def compare_with_pathspec(patterns: Sequence[str], paths: Sequence[bytes]) -> None:
    """Print the same for pathspec, on the first 2,000 paths."""
    import pathspec

    spec = pathspec.GitIgnoreSpec.from_lines(patterns, backend="simple")
    names = [path.decode() for path in paths[:2000]]
    taken = best_of(1, lambda: [spec.match_file(name) for name in names])
    print(f"{len(patterns):8} {'pathspec':>9} {taken / len(names) * 1e6:10.2f}")


def main() -> None:
    """Measure 10, 100 and 1,000 patterns over sorted and shuffled paths."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--paths", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pathspec", action="store_true", help="measure pathspec too")
    arguments = parser.parse_args()
    ordered = make_paths(arguments.paths, random.Random(1))
    shuffled = random.Random(2).sample(ordered, len(ordered))
    print(f"{len(ordered)} paths in {len({path.rpartition(b'/')[0] for path in ordered})} folders")
    print(
        f"{'patterns':>8} {'folded':>9} {'us/sorted':>10} {'us/shuffled':>11} {'build ms':>10} {'matched':>8}"
    )
    for count in (10, 100, 1000):
        patterns = make_patterns(count)
        for folded in (False, True):
            building = best_of(arguments.rounds, partial(PatternSet, patterns, folded=folded))
            times = [measure(patterns, paths, folded, arguments.rounds) for paths in (ordered, shuffled)]
            each = [seconds / len(ordered) * 1e6 for seconds, _ in times]
            print(
                f"{count:8} {'yes' if folded else 'no':>9} {each[0]:10.2f} {each[1]:11.2f}"
                f" {building * 1e3:10.2f} {times[0][1]:8}"
            )
        if arguments.pathspec:
            compare_with_pathspec(patterns, shuffled)


if __name__ == "__main__":
    main()
