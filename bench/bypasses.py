"""Print who stops what: 26 ways past a gate, done to pre-commit, prek, lefthook and patchgate.

    python -m bench.bypasses [--peers DIR] [--only 5,17] [--managers patchgate,prek] [--write FILE]

Every case runs in a repository and a bare remote of its own, twice: once with something that the policy
denies, and once, as a control, with something harmless, which has to land; a manager that stops the control
too is told as *broken* in that row, not as one that caught anything. The peers come from PyPI by pip, into a
temporary folder or into DIR, where they are kept. Nothing else is fetched, and nothing of the user's is read.

- *caught*: nothing landed; *caught at push*: it landed here, and the push was refused.
- *passed*: it landed; *passed, no trace*: and neither the manager nor its next hook names the commit.
- *seen*: it landed, and both the manager's own check and the next hook that ran told it.
- *recorded*: it landed, and the manager has reason and commit in its record.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.bypass_cases import CASES, Case
from bench.bypass_managers import PEERS, patchgate, peers
from bench.bypass_place import Manager, Place


def outcome(case: Case, manager: Manager, folder: Path) -> str:
    """Do one case to one manager, and its control; give the word for the grid."""
    name = f"{manager.name}-{case.number}"
    control = case.run(Place(folder / f"{name}-control", manager, bad=False, merges=case.merges))
    if control.refused:
        return f"broken (control: {control.word})"
    return case.run(Place(folder / name, manager, merges=case.merges)).word


def grid(cases: Sequence[Case], managers: Sequence[Manager], words: Sequence[Sequence[str]]) -> str:
    """Write the markdown table, and how many rows each manager let pass."""
    names = [f"{each.name} {PEERS[each.name]}" if each.name in PEERS else each.name for each in managers]
    lines = [f"| # | what is done | {' | '.join(names)} |", f"| --- | --- |{' --- |' * len(names)}"]
    for case, row in zip(cases, words, strict=True):
        lines.append(f"| {case.number} | {case.what} | {' | '.join(row)} |")
    passed = [sum(row[place].startswith("passed") for row in words) for place in range(len(managers))]
    lines.append(f"| | passed, of {len(cases)} | {' | '.join(map(str, passed))} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Say on what this was measured."""
    git = subprocess.run(["git", "version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    return f"{git}, Python {platform.python_version()}, {platform.system()}.\n"


def main() -> None:
    """Run the cases and print the grid."""
    parser = argparse.ArgumentParser(prog="python -m bench.bypasses")
    parser.add_argument("--peers", type=Path, help="a virtual environment for the peers, kept")
    parser.add_argument("--only", help="the numbers of some cases, by commas")
    parser.add_argument("--managers", help="the names of some managers, by commas")
    parser.add_argument("--write", type=Path, help="write the grid to this file too")
    arguments = parser.parse_args()
    names = arguments.managers.split(",") if arguments.managers else [*PEERS, "patchgate"]
    numbers = {int(number) for number in arguments.only.split(",")} if arguments.only else None
    cases = [case for case in CASES if numbers is None or case.number in numbers]
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = Path(temporary).resolve()
        managers = [patchgate()] if "patchgate" in names else []
        if any(name in PEERS for name in names):
            managers = [*peers(arguments.peers or folder / "peers"), *managers]
        managers = [manager for manager in managers if manager.name in names]
        words = []
        with ThreadPoolExecutor(max_workers=2) as pool:
            for case in cases:
                print(f"case {case.number}: {case.what}", file=sys.stderr)
                words.append(list(pool.map(lambda each, case=case: outcome(case, each, folder), managers)))
    text = f"{grid(cases, managers, words)}\n{machine()}"
    print(text, end="")
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
