"""The tools of the MCP server that change something: declare an intent, apply a patch, resume a run.

Each needs the digest of what was checked, which is computed again before anything happens. It is in the
ledger with the client's name before it begins; if that cannot be recorded, nothing is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from patchgate.agents.mcp.arguments import CHECK_AGAIN, CallArguments, CallPlace, digest_of, judged
from patchgate.agents.mcp.tools import analyses, check_sent, pending
from patchgate.apply.apply import apply as apply_patch
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.check.policy_lookup import trusted_options
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import first_of, printable
from patchgate.intents.actions import declare, refreshed
from patchgate.intents.declaration import DeclareOptions
from patchgate.intents.document import outcome_text
from patchgate.intents.intent import IntentBudget
from patchgate.intents.intent_status import Caller
from patchgate.intents.stored_intents import current_moment
from patchgate.ledger.ledger import Ledger
from patchgate.patches.proposals import kind_of
from patchgate.report.wording import count, safe, show_path
from patchgate.runs.phases import Phase
from patchgate.runs.run_loop import report_lines
from patchgate.runs.run_output import state_digest
from patchgate.runs.run_record import checked_run
from patchgate.runs.start import RunEnvironment, resume_run
from patchgate.values import dataclass
from patchgate.verify.checked_intent import capture_before_report

KIND = "asked"
_NAMED = 10


@dataclass(frozen=True, slots=True)
class ClientChange:
    """A tool that changes something: what it would do, as text for the user; and doing it.

    `preview` checks the digest.
    """

    preview: Callable[[CallPlace, CallArguments], str]
    make: Callable[[CallPlace, CallArguments], dict[str, Any]]


def _require(digest: str | None, asked: str, what: str, hint: str) -> None:
    if digest != asked:
        raise UsageError(f"nothing was done: {what}", hint)


def _record(place: CallPlace, tool: str, digest: str, **about: str | None) -> None:
    """Record who asks for a change.

    Raises:
        UndecidedError: it cannot be recorded.
    """
    ledger = Ledger(place.repository.common_dir)
    ledger.require_writable()
    warning = ledger.record(KIND, {"tool": tool, "client": place.client, "digest": digest, **about})
    if warning is not None:
        raise UndecidedError(f"nothing was done: {warning}", "git patchgate log --verify")


def _preview_declare(place: CallPlace, arguments: CallArguments) -> str:
    asked = arguments.required("digest")
    known = {digest_of(pending(place.repository, source), source) for source in ("staged", "worktree")}
    _require(
        asked if asked in known - {None} else None,
        asked,
        "this is not the digest of the staged change, or of the working tree, as it is now",
        CHECK_AGAIN,
    )
    allowed = first_of(arguments.texts("allow"), _NAMED, lambda path: printable(path, 200))
    return f"Declare an intent to change {allowed}: {printable(arguments.required('reason'), 400)}"


def _declare(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    request = DeclareOptions(
        reason=arguments.required("reason"),
        allowed=arguments.texts("allow"),
        related=arguments.texts("related"),
        forbidden=arguments.texts("forbid"),
        ttl=arguments.text("ttl"),
        queue=arguments.flag("queue"),
        budget=IntentBudget(
            arguments.number("max_attempts"),
            arguments.number("max_added_lines"),
            arguments.number("max_minutes"),
        ),
    )
    _record(place, "declare_intent", arguments.required("digest"), reason=printable(request.reason, 400))
    caller = Caller(place.environ, current_moment())
    outcome = declare(place.repository, request, caller)
    if outcome.intent is not None:
        warnings = capture_before_report(place.repository, outcome.intent, analyses(place))
        outcome = refreshed(place.repository, outcome, warnings, caller)
    lines = [*outcome_text(outcome), *(f"warning: {safe(each)}" for each in outcome.warnings)]
    if outcome.hint is not None:
        lines.append(f"help: {safe(outcome.hint)}")
    return {
        "action": outcome.action.value,
        "intent": None if outcome.intent is None else outcome.intent.id,
        "text": "\n".join(lines) + "\n",
    }


def _preview_apply(place: CallPlace, arguments: CallArguments) -> str:
    raw, asked = arguments.required("patch").encode("utf-8"), arguments.required("digest")
    report, source = check_sent(place, arguments, raw)
    _require(
        digest_of(report, source, raw),
        asked,
        f"check of this patch, now {report.verdict.value}, gives another digest: "
        "the patch, the files, HEAD or the policy have changed",
        CHECK_AGAIN,
    )
    files = [file.path for change in report.changes for file in change.change.files]
    return f"Apply a patch that changes {count(len(files), 'file')}: {first_of(files, _NAMED, show_path)}"


def _apply(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    raw = arguments.required("patch").encode("utf-8")
    _record(place, "apply", arguments.required("digest"), patch_sha256=hashlib.sha256(raw).hexdigest())
    request = ApplyRequest(
        raw,
        trusted_options(place.repository),
        kind=kind_of(arguments.text("input") or ""),
        retry_of=arguments.text("retry_of"),
    )
    environment = ApplyEnvironment(place.environ, place.cache, lambda what, seconds: None)
    report = apply_patch(place.repository, request, environment)
    attempt = report.attempt
    return {
        **judged(report),
        "applied": attempt is not None and attempt.applied,
        "attempt": None if attempt is None else attempt.id,
    }


def _preview_resume(place: CallPlace, arguments: CallArguments) -> str:
    state = checked_run(place.repository, arguments.text("run"))
    _phase(arguments)
    _require(
        state_digest(state),
        arguments.required("digest"),
        f"this is not the digest of {state.id} as it is now",
        "call status, or git patchgate run show --format json, and give the digest of the run",
    )
    left = count(len(state.left), "phase")
    return f"Resume the run {state.id}, which has {left} left; its authors may be asked for patches"


def _phase(arguments: CallArguments) -> Phase | None:
    name = arguments.text("from_phase")
    try:
        return None if name is None else Phase(name)
    except ValueError as error:
        known = ", ".join(phase.value for phase in Phase)
        raise UsageError(f"there is no phase {printable(name or '', 40)}", f"one of: {known}") from error


def _resume(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    run = checked_run(place.repository, arguments.text("run")).id
    _record(place, "resume", arguments.required("digest"), run=run)
    said: list[str] = []
    environment = RunEnvironment(place.environ, report=said.append)
    state = resume_run(place.repository, run, _phase(arguments), environment)
    return {
        "run": state.id,
        "status": state.status.value,
        "digest": state_digest(state),
        "text": "\n".join(map(safe, [*said, *report_lines(state)])) + "\n",
    }


CHANGES: Mapping[str, ClientChange] = {
    "apply": ClientChange(_preview_apply, _apply),
    "declare_intent": ClientChange(_preview_declare, _declare),
    "resume": ClientChange(_preview_resume, _resume),
}
"""The tools that change something, by name."""
