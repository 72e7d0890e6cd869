"""A person who writes while a patch lands, or after it was killed: not one of their bytes is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from patchgate.git.transaction import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
    pending_transactions,
)
from tests.amount import IS_LONG
from tests.faults import Fault, Faults, Kind
from tests.git.transaction_world import (
    FIVE,
    ONE,
    Case,
    World,
    expected,
    in_child,
    link,
    steps_of,
    text,
    world,
)

pytestmark = pytest.mark.turns(3)

WORDS = b"what somebody wrote\n"
SMALL = Case(
    "small",
    {"a": text("old\n"), "gone": text("goes\n"), "link": link("a")},
    {"a": text("new\n"), "made": text("made\n"), "link": link("made")},
    index=b"the new index",
)
Save = Callable[[Path], None]


def in_place(path: Path) -> None:
    path.write_bytes(WORDS)


def by_rename(path: Path) -> None:
    aside = path.with_name(f"{path.name}.swp")
    aside.write_bytes(WORDS)
    aside.replace(path)


class Meanwhile(Faults):
    """Lets somebody act once, just before a step."""

    __slots__ = ("_act", "_step")

    def __init__(self, step: int, act: Callable[[], object], *faults: Fault) -> None:
        super().__init__(faults)
        self._step, self._act = step, act

    def reach(self) -> bool:
        if self.steps + 1 == self._step:
            self._act()
        return super().reach()


def survives(here: World) -> bool:
    """Tell whether the words are in the working tree, or where contents are kept for people."""
    kept = here.git / "patchgate" / "kept"
    places = [*(path for path in here.root.iterdir() if path.is_file()), *kept.rglob("*")]
    return any(path.is_file() and path.read_bytes() == WORDS for path in places)


@pytest.mark.parametrize("save", [in_place, by_rename])
@pytest.mark.parametrize("name", ["a", "gone", "made"])
def test_what_is_saved_before_any_step_is_never_lost(save: Save, name: str) -> None:
    ends, told = set(), []
    for step in range(1, steps_of(SMALL) + 1):
        with world(SMALL) as here:
            path = here.root / name
            try:
                here.write(Meanwhile(step, lambda path=path: save(path))).finish()  # type: ignore[misc]
            except ConcurrentChangeError as error:
                ends.add("concurrent")
                assert path.read_bytes() == WORDS
                told.append(error.paths)
                assert {**here.state(), name: None} == {**here.old, name: None}
            else:
                ends.add("landed")
                assert path.read_bytes() == WORDS or "kept" in os.listdir(here.git / "patchgate")
                assert {**here.state(), name: None} == {**expected(SMALL), name: None}
            assert survives(here)
            assert here.litter() == []
    assert ends == {"concurrent", "landed"}
    assert {path.raw for paths in told for path in paths} == {name.encode()}


@pytest.mark.parametrize("save", [in_place, by_rename])
@pytest.mark.parametrize("name", ["a", "gone", "made"])
def test_what_is_saved_before_any_step_of_a_way_back_is_never_lost(save: Save, name: str) -> None:
    last = steps_of(SMALL)
    for failing in range(last - 18, last - 2, 3 if IS_LONG else 9):
        for step in range(failing - 12, failing + 25):
            with world(SMALL) as here:
                act = Meanwhile(step, lambda here=here: save(here.root / name), Fault(failing, Kind.EIO))  # type: ignore[misc]
                with suppress(ConcurrentChangeError, WriteFailedError, DirtyWorkspaceError):
                    here.write(act).finish()
                assert survives(here) or act.steps < step
                here.recover(keep=True)
                assert survives(here) or act.steps < step
                assert here.litter() == []


def test_what_is_written_into_the_old_file_by_who_holds_it_open_is_kept() -> None:
    ends = set()
    for step in range(1, steps_of(SMALL) + 1):
        with world(SMALL) as here, (here.root / "a").open("r+b", buffering=0) as held:
            act = Meanwhile(step, lambda held=held: held.write(WORDS))  # type: ignore[misc]
            try:
                here.write(act).finish()
            except ConcurrentChangeError:
                ends.add("concurrent")
                assert (here.root / "a").read_bytes() == WORDS
            else:
                ends.add("kept" if survives(here) else "lost")
            assert here.litter() == []
    # Between the very last look at it and its removal nothing can help: it has no name by then.
    assert ends == {"concurrent", "kept", "lost"}


def killed_when_all_is_in_place(here: World) -> None:
    """Kill a transaction at the rename that would apply it."""
    with world(here.case) as other:
        operations: list[str] = []
        other.write(Faults(record=lambda each: operations.append(f"{each.name} {each.other}")))
    step = next(number for number, each in enumerate(operations, 1) if each.endswith("/landed"))
    in_child(lambda: here.write(Faults([Fault(step, Kind.KILL)])))


@pytest.mark.parametrize("name", ["a", "made", "gone"])
def test_a_file_that_a_person_wrote_after_the_kill_is_not_overwritten(name: str) -> None:
    with world(SMALL) as here:
        killed_when_all_is_in_place(here)
        (here.root / name).write_bytes(WORDS)
        found = here.state()
        with pytest.raises(DirtyWorkspaceError, match=name) as caught:
            here.recover()
        assert len(caught.value.paths) == 1
        assert here.state() == found
        assert [each.state for each in pending_transactions(here.repository)] == ["interrupted"]
        assert not (here.git / "index.lock").exists(), "git is free to put things right"
        with pytest.raises(DirtyWorkspaceError):
            here.recover()

        assert here.recover(keep=True) == ["undone"]
        assert {**here.state(), name: None} == {**here.old, name: None}
        assert (here.root / name).read_bytes() == WORDS
        here.assert_settled(here.state())
        kept = [path.read_bytes() for path in (here.git / "patchgate/kept").rglob("*") if path.is_file()]
        assert kept == {"a": [b"old\n"], "gone": [b"goes\n"], "made": []}[name]


@pytest.mark.parametrize("name", ["a", "made"])
def test_what_is_saved_while_recovering_stands_where_it_was_saved(name: str) -> None:
    with world(SMALL) as here:
        killed_when_all_is_in_place(here)
        faults = Faults()
        here.recover(faults)
    ends = set()
    for step in range(1, faults.steps + 1):
        with world(SMALL) as here:
            killed_when_all_is_in_place(here)
            try:
                ends.update(here.recover(Meanwhile(step, lambda here=here: by_rename(here.root / name))))  # type: ignore[misc]
            except DirtyWorkspaceError:
                ends.add("dirty")
                here.recover(keep=True)
            assert (here.root / name).read_bytes() == WORDS
            assert {**here.state(), name: None} == {**here.old, name: None}
            assert here.litter() == []
    assert ends == {"undone", "dirty"}


def test_a_folder_that_was_moved_away_after_the_kill_is_told() -> None:
    with world(Case("deep", {"d/a": text("old\n")}, {"d/a": text("new\n")})) as here:
        killed_when_all_is_in_place(here)
        (here.root / "d").rename(here.root / "e")
        (here.root / "d").symlink_to("e")
        with pytest.raises(DirtyWorkspaceError, match="d/a"):
            here.recover()
        (here.root / "d").unlink()
        (here.root / "e").rename(here.root / "d")
        assert here.recover() == ["undone"]
        here.assert_settled(here.old)


def test_a_folder_that_made_room_comes_back_with_its_permission_bits() -> None:
    with world(Case("swap", {"d/a": text("old\n")}, {"d": text("a file\n")})) as here:
        (here.root / "d").chmod(0o750)
        old = here.state()
        killed_when_all_is_in_place(here)
        assert here.recover() == ["undone"]
        here.assert_settled(old)


def test_an_old_content_that_somebody_removed_is_told() -> None:
    with world(ONE) as here:
        killed_when_all_is_in_place(here)
        (aside,) = here.root.glob(".patchgate-*")
        aside.unlink()
        with pytest.raises(DirtyWorkspaceError, match="gone"):
            here.recover()
        (here.root / "a").write_bytes(b"old\n")
        assert here.recover() == ["undone"]
        here.assert_settled(here.old)


def test_a_person_who_put_the_old_content_back_by_hand_is_in_nobodys_way() -> None:
    with world(ONE) as here:
        killed_when_all_is_in_place(here)
        (here.root / "a").unlink()
        (here.root / "a").write_bytes(b"old\n")
        assert here.recover() == ["undone"]
        here.assert_settled(here.old)


def test_a_file_put_into_a_folder_that_the_patch_made_stays_with_its_folder() -> None:
    with world(FIVE) as here:
        killed_when_all_is_in_place(here)
        (here.root / "made/notes").write_bytes(WORDS)
        assert here.recover() == ["undone"]
        assert (here.root / "made/notes").read_bytes() == WORDS
        assert not (here.root / "made/deep").exists()
