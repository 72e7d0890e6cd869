"""Judges the contracts of commits, as a whole or by a change; and a repository that has three of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchgate.components.component_cache import FactsCache
from patchgate.components.contract_facts import ContractFacts
from patchgate.components.contract_gathering import contracts_of_change, contracts_of_tree
from patchgate.components.contracts import examine_contracts
from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Components
from patchgate.policy.config import parse
from patchgate.policy.policy import Policy
from patchgate.report.verdict import Finding
from tests.component_world import declared, files, opened
from tests.world import Content, Repo

GONE = Entry("100644", "1" * 40)
Told = frozenset[tuple[object, ...]]
BASE, MID, TOP = (f"contracts/{name}/interface.json" for name in ("base", "mid", "top"))
BUDGETED = {
    "name": "run",
    "output": {"type": "int"},
    "side_effects": [{"kind": "none", "target": "nothing"}],
    "performance_budget": {"p95_latency_ms": 50},
}
BUDGET_TEST = "from {name} import run\n\ndef test_latency():\n    assert p95(run) <= 50\n"


def files_of(name: str, *needs: str, **more: Any) -> dict[str, Content]:
    """Give the files of one component that is right, with a test of its budget."""
    return {**files(name, *needs, **more), f"tests/{name}/test_it.py": BUDGET_TEST.format(name=name)}


def key(finding: Finding) -> tuple[object, ...]:
    """Give what tells findings apart; files that are shared are counted by who shares them."""
    if finding.rule == "component-shared-file":
        return (finding.rule, repr(finding.details["components"]))
    return (finding.rule, finding.path, finding.line, finding.message, finding.hint)


class Watched(FactsCache):
    """A cache that remembers which contracts were asked for."""

    def __init__(self, common_dir: str) -> None:
        super().__init__(common_dir)
        self.asked: list[str] = []

    def facts(self, oid: str, read: Callable[[], ContractFacts]) -> ContractFacts:
        """Give the facts of a contract."""
        self.asked.append(oid)
        return super().facts(oid, read)


class Desk:
    """Judges the contracts of one repository's commits, as a whole or by a change."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        raw = repo.git("show", "HEAD:patchgate.toml")
        self.policy = Policy(parse(raw, "patchgate.toml"), "patchgate.toml", raw)
        self.components: Components = self.policy.components
        self.repository = opened(repo)

    def told(
        self,
        after: str,
        before: str | None = None,
        ids: Sequence[str] | None = None,
        cache: FactsCache | None = None,
    ) -> Told:
        """Tell what is found in the tree of a commit: all of it, or what the change since another asks."""
        with Objects(self.repository) as objects, FactsCache(self.repository.common_dir) as kept:
            new = self._view(objects, after)
            files = None if before is None else self._files(self._view(objects, before), new)
            if before is not None:
                # As the next commit is seen in a hook: its base, with the change laid over it.
                new = TreeView(objects, self._tree(before), {each.path.raw: each.new for each in files or ()})
            if files is None:
                view = contracts_of_tree(self.policy, new, cache or kept, ids)
            else:
                view = contracts_of_change(self.policy, new, files, cache or kept)
            if view is None:
                return frozenset()
            return frozenset(key(finding) for finding in examine_contracts(view, self.policy))

    def touching(self, commit: str, path: str) -> Told:
        """Tell what a change finds that leaves one file as it is, or takes it away where it is not there."""
        with Objects(self.repository) as objects, FactsCache(self.repository.common_dir) as cache:
            view = self._view(objects, commit)
            entry = view.entry(path.encode())
            files = (FileChange(RepoPath(path.encode()), entry or GONE, entry),)
            seen = contracts_of_change(self.policy, view, files, cache)
            found = examine_contracts(seen, self.policy) if seen is not None else ()
            return frozenset(key(finding) for finding in found)

    def _tree(self, commit: str) -> str:
        return self.repo.ask("rev-parse", commit + "^{tree}")

    def _view(self, objects: Objects, commit: str) -> TreeView:
        return TreeView(objects, self._tree(commit))

    @staticmethod
    def _files(old: TreeView, new: TreeView) -> tuple[FileChange, ...]:
        before, after = old.below(b""), new.below(b"")
        return tuple(
            FileChange(path, before.get(path), after.get(path))
            for path in sorted({*before, *after})
            if before.get(path) != after.get(path)
        )


def rules(told: Told) -> list[str]:
    return sorted(str(each[0]) for each in told)


def world(tmp_path: Path) -> Repo:
    """A repository with three components: `top` and `mid` depend on what is below them."""
    repo = Repo.create(tmp_path)
    repo.policy(declared("base", "mid", "top"))
    repo.commit(
        {
            **files_of("base", external_dependencies=["tools.paths", "docs/notes.md"]),
            **files_of("mid", "base"),
            **files_of("top", "mid", functions=[BUDGETED]),
            "src/tools/paths.py": "",
            "docs/notes.md": "",
        }
    )
    return repo


def changed(repo: Repo, files: Mapping[str, str], gone: Sequence[str] = ()) -> Told:
    """Commit a change; tell what it finds."""
    for name in gone:
        (repo.path / name).unlink()
    repo.commit(files)
    return Desk(repo).told("HEAD", "HEAD^")
