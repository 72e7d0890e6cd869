"""Find the hooks that git would run: for each worktree and event the file, and the config that selects it.

Git is asked in the caller's own environment (`git -c`, `GIT_CONFIG_*`, includes and `config.worktree` count
as they do for git). No hook is run, and nothing is judged. Sources: githooks(5), git-config(1)
`core.hooksPath`, and `hook.<name>.*` of git 2.54, which older versions ignore.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.hook_managers import HookFile, read_hook
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository, failed, git_version
from patchgate.process.child import Completed, run
from patchgate.process.child_environment import allowed_environment
from patchgate.values import dataclass, field, replace

LOCAL_EVENTS = ("pre-commit", "pre-merge-commit", "commit-msg", "pre-push", "reference-transaction")
SERVER_EVENTS = ("pre-receive",)
CONFIG_HOOKS_SINCE = (2, 54)
_READ = r"^(core\.hookspath|hook\..*)$"
_FALSE = {"false", "no", "off", "0", ""}


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """One value of git's config: scope (system, global, local, worktree, command) and file, None for none."""

    key: str
    value: str
    scope: str
    file: str | None


@dataclass(frozen=True, slots=True)
class ConfigHook:
    """A hook in git's config, with the values that count."""

    name: str
    command: str
    events: tuple[str, ...]
    scope: str
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Worktree:
    """One worktree and the hooks of it; paths are absolute.

    `head` is HEAD's commit, None if there is none. `folder` is where git looks for hooks; `hooks_path`
    is the setting that says so, None for git's default; `shares_hooks`: the worktree where the user is has
    the same. `files` has one file for each requested event. `events_off` are the
    `hook.<event>.enabled` that are false. `problem` says why nothing is known of it, `is_gone` that it is
    not there any more.
    """

    path: str
    git_dir: str = ""
    is_bare: bool = False
    is_current: bool = False
    head: str | None = None
    folder: str = ""
    hooks_path: ConfigSetting | None = None
    files: Mapping[str, HookFile] = field(default_factory=dict)
    config_hooks: tuple[ConfigHook, ...] = ()
    events_off: tuple[ConfigSetting, ...] = ()
    problem: str | None = None
    is_gone: bool = False
    shares_hooks: bool = False


class GitEnvironment:
    """The environment that git has when the user calls it: the caller's config variables are kept.

    Args:
        environ: the caller's environment. Reading config and paths runs nothing that config could name.
    """

    def __init__(self, repository: Repository, environ: Mapping[str, str]) -> None:
        self.repository = repository
        config = {name: value for name, value in environ.items() if name.startswith("GIT_CONFIG")}
        self.environment = {**allowed_environment(environ), **config, "GIT_OPTIONAL_LOCKS": "0"}

    def ask(
        self, options: Sequence[str], directory: str, *arguments: str, answers: Container[int] = ANY_CODE
    ) -> Completed:
        """Run git in a directory.

        Args:
            options: the options that say which repository.
            answers: the exit codes that answer the question.

        Raises:
            UndecidedError: git could not be started, took too long, was killed, or did not answer.
        """
        done = run(["git", *options, *arguments], cwd=directory, env=self.environment)
        if done.code not in answers:
            raise failed(arguments[0], done)
        return done

    def version(self) -> tuple[int, ...]:
        """Ask for git's version."""
        return git_version(self.environment)

    def programs(self) -> str:
        """Ask for the folder of git's programs, which comes first in a hook's PATH."""
        said = self.ask((), self.repository.git_dir, "--exec-path", answers=(0,)).out
        return os.fsdecode(said).rstrip("\n")


def list_worktree_hooks(
    environment: GitEnvironment, events: Sequence[str] = LOCAL_EVENTS + SERVER_EVENTS
) -> list[Worktree]:
    """Read the hooks of every worktree of the repository, the main one first.

    Raises:
        UndecidedError: git cannot list them.
    """
    repository = environment.repository
    # In the common directory, because a linked worktree's own config may set `core.bare`.
    options = (f"--git-dir={repository.common_dir}",)
    listed = environment.ask(options, repository.common_dir, "worktree", "list", "--porcelain", "-z")
    if listed.code != 0:
        raise UndecidedError("git could not list the worktrees", "run git worktree list to see why")
    found: list[Worktree] = []
    for number, record in enumerate(listed.out.split(b"\0\0")):
        lines = [line for line in record.split(b"\0") if line]
        if not lines:
            continue
        path = os.fsdecode(lines[0].removeprefix(b"worktree "))
        words = {line.split(b" ")[0] for line in lines[1:]}
        is_main, is_bare = number == 0, b"bare" in words
        if is_main and not is_bare:
            path = _main_folder(environment, path)
        if b"prunable" in words or not os.path.isdir(path):
            found.append(Worktree(path, problem="its folder does not exist", is_gone=True))
            continue
        try:
            found.append(_look(environment, path, events, is_main=is_main, is_bare=is_bare))
        except PatchgateError as error:
            found.append(Worktree(path, problem=error.message))
    here = {(each.folder, each.is_bare) for each in found if each.is_current}
    return [replace(each, shares_hooks=(each.folder, each.is_bare) in here) for each in found]


def current_worktree_hooks(environment: GitEnvironment, events: Sequence[str] = LOCAL_EVENTS) -> Worktree:
    """Read the hooks of the worktree where the user is.

    Raises:
        UndecidedError: git cannot name its hooks folder.
    """
    path = environment.repository.work_tree
    return _look(
        environment, path or environment.repository.git_dir, events, is_main=False, is_bare=path is None
    )


def _main_folder(environment: GitEnvironment, listed: str) -> str:
    """Find the main worktree if its git directory is elsewhere: git 2.39 then lists that directory."""
    repository = environment.repository
    if os.path.normpath(listed) != os.path.normpath(repository.common_dir):
        return listed
    if repository.git_dir == repository.common_dir and repository.work_tree is not None:
        return repository.work_tree
    options = (f"--git-dir={repository.common_dir}",)
    asked = ("config", "--type=path", "core.worktree")
    answer = environment.ask(options, repository.common_dir, *asked, answers=(0, 1))
    folder = os.fsdecode(answer.out).rstrip("\n")
    return os.path.normpath(os.path.join(repository.common_dir, folder)) if folder else listed


def _look(
    environment: GitEnvironment, path: str, events: Sequence[str], *, is_main: bool, is_bare: bool
) -> Worktree:
    repository = environment.repository
    is_current = os.path.samefile(path, repository.work_tree or repository.git_dir)
    options: tuple[str, ...] = ()
    if is_current or is_main:
        # The environment or a separate git directory is not visible from the folder alone.
        git_dir = repository.git_dir if is_current else repository.common_dir
        options = (f"--git-dir={git_dir}", *(() if is_bare else (f"--work-tree={path}",)))

    def say(*arguments: str) -> str:
        done = environment.ask(options, path, "rev-parse", *arguments)
        if done.code != 0:
            last = printable(done.err.strip().split(b"\n")[-1].removeprefix(b"fatal: "))
            raise UndecidedError(f"git could not name its hooks folder: {last}", "run git status there")
        return os.fsdecode(done.out.removesuffix(b"\n"))

    # A relative core.hooksPath is relative to where hooks run: the top of the worktree, or the git directory.
    # For a file in it: an empty setting then means the root folder, as it does when git runs hooks.
    folder = os.path.normpath(os.path.join(path, os.path.dirname(say("--git-path", "hooks/pre-commit"))))
    head = environment.ask(options, path, "rev-parse", "--quiet", "--verify", "HEAD^{commit}", answers=(0, 1))
    asked = ("config", "--show-scope", "--show-origin", "-z", "--get-regexp", _READ)
    config = environment.ask(options, path, *asked, answers=(0, 1))
    settings = _settings(config.out, path)
    paths = [setting for setting in settings if setting.key == "core.hookspath"]
    return Worktree(
        path=path,
        git_dir=say("--absolute-git-dir"),
        is_bare=is_bare,
        is_current=is_current,
        head=head.out.decode("ascii").strip() if head.code == 0 else None,
        folder=folder,
        hooks_path=paths[-1] if paths else None,
        files={event: read_hook(os.path.join(folder, event)) for event in events},
        config_hooks=tuple(_config_hooks(settings)),
        events_off=tuple(_events_off(settings, events)),
    )


def _settings(raw: bytes, directory: str) -> list[ConfigSetting]:
    """Parse what `config --show-scope --show-origin -z` prints: scope, origin, key LF value."""
    fields = [os.fsdecode(each) for each in raw.split(b"\0")]
    found = []
    for scope, origin, pair in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        key, equals, value = pair.partition("\n")
        is_file = origin.startswith("file:")
        file = os.path.join(directory, origin.removeprefix("file:")) if is_file else None
        # A key without a value is true for git; only a boolean can be written so.
        found.append(ConfigSetting(key=key, value=value if equals else "true", scope=scope, file=file))
    return found


def _hook_settings(settings: Iterable[ConfigSetting]) -> Iterable[tuple[str, str, ConfigSetting]]:
    for setting in settings:
        name, dot, word = setting.key.removeprefix("hook.").rpartition(".")
        if setting.key.startswith("hook.") and dot:
            yield name, word, setting


def _config_hooks(settings: Sequence[ConfigSetting]) -> Iterable[ConfigHook]:
    """Collect the hooks of the config, in the order in which git would run them.

    The last command counts; an event without a value clears those before it; a hook that is named twice for
    one event runs at the later place (git's hook.c).
    """
    commands: dict[str, ConfigSetting] = {}
    events: dict[str, dict[str, None]] = {}
    enabled: dict[str, bool] = {}
    for name, word, setting in _hook_settings(settings):
        if word == "command":
            commands[name] = setting
        elif word == "event":
            mine = events.pop(name, {}) if setting.value else {}
            events[name] = mine | ({setting.value: None} if setting.value else {})
        elif word == "enabled":
            enabled[name] = setting.value.lower() not in _FALSE
    for name, those in events.items():
        if name in commands:
            command = commands[name]
            yield ConfigHook(
                name=name,
                command=command.value,
                events=tuple(those),
                scope=command.scope,
                is_enabled=enabled.get(name, True),
            )


def _events_off(settings: Sequence[ConfigSetting], events: Sequence[str]) -> Iterable[ConfigSetting]:
    """Return the `hook.<event>.enabled` that are false; no hook may be named like an event (git 2.55)."""
    last = {
        name: setting
        for name, word, setting in _hook_settings(settings)
        if word == "enabled" and name in events
    }
    return [setting for setting in last.values() if setting.value.lower() in _FALSE]
