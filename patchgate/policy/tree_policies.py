"""Load the policy of a tree.

Decides where a policy is (`patchgate.toml` or `[tool.patchgate]`, never both) and when it is broken. Checked
configs are cached, so that a commit under a known policy does not import pydantic. Which tree's policy
applies to a change is decided in `check`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from patchgate import __version__
from patchgate.errors import ConfigError, Mistake, OutOfTimeError, UndecidedError
from patchgate.git.model import TREE_MODE, Entry
from patchgate.git.objects import Objects
from patchgate.git.repository import BIG_FILE
from patchgate.policy.file_kinds import CONFIG_FILE, PRE_COMMIT_FILE, PYPROJECT_FILE, may_have_table
from patchgate.policy.policy import Decision, Policy
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.policy.settings import Config
from patchgate.policy.settings_loader import settings_from
from patchgate.values import dataclass, field

_MOST_BYTES = 256 << 10
_MOST_FILES = 32


class PolicyCache:
    """A cache of checked configs, below the common git directory of a repository."""

    def __init__(self, common_dir: str, *, is_writable: bool = True, is_trusted: bool = True) -> None:
        self._is_writable = is_writable and is_trusted
        self._is_trusted = is_trusted
        self._folder = os.path.join(common_dir, "patchgate", "policies")

    def load(self, raw: bytes, file: str) -> Config | None:
        """Return the cached config of these bytes; None if they must be parsed."""
        kept = self._file(raw, file).load() if self._is_trusted else None
        return settings_from(kept["written"]) if kept else None

    def store(self, raw: bytes, file: str, config: Config) -> None:
        """Store the config of these bytes."""
        if self._is_writable:
            self._file(raw, file).store(json.dumps({"written": config.written}).encode("ascii"))
            drop_oldest(self._folder, _MOST_FILES)

    def _file(self, raw: bytes, file: str) -> SealedFile:
        key = hashlib.sha256(f"{__version__}\n{file}\n".encode() + raw).hexdigest()
        # The key is part of the seal: a renamed file is ignored.
        return SealedFile(os.path.join(self._folder, key), f"patchgate.config/1 {key}", _MOST_BYTES)


_MAX_CACHED = 64
_MAX_WARNINGS = 10
# The processor time that each config adds to that of all expressions: a range may have many. Not each of
# thousands, or a push of large ones would take minutes.
_CONFIG_SECONDS = 0.2
_MOST_EARNING = 40
_Read = TypeVar("_Read")
Key = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class FoundPolicy:
    """The policy of a tree, or why it cannot be used.

    `policy` is None if the tree has no policy, or if `fault` says what is wrong with it; `named` is its
    `[governance] id` then. `from_pyproject`: whether `pyproject.toml` has a table for patchgate. `tree` is
    the tree that was searched, if requested.
    """

    policy: Policy | None = None
    fault: ConfigError | None = None
    from_pyproject: bool = False
    named: str | None = None
    tree: str | None = field(default=None, compare=False)

    @property
    def is_absent(self) -> bool:
        """Whether the tree has no policy, valid or not."""
        return self.policy is None and self.fault is None

    @property
    def id(self) -> str | None:
        """The `[governance] id`; None if there is none, or the policy is no TOML."""
        return self.named if self.policy is None else self.policy.config.governance.id


class TreePolicies:
    """The policies of the trees of one repository; each config is compiled once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        repository = objects.repository
        self._cache = PolicyCache(
            repository.common_dir,
            is_writable=not repository.is_receiving,
            is_trusted=repository.trusts_caches,
        )
        self._limit = repository.expression_time
        self._found: dict[Key, FoundPolicy] = {}
        # Shared by all of a command: a push reads the same large file for each question otherwise.
        self._speaks, self._keys = repository.policy_files, repository.policy_keys

    def key(self, tree: str) -> Key:
        """Return the key of the policy of a tree; equal keys have equal policies."""
        if tree not in self._keys:
            entries = self._objects.tree(tree)
            self._keys[tree] = self.key_of(entries.get(CONFIG_FILE.raw), entries.get(PYPROJECT_FILE.raw))
        return self._keys[tree]

    def key_of(self, config: Entry | None, project: Entry | None) -> Key:
        """Return the key for two entries of a root folder; a pyproject.toml without a policy is ignored."""
        config_key = None
        if config is not None and config.mode != TREE_MODE:
            # A mode other than a file's makes the policy unreadable, so it is part of the key.
            config_key = config.oid if config.is_file else config.mode
        speaks = project is not None and project.is_file and self._project_has_policy(project.oid)
        return config_key, project.oid if project is not None and speaks else None

    def _project_has_policy(self, oid: str) -> bool:
        key = PYPROJECT_FILE.raw, oid
        if key not in self._speaks:
            try:
                self._speaks[key] = self._parse_project(self._content(oid)) is not None
            except ConfigError:
                self._speaks[key] = True
        return self._speaks[key]

    def at(self, key: Key) -> FoundPolicy:
        """Load the policy of a key; warnings about its values are reported when the command ends."""
        if key not in self._found:
            if len(self._found) >= _MAX_CACHED:
                self._found.clear()
            found = self._found[key] = self._read(key)
            if found.policy is not None and found.policy.config.warnings:
                policy, warnings = found.policy, self._objects.repository.config_warnings
                made = self._in_time(policy.raw, lambda: warnings_of(policy))
                warnings += [each for each in made if each not in warnings]
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
            policy = self._compiled(project, "pyproject.toml", project_raw) if project else None
            return FoundPolicy(policy, fault, speaks, self._named(fault, project_raw, "pyproject.toml"))
        if speaks:
            message = "both patchgate.toml and [tool.patchgate] in pyproject.toml contain a policy"
            return FoundPolicy(None, _fault(message, "keep only one of them"), speaks)
        if len(config_oid) == 6:
            return FoundPolicy(
                None, _fault("patchgate.toml is not a regular file", "make it a regular file"), speaks
            )
        raw = b""
        try:
            raw = self._content(config_oid)
            config = self._parse(raw)
        except ConfigError as error:
            return FoundPolicy(None, error, speaks, self._named(error, raw, "patchgate.toml"))
        return FoundPolicy(self._compiled(config, "patchgate.toml", raw), None, speaks)

    def _named(self, fault: ConfigError | None, raw: bytes, file: str) -> str | None:
        if fault is None:
            return None
        from patchgate.policy.config import id_of_unusable

        return self._in_time(raw, lambda: id_of_unusable(raw, file))

    def _compiled(self, config: Config, file: str, raw: bytes) -> Policy:
        return self._in_time(raw, lambda: Policy(config, file, raw, self._limit))

    def _parse(self, raw: bytes) -> Config:
        config = self._cache.load(raw, "patchgate.toml")
        if config is None:
            from patchgate.policy.config import parse

            config = self._in_time(raw, lambda: parse(raw, "patchgate.toml"), self._earned)
            self._cache.store(raw, "patchgate.toml", config)
        return config

    def _parse_project(self, raw: bytes) -> Config | None:
        # As in `parse_pyproject`: most projects do not mention patchgate.
        if not may_have_table(raw):
            return None
        config = self._cache.load(raw, "pyproject.toml")
        if config is None:
            from patchgate.policy.config import parse_pyproject

            config = self._in_time(raw, lambda: parse_pyproject(raw, "pyproject.toml"), self._earned)
            if config is not None:
                self._cache.store(raw, "pyproject.toml", config)
        return config

    @property
    def _earned(self) -> float:
        """The seconds that one more config adds."""
        return _CONFIG_SECONDS if self._limit.names < _MOST_EARNING else 0.0

    def _in_time(self, raw: bytes, read: Callable[[], _Read], earned: float = 0.0) -> _Read:
        """Read or compile a config within the time limit; its expressions are run on their examples.

        Raises:
            ConfigError: it is not valid.
            UndecidedError: time ran out. That is no fault of the config, which others may repair: another
                config may have used up the time.
        """
        try:
            return self._limit.run(raw, read, earned)
        except OutOfTimeError:
            raise UndecidedError(
                "the configs take too long to read",
                "make them shorter and their regular expressions simpler, or push fewer branches at once",
            ) from None

    def _content(self, oid: str) -> bytes:
        """Read the bytes of a config; the parser refuses a config that is too large.

        Raises:
            ConfigError: it is larger than any file that is read completely.
        """
        size = self._objects.sizes([oid])[oid]
        if size > BIG_FILE:
            raise _fault(f"the config has {size:,} bytes, which is too large", "make it shorter")
        return self._objects.read(oid)

    def names_patchgate(self, tree: str) -> bool:
        """Check whether the `.pre-commit-config.yaml` of a tree mentions patchgate."""
        return self.is_naming(self._objects.tree(tree).get(PRE_COMMIT_FILE.raw))

    def is_naming(self, entry: Entry | None) -> bool:
        """Check whether a `.pre-commit-config.yaml` mentions patchgate."""
        if entry is None or not entry.is_file:
            return False
        key = PRE_COMMIT_FILE.raw, entry.oid
        if key not in self._speaks:
            size = self._objects.sizes([entry.oid])[entry.oid]
            self._speaks[key] = size > BIG_FILE or b"patchgate" in self._objects.read(entry.oid)
        return self._speaks[key]


def _fault(message: str, hint: str) -> ConfigError:
    return ConfigError((Mistake("patchgate.toml", None, "", message, hint),))


@cache
def built_in() -> Policy:
    """Return the default policy for a repository without one; compiled once."""
    return Policy(Config())


def warnings_of(policy: Policy) -> tuple[str, ...]:
    """Describe the values of a policy that cannot be used: line, key, and what is used instead."""
    warnings = policy.config.warnings
    if not warnings:
        return ()
    # Only if there is a warning: the file is parsed again.
    from patchgate.policy.toml_lines import line_of, lines

    places = lines(policy.raw.decode())
    prefix = ("tool", "patchgate") if policy.file == "pyproject.toml" else ()
    messages: list[str] = []
    by_line = sorted(
        (line_of(places, (*prefix, *each.key)) or 0, each.key, each.message) for each in warnings
    )
    for line, key, message in by_line[:_MAX_WARNINGS]:
        messages.append(f"{policy.file}:{line}: {Decision(key, '').dotted}: {message}")
    if len(warnings) > _MAX_WARNINGS:
        messages.append(f"{policy.file}: {len(warnings) - _MAX_WARNINGS} more values cannot be used")
    return tuple(messages)


def old_table_notes(policy: Policy) -> tuple[str, ...]:
    """Write for each `[analyses.NAME]` of a policy where it is, and its lines as a command."""
    notes = []
    for name, each in policy.config.old_analyses.items():
        place = policy.line_of(("analyses", name))
        table = f"[analyses.{name}]{f' ({place})' if place else ''}"
        lines = f'[commands.{name}] kind = "lint", output = "{each.output}", on = ["verify"]'
        if name in policy.config.commands:
            lines = f'[commands.{name}] output = "{each.output}", and "verify" in its `on`'
        notes.append(f"{table} is the old form of {lines}; the other keys stay")
    return tuple(notes)


def require_usable(found: FoundPolicy) -> Policy:
    """Return the policy that was found, or the built-in one.

    Raises:
        ConfigError: it cannot be used.
        UndecidedError: `required_version` excludes this version.
    """
    if found.fault is not None:
        raise found.fault
    policy = found.policy or built_in()
    require_version(policy)
    return policy


def require_version(policy: Policy) -> None:
    """Check `required_version` against this version.

    Raises:
        UndecidedError: `required_version` excludes this version.
    """
    wanted = policy.config.required_version
    if wanted is None:
        return
    from patchgate.policy.validators import version_satisfies

    if not version_satisfies(wanted, __version__):
        raise UndecidedError(
            f"this repository requires patchgate {wanted}, but this is {__version__}",
            f"install it: pip install 'patchgate{wanted}'",
        )
