"""Builders for the tests of patches: a repository in a temporary folder, with a pinned git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from patchgate.patches.patch_parser import Fault, Patch, PatchSection, parse

CORPUS = Path(__file__).parent.parent / "corpus"
APPLY = ("apply", "--cached", "-p1", "--whitespace=nowarn", "--no-ignore-whitespace", "-")
HEAD = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"


class PatchWorld:
    """One repository; files go straight into the index, so that any name and any bytes can be made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")

    def git(
        self, *arguments: str, stdin: bytes = b"", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git here, with nobody's config and a fixed locale."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "LC_ALL": "C",
        }
        done = subprocess.run(
            ["git", "-c", "core.looseCompression=0", *arguments],
            cwd=self.folder,
            env=environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def put(self, files: Mapping[bytes, tuple[str, bytes]]) -> str:
        """Make the index hold exactly these files (mode and content); return its tree."""
        self.git("read-tree", "--empty")
        entries = b""
        for name, (mode, content) in files.items():
            oid = self.git("hash-object", "-w", "--stdin", stdin=content).stdout.strip()
            entries += mode.encode("ascii") + b" " + oid + b"\t" + name + b"\0"
        self.git("update-index", "-z", "--index-info", stdin=entries)
        return self.tree()

    def tree(self) -> str:
        """Write the index as a tree."""
        return self.git("write-tree").stdout.decode("ascii").strip()

    def files(self) -> dict[bytes, tuple[str, bytes]]:
        """Read the index back: mode and content of each file."""
        listed = self.git("ls-files", "-s", "-z").stdout.split(b"\0")[:-1]
        found: dict[bytes, tuple[str, bytes]] = {}
        for entry in listed:
            facts, _, name = entry.partition(b"\t")
            mode, oid, _ = facts.decode("ascii").split(" ")
            found[name] = mode, self.git("cat-file", "blob", oid).stdout
        return found

    def apply(self, patch: bytes) -> bool:
        """Apply a patch to the index; false where git refuses, or complains and still says yes."""
        done = self.git(*APPLY, stdin=patch, check=False)
        return done.returncode == 0 and b"error:" not in done.stderr

    def diff(self, before: str, after: str, *options: str, quote: bool = True) -> bytes:
        """Let git write the patch between two trees."""
        quoting = f"core.quotePath={str(quote).lower()}"
        return self.git("-c", quoting, "diff-tree", "-p", "-r", *options, before, after).stdout


def accepted(raw: bytes) -> Patch:
    """Parse a patch that must be accepted."""
    patch = parse(raw)
    assert isinstance(patch, Patch), patch
    return patch


def refused(raw: bytes) -> tuple[Fault, ...]:
    """Parse a patch that must be refused."""
    faults = parse(raw)
    assert not isinstance(faults, Patch)
    assert faults
    return faults


def only_section(hunks: bytes) -> PatchSection:
    """Parse a patch of the file `f` from its hunks alone."""
    (section,) = accepted(HEAD + hunks).sections
    return section
