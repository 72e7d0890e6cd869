"""The programs that the policy's commands and analyses need: are they there?

Decides by looking them up as `apply` and `verify` do, in the environment that these give to a command.
Nothing is started: that a program is there does not say that it works.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from patchgate.commands.environment import command_environment
from patchgate.commands.runner import located, not_found
from patchgate.hooks.doctor_findings import Finding
from patchgate.policy.policy import Policy
from patchgate.report.rules import Level

# No folder of PATH is in it, so none is left out as part of a scratch tree.
_NO_TREE = os.path.join(os.sep, "nowhere", "tree")


def tool_findings(policy: Policy, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Name each command and analysis of a policy that cannot run here, and what it misses."""
    config = policy.config
    for table, settings in (("commands", config.commands), ("analyses", config.analyses)):
        for name, each in settings.items():
            _, missing = located(each, command_environment(environ, each.env, _NO_TREE))
            if missing:
                reason, hint = not_found(missing)
                place = policy.line_of((table, name))
                what = f"[{table}.{name}]{f' ({place})' if place else ''} cannot run: {reason}"
                yield Finding(Level.ERROR, what, hint)
