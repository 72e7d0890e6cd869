"""What the full tier does for the next commit: it keeps ready what the fast path needs.

Decides when the copy of the recogniser and the compiled policy are made anew, and where: only where a hook of
ours runs, for nobody else would read them. It changes no verdict: what cannot be written costs time alone.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.errors import PatchgateError
from patchgate.git.hook_files import displaced_hook, read_hook
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

if TYPE_CHECKING:
    from patchgate.policy.policy import Policy

_TEMPORARY = re.compile(r"\.patchgate-[0-9a-f-]+\.(?:new|old)")


def write_copy(common_dir: str, interpreter: str) -> str | None:
    """Make the copy, and then let the hooks run it; return a warning where that could not be done.

    Args:
        common_dir: git's common directory.
        interpreter: the absolute path of the Python that runs this, which is to run the copy too.
    """
    if not _is_recordable(interpreter):
        what = f"a hook cannot start this Python by its name ({printable(interpreter) or 'it has none'})"
        return f"{what}; every commit is judged in full"
    try:
        name, source = recogniser()
        # No path of this machine is in it: it may be moved with its repository.
        code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
        # The policies that were compiled for another build of this version may not be what this copy reads.
        _drop_folder(place_of(common_dir, __version__))
        for folder in _folders(common_dir):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        write_atomically(Path(place_of(common_dir, __version__, COPY)), sealed_copy(source, code), mode=0o600)
        write_atomically(Path(place_of(common_dir, ACTIVE)), active_line(interpreter), mode=0o600)
        _drop_versions(common_dir, but=__version__)
    except OSError as error:
        why = printable(error.strerror or str(error))
        return f"what makes a clean commit fast could not be written ({why}); every commit is judged in full"
    except (SyntaxError, ValueError):
        return "this patchgate is damaged, so every commit is judged in full; install patchgate again"
    return None


def remove_copy(common_dir: str) -> None:
    """Remove everything of the fast path, first what makes the hooks use it; what is not ours stays."""
    with suppress(OSError):
        os.unlink(place_of(common_dir, ACTIVE))
    _drop_versions(common_dir)
    with suppress(OSError):
        _drop_temporary(place_of(common_dir))
        os.rmdir(place_of(common_dir))


def _is_recordable(interpreter: str) -> bool:
    """Tell whether the shim, which reads three words of a line, gets the very path."""
    is_plain = interpreter == interpreter.strip(" \t") and "\n" not in interpreter
    return is_plain and os.path.isabs(interpreter) and os.path.isfile(interpreter)


def _folders(common_dir: str) -> tuple[str, str, str]:
    return os.path.join(common_dir, "patchgate"), place_of(common_dir), place_of(common_dir, __version__)


def _drop_versions(common_dir: str, but: str | None = None) -> None:
    """Remove the folders of versions, as far as what is in them is ours."""
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


def save_policy(common_dir: str, key: str, policy: Policy) -> bool:
    """Keep a policy compiled; false where nothing can be recognised under it, and none is kept then.

    The copy is there already: its folder is that of the policies.

    Raises:
        OSError: as the system gave it.
        ValueError: it cannot be written down.
    """
    from patchgate.hooks.fast.compiled_policy import compile_policy

    place = Path(place_of(common_dir, __version__, key))
    suspicion = compile_policy(policy)
    if suspicion is None or not is_policy(key):
        place.unlink(missing_ok=True)
        return False
    held = {field.name: getattr(suspicion, field.name) for field in fields(suspicion)}
    write_atomically(place, sealed_policy({**held, "tool": tool(), "stamp": stamp()}), mode=0o600)
    _make_room(place.parent)
    return True


def _make_room(folder: Path) -> None:
    """Drop the oldest, so that the folder never grows; another hook may be doing the same."""
    kept = [entry for entry in os.scandir(folder) if is_policy(entry.name)]
    for entry in sorted(kept, key=lambda each: each.stat().st_mtime_ns)[:-MOST_POLICIES]:
        with suppress(OSError):
            os.unlink(entry.path)


_COSTS_TIME = (OSError, ValueError, PatchgateError)


@dataclass(frozen=True, slots=True)
class RenewedCache:
    """What was made anew: the copy, the policy of HEAD; and a warning where that could not be done."""

    has_copy: bool = False
    has_policy: bool = False
    warning: str | None = None


def renew(repository: Repository, key: str, policy: Policy) -> None:
    """Keep ready what the fast path needs to recognise the next commit under a policy; never raises.

    Called after a verdict, by a hook of git's that is run by git itself.

    Args:
        key: the policy's, from `key_of` of its root folder.
        policy: the one that judges what is committed on that folder.
    """
    common_dir = repository.common_dir
    if repository.is_receiving:
        return
    try:
        if not is_copy_current(common_dir) and not (_is_used(repository) and _write_own_copy(common_dir)):
            return
        if not is_policy_current(common_dir, key):
            save_policy(common_dir, key, policy)
    except _COSTS_TIME:
        return


def renew_at_head(repository: Repository) -> None:
    """Do as `renew` for the policy of HEAD, where the caller has not read it; never raises."""
    if repository.is_receiving:
        return
    try:
        found = _at_head(repository)
    except _COSTS_TIME:
        return
    if found is not None:
        renew(repository, *found)


def install_copy(repository: Repository) -> RenewedCache:
    """Make the copy, where it is not what this patchgate makes; twice is like once."""
    # By the name that it was started by (a virtual environment's own), not the file behind it: that one lives
    # and dies with the program, an upgrade of Python moves it along, and both start in 6 ms.
    if is_copy_current(repository.common_dir):
        return RenewedCache()
    warning = write_copy(repository.common_dir, sys.executable)
    return RenewedCache(warning is None, warning=warning)


def renew_all(repository: Repository) -> RenewedCache:
    """Make the copy, and compile the policy of HEAD, where they are not what this patchgate makes."""
    made = install_copy(repository)
    if made.warning is not None:
        return made
    try:
        found = _at_head(repository)
        has_policy = found is not None and not is_policy_current(repository.common_dir, found[0])
        if found is not None and has_policy:
            has_policy = save_policy(repository.common_dir, *found)
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
    """Tell whether a hook of ours reads this: it did before, or git runs one here."""
    # Hooks that many repositories share were installed in one of them: in each of the others the first commit
    # that is judged in full asks git, at the price of two short children.
    if os.path.lexists(place_of(repository.common_dir, ACTIVE)):
        return True
    from patchgate.hooks.hooks_folder import find_hooks_folder

    folder = find_hooks_folder(repository, repository.environment).path
    hook = read_hook(os.path.join(folder, "pre-commit"))
    return hook.is_ours or displaced_hook(hook) is not None


def _at_head(repository: Repository) -> tuple[str, Policy] | None:
    """Read the policy that judges what is committed on HEAD, and its key; None where none can be used."""
    from patchgate.git.objects import Objects
    from patchgate.policy.tree_policies import TreePolicies, built_in

    with Objects(repository) as objects:
        header = objects.header("HEAD^{tree}")
        if header is None:
            return None
        policies = TreePolicies(objects)
        found = policies.at(policies.key(header.oid))
        if found.fault is not None:
            return None
        return key_of(objects.tree(header.oid)), found.policy or built_in()
