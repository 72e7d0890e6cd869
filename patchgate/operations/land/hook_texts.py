"""The text of each hook: the shims in `hooks/`, made to fit this machine.

Decides what is filled in (the part that all share, the version, the program that installed it) and where the
shims are found. What they do is theirs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from patchgate import __version__
from patchgate.errors import UndecidedError

_PACKAGE = Path(__file__).parents[2]
# In a wheel they lie inside the package, in a clone (an editable install) beside it.
_PLACES = (_PACKAGE / "hooks", _PACKAGE.parent / "hooks")
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
    for place in _PLACES:
        try:
            return (place / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UndecidedError(f"{name} of patchgate cannot be read: {error.strerror}") from error
    raise UndecidedError("this patchgate came without its hooks", "install patchgate again")


def _quoted(word: str) -> bytes:
    """Quote a word for sh, whatever is in it."""
    return b"'" + os.fsencode(word).replace(b"'", b"'\\''") + b"'"
