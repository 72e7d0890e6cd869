"""What added lines may not contain: known forms of credentials, conflict markers, custom expressions.

Decides which expressions there are, how long custom ones may search, and which lines need a closer check:
`suspects` is a plain byte search for literals, so that a clean change is cheap. The content gate checks the
lines that remain. Every built-in expression is bounded: no line can make it slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from patchgate.errors import OutOfTimeError, UndecidedError
from patchgate.values import dataclass, field

_WINDOW = 4096
_OVERLAP = 512
# The time that a large change adds for each expression; a plain one needs a tenth of it.
_SECONDS_A_LINE = 2e-6
_SECONDS_A_BYTE = 1e-7
_Result = TypeVar("_Result")


class TimeLimit(Protocol):
    """Runs work, and stops it with an OutOfTimeError after `seconds`."""

    seconds: float

    def run(self, name: bytes, work: Callable[[], _Result], earned: float = 0.0) -> _Result:
        """Run the work with this name; its input adds `earned` seconds to its time."""


class NoLimit:
    """Runs everything without a limit."""

    seconds = float("inf")

    def run(self, name: bytes, work: Callable[[], _Result], earned: float = 0.0) -> _Result:
        """Run the work."""
        return work()


def earned_by(lines: int, size: int) -> float:
    """Return the seconds that lines of this total size add to the time of an expression."""
    return lines * _SECONDS_A_LINE + size * _SECONDS_A_BYTE


def too_slow(what: str, limit: TimeLimit) -> UndecidedError:
    """Return the error for an expression of the policy that used up its time.

    Args:
        what: the expression and its line; safe for a terminal.
        limit: its time limit.
    """
    return UndecidedError(
        f"{what} takes too long: it may use {limit.seconds:g} s of processor time",
        "simplify the expression: two repeated parts must not match the same text",
    )


@dataclass(frozen=True, slots=True)
class SecretForm:
    """A form of credential: its name with article, its expression, and its literals.

    Every match contains one of the literals. `examples` matches the keys in the issuer's documentation.
    """

    phrase: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    examples: re.Pattern[bytes] | None = None

    @property
    def name(self) -> str:
        """The name without the article: `AWS access key`."""
        return self.phrase.partition(" ")[2]

    def is_in(self, line: bytes) -> bool:
        """Check whether a line contains one that is not a documented example."""
        if not any(literal in line for literal in self.literals):
            return False
        if self.examples is None:
            return self.expression.search(line) is not None
        return any(self.examples.fullmatch(found[0]) is None for found in self.expression.finditer(line))


def _form(
    phrase: str, literals: tuple[bytes, ...], expression: bytes, examples: bytes | None = None
) -> SecretForm:
    return SecretForm(phrase, literals, re.compile(expression), re.compile(examples) if examples else None)


# Forms of tokens: the issuers' own documentation (GitHub, GitLab, AWS, Slack, Stripe, Google, npm, PyPI,
# SendGrid, OpenAI, Anthropic, HashiCorp, Azure). Documented examples: AWS (IAM User Guide: every key
# that ends in EXAMPLE), Slack (incoming webhooks), Azure (Azurite).
SECRET_FORMS = (
    _form(
        "a private key",
        (b"PRIVATE KEY",),
        rb"-----BEGIN (?:RSA |EC |DSA |OPENSSH |ENCRYPTED |PGP )?PRIVATE KEY(?: BLOCK)?-----",
    ),
    _form(
        "an AWS access key",
        (b"AKIA", b"ASIA"),
        rb"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
        rb"A[KS]IA[A-Z2-7]{9}EXAMPLE",
    ),
    _form(
        "a GitHub token",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
        rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})",
    ),
    _form("a GitLab token", (b"glpat-",), rb"\bglpat-[A-Za-z0-9_-]{20}"),
    _form("a Slack token", (b"xox",), rb"\bxox[abeoprs]-[0-9]{8,14}-[A-Za-z0-9-]{10,250}"),
    _form(
        "a Slack webhook",
        (b"hooks.slack.com/services/",),
        rb"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20}",
        rb"hooks\.slack\.com/services/T0+/B0+/X+",
    ),
    _form("a Stripe key", (b"k_live_",), rb"\b[sr]k_live_[A-Za-z0-9]{20}"),
    _form("a Google API key", (b"AIza",), rb"\bAIza[A-Za-z0-9_-]{35}"),
    _form("an npm token", (b"npm_",), rb"\bnpm_[A-Za-z0-9]{36}\b"),
    _form("a PyPI token", (b"pypi-AgEI",), rb"\bpypi-AgEI[A-Za-z0-9_-]{60}"),
    _form("a SendGrid key", (b"SG.",), rb"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _form("an OpenAI key", (b"T3BlbkFJ",), rb"\bsk-[A-Za-z0-9_-]{0,180}T3BlbkFJ[A-Za-z0-9_-]{20}"),
    _form("an Anthropic key", (b"sk-ant-",), rb"\bsk-ant-(?:api|admin|sid)[0-9]{2}-[A-Za-z0-9_-]{80}"),
    _form("a Vault token", (b"hvs.",), rb"\bhvs\.[A-Za-z0-9_-]{24}"),
    _form(
        "an Azure storage key",
        (b"AccountKey=",),
        rb"AccountKey=[A-Za-z0-9+/]{86}==",
        # The storage emulator has the same key everywhere.
        rb"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    ),
)
_LITERALS = tuple(literal for form in SECRET_FORMS for literal in form.literals)
_MARKERS = (b"<<<<<<<", b">>>>>>>", b"|||||||")
# One search for all of them takes half the time of one for each.
_ANY = re.compile(b"|".join(map(re.escape, _LITERALS + _MARKERS)))


def is_conflict_marker(line: bytes) -> bool:
    """Check for a conflict marker: seven equal characters, then nothing or a space (git-diff --check).

    A row of only `=` is not one: it underlines headings.
    """
    return line[:7] in _MARKERS and line[7:8] in {b"", b" ", b"\r"}


@dataclass(frozen=True, slots=True)
class ContentRules:
    """The content rules of a policy; `denied` are its custom expressions, in order.

    `limit` is their time limit; `named` returns one of them with its line in the policy.
    """

    secrets: bool
    conflict_markers: bool
    denied: tuple[re.Pattern[bytes], ...] = ()
    limit: TimeLimit = field(default_factory=NoLimit, compare=False, repr=False)
    named: Callable[[int], str] = field(default="content.deny[{}]".format, compare=False, repr=False)

    def __bool__(self) -> bool:
        return self.secrets or self.conflict_markers or bool(self.denied)

    def may_suspect(self, text: bytes, start: int, stop: int) -> bool:
        """Check quickly whether `suspects` can pick a line in a part of a text."""
        return bool(self.denied) or _ANY.search(text, start, stop) is not None

    def suspects(self, lines: Sequence[bytes]) -> list[int]:
        """Return the positions of all lines that a rule may refuse.

        Raises:
            UndecidedError: an expression of the policy took too long.
        """
        block = b"\n" + b"\n".join(lines)
        found: set[int] = set()
        if self.secrets and any(literal in block for literal in _LITERALS):
            found.update(
                index for index, line in enumerate(lines) if any(literal in line for literal in _LITERALS)
            )
        if self.conflict_markers and any(b"\n" + marker in block for marker in _MARKERS):
            found.update(index for index, line in enumerate(lines) if is_conflict_marker(line))
        for number in range(len(self.denied)):
            left = [index for index in range(len(lines)) if index not in found]
            found.update(self._search(number, lines, left))
        return sorted(found)

    def secret_in(self, line: bytes) -> SecretForm | None:
        """Return the first form of credential in a line."""
        if not self.secrets:
            return None
        for form in SECRET_FORMS:
            if form.is_in(line):
                return form
        return None

    def denied_in(self, line: bytes) -> int | None:
        """Return the number of the first custom expression that matches a line.

        A long line is searched in overlapping windows of 4 KiB, so that most expressions take time linear in
        its length; `^` is its real beginning, `$` also the end of a window.

        Raises:
            UndecidedError: an expression of the policy took too long.
        """
        return next((number for number in range(len(self.denied)) if self._search(number, [line], [0])), None)

    def _search(self, number: int, lines: Sequence[bytes], places: Sequence[int]) -> list[int]:
        """Search lines for one custom expression, within its time limit."""
        search = self.denied[number].search

        def is_in(line: bytes) -> bool:
            if len(line) <= _WINDOW:
                return search(line) is not None
            starts = range(0, len(line) - _OVERLAP, _WINDOW - _OVERLAP)
            return any(search(line, start, start + _WINDOW) for start in starts)

        earned = earned_by(len(places), sum(len(lines[place]) for place in places))
        try:
            return self.limit.run(
                self.denied[number].pattern,
                lambda: [place for place in places if is_in(lines[place])],
                earned,
            )
        except OutOfTimeError:
            raise too_slow(self.named(number), self.limit) from None
