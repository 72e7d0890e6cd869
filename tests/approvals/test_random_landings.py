"""Random histories of approved commits and of merges that nobody approved: only whole ones land."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.amount import IS_LONG
from tests.approvals.owners_world import Team
from tests.approvals.test_owner_attacks import DENIED, INFRA, clean_merge, on_server
from tests.signing import needs_ssh_keygen
from tests.world import Repo

pytestmark = [needs_ssh_keygen, pytest.mark.turns(3)]

MAIN = "refs/heads/main"
NAMES = ("a", "b", "c")
Owned = tuple[str, ...]
"""The content of each owned file; empty: there is none."""


@dataclass
class Scene:
    """A team, its commits with what they have, and what alice has approved."""

    team: Team
    draw: random.Random
    owned: dict[str, Owned] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    approved: set[tuple[tuple[str, str, str], ...]] = field(default_factory=set)
    merges: set[Owned] = field(default_factory=set)
    solved: set[tuple[tuple[str, str, str], ...]] = field(default_factory=set)

    @property
    def dev(self) -> Repo:
        return self.team.dev

    def commit(self, owned: Owned, *parents: str) -> str:
        """Make a commit that has some owned files, and for the rest what its first parent has."""
        listed = self.dev.git("ls-tree", f"{parents[0]}^{{tree}}").decode()
        files = "".join(
            f"100644 blob {self.blob(text)}\t{name}\n"
            for name, text in zip(NAMES, owned, strict=True)
            if text
        )
        top = "".join(line + "\n" for line in listed.splitlines() if not line.endswith("\tinfra"))
        if files:
            folder = self.dev.git("mktree", stdin=files.encode()).decode().strip()
            top += f"040000 tree {folder}\tinfra\n"
        tree = self.dev.git("mktree", stdin=top.encode()).decode().strip()
        above = (word for oid in parents for word in ("-p", oid))
        made = self.dev.ask("commit-tree", tree, *above, "-m", f"Change {self.draw.random()}")
        self.owned[made], self.parents[made] = owned, parents
        return made

    def blob(self, text: str) -> str:
        return self.dev.git("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()

    def read(self, commit: str) -> Owned:
        """Return what a commit has."""
        found = (self.dev.try_git("show", f"{commit}:infra/{name}") for name in NAMES)
        return tuple(each.stdout.decode() if each.returncode == 0 else "" for each in found)

    def propose(self, base: str) -> str:
        """Make a commit of one to three files, and let alice approve it."""
        before = self.owned[base]
        after = list(before)
        for number in self.draw.sample(range(len(NAMES)), self.draw.randint(1, len(NAMES))):
            after[number] = self.draw.choice([each for each in ("", "1\n", "2\n") if each != before[number]])
        made = self.commit(tuple(after), base)
        proposed = change(before, tuple(after))
        if proposed not in self.approved:
            assert self.team.approve("alice", made, "--for", MAIN).code == 0
        self.approved.add(proposed)
        return made

    def merge(self, one: str, other: str) -> str:
        """Merge two commits, mostly as git would; at times with what either has."""
        bases = self.dev.ask("merge-base", "--all", one, other).split()
        joined = []
        for number in range(len(NAMES)):
            was, ours, theirs = (self.owned[each][number] for each in (bases[0], one, other))
            by_git = theirs if ours == was else ours
            joined.append(by_git if self.draw.random() < 0.8 else self.draw.choice([was, ours, theirs]))
        return self.commit(tuple(joined), one, other)

    def step(self, commits: list[str]) -> str:
        """Add a commit to a history: an approved change made again, or a merge."""
        base = self.draw.choice(commits[-4:])
        fitting = [
            made for each in sorted(self.approved) if (made := applied(self.owned[base], each)) is not None
        ]
        if fitting and self.draw.random() < 0.5:
            return self.commit(self.draw.choice(fitting), base)
        merged = self.merge(base, self.draw.choice(commits))
        if self.draw.random() < 0.1:
            self.approve_merge(merged)
        return merged

    def approve_merge(self, merge: str) -> None:
        """Let alice approve a merge, if it is one that needs it."""
        tracking = "refs/remotes/origin/main"
        if self.team.approve("alice", merge, "--for", MAIN, "--policy-from", tracking).code == 0:
            after = self.owned[merge]
            self.merges.add(after)
            # What the branch has got since, at other files, stays as it is.
            self.solved.update(change(self.owned[parent], after) for parent in self.parents[merge])

    def reachable(self, start: Owned) -> set[Owned]:
        """Return what whole approved commits make of a branch, in any order, however often."""
        found: set[Owned] = set()
        waiting = [start, *self.merges]
        while waiting:
            state = waiting.pop()
            if state not in found:
                found.add(state)
                changes = self.approved | self.solved
                waiting += filter(None, (applied(state, each, is_there=True) for each in changes))
        return found


def change(before: Owned, after: Owned) -> tuple[tuple[str, str, str], ...]:
    files = zip(NAMES, before, after, strict=True)
    return tuple((name, old, new) for name, old, new in files if old != new)


def applied(
    state: Owned, approved: tuple[tuple[str, str, str], ...], *, is_there: bool = False
) -> Owned | None:
    """Make a change again where the files are as it began; `is_there`: or as it made them."""
    after = dict(zip(NAMES, state, strict=True))
    for name, old, new in approved:
        if after[name] != old and not (is_there and after[name] == new):
            return None
        after[name] = new
    return tuple(after.values())


def begin(folder: Path, seed: int) -> tuple[Scene, list[str]]:
    """Make a scene, with a main branch and some approved commits."""
    scene = Scene(Team.make(folder, (INFRA, DENIED)[seed % 2]), random.Random(seed))
    start = scene.team.head()
    scene.owned[start] = ("", "", "")
    known = [scene.commit(tuple(scene.draw.choice(["", "1\n"]) for _ in NAMES), start)]
    on_server(scene.team, "main", known[0])
    for _ in range(scene.draw.randint(2, 5)):
        known.append(scene.propose(scene.draw.choice(known)))
    return scene, known


def grow(scene: Scene, known: list[str]) -> str:
    """Add a random history to what is known; return its end."""
    commits = [scene.team.head(), *scene.draw.sample(known, min(len(known), 3))]
    for _ in range(scene.draw.randint(2, 7)):
        commits.append(scene.step(commits))
    known += commits
    return commits[-1]


@pytest.mark.parametrize("seed", range(60 if IS_LONG else 2))
def test_what_lands_is_what_whole_approved_commits_make(tmp_path: Path, seed: int) -> None:
    scene, known = begin(tmp_path, seed)
    has_landed = 0
    for _ in range(25 if IS_LONG else 12):
        main, head = scene.team.head(), grow(scene, known)
        tip = scene.merge(main, head)
        if scene.team.push(f"{tip}:{MAIN}").code == 0:
            has_landed += 1
            assert scene.owned[tip] in scene.reachable(scene.owned[main])
    assert has_landed


@pytest.mark.parametrize("seed", range(60 if IS_LONG else 2))
def test_what_ci_accepts_lands_whole_by_the_merge_of_the_host(tmp_path: Path, seed: int) -> None:
    scene, known = begin(tmp_path, seed)
    where, has_landed = "refs/remotes/origin/main", 0
    for _ in range(25 if IS_LONG else 12):
        main, head = scene.team.head(), grow(scene, known)
        checked = scene.dev.check("--policy-from", where, f"{where}..{head}", CI="true")
        # Of a conflict nothing lands until somebody has solved it, and that is judged.
        if checked.code == 0 and scene.dev.try_git("merge-tree", "--write-tree", main, head).returncode == 0:
            merge = clean_merge(scene.dev, main, head)
            scene.owned[merge], scene.parents[merge] = scene.read(merge), (main, head)
            assert scene.owned[merge] in scene.reachable(scene.owned[main])
            answer = scene.team.push(f"{merge}:{MAIN}")
            assert answer.code == 0, answer.err
            has_landed += 1
    assert has_landed
