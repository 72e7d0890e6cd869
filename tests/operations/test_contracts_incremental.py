"""Which contracts a change validates, in real repositories: enough of them, and no more."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from patchgate.change.model import FileChange
from patchgate.change.path import RepoPath
from patchgate.declared.component import Components
from patchgate.declared.config import parse
from patchgate.declared.contract_facts import ContractFacts
from patchgate.declared.policy import Policy
from patchgate.errors import UndecidedError, UsageError
from patchgate.gates.contracts import examine_view
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.git.tree_view import TreeView
from patchgate.operations.hold.validate import validate
from patchgate.operations.judge.contract_cache import FactsCache
from patchgate.operations.judge.contracts import contracts_view
from patchgate.operations.judge.externals import Externals
from patchgate.verdict.verdict import Finding, Verdict
from tests.world import Repo

Told = frozenset[tuple[object, ...]]
DECLARED = """
[components.{name}]
{parent}contract = "contracts/{name}.json"
tests = ["tests/{name}/**"]
implementation = ["src/{name}/**"]
"""
BUDGET_TEST = "from {name} import run\n\ndef test_latency():\n    assert p95(run) <= 50\n"


def declared(parents: Mapping[str, str | None], more: str = "") -> str:
    """Write a config that declares components."""
    return more + "".join(
        DECLARED.format(name=name, parent=f'parent = "{parent}"\n' if parent else "")
        for name, parent in parents.items()
    )


def contract(
    name: str, *needs: str, externals: Sequence[str] = (), budget: bool = False, description: str = "Shapes."
) -> str:
    """Write a contract with one function."""
    function: dict[str, Any] = {
        "name": "run",
        "output": {"type": "int"},
        "side_effects": [{"kind": "none", "target": "nothing"}],
    }
    if budget:
        function["performance_budget"] = {"p95_latency_ms": 50}
    document = {
        "component_id": name,
        "version": "1.0",
        "description": description,
        "dependencies": list(needs),
        "external_dependencies": list(externals),
        "functions": [function],
    }
    return json.dumps(document, indent=2) + "\n"


def files_of(name: str, *needs: str, **more: Any) -> dict[str, str]:
    """Give the files of one component that is right."""
    return {
        f"contracts/{name}.json": contract(name, *needs, **more),
        f"tests/{name}/test_it.py": BUDGET_TEST.format(name=name),
        f"src/{name}/__init__.py": "def run():\n    return 1\n",
    }


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


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

    def facts(self, oid: str, read: Callable[[], bytes]) -> ContractFacts:
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
            baselines = self.policy.config.baselines
            view = contracts_view(self.components, baselines, new, files, cache or kept, ids)
            if view is None:
                return frozenset()
            return frozenset(key(finding) for finding in examine_view(view, self.policy))

    def touching(self, commit: str, path: str) -> Told:
        """Tell what a change finds that touches one file of a tree and leaves it as it is."""
        with Objects(self.repository) as objects, FactsCache(self.repository.common_dir) as cache:
            view = self._view(objects, commit)
            entry = view.entry(path.encode())
            files = (FileChange(RepoPath(path.encode()), entry, entry),)
            seen = contracts_view(self.components, self.policy.config.baselines, view, files, cache)
            found = examine_view(seen, self.policy) if seen is not None else ()
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
    repo.policy(declared({"base": None, "mid": None, "top": None}))
    repo.commit(
        {
            **files_of("base", externals=["tools.paths", "docs/notes.md"]),
            **files_of("mid", "base"),
            **files_of("top", "mid", budget=True),
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


def test_a_tree_that_is_right_is_told_nothing_of(tmp_path: Path) -> None:
    assert Desk(world(tmp_path)).told("HEAD") == frozenset()


def test_a_changed_contract_is_validated_and_so_is_what_depends_on_it(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit(
        {
            "contracts/mid.json": contract("mid", "bose", description="Robust and reliable."),
            "contracts/top.json": contract("top", "Mid"),
        }
    )
    found = changed(repo, {"contracts/mid.json": contract("mid", "bsae")})
    assert rules(found) == ["dependency-corrected", "dependency-unknown"]
    # A sibling that has nothing to do with it stays silent.
    assert rules(changed(repo, {"contracts/base.json": contract("base")})) == []


def test_a_contract_that_goes_is_told_by_what_depends_on_it(tmp_path: Path) -> None:
    found = changed(world(tmp_path), {}, ["contracts/base.json"])
    assert rules(found) == ["contract-missing", "dependency-without-contract"]


def test_an_edit_of_an_implementation_reads_no_contract(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit({"src/base/__init__.py": "def run():\n    return 2\n"})
    cache = Watched(opened(repo).common_dir)
    assert Desk(repo).told("HEAD", "HEAD^", cache=cache) == frozenset()
    assert cache.asked == []


def test_an_edit_of_a_test_reads_its_own_contract_alone(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit({"tests/top/test_it.py": "def test_it():\n    assert run() == 1\n"})
    cache = Watched(opened(repo).common_dir)
    assert rules(Desk(repo).told("HEAD", "HEAD^", cache=cache)) == ["budget-unasserted"]
    assert cache.asked == [repo.ask("rev-parse", "HEAD:contracts/top.json")]


@pytest.mark.parametrize("name", ["src/tools/paths.py", "docs/notes.md"])
def test_what_goes_is_missed_by_the_contract_that_names_it(tmp_path: Path, name: str) -> None:
    assert rules(changed(world(tmp_path), {}, [name])) == ["external-missing"]


def test_a_module_that_becomes_a_package_is_not_missed(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.git("rm", "-q", "src/tools/paths.py")
    repo.commit({"src/tools/paths/__init__.py": ""})
    assert Desk(repo).told("HEAD", "HEAD^") == frozenset()


def test_what_was_missing_before_is_nothing_that_a_deletion_did(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit({"contracts/mid.json": contract("mid", externals=["gone.long_ago"]), "spare.txt": ""})
    assert rules(changed(repo, {}, ["spare.txt"])) == []


def test_a_pattern_that_a_deletion_leaves_empty_is_told(tmp_path: Path) -> None:
    assert rules(changed(world(tmp_path), {}, ["src/mid/__init__.py"])) == ["component-empty-glob"]


def test_a_new_file_that_two_components_claim_is_refused(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.policy(
        declared({"mid": None, "top": None})
        + '[components.base]\ncontract = "contracts/base.json"\ntests = ["tests/base/**"]\n'
        'implementation = ["src/base/**", "src/**/inner.py"]\n'
    )
    assert Desk(repo).told("HEAD", "HEAD^") == frozenset()
    assert rules(Desk(repo).told("HEAD")) == ["component-empty-glob"]
    found = changed(repo, {"src/mid/inner.py": ""})
    assert rules(found) == ["component-shared-file"]
    assert found <= Desk(repo).told("HEAD")


def test_a_contract_that_becomes_a_symlink_is_refused(tmp_path: Path) -> None:
    repo = world(tmp_path)
    (repo.path / "contracts/base.json").unlink()
    repo.link("contracts/base.json", "../../elsewhere.json")
    found = changed(repo, {})
    assert rules(found) == ["contract-invalid", "dependency-without-contract"]


def test_externals_are_found_behind_symlinks_and_in_submodules(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.link("src/loop", "loop")
    repo.link("src/out", "../../..")
    repo.commit()
    repo.gitlink("src/vendor")
    names = ["alias.paths", "vendor.anything", "src/alias/paths.py", "tools", "src/tools/", "./docs"]
    repo.write("contracts/mid.json", contract("mid", externals=names))
    repo.git("add", "contracts/mid.json")
    repo.git("commit", "-qm", "Name what is there")
    assert Desk(repo).told("HEAD", "HEAD^") == frozenset()
    missing = ["loop.paths", "out.etc", "tools.path", "alias.path"]
    repo.write("contracts/mid.json", contract("mid", externals=missing))
    repo.git("commit", "-qm", "Name what is not there", "contracts/mid.json")
    found = Desk(repo).told("HEAD", "HEAD^")
    assert rules(found) == ["external-missing"] * 4
    assert {"did you mean `tools.paths`?", "did you mean `alias.paths`?"} <= {each[4] for each in found}


@pytest.mark.parametrize(
    "name",
    [
        "../docs",
        "/docs",
        "docs/../../x",
        "a\nb",
        "a\0b",
        "",
        ".",
        "/",
        "..",
        "x" + "/x" * 400,
        "x.x" * 9999,
        "\udcff",
    ],
)
def test_names_that_lead_nowhere_name_nothing(tmp_path: Path, name: str) -> None:
    repo = world(tmp_path)
    with Objects(opened(repo)) as objects:
        externals = Externals(["src", "."], TreeView(objects, repo.ask("rev-parse", "HEAD^{tree}")))
        assert not externals.has(name)
        assert all(isinstance(each, str) for each in externals.like(name))
        assert externals.has("docs/../docs/notes.md")


def test_a_lost_external_behind_a_symlink_is_noticed(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.commit({"contracts/base.json": contract("base", externals=["alias.paths"])})
    assert rules(changed(repo, {}, ["src/tools/paths.py"])) == ["external-missing"]


def test_an_external_is_missed_where_the_symlink_to_it_goes(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.commit({"contracts/base.json": contract("base", externals=["alias.paths"])})
    assert rules(changed(repo, {}, ["src/alias"])) == ["external-missing"]


def test_a_shared_file_is_told_by_each_of_those_that_claim_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(declared({"wide": None, "deep": None}).replace("src/wide/**", "src/**"))
    repo.commit({**files_of("wide"), **files_of("deep")})
    desk = Desk(repo)
    told = desk.told("HEAD")
    assert rules(told) == ["component-shared-file"]
    assert desk.told("HEAD", ids=["wide"]) == desk.told("HEAD", ids=["deep"]) == told


# -- the union, and what is new ------------------------------------------------------------------------

PARENTS: Mapping[str, str | None] = {
    "app_core": None,
    "app_disk": None,
    "app_disk_cache": "app_disk",
    "app_shape": "app_core",
    "app_shape_rules": "app_shape",
    "app_route": "app_core",
    "app_lone": "app_group",
}
SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str,
    str,
    str.upper,
    lambda name: "_".join(reversed(name.split("_"))),
    lambda name: name.removeprefix("app_"),
    lambda name: name + "x",
)
EXTERNALS = ("tools.one", "tools.two", "tools", "docs/a.md", "app_core", "nowhere.at_all", "docs")
LOOSE = (
    "src/tools/one.py",
    "src/tools/two.py",
    "docs/a.md",
    "docs/b.md",
    "src/shared/one.py",
    "src/shared/two.py",
)
SHARED = 'implementation = ["src/app_lone/**", "src/shared/**", "contracts/app_disk.json"]\n'


def random_contract(chance: random.Random, name: str) -> str:
    needs = [chance.choice(SPELLINGS)(chance.choice(list(PARENTS))) for _ in range(chance.randrange(3))]
    if chance.random() < 0.1:
        return "{ no json"
    return contract(
        chance.choice([name] * 9 + ["other"]),
        *dict.fromkeys(needs),
        externals=chance.sample(EXTERNALS, chance.randrange(3)),
        budget=chance.random() < 0.4,
        description=chance.choice(["Shapes.", "Robust and reliable."]),
    )


def random_tree(chance: random.Random) -> dict[str, str]:
    """Make the files of a repository in which a good deal is wrong."""
    files: dict[str, str] = {}
    for name in PARENTS:
        if chance.random() < 0.85:
            files[f"contracts/{name}.json"] = random_contract(chance, name)
        if chance.random() < 0.8:
            files[f"tests/{name}/test_it.py"] = random_test(chance, name)
        if chance.random() < 0.8:
            files[f"src/{name}/__init__.py"] = "def run(): ...\n"
    files.update({name: "x\n" for name in LOOSE if chance.random() < 0.7})
    return files


def random_test(chance: random.Random, name: str) -> str:
    return BUDGET_TEST.format(name=name) if chance.random() < 0.5 else "def test_it():\n    assert run()\n"


def random_change(chance: random.Random, files: Mapping[str, str]) -> dict[str, str]:
    """Change, remove and add a few files."""
    after = dict(files)
    for _ in range(chance.randrange(1, 4)):
        what = chance.random()
        name = chance.choice(list(PARENTS))
        if what < 0.4 and after:
            del after[chance.choice(sorted(after))]
        elif what < 0.6:
            after[f"contracts/{name}.json"] = random_contract(chance, name)
        elif what < 0.75:
            after[f"tests/{name}/test_it.py"] = random_test(chance, name)
        elif what < 0.9:
            after[chance.choice(LOOSE)] = f"{chance.random()}\n"
        else:
            after[f"src/{name}/__init__.py"] = f"# {chance.random()}\n"
    return after


def put(repo: Repo, files: Mapping[str, str]) -> str:
    """Commit exactly these files, beside the policy."""
    repo.git("rm", "-rqf", "--ignore-unmatch", "contracts", "tests", "src", "docs")
    return repo.commit(files)


def disorder(tmp_path: Path) -> Repo:
    repo = Repo.create(tmp_path)
    text = declared(PARENTS).replace('implementation = ["src/app_lone/**"]\n', SHARED)
    text += '[components.app_twin]\ncontract = "contracts/app_twin.json"\ntests = ["tests/app_twin/**"]\n'
    repo.policy(text + 'implementation = ["src/shared/one.py"]\n')
    return repo


@pytest.mark.parametrize("seed", range(12))
def test_the_contracts_one_by_one_and_all_of_them_say_the_same(tmp_path: Path, seed: int) -> None:
    repo = disorder(tmp_path)
    commit = put(repo, random_tree(random.Random(seed)))
    desk = Desk(repo)
    every = desk.told(commit)
    assert len(every) >= 3
    ids = desk.components.ids
    assert frozenset().union(*(desk.touching(commit, f"contracts/{name}.json") for name in ids)) == every
    assert frozenset().union(*(desk.told(commit, ids=[name]) for name in ids)) == every


@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_new_with_a_change_is_told_with_it_and_nothing_that_is_not_there(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(1000 + seed)
    repo = disorder(tmp_path)
    files = random_tree(chance)
    before = put(repo, files)
    desk = Desk(repo)
    for _ in range(4):
        files = random_change(chance, files)
        after = put(repo, files)
        old, new, told = desk.told(before), desk.told(after), desk.told(after, before)
        # Suggestions may differ where something else came; what is wrong may not.
        bare = [frozenset(each[:4] for each in some) for some in (old, new, told)]
        assert bare[1] - bare[0] <= bare[2] <= bare[1]
        before = after


# -- the verb ------------------------------------------------------------------------------------------


def found_by(repo: Repo, *ids: str, everything: bool = False, fail_fast: bool = False) -> list[str]:
    report = validate(opened(repo), ids, everything=everything, fail_fast=fail_fast)
    (verdict,) = report.changes
    return [finding.rule for finding in verdict.findings]


def test_the_verb_judges_the_index_by_its_own_policy(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.write("contracts/mid.json", contract("mid", "bose"))
    assert found_by(repo, everything=True) == []
    repo.git("add", "-A")
    assert (
        found_by(repo) == found_by(repo, "mid") == found_by(repo, everything=True) == ["dependency-unknown"]
    )
    assert found_by(repo, "base") == []
    repo.write(
        "patchgate.toml",
        declared({"base": None, "mid": None, "top": None}, '[rules]\ndependency-unknown = "error"\n'),
    )
    repo.git("add", "-A")
    report = validate(opened(repo), [], everything=True)
    assert report.verdict is Verdict.REJECTED
    assert report.changes[0].policy.origin == ":patchgate.toml"
    assert report.changes[0].change.after == repo.ask("write-tree")


def test_fail_fast_ends_with_the_first_error_and_not_with_a_warning(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.stage(
        {
            "contracts/base.json": contract("base", "bose", externals=["not.here", "nor.here"]),
            "contracts/mid.json": "{",
        }
    )
    assert found_by(repo, everything=True, fail_fast=True) == ["dependency-unknown", "external-missing"]
    assert len(found_by(repo, everything=True)) >= 4


def test_an_unknown_component_is_a_usage_error_with_the_one_that_was_meant(tmp_path: Path) -> None:
    repo = world(tmp_path)
    with pytest.raises(UsageError) as told:
        found_by(repo, "bas")
    assert "base" in str(told.value.hint)


def test_a_bare_repository_validates_its_head(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit({"contracts/mid.json": contract("mid", "bose")})
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare.git"))
    bare = repo.at(tmp_path / "bare.git")
    assert found_by(bare, everything=True) == ["dependency-unknown"]
    with pytest.raises(UsageError):
        found_by(bare)


def test_before_the_first_commit_the_index_is_validated_all_the_same(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage(
        {"patchgate.toml": declared({"base": None}), "contracts/base.json": contract("base", "nothing")}
    )
    told = found_by(repo)
    assert told == found_by(repo, everything=True)
    assert sorted(told) == ["component-empty-glob", "component-empty-glob", "dependency-unknown"]


def test_an_index_with_conflicts_is_undecided(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.git("checkout", "-qb", "other")
    repo.commit({"docs/notes.md": "one\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"docs/notes.md": "two\n"})
    assert repo.try_git("merge", "other").returncode != 0
    with pytest.raises(UndecidedError):
        found_by(repo, everything=True)
