"""Each reader of a git child, alone: where the child dies, it raises, or gives the whole answer.

`PATCHGATE_LONG=1` cuts each answer at every boundary and in the middle of every record.
"""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import patchgate
from patchgate.check.bulk_check import check_range
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git import change_sources, commit_lists, history, new_commits, pushes, staging, working_tree
from patchgate.git.active_hooks import GitEnvironment, current_worktree_hooks
from patchgate.git.base_files import base_files_on_disk, staged_files
from patchgate.git.conversion import is_switched_off
from patchgate.git.diff import Detail, read_difference
from patchgate.git.file_history import find_renames, newest_commits
from patchgate.git.intent_commits import commits_with_ids, replays
from patchgate.git.merges import automatic_merges
from patchgate.git.model import Entry
from patchgate.git.new_commits import BranchUpdate
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, patch_id_of, patch_ids_of, tree_with_change
from patchgate.git.refs import is_default_at, is_empty_at
from patchgate.git.repository import open_repository
from patchgate.patches.git_apply import GitApply, PatchId
from tests.cut_git import CutGit
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

LONG = bool(os.environ.get("PATCHGATE_LONG"))
LINES = Detail(lines=True, sizes=True, watch=lambda lines: range(len(lines)))
_MORE = "".join(f"line {number}\n" for number in range(9))


class World:
    """A small history, and the same repository as the product opens it with the git that dies."""

    def __init__(self, folder: Path) -> None:
        self.git = CutGit(folder / "cut")
        repo = self.repo = Repo.create(folder)
        self.first = repo.commit({"a": "a\n", "b/c": _MORE, "bin": b"\0\1"})
        repo.git("switch", "-q", "-c", "side")
        repo.commit({"a": "side\n"})
        repo.git("switch", "-q", "main")
        self.second = repo.commit({"a": "main\n", "b/d": "d\n"})
        repo.try_git("merge", "-q", "--no-commit", "side")
        self.merge = repo.commit({"a": "both\n"}, "Merge")
        repo.git("mv", "b/c", "b/moved")
        self.last = repo.commit({"bin": b"\0\2", "z": "z\n"})
        repo.git("update-ref", "refs/remotes/origin/main", self.first)
        repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        repo.git("config", "remote.origin.url", str(folder / "nowhere"))
        fetched = f"{self.first}\t\tbranch 'main' of {folder / 'nowhere'}\n"
        (repo.path / ".git" / "FETCH_HEAD").write_text(fetched, encoding="utf-8")
        repo.stage({"a": "staged\n", "new": "new\n"})
        repo.write("b/d", "unstaged\n")
        repo.write("untracked", "untracked\n")
        self.patch = repo.git("diff", "-p", self.first, self.second)
        env = repo.env | {"PATH": f"{self.git.path}:{repo.env['PATH']}"}
        (self.git.folder / "plan").write_text("none 0 0\n", encoding="ascii")
        self.opened = open_repository(env, str(repo.path))
        self.env = env


def _walked(world: World, objects: Objects, detail: Detail) -> object:
    commits = commit_lists.commits_of(world.opened, objects, f"{world.first}..{world.last}").commits
    with history.Walk(world.opened, commits) as walk:
        return [(commit, reading.change) for commit, reading in walk.read(commits, detail)]


def _judged_in_bulk(world: World) -> object:
    report = check_range(world.opened, f"{world.first}..{world.last}", CheckOptions(in_bulk=True))
    if report.verdict == "undecided":
        raise UndecidedError("a gate gave no answer")
    return report.n_judged, report.verdict, [each for change in report.changes for each in change.findings]


def _listed(records: working_tree.Records) -> object:
    with closing(records) as pieces:
        return [record for piece in pieces for record in piece]


def _made(world: World, objects: Objects, store: PrivateStore) -> object:
    tree = objects.tree(objects.headers([f"{world.first}^{{tree}}"])[0].oid)  # type: ignore[union-attr]
    entries = {RepoPath(b"a"): tree[b"a"], RepoPath(b"b/d"): None}
    with GitApply(world.opened, store, entries, world.patch) as making:
        made = making.read(objects, LINES)
        return made.files, made.refused


def _patch_id(world: World) -> object:
    with PatchId(world.opened, world.patch) as patch_id:
        return patch_id.read()


def _id_of_a_change(world: World) -> object:
    with PrivateStore(world.opened) as store, Objects(world.opened, store.variables) as objects:
        base = change_sources.pending_base(world.opened, objects)
        change = change_sources.read_worktree(world.opened, objects, base, LINES, store).change
        return patch_id_of(world.opened, store, change.files)


def _worktree(world: World) -> object:
    with PrivateStore(world.opened) as store, Objects(world.opened, store.variables) as objects:
        base = change_sources.pending_base(world.opened, objects)
        return change_sources.read_worktree(world.opened, objects, base, LINES, store).change


def _standing(world: World) -> object:
    with PrivateStore(world.opened) as store, Objects(world.opened, store.variables) as objects:
        return tree_with_change(world.opened, objects, store, _tree(objects, "HEAD"), [])


def _ground(world: World) -> object:
    with PrivateStore(world.opened) as store, Objects(world.opened, store.variables) as objects:
        paths = [RepoPath(b"a"), RepoPath(b"b/d"), RepoPath(b"none")]
        return base_files_on_disk(world.opened, objects, store, _tree(objects, "HEAD"), paths)


def _new_index(world: World) -> object:
    from patchgate.git.model import FileChange

    with PrivateStore(world.opened) as store:
        change = FileChange(RepoPath(b"z"), None, Entry("100644", world.repo.ask("rev-parse", "HEAD:a")))
        return len(staging.new_index(world.opened, store, [change]).content)


def _tree(objects: Objects, revision: str) -> str:
    header = objects.header(revision + "^{tree}")
    assert header is not None
    return header.oid


def _with_objects(read: Callable[[World, Objects], object]) -> Callable[[World], object]:
    def asked(world: World) -> object:
        with Objects(world.opened) as objects:
            return read(world, objects)

    return asked


def _merges(world: World) -> object:
    with PrivateStore(world.opened) as store:
        sides = world.repo.ask("rev-parse", f"{world.merge}^1", f"{world.merge}^2").split()
        return automatic_merges(store, [(sides[0], sides[1])])


def _update(world: World) -> BranchUpdate:
    return BranchUpdate("refs/heads/main", world.second, world.last)


READERS: dict[str, Callable[[World], Any]] = {
    "open_repository": lambda w: open_repository(w.env, str(w.repo.path)).work_tree,
    "commits_of": _with_objects(
        lambda w, o: commit_lists.commits_of(w.opened, o, f"{w.first}..{w.last}").commits
    ),
    "recent_commits": _with_objects(lambda w, o: commit_lists.recent_commits(w.opened, o, 9)),
    "stream_commits": lambda w: list(
        commit_lists.stream_commits(w.opened, *commit_lists.range_arguments(w.first, w.last))
    ),
    "check_range": _judged_in_bulk,
    "Walk": _with_objects(lambda w, o: _walked(w, o, Detail())),
    "Walk with lines": _with_objects(lambda w, o: _walked(w, o, LINES)),
    "Objects.trees": _with_objects(
        lambda w, o: [sorted(tree.names) for tree in o.trees([_tree(o, w.first), _tree(o, w.last)])]
    ),
    "Objects.sizes": _with_objects(
        lambda w, o: o.sizes([entry.oid for entry in o.tree(_tree(o, w.last)).values()])
    ),
    "Objects.sha256": _with_objects(lambda w, o: o.sha256(_tree(o, w.last))),
    "Objects.head": _with_objects(lambda w, o: o.head(_tree(o, w.last), 4)),
    "Objects.read_some": _with_objects(lambda w, o: o.read_some([_tree(o, w.last), _tree(o, w.first)], 9999)),
    "read_difference": _with_objects(
        lambda w, o: read_difference(
            w.opened, o, ("diff-tree", "-r"), [_tree(o, w.first), _tree(o, w.last)], LINES
        )
    ),
    "patch_ids_of": lambda w: patch_ids_of(w.opened, [w.first, w.last]),
    "patch_id_of": _id_of_a_change,
    "staged": _with_objects(
        lambda w, o: (
            change_sources.read_staged(w.opened, o, change_sources.pending_base(w.opened, o), LINES).change
        )
    ),
    "worktree": _worktree,
    "tracked": _with_objects(lambda w, o: change_sources.list_tracked(w.opened, o)),
    "staged_files": lambda w: staged_files(w.opened, w.last),
    "ground_on_disk": _ground,
    "tried_tree": _standing,
    "index_records": lambda w: _listed(working_tree.index_records(w.opened)),
    "index_names": lambda w: _listed(working_tree.index_names(w.opened)),
    "untracked_names": lambda w: _listed(working_tree.untracked_names(w.opened)),
    "unlike_index": lambda w: sorted(
        working_tree.differing_from_index(w.opened, [RepoPath(b"a"), RepoPath(b"none")])
    ),
    "tree_records": lambda w: _listed(working_tree.tree_records(w.opened, w.last)),
    "index_entries": lambda w: staging.index_entries(w.opened, [RepoPath(b"a"), RepoPath(b"z")]),
    "new_index": _new_index,
    "renames": lambda w: find_renames(w.opened, f"{w.first}^{{tree}}", f"{w.last}^{{tree}}"),
    "newest_touches": lambda w: newest_commits(
        w.opened, w.last, b".", {b"z": w.repo.ask("rev-parse", f"{w.last}:z"), b"none": "1" * 40}
    ),
    "automatic_merges": _merges,
    "GitApply": _with_objects(lambda w, o: _made_in(w)),
    "PatchId": _patch_id,
    "commits_with_ids": lambda w: commits_with_ids(w.opened, [w.last], [w.first]),
    "replays": lambda w: replays(w.opened, BranchUpdate("refs/heads/main", w.last, w.second), [w.second]),
    "value_of HEAD": lambda w: new_commits.ref_value(w.opened, "HEAD"),
    "value_of a branch": lambda w: new_commits.ref_value(w.opened, "refs/heads/main"),
    "value_of no branch": lambda w: new_commits.ref_value(w.opened, "refs/heads/none"),
    "current_branch": lambda w: new_commits.current_branch(w.opened),
    "brought_by": lambda w: new_commits.find_new_commits(w.opened, _update(w), []),
    "brought_by, created": lambda w: new_commits.find_new_commits(
        w.opened, BranchUpdate("refs/heads/x", None, w.last), []
    ),
    "arriving_tips": lambda w: new_commits.arriving_tips(w.opened, b""),
    "remote_of": lambda w: pushes.remote_of(w.opened, "origin"),
    "refs_below": lambda w: pushes.refs_below(w.opened, "refs/heads"),
    "default_branch": lambda w: pushes.default_branch(w.opened),
    "nearest_first_parent": lambda w: pushes.nearest_first_parent(w.opened, w.last, w.first),
    "first_parents_at": lambda w: pushes.first_parents_at(w.opened, w.last, w.first, [b"a", b"z"]),
    "count_lacking": lambda w: commit_lists.count_commits_not_in(w.opened, [w.last], [w.first], "--remotes"),
    "is_empty_at": lambda w: is_empty_at(w.opened, str(w.repo.path)),
    "is_default_at": lambda w: is_default_at(
        w.opened, str(w.repo.path), "refs/heads/main", w.repo.ask("rev-parse", "main")
    ),
    "is_ancestor": lambda w: pushes.is_ancestor(w.opened, w.first, w.last),
    "common_ancestor": lambda w: pushes.common_ancestor(w.opened, w.last, w.first),
    "is_switched_off": lambda w: is_switched_off(w.opened, "core.fileMode"),
    "worktree_here": lambda w: current_worktree_hooks(GitEnvironment(w.opened, w.env)),
}


def _made_in(world: World) -> object:
    with PrivateStore(world.opened) as store, Objects(world.opened, store.variables) as objects:
        return _made(world, objects, store)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("dying"))


@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_the_whole_answer_or_raises_where_its_child_dies(world: World, name: str) -> None:
    def ask() -> object:
        try:
            return READERS[name](world)
        except UndecidedError as error:
            return error

    whole, calls = world.git.keep(ask)
    assert not isinstance(whole, UndecidedError), whole.message
    chance = random.Random(name)
    raised = 0
    for call in calls:
        for after in call.cuts if LONG else call.some_cuts(chance):
            for cut in (
                (world.git.kill, world.git.starve)
                if LONG
                else (
                    world.git.kill if call is calls[0] else chance.choice((world.git.kill, world.git.starve)),
                )
            ):
                said = cut(call.number, after, ask)
                if isinstance(said, UndecidedError):
                    raised += 1
                else:
                    assert said == whole, (call.arguments, after, call.output)
    assert raised


@pytest.mark.parametrize(
    ("detail", "at_once"),
    [(Detail(), 1), (LINES, 2), (Detail(), 64)],
    ids=["records, one at once", "lines, two at once", "records, all at once"],
)
def test_a_walk_hands_on_no_commit_that_is_not_whole(
    world: World, detail: Detail, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its one child is cut at every boundary and in every record; the streaming reader may lose nothing."""
    monkeypatch.setattr(history, "_AT_ONCE", at_once)
    git, opened = world.git, world.opened
    with Objects(opened) as objects:
        commits = commit_lists.commits_of(opened, objects, f"{world.first}..{world.last}").commits

    def ask() -> tuple[list[object], UndecidedError | None]:
        handed: list[object] = []
        with history.Walk(opened, commits) as walk:
            try:
                handed.extend(walk.read(commits, detail))
            except UndecidedError as error:
                return handed, error
        return handed, None

    (whole, fault), calls = git.keep(ask)
    assert fault is None
    assert len(whole) == len(commits)
    (call,) = [each for each in calls if " --stdin -r " in each.arguments]
    ways = (git.kill, git.starve, git.end)
    chance = random.Random(f"{at_once} {detail.lines}")
    places = call.cuts if LONG else sorted({0, *chance.sample(call.cuts, 20), call.cuts[-1]})
    for after in places:
        for cut in ways if LONG else (chance.choice(ways),):
            handed, fault = cut(call.number, after, ask)
            assert handed == whole[: len(handed)]
            # Where memory ran out, the rest is read by children that have enough.
            is_whole = cut == git.end and after == len(call.output)
            assert (fault is None) == (cut == git.starve or is_whole), (after, fault)
            assert fault is not None or len(handed) == len(whole)


def test_ancestry_across_a_commit_that_is_missing_is_no_answer(tmp_path: Path) -> None:
    """Git ends with 1 then, as where there is none, and says why only on standard error."""
    repo = Repo.create(tmp_path)
    first, middle, last = (repo.commit({"a": f"{number}\n"}) for number in range(3))
    (repo.path / ".git" / "objects" / middle[:2] / middle[2:]).unlink()
    opened = open_repository(repo.env, str(repo.path))
    for ask in (pushes.is_ancestor, pushes.common_ancestor):
        with pytest.raises(UndecidedError, match="merge-base"):
            ask(opened, first, last)


STARTERS = {
    "git/repository.py": "what every other module asks",
    "git/conversion.py": "cat-file in the working tree",
    "git/scratch/checkout.py": "diff-files in a scratch tree",
    "git/active_hooks.py": "git as the user calls it",
    "git/intent_commits.py": "interpret-trailers",
    "git/diff.py": "a type only",
    "git/bulk_diff.py": "a type only",
    "patches/git_apply.py": "a type only",
    "git/file_history.py": "a type only",
    "git/operations.py": "ps and lsof",
    "intents/actions.py": "ps",
    "approvals/signatures.py": "ssh-keygen",
    "approvals/approve.py": "ssh-keygen",
    "hooks/doctor_repository.py": "an interpreter",
    "commands/environment.py": "an interpreter",
    "commands/program_version.py": "a command that tells its version",
    "runs/worker.py": "a worker of a run",
    "agents/settings/doctor.py": "an agent's hook, as its client starts it",
    "agents/mcp/served_place.py": "a call of the MCP server",
    "hooks/doctor_hooks.py": "a hook",
    "hooks/install.py": "the Python that a hook will start",
    "cli/selftest_intents.py": "git init of a built-in case",
    "apply/selftest_cases.py": "git init of a built-in case",
}


def _modules() -> dict[str, ast.Module]:
    package = Path(patchgate.__file__).parent
    return {
        str(place.relative_to(package)): ast.parse(place.read_bytes())
        for place in package.rglob("*.py")
        if place.parent.name != "process"
    }


QUESTIONS: dict[str, Callable[[Objects, str], object]] = {
    "header": lambda objects, oid: objects.header(oid),
    "sizes": lambda objects, oid: objects.sizes([oid]),
    "read": lambda objects, oid: objects.read(oid),
    "read_some": lambda objects, oid: objects.read_some([oid], 1 << 20),
    "without_text": lambda objects, oid: objects.without_text([oid]),
    "head": lambda objects, oid: objects.head(oid, 1),
    "sha256": lambda objects, oid: objects.sha256(oid),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("reads", range(3))
def test_no_answer_is_read_after_one_that_was_interrupted(
    name: str, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alarm that somebody catches leaves an answer unread, and its author may have chosen the next one."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n" * 100_000})
    oid, missing = repo.ask("rev-parse", "HEAD:a"), "f" * 40
    real, done, is_interrupted = os.read, 0, False

    def read(descriptor: int, size: int) -> bytes:
        nonlocal done, is_interrupted
        is_interrupted = done == reads
        if is_interrupted:
            raise KeyboardInterrupt
        done += 1
        return real(descriptor, size)

    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        with suppress(UndecidedError):
            QUESTIONS[name](objects, missing)
        whole = QUESTIONS[name](objects, oid)
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(os, "read", read)
            assert QUESTIONS[name](objects, oid) == whole
        if is_interrupted:
            with pytest.raises(UndecidedError, match="interrupted"):
                objects.header("HEAD")
        else:
            assert objects.header("HEAD") is not None


def test_no_other_module_starts_a_child_of_its_own() -> None:
    """All others ask `Repository.git`, which knows an answer from a death."""
    names = {"run", "Child"}
    found = {
        name
        for name, module in _modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        and node.module in ("patchgate.process", "patchgate.process.child")
        if names & {each.name for each in node.names}
    }
    assert found <= STARTERS.keys(), "start it by Repository.git or Repository.child, or say here what it is"


def test_every_module_that_reads_a_living_child_waits_for_its_end() -> None:
    readers, waiting = set(), set()
    for name, module in _modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                above = ast.unparse(node.func.value)
                if node.func.attr == "child" and above.endswith("repository"):
                    readers.add(name)
                if node.func.attr == "finish":
                    waiting.add(name)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "finish":
                waiting.add(name)
    assert len(readers) >= 10
    assert readers <= waiting
