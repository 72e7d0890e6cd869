"""The text of each hook: the shims in `hooks/shims`, made to fit this machine.

Decides what is filled in: the part that all share, the version, the program that installed it. What they do
is theirs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from patchgate import __version__
from patchgate.errors import UndecidedError

_SHIMS = Path(__file__).parent / "shims"
_BLANK = re.compile(rb"@(hook|version|patchgate|mend)@")


def hook_text(name: str, program: str, mend: str) -> bytes:
    """Write the file that git is to run.

    Args:
        name: as git names the hook.
        program: the absolute path of the git-patchgate that it calls.
        mend: the command that installs it again.

    Raises:
        UndecidedError: the shims did not come with this patchgate.
    """
    words = {"hook": name, "version": __version__, "patchgate": program, "mend": mend}
    text = _read(name).replace(b"@shared@\n", _read("shared.sh"))
    return _BLANK.sub(lambda blank: _quoted(words[blank[1].decode("ascii")]), text)


def _read(name: str) -> bytes:
    try:
        return (_SHIMS / name).read_bytes()
    except FileNotFoundError:
        raise UndecidedError("this patchgate came without its hooks", "install patchgate again") from None
    except OSError as error:
        raise UndecidedError(f"{name} of patchgate cannot be read: {error.strerror}") from error


def _quoted(word: str) -> bytes:
    """Quote a word for sh, whatever is in it."""
    return b"'" + os.fsencode(word).replace(b"'", b"'\\''") + b"'"
