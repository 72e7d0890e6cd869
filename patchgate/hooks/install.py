"""Install and remove the hooks; both may be repeated, and removing restores the previous hooks.

Also sets the ref whose policy is always used (`patchgate.trustRef`), and records the tips at the first
install. Uninstall imports no checks, so that it works when everything else is broken.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import patchgate
from patchgate import __version__
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.active_hooks import LOCAL_EVENTS, SERVER_EVENTS
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, NOTES, default_branch, refs_below
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.git.revisions import is_name, resolve
from patchgate.hooks.fast.renewal import install_copy, remove_copy
from patchgate.hooks.hooks_folder import (
    HooksFolder,
    InstalledHook,
    RemovedHook,
    check_folder,
    default_folder,
    describe_folder,
    find_hooks_folder,
    install_hook,
    lock_folder,
    remove_hook,
)
from patchgate.process.child import run
from patchgate.values import dataclass, replace

_KEY = "patchgate.trustRef"
_LIKE = "use the full name of a branch, such as refs/remotes/origin/main"


_SHIMS = Path(__file__).parent / "shims"
_BLANK = re.compile(rb"@(hook|version|patchgate|interpreter|reinstall)@")
_CALLS_MAIN = b"from patchgate.cli.program import main\n"
_MOST_PROGRAM = 4096
_FIND_PACKAGE = "import os, patchgate; os.write(1, os.fsencode(patchgate.__file__))"
_SECONDS = 20.0


def hook_script(name: str, program: str, reinstall: str, interpreter: str = "") -> bytes:
    """Build the hook file.

    Args:
        name: git's name of the hook.
        program: the absolute path of the git-patchgate that it calls.
        reinstall: the command that installs it again.
        interpreter: the Python that runs it, from `isolated_interpreter`; empty: the program is started.

    Raises:
        UndecidedError: the shims are missing from this patchgate.
    """
    words = {"hook": name, "version": __version__, "patchgate": program}
    words |= {"reinstall": reinstall, "interpreter": interpreter}
    text = _read(name).replace(b"@shared@\n", _read("shared.sh"))
    return _BLANK.sub(lambda blank: _quoted(words[blank[1].decode("ascii")]), text)


def isolated_interpreter(program: str, environ: Mapping[str, str]) -> str:
    """Find the Python that a program names, if that finds this package without `PYTHON*` variables.

    It is started once. A program of another kind (a wrapper, a zipapp) may prepare what it starts.

    Returns:
        Its absolute path; empty if the program itself must be started.
    """
    try:
        with open(program, "rb") as file:
            text = file.read(_MOST_PROGRAM)
    except OSError:
        return ""
    first, second, *_ = (*text.split(b"\n", 2), b"")
    # pip and uv write the second line where the first would be too long for the kernel, or contain a blank.
    named = second.removeprefix(b"'''exec' ") if first == b"#!/bin/sh" else first.removeprefix(b"#!")
    try:
        words = shlex.split(os.fsdecode(named))
        if _CALLS_MAIN not in text or words[1:] not in ([], ["$0", "$@"]) or not os.path.isabs(words[0]):
            return ""
        done = run([words[0], "-E", "-P", "-c", _FIND_PACKAGE], cwd="/", env=environ, seconds=_SECONDS)
    except (ValueError, IndexError, PatchgateError):
        return ""
    is_same = os.path.realpath(done.out) == os.fsencode(os.path.realpath(patchgate.__file__))
    return words[0] if done.code == 0 and is_same else ""


def _read(name: str) -> bytes:
    try:
        return (_SHIMS / name).read_bytes()
    except FileNotFoundError:
        raise UndecidedError("this patchgate lacks its hook scripts", "install patchgate again") from None
    except OSError as error:
        raise UndecidedError(f"{name} of patchgate cannot be read: {error.strerror}") from error


def _quoted(word: str) -> bytes:
    """Quote a word for sh."""
    return b"'" + os.fsencode(word).replace(b"'", b"'\\''") + b"'"


@dataclass(frozen=True, slots=True)
class Installed:
    """The result of an install: each hook, the trusted ref, notes and warnings.

    `has_copy`: the program of the fast path was written.
    """

    folder: HooksFolder
    hooks: tuple[InstalledHook, ...]
    trust_ref: str | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    has_copy: bool = False

    @property
    def changed(self) -> tuple[str, ...]:
        """The hooks that are new or updated."""
        return tuple(hook.name for hook in self.hooks if hook.is_changed)


def install_hooks(
    repository: Repository,
    environ: Mapping[str, str],
    program: str,
    *,
    is_server: bool = False,
    is_global: bool = False,
    trust_ref: str | None = None,
) -> Installed:
    """Install the hooks where git looks for them; existing ones run before ours. May be repeated.

    Args:
        environ: the caller's environment; its `GIT_CONFIG_*` apply as they do for git.
        program: the absolute path of git-patchgate.
        is_server: install pre-receive, in a bare repository.
        is_global: install into the folder that all repositories share.
        trust_ref: the ref whose policy is always used from now on; None changes nothing.

    Raises:
        UsageError: the options do not fit the repository, the folder or the ref.
        UndecidedError: a file could not be written, or another install is running.
    """
    if repository.work_tree is None and not is_server:
        raise UsageError(
            "this is a bare repository, where git makes no commits",
            "add --server, or install in one of its worktrees",
        )
    if repository.work_tree is not None and is_server:
        raise UsageError(
            "--server needs a bare repository, and this one has a working tree", "remove --server"
        )
    folder = find_hooks_folder(repository, environ)
    check_folder(repository, folder, is_global=is_global)
    trusted = None if trust_ref is None else resolve_ref(repository, trust_ref)
    reinstall = (
        "git patchgate install" + (" --server" if is_server else "") + (" --global" if is_global else "")
    )
    names = SERVER_EVENTS if is_server else LOCAL_EVENTS
    interpreter = isolated_interpreter(program, environ)
    with lock_folder(repository, folder):
        # Existing commits are not checked later.
        warnings = (*_settle_tips(repository), *(_without_default(repository) if is_server else ()))
        is_news = trusted is not None and write_trust_ref(repository, trusted)
        hooks = tuple(
            install_hook(folder.path, name, hook_script(name, program, reinstall, interpreter))
            for name in names
        )
        done = Installed(
            folder=folder,
            hooks=hooks,
            trust_ref=trusted,
            notes=(*describe_folder(repository, folder), *_copy_hooks(repository, folder, is_server)),
            warnings=warnings,
        )
        if not is_server:
            made = install_copy(repository)
            warnings += (made.warning,) if made.warning else ()
            done = replace(done, warnings=warnings, has_copy=made.has_copy)
        return _recorded(repository, done) if done.changed or is_news else done


def _copy_hooks(repository: Repository, folder: HooksFolder, is_server: bool) -> tuple[str, ...]:
    """Install the hooks of a server into its default folder, too, if that is another one; return a note.

    Git reads its config for the path of a push: by that of a worktree it may find no core.hooksPath.
    """
    own = default_folder(repository)
    if not is_server or os.path.realpath(own.path) == os.path.realpath(folder.path):
        return ()
    for name in SERVER_EVENTS:
        install_hook(own.path, name, (folder.path / name).read_bytes())
    return (f"{own.name} has them, too, for pushes by the path of a worktree",)


def _recorded(repository: Repository, done: Installed) -> Installed:
    from patchgate.ledger.ledger import Ledger

    about = {"folder": done.folder.name, "hooks": list(done.changed), "trust_ref": done.trust_ref}
    warning = Ledger(repository.common_dir).record("installed", about)
    return replace(done, warnings=(*done.warnings, warning)) if warning else done


def _settle_tips(repository: Repository) -> tuple[str, ...]:
    """Record at the first install the tips of all branches, remote-tracking refs and worktrees."""
    from patchgate.ledger.receipts import settle

    if os.path.exists(os.path.join(repository.common_dir, "patchgate", "settled")):
        return ()
    tips = repository.output("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes")
    listed = repository.output("worktree", "list", "--porcelain", "-z")
    heads = [line[5:] for line in listed.split(b"\0") if line.startswith(b"HEAD ")]
    oids = [oid.decode("ascii") for oid in (*tips.split(), *heads) if oid.strip(b"0")]
    warning = settle(repository.common_dir, oids)
    return (warning,) if warning else ()


def _without_default(repository: Repository) -> tuple[str, ...]:
    """Warn of a server where HEAD does not name the branch with the policy: it judges what has none."""
    from patchgate.policy.tree_policies import TreePolicies

    head, branches = default_branch(repository), refs_below(repository, BRANCHES.rstrip("/"))
    with Objects(repository) as objects:
        headers = objects.headers([oid + "^{tree}" for oid in branches.values()])
        policies, found = TreePolicies(objects), zip(branches, headers, strict=True)
        ruled = [ref for ref, tree in found if tree is not None and any(policies.key(tree.oid))]
    if not branches or head in ruled or (head in branches and not ruled):
        return ()
    which = "has no policy" if head in branches else "is missing"
    shown = "HEAD names no branch" if head is None else f"HEAD names {printable(head, 200)}, which {which}"
    why = "the policy of the default branch judges what has none of its own"
    return (f"{shown}; {why}: git symbolic-ref HEAD refs/heads/NAME",)


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """The removed hooks of each folder, and the ref that was trusted."""

    folders: tuple[tuple[HooksFolder, tuple[RemovedHook, ...]], ...]
    trust_ref: str | None = None


def uninstall_hooks(repository: Repository, environ: Mapping[str, str], *, is_global: bool) -> Uninstalled:
    """Remove our hooks from git's current hooks folder and its default one; restore the previous hooks.

    Ledger, receipts and the recorded tips stay.

    Raises:
        UsageError: our hooks are only in a folder that all repositories share, and `is_global` is false.
        UndecidedError: a file could not be removed, or an install is running.
    """
    in_force = find_hooks_folder(repository, environ)
    own = default_folder(repository)
    folders = [own]
    if os.path.realpath(in_force.path) != os.path.realpath(own.path):
        folders.insert(0, in_force)
    found = []
    for folder in folders:
        if folder.is_shared and not is_global:
            continue
        if not folder.path.is_dir():
            continue
        with lock_folder(repository, folder):
            removed = tuple(
                gone
                for name in (*LOCAL_EVENTS, *SERVER_EVENTS)
                if (gone := remove_hook(folder.path, name)) is not None
            )
        if removed:
            found.append((folder, removed))
    if not found and in_force.is_shared and not is_global:
        raise UsageError(
            f"patchgate is not installed in this repository; git runs the shared hooks in {in_force.name}",
            "git patchgate uninstall --global",
        )
    drop_all_pending(repository)
    remove_copy(repository.common_dir)
    return Uninstalled(tuple(found), forget_trust(repository))


def record_uninstall(repository: Repository, done: Uninstalled) -> tuple[str, ...]:
    """Record the uninstall in the ledger; return warnings. Called last, for the ledger may be broken."""
    from patchgate.ledger.ledger import Ledger

    ledger = Ledger(repository.common_dir)
    warnings = [
        ledger.record("uninstalled", {"folder": folder.name, "hooks": [hook.name for hook in removed]})
        for folder, removed in done.folders
    ]
    return tuple(warning for warning in warnings if warning)


def resolve_ref(repository: Repository, ref: str) -> str:
    """Find the full name of a ref that names a commit.

    Raises:
        UsageError: the ref is missing, or the name is ambiguous.
    """
    shown = printable(ref)
    if not is_name(ref):
        raise UsageError(f"{shown} is not a valid ref name", _LIKE)
    with Objects(repository) as objects:
        found = resolve(objects, ref)
        if found is None:
            remote, _, branch = ref.removeprefix("refs/remotes/").partition("/")
            words = f"{in_shell(remote, 'REMOTE')} {in_shell(branch, 'BRANCH')}"
            fetch = f"git fetch {words}" if branch else "git branch --all lists the branches"
            raise UsageError(f"unknown ref {shown}", fetch)
        if found.ref is None:
            raise UsageError(f"{shown} is not a ref, so it would never move", _LIKE)
        if objects.header(found.oid + "^{commit}") is None:
            raise UsageError(f"{shown} does not name a commit", _LIKE)
    if found.ref.startswith(NOTES):
        raise UsageError(f"{shown} is below {NOTES}, where anybody may push without owners", _LIKE)
    return found.ref


def write_trust_ref(repository: Repository, ref: str) -> bool:
    """Write the trusted ref to the repository's config; return whether it changed.

    Pending receipts of the other policy are dropped.
    """
    if _trusted(repository) == ref:
        return False
    done = repository.git("config", "--local", "--replace-all", _KEY, ref, answers=ANY_CODE)
    if done.code != 0:
        raise UndecidedError(f"git config could not write {_KEY}", f"git config {_KEY} REF")
    counts = os.fsdecode(repository.git("config", "--get", _KEY, answers=ANY_CODE).out.rstrip(b"\n"))
    if counts != ref:
        raise UndecidedError(
            f"another config file sets {_KEY} to {printable(counts)}, and takes precedence",
            f"git config --show-origin --get-all {_KEY}",
        )
    drop_all_pending(repository)
    return True


def _trusted(repository: Repository) -> str | None:
    done = repository.git("config", "--local", "--get", _KEY, answers=(0, 1))
    return os.fsdecode(done.out.rstrip(b"\n")) if done.code == 0 else None


def forget_trust(repository: Repository) -> str | None:
    """Unset the trusted ref in the repository's config; return its value."""
    ref = _trusted(repository)
    if ref is not None:
        repository.git("config", "--local", "--unset-all", _KEY)
    return ref


def drop_all_pending(repository: Repository) -> None:
    """Remove the pending receipts of every worktree."""
    common = Path(repository.common_dir)
    for git_dir in (common, *common.glob("worktrees/*")):
        for name in (
            "patchgate-pending",
            "patchgate-landing",
            "patchgate-shown",
            "patchgate-asked",
            "patchgate-merging",
        ):
            with suppress(OSError):
                (git_dir / name).unlink(missing_ok=True)
