"""Print which paths each reader of patches believes a patch touches, for the corpus of the tests.

    python -m bench.touched [PATCH …]

The readers: our own grammar, C git (`git apply --numstat -z`), libgit2 (pygit2), unidiff and whatthepatch.
The last two are optional; a reader that fails says so in its place. No two agree on all of them, which is why
a verdict is about what git makes, never about one reader's list.
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from patchgate.git.quoting import printable, quote_path
from patchgate.patches.patch_parser import parse

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
Reader = Callable[[bytes], Iterable[bytes]]


class RefusedError(Exception):
    """A reader does not take a patch."""


def ours(raw: bytes) -> Iterable[bytes]:
    """Name both sides of each section of our own grammar."""
    patch = parse(raw)
    if isinstance(patch, tuple):
        raise RefusedError(patch[0].rule)
    return [path.raw for each in patch.sections for path in (each.old_path, each.new_path) if path]


def git(raw: bytes) -> Iterable[bytes]:
    """Ask `git apply --numstat -z`, outside of any repository."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["git", "apply", "--numstat", "-z", "-"], input=raw, cwd=folder, capture_output=True, check=False
        )
    if done.returncode != 0:
        raise RefusedError(done.stderr.decode("utf-8", "replace").strip().split("\n")[-1])
    return [record.split(b"\t", 2)[2] for record in done.stdout.split(b"\0") if record]


def libgit2(raw: bytes) -> Iterable[bytes]:
    """Ask `Diff.parse_diff`; it names both sides of each delta."""
    import pygit2

    try:
        diff = pygit2.Diff.parse_diff(raw)
    except pygit2.GitError as error:
        raise RefusedError(str(error)) from error
    return [side.raw_path for delta in diff.deltas for side in (delta.old_file, delta.new_file)]


def unidiff(raw: bytes) -> Iterable[bytes]:
    """Ask unidiff for the path of each file."""
    module = _optional("unidiff")
    try:
        patch = module.PatchSet(raw.decode("utf-8", "surrogateescape"))
    except module.UnidiffParseError as error:
        raise RefusedError(str(error)) from error
    return [str(file.path).encode("utf-8", "surrogateescape") for file in patch]


def whatthepatch(raw: bytes) -> Iterable[bytes]:
    """Ask whatthepatch for both paths of each header."""
    module = _optional("whatthepatch")
    headers = [each.header for each in module.parse_patch(raw.decode("utf-8", "surrogateescape"))]
    paths = [path for each in headers if each for path in (each.old_path, each.new_path) if path]
    # It leaves git's prefixes on, or takes them off, as the header pleases.
    return [re.sub(rb"^[ab]/", b"", str(path).encode("utf-8", "surrogateescape"), count=1) for path in paths]


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RefusedError("not installed") from error


READERS: tuple[Reader, ...] = (ours, git, libgit2, unidiff, whatthepatch)


def believed(reader: Reader, raw: bytes) -> str:
    """Write what one reader believes: sorted names, or why it does not say."""
    try:
        names = {name for name in reader(raw) if name != b"/dev/null"}
    except RefusedError as refusal:
        return f"refused: {printable(str(refusal), 60)}"
    except Exception as error:  # noqa: BLE001 - another reader's crash is a result too
        return f"crashed: {type(error).__name__}"
    return ", ".join(sorted(quote_path(name) for name in names)) or "nothing"


def main() -> None:
    """Print a block for each patch, and at the end how often each reader differs from ours."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("patches", nargs="*", type=Path)
    files = reader.parse_args().patches or sorted(CORPUS.glob("*/*.patch"))
    missed = dict.fromkeys((each.__name__ for each in READERS), 0)
    for file in files:
        raw = file.read_bytes()
        told = {each.__name__: believed(each, raw) for each in READERS}
        print(f"{file.parent.name}/{file.name}")
        for name, text in told.items():
            missed[name] += text != told["ours"] and not (_is_no(text) and _is_no(told["ours"]))
            print(f"  {name:13}{text}")
    print(f"{len(files)} patches; not as ours: ", end="")
    print(", ".join(f"{name} {count}" for name, count in missed.items() if name != "ours"))


def _is_no(text: str) -> bool:
    return text.startswith(("refused:", "crashed:"))


if __name__ == "__main__":
    main()
