"""The policy in force: its keys, where each is set, and which line decides about a path."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from patchgate.check.policy_lookup import CheckOptions, requested_policy
from patchgate.errors import ConfigError
from patchgate.git.change_sources import pending_base
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import may_have_table
from patchgate.policy.policy import Decision, Key, Policy, Profile
from patchgate.policy.tree_policies import TreePolicies, built_in
from patchgate.report.schema import DIGEST, Schema, Shape, about, document_schema
from patchgate.report.verdict import Json
from patchgate.report.wording import count
from patchgate.values import asdict, dataclass

_MOST_OWNERS = 5
POLICY_SCHEMA = "patchgate.policy/1"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One key of the policy in force: its dotted name, its value, and where it is set (`file:line`)."""

    key: str
    value: Json
    place: str


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy in force, and where it was found."""

    policy: Policy
    place: str

    def settings(self) -> Iterator[EffectiveSetting]:
        """List every key with its value, and `default` where it is not set."""
        config = self.policy.config
        everything = asdict(config)
        # A command of `verify` is listed once, as a command.
        everything["analyses"] = {name: everything["analyses"][name] for name in config.old_analyses}
        everything |= {name: asdict(getattr(config, name)) for name in ("environment", "run")}
        # These fields are not keys of the config.
        del everything["written"], everything["warnings"], everything["claims"]["has_unusable_markers"]
        written = self.policy.as_written()
        yield from self._settings((), everything, written)

    def _settings(
        self, at: tuple[str | int, ...], values: Json, written: object
    ) -> Iterator[EffectiveSetting]:
        if isinstance(values, Mapping) and (values or not at):
            for name, value in values.items():
                inner = written.get(name) if isinstance(written, Mapping) else None
                is_written = isinstance(written, Mapping) and name in written
                yield from self._settings((*at, name), value, inner if is_written else _ABSENT)
            return
        key = Decision(at, "").dotted
        if written is _ABSENT:
            yield EffectiveSetting(key, values, self._shared_place(at) or "default")
        else:
            yield EffectiveSetting(key, values, self.policy.line_of(at) or "default")

    def _shared_place(self, at: tuple[str | int, ...]) -> str | None:
        """Return where `[environment]` sets a key of a command or an analysis; None if it does not."""
        if at[0] not in {"commands", "analyses"} or at[2:3] not in {("env",), ("required_tools",)}:
            return None
        shared = ("environment", *at[2:])
        return self.policy.line_of(shared) if self.policy.is_written(shared) else None


_ABSENT = object()
# One byte more than a config may have, so that a longer one is refused and not cut.
_MOST_READ = (1 << 20) + 1


def effective_policy(repository: Repository, asked: CheckOptions) -> EffectivePolicy:
    """Find the policy that would judge the next commit, or that of `--policy-from`.

    Raises:
        ConfigError: it cannot be used.
        PatchgateError: it cannot be read.
    """
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        found = requested_policy(objects, policies, asked)
        if found is None:
            found = policies.at(policies.key(pending_base(repository, objects).policy_tree))
        if found.fault is not None:
            raise found.fault
        if found.policy is None:
            return EffectivePolicy(built_in(), "built-in defaults")
        return EffectivePolicy(found.policy, f"{asked.place or 'HEAD'}:{found.policy.file}")


_KINDS: Mapping[str, tuple[str, Mapping[object, str]]] = {
    "allow_gitlinks": (
        "as a submodule",
        {True: "allowed", "bump": "may be moved, not added (gitlink)", False: "refused (gitlink)"},
    ),
    "allow_symlinks": (
        "as a symlink",
        {True: "allowed", "inside": "must stay inside the repository (symlink)", False: "refused (symlink)"},
    ),
    "allow_modes": (
        "the executable bit",
        {True: "may be set and cleared", False: "may not be set or cleared (mode-change)"},
    ),
}
"""For each limit on the kind of an entry: its subject, and what each value means."""


def _about_kinds(policy: Policy, profile: Profile, owner: int | None) -> Iterator[tuple[str, str]]:
    """Say which other kinds of entry the path may be."""
    limits = policy.limits(profile, owner)
    for name, (what, meanings) in _KINDS.items():
        value = getattr(limits, name)
        key = policy.key_of(name, profile, owner)
        yield f"{what}: {meanings[value]}", f"{_place(policy, key)} = {json.dumps(value)}"


def _place(policy: Policy, key: Key) -> str:
    """Name a key with its line, or as a default."""
    return f"{Decision(key, '').dotted} ({policy.line_of(key) if policy.is_written(key) else 'default'})"


def differs_on_disk(repository: Repository, force: EffectivePolicy) -> str | None:
    """Say that the policy of the working tree differs from the one in force; None if they are equal."""
    if repository.work_tree is None:
        return None
    written, files = force.policy.as_written(), []
    for name in ("patchgate.toml", "pyproject.toml"):
        raw = _read(os.path.join(repository.work_tree, name))
        if raw is None or (name == force.policy.file and raw == force.policy.raw):
            files += [name] if raw is not None else []
            continue
        if name == "pyproject.toml" and not may_have_table(raw):
            continue
        # pydantic, 120 ms: only where the bytes differ.
        from patchgate.policy.config import parse, parse_pyproject

        try:
            found = parse(raw, name) if name == "patchgate.toml" else parse_pyproject(raw, name)
        except ConfigError:
            return _other(name, force)
        if found is not None and (force.policy.file != name or found.written != written):
            return _other(name, force)
        files += [name] if found is not None else []
    if force.policy.file and force.policy.file not in files:
        return (
            f"{force.policy.file} is not in the working tree; the policy in force is {printable(force.place)}"
        )
    return None


def _other(name: str, force: EffectivePolicy) -> str:
    return (
        f"{name} in the working tree differs from the policy in force ({printable(force.place)}): "
        "it takes effect once it is committed"
    )


def _read(place: str) -> bytes | None:
    """Read a file of the working tree; None if there is none, and never wait for a pipe."""
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(_MOST_READ)
    except OSError:
        return None


def explain_path(force: EffectivePolicy, path: RepoPath, profile: Profile) -> Iterator[tuple[str, str]]:
    """List everything that the policy decides about a path, each with the line that decides."""
    policy = force.policy
    ruling = policy.ruling(path)

    def place(decision: Decision) -> str:
        line = policy.line_of(decision.key)
        return f"{decision.dotted} = {decision.shown}" + (f" ({line})" if line else "")

    broken = faults(path)
    for rule in broken:
        yield f"refused: {rule}", "applies in every repository"
    if ruling.is_control:
        yield (
            "a control file: must be its own commit; exempt from allow_roots and content rules",
            "by its name",
        )
    if ruling.denied is not None and ruling.rule is not None:
        yield f"refused: {ruling.rule}", place(ruling.denied)
        if ruling.deletable is not None:
            yield "may be deleted", place(ruling.deletable)
    elif ruling.outside:
        yield (
            "refused: outside-allow-roots",
            policy.line_of(("policy", "allow_roots")) or "policy.allow_roots",
        )
    elif not broken:
        yield "may be changed", "nothing denies it"
    if ruling.suffix is not None:
        yield "may not be added or changed: deny-suffix", place(ruling.suffix)
    limits = policy.limits(profile, ruling.owner)
    for name in sorted(ruling.classes):
        says = (
            "may not be added: deny-class"
            if name in limits.deny_new_classes
            else "of a class that is allowed"
        )
        if name in limits.deny_classes:
            says = "may not be added or changed: deny-class"
        yield f"{says} ({name})", _place(policy, policy.key_of_class(name, profile, ruling.owner))
    yield from _about_kinds(policy, profile, ruling.owner)
    if ruling.generated is not None:
        yield "does not count towards limits", place(ruling.generated)
    if ruling.owner is not None:
        line = policy.line_of(("overrides", ruling.owner))
        yield f"has the limits of overrides[{ruling.owner}]", line or "overrides"
    for owned in policy.owned([path], {path} if ruling.is_control else ()):
        key: Key = ("owners", owned.table or 0)
        who = first_of(owned.signers, _MOST_OWNERS, printable) or "the signers"
        yield (
            f"needs {count(owned.approvals, 'signed approval')} by {who} where it lands",
            _place(policy, key),
        )
    if not broken:
        for component, role in policy.components.claims(path):
            key = ("components", component.id, role.value)
            yield f"{role.value} of component {component.id}", policy.line_of(key) or ".".join(map(str, key))


def json_schema() -> Schema:
    """Build the JSON Schema of `policy show --format json`."""
    key: Shape = {"key": str, "value": Schema(), "from": about(str, "`default`, or the file and its line")}
    policy: dict[str, Shape] = {
        "from": str,
        "digests": dict.fromkeys(Profile, DIGEST),
        "keys": [key],
    }
    return document_schema(POLICY_SCHEMA, "The policy in force, and where each key comes from", policy)
