"""What hooks/pre-commit asks git, asked for many changes at once, and the recogniser between real children.

Decides how git's bytes get to the recogniser of this process; every byte is git's, by the hook's own flags.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

from patchgate.git.repository import Repository
from patchgate.hooks.fast import recognise

_HOOKS = Path(__file__).resolve().parents[3] / "patchgate" / "hooks" / "shims"


class Asking:
    """What hooks/pre-commit asks git, read from the hook itself: environment, settings, flags."""

    def __init__(self, repository: Repository, env: Mapping[str, str]) -> None:
        text = "".join((_HOOKS / name).read_text(encoding="utf-8") for name in ("shared.sh", "pre-commit"))
        text = text.replace("\\\n", " ")
        (line,) = re.findall(r"env -i (.*)", text)
        words = line.split()
        start = words.index("git")
        self.env = {name: env[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME")}
        self.env |= dict(word.split("=") for word in words[:start] if re.fullmatch(r"\w+=[\w/]+", word))
        self.env["GIT_INDEX_FILE"] = repository.index_file
        self.git = [word.replace('"', "").replace("$git_dir", repository.git_dir) for word in words[start:-1]]
        assert words[-1] == '"$@"'
        (asked,) = re.findall(r'ask_git "\$command" (.*?) "\$@"', text)
        self.flags = asked.split()
        (of_index,) = re.findall(r"ask_difference diff-index (.*?) HEAD", text)
        self.index_flags = [*of_index.split(), *self.flags]
        (ended,) = re.findall(r"printf '\\0(\w+)'", text)
        self.ended = b"\0" + ended.encode()
        assert "-p" in self.flags

    def run(self, *arguments: str, stdin: bytes = b"", index: str | None = None) -> bytes:
        """Ask git as the hook does; `index` names another index."""
        env = self.env if index is None else self.env | {"GIT_INDEX_FILE": index}
        asked = [*self.git, *arguments]
        return subprocess.run(asked, input=stdin, env=env, capture_output=True, check=True).stdout


class Relay:
    """Stands between the recogniser and two real children of git; holds what it would leave.

    `ask` and `listen` keep the limits of those that they stand for.
    """

    def __init__(self, asking: Asking, git_dir: str) -> None:
        kept = {name: asking.env[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME")}
        pinned = {os.fsdecode(name): os.fsdecode(value) for name, value in recognise.PINNED.items()}
        self._objects = subprocess.Popen(
            ["git", "--git-dir=" + git_dir, *recognise.CAT_FILE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=kept | pinned,
        )
        self.said = b""
        self.left: dict[str, bytes | None] = {}
        self._answer = b""
        self._opened: set[int] = set()

    def ask(self, git_dir: str, requests: list[bytes]) -> int:
        """Ask the one cat-file, and read until it says that an object of a chance name is missing."""
        raw = b"".join(requests)
        recognise.require(len(raw) < recognise.MOST_ASKED)
        assert self._objects.stdin is not None
        assert self._objects.stdout is not None
        end = secrets.token_hex(20).encode() + b"-"
        self._objects.stdin.write(raw + b"info " + end + b"\n")
        self._objects.stdin.flush()
        answer = bytearray()
        while not answer.endswith(end + b" missing\n"):
            piece = os.read(self._objects.stdout.fileno(), 1 << 18)
            assert piece, "cat-file has ended"
            answer += piece
        self._answer = bytes(answer[: -len(end) - 9])
        return 1

    def listen(self, descriptor: int) -> bytearray:
        """Give what was said."""
        said = bytearray(self._answer if descriptor else self.said)
        recognise.require(len(said) < recognise.MOST_BYTES)
        return said

    def open(self, path: str, flags: int) -> int:
        """Open a file, which the recogniser may leave open: its own process ends soon."""
        descriptor = os.open(path, flags)
        self._opened.add(descriptor)
        return descriptor

    def start(self, said: bytes) -> None:
        """Begin anew, with this on standard input."""
        self.said, self.left = said, {}
        while self._opened:
            with contextlib.suppress(OSError):
                os.close(self._opened.pop())

    def leave(self, path: str, content: bytes | None) -> None:
        """Keep what would be left."""
        self.left[os.path.basename(path)] = content

    def close(self) -> None:
        """End the child."""
        self.start(b"")
        with self._objects:
            assert self._objects.stdin is not None
            self._objects.stdin.close()
