"""The fast path gives the verdict of the full tier: many changes in one process, and some by real commits.

`PATCHGATE_LONG=1` tries four times as many; the long form is
`python -m tests.hooks.fast.same_verdict --changes 1000000`.
"""

from __future__ import annotations

import random
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from patchgate.hooks.fast import recognise
from tests.amount import IS_LONG
from tests.hooks.fast.same_verdict import try_many, try_quietly
from tests.sessions.test_commit_hooks import receipts, said
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

SEED = 5
BATCHES = 24 if IS_LONG else 6


def test_whatever_is_recognised_the_full_tier_accepts_in_silence_with_the_same_pending_receipt() -> None:
    counts, failures = try_many(SEED, [(number, 200) for number in range(BATCHES)], jobs=2)
    assert not failures, "\n".join(failures)
    assert counts.changes == 200 * BATCHES
    # A proof about changes that never are recognised would prove nothing, and help nobody.
    assert counts.recognised >= counts.changes // 10
    assert counts.ordinary_silent >= counts.changes // 20
    assert counts.ordinary_recognised >= counts.ordinary_silent // 2
    # The random changes meet the conditions of the recogniser, each line of them by itself.
    assert len(counts.why) >= 14, counts.why
    assert counts.compared >= 2 * BATCHES


@pytest.mark.parametrize("name", ["check_names", "check_collisions"])
def test_a_recogniser_that_forgets_to_look_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognise, name, lambda *_: None)
    failures = (try_quietly((SEED, number, 200))[1] for number in range(BATCHES))
    assert any("DifferenceError: recognised, but rejected" in failure for failure in failures)


# ---- by real commits --------------------------------------------------------------------------------------

POLICY = """
[policy]
deny_prefixes = ["secrets"]
deny = ["*.pem"]
[policy.commit]
max_added_lines = 40
[rules]
max-added-lines = "error"
[content]
deny = ["BAD"]
"""
NAMES = ("src/a.py", "src/b.py", "docs/a b.md", "app/[id].tsx", "README.md", "lib/x.c", "src/new/c.py")
ODD_NAMES = ("SRC/a.py", "secrets/k", "x.PEM", "src/ü.py", "uv.lock", ".gitattributes", "docs/A B.md")


class Sessions:
    """A repository (and a linked worktree) whose hooks write down when they go on to patchgate."""

    def __init__(self, folder: Path, chance: random.Random, *arguments: str) -> None:
        self.chance = chance
        self.repo = Repo.create(folder, *arguments)
        self.repo.policy(POLICY)
        self.repo.commit({name: f"{name}\n" * 5 for name in NAMES[:5]})
        self.repo.install()
        linked = folder / "linked"
        self.repo.git("worktree", "add", "-q", "-b", "linked", str(linked))
        self.trees = [self.repo, self.repo.at(linked)]
        self._asked = folder / "asked"
        self._interpose(folder / "git-patchgate")

    def _interpose(self, program: Path) -> None:
        text = (
            f'#!/bin/sh\nprintf \'%s\\n\' "$2" >>{shlex.quote(str(self._asked))}\nexec git-patchgate "$@"\n'
        )
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        for name in ("pre-commit", "commit-msg", "reference-transaction"):
            hook = self.repo.path / ".git" / "hooks" / name
            text, count = re.subn(
                r"(?m)^patchgate=.*$",
                f"patchgate={shlex.quote(str(program))}",
                hook.read_text(encoding="utf-8"),
            )
            assert count == 1
            hook.write_text(text, encoding="utf-8")

    @property
    def judged(self) -> set[str]:
        """The hooks that went on to patchgate since the last look."""
        if not self._asked.exists():
            return set()
        found = set(self._asked.read_text(encoding="utf-8").split())
        self._asked.unlink()
        return found

    def try_one(self) -> str:
        """Make a random change and commit it in one of git's ways; tell how it went."""
        tree = self.chance.choice(self.trees)
        paths = self._change(tree)
        way = self.chance.choice(["whole", "whole", "-a", "path", "empty"])
        if way == "-a":
            asked = ["-a"]
        elif way == "path":
            tree.try_git("add", "-N", *paths)
            asked = ["--", paths[0]]
        else:
            tree.git("add", "-A")
            asked = ["--allow-empty"] if way == "empty" else []
            tree.write("later.txt", "not staged\n")
        done = tree.try_git("commit", "-q", "-m", "Change what is there", *asked)
        judged = self.judged
        if done.returncode == 0 and "pre-commit" not in judged:
            self._require_same(tree, said(done), judged)
        tree.git("reset", "-q", "--hard")
        tree.git("clean", "-qfd")
        if done.returncode:
            return "refused" if "pre-commit" in judged else "nothing to commit"
        return "judged" if "pre-commit" in judged else f"recognised {way} {self.trees.index(tree)}"

    def _require_same(self, tree: Repo, text: str, judged: set[str]) -> None:
        """What was recognised: the full tier accepts it in silence, and the transaction took its receipt."""
        assert text == ""
        assert judged == set()
        answer = tree.check("HEAD")
        assert (answer.verdict, answer.findings) == ("accepted", [])
        assert receipts(self.repo)[-1] == tree.head()

    def _change(self, tree: Repo) -> list[str]:
        chosen = self.chance.sample(NAMES, self.chance.randint(1, 3))
        if self.chance.random() < 0.2:
            chosen.append(self.chance.choice(ODD_NAMES))
        for name in chosen:
            place = tree.path / name
            kind = self.chance.random()
            if kind < 0.1 and place.exists():
                place.unlink()
            elif kind < 0.15 and place.exists():
                place.chmod(0o755)
            else:
                lines = [f"{self.chance.random()}\n"] * self.chance.choice([0, 1, 2, 5, 5, 30])
                telling = (
                    self.chance.choice(["BAD\n", "\0", "<<<<<<< x\n"]) if self.chance.random() < 0.1 else ""
                )
                tree.write(name, "".join(lines) + telling)
        return chosen


@pytest.mark.parametrize(("kind", "count"), [("sha1", 45), ("sha256", 15)])
def test_a_real_commit_that_is_recognised_is_accepted_and_gets_its_receipt(
    tmp_path: Path, kind: str, count: int
) -> None:
    sessions = Sessions(tmp_path, random.Random(SEED), f"--object-format={kind}")
    seen = Counter(sessions.try_one() for _ in range(count))
    recognised = {way: often for way, often in seen.items() if way.startswith("recognised")}
    assert sum(recognised.values()) >= count // 4, seen
    assert seen["judged"], seen
    assert {way[-1] for way in recognised} == {"0", "1"}
    if kind == "sha1":
        assert seen["refused"], seen
        assert {way.split(" ")[1] for way in recognised} == {"whole", "-a", "path", "empty"}, seen
