"""The section about patchgate for AGENTS.md or CLAUDE.md, made from the policy, and whether one is current.

The section is between two markers, each on a line of its own; the first has the digest of the policy. What
is outside the markers is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchgate.check.effective_policy import effective_policy
from patchgate.check.policy_lookup import trusted_options
from patchgate.errors import UsageError
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.policy.policy import Policy, Profile
from patchgate.runs.brief_text import RULES_TEXT, limit_lines
from patchgate.values import dataclass

MOST_FILE = 4 << 20
_BEGIN = re.compile(r"<!-- patchgate: begin(?: policy=(sha256:[0-9a-f]{64}))? -->[ \t]*")
_END = "<!-- patchgate: end -->"
_COMMAND = "git patchgate agent instructions"
_MOST_NAMED = 20
_STEPS = """\
Work like this:

1. Declare what you will touch: `git patchgate intent declare -m "why" --allow PATH`.
2. Read what counts for it: `git patchgate agent brief PATH`.
3. Before each commit: `git add PATH`, then `git patchgate check --profile agent --format agent`.
4. A refusal names the rule, the place and the next step. Correct that, and check again;
   `git patchgate explain RULE` says more.
5. At the end: `git patchgate verify`, then `git patchgate intent clear`.

Never use `git commit --no-verify` or `git push --no-verify`, never set `core.hooksPath` or a variable
`PATCHGATE_*`, and change nothing below `.git`. If a rule is wrong, ask a maintainer, who may
approve the change.

Exit codes: 0 accepted, 1 rejected, 2 wrong arguments or config, 3 undecided."""


def policy_lines(policy: Policy) -> list[str]:
    """Write what a policy asks of an agent; one line for each."""
    section, lines = policy.config.policy, []
    if section.allow_roots is not None:
        lines.append(f"change only what is below {_named(section.allow_roots)}")
    if denied := (*section.deny_prefixes, *section.deny):
        lines.append(f"never change {_named(denied)}")
    if section.deny_suffixes:
        lines.append(f"neither add nor change files that end in {_named(section.deny_suffixes)}")
    lines.append("never change the policy (`patchgate.toml`, `.patchgate/`): only maintainers do")
    lines += limit_lines(policy)
    if policy.components.ids:
        lines.append(f"these components have a contract: {_named(policy.components.ids)}")
    return lines


def _named(names: Sequence[str]) -> str:
    return first_of(names, _MOST_NAMED, lambda name: _span(printable(name, 200)))


def _span(text: str) -> str:
    """Write foreign text as a code span, whose marks are longer than any run of backticks in it."""
    runs = re.findall("`+", text)
    marks = "`" * (max(map(len, runs), default=0) + 1)
    pad = " " if runs else ""
    return f"{marks}{pad}{text}{pad}{marks}"


def instructions(repository: Repository) -> str:
    """Write the section for the policy in effect, with its markers.

    Raises:
        ConfigError: the policy cannot be used.
        PatchgateError: it cannot be read.
    """
    policy = effective_policy(repository, trusted_options(repository)).policy
    lines = [
        f"<!-- patchgate: begin policy={policy.digest(Profile.AGENT)} -->",
        "## Changes are checked",
        "",
        f"patchgate checks every commit, patch and push here. `{_COMMAND}` writes this section; edit the",
        "policy, not the section.",
        "",
        *(f"- {line}" for line in policy_lines(policy)),
        "",
        _STEPS,
        "",
        RULES_TEXT,
        _END,
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class SectionState:
    """Whether a section is what `instructions` writes now; `reason` and `hint` are sentences."""

    is_current: bool
    reason: str
    hint: str | None = None


def check_section(raw: bytes, name: str, wanted: str) -> SectionState:
    """Compare the section in a file with the one that the policy asks for.

    Args:
        raw: the content of the file.
        name: of the file, as typed.
        wanted: what `instructions` wrote.

    Raises:
        UsageError: the file is too large or not UTF-8, or does not have exactly one section.
    """
    shown = printable(name)
    digest, found = _find_section(raw, shown)
    hint = f"replace the section in {shown} with the output of {_COMMAND}"
    first, *_ = wanted.split("\n", 1)
    if digest is None or f"policy={digest} " not in first:
        return SectionState(False, f"{shown} is out of date: the policy has changed since", hint)
    if found != wanted.rstrip("\n").split("\n"):
        reason = f"{shown} is out of date: the section was edited, or another version of patchgate wrote it"
        return SectionState(False, reason, hint)
    return SectionState(True, f"{shown} is up to date")


def _find_section(raw: bytes, shown: str) -> tuple[str | None, list[str]]:
    """Return the digest in the first marker, and the lines of the section."""
    if len(raw) > MOST_FILE:
        raise UsageError(f"{shown} has more than {MOST_FILE >> 20} MiB", "name AGENTS.md or CLAUDE.md")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} is not UTF-8", "convert it: iconv -t UTF-8") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begins = [number for number, line in enumerate(lines) if _BEGIN.fullmatch(line)]
    ends = [number for number, line in enumerate(lines) if line.rstrip() == _END]
    if not begins and not ends:
        raise UsageError(f"{shown} has no section of patchgate", f"{_COMMAND} >> {shown}")
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        message = f"{shown} does not have exactly one section of patchgate, from its begin to its end marker"
        raise UsageError(message, f"remove what is left over, then {_COMMAND} >> {shown}")
    marker = _BEGIN.fullmatch(lines[begins[0]])
    section = [line.rstrip() for line in lines[begins[0] : ends[0] + 1]]
    return marker[1] if marker else None, section
