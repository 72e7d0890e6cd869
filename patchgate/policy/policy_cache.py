"""Remember configs that were checked, so that a commit under a known policy loads no pydantic.

A cache under the git common directory, out of a checkout's reach. It is bound to the very bytes of the
config, its file name and the versions of tool and rules; what is damaged, foreign or missing is read anew.
Whoever can write there can also remove the hooks, so it is no door. A cache that cannot be written is none.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from patchgate import __version__
from patchgate.policy.settings import Config, settings_from
from patchgate.report.rules import RULES_VERSION

_MOST_BYTES = 256 << 10
_MOST_FILES = 32


class PolicyCache:
    """The configs of one repository that were checked before, kept below its common git directory."""

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        self._is_writable = is_writable
        self._folder = os.path.join(common_dir, "patchgate", "policies")

    def load(self, raw: bytes, file: str) -> Config | None:
        """Find the config that these bytes gave before; None where they must be read."""
        key = _key(raw, file)
        try:
            with open(os.path.join(self._folder, key), "rb") as stream:
                kept = stream.read(_MOST_BYTES)
        except OSError:
            return None
        seal, _, body = kept.partition(b"\n")
        if seal != _seal(key, body):
            return None
        written: dict[str, Any] = json.loads(body)
        return settings_from(written)

    def store(self, raw: bytes, file: str, config: Config) -> None:
        """Keep what these bytes gave."""
        if not self._is_writable:
            return
        from pathlib import Path

        from patchgate.storage.replace import write_atomically

        key = _key(raw, file)
        body = json.dumps(config.written).encode("ascii")
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._make_room()
            write_atomically(Path(self._folder, key), _seal(key, body) + b"\n" + body, mode=0o600)
        except OSError:
            return

    def _make_room(self) -> None:
        """Drop the oldest entries, so that the folder never grows."""
        entries = sorted(os.scandir(self._folder), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: max(0, len(entries) - _MOST_FILES + 1)]:
            os.unlink(entry.path)


def _key(raw: bytes, file: str) -> str:
    about = f"patchgate.config/1\n{__version__}\n{RULES_VERSION}\n{file}\n".encode()
    return hashlib.sha256(about + raw).hexdigest()


def _seal(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode("ascii") + b"\n" + body).hexdigest().encode("ascii")
