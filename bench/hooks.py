"""Print what the installed hooks cost, as ratios to what must be paid anyway and to what the peers take.

    python -m bench.hooks [--rounds 21] [--files 5000,100000,500000] [--peers FOLDER] [--write FILE]

All commands are whole processes in one interleaved run, in repositories that are made here:

- *hook pre-commit*: the installed file, run as git runs it, ten files staged (two of them added), the
  defaults and a few denied paths; against `python -I -S -c pass` (the Python that the hook starts) and
  `git diff --cached --raw -z`, summed up within the round; and against peers that refuse the same paths and
  large added files. Up to 100,000 files they lie in the working tree too, for the peers look at them.
- *git commit*: the whole command with the default set of hooks, against the same with the hooks switched off,
  and in a repository that never had any.
- *reference-transaction*: whole git commands with that hook alone, and the hook alone with the lines that
  git sends (ten times over), against a hook that ends at once.
- *pre-push*: the installed file with the line that git sends, its record in the ledger included.
- *a refusal*: hook pre-commit against `git-patchgate check` of the same change.

Before and after the rounds it is proved that hook pre-commit and `git commit` take the fast path: they must
say yes where git-patchgate cannot be started. Peers are fetched from the package index, or taken from a
virtual environment that has some of them (`--peers`).
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence

from bench.hooks_peers import Peer, find_peers, require_equal
from bench.hooks_place import Place, make_base, make_warm
from bench.hooks_refs import Commits, LongPush, PushOfOne, RefCommands
from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds, Spread
from bench.tables import Row
from bench.worlds import Wide, World

PYTHON, GIT = "python -I -S -c pass", "git diff --cached --raw -z"
_HOOK = ".git/hooks/pre-commit"
_REFUSED = ".git/index-refused"
_PUSH = "hook pre-push of one commit"

_PEERS_UP_TO = 100_000
# Target and what to reach for, by number of files; 0 for all the others.
_FLOOR = {0: (1.3, 1.1), 500_000: (1.2, 1.1)}
_BESIDE = {
    "prek": {5_000: (0.75, 0.6), 100_000: (0.2, 0.14)},
    "lefthook": {0: (0.6, 0.5)},
    "pre-commit": {0: (0.06, 0.04)},
}


class Bench:
    """All repositories of one run, what is timed in them, and the rows that come of it."""

    def __init__(self, world: World, sizes: Sequence[int], peers: Sequence[Peer], commits: int) -> None:
        self._peers = peers
        self._places: dict[int, Place] = {}
        self.commands: dict[str, Command] = {}
        for size in sizes:
            has_peers = bool(peers) and size <= _PEERS_UP_TO
            place, wide = make_base(world, size, checkout=has_peers or size == sizes[0])
            if size == sizes[0]:
                self._first = size
                self._commits = Commits(place, wide, f"{size:,} files")
                self._add_refs(place.copy("refs"), wide)
            place.install()
            make_warm(place, wide)
            self._places[size] = place
            self._add_staged(place, size, peers if has_peers else ())
        self._push = PushOfOne(self._places[self._first])
        self._add_pushes()
        self.commands |= self._commits.commands()
        self._long = LongPush(world, commits)
        self.commands |= self._long.commands()

    def _add_refs(self, place: Place, wide: Wide) -> None:
        place.install()
        make_warm(place, wide)
        # What is stashed is one file; nothing is staged.
        place.git("reset", "-q", "--hard")
        place.make_ready({})
        self.refs = RefCommands(place, wide)
        self.commands |= self.refs.commands()

    def _add_staged(self, place: Place, size: int, peers: Sequence[Peer]) -> None:
        files = f"{size:,} files"
        self.commands[f"{PYTHON}, {files}"] = place.at_commit(place.interpreter(), "-I", "-S", "-c", "pass")
        self.commands[f"{GIT}, {files}"] = place.at_commit("git", "diff", "--cached", "--raw", "-z")
        self.commands[f"pre-commit, {files}"] = place.at_commit(_HOOK)
        for peer in peers:
            self.commands[_named(peer, files)] = peer.at_commit(place)
        shutil.copyfile(place.inside("index"), place.inside("index-refused"))
        place.world.stage(place.directory, {"vault/token.txt": b"nothing\n"}, "index-refused")
        for name, argv in (
            ("pre-commit", (_HOOK,)),
            ("check", (place.world.patchgate, "check")),
        ):
            command = place.at_commit(*argv, GIT_INDEX_FILE=_REFUSED)
            self.commands[f"{name}, refused, {files}"] = dataclasses.replace(command, code=1)
        require_equal(place, peers, _REFUSED)

    def _add_pushes(self) -> None:
        self.commands["pre-push, one commit"] = self._push.command()
        for peer in self._peers:
            if peer.push:
                command = peer.at_push(self._push.place, self._push.remote, self._push.stdin)
                self.commands[f"{peer.name}, one commit"] = command

    def paths(self) -> dict[str, bool]:
        """Tell for each hook whether the fast path answers; nothing is left of the trial."""
        found = {
            f"hook pre-commit at {size:,} files": place.is_fast(place.at_commit(_HOOK))
            for size, place in self._places.items()
        }
        found |= self._commits.paths()
        found[_PUSH] = self._push.place.is_fast(self._push.command())
        return found

    def require_unchanged(self) -> None:
        """Stop where something else is staged than what was staged for the measurement.

        Raises:
            SystemExit: the times mean nothing.
        """
        for place in (*self._places.values(), *self._commits.hooked.values()):
            if not place.is_unchanged():
                raise SystemExit("what is staged changed while it was measured: the times mean nothing")

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare, in the order of the targets."""
        found = []
        for size in self._places:
            files = f"{size:,} files"
            ratios = rounds.ratios(f"pre-commit, {files}", f"{PYTHON}, {files}", f"{GIT}, {files}")
            what = f"hook pre-commit, clean, ten staged, {files}"
            found.append(_row(what, f"`{PYTHON}` and `{GIT}`, one after the other", ratios, _FLOOR, size))
        for peer in self._peers:
            for size in self._places:
                files = f"{size:,} files"
                if _named(peer, files) in rounds.seconds:
                    ratios = rounds.ratios(f"pre-commit, {files}", _named(peer, files))
                    what = f"the same hook, {files}"
                    found.append(_row(what, f"{peer.name} ({peer.job})", ratios, _BESIDE[peer.name], size))
        found += self._commits.rows(rounds)
        found += self.refs.rows(rounds)
        for peer in self._peers:
            if peer.push:
                ratios = rounds.ratios("pre-push, one commit", f"{peer.name}, one commit")
                what = f"hook pre-push, one clean commit, {self._first:,} files"
                found.append(Row(what, f"{peer.name} ({peer.job})", 1.0, ratios, reach=0.5))
        found += self._long.rows(rounds)
        for size in self._places:
            files = f"{size:,} files"
            ratios = rounds.ratios(f"pre-commit, refused, {files}", f"check, refused, {files}")
            what = f"hook pre-commit, a refusal, {files}"
            found.append(Row(what, "`git-patchgate check` of the same", 1.15, ratios, reach=1.05))
        return found


def _named(peer: Peer, files: str) -> str:
    return f"{peer.name} ({peer.job}), {files}"


def _row(
    what: str, against: str, ratios: Spread, targets: Mapping[int, tuple[float, float]], size: int
) -> Row:
    limit, reach = targets.get(size) or targets.get(0) or (None, None)
    return Row(what, against, limit, ratios, reach=reach)


def require_fast(paths: Mapping[str, bool]) -> None:
    """Stop where another path than the one that is to be measured answers.

    Raises:
        SystemExit: the full tier answers where the fast path has to.
    """
    slow = [name for name, is_fast in paths.items() if not is_fast]
    if slow:
        raise SystemExit(f"the fast path does not answer ({', '.join(slow)}), so there is nothing to measure")


def require_same(before: Mapping[str, bool], after: Mapping[str, bool]) -> None:
    """Stop where something has changed sides while it was measured.

    Raises:
        SystemExit: the times mean nothing.
    """
    other = [
        f"{name} ({'fast before' if before[name] else 'fast after'})"
        for name in after
        if before[name] != after[name]
    ]
    if other:
        raise SystemExit(f"another path answers after the rounds than before: {', '.join(other)}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", default="5000,100000", help="sizes of the repositories, by commas")
    parser.add_argument("--commits", type=int, default=10_000, help="length of the long push")
    parser.add_argument("--peers", help="a virtual environment with some of the peers; `none`: without them")
    parser.add_argument("--any-path", action="store_true", help="go on where the fast path does not answer")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories, and name what is timed in them."""
    sizes = [int(size) for size in options.files.split(",")]
    peers: Sequence[Peer] = ()
    if options.peers != "none":
        peers = find_peers(world, options.peers and os.path.abspath(options.peers))
    bench = Bench(world, sizes, peers, options.commits)
    paths = bench.paths()
    if not options.any_path:
        require_fast(paths)
        bench.refs.require_quiet()

    def require_valid() -> None:
        bench.require_unchanged()
        require_same(paths, bench.paths())

    return Measurement(bench.commands, bench.rows, require_valid, _notes(peers, paths))


def _notes(peers: Sequence[Peer], paths: Mapping[str, bool]) -> str:
    """Say what answers, and how the peers are run."""
    fast = [name for name, is_fast in paths.items() if is_fast]
    slow = [*(name for name, is_fast in paths.items() if not is_fast), "the long pushes", "the refusals"]
    versions = dict.fromkeys(f"{peer.name} {peer.version}" for peer in peers)
    return f"""\
Peers: {", ".join(versions) or "none"}. The fast path answers (proved where git-patchgate cannot be
started): {", ".join(fast) or "nothing"}. The full tier answers: {", ".join(slow)}.
The peers refuse the same paths and large added files. prek uses its built-in check, lefthook runs without the
Python wrapper of its wheel, and none of them is started through a shim of its own; our hook is. Where there
are peers, all files lie in the working tree. A push is measured without any network: the hook gets the line
that git sends, and writes its record.
"""


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 21)


if __name__ == "__main__":
    main()
