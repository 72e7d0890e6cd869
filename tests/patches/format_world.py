"""Read proposals without a repository: files by name, and what a proposal makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.git.model import REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.patch_model import Patch
from patchgate.patches.patch_parser import parse
from patchgate.patches.planning import PatchTargets, Preimage, list_removed_paths, plan_section
from patchgate.patches.proposals import RefusedProposal, read_proposal

Files = Mapping[str, bytes]


def read(raw: bytes, kind: str, files: Files, *, repair: bool = False) -> dict[str, bytes] | list[str]:
    """Read a proposal: the files after it, or the rules that refuse it."""
    known = {RepoPath.from_patch(name.encode("utf-8")): content for name, content in files.items()}

    def lookup(path: RepoPath) -> Preimage | None:
        return Preimage(REGULAR, known[path]) if path in known else None

    found = read_proposal(raw, kind, lookup, repair=repair, root=b"/home/someone/repository")
    if isinstance(found, RefusedProposal):
        return ["path" if found.forbidden else each.rule for each in found.faults or (None,) if each] or [
            "path"
        ]
    patch = parse(found.diff)
    if not isinstance(patch, Patch):
        return [each.rule for each in patch]
    named = {each for section in patch.sections for each in (section.old_path, section.new_path)}
    preimages = {path: lookup(path) for path in named if path is not None}
    targets = PatchTargets(preimages, list_removed_paths(patch.sections))
    after = dict(known)
    for section in patch.sections:
        plan = plan_section(section, targets)
        if isinstance(plan, tuple):
            return [each.rule for each in plan]
        for step in plan.steps:
            after.pop(step.path, None)
        after |= {step.path: step.content for step in plan.steps if step.mode is not None}
    return {path.raw.decode("utf-8"): content for path, content in after.items()}
