"""What contracts name outside of all components: found in the tree that is judged, missed where it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.components.external_dependencies import ExternalDependencies
from patchgate.git.objects import Objects
from patchgate.git.tree_view import TreeView
from tests.component_world import contract, opened
from tests.components.contract_desk import BASE, MID, Desk, changed, rules, world


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
    repo.commit(
        {
            MID: contract("mid", external_dependencies=["gone.long_ago"]),
            "spare.txt": "",
        }
    )
    assert rules(changed(repo, {}, ["spare.txt"])) == []


def test_externals_are_found_behind_symlinks_and_in_submodules(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.link("src/loop", "loop")
    repo.link("src/out", "../../..")
    repo.commit()
    repo.gitlink("src/vendor")
    names = ["alias.paths", "vendor.anything", "src/alias/paths.py", "tools", "src/tools/", "./docs"]
    repo.write(MID, contract("mid", external_dependencies=names))
    repo.git("add", MID)
    repo.git("commit", "-qm", "Name what is there")
    assert Desk(repo).told("HEAD", "HEAD^") == frozenset()
    missing = ["loop.paths", "out.etc", "tools.path", "alias.path"]
    repo.write(MID, contract("mid", external_dependencies=missing))
    repo.git("commit", "-qm", "Name what is not there", MID)
    found = Desk(repo).told("HEAD", "HEAD^")
    assert rules(found) == ["external-missing"] * 4
    hints = " ".join(str(each[4]) for each in found)
    assert ("`tools.paths`" in hints, "`alias.paths`" in hints) == (True, True)


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
        externals = ExternalDependencies(
            ["src", "."], TreeView(objects, repo.ask("rev-parse", "HEAD^{tree}"))
        )
        assert not externals.has(name)
        assert all(isinstance(each, str) for each in externals.like(name))
        assert externals.has("docs/../docs/notes.md")


def test_a_lost_external_behind_a_symlink_is_noticed(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.commit({BASE: contract("base", external_dependencies=["alias.paths"])})
    assert rules(changed(repo, {}, ["src/tools/paths.py"])) == ["external-missing"]


def test_an_external_is_missed_where_the_symlink_to_it_goes(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.link("src/alias", "tools")
    repo.commit({BASE: contract("base", external_dependencies=["alias.paths"])})
    assert rules(changed(repo, {}, ["src/alias"])) == ["external-missing"]


def test_what_a_submodule_was_believed_to_hold_is_missed_where_a_symlink_takes_its_place(
    tmp_path: Path,
) -> None:
    repo = world(tmp_path)
    repo.gitlink("src/vendor")
    repo.write(MID, contract("mid", external_dependencies=["vendor.anything"]))
    repo.git("add", MID)
    repo.git("commit", "-qm", "Name what may be there")
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"tools").decode().strip()
    repo.git("update-index", "--cacheinfo", f"120000,{blob},src/vendor")
    (finding,) = (each for each in repo.check().findings if each["stage"] == "contracts")
    assert (finding["rule"], finding["path"]) == ("external-missing", MID)
