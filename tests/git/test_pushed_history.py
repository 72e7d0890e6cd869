"""Questions about ancestry, held against a plain walk over random histories whose clocks are wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import objects as objects_module
from patchgate.git import pushes
from patchgate.git.commit_lists import commits_not_in
from patchgate.git.objects import Objects
from patchgate.git.pushes import FirstParentLines, is_ancestor, nearest_first_parent, peel
from patchgate.git.repository import Repository, open_repository
from patchgate.process.child import Completed
from tests.git.histories import build
from tests.world import Repo

Graph = dict[str, list[str]]


def history(folder: Path, seed: int) -> tuple[Repository, Graph]:
    """Make a random history with random dates; give it with the parents of each commit."""
    repo = Repo.create(folder)
    build(repo, 60, seed)
    chance = random.Random(seed)
    stream = repo.git("fast-export", "--all")
    skewed = re.sub(
        rb"(?m)^(committer .*> )\d+", lambda found: found[1] + b"%d" % chance.randrange(10**6, 10**9), stream
    )
    other = Repo.create(folder / "skewed")
    other.git("fast-import", "--quiet", stdin=skewed)
    graph = {}
    for line in other.ask("rev-list", "--all", "--parents").splitlines():
        oid, *parents = line.split()
        graph[oid] = parents
    return open_repository(other.env, str(other.path)), graph


def reached(graph: Graph, *tips: str) -> set[str]:
    """Everything that is reached from some commits."""
    found: set[str] = set()
    waiting = list(tips)
    while waiting:
        oid = waiting.pop()
        if oid not in found:
            found.add(oid)
            waiting += graph[oid]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_a_remote_lacks_and_the_nearest_first_parent_are_those_of_a_plain_walk(
    tmp_path: Path, seed: int
) -> None:
    repository, graph = history(tmp_path, seed)
    chance = random.Random(seed)
    oids = sorted(graph)
    for _ in range(25):
        tip, known, also = chance.choice(oids), chance.choice(oids), chance.choice(oids)
        behind = reached(graph, known)
        assert is_ancestor(repository, tip, known) == (tip in behind)
        chain = [tip]
        while graph[chain[-1]]:
            chain.append(graph[chain[-1]][0])
        expected = next((oid for oid in chain if oid in behind), None)
        assert nearest_first_parent(repository, tip, known) == expected
        assert FirstParentLines(repository, [tip, None, also], known).nearest(tip, known) == expected
        fresh = [commit.oid for commit in commits_not_in(repository, [tip, also], [known])]
        wanted = reached(graph, tip, also) - behind
        # Where clocks are wrong git may name more than is lacking, never less; parents come first.
        assert wanted <= set(fresh)
        places = {oid: place for place, oid in enumerate(fresh)}
        assert all(places[p] < places[oid] for oid in fresh for p in graph[oid] if p in places)


@pytest.mark.parametrize("seed", range(3))
def test_the_first_parents_of_many_tips_are_those_of_each_alone(tmp_path: Path, seed: int) -> None:
    repository, graph = history(tmp_path, seed)
    oids = sorted(graph)
    known = random.Random(seed).choice(oids)
    lines = FirstParentLines(repository, oids, known)
    other = random.Random(seed + 1).choice(oids)
    for tip in oids:
        assert lines.nearest(tip, known) == nearest_first_parent(repository, tip, known)
        assert lines.nearest(tip, other) == nearest_first_parent(repository, tip, other)


def test_git_lists_the_lines_of_many_new_branches_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    known = repo.commit({"a": "x\n"})
    tips = [repo.commit({"a": f"{number}\n"}) for number in range(5)]
    repository = open_repository(repo.env, str(repo.path))
    asked: list[str] = []
    real = Repository.git

    def noting(self: Repository, *arguments: str, **options: Any) -> Completed:
        asked.append(arguments[0])
        return real(self, *arguments, **options)

    monkeypatch.setattr(Repository, "git", noting)
    lines = FirstParentLines(repository, tips, known)
    assert {lines.nearest(tip, known) for tip in tips} == {known}
    assert asked == ["rev-list", "merge-base"]


def test_to_find_where_many_long_lines_begin_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    others = [repo.commit({"b": f"{number}\n"}) for number in range(4)]
    repo.git("reset", "-q", "--hard", first)
    tip = repo.commit({"a": "y\n"})
    monkeypatch.setattr(pushes, "_MOST_LISTED", 1200)
    lines = FirstParentLines(open_repository(repo.env, str(repo.path)), [tip], None)
    assert [lines.nearest(tip, other) for other in others[:3]] == [first] * 3
    with pytest.raises(UndecidedError):
        lines.nearest(tip, others[3])


def test_tags_are_peeled_however_nested(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    commit = repo.commit({"a": "x\n"})
    repo.git("tag", "-a", "-m", "x", "one")
    repo.git("tag", "-a", "-m", "x", "two", "one")
    repo.git("tag", "-a", "-m", "x", "tree", "HEAD^{tree}")
    tags = [repo.ask("rev-parse", name) for name in ("one", "two", "tree")]
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        assert list(peel(objects, [commit, *tags, "1" * 40]).values()) == [commit, commit, commit, None, None]


def test_trees_of_many_names_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.create(tmp_path)
    commits = [repo.commit({f"{number}-{name}": "x\n" for name in "abc"}) for number in range(4)]
    monkeypatch.setattr(objects_module, "_KEPT_NAMES", 5)
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        for commit in commits:
            tree = objects.header(f"{commit}^{{tree}}")
            assert tree is not None
            names = repo.ask("ls-tree", "--name-only", commit).split()
            assert [name.decode() for name in objects.tree(tree.oid)] == names
            assert sum(map(len, objects._trees.values())) <= 5 + len(names)
