"""The tool that each manager runs in `bench.lost_work`: it records what it sees, and formats its files.

Run by path, without this package: `python lost_work_tool.py FILES`. It reads the whole folder where it
runs, as mypy, tsc or a test do, and writes it to `$HOME/seen.N`. Formatting means `name=1` becomes `name =
1`. Where `$HOME/started` is a pipe it says there that it runs, and waits.
"""

from __future__ import annotations

import json
import os
import re
import sys

UNFORMATTED = re.compile(rb"^(\w+)=(?=\S)", re.MULTILINE)
SKIPPED = {".git", "node_modules", "home"}


def formatted(content: bytes) -> bytes:
    """Format a file."""
    return UNFORMATTED.sub(rb"\1 = ", content)


def contents(folder: str) -> dict[str, str]:
    """Read each file below a folder by its path; of a link its target. Bytes are written as Latin-1."""
    found = {}
    for above, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in [*names, *links]:
            place = os.path.join(above, name)
            if name == ".git":
                continue
            if os.path.islink(place):
                content = os.fsencode(os.readlink(place))
            else:
                with open(place, "rb") as file:
                    content = file.read()
            found[os.path.relpath(place, folder)] = content.decode("latin-1")
    return found


def main() -> None:
    """Record the folder, then format the files."""
    home = os.environ["HOME"]
    number = sum(name.startswith("seen.") for name in os.listdir(home))
    with open(os.path.join(home, f"seen.{number}"), "w", encoding="utf-8") as file:
        json.dump(contents(os.curdir), file)
    if os.path.exists(pipe := os.path.join(home, "started")):
        with open(pipe, "wb") as said:
            said.write(b"started\n")
        with open(os.path.join(home, "goes-on"), "rb") as answer:
            answer.read()
    for name in sys.argv[1:]:
        if os.path.islink(name) or not os.path.isfile(name):
            continue
        with open(name, "rb") as file:
            content = file.read()
        if formatted(content) != content:
            with open(name, "wb") as file:
                file.write(formatted(content))


if __name__ == "__main__":
    main()
