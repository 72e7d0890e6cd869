"""The entry points of placeholders for `check.features`: which lines to watch, and the facts of a change."""

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
    """Return functions that select suspicious lines; None if the policy checks no placeholders."""
    if not any(policy.judges_placeholders(profile) for profile in profiles):
        return None
    # Imported here: most policies do not check placeholders.
    from patchgate.placeholders.placeholder_search import may_have_suspicious_line, suspicious_lines

    return partial(suspicious_lines, policy.markers), partial(may_have_suspicious_line, policy.markers)


def gather(sources: FactSources) -> PlaceholderFacts | None:
    """Find the placeholders of a change, where the policy checks them."""
    if not (sources.change.files and sources.policy.judges_placeholders(sources.profile)):
        return None
    from patchgate.placeholders.placeholder_gate import PlaceholderFacts
    from patchgate.placeholders.placeholder_search import gather_placeholders

    reading = sources.reading
    is_made = reading is None or reading.overlay is not None or not reading.is_proposed
    facts = gather_placeholders(
        sources.objects, sources.change, sources.policy, sources.profile, is_made=is_made
    )
    return facts or PlaceholderFacts()
