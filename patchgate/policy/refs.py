"""Full names of refs, and patterns of them: which branches are drafts, which refs of a remote are protected.

Decides what such a text may be and which names it matches: `*` stands for any characters, `/` included, so
`refs/heads/wip/*` holds everything below it. Nothing else is special.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchgate.policy.texts import TextError

_MOST = 255


def check_ref(text: str) -> str:
    """Give the full name of a ref, or a pattern of such names, back.

    Raises:
        ValueError: it is no full name, or no ref could have it.
    """
    if not text.startswith("refs/") or text.count("/") < 2 or text.endswith("/"):
        raise TextError("a ref is written in full", "write it like refs/heads/main or refs/heads/wip/*")
    if len(text) > _MOST or re.search(r"[\x00-\x20\x7f~^:?\[\\]|\.\.|//|@\{", text):
        raise TextError(
            "no ref can have this name", "only * is special here; git check-ref-format tells the rules"
        )
    return text


def matches(refs: Sequence[str], name: str) -> bool:
    """Tell whether a ref's full name is one of these, or fits a pattern among them."""
    return any(_fits(ref, name) for ref in refs)


def _fits(ref: str, name: str) -> bool:
    first, *rest = ref.split("*")
    if not rest:
        return ref == name
    if not name.startswith(first):
        return False
    position = len(first)
    for part in rest[:-1]:
        position = name.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(name) - position >= len(rest[-1]) and name.endswith(rest[-1])
