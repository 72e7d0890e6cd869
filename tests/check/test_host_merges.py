"""Random merges, made by git with and without attributes, and by libgit2.

Where these differ in what not everybody may change, a check relies on none of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pygit2
import pytest

from patchgate.check.host_merges import HostMerges
from patchgate.errors import UndecidedError
from patchgate.git.merges import automatic_merges
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from tests.amount import often
from tests.component_world import opened
from tests.world import Repo

FOLDERS = ("x", "y", "x/s", "z/s", "z", "infra")
Tree = dict[str, tuple[str, str]]


def text(choose: random.Random) -> str:
    """Make a text whose CRs decide how alike two are: git leaves them out where it counts as text."""
    top = choose.choice(["top", "top and more than that, which makes it a longer line", "tip"])
    bottom = choose.choice(["bottom", "bottom, and another's", "b"])
    return f"{top}\r\n" + "\r\n" * choose.choice([100, 190, 200, 200, 200]) + f"{bottom}\r\n"


def path(choose: random.Random) -> str:
    return f"{choose.choice(FOLDERS)}/{choose.choice('fgh')}"


def moving(choose: random.Random, tree: Tree) -> Tree:
    """Make a side that moves, copies and removes."""
    made = dict(tree)
    for _ in range(choose.randint(1, 4)):
        if not made:
            break
        name, how = choose.choice(sorted(made)), choose.random()
        mode, content = made[name]
        if how < 0.6:
            del made[name]
            made[path(choose)] = (mode, content if choose.random() < 0.4 else text(choose))
        elif how < 0.85:
            made[path(choose)] = (mode if how < 0.75 else "120000", content)
        else:
            del made[name]
    return made


def editing(choose: random.Random, tree: Tree) -> Tree:
    """Make a side that changes what is there, and adds."""
    made = dict(tree)
    for _ in range(choose.randint(1, 4) if made else 0):
        name = choose.choice(sorted(made))
        if choose.random() < 0.8:
            made[name] = (made[name][0], text(choose))
        else:
            made[path(choose)] = ("100644", "new\n")
    return made


def is_tree(tree: Tree) -> bool:
    return not any(other.startswith(f"{name}/") for name in tree for other in tree)


def imported(repo: Repo, cases: Sequence[Sequence[Tree]]) -> list[list[str]]:
    """Make commits of each case: the first one, and two on it; where there are five, two merges of these."""
    lines = []
    for number, trees in enumerate(cases):
        for at, tree in enumerate(trees):
            name = f"refs/heads/{number}"
            parents = [(), (0,), (0,), (1, 2), (2, 1)][at]
            lines.append(f"commit {name}/{at}\ncommitter a <a@x> 1700000000 +0000\ndata 0\n")
            words = zip(("from", "merge"), parents, strict=False)
            lines.append("".join(f"{word} {name}/{parent}\n" for word, parent in words) + "deleteall\n")
            for path, (mode, content) in {**tree, "kept": ("100644", "k\n")}.items():
                lines.append(f"M {mode} inline {path}\ndata {len(content)}\n{content}\n")
    repo.git("fast-import", "--quiet", stdin="".join(lines).encode())
    listed = repo.ask("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/*/*").split()
    ids = dict(zip(listed[::2], listed[1::2], strict=True))
    return [
        [ids[f"refs/heads/{number}/{at}"] for at in range(len(trees))] for number, trees in enumerate(cases)
    ]


def guarded(repository: pygit2.Repository, revision: str) -> dict[str, str]:
    """Map the files in `infra` to their content and mode."""
    tree = repository[revision].peel(pygit2.Tree)
    if "infra" not in tree:
        return {}
    folder = repository[tree["infra"].id].peel(pygit2.Tree)
    return {f"infra/{each.name}": f"{each.id} {each.filemode}" for each in folder}


def by_libgit2(repository: pygit2.Repository, pair: Sequence[str]) -> list[str]:
    """Merge two commits: the tree, unless there is a conflict."""
    ours, theirs = (repository[each].peel(pygit2.Commit) for each in pair)
    index = repository.merge_commits(ours, theirs)
    return [] if index.conflicts else [str(index.write_tree(repository))]


@pytest.mark.parametrize("has_two_bases", [False, True])
def test_each_merge_that_hosts_may_make_otherwise_is_found(tmp_path: Path, *, has_two_bases: bool) -> None:
    choose = random.Random(1 + has_two_bases)
    cases = []
    for _ in range(often(2000)):
        same = text(choose)
        texts = [same if choose.random() < 0.7 else text(choose) for _ in range(choose.randint(1, 4))]
        base = {path(choose): ("100644", each) for each in texts}
        sides = [moving(choose, base), editing(choose, base)]
        if has_two_bases:
            sides += [choose.choice([moving, editing])(choose, choose.choice([base, *sides])) for _ in "ab"]
        cases += [(base, *sides)] if all(map(is_tree, (base, *sides))) else []
    repo = Repo.create(tmp_path)
    made = imported(repo, cases)
    repository, pairs = opened(repo), [(each[-2], each[-1]) for each in made]
    n_different = 0
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        reading = pygit2.Repository(str(repo.path))
        reading.odb.add_disk_alternate(store.variables["GIT_OBJECT_DIRECTORY"])
        for pair in pairs:
            try:
                plain, other = (automatic_merges(store, [pair], each)[0] for each in ("", "* -diff"))
            except UndecidedError:
                continue  # Some of these are too much for git 2.39: an assertion of its own fails.
            trees = by_libgit2(reading, pair) + ([] if other.conflicts else [other.tree])
            expected = guarded(reading, plain.tree).items()
            differing = {path for tree in trees for path, _ in guarded(reading, tree).items() ^ expected}
            if differing:
                n_different += 1
                with pytest.raises(UndecidedError):
                    HostMerges(objects, pair).require_one_result(lambda path: path.raw.startswith(b"infra/"))
    assert n_different, "the amount is too small"
