"""Components: which files belong to which, in which role, and how they are related.

Decides the role of a path (contract before tests before implementation), which components a set of paths is
near, in which folders a component's files can lie, and what is a parent, child or sibling of what. A pattern
is anchored at the root always, so `app.py` is no `x/app.py`. Knows neither trees nor contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import takewhile

from patchgate.git.path import RepoPath
from patchgate.policy.glob_matching import PatternSet
from patchgate.policy.glob_syntax import parse
from patchgate.policy.settings import ComponentSettings

BASELINES = b".patchgate/baselines/"
_OWN = b".patchgate"
_PLAIN = re.compile(r"[A-Za-z0-9_./*-]+")
TO_DECLARE = "add a table [components.ID] to the config (git patchgate schema config)"
NONE_DECLARED = f"no component is declared: {TO_DECLARE}"


class Role(StrEnum):
    """What a file is to its component."""

    CONTRACT = "contract"
    TESTS = "tests"
    IMPLEMENTATION = "implementation"


@dataclass(frozen=True)
class Component:
    """One component as the config declares it."""

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
        """Where its baseline lies."""
        return RepoPath(BASELINES + self.id.encode("ascii") + b".json")

    @cached_property
    def globs(self) -> tuple[tuple[Role, str], ...]:
        """Its patterns, each with the role that it gives, tests first."""
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
        """The folders or files at or below which all of its files lie, none within another."""
        return outermost({self.contract.raw, *(literal_start(glob) for _, glob in self.globs)})

    def role(self, path: RepoPath) -> Role | None:
        """Say what a file is to this component; None where it is nothing to it."""
        if path.raw == self.contract.raw:
            return Role.CONTRACT
        if path.is_within(_OWN):
            return None
        index = self._patterns.match(path.raw)
        return None if index is None else self.globs[index][0]


class Components:
    """All components of a policy; they are few thousand at most, and compiled when first near."""

    def __init__(self, settings: Mapping[str, ComponentSettings]) -> None:
        self._by_id = {name: Component(name, settings[name]) for name in sorted(settings)}
        self._above: dict[str, tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is any component."""
        return bool(self._by_id)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, sorted."""
        return tuple(self._by_id)

    def get(self, name: str) -> Component | None:
        """Find a component by its exact id."""
        return self._by_id.get(name)

    def __getitem__(self, name: str) -> Component:
        """Give the component of an id that is known to be there."""
        return self._by_id[name]

    @cached_property
    def _starts(self) -> Mapping[bytes, Sequence[Component]]:
        """The components by the folders at which their files can begin."""
        found: dict[bytes, list[Component]] = {}
        for component in self._by_id.values():
            for folder in component.folders:
                found.setdefault(folder, []).append(component)
        return found

    def claims(self, path: RepoPath) -> list[tuple[Component, Role]]:
        """List the components that a path belongs to, with its role in each; more than one is a mistake."""
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
        """Find the components that some paths belong to, or whose baselines they are, with those paths."""
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
        """List what a component belongs to: its parent, the parent's parent, and so on."""
        if name not in self._above:
            found: dict[str, None] = {}
            above = self._by_id[name].parent if name in self._by_id else None
            while above is not None and above not in found:
                found[above] = None
                above = self._by_id[above].parent if above in self._by_id else None
            self._above[name] = tuple(found)
        return self._above[name]


def outermost(places: Iterable[bytes]) -> tuple[bytes, ...]:
    """Choose the places that lie in no other one, sorted."""
    chosen: list[bytes] = []
    for place in sorted(places):
        if not any(not above or RepoPath(place).is_within(above) for above in chosen):
            chosen.append(place)
    return tuple(chosen)


def anchored(glob: str) -> str:
    """Write a pattern so that it begins at the root."""
    return glob if glob.startswith("/") else "/" + glob


def literal_start(glob: str) -> bytes:
    """Give the folder or file at or below which everything lies that a pattern matches."""
    if _PLAIN.fullmatch(glob):
        # Nearly every pattern; reading it as one takes ten times as long, and there may be a thousand.
        start, wildcard, _ = glob.partition("*")
        return _raw((start.rpartition("/")[0] if wildcard else start).strip("/"))
    segments = parse(anchored(glob), folded=False)
    plain = [each.written for each in takewhile(lambda each: each.plain == each.written, segments)]
    return _raw("/".join(plain))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
