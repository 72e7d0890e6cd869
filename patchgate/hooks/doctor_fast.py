"""Does the fast path work: the copy that the hooks run, its interpreter, and the compiled policies.

Decides what of it a person is told. Nothing here is an error: where the fast path fails, every commit is
judged in full, and the next one makes anew what it can.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from patchgate import __version__
from patchgate.errors import PatchgateError
from patchgate.git.hooks_in_force import Worktree
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.hooks.doctor_findings import Finding, Hook
from patchgate.hooks.fast.files import (
    ACTIVE,
    COPY,
    Active,
    active_in,
    is_whole_copy,
    key_of,
    place_of,
    policy_in,
    read_copy,
    stamp_of,
)
from patchgate.process import run
from patchgate.report.rules import Level
from patchgate.report.wording import safe

_ASK = "import sys, _frozen_importlib_external as e; print(sys.hexversion, e.MAGIC_NUMBER.hex())"
_SECONDS = 20.0
_SLOW = "so every commit is judged in full"


class Place(Protocol):
    """A worktree and the hooks that were looked at in it."""

    @property
    def worktree(self) -> Worktree:
        """The worktree."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Its hooks."""


@dataclass(frozen=True, slots=True)
class _Python:
    """What an interpreter says of itself: its version as a number, and what begins code compiled for it."""

    hexversion: int
    magic: bytes


def fast_findings(repository: Repository, places: Sequence[Place], git: str) -> Iterator[Finding]:
    """Tell what keeps the fast path from working, where a hook of ours reads what it keeps.

    Args:
        places: the worktrees that were looked at.
        git: how a command for this repository begins.
    """
    ours = [place.worktree for place in places if _has_shim(place)]
    if not ours:
        return
    remedy = f"{git} patchgate doctor --fix"
    is_shared = all(each.hooks_path and each.hooks_path.scope in {"global", "system"} for each in ours)
    try:
        active = active_in(repository.common_dir)
    except FileNotFoundError:
        if not is_shared:
            # The first commit under hooks that many repositories share makes it.
            place = safe(place_of(repository.common_dir, ACTIVE))
            yield _slow(f"there is no {place}, {_SLOW}", remedy)
        return
    except OSError as error:
        place = safe(place_of(repository.common_dir, ACTIVE))
        yield _slow(f"{place} cannot be read ({error.strerror}), {_SLOW}", remedy)
        return
    fault, python = _fault_of_copy(repository, active)
    if fault is not None:
        yield _slow(fault, remedy)
    elif active is not None and python is not None:
        yield from _about_policies(repository, ours, active, python, remedy)


def _has_shim(place: Place) -> bool:
    return not place.worktree.is_bare and any(
        hook.event == "pre-commit" and hook.ours is not None for hook in place.hooks
    )


def _slow(what: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, what, remedy, ("pre-commit",), is_mended_by_renewal=True)


def _fault_of_copy(repository: Repository, active: Active | None) -> tuple[str | None, _Python | None]:
    """Say in one sentence why the shim could not run the copy, or would not run this patchgate's."""
    if active is None:
        return f"{safe(place_of(repository.common_dir, ACTIVE))} is damaged, {_SLOW}", None
    if active.version != __version__:
        said = f"the fast path is that of patchgate {safe(active.version, 40)}, and this is {__version__}"
        return f"{said}; the next commit is judged in full", None
    python = _asked(repository, active.interpreter)
    if python is None:
        gone = "is gone" if not os.path.exists(active.interpreter) else "is no Python that starts"
        return f"{safe(active.interpreter)}, which runs the fast path, {gone}, {_SLOW}", None
    place = safe(place_of(repository.common_dir, active.version, COPY))
    try:
        copy = read_copy(repository.common_dir, active.version)
    except FileNotFoundError:
        return f"there is no {place}, {_SLOW}", None
    except OSError as error:
        return f"{place} cannot be read ({error.strerror}), {_SLOW}", None
    if copy[:4] != python.magic:
        return f"{place} was made for another Python than {safe(active.interpreter)}, {_SLOW}", None
    if not is_whole_copy(copy, python.magic):
        return f"{place} is damaged, or of another build of patchgate {__version__}", None
    return None, python


def _asked(repository: Repository, interpreter: str) -> _Python | None:
    """Start the interpreter as the shim does."""
    try:
        argv = [interpreter, "-I", "-S", "-c", _ASK]
        done = run(argv, cwd=repository.git_dir, env=repository.environment, seconds=_SECONDS)
        number, magic = done.out.split()
        return _Python(int(number), bytes.fromhex(magic.decode("ascii")))
    except (PatchgateError, OSError, ValueError):
        return None


def _about_policies(
    repository: Repository, worktrees: Sequence[Worktree], active: Active, python: _Python, remedy: str
) -> Iterator[Finding]:
    """Tell of compiled policies that cannot be used, each once.

    One that is not there is no finding: so it is after an install, and after every change of the policy.
    """
    seen = set()
    with Objects(repository) as objects:
        for worktree in worktrees:
            header = objects.header(worktree.head + "^{tree}") if worktree.head else None
            key = key_of(objects.tree(header.oid)) if header is not None else None
            if key is None or key in seen:
                continue
            seen.add(key)
            fault = _fault_of_policy(repository, active, key, python)
            if fault is not None:
                what = f"the compiled policy at HEAD is {fault}; the next commit is judged in full"
                yield Finding(Level.NOTE, what, remedy, ("pre-commit",), is_mended_by_renewal=True)


def _fault_of_policy(repository: Repository, active: Active, key: str, python: _Python) -> str | None:
    """Say what keeps the recogniser from using a compiled policy, by what it looks at itself."""
    try:
        held = policy_in(repository.common_dir, active.version, key)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"not readable ({error.strerror})"
    if held is None:
        return "damaged"
    made_by, stamp = held.get("tool"), held.get("stamp")
    if not (isinstance(made_by, tuple) and isinstance(stamp, tuple) and len(made_by) == 3 and stamp):
        return "damaged"
    try:
        is_there = stamp_of(str(stamp[0])) == stamp
    except OSError:
        is_there = False
    is_of_this = made_by[0] == active.version and made_by[2] == python.hexversion
    return None if is_there and is_of_this else "of another patchgate or another Python"
