"""What is wrong with the hooks of one worktree, in words: one sentence, and one command that mends it.

Decides which facts are errors (the gate would not run, or would refuse everything), warnings and notes, and
which of them `install` mends without a question. It starts nothing and reads nothing.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from patchgate import __version__
from patchgate.git.hook_files import HOOK_FORMAT, HookFile
from patchgate.git.hook_managers import Managed
from patchgate.git.hooks_in_force import CONFIG_HOOKS_SINCE, Setting, Worktree
from patchgate.hooks.doctor_witness import BARE_PATH, Answer
from patchgate.report.rules import Level
from patchgate.report.wording import safe

# They run what they found, which they call NAME.legacy, before their own; lefthook's NAME.old nobody runs.
_HAND_ON = {"pre-commit", "prek"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that doctor tells: safe to print, with the command that mends it where there is one.

    An error means that the gate would not judge here or would refuse everything, or that a program is missing
    which the policy names. `events` are the hooks that it is about; `is_mended_by_install`, or
    `is_mended_by_renewal` of what the fast path keeps, says that `--fix` may mend it.
    """

    level: Level
    what: str
    remedy: str | None = None
    events: tuple[str, ...] = ()
    is_mended_by_install: bool = False
    is_mended_by_renewal: bool = False


@dataclass(frozen=True, slots=True)
class Hook:
    """What is known of one event: its file, what is chained to it or displaced by it, and how ours answered.

    `answer` is None where nobody was asked, `managed` where no hook manager is known at this event.
    """

    event: str
    file: HookFile
    previous: HookFile | None = None
    displaced: HookFile | None = None
    answer: Answer | None = None
    managed: Managed | None = None

    @property
    def is_through_manager(self) -> bool:
        """Tell whether a hook manager runs patchgate at this event, by its config."""
        return self.managed is not None and self.managed.has_patchgate and self.file.is_executable

    @property
    def is_handed_on(self) -> bool:
        """Tell whether a tool is known to run ours from the place to which it moved it."""
        moved = self.displaced
        if moved is None or not moved.path.endswith(".legacy"):
            return False
        return moved.is_executable and self.file.writer in _HAND_ON

    @property
    def ours(self) -> HookFile | None:
        """The file of ours that would run at this event, if one would."""
        if self.file.is_ours:
            return self.file if self.file.is_executable else None
        return self.displaced if self.is_handed_on else None

    @property
    def reaches(self) -> bool:
        """Tell whether the witness was borne: git's event ends in a patchgate."""
        return self.answer is not None and self.answer.version is not None

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing is wrong with it in the caller's own environment."""
        is_well = self.answer is not None and self.answer.code == 0 and not self.file.is_orphan
        return self.reaches and self.file.is_ours and is_well


def quoted(path: str) -> str:
    """Quote a path for a shell; one that may not be printed is written with escapes (`$'…'`)."""
    if safe(path) == path:
        return shlex.quote(path)
    escaped = "".join(
        chr(byte) if 0x20 < byte < 0x7F and byte not in b"'\\#" else f"\\{byte:03o}"
        for byte in os.fsencode(path)
    )
    return f"$'{escaped}'"


def git_in(worktree: Worktree) -> str:
    """Write the beginning of a git command that is meant for a worktree."""
    return "git" if worktree.is_here else git_at(worktree.path)


def git_at(path: str) -> str:
    """Write the beginning of a git command that is meant for a folder."""
    return f"git -C {quoted(path)}"


@dataclass(frozen=True, slots=True)
class Mending:
    """The command that puts the hooks of a worktree in; `is_safe`: `--fix` may do it without a question."""

    line: str
    is_safe: bool


def mending_of(worktree: Worktree) -> Mending:
    """Say how hooks get into a worktree; one folder of hooks serves all worktrees that share it.

    What every repository shares is left to a person, and `install` refuses a folder that only the environment
    names.
    """
    git = "git" if worktree.shares_hooks else git_in(worktree)
    line = f"{git} patchgate install" + (" --server" if worktree.is_bare else "")
    setting = worktree.hooks_path
    if setting is not None and setting.scope == "command":
        return Mending(_unset_line(setting), is_safe=False)
    if setting is not None and setting.scope in {"global", "system"}:
        return Mending(f"{line} --global", is_safe=False)
    return Mending(line, is_safe=True)


def hook_findings(worktree: Worktree, hooks: Sequence[Hook], git: tuple[int, ...]) -> Iterator[Finding]:
    """Tell what is wrong with the hooks of a worktree."""
    events = tuple(hook.event for hook in hooks)
    setting = worktree.hooks_path
    if setting is not None and os.path.exists(worktree.folder) and not os.path.isdir(worktree.folder):
        yield Finding(Level.ERROR, f"{_said(setting)}, so git runs no hooks", _unset_line(setting), events)
    elif not any(hook.file.is_ours or hook.displaced for hook in hooks):
        yield _not_installed(worktree, hooks)
    else:
        for hook in hooks:
            yield from _about(hook, mending_of(worktree))
    yield from config_findings(worktree, events, git)


def _not_installed(worktree: Worktree, hooks: Sequence[Hook]) -> Finding:
    what = f"patchgate is not installed in {safe(worktree.folder)}: nothing is judged before it lands"
    foreign = [f"{hook.event} ({hook.file.writer})" for hook in hooks if hook.file.exists]
    if foreign:
        what += f"; there now: {', '.join(foreign)}"
    if worktree.hooks_path is not None:
        what += f"; {_said(worktree.hooks_path)}"
    mending = mending_of(worktree)
    return Finding(Level.ERROR, what, mending.line, tuple(hook.event for hook in hooks), mending.is_safe)


def _about(hook: Hook, mending: Mending) -> Iterator[Finding]:
    """Tell what is wrong with one hook, where others of ours are there."""
    file, event = hook.file, hook.event
    place = safe(file.path)

    def mended(level: Level, what: str) -> Finding:
        return Finding(level, f"{event}: {what}", mending.line, (event,), mending.is_safe)

    if not file.exists:
        yield mended(Level.ERROR, f"there is no {place}, so nothing is judged at this point")
    elif file.writer == "folder":
        aside = f"mv {quoted(file.path)} {quoted(file.path + '.aside')}"
        what = f"{event}: {place} is no file, and git cannot start it"
        yield Finding(Level.ERROR, what, aside, (event,))
    elif not file.is_ours and hook.is_through_manager and hook.displaced is None:
        what = f"{event}: {file.writer} runs patchgate, by its config; ours is not there"
        yield Finding(Level.NOTE, what, mending.line, (event,))
    elif not file.is_ours:
        yield mended(*_foreign(hook))
    elif not file.is_executable:
        yield mended(Level.ERROR, f"{place} may not be executed, so git passes over it")
    else:
        yield from _of_ours(hook, mended)
    if hook.previous is not None and not hook.previous.is_executable and file.is_ours:
        what = f"{event}: {safe(hook.previous.path)} may not be executed, so it does not run before ours"
        yield Finding(Level.NOTE, what, f"chmod +x {quoted(hook.previous.path)}", (event,))


def _foreign(hook: Hook) -> tuple[Level, str]:
    """Say what it means that somebody else's hook stands in our place."""
    writer, moved = hook.file.writer, hook.displaced
    if moved is None:
        behind = ""
        if hook.previous is not None:
            behind = f"; it was put over ours, and {safe(os.path.basename(hook.previous.path))} runs no more"
        return Level.ERROR, f"the hook of {writer} runs, ours is not there{behind}"
    name = safe(os.path.basename(moved.path))
    if not hook.is_handed_on:
        return Level.ERROR, f"the hook of {writer} runs; ours was moved to {name}, and nobody runs it"
    if not hook.reaches:
        said = f": {safe(hook.answer.said, 200)}" if hook.answer and hook.answer.said else ""
        return Level.ERROR, f"the hook of {writer} runs ours as {name}, which does not reach patchgate{said}"
    what = f"the hook of {writer} runs ours as {name}, before its own: what those change is not judged"
    if hook.event == "pre-push":
        what = f"the hook of {writer} reads the refs of the push; ours, now {name}, gets what it hands on"
    return Level.WARNING, what


def _of_ours(hook: Hook, mended: Callable[[Level, str], Finding]) -> Iterator[Finding]:
    """Tell what is wrong with a hook of ours that git would start."""
    file, answer = hook.file, hook.answer
    if answer is None or answer.version is None:
        said = f": {safe(answer.said, 200)}" if answer and answer.said else ""
        yield mended(Level.ERROR, f"{safe(file.path)} does not reach patchgate{said}")
        return
    if file.format != HOOK_FORMAT or file.version not in {None, __version__}:
        by = safe(file.version or "of another format", 40)
        yield mended(Level.WARNING, f"patchgate {by} put this hook there, and this is {__version__}")
    if file.is_orphan:
        what = f"it was installed with {safe(file.program or '')}, which is gone; another was found on PATH"
        yield mended(Level.WARNING, what)
    if answer.version != __version__:
        yield mended(
            Level.WARNING, f"it reaches patchgate {safe(answer.version, 40)}, and this is {__version__}"
        )
    if answer.code != 0:
        said = safe(answer.said, 200) or "nothing"
        what = f"{hook.event}: asked about nothing, it ends with exit code {answer.code} and says: {said}"
        yield Finding(Level.WARNING, what, "git patchgate check", (hook.event,))


def bare_path_finding(event: str, answer: Answer, mending: Mending) -> Finding | None:
    """Tell that a hook fails where only the system's PATH is: nobody is reached, or a git that is too old."""
    if answer.version is not None and answer.code == 0:
        return None
    fails = "does not reach patchgate" if answer.version is None else f"ends with exit code {answer.code}"
    said = f": {safe(answer.said, 200)}" if answer.said else ""
    what = f"{event}: in a program with the bare PATH {BARE_PATH} (a GUI), it {fails}{said}"
    if answer.version is None:
        return Finding(Level.WARNING, what, mending.line, (event,), mending.is_safe)
    return Finding(Level.WARNING, what, f"PATH={BARE_PATH} git version", (event,))


def config_findings(worktree: Worktree, events: Sequence[str], git: tuple[int, ...]) -> Iterator[Finding]:
    """Tell what git 2.54 and newer read from config, and that older ones do not."""
    reads = git >= CONFIG_HOOKS_SINCE
    version = ".".join(str(part) for part in git)
    for hook in worktree.config_hooks:
        name, on = safe(hook.name, 60), ", ".join(event for event in hook.events if event in events)
        ours = "patchgate" in hook.command
        if not on or not hook.is_enabled:
            continue
        if not reads:
            level = Level.WARNING if ours else Level.NOTE
            what = f"hook.{name} ({hook.scope} config, {on}) is ignored by git {version}; 2.54 reads it"
            yield Finding(level, what, mending_of(worktree).line if ours else None)
        elif ours:
            what = f"hook.{name} ({hook.scope} config) runs patchgate a second time at {on}"
            line = f"{git_in(worktree)} config hook.{shlex.quote(name)}.enabled false"
            yield Finding(Level.WARNING, what, line)
        else:
            yield Finding(Level.NOTE, f"hook.{name} ({hook.scope} config) runs before ours at {on}")
    for setting in worktree.events_off if reads else ():
        event = setting.key.split(".")[1]
        what = f"{event}: {_said(setting)}, which switches off this event's hooks"
        yield Finding(Level.ERROR, what, _unset_line(setting), (event,))


def _said(setting: Setting) -> str:
    """Say what config says, and where."""
    where = (
        f"{setting.scope} config, {safe(setting.file)}"
        if setting.file
        else "git -c or GIT_CONFIG_* variables"
    )
    name = "core.hooksPath" if setting.key == "core.hookspath" else setting.key
    return f"{safe(name)} is {safe(setting.value) or 'empty'} ({where})"


def _unset_line(setting: Setting) -> str:
    """Write the command that takes a setting back, in the very file where it stands."""
    name = "core.hooksPath" if setting.key == "core.hookspath" else setting.key
    if setting.file is None:
        return "unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS"
    return f"git config --file {quoted(setting.file)} --unset-all {quoted(name)}"
