"""A repository with analyses that are small shell scripts, which count how often they run."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisRun, TreeRuns
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, open_repository
from patchgate.policy.command_settings import CommandSettings
from patchgate.verify.analysis_runner import AnalysisEnvironment, AnalysisRunner
from patchgate.verify.analyze import find_tree
from tests.command_world import analysis
from tests.world import Repo

NOW = 1_700_000_000.0
REPORT = "report.sarif"


def sarif(*results: tuple[str, str, int]) -> str:
    """Write a SARIF log of results, each a rule, a path and a line."""
    told = [
        {
            "ruleId": rule,
            "message": {"text": f"{rule} says"},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}
            ],
        }
        for rule, path, line in results
    ]
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "told"}}, "results": told}]})


class Desk(Repo):
    """A repository whose analyses are scripts; `ran` tells how often one has run."""

    @classmethod
    def begin(cls, folder: Path, *results: tuple[str, str, int]) -> Desk:
        """Make it, with a file of three lines and what is told of it."""
        made = Repo.create(folder)
        desk = cls(made.path, {**made.env, "XDG_CACHE_HOME": str(folder / "cache")})
        desk.commit({"a.py": "one\ntwo\nthree\n", REPORT: sarif(*results)})
        return desk

    def analysis(
        self, script: str = f"cat {REPORT}", name: str = "told", **more: str
    ) -> dict[str, CommandSettings]:
        """Declare an analysis that counts, then runs a script in the scratch tree."""
        counting = f"echo ran >>{shlex.quote(str(self._count(name)))}; {script}"
        return {name: analysis(("sh", "-c", counting), env=more)}

    def ran(self, name: str = "told") -> int:
        """Tell how often an analysis has run."""
        place = self._count(name)
        return place.read_text().count("ran") if place.exists() else 0

    def _count(self, name: str) -> Path:
        return self.path.parent / f"count of {name}"

    @property
    def around(self) -> AnalysisEnvironment:
        """What the command line would hand in."""
        return AnalysisEnvironment(self.env, self.env["XDG_CACHE_HOME"], lambda what, seconds: None, NOW)

    @contextmanager
    def opened(self) -> Iterator[tuple[Repository, Objects, PrivateStore]]:
        """Open the repository as `verify` does."""
        repository = open_repository(self.env, str(self.path))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            yield repository, objects, store

    def known(self, analyses: Mapping[str, CommandSettings]) -> TreeRuns | None:
        """Ask for what is kept of the analyses of what is staged; None where anything would have to run."""
        with self.opened() as (_, objects, store):
            tree, _ = find_tree(objects, store, "staged")
            runner = AnalysisRunner(objects, store, analyses, self.around)
            wanted = runner._wanted(tree)
            found = {each.name: run for each in wanted if (run := runner._known(each)) is not None}
            return TreeRuns(tree, runner._digest(wanted), found) if len(found) == len(wanted) else None

    def runs(self, analyses: Mapping[str, CommandSettings], what: str = "staged") -> TreeRuns:
        """Ask for the runs of a source."""
        with self.opened() as (_, objects, store):
            tree, commit = find_tree(objects, store, what)
            return AnalysisRunner(objects, store, analyses, self.around).runs(tree, commit)

    def run_of(self, analyses: Mapping[str, CommandSettings], what: str = "staged") -> AnalysisRun:
        """Ask for the only run of a source."""
        (run,) = self.runs(analyses, what).runs.values()
        return run

    def refusal(self, analyses: Mapping[str, CommandSettings]) -> str:
        """Ask for a run that cannot be evaluated; why it could not."""
        run = self.run_of(analyses)
        assert run.outcome is AnalysisOutcome.NOT_EVALUATED
        assert (run.results, run.digest) == ((), "")
        assert run.hint
        return run.reason or ""

    def twice(self, analyses: Mapping[str, CommandSettings]) -> tuple[TreeRuns, TreeRuns]:
        """Run the analyses of the staged tree two times."""
        with self.opened() as (_, objects, store):
            tree, commit = find_tree(objects, store, "staged")
            return AnalysisRunner(objects, store, analyses, self.around).twice(tree, commit)

    def stored(self) -> list[Path]:
        """List the entries of the store."""
        folder = Path(os.fsdecode(self.git("rev-parse", "--git-common-dir").strip()))
        return sorted((self.path / folder / "patchgate" / "analyses").glob("*"))
