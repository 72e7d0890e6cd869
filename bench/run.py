"""Make all tables in one go, the worst history first; or compare two revisions in the same rounds.

    python -m bench.run [--quick] [--only ranges,hooks] [--history DIR:A..B] [--peers DIR]
                        [--against REV] [--json FILE] [--write FILE] [--docs]

Each table is that of its own module, with the command that makes it alone. `--quick` takes some two minutes
on a quiet machine, with smaller repositories and fewer rounds. `--history` adds the range of a full clone.

With `--against` the same repositories are made twice, for this patchgate and for that of another commit, and
both are timed in the same rounds: for each command there is the ratio of new to old. Those of other programs
should be 1.00, and show how quiet the machine is. What is measured within one process is left out.

`--json` writes every time that was taken. `--docs` puts each table between the lines `<!-- bench:NAME -->`
and `<!-- /bench:NAME -->` of the documentation.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measurement import AddOptions, Prepare, parser_of
from bench.pairs import Command, Rounds, Spread, Task, run_rounds
from bench.tables import Row, machine, ratio_table, time_table
from bench.worlds import World

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Table:
    """One benchmark: its name, its module, and its arguments; without quick ones it is not in that form."""

    name: str
    module: str
    full: str
    quick: str | None = None

    @property
    def prepare(self) -> Prepare:
        """What makes its repositories."""
        found: Prepare = importlib.import_module(f"bench.{self.module}").prepare
        return found

    def options(self, arguments: str) -> argparse.Namespace:
        """Read arguments as its own command would."""
        module = importlib.import_module(f"bench.{self.module}")
        add_options: AddOptions = module.add_options
        return parser_of(module.__doc__, add_options, 9).parse_args(arguments.split())


TABLES = (
    Table("ranges", "ranges", "--rounds 5", "--rounds 3 --commits 2000"),
    Table("ranges-kind", "ranges", "--rounds 5 --kind"),
    Table(
        "hooks",
        "hooks",
        "--rounds 15 --files 5000,100000,500000",
        "--rounds 3 --files 5000 --commits 1000 --peers none",
    ),
    Table(
        "everyday",
        "everyday",
        "--rounds 15 --files 5000,100000,500000",
        "--rounds 3 --only refs,commits",
    ),
    Table("commands", "commands", "--rounds 21", "--rounds 5 --files 5000 --peers none"),
    Table("check", "check", "--rounds 11", "--rounds 5 --files 5000"),
    Table("patches", "patches", "--rounds 5", "--rounds 3 --only small --files 20000"),
    Table("apply", "apply", "--rounds 9"),
    Table("verify", "verify", "--rounds 11", "--rounds 3 --files 1000"),
    Table("components", "components", "--rounds 7"),
    Table("claims", "claims", "--rounds 7"),
    Table("compare", "compare", "--rounds 7"),
    Table("scratch", "scratch", "--rounds 5"),
    Table("runs", "runs", "--rounds 7"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one table gave: the command that makes it alone, its rows, all times, and notes.

    `compared` has for each command the ratio to the same of the other revision.
    """

    name: str
    command: str
    rows: Sequence[Row]
    rounds: Rounds
    notes: str = ""
    compared: Mapping[str, Spread] | None = None

    def text(self, against: str) -> str:
        """Write it as a part of a page."""
        rows = self.rows
        if self.compared is not None:
            rows = [Row(name, against, None, ratios) for name, ratios in self.compared.items()]
        parts = (
            f"## {self.name}",
            f"`{self.command}`",
            ratio_table(rows),
            self.notes,
            time_table(self.rounds),
        )
        return "\n\n".join(part.strip() for part in parts if part) + "\n"


def measure(table: Table, arguments: str, old: str | None = None) -> Result:
    """Measure one table.

    Args:
        arguments: those of its own command.
        old: the `git-patchgate` of another revision, to be timed beside this one.
    """
    options = table.options(arguments)
    command = f"python -m bench.{table.module} {arguments}"
    with contextlib.ExitStack() as stack:
        new = table.prepare(stack.enter_context(World()), options)
        if old is None:
            measured = run_rounds(new.tasks, options.rounds)
            new.require_valid()
            return Result(table.name, command, new.rows(measured), measured, new.notes)
        options.any_path = True
        before = table.prepare(stack.enter_context(World(old)), options)
        both = [
            name for name, task in new.tasks.items() if isinstance(task, Command) and name in before.tasks
        ]
        tasks: dict[str, Task] = {name: new.tasks[name] for name in both}
        measured = run_rounds(tasks | {_old(name): before.tasks[name] for name in both}, options.rounds)
        compared = {name: measured.ratios(name, _old(name)) for name in both}
        return Result(table.name, command, (), measured, compared=compared)


def _old(name: str) -> str:
    return f"{name} (old)"


@contextlib.contextmanager
def installed(revision: str) -> Iterator[str]:
    """Install patchgate as it is in a commit of this repository, with the libraries of this environment.

    Yields:
        The path of its `git-patchgate`.
    """
    with World() as world:
        source, folder = world.place("source"), world.place("venv")
        os.makedirs(source)
        archive = ("git", "archive", revision, "patchgate")
        files = subprocess.run(archive, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(("tar", "-x", "-C", source), input=files, check=True)
        subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
        python = os.path.join(folder, "bin", "python")
        own = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
        # That revision comes first; what makes this one importable is in files that are not read there.
        Path(own, "old.pth").write_text(f"{source}\n{sysconfig.get_path('purelib')}\n", "utf-8")
        program = Path(folder, "bin", "git-patchgate")
        program.write_text(f"#!{python}\nfrom patchgate.cli.program import main\n\nmain()\n", "utf-8")
        program.chmod(0o755)
        subprocess.run((python, "-m", "compileall", "-q", source), check=True)
        yield str(program)


def as_json(results: Sequence[Result], about: Mapping[str, str | None]) -> str:
    """Write all results as one JSON document: times in seconds.

    Args:
        about: what was measured, and when.
    """
    tables = [
        {
            "name": each.name,
            "command": each.command,
            "rows": [asdict(row) for row in each.rows],
            "compared": {name: asdict(spread) for name, spread in (each.compared or {}).items()},
            "seconds": {name: list(times) for name, times in each.rounds.seconds.items()},
        }
        for each in results
    ]
    return json.dumps({"version": 1, **about, "tables": tables}, indent=1) + "\n"


def put_in_docs(results: Sequence[Result], about: str, folder: Path) -> list[str]:
    """Put the tables between their marks in the pages of a folder; give the names of those without any.

    Args:
        about: a sentence on date, revision and machine.
    """
    left = {each.name for each in results}
    for page in sorted(folder.glob("*.md")):
        text = page.read_text("utf-8")
        for each in results:
            begin, end = f"<!-- bench:{each.name} -->\n", f"<!-- /bench:{each.name} -->"
            head, _, rest = text.partition(begin)
            _, closing, tail = rest.partition(end)
            if closing:
                text = f"{head}{begin}\n{ratio_table(each.rows)}\n`{each.command}`, {about}\n\n{end}{tail}"
                left.discard(each.name)
        page.write_text(text, "utf-8")
    return sorted(left)


def chosen(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> list[tuple[Table, str]]:
    """Choose the tables and their arguments; a history is one more, after the worst that is made here."""
    tables = [(each, each.quick if arguments.quick else each.full) for each in TABLES]
    for each in arguments.history:
        place, _, revisions = each.rpartition(":")
        if not place or ".." not in revisions or any(map(str.isspace, each)):
            parser.error(f"--history {each}: write DIR:A..B, without blanks")
        line = f"--rounds 3 --repository {place} --range {revisions}"
        tables.insert(1, (Table(f"ranges-{Path(place).resolve().name}", "ranges", line), line))
    names = [each.name for each, _ in tables]
    asked = arguments.only.split(",") if arguments.only else names
    if unknown := [each for each in asked if each not in names]:
        parser.error(f"no such table: {', '.join(unknown)}; there are {', '.join(names)}")
    found = [(each, line) for each, line in tables if each.name in asked and line is not None]
    peers = f" --peers {arguments.peers}" if arguments.peers else ""
    return [(each, line + peers if each.module in _WITH_PEERS else line) for each, line in found]


_WITH_PEERS = frozenset({"commands", "hooks"})


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="some two minutes")
    parser.add_argument("--only", help="these tables, by commas")
    parser.add_argument("--history", action="append", default=[], help="DIR:A..B, a range of a full clone")
    parser.add_argument("--peers", help="a virtual environment with the peers; `none`: without them")
    parser.add_argument("--against", metavar="REV", help="time another commit of this repository beside it")
    parser.add_argument("--json", help="write all times to this file")
    parser.add_argument("--write", help="write the tables to this file")
    parser.add_argument("--docs", action="store_true", help="put the tables into the documentation")
    arguments = parser.parse_args()
    tables = chosen(arguments, parser)
    changed = " with changes" if _git("status", "--porcelain", "--", "patchgate") else ""
    about = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "revision": _git("rev-parse", "--short=12", "HEAD") + changed,
        "against": _git("rev-parse", "--short=12", arguments.against) if arguments.against else None,
        "machine": machine().strip(),
    }
    results: list[Result] = []
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(installed(arguments.against)) if arguments.against else None
        for table, line in tables:
            print(f"{table.name} ...", file=sys.stderr)
            results.append(measure(table, line, old))
    said = f"{about['date']}, revision {about['revision']}. {about['machine']}"
    against = f"`{about['against']}`" if arguments.against else ""
    compared = f" Each command is compared with {against}." if against else ""
    text = "\n".join(
        [f"# What patchgate costs\n\n{said}{compared}\n", *(each.text(against) for each in results)]
    )
    print(text)
    for place, content in ((arguments.write, text), (arguments.json, as_json(results, about))):
        if place:
            Path(place).write_text(content, "utf-8")
    if arguments.docs and not arguments.against:
        for name in put_in_docs(results, said, ROOT / "docs"):
            print(f"no page has a place for {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
