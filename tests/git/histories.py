"""A random history, made by `git fast-import`: merges, moves, deletions, every mode, files as folders."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.world import Repo

NAMES = ("a", "b", "c.txt", "dir/a", "dir/b", "dir/deep/c", "other/x y", "other/\u00e9", "zz/1/2/3")
CONTENTS = (
    b"",
    b"one\n",
    b"one\ntwo\nthree\n",
    b"one\n2\nthree\n\n\nfour\n",
    b"no newline at the end",
    b"no newline at the end\n",
    b"nul\0inside\n",
    b"a\r\nb\r\n",
    b"-- a\n++ b\n@@ -1 +1 @@\ndiff --git a/x b/x\n",
    b"\n" * 30,
    b"".join(b"%d\n" % number for number in range(300)),
    b"".join(b"%d\n" % (number * (number % 7 != 3)) for number in range(300)),
)
LINKS = (b"a", b"../b", b"dir/deep")
MODES = ("100644", "100644", "100644", "100755", "120000", "160000")

State = dict[str, tuple[str, bytes]]


@dataclass
class Writer:
    """Writes a fast-import stream: every commit names its whole tree."""

    chance: random.Random
    lines: list[bytes] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def step(self, state: State) -> State:
        """Change a few paths; what stands in the way of a new path goes."""
        done = dict(state)
        for _ in range(self.chance.randint(1, 4)):
            name = self.chance.choice(NAMES)
            if self.chance.random() < 0.15:
                name += "/inside"
            if self.chance.random() < 0.25:
                done.pop(name, None)
                continue
            for other in list(done):
                if other.startswith(name + "/") or name.startswith(other + "/"):
                    del done[other]
            if done and self.chance.random() < 0.2:
                moved = self.chance.choice(sorted(done))
                done[name] = done.pop(moved)
                continue
            mode = self.chance.choice(MODES)
            pool = LINKS if mode == "120000" else CONTENTS
            content = self.chance.choice(pool)
            done[name] = (mode, content)
        return done

    def commit(self, state: State, parents: list[int]) -> None:
        """Add one commit; parents are positions, the first one first."""
        mark = len(self.states) + 1
        self.lines += [b"commit refs/heads/main", b"mark :%d" % mark]
        self.lines += [b"committer A <a@example.com> %d +0000" % (1_700_000_000 + mark), b"data 1\nx"]
        self.lines += [
            b"%s :%d" % (b"merge" if index else b"from", parent + 1) for index, parent in enumerate(parents)
        ]
        self.lines.append(b"deleteall")
        for name, (mode, content) in state.items():
            path = name.encode("utf-8")
            if mode == "160000":
                oid = (b"%x" % (1 + len(content) % 15)) * 40
                self.lines.append(b"M 160000 %s %s" % (oid, path))
            else:
                self.lines.append(
                    b"M %s inline %s\ndata %d\n%s" % (mode.encode(), path, len(content), content)
                )
        self.states.append(state)


def build(repo: Repo, commits: int, seed: int) -> list[str]:
    """Fill a repository with a random history of so many commits; give their ids, parents first."""
    writer = Writer(random.Random(seed))
    writer.commit({"start": ("100644", b"start\n")}, [])
    tips = [0]
    while len(writer.states) < commits:
        number = len(writer.states)
        fate = writer.chance.random()
        tip = writer.chance.randrange(len(tips))
        base = tips[tip]
        if fate < 0.12 and len(tips) > 1:
            heads = writer.chance.sample(tips, min(len(tips), 3 if fate < 0.02 else 2))
            both: State = {}
            for head in reversed(heads):
                both |= writer.states[head]
            clash = [name for name in both if any(name.startswith(other + "/") for other in both)]
            state = {name: value for name, value in both.items() if name not in clash}
            if fate < 0.08:
                state = writer.step(state)
            writer.commit(state, heads)
            tips = [each for each in tips if each not in heads] + [number]
            continue
        writer.commit(writer.step(writer.states[base]), [base])
        if fate < 0.3 and len(tips) < 4:
            tips.append(number)
        else:
            tips[tip] = number
    writer.commit(writer.states[tips[0]], tips[:2] if len(tips) > 1 else tips)
    repo.git("fast-import", "--quiet", "--force", stdin=b"\n".join([*writer.lines, b""]))
    return repo.ask("rev-list", "--topo-order", "--reverse", "main").split()
