"""Whether a reason (of an approval, of a reset) says something: somebody will read it when nobody remembers.

Decides what is refused as a reason: nothing, one word, words that would fit every change, and the phrases
that the message gate calls vague. Whether a reason is a good one, only a person can say.
"""

from __future__ import annotations

import re

from patchgate.check.message import Message
from patchgate.check.message_gate import examine
from patchgate.errors import UsageError
from patchgate.git.quoting import is_printable, printable

MOST_REASON = 1000

_HINT = 'say what makes this change right: --reason "vendored from upstream 2.1, not edited"'
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W_]+)*")
# A reason made of these alone would fit every change.
_FILLERS = """
    a about above again agreed all allow allowed an and any approve approved approval as asked because
    below bug bugfix but by change changed changes commit done discussed do exception false fine fix
    fixed fixes for force good hotfix i in is issue it just later lgtm looks make makes me meeting merge
    minor misc must my necessary need needed needs no none normal not now of ok okay on only our per
    please pr quick reason refactor request requested required review reviewed see sgtm ship should
    small so some stuff such team temp temporary test testing that the them these thing things this tmp
    to todo trust try unblock update updated updates urgent us want wanted was we why will wip with work
    works yes you
"""
_EMPTY_WORDS = frozenset(_FILLERS.split())


def check_reason(text: str, what: str = "an approval", hint: str = _HINT) -> str:
    """Give a reason back, without space around it.

    Args:
        text: the reason.
        what: it is for.
        hint: the next step, where it says nothing.

    Raises:
        UsageError: it says nothing that would not fit every change, or it cannot be printed.
    """
    reason = text.strip()
    if not reason:
        raise UsageError(f"{what} needs a reason", hint)
    if len(reason) > MOST_REASON:
        raise UsageError(f"the reason has more than {MOST_REASON} characters", "say it in fewer")
    if not all(map(is_printable, reason)):
        raise UsageError("the reason holds what cannot be printed, or more than one line", "write one line")
    words = [word.casefold() for word in _WORD.findall(reason)]
    # Some scripts put no spaces between words: there one run of letters may be a sentence.
    if len(words) < 2 and not (words and not words[0].isascii() and len(words[0]) >= 5):
        raise UsageError(f'"{printable(reason, 60)}" is no reason: one word says nothing', hint)
    if _EMPTY_WORDS.issuperset(words):
        raise UsageError(f'"{printable(reason, 60)}" is no reason: it would fit every change', hint)
    for finding in examine(Message(b"Approve\n\n" + reason.encode("utf-8") + b"\n")):
        if finding.rule == "message-vague":
            phrase = finding.details.get("pattern")
            raise UsageError(f'the reason says "{phrase}", and nobody can check what that means', hint)
    return reason
