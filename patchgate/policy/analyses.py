"""Which analyses were declared: the digest by which two declarations are known to be the same.

Decides what of `[analyses.NAME]` such a digest speaks of: every setting, defaults included, so that writing a
default out changes nothing. Not which program a command really is: that `commands` sees where it runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from patchgate.policy.settings import AnalysisSettings

FORM = "patchgate.analyses/1"


def digest_of(analyses: Mapping[str, AnalysisSettings]) -> str:
    """Give the digest of some analyses, `sha256:…`; their order is no part of it."""
    lines = [f"{written(name, analyses[name])}\n" for name in sorted(analyses)]
    text = f"{FORM}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def written(name: str, settings: AnalysisSettings) -> str:
    """Write one analysis as one line of canonical JSON, in ASCII."""
    plain = {
        "name": name,
        "command": list(settings.command),
        "format": settings.format,
        "timeout": float(settings.timeout),
        "env": dict(settings.env),
        "required_tools": list(settings.required_tools),
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))
