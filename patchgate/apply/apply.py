"""Apply a patch: judge it, run the commands, write all of it or nothing; each attempt leaves evidence.

The order: the verdict, the retry rule and duplicates, the policy's commands in a scratch tree, the write, the
record. The working tree is written only after everything else has passed.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from patchgate.apply.apply_run import (
    KINDS,
    ApplyEnvironment,
    ApplyRequest,
    ApplyRun,
    CommandResults,
    add_history_finding,
    build_record,
    record_failure,
    record_result,
)
from patchgate.apply.attempt_records import AttemptRecord, is_known, records
from patchgate.apply.evidence import open_evidence
from patchgate.apply.retries import check_after_judging, check_before_judging, find_chain
from patchgate.apply.write_patch import WriteResult, preflight, write_judged
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.base_files import BaseFiles, base_files_on_disk
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath, faults
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.intents.scope import MOST_NAMED
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.ledger.ledger import Ledger, iso
from patchgate.ledger.masking import Masks
from patchgate.patches.check_patch import PatchVerdict, judge_patch
from patchgate.patches.git_apply import GitApply
from patchgate.patches.patch_model import Patch
from patchgate.patches.patch_parser import parse
from patchgate.patches.path_selection import choose_paths, read_path_option, select_paths
from patchgate.patches.proposals import AUTO, PATCH
from patchgate.patches.proposed_files import list_paths
from patchgate.policy.command import ordered_commands
from patchgate.report.json import plain_json
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report, Verdict
from patchgate.values import replace


def find_duplicate(
    repository: Repository, judged: PatchVerdict, ledger: Ledger, patch_sha256: str
) -> Finding | None:
    """Report that an attempt in this working tree applied the patch, and that its effect is still there.

    The effect is there if each file is as that attempt left it and the patch has the same bytes, or if git
    can revert the patch from the current files, in private. Without an id (no hunks) the bytes must be equal.

    Args:
        judged: the patch; files on disk are read into its store, whose index is used.
        patch_sha256: the digest of its bytes.

    Raises:
        UndecidedError: a file or the index could not be read.
    """
    for applied in _last_applied(repository, ledger, judged.verdict.patch_id, patch_sha256):
        paths = [file.path for file in applied.files]
        if any(faults(path, from_text=True) for path in paths):
            continue
        ground = base_files_on_disk(repository, judged.objects, judged.store, judged.patch_base.tree, paths)
        if _are_unchanged(ground, [(file.path, file.old) for file in applied.files]):
            # It was reverted. If lines repeat, git could revert the patch nevertheless.
            continue
        is_left = _are_unchanged(ground, [(file.path, file.new) for file in applied.files])
        if (is_left and applied.patch_sha256 == patch_sha256) or _is_revertible(repository, judged):
            return Finding.of(
                "duplicate-patch",
                f"attempt {applied.attempt} has already applied this patch, and its effect is still there",
                hint="there is nothing to do; after a revert the patch may be applied again",
                details={"attempt": applied.attempt},
            )
    return None


def _last_applied(
    repository: Repository, ledger: Ledger, patch_id: str | None, patch_sha256: str
) -> list[AttemptRecord]:
    """Find the last attempt here that applied these bytes, and the last with this id (edits have many)."""
    found: dict[str, AttemptRecord] = {}
    for digest in (patch_sha256, patch_id):
        here = [
            each
            for each in (records(ledger, digest) if digest else ())
            if each.applied
            and each.work_tree is not None
            and each.work_tree == repository.work_tree
            and digest in {each.patch_sha256, each.patch_id}
        ]
        if here:
            found[here[-1].attempt] = here[-1]
    return list(found.values())


def _are_unchanged(ground: BaseFiles, entries: Sequence[tuple[RepoPath, Entry | None]]) -> bool:
    """Return whether every file has the given entry."""
    return bool(entries) and all(ground.entries[path] == entry for path, entry in entries)


def _is_revertible(repository: Repository, judged: PatchVerdict) -> bool:
    """Return whether git can revert the patch from the current files."""
    parsed = parse(judged.patch)
    if isinstance(parsed, tuple):
        return False
    paths = list_paths(parsed)
    if any(faults(path, from_text=True) for path in paths):
        return False
    objects, store, tree = judged.objects, judged.store, judged.patch_base.tree
    ground = base_files_on_disk(repository, objects, store, tree, paths, _removed_by_revert(parsed))
    if ground.blocked:
        return False
    with GitApply(repository, store, ground.entries, patch=judged.patch, reverse=True) as git:
        return git.is_accepted()


def _removed_by_revert(patch: Patch) -> frozenset[RepoPath]:
    """Return the paths that reverting the patch would remove."""
    return frozenset(
        section.new_path
        for section in patch.sections
        if section.new_path is not None and section.new_path != section.old_path
    )


_TAKE_OUT = "remove it from the patch"
# Files and folders in `.git/patchgate` that have a meaning by their name.
_OWN_NAMES = frozenset(
    {
        "attempts",
        "events.jsonl",
        "events.jsonl.head",
        "events.jsonl.whole",
        "approvals.jsonl",
        "apply.lock",
        "install.lock",
    }
    | {"fast", "kept", "policies", "components", "contracts", "receipts", "scratch", "settled", "told"}
    | {"transactions"}
)


def require_outside(repository: Repository, run_dir: str | None) -> None:
    """Refuse a folder for evidence among the files that are patched, or among git's own files."""
    if run_dir is None:
        return
    place = os.path.realpath(run_dir)
    if any(_is_below(place, folder) for folder in (repository.git_dir, repository.common_dir)):
        own = os.path.join(os.path.realpath(repository.common_dir), "patchgate")
        first = os.path.relpath(place, own).split(os.sep)[0]
        if first in _OWN_NAMES or first in {os.curdir, os.pardir}:
            raise UsageError(
                "the folder of --run-dir is inside git's own folders",
                "name one elsewhere, or one of your own below .git/patchgate/, like .git/patchgate/runs",
            )
        return
    for top in _working_trees(repository):
        # git treats a missing path as a folder only if the question names a path below it.
        below = os.path.join(place, "artifacts")
        asked = (f"--work-tree={top}", "-C", top, "check-ignore", "-q", "--", below)
        if _is_below(place, top) and (
            place == os.path.realpath(top)
            or repository.git(*asked, in_work_tree=True, answers=ANY_CODE).code != 0
        ):
            raise UsageError(
                "the folder of --run-dir is in the working tree and is not ignored",
                "name one outside, or add it to .gitignore",
            )


def _is_below(place: str, folder: str) -> bool:
    """Return whether a resolved path is a folder or below it."""
    top = os.path.realpath(folder)
    return os.path.commonpath([top, place]) == top


def _working_trees(repository: Repository) -> list[str]:
    """List all working trees of the repository that exist."""
    listed = repository.git("worktree", "list", "--porcelain", "-z", in_work_tree=True, answers=ANY_CODE)
    if listed.code != 0:
        raise UndecidedError("git cannot list the working trees", "run git worktree list to see why")
    lines = listed.out.split(b"\0")
    found = [os.fsdecode(line.removeprefix(b"worktree ")) for line in lines if line.startswith(b"worktree ")]
    # If its git directory is elsewhere, git lists that one as the main working tree (git 2.39).
    common = repository.common_dir
    asked = (f"--git-dir={common}", "config", "--type=path", "core.worktree")
    answer = repository.git(*asked, answers=(0, 1))
    if answer.code == 0:
        found.append(os.path.join(common, os.fsdecode(answer.out.removesuffix(b"\n"))))
    return [os.path.realpath(each) for each in (repository.work_tree, *found) if each and os.path.isdir(each)]


def apply(repository: Repository, request: ApplyRequest, environment: ApplyEnvironment) -> Report:
    """Judge a patch, run its commands, and write all of it to the working tree, or nothing.

    Raises:
        UsageError: the request is invalid; nothing was judged, and no evidence remains.
        UndecidedError: it could not be judged, or its evidence could not be saved; nothing was written.
    """
    if repository.work_tree is None:
        raise UsageError("a bare repository has no files for the patch", "use check --patch --base REV")
    began = time.monotonic()
    environment = _under_intents(repository, environment)
    ledger = Ledger(repository.common_dir)
    damaged = ledger.require_writable()
    chain = find_chain(ledger, request.retry_of)
    candidate = _candidate_of(request)
    digest = hashlib.sha256(candidate).hexdigest()
    require_outside(repository, request.run_dir)
    at = iso(environment.clock())
    opened = open_evidence(
        repository.common_dir,
        candidate,
        chance=environment.chance,
        is_known=is_known(ledger),
        at=at,
        about={
            "kind": request.kind,
            "patch_sha256": digest,
            "chain": chain.first,
            "retry_of": chain.retry_of,
            "work_tree": plain_json(repository.work_tree),
        },
        run_dir=request.run_dir,
        masks=Masks([environment.environ]),
    )
    with opened as evidence:
        run = ApplyRun(
            repository=repository,
            request=request,
            environment=environment,
            ledger=ledger,
            chain=chain,
            candidate=candidate,
            evidence=evidence,
            began=began,
            kind=PATCH if request.kind == AUTO else request.kind,
        )
        try:
            report = _judge_and_write(run)
        except UsageError:
            evidence.discard()
            raise
        except Exception as error:  # any error: the attempt is recorded, and the error names it
            record_failure(run, error)
            raise
        return replace(report, warnings=(*report.warnings, *([damaged] if damaged else [])))


def _under_intents(repository: Repository, environment: ApplyEnvironment) -> ApplyEnvironment:
    """Renew the leases of this worktree's intents while commands run: a command may outlast a lease."""
    if ScopeGate(repository).here is None:
        return environment

    def report_progress(what: str, seconds: float) -> None:
        ScopeGate(repository).touch()
        environment.report_progress(what, seconds)

    return replace(environment, report_progress=report_progress)


def _candidate_of(request: ApplyRequest) -> bytes:
    """Return the part of the patch that `--only` names; what must be read first is narrowed later."""
    if not request.only or request.kind != PATCH or isinstance(parse(request.raw), tuple):
        return request.raw
    return _select_only(request, request.raw)


def _select_only(request: ApplyRequest, patch: bytes) -> bytes:
    """Take the part of a readable patch that `--only` names."""
    wanted = [read_path_option(text) for text in request.only]
    parsed = parse(patch)
    return patch if isinstance(parsed, tuple) else select_paths(parsed, choose_paths(parsed, wanted))


def _judge_and_write(run: ApplyRun) -> Report:
    repository, request, environment = run.repository, run.request, run.environment
    with (
        judge_patch(
            repository,
            run.candidate,
            request.asked,
            base=request.base,
            kind=request.kind,
            repair=request.repair,
            narrow=partial(_select_only, request) if request.only else None,
            lands=True,
            now=environment.clock(),
        ) as judged,
        ExitStack() as shield,
    ):
        run.adopt(judged)
        if judged.policy is not None:
            run.limit = judged.policy.config.apply.max_attempts
        verdict = _within_request(request, _apply_history(run, judged))
        landed = WriteResult()
        is_new = not any(finding.rule == "duplicate-patch" for finding in verdict.findings)
        if verdict.verdict is Verdict.ACCEPTED and is_new and verdict.change.files:
            # Cheap, before the commands run; it is checked again under the lock.
            if (overtaken := run.recheck_chain()) is not None:
                return record_result(run, add_history_finding(verdict, overtaken), None)
            landed = preflight(repository, judged, with_index=request.with_index)
            if not landed.gates:
                run.results = _run_commands(run, judged)
            gates, findings = run.results.gates, run.results.findings
            verdict = _with_results(verdict, (*gates, *landed.gates), (*findings, *landed.findings))
            if verdict.verdict is Verdict.ACCEPTED:
                shield.enter_context(environment.landing())
                landed = write_judged(
                    repository,
                    judged,
                    note=build_record(run, verdict, applied=True).note(),
                    with_index=request.with_index,
                    writes=not request.is_dry_run,
                    shield=shield,
                    tried=run.results.tree,
                    faults=environment.faults,
                    last_look=run.look_before_writing,
                )
                run.warnings.extend(landed.warnings)
                verdict = _with_results(verdict, landed.gates, landed.findings)
        return record_result(run, verdict, landed.landing)


def _within_request(request: ApplyRequest, verdict: ChangeVerdict) -> ChangeVerdict:
    """Refuse the files that whoever asked does not allow, if the intents did not refuse them already."""
    if request.may_touch is None:
        return verdict
    refused = {each.path for each in verdict.findings if each.definition.stage is Stage.SCOPE}
    # The hints of an intent are for who commits beside the run.
    known = tuple(
        replace(each, hint=_TAKE_OUT) if each.definition.stage is Stage.SCOPE else each
        for each in verdict.findings
    )
    outside = sorted(
        file.path
        for file in verdict.change.files
        if file.path not in refused and not request.may_touch(file.path)
    )
    findings = tuple(
        Finding.of(
            "scope-unexpected",
            f"{request.run} may not change this file",
            path,
            hint=_TAKE_OUT,
        )
        for path in outside[:MOST_NAMED]
    )
    return replace(verdict, findings=(*known, *findings))


def _run_commands(run: ApplyRun, judged: PatchVerdict) -> CommandResults:
    """Run the commands of the policy, if there are any but authors."""
    commands = {} if judged.policy is None else judged.policy.config.commands
    if not ordered_commands(commands):
        return CommandResults(tuple(GateOutcome(kind, Outcome.NOT_APPLICABLE) for kind in KINDS))
    # Loaded here: many policies have no commands.
    from patchgate.apply.run_commands import run_commands

    keeps = run.request.keeps_scratch
    return run_commands(run.repository, judged, run.evidence, run.environment, keeps=keeps)


def _with_results(
    verdict: ChangeVerdict, gates: tuple[GateOutcome, ...], findings: tuple[Finding, ...]
) -> ChangeVerdict:
    return replace(verdict, gates=(*verdict.gates, *gates), findings=(*verdict.findings, *findings))


def _apply_history(run: ApplyRun, judged: PatchVerdict) -> ChangeVerdict:
    """Apply the retry rule and the check for duplicates."""
    verdict = judged.verdict
    run.join_chain(verdict)
    refusal = check_before_judging(run.chain, run.candidate, run.kind, run.limit)
    if refusal is None:
        duplicate = find_duplicate(run.repository, judged, run.ledger, run.sha256)
        if duplicate is not None:
            return _mark_as_applied(verdict, duplicate, is_fine=run.request.is_fine_if_applied)
        refusal = check_after_judging(run.chain, verdict, run.candidate)
    return verdict if refusal is None else add_history_finding(verdict, refusal)


def _mark_as_applied(verdict: ChangeVerdict, duplicate: Finding, *, is_fine: bool) -> ChangeVerdict:
    """Report a patch that is already applied, without findings that only follow from that.

    If that is accepted, its other findings stay: a patch that the policy now denies is not accepted, although
    nothing would be written.
    """
    if not is_fine:
        gates = (GateOutcome("parse", Outcome.PASS), GateOutcome("retry", Outcome.FAIL))
        return replace(verdict, gates=gates, findings=(duplicate,))
    others = [
        gate for gate in verdict.gates if gate.gate != "git_check" and gate.outcome is not Outcome.NOT_RUN
    ]
    kept = [each for each in verdict.findings if each.definition.stage is not Stage.GIT_CHECK]
    return replace(
        verdict,
        gates=(*others, GateOutcome("retry", Outcome.PASS)),
        findings=(replace(duplicate, level=Level.NOTE), *kept),
    )
