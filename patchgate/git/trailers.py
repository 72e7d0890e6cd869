"""Put a trailer into a message, where git itself would put it.

Decides nothing about trailers: `git interpret-trailers` does, above comments and scissors, and not once more
where it is there already. What it rewrites beside that (a blank after a colon) stays as its author wrote it.
Git runs without anybody's config here: `trailer.*.command` starts programs that add trailers of their own.
"""

from __future__ import annotations

import os

from patchgate.git.repository import Repository, failed
from patchgate.process import run

# A comment in a message that has none: git wants one byte, and no text begins a line with this.
_NO_COMMENT = b"\x01"


def with_trailer(repository: Repository, raw: bytes, trailer: str, comment: bytes | None) -> bytes | None:
    """Give a message with a trailer; None where git would not take it, and as it is where it has it already.

    Args:
        raw: the file of a message, as a hook finds it.
        trailer: `Key: value`, plain ASCII.
        comment: what begins a comment there; None: nothing does.

    Raises:
        UndecidedError: git could not be started, took too long, or was killed.
    """
    sign = os.fsdecode(comment or _NO_COMMENT)
    key = "core.commentChar" if len(comment or _NO_COMMENT) == 1 else "core.commentString"
    environment = {
        name: repository.environment[name]
        for name in ("PATH", "LC_ALL", "TMPDIR")
        if name in repository.environment
    }
    # Without HOME there is no config of a user's.
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    nowhere = os.path.join(repository.git_dir, "no-repository")
    settings = ("-c", f"{key}={sign}", "-c", "trailer.separators=:")
    how = ("--no-divider", "--where", "end", "--if-exists", "addIfDifferent", "--if-missing", "add")
    command = ["git", f"--git-dir={nowhere}", *settings, "interpret-trailers", *how, "--trailer", trailer]
    # Without its last LF git takes one line for no paragraph, and makes the trailer a part of the subject.
    whole = raw if raw.endswith(b"\n") else raw + b"\n"
    done = run(command, cwd=repository.git_dir, env=environment, stdin=whole)
    if done.code < 0:
        raise failed("interpret-trailers", done)
    if done.code != 0:
        return None
    return _inserted(raw, done.out, trailer.encode("ascii"))


def _inserted(raw: bytes, made: bytes, trailer: bytes) -> bytes | None:
    """Put the trailer where git has put it, and leave every other line as it was.

    What git lets stand below it, comments and scissors, it copies byte for byte, so that tells the place.
    """
    before, after = raw.removesuffix(b"\n").split(b"\n"), made.removesuffix(b"\n").split(b"\n")
    if before.count(trailer) == after.count(trailer):
        return raw
    for at in reversed([index for index, line in enumerate(after) if line == trailer]):
        below = after[at + 1 :]
        start = len(before) - len(below)
        if start < 1 or before[start:] != below:
            continue
        is_apart = at > 0 and not after[at - 1].strip() and before[start - 1].strip()
        gap = [b""] if is_apart else []
        return b"\n".join([*before[:start], *gap, trailer, *below]) + b"\n"
    return None
