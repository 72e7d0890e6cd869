"""Check a patch or edits: apply the proposal in private, and judge what git makes of it.

A proposal is applied to the files on disk, or to a commit (`--base`), whose result is merged with HEAD.
`check` needs only the report. `apply` keeps the private store open, because it contains the result. The file
that edits were checked against is remembered for an hour: if it changed, edits without anchors are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from patchgate.check.features import worktree_scope
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.base_files import base_files_on_disk, staged_files
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.git.trees import resulting_tree
from patchgate.patches.dry_run import DryRun
from patchgate.patches.edit_diff import edits_to_diff, find_missing_anchors
from patchgate.patches.edits import parse_edits
from patchgate.patches.git_apply import PatchId, with_crlf_fixes
from patchgate.patches.patch_base import PatchBase, compute_index_tree, find_patch_base
from patchgate.patches.patch_model import Fault
from patchgate.patches.patch_parser import parse, strip_carriage_returns
from patchgate.policy.file_kinds import is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.policy.tree_policies import built_in
from patchgate.report.verdict import ChangeVerdict, Report

REMEMBERED_SECONDS = 3600
_MOST_FILES = 256
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CheckedEdits:
    """What was checked last: the digest of the file's content, and that of the edits."""

    content: str
    edits: str

    def is_outdated_for(self, now: CheckedEdits, *, lands: bool) -> bool:
        """Return whether the file has changed since; a check of other edits starts from the new file."""
        return self.content != now.content and (lands or self.edits == now.edits)


def load_checked(repository: Repository, path: RepoPath, now: float) -> CheckedEdits | None:
    """Find what edits of a file were checked against within the hour; None if nothing is known."""
    kept = _memory_of(repository, path).load()
    return (
        None
        if not kept or now - kept["at"] > REMEMBERED_SECONDS
        else CheckedEdits(kept["content"], kept["edits"])
    )


def remember(repository: Repository, path: RepoPath, checked: CheckedEdits, now: float) -> None:
    """Remember what edits of a file were checked against."""
    memory = _memory_of(repository, path)
    memory.store(json.dumps({"at": now, "content": checked.content, "edits": checked.edits}).encode("ascii"))
    drop_oldest(os.path.dirname(memory.path), _MOST_FILES)


def forget(repository: Repository, path: RepoPath) -> None:
    """Forget a file: a patch of it was applied."""
    with suppress(OSError):
        os.unlink(_memory_of(repository, path).path)


def digest_of(raw: bytes) -> str:
    """Return the digest by which contents and edits are compared."""
    return hashlib.sha256(raw).hexdigest()


def _memory_of(repository: Repository, path: RepoPath) -> SealedFile:
    name = digest_of(os.fsencode(repository.work_tree or "") + b"\0" + path.raw)
    place = os.path.join(repository.common_dir, "patchgate", "checked-edits", name)
    return SealedFile(place, f"patchgate.checked-edits/1 {name}", _MOST_BYTES)


@dataclass(frozen=True, slots=True)
class PatchVerdict:
    """The verdict on a proposal, while git's result can still be read.


    `patch` is what was judged, byte for byte (for edits, the diff made of them). `policy` is the one from
    before the change, None if there was none. `objects` reads the repository and `store`. `index_stamp`
    changes if the index is written again. `index` is the index's tree, if a patch for a commit is to be
    applied and adds files.
    """

    verdict: ChangeVerdict
    patch: bytes
    policy: Policy | None
    patch_base: PatchBase
    objects: Objects
    store: PrivateStore
    index_stamp: tuple[int, ...]
    index: str | None = None


@contextmanager
def judge_patch(
    repository: Repository,
    raw: bytes,
    asked: CheckOptions,
    *,
    base: str | None = None,
    kind: str = "patch",
    lands: bool = False,
    now: float | None = None,
) -> Iterator[PatchVerdict]:
    """Judge a patch or edits by what git would make of them; the private store exists during the block.

    Args:
        raw: the patch, byte for byte, or the JSON document of edits.
        base: the revision that it was made for; None applies it to the files on disk.
        kind: `patch`, which is judged as it is, or a key of `FORMATS`.
        lands: the caller will write the result, so staged changes and files on disk count even with a base.
        now: seconds since the epoch, to remember what edits were checked against; None remembers nothing.

    Raises:
        UsageError: the revision is unknown, there is neither a working tree nor a base, or the result is
            to be written and HEAD does not contain the base.
        UndecidedError: something could not be read.
    """
    with ExitStack() as stack:
        store = stack.enter_context(PrivateStore(repository))
        objects = stack.enter_context(_objects_of(repository, store))
        # git computes the id while the patch_base is looked for.
        read = FORMATS.get(kind)
        patch_id = stack.enter_context(PatchId(repository, raw)) if read is None else None
        stamp = _stamp(repository)
        patch_base = find_patch_base(repository, objects, base, lands=lands)
        dry_run = DryRun(repository, objects, store, patch_base=patch_base, asked=asked, kind=kind)
        if read is None:
            patch, verdict = strip_carriage_returns(raw), _judge(dry_run, raw)
        else:
            memory = repository if patch_base.on_disk and now is not None else None
            made = read(dry_run, raw, memory, lands=lands, now=now or 0.0)
            if isinstance(made, ChangeVerdict):
                patch, verdict = raw, made
            else:
                patch_id = stack.enter_context(PatchId(repository, made))
                dry_run = DryRun(repository, objects, store, patch_base=patch_base, asked=asked, kind=kind)
                patch, verdict = made, _judge(dry_run, made)
        if patch_id is not None:
            verdict = replace(verdict, patch_id=patch_id.read())
        if lands or patch_base.on_disk:
            verdict = _under_intents(repository, objects, dry_run, verdict)
        yield PatchVerdict(
            verdict=verdict,
            patch=patch,
            policy=dry_run.policy,
            patch_base=patch_base,
            objects=objects,
            store=store,
            index_stamp=stamp,
            index=dry_run.index,
        )


def _judge(dry_run: DryRun, raw: bytes) -> ChangeVerdict:
    """Judge a patch as it came."""
    parsed = parse(raw)
    if isinstance(parsed, tuple):
        return dry_run.refuse_unreadable(parsed)
    verdict = replace(dry_run.judge(parsed), n_hunks=parsed.n_hunks)
    return verdict if parsed.raw is raw else with_crlf_fixes(verdict)


def _under_intents(
    repository: Repository, objects: Objects, dry_run: DryRun, verdict: ChangeVerdict
) -> ChangeVerdict:
    """Check what is proposed for this worktree against its intents."""
    work = worktree_scope(repository) if verdict.change.files else None
    if work is None:
        return verdict
    controls = frozenset(file.path for file in verdict.change.files if is_control_by_name(file.path))
    policy = dry_run.policy or built_in()
    return work.check_scope(verdict, policy, Profile(verdict.profile), objects, controls)


def is_as_judged(repository: Repository, judged: PatchVerdict) -> bool:
    """Return whether HEAD and the index are still those that a proposal was judged on.

    If the index was written again, what is staged and the files of the change are compared.

    Raises:
        UndecidedError: the index cannot be read.
    """
    head = tree_named(judged.objects, "HEAD")
    if (head[0] if head else judged.objects.empty_tree) != judged.patch_base.policy_tree:
        return False
    if _stamp(repository) == judged.index_stamp:
        return True
    if not judged.patch_base.on_disk:
        if judged.index is None:
            return True
        tree = judged.patch_base.policy_tree
        return compute_index_tree(judged.objects, tree, staged_files(repository, tree)) == judged.index
    files = judged.verdict.change.files
    removed = [file.path for file in files if file.new is None]
    paths = [file.path for file in files]
    tree = judged.patch_base.tree
    ground = base_files_on_disk(repository, judged.objects, judged.store, tree, paths, removed)
    return resulting_tree(judged.objects, tree, ground.pending.values()).tree == judged.verdict.change.base


def _stamp(repository: Repository) -> tuple[int, ...]:
    try:
        found = os.stat(repository.index_file)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check_patch(
    repository: Repository,
    raw: bytes,
    asked: CheckOptions,
    *,
    base: str | None = None,
    kind: str = "patch",
    now: float | None = None,
) -> Report:
    """Judge a patch, or edits of one file; arguments and errors are those of `judge_patch`."""
    with judge_patch(repository, raw, asked, base=base, kind=kind, now=now) as judged:
        return Report((judged.verdict,), repository.limits)


def _diff_of(
    dry_run: DryRun, raw: bytes, memory: Repository | None, *, lands: bool, now: float
) -> bytes | ChangeVerdict:
    """Write edits as a diff of the file that they name, or refuse them.

    Args:
        memory: the repository that remembers which content was last checked; None for edits of a commit.
        lands: the result will be written; otherwise it is a check, which is remembered.
    """
    edits = parse_edits(raw)
    if isinstance(edits, tuple):
        return dry_run.refuse_unreadable(edits)
    if faults(edits.path, from_text=True):
        return dry_run.refuse_path(edits.path)
    preimage = dry_run.preimage(edits.path)
    made = edits_to_diff(edits, preimage)
    if isinstance(made, tuple):
        return dry_run.refuse_unreadable(made, edits.path)
    if not preimage:
        return made
    found: tuple[Fault, ...] = ()
    if dry_run.policy is not None and dry_run.policy.config.apply.require_anchor:
        found = find_missing_anchors(edits, "the policy requires it (apply.require_anchor)")
    if not found and memory is not None:
        checked = CheckedEdits(digest_of(preimage), digest_of(raw))
        before = load_checked(memory, edits.path, now)
        if before is not None and before.is_outdated_for(checked, lands=lands):
            found = find_missing_anchors(edits, "the file changed since its edits were last checked")
        if not lands and not found:
            remember(memory, edits.path, checked, now)
    return dry_run.refuse_unreadable(found, edits.path) if found else made


class FormatReader(Protocol):
    """A function that turns a proposal in another format into a unified diff, or refuses it."""

    def __call__(
        self, dry_run: DryRun, raw: bytes, memory: Repository | None, *, lands: bool, now: float
    ) -> bytes | ChangeVerdict:
        """Read what came, byte for byte; the arguments are those of `_diff_of`."""
        ...


FORMATS: Mapping[str, FormatReader] = {"edits": _diff_of}
"""The formats other than a unified diff, by the kind that a report names."""


def _objects_of(repository: Repository, store: PrivateStore) -> Objects:
    """Read the repository's objects and the private ones, also where another child reads a large one."""
    environment = {**repository.environment, **store.variables}
    return Objects(replace(repository, environment=environment), store.variables)
