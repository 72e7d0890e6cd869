"""Which events a hook manager hands to patchgate: pre-commit, prek, lefthook, husky, or a script.

Decides by the text of the manager's config alone: no manager is started, for it would run all its hooks, and
YAML is not parsed. A line that is a comment counts for nothing. This is what the config says, not a proof.

Sources: pre-commit.com (`id`, `entry`), lefthook's documentation (names of its config), husky's `.husky/_/h`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchgate.git.hook_files import HookFile

FRAMEWORKS = frozenset({"pre-commit", "prek"})
"""They keep their hooks in `.pre-commit-config.yaml`, and have a type of hook for each event."""
_EVENTS_OF_IDS = {
    "patchgate": ("pre-commit", "pre-merge-commit"),
    "patchgate-commit-msg": ("commit-msg",),
    "patchgate-pre-push": ("pre-push",),
}
_LEFTHOOK = re.compile(r"\.?lefthook(?:-local)?\.(?:ya?ml|toml|json)")
_CONFIGS = (".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml")
_ID = re.compile(rb"""\bid["']?\s*[:=]\s*["']?(patchgate[a-z-]*)""")
_CALL = re.compile(rb"\bgit[- ]patchgate[\"']?\s+hook\s+([a-z-]+)")
_COMMENT = re.compile(rb"^\s*(?:#|//)[^\n]*$", re.MULTILINE)
_MOST_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class Managed:
    """A hook that a manager has put in our place: who, by which config, and whether that names patchgate.

    `config` is the path of the config from the top of the worktree, empty where none was found.
    """

    by: str
    config: str
    has_patchgate: bool


def managers_of(top: str, files: Mapping[str, HookFile]) -> dict[str, Managed]:
    """Find the events of a worktree at which somebody else's hook runs, and whether it runs patchgate.

    Args:
        top: the top of the worktree.
        files: what lies in the place of each hook; the names are the events that matter. What is not there is
            listed where the config of a framework has patchgate for it, and the framework runs other events.
    """
    foreign = {event: file for event, file in files.items() if file.exists and not file.is_ours}
    found = {event: _managed(top, event, file) for event, file in foreign.items() if file.writer != "folder"}
    framework = next((each for each in found.values() if each.by in FRAMEWORKS and each.has_patchgate), None)
    if framework is not None:
        named = _events_in(_read(os.path.join(top, framework.config)))
        for event, file in files.items():
            if not file.exists and event in named:
                found[event] = framework
    return found


def _managed(top: str, event: str, file: HookFile) -> Managed:
    configs: Iterator[str] = iter(())
    if file.writer in FRAMEWORKS:
        configs = (name for name in _CONFIGS if os.path.exists(os.path.join(top, name)))
    elif file.writer == "lefthook":
        configs = _lefthook_configs(top)
    elif file.writer == "husky":
        configs = iter((f".husky/{event}",))
    known = ""
    for config in configs:
        known = known or config
        if event in _events_in(_read(os.path.join(top, config))):
            return Managed(file.writer, config, True)
    # A plain script may call us by itself, and so may one that a manager chains.
    if event in _events_in(_read(file.path)):
        return Managed(file.writer, os.path.relpath(file.path, top), True)
    return Managed(file.writer, known, False)


def _lefthook_configs(top: str) -> Iterator[str]:
    for folder in ("", ".config"):
        place = os.path.join(top, folder)
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        yield from (os.path.join(folder, name) for name in names if _LEFTHOOK.fullmatch(name))


def _events_in(text: bytes) -> frozenset[str]:
    """Name the events for which a config calls patchgate, by its ids or by its command."""
    text = _COMMENT.sub(b"", text)
    called = {found.decode("ascii") for found in _CALL.findall(text)}
    for name in _ID.findall(text):
        called.update(_EVENTS_OF_IDS.get(name.decode("ascii"), ()))
    return frozenset(called)


def _read(place: str) -> bytes:
    """Read a config, as far as one is read; nothing where there is none, and never wait for a pipe."""
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(_MOST_READ)
    except OSError:
        return b""
