"""The copy of the recogniser that a repository's hooks run, and the line that tells them so.

Decides what is written, in which order, and what of older versions goes. Never a verdict: without a copy
every commit goes to the full tier.

Choice: the interpreter that is recorded is the one that runs patchgate, by the name that it was started by
(a virtual environment's own), not the file behind it. Started with `-I -S` both take the same time (6.2 and
6.1 ms); but the first lives and dies with the program, and an upgrade of Python moves it along. Price: where
an environment is made anew in another place, one commit is judged in full before it is fast again.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from patchgate import __version__
from patchgate.git.quoting import printable
from patchgate.hooks.fast.files import (
    ACTIVE,
    COPY,
    active_line,
    is_copy_current,
    is_policy,
    is_version,
    place_of,
    recogniser,
    sealed_copy,
)
from patchgate.storage.replace import write_atomically

_TEMPORARY = re.compile(r"\.patchgate-[0-9a-f-]+\.(?:new|old)")


def is_current(common_dir: str) -> bool:
    """Tell whether the hooks run the copy that this patchgate would make; cheap enough for every commit."""
    return is_copy_current(common_dir, sys.executable)


def put_copy(common_dir: str, interpreter: str) -> str | None:
    """Make the copy, and then let the hooks run it; return a warning where that could not be done.

    Args:
        common_dir: git's common directory.
        interpreter: the absolute path of the Python that runs this, which is to run the copy too.
    """
    if not _is_recordable(interpreter):
        what = f"a hook cannot start this Python by its name ({printable(interpreter) or 'it has none'})"
        return f"{what}; every commit is judged in full"
    try:
        name, source = recogniser()
        # No path of this machine is in it: it may be moved with its repository.
        code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
        # The policies that were compiled for another build of this version may not be what this copy reads.
        _drop_folder(place_of(common_dir, __version__))
        for folder in _folders(common_dir):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        write_atomically(Path(place_of(common_dir, __version__, COPY)), sealed_copy(source, code), mode=0o600)
        write_atomically(Path(place_of(common_dir, ACTIVE)), active_line(interpreter), mode=0o600)
        _drop_versions(common_dir, but=__version__)
    except OSError as error:
        why = printable(error.strerror or str(error))
        return f"what makes a clean commit fast could not be written ({why}); every commit is judged in full"
    except (SyntaxError, ValueError):
        return "this patchgate is damaged, so every commit is judged in full; install patchgate again"
    return None


def drop_copy(common_dir: str) -> None:
    """Remove everything of the fast path, first what makes the hooks use it; what is not ours stays."""
    with suppress(OSError):
        os.unlink(place_of(common_dir, ACTIVE))
    _drop_versions(common_dir)
    with suppress(OSError):
        _drop_temporary(place_of(common_dir))
        os.rmdir(place_of(common_dir))


def _is_recordable(interpreter: str) -> bool:
    """Tell whether the shim, which reads three words of a line, gets the very path."""
    is_plain = interpreter == interpreter.strip(" \t") and "\n" not in interpreter
    return is_plain and os.path.isabs(interpreter) and os.path.isfile(interpreter)


def _folders(common_dir: str) -> tuple[str, str, str]:
    return os.path.join(common_dir, "patchgate"), place_of(common_dir), place_of(common_dir, __version__)


def _drop_versions(common_dir: str, but: str | None = None) -> None:
    """Remove the folders of versions, as far as what is in them is ours."""
    with suppress(OSError):
        for entry in list(os.scandir(place_of(common_dir))):
            if entry.name != but and is_version(entry.name) and entry.is_dir(follow_symlinks=False):
                _drop_folder(entry.path)


def _drop_folder(folder: str) -> None:
    with suppress(OSError):
        _drop_temporary(folder)
        for name in os.listdir(folder):
            if name == COPY or is_policy(name):
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _drop_temporary(folder: str) -> None:
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            os.unlink(os.path.join(folder, name))
