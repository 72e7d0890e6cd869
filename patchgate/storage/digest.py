"""SHA-256 without `hashlib`, whose import takes 3 ms: a fifth of a commit that the fast path recognises."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        # Some builds have nothing else.
        from hashlib import sha256

__all__ = ["sha256", "sha256_text"]


def sha256_text(content: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return sha256(content).hexdigest()
