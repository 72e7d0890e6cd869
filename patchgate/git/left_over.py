"""Where the records of landings lie, and whether there is one: what every command asks; it loads nothing."""

from __future__ import annotations

import os

FOLDER = "patchgate/transactions"


def is_any_left(common_dir: str) -> bool:
    """Tell whether a landing is under way, or was cut short."""
    try:
        return bool(os.listdir(os.path.join(common_dir, FOLDER)))
    except OSError:
        return False
