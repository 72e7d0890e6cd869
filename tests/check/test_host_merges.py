"""Random merges, made by git with and without attributes: where these differ, a check relies on neither."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from patchgate.check.coming_merge import _follows_renames
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
    for _ in range(choose.randint(1, 4)):
        name = choose.choice(sorted(made))
        if choose.random() < 0.8:
            made[name] = (made[name][0], text(choose))
        else:
            made[path(choose)] = ("100644", "new\n")
    return made


def is_tree(tree: Tree) -> bool:
    return not any(other.startswith(f"{name}/") for name in tree for other in tree)


def imported(repo: Repo, cases: Sequence[Sequence[Tree]]) -> list[list[str]]:
    """Make commits: of each case one of the first tree, and one on it of each other."""
    lines = []
    for number, trees in enumerate(cases):
        for side, tree in enumerate(trees):
            lines.append(f"commit refs/heads/{number}/{side}\ncommitter a <a@x> 1700000000 +0000\ndata 0\n")
            lines.append(f"from refs/heads/{number}/0\ndeleteall\n" if side else "deleteall\n")
            for name, (mode, content) in {**tree, "kept": ("100644", "k\n")}.items():
                lines.append(f"M {mode} inline {name}\ndata {len(content)}\n{content}\n")
    repo.git("fast-import", "--quiet", stdin="".join(lines).encode())
    listed = repo.ask("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/*/*").split()
    ids = dict(zip(listed[::2], listed[1::2], strict=True))
    return [
        [ids[f"refs/heads/{number}/{side}"] for side in range(len(trees))]
        for number, trees in enumerate(cases)
    ]


def test_each_merge_that_attributes_may_change_is_found(tmp_path: Path) -> None:
    choose = random.Random(1)
    cases = []
    for _ in range(often(5000)):
        same = text(choose)
        texts = [same if choose.random() < 0.7 else text(choose) for _ in range(choose.randint(1, 4))]
        base = {path(choose): ("100644", each) for each in texts}
        trees = (base, moving(choose, base), editing(choose, base))
        cases += [trees] if all(map(is_tree, trees)) else []
    repo = Repo.create(tmp_path)
    made = imported(repo, cases)
    repository, pairs = opened(repo), [(ours, theirs) for _, ours, theirs in made]
    n_different = 0
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        merges = [automatic_merges(store, pairs, attributes) for attributes in ("", "* -diff")]
        for (base, *_), pair, plain, other in zip(made, pairs, *merges, strict=True):
            # What is in conflict does not land by itself.
            if plain.tree != other.tree and not other.conflicts:
                n_different += 1
                assert _follows_renames(objects, base, pair)
    assert n_different >= 5
