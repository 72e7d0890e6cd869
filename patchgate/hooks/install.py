"""Install the hooks: which ones, what is remembered of the state before, and that twice is like once.

Decides which hooks a repository gets and what is settled with it. The folder is found by `hooks_folder`, one
hook's place is kept by `hook_places`; its text is a shim of `hooks/shims`, made to fit this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from patchgate import __version__
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.hooks_in_force import LOCAL_EVENTS, SERVER_EVENTS
from patchgate.git.repository import Repository
from patchgate.hooks.fast.prepare import put_copy_here
from patchgate.hooks.hook_places import Placed, put_in
from patchgate.hooks.hooks_folder import (
    HooksFolder,
    folder_notes,
    hooks_folder,
    lock_folder,
    require_ours,
)
from patchgate.hooks.trusted_ref import full_name, trust

_SHIMS = Path(__file__).parent / "shims"
_BLANK = re.compile(rb"@(hook|version|patchgate|mend)@")


def hook_text(name: str, program: str, mend: str) -> bytes:
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
    hooks: tuple[Placed, ...]
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
    folder = hooks_folder(repository, environ)
    require_ours(repository, folder, is_global=is_global)
    trusted = None if trust_ref is None else full_name(repository, trust_ref)
    mend = "git patchgate install" + (" --server" if is_server else "") + (" --global" if is_global else "")
    names = SERVER_EVENTS if is_server else LOCAL_EVENTS
    with lock_folder(repository, folder):
        # What is there was there before us: nobody is asked to mend it.
        warnings = _settle_tips(repository)
        is_news = trusted is not None and trust(repository, trusted)
        hooks = tuple(put_in(folder.path, name, hook_text(name, program, mend)) for name in names)
        done = Installed(folder, hooks, trusted, folder_notes(repository, folder), warnings)
        if not is_server:
            made = put_copy_here(repository)
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
