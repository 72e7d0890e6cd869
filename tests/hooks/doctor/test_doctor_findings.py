"""What doctor finds: which file runs at each event of each worktree, and whether it reaches patchgate."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from patchgate import __version__
from patchgate.git.active_hooks import (
    LOCAL_EVENTS,
    SERVER_EVENTS,
    ConfigHook,
    GitEnvironment,
    Worktree,
    list_worktree_hooks,
)
from patchgate.git.hook_managers import read_hook
from patchgate.git.repository import open_repository
from patchgate.hooks.doctor import Diagnosis, examine
from patchgate.hooks.doctor_hooks import DoctorFinding, quoted
from patchgate.hooks.fast.renewal import write_copy
from patchgate.intents.intent_file import MARKER
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import Receipts, settle
from patchgate.report.rules import Level
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)


def put(folder: Path, *events: str, text: str = "") -> None:
    """Put hooks of ours into a folder, as short as they can be, and what install puts beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    common_dir = next((each for each in (folder.parent, folder.parents[1]) if (each / "HEAD").exists()), None)
    if common_dir is not None:
        assert write_copy(str(common_dir), sys.executable) is None
    for event in events or LOCAL_EVENTS:
        body = text or f'version={__version__}\npatchgate={EXECUTABLE}\nexec "$patchgate" hook {event} "$@"\n'
        write_hook(folder / event, f"#!/bin/sh\n# patchgate hook 1\n{body}")


def write_hook(place: Path, text: str, *, mode: int = 0o755) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    place.chmod(mode)
    return place


def installed(folder: Path, *arguments: str, policy: str = "[policy]\n") -> Repo:
    """A repository with one commit, a policy and every local hook."""
    repo = Repo.create(folder, *arguments)
    repo.policy(policy)
    put(repo.path / ".git" / "hooks")
    return repo


def examined(repo: Repo, env: Mapping[str, str] | None = None, *, cwd: Path | None = None) -> Diagnosis:
    environ = repo.env | dict(env or {})
    return examine(open_repository(environ, str(cwd or repo.path)), environ)


def seen(repo: Repo, **env: str) -> list[Worktree]:
    environ = repo.env | env
    return list_worktree_hooks(GitEnvironment(open_repository(environ, str(repo.path)), environ))


def findings(diagnosis: Diagnosis) -> list[DoctorFinding]:
    return [each for place in diagnosis.worktree_hooks for each in place.findings] + [*diagnosis.findings]


def only(diagnosis: Diagnosis) -> DoctorFinding:
    (found,) = findings(diagnosis)
    return found


def said(diagnosis: Diagnosis, level: Level) -> str:
    return "\n".join(each.what for each in findings(diagnosis) if each.level is level)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# The hooks of a worktree


def test_hooks_of_ours_are_proved_by_an_answer_of_each_of_them(tmp_path: Path) -> None:
    diagnosis = examined(installed(tmp_path))
    (place,) = diagnosis.worktree_hooks
    assert [hook.event for hook in place.hooks] == list(LOCAL_EVENTS)
    assert all(hook.is_reached and hook.answer and hook.answer.code == 0 for hook in place.hooks)
    assert (findings(diagnosis), diagnosis.runs) == ([], True)


def test_a_repository_before_its_first_commit_is_proved_too(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    put(repo.path / ".git" / "hooks")
    diagnosis = examined(repo)
    assert all(hook.is_reached for hook in diagnosis.worktree_hooks[0].hooks)
    assert findings(diagnosis) == []


def test_asking_changes_nothing_of_the_repository(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.stage({"staged.txt": "x\n"})
    repo.write("loose.txt")
    (repo.path / ".git" / "patchgate-pending").write_bytes(
        b"a receipt of a commit that waits for its message"
    )
    examined(repo)
    before = everything(repo.path)
    examined(repo)
    assert everything(repo.path) == before


def test_a_repository_without_hooks_is_told_what_to_run(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    found = only(examined(repo))
    assert (found.level, found.remedy, found.is_fixed_by_install) == ("error", "git patchgate install", True)
    assert found.events == LOCAL_EVENTS
    assert f"{repo.path}/.git/hooks" in found.what


def test_foreign_hooks_where_nothing_of_ours_is_are_named(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    write_hook(repo.path / ".git/hooks/pre-push", "#!/bin/sh\ncommand -v git-lfs && git lfs pre-push\n")
    assert "pre-push (git-lfs)" in only(examined(repo)).what


def test_a_missing_hook_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    (repo.path / ".git/hooks/reference-transaction").unlink()
    found = only(examined(repo))
    assert (found.level, found.events) == (Level.ERROR, ("reference-transaction",))
    assert (found.remedy, found.is_fixed_by_install) == ("git patchgate install", True)


def test_a_hook_that_may_not_be_executed_is_an_error_as_git_passes_over_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    (repo.path / ".git/hooks/pre-push").chmod(0o644)
    diagnosis = examined(repo)
    assert (only(diagnosis).level, only(diagnosis).events) == (Level.ERROR, ("pre-push",))
    assert "executable" in only(diagnosis).what
    assert diagnosis.worktree_hooks[0].hooks[3].answer is None


def test_a_folder_in_a_hooks_place_is_an_error_with_the_line_that_moves_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    place = repo.path / ".git/hooks/commit-msg"
    place.unlink()
    place.mkdir()
    found = only(examined(repo))
    assert found.level is Level.ERROR
    assert not found.is_fixed_by_install
    assert found.remedy is not None
    subprocess.run(["sh", "-c", found.remedy], check=True)
    assert not place.exists()


def test_a_foreign_hook_over_ours_is_an_error_and_is_never_started(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    trace = tmp_path / "it-ran"
    write_hook(repo.path / ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {trace}\n")
    diagnosis = examined(repo)
    found = only(diagnosis)
    assert (found.level, found.events) == (Level.ERROR, ("pre-commit",))
    assert "script" in found.what
    assert not trace.exists()
    assert diagnosis.worktree_hooks[0].hooks[0].answer is None


def test_a_foreign_hook_that_was_put_over_ours_leaves_the_first_one_out_too(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    hooks = repo.path / ".git/hooks"
    write_hook(hooks / "pre-commit", "#!/bin/sh\ncall_lefthook run\n")
    write_hook(hooks / "pre-commit.patchgate-prev", "#!/bin/sh\n")
    found = only(examined(repo))
    assert (found.level, found.events) == (Level.ERROR, ("pre-commit",))
    assert "pre-commit.patchgate-prev" in found.what


FRAMEWORK = "#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\nexit 0\n"


def moved_away(repo: Repo, event: str, suffix: str, text: str) -> Path:
    """Do as a tool does that puts its hook in our place, and give where ours is then."""
    hook = repo.path / ".git/hooks" / event
    moved = hook.rename(hook.with_name(event + suffix))
    write_hook(hook, text)
    return moved


def test_a_hook_of_ours_that_nobody_runs_any_more_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    moved_away(repo, "pre-commit", ".old", "#!/bin/sh\ncall_lefthook run pre-commit\n")
    found = only(examined(repo))
    assert found.what.index("lefthook") < found.what.index("pre-commit.old")
    assert (found.level, found.events, found.is_fixed_by_install) == (Level.ERROR, ("pre-commit",), True)


def test_a_hook_of_ours_that_a_framework_runs_before_its_own_is_a_warning_and_is_proved(
    tmp_path: Path,
) -> None:
    repo = installed(tmp_path)
    moved = moved_away(repo, "pre-commit", ".legacy", FRAMEWORK)
    diagnosis = examined(repo)
    assert "pre-commit.legacy" in only(diagnosis).what
    assert (only(diagnosis).level, only(diagnosis).is_fixed_by_install) == (Level.WARNING, True)
    assert diagnosis.worktree_hooks[0].hooks[0].is_reached
    write_hook(moved, "#!/bin/sh\n# patchgate hook 1\nexit 0\n")
    assert "pre-commit.legacy" in only(examined(repo)).what
    assert (only(examined(repo)).level, examined(repo).runs) == (Level.ERROR, False)


def test_a_legacy_hook_before_a_tool_that_does_not_run_it_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    moved_away(repo, "pre-commit", ".legacy", "#!/bin/sh\nmake lint\n")
    diagnosis = examined(repo)
    assert "pre-commit.legacy" in only(diagnosis).what
    assert (only(diagnosis).level, diagnosis.runs) == (Level.ERROR, False)
    assert diagnosis.worktree_hooks[0].hooks[0].answer is None


def test_a_tool_before_our_pre_push_is_told_to_read_the_refs_first(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    moved = moved_away(repo, "pre-push", ".legacy", FRAMEWORK.replace("pre-commit", "prek"))
    found = only(examined(repo))
    assert (found.level, found.events) == (Level.WARNING, ("pre-push",))
    assert "prek" in found.what
    assert "refs" in found.what
    moved.chmod(0o644)
    assert only(examined(repo)).level is Level.ERROR


def test_a_hook_of_ours_that_reaches_nobody_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    put(repo.path / ".git/hooks", "commit-msg", text="echo 'first\nit \033[31mis gone' >&2\nexit 1\n")
    found = only(examined(repo))
    assert found.level is Level.ERROR
    assert found.what.endswith(": it \\x1b[31mis gone")


def test_a_hook_with_an_interpreter_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    write_hook(repo.path / ".git/hooks/pre-commit", "#!/no/such/sh\n# patchgate hook 1\n")
    diagnosis = examined(repo)
    assert (only(diagnosis).level, only(diagnosis).events) == (Level.ERROR, ("pre-commit",))
    answer = diagnosis.worktree_hooks[0].hooks[0].answer
    assert answer is None or answer.version is None


def test_an_answer_for_another_event_proves_nothing(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    put(repo.path / ".git/hooks", "pre-push", text=f"exec {EXECUTABLE} hook commit-msg x\n")
    assert only(examined(repo)).level is Level.ERROR


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        (f"version=0.0.9\nexec {EXECUTABLE} hook pre-push a b\n", "installed"),
        ('echo pre-push 0.0.9 >"$PATCHGATE_WITNESS"\n', "runs"),
    ],
)
def test_a_hook_of_another_patchgate_is_a_warning(tmp_path: Path, text: str, verb: str) -> None:
    repo = installed(tmp_path)
    put(repo.path / ".git/hooks", "pre-push", text=text)
    diagnosis = examined(repo)
    found = only(diagnosis)
    assert (found.level, found.events) == (Level.WARNING, ("pre-push",))
    assert all(word in found.what for word in (verb, "patchgate 0.0.9", __version__))
    assert (found.is_fixed_by_install, diagnosis.runs) == (True, True)


def test_a_hook_of_another_format_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    write_hook(
        repo.path / ".git/hooks/pre-push",
        f"#!/bin/sh\n# patchgate hook 7\nexec {EXECUTABLE} hook pre-push a b\n",
    )
    found = only(examined(repo))
    assert (found.level, found.events) == (Level.WARNING, ("pre-push",))
    assert "format" in found.what


def test_a_hook_that_was_installed_with_a_program_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    text = "patchgate='/gone with spaces/git-patchgate'\nexec git-patchgate hook pre-push a b\n"
    put(repo.path / ".git/hooks", "pre-push", text=text)
    found = only(examined(repo))
    assert "/gone with spaces/git-patchgate" in found.what
    assert (found.level, found.is_fixed_by_install) == (Level.WARNING, True)


def test_a_hook_whose_recorded_python_is_gone_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    text = (
        f"patchgate={EXECUTABLE} interpreter='/gone with spaces/python'\nexec $patchgate hook pre-push a b\n"
    )
    put(repo.path / ".git/hooks", "pre-push", text=text)
    found = only(examined(repo))
    assert "/gone with spaces/python" in found.what
    assert (found.level, found.is_fixed_by_install) == (Level.WARNING, True)


def test_a_hook_that_needs_the_users_path_is_a_warning_for_programs_that_have_none(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    for event in LOCAL_EVENTS:
        put(repo.path / ".git/hooks", event, text=f"exec git-patchgate hook {event} a b\n")
    diagnosis = examined(repo)
    assert diagnosis.runs
    assert "/usr/bin:/bin" in only(diagnosis).what
    assert "git-patchgate: not found" in only(diagnosis).what


def test_a_hook_that_fails_with_the_bare_path_alone_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    text = f"{EXECUTABLE} hook pre-commit\ncase $PATH in *:{EXECUTABLE.parent}:*) exit 0 ;; esac\nexit 3\n"
    put(repo.path / ".git/hooks", "pre-commit", text=text)
    found = only(examined(repo))
    assert "/usr/bin:/bin" in found.what
    assert "exits with 3" in found.what
    assert (found.level, found.is_fixed_by_install) == (Level.WARNING, False)


def test_a_hook_that_refuses_even_a_change_of_nothing_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    text = f"{EXECUTABLE} hook pre-push a b\necho 'no space' >&2\nexit 3\n"
    put(repo.path / ".git/hooks", "pre-push", text=text)
    found = only(examined(repo))
    assert (found.level, found.remedy) == (Level.WARNING, "git patchgate check")
    assert found.what.endswith("exits with 3: no space")


def test_the_hook_that_is_chained_is_named_and_one_that_cannot_run_is_told(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    previous = write_hook(repo.path / ".git/hooks/pre-commit.patchgate-prev", "#!/bin/sh\n. husky.sh\n")
    diagnosis = examined(repo)
    assert diagnosis.worktree_hooks[0].hooks[0].previous == read_hook(str(previous))
    assert read_hook(str(previous)).writer == "husky"
    assert findings(diagnosis) == []
    previous.chmod(0o644)
    found = only(examined(repo))
    assert (found.level, found.remedy) == (Level.NOTE, f"chmod +x {previous}")


@pytest.mark.parametrize(
    ("text", "writer"),
    [
        ("#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n", "pre-commit"),
        ("#!/bin/sh\n# File generated by prek: https://github.com/j178/prek\n", "prek"),
        ('#!/bin/sh\nif [ "$LEFTHOOK" = 0 ]; then exit; fi\ncall_lefthook run\n', "lefthook"),
        ('#!/bin/sh\n. "$(dirname "$0")/_/husky.sh"\n', "husky"),
        ('#!/bin/sh\ngit lfs pre-push "$@"\n', "git-lfs"),
        ("#!/usr/bin/env ruby\n# Entrypoint for Overcommit hook integration.\n", "overcommit"),
        ("#!/bin/sh\nmake lint\n", "script"),
        ("\x7fELF\x02", "program"),
        ("#!/bin/sh\n\n# patchgate hook 1\n", "script"),
        ("# patchgate hook 1\n", "program"),
    ],
)
def test_whose_hook_it_is_is_known_by_what_the_tools_write(tmp_path: Path, text: str, writer: str) -> None:
    hook = read_hook(str(write_hook(tmp_path / "pre-commit", text)))
    assert (hook.writer, hook.is_ours) == (writer, False)


def test_a_hook_in_huskys_own_folder_is_huskys_whatever_it_says(tmp_path: Path) -> None:
    place = write_hook(tmp_path / ".husky/_/pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    assert read_hook(str(place)).writer == "husky"


# Where git looks for hooks


def test_hooks_path_dev_null_is_one_error_with_the_line_that_takes_it_back(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "core.hooksPath", "/dev/null")
    diagnosis = examined(repo)
    found = only(diagnosis)
    assert found.what.startswith("core.hooksPath is /dev/null (local config, ")
    assert (found.level, found.is_fixed_by_install, diagnosis.worktrees_to_install) == (
        Level.ERROR,
        False,
        (),
    )
    assert found.remedy is not None
    subprocess.run(["sh", "-c", found.remedy], check=True, env=repo.env)
    assert findings(examined(repo)) == []


def test_a_worktrees_own_hooks_path_is_told_for_that_worktree_alone(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    repo.git("config", "extensions.worktreeConfig", "true")
    linked = repo.at(tmp_path / "linked")
    linked.git("config", "--worktree", "core.hooksPath", "/dev/null")
    main, other = examined(repo).worktree_hooks
    assert (main.runs, main.findings) == (True, ())
    assert other.worktree.path == str(linked.path)
    assert other.findings[0].what.startswith("core.hooksPath is /dev/null (worktree config, ")
    assert other.findings[0].remedy is not None
    subprocess.run(["sh", "-c", other.findings[0].remedy], check=True, env=repo.env)
    assert examined(repo).runs


def test_a_worktree_with_a_folder_of_hooks_of_its_own_is_mended_there(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "--detach", "../linked tree")
    repo.git("config", "extensions.worktreeConfig", "true")
    linked = repo.at(tmp_path / "linked tree")
    linked.git("config", "--worktree", "core.hooksPath", "own")
    put(linked.path / "own", "pre-commit", "commit-msg")
    diagnosis = examined(repo)
    assert [hook.is_reached for hook in diagnosis.worktree_hooks[1].hooks] == [
        True,
        False,
        True,
        False,
        False,
    ]
    remedies = {each.remedy for each in diagnosis.worktree_hooks[1].findings}
    assert remedies == {f"git -C '{linked.path}' patchgate install"}
    assert [each.path for each in diagnosis.worktrees_to_install] == [str(linked.path)]


@pytest.mark.parametrize("value", ["own/hooks", "~/hooks"])
def test_a_relative_hooks_path_and_one_at_home_are_found_as_git_finds_them(
    tmp_path: Path, value: str
) -> None:
    repo = installed(tmp_path)
    repo.git("config", "core.hooksPath", value)
    place = repo.path / value if value.startswith("own") else tmp_path / "home/hooks"
    put(place)
    (repo.path / "sub").mkdir()
    for cwd in (repo.path, repo.path / "sub"):
        diagnosis = examined(repo, cwd=cwd)
        assert diagnosis.worktree_hooks[0].worktree.folder == str(place)
        assert all(hook.is_reached for hook in diagnosis.worktree_hooks[0].hooks)


def test_a_global_hooks_path_is_not_mended_without_a_question(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "--global", "core.hooksPath", str(tmp_path / "shared"))
    diagnosis = examined(repo)
    found = only(diagnosis)
    assert f"core.hooksPath is {tmp_path}/shared (global config, {tmp_path}/home/.gitconfig)" in found.what
    assert (found.remedy, diagnosis.worktrees_to_install) == ("git patchgate install --global", ())


def test_a_hooks_path_of_the_environment_counts_as_it_does_for_git(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "/dev/null"}
    diagnosis = examined(repo, env)
    found = only(diagnosis)
    assert found.what.startswith("core.hooksPath is /dev/null (git -c or GIT_CONFIG_* variables)")
    assert found.remedy == "unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS"
    put(tmp_path / "elsewhere")
    env["GIT_CONFIG_VALUE_0"] = str(tmp_path / "elsewhere")
    (repo.path / ".git/hooks/pre-commit").unlink()
    assert findings(examined(repo, env)) == []
    env["GIT_CONFIG_VALUE_0"] = str(tmp_path / "empty")
    diagnosis = examined(repo, env)
    assert (diagnosis.runs, diagnosis.worktrees_to_install) == (False, ())


def test_system_config_and_included_files_are_named_with_their_file(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    system, included = tmp_path / "system", tmp_path / "included"
    system.write_text("[core]\n\thooksPath = /dev/null\n")
    told = examined(repo, {"GIT_CONFIG_SYSTEM": str(system), "GIT_CONFIG_NOSYSTEM": "0"})
    assert f"(system config, {system})" in only(told).what
    included.write_text("[core]\n\thooksPath = /dev/null\n")
    repo.git("config", "include.path", str(included))
    found = only(examined(repo))
    assert f"(local config, {included})" in found.what
    assert found.remedy == f"git config --file {included} --unset-all core.hooksPath"


def test_the_narrowest_scope_wins_as_for_git(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "--global", "core.hooksPath", "/dev/null")
    repo.git("config", "core.hooksPath", str(repo.path / ".git/hooks"))
    assert findings(examined(repo)) == []
    setting = seen(repo)[0].hooks_path
    assert setting is not None
    assert setting.scope == "local"


def test_an_empty_hooks_path_makes_git_look_in_the_root_folder(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "core.hooksPath", "")
    assert seen(repo)[0].files["pre-commit"].path == "/pre-commit"
    assert not examined(repo).runs


# Hooks that config names


def other_git(folder: Path, version: str) -> dict[str, str]:
    """A git that says it is another version, and is the real one for all else."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout
    text = f'#!/bin/sh\n[ "$*" != version ] || exec echo git version {version}\nexec {real.strip()} "$@"\n'
    write_hook(folder / version / "git", text)
    return {"PATH": f"{folder / version}:{EXECUTABLE.parent}:{os.environ['PATH']}"}


def test_hooks_that_config_names_are_ignored_by_an_older_git_and_that_is_told(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "hook.lint.command", "make lint")
    repo.git("config", "hook.lint.event", "pre-commit")
    older = other_git(tmp_path, "2.53.0")
    found = only(examined(repo, older))
    assert found.level is Level.NOTE
    assert found.what.startswith("hook.lint (local config, pre-commit) ")
    assert found.what.index("git 2.53.0") < found.what.index("2.54 ")
    repo.git("config", "hook.lint.command", "git-patchgate hook pre-commit")
    found = only(examined(repo, older))
    assert (found.level, found.remedy) == (Level.WARNING, "git patchgate install")


def test_hooks_that_config_names_are_told_where_git_runs_them(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    newer = other_git(tmp_path, "2.55.0")
    repo.git("config", "--global", "hook.lint.command", "make lint")
    repo.git("config", "--global", "hook.lint.event", "pre-commit")
    found = only(examined(repo, newer))
    assert (found.level, found.remedy) == (Level.NOTE, None)
    assert found.what.startswith("hook.lint (global config) ")
    assert found.what.endswith(" at pre-commit")
    repo.git("config", "--global", "hook.lint.command", "git patchgate hook pre-commit")
    found = only(examined(repo, newer))
    assert found.level is Level.WARNING
    assert found.what.startswith("hook.lint (global config) ")
    assert found.what.endswith(" at pre-commit")
    assert found.remedy is not None
    subprocess.run(["sh", "-c", found.remedy], check=True, cwd=repo.path, env=repo.env)
    assert findings(examined(repo, newer)) == []


def test_an_event_that_config_switches_off_is_an_error_where_git_reads_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "--global", "hook.pre-push.enabled", "off")
    assert findings(examined(repo, other_git(tmp_path, "2.53.9"))) == []
    newer = other_git(tmp_path, "2.55.0")
    found = only(examined(repo, newer))
    assert (found.level, found.events) == (Level.ERROR, ("pre-push",))
    assert found.remedy is not None
    subprocess.run(["sh", "-c", found.remedy], check=True, env=repo.env)
    assert findings(examined(repo, newer)) == []


def test_the_last_word_of_config_counts_for_a_hook_that_it_names(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    with (repo.path / ".git/config").open("a") as file:
        file.write('[hook "a.b"]\n\tcommand = one\n\tcommand = two\n\tevent = pre-push\n\tevent =\n')
        file.write(
            '\tevent = commit-msg\n\tevent = pre-commit\n[hook "off"]\n\tcommand = x\n\tevent = pre-push\n'
        )
        file.write('\tenabled = false\n[hook "no-command"]\n\tevent = pre-push\n')
    assert seen(repo)[0].config_hooks == (
        ConfigHook("a.b", "two", ("commit-msg", "pre-commit"), "local"),
        ConfigHook("off", "x", ("pre-push",), "local", False),
    )


# Kinds of repositories, and their worktrees


def test_each_worktree_is_told_of_also_from_within_a_linked_one(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "--detach", "../linked")
    for cwd in (repo.path, tmp_path / "linked"):
        worktree_hooks = examined(repo, cwd=cwd).worktree_hooks
        assert [place.worktree.path for place in worktree_hooks] == [str(repo.path), str(tmp_path / "linked")]
        assert [place.worktree.is_current for place in worktree_hooks] == [cwd == repo.path, cwd != repo.path]
        assert all(hook.is_reached for place in worktree_hooks for hook in place.hooks)


def test_a_worktree_whose_folder_is_gone_is_a_note(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    subprocess.run(["rm", "-r", tmp_path / "linked"], check=True)
    diagnosis = examined(repo)
    assert (only(diagnosis).level, only(diagnosis).remedy, diagnosis.runs) == (
        "note",
        "git worktree prune",
        True,
    )


def test_a_worktree_that_git_cannot_open_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    (tmp_path / "linked/.git").write_text("gitdir: /nowhere\n")
    diagnosis = examined(repo)
    assert not diagnosis.runs
    assert only(diagnosis).level is Level.ERROR
    main, other = (place.worktree.problem for place in diagnosis.worktree_hooks)
    assert main is None
    assert other is not None
    assert other in only(diagnosis).what


def test_a_bare_repository_is_judged_by_pre_receive(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--bare")
    found = only(examined(repo))
    assert (found.events, found.remedy) == (SERVER_EVENTS, "git patchgate install --server")
    put(repo.path / "hooks", "pre-receive")
    diagnosis = examined(repo)
    assert [hook.is_reached for hook in diagnosis.worktree_hooks[0].hooks] == [True]
    assert (findings(diagnosis), diagnosis.runs) == ([], True)


def test_a_bare_repository_that_only_carries_worktrees_needs_their_hooks(tmp_path: Path) -> None:
    first = installed(tmp_path)
    bare = first.at(tmp_path / "bare.git")
    first.git("clone", "-q", "--bare", str(first.path), str(bare.path))
    bare.git("worktree", "add", "-q", "../tree")
    put(bare.path / "hooks")
    for cwd in (bare.path, tmp_path / "tree"):
        main, tree = examined(bare, cwd=cwd).worktree_hooks
        assert (main.hooks, main.worktree.is_bare) == ((), True)
        assert [hook.event for hook in tree.hooks if hook.is_reached] == list(LOCAL_EVENTS)


def test_a_git_directory_elsewhere_is_found(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, f"--separate-git-dir={tmp_path / 'elsewhere'}")
    repo.commit({"patchgate.toml": "[policy]\n"})
    put(tmp_path / "elsewhere/hooks")
    (place,) = examined(repo).worktree_hooks
    assert (place.worktree.path, place.runs) == (str(repo.path), True)
    variables = {"GIT_DIR": str(tmp_path / "elsewhere"), "GIT_WORK_TREE": str(repo.path)}
    assert all(hook.is_reached for hook in examined(repo, variables, cwd=tmp_path).worktree_hooks[0].hooks)


def test_a_worktree_with_any_name_is_told_safely_and_its_remedy_runs(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    path = tmp_path / "a\n\033[31m'b'\\ #é"
    repo.git("worktree", "add", "-q", "--detach", str(path))
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("-C", str(path), "config", "--worktree", "core.hooksPath", "own\033]0;x\007")
    diagnosis = examined(repo)
    assert diagnosis.worktree_hooks[1].worktree.path == str(path)
    for found in findings(diagnosis):
        assert (found.what + str(found.remedy)).isprintable()
    # The quoting with escapes is that of bash, zsh and POSIX 2024.
    shown = subprocess.run(["bash", "-c", f"printf %s {quoted(str(path))}"], capture_output=True, check=True)
    assert shown.stdout == os.fsencode(path)


def test_a_sha_256_repository_is_fine_and_says_how_it_is_read(tmp_path: Path) -> None:
    diagnosis = examined(installed(tmp_path, "--object-format=sha256"))
    assert all(hook.is_reached for hook in diagnosis.worktree_hooks[0].hooks)
    assert diagnosis.runs
    assert "git's plumbing" in only(diagnosis).what


def test_a_shallow_and_partial_clone_is_told_what_stays_undecided(tmp_path: Path) -> None:
    first = installed(tmp_path)
    first.commit({"a": "b"})
    first.git("config", "uploadpack.allowFilter", "true")
    clone = first.at(tmp_path / "clone")
    first.git("clone", "-q", "--depth=1", "--filter=blob:none", f"file://{first.path}", str(clone.path))
    put(clone.path / ".git/hooks")
    diagnosis = examined(clone)
    assert diagnosis.runs
    assert "shallow" in said(diagnosis, Level.NOTE)
    assert "partial" in said(diagnosis, Level.NOTE)


# Policy, ledger, leftovers


def test_a_policy_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path, policy="[policy\n")
    diagnosis = examined(repo)
    found = only(diagnosis)
    assert -1 < found.what.find(" HEAD ") < found.what.find("patchgate.toml:1: ")
    assert (diagnosis.runs, found.remedy) == (False, "git patchgate policy show")


def test_each_policy_is_told_of_once_at_the_worktree_that_has_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    linked = repo.at(tmp_path / "linked")
    linked.write("patchgate.toml", "[policy\n")
    linked.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "Break it")
    linked.git("worktree", "add", "-q", "--detach", "../third")
    worktree_hooks = examined(repo).worktree_hooks
    told = {
        Path(place.worktree.path).name: [each.remedy for each in place.findings] for place in worktree_hooks
    }
    assert told.pop("repo") == []
    assert sorted(told.values()) == [[], [f"git -C {linked.path} patchgate policy show"]] or sorted(
        told.values()
    ) == [[], [f"git -C {tmp_path}/third patchgate policy show"]]


def test_a_version_that_the_policy_does_not_want_is_an_error(tmp_path: Path) -> None:
    repo = installed(tmp_path, policy='required_version = ">=99"\n')
    found = only(examined(repo))
    assert found.level is Level.ERROR
    assert found.remedy == "pip install 'patchgate>=99'"


def test_a_policy_that_only_observes_is_told_with_its_line(tmp_path: Path) -> None:
    repo = installed(tmp_path, policy='[hooks]\nmode = "observe"\n')
    diagnosis = examined(repo)
    assert diagnosis.runs
    assert only(diagnosis).what.startswith("[hooks] mode is observe (patchgate.toml:2): ")
    assert only(diagnosis).level is not Level.ERROR


def test_a_repository_without_a_policy_is_told_how_to_get_one(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "b"})
    put(repo.path / ".git/hooks")
    found = only(examined(repo))
    assert (found.level, found.remedy) == (Level.NOTE, "git patchgate init")


def test_a_trusted_ref_that_is_missing_is_an_error_with_the_line_that_fetches_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "patchgate.trustRef", "refs/remotes/origin/main")
    diagnosis = examined(repo)
    assert not diagnosis.runs
    assert (only(diagnosis).level, only(diagnosis).remedy) == (Level.ERROR, "git fetch origin main")
    repo.git("-c", "core.hooksPath=/dev/null", "update-ref", "refs/remotes/origin/main", "HEAD")
    assert findings(examined(repo)) == []


def test_a_damaged_ledger_is_a_warning(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    ledger = Ledger(str(repo.path / ".git"))
    for number in range(3):
        assert ledger.record("skipped", {"hook": "pre-commit", "reason": str(number), "commits": []}) is None
    assert findings(examined(repo)) == []
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b'"1"', b'"x"'))
    diagnosis = examined(repo)
    assert diagnosis.runs
    assert only(diagnosis).what.startswith("line 2 of the ledger ")
    assert only(diagnosis).remedy == "git patchgate log --verify"


def test_what_a_killed_hook_left_is_a_note_with_the_line_that_removes_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    git_dir = repo.path / ".git"
    (git_dir / "patchgate-landing").write_text(f"{'1' * 40} {'2' * 40} -\n")
    (git_dir / "patchgate-pending").write_text(
        f"patchgate.pending/2 0 accepted\n{'1' * 40} refs/heads/main\n- -\n"
    )
    told = findings(examined(repo))
    assert [each.level for each in told] == [Level.NOTE, Level.NOTE]
    for each in told:
        subprocess.run(["sh", "-c", str(each.remedy)], check=True)
    assert findings(examined(repo)) == []


def test_a_pending_receipt_of_the_commit_at_hand_is_no_leftover(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    head = repo.head()
    text = f"patchgate.pending/2 {__version__} accepted\n{head} refs/heads/main\n- -\n"
    (repo.path / ".git/patchgate-pending").write_text(text)
    assert findings(examined(repo)) == []


def test_a_marker_of_intents_of_which_none_is_there_is_a_note_with_the_line_that_removes_it(
    tmp_path: Path,
) -> None:
    repo = installed(tmp_path)
    marker = repo.path / ".git" / MARKER
    marker.write_text("i-00000000\n")
    found = only(examined(repo))
    assert (found.level, found.remedy) == (Level.NOTE, "git patchgate intent show")
    assert repo.cli("intent", "show").code == 0
    assert not marker.exists()
    assert findings(examined(repo)) == []
    repo.cli("intent", "declare", "-m", "the work is due", "--allow", "a")
    assert marker.exists()
    assert findings(examined(repo)) == []
    marker.write_text("something else\n")
    assert "is damaged" in only(examined(repo)).what


def test_hooks_that_are_skipped_in_this_shell_are_told(tmp_path: Path) -> None:
    found = only(examined(installed(tmp_path), {"PATCHGATE_SKIP": ""}))
    assert (found.level, found.remedy) == (Level.WARNING, "unset PATCHGATE_SKIP")


# Commits that walked past


def walked_past(folder: Path) -> Repo:
    """A repository whose first commit was there at install, and where hooks do not run afterwards."""
    repo = installed(folder)
    assert settle(str(repo.path / ".git"), [repo.head()]) is None
    repo.git("config", "core.hooksPath", "/nowhere")
    return repo


def test_commits_without_a_receipt_are_named_with_their_branch_and_the_line_that_judges_them(
    tmp_path: Path,
) -> None:
    repo = walked_past(tmp_path)
    first = repo.commit({"a": "1\n"})
    told = said(examined(repo), Level.WARNING)
    assert told.startswith("1 commit ")
    assert told.endswith(f": {first[:12]} (main)")
    assert first in str(findings(examined(repo))[-1].remedy)
    repo.git("switch", "-qc", "side")
    second = repo.commit({"a": "2\n"})
    found = findings(examined(repo))[-1]
    assert found.what.startswith("2 commits ")
    assert f"{second[:12]} (side)" in found.what
    done = subprocess.run(
        ["sh", "-c", str(found.remedy)], cwd=repo.path, env=repo.env, capture_output=True, check=True
    )
    assert done.stdout.count(b"accepted: 1 file") == 2


def test_at_most_five_are_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    repo = walked_past(tmp_path)
    for number in range(7):
        repo.commit({"a": f"{number}\n"})
    assert said(examined(repo), Level.WARNING).endswith(" and 2 more")


def test_commits_with_a_receipt_of_a_remote_or_from_before_the_install_are_not_named(tmp_path: Path) -> None:
    repo = walked_past(tmp_path)
    base = repo.head()
    oid = repo.commit({"a": "1\n"})
    assert Receipts(str(repo.path / ".git")).add([(oid, repo.ask("rev-parse", "HEAD^{tree}"), base)]) is None
    assert said(examined(repo), Level.WARNING) == ""
    repo.commit({"a": "2\n"})
    assert "1 commit " in said(examined(repo), Level.WARNING)
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert said(examined(repo), Level.WARNING) == ""


def test_a_rewrite_that_changes_no_tree_raises_no_alarm_and_one_on_another_base_does(tmp_path: Path) -> None:
    repo = walked_past(tmp_path)
    base = repo.head()
    oid = repo.commit({"a": "1\n"})
    Receipts(str(repo.path / ".git")).add([(oid, repo.ask("rev-parse", "HEAD^{tree}"), base)])
    repo.git("commit", "-q", "--amend", "-m", "Other words")
    assert said(examined(repo), Level.WARNING) == ""
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    repo.git("checkout", "-q", base)
    other = repo.commit({"b": "1\n"})
    same_tree = repo.ask("commit-tree", "-m", "x", "-p", other, tree)
    repo.git("branch", "other", same_tree)
    assert same_tree[:12] in said(examined(repo), Level.WARNING)


def test_commits_that_were_skipped_with_a_reason_or_observed_are_in_the_ledger_and_not_named(
    tmp_path: Path,
) -> None:
    repo = walked_past(tmp_path)
    first, second = repo.commit({"a": "1\n"}), repo.commit({"a": "2\n"})
    ledger = Ledger(str(repo.path / ".git"))
    ledger.record("skipped", {"hook": "reference-transaction", "reason": "a fire", "commits": [first]})
    ledger.record("observed", {"hook": "reference-transaction", "commit": second})
    assert said(examined(repo), Level.WARNING) == ""


def test_before_an_install_no_commit_is_missed(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.commit({"a": "1\n"})
    assert findings(examined(repo)) == []


def test_a_plain_path_is_quoted_for_a_shell_only_where_it_must(tmp_path: Path) -> None:
    assert quoted("/a/b-c.d") == "/a/b-c.d"
    assert shlex.split(quoted("/a b/'c'")) == ["/a b/'c'"]
