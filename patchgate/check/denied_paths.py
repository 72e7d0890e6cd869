"""The policy gate: which paths a change may touch, and which kinds of file it may add.

Allow and deny rules judge both sides of every change, so a rename out of a denied folder is refused. Suffixes
and classes judge only new content: deleting or moving such a file is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.check.case import Case, decided_by, find, or_add, or_take_out, undo
from patchgate.git.model import FileChange
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.file_kinds import MANIFESTS, is_agent_settings
from patchgate.policy.policy import Decision, PathRuling, Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Fixer

_ROOTS = ("policy", "allow_roots")
_REMOVE = "To allow it, remove that entry"
_DOES = {
    "added": "adds",
    "deleted": "deletes",
    "modified": "modifies",
    "type-changed": "changes the type of",
    "mode-changed": "changes the mode of",
}


def examine(case: Case) -> Iterator[Finding]:
    """Find the paths and kinds of file that the policy does not allow."""
    sources = {old: new for new, old in case.change.renames.items()}
    for file in case.change.files:
        kept = _kept_from_agents(case, file.path)
        if kept is not None:
            yield _by_an_agent(case, file, kept, is_moved=file.path in sources)
        ruling = case.policy.ruling(file.path)
        refused = False
        if ruling.denied is not None and not (file.new is None and ruling.deletable):
            finding = _denied(case, file, ruling, ruling.denied, file.path in sources)
            # A deny whose level the policy lowered must not hide that the path is outside.
            refused = case.policy.level(finding.rule, case.profile) is Level.ERROR
            yield finding
        if ruling.outside and not refused and not case.is_control(file.path):
            yield _outside(case, file)
        is_same = file.old is not None and file.new is not None and file.old.oid == file.new.oid
        if file.new is None or (is_same and not file.has_new_content):
            continue
        yield from _kinds(case, file, ruling)
    yield from _copies(case)
    yield from _lonely_locks(case)


def _copies(case: Case) -> Iterator[Finding]:
    """Judge the sources of copies: a file that is copied counts as changed."""
    for path in case.copied:
        ruling = case.policy.ruling(path)
        refused = False
        if ruling.denied is not None and ruling.rule is not None:
            refused = case.policy.level(ruling.rule, case.profile) is Level.ERROR
            yield find(
                ruling.rule,
                f"the change copies {path.quoted}, which is protected ({ruling.denied.shown})",
                path,
                f"copy from elsewhere{decided_by(case, ruling.denied, _REMOVE)}",
                decision=ruling.denied,
            )
        if ruling.outside and not refused and not case.is_control(path):
            yield find(
                "outside-allow-roots",
                f"the change copies {path.quoted}, which is outside allow_roots",
                path,
                "copy from inside the allowed folders",
            )


def _denied(case: Case, file: FileChange, ruling: PathRuling, denied: Decision, is_moved: bool) -> Finding:
    assert ruling.rule is not None
    does = "renames" if is_moved else _DOES[file.status.value]
    what = "deny_prefixes" if ruling.rule == "deny-prefix" else "deny"
    hint = undo(file, case.change.renames.get(file.path), is_moved=is_moved)
    if file.new is None:
        hint += or_add(case, ("policy", "allow_delete"), file.path) + decided_by(case, denied, "")
    else:
        hint += decided_by(case, denied, _REMOVE)
    return find(
        ruling.rule,
        f"the change {does} {file.path.quoted}, which {what} protects ({denied.shown})",
        file.path,
        hint,
        decision=denied,
        side="old" if file.new is None else "new",
    )


def _kept_from_agents(case: Case, path: RepoPath) -> str | None:
    """Say why an agent may not change a path; None where it may, as the first policy of a repository."""
    if case.profile is not Profile.AGENT:
        return None
    if is_agent_settings(path):
        return "from which a coding agent reads its hooks"
    is_in_force = case.governance.must_be_own_commit or case.governance.repaired
    return "which is a part of the policy" if is_in_force and case.is_control(path) else None


def _by_an_agent(case: Case, file: FileChange, kept: str, *, is_moved: bool) -> Finding:
    does = "renames" if is_moved else _DOES[file.status.value]
    return find(
        "agent-settings",
        f"the change {does} {file.path.quoted}, {kept}",
        file.path,
        undo(file, case.change.renames.get(file.path), is_moved=is_moved),
        side="old" if file.new is None else "new",
    )


def _outside(case: Case, file: FileChange) -> Finding:
    roots = case.policy.config.policy.allow_roots or ()
    allowed = (
        ", ".join(printable(root, 60) for root in roots[:5]) + (", …" if len(roots) > 5 else "")
        if roots
        else "nothing"
    )
    return find(
        "outside-allow-roots",
        f"{file.path.quoted} is outside allow_roots ({allowed})",
        file.path,
        f"keep the change inside the allowed folders{or_add(case, _ROOTS, file.path)}",
        decision=Decision(_ROOTS, allowed),
        side="old" if file.new is None else "new",
    )


def _kinds(case: Case, file: FileChange, ruling: PathRuling) -> Iterator[Finding]:
    came_from = case.change.renames.get(file.path)
    before = case.policy.ruling(came_from) if came_from is not None else None
    if ruling.suffix is not None and not (before and before.suffix):
        yield find(
            "deny-suffix",
            f"{file.path.quoted} ends in {ruling.suffix.shown}, which deny_suffixes denies",
            file.path,
            undo(file, came_from) + decided_by(case, ruling.suffix, _REMOVE),
            decision=ruling.suffix,
        )
    classes = set(ruling.classes)
    if file.binary and "media" not in classes:
        classes.add("binary")
    if before is not None:
        classes -= before.classes | ({"binary"} if file.binary else set())
    limits = case.policy.limits(case.profile, ruling.owner)
    denied = classes & limits.deny_classes
    if not denied and file.old is None:
        denied = classes & limits.deny_new_classes
    for name in sorted(denied):
        key = case.policy.key_of_class(name, case.profile, ruling.owner)
        yield find(
            "deny-class",
            f"{file.path.quoted} belongs to the class {name}, which the {case.profile} profile denies",
            file.path,
            undo(file, came_from) + or_take_out(case, key, name),
            who=Fixer.AGENT,
            decision=Decision(key, name),
        )


def _lonely_locks(case: Case) -> Iterator[Finding]:
    """Note a lock file that changes although no manifest in its folder does."""
    changed: set[bytes] | None = None
    for file in case.change.files:
        if file.old is None or file.new is None or "lock" not in case.policy.ruling(file.path).classes:
            continue
        manifests = MANIFESTS.get(file.path.name.decode("utf-8", "surrogateescape").lower(), ())
        if not manifests:
            continue
        if changed is None:
            changed = {each.path.raw.lower() for each in case.change.files}
        folder = file.path.parent.lower()
        beside = [(folder + b"/" if folder else b"") + name.encode() for name in manifests]
        if not any(name in changed for name in beside):
            yield find(
                "lock-without-manifest",
                f"{file.path.quoted} changes without {' or '.join(manifests)}",
                file.path,
                "nothing to do if versions were only upgraded",
            )
