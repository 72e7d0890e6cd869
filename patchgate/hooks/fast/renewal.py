"""Keeps the cache of the fast path up to date: the copy of the recogniser, and the compiled policy.

The full check does this for the next commit, if a hook of ours runs. It changes no verdict: if the cache
cannot be written, commits are only slower.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.errors import PatchgateError
from patchgate.git.hook_managers import displaced_hook, read_hook
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.hooks.fast.cache_files import (
    ACTIVE,
    COPY,
    active_line,
    is_copy_current,
    is_policy,
    is_policy_current,
    is_version,
    key_of,
    place_of,
    recogniser,
    sealed_copy,
    sealed_policy,
    stamp,
    tool,
)
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import dataclass, fields

if TYPE_CHECKING:
    from patchgate.git.objects import Header
    from patchgate.policy.policy import Policy

_TEMPORARY = re.compile(r"\.patchgate-[0-9a-f-]+\.(?:new|old)")


def write_copy(common_dir: str, interpreter: str) -> str | None:
    """Write the copy, and let the hooks run it; return a warning if that failed.

    Args:
        common_dir: git's common directory.
        interpreter: the absolute path of the Python that runs this, which is to run the copy too.
    """
    if not _is_recordable(interpreter):
        what = f"a hook cannot start this Python by its path ({printable(interpreter) or 'unknown'})"
        return f"{what}, so every commit gets the slower full check"
    try:
        name, source = recogniser()
        # It contains no path of this machine, so the repository may be moved.
        code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
        # This copy may not read policies compiled for another build of this version.
        _drop_folder(place_of(common_dir, __version__))
        for folder in _folders(common_dir):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        write_atomically(Path(place_of(common_dir, __version__, COPY)), sealed_copy(source, code), mode=0o600)
        write_atomically(Path(place_of(common_dir, ACTIVE)), active_line(interpreter), mode=0o600)
        _drop_versions(common_dir, but=__version__)
    except OSError as error:
        why = printable(error.strerror or str(error))
        return (
            f"the cache for fast commits could not be written ({why}), so commits get the slower full check"
        )
    except (SyntaxError, ValueError):
        return (
            "this patchgate is damaged, so every commit gets the slower full check; install patchgate again"
        )
    return None


def remove_copy(common_dir: str) -> None:
    """Remove the cache of the fast path, first the file that makes the hooks use it."""
    with suppress(OSError):
        os.unlink(place_of(common_dir, ACTIVE))
    _drop_versions(common_dir)
    with suppress(OSError):
        _drop_temporary(place_of(common_dir))
        os.rmdir(place_of(common_dir))


def _is_recordable(interpreter: str) -> bool:
    """Whether the shim, which reads three words of a line, would read this path unchanged."""
    is_plain = interpreter == interpreter.strip(" \t") and "\n" not in interpreter
    return is_plain and os.path.isabs(interpreter) and os.path.isfile(interpreter)


def _folders(common_dir: str) -> tuple[str, str, str]:
    return os.path.join(common_dir, "patchgate"), place_of(common_dir), place_of(common_dir, __version__)


def _drop_versions(common_dir: str, but: str | None = None) -> None:
    """Remove our files in the folders of versions."""
    with suppress(OSError):
        for entry in list(os.scandir(place_of(common_dir))):
            if entry.name != but and is_version(entry.name) and entry.is_dir(follow_symlinks=False):
                _drop_folder(entry.path)


def _drop_folder(folder: str) -> None:
    with suppress(OSError):
        _drop_temporary(folder)
        for name in os.listdir(folder):
            if name == COPY or is_policy(name):
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _drop_temporary(folder: str) -> None:
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            os.unlink(os.path.join(folder, name))


MOST_POLICIES = 32


def save_policy(common_dir: str, key: str, policy: Policy, *, for_agents: bool = False) -> bool:
    """Write a compiled policy; return false, and write none, if nothing can be recognised under it.

    The copy must exist: its folder is that of the policies.

    Args:
        for_agents: compile it for the agent profile instead of that of commits.

    Raises:
        OSError: it cannot be written.
        ValueError: it cannot be serialized.
    """
    from patchgate.hooks.fast.compiled_commands import compile_commands
    from patchgate.policy.compiled_policy import compile_policy
    from patchgate.policy.policy import Profile

    key = _named(key, for_agents)
    place = Path(place_of(common_dir, __version__, key))
    suspicion = compile_policy(policy, Profile.AGENT if for_agents else Profile.COMMIT)
    if suspicion is None or not is_policy(key):
        place.unlink(missing_ok=True)
        return False
    held = {field.name: getattr(suspicion, field.name) for field in fields(suspicion)}
    held["commit_commands"] = compile_commands(policy)
    write_atomically(place, sealed_policy({**held, "tool": tool(), "stamp": stamp()}), mode=0o600)
    _make_room(place.parent)
    return True


def _named(key: str, for_agents: bool) -> str:
    return f"{key}-agent" if for_agents else key


def _make_room(folder: Path) -> None:
    """Remove the oldest policies, so that the folder stays small; another hook may do the same."""
    kept = [entry for entry in os.scandir(folder) if is_policy(entry.name)]
    for entry in sorted(kept, key=lambda each: each.stat().st_mtime_ns)[:-MOST_POLICIES]:
        with suppress(OSError):
            os.unlink(entry.path)


_COSTS_TIME = (OSError, ValueError, PatchgateError)


@dataclass(frozen=True, slots=True)
class RenewedCache:
    """What was written: the copy, the policy of HEAD; a warning if that failed."""

    has_copy: bool = False
    has_policy: bool = False
    warning: str | None = None


def renew(repository: Repository, key: str, policy: Policy, *, for_agents: bool = False) -> None:
    """Update the cache, so that the next commit can be recognised under a policy; never raises.

    Called after a verdict, by a hook that git itself runs.

    Args:
        key: the key of the policy, from `key_of` of its root folder.
        policy: the policy for commits on that folder.
        for_agents: compile it for the agent profile.
    """
    common_dir = repository.common_dir
    if repository.is_receiving:
        return
    try:
        if not is_copy_current(common_dir) and not (_is_used(repository) and _write_own_copy(common_dir)):
            return
        if not is_policy_current(common_dir, _named(key, for_agents)):
            save_policy(common_dir, key, policy, for_agents=for_agents)
    except _COSTS_TIME:
        return


def renew_at_head(repository: Repository, *, for_agents: bool = False) -> None:
    """Run `renew` for the policy of HEAD, which the caller has not read; never raises."""
    if repository.is_receiving:
        return
    try:
        found = _at_head(repository, for_agents=for_agents)
    except _COSTS_TIME:
        return
    for key, policy in found:
        renew(repository, key, policy, for_agents=for_agents)


def install_copy(repository: Repository) -> RenewedCache:
    """Write the copy if it is not the current one."""
    # The path that started it (of the virtual environment), not its target: it exists as long as the program,
    # and an upgrade of Python updates it. Both start in 6 ms.
    if is_copy_current(repository.common_dir):
        return RenewedCache()
    warning = write_copy(repository.common_dir, sys.executable)
    return RenewedCache(warning is None, warning=warning)


def renew_all(repository: Repository) -> RenewedCache:
    """Write the copy, and compile the policy of HEAD, if they are not current."""
    made = install_copy(repository)
    if made.warning is not None:
        return made
    try:
        has_policy = False
        for key, policy in reversed(_at_head(repository)):
            has_policy = not is_policy_current(repository.common_dir, key)
            if has_policy:
                has_policy = save_policy(repository.common_dir, key, policy)
    except (OSError, ValueError):
        return RenewedCache(
            made.has_copy, warning="the policy of HEAD could not be compiled for the fast path"
        )
    except PatchgateError as error:
        return RenewedCache(made.has_copy, warning=error.message)
    return RenewedCache(made.has_copy, has_policy)


def _write_own_copy(common_dir: str) -> bool:
    return write_copy(common_dir, sys.executable) is None


def _is_used(repository: Repository) -> bool:
    """Whether a hook of ours reads the cache: it did before, or git runs one here."""
    # Shared hooks were installed from one repository: in the others, the first full check asks git.
    # That costs two short children.
    if os.path.lexists(place_of(repository.common_dir, ACTIVE)):
        return True
    from patchgate.hooks.hooks_folder import find_hooks_folder

    folder = find_hooks_folder(repository, repository.environment).path
    hook = read_hook(os.path.join(folder, "pre-commit"))
    return hook.is_ours or displaced_hook(hook) is not None


def _at_head(repository: Repository, *, for_agents: bool = False) -> list[tuple[str, Policy]]:
    """Read the policy for commits on HEAD, and its key; nothing if it cannot be used.

    Where it has commands for a commit, the policy of the ref that they are compared with follows.
    """
    from patchgate.git.objects import Objects
    from patchgate.policy.tree_policies import TreePolicies, built_in

    found: dict[str, Policy] = {}
    with Objects(repository) as objects:
        policies = TreePolicies(objects)

        def add(header: Header | None) -> Policy | None:
            if header is None:
                return None
            at = policies.at(policies.key(header.oid))
            if at.fault is not None:
                return None
            return found.setdefault(key_of(objects.tree(header.oid)), at.policy or built_in())

        policy = add(objects.header("HEAD^{tree}"))
        commands = () if policy is None or for_agents else policy.config.commands.values()
        if any("commit" in each.on for each in commands):
            from patchgate.hooks.fast.commit_commands import ORIGINS

            headers = objects.headers([f"{ref.decode('ascii')}^{{tree}}" for ref in ORIGINS])
            add(next(filter(None, headers), None))
    return list(found.items())
