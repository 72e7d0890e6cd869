"""Answer the event of a coding agent: judge a write, a command, or the working tree at a stop.

What is imported here is what each answer costs; the pipeline is imported where a change is really judged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from patchgate.agents.hooks.answers import EventAnswer
from patchgate.agents.hooks.hook_input import HookEvent, PatchCall, ShellCall
from patchgate.agents.hooks.kept_files import (
    is_policy_by_name,
    use_of_settings,
)
from patchgate.agents.hooks.places import (
    Place,
    below_git,
    enclosing_places,
    find_place,
    is_in_git_folder,
    uses_patchgate,
)

if TYPE_CHECKING:
    from patchgate.agents.shell.git_words import ForcedPush
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Finding

SESSION_TOKENS = 1500
_SESSION = (
    "patchgate checks what you write, each commit, and the whole working tree when you stop; --no-verify and "
    "other hooks are refused. git patchgate explain RULE says how to satisfy a rule."
)
_NOT_OURS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
_LEFT = "patchgate did not judge all of this command, so the git hooks decide"


def answer_event(event: HookEvent, folder: str, environ: Mapping[str, str]) -> EventAnswer:
    """Answer one event.

    Args:
        event: what the agent sent.
        folder: where the process runs, for an agent that does not say where it works.
        environ: the environment of the process; variables that name another repository do not count.

    Raises:
        PatchgateError: it could not be judged.
    """
    environ = {name: value for name, value in environ.items() if name not in _NOT_OURS}
    folder = os.path.join(folder, event.folder)
    if event.kind == "tool":
        if event.call is None:
            return EventAnswer()
        if isinstance(event.call, ShellCall):
            return _judge_command(event.call, os.path.join(folder, event.call.folder), environ)
        from patchgate.agents.hooks.written_files import judge_files

        refusal, notes = judge_files(event.call, folder, environ)
        return EventAnswer(refusal, notes)
    place = find_place(os.path.realpath(folder))
    if place is None or not uses_patchgate(place):
        return EventAnswer()
    if event.kind == "session":
        return _begin_session(place.root, environ)
    return _judge_stop(event, place.root, environ)


def _judge_command(call: ShellCall, folder: str, environ: Mapping[str, str]) -> EventAnswer:
    from patchgate.agents.shell.shell_rules import judge_command

    variables = {name: environ[name] for name in _VARIABLES if environ.get(name)}
    ruling = judge_command(call.command, lambda path: _protection(path, folder, environ), variables)
    findings = ruling.findings if ruling.refusals else []
    for push in ruling.forced:
        findings += _judge_push(push, folder, environ)
    if ruling.clears_intent:
        findings += _judge_clear(folder)
    if findings:
        from patchgate.agents.hooks.refusals import describe

        return EventAnswer(describe(findings))
    notes = [f"{_LEFT}: {'; '.join(ruling.left[:3])}"] if ruling.left else []
    for inside, text in ruling.patches:
        refusal, more = _judge_patch(text, os.path.join(folder, inside), environ)
        if refusal:
            return EventAnswer(refusal)
        notes += more
    return EventAnswer(notes=tuple(notes))


def _judge_patch(text: str, folder: str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Judge an envelope that goes through the shell as one that the agent's own tool applies."""
    from patchgate.agents.hooks.written_files import judge_files

    return judge_files(PatchCall(text), folder, environ)


def _protection(path: str, folder: str, environ: Mapping[str, str]) -> str | None:
    """Say what a path is that no command may write; None for any other."""
    if path.startswith("~/"):
        path = environ.get("HOME", "~") + path[1:]
    is_known = "\0" not in path
    place = os.path.normpath(os.path.join(folder, path))
    for each in {place, os.path.realpath(place)} if is_known else {place}:
        above = below_git(each)
        is_ours = above is not None and (not is_known or _is_ours(above))
        if is_ours or (is_known and is_in_git_folder(each, folder)):
            return "in git's own folder"
        if is_known and (use := use_of_settings(each, environ)) is not None:
            return use
        if is_known and any(map(_is_policy_of(each), enclosing_places(os.path.dirname(each)))):
            return "a part of the policy"
        if _is_settings(each) and (not is_known or _is_ours(os.path.dirname(each))):
            return "where a coding agent reads its hooks"
    return None


def _is_policy_of(path: str) -> Callable[[Place], bool]:
    return lambda place: is_policy_by_name(os.path.relpath(path, place.root)) and uses_patchgate(place)


def _is_ours(folder: str) -> bool:
    place = find_place(folder)
    return place is not None and uses_patchgate(place)


def _is_settings(path: str) -> bool:
    """Whether a file may be one of agents' settings, by its name; asked before anything heavy is imported."""
    small = path.casefold()
    if not any(name in small for name in ("/.claude/", "/.codex", "/.cursor/", "/.gemini/")):
        return False
    from patchgate.git.path import RepoPath
    from patchgate.policy.file_kinds import is_agent_settings

    return is_agent_settings(RepoPath.from_git(os.fsencode(path.lstrip("/"))))


def _judge_push(push: ForcedPush, folder: str, environ: Mapping[str, str]) -> list[Finding]:
    place = find_place(os.path.realpath(folder))
    if place is None or not uses_patchgate(place):
        return []
    from patchgate.agents.shell.forced_pushes import protected_refs_of
    from patchgate.agents.shell.shell_rules import RULE
    from patchgate.git.quoting import printable
    from patchgate.git.repository import open_repository
    from patchgate.report.verdict import Finding

    hint = "push a new branch, and ask a maintainer to merge it"
    refs = protected_refs_of(open_repository(environ, place.root), push)
    return [
        Finding.of(
            RULE, f"the command forces or deletes {printable(ref, 120)}, which is protected", hint=hint
        )
        for ref in refs[:1]
    ]


def _judge_clear(folder: str) -> list[Finding]:
    """Refuse to end a piece of work while one has a budget: the agent could begin another without."""
    place = find_place(os.path.realpath(folder))
    if place is None or not uses_patchgate(place):
        return []
    from patchgate.agents.shell.shell_rules import RULE
    from patchgate.intents.stored_intents import StoredIntents
    from patchgate.report.verdict import Finding

    hint = "leave it; a maintainer ends that work"
    return [
        Finding.of(RULE, f"the command ends an intent while {each.id} has a budget", hint=hint)
        for each in StoredIntents(place.common_dir).all()
        if each.budget.written
    ][:1]


def _begin_session(root: str, environ: Mapping[str, str]) -> EventAnswer:
    from patchgate.agents.brief import brief_text, count_tokens
    from patchgate.git.repository import open_repository

    room = SESSION_TOKENS - count_tokens(_SESSION) - 1
    brief = brief_text(open_repository(environ, root), room)
    return EventAnswer(context=f"{brief}\n{_SESSION}")


def _judge_stop(event: HookEvent, root: str, environ: Mapping[str, str]) -> EventAnswer:
    """Judge the working tree as `check --worktree --profile agent` does; refuse only once."""

    from patchgate.agents.hooks.refusals import describe, require_verdict
    from patchgate.check.pending import check_pending
    from patchgate.check.policy_lookup import trusted_options
    from patchgate.git.repository import open_repository
    from patchgate.policy.policy import Profile
    from patchgate.values import replace

    repository = open_repository(environ, root)
    asked = replace(trusted_options(repository), profile=Profile.AGENT)
    report = check_pending(repository, asked, whole_tree=True)
    found = [each for change in report.changes for each in change.findings if each.level == "error"]
    errors = [each for each in found if not _was_installed(each, repository)]
    if not errors:
        if not found:
            require_verdict(report)
        return EventAnswer()
    refusal = describe(errors)
    if event.is_repeated:
        return EventAnswer(notes=(f"The working tree is still refused; it was said once.\n{refusal}",))
    return EventAnswer(f"{refusal}\nThe working tree cannot be committed like this: fix it, or say why not.")


def _was_installed(finding: Finding, repository: Repository) -> bool:
    """Whether settings are refused that `agent install` has just written, and nobody has changed since."""
    if finding.rule != "agent-settings" or finding.path is None:
        return False
    from patchgate.agents.settings.install import is_as_installed, record_of

    path = os.path.join(repository.work_tree or "", os.fsdecode(finding.path.raw))
    return is_as_installed(path, record_of(repository.common_dir))
