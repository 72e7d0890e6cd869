"""A patch that was applied here before, and whose effect is still there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.apply.apply import find_duplicate
from patchgate.apply.attempt_records import AttemptRecord, TouchedFile, record
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import Repository, open_repository
from patchgate.ledger.ledger import Ledger
from patchgate.patches.check_patch import judge_patch
from patchgate.patches.git_apply import PatchId
from patchgate.report.verdict import Finding
from tests.proposals import addition, deletion, edits_of, moved
from tests.world import Repo

LINES = "".join(f"line {number}\n" for number in range(1, 21))
PATCH = (
    b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -9,3 +9,4 @@\n line 9\n line 10\n+new\n line 11\n"
    + addition(b"added")
)


class World:
    """A repository, its ledger, and what an apply does to both."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.repository: Repository = open_repository(repo.env, str(repo.path))
        self.ledger = Ledger(self.repository.common_dir)
        self.number = 0

    def apply(self, patch: bytes, *, work_tree: str | None = None, kind: str = "patch") -> str:
        """Apply a patch with git, and record it as the apply of ours does."""
        with judge_patch(self.repository, patch, CheckOptions(in_full=True), kind=kind) as judged:
            verdict = judged.verdict
            self.repo.git("apply", "--whitespace=nowarn", "-", stdin=judged.patch)
        self.number += 1
        name = f"a-{self.number:04x}"
        made = AttemptRecord(
            attempt=name,
            chain=name,
            retry_of=None,
            number=1,
            verdict="accepted",
            applied=True,
            counts=False,
            dry_run=False,
            kind=kind,
            patch_sha256=hashlib.sha256(patch).hexdigest(),
            patch_id=verdict.patch_id,
            files=tuple(TouchedFile(each.path, each.old, each.new) for each in verdict.change.files),
            work_tree=work_tree or self.repository.work_tree,
        )
        assert record(self.ledger, made) is None
        return name

    def find(self, patch: bytes, kind: str = "patch") -> Finding | None:
        """Ask whether a patch is a duplicate, as an apply would, from a new process's view."""
        repository = open_repository(self.repo.env, str(self.repo.path))
        with judge_patch(repository, patch, CheckOptions(in_full=True), kind=kind) as judged:
            digest = hashlib.sha256(patch).hexdigest()
            return find_duplicate(repository, judged, Ledger(repository.common_dir), digest)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository with one file of twenty lines."""
    repo = Repo.create(tmp_path)
    repo.commit({"f": LINES, "old": "a\nb\nc\nd\n"})
    return World(repo)


def test_a_patch_whose_effect_is_there_is_a_duplicate_and_names_the_attempt(world: World) -> None:
    assert world.find(PATCH) is None
    name = world.apply(PATCH)
    found = world.find(PATCH)
    assert found is not None
    assert (found.rule, found.details["attempt"]) == ("duplicate-patch", name)
    assert name in found.message
    world.repo.commit()
    assert world.find(PATCH) is not None


def test_it_is_one_also_where_the_files_were_edited_elsewhere_since(world: World) -> None:
    world.apply(PATCH)
    text = (world.repo.path / "f").read_text(encoding="utf-8")
    world.repo.write("f", "first\n" + text + "last\n")
    assert world.find(PATCH) is not None


def test_after_a_revert_it_may_come_again(world: World) -> None:
    world.apply(PATCH)
    world.repo.git("apply", "-R", "-", stdin=PATCH)
    assert world.find(PATCH) is None
    name = world.apply(PATCH)
    found = world.find(PATCH)
    assert found is not None
    assert found.details["attempt"] == name


def test_after_a_revert_and_other_edits_it_may_come_again(world: World) -> None:
    world.apply(PATCH)
    world.repo.git("apply", "-R", "-", stdin=PATCH)
    world.repo.write("f", "first\n" + LINES)
    assert world.find(PATCH) is None


def test_among_lines_that_repeat_a_revert_is_still_seen(world: World) -> None:
    world.repo.commit({"same": "x\n" * 20})
    patch = b"diff --git a/same b/same\n--- a/same\n+++ b/same\n@@ -9,2 +9,3 @@\n x\n+x\n x\n"
    world.apply(patch)
    assert world.find(patch) is not None
    world.repo.write("same", "x\n" * 20)
    assert world.find(patch) is None


def test_half_of_an_effect_is_no_effect(world: World) -> None:
    world.apply(PATCH)
    (world.repo.path / "added").unlink()
    assert world.find(PATCH) is None


def test_the_id_says_nothing_of_white_space_so_the_files_are_asked(world: World) -> None:
    """Tabs for spaces and back again have one id, but are not one patch."""
    world.repo.commit({"tabs": "a\n    b\nc\n"})
    there = b"diff --git a/tabs b/tabs\n--- a/tabs\n+++ b/tabs\n@@ -1,3 +1,3 @@\n a\n-    b\n+\tb\n c\n"
    back = there.replace(b"-    b\n+\tb", b"-\tb\n+    b")
    world.apply(there)
    with judge_patch(world.repository, back, CheckOptions(in_full=True)) as judged:
        assert judged.verdict.verdict == "accepted"
        with PatchId(world.repository, there) as other:
            assert judged.verdict.patch_id == other.read()
    assert world.find(back) is None
    assert world.find(there) is not None


def test_other_bytes_with_the_same_id_are_a_duplicate(world: World) -> None:
    world.apply(PATCH)
    # Other line numbers, other order of the sections: git gives both one id.
    first, second = PATCH.split(b"diff --git a/added")
    other = b"diff --git a/added" + second + first.replace(b"@@ -9,3 +9,4 @@", b"@@ -9,3 +9,4 @@ def f():")
    assert world.find(other) is not None


@pytest.mark.parametrize(
    "patch",
    [
        moved(b"old", b"new"),
        b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
        deletion(b"old").replace(b"-1 +0,0 @@\n-x\n", b"-1,4 +0,0 @@\n-a\n-b\n-c\n-d\n"),
        addition(b"empty").partition(b"--- ")[0],
    ],
    ids=["a rename", "a mode", "a deletion", "an empty file"],
)
def test_what_has_no_hunks_is_known_by_its_bytes(world: World, patch: bytes) -> None:
    assert world.find(patch) is None
    world.apply(patch)
    assert world.find(patch) is not None
    world.repo.git("apply", "-R", "-", stdin=patch)
    assert world.find(patch) is None


@pytest.mark.parametrize("end", [2, 1], ids=["a line replaced", "a line put in"])
def test_the_same_edits_again_are_a_duplicate_though_their_diff_is_another(world: World, end: int) -> None:
    edits = json.dumps(edits_of((2, end, "new\n"))).encode()
    world.apply(edits, kind="edits")
    assert world.find(edits, "edits") is not None
    world.repo.write("f", LINES)
    assert world.find(edits, "edits") is None


def test_what_another_working_tree_applied_is_none(world: World) -> None:
    world.apply(PATCH, work_tree="/somewhere/else")
    assert world.find(PATCH) is None


def test_what_was_only_tried_is_none(world: World) -> None:
    name = world.apply(PATCH)
    attempt = next(each for each in world.ledger.events() if each.about["attempt"] == name)
    refused = AttemptRecord.from_plain({**attempt.about, "applied": False})
    fresh = Ledger(str(world.repo.path.parent))
    assert record(fresh, replace(refused, attempt="a-ffff")) is None
    with judge_patch(world.repository, PATCH, CheckOptions(in_full=True)) as judged:
        digest = hashlib.sha256(PATCH).hexdigest()
        assert find_duplicate(world.repository, judged, fresh, digest) is None


def test_a_record_that_names_paths_outside_is_never_followed(world: World) -> None:
    world.apply(PATCH)
    path = Path(world.ledger.path)
    event = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    about = next(each for each in world.ledger.events()).about
    assert event
    hostile = AttemptRecord.from_plain(about)
    outside = replace(hostile.files[0], path=type(hostile.files[0].path)(b"../outside"))
    assert record(world.ledger, replace(hostile, attempt="a-eeee", files=(outside,))) is None
    assert world.find(PATCH) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            PATCH,
            PATCH.replace(b" a/f b/f", b" a/./f b/./f").replace(b"--- a/f\n+++ b/f", b"--- a/./f\n+++ b/./f"),
        ),
        (addition(b"a"), addition(b"././a")),
        (addition(b"x/a"), addition(b"x/./a")),
        (
            moved(b"old", b"new") + b"--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n",
            moved(b"./old", b"./new") + b"--- a/./old\n+++ b/./new\n@@ -1 +1 @@\n-a\n+b\n",
        ),
    ],
)
def test_a_name_with_and_without_a_dot_has_one_id(world: World, one: bytes, other: bytes) -> None:
    ids = []
    for patch in (one.replace(b"100%", b"50%"), other.replace(b"100%", b"50%")):
        with PatchId(world.repository, patch) as made:
            ids.append(made.read())
    assert ids[0] is not None
    assert ids[0] == ids[1]


def test_a_dot_in_a_line_of_a_file_stays(world: World) -> None:
    ids = []
    for line in (b"see a/x", b"see a/./x", b"- a/./x", b"- a/x"):
        with PatchId(world.repository, deletion(b"f", line)) as made:
            ids.append(made.read())
    assert len(set(ids)) == 4
