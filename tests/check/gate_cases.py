"""Builders of cases for the gates: a change in a few words, a policy as the TOML that a user would write."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from patchgate.check.case import Case, Governance
from patchgate.check.gate import judge
from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    REGULAR,
    SYMLINK,
    Change,
    Entry,
    FileChange,
    Line,
    Source,
)
from patchgate.git.path import RepoPath
from patchgate.placeholders.placeholder_gate import AddedPlaceholder, PlaceholderFacts
from patchgate.placeholders.placeholder_matches import find_matches
from patchgate.policy.config import parse
from patchgate.policy.file_kinds import is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, PolicyReference

Name = str | bytes
Part = FileChange | tuple[FileChange, ...]

# Names that try to write something else than themselves.
HOSTILE_NAMES = (
    b"a\nerror[secret]: forged",
    b"a\x1b[2J\x1b]0;title\x07b",
    "a\u202egpj.exe".encode(),
    "a\u009b31m".encode(),
    b"caf\xe9\xff\xfe",
    "line\u2028separator".encode(),
    b"carriage\rreturn\ttab",
    b'say "hi" \\ there',
    b"\x7f\x01\x08",
)


def raw(name: Name) -> bytes:
    """Give the bytes of a name."""
    return name.encode() if isinstance(name, str) else name


def path(name: Name) -> RepoPath:
    """Make a path as if git had given it."""
    return RepoPath.from_git(raw(name))


def oid(content: Name) -> str:
    """Make an object id that stands for some content."""
    return hashlib.sha1(raw(content)).hexdigest()


def policy(toml: str = "") -> Policy:
    """Compile the policy of a `patchgate.toml`."""
    return Policy(parse(toml.encode(), "patchgate.toml"), "patchgate.toml", toml.encode())


def added(
    name: Name,
    text: Name | None = None,
    *,
    lines: int = 1,
    size: int = 10,
    mode: str = REGULAR,
    content: Name | None = None,
    old: Entry | None = None,
) -> FileChange:
    """Make a file that the change adds (or, over `old`, changes); `text` is what its added lines hold."""
    watched: tuple[Line, ...] = ()
    if text is not None:
        watched = tuple(Line(number, line) for number, line in enumerate(raw(text).split(b"\n"), start=1))
        lines = len(watched)
    new = Entry(mode, oid(raw(name) + b"\0" + raw(content if content is not None else text or b"")))
    return FileChange(path(name), old, new, lines, 0, int(lines > 0), size=size, watched=watched)


def modified(
    name: Name, text: Name | None = None, *, lines: int = 1, size: int = 10, mode: str = REGULAR
) -> FileChange:
    """Make a file whose content the change replaces."""
    return added(name, text, lines=lines, size=size, mode=mode, old=Entry(mode, oid("before")))


def deleted(name: Name, mode: str = REGULAR, content: Name = "before") -> FileChange:
    """Make a file that the change deletes."""
    return FileChange(path(name), Entry(mode, oid(content)), None, 0, 1)


def moved(old: Name, new: Name, mode: str = REGULAR, *, lines: int = 1) -> tuple[FileChange, ...]:
    """Make both sides of an exact rename, each with its lines, as git tells them without rename detection."""
    entry = Entry(mode, oid(b"moved " + raw(old)))
    return (
        FileChange(path(old), entry, None, 0, lines),
        FileChange(path(new), None, entry, lines, 0, 1, size=10),
    )


def chmod(name: Name, mode: str) -> FileChange:
    """Make a file whose mode alone changes, to `mode`."""
    before = REGULAR if mode == EXECUTABLE else EXECUTABLE
    return FileChange(path(name), Entry(before, oid("same")), Entry(mode, oid("same")), 0, 0)


def binary(name: Name, *, old: Entry | None = None, size: int = 10) -> FileChange:
    """Make an added (or, over `old`, changed) file whose bytes hold a NUL."""
    return replace(
        added(name, old=old, size=size), added_lines=None, removed_lines=None, binary=True, n_hunks=0
    )


def symlink(name: Name, target: bytes | None, old: Entry | None = None) -> FileChange:
    """Make a symlink that the change adds, or puts in the place of `old`."""
    return FileChange(path(name), old, Entry(SYMLINK, oid(target or b"")), 1, 0, 1, link_target=target)


def gitlink(name: Name, old: Entry | None = None) -> FileChange:
    """Make a submodule's entry that the change adds, or puts in the place of `old`."""
    return FileChange(path(name), old, Entry(GITLINK, oid("their commit")), 1, 0, 1)


def folders_of(names: Iterable[bytes]) -> dict[bytes, tuple[bytes, ...]]:
    """List every folder of a tree that holds these files."""
    found: dict[bytes, dict[bytes, None]] = {b"": {}}
    for name in names:
        components = name.split(b"/")
        for depth, component in enumerate(components):
            found.setdefault(b"/".join(components[:depth]), {})[component] = None
    return {folder: tuple(inside) for folder, inside in found.items()}


def facts_of(files: Iterable[FileChange], judging: Policy) -> PlaceholderFacts:
    """Find the placeholders of files whose watched lines are all that they hold; nothing was moved."""
    marked: dict[RepoPath, tuple[AddedPlaceholder, ...]] = {}
    for file in files:
        if file.new is not None:
            text = b"".join(line.text + b"\n" for line in file.watched)
            matches = find_matches(text, file.path.raw, judging.markers)
            marked[file.path] = tuple(
                AddedPlaceholder(match, file.watched[match.line - 1]) for match in matches
            )
    gained = Counter(each.match.key for found in marked.values() for each in found)
    return PlaceholderFacts(marked, gained)


def case(
    *parts: Part,
    toml: str = "",
    profile: Profile = Profile.COMMIT,
    beside: Iterable[Name] = (),
    governance: Governance | None = None,
    from_text: bool = False,
    has_budgets: bool = True,
    judged_by: Policy | None = None,
    copied: Iterable[Name] = (),
    blocked: Mapping[bytes, bytes] | None = None,
    placeholders: PlaceholderFacts | None = None,
) -> Case:
    """Make a case; `beside` are files of the resulting tree that the change does not touch.

    `copied` are the sources of copies, `behind` tells which names lie behind something that is no folder.
    Unless `governance` is given, the control files are those that are known by their name; unless
    `placeholders` are, each file holds its watched lines alone.
    """
    files = [file for part in parts for file in (part if isinstance(part, tuple) else (part,))]
    change = Change.of(oid("base"), oid("after"), files, oid("empty"))
    resulting = [raw(name) for name in beside] + [file.path.raw for file in files if file.new is not None]
    if governance is None:
        governance = Governance(frozenset(file.path for file in files if is_control_by_name(file.path)))
    judging = judged_by or policy(toml)
    found = placeholders or facts_of(files, judging)
    return Case(
        change,
        judging,
        profile,
        governance,
        folders_of(resulting),
        from_text=from_text,
        copied=tuple(path(name) for name in copied),
        blocked={path(name): path(blocking) for name, blocking in (blocked or {}).items()},
        has_budgets=has_budgets,
        facts={"placeholders": found} if files and judging.judges_placeholders(profile) else {},
    )


def agents(
    *parts: Part,
    toml: str = "",
    from_text: bool = False,
    copied: Iterable[Name] = (),
    blocked: Mapping[bytes, bytes] | None = None,
) -> Case:
    """Make a case that is judged under the agent profile."""
    return case(*parts, toml=toml, profile=Profile.AGENT, from_text=from_text, copied=copied, blocked=blocked)


def findings(given: Case) -> tuple[Finding, ...]:
    """Judge a case; give all findings."""
    return judge(given)[1]


def rules(given: Case) -> list[str]:
    """Judge a case; give the rules of its findings, sorted."""
    return sorted(finding.rule for finding in findings(given))


def only(given: Case) -> Finding:
    """Judge a case that has exactly one finding, and give it."""
    (finding,) = findings(given)
    return finding


def outcome(given: Case, gate: str) -> GateOutcome:
    """Judge a case; tell how one gate ended."""
    (found,) = (each for each in judge(given)[0] if each.gate == gate)
    return found


def verdict(given: Case) -> ChangeVerdict:
    """Judge a case; give the whole verdict."""
    outcomes, found = judge(given)
    reference = PolicyReference(given.policy.digest(given.profile), "HEAD:patchgate.toml")
    return ChangeVerdict(given.change, Source("staged"), given.profile.value, reference, outcomes, found)
