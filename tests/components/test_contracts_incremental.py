"""Which contracts a change validates, in real repositories: enough of them, and no more."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.component_world import contract, declared, opened
from tests.components.contract_desk import (
    BASE,
    BUDGET_TEST,
    BUDGETED,
    MID,
    TOP,
    Desk,
    Watched,
    changed,
    files_of,
    rules,
    world,
)
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


def test_a_tree_that_is_right_is_told_nothing_of(tmp_path: Path) -> None:
    assert Desk(world(tmp_path)).told("HEAD") == frozenset()


def test_a_changed_contract_is_validated_and_so_is_what_depends_on_it(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit(
        {
            MID: contract("mid", "bose", description="Robust and reliable."),
            TOP: contract("top", "Mid"),
        }
    )
    found = changed(repo, {MID: contract("mid", "bsae")})
    assert rules(found) == ["dependency-corrected", "dependency-unknown"]
    # A sibling that has nothing to do with it stays silent.
    assert rules(changed(repo, {BASE: contract("base")})) == []


def test_a_contract_that_goes_is_told_by_what_depends_on_it(tmp_path: Path) -> None:
    found = changed(world(tmp_path), {}, [BASE])
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
    assert cache.asked == [repo.ask("rev-parse", "HEAD:contracts/top/interface.json")]


def test_a_pattern_that_a_deletion_leaves_empty_is_told(tmp_path: Path) -> None:
    assert rules(changed(world(tmp_path), {}, ["src/mid/__init__.py"])) == ["component-empty-glob"]


def test_a_new_file_that_two_components_claim_is_refused(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.policy(declared("mid", "top") + declared("base", implementation=["src/base/**", "src/**/inner.py"]))
    assert Desk(repo).told("HEAD", "HEAD^") == frozenset()
    assert rules(Desk(repo).told("HEAD")) == ["component-empty-glob"]
    found = changed(repo, {"src/mid/inner.py": ""})
    assert rules(found) == ["component-shared-file"]
    assert found <= Desk(repo).told("HEAD")


def test_a_contract_that_becomes_a_symlink_is_refused(tmp_path: Path) -> None:
    repo = world(tmp_path)
    (repo.path / BASE).unlink()
    repo.link(BASE, "../../elsewhere.json")
    found = changed(repo, {})
    assert rules(found) == ["contract-invalid", "dependency-without-contract"]


def test_a_shared_file_is_told_by_each_of_those_that_claim_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(declared("wide", "deep").replace("src/wide/**", "src/**"))
    repo.commit({**files_of("wide"), **files_of("deep")})
    desk = Desk(repo)
    told = desk.told("HEAD")
    assert rules(told) == ["component-shared-file"]
    assert desk.told("HEAD", ids=["wide"]) == desk.told("HEAD", ids=["deep"]) == told


def of_modules(tmp_path: Path, *needs: str) -> Repo:
    """Make a repository in which one component names modules and paths, of another one and of none."""
    repo = Repo.create(tmp_path)
    repo.policy(declared("money", implementation=["src/shop/money.py", "src/coins/**"]) + declared("invoice"))
    repo.commit(
        {
            "src/shop/money.py": "",
            "src/shop/loose.py": "",
            "src/coins/small.py": "",
            "tests/money/test_it.py": "",
            "tests/invoice/test_it.py": "",
            "src/invoice/__init__.py": "",
            "contracts/money/interface.json": contract("money"),
            "contracts/invoice/interface.json": contract("invoice", *needs),
        }
    )
    return repo


@pytest.mark.parametrize(
    "name",
    ["shop.money", "src/shop/money.py", "coins", "src/coins/", "coins.small", "./src/coins", "tests/money"],
)
def test_a_module_of_another_component_is_no_dependency_and_that_is_told(tmp_path: Path, name: str) -> None:
    repo = of_modules(tmp_path, name)
    kind = "path" if "/" in name else "module"
    for told in (Desk(repo).told("HEAD"), Desk(repo).told("HEAD", "HEAD^")):
        ((rule, _, _, message, hint),) = told
        assert rule == "dependency-unknown"
        assert {f"`{name}`", kind, "`money`"} <= set(str(message).split())
        assert "`money`" in str(hint)


@pytest.mark.parametrize("name", ["shop", "shop.loose", "src", "invoice.__init__", "src/invoice", "money"])
def test_a_module_that_is_nobodys_or_its_own_or_of_several_is_no_finding(tmp_path: Path, name: str) -> None:
    assert Desk(of_modules(tmp_path, name)).told("HEAD") == frozenset()


def test_a_module_behind_a_symlink_is_of_whom_it_really_is(tmp_path: Path) -> None:
    repo = of_modules(tmp_path, "alias.money", "cent.small")
    repo.link("src/alias", "shop")
    repo.link("src/cent", "coins")
    repo.commit()
    assert rules(Desk(repo).told("HEAD")) == ["dependency-unknown"] * 2


def test_a_module_that_a_new_declaration_claims_is_told_with_the_declaration(tmp_path: Path) -> None:
    repo = of_modules(tmp_path, "shop.loose")
    assert Desk(repo).told("HEAD") == frozenset()
    text = (repo.path / "patchgate.toml").read_text()
    repo.stage({"patchgate.toml": text.replace("shop/money.py", "shop/*.py")})
    assert "dependency-unknown" in repo.check().rules


# The long form asks 200 trees, and 800 changes of such.
SEEDS = 200 if os.environ.get("PATCHGATE_LONG") else 10
DECLARED: Mapping[str, Mapping[str, Any]] = {
    "app_core": {},
    "app_disk": {},
    "app_disk_cache": {"parent": "app_disk"},
    "app_shape": {"parent": "app_core"},
    "app_shape_rules": {"parent": "app_shape"},
    "app_route": {"parent": "app_core"},
    "app_lone": {
        "parent": "app_group",
        "implementation": ["src/app_lone/**", "src/shared/**", "contracts/app_disk/interface.json"],
    },
    "app_twin": {"implementation": ["src/shared/one.py"]},
}
NAMED = tuple(DECLARED)[:-1]


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


def random_contract(chance: random.Random, name: str) -> str:
    needs = [chance.choice(SPELLINGS)(chance.choice(NAMED)) for _ in range(chance.randrange(3))]
    if chance.random() < 0.1:
        return "{ no json"
    return contract(
        chance.choice([name] * 9 + ["other"]),
        *dict.fromkeys(needs),
        external_dependencies=chance.sample(EXTERNALS, chance.randrange(3)),
        functions=[BUDGETED] if chance.random() < 0.4 else [],
        description=chance.choice(["Shapes.", "Robust and reliable."]),
    )


def random_tree(chance: random.Random) -> dict[str, str]:
    """Make the files of a repository in which a good deal is wrong."""
    files: dict[str, str] = {}
    for name in NAMED:
        if chance.random() < 0.85:
            files[f"contracts/{name}/interface.json"] = random_contract(chance, name)
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
        name = chance.choice(NAMED)
        if what < 0.4 and after:
            del after[chance.choice(sorted(after))]
        elif what < 0.6:
            after[f"contracts/{name}/interface.json"] = random_contract(chance, name)
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
    tables = [declared(name, **keys) for name, keys in DECLARED.items()]
    repo.policy("".join(tables))
    return repo


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_contracts_one_by_one_and_all_of_them_say_the_same(tmp_path: Path, seed: int) -> None:
    """Requirement D 2.2: one by one and all at once say the same."""
    repo = disorder(tmp_path)
    commit = put(repo, random_tree(random.Random(seed)))
    desk = Desk(repo)
    every = desk.told(commit)
    assert len(every) >= 3
    ids = desk.components.ids
    assert (
        frozenset().union(*(desk.touching(commit, f"contracts/{name}/interface.json") for name in ids))
        == every
    )
    assert frozenset().union(*(desk.told(commit, ids=[name]) for name in ids)) == every


def circle(told: tuple[object, ...]) -> set[str]:
    """Name the components of a circle; of any other finding none."""
    if told[0] != "dependency-cycle":
        return set()
    # A sentence about branches names components that are not of the circle.
    message = re.sub(r"; `[^`]+` and `[^`]+` are in different branches", "", str(told[3]))
    return set(re.findall(r"app_\w+", message))


@pytest.mark.parametrize("seed", range(SEEDS))
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
        circles = [circle(each) for each in bare[0]]
        # A circle that is left of a larger one is nothing new.
        came = {each for each in bare[1] - bare[0] if not any(set() < circle(each) <= one for one in circles)}
        assert came <= bare[2] <= bare[1]
        before = after
