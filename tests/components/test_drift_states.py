"""What the drift gate is given: read from git's objects, and no more of them than the comparison needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patchgate.components.baseline_file import Baseline, BaselineFault, write_baseline
from patchgate.components.component_facts import ComponentState
from patchgate.components.drift_gathering import component_states, files_of, record, recorded_at, state_of
from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import BIG_FILE
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Role
from tests.component_world import (
    BASELINE,
    CODE,
    CONTRACT,
    FILES,
    POLICY,
    TESTS,
    capture,
    components,
    contract,
    make,
    opened,
)
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

COMPONENTS = components(POLICY)
SHAPING: Component = COMPONENTS["shaping"]


class Counted(Objects):
    """Counts the blobs whose contents are read."""

    reads = 0

    def read(self, oid: str, limit: int = BIG_FILE, kind: str | None = None) -> bytes:
        header = self.header(oid)
        self.reads += header is not None and header.type == "blob"
        return super().read(oid, limit, kind)

    def read_some(self, oids: Any, most_bytes: int, kind: str | None = None) -> dict[str, bytes]:
        found = super().read_some(oids, most_bytes, kind)
        self.reads += 0 if kind == "tree" else len(found)
        return found


@contextmanager
def looking(repo: Repo, revision: str = "HEAD") -> Iterator[tuple[Counted, TreeView]]:
    """Open a tree of a repository."""
    objects = Counted(opened(repo))
    with objects:
        yield objects, TreeView(objects, repo.ask("rev-parse", revision + "^{tree}"))


def of_change(repo: Repo, objects: Objects, view: TreeView, *paths: str) -> ComponentState:
    """Gather the component for the change of HEAD at some paths."""
    old: dict[RepoPath, Entry | None] = {}
    before = TreeView(objects, repo.ask("rev-parse", "HEAD~1^{tree}"))
    for path in paths:
        old[RepoPath(path.encode())] = before.entry(path.encode())
    (found,) = component_states(COMPONENTS, {"shaping": set(old)}, view, old)
    return found


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_fresh_capture_equals_what_is_there(tmp_path: Path, object_format: str) -> None:
    repo = Repo.create(tmp_path, f"--object-format={object_format}")
    repo.policy(POLICY)
    repo.commit(FILES)
    repo.commit(capture(repo))
    with looking(repo) as (objects, view):
        state = state_of(SHAPING, view)
        assert isinstance(state.recorded, Baseline)
        assert {
            path: (each.role, Entry(each.mode, each.oid)) for path, each in state.recorded.files.items()
        } == (state.files)
        # The baseline alone was read: nothing differs.
        assert objects.reads == 1
        assert state.texts == {}
        assert (
            write_baseline("shaping", record(files_of(SHAPING, view), view.objects))
            == (repo.path / BASELINE).read_bytes()
        )


def test_contents_are_read_of_contracts_and_tests_that_differ_alone(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.commit({CODE: "other\n", "tests/contracts/test_shaping.txt": "x"})
    with looking(repo) as (objects, view):
        assert of_change(repo, objects, view, CODE).texts == {}
        assert objects.reads == 1
    repo.commit({CONTRACT: contract(version="2.0.0")})
    with looking(repo) as (objects, view):
        texts = of_change(repo, objects, view, CONTRACT).texts
        assert sorted(texts.values()) == sorted([contract().encode(), contract(version="2.0.0").encode()])
        assert objects.reads == 3


def test_of_tests_that_are_no_python_small_new_ones_are_read(tmp_path: Path) -> None:
    policy = POLICY.replace("test_shaping*.py", "**")
    component = components(policy)["shaping"]
    shell, large = "tests/contracts/a.sh", "tests/contracts/b.bin"
    repo = make(tmp_path, policy, {**FILES, shell: "exit 1\n", large: "x"})
    repo.commit({shell: " \n", large: b" " * ((64 << 10) + 1)})
    with looking(repo) as (objects, view):
        assert state_of(component, view).texts == {repo.ask("rev-parse", f"HEAD:{shell}"): b" \n"}
        assert objects.reads == 2


def test_new_tests_are_read_beside_another_contract(tmp_path: Path) -> None:
    repo = make(tmp_path)
    added = "tests/contracts/test_shaping_more.py"
    repo.commit({added: "# nothing\n"})
    with looking(repo) as (objects, view):
        assert state_of(SHAPING, view).texts == {}
        assert objects.reads == 1
    repo.commit({CONTRACT: contract(version="2.0.0")})
    with looking(repo) as (_, view):
        assert b"# nothing\n" in state_of(SHAPING, view).texts.values()


def test_what_stood_before_is_read_where_contract_and_tests_differ_and_a_test_is_touched(
    tmp_path: Path,
) -> None:
    repo = make(tmp_path)
    repo.commit({TESTS: "def test_x(): pass\n"})
    repo.commit({TESTS: "def test_y(): pass\n"})
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, TESTS)
        assert state.old[RepoPath(TESTS.encode())] is not None
        assert b"def test_x(): pass\n" not in state.texts.values()
    repo.commit({CONTRACT: contract(version="2.0.0")})
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, CONTRACT)
        assert len(state.texts) == objects.reads - 1 == 4
    repo.commit({CONTRACT: contract(version="3.0.0"), TESTS: "def test_z(): pass\n"})
    with looking(repo) as (objects, view):
        texts = of_change(repo, objects, view, CONTRACT, TESTS).texts
        assert {b"def test_y(): pass\n", contract(version="2.0.0").encode()} < set(texts.values())
        assert len(texts) == objects.reads - 1 == 6


def test_what_was_too_large_before_may_become_smaller(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.commit({CONTRACT: contract(version="2.0.0"), TESTS: b" " * (BIG_FILE + 1)})
    repo.commit({TESTS: "def test_x(): pass\n"})
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, TESTS)
        old = state.old[RepoPath(TESTS.encode())]
        assert old is not None
        assert old.oid not in state.texts


def test_tests_are_read_though_a_file_that_is_no_python_has_the_same_content(tmp_path: Path) -> None:
    policy = POLICY.replace("test_shaping*.py", "**")
    component = components(policy)["shaping"]
    repo = make(tmp_path, policy, {**FILES, "tests/contracts/a.txt": FILES[TESTS]})
    oid = repo.ask("rev-parse", f"HEAD:{TESTS}")
    repo.commit({TESTS: "def test_x(): pass\n", "tests/contracts/a.txt": "other\n"})
    with looking(repo) as (_, view):
        assert oid in state_of(component, view).texts


def test_a_merge_with_a_baseline_of_its_own_reads_what_its_other_side_changed(tmp_path: Path) -> None:
    repo = make(tmp_path)
    old = repo.ask("rev-parse", f"HEAD:{TESTS}")
    repo.stage({TESTS: "def test_x(): pass\n"})
    repo.commit(capture(repo))
    with looking(repo) as (objects, view):
        before = TreeView(objects, repo.ask("rev-parse", "HEAD~1^{tree}"))
        touched = {RepoPath(BASELINE.encode()): before.entry(BASELINE.encode())}
        for is_merge in (False, True):
            (state,) = component_states(
                COMPONENTS, {"shaping": set(touched)}, view, touched, is_merge=is_merge
            )
            assert (state.is_merge, old in state.texts) == (is_merge, is_merge)


def test_for_a_recapture_every_file_is_read_whatever_was_recorded_before(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.stage({CODE: "other\n"})
    repo.commit(capture(repo))
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, CODE, BASELINE)
        assert state.capture == state.written == (repo.path / BASELINE).read_bytes()
        # Both baselines, and the four files.
        assert objects.reads == 6


def test_a_wrong_sum_in_the_baseline_of_before_does_not_keep_an_honest_capture_out(tmp_path: Path) -> None:
    repo = make(tmp_path)
    honest = (repo.path / BASELINE).read_bytes()
    code = hashlib.sha256((repo.path / CODE).read_bytes()).hexdigest()
    repo.commit({BASELINE: honest.replace(code.encode(), b"0" * 64)})
    repo.commit({BASELINE: honest})
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, BASELINE)
        assert state.capture == state.written == honest


def test_a_wrong_sum_is_not_believed_because_it_was_recorded_before(tmp_path: Path) -> None:
    repo = make(tmp_path)
    old = (repo.path / BASELINE).read_bytes()
    tests = hashlib.sha256((repo.path / TESTS).read_bytes()).hexdigest().encode()
    repo.commit({BASELINE: old.replace(tests, b"0" * 64)})
    repo.stage({CODE: "other\n"})
    honest = capture(repo)[BASELINE]
    assert isinstance(honest, bytes)
    repo.commit({BASELINE: honest.replace(tests, b"0" * 64)})
    with looking(repo) as (objects, view):
        state = of_change(repo, objects, view, CODE, BASELINE)
        assert state.capture == honest != state.written


@pytest.mark.parametrize("path", [CONTRACT, TESTS])
def test_what_is_too_large_to_be_read_is_undecided_with_its_name_and_the_way_on(
    tmp_path: Path, path: str
) -> None:
    repo = make(tmp_path)
    repo.commit({path: b" " * (BIG_FILE + 1)})
    with looking(repo) as (objects, view), pytest.raises(UndecidedError) as raised:
        of_change(repo, objects, view, path)
    assert path in raised.value.message
    assert "32 MiB" in raised.value.message
    assert repo.ask("rev-parse", f"HEAD:{path}")[:12] not in raised.value.message
    assert raised.value.hint is not None
    assert "smaller" in raised.value.hint
    assert "component shaping" in raised.value.hint
    repo.commit(capture(repo))
    repo.commit({path: "small\n"})
    with looking(repo) as (objects, view), pytest.raises(UndecidedError) as raised:
        of_change(repo, objects, view, path)
    assert "recorded" in raised.value.message
    assert raised.value.hint is not None
    assert "smaller" not in raised.value.hint


def test_recorded_files_that_the_declaration_leaves_out_are_looked_up_in_the_tree(tmp_path: Path) -> None:
    repo = make(tmp_path)
    narrow = components(POLICY.replace("src/shaping/**", CODE))["shaping"]
    more = RepoPath(b"src/shaping/more.py")
    with looking(repo) as (_, view):
        assert state_of(SHAPING, view).unclaimed == frozenset()
        assert state_of(narrow, view).unclaimed == {more}
    repo.git("rm", "-q", "src/shaping/more.py")
    repo.commit()
    with looking(repo) as (_, view):
        assert state_of(narrow, view).unclaimed == frozenset()


def test_links_and_submodules_are_recorded_by_what_they_are(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.link("src/shaping/link", "target")
    repo.stage()
    repo.gitlink("src/shaping/module")
    repo.git("commit", "-q", "--no-verify", "-m", "x")
    with looking(repo) as (_, view):
        found = record(files_of(SHAPING, view), view.objects)
        link, module = found[RepoPath(b"src/shaping/link")], found[RepoPath(b"src/shaping/module")]
        assert (link.mode, link.sha256) == ("120000", hashlib.sha256(b"target").hexdigest())
        assert (module.mode, module.oid, module.sha256) == ("160000", "1" * 40, None)


def test_a_content_of_any_size_is_summed(tmp_path: Path) -> None:
    repo = make(tmp_path)
    large = b"x" * (BIG_FILE + 3)
    repo.commit({"src/shaping/large": large, "src/shaping/empty": b""})
    with looking(repo) as (_, view):
        found = record(files_of(SHAPING, view), view.objects)
        assert found[RepoPath(b"src/shaping/large")].sha256 == hashlib.sha256(large).hexdigest()
        assert found[RepoPath(b"src/shaping/empty")].sha256 == hashlib.sha256().hexdigest()


def test_a_baseline_that_is_a_link_or_too_large_is_a_fault(tmp_path: Path) -> None:
    repo = make(tmp_path)
    (repo.path / BASELINE).unlink()
    repo.link(BASELINE, "../../README.md")
    repo.commit()
    with looking(repo) as (objects, view):
        fault = recorded_at(SHAPING, view.entry(BASELINE.encode()), objects)
        assert isinstance(fault, BaselineFault)
        assert "regular" in fault.message
        assert recorded_at(SHAPING, None, objects) is None
    (repo.path / BASELINE).unlink()
    repo.commit({BASELINE: b" " * ((16 << 20) + 1)})
    with looking(repo) as (objects, view):
        fault = recorded_at(SHAPING, view.entry(BASELINE.encode()), objects)
        assert isinstance(fault, BaselineFault)
        assert "16 MiB" in fault.message


def test_the_files_are_those_of_the_tree_with_their_roles(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.write("src/shaping/untracked.py")
    with looking(repo) as (_, view):
        assert {path.raw.decode(): role for path, (role, _) in files_of(SHAPING, view).items()} == {
            CONTRACT: Role.CONTRACT,
            CODE: Role.IMPLEMENTATION,
            "src/shaping/more.py": Role.IMPLEMENTATION,
            TESTS: Role.TESTS,
        }


def test_a_recorded_content_that_is_missing_is_undecided_with_the_way_to_get_it(tmp_path: Path) -> None:
    repo = make(tmp_path)
    recorded = (repo.path / BASELINE).read_text(encoding="utf-8")
    oid = repo.ask("rev-parse", f"HEAD:{TESTS}")
    repo.commit({BASELINE: recorded.replace(oid, "7" * 40)})
    repo.commit({TESTS: "def test_x(): pass\n"})
    with looking(repo) as (objects, view), pytest.raises(UndecidedError) as raised:
        of_change(repo, objects, view, TESTS)
    assert TESTS in raised.value.message
    assert raised.value.hint is not None
    assert "git fetch" in raised.value.hint
    assert "baseline capture shaping" in raised.value.hint
