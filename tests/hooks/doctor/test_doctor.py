"""`git patchgate doctor` with hooks that were really installed: what it says, how it ends, what it mends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from patchgate import __version__
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

EVENTS = ("pre-commit", "pre-merge-commit", "commit-msg", "pre-push", "reference-transaction")
ALL_WELL = f"5 of 5 hooks reach patchgate {__version__}"
FRAMEWORK = Path(sys.executable).with_name("pre-commit")


def installed(folder: Path) -> Repo:
    """A repository that denies `secrets/`, with its hooks."""
    repo = Repo.create(folder)
    repo.policy('[policy]\ndeny_prefixes = ["secrets"]\n')
    assert repo.cli("install").code == 0
    return repo


def hook(repo: Repo, event: str) -> Path:
    return repo.path / ".git/hooks" / event


def replace_hook(repo: Repo, event: str, text: str) -> None:
    """Write over a hook as another tool does."""
    hook(repo, event).unlink()
    hook(repo, event).write_text(text)
    hook(repo, event).chmod(0o755)


def without_hooks(repo: Repo, *arguments: str) -> None:
    repo.git("-c", "core.hooksPath=/dev/null", *arguments)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def refuses_a_bad_commit(repo: Repo) -> bool:
    """Tell whether a commit is refused, by the hooks that git runs."""
    repo.write("secrets/k")
    repo.git("add", "-A")
    done = repo.try_git("commit", "-qm", "Add a key")
    repo.git("rm", "-rqf", "secrets")
    return done.returncode == 1 and b"deny-prefix" in done.stderr + done.stdout


def document(answer: Answer, repo: Repo) -> dict[str, object]:
    schema = repo.cli("schema", "doctor").report
    jsonschema.Draft202012Validator(schema).validate(answer.report)
    return answer.report


def test_when_all_is_well_it_is_one_line_a_worktree(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    answer = repo.cli("doctor")
    assert (answer.code, answer.out, answer.err) == (0, f"{repo.path}: {ALL_WELL}\n", "")
    without_hooks(repo, "worktree", "add", "-q", "../linked")
    answer = repo.cli("doctor")
    assert answer.out == f"{repo.path}: {ALL_WELL}\n{tmp_path}/linked: {ALL_WELL}\n"


def test_hooks_that_were_installed_before_the_first_commit_are_proved(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.cli("install")
    assert repo.cli("doctor").out == f"{repo.path}: {ALL_WELL}\n"


def test_a_server_is_asked_about_pre_receive_alone(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--bare")
    answer = repo.cli("doctor")
    assert (answer.code, "    git patchgate install --server\n" in answer.out) == (1, True)
    repo.cli("install", "--server")
    answer = repo.cli("doctor")
    assert (answer.code, answer.out) == (0, f"{repo.path}: 1 of 1 hooks reach patchgate {__version__}\n")
    (repo.path / "hooks/pre-receive").unlink()
    assert repo.cli("doctor", "--fix").code == 0
    assert (repo.path / "hooks/pre-receive").exists()


def test_a_repository_without_hooks_is_told_what_to_run_and_fix_runs_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[policy]\ndeny_prefixes = ["secrets"]\n')
    answer = repo.cli("doctor")
    assert (answer.code, answer.err) == (1, "")
    _, told, remedy = answer.out.splitlines()
    assert told.startswith("  error: ")
    assert f" {repo.path}/.git/hooks" in told
    assert remedy == "    git patchgate install"
    answer = repo.cli("doctor", "--fix")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        f"fixed: installed in .git/hooks: {', '.join(EVENTS)}",
        f"{repo.path}: {ALL_WELL}",
    ]
    assert refuses_a_bad_commit(repo)


FAULTS: dict[str, Callable[[Repo], object]] = {
    "missing": lambda repo: hook(repo, "reference-transaction").unlink(),
    "not executable": lambda repo: hook(repo, "pre-push").chmod(0o644),
    "overwritten": lambda repo: replace_hook(repo, "pre-commit", "#!/bin/sh\nexit 0\n"),
    "moved away": lambda repo: shutil.move(hook(repo, "pre-commit"), hook(repo, "pre-commit.old")),
    "of another version": lambda repo: replace_hook(
        repo, "pre-commit", hook(repo, "pre-commit").read_text().replace(f"'{__version__}'", "'0.0.1'")
    ),
    "program gone": lambda repo: replace_hook(
        repo, "pre-commit", hook(repo, "pre-commit").read_text().replace("/git-patchgate'", "/gone'")
    ),
    "cut short": lambda repo: replace_hook(repo, "commit-msg", "#!/bin/sh\n# patchgate hook 1\n"),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_fix_mends_a_hook_that_is(tmp_path: Path, fault: str) -> None:
    repo = installed(tmp_path)
    FAULTS[fault](repo)
    told = repo.cli("doctor")
    assert "    git patchgate install\n" in told.out
    assert told.code == (0 if fault in {"of another version", "program gone"} else 1)
    answer = repo.cli("doctor", "--fix")
    assert (answer.code, answer.out.splitlines()[0][:8]) == (0, "fixed: i")
    assert repo.cli("doctor").out.startswith(f"{repo.path}: {ALL_WELL}")
    assert refuses_a_bad_commit(repo)


def test_fix_keeps_a_foreign_hook_which_runs_first_and_the_witness_never_starts_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    trace = tmp_path / "it-ran"
    replace_hook(repo, "pre-commit", f"#!/bin/sh\necho x >>{trace}\n")
    answer = repo.cli("doctor", "--fix")
    assert f"{ALL_WELL}; run before ours: pre-commit (script)" in answer.out
    assert repo.cli("doctor").code == 0
    assert not trace.exists()
    repo.write("a.txt")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Add a file")
    assert trace.read_text() == "x\n"


def test_fix_leaves_hooks_path_alone_whoever_set_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "core.hooksPath", "/dev/null")
    # It reads the policy, which is kept compiled from then on.
    repo.cli("doctor")
    before = everything(repo.path)
    answer = repo.cli("doctor", "--fix")
    assert (answer.code, "fixed" in answer.out) == (1, False)
    assert f"git config --file {repo.path}/.git/config --unset-all core.hooksPath" in answer.out
    assert everything(repo.path) == before
    repo.git("config", "--unset", "core.hooksPath")
    repo.git("config", "--global", "core.hooksPath", str(tmp_path / "everywhere"))
    before = everything(repo.path)
    answer = repo.cli("doctor", "--fix")
    assert (answer.code, "    git patchgate install --global\n" in answer.out) == (1, True)
    assert everything(repo.path) == before
    assert not (tmp_path / "everywhere").exists()


def test_fix_mends_the_folder_of_hooks_that_another_worktree_has_of_its_own(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    without_hooks(repo, "worktree", "add", "-q", "--detach", "../linked tree")
    linked = repo.at(tmp_path / "linked tree")
    repo.git("config", "extensions.worktreeConfig", "true")
    linked.git("config", "--worktree", "core.hooksPath", str(tmp_path / "own"))
    told = repo.cli("doctor")
    assert told.code == 1
    assert f"    git -C '{linked.path}' patchgate install\n" in told.out
    assert repo.cli("doctor", "--fix").code == 0
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == sorted(EVENTS)
    assert refuses_a_bad_commit(linked)


def test_what_install_refuses_is_told_and_the_gate_stays_open(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    hook(repo, "pre-push").unlink()
    hook(repo, "commit-msg").unlink()
    hook(repo, "commit-msg").mkdir()
    answer = repo.cli("doctor", "--fix")
    assert answer.code == 1
    assert "not fixed: " in answer.out
    assert f"    mv {hook(repo, 'commit-msg')} {hook(repo, 'commit-msg')}.aside\n" in answer.out


def test_in_a_build_nothing_is_installed(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    answer = repo.cli("doctor", "--fix", CI="true")
    assert (answer.code, answer.out.startswith("CI=true: no hooks installed")) == (1, True)
    assert not hook(repo, "pre-commit").exists()


def test_asking_real_hooks_changes_nothing_and_tells_nobody(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.write("secrets/k")
    without_hooks(repo, "add", "-A")
    without_hooks(repo, "commit", "-qm", "Walk past the gate")
    repo.stage({"secrets/l": "x\n"})
    repo.write(".git/MERGE_HEAD", repo.head() + "\n")
    repo.cli("doctor")
    before = everything(repo.path)
    assert repo.cli("doctor").code == 0
    assert everything(repo.path) == before


def test_hooks_path_of_the_command_line_is_seen(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    done = repo.try_git("-c", "core.hooksPath=/dev/null", "patchgate", "doctor")
    assert done.returncode == 1
    assert b"error: core.hooksPath is /dev/null (git -c or GIT_CONFIG_*" in done.stdout
    assert repo.try_git("patchgate", "doctor").returncode == 0


def test_a_commit_that_walked_past_is_named_and_does_not_close_the_gate(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.write("a.txt")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Add a file")
    assert repo.cli("doctor").out == f"{repo.path}: {ALL_WELL}\n"
    repo.write("secrets/k")
    repo.git("add", "-A")
    without_hooks(repo, "commit", "-qm", "Walk past the gate")
    head = repo.head()
    answer = repo.cli("doctor")
    assert answer.code == 0
    _, told, remedy = answer.out.splitlines()
    assert told.startswith("  warning: 1 commit ")
    assert told.endswith(f": {head[:12]} (main)")
    assert remedy == f"    git patchgate check {head}"


def test_hooks_that_the_framework_moved_away_are_told_and_put_back_before_it(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.write(".pre-commit-config.yaml", "repos: []\n")
    kinds = [part for event in ("pre-commit", "pre-push") for part in ("-t", event)]
    subprocess.run(
        [FRAMEWORK, "install", *kinds], cwd=repo.path, env=repo.env, check=True, capture_output=True
    )
    told = repo.cli("doctor")
    assert (told.code, told.out.splitlines()[0]) == (0, f"{repo.path}: {ALL_WELL}")
    for event in ("pre-commit", "pre-push"):
        (line,) = (line for line in told.out.splitlines() if f"warning: {event}: " in line)
        assert f"{event}.legacy" in line
    answer = repo.cli("doctor", "--fix")
    assert answer.code == 0
    assert answer.out.endswith("; run before ours: pre-commit (pre-commit), pre-push (pre-commit)\n")
    assert not hook(repo, "pre-push.legacy").exists()


def test_worktrees_with_the_same_faults_are_told_of_once(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    without_hooks(repo, "worktree", "add", "-q", "../linked")
    hook(repo, "pre-push").unlink()
    lines = repo.cli("doctor").out.splitlines()
    assert len([line for line in lines if line.startswith("  error: ")]) == 1
    assert lines[-1] == f"{tmp_path}/linked: 4 of 5 hooks reach patchgate {__version__}; same as {repo.path}"


def test_a_remedy_runs_as_it_stands_also_for_a_repository_that_was_named_by_a_directory(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    for arguments in (("-C", str(repo.path), "doctor"), ("doctor", "-C", str(repo.path))):
        (line,) = [line for line in repo.cli(*arguments, cwd=tmp_path).out.splitlines() if " -C " in line]
        assert line == f"    git -C {repo.path} patchgate install"
    subprocess.run(["sh", "-c", line], cwd=tmp_path, env=repo.env, check=True, capture_output=True)
    assert repo.cli("doctor").code == 0


def test_json_says_for_each_event_which_file_runs_and_what_it_reaches(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    repo.git("config", "hook.lint.command", "make")
    repo.git("config", "hook.lint.event", "pre-commit")
    repo.git("config", "core.hooksPath", str(hook(repo, "")))
    replace_hook(repo, "pre-push", "#!/bin/sh\ngit lfs pre-push\n")
    answer = repo.cli("doctor", "--format", "json")
    told = document(answer, repo)
    assert (answer.code, told["gate_runs"], told["fixed"]) == (1, False, [])
    worktree = answer.report["worktrees"][0]
    assert worktree["hooks_path"]["scope"] == "local"
    assert worktree["config_hooks"][0]["name"] == "lint"
    rows = {row["event"]: row for row in worktree["hooks"]}
    assert rows["pre-commit"] == {
        "event": "pre-commit",
        "file": str(hook(repo, "pre-commit")),
        "exists": True,
        "executable": True,
        "written_by": "patchgate",
        "format": 1,
        "chained": None,
        "displaced": None,
        "patchgate_version": __version__,
        "manager": None,
    }
    assert (rows["pre-push"]["written_by"], rows["pre-push"]["patchgate_version"]) == ("git-lfs", None)
    fixed = repo.cli("doctor", "--fix", "--format", "json")
    assert document(fixed, repo)["gate_runs"] is True
    assert fixed.report["worktrees"][0]["hooks"][3]["chained"]["written_by"] == "git-lfs"
    assert fixed.report["fixed"][0].startswith("fixed: ")


def test_a_name_that_may_not_be_printed_is_escaped_in_words_and_whole_in_json(tmp_path: Path) -> None:
    repo = installed(tmp_path)
    path = tmp_path / "a\n\033[31mb"
    without_hooks(repo, "worktree", "add", "-q", "--detach", str(path))
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("-C", str(path), "config", "--worktree", "core.hooksPath", "own\033]0;x\007")
    answer = repo.cli("doctor")
    assert answer.code == 1
    assert answer.out.replace("\n", "").isprintable()
    shown = repo.cli("doctor", "--format", "json")
    document(shown, repo)
    assert "\033" not in json.dumps(shown.report, ensure_ascii=False)
    assert shown.report["worktrees"][1]["path_b64"]


def test_outside_a_repository_it_is_a_wrong_argument(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert repo.cli("doctor", cwd=tmp_path).code == 2
    assert repo.cli("doctor", "--format", "json", cwd=tmp_path).error["kind"] == "usage"
