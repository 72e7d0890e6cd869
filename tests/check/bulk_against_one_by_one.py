"""Judge histories in bulk and commit by commit, and compare the two.

    python -m tests.check.bulk_against_one_by_one --histories 300 --seed N
    python -m tests.check.bulk_against_one_by_one --repository DIR [--range A..B] [--policy-from REV]

The first makes random histories in which most commits are boring, and the others break a rule, change the
policy, join branches, or are an agent's. The second takes all commits of a full clone, or those of a range.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patchgate.check.bulk_check import BulkCheck
from patchgate.check.commits import CommitHistory, judge_each
from patchgate.check.policy_lookup import CheckOptions, resolve_policy_from
from patchgate.errors import UndecidedError
from patchgate.git.commit_lists import Commit, list_commits
from patchgate.git.history import Walk
from patchgate.git.repository import Repository, open_repository
from patchgate.report.verdict import ChangeVerdict, Report
from patchgate.report.wording import tally_line, verdict_line
from tests.world import Repo

POLICIES = (
    "",
    "[policy]\nmax_file_bytes = 300\n[policy.commit]\nmax_files = 2\nmax_added_lines = 6\n",
    (
        '[policy]\ndeny_prefixes = ["vault"]\ndeny = ["*.pem"]\ndeny_suffixes = [".key"]\n'
        '[policy.commit]\nmax_added_lines = "off"\n[content]\nsecrets = false\nconflict_markers = false\n'
    ),
    '[policy]\nallow_roots = ["src", "docs"]\n[content]\ndeny = ["forbid(den|ding)", "(?i)never"]\n',
    '[[owners]]\npaths = ["docs/"]\nsigners = ["a@example.com"]\n',
    '[policy.commit]\ndeny_classes = ["binary", "lock"]\nallow_modes = false\nallow_symlinks = false\n',
    '[placeholders]\nlevel = "warning"\n[rules]\nmax-files = "off"\n',
    '[message]\nlevel = "error"\n',
    '[components.one]\ncontract = "src/interface.json"\nimplementation = ["src/api/**"]\n',
    "[policy\n",
)
_NAMES = [
    f"{folder}/{name}.py" for folder in ("src", "src/api", "src/api/v2", "docs", "lib") for name in "abcdef"
]
_ODD_NAMES = (
    *("vault/a", "x.pem", "a.key", "src/A.py", "SRC/b.py", "src/api.py", "src/api", "docs/\u00e9.md", "a\nb"),
    *("package-lock.json", "pyproject.toml", ".gitattributes", "src/.claude/x", "src/a b.py", "build/x.pyc"),
    *("src/interface.json", "src/x.", "lib/git~1", "lib/con:x", "patchgate.toml", ".pre-commit-config.yaml"),
)
_ODD_LINES = (
    *(
        b"AKIA" + b"QWERTYUIOPASDFGH",
        b"<<<<<<< HEAD",
        b"forbidden",
        b"NeVeR",
        b"nul\0inside",
        b"# TODO: later",
    ),
    *(
        b"-- a",
        b"++ b",
        b"diff --git a/x b/x",
        b"def later():\n    raise NotImplementedError",
        b"\r",
        b"\x0c",
    ),
)
_TRAILERS = (
    b"",
    b"",
    b"",
    b"",
    b"Signed-off-by: A <a@example.com>",
    b"Patchgate-Profile: agent",
    b"Patchgate-Run: r",
)
State = dict[str, tuple[str, bytes]]


@dataclass
class Writer:
    """Writes a fast-import stream of a random history; `odd` is how often a commit is not boring."""

    chance: random.Random
    odd: float
    lines: list[bytes] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def _content(self, old: bytes, is_odd: bool) -> bytes:
        lines = old.split(b"\n")
        for _ in range(self.chance.randint(1, 3)):
            at = self.chance.randrange(len(lines) + 1)
            lines[at : at + self.chance.randrange(2)] = [b"line %d" % self.chance.randrange(10_000)]
        if is_odd:
            lines[len(lines) // 2 : len(lines) // 2] = [self.chance.choice(_ODD_LINES)] * self.chance.choice(
                (1, 1, 9)
            )
        return b"\n".join(lines)

    def step(self, state: State) -> State:
        """Change one or two files, seldom more."""
        done, chance = dict(state), self.chance
        is_odd = chance.random() < self.odd
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3) if is_odd else (1, 1, 1, 2))):
            name = chance.choice(_ODD_NAMES if is_odd and chance.random() < 0.5 else _NAMES)
            for other in [
                each for each in done if each.startswith(name + "/") or name.startswith(each + "/")
            ]:
                del done[other]
            if name in done and chance.random() < 0.1:
                del done[name]
            elif done and is_odd and chance.random() < 0.1:
                done[name] = done.pop(chance.choice(sorted(done)))
            elif name in ("patchgate.toml", "pyproject.toml"):
                text = chance.choice(POLICIES)
                is_table = name == "pyproject.toml"
                done[name] = (
                    "100644",
                    (text.replace("[", "[tool.patchgate.") if is_table else text).encode(),
                )
            else:
                mode, old = done.get(name, ("100644", b"one\ntwo\nthree\n"))
                if is_odd and chance.random() < 0.3:
                    mode = chance.choice(("100755", "120000", "160000"))
                done[name] = (mode, self._content(old, is_odd) if mode.startswith("100") else b"src/a.py")
        return done

    def commit(self, state: State, heads: Sequence[int]) -> None:
        """Write one commit with its whole tree, on top of earlier ones."""
        number = len(self.states)
        self.states.append(state)
        self.lines.append(b"commit refs/heads/main\nmark :%d" % (number + 1))
        self.lines.append(b"committer A <a@example.com> %d +0000" % (1_700_000_000 + number))
        message = b"Change %d\n\n%b\n" % (number, self.chance.choice(_TRAILERS))
        self.lines.append(b"data %d\n%b" % (len(message), message))
        if not heads:
            self.lines[-3:-3] = [b"reset refs/heads/main", b""]
        for place, head in enumerate(heads):
            self.lines.append((b"from :%d" if place == 0 else b"merge :%d") % (head + 1))
        self.lines.append(b"deleteall")
        for name, (mode, content) in state.items():
            quoted = b'"%b"' % name.encode().replace(b"\n", b"\\n")
            if mode == "160000":
                self.lines.append(b"M 160000 %b %b" % (b"1" * 40, quoted))
            else:
                self.lines.append(
                    b"M %b inline %b\ndata %d\n%b" % (mode.encode(), quoted, len(content), content)
                )


def build(repo: Repo, commits: int, seed: int) -> None:
    """Fill a repository with a random history of so many commits."""
    chance = random.Random(seed)
    writer = Writer(chance, odd=chance.choice((0.05, 0.2, 0.5)))
    first: State = dict.fromkeys(_NAMES[::2], ("100644", b"one\ntwo\nthree\n"))
    if text := chance.choice(POLICIES[:-1]):
        first["patchgate.toml"] = ("100644", text.encode())
    writer.commit(first, [])
    tips = [0]
    while len(writer.states) < commits:
        number, fate = len(writer.states), chance.random()
        tip = chance.randrange(len(tips))
        if fate < 0.15 and len(tips) > 1:
            one, other = chance.sample(tips, 2)
            state = {**writer.states[other], **writer.states[one]}
            state = {
                name: each for name, each in state.items() if not any(x.startswith(name + "/") for x in state)
            }
            writer.commit(writer.step(state) if fate < 0.05 else state, [one, other])
            tips = [each for each in tips if each not in (one, other)] + [number]
            continue
        state = writer.states[tips[tip]]
        writer.commit(state if fate > 0.97 else writer.step(state), [] if fate > 0.995 else [tips[tip]])
        if fate < 0.3 and len(tips) < 4:
            tips.append(number)
        else:
            tips[tip] = number
    writer.commit(writer.states[tips[0]], tips[:2])
    repo.git("fast-import", "--quiet", "--force", stdin=b"\n".join([*writer.lines, b""]))


@dataclass(frozen=True)
class Compared:
    """How many commits there were, how many were cleared in bulk, and how many more have nothing to say."""

    commits: int
    cleared: int
    silent: int


def _facts(verdict: ChangeVerdict) -> object:
    """All of a verdict, but for numbers that no rule asks for: what is read depends on the commits around."""
    about = (verdict.id, verdict.verdict, verdict.source, verdict.profile, verdict.policy, verdict.gates)
    files = [(file.path, file.old, file.new) for file in verdict.change.files]
    limits = {name: each for name, each in verdict.limits.items() if each.limit is not None}
    return about, verdict.findings, limits, verdict.owned, files, dict(verdict.change.renames)


def _is_silent(verdict: ChangeVerdict) -> bool:
    return verdict.verdict == "accepted" and not (verdict.findings or verdict.owned or verdict.profile_reason)


def compare(repository: Repository, commits: Sequence[Commit], asked: CheckOptions) -> Compared:
    """Compare both ways of judging some commits, parents first.

    Raises:
        AssertionError: they differ.
    """
    bulk = BulkCheck(repository, asked)
    rest, again_judged = _in_bulk(repository, bulk, commits, asked)
    left = {commit.oid for commit in rest}
    one_by_one = _judged(repository, commits, asked)
    if isinstance(one_by_one, str) or isinstance(again_judged, str):
        # What makes all of it undecided is not cleared.
        assert one_by_one == again_judged
        return Compared(len(commits), len(commits) - len(rest), 0)
    verdicts = dict(zip([commit.oid for commit in commits], one_by_one, strict=True))
    for commit in commits:
        verdict = verdicts[commit.oid]
        assert commit.oid in left or _is_silent(verdict), f"{commit.oid}: cleared, but {verdict.findings}"
    for commit, verdict in zip(rest, again_judged, strict=True):
        assert _facts(verdict) == _facts(verdicts[commit.oid]), f"{commit.oid}: judged otherwise"
    whole = Report(tuple(one_by_one))
    parts = Report(tuple(again_judged), cleared=bulk.cleared)
    assert verdict_line(parts) == verdict_line(whole)
    assert tally_line(parts) == tally_line(whole)
    silent = sum(_is_silent(verdicts[oid]) for oid in left)
    return Compared(len(commits), len(commits) - len(rest), silent)


def _in_bulk(
    repository: Repository, bulk: BulkCheck, commits: Sequence[Commit], asked: CheckOptions
) -> tuple[list[Commit], list[ChangeVerdict] | str]:
    """Clear what can be cleared; return the others with their verdicts, or why there are none."""
    rest = list(commits)
    try:
        with Walk(repository, commits) as walk:
            history = CommitHistory(walk, asked)
            rest = bulk.rest(walk, history, commits)
            return rest, list(judge_each(walk, rest, asked, history))
    except UndecidedError as error:
        return rest, error.message


def _judged(
    repository: Repository, commits: Sequence[Commit], asked: CheckOptions
) -> list[ChangeVerdict] | str:
    """Judge commit by commit; where that fails as a whole, return why."""
    try:
        with Walk(repository, commits) as walk:
            return list(judge_each(walk, commits, asked))
    except UndecidedError as error:
        return error.message


def compare_history(folder: Path, seed: int, commits: int = 60) -> Iterator[Compared]:
    """Make a history, and compare it under its own policies, and under one for all."""
    repo = Repo.create(folder)
    build(repo, commits, seed)
    repository = open_repository(repo.env, str(repo.path))
    listed = list_commits(repository, "--topo-order", "--reverse", "main")
    yield compare(repository, listed, CheckOptions())
    yield compare(repository, listed, resolve_policy_from(repository, listed[0].oid))


def main() -> None:
    """Compare, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repository", help="a full clone to take instead of histories made here")
    parser.add_argument("--range", help="its commits: A..B; all of HEAD by default")
    parser.add_argument("--policy-from", help="the revision whose policy judges them")
    arguments = parser.parse_args()
    if arguments.repository is not None:
        repository = open_repository(os.environ, os.path.abspath(arguments.repository))
        commits = list_commits(repository, "--topo-order", "--reverse", arguments.range or "HEAD")
        named = arguments.policy_from
        asked = CheckOptions() if named is None else resolve_policy_from(repository, named)
        found = [compare(repository, commits, asked)]
    else:
        found = []
        for seed in range(arguments.seed, arguments.seed + arguments.histories):
            with tempfile.TemporaryDirectory(prefix="histories-") as folder:
                try:
                    found += compare_history(Path(folder), seed)
                except AssertionError:
                    print(f"history {seed}", file=sys.stderr)
                    raise
    total, cleared, silent = (
        sum(getattr(each, name) for each in found) for name in ("commits", "cleared", "silent")
    )
    print(f"{total:,} commits, {cleared:,} cleared in bulk; {silent:,} others have nothing to say: all alike")


if __name__ == "__main__":
    main()
