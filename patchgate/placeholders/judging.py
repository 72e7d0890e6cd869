"""What placeholders take part in when a change is judged (`check.features`)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from patchgate.check.features import FactSources
from patchgate.git.diff import Glance, Watch
from patchgate.policy.policy import Policy, Profile

if TYPE_CHECKING:
    from patchgate.placeholders.placeholder_gate import PlaceholderFacts


def watch(policy: Policy, profiles: Iterable[Profile]) -> tuple[Watch, Glance] | None:
    """Tell which lines may hold a placeholder; None where the policy does not look for any."""
    if not any(policy.judges_placeholders(profile) for profile in profiles):
        return None
    # Most commits are judged without them.
    from patchgate.placeholders.placeholder_search import may_have_suspicious_line, suspicious_lines

    return partial(suspicious_lines, policy.markers), partial(may_have_suspicious_line, policy.markers)


def gather(scene: FactSources) -> PlaceholderFacts | None:
    """Look for placeholders in a change, where the policy judges them."""
    if not (scene.change.files and scene.policy.judges_placeholders(scene.profile)):
        return None
    from patchgate.placeholders.placeholder_gate import PlaceholderFacts
    from patchgate.placeholders.placeholder_search import gather_placeholders

    reading = scene.reading
    is_made = reading is None or reading.overlay is not None or not reading.is_proposed
    facts = gather_placeholders(scene.objects, scene.change, scene.policy, scene.profile, is_made=is_made)
    return facts or PlaceholderFacts()
