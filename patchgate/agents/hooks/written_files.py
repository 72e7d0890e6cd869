"""Judge what a tool of a coding agent is about to make of its files, as `check` would judge the result.

A file outside of any repository that uses patchgate is not judged, nor one that git ignores. Git's own folder
may not be written, and neither the files from which agents read their hooks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.agents.hooks.hook_input import FileCall, PatchCall
from patchgate.agents.hooks.kept_files import changes_policy, use_of_settings
from patchgate.agents.hooks.places import (
    Place,
    below_git,
    enclosing_places,
    is_in_git_folder,
    uses_patchgate,
)
from patchgate.agents.hooks.tool_effects import FileEffect, effects_of
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Finding

_MOST_FILE = 64 << 20
_BY_CONTENT = frozenset(
    {
        "deny-content",
        "secret",
        "conflict-marker",
        "max-added-lines",
        "max-file-bytes",
        "lock-without-manifest",
    }
)


def judge_files(
    call: FileCall | PatchCall, folder: str, environ: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    """Judge what a call writes; return why it is refused (empty if it is not), and notes.

    Args:
        folder: where relative paths start.
        environ: the environment that git gets.

    Raises:
        PatchgateError: it could not be judged.
    """
    groups: dict[Place, dict[str, FileEffect]] = {}
    for effect in effects_of(call, lambda path: _read(os.path.join(folder, path))):
        place_of_file = os.path.realpath(os.path.join(folder, effect.path))
        use = use_of_settings(place_of_file, environ)
        if use is not None:
            return _kept(effect.path, use), ()
        if is_in_git_folder(place_of_file, folder):
            return _own_folder(effect.path), ()
        above = below_git(place_of_file)
        inside = above if above is not None else os.path.dirname(place_of_file)
        for number, place in enumerate(enclosing_places(inside)):
            path = os.path.relpath(place_of_file, place.root)
            if not uses_patchgate(place) or (number > 0 and not _is_tracked(place, path, environ)):
                continue
            if above is not None and number == 0:
                return _own_folder(effect.path), ()
            if changes_policy(path, _read(place_of_file), effect.content):
                return _kept(effect.path, "a part of the policy"), ()
            groups.setdefault(place, {})[path] = effect
    for place, effects in groups.items():
        refusal = _judge_group(place, effects, environ)
        if refusal:
            return refusal, ()
    unknown = [each.path for group in groups.values() for each in group.values() if not each.is_known]
    return "", tuple(_unknown(path) for path in unknown[:1])


def _is_tracked(place: Place, path: str, environ: Mapping[str, str]) -> bool:
    """Return whether a repository tracks a file that is inside of a nested one."""
    from patchgate.git.repository import open_repository

    asked = f":(top,literal){path}"
    listed = open_repository(environ, place.root).git("ls-files", "-z", "--", asked, in_work_tree=True)
    return bool(listed.out)


def _kept(path: str, use: str) -> str:
    from patchgate.agents.hooks.refusals import describe, kept_finding

    return describe([kept_finding(path, use)])


def _own_folder(path: str) -> str:
    from patchgate.agents.hooks.refusals import describe
    from patchgate.git.quoting import printable
    from patchgate.report.verdict import Finding

    message = f"{printable(path, 200)} is inside of git's own folder"
    return describe([Finding.of("path-git-dir", message, hint="leave it as it is; use git's commands")])


def _unknown(path: str) -> str:
    from patchgate.git.quoting import printable

    return f"patchgate judged only the name of {printable(path, 200)}; the git hooks judge what is written"


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_FILE)
    except (OSError, ValueError):
        return None


def _judge_group(place: Place, effects: Mapping[str, FileEffect], environ: Mapping[str, str]) -> str:
    """Judge the files of one repository; return why they are refused."""
    from patchgate.agents.hooks.quick_files import are_ordinary

    contents = {os.fsencode(path): each.content for path, each in effects.items()}
    if all(each.is_known for each in effects.values()) and are_ordinary(place, contents):
        return ""
    # What follows imports the whole pipeline, which takes longer than all before.
    from patchgate.agents.hooks.refusals import describe, require_verdict
    from patchgate.check.pending import check_contents
    from patchgate.check.policy_lookup import trusted_options
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import open_repository
    from patchgate.hooks.fast.renewal import renew_at_head
    from patchgate.policy.policy import Profile

    repository = open_repository(environ, place.root)
    asked = replace(trusted_options(repository), profile=Profile.AGENT)
    known = {RepoPath.from_git(os.fsencode(path)): each for path, each in effects.items()}
    report = check_contents(repository, asked, {path: each.content for path, each in known.items()})
    (change,) = report.changes
    refusing = [finding for finding in change.findings if _counts(finding, known)]
    if refusing:
        ignored = _ignored(repository, list(known))
        refusing = [each for each in refusing if each.path not in ignored or each.rule == "agent-settings"]
        return describe(refusing) if refusing else ""
    require_verdict(report)
    renew_at_head(repository, for_agents=True)
    return ""


def _counts(finding: Finding, effects: Mapping[RepoPath, FileEffect]) -> bool:
    """Whether a finding refuses: not where it is about a text of which only the file's name is known."""
    if finding.level != "error":
        return False
    effect = effects.get(finding.path) if finding.path is not None else None
    is_guessed = effect is not None and not effect.is_known
    return not (is_guessed and (finding.rule in _BY_CONTENT or finding.line is not None))


def _ignored(repository: Repository, paths: Sequence[RepoPath]) -> list[RepoPath]:
    """List the paths that git ignores: untracked, and excluded."""
    from patchgate.git.path import RepoPath

    stdin = b"".join(path.raw + b"\0" for path in paths)
    done = repository.git("check-ignore", "-z", "--stdin", stdin=stdin, answers=(0, 1), in_work_tree=True)
    return [RepoPath.from_git(name) for name in done.out.split(b"\0") if name]
