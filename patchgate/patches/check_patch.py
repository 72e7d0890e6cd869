"""Check a patch or edits: apply the proposal in private, and judge what git makes of it.

A proposal is applied to the files on disk, or to a commit (`--base`), whose result is merged with HEAD.
`check` needs only the report. `apply` keeps the private store open, because it contains the result. The file
that edits were checked against is remembered for an hour: if it changed, edits without anchors are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from patchgate.check.features import WorktreeScope, worktree_scope
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UsageError
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
from patchgate.patches.git_apply import PatchId, finding_of, with_crlf_fixes
from patchgate.patches.patch_base import PatchBase, compute_index_tree, find_patch_base
from patchgate.patches.patch_model import Fault
from patchgate.patches.patch_parser import parse, strip_carriage_returns
from patchgate.patches.proposals import AUTO, PATCH, ReadProposal, RefusedProposal, option_of, read_proposal
from patchgate.patches.proposed_files import content_of
from patchgate.policy.file_kinds import is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.policy.tree_policies import built_in
from patchgate.report.verdict import ChangeVerdict, Report
from patchgate.values import dataclass, replace

EDITS = "edits"
"""The kind of structured edits, which name lines of one file."""
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

    `patch` is the diff that was judged, byte for byte, whatever it was made of. `candidate` is what an
    attempt keeps: that diff, or what was sent if it could not be read, or is structured edits. `kind` is the
    format that was found. `policy` is the one from before the change, None if there was none. `objects` reads
    the repository and `store`. `index_stamp` changes if the index is written again. `index` is the index's
    tree, if a patch for a commit is to be applied and adds files.
    """

    verdict: ChangeVerdict
    patch: bytes
    candidate: bytes
    kind: str
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
    kind: str = PATCH,
    repair: bool | None = None,
    narrow: Callable[[bytes], bytes] | None = None,
    lands: bool = False,
    now: float | None = None,
) -> Iterator[PatchVerdict]:
    """Judge a patch or edits by what git would make of them; the private store exists during the block.

    Args:
        raw: what was sent, byte for byte.
        base: the revision that it was made for; None applies it to the files on disk.
        kind: `patch`, `edits` (structured edits of one file), a key of `proposals.FORMATS`, or `auto`.
        repair: whether mechanical faults of a patch are repaired; None asks the policy.
        narrow: takes the part of a diff that is to be judged.
        lands: the caller will write the result, so staged changes and files on disk count even with a base.
        now: seconds since the epoch, to remember what edits were checked against; None remembers nothing.

    Raises:
        UsageError: the revision is unknown, there is neither a working tree nor a base, HEAD does not contain
            the base of what is to be written, or the policy does not allow the format.
        UndecidedError: something could not be read.
    """
    with ExitStack() as stack:
        in_full = asked.in_full or lands
        store = stack.enter_context(PrivateStore(repository))
        objects = stack.enter_context(_objects_of(repository, store))
        patch_id = stack.enter_context(PatchId(repository, raw)) if in_full and kind == PATCH else None
        stamp = _stamp(repository)
        patch_base = find_patch_base(repository, objects, base, lands=lands)
        work = worktree_scope(repository) if lands or patch_base.on_disk else None
        options = replace(asked, in_full=in_full or (work is not None and work.counts_lines))
        start = partial(DryRun, repository, objects, store, patch_base=patch_base, asked=options)
        dry_run = start(kind=PATCH if kind == AUTO else kind)
        read = _read(repository, dry_run, raw, kind, repair, lands=lands, now=now)
        dry_run = start(kind=read.kind)
        patch = candidate = raw
        if isinstance(read, RefusedProposal):
            verdict = _refuse(dry_run, read)
        else:
            judged = narrow(read.diff) if narrow else read.diff
            if in_full and (patch_id is None or judged is not raw):
                patch_id = stack.enter_context(PatchId(repository, judged))
            candidate = raw if read.kind == EDITS else judged
            verdict = _judge(dry_run, judged, read.notes)
            if patch_id is not None:
                verdict = replace(verdict, patch_id=patch_id.read())
            patch = strip_carriage_returns(judged)
        if work is not None and verdict.change.files:
            verdict = _under_intents(work, objects, dry_run, verdict)
        about = (dry_run.policy, patch_base, objects, store, stamp, dry_run.index)
        yield PatchVerdict(verdict, patch, candidate, read.kind, *about)


def _read(
    repository: Repository,
    dry_run: DryRun,
    raw: bytes,
    kind: str,
    repair: bool | None,
    *,
    lands: bool,
    now: float | None,
) -> ReadProposal | RefusedProposal:
    """Read what was sent into a diff; the arguments are those of `judge_patch`."""
    if kind != EDITS:
        return _read_proposal(repository, dry_run, raw, kind, repair=repair)
    memory = repository if dry_run.is_on_disk and now is not None else None
    return _read_edits(dry_run, raw, memory, lands=lands, now=now or 0.0)


def _read_proposal(
    repository: Repository, dry_run: DryRun, raw: bytes, kind: str, *, repair: bool | None
) -> ReadProposal | RefusedProposal:
    """Read a proposal as the policy allows it.

    Raises:
        UsageError: the policy does not allow the format.
    """
    settings = (dry_run.policy or built_in()).config.apply
    option = option_of(kind)
    if option is not None and not {option, AUTO} & {*settings.inputs}:
        allowed = ", ".join(f'"{each}"' for each in dict.fromkeys((*settings.inputs, option)))
        raise UsageError(
            f"the policy does not allow --input {option}",
            f"send a unified diff, or have a maintainer write under [apply]: inputs = [{allowed}]",
        )
    repairs = settings.repair if repair is None else repair
    root = None if repository.work_tree is None else os.fsencode(repository.work_tree)
    return read_proposal(raw, kind, dry_run.base_file, repair=repairs, root=root)


def _refuse(dry_run: DryRun, refused: RefusedProposal) -> ChangeVerdict:
    """Refuse what could not be read; a forbidden name is refused by its rule."""
    if refused.forbidden is not None:
        return dry_run.refuse_path(refused.forbidden)
    return dry_run.refuse_unreadable(refused.faults, refused.path)


def _judge(dry_run: DryRun, raw: bytes, notes: tuple[Fault, ...]) -> ChangeVerdict:
    """Judge a patch as it came, or as it was read or repaired."""
    with dry_run.started_early(raw):
        parsed = parse(raw)
        if isinstance(parsed, tuple):
            return dry_run.refuse_unreadable(parsed)
        verdict = replace(dry_run.judge(parsed), n_hunks=parsed.n_hunks)
    verdict = verdict if parsed.raw is raw else with_crlf_fixes(verdict)
    return replace(verdict, findings=(*map(finding_of, notes), *verdict.findings)) if notes else verdict


def _under_intents(
    work: WorktreeScope, objects: Objects, dry_run: DryRun, verdict: ChangeVerdict
) -> ChangeVerdict:
    """Check what is proposed for this worktree against its intents."""
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
    kind: str = PATCH,
    repair: bool | None = None,
    now: float | None = None,
) -> Report:
    """Judge a patch, or edits of one file; arguments and errors are those of `judge_patch`."""
    with judge_patch(repository, raw, asked, base=base, kind=kind, repair=repair, now=now) as judged:
        return Report((judged.verdict,), repository.limits)


def _read_edits(
    dry_run: DryRun, raw: bytes, memory: Repository | None, *, lands: bool, now: float
) -> ReadProposal | RefusedProposal:
    """Write edits as a diff of the file that they name, or refuse them.

    Args:
        memory: the repository that remembers which content was last checked; None for edits of a commit.
        lands: the result will be written; otherwise it is a check, which is remembered.
    """
    edits = parse_edits(raw)
    if isinstance(edits, tuple):
        return RefusedProposal(EDITS, edits)
    if faults(edits.path, from_text=True):
        return RefusedProposal(EDITS, forbidden=edits.path)
    preimage = content_of(dry_run.base_file(edits.path))
    made = edits_to_diff(edits, preimage)
    if isinstance(made, tuple):
        return RefusedProposal(EDITS, made, edits.path)
    if not preimage:
        return ReadProposal(made, EDITS)
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
    return RefusedProposal(EDITS, found, edits.path) if found else ReadProposal(made, EDITS)


def _objects_of(repository: Repository, store: PrivateStore) -> Objects:
    """Read the repository's objects and the private ones, also where another child reads a large one."""
    environment = {**repository.environment, **store.variables}
    return Objects(replace(repository, environment=environment), store.variables)
