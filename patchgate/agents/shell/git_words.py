"""Read the arguments of a git command, and find what skips or replaces the hooks.

Knows git's own rules: options before the subcommand, abbreviated long options, short options in one word,
values in the next word (git(1), gitcli(7), and the page of each subcommand). What a subcommand of plumbing
does to refs is left to the hooks, which see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote

from patchgate.agents.shell.shell_words import UNKNOWN
from patchgate.values import dataclass, field

_GLOBAL_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"}
)
_NO_VERIFY = "--no-verify"
# Subcommands with --no-verify; the short options that take a value, in the same word or in the next.
_VERIFYING = {"am": "", "commit": "mFCct", "merge": "mFsX", "pull": "sXjo", "push": "o", "rebase": "sXx"}
# Their short options whose value can only be in the same word.
_ATTACHED = {"commit": "Su", "merge": "S", "am": "CpS", "pull": "S", "rebase": "CS", "push": ""}
# Where -n is --no-verify; elsewhere it is --dry-run or --no-stat.
_SHORT_NO_VERIFY = frozenset({"am", "commit"})
_LONG_WITH_VALUE = (
    *("message", "file", "author", "date", "reuse-message", "reedit-message", "fixup", "squash", "template"),
    *(
        "cleanup",
        "trailer",
        "pathspec-from-file",
        "strategy",
        "strategy-option",
        "exec",
        "repo",
        "receive-pack",
    ),
    *("push-option", "onto", "into-name"),
)
# Here --no-verify can only be a text that is searched or shown.
_READERS = frozenset(
    {"blame", "cat-file", "diff", "grep", "help", "log", "ls-files", "ls-tree", "rev-list", "rev-parse"}
    | {"shortlog", "show", "status"}
)
_KNOWN = (
    _READERS
    | frozenset(_VERIFYING)
    | frozenset(
        {"add", "apply", "archive", "bisect", "branch", "bundle", "checkout", "cherry-pick", "clean", "clone"}
        | {
            "describe",
            "fetch",
            "format-patch",
            "fsck",
            "gc",
            "init",
            "lfs",
            "mv",
            "notes",
            "patchgate",
            "prune",
        }
        | {"ls-remote", "name-rev", "range-diff", "reflog", "remote", "repack", "reset", "restore", "revert"}
        | {
            "rm",
            "show-ref",
            "sparse-checkout",
            "stash",
            "submodule",
            "switch",
            "tag",
            "worktree",
            "config",
            "",
        }
    )
)
# Of clean, that it removes, of stash, that it takes untracked files too.
_REMOVES = re.compile("-[a-zA-Z]*[fua][a-zA-Z]*|--force|--include-untracked|--all")
_MAY_SKIP = re.compile("-[a-zA-Z]*n[a-zA-Z]*|--no-v[a-z]*")
_READING_CONFIG = ("--get", "--list", "-l", "--show-")
_CONFIG_WITH_VALUE = frozenset(
    {"-f", "--file", "--blob", "--type", "--default", "--comment", "--value", "--url", "-t"}
)
_WILD = frozenset({UNKNOWN, "*", "?", "["})
_HOOKS_PATH = "core.hookspath"
# Keys whose value git runs with a shell (git-config(1)).
_RUN = frozenset(
    {"core.askpass", "core.editor", "core.fsmonitor", "core.pager", "core.sshcommand", "diff.external"}
    | {"sequence.editor"}
)
_RUN_ENDS = (".clean", ".cmd", ".command", ".helper", ".process", ".smudge", ".textconv")
_KEEP_HOOKS = "run it without that; the hooks check every commit"


@dataclass(frozen=True, slots=True)
class GitCall:
    """A git command: the config that it sets for itself, its subcommand and the arguments of that.

    `is_replaced`: git takes its programs from another folder (`--exec-path=`).
    """

    settings: tuple[str, ...]
    subcommand: str
    arguments: tuple[str, ...]
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class ForcedPush:
    """A push that forces or deletes: the remote, and the refs as they are named there.

    `remote` is empty where none is named; `refs` is None if it is every branch, and has an empty name for
    the branch that is checked out.
    """

    remote: str
    refs: tuple[str, ...] | None


@dataclass(slots=True)
class GitRuling:
    """What a git command does: a refusal is a message and the next step, `left` is what was not read."""

    refusals: list[tuple[str, str]] = field(default_factory=list)
    forced: list[ForcedPush] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def read_git_call(words: Sequence[str]) -> GitCall:
    """Read the words after `git`."""
    settings: list[str] = []
    at, replaced = 0, False
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, _, value = word.partition("=")
        takes_next = word in _GLOBAL_WITH_VALUE
        following = words[at + 1] if takes_next and at + 1 < len(words) else value
        if name in {"-c", "--config-env"}:
            settings.append(following)
        elif name == "--exec-path" and value:
            replaced = True
        at += 2 if takes_next else 1
    subcommand = words[at] if at < len(words) else ""
    return GitCall(tuple(settings), subcommand, tuple(words[at + 1 :]), replaced)


def judge_git(call: GitCall) -> GitRuling:
    """Judge one git command."""
    found = GitRuling()
    for setting in call.settings:
        key, _, value = setting.partition("=")
        if key.lower() == f"alias.{call.subcommand}".lower():
            value = " ".join([value, *map(quote, call.arguments)])
        _judge_setting(found, key, value, "sets")
    name = call.subcommand
    if call.is_replaced:
        found.refusals.append(("git --exec-path= replaces git's programs", _KEEP_HOOKS))
    _judge_skipping(found, name, call.arguments)
    if name == "push":
        _judge_push(found, call.arguments)
    elif name in {"checkout", "restore"}:
        found.written += _restored(name, call.arguments)
    elif name in {"mv", "rm"}:
        found.written += [each for each in call.arguments if not each.startswith("-")]
    elif name in {"clean", "stash"} and any(_REMOVES.fullmatch(word) for word in call.arguments):
        found.left.append(f"git {name} takes untracked files away, settings of agents too")
    elif name == "bisect" and call.arguments[:1] == ("run",):
        found.left.append("git bisect run runs a program")
    elif name not in _KNOWN and any(_MAY_SKIP.fullmatch(word) for word in call.arguments):
        found.left.append(f"git {name} may be an alias")
    found.scripts += _run_by(name, call.arguments)
    return found


def _judge_skipping(found: GitRuling, name: str, arguments: Sequence[str]) -> None:
    """Judge whether a command skips the hooks, by its options or by git's config."""
    if _WILD.intersection(name):
        found.left.append("which command of git runs is known only to the shell")
    elif name in _VERIFYING:
        if _skips_hooks(name, arguments):
            found.refusals.append(
                (f"git {name} {_NO_VERIFY} skips the hooks", f"{_KEEP_HOOKS}; fix what they refuse")
            )
        if any(_WILD.intersection(word) for word in _options(name, arguments)):
            found.left.append(f"an option of git {name} is known only to the shell")
    elif name == "config":
        _judge_config(found, arguments)
    elif name not in _READERS and _NO_VERIFY in arguments:
        found.refusals.append((f"git {name} {_NO_VERIFY} skips the hooks", _KEEP_HOOKS))


def _run_by(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the texts that a command of git runs with a shell."""
    if name == "rebase":
        yield from _commands_of_rebase(arguments)
    elif name == "difftool":
        yield from _values_of(arguments, "-x", "--extcmd")
    elif name == "filter-branch":
        yield from (value for word, value in pairwise(arguments) if word.endswith("-filter"))
    elif name == "submodule" and "foreach" in arguments:
        words = list(arguments[arguments.index("foreach") + 1 :])
        while words and words[0].startswith("-"):
            words.pop(0)
        yield " ".join(words)


def _judge_setting(found: GitRuling, key: str, value: str, does: str) -> None:
    """Judge that a key of git's config is set, for one command or for all."""
    small = key.lower()
    if UNKNOWN in small:
        found.left.append("a key of git's config is known only to the shell")
    elif small == _HOOKS_PATH or small.startswith("patchgate.") or _switches_hook(small):
        found.refusals.append(
            (f"the command {does} {key} in git's config, which can replace the hooks", _KEEP_HOOKS)
        )
    elif small.startswith(("include.", "includeif.")):
        found.left.append("the config of git includes a file that was not read")
    elif small.startswith("alias."):
        if value.startswith("!"):
            found.scripts.append(value[1:])
        else:
            found.scripts.append(f"git {value}")
    elif small in _RUN or small.endswith(_RUN_ENDS):
        found.scripts.append(value.removeprefix("!"))


def _restored(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the files that are taken from another commit than HEAD."""
    if name == "checkout":
        before, is_split, after = list(arguments), "--" in arguments, []
        if is_split:
            at = before.index("--")
            before, after = before[:at], before[at + 1 :]
        named = [each for each in before if not each.startswith("-")]
        yield from after if named[:1] not in ([], ["HEAD"]) else ()
        yield from named[1:]
    elif any(each != "HEAD" for each in _values_of(arguments, "-s", "--source")):
        yield from (each for each in arguments if not each.startswith("-"))


def _switches_hook(key: str) -> bool:
    return key.startswith("hook.") and key.endswith((".enabled", ".event", ".command"))


def _options(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the options among the arguments: no values, nothing after `--`."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            return
        if word.startswith("--"):
            yield word
            long = word[2:]
            with_value = _LONG_WITH_VALUE + (("recurse-submodules",) if name == "push" else ())
            if "=" not in long and long and any(each.startswith(long) for each in with_value):
                at += 1
        elif word.startswith("-") and len(word) > 1:
            yield word
            at += _ends_with_taker(name, word)
        elif word.startswith(UNKNOWN):
            yield word


def _letters(name: str, word: str) -> tuple[str, bool]:
    """Return the short options of one word, and whether the value of the last one is the next word."""
    for at, letter in enumerate(word[1:], start=1):
        if letter in _VERIFYING.get(name, ""):
            return word[1 : at + 1], at + 1 == len(word)
        if letter in _ATTACHED.get(name, ""):
            return word[1 : at + 1], False
    return word[1:], False


def _ends_with_taker(name: str, word: str) -> int:
    return int(_letters(name, word)[1])


def _skips_hooks(name: str, arguments: Sequence[str]) -> bool:
    """Whether the last of --verify and --no-verify, in any form, skips the hooks."""
    skips = False
    for word in _options(name, arguments):
        if word.startswith("--no-v") and _NO_VERIFY.startswith(word):
            skips = True
        elif word.startswith("--verif") and "--verify".startswith(word):
            skips = False
        elif name in _SHORT_NO_VERIFY and not word.startswith("--") and "n" in _letters(name, word)[0]:
            skips = True
    return skips


def _values_of(arguments: Sequence[str], short: str, long: str) -> Iterator[str]:
    for at, word in enumerate(arguments):
        if word in {short, long}:
            yield from arguments[at + 1 : at + 2]
        elif word.startswith(long + "="):
            yield word[len(long) + 1 :]


def _commands_of_rebase(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the commands of `-x` and `--exec`, in each of their forms."""
    for at, word in enumerate(arguments):
        following = arguments[at + 1 : at + 2]
        name, is_attached, value = word.partition("=")
        if name.startswith("--ex") and "--exec".startswith(name):
            yield from [value] if is_attached else following
        elif word.startswith("-") and not word.startswith("--"):
            letters, takes_next = _letters("rebase", word)
            if letters.endswith("x"):
                yield from following if takes_next else [word[len(letters) + 1 :]]


def _judge_config(found: GitRuling, arguments: Sequence[str]) -> None:
    """Judge `git config`, in its old form with options and in the form with subcommands (git 2.46)."""
    if any(word.startswith(_READING_CONFIG) for word in arguments):
        return
    names: list[str] = []
    options: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.startswith("-") and len(word) > 1:
            options.append(word)
            at += word in _CONFIG_WITH_VALUE
        else:
            names.append(word)
    if names[:1] in (["get"], ["list"]):
        return
    verb = names.pop(0) if names[:1] in (["set"], ["unset"], ["edit"]) else ""
    if verb == "edit" or "-e" in options or "--edit" in options:
        found.left.append("git config opens an editor")
        return
    sections = {each for each in options if each.startswith(("--rem", "--ren"))}
    if names[:1] in (["remove-section"], ["rename-section"]):
        sections.add(names.pop(0))
    if not names:
        return
    if sections:
        if any(each in {"core", "patchgate"} or each.startswith("hook.") for each in map(str.lower, names)):
            what = f"the command moves the section {names[0]} of git's config, which can replace the hooks"
            found.refusals.append((what, _KEEP_HOOKS))
        return
    writes = (
        len(names) > 1 or verb or any(each.startswith(("--unset", "--replace", "--add")) for each in options)
    )
    if writes:
        _judge_setting(found, names[0], " ".join(names[1:]), "changes")


def _judge_push(found: GitRuling, arguments: Sequence[str]) -> None:
    """Find out whether a push forces or deletes, and which refs."""
    is_forced, deletes, is_all = False, False, False
    for word in _options("push", arguments):
        letters = "" if word.startswith("--") else _letters("push", word)[0]
        is_forced |= "f" in letters or word.partition("=")[0].startswith("--for")
        deletes |= "d" in letters or (word.startswith("--del") and "--delete".startswith(word))
        is_all |= word in {"--all", "--branches"}
        if word.startswith("--mi") and "--mirror".startswith(word):
            is_forced = is_all = True
        if word == "--prune":
            deletes = is_all = True
    remote, *refspecs = [*_places(arguments), *_values_of(arguments, "\n", "--repo")] or [""]
    if any(UNKNOWN in each for each in refspecs):
        found.left.append("a ref of git push is known only to the shell")
    refs: list[str] = []
    is_all_forced = False
    for refspec in refspecs:
        source, colon, target = refspec.lstrip("+").partition(":")
        is_all_forced |= refspec.startswith("+") and "*" in refspec
        if is_forced or deletes or refspec.startswith("+") or (colon and not source):
            is_all |= "*" in refspec or (bool(colon) and not target and not source)
            refs.append("" if source in {"HEAD", "@"} and not target else target or source)
    if is_all_forced or (is_all and (is_forced or deletes)):
        found.forced.append(ForcedPush(remote, None))
    elif refs or (is_forced and not refspecs):
        found.forced.append(ForcedPush(remote, tuple(refs) or ("",)))


def _places(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of a push that are no options and no values of options: the remote and refspecs."""
    at, is_over = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if is_over or not word.startswith("-") or word == "-":
            yield word
        elif word == "--":
            is_over = True
        elif word.startswith("--"):
            at += word in {"--repo", "--receive-pack", "--exec", "--push-option", "--recurse-submodules"}
        else:
            at += _ends_with_taker("push", word)
