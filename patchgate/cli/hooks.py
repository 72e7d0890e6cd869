"""The entry of the installed hooks: reads what git gives a hook, prints a report, returns an exit code.

Prints nothing when there is nothing to report. An internal error refuses: git stops at any exit code but 0.
Does not import click, which costs 25 ms.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.cli.output import report_config_warnings, report_failed_gates, show, write, write_error
from patchgate.cli.progress import Progress, analysis_environment, command_options
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import open_repository
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.check.hook_decision import HookDecision
    from patchgate.git.pushes import RefUpdate, Remote
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Report

SKIP, SKIP_ONLY = "PATCHGATE_SKIP", "PATCHGATE_SKIP_ONLY"
WITNESS = "PATCHGATE_WITNESS"
_MOST_LINES = 64 << 20
_RECEIVE_SECONDS = 300
_HINTS = 3
_HEAD = re.compile(r"GITHEAD_([0-9a-f]{40}(?:[0-9a-f]{24})?)")


class PushTimeout(BaseException):
    """The time of a push is up; no gate may take it for an error of its own and go on."""


@dataclass(frozen=True, slots=True)
class _HookCall:
    """One call of a hook: its name, and when it began, by the monotonic clock."""

    name: str
    began: float


def run_hook(name: str, arguments: Sequence[str], directory: str) -> int:
    """Run one hook.

    Args:
        name: as git names the hook.
        arguments: what git gives it.
        directory: where git runs it.

    Returns:
        The exit code.

    Raises:
        PatchgateError: no verdict could be reached, or the hook is unknown.
    """
    at = _HOOKS.get(name)
    if at is None:
        raise UsageError(f"unknown hook {printable(name)}", f"use one of: {', '.join(_HOOKS)}")
    _sign_witness_file(name)
    return at(_HookCall(name, time.monotonic()), tuple(arguments), directory)


def _sign_witness_file(name: str) -> None:
    """Record for `doctor` that this hook was reached; the change is checked as usual."""
    place = os.environ.get(WITNESS)
    if place:
        with open(place, "a", encoding="utf-8") as file:
            file.write(f"{name} {__version__}\n")


def _skip_reason() -> str | None:
    """Read the reason to skip the local hooks of this command; None if they are not skipped.

    Raises:
        UsageError: the reason is empty or too short.
    """
    reason = os.environ.get(SKIP)
    if reason is None:
        return None
    from patchgate.check.message_rules import check_reason

    return check_reason(
        reason, SKIP, f'{SKIP}="the vendored files come from upstream 2.1" git …, or unset it'
    )


def _report_skip(what: str, reason: str) -> None:
    write_error(f"patchgate: {what} skipped the hooks ({printable(reason, 200)}); the push checks it")


def _on_commit(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    reason = _skip_reason()
    repository = open_repository(os.environ, directory)
    from patchgate.hooks.pre_commit import judge_commit, skip_commit

    if reason is not None:
        # The reference transaction records the skip with its commit; under a framework there is none.
        is_alone = _is_framework(os.environ)
        if is_alone:
            _report_skip("this commit", reason)
        for warning in skip_commit(repository, hook.name, reason, is_alone=is_alone):
            write_error(f"warning: {warning}")
        return 0
    heads = [found[1] for each in os.environ if (found := _HEAD.fullmatch(each))]
    merged = heads if hook.name == "pre-merge-commit" else ()
    left_out, why = _skipped_commands()
    with Progress(quiet=False) as progress:
        judged = judge_commit(
            repository,
            hook.name,
            os.environ,
            merged,
            leaves=not _is_framework(os.environ),
            commands=lambda: command_options(progress, left_out),
        )
    if left_out and not judged.stops:
        from patchgate.hooks.pre_commit import record_skipped_commands

        for warning in record_skipped_commands(repository, hook.name, why, left_out):
            write_error(f"warning: {warning}")
    return _finish(repository, hook, judged)


def _skipped_commands() -> tuple[tuple[str, ...], str]:
    """Read which commands of the policy are skipped at this commit, and why; none without the variable.

    Raises:
        UsageError: it does not name commands and a reason.
    """
    text = os.environ.get(SKIP_ONLY)
    if text is None:
        return (), ""
    from patchgate.check.message_rules import check_reason

    listed, _, reason = text.partition(":")
    names = tuple(filter(None, (name.strip() for name in listed.split(","))))
    like = f'{SKIP_ONLY}="ruff,format: the vendored files come from upstream 2.1" git …, or unset it'
    if not names:
        raise UsageError(f"{SKIP_ONLY} names no command", like)
    return names, check_reason(reason, SKIP_ONLY, like)


def _on_message(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    if _skip_reason() is not None:
        return 0
    if len(arguments) != 1:
        raise UsageError(
            "commit-msg takes one argument, the message file", "git patchgate hook commit-msg FILE"
        )
    repository = open_repository(os.environ, directory)
    from patchgate.hooks.commit_msg import judge_message

    # Git sets this if no editor was opened; then it keeps lines that look like comments.
    is_edited = os.environ.get("GIT_EDITOR") != ":"
    judged = judge_message(repository, arguments[0], os.environ, edited=is_edited)
    # The hook before this one has reported the config warnings.
    return _finish(repository, hook, judged, doubts=())


def _on_placeholders(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    """Check only placeholders, in the files that a framework names; git has no such hook."""
    if _skip_reason() is not None:
        return 0
    repository = open_repository(os.environ, directory)
    from patchgate.placeholders.placeholder_check import judge_placeholders

    first, last = (os.environ.get(f"PRE_COMMIT_{each}_REF") for each in ("FROM", "TO"))
    between = (first, last) if first and last and _is_framework(os.environ) else None
    judged = judge_placeholders(repository, hook.name, arguments, between)
    return _finish(repository, hook, judged, is_approvable=False)


def _on_ref(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    if arguments != ("prepared",):
        return 0
    lines = _read_lines()
    reason = _skip_reason() if b" refs/heads/" in lines else None
    repository = open_repository(os.environ, directory)
    from patchgate.hooks.reference_transaction import judge_transaction, skip_transaction
    from patchgate.report.wording import count

    if reason is not None:
        number, warnings = skip_transaction(repository, lines, reason, _process_above, _pusher_of)
        if number:
            _report_skip(count(number, "commit"), reason)
        for warning in warnings:
            write_error(f"warning: {warning}")
        return 0
    judged = judge_transaction(repository, lines, _command_at_work, _process_above, _pusher_of)
    # Commits that a hook has just accepted are not checked again, and no warning is repeated.
    return _finish(
        repository, hook, judged, doubts=repository.config_warnings if judged.report.changes else ()
    )


def _command_at_work() -> str:
    # Merges and pulls set GIT_REFLOG_ACTION (git); otherwise the parent process shows it.
    action = os.environ.get("GIT_REFLOG_ACTION", "").split(" ")[0]
    return action or _process_above()


def _process_above() -> str:
    # Anyone can set a variable; the parent process is git.
    from patchgate.git.operations import running_command

    return running_command(os.getppid())


def _pusher_of(repository: Repository) -> Repository | None:
    # Only called for a push into a repository that has intents.
    from patchgate.git.operations import pusher_of

    return pusher_of(repository, os.getppid())


def _on_push(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    repository = open_repository(os.environ, directory)
    from patchgate.check.hook_decision import HookDecision, blocks
    from patchgate.hooks.pre_push import judge_push, judge_unpushed

    progress = Progress(quiet=False)
    add_findings = partial(_run_at_push, repository, progress)
    if len(arguments) == 2:
        try:
            report = judge_push(
                repository,
                *arguments,
                _read_lines(),
                add_findings=add_findings,
                on_progress=progress.count,
                in_bulk=True,
            )
        finally:
            progress.end()
    elif _is_framework(os.environ) and not arguments:
        remote = os.environ.get("PRE_COMMIT_REMOTE_NAME") or "origin"
        pushed = (os.environ.get("PRE_COMMIT_REMOTE_BRANCH"), os.environ.get("PRE_COMMIT_TO_REF"))
        pairs = {pushed[0]: pushed[1]} if pushed[0] and pushed[1] else {}
        report = judge_unpushed(repository, remote, pairs, add_findings=add_findings, in_bulk=True)
    else:
        raise UsageError("pre-push takes a remote and its URL", "git patchgate hook pre-push REMOTE URL")
    stops = any(blocks(change, None) for change in report.changes)
    return _finish(repository, hook, HookDecision(report, stops), is_push=True)


def _run_at_push(
    repository: Repository,
    progress: Progress,
    remote: Remote,
    updates: Sequence[RefUpdate],
    brought: Mapping[str, Sequence[str]],
    report: Report,
) -> Report:
    """Run the commands of the policy on what the refs get, and verify the branches; report progress."""
    from patchgate.check.push_commands import with_push_commands

    try:
        report = with_push_commands(
            repository, remote, updates, brought, report, lambda: command_options(progress)
        )
        return _verify_push(repository, progress, remote, updates, report)
    finally:
        progress.end()


def _verify_push(
    repository: Repository,
    progress: Progress,
    remote: Remote,
    updates: Sequence[RefUpdate],
    report: Report,
) -> Report:
    """Verify what the branches get, if the policy asks for it."""
    from patchgate.verify.verify_push import branches_to_verify

    asking = branches_to_verify(repository, remote, updates)
    if asking is None:
        return report
    # Imported here, for most policies do not ask for it.
    from patchgate.verify.verify_push import verify_pushed

    return verify_pushed(repository, remote, asking, report, partial(analysis_environment, progress))


def _on_receive(hook: _HookCall, arguments: tuple[str, ...], directory: str) -> int:
    signal.signal(signal.SIGALRM, _too_long)
    # Repeated each second: an exception in a destructor or a callback is swallowed.
    signal.setitimer(signal.ITIMER_REAL, _RECEIVE_SECONDS, 1)
    try:
        try:
            repository = open_repository(os.environ, directory)
            from patchgate.hooks.pre_receive import judge_receive

            report = judge_receive(repository, _read_lines(), in_bulk=True)
        finally:
            # The report must not be interrupted.
            signal.setitimer(signal.ITIMER_REAL, 0)
    except PushTimeout:
        raise UndecidedError(
            f"the push took longer than {_RECEIVE_SECONDS} s to check", "push fewer commits at once"
        ) from None
    if report.warnings or any(change.findings for change in report.changes) or report.verdict != "accepted":
        _show_short(report)
    report_config_warnings(repository.config_warnings)
    return report.verdict.exit_code


def _too_long(number: int, frame: FrameType | None) -> None:
    raise PushTimeout


def _show_short(report: Report) -> None:
    """Report a push on the server: short lines for errors, only the number of the rest."""
    from patchgate.report import wording
    from patchgate.report.text import DEFAULT_LIMIT, concise

    report_failed_gates(report)
    for line in concise(report, DEFAULT_LIMIT).splitlines():
        write(f"patchgate: {line}\n")
    errors = [each for change in report.changes for each in change.findings if each.level == "error"]
    hints = dict.fromkeys(wording.hint_of(each) or "" for each in errors)
    for hint in list(hints)[:_HINTS]:
        write(f"patchgate: help: {wording.safe(hint)}\n")


def _is_framework(environ: Mapping[str, str]) -> bool:
    """Whether pre-commit or prek runs this hook; it has then consumed standard input."""
    return environ.get("PRE_COMMIT") == "1"


def _read_lines() -> bytes:
    """Read what git writes to standard input.

    Raises:
        UndecidedError: it is longer than the limit.
    """
    raw = sys.stdin.buffer.read(_MOST_LINES + 1)
    if len(raw) > _MOST_LINES:
        raise UndecidedError(
            "git updates more refs at once than patchgate reads", "update fewer refs at once"
        )
    return raw


def _finish(
    repository: Repository,
    hook: _HookCall,
    judged: HookDecision,
    *,
    is_push: bool = False,
    is_approvable: bool = True,
    doubts: Sequence[str] | None = None,
) -> int:
    """Print the report, if there is anything to report, and return the exit code that git gets.

    Args:
        is_approvable: whether `approve` sees the same refusal as this hook.
        doubts: the warnings about unusable values of the policy; None: all of them.
    """
    # `check` reports what libgit2 cannot read here; at each commit it would be noise.
    warnings = tuple(each for each in judged.report.warnings if each not in repository.limits)
    report = replace(judged.report, warnings=warnings)
    findings = any(change.findings for change in report.changes)
    if findings or report.warnings or report.verdict != "accepted":
        if judged.stops and is_approvable:
            from patchgate.approvals.apply_approvals import LOCAL, PUSH, approve_command

            place = PUSH if is_push else LOCAL
            report = replace(report, approve=approve_command(repository, report, place=place))
        show(report, "full", "auto", verbose=False, quiet=False)
    report_config_warnings(repository.config_warnings if doubts is None else doubts)
    _record_slow(repository, hook, judged.report)
    if not judged.stops:
        if report.verdict != "accepted":
            write_error("patchgate: warning only ([hooks] mode of the policy); nothing was stopped")
        return 0
    return report.verdict.exit_code or 1


def _record_slow(repository: Repository, hook: _HookCall, report: Report) -> None:
    """Record a hook that took longer than the policy allows ([hooks] budget_ms)."""
    allowed = {change.policy.budget_ms for change in report.changes}
    allowed |= {report.cleared.budget_ms} if report.cleared is not None else set()
    budgets = [each for each in allowed if each is not None]
    taken = round(1000 * (time.monotonic() - hook.began))
    if not budgets or taken <= min(budgets):
        return
    from patchgate.check.hook_decision import record_slow

    warning = record_slow(repository, hook.name, taken, min(budgets))
    if warning:
        write_error(f"warning: {warning}")


_HOOKS: dict[str, Callable[[_HookCall, tuple[str, ...], str], int]] = {
    "pre-commit": _on_commit,
    "pre-merge-commit": _on_commit,
    "commit-msg": _on_message,
    "reference-transaction": _on_ref,
    "pre-push": _on_push,
    "pre-receive": _on_receive,
    "placeholders": _on_placeholders,
}
