"""Random repositories, random patches of git's own making, random damage: what must hold for each of them.

    python -m tests.fuzz_patches --minutes N [--seed S]

prints the seed of each failure, and runs on; the test suite runs a few dozen of the same trials. The
properties: nothing is written and nothing crashes; what is accepted `git apply --check` accepts, and the tree
that the report names is what `git apply --index` makes; the order of sections changes no verdict; a damaged
byte outside the text of added lines is refused or harmless.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from patchgate.patches.patch_model import Patch
from patchgate.patches.patch_parser import parse
from tests.proposals import PERMISSIVE, check
from tests.world import Answer, Repo

NAMES = (
    b"a.py",
    b"src/b.py",
    b"src/c d.txt",
    b"src/deep/e",
    b"b/f",
    b'"quoted"',
    "übung.md".encode(),
    b"tail ",
    b"dev/null",
    b"x/y/z",
    b"x.sh",
    b"-n",
)
LINES = (
    b"",
    b"one",
    b"two",
    b"}",
    b"\t}",
    b"-- x",
    b"++ y",
    b"@@ -1 +1 @@",
    b"diff --git a/q b/q",
    b"\xff\xfe",
)


def text_of(chance: random.Random) -> bytes:
    """Make a file's content: few different lines, so that hunks fit in several places."""
    ending = b"\r\n" if chance.random() < 0.15 else b"\n"
    numbered = chance.random() < 0.6
    lines = [
        chance.choice(LINES) + (b" %d" % number if numbered else b"")
        for number in range(chance.choice([0, 1, 2, 5, 12, 30]))
    ]
    text = b"".join(line + ending for line in lines)
    return text[: -len(ending)] if text and chance.random() < 0.2 else text


def edited(chance: random.Random, text: bytes) -> bytes:
    """Change, drop or add a few lines."""
    lines = text.split(b"\n")
    for _ in range(chance.choice([1, 1, 2, 4])):
        place = chance.randrange(len(lines) + 1)
        lines[place : place + chance.choice([0, 0, 1, 2])] = [
            b"new %d" % chance.randrange(99)
        ] * chance.choice([0, 1, 1, 2])
    return b"\n".join(lines)


@dataclass
class Trial:
    """One repository in a random state, and the patch that git made for it."""

    repo: Repo
    chance: random.Random

    def place(self, name: bytes) -> Path:
        """Where a file lies."""
        return self.repo.path / os.fsdecode(name)

    def mutate(self) -> None:
        """Change some files of the working tree: content, mode, kind, name, existence."""
        chance = self.chance
        for name in chance.sample(NAMES, chance.choice([1, 1, 2, 4])):
            place = self.place(name)
            what = chance.random()
            if place.is_symlink() or not place.exists():
                place.unlink(missing_ok=True)
                if what < 0.8:
                    self.repo.write(name, text_of(chance), executable=what < 0.1)
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.symlink_to(chance.choice(["a.py", "../out", "/etc/passwd"]))
            elif what < 0.6:
                self.repo.write(name, edited(chance, place.read_bytes()))
            elif what < 0.7:
                place.chmod(0o755 if what < 0.65 else 0o644)
            elif what < 0.8:
                place.unlink()
            else:
                target = self.place(chance.choice(NAMES))
                if not target.exists() and not target.is_symlink():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    place.rename(target)
                    if what < 0.9:
                        target.write_bytes(edited(chance, target.read_bytes()))

    def start(self) -> None:
        """Commit a random tree under a policy that allows everything."""
        self.repo.git("update-ref", "-d", "HEAD")
        for entry in self.repo.path.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        self.repo.write("patchgate.toml", PERMISSIVE)
        for name in self.chance.sample(NAMES, 6):
            self.repo.write(name, text_of(self.chance), executable=self.chance.random() < 0.1)
        self.repo.commit()

    def patch(self) -> bytes:
        """Let git write the patch from the commit to a changed tree; the files are as committed again."""
        chance = self.chance
        self.mutate()
        self.repo.git("add", "-A")
        after = self.repo.ask("write-tree")
        self.repo.git("reset", "-q", "--hard")
        self.repo.git("clean", "-qfd")
        options = [f"-U{chance.choice([0, 1, 3, 3, 3, 9])}"]
        options += chance.choice([[], ["-M"], ["-C", "--find-copies-harder"], ["-M", "--full-index"]])
        quoting = chance.choice(["true", "false"])
        arguments = ("-c", f"core.quotePath={quoting}", "diff-tree", "-p", "-r", *options, "HEAD", after)
        return self.repo.git(*arguments)

    def disturb(self) -> None:
        """Let the working tree or the index differ from the commit."""
        if self.chance.random() < 0.5:
            self.mutate()
            if self.chance.random() < 0.5:
                self.repo.git("add", "-A")
                if self.chance.random() < 0.5:
                    self.mutate()


def sections_of(patch: bytes) -> list[bytes]:
    """Cut a patch into its sections; its lines must be those that our own grammar accepted."""
    parsed = parse(patch)
    assert isinstance(parsed, Patch), parsed
    return [patch[section.start : section.end] for section in parsed.sections]


def spoiled(chance: random.Random, patch: bytes) -> bytes:
    """Change a patch as agents do: shifted numbers, other line ends, a section left out, a byte."""
    what = chance.random()
    if what < 0.4:
        return patch
    if what < 0.6:
        shift = chance.choice([-3, -1, 1, 2, 50])

        def moved(match: re.Match[bytes]) -> bytes:
            return b"@@ -%d%b +%d%b @@" % (
                max(int(match[1]) + shift, 0),
                match[2],
                max(int(match[3]) + shift, 0),
                match[4],
            )

        return re.sub(rb"(?m)^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@", moved, patch)
    if what < 0.7:
        return patch.replace(b"\r\n", b"\n")
    if what < 0.8:
        return re.sub(rb"(?m)^([ +-](?!-- |\+\+ ).*)$", rb"\1\r", patch)
    if what < 0.9:
        return b"".join(
            chance.sample(cut, k=chance.randint(1, len(cut))) if (cut := cut_at_git(patch)) else []
        )
    place = chance.randrange(len(patch) or 1)
    return patch[:place] + bytes([chance.randrange(256)]) + patch[place + 1 :]


def cut_at_git(patch: bytes) -> list[bytes]:
    """Cut wherever a line begins as a section does, real or not."""
    starts = [match.start() for match in re.finditer(rb"(?m)^diff --git ", patch)]
    return [patch[start:end] for start, end in zip(starts, [*starts, len(patch)][1:], strict=True)]


def sound(answer: Answer) -> None:
    """Demand a verdict: accepted or rejected, with a rule for each refusal."""
    assert answer.code in {0, 1}, answer.out
    assert (answer.code == 1) == bool(answer.errors)
    stages = ("parse", "policy", "git_check")
    assert answer.code == 0 or answer.change["stage"] in stages


def agrees_with_git(trial: Trial, patch: bytes, answer: Answer) -> None:
    """Demand that git makes what was accepted: the same base, the same result."""
    if answer.code != 0 or "eol-adapted" in answer.rules:
        return
    repo = trial.repo
    repo.git("apply", "--check", "--whitespace=nowarn", "-", stdin=patch)
    copy = repo.at(repo.path.parent / "copy")
    shutil.rmtree(copy.path, ignore_errors=True)
    shutil.copytree(repo.path, copy.path, symlinks=True)
    parsed = parse(patch)
    assert isinstance(parsed, Patch)
    paths = {path for each in parsed.sections for path in (each.old_path, each.new_path) if path}
    names = b"".join(path.raw + b"\0" for path in paths)
    copy.git("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)
    assert copy.ask("write-tree") == answer.change["base"]
    copy.git("apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
    assert copy.ask("write-tree") == answer.change["after"]


def what_is_accepted_is_what_git_makes(trial: Trial) -> Answer:
    """Try a patch, spoiled or not, in a working tree, disturbed or not."""
    trial.start()
    patch = spoiled(trial.chance, trial.patch())
    trial.disturb()
    answer = check(trial.repo, patch)
    sound(answer)
    agrees_with_git(trial, patch, answer)
    return answer


def the_order_of_sections_changes_no_verdict(trial: Trial) -> Answer:
    """Shuffle a patch's sections."""
    trial.start()
    patch = trial.patch()
    if isinstance(parse(patch), tuple):
        answer = check(trial.repo, patch)
        sound(answer)
        return answer
    trial.disturb()
    answer = check(trial.repo, patch)
    sections = sections_of(patch)
    trial.chance.shuffle(sections)
    again = check(trial.repo, b"".join(sections))
    sound(answer)
    assert (again.verdict, sorted(again.rules)) == (answer.verdict, sorted(answer.rules))
    assert (again.change["id"], again.change["change_id"]) == (
        answer.change["id"],
        answer.change["change_id"],
    )
    return again


def a_damaged_byte_is_refused_or_harmless(trial: Trial) -> Answer:
    """Change one byte that is not the text of an added line."""
    trial.start()
    patch = trial.patch()
    parsed = parse(patch)
    answer = check(trial.repo, patch)
    sound(answer)
    if isinstance(parsed, tuple) or answer.code != 0:
        return answer
    free = set(range(len(patch)))
    for section in parsed.sections:
        for hunk in section.hunks:
            start = hunk.body
            for line in section.body(hunk).split(b"\n"):
                if line.startswith(b"+"):
                    free -= set(range(start + 1, start + len(line) + 1))
                start += len(line) + 1
    for _ in range(3):
        place = trial.chance.choice(sorted(free))
        byte = trial.chance.choice(
            [b" ", b"+", b"-", b"\n", b"\r", b"1", b"9", b"\0", b'"', b"/", b"a", b"\\"]
        )
        damaged = patch[:place] + byte + patch[place + 1 :]
        again = check(trial.repo, damaged)
        sound(again)
        assert again.code == 1 or again.change["after"] == answer.change["after"], (place, byte)
    return answer


PROPERTIES = (
    what_is_accepted_is_what_git_makes,
    the_order_of_sections_changes_no_verdict,
    a_damaged_byte_is_refused_or_harmless,
)


def main() -> int:
    """Run trials until the time is over; tell each failure with its seed."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--minutes", type=float, default=1)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--only", type=int, help="run this one seed")
    options = reader.parse_args()
    seed, failures, seen = options.only or options.seed, 0, {0: 0, 1: 0}
    end = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo.create(Path(folder))
        # After 6,700 loose objects git would pack them behind our back, and "nothing is written" would fail.
        repo.git("config", "gc.auto", "0")
        while time.monotonic() < end:
            chance = random.Random(seed)
            try:
                answer = PROPERTIES[seed % len(PROPERTIES)](Trial(repo, chance))
                seen[answer.code] += 1
            except Exception:  # noqa: BLE001 - whatever failed is told with its seed
                failures += 1
                print(f"seed {seed}:", traceback.format_exc(limit=-3), sep="\n", flush=True)
            if options.only:
                break
            seed += 1
    print(f"seeds {options.seed} to {seed - 1}: {seen[0]} accepted, {seen[1]} refused, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
