"""The shape gate: how much a change brings, and which kinds of entry.

Budgets never count exact renames, deletions, lock files, generated files, the first commit of a repository,
and what a merge made by itself (it is not in the change). A limit is inclusive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.check.case import Case, find
from patchgate.check.remedies import or_raise, or_set, undo
from patchgate.check.splitting import Split, propose_split
from patchgate.errors import UndecidedError
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, FileChange
from patchgate.git.path import is_git_alias
from patchgate.policy.policy import Decision, FileLimits
from patchgate.report.verdict import Budget, Detail, Finding, Json


def examine(case: Case) -> Iterator[Finding]:
    """Find what is too much, too large, or of a kind that the policy does not allow."""
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
        command = f"git update-index --chmod={'-x' if now else '+x'} -- {file.path.quoted}"
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
        why = "points out of the repository"
    elif case.links is not None and file.path in case.links.escapes:
        why = case.links.escapes[file.path]
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
    """Find the links that the change does not touch, and that leave the repository because of it."""
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
            )
            continue
        yield find(
            "symlink",
            f"with this change of {turned.quoted} the symlink {link.quoted} {why}",
            turned,
            f"change {link.quoted} too, so that it stays inside, or leave {turned.quoted} as it is",
        )


def stays_inside(folder: bytes, target: bytes) -> bool:
    """Tell whether a symlink in `folder` with this target stays in the repository, by its text alone.

    Through other links it may still leave: `Case.links` tells.
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
        f"{file.path.quoted} is a submodule's entry that this change {'moves' if is_bump else 'adds'}",
        file.path,
        undo(file, case.change.renames.get(file.path)) + or_set(case, key, "bump" if is_bump else True),
        details={"key": Decision(key, "").dotted},
    )


def counted(case: Case) -> dict[int | None, list[FileChange]]:
    """Group the files that budgets count by the owner of their file budget."""
    groups: dict[int | None, list[FileChange]] = {}
    for file in case.change.files:
        if file.new is None or file.path in case.change.renames:
            continue
        ruling = case.policy.ruling(file.path)
        if ruling.generated is not None or "lock" in ruling.classes:
            continue
        groups.setdefault(ruling.owner, []).append(file)
    return groups


def _spent(case: Case) -> Iterator[tuple[FileLimits, str, int, list[FileChange]]]:
    """Yield for each budget its limits, its name, what is used of it, and the files that it counts."""
    groups = counted(case)
    limits = case.policy.all_limits(case.profile)
    for each in limits:
        for name, has_own in (("max_files", "has_own_files"), ("max_added_lines", "has_own_lines")):
            if not getattr(each, has_own):
                continue
            files = list(groups.get(each.owner, ()))
            if each.owner is None:
                # An override without a budget of its own spends the profile's.
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
    """Tell each budget and what the change uses of it; those of overrides are named for their position."""
    if not case.has_budgets:
        return {}
    found: dict[str, Budget] = {}
    for limits, name, used, _ in _spent(case):
        label = name if limits.owner is None else f"overrides[{limits.owner}].{name}"
        found[label] = Budget(getattr(limits, name), used)
    return found


def _is_surely_within(case: Case) -> bool:
    """Tell whether even all files together stay below the one budget there is; then nothing is grouped."""
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
