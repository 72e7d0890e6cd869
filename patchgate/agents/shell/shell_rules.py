"""Find in a shell command what would bypass the git hooks: skipped hooks, other hooks, writes below `.git`.

A plain limit: only words that are written out are judged. What a running shell makes of variables, `eval`
and scripts is listed as `left`, and the git hooks decide about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchgate.agents.shell.git_words import ForcedPush, GitCall, judge_git, read_git_call
from patchgate.agents.shell.shell_runners import RUNNERS, SHELLS, Runner, read_runner, read_shell_call
from patchgate.agents.shell.shell_text import OPENING, UNKNOWN, SimpleCommand, read_shell
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.report.verdict import Finding

RULE = "command-bypasses-hooks"
_PATCHGATE = frozenset({"patchgate", "git-patchgate"})
# Programs that change each of their files, and those that change the last one.
_CHANGERS = frozenset(
    {"chmod", "chown", "mkdir", "mv", "patch", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"}
)
_COPIERS = frozenset({"cp", "install", "ln", "rsync"})
_IN_PLACE = frozenset({"perl", "ruby", "sed"})
_ASSIGNERS = frozenset({"declare", "export", "local", "readonly", "setenv", "typeset"})
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
# Programs that only show or search their words.
_TALKERS = frozenset(
    {"ack", "ag", "apropos", "cat", "diff", "echo", "egrep", "fgrep", "file", "grep", "head", "help", "less"}
    | {"ls", "man", "more", "printf", "rg", "tail", "test", "[", "[[", "type", "wc", "whatis", "whereis"}
    | {"which", "for", "select", "case"}
)
_RUNS_TEXT = frozenset({"flock", "script", "su"})
_PROFILES = frozenset({"PATCHGATE_PROFILE", "CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI"})
"""By these a commit is an agent's (`check.profiles`, which takes too long to import)."""
_HOMES = frozenset({"HOME", "XDG_CONFIG_HOME"})
_HOOKS = ("pre-commit", "commit-msg", "pre-push", "pre-merge-commit", "reference-transaction", "pre-receive")
_SETTINGS = ("settings.json", "settings.local.json", "hooks.json")
_HIDDEN = (".git", ".claude", ".codex", ".cursor", ".gemini")
_WILD = re.compile(r"[*?\[\0]")
_NAMES_GIT = re.compile(r"(?<![\w.-])git(?:-[a-z]+)?(?![\w.])")
_REMOVES_HOOKS = frozenset({("uninstall",), ("agent", "uninstall")})


@dataclass(frozen=True, slots=True)
class CommandRefusal:
    """Why a command is refused: what it does, and what to do instead."""

    message: str
    hint: str


@dataclass(slots=True)
class CommandRuling:
    """What was found in a command: refusals, forced pushes (the policy knows their refs), what is left."""

    refusals: list[CommandRefusal] = field(default_factory=list)
    forced: list[ForcedPush] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """The refusals as findings of the rule."""
        # 20 ms to import: most commands are not refused.
        from patchgate.report.verdict import Finding

        return [Finding.of(RULE, each.message, hint=each.hint) for each in self.refusals]


def judge_command(text: str, is_protected: Callable[[str], str | None]) -> CommandRuling:
    """Judge a shell command.

    Args:
        text: the command, as the shell gets it.
        is_protected: says what a path is that no command may write; None for any other. The path starts at
            the folder in which the command runs, and may contain `UNKNOWN`.
    """
    judge = _Judge(is_protected)
    judge.judge_text(text, 0)
    found = judge.ruling
    found.refusals = list(dict.fromkeys(found.refusals))
    found.left = list(dict.fromkeys(found.left))
    return found


class _Judge:
    """Judges the commands of a text in order, and follows `cd`."""

    def __init__(self, is_protected: Callable[[str], str | None]) -> None:
        self.ruling = CommandRuling()
        self._is_protected = is_protected
        self._folder = ""

    def judge_text(self, text: str, depth: int) -> None:
        """Judge every command of a text."""
        read = read_shell(text, depth)
        self.ruling.left += [f"the command was not read to its end: {each}" for each in read.unread]
        for command in read.commands:
            self._judge_command(command, depth)

    def _judge_command(self, command: SimpleCommand, depth: int) -> None:
        for name, _ in command.assignments:
            self._judge_variable(name)
        if any(name in _HOMES for name, _ in command.assignments) and any(map(_is_git, command.words)):
            self._refuse("the command gives git another config by HOME", "run it without that")
        for redirection in command.redirections:
            if redirection.operator in _WRITING:
                self._judge_write(redirection.target, "redirects its output to")
        self._judge_words(command.words, command, depth)

    def _judge_words(self, words: Sequence[str], command: SimpleCommand, depth: int) -> None:
        while words and words[0] in OPENING:
            words = words[1:]
        if not words:
            return
        if words[0] not in {"[", "[["} and _WILD.search(words[0]):
            self.ruling.left.append("which program runs is known only to the shell")
            return
        name, rest = words[0].rpartition("/")[2], list(words[1:])
        if name == "git":
            self._judge_git(read_git_call(rest), depth)
        elif name.startswith("git-") and name not in _PATCHGATE:
            self._judge_git(read_git_call([name[4:], *rest]), depth)
        elif name in _PATCHGATE:
            self._judge_patchgate(rest)
        elif name in RUNNERS:
            self._judge_runner(name, rest, command, depth)
        elif name in SHELLS:
            self._judge_shell(name, rest, command, depth)
        elif name == "function":
            self._judge_words(rest[rest.index("{") + 1 :] if "{" in rest else (), command, depth)
        elif name == "find":
            self._judge_find(rest, command, depth)
        elif name in _ASSIGNERS or name == "set":
            self._judge_assigner(name, rest)
        else:
            self._judge_builtin(name, rest, depth)
            self._judge_unknown(name, rest, depth)
            for path in _written_by(name, rest):
                self._judge_write(path, f"lets {name} change")

    def _judge_builtin(self, name: str, rest: Sequence[str], depth: int) -> None:
        """Judge what the shell itself does: run a text or a file, change the folder."""
        if name == "eval":
            self._judge_script(" ".join(rest), name, depth)
        elif name in {"source", "."}:
            self.ruling.left.append(f"{name} runs a file that was not read")
        elif name in {"cd", "pushd"}:
            self._change_folder(rest)
        elif name in {"for", "mapfile", "printf", "read", "readarray", "select", "unset"}:
            self._judge_assigner(name, rest)
        elif name == "trap":
            self._judge_script("".join(rest[:1]), name, depth)
        elif name == "alias":
            for word in rest:
                self._judge_script(word.partition("=")[2], name, depth)

    def _judge_unknown(self, name: str, rest: Sequence[str], depth: int) -> None:
        """Judge the words of a program that may run them: git among them is left."""
        for at, word in enumerate(rest):
            is_text = word in {"-c", "--command"} or (
                name in _RUNS_TEXT and re.fullmatch("-[a-zA-Z]*c", word)
            )
            if name in _RUNS_TEXT and is_text:
                self._judge_script("".join(rest[at + 1 : at + 2]), name, depth)
            is_run = _is_git(word) and at + 1 < len(rest)
            is_run |= bool(is_text) and bool(_NAMES_GIT.search("".join(rest[at + 1 : at + 2])))
            is_run |= word.startswith(("-c", "--command=")) and bool(_NAMES_GIT.search(word))
            if is_run and name not in _TALKERS:
                self.ruling.left.append(f"{_shown(name)} may run git")
        if name in {"apply_patch", "applypatch"}:
            self.ruling.left.append(f"{name} writes files")

    def _judge_variable(self, name: str) -> None:
        if name.startswith("PATCHGATE_"):
            self._refuse(
                f"the command sets {name}, which changes what the hooks of patchgate do",
                f"run it without {name}; only a maintainer sets it",
            )
        elif name.startswith("GIT_CONFIG") and name != "GIT_CONFIG_NOGLOB":
            self._refuse(f"the command sets {name}, which can replace git's hooks", f"run it without {name}")
        elif name == "GIT_EXEC_PATH":
            self._refuse(f"the command sets {name}, which replaces git's programs", f"run it without {name}")

    def _judge_unset(self, name: str) -> None:
        if name in _PROFILES:
            self._refuse(
                f"the command unsets {name}, by which a commit is an agent's",
                f"run it without that; only a maintainer unsets {name}",
            )

    def _judge_assigner(self, name: str, rest: Sequence[str]) -> None:
        if name == "setenv":
            self._judge_variable(rest[0] if rest else "")
        if name == "printf":
            rest = [each for at, each in enumerate(rest) if at and rest[at - 1] == "-v"]
        elif name == "for":
            rest = rest[:1]
        for word in rest if name not in {"set", "unset"} else ():
            self._judge_variable(word.partition("=")[0])
        for word in rest if name == "unset" else ():
            self._judge_unset(word)

    def _judge_write(self, path: str, does: str) -> None:
        what = self._is_protected(self._joined(path))
        if what is not None:
            self._refuse(
                f"the command {does} {_shown(path)}, which is {what}",
                "leave that file as it is; ask a maintainer if it must change",
            )
        elif _WILD.search(path) and self._may_be_protected(path):
            self.ruling.left.append(f"only the shell knows whether {_shown(path)} is protected")

    def _may_be_protected(self, path: str) -> bool:
        """Whether a path with a pattern, or a text that only the shell knows, may name a protected one."""
        parts = path.split("/")
        for at, part in enumerate(parts):
            if not _WILD.search(part):
                continue
            pattern = part.replace(UNKNOWN, "*")
            below = parts[at + 1] if at + 1 < len(parts) else ""
            # A variable alone is anything; what follows tells whether it is one of those folders.
            is_any = not pattern.strip("*") and UNKNOWN in part
            if is_any and below in {"hooks", *_SETTINGS}:
                return True
            named = [] if is_any or not pattern.startswith((".", "[", "?")) else _HIDDEN
            for name in (each for each in named if fnmatchcase(each, pattern)):
                for inside in ("", *_SETTINGS):
                    tried = "/".join([*parts[:at], name, *(parts[at + 1 :] or [inside])])
                    if self._is_protected(self._joined(tried)) is not None:
                        return True
        return False

    def _joined(self, path: str) -> str:
        return path if path.startswith("/") or not self._folder else f"{self._folder}/{path}"

    def _change_folder(self, rest: Sequence[str]) -> None:
        places = [each for each in rest if not each.startswith("-") or each == "-"]
        place = places[0] if places else "~"
        self._folder = UNKNOWN if place == "-" else self._joined(place)

    def _judge_runner(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        """Judge the command that `env`, `sudo` or the like runs, and the variables that it gets."""
        run: Runner = read_runner(name, rest)
        for variable in run.sets:
            self._judge_variable(variable)
        for variable in run.unsets:
            self._judge_unset(variable)
        if any(map(_is_git, run.words)):
            if run.is_emptied:
                self._refuse("the command runs git without its environment", "run it without env -i")
            if not _HOMES.isdisjoint(run.sets):
                self._refuse("the command gives git another config by HOME", "run it without that")
            if name == "xargs":
                self.ruling.left.append("xargs adds arguments to a command of git")
        if run.unknown:
            self.ruling.left.append(f"{name} has an option that is not known")
        if run.split is not None:
            self._judge_script(" ".join(["env", run.split, *run.words]), name, depth)
        else:
            self._judge_words(run.words, command, depth)

    def _judge_shell(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        call = read_shell_call(rest)
        if call.unknown:
            self.ruling.left.append(f"{name} has an option that is not known")
        if call.script is not None:
            self._judge_script(call.script, name, depth)
        elif call.words:
            self.ruling.left.append(f"{name} runs a file that was not read")
        elif not {"--version", "--help"}.intersection(rest):
            self.ruling.left.append(f"{name} reads commands from its input")

    def _judge_script(self, script: str, name: str, depth: int) -> None:
        if UNKNOWN in script:
            self.ruling.left.append(f"{name} runs a text that only the shell knows")
        self.judge_text(script, depth + 1)

    def _judge_find(self, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        changes = "-delete" in rest
        for at, word in enumerate(rest):
            if word in {"-exec", "-execdir", "-ok", "-okdir"}:
                after = list(rest[at + 1 :])
                ends = [place for place, each in enumerate(after) if each in {";", "+"}]
                run = after[: ends[0] if ends else len(after)]
                changes |= run[:1] != [] and run[0].rpartition("/")[2] in _CHANGERS | {"cp", "ln"}
                self._judge_words(run, command, depth)
        if not changes:
            return
        first = next((at for at, each in enumerate(rest) if each[:1] in {"-", "(", "!"}), len(rest))
        places = rest[:first] or ["."]
        for place in places:
            self._judge_write(place, "lets find change files in")
        names = [rest[at + 1] for at, each in enumerate(rest[:-1]) if each in {"-name", "-iname"}]
        if any(fnmatchcase(hook, each) for each in names for hook in _HOOKS if each.strip("*?")):
            self._refuse("the command lets find change the hooks", "name the folders in which it searches")
            return
        is_limited = bool(names) or not {"-path", "!", "-not", "-prune", "-maxdepth"}.isdisjoint(rest)
        if not is_limited and not {".", "./", "..", "/"}.isdisjoint(places):
            self.ruling.left.append("find may reach git's own folder")

    def _judge_patchgate(self, rest: Sequence[str]) -> None:
        words = [
            each for at, each in enumerate(rest) if not each.startswith("-") and rest[at - 1 : at] != ["-C"]
        ]
        if tuple(words[:1]) in _REMOVES_HOOKS or tuple(words[:2]) in _REMOVES_HOOKS:
            self._refuse(
                "the command removes the hooks of patchgate", "leave them; a maintainer may remove them"
            )

    def _judge_git(self, call: GitCall, depth: int) -> None:
        if call.subcommand == "patchgate":
            self._judge_patchgate(list(call.arguments))
            return
        found = judge_git(call)
        for message, hint in found.refusals:
            self._refuse(message, hint)
        self.ruling.forced += found.forced
        self.ruling.left += found.left
        for script in found.scripts:
            self._judge_script(script, "an alias of git", depth)
        for path in found.written:
            self._judge_write(path, "lets git change")

    def _refuse(self, message: str, hint: str) -> None:
        self.ruling.refusals.append(CommandRefusal(message, hint))


def _shown(path: str) -> str:
    return path.replace(UNKNOWN, "…")


def _is_git(word: str) -> bool:
    name = word.rpartition("/")[2]
    return name == "git" or name.startswith("git-")


def _written_by(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the files that a program changes, as far as its arguments show."""
    files = [each for each in rest if not each.startswith("-")]
    if name in _CHANGERS:
        yield from files
        if name in {"mv", "rm"}:
            # What is in a folder goes with it.
            hidden = [each.rstrip("/") for each in files if each.rstrip("/").endswith(_HIDDEN)]
            yield from (f"{each}/{inside}" for each in hidden for inside in _SETTINGS)
    if name in _COPIERS or name == "mv":
        # A program takes one folder; a list without end costs no time.
        targets = [*files[-1:], *_target_folders(rest)][:8]
        yield from targets
        sources = [each.rstrip("/").rpartition("/")[2] for each in files]
        yield from (f"{target.rstrip('/')}/{each}" for target in targets for each in sources)
    elif name in _IN_PLACE:
        is_in_place = any(
            each.startswith("--in-place") or (each.startswith("-") and each[1:2] != "-" and "i" in each)
            for each in rest
        )
        yield from files if is_in_place else ()
    elif name == "dd":
        yield from (each[3:] for each in rest if each.startswith("of="))


def _target_folders(rest: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(rest):
        is_long = word.startswith("--t") and "--target-directory".startswith(word.partition("=")[0])
        if word == "-t" or (is_long and "=" not in word):
            yield from rest[at + 1 : at + 2]
        elif is_long:
            yield word.partition("=")[2]
        elif word.startswith("-") and not word.startswith("--") and "t" in word:
            yield word.partition("t")[2] or "".join(rest[at + 1 : at + 2])
