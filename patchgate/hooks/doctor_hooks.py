"""Problems with the hooks of one worktree: one sentence each, and one command that fixes it.

An error means that a hook would not run, or would refuse everything. Also starts the hooks to see whether
they reach patchgate, with an environment in which they check nothing.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from patchgate import __version__
from patchgate.commands.environment import BARE_PATH
from patchgate.errors import PatchgateError
from patchgate.git.active_hooks import CONFIG_HOOKS_SINCE, ConfigSetting, GitEnvironment, Worktree
from patchgate.git.hook_managers import HOOK_FORMAT, HookFile, ManagedHook
from patchgate.process.child import run
from patchgate.report.rules import Level
from patchgate.report.wording import safe
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import dataclass

# These run the hook that they found, as NAME.legacy, before their own. Nothing runs lefthook's NAME.old.
_RUN_LEGACY = {"pre-commit", "prek"}


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One problem that doctor reports: safe to print, with the command that fixes it if there is one.

    An error means that a hook would not run or would refuse everything, or that a program of the policy is
    missing. `events` are the hooks that it is about. `--fix` fixes it if `is_fixed_by_install` or
    `is_fixed_by_renewal` (of the fast path's cache).
    """

    level: Level
    what: str
    remedy: str | None = None
    events: tuple[str, ...] = ()
    is_fixed_by_install: bool = False
    is_fixed_by_renewal: bool = False


@dataclass(frozen=True, slots=True)
class HookProbe:
    """One event: its hook file, the hooks chained to it or displaced by it, and how ours answered.

    `answer` is None if no hook was started, `managed` if no hook manager is known at this event.
    """

    event: str
    file: HookFile
    previous: HookFile | None = None
    displaced: HookFile | None = None
    answer: HookAnswer | None = None
    managed: ManagedHook | None = None

    @property
    def is_through_manager(self) -> bool:
        """Whether a hook manager runs patchgate at this event, according to its config."""
        return self.managed is not None and self.managed.has_patchgate and self.file.is_executable

    @property
    def is_run_by_other_tool(self) -> bool:
        """Whether another tool moved our hook away and still runs it."""
        moved = self.displaced
        if moved is None or not moved.path.endswith(".legacy"):
            return False
        return moved.is_executable and self.file.writer in _RUN_LEGACY

    @property
    def ours(self) -> HookFile | None:
        """Our hook file that would run at this event, if any."""
        if self.file.is_ours:
            return self.file if self.file.is_executable else None
        return self.displaced if self.is_run_by_other_tool else None

    @property
    def is_reached(self) -> bool:
        """Whether the hook reached a patchgate."""
        return self.answer is not None and self.answer.version is not None

    @property
    def is_working(self) -> bool:
        """Whether it works in the environment of the caller."""
        is_well = self.answer is not None and self.answer.code == 0 and not self.file.is_orphan
        return self.is_reached and self.file.is_ours and is_well


@dataclass(frozen=True, slots=True)
class WorktreeHooks:
    """One worktree, its hooks, and the findings about it."""

    worktree: Worktree
    hooks: tuple[HookProbe, ...] = ()
    findings: tuple[DoctorFinding, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether every hook here reaches a patchgate that works."""
        return not any(finding.level is Level.ERROR for finding in self.findings)


def quoted(path: str) -> str:
    """Quote a path for a shell; an unprintable one is written with escapes (`$'…'`)."""
    if safe(path) == path:
        return shlex.quote(path)
    escaped = "".join(
        chr(byte) if 0x20 < byte < 0x7F and byte not in b"'\\#" else f"\\{byte:03o}"
        for byte in os.fsencode(path)
    )
    return f"$'{escaped}'"


def git_in(worktree: Worktree) -> str:
    """Return the start of a git command for a worktree."""
    return "git" if worktree.is_current else git_at(worktree.path)


def git_at(path: str) -> str:
    """Return the start of a git command for a folder."""
    return f"git -C {quoted(path)}"


@dataclass(frozen=True, slots=True)
class InstallCommand:
    """The command that installs the hooks of a worktree; `is_safe`: `--fix` may run it."""

    line: str
    is_safe: bool

    def finding(self, level: Level, what: str, *events: str) -> DoctorFinding:
        """Build a finding that this command fixes."""
        return DoctorFinding(level, what, self.line, events=events, is_fixed_by_install=self.is_safe)


def install_command(worktree: Worktree) -> InstallCommand:
    """Return the command that installs the hooks of a worktree; worktrees may share one hooks folder.

    `--fix` does not change a folder that all repositories share, and `install` refuses one that only the
    environment names.
    """
    git = "git" if worktree.shares_hooks else git_in(worktree)
    line = f"{git} patchgate install" + (" --server" if worktree.is_bare else "")
    setting = worktree.hooks_path
    if setting is not None and setting.scope == "command":
        return InstallCommand(_unset_line(setting), is_safe=False)
    if setting is not None and setting.scope in {"global", "system"}:
        return InstallCommand(f"{line} --global", is_safe=False)
    return InstallCommand(line, is_safe=True)


def hook_findings(
    worktree: Worktree, hooks: Sequence[HookProbe], git: tuple[int, ...]
) -> Iterator[DoctorFinding]:
    """Report the problems with the hooks of a worktree."""
    events = tuple(hook.event for hook in hooks)
    setting = worktree.hooks_path
    if setting is not None and os.path.exists(worktree.folder) and not os.path.isdir(worktree.folder):
        yield DoctorFinding(
            Level.ERROR,
            f"{_describe_setting(setting)}, so git runs no hooks",
            _unset_line(setting),
            events=events,
        )
    elif not any(hook.file.is_ours or hook.displaced for hook in hooks):
        yield _not_installed(worktree, hooks)
    else:
        for hook in hooks:
            yield from _about(hook, install_command(worktree))
    yield from config_findings(worktree, events, git)


def _not_installed(worktree: Worktree, hooks: Sequence[HookProbe]) -> DoctorFinding:
    what = f"patchgate is not installed in {safe(worktree.folder)}: changes land unchecked"
    foreign = [f"{hook.event} ({hook.file.writer})" for hook in hooks if hook.file.exists]
    if foreign:
        what += f"; installed there: {', '.join(foreign)}"
    if worktree.hooks_path is not None:
        what += f"; {_describe_setting(worktree.hooks_path)}"
    return install_command(worktree).finding(Level.ERROR, what, *(hook.event for hook in hooks))


def _about(hook: HookProbe, command: InstallCommand) -> Iterator[DoctorFinding]:
    """Report the problems with one hook, if other hooks of ours are installed."""
    file, event = hook.file, hook.event
    place = safe(file.path)

    def fixable(level: Level, what: str) -> DoctorFinding:
        return command.finding(level, f"{event}: {what}", event)

    if not file.exists:
        yield fixable(Level.ERROR, f"{place} is missing, so nothing is checked at this event")
    elif file.writer == "folder":
        aside = f"mv {quoted(file.path)} {quoted(file.path + '.aside')}"
        what = f"{event}: {place} is not a file, so git cannot run it"
        yield DoctorFinding(Level.ERROR, what, aside, events=(event,))
    elif not file.is_ours and hook.is_through_manager and hook.displaced is None:
        what = f"{event}: {file.writer} runs patchgate, according to its config; our hook is not installed"
        yield DoctorFinding(Level.NOTE, what, command.line, events=(event,))
    elif not file.is_ours:
        yield fixable(*_foreign(hook))
    elif not file.is_executable:
        yield fixable(Level.ERROR, f"{place} is not executable, so git ignores it")
    else:
        yield from _of_ours(hook, fixable)
    if hook.previous is not None and not hook.previous.is_executable and file.is_ours:
        what = f"{event}: {safe(hook.previous.path)} is not executable, so it does not run before ours"
        yield DoctorFinding(Level.NOTE, what, f"chmod +x {quoted(hook.previous.path)}", events=(event,))


def _foreign(hook: HookProbe) -> tuple[Level, str]:
    """Report that another tool's hook is in place of ours."""
    writer, moved = hook.file.writer, hook.displaced
    if moved is None:
        behind = ""
        if hook.previous is not None:
            behind = f"; it replaced ours, so {safe(os.path.basename(hook.previous.path))} no longer runs"
        return Level.ERROR, f"the hook of {writer} runs instead of ours{behind}"
    name = safe(os.path.basename(moved.path))
    if not hook.is_run_by_other_tool:
        return Level.ERROR, f"the hook of {writer} runs; ours was moved to {name}, which nothing runs"
    if not hook.is_reached:
        said = f": {safe(hook.answer.said, 200)}" if hook.answer and hook.answer.said else ""
        return Level.ERROR, f"the hook of {writer} runs ours as {name}, which does not reach patchgate{said}"
    what = f"the hook of {writer} runs ours as {name} before its own hooks: what those change is not checked"
    if hook.event == "pre-push":
        what = f"the hook of {writer} reads the refs of the push; ours ({name}) gets only what it passes on"
    return Level.WARNING, what


def _of_ours(hook: HookProbe, fixable: Callable[[Level, str], DoctorFinding]) -> Iterator[DoctorFinding]:
    """Report the problems with a hook of ours that git would run."""
    file, answer = hook.file, hook.answer
    if answer is None or answer.version is None:
        said = f": {safe(answer.said, 200)}" if answer and answer.said else ""
        yield fixable(Level.ERROR, f"{safe(file.path)} does not reach patchgate{said}")
        return
    if file.format != HOOK_FORMAT or file.version not in {None, __version__}:
        by = safe(file.version or "of another format", 40)
        yield fixable(Level.WARNING, f"it was installed by patchgate {by}, but this is {__version__}")
    if file.is_orphan:
        what = f"it calls {safe(file.program or '')}, which is gone; it uses another one from PATH"
        yield fixable(Level.WARNING, what)
    elif file.interpreter and not os.access(file.interpreter, os.X_OK):
        what = f"its Python {safe(file.interpreter)} is gone, so PYTHONPATH decides what it imports"
        yield fixable(Level.WARNING, what)
    if answer.version != __version__:
        yield fixable(
            Level.WARNING, f"it runs patchgate {safe(answer.version, 40)}, but this is {__version__}"
        )
    if answer.code != 0:
        said = safe(answer.said, 200) or "no output"
        what = f"{hook.event}: without any change to check, it exits with {answer.code}: {said}"
        yield DoctorFinding(Level.WARNING, what, "git patchgate check", events=(hook.event,))


def bare_path_finding(event: str, answer: HookAnswer, command: InstallCommand) -> DoctorFinding | None:
    """Report a hook that fails with the bare PATH: no patchgate found, or a git that is too old."""
    if answer.version is not None and answer.code == 0:
        return None
    fails = "does not reach patchgate" if answer.version is None else f"exits with {answer.code}"
    said = f": {safe(answer.said, 200)}" if answer.said else ""
    what = f"{event}: in programs with the bare PATH {BARE_PATH} (GUIs), it {fails}{said}"
    if answer.version is None:
        return command.finding(Level.WARNING, what, event)
    return DoctorFinding(Level.WARNING, what, f"PATH={BARE_PATH} git version", events=(event,))


def config_findings(
    worktree: Worktree, events: Sequence[str], git: tuple[int, ...]
) -> Iterator[DoctorFinding]:
    """Report hooks in the config, which git 2.54 and newer run."""
    reads = git >= CONFIG_HOOKS_SINCE
    version = ".".join(str(part) for part in git)
    for hook in worktree.config_hooks:
        name, on = safe(hook.name, 60), ", ".join(event for event in hook.events if event in events)
        ours = "patchgate" in hook.command
        if not on or not hook.is_enabled:
            continue
        if not reads:
            level = Level.WARNING if ours else Level.NOTE
            what = (
                f"hook.{name} ({hook.scope} config, {on}) is ignored by git {version}; 2.54 or newer runs it"
            )
            yield DoctorFinding(level, what, install_command(worktree).line if ours else None)
        elif ours:
            what = f"hook.{name} ({hook.scope} config) runs patchgate a second time at {on}"
            line = f"{git_in(worktree)} config hook.{shlex.quote(name)}.enabled false"
            yield DoctorFinding(Level.WARNING, what, line)
        else:
            yield DoctorFinding(Level.NOTE, f"hook.{name} ({hook.scope} config) runs before ours at {on}")
    for setting in worktree.events_off if reads else ():
        event = setting.key.split(".")[1]
        what = f"{event}: {_describe_setting(setting)}, which turns off the hooks of this event"
        yield DoctorFinding(Level.ERROR, what, _unset_line(setting), events=(event,))


def _name_of(setting: ConfigSetting) -> str:
    return "core.hooksPath" if setting.key == "core.hookspath" else setting.key


def _describe_setting(setting: ConfigSetting) -> str:
    """Describe a setting: its name, value and place."""
    where = (
        f"{setting.scope} config, {safe(setting.file)}"
        if setting.file
        else "git -c or GIT_CONFIG_* variables"
    )
    return f"{safe(_name_of(setting))} is {safe(setting.value) or 'empty'} ({where})"


def _unset_line(setting: ConfigSetting) -> str:
    """Return the command that unsets a setting in its own file."""
    if setting.file is None:
        return "unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS"
    return f"git config --file {quoted(setting.file)} --unset-all {quoted(_name_of(setting))}"


_REASON = "git patchgate doctor tests the hooks"
_SECONDS = 60.0
_AT_ONCE = 4
_WITNESS_REF = "refs/heads/patchgate-witness"


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """How a hook answered: the version that it reached (None: none), its exit code, its last line."""

    version: str | None
    code: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Witness:
    """Starts our hooks in one worktree; they answer in files of `folder`.

    `environ` is the caller's, which git would pass to a hook. Nothing in the repository changes.
    """

    around: GitEnvironment
    environ: Mapping[str, str]
    worktree: Worktree
    folder: str

    def ask_each(self, hooks: Mapping[str, HookFile]) -> dict[str, HookAnswer]:
        """Start our hook of each event, a few at a time."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return dict(zip(hooks, pool.map(self.ask, hooks, hooks.values()), strict=True))

    def ask(self, event: str, hook: HookFile, path: str | None = None) -> HookAnswer:
        """Start our hook of an event; `path` replaces the PATH of the caller.

        A hook that cannot be started, or takes more than a minute, has not reached patchgate.
        """
        place = Path(self.folder, f"{event}.answers")
        place.write_bytes(b"")
        try:
            done = run(
                [hook.path, *self._arguments(event)],
                cwd=self.worktree.path,
                env=self._variables(path) | {"PATCHGATE_WITNESS": str(place)},
                stdin=self._input(event),
                seconds=_SECONDS,
            )
        except PatchgateError as error:
            return HookAnswer(None, said=error.message)
        said = [line for line in (done.err or done.out).split(b"\n") if line.strip()]
        return HookAnswer(_version(place, event), done.code, os.fsdecode(said[-1]) if said else "")

    def _arguments(self, event: str) -> Sequence[str]:
        if event == "commit-msg":
            message = Path(self.folder, "message")
            message.write_text("Test the hook\n", encoding="utf-8")
            return (str(message),)
        if event == "pre-push":
            return ("patchgate-witness", "patchgate-witness")
        return ("prepared",) if event == "reference-transaction" else ()

    def _input(self, event: str) -> bytes:
        if event != "reference-transaction":
            return b""
        # A new branch at an existing tip: the shim must pass it on, and it brings no commit. No ref changes.
        repository = self.around.repository
        tips = repository.output("for-each-ref", "--count=1", "--format=%(objectname)", "refs/heads/")
        tip = tips.decode("ascii").strip() or repository.zero_oid
        return f"{repository.zero_oid} {tip} {_WITNESS_REF}\n".encode("ascii")

    def _variables(self, path: str | None) -> dict[str, str]:
        """Build the environment of a hook as git does: the caller's, without the variables of other commands.

        `PATCHGATE_WITNESS` names a file to which `git patchgate hook NAME` adds a line. A shim that sees it
        passes on even an empty input, and does not run the hook before ours, which may change files.
        `PATCHGATE_SKIP` keeps a hook from checking, which would be recorded. An empty push is checked.
        """
        kept = {
            name: value
            for name, value in self.environ.items()
            if name.startswith("GIT_CONFIG") or not name.startswith(("GIT_", "PATCHGATE_", "PRE_COMMIT"))
        }
        found = path if path is not None else kept.get("PATH", os.defpath)
        kept["PATH"] = f"{self.around.programs()}:{found}"
        kept["GIT_DIR"] = self.worktree.git_dir
        if not self.worktree.is_bare:
            kept["GIT_WORK_TREE"] = self.worktree.path
        kept["PATCHGATE_SKIP"] = _REASON
        return kept


@contextmanager
def witness_of(around: GitEnvironment, environ: Mapping[str, str], worktree: Worktree) -> Iterator[Witness]:
    """Open a witness for a worktree, and restore the pending receipt at the end, which a skip drops."""
    # The receipt may belong to a commit whose message is being edited.
    place = Path(worktree.git_dir, "patchgate-pending")
    before = None
    with suppress(OSError):
        before = place.read_bytes()
    try:
        with tempfile.TemporaryDirectory(prefix="patchgate-doctor-", ignore_cleanup_errors=True) as folder:
            yield Witness(around=around, environ=environ, worktree=worktree, folder=folder)
    finally:
        if before is not None:
            with suppress(OSError):
                write_atomically(place, before, mode=0o600)


def _version(place: Path, event: str) -> str | None:
    """Read which version answered for an event."""
    with suppress(OSError):
        for line in place.read_text(encoding="utf-8", errors="replace").split("\n"):
            name, _, version = line.partition(" ")
            if name == event:
                return version
    return None
