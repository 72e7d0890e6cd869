"""Writes the first policy of a repository; overwrites nothing."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.path import RepoPath, faults
from patchgate.git.repository import Repository
from patchgate.git.working_tree import index_names
from patchgate.policy.config import MAX_PYPROJECT_BYTES, parse, parse_pyproject
from patchgate.policy.file_kinds import is_suppression_file
from patchgate.policy.policy import Policy
from patchgate.storage.atomic_write import write_atomically

FIRST_POLICY = """\
# What may land in this repository. `git patchgate explain RULE` explains a rule,
# `git patchgate explain --path P` shows which line here decides about a path.
# A commit that changes this file must change nothing else: no change is checked by its own policy.

[policy]
# Files and folders that no change may touch, by path. Deleting them and moving them away is refused too.
deny_prefixes = []
# The same by pattern, as in .gitignore. These are names of files that are almost always secrets.
deny = [".env", "*.pem", "*.key", "id_rsa", "id_ed25519"]
# Denied paths that may still be deleted, to clean up.
allow_delete = []
# Warn about larger files: every clone keeps them forever.
max_file_bytes = 1_048_576

# Commits of people. Reviewers skim larger changes, so these limits warn.
[policy.commit]
max_files = 50
max_added_lines = 2000
# Caches and build results, such as *.pyc and node_modules/. `git patchgate explain deny-class` lists the
# names. To commit such files, remove "artifact".
deny_classes = ["artifact"]
# Submodules: "bump" allows updating existing ones, true also adding new ones, false neither.
allow_gitlinks = "bump"

# Patches, edits and commits of coding agents. They must be small enough to review, so these limits refuse.
[policy.agent]
max_files = 5
max_added_lines = 400
deny_classes = ["lock", "binary", "artifact"]
# What an agent may change, but not add.
deny_new_classes = ["media", "output"]
# Submodules: as above.
allow_gitlinks = false

[content]
# Private keys and tokens in known formats, in added lines only.
secrets = true
# Conflict markers that a merge left.
conflict_markers = true

[apply]
# Whether a closed fence or text around a patch, its headers and its counts are repaired before it is judged.
repair = false
# What `--input` may name besides a unified diff: "envelope", "search-replace", "edits", "files", "auto".
inputs = ["diff"]

# Commands that `git patchgate apply` runs in a scratch tree before a patch of an agent lands. Without them a
# patch is checked, but not tested.
# [commands.lint]
# kind = "lint"
# command = ["ruff", "check", "--no-fix", "."]
# [commands.tests]
# kind = "test"
# command = ["python", "-m", "pytest", "-q"]
# env = { PYTHONPATH = "src" }    # an editable install would test the unpatched code
# timeout = "5m"
"""
"""The policy that `init` writes: the defaults, each with its reason."""
_GOVERNANCE = """
# Who must approve changes to some paths before they land on a protected branch; "@policy" means this file and
# the other control files. `signers` are names in .patchgate/allowed_signers.
# [[owners]]
# paths = ["@policy"]
# signers = ["alice@example.com"]

# Names this repository in signed approvals. A fork changes it: approvals given here do not count there.
[governance]
id = "{id}"
"""
_REPAIRS = ("repair = false", "repair = true")
_ADDS_SUBMODULES = ('allow_gitlinks = "bump"', "allow_gitlinks = true")


_MOST_LISTED = 16 << 10
"""In bytes; a longer policy would exceed the size limit of a policy."""
_SUPPRESSIONS = """
# Suppression files: lists of findings that a tool ignores. `git patchgate verify` refuses a change that adds
# to them together with code, or that changes them while something got worse.
[verify]
suppressions = [
{entries}
]
"""


def exception_lists(repository: Repository) -> tuple[str, ...]:
    """Find the tracked suppression files of other tools, if a policy can name them.

    Raises:
        UndecidedError: the index cannot be read.
    """
    names = (record[1:] for records in index_names(repository) for record in records)
    paths = (path for path in map(RepoPath.from_git, names) if is_suppression_file(path))
    found = []
    for path in paths:
        with suppress(UnicodeDecodeError):
            found += [] if faults(path) else [path.raw.decode("utf-8")]
    return tuple(found)


def _text(lists: Sequence[str], *, adds_submodules: bool, repairs: bool) -> str:
    policy = FIRST_POLICY.replace(*_ADDS_SUBMODULES) if adds_submodules else FIRST_POLICY
    policy = policy.replace(*_REPAIRS) if repairs else policy
    policy += _GOVERNANCE.format(id=secrets.token_hex(8))
    if not lists:
        return policy
    # A JSON string is also a basic string of TOML.
    lines = [f"    {json.dumps(name, ensure_ascii=False)}," for name in lists]
    lengths = accumulate(len(line.encode("utf-8")) for line in lines)
    kept = [line for line, length in zip(lines, lengths, strict=True) if length <= _MOST_LISTED]
    return policy + _SUPPRESSIONS.format(entries="\n".join(kept))


def existing_policy_file(repository: Repository) -> str | None:
    """Return the file of the working tree that holds a policy, committed or not; None if there is none.

    Any `patchgate.toml` counts, a broken link included; a `pyproject.toml` only with our table.
    """
    place = _place(repository)
    if os.path.lexists(place):
        return "patchgate.toml"
    try:
        with open(os.path.join(os.path.dirname(place), "pyproject.toml"), "rb") as file:
            speaks = parse_pyproject(file.read(MAX_PYPROJECT_BYTES + 1), "pyproject.toml") is not None
    except ConfigError:
        speaks = True
    except OSError:
        speaks = False
    return "pyproject.toml" if speaks else None


def write_first_policy(
    repository: Repository, lists: Sequence[str], *, adds_submodules: bool, repairs: bool = False
) -> Policy:
    """Write `patchgate.toml` at the root of the working tree; return its policy.

    Args:
        lists: the suppression files of other tools that it names.
        adds_submodules: whether commits of people may add submodules.
        repairs: whether mechanical faults of patches are repaired.

    Raises:
        UsageError: there is no working tree, or the file exists.
        UndecidedError: it could not be written.
    """
    raw = _text(lists, adds_submodules=adds_submodules, repairs=repairs).encode("utf-8")
    try:
        write_atomically(Path(_place(repository)), raw, exist_ok=False)
    except FileExistsError as error:
        raise UsageError("patchgate.toml already exists", "edit it, or remove it first") from error
    except OSError as error:
        raise UndecidedError(f"patchgate.toml could not be written: {error.strerror}") from error
    return Policy(parse(raw, "patchgate.toml"), "patchgate.toml", raw)


def _place(repository: Repository) -> str:
    if repository.work_tree is None:
        raise UsageError("a bare repository has no working tree", "run init in a clone")
    return os.path.join(repository.work_tree, "patchgate.toml")
