"""A compiled policy: what the config means for a path, a file, a profile.

Decides which key applies to a path, which limits a file has, the level of a rule, and the digest that a
verdict is bound to. Does not read changes: the gates do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from patchgate.git.path import RepoPath, bounded, fold
from patchgate.git.quoting import printable
from patchgate.policy.component import Components
from patchgate.policy.content_rules import ContentRules, NoLimit, TimeLimit
from patchgate.policy.file_kinds import CLASSES, POLICY_PATHS, is_control_by_name
from patchgate.policy.glob_matching import PatternSet, PrefixSet, with_folder
from patchgate.policy.settings import Config, OverrideSettings, ProfileSettings
from patchgate.report.rules import RULES, RULES_VERSION, Level, Stage
from patchgate.report.verdict import OwnedPaths
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.policy.placeholder_markers import Markers

Key = tuple[str | int, ...]
_MANY_PATHS = 200_000
# From so many on it pays to ask first whether a path is in any class.
_SOME_PATHS = 500
_Value = TypeVar("_Value")
_WEIGHTS = ("off", "note", "warning", "error")


class Profile(StrEnum):
    """Whose change is checked: human commits, or what agents propose."""

    COMMIT = "commit"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Decision:
    """The config key that decides about a path, and its text."""

    key: Key
    text: str

    @property
    def shown(self) -> str:
        """The text, safe for a terminal."""
        return printable(self.text, 120)

    @property
    def dotted(self) -> str:
        """The key as in TOML: `policy.deny[2]`."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.key)[1:]


@dataclass(frozen=True, slots=True)
class PathRuling:
    """Everything that the policy says about a path by its name.

    `denied` is the deny that applies, `rule` the rule that reports it; `deletable` and `generated` are the
    entries that match; `classes` the classes of the name; `owner` the index of the override that applies.
    """

    rule: str | None
    denied: Decision | None
    outside: bool
    deletable: Decision | None
    generated: Decision | None
    suffix: Decision | None
    classes: frozenset[str]
    owner: int | None
    is_control: bool


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits for the files of one owner, an override or (None) the profile. A limit of None is no limit.

    `has_own_files` and `has_own_lines`: whether the owner counts its files and lines separately.
    """

    owner: int | None
    max_files: int | None
    max_added_lines: int | None
    max_file_bytes: int | None
    deny_classes: frozenset[str]
    deny_new_classes: frozenset[str]
    allow_modes: bool
    allow_symlinks: bool | str
    allow_gitlinks: bool | str
    has_own_files: bool = True
    has_own_lines: bool = True


@cache
def _classes() -> tuple[tuple[str, PatternSet], ...]:
    return tuple((name, PatternSet(patterns, folded=True)) for name, patterns in CLASSES.items())


@cache
def _any_class() -> PatternSet:
    """The patterns of all classes: nearly every path is in none."""
    return PatternSet([pattern for patterns in CLASSES.values() for pattern in patterns], folded=True)


class Policy:
    """A compiled config. Immutable, except for a cache of rulings on paths.

    Args:
        config: the config.
        file: the name of its file, and `raw` its bytes, to find lines; empty for the built-in defaults.
        limit: the time limit of custom expressions; None: no limit.
    """

    def __init__(
        self, config: Config, file: str = "", raw: bytes = b"", limit: TimeLimit | None = None
    ) -> None:
        self.config = config
        self.limit = limit or NoLimit()
        self.file = file
        self.raw = raw
        section = config.policy
        self._roots = None if section.allow_roots is None else PrefixSet(section.allow_roots, folded=False)
        denies: list[tuple[str, str, PrefixSet | PatternSet]] = [
            ("deny-prefix", "deny_prefixes", PrefixSet(section.deny_prefixes, folded=True)),
            ("deny-pattern", "deny", PatternSet([*map(with_folder, section.deny)], folded=True)),
        ]
        # One deny is reported for a path: that of the higher level, or a warning would hide a refusal.
        self._denies = sorted(denies, key=lambda deny: -_WEIGHTS.index(config.rules.get(deny[0], "error")))
        self._deletable = PatternSet(section.allow_delete, folded=False, exact=True)
        self._generated = PatternSet(section.generated, folded=False, exact=True)
        self._suffixes = tuple(
            fold(suffix.encode("utf-8", "surrogateescape")) for suffix in section.deny_suffixes
        )
        self._owners = [PatternSet(override.paths, folded=False, exact=True) for override in config.overrides]
        self._rulings: dict[bytes, PathRuling] = {}
        self._tables: dict[bytes, tuple[int, ...]] = {}
        self._limits: dict[tuple[Profile, int | None], FileLimits] = {}
        self._all_limits: dict[Profile, tuple[FileLimits, ...]] = {}
        self._digests: dict[Profile, str] = {}
        self._levels_by_stage: dict[tuple[Stage, Profile], frozenset[Level | None]] = {}

    @cached_property
    def content(self) -> ContentRules:
        """The content rules."""
        section = self.config.content
        denied = tuple(re.compile(text.encode("utf-8")) for text in section.deny)
        return ContentRules(section.secrets, section.conflict_markers, denied, self.limit, self._denied_at)

    def _denied_at(self, number: int) -> str:
        """Describe an expression of `content.deny` with its text and line."""
        text = printable(self.config.content.deny[number], 80)
        place = self.line_of(("content", "deny", number))
        return f"content.deny[{number}] ({text}{f', {place}' if place else ''})"

    @cached_property
    def markers(self) -> Markers:
        """The markers of placeholders, built-in and custom."""
        # Most commits do not need them.
        from patchgate.policy.placeholder_markers import Markers

        return Markers(self.config.claims.markers, self.limit)

    @cached_property
    def components(self) -> Components:
        """The components."""
        return Components(self.config.components)

    def digest(self, profile: Profile) -> str:
        """Compute the policy digest: profile, keys as written in canonical JSON, version of the rules."""
        if profile not in self._digests:
            text = f"patchgate.policy/1\n{profile.value}\n{self._written}\n{RULES_VERSION}\n"
            self._digests[profile] = "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()
        return self._digests[profile]

    def level(self, rule: str, profile: Profile) -> Level | None:
        """Return the level of a rule; None if it is off. Invariants keep their own level.

        `[rules]` has priority over `[message] level` (for every message rule), `[placeholders] level` (for
        every placeholder rule) and `[intents] reserve`.
        """
        definition = RULES[rule]
        if not definition.invariant and (chosen := self.config.rules.get(rule)):
            return None if chosen == "off" else Level(chosen)
        if profile is Profile.AGENT and rule in {"max-files", "max-added-lines"}:
            return Level.ERROR
        if definition.stage is Stage.MESSAGE:
            level = self.config.message.level
            return None if level == "off" else Level(level)
        if definition.stage is Stage.PLACEHOLDERS:
            level = self.config.placeholders.level or ("warning" if profile is Profile.AGENT else "off")
            return None if level == "off" else Level(level)
        if rule == "intent-reserved":
            reserve = self.config.intents.reserve
            return None if reserve == "off" else Level(reserve)
        return definition.level

    def refuses_messages(self, profile: Profile) -> bool:
        """Whether a message can be refused, so that commit messages must be read."""
        return Level.ERROR in self._levels(Stage.MESSAGE, profile)

    def judges_messages(self, profile: Profile) -> bool:
        """Whether any message rule is on."""
        return self._levels(Stage.MESSAGE, profile) != {None}

    def judges_placeholders(self, profile: Profile) -> bool:
        """Whether any placeholder rule is on; if not, placeholders are not searched."""
        return self._levels(Stage.PLACEHOLDERS, profile) != {None}

    def _levels(self, stage: Stage, profile: Profile) -> frozenset[Level | None]:
        """Collect the levels of the rules of a stage."""
        key = (stage, profile)
        if key not in self._levels_by_stage:
            rules = [each.id for each in RULES.values() if each.stage is stage]
            self._levels_by_stage[key] = frozenset(self.level(rule, profile) for rule in rules)
        return self._levels_by_stage[key]

    def ruling(self, path: RepoPath) -> PathRuling:
        """Return what the policy says about a path by its name."""
        known = self._rulings.get(path.raw)
        if known is None:
            if len(self._rulings) >= _MANY_PATHS:
                self._rulings.clear()
            known = self._rulings[path.raw] = self._rule(path)
        return known

    def _rule(self, path: RepoPath) -> PathRuling:
        section = self.config.policy
        raw = bounded(path.raw)
        rule, denied = None, None
        for name, key, matcher in self._denies:
            if (index := matcher.match(raw)) is not None:
                rule, denied = name, Decision(("policy", key, index), getattr(section, key)[index])
                break
        is_control = is_control_by_name(path)
        folded = fold(raw)
        suffix = next((each for each, text in enumerate(self._suffixes) if folded.endswith(text)), None)
        owner = next((each for each, paths in enumerate(self._owners) if paths.match(raw) is not None), None)
        return PathRuling(
            rule=rule,
            denied=denied,
            outside=self._roots is not None and not is_control and self._roots.match(raw) is None,
            deletable=_decision(self._deletable, raw, ("policy", "allow_delete")),
            generated=_decision(self._generated, raw, ("policy", "generated")),
            suffix=None
            if suffix is None
            else Decision(("policy", "deny_suffixes", suffix), section.deny_suffixes[suffix]),
            classes=self._classes_of(raw),
            owner=owner,
            is_control=is_control,
        )

    def owned(self, paths: Iterable[RepoPath], controls: Container[RepoPath]) -> Iterator[OwnedPaths]:
        """Yield the paths that have owners, for each table of `[[owners]]` that names some.

        Args:
            paths: the paths that a change touches.
            controls: the control files among them.
        """
        paths = sorted(paths)
        named: dict[int, list[RepoPath]] = {}
        for path in paths:
            for number in self._tables_of(path.raw):
                named.setdefault(number, []).append(path)
        policy = {path for path in paths if path in controls}
        for number, table in enumerate(self.config.owners):
            found = named.get(number, [])
            if policy and POLICY_PATHS in table.paths:
                found = sorted(policy.union(found))
            if found:
                yield OwnedPaths(
                    paths=tuple(found),
                    table=number,
                    signers=table.signers,
                    approvals=table.approvals,
                    is_policy=not policy.isdisjoint(found),
                )

    def _tables_of(self, raw: bytes) -> tuple[int, ...]:
        """Number the tables of `[[owners]]` whose patterns name a path."""
        known = self._tables.get(raw)
        if known is None:
            if len(self._tables) >= _MANY_PATHS:
                self._tables.clear()
            name = bounded(raw)
            known = tuple(n for n, patterns in enumerate(self._owned) if patterns.match(name) is not None)
            self._tables[raw] = known
        return known

    @cached_property
    def _owned(self) -> list[PatternSet]:
        written = ((path for path in table.paths if path != POLICY_PATHS) for table in self.config.owners)
        return [PatternSet([*map(with_folder, paths)], folded=True) for paths in written]

    def _classes_of(self, raw: bytes) -> frozenset[str]:
        if len(self._rulings) >= _SOME_PATHS and _any_class().match(raw) is None:
            return frozenset()
        found = frozenset(name for name, names in _classes() if names.match(raw) is not None)
        # A policy that allows lock files allows new ones too.
        return found - {"output"} if "lock" in found else found

    def limits(self, profile: Profile, owner: int | None) -> FileLimits:
        """Return the limits for the files of one owner: an override, or (None) the profile."""
        key = (profile, owner)
        if key not in self._limits:
            own = self.config.policy.commit if profile is Profile.COMMIT else self.config.policy.agent
            self._limits[key] = self._resolve(own, owner)
        return self._limits[key]

    def _resolve(self, own: ProfileSettings, owner: int | None) -> FileLimits:
        section = self.config.policy
        override = OverrideSettings(()) if owner is None else self.config.overrides[owner]
        return FileLimits(
            owner=owner,
            max_files=_number(_first(override.max_files, own.max_files)),
            max_added_lines=_number(_first(override.max_added_lines, own.max_added_lines)),
            max_file_bytes=_number(_first(override.max_file_bytes, section.max_file_bytes)),
            # An override cannot lift a deny of `[policy]`.
            deny_classes=frozenset((*_first(override.deny_classes, own.deny_classes), *section.deny_classes)),
            deny_new_classes=frozenset(_first(override.deny_new_classes, own.deny_new_classes)),
            allow_modes=_first(override.allow_modes, own.allow_modes),
            allow_symlinks=_first(override.allow_symlinks, own.allow_symlinks),
            allow_gitlinks=_first(override.allow_gitlinks, own.allow_gitlinks),
            has_own_files=owner is None or override.max_files is not None,
            has_own_lines=owner is None or override.max_added_lines is not None,
        )

    def key_of(self, limit: str, profile: Profile, owner: int | None) -> Key:
        """Return the key that sets a limit for one owner: of the override, else of the profile."""
        if owner is not None and getattr(self.config.overrides[owner], limit) is not None:
            return ("overrides", owner, limit)
        return ("policy", limit) if limit == "max_file_bytes" else ("policy", profile.value, limit)

    def key_of_class(self, name: str, profile: Profile, owner: int | None) -> Key:
        """Return the key of the list that denies a class to one owner; an override cannot lift `[policy]`."""
        if name in self.config.policy.deny_classes:
            return ("policy", "deny_classes")
        is_for_all = name in self.limits(profile, owner).deny_classes
        return self.key_of("deny_classes" if is_for_all else "deny_new_classes", profile, owner)

    def is_written(self, key: Key) -> bool:
        """Check whether the config sets a key, so that the default does not apply."""
        value: Any = self.config.written
        for part in key:
            if not (part in value if isinstance(value, Mapping) else isinstance(value, list)):
                return False
            value = value[part]
        return True

    def all_limits(self, profile: Profile) -> Sequence[FileLimits]:
        """List the limits of the profile and of every override."""
        if profile not in self._all_limits:
            owners: list[int | None] = [None, *range(len(self._owners))]
            self._all_limits[profile] = tuple(self.limits(profile, owner) for owner in owners)
        return self._all_limits[profile]

    def needs_lines(self, profile: Profile) -> bool:
        """Whether lines must be read: for content rules, a line limit, or the class `binary`."""
        if self.content or self.judges_placeholders(profile):
            return True
        return any(
            limits.max_added_lines is not None or "binary" in limits.deny_classes | limits.deny_new_classes
            for limits in self.all_limits(profile)
        )

    def needs_sizes(self, profile: Profile) -> bool:
        """Whether the sizes of new blobs must be read."""
        return any(limits.max_file_bytes is not None for limits in self.all_limits(profile))

    def line_of(self, key: Key) -> str | None:
        """Return the line of a key as `file:line`; None for the built-in defaults."""
        if not self.file:
            return None
        # Only for a report: the file is parsed again.
        from patchgate.policy.toml_lines import locate

        prefix: Key = ("tool", "patchgate") if self.file == "pyproject.toml" else ()
        line = locate(self.raw, (*prefix, *key))
        return self.file if line is None else f"{self.file}:{line}"

    def is_written_as(self, other: Policy) -> bool:
        """Return whether both configs set the same keys to the same values; to Python `1`, `1.0` and `true`
        are equal.
        """
        return self._written == other._written

    @cached_property
    def _written(self) -> str:
        return json.dumps(self.config.written, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def as_written(self) -> Mapping[str, object]:
        """The keys that the config sets."""
        return self.config.written


def _decision(patterns: PatternSet, raw: bytes, key: Key) -> Decision | None:
    index = patterns.match(raw)
    return None if index is None else Decision((*key, index), patterns.patterns[index])


def _first(value: _Value | None, otherwise: _Value) -> _Value:
    return otherwise if value is None else value


def _number(limit: int | str) -> int | None:
    return limit if isinstance(limit, int) else None
