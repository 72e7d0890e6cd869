"""Check single texts of a config: a pattern, a prefix, a ref, an id, an argument, a version clause …

Each check returns its text or raises `TextError`, a ValueError that names the next step. The checks know
nothing about TOML or keys. `glob_syntax` and `glob_matching` define what a pattern means, `component` what a
path is to a component, `command` how a command is built, `verify` what a threshold means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from patchgate.git.path import IGNORED, RepoPath, faults, fold, is_git_alias
from patchgate.git.quoting import printable
from patchgate.policy.file_kinds import POLICY_PATHS

MAX_PATTERN = 1000
MAX_STAR_RUNS = 4
MAX_PREFIX = 4096
_MOST_REF = 255
MARKER_NAME = "[a-z0-9]+(?:-[a-z0-9]+)*"
MAX_NAME = 60
MAX_EXAMPLE = 100
MAX_MARKERS = 50
MAX_SUFFIX = 255
COMPONENT_ID = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?"
# Windows reserves names up to the first dot: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
_LIKE = "name a file like contracts/shaping/interface.json"


class TextError(ValueError):
    """What is wrong with a text; `choices` are the words that the author may have meant."""

    def __init__(self, message: str, hint: str | None = None, choices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.choices = choices


_MOST_SPECIFIER = 200


def version_satisfies(specifier: str, version: str) -> bool:
    """Whether a version is within clauses such as `>=0.1,<2`; a pre-release counts like any version.

    Raises:
        ValueError: the specifier or the version is invalid.

    Source: PEP 440, by `packaging`; it is imported (15 ms) only if a policy has the key.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    # packaging skips empty clauses; here they are refused.
    parts = specifier.split(",") if len(specifier) <= _MOST_SPECIFIER else [""]
    try:
        clauses = SpecifierSet(specifier if all(map(str.strip, parts)) else "=")
    except InvalidSpecifier:
        message = f'"{printable(specifier, 60)}" is not a list of version clauses'
        raise TextError(message, 'write it like ">=0.1,<2"') from None
    return clauses.contains(version, prereleases=True)


def check_specifier(text: str) -> str:
    """Check a version specifier."""
    version_satisfies(text, "0")
    return text


def check_pattern(text: str) -> str:
    """Check that a gitignore pattern is valid, not too costly, and can match something.

    Source: gitignore(5). `glob_syntax` decides what a pattern means and whether it can match.
    """
    from patchgate.policy.glob_syntax import PatternError, parse

    if len(text) > MAX_PATTERN:
        raise TextError(
            f"the pattern is longer than {MAX_PATTERN} characters", "name a parent folder instead"
        )
    if "\0" in text or "\n" in text:
        raise TextError("a pattern cannot contain a NUL or a newline", "write one pattern per list element")
    if not {".", ".."}.isdisjoint(text.rstrip(" ").split("/")):
        raise TextError(
            'a pattern with "." or ".." as a component matches nothing', "write the path without it"
        )
    if sum(piece[0] == "*" for piece in re.findall(r"\\.|\*+", text)) > MAX_STAR_RUNS:
        raise TextError(
            f"the pattern has more than {MAX_STAR_RUNS} runs of *", "name a parent folder instead"
        )
    try:
        parse(text, fold)
    except PatternError as error:
        message, _, hint = str(error).partition("; ")
        raise TextError(message, hint or None) from None
    return text


def check_owned(text: str) -> str:
    """Check a pattern of owned paths, or the word for the control files."""
    if text.startswith("@") and text != POLICY_PATHS:
        raise TextError(
            f"`{printable(text, 60)}` is not a group of files",
            f'only "{POLICY_PATHS}" is; for a file of that name write "/{printable(text, 60)}"',
        )
    return check_pattern(_visible(text))


def _visible(text: str) -> str:
    """Check that a text is what its readers see: who approves it may not notice another name."""
    unseen = IGNORED.search(text) or re.search(r"[^\S ]", text)
    if unseen is not None:
        raise TextError(f"this has a character that nobody sees, U+{ord(unseen[0]):04X}", "leave it out")
    return text


def check_principal(text: str) -> str:
    """Check a principal as the first field of an allowed_signers file can have it, without patterns.

    Source: ssh-keygen(1), ALLOWED SIGNERS.
    """
    if not re.fullmatch(r"[^\s,*?!#\"\x00-\x20\x7f]{1,255}", text):
        raise TextError(
            f"`{printable(text, 60)}` is not a principal of one signer",
            "write it as in .patchgate/allowed_signers, without patterns, like alice@example.com",
        )
    return _visible(text)


def check_trailer(text: str) -> str:
    """Check a trailer of commit messages. Source: git-interpret-trailers."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}: ?[^\x00-\x20\x7f][^\x00-\x1f\x7f]{0,199}", text):
        raise TextError(
            f"`{printable(text, 60)}` is not a trailer",
            'write one line "Key: value", as in "Co-Authored-By: Bot <bot@example.com>"',
        )
    return text


def check_repository_id(text: str) -> str:
    """Check the name of a repository in approvals."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{8,64}", text):
        raise TextError(
            "an id has 8 to 64 letters, digits, dots, hyphens and underscores",
            "git patchgate init writes a random one",
        )
    return text


def _folded(text: str) -> str:
    return fold(text.encode("utf-8", "surrogateescape"))


def check_prefix(text: str) -> str:
    """Check a literal path from the root, of a file or a folder (with or without a last `/`)."""
    components = _folded(text.removesuffix("/")).split("/")
    if not text:
        raise TextError("an empty path names nothing", 'for the whole repository, write "."')
    if text[0] == "/":
        raise TextError("paths are relative to the repository's root", "remove the leading /")
    if not {"", ".."}.isdisjoint(components):
        raise TextError('a path cannot have an empty component or ".."', "write the plain path from the root")
    if "\0" in text or "\n" in text or len(text) > MAX_PREFIX:
        raise TextError(
            f"the path has more than {MAX_PREFIX} characters, or contains a NUL or a newline",
            "name a parent folder instead",
        )
    if "*" in text:
        raise TextError(
            "this key takes literal paths, not patterns",
            "remove the `*`, or use `deny`, which takes patterns",
        )
    return text


def check_suffix(text: str) -> str:
    """Check a literal file suffix: not empty, and possible in a file name."""
    if not _folded(text):
        raise TextError("an empty suffix matches every name", "remove it")
    if len(text) > 255 or not {"/", "\0", "\n", "*"}.isdisjoint(text):
        raise TextError("a suffix is the literal end of a file's name", 'write it like ".pem"')
    return text


def check_rule(text: str) -> str:
    """Check the id of a rule whose level is set: the rule must exist and not be an invariant."""
    from patchgate.report.rules import RULES

    if text not in RULES:
        raise TextError(f"unknown rule `{printable(text, 60)}`", choices=tuple(RULES))
    if RULES[text].invariant:
        raise TextError(f"`{text}` is an invariant, so its level cannot be changed", "remove this line")
    return text


def check_ref(text: str) -> str:
    """Check the full name of a ref, or a pattern of such names."""
    if not text.startswith("refs/") or text.count("/") < 2 or text.endswith("/"):
        raise TextError("a ref must be written in full", "write it like refs/heads/main or refs/heads/wip/*")
    if len(text) > _MOST_REF or re.search(r"[\x00-\x20\x7f~^:?\[\\]|\.\.|//|@\{", text):
        raise TextError(
            "git does not allow this ref name", "only * is special here; see git help check-ref-format"
        )
    return _visible(text)


def check_id(text: str) -> str:
    """Check the id of a component; it is also the name of its baseline file."""
    if _RESERVED.fullmatch(text):
        raise TextError(
            f"`{text}` cannot name a component: Windows reserves the name of its baseline file",
            "choose another id",
        )
    if not re.fullmatch(COMPONENT_ID, text):
        raise TextError(
            f"`{printable(text, 80)}` cannot name a component",
            "use up to 64 of A-Z, a-z, 0-9, -, _ and .; begin with a letter or digit, and do not end with .",
        )
    return text


def check_contract(text: str) -> str:
    """Check the path of a contract: a plain file path from the root, outside .git and .patchgate."""
    check_prefix(text)
    parts = text.split("/")
    if text.endswith("/") or "." in parts:
        raise TextError("this is a folder, not a file", _LIKE)
    if any(is_git_alias(part.encode("utf-8", "surrogateescape")) for part in parts):
        raise TextError("a contract cannot be in `.git`, which git never commits", _LIKE)
    if _folded(parts[0]) == ".patchgate":
        raise TextError("a contract cannot be in `.patchgate`, where baselines are stored", _LIKE)
    return text


def check_root(text: str) -> str:
    """Check a source root: a folder path from the root that PYTHONPATH can contain."""
    check_prefix(text)
    if ":" in text:
        raise TextError("PYTHONPATH cannot contain a folder with a colon", "name another folder")
    return text


def refuse_circle(parents: Mapping[str, str | None]) -> None:
    """Refuse a cycle of parents. A walk stops at an id that an earlier walk has passed."""
    walked: set[str] = set()
    for name in parents:
        line: dict[str, None] = {}
        above: str | None = name
        while above is not None and above not in walked and above not in line:
            line[above] = None
            above = parents.get(above)
        if above is not None and above in line:
            way = list(line)
            circle = way[way.index(above) :]
            # Begin the message with the id that is declared first.
            place = circle.index(next(each for each in parents if each in circle))
            shown = " -> ".join([*circle[place:], *circle[:place], circle[place]])
            raise TextError(f"the parents form a cycle: {shown}", "remove one of them")
        walked.update(line)


TESTS = "{tests}"
NAME = "[a-z0-9][a-z0-9_-]{0,40}"
TIMEOUT = "[0-9]{1,6}(?:\\.[0-9]{1,3})?[smh]"
MAX_SECONDS = 24 * 3600
_UNITS = {"s": 1, "m": 60, "h": 3600}
FINDINGS, NEW_FINDINGS = "findings", "findings:new"
METRIC = "[A-Za-z_][A-Za-z0-9_.:/-]{0,99}"
_ANALYSIS_LIKE = '["ruff", "check", "--no-fix", "--output-format", "sarif", "--exit-zero", "."]'


def check_name(text: str) -> str:
    """Check the name of a command; it also names its log."""
    if not re.fullmatch(NAME, text):
        raise TextError(
            f"`{printable(text, 60)}` cannot name a command",
            "use up to 41 of a-z, 0-9, - and _; begin with a letter or digit",
        )
    return text


def check_words(value: object) -> object:
    """Refuse a command that is a single string, because no shell splits it."""
    if isinstance(value, str):
        raise TextError(
            "a command must be a list of arguments: no shell splits a string",
            'write each argument as a separate element, like ["ruff", "check", "--no-fix", "{files}"]',
        )
    return value


def argument_with(text: str, placeholder: str) -> str:
    """Check one argument of a command; it may be the placeholder of this kind of command."""
    without_nul(text)
    if text == placeholder:
        return text
    if placeholder in text:
        raise TextError(
            f"`{placeholder}` must be a whole argument",
            f'write it as a separate argument: "{placeholder}"',
        )
    if re.fullmatch(r"\{[A-Za-z_]*\}", text) and text != "{}":
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`",
            f"did you mean `{placeholder}`? it is the only one",
        )
    return text


def command_with(words: tuple[str, ...], placeholder: str, like: str) -> tuple[str, ...]:
    """Check the arguments of a command: a program, then at most one placeholder; `like` is an example."""
    if not words or words[0] in {"", placeholder}:
        raise TextError("a command must begin with a program", f"like {like}")
    if words.count(placeholder) > 1:
        raise TextError(f"`{placeholder}` may appear only once in a command", "remove the rest")
    return words


def check_timeout(value: float | str) -> float | str:
    """Check a timeout as written in the config: more than 0, at most 24 hours."""
    if isinstance(value, str) and not re.fullmatch(TIMEOUT, value):
        raise TextError(
            f'"{printable(value, 40)}" is not a duration', 'write it as seconds, or like "90s", "5m" or "1h"'
        )
    # Written so that NaN is refused too.
    if not 0 < seconds(value) <= MAX_SECONDS:
        raise TextError(
            "a timeout must be more than 0 and at most 24 hours", 'write it like "90s", "5m" or "1h"'
        )
    return value


def seconds(value: float | str) -> float:
    """Convert a checked timeout to seconds."""
    return float(value[:-1]) * _UNITS[value[-1]] if isinstance(value, str) else float(value)


def check_variable(text: str) -> str:
    """Check the name of an environment variable; those of git are refused."""
    without_nul(text)
    if not text or "=" in text:
        raise TextError("a variable name must not be empty or contain `=`", "write only the name")
    if text.startswith("GIT_"):
        raise TextError(
            "git's variables are not passed to a command",
            "remove it, or set it in a script that the command runs",
        )
    return text


def check_tool(text: str) -> str:
    """Check the name of a program that is looked up on PATH."""
    without_nul(text)
    if not text or "/" in text:
        raise TextError(
            "a tool must be the name of a program on PATH, without a folder", 'write it like "ruff"'
        )
    return text


def without_nul(text: str) -> str:
    """Check a text that is passed to the system, which does not accept a NUL."""
    if "\0" in text:
        raise TextError("this text cannot contain a NUL", "remove it")
    return text


def check_analysis(text: str) -> str:
    """Check the name of an analysis, or of a threshold."""
    if not re.fullmatch(NAME, text):
        raise TextError(
            f"`{printable(text, 60)}` is not a valid name",
            "use up to 41 of a-z, 0-9, - and _; begin with a letter or digit",
        )
    return text


def check_analysis_argument(text: str) -> str:
    """Check one argument of an analysis; an analysis has no placeholder."""
    without_nul(text)
    if re.fullmatch(r"\{[A-Za-z_]+\}", text):
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`",
            "an analysis checks the whole tree: write `.`, or folders",
        )
    return text


def check_analysis_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Check the arguments of an analysis: a program first."""
    if not words or not words[0]:
        raise TextError("a command must begin with a program", f"like {_ANALYSIS_LIKE}")
    return words


def check_metric(text: str) -> str:
    """Check what a threshold limits: `findings`, `findings:new`, or the name of a metric."""
    if not re.fullmatch(METRIC, text) or (text.startswith("findings:") and text != NEW_FINDINGS):
        raise TextError(
            f"`{printable(text, 60)}` is not a metric",
            f'write "{NEW_FINDINGS}", "{FINDINGS}", or the name of a metric that an analysis reports',
        )
    return text


def check_most(value: float) -> float:
    """Check the limit of a threshold: a finite number of 0 or more."""
    if not (math.isfinite(value) and value >= 0):
        raise TextError("a limit must be 0 or more", "write it like 0, 10 or 2.5")
    return value


def check_suppression_file(text: str) -> str:
    """Check the path of a suppression file: a plain path from the root."""
    if not text or text.endswith("/") or faults(RepoPath(text.encode("utf-8", "surrogateescape"))):
        raise TextError(
            f"`{printable(text, 80)}` is not a file path from the repository root",
            "write it like ruff-baseline.json",
        )
    return text
