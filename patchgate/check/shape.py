"""The shape gate: limits on files, lines and bytes; modes, symlinks and submodules; how to split a change.

Limits do not count exact renames, deletions, lock files, generated files, the first commit of a repository,
and what git merged (it is not in the change). A limit is inclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from patchgate.check.case import Case, find, or_raise, or_set, undo
from patchgate.errors import UndecidedError
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Descent, FileChange
from patchgate.git.path import RepoPath, is_git_alias
from patchgate.policy.policy import Decision, FileLimits
from patchgate.report.verdict import UNCHANGED, Budget, Detail, Finding, Json
from patchgate.values import dataclass

Spending = tuple[int | None, str, Sequence[FileChange]]
"""One budget: its limit (None is no limit), its name, and the files that it counts."""


@dataclass(frozen=True, slots=True)
class Split:
    """The parts, and the paths that exceed a limit alone, and so are in no part."""

    parts: tuple[tuple[RepoPath, ...], ...]
    too_large: tuple[RepoPath, ...]

    @property
    def hint(self) -> str:
        """Say what to do, in words."""
        number = len(self.parts)
        names = "details.split in the JSON report names the files"
        if not self.too_large:
            return f"split it into {number} changes ({names})"
        large = ", ".join(path.quoted for path in self.too_large[:3])
        alone = f"{large}{', …' if len(self.too_large) > 3 else ''} alone exceeds the limit"
        smaller = f"{alone}: change it in smaller steps"
        if not self.parts:
            return smaller
        rest = f"the rest makes {number} change{'s' if number > 1 else ''}"
        return f"{smaller}; {rest} ({names})"


def propose_split(case: Case, budgets: Iterable[Spending]) -> Split:
    """Split the files of a change into parts, in the order of their paths.

    These stay together: the paths of one section of a patch, the two sides of a rename, and a file and the
    paths below its name. Control files get their own part if they need one. Files that count for no limit
    (deletions, lock files) are in some part too.
    """
    limits: list[int] = []
    shares: dict[RepoPath, list[tuple[int, int]]] = {}
    for limit, name, files in budgets:
        if limit is None:
            continue
        for file in files:
            share = 1 if name == "max_files" else file.added_lines or 0
            shares.setdefault(file.path, []).append((len(limits), share))
        limits.append(limit)

    def cost_of(unit: Sequence[RepoPath]) -> list[int]:
        cost = [0] * len(limits)
        for path in unit:
            for budget, share in shares.get(path, ()):
                cost[budget] += share
        return cost

    def fits(cost: Sequence[int]) -> bool:
        return all(used <= limit for used, limit in zip(cost, limits, strict=True))

    parts: list[list[RepoPath]] = []
    too_large: list[RepoPath] = []
    for units in _apart(case):
        begun = False
        spent: list[int] = []
        for unit in units:
            cost = cost_of(unit)
            if not fits(cost):
                too_large.extend(unit)
                continue
            total = [one + more for one, more in zip(spent, cost, strict=True)] if begun else cost
            if begun and fits(total):
                parts[-1].extend(unit)
                spent = total
            else:
                parts.append(list(unit))
                spent, begun = cost, True
    return Split(tuple(map(tuple, parts)), tuple(too_large))


def _apart(case: Case) -> tuple[list[list[RepoPath]], list[list[RepoPath]]]:
    """Separate the units with control files from the others, where those must be their own commit."""
    units = _units(case)
    if not case.governance.must_be_own_commit:
        return [], units
    controls = [unit for unit in units if any(map(case.is_control, unit))]
    return controls, [unit for unit in units if not any(map(case.is_control, unit))] if controls else units


def _units(case: Case) -> list[list[RepoPath]]:
    """Group the paths that must stay together; groups and paths in the order of the change."""
    above = {file.path: file.path for file in case.change.files}

    def top(path: RepoPath) -> RepoPath:
        while above[path] != path:
            above[path] = above[above[path]]
            path = above[path]
        return path

    pairs = [*case.change.renames.items(), *case.rename_pairs]

    def nearest(path: RepoPath | None, folder: bytes) -> RepoPath | None:
        return RepoPath(folder) if RepoPath(folder) in above else path

    # The nearest is enough: it is a pair with the next above it.
    descent = Descent[RepoPath | None](None, nearest)
    # A path that is too long is refused anyway.
    reached = ((path, descent.at(path.parent)) for path in above if not path.is_too_long)
    pairs.extend((path, folder) for path, folder in reached if folder is not None)
    for one, other in pairs:
        if one in above and other in above:
            first, last = sorted((top(one), top(other)))
            above[last] = first
    groups: dict[RepoPath, list[RepoPath]] = {}
    for path in above:
        groups.setdefault(top(path), []).append(path)
    return list(groups.values())


def examine(case: Case) -> Iterator[Finding]:
    """Find what exceeds a limit, or is of a kind that the policy does not allow."""
    for file in case.change.files:
        limits = case.policy.limits(case.profile, case.policy.ruling(file.path).owner)
        if limits.max_file_bytes is not None:
            yield from _size(case, file, limits.max_file_bytes)
        if file.new is not None and not (file.old is not None and file.old.mode == file.new.mode == REGULAR):
            yield from _mode(case, file, limits)
            yield from _symlink(case, file, limits)
            yield from _gitlink(case, file, limits)
    yield from _redirected(case)
    if case.has_budgets and not _is_surely_within(case):
        yield from _budgets(case)


def _size(case: Case, file: FileChange, limit: int) -> Iterator[Finding]:
    if file.new is None or not file.new.is_file or file.path in case.change.renames:
        return
    if not file.has_new_content:
        return
    if file.size is None:
        raise UndecidedError(f"the size of {file.path.quoted} was not read")
    if file.size > limit:
        key = case.policy.key_of("max_file_bytes", case.profile, case.policy.ruling(file.path).owner)
        yield find(
            "max-file-bytes",
            f"{file.path.quoted} has {file.size:,} bytes; the limit is {limit:,}",
            file.path,
            "keep large files elsewhere (Git LFS, a release, object storage)" + or_raise(case, key),
            details={"limit": limit, "actual": file.size, "key": Decision(key, "").dotted},
        )


def _mode(case: Case, file: FileChange, limits: FileLimits) -> Iterator[Finding]:
    if limits.allow_modes or file.new is None or not file.new.is_file or file.path in case.change.renames:
        return
    was = file.old is not None and file.old.mode == EXECUTABLE
    now = file.new.mode == EXECUTABLE
    if file.old is not None and not file.old.is_file:
        was = False
    if was != now:
        key = case.policy.key_of("allow_modes", case.profile, limits.owner)
        command = f"git update-index --chmod={'-x' if now else '+x'} -- {file.path.in_shell}"
        keep = "leave the mode lines out of the patch" if case.from_text else f"keep the mode: {command}"
        yield find(
            "mode-change",
            f"{file.path.quoted} {'becomes' if now else 'is no longer'} executable",
            file.path,
            keep + or_set(case, key, True),
            details={"actual": file.new.mode, "key": Decision(key, "").dotted},
        )


def _symlink(case: Case, file: FileChange, limits: FileLimits) -> Iterator[Finding]:
    if file.new is None or file.new.mode != SYMLINK or file.new == file.old or limits.allow_symlinks is True:
        return
    key = case.policy.key_of("allow_symlinks", case.profile, limits.owner)
    details: dict[str, Json] = {"key": Decision(key, "").dotted}
    if limits.allow_symlinks is False:
        yield find(
            "symlink",
            f"{file.path.quoted} is a symlink",
            file.path,
            "use a regular file" + or_set(case, key, "inside"),
            details=details,
        )
        return
    if file.link_target is None:
        raise UndecidedError(f"the target of {file.path.quoted} was not read")
    if case.links is not None and case.links.fault is not None:
        raise UndecidedError(f"where {file.path.quoted} leads is not known: {case.links.fault}")
    # git follows no .gitmodules that is a symlink, and fsck calls it an error (CVE-2018-11235).
    if file.path.folded == ".gitmodules" or not stays_inside(file.path.parent, file.link_target):
        why = "points outside the repository"
    elif case.links is not None and file.path in case.links.escapes:
        why = case.links.escapes[file.path]
        details[UNCHANGED] = True
    else:
        return
    yield find(
        "symlink",
        f"{file.path.quoted} is a symlink that {why}",
        file.path,
        "point it to a relative path inside the repository, or use a regular file",
        details=details,
    )


def _redirected(case: Case) -> Iterator[Finding]:
    """Find unchanged links that leave the repository because of the change."""
    if case.links is None:
        return
    if case.links.fault is not None:
        raise UndecidedError(f"where the symlinks lead is not known: {case.links.fault}")
    for turned, link, why in case.links.redirected:
        if case.policy.limits(case.profile, case.policy.ruling(link).owner).allow_symlinks is True:
            continue
        if turned == link:
            yield find(
                "symlink",
                f"in the tree of this merge the symlink {link.quoted} {why}",
                link,
                f"change {link.quoted} in the merge, so that it stays inside, or remove it there",
                details={UNCHANGED: link},
            )
            continue
        yield find(
            "symlink",
            f"with this change of {turned.quoted} the symlink {link.quoted} {why}",
            turned,
            f"change {link.quoted} too, so that it stays inside, or leave {turned.quoted} as it is",
            details={UNCHANGED: link},
        )


def stays_inside(folder: bytes, target: bytes) -> bool:
    """Return whether a symlink in `folder` with this target stays in the repository, by its text alone.

    It may still leave through other links: see `Case.links`.
    """
    if not target or target.startswith(b"/") or b"\0" in target or b"\\" in target:
        return False
    place = [part for part in folder.split(b"/") if part]
    for part in target.split(b"/"):
        if part == b"..":
            if not place:
                return False
            place.pop()
        elif part not in {b"", b"."}:
            if is_git_alias(part):
                return False
            place.append(part)
    return True


def _gitlink(case: Case, file: FileChange, limits: FileLimits) -> Iterator[Finding]:
    if file.new is None or file.new.mode != GITLINK or file.new == file.old or limits.allow_gitlinks is True:
        return
    is_bump = file.old is not None and file.old.mode == GITLINK
    if limits.allow_gitlinks == "bump" and is_bump:
        return
    key = case.policy.key_of("allow_gitlinks", case.profile, limits.owner)
    yield find(
        "gitlink",
        f"the change {'moves' if is_bump else 'adds'} the submodule {file.path.quoted}",
        file.path,
        undo(file, case.change.renames.get(file.path)) + or_set(case, key, "bump" if is_bump else True),
        details={"key": Decision(key, "").dotted},
    )


def counted(case: Case) -> dict[int | None, list[FileChange]]:
    """Group the files that budgets count by the owner of their file budget."""
    groups: dict[int | None, list[FileChange]] = {}
    for each in case.change.files:
        file = case.carried.get(each.path, each)
        if file is None or file.new is None or file.path in case.change.renames:
            continue
        ruling = case.policy.ruling(file.path)
        if ruling.generated is not None or "lock" in ruling.classes:
            continue
        groups.setdefault(ruling.owner, []).append(file)
    return groups


def _spent(case: Case) -> Iterator[tuple[FileLimits, str, int, list[FileChange]]]:
    """Yield each limit with its name, what is used of it, and the files that it counts."""
    groups = counted(case)
    limits = case.policy.all_limits(case.profile)
    for each in limits:
        for name, has_own in (("max_files", "has_own_files"), ("max_added_lines", "has_own_lines")):
            if not getattr(each, has_own):
                continue
            files = list(groups.get(each.owner, ()))
            if each.owner is None:
                # An override without a limit counts towards the profile's.
                for other in limits[1:]:
                    if not getattr(other, has_own):
                        files.extend(groups.get(other.owner, ()))
            if name == "max_files":
                yield each, name, len(files), files
            else:
                yield each, name, _added(each, files), files


def _added(limits: FileLimits, files: Sequence[FileChange]) -> int:
    total = 0
    for file in files:
        if file.added_lines is not None:
            total += file.added_lines
        elif limits.max_added_lines is not None and not file.binary and file.new and file.new.is_file:
            raise UndecidedError(f"the added lines of {file.path.quoted} were not counted")
    return total


def budgets(case: Case) -> dict[str, Budget]:
    """Count what the change uses of each limit; overrides are named by their position."""
    if not case.has_budgets:
        return {}
    found: dict[str, Budget] = {}
    for limits, name, used, _ in _spent(case):
        label = name if limits.owner is None else f"overrides[{limits.owner}].{name}"
        found[label] = Budget(getattr(limits, name), used)
    return found


def _is_surely_within(case: Case) -> bool:
    """Return whether all files together stay within the only limit; then nothing is grouped."""
    limits = case.policy.all_limits(case.profile)
    return (
        len(limits) == 1
        and limits[0].max_added_lines is None
        and (limits[0].max_files is None or len(case.change.files) <= limits[0].max_files)
    )


def _budgets(case: Case) -> Iterator[Finding]:
    proposal: Split | None = None
    for limits, name, used, _ in _spent(case):
        limit = getattr(limits, name)
        if limit is None or used <= limit:
            continue
        if proposal is None:
            costs = [(getattr(each, key), key, files) for each, key, _, files in _spent(case)]
            proposal = propose_split(case, costs)
        whose = "" if limits.owner is None else f" of overrides[{limits.owner}]"
        key = case.policy.key_of(name, case.profile, limits.owner)
        unit = "files" if name == "max_files" else "added lines"
        details: dict[str, Detail] = {
            "limit": limit,
            "actual": used,
            "split": proposal.parts,
            "too_large": proposal.too_large,
            "key": Decision(key, "").dotted,
        }
        yield find(
            name.replace("_", "-"),
            f"the change has {used:,} {unit}; the limit{whose} is {limit:,}",
            None,
            proposal.hint + or_raise(case, key),
            details=details,
        )
