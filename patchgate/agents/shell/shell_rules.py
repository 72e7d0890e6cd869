"""Find in a shell command what would bypass the git hooks: skipped hooks, other hooks, writes below `.git`.

A plain limit: only what is written out is judged, variables that the text itself sets included. What a
running shell makes of others, and of scripts, is listed as `left`, and the git hooks decide about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchgate.agents.shell.git_words import ForcedPush, GitCall, GitRuling, judge_git, read_git_call
from patchgate.agents.shell.shell_commands import OPENING, SimpleCommand
from patchgate.agents.shell.shell_runners import RUNNERS, SHELLS, Runner, read_runner, read_shell_call
from patchgate.agents.shell.shell_text import read_shell
from patchgate.agents.shell.shell_words import UNKNOWN, KnownVariables
from patchgate.agents.shell.written_words import CHANGERS, HIDDEN, KNOWN_WRITERS, SETTINGS, written_by
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.report.verdict import Finding

RULE = "command-bypasses-hooks"
_PATCHGATE = frozenset({"patchgate", "git-patchgate"})
_ASSIGNERS = frozenset({"declare", "export", "local", "readonly", "setenv", "typeset"})
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
# Programs that only show or search their words.
_TALKERS = frozenset(
    {"ack", "ag", "apropos", "cat", "cmp", "diff", "du", "echo", "egrep", "fgrep", "file", "grep", "head"}
    | {"help", "hexdump", "jq", "less", "ls", "man", "md5sum", "more", "od", "printf", "pwd", "readlink"}
    | {"realpath", "rg", "sha1sum", "sha256sum", "sort", "stat", "strings", "tail", "test", "[", "[[", "tree"}
    | {"type", "uniq", "wc", "whatis", "whereis", "which", "xxd", "for", "select", "case", "cd", "pushd"}
)
_RUNS_TEXT = frozenset({"script", "su"})
_PATCHERS = frozenset({"apply_patch", "applypatch"})
_PROFILES = frozenset(
    {"PATCHGATE_PROFILE", "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI"}
)
"""By these a commit is an agent's (`check.profiles`, which takes too long to import)."""
_HOMES = frozenset({"HOME", "XDG_CONFIG_HOME"})
_OTHER_HOME = ("the command gives git another config by HOME", "run it without that")
# Git runs the text of these with a shell (git(1), "Environment Variables").
_PROGRAMS = frozenset(
    {"EDITOR", "GIT_ASKPASS", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SEQUENCE_EDITOR"}
    | {"GIT_SSH_COMMAND", "PAGER", "VISUAL"}
)
_HOOKS = ("pre-commit", "commit-msg", "pre-push", "pre-merge-commit", "reference-transaction", "pre-receive")
_SOUGHT = (*_HOOKS, "hooks", "patchgate.toml", *HIDDEN, *SETTINGS)
_MOST_NAMED = 8
_MOST_ASKED = 1000
_TELLING = (*HIDDEN, "patchgate", "pyproject.toml", ".pre-commit-config.yaml")
_WILD = re.compile(r"[*?\[\0]")
_NAMES_GIT = re.compile(r"(?<![\w.-])git(?:-[a-z]+)?(?![\w.])")
_NAMES_HIDDEN = re.compile(r"\.(?:git|claude|codex|cursor|gemini)/")
_REMOVES_HOOKS = frozenset({("uninstall",), ("agent", "uninstall")})


@dataclass(frozen=True, slots=True)
class CommandRefusal:
    """Why a command is refused: what it does, and what to do instead."""

    message: str
    hint: str


@dataclass(slots=True)
class CommandRuling:
    """What was found in a command: refusals, forced pushes (the policy knows their refs), what is left.

    `patches` are the envelopes of Codex that it applies, each with the folder in which it does.
    `clears_intent`: it ends a piece of work, which only a person may if that has a budget.
    """

    refusals: list[CommandRefusal] = field(default_factory=list)
    forced: list[ForcedPush] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    patches: list[tuple[str, str]] = field(default_factory=list)
    clears_intent: bool = False

    @property
    def findings(self) -> list[Finding]:
        """The refusals as findings of the rule."""
        # 20 ms to import: most commands are not refused.
        from patchgate.report.verdict import Finding

        return [Finding.of(RULE, each.message, hint=each.hint) for each in self.refusals]


def judge_command(
    text: str, is_protected: Callable[[str], str | None], variables: Mapping[str, str] | None = None
) -> CommandRuling:
    """Judge a shell command: first as if it alone set its variables, which only ever refuses more.

    Args:
        text: the command, as the shell gets it.
        is_protected: says what a path is that no command may write; None for any other. The path starts at
            the folder in which the command runs, and may contain `UNKNOWN`.
        variables: those of the environment that are known.
    """
    guessed = _Judge(is_protected, KnownVariables(dict(variables or {})))
    if any(letter in text for letter in "$`{"):
        guessed.judge_text(text, 0)
    sure = _Judge(is_protected, None)
    if not guessed.ruling.refusals:
        sure.judge_text(text, 0)
    found = guessed.ruling if guessed.ruling.refusals else sure.ruling
    found.refusals = list(dict.fromkeys(found.refusals))
    found.left = list(dict.fromkeys(found.left))
    found.forced = list(dict.fromkeys([*sure.ruling.forced, *guessed.ruling.forced]))
    found.clears_intent |= guessed.ruling.clears_intent
    found.patches = list(dict.fromkeys([*sure.ruling.patches, *guessed.ruling.patches]))
    return found


class _Judge:
    """Judges the commands of a text in order, and follows `cd`."""

    def __init__(self, is_protected: Callable[[str], str | None], known: KnownVariables | None) -> None:
        self.ruling = CommandRuling()
        self._asked: dict[str, str | None] = {}
        self._has_other_home = False
        self._known = known
        self._is_protected = is_protected
        self._folder = ""

    def judge_text(self, text: str, depth: int) -> None:
        """Judge every command of a text."""
        read = read_shell(text, depth, self._known)
        self.ruling.left += [f"the command was not read to its end: {each}" for each in read.unread]
        for command in read.commands:
            self._judge_command(command, depth)

    def _judge_command(self, command: SimpleCommand, depth: int) -> None:
        for name, value in command.assignments:
            self._judge_variable(name)
            if name in _PROGRAMS:
                self._judge_script(value, name, depth)
        if any(name in _HOMES for name, _ in command.assignments):
            # Without a command it counts for all that follow.
            self._has_other_home |= not command.words
            if any(map(_is_git, command.words)):
                self._refuse(*_OTHER_HOME)
        for redirection in command.redirections:
            if redirection.operator in _WRITING:
                self._judge_write(redirection.target, "redirects its output to")
        self._judge_words(command.words, command, depth)

    def _judge_words(self, words: Sequence[str], command: SimpleCommand, depth: int) -> None:
        while words and words[0] in OPENING:
            words = words[1:]
        if not words:
            return
        name, rest = words[0].rpartition("/")[2], list(words[1:])
        if words[0] not in {"[", "[["} and _WILD.search(words[0]):
            self.ruling.left.append("which program runs is known only to the shell")
            if UNKNOWN not in words[0] and fnmatchcase("git", name):
                self._judge_git(read_git_call(rest), depth)
            return
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
            self._judge_builtin(name, rest, command, depth)
            self._judge_unknown(name, rest, command, depth)
            for path in written_by(name, rest):
                self._judge_write(path, f"lets {name} change")

    def _judge_builtin(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        """Judge what the shell itself does: run a text or a file, change the folder."""
        if name == "eval":
            self._judge_script(" ".join(rest), name, depth)
        elif name in {"source", "."} and rest[:1] == ["/dev/stdin"]:
            self._judge_input(name, command, depth)
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
                if _NAMES_GIT.search(word):
                    self.ruling.left.append("what runs by an alias gets further words")

    def _judge_unknown(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        """Judge the words of a program that may run them: git among them is left, if it skips no hooks."""
        for at, word in enumerate(rest):
            is_text = word in {"-c", "--command"} or (
                name in _RUNS_TEXT and re.fullmatch("-[a-zA-Z]*c", word)
            )
            if name in _RUNS_TEXT and is_text:
                self._judge_script("".join(rest[at + 1 : at + 2]), name, depth)
            is_run = _is_git(word) and at + 1 < len(rest)
            is_run |= bool(is_text) and bool(_NAMES_GIT.search("".join(rest[at + 1 : at + 2])))
            is_run |= (word.startswith(("-c", "--command=")) or " " in word) and bool(_NAMES_GIT.search(word))
            if is_run and name not in _TALKERS:
                self.ruling.left.append(f"{_shown(name)} may run git")
                # Its words are git's, whatever runs them.
                found = judge_git(read_git_call(rest[at + 1 :])) if _is_git(word) else GitRuling()
                for message, hint in found.refusals:
                    self._refuse(message, hint)
        if name not in _TALKERS and any(" " in each and _NAMES_HIDDEN.search(each) for each in rest):
            self.ruling.left.append(f"{_shown(name)} may change what its text names")
        if name not in _TALKERS | KNOWN_WRITERS:
            if _NAMES_GIT.search(command.input_text() or ""):
                self.ruling.left.append(f"{_shown(name)} may run git")
            named = [each for each in rest if not each.startswith("-") and any(one in each for one in HIDDEN)]
            for path in named[:_MOST_NAMED]:
                if self._protection(path) is not None:
                    self.ruling.left.append(f"{_shown(name)} may change {_shown(path)}")
        if name in _PATCHERS:
            text = rest[0] if rest else command.input_text()
            if text is None or UNKNOWN in text + self._folder:
                self.ruling.left.append(f"{name} writes what only the shell knows")
            else:
                self.ruling.patches.append((self._folder, text))

    def _judge_input(self, name: str, command: SimpleCommand, depth: int) -> None:
        """Judge the commands that a shell reads from its input."""
        text = command.input_text()
        if command.is_interactive:
            # Codex calls no hook for what is typed into a running program.
            self._refuse(
                f"the command starts {name} without commands, and what is typed into it later is not checked",
                f"send each command by itself, or write {name} -c '...'",
            )
        elif text is None:
            self.ruling.left.append(f"{name} reads commands from its input")
        else:
            self._judge_script(text, name, depth)

    def _judge_variable(self, name: str) -> None:
        if name in _PROFILES:
            self._judge_unset(name)
        elif name.startswith("PATCHGATE_"):
            self._refuse(
                f"the command sets {name}, which changes what the hooks of patchgate do",
                f"run it without {name}; only a maintainer sets it",
            )
        elif name.startswith("GIT_CONFIG") and name != "GIT_CONFIG_NOGLOB":
            self._refuse(f"the command sets {name}, which can replace git's hooks", f"run it without {name}")
        elif name in {"GIT_DIR", "GIT_COMMON_DIR"}:
            self.ruling.left.append("git works on another repository, which may have other hooks")
        elif name == "GIT_EXEC_PATH":
            self._refuse(f"the command sets {name}, which replaces git's programs", f"run it without {name}")

    def _judge_unset(self, name: str) -> None:
        if name in _PROFILES:
            self._refuse(
                f"the command changes {name}, by which a commit is an agent's",
                f"run it without that; only a maintainer changes {name}",
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
            self._has_other_home |= word.partition("=")[0] in _HOMES
        for word in rest if name == "unset" else ():
            self._judge_unset(word)

    def _judge_write(self, path: str, does: str) -> None:
        what, is_sure = self._protection(path), True
        if what is None and _WILD.search(path):
            what, is_sure = self._may_be_protected(path)
        if what is not None and is_sure:
            self._refuse(
                f"the command {does} {_shown(path)}, which is {what}",
                "leave that file as it is; ask a maintainer if it must change",
            )
        elif what is not None:
            self.ruling.left.append(f"only the shell knows whether {_shown(path)} is protected")

    def _may_be_protected(self, path: str) -> tuple[str | None, bool]:
        """Say what a path may name that has a pattern, or a text of the shell's; and whether it does."""
        parts = path.split("/")
        for at, part in enumerate(parts):
            if not _WILD.search(part):
                continue
            pattern = part.replace(UNKNOWN, "*")
            below = parts[at + 1] if at + 1 < len(parts) else ""
            # A variable alone is anything; what follows tells whether it is one of those folders.
            is_any = not pattern.strip("*") and UNKNOWN in part
            if is_any and below in {"hooks", *SETTINGS}:
                return "in git's own folder", False
            named = [] if is_any or not pattern.startswith((".", "[", "?")) else HIDDEN
            for name in (each for each in named if fnmatchcase(each, pattern)):
                for inside in ("", *SETTINGS):
                    tried = "/".join([*parts[:at], name, *(parts[at + 1 :] or [inside])])
                    what = self._protection(tried)
                    if what is not None:
                        return what, UNKNOWN not in path
        return None, False

    def _protection(self, path: str) -> str | None:
        """Say what a path is that no command may write; of very many files, only where its name may tell."""
        place = self._joined(path)
        if place in self._asked:
            return self._asked[place]
        if len(self._asked) >= _MOST_ASKED:
            if not any(each in place.casefold() for each in _TELLING):
                self.ruling.left.append(f"it names more than {_MOST_ASKED:,} files")
                return None
            if len(self._asked) >= 3 * _MOST_ASKED:
                return "one of too many files"
        return self._asked.setdefault(place, self._is_protected(place))

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
                self._refuse(*_OTHER_HOME)
            if name in {"sudo", "doas"}:
                self.ruling.left.append(f"{name} may hide from git that an agent runs it")
        if name == "xargs":
            self._judge_xargs(run.words, command)
        if run.unknown:
            self.ruling.left.append(f"{name} has an option that is not known")
        if run.split is not None:
            text = " ".join(["env", run.split, *run.words]) if name == "env" else run.split
            self._judge_script(text, name, depth)
        else:
            self._judge_words(run.words, command, depth)

    def _judge_xargs(self, words: Sequence[str], command: SimpleCommand) -> None:
        """Judge what is run with further arguments, which come from the command before."""
        if any(map(_NAMES_GIT.search, words)):
            self.ruling.left.append("xargs adds arguments to a command of git")
        elif words and words[0].rpartition("/")[2] in CHANGERS:
            for each in command.source.words[1:] if command.source is not None else ():
                self._judge_write(each, f"lets {words[0]} change what is in")

    def _judge_shell(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        call = read_shell_call(rest)
        if call.unknown:
            self.ruling.left.append(f"{name} has an option that is not known")
        if call.script is not None:
            self._judge_script(call.script, name, depth)
        elif not call.reads_input:
            self.ruling.left.append(f"{name} runs a file that was not read")
        elif not {"--version", "--help"}.intersection(rest):
            self._judge_input(name, command, depth)

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
                changes |= run[:1] != [] and run[0].rpartition("/")[2] in CHANGERS | {"cp", "ln"}
                self._judge_words(run, command, depth)
        if not changes:
            return
        first = next((at for at, each in enumerate(rest) if each[:1] in {"-", "(", "!"}), len(rest))
        places = rest[:first] or ["."]
        for place in places:
            self._judge_write(place, "lets find change files in")
        names = [rest[at + 1] for at, each in enumerate(rest[:-1]) if each in {"-name", "-iname"}]
        if any(fnmatchcase(hook, each) for each in names for hook in _SOUGHT if each.strip("*?")):
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
        if words[:1] == ["install"] and any(each.startswith(("--trust-ref", "--signer")) for each in rest):
            self._refuse("the command changes whose rules the hooks trust", "leave that to a maintainer")
        self.ruling.clears_intent |= words[:2] == ["intent", "clear"]

    def _judge_git(self, call: GitCall, depth: int) -> None:
        if call.subcommand == "patchgate":
            self._judge_patchgate(list(call.arguments))
            return
        found = judge_git(call)
        if self._has_other_home:
            self._refuse(*_OTHER_HOME)
        for message, hint in found.refusals:
            self._refuse(message, hint)
        self.ruling.forced += found.forced
        self.ruling.left += found.left
        for script in found.scripts:
            self._judge_script(script, "git", depth)
        for path in found.written:
            self._judge_write(path, "lets git change")

    def _refuse(self, message: str, hint: str) -> None:
        self.ruling.refusals.append(CommandRefusal(message, hint))


def _shown(path: str) -> str:
    return path.replace(UNKNOWN, "…")


def _is_git(word: str) -> bool:
    name = word.rpartition("/")[2]
    return name == "git" or name.startswith("git-")
