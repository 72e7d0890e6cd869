"""Check every tracked file as if it were new (`check --all`).

Limits on the size of a change do not apply. Files are read and judged in batches, so memory is bounded by the
batch and the findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.check.case import Case, LinkFacts
from patchgate.check.features import Facts, FactSources, gather_facts, gather_tree_facts
from patchgate.check.gate import judge
from patchgate.check.judging_policy import BUILT_IN
from patchgate.check.pending import with_id_of_change
from patchgate.check.policy_lookup import CheckOptions, detail_for, requested_policy
from patchgate.check.symlinks import gather_all_links
from patchgate.git.change_sources import fill_in_details, list_tracked, pending_base
from patchgate.git.diff import Detail
from patchgate.git.model import Change, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.trees import Listing, resulting_tree
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import TreePolicies, built_in, require_version
from patchgate.report.verdict import ChangeVerdict, GateOutcome, Outcome, PolicyReference, Report
from patchgate.values import dataclass

_BATCH_FILES = 500
_WORST_LAST = [Outcome.NOT_APPLICABLE, Outcome.PASS, Outcome.NOT_RUN, Outcome.FAIL, Outcome.UNDECIDED]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What judges every batch."""

    objects: Objects
    policy: Policy
    profile: Profile
    detail: Detail
    folders: dict[bytes, Listing]
    reference: PolicyReference
    links: LinkFacts | None

    def judge(self, files: Sequence[FileChange]) -> ChangeVerdict:
        """Read one batch whole and judge it."""
        # No diff has shown any of these lines.
        unseen = {
            index
            for index, file in enumerate(files)
            if self.detail.lines and file.new is not None and file.new.is_file
        }
        records = fill_in_details(self.objects, list(files), unseen, self.detail)
        change = Change(self.objects.empty_tree, "", tuple(records))
        case = Case(
            change,
            self.policy,
            self.profile,
            folders=self.folders,
            has_budgets=False,
            facts=gather_facts(
                FactSources(
                    objects=self.objects,
                    change=change,
                    policy=self.policy,
                    profile=self.profile,
                    declaring=self.policy,
                )
            ),
            links=self.links,
        )
        outcomes, findings = judge(case)
        return ChangeVerdict(
            change=change,
            source=Source("all"),
            profile=self.profile.value,
            policy=self.reference,
            gates=outcomes,
            findings=findings,
        )

    def judge_tree(self, empty: Change, facts: Mapping[str, Facts]) -> ChangeVerdict:
        """Judge what needs the whole tree (components)."""
        case = Case(empty, self.policy, self.profile, has_budgets=False, facts=facts)
        outcomes, findings = judge(case)
        return ChangeVerdict(
            change=empty,
            source=Source("all"),
            profile=self.profile.value,
            policy=self.reference,
            gates=outcomes,
            findings=findings,
        )


def check_tracked(repository: Repository, asked: CheckOptions) -> Report:
    """Judge every tracked file as if it were new, under HEAD's policy or that of `--policy-from`.

    Raises:
        ConfigError: that policy cannot be used.
        PatchgateError: the index or an object cannot be read.
    """
    with Objects(repository) as objects:
        base = pending_base(repository, objects)
        policies = TreePolicies(objects)
        found = requested_policy(objects, policies, asked) or policies.at(policies.key(base.policy_tree))
        if found.fault is not None:
            raise found.fault
        policy = found.policy or built_in()
        require_version(policy)
        profile = asked.profile or Profile.COMMIT
        files = list_tracked(repository, objects)
        result = resulting_tree(objects, objects.empty_tree, files)
        place = f"{asked.place or 'HEAD'}:{policy.file}" if policy.file else BUILT_IN
        reference = PolicyReference(policy.digest(profile), place)
        links = gather_all_links(objects, files, policy, profile)
        bench = _Bench(
            objects=objects,
            policy=policy,
            profile=profile,
            detail=detail_for([policy], profile, in_full=asked.in_full),
            folders=result.folders,
            reference=reference,
            links=links,
        )
        parts = [
            bench.judge(files[start : start + _BATCH_FILES])
            for start in range(0, max(1, len(files)), _BATCH_FILES)
        ]
        empty = Change(objects.empty_tree, result.tree, ())
        parts.append(bench.judge_tree(empty, gather_tree_facts(objects, files, policy)))
        joined = ChangeVerdict(
            change=Change(
                objects.empty_tree, result.tree, tuple(file for part in parts for file in part.change.files)
            ),
            source=Source("all", None, base.commit),
            profile=profile.value,
            policy=reference,
            gates=_joined([part.gates for part in parts]),
            findings=tuple(finding for part in parts for finding in part.findings),
        )
        report = Report((joined,), repository.limits)
        if not asked.in_full:
            return report
        with PrivateStore(repository) as store:
            return with_id_of_change(repository, store, report)


def _joined(gates: Sequence[tuple[GateOutcome, ...]]) -> tuple[GateOutcome, ...]:
    """Join the outcomes of all batches: the worst one counts, and undecided is the worst."""
    return tuple(
        max(each, key=lambda gate: _WORST_LAST.index(gate.outcome)) for each in zip(*gates, strict=True)
    )
