"""The dry run of one patch: plan every section, let git apply it in private, compare the two.

Decides the order within a trial. After a clean parse policy and git's check are both evaluated, and all
findings are given. Nothing is written outside a private store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

from patchgate.check.judging_policy import PolicySides, judge_reading
from patchgate.check.policy_lookup import CheckOptions, detail_for, policy_before
from patchgate.errors import PatchgateError
from patchgate.git.base_files import BaseFiles, base_files_of_tree, base_files_on_disk
from patchgate.git.change_sources import LoadedChange, fill_in_details
from patchgate.git.diff import COUNTED, Detail
from patchgate.git.model import GITLINK, REGULAR, Change, Entry, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.trees import ResultTree, resulting_tree
from patchgate.patches.git_apply import (
    Effect,
    GitApply,
    add_git_output,
    find_differences,
    finding_of,
    report_git_refusal,
    report_wrong_effect,
)
from patchgate.patches.patch_base import (
    PatchBase,
    find_existing,
    merge_onto_head,
    report_existing,
    suggest_base,
)
from patchgate.patches.patch_headers import PatchNames, glance_at_names
from patchgate.patches.patch_hunks import strip_carriage_returns
from patchgate.patches.patch_model import Fault, Patch
from patchgate.patches.planning import (
    PatchTargets,
    PlannedFile,
    Preimage,
    SectionPlan,
    list_removed_paths,
    plan_section,
)
from patchgate.patches.proposed_files import (
    Preimages,
    filter_placeable_files,
    find_paths_behind_links,
    list_copy_sources,
    list_paths,
    list_proposed_files,
    pair_renamed_paths,
)
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome
from patchgate.values import dataclass, replace

# git begins while a patch of so many bytes is still being read.
_LARGE = 1 << 20


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result before policy: findings, and the reading of git's effect (or of our plan).

    `is_made` is true only if git made the effect and it equals our plan; nothing else can pass.
    """

    findings: tuple[Finding, ...]
    reading: LoadedChange
    after_root: Mapping[bytes, Entry | None]
    is_made: bool = False


@dataclass(frozen=True, slots=True)
class _PatchPlan:
    """Our own reading of what a patch makes: entries that change, faults, notes, sources of copies.

    `adapted` is the patch with the files' line endings; None if it needs no change.
    """

    entries: Mapping[RepoPath, Entry | None]
    found: tuple[tuple[Fault, RepoPath], ...]
    notes: tuple[Finding, ...]
    copied: tuple[RepoPath, ...]
    adapted: bytes | None


@dataclass(frozen=True, slots=True)
class _StartedGit:
    """A patch that git is applying: its bytes, its names, the files that it is applied to."""

    patch: bytes
    names: PatchNames
    ground: BaseFiles
    git: GitApply

    def is_of(self, patch: bytes, names: PatchNames) -> bool:
        """Return whether this is the same patch, read with the same names; if not, end it."""
        if self.patch == patch and self.names == names:
            return True
        self.git.end()
        return False


def _has_forbidden_name(names: PatchNames) -> bool:
    """Return whether a name must be looked up neither on disk nor by git."""
    return any(faults(path, from_text=True) for path in names.paths)


class DryRun:
    """One patch on its patch_base, and what it is judged with.

    `index` is the tree of the index in which new names were looked up; None if there were none.
    """

    def __init__(
        self,
        repository: Repository,
        objects: Objects,
        store: PrivateStore,
        patch_base: PatchBase,
        asked: CheckOptions,
        kind: str,
    ) -> None:
        self._repository = repository
        self._objects = objects
        self._store = store
        self._patch_base = patch_base
        self._source = Source(kind, None, patch_base.commit)
        self._profile = asked.profile or Profile.AGENT
        self._in_full = asked.in_full
        self._counted = asked.counted
        self._policies = TreePolicies(objects)
        self._before, self._place, self._is_borrowed = policy_before(
            objects,
            self._policies,
            asked,
            patch_base.commit,
            (patch_base.policy_tree, patch_base.policy_place),
        )
        self._started: _StartedGit | None = None
        self.index: str | None = None

    @property
    def policy(self) -> Policy | None:
        """The policy from before the change; None if there was none that could be read."""
        return self._before.policy

    @property
    def is_on_disk(self) -> bool:
        """Whether the patch is applied to the files on disk."""
        return self._patch_base.on_disk

    @contextmanager
    def started_early(self, raw: bytes) -> Iterator[None]:
        """Let git begin to apply a large patch, while the caller reads and judges it.

        Its names are enough for that. What git does counts only if the patch is read with the same names; no
        fault is reported here.
        """
        text = strip_carriage_returns(raw)
        names = glance_at_names(text) if len(text) >= _LARGE else None
        if names is not None and names.paths and not _has_forbidden_name(names):
            with suppress(PatchgateError):
                ground = self._base_files(names.paths, names.removed)
                if not ground.blocked:
                    self._started = self._start_git(text, names, ground)
        try:
            yield
        finally:
            if self._started is not None:
                self._started.git.end()

    def refuse_unreadable(self, found: tuple[Fault, ...], path: RepoPath | None = None) -> ChangeVerdict:
        """Refuse what cannot be read as a patch or as edits; nothing else was checked."""
        tree = self._patch_base.tree
        change = Change(tree, tree, ())
        verdict = self._apply_policy(LoadedChange(change, self._source, is_proposed=True), {}, judged=False)
        gates = (GateOutcome("parse", Outcome.FAIL), GateOutcome("git_check", Outcome.NOT_RUN))
        findings = tuple(finding_of(each, path) for each in found)
        return replace(verdict, gates=(*gates, *verdict.gates), findings=findings)

    def refuse_path(self, path: RepoPath) -> ChangeVerdict:
        """Refuse edits of a file whose name is forbidden; the file is never looked up."""
        tree = self._patch_base.tree
        entry = Entry(REGULAR, "0" * len(tree))
        change = Change(tree, tree, (FileChange(path, None, entry, added_lines=0, size=0),))
        root = dict(self._objects.tree(tree))
        verdict = self._apply_policy(LoadedChange(change, self._source, is_proposed=True), root, judged=True)
        gates = (GateOutcome("parse", Outcome.PASS), GateOutcome("git_check", Outcome.NOT_RUN))
        return replace(verdict, gates=(*gates, *verdict.gates))

    def base_file(self, path: RepoPath) -> Preimage | None:
        """Read a file or a folder of the base with its mode; None if there is none."""
        return Preimages(self._objects, self._base_files([path], frozenset()).entries)[path]

    def judge(self, patch: Patch) -> ChangeVerdict:
        """Judge a patch that could be read."""
        tried = self._try(patch, self._detail([self._before.policy or built_in()]))
        after = self._policies.at(self._key(tried.after_root))
        known = [self._before.policy]
        if self._before.policy is not None:
            # With `--policy-from` it is another one, which judges only where the change replaces it.
            known.append(self._base_policy.policy)
        if after.policy is not None and all(after.policy is not each for each in known):
            # The change contains a new policy: also read what that one needs.
            judging = [each for each in (self._before.policy, after.policy) if each is not None]
            tried = self._try(patch, self._detail(judging))
        reading = replace(tried.reading, rename_pairs=pair_renamed_paths(patch))
        verdict = self._apply_policy(reading, tried.after_root, judged=True)
        failed = {each.definition.stage for each in tried.findings if each.level is Level.ERROR}
        made = Outcome.PASS if tried.is_made else Outcome.NOT_RUN
        gates = (
            GateOutcome("parse", Outcome.FAIL if Stage.PARSE in failed else Outcome.PASS),
            GateOutcome("git_check", Outcome.FAIL if Stage.GIT_CHECK in failed else made),
        )
        return replace(verdict, gates=(*gates, *verdict.gates), findings=(*tried.findings, *verdict.findings))

    @property
    def _base_policy(self) -> FoundPolicy:
        return self._policies.at(self._policies.key(self._patch_base.policy_tree))

    def _detail(self, judging: list[Policy]) -> Detail:
        return detail_for(judging, self._profile, in_full=self._in_full)

    def _key(self, root: Mapping[bytes, Entry | None]) -> tuple[str | None, str | None]:
        return self._policies.key_of(root.get(b"patchgate.toml"), root.get(b"pyproject.toml"))

    def _apply_policy(
        self, reading: LoadedChange, root: Mapping[bytes, Entry | None], *, judged: bool
    ) -> ChangeVerdict:
        base = self._base_policy
        rules = PolicySides(
            self._before,
            self._policies.at(self._key(root)) if judged else base,
            self._place,
            hooks_named=self._policies.names_patchgate(self._patch_base.policy_tree),
            base=base,
            is_borrowed=self._is_borrowed,
        )
        verdict = judge_reading(reading, rules, self._profile, self._objects)
        if judged:
            return verdict
        not_run = tuple(replace(gate, outcome=Outcome.NOT_RUN, reason=None) for gate in verdict.gates)
        return replace(verdict, gates=not_run, limits={})

    def _try(self, patch: Patch, detail: Detail) -> DryRunResult:
        """Plan every section, let git apply the patch, and compare the two."""
        names = PatchNames(list_paths(patch), list_removed_paths(patch.sections))
        started, self._started = self._started, None
        if started is None or not started.is_of(patch.raw, names):
            if _has_forbidden_name(names):
                base = BaseFiles(self._patch_base.tree, {}, {}, blocked={})
                return self._proposed(patch, base, {}, (), detail)
            ground, removed = self._base_files(names.paths, names.removed), names.removed
            ground = replace(ground, blocked={**ground.blocked, **find_paths_behind_links(patch)})
            if ground.blocked:
                return self._refuse_mismatch(
                    patch, ground, self._plan(patch, ground, removed, detail), detail
                )
            started = self._start_git(patch.raw, names, ground)
        ground, removed = started.ground, names.removed
        counted = partial(self._count, patch, detail, len(patch.sections))
        # git works while we plan: neither sees the other's result.
        with started.git as git:
            plan = self._plan(patch, ground, removed, detail)
            if plan.found:
                return self._refuse_mismatch(patch, ground, plan, detail, git.last_words())
            for path in plan.entries:
                # The gates ask for it; it is remembered, and git still works.
                (self._before.policy or built_in()).ruling(path)
            effect = git.read(self._objects, detail, counted) if plan.adapted is None else None
        if effect is None:
            with self._start_git(plan.adapted or b"", names, ground).git as git:
                effect = git.read(self._objects, detail, counted)
        if effect.refused:
            refusal = add_git_output([report_git_refusal(effect.said)], effect)
            return self._proposed(patch, ground, plan.entries, (*refusal, *plan.notes), detail)
        wrong = find_differences(effect.files, plan.entries)
        if wrong:
            return self._proposed(
                patch, ground, plan.entries, (report_wrong_effect(wrong), *plan.notes), detail
            )
        return self._read_effect(effect, ground, plan, detail)

    def _start_git(self, patch: bytes, names: PatchNames, ground: BaseFiles) -> _StartedGit:
        git = GitApply(self._repository, self._store, ground.entries, patch=patch)
        return _StartedGit(patch, names, ground, git)

    def _plan(
        self, patch: Patch, ground: BaseFiles, removed: frozenset[RepoPath], detail: Detail
    ) -> _PatchPlan:
        """Plan every section that can be reached."""
        counts = detail.lines
        targets = PatchTargets(Preimages(self._objects, ground.entries, knows_texts=counts), removed)
        plans: list[SectionPlan] = []
        planned: dict[RepoPath, Entry | None] = {}
        found: list[tuple[Fault, RepoPath]] = []
        for number, section in enumerate(patch.sections):
            if number % COUNTED == 0:
                self._count(patch, detail, 0, number)
            if section.path in ground.blocked or section.old_path in ground.blocked:
                continue
            plan = plan_section(section, targets)
            if isinstance(plan, tuple):
                found.extend((fault, section.path) for fault in plan)
            else:
                self._enter(plan, planned, knows_texts=counts)
                # All results together would take as much memory as the patch.
                plans.append(replace(plan, steps=()))
        adapted = None
        if any(plan.adapted for plan in plans) and len(plans) == len(patch.sections):
            pairs = zip(plans, patch.sections, strict=True)
            adapted = b"".join(plan.adapted or patch.raw[each.start : each.end] for plan, each in pairs)
        return _PatchPlan(
            entries={path: entry for path, entry in planned.items() if ground.entries.get(path) != entry},
            found=tuple(found),
            notes=tuple(finding_of(note) for plan in plans for note in plan.notes),
            copied=tuple(plan.copied_from for plan in plans if plan.copied_from is not None),
            adapted=adapted,
        )

    def _refuse_mismatch(
        self, patch: Patch, ground: BaseFiles, plan: _PatchPlan, detail: Detail, effect: Effect | None = None
    ) -> DryRunResult:
        """Refuse a patch that does not match its files; `effect` has git's words, if git was run."""
        hint = suggest_base(self._repository, self._objects, self._patch_base, patch) if plan.found else None
        found = [finding_of(fault, path, also=hint) for fault, path in plan.found]
        findings = (*add_git_output(found, effect), *plan.notes)
        return self._proposed(patch, ground, plan.entries, findings, detail)

    def _count(self, patch: Patch, detail: Detail, planned: int, read: int) -> None:
        """Report how far the patch is: its files are planned, and then perhaps their lines are read."""
        if self._counted is not None:
            steps = 2 if detail.lines else 1
            self._counted((planned + read) // steps, len(patch.sections))

    def _base_files(self, paths: list[RepoPath], removed: frozenset[RepoPath]) -> BaseFiles:
        tree = self._patch_base.tree
        if self._patch_base.on_disk:
            return base_files_on_disk(self._repository, self._objects, self._store, tree, paths, removed)
        return base_files_of_tree(self._objects, tree, paths, removed)

    def _enter(self, plan: SectionPlan, planned: dict[RepoPath, Entry | None], *, knows_texts: bool) -> None:
        """Turn a plan into entries; a path that is removed and added again (by a rename) is added."""
        for step in plan.steps:
            if step.mode is not None:
                planned[step.path] = entry = Entry(step.mode, self._oid_of(step))
                if knows_texts and entry.is_file:
                    self._objects.know_text(entry.oid, step.content)
            elif planned.get(step.path) is None:
                planned[step.path] = None

    def _oid_of(self, step: PlannedFile) -> str:
        if step.mode == GITLINK:
            return step.content.decode("ascii")
        return self._objects.hash("blob", step.content)

    def _proposed(
        self,
        patch: Patch,
        ground: BaseFiles,
        planned: Mapping[RepoPath, Entry | None],
        findings: tuple[Finding, ...],
        detail: Detail,
    ) -> DryRunResult:
        """Read a patch that cannot be applied by its plan, so that policy can still check its paths."""
        tree = self._patch_base.tree
        unknown = "0" * len(self._objects.empty_tree)
        base = resulting_tree(self._objects, tree, ground.pending.values()).tree
        files = list_proposed_files(patch, ground, planned, unknown, detail)
        change = Change.of(base, base, files, self._objects.empty_blob)
        landed = {file.path: file for file in filter_placeable_files(files, ground.blocked)}
        folders = resulting_tree(self._objects, tree, {**ground.pending, **landed}.values()).folders
        reading = LoadedChange(
            change, self._source, folders, is_proposed=True, copied=list_copy_sources(patch)
        )
        reading = replace(reading, blocked=dict(ground.blocked))
        return DryRunResult(findings, reading, dict(self._objects.tree(tree)))

    def _read_effect(
        self, effect: Effect, ground: BaseFiles, plan: _PatchPlan, detail: Detail
    ) -> DryRunResult:
        """Read git's result in full: the change from the base files to it."""
        # They equal the plan, whose ids are those of its contents.
        files = fill_in_details(self._objects, effect.files, effect.binary, detail, are_hashed=True)
        pending = dict(ground.pending)
        base = resulting_tree(self._objects, ground.tree, pending.values()).tree
        pending.update({file.path: file for file in files})
        result: ResultTree = resulting_tree(self._objects, ground.tree, pending.values(), self._store_tree)
        change = Change.of(base, result.tree, files, self._objects.empty_blob)
        reading = LoadedChange(change, self._source, result.folders, is_proposed=True)
        if self._patch_base.merges:
            merged = merge_onto_head(
                self._repository, self._store, self._objects, self._patch_base, result.tree, detail
            )
            if isinstance(merged, tuple):
                root = dict(self._objects.tree(result.tree))
                return DryRunResult((*merged, *plan.notes), reading, root)
            root = dict(self._objects.tree(merged.change.after))
            reading = replace(merged, source=self._source, is_proposed=True, copied=plan.copied)
            reading = reading.with_overlay(merged.change.base, merged.change.files)
            return self._check_existing(DryRunResult(plan.notes, reading, root, is_made=True))
        reading = replace(reading, copied=plan.copied).with_overlay(ground.tree, pending.values())
        root_entries: dict[bytes, Entry | None] = {**self._objects.tree(ground.tree)}
        root_entries.update((path.raw, file.new) for path, file in pending.items())
        return self._check_existing(DryRunResult(plan.notes, reading, root_entries, is_made=True))

    def _check_existing(self, made: DryRunResult) -> DryRunResult:
        """Check what is staged and on disk, if a change that was made for a commit is to be written."""
        if not self._patch_base.lands or self._patch_base.on_disk:
            return made
        reading = made.reading
        files = reading.change.files
        present = find_existing(self._repository, self._store, self._objects, self._patch_base, files)
        if present is None:
            return made
        self.index = present.index
        reading = replace(reading, blocked=present.blocked, folders={**reading.folders, **present.folders})
        found = tuple(map(report_existing, present.taken))
        is_made = not found and not present.blocked
        return replace(made, findings=(*found, *made.findings), reading=reading, is_made=is_made)

    def _store_tree(self, kind: str, content: bytes) -> None:
        """Store new trees where git can find them, if they are to be merged."""
        if self._patch_base.merges:
            self._store.write(kind, content)
