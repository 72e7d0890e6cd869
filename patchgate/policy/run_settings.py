"""The sections `[run]` and `[environment]`: their keys, defaults and descriptions, as in `settings`.

They are apart because a commit needs neither: `Config` loads them when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.policy import config_types as types


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """The environment that commands, analyses and tests of components share."""

    python_path: types.PythonPath = "python3"
    inherit_path: Annotated[
        bool, "Whether PATH has the folders of the caller's; if not, `/usr/bin` and `/bin`."
    ] = True
    extra_path_dirs: types.PathFolders = ()
    required_tools: types.SharedTools = ()
    env: types.SharedVariables = field(default_factory=dict, hash=False)


# In the file a limit of `role_timeouts` may also be a string; here it is in seconds.
@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run takes components through their phases."""

    scheduling: types.SchedulingName = "phased"
    max_concurrent: types.MaxConcurrent = 4
    max_retries: types.MaxRetries = 3
    systemic_threshold: types.SystemicThreshold = 3
    impatience: types.ImpatienceName = "normal"
    role_timeouts: Mapping[str, float] = field(default_factory=dict, hash=False)
    total_cost: types.TotalCost = None
    phase_caps: types.PhaseCaps = field(default_factory=dict, hash=False)
    shaping_budget_pct: types.ShapingBudget = None
    questions: types.QuestionsFile = None
    least_confidence: types.LeastConfidence = 0.0


SECTIONS = {"environment": EnvironmentSettings, "run": RunSettings}
"""The tables of the config that this module declares."""


def environment_from(written: Mapping[str, Any]) -> EnvironmentSettings:
    """Make the settings of `[environment]` from its checked keys."""
    lists = {name: tuple(value) for name, value in written.items() if isinstance(value, list)}
    return EnvironmentSettings(**{**written, **lists})


def run_from(written: Mapping[str, Any]) -> RunSettings:
    """Make the settings of `[run]` from its checked keys."""
    caps = dict(written.get("phase_caps", {}))
    if (share := written.get("shaping_budget_pct")) is not None:
        caps.setdefault("shaping", share)
    found = {**written, "phase_caps": caps}
    if "role_timeouts" in written:
        from patchgate.policy.validators import seconds

        found["role_timeouts"] = {role: seconds(limit) for role, limit in written["role_timeouts"].items()}
    return RunSettings(**found)
