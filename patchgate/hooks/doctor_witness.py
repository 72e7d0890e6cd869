"""The witness of `doctor`: start a hook of ours as git would, and see whether this patchgate answers.

Decides what a hook is given so that it answers and does nothing else. `PATCHGATE_WITNESS` names a file to
which `git patchgate hook NAME` appends a line; a shim that sees it hands on even an empty input, and does not
start the hook that it is chained to, which may be slow and change files. `PATCHGATE_SKIP`, which every local
hook honours anyway, keeps it from judging: a judgement is recorded, and tells once of commits that nobody had
seen. A push of nothing is judged as always. A hook that is not ours is never started.

Nothing of the repository changes: a pending receipt, which a skip drops, is put back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from patchgate.errors import PatchgateError
from patchgate.git.hook_files import HookFile
from patchgate.git.hooks_in_force import Surroundings, Worktree
from patchgate.process import run
from patchgate.storage.replace import write_atomically

BARE_PATH = "/usr/bin:/bin"
"""What a program that was not started from a shell hands down as PATH (launchd, most desktops)."""
_REASON = "git patchgate doctor asks who answers"
_SECONDS = 60.0
_AT_ONCE = 4
_PENDING = "patchgate-pending"
_WITNESS_REF = "refs/heads/patchgate-witness"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a hook answered: the version that was reached (None: nobody), its exit code, its last line."""

    version: str | None
    code: int = 0
    said: str = ""


class Witness:
    """Asks the hooks of one worktree; a context manager that owns the folder of the answers.

    Args:
        around: the repository, and the caller's view of it.
        environ: the caller's environment, which git would hand down to a hook.
    """

    def __init__(self, around: Surroundings, environ: Mapping[str, str], worktree: Worktree) -> None:
        self._around = around
        self._environ = environ
        self._worktree = worktree
        self._folder = ""
        self._stack = ExitStack()

    def __enter__(self) -> Witness:
        self._folder = tempfile.mkdtemp(prefix="patchgate-doctor-")
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._stack.enter_context(self._pending_kept())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def ask_each(self, hooks: Mapping[str, HookFile]) -> dict[str, Answer]:
        """Start a hook of ours for each event, a few at a time."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return dict(zip(hooks, pool.map(self.ask, hooks, hooks.values()), strict=True))

    def ask(self, event: str, hook: HookFile, path: str | None = None) -> Answer:
        """Start a hook of ours for an event; `path` is another PATH than the caller's.

        What cannot be started, or takes more than a minute, is reached by nobody.
        """
        place = Path(self._folder, f"{event}.answers")
        place.write_bytes(b"")
        try:
            done = run(
                [hook.path, *self._arguments(event)],
                cwd=self._worktree.path,
                env=self._variables(path) | {"PATCHGATE_WITNESS": str(place)},
                stdin=self._input(event),
                seconds=_SECONDS,
            )
        except PatchgateError as error:
            return Answer(None, said=error.message)
        said = [line for line in (done.err or done.out).split(b"\n") if line.strip()]
        return Answer(_version(place, event), done.code, os.fsdecode(said[-1]) if said else "")

    def _arguments(self, event: str) -> Sequence[str]:
        if event == "commit-msg":
            message = Path(self._folder, "message")
            message.write_text("Ask the hook who answers\n", encoding="utf-8")
            return (str(message),)
        if event == "pre-push":
            return ("patchgate-witness", "patchgate-witness")
        return ("prepared",) if event == "reference-transaction" else ()

    def _input(self, event: str) -> bytes:
        if event != "reference-transaction":
            return b""
        # A new branch where a branch is: its sh has to hand it on, and it brings nothing. Feeding a hook
        # writes no ref.
        repository = self._around.repository
        tips = repository.output("for-each-ref", "--count=1", "--format=%(objectname)", "refs/heads/")
        tip = tips.decode("ascii").strip() or repository.zero_oid
        return f"{repository.zero_oid} {tip} {_WITNESS_REF}\n".encode("ascii")

    def _variables(self, path: str | None) -> dict[str, str]:
        """Build a hook's environment as git does: the caller's, without what other commands left in it."""
        kept = {
            name: value
            for name, value in self._environ.items()
            if name.startswith("GIT_CONFIG") or not name.startswith(("GIT_", "PATCHGATE_", "PRE_COMMIT"))
        }
        found = path if path is not None else kept.get("PATH", os.defpath)
        kept["PATH"] = f"{self._around.programs()}:{found}"
        kept["GIT_DIR"] = self._worktree.git_dir
        if not self._worktree.is_bare:
            kept["GIT_WORK_TREE"] = self._worktree.path
        kept["PATCHGATE_SKIP"] = _REASON
        return kept

    @contextmanager
    def _pending_kept(self) -> Iterator[None]:
        """Put a pending receipt back: somebody's editor may be open for the message of that commit."""
        place = Path(self._worktree.git_dir, _PENDING)
        before = None
        with suppress(OSError):
            before = place.read_bytes()
        try:
            yield
        finally:
            if before is not None:
                with suppress(OSError):
                    write_atomically(place, before, mode=0o600)


def _version(place: Path, event: str) -> str | None:
    """Read which version has answered for an event."""
    with suppress(OSError):
        for line in place.read_text(encoding="utf-8", errors="replace").split("\n"):
            name, _, version = line.partition(" ")
            if name == event:
                return version
    return None
