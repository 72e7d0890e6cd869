"""How a run is resumed: from where, what counts as done, and what is cleared. Deletes nothing.

Pure: the caller asks what is on disk. Only what is so on disk counts as done: a component whose baseline
matches its files. Everything else is checked again, which ends in the same tree.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.errors import UsageError
from patchgate.runs.phases import PHASES, Phase, Work
from patchgate.runs.run_state import ComponentOnDisk, RunState, RunStatus, write_work
from patchgate.storage.record import Json
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class ResumeStrategy:
    """What a resumed run does.

    `last_checkpoint` is the newest work that was finished, `completed_components` those that stay done,
    `resume_phase` the first phase with something to do. `cleared` are works that were done and are done
    again, because the disk does not show them or `--from-phase` asks for them.
    """

    last_checkpoint: Work | None
    completed_components: tuple[str, ...]
    resume_phase: Phase
    cleared: tuple[Work, ...]

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        checkpoint = self.last_checkpoint
        return {
            "last_checkpoint": None if checkpoint is None else write_work(checkpoint),
            "completed_components": list(self.completed_components),
            "resume_phase": self.resume_phase.value,
            "cleared": [write_work(work) for work in self.cleared],
        }


def plan_resume(
    state: RunState,
    status: RunStatus,
    found: Mapping[str, ComponentOnDisk],
    from_phase: Phase | None = None,
) -> ResumeStrategy:
    """Decide how a run is resumed.

    Args:
        status: of now: an active run whose process has ended is interrupted.
        found: what is on disk, for each component that the policy declares.
        from_phase: begin there at the latest.

    Raises:
        UsageError: the run is active or complete, or the phase is later than the one that failed.
    """
    if status is RunStatus.ACTIVE:
        message = f"the run {state.id} is active (process {state.owner.get('pid')})"
        raise UsageError(message, f"git patchgate run show {state.id}")
    if status is RunStatus.COMPLETED:
        raise UsageError(f"the run {state.id} is complete", "git patchgate run start")
    if not state.plan.phases:
        raise UsageError(f"what the run {state.id} had to do is not known", "git patchgate run start")
    stopped = state.failed_phase or state.phase or PHASES[-1]
    if from_phase is not None and from_phase.number > stopped.number:
        raise UsageError(
            f"the run {state.id} stopped in {stopped.value}, which comes before {from_phase.value}",
            f"leave out --from-phase, or name {stopped.value} or an earlier phase",
        )
    cleared = [work for work in sorted(state.done) if _is_cleared(work, found, from_phase)]
    done = set(state.done) - set(cleared)
    left = [work for work in state.plan.works if work not in done]
    unfinished = {work.component for work in left}
    return ResumeStrategy(
        last_checkpoint=state.checkpoint,
        completed_components=tuple(sorted(set(state.plan.phases) - unfinished)),
        resume_phase=min((work.phase for work in left), key=PHASES.index, default=stopped),
        cleared=tuple(cleared),
    )


def _is_cleared(work: Work, found: Mapping[str, ComponentOnDisk], from_phase: Phase | None) -> bool:
    if from_phase is not None and work.phase.number >= from_phase.number:
        return True
    if work.phase.number < Phase.CONTRACT.number:
        # Nothing on disk shows an interview or a shaping.
        return False
    here = found.get(work.component)
    return here is None or not here.is_recorded
