"""Read the options of programs that run another command, and of shells: where that command begins.

The options are those of coreutils, util-linux, findutils, sudo, OpenDoas and bash. One that is not known may
take the next word, so that what runs is not known for sure.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.values import dataclass, field


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a program: letters and long names, without and with a value in the next word."""

    flags: str = ""
    taking: str = ""
    long_flags: tuple[str, ...] = ()
    long_taking: tuple[str, ...] = ()
    # Their value can only be in the same word.
    attached: str = ""


_RUNNERS = {
    "builtin": _Options(),
    "command": _Options("pvV"),
    "coproc": _Options(),
    "busybox": _Options(),
    "chroot": _Options("", "", ("skip-chdir",), ("userspec", "groups")),
    "doas": _Options("Lns", "uC"),
    "env": _Options(
        "i0v",
        "uCSa",
        ("ignore-environment", "null", "debug", "block-signal", "default-signal", "ignore-signal"),
        ("unset", "chdir", "split-string", "argv0"),
    ),
    "exec": _Options("cl", "a"),
    "flock": _Options(
        "exsnuoF",
        "wEc",
        ("exclusive", "shared", "nonblock", "unlock", "close", "no-fork", "verbose"),
        ("timeout", "wait", "conflict-exit-code", "command"),
    ),
    "ionice": _Options("t", "cnpPu", ("ignore",), ("class", "classdata", "pid", "pgid", "uid")),
    "nice": _Options("", "n", (), ("adjustment",)),
    "nohup": _Options(),
    "setsid": _Options("cfw", "", ("ctty", "fork", "wait")),
    "stdbuf": _Options("", "ioe", (), ("input", "output", "error")),
    "sudo": _Options(
        "AbBEeHiKklNnPSsVv",
        "CDghpRrtTUu",
        ("background", "preserve-env", "login", "non-interactive", "set-home", "shell", "stdin", "askpass"),
        ("user", "group", "host", "prompt", "chdir", "chroot", "close-from", "command-timeout", "other-user"),
    ),
    "taskset": _Options("acp", "", ("all-tasks", "cpu-list", "pid")),
    "time": _Options("apqvV", "fo", ("append", "portability", "quiet", "verbose"), ("format", "output")),
    "timeout": _Options("fpv", "sk", ("foreground", "preserve-status", "verbose"), ("signal", "kill-after")),
    "watch": _Options(
        "bcdegprtx",
        "nq",
        ("beep", "color", "differences", "errexit", "chgexit", "exec", "precise", "no-title"),
        ("interval", "equexit"),
    ),
    "xargs": _Options(
        "0oprtx",
        "adEILnPs",
        ("null", "open-tty", "interactive", "no-run-if-empty", "verbose", "exit", "replace", "eof"),
        ("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"),
        "eil",
    ),
}
RUNNERS = frozenset(_RUNNERS)
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})
_SHELL_FLAGS = frozenset("abcefhiklmnprstuvxBCDEHPT")
_SHELL_LONG_TAKING = frozenset({"--rcfile", "--init-file"})
_SHELL_LONG = frozenset(
    {"--login", "--noprofile", "--norc", "--posix", "--verbose", "--debugger", "--restricted", "--version"}
    | {"--help", "--noediting"}
)
_ASSIGNING = frozenset({"env", "sudo", "doas", "time", "coproc"})
# The first word after the options is no part of the command: a number, a file, a folder, a mask.
_NUMBERED = frozenset({"chroot", "flock", "taskset", "timeout"})
_COMPOUND = frozenset({"case", "for", "if", "select", "until", "while", "{"})


@dataclass(slots=True)
class Runner:
    """What a program runs: the words of it, the variables that it sets and unsets, or a text.

    `is_emptied`: it runs with an empty environment. `unknown` is an option that is not known.
    """

    words: Sequence[str] = ()
    sets: list[str] = field(default_factory=list)
    unsets: list[str] = field(default_factory=list)
    split: str | None = None
    is_emptied: bool = False
    unknown: str = ""

    def take(self, name: str, option: str, value: str) -> None:
        """Note an option of `env`, `exec` or `flock`."""
        if name == "flock" and option in {"c", "command"}:
            self.split = value
        self.is_emptied |= name == "exec" and option == "c"
        if name != "env":
            return
        if option in {"u", "unset"}:
            self.unsets.append(value)
        elif option in {"S", "split-string"}:
            self.split = value
        elif option in {"i", "ignore-environment"}:
            self.is_emptied = True


def read_runner(name: str, words: Sequence[str]) -> Runner:
    """Read the words after the name of a program that runs another command."""
    found, options, at = Runner(), _RUNNERS[name], 0
    while at < len(words) and found.split is None:
        word = words[at]
        if word == "--":
            at += 1
            break
        if word == "-" and name == "env":
            found.is_emptied = True
            at += 1
        elif word.startswith("-") and word != "-":
            at += 1 + _read_option(found, name, options, word, words[at + 1 : at + 2])
        elif name in _ASSIGNING and "=" in word:
            found.sets.append(word.partition("=")[0])
            at += 1
        else:
            break
    if found.split is not None and name == "flock":
        return found
    found.words = words[at + (name in _NUMBERED) :]
    if name == "flock" and found.words[:1] and found.words[0] in {"-c", "--command"}:
        found.split, found.words = " ".join(found.words[1:2]), ()
    elif name == "watch":
        found.split, found.words = " ".join(found.words), ()
    elif name == "coproc" and found.words[1:2] and found.words[1] in _COMPOUND:
        found.words = found.words[1:]
    return found


def _read_option(found: Runner, name: str, options: _Options, word: str, following: Sequence[str]) -> int:
    """Read one word of options; return how many of the next words are values."""
    after = following[0] if following else ""
    if word.startswith("--"):
        given, equals, value = word[2:].partition("=")
        long = next((each for each in options.long_taking if each.startswith(given)), None)
        if long is not None:
            found.take(name, long, value if equals else after)
            return 0 if equals else 1
        flag = next((each for each in options.long_flags if each.startswith(given)), None)
        found.take(name, flag or "", value)
        found.unknown = found.unknown or ("" if flag else word)
        return 0
    for at, letter in enumerate(word[1:], start=1):
        if letter in options.taking:
            rest = word[at + 1 :]
            found.take(name, letter, rest or after)
            return 0 if rest else 1
        if letter in options.attached or (name == "nice" and letter.isdigit()):
            return 0
        found.take(name, letter, "")
        if letter not in options.flags:
            found.unknown = found.unknown or word
    return 0


@dataclass(frozen=True, slots=True)
class ShellCallOptions:
    """How a shell is started: the text after `-c`, else the words of a file; an option that is not known.

    `reads_input`: it reads its commands from its standard input.
    """

    script: str | None
    words: Sequence[str]
    unknown: str = ""
    reads_input: bool = False


def read_shell_call(words: Sequence[str]) -> ShellCallOptions:
    """Read the words after the name of a shell: options, then the text of `-c`, or a file."""
    at, has_text, unknown, reads_input = 0, False, "", False
    while at < len(words) and words[at][:1] in {"-", "+"} and words[at] not in {"-", "--"}:
        word = words[at]
        at += 1
        if word.startswith("--"):
            if word in _SHELL_LONG_TAKING:
                at += 1
            elif word not in _SHELL_LONG:
                unknown = unknown or word
            continue
        has_text |= word.startswith("-") and "c" in word
        reads_input |= word.startswith("-") and "s" in word
        at += sum(letter in "oO" for letter in word[1:])
        if not _SHELL_FLAGS.issuperset(word[1:].replace("o", "").replace("O", "")):
            unknown = unknown or word
    at += at < len(words) and words[at] in {"-", "--"}
    if has_text and at < len(words):
        return ShellCallOptions(words[at], (), unknown)
    reads_input |= list(words[at : at + 1]) in ([], ["/dev/stdin"])
    return ShellCallOptions(None, words[at:], unknown, reads_input)
