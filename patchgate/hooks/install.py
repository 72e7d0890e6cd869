"""Install the hooks, and take them out: twice is like once, and what was there before comes back.

Decides which hooks a repository gets and what is settled with it, also the ref whose policy is trusted above
all (`patchgate.trustRef`). Taking out imports nothing that judges: it has to work when all else is broken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from patchgate import __version__
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.active_hooks import LOCAL_EVENTS, SERVER_EVENTS
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
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

_KEY = "patchgate.trustRef"
_LIKE = "name a branch in full, like refs/remotes/origin/main"


_SHIMS = Path(__file__).parent / "shims"
_BLANK = re.compile(rb"@(hook|version|patchgate|mend)@")


def hook_script(name: str, program: str, mend: str) -> bytes:
    """Write the file that git is to run.

    Args:
        name: as git names the hook.
        program: the absolute path of the git-patchgate that it calls.
        mend: the command that installs it again.

    Raises:
        UndecidedError: the shims did not come with this patchgate.
    """
    words = {"hook": name, "version": __version__, "patchgate": program, "mend": mend}
    text = _read(name).replace(b"@shared@\n", _read("shared.sh"))
    return _BLANK.sub(lambda blank: _quoted(words[blank[1].decode("ascii")]), text)


def _read(name: str) -> bytes:
    try:
        return (_SHIMS / name).read_bytes()
    except FileNotFoundError:
        raise UndecidedError("this patchgate came without its hooks", "install patchgate again") from None
    except OSError as error:
        raise UndecidedError(f"{name} of patchgate cannot be read: {error.strerror}") from error


def _quoted(word: str) -> bytes:
    """Quote a word for sh, whatever is in it."""
    return b"'" + os.fsencode(word).replace(b"'", b"'\\''") + b"'"


@dataclass(frozen=True, slots=True)
class Installed:
    """What an install did: each hook, the ref that is trusted from now on, and what there is to say.

    `has_copy`: what the fast path runs was made, or made anew.
    """

    folder: HooksFolder
    hooks: tuple[InstalledHook, ...]
    trust_ref: str | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    has_copy: bool = False

    @property
    def changed(self) -> tuple[str, ...]:
        """The hooks that are new, or newer than they were."""
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
    """Put the hooks where git looks for them; whatever is there runs before them. Twice is like once.

    Args:
        environ: the caller's environment; its `GIT_CONFIG_*` count as they do for git.
        program: the absolute path of git-patchgate.
        is_server: pre-receive, in a bare repository.
        is_global: the folder that every repository shares is meant.
        trust_ref: a ref whose policy judges from now on; None changes nothing.

    Raises:
        UsageError: the repository, the folder or the ref is not of the kind that was asked for.
        UndecidedError: the system refused, or another install is at work.
    """
    if repository.work_tree is None and not is_server:
        raise UsageError(
            "this is a bare repository: git makes no commits here",
            "add --server, or install in one of its worktrees",
        )
    if repository.work_tree is not None and is_server:
        raise UsageError("--server is for a bare repository, and this one has a working tree", "leave it out")
    folder = find_hooks_folder(repository, environ)
    check_folder(repository, folder, is_global=is_global)
    trusted = None if trust_ref is None else resolve_ref(repository, trust_ref)
    mend = "git patchgate install" + (" --server" if is_server else "") + (" --global" if is_global else "")
    names = SERVER_EVENTS if is_server else LOCAL_EVENTS
    with lock_folder(repository, folder):
        # What is there was there before us: nobody is asked to mend it.
        warnings = _settle_tips(repository)
        is_news = trusted is not None and write_trust_ref(repository, trusted)
        hooks = tuple(install_hook(folder.path, name, hook_script(name, program, mend)) for name in names)
        done = Installed(
            folder=folder,
            hooks=hooks,
            trust_ref=trusted,
            notes=describe_folder(repository, folder),
            warnings=warnings,
        )
        if not is_server:
            made = install_copy(repository)
            warnings += (made.warning,) if made.warning else ()
            done = replace(done, warnings=warnings, has_copy=made.has_copy)
        return _recorded(repository, done) if done.changed or is_news else done


def _recorded(repository: Repository, done: Installed) -> Installed:
    from patchgate.ledger.ledger import Ledger

    about = {"folder": done.folder.name, "hooks": list(done.changed), "trust_ref": done.trust_ref}
    warning = Ledger(repository.common_dir).record("installed", about)
    return replace(done, warnings=(*done.warnings, warning)) if warning else done


def _settle_tips(repository: Repository) -> tuple[str, ...]:
    """Record at the first install what all branches, remote-tracking refs and worktrees have."""
    from patchgate.ledger.receipts import settle

    if os.path.exists(os.path.join(repository.common_dir, "patchgate", "settled")):
        return ()
    tips = repository.output("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes")
    listed = repository.output("worktree", "list", "--porcelain", "-z")
    heads = [line[5:] for line in listed.split(b"\0") if line.startswith(b"HEAD ")]
    oids = [oid.decode("ascii") for oid in (*tips.split(), *heads) if oid.strip(b"0")]
    warning = settle(repository.common_dir, oids)
    return (warning,) if warning else ()


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """What was taken out, for each folder where something of ours was; and the ref that was trusted."""

    folders: tuple[tuple[HooksFolder, tuple[RemovedHook, ...]], ...]
    trust_ref: str | None = None


def uninstall_hooks(repository: Repository, environ: Mapping[str, str], *, is_global: bool) -> Uninstalled:
    """Take every hook of ours out of the folder in force and out of git's own; what was there comes back.

    Ledger, receipts and what was settled stay.

    Raises:
        UsageError: the only hooks of ours are in a folder that every repository shares, and it was not meant.
        UndecidedError: the system refused, or an install is at work.
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
            f"no hook of patchgate is in this repository; git runs those in {in_force.name}, for all of them",
            "git patchgate uninstall --global",
        )
    drop_all_pending(repository)
    remove_copy(repository.common_dir)
    return Uninstalled(tuple(found), forget_trust(repository))


def record_uninstall(repository: Repository, done: Uninstalled) -> tuple[str, ...]:
    """Write into the ledger that the hooks are gone; return warnings. It comes last: it may be broken."""
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
        UsageError: there is none, or the name is ambiguous.
    """
    shown = printable(ref)
    if not is_name(ref):
        raise UsageError(f"{shown} is no name of a ref", _LIKE)
    with Objects(repository) as objects:
        found = resolve(objects, ref)
        if found is None:
            remote, _, branch = ref.removeprefix("refs/remotes/").partition("/")
            fetch = f"git fetch {remote} {branch}" if branch else "git branch --all lists what there is"
            raise UsageError(f"there is no ref {shown} here", printable(fetch))
        if found.ref is None:
            raise UsageError(f"{shown} is no ref, so it would stay where it is", _LIKE)
        if objects.header(found.oid + "^{commit}") is None:
            raise UsageError(f"{shown} names no commit", _LIKE)
    return found.ref


def write_trust_ref(repository: Repository, ref: str) -> bool:
    """Write the trusted ref into the repository's config; tell whether it was another before.

    What the other policy has judged for the next commit is judged anew.
    """
    if _trusted(repository) == ref:
        return False
    done = repository.git("config", "--local", "--replace-all", _KEY, ref, answers=ANY_CODE)
    if done.code != 0:
        raise UndecidedError(f"git config could not write {_KEY}", f"git config {_KEY} REF")
    counts = os.fsdecode(repository.git("config", "--get", _KEY, answers=ANY_CODE).out.rstrip(b"\n"))
    if counts != ref:
        raise UndecidedError(
            f"another config file sets {_KEY} to {printable(counts)}, and git reads that one last",
            f"git config --show-origin --get-all {_KEY}",
        )
    drop_all_pending(repository)
    return True


def _trusted(repository: Repository) -> str | None:
    done = repository.git("config", "--local", "--get", _KEY, answers=(0, 1))
    return os.fsdecode(done.out.rstrip(b"\n")) if done.code == 0 else None


def forget_trust(repository: Repository) -> str | None:
    """Take the trusted ref out of the repository's config; return which one it was."""
    ref = _trusted(repository)
    if ref is not None:
        repository.git("config", "--local", "--unset-all", _KEY)
    return ref


def drop_all_pending(repository: Repository) -> None:
    """Remove what pre-commit has left for the transaction, in every worktree."""
    common = Path(repository.common_dir)
    for git_dir in (common, *common.glob("worktrees/*")):
        for name in ("patchgate-pending", "patchgate-landing", "patchgate-shown"):
            with suppress(OSError):
                (git_dir / name).unlink(missing_ok=True)
