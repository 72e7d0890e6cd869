"""Components: which files belong to which component, in which role, and how components are related.

Decides the role of a path (contract before tests before implementation), which components a change affects,
which folders can contain files of a component, and the ancestors. A pattern is always anchored at the root:
`app.py` does not match `x/app.py`. Does not read trees or contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import takewhile

from patchgate.git.path import RepoPath
from patchgate.policy.glob_matching import PatternSet
from patchgate.policy.glob_syntax import parse
from patchgate.policy.settings import ComponentSettings
from patchgate.values import dataclass, field

BASELINES = b".patchgate/baselines/"
_OWN = b".patchgate"
_PLAIN = re.compile(r"[A-Za-z0-9_./*-]+")
TO_DECLARE = "add a table [components.ID] to the config (git patchgate schema config)"
NONE_DECLARED = f"no component is declared: {TO_DECLARE}"


class Role(StrEnum):
    """The role of a file in its component."""

    CONTRACT = "contract"
    TESTS = "tests"
    IMPLEMENTATION = "implementation"


@dataclass(frozen=True)
class Component:
    """A component as the config declares it."""

    id: str
    settings: ComponentSettings
    contract: RepoPath = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "contract", RepoPath(_raw(self.settings.contract)))

    @property
    def parent(self) -> str | None:
        """The component or group that it belongs to."""
        return self.settings.parent

    @property
    def baseline(self) -> RepoPath:
        """The path of its baseline."""
        return RepoPath(BASELINES + self.id.encode("ascii") + b".json")

    @cached_property
    def globs(self) -> tuple[tuple[Role, str], ...]:
        """Its patterns, each with its role, tests first."""
        settings = self.settings
        return (
            *((Role.TESTS, glob) for glob in settings.tests),
            *((Role.IMPLEMENTATION, glob) for glob in settings.implementation),
        )

    @cached_property
    def _patterns(self) -> PatternSet:
        return PatternSet([anchored(glob) for _, glob in self.globs], folded=False)

    @cached_property
    def folders(self) -> tuple[bytes, ...]:
        """The folders or files that contain all of its files; none is inside another."""
        return outermost({self.contract.raw, *(literal_start(glob) for _, glob in self.globs)})

    def role(self, path: RepoPath) -> Role | None:
        """Return the role of a file in this component; None if it does not belong to it."""
        if path.raw == self.contract.raw:
            return Role.CONTRACT
        if path.is_within(_OWN):
            return None
        index = self._patterns.match(path.raw)
        return None if index is None else self.globs[index][0]


class Components:
    """All components of a policy, a few thousand at most; patterns are compiled on first use."""

    def __init__(self, settings: Mapping[str, ComponentSettings]) -> None:
        self._by_id = {name: Component(name, settings[name]) for name in sorted(settings)}
        self._above: dict[str, tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        """Whether there is any component."""
        return bool(self._by_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, sorted."""
        return tuple(self._by_id)

    def get(self, name: str) -> Component | None:
        """Return the component with this exact id, if any."""
        return self._by_id.get(name)

    def __getitem__(self, name: str) -> Component:
        """Return the component with an id that exists."""
        return self._by_id[name]

    @cached_property
    def _starts(self) -> Mapping[bytes, Sequence[Component]]:
        """The components by the folders that contain their files."""
        found: dict[bytes, list[Component]] = {}
        for component in self._by_id.values():
            for folder in component.folders:
                found.setdefault(folder, []).append(component)
        return found

    def claims(self, path: RepoPath) -> list[tuple[Component, Role]]:
        """List the components that a path belongs to, with its role; more than one is a mistake."""
        starts = self._starts
        candidates: dict[str, Component] = {}
        for place in (*path.parents(), path.raw):
            for component in starts.get(place, ()):
                candidates[component.id] = component
        return [
            (component, role)
            for _, component in sorted(candidates.items())
            if (role := component.role(path)) is not None
        ]

    def affected_by(self, paths: Iterable[RepoPath]) -> dict[str, set[RepoPath]]:
        """Map component ids to the paths that belong to the component or are its baseline."""
        found: dict[str, set[RepoPath]] = {}
        for path in paths:
            for component, _ in self.claims(path):
                found.setdefault(component.id, set()).add(path)
            if path.raw.startswith(BASELINES):
                name = path.name.removesuffix(b".json").decode("utf-8", "surrogateescape")
                if name in self._by_id and self._by_id[name].baseline == path:
                    found.setdefault(name, set()).add(path)
        return found

    def ancestors(self, name: str) -> tuple[str, ...]:
        """List the ancestors of a component: its parent, the parent's parent, and so on."""
        if name not in self._above:
            found: dict[str, None] = {}
            above = self._by_id[name].parent if name in self._by_id else None
            while above is not None and above not in found:
                found[above] = None
                above = self._by_id[above].parent if above in self._by_id else None
            self._above[name] = tuple(found)
        return self._above[name]


def outermost(places: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the paths that are not inside another one, sorted."""
    chosen: list[bytes] = []
    for place in sorted(places):
        if not any(not above or RepoPath(place).is_within(above) for above in chosen):
            chosen.append(place)
    return tuple(chosen)


def anchored(glob: str) -> str:
    """Anchor a pattern at the root."""
    return glob if glob.startswith("/") else "/" + glob


def literal_start(glob: str) -> bytes:
    """Return the folder or file that contains everything a pattern matches."""
    if _PLAIN.fullmatch(glob):
        # Nearly every pattern; parsing it takes ten times as long, and there may be a thousand.
        start, wildcard, _ = glob.partition("*")
        return _raw((start.rpartition("/")[0] if wildcard else start).strip("/"))
    segments = parse(anchored(glob), None)
    plain = [each.written for each in takewhile(lambda each: each.plain == each.written, segments)]
    return _raw("/".join(plain))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
