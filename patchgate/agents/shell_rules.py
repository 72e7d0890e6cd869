"""Find in a shell command what would bypass the git hooks: skipped hooks, other hooks, writes below `.git`.

A plain limit: only words that are written out are judged. What a running shell makes of variables, `eval`
and scripts is listed as `left`, and the git hooks decide about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchgate.agents.git_words import ForcedPush, GitCall, judge_git, read_git_call
from patchgate.agents.shell_text import UNKNOWN, SimpleCommand, read_shell

if TYPE_CHECKING:
    from patchgate.report.verdict import Finding

RULE = "command-bypasses-hooks"
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})
_PATCHGATE = frozenset({"patchgate", "git-patchgate"})
# Programs that run the command after them; the options that take a value in the next word.
_RUNNERS = {
    "builtin": "",
    "command": "",
    "doas": "-u -C",
    "env": "-u -C --unset --chdir",
    "exec": "-a",
    "ionice": "-c -n -p",
    "nice": "-n --adjustment",
    "nohup": "",
    "setsid": "",
    "stdbuf": "-i -o -e",
    "sudo": "-u -g -h -p -C -D -R -T -U",
    "time": "-f -o",
    "timeout": "-s -k --signal --kill-after",
    "xargs": "-a -d -E -I -L -n -P -s",
}
_NUMBERED = frozenset({"timeout"})
# Programs that change each of their files, and those that change the last one.
_CHANGERS = frozenset(
    {"chmod", "chown", "mkdir", "mv", "patch", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"}
)
_COPIERS = frozenset({"cp", "install", "ln", "rsync"})
_IN_PLACE = frozenset({"perl", "ruby", "sed"})
_ASSIGNERS = frozenset({"declare", "export", "local", "readonly", "setenv", "typeset"})
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
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
        for redirection in command.redirections:
            if redirection.operator in _WRITING:
                self._judge_write(redirection.target, "redirects its output to")
        self._judge_words(command.words, command, depth)

    def _judge_words(self, words: Sequence[str], command: SimpleCommand, depth: int) -> None:
        if not words:
            return
        if UNKNOWN in words[0]:
            self.ruling.left.append("which program runs is known only to the shell")
            return
        name, rest = words[0].rpartition("/")[2], list(words[1:])
        if name == "git":
            self._judge_git(read_git_call(rest), depth)
        elif name in _PATCHGATE:
            self._judge_patchgate(rest)
        elif name in _RUNNERS:
            self._judge_words(self._after_runner(name, rest), command, depth)
        elif name in _SHELLS:
            self._judge_shell(name, rest, command, depth)
        elif name == "function":
            self._judge_words(rest[rest.index("{") + 1 :] if "{" in rest else (), command, depth)
        elif name == "find":
            self._judge_find(rest, command, depth)
        elif name in _ASSIGNERS or name == "set":
            self._judge_assigner(name, rest)
        else:
            self._judge_builtin(name, rest, depth)
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
        elif name == "trap":
            self._judge_script("".join(rest[:1]), name, depth)
        elif name == "alias":
            for word in rest:
                self._judge_script(word.partition("=")[2], name, depth)

    def _judge_variable(self, name: str) -> None:
        if name.startswith("PATCHGATE_"):
            self._refuse(
                f"the command sets {name}, which changes what the hooks of patchgate do",
                f"run it without {name}; only a maintainer sets it",
            )
        elif name.startswith("GIT_CONFIG") and name != "GIT_CONFIG_NOGLOB":
            self._refuse(f"the command sets {name}, which can replace git's hooks", f"run it without {name}")

    def _judge_assigner(self, name: str, rest: Sequence[str]) -> None:
        if name == "setenv":
            self._judge_variable(rest[0] if rest else "")
        for word in rest if name != "set" else ():
            self._judge_variable(word.partition("=")[0] if "=" in word else "")

    def _judge_write(self, path: str, does: str) -> None:
        what = self._is_protected(self._joined(path))
        if what is not None:
            self._refuse(
                f"the command {does} {_shown(path)}, which is {what}",
                "leave that file as it is; ask a maintainer if it must change",
            )

    def _joined(self, path: str) -> str:
        return path if path.startswith("/") or not self._folder else f"{self._folder}/{path}"

    def _change_folder(self, rest: Sequence[str]) -> None:
        places = [each for each in rest if not each.startswith("-") or each == "-"]
        place = places[0] if places else "~"
        self._folder = UNKNOWN if place == "-" else self._joined(place)

    def _after_runner(self, name: str, rest: Sequence[str]) -> Sequence[str]:
        """Return the command that `env`, `sudo` or the like runs; assignments before it are judged."""
        with_value, at = _RUNNERS[name].split(), 0
        while at < len(rest):
            word = rest[at]
            if name in {"env", "sudo", "doas"} and "=" in word and not word.startswith("-"):
                self._judge_variable(word.partition("=")[0])
            elif name == "env" and word in {"-S", "--split-string"}:
                self.ruling.left.append("env splits a text into words")
            elif word == "--":
                at += 1
                break
            elif not word.startswith("-") or word == "-":
                break
            at += 2 if word in with_value else 1
        if name in _NUMBERED:
            at += 1
        return rest[at:]

    def _judge_shell(self, name: str, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        at = 0
        while at < len(rest) and rest[at][:1] in {"-", "+"} and rest[at] != "-":
            word = rest[at]
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                if at + 1 < len(rest):
                    self._judge_script(rest[at + 1], name, depth)
                return
            at += 2 if word in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"} else 1
        if at < len(rest):
            self.ruling.left.append(f"{name} runs a file that was not read")
        elif not rest or any(each.operator.startswith("<") for each in command.redirections):
            self.ruling.left.append(f"{name} reads commands from its input")

    def _judge_script(self, script: str, name: str, depth: int) -> None:
        if UNKNOWN in script:
            self.ruling.left.append(f"{name} runs a text that only the shell knows")
        self.judge_text(script, depth + 1)

    def _judge_find(self, rest: Sequence[str], command: SimpleCommand, depth: int) -> None:
        if "-delete" in rest:
            for place in rest[: next((at for at, each in enumerate(rest) if each[:1] in "-(!"), len(rest))]:
                self._judge_write(place, "lets find delete files in")
        for at, word in enumerate(rest):
            if word in {"-exec", "-execdir", "-ok", "-okdir"}:
                after = list(rest[at + 1 :])
                ends = [place for place, each in enumerate(after) if each in {";", "+"}]
                self._judge_words(after[: ends[0] if ends else len(after)], command, depth)

    def _judge_patchgate(self, rest: Sequence[str]) -> None:
        words = tuple(each for each in rest if not each.startswith("-"))
        if words[:1] in _REMOVES_HOOKS or words[:2] in _REMOVES_HOOKS:
            self._refuse(
                "the command removes the hooks of patchgate", "leave them; a maintainer may remove them"
            )

    def _judge_git(self, call: GitCall, depth: int) -> None:
        if call.subcommand == "patchgate":
            self._judge_patchgate(call.arguments)
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


def _written_by(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the files that a program changes, as far as its arguments show."""
    files = [each for each in rest if not each.startswith("-")]
    if name in _CHANGERS:
        yield from files
    elif name in _COPIERS:
        yield from files[-1:]
        for at, word in enumerate(rest):
            if word in {"-t", "--target-directory"}:
                yield from rest[at + 1 : at + 2]
            elif word.startswith("--target-directory="):
                yield word.partition("=")[2]
    elif name in _IN_PLACE:
        is_in_place = any(
            each.startswith("--in-place") or (each.startswith("-") and each[1:2] != "-" and "i" in each)
            for each in rest
        )
        yield from files if is_in_place else ()
    elif name == "dd":
        yield from (each[3:] for each in rest if each.startswith("of="))
