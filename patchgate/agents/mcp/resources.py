"""The resources of the MCP server: documents of a repository, as JSON, and contracts as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from patchgate.agents.mcp.arguments import CallArguments, CallPlace
from patchgate.check.effective_policy import POLICY_SCHEMA, effective_policy
from patchgate.check.policy_lookup import trusted_options
from patchgate.components.component_list import list_components
from patchgate.components.component_output import list_json
from patchgate.components.policy_tree import index_tree, resolve_components
from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.intents.actions import find_intents
from patchgate.intents.document import list_json as intents_json
from patchgate.intents.intent_status import Caller
from patchgate.intents.queue import IntentQueue
from patchgate.intents.stored_intents import current_moment
from patchgate.policy.policy import Profile
from patchgate.report.rules import RULES
from patchgate.runs.retrospective import retrospective_json, retrospective_of
from patchgate.runs.run_cost import cost_json, cost_of_run
from patchgate.runs.status import repository_status, status_json

ResourceReader = Callable[[CallPlace, CallArguments], str]


def _status(place: CallPlace, arguments: CallArguments) -> str:
    return status_json(repository_status(place.repository, place.now))


def _policy(place: CallPlace, arguments: CallArguments) -> str:
    force = effective_policy(place.repository, trusted_options(place.repository))
    return json.dumps(
        {
            "schema": POLICY_SCHEMA,
            "from": force.place,
            "digests": {profile.value: force.policy.digest(profile) for profile in Profile},
            "keys": [{"key": each.key, "value": each.value, "from": each.place} for each in force.settings()],
        }
    )


def _contracts(place: CallPlace, arguments: CallArguments) -> str:
    return list_json(*list_components(place.repository))


def _contract(place: CallPlace, arguments: CallArguments) -> str:
    with Objects(place.repository) as objects:
        content = index_tree(place.repository, objects)
        (component,) = resolve_components(content.components, [arguments.required("id")], content.place)
        entry = content.view.entry(component.contract.raw)
        if entry is None or not entry.is_file:
            message = f"the contract of `{component.id}`, {component.contract.quoted}, is not in the index"
            raise UsageError(message, "write it, and git add it")
        return objects.read(entry.oid).decode("utf-8", "replace")


def _intent(place: CallPlace, arguments: CallArguments) -> str:
    caller = Caller(place.environ, current_moment())
    found = find_intents(place.repository, arguments.required("id"), caller)
    queue = IntentQueue(place.repository, caller.now)
    return intents_json([queue.describe(each) for each in found])


def _budget(place: CallPlace, arguments: CallArguments) -> str:
    """Return the limits of one change of an agent, and what the newest run has spent of its caps."""
    policy = effective_policy(place.repository, trusted_options(place.repository)).policy
    limits = policy.limits(Profile.AGENT, None)
    try:
        run = json.loads(cost_json(cost_of_run(place.repository, None)))
    except UsageError:
        # There was none.
        run = None
    change = {
        "max_files": limits.max_files,
        "max_added_lines": limits.max_added_lines,
        "max_file_bytes": limits.max_file_bytes,
        "max_attempts": policy.config.apply.max_attempts,
    }
    return json.dumps({"change": change, "run": run})


def _retrospective(place: CallPlace, arguments: CallArguments) -> str:
    return retrospective_json(retrospective_of(place.repository, None, place.now))


def _rules(place: CallPlace, arguments: CallArguments) -> str:
    rules = [
        {
            "id": rule.id,
            "level": rule.level.value,
            "stage": rule.stage.value,
            "summary": rule.summary,
            "help": rule.help,
        }
        for rule in RULES.values()
    ]
    return json.dumps({"rules": rules})


RESOURCES: Mapping[str, ResourceReader] = {
    "budget": _budget,
    "contract": _contract,
    "contracts": _contracts,
    "intent": _intent,
    "policy": _policy,
    "retrospective": _retrospective,
    "rules": _rules,
    "status": _status,
}
"""The resources, by the first part of their address."""
