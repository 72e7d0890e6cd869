"""Find the policy that a tree holds.

Decides where a policy lies (`patchgate.toml` or `[tool.patchgate]`, never both) and what a broken one is, and
remembers configs that were checked, so that a commit under a known policy loads no pydantic. Which tree's
policy judges a change is decided in `cases`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from patchgate import __version__
from patchgate.errors import ConfigError, Mistake, OutOfTimeError, UndecidedError
from patchgate.git.model import TREE_MODE, Entry
from patchgate.git.objects import Objects
from patchgate.git.repository import BIG_FILE
from patchgate.policy.file_kinds import CONFIG_FILE, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Decision, Policy
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.policy.settings import Config
from patchgate.policy.settings_loader import settings_from

_MOST_BYTES = 256 << 10
_MOST_FILES = 32


class PolicyCache:
    """The configs of one repository that were checked before, kept below its common git directory."""

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        self._is_writable = is_writable
        self._folder = os.path.join(common_dir, "patchgate", "policies")

    def load(self, raw: bytes, file: str) -> Config | None:
        """Find the config that these bytes gave before; None where they must be read."""
        kept = self._file(raw, file).load()
        return settings_from(kept["written"]) if kept else None

    def store(self, raw: bytes, file: str, config: Config) -> None:
        """Keep what these bytes gave."""
        if self._is_writable:
            self._file(raw, file).store(json.dumps({"written": config.written}).encode("ascii"))
            drop_oldest(self._folder, _MOST_FILES)

    def _file(self, raw: bytes, file: str) -> SealedFile:
        key = hashlib.sha256(f"{__version__}\n{file}\n".encode() + raw).hexdigest()
        # The key is part of the seal: a file under another's name counts for nothing.
        return SealedFile(os.path.join(self._folder, key), f"patchgate.config/1 {key}", _MOST_BYTES)


_MAX_CACHED = 64
_MAX_WARNINGS = 10
# What each config adds to the processor time of all expressions: a range may have many.
_CONFIG_SECONDS = 0.2
_Read = TypeVar("_Read")
Key = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class FoundPolicy:
    """What a tree says about policy: a policy, or why there is none that can be used.

    `policy` is None where there is no policy at all, and where `fault` tells what is wrong with it.
    `from_pyproject` is whether `pyproject.toml` speaks of patchgate. `tree` is where it was looked for, if
    that was asked for.
    """

    policy: Policy | None = None
    fault: ConfigError | None = None
    from_pyproject: bool = False
    tree: str | None = field(default=None, compare=False)

    @property
    def is_absent(self) -> bool:
        """Tell whether the tree has no policy, good or bad."""
        return self.policy is None and self.fault is None


class TreePolicies:
    """The policies of the trees of one repository; each text is compiled once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        repository = objects.repository
        self._cache = PolicyCache(repository.common_dir, is_writable=not repository.is_receiving)
        self._limit = repository.expression_time
        self._found: dict[Key, FoundPolicy] = {}
        self._has_policy: dict[str, bool] = {}

    def key(self, tree: str) -> Key:
        """Name the bytes that decide about the policy of a tree; equal keys have equal policies."""
        entries = self._objects.tree(tree)
        return self.key_of(entries.get(CONFIG_FILE.raw), entries.get(PYPROJECT_FILE.raw))

    def key_of(self, config: Entry | None, project: Entry | None) -> Key:
        """Name the policy that two entries of a root folder hold; a project without one counts as absent."""
        config_key = None
        if config is not None and config.mode != TREE_MODE:
            # A mode that is not a file's makes the policy unreadable, so it is part of the key.
            config_key = config.oid if config.is_file else config.mode
        speaks = project is not None and project.is_file and self._project_has_policy(project.oid)
        return config_key, project.oid if project is not None and speaks else None

    def _project_has_policy(self, oid: str) -> bool:
        if oid not in self._has_policy:
            try:
                self._has_policy[oid] = self._parse_project(self._content(oid)) is not None
            except ConfigError:
                self._has_policy[oid] = True
        return self._has_policy[oid]

    def at(self, key: Key) -> FoundPolicy:
        """Read the policy that a key names; what it says and cannot be used is told when the command ends."""
        if key not in self._found:
            if len(self._found) >= _MAX_CACHED:
                self._found.clear()
            found = self._found[key] = self._read(key)
            if found.policy is not None and found.policy.config.warnings:
                told = self._objects.repository.config_warnings
                told += [each for each in warnings_of(found.policy) if each not in told]
        return self._found[key]

    def _read(self, key: Key) -> FoundPolicy:
        config_oid, project_oid = key
        project: Config | None = None
        fault: ConfigError | None = None
        project_raw = b""
        if project_oid is not None:
            try:
                project_raw = self._content(project_oid)
                project = self._parse_project(project_raw)
            except ConfigError as error:
                fault = error
        speaks = project is not None or fault is not None
        if config_oid is None:
            policy = Policy(project, "pyproject.toml", project_raw, self._limit) if project else None
            return FoundPolicy(policy, fault, speaks)
        if speaks:
            message = "both patchgate.toml and [tool.patchgate] in pyproject.toml hold a policy"
            return FoundPolicy(None, _fault(message, "keep one of them"), speaks)
        if len(config_oid) == 6:
            return FoundPolicy(None, _fault("patchgate.toml is not a regular file", "make it one"), speaks)
        try:
            raw = self._content(config_oid)
            config = self._parse(raw)
        except ConfigError as error:
            return FoundPolicy(None, error, speaks)
        return FoundPolicy(Policy(config, "patchgate.toml", raw, self._limit), None, speaks)

    def _parse(self, raw: bytes) -> Config:
        config = self._cache.load(raw, "patchgate.toml")
        if config is None:
            from patchgate.policy.config import parse

            config = self._in_time(raw, lambda: parse(raw, "patchgate.toml"))
            self._cache.store(raw, "patchgate.toml", config)
        return config

    def _parse_project(self, raw: bytes) -> Config | None:
        # The same quick look as in `parse_pyproject`: most projects do not speak of patchgate.
        if b"patchgate" not in raw and b"\\" not in raw:
            return None
        config = self._cache.load(raw, "pyproject.toml")
        if config is None:
            from patchgate.policy.config import parse_pyproject

            config = self._in_time(raw, lambda: parse_pyproject(raw, "pyproject.toml"))
            if config is not None:
                self._cache.store(raw, "pyproject.toml", config)
        return config

    def _in_time(self, raw: bytes, read: Callable[[], _Read]) -> _Read:
        """Read a config: each expression in it is compiled, and searched in its example."""
        try:
            return self._limit.run(raw, read, _CONFIG_SECONDS)
        except OutOfTimeError:
            message = "the config takes too long to read"
            raise _fault(message, "make its regular expressions simpler, and use fewer of them") from None

    def _content(self, oid: str) -> bytes:
        """Read a config; the parser refuses what is larger than a config may be.

        Raises:
            ConfigError: it is larger than any file that is read whole.
        """
        size = self._objects.sizes([oid])[oid]
        if size > BIG_FILE:
            raise _fault(f"the config has {size:,} bytes, and none so large is read", "make it shorter")
        return self._objects.read(oid)

    def names_patchgate(self, tree: str) -> bool:
        """Tell whether a tree's `.pre-commit-config.yaml` names patchgate."""
        entry = self._objects.tree(tree).get(PRE_COMMIT_FILE.raw)
        if entry is None or not entry.is_file:
            return False
        size = self._objects.sizes([entry.oid])[entry.oid]
        return size > BIG_FILE or b"patchgate" in self._objects.read(entry.oid)


def _fault(message: str, hint: str) -> ConfigError:
    return ConfigError((Mistake("patchgate.toml", None, "", message, hint),))


@cache
def built_in() -> Policy:
    """The policy that holds where a repository has none; compiled once, for a range asks for each commit."""
    return Policy(Config())


def warnings_of(policy: Policy) -> tuple[str, ...]:
    """Say which values of a policy cannot be used as they are: the place, the key, what is used instead."""
    warnings = policy.config.warnings
    if not warnings:
        return ()
    # Only where something is told: the file is read once more.
    from patchgate.policy.toml_lines import line_of, lines

    places = lines(policy.raw.decode())
    prefix = ("tool", "patchgate") if policy.file == "pyproject.toml" else ()
    told: list[str] = []
    by_line = sorted(
        (line_of(places, (*prefix, *each.key)) or 0, each.key, each.message) for each in warnings
    )
    for line, key, message in by_line[:_MAX_WARNINGS]:
        told.append(f"{policy.file}:{line}: {Decision(key, '').dotted}: {message}")
    if len(warnings) > _MAX_WARNINGS:
        told.append(f"{policy.file}: {len(warnings) - _MAX_WARNINGS} more values cannot be used as they are")
    return tuple(told)


def require_usable(found: FoundPolicy) -> Policy:
    """Give the policy that was found, or the built-in one.

    Raises:
        ConfigError: it cannot be used.
        UndecidedError: this version may not judge here.
    """
    if found.fault is not None:
        raise found.fault
    policy = found.policy or built_in()
    require_version(policy)
    return policy


def require_version(policy: Policy) -> None:
    """Hold `required_version` against this program.

    Raises:
        UndecidedError: this version may not judge here.
    """
    wanted = policy.config.required_version
    if wanted is None:
        return
    from patchgate.policy.validators import version_satisfies

    if not version_satisfies(wanted, __version__):
        raise UndecidedError(
            f"this repository requires patchgate {wanted}, and this is {__version__}",
            f"install it: pip install 'patchgate{wanted}'",
        )
