"""Which files a program writes, as far as the words of its command show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SETTINGS = ("settings.json", "settings.local.json", "hooks.json")
HIDDEN = (".git", ".claude", ".codex", ".cursor", ".gemini")
# Programs that change each of their files, and those that change the last one.
CHANGERS = frozenset(
    {"chmod", "chown", "mkdir", "mv", "patch", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"}
)
_COPIERS = frozenset({"cp", "install", "ln", "rsync"})
_IN_PLACE = frozenset({"perl", "ruby", "sed"})
# Programs that write what they fetch or unpack, and the options that say where: letters, long names.
_FETCHERS = {
    "bsdtar": ("C", "cd", "directory"),
    "curl": ("o", "output", "output-dir"),
    "tar": ("C", "directory", "cd"),
    "unzip": ("d",),
    "wget": ("OP", "output-document", "directory-prefix"),
}
KNOWN_WRITERS = CHANGERS | _COPIERS | _IN_PLACE | frozenset({*_FETCHERS, "dd"})
"""Programs of which `written_by` knows what they write."""


def written_by(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the files that a program changes, as far as its arguments show."""
    files = [each for each in rest if not each.startswith("-")]
    if name in CHANGERS or name == "ln":
        # What a link leads to is written through it.
        yield from files
        if name in {"mv", "rm"}:
            # What is in a folder goes with it.
            hidden = [each.rstrip("/") for each in files if each.rstrip("/").endswith(HIDDEN)]
            yield from (f"{each}/{inside}" for each in hidden for inside in SETTINGS)
    if name in _COPIERS or name == "mv":
        # A program takes one folder; a list without end costs no time.
        targets = [*files[-1:], *_values(rest, "t", "target-directory")][:8]
        yield from targets
        sources = [each.rstrip("/").rpartition("/")[2] for each in files]
        yield from (f"{target.rstrip('/')}/{each}" for target in targets for each in sources)
    elif name in _IN_PLACE:
        is_in_place = any(
            each.startswith("--in-place") or (each.startswith("-") and each[1:2] != "-" and "i" in each)
            for each in rest
        )
        yield from files if is_in_place else ()
    elif name in _FETCHERS:
        yield from _values(rest, *_FETCHERS[name])
    elif name == "dd":
        yield from (each[3:] for each in rest if each.startswith("of="))


def _values(rest: Sequence[str], letters: str, *names: str) -> Iterator[str]:
    """Yield the values of options: in the same word or in the next, of long names also abbreviated."""
    for at, word in enumerate(rest):
        given = word.partition("=")[0]
        if word.startswith("--"):
            if any(len(given) > 3 and f"--{name}".startswith(given) for name in names):
                yield from [word.partition("=")[2]] if "=" in word else rest[at + 1 : at + 2]
        elif word.startswith("-"):
            for letter in letters:
                if letter in word[1:]:
                    yield word.partition(letter)[2] or "".join(rest[at + 1 : at + 2])
