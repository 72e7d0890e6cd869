"""`install` and `uninstall`: where the hooks go, what is remembered, and that all of it goes away again."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import settled
from tests.world import EXECUTABLE, Repo

ROOT = Path(__file__).parents[2]
NAMES = ["pre-commit", "pre-merge-commit", "commit-msg", "pre-push", "reference-transaction"]
INSTALLED = f"installed in .git/hooks: {', '.join(NAMES)}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """One commit, no hooks."""
    made = Repo.create(tmp_path)
    made.commit({"a": "1\n"}, "First")
    return made


def hooks_in(folder: Path) -> list[str]:
    """Name the hooks of ours in a folder."""
    if not folder.is_dir():
        return []
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    return [each.name for each in files if b"\n# patchgate hook 1\n" in each.read_bytes()[:60]]


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with mode and bytes."""
    return {
        str(place.relative_to(folder)): (place.lstat().st_mode, place.read_bytes())
        for place in sorted(folder.rglob("*"))
        if place.is_file()
    }


def bare(repo: Repo) -> Repo:
    """A bare clone."""
    place = repo.path.parent / "bare.git"
    repo.git("clone", "-q", "--bare", ".", str(place))
    return repo.at(place)


def test_install_puts_five_hooks_that_git_can_run_and_says_which(repo: Repo) -> None:
    answer = repo.cli("install")
    assert (answer.code, answer.out, answer.err) == (0, INSTALLED, "")
    assert hooks_in(repo.path / ".git/hooks") == sorted(NAMES)
    for name in NAMES:
        assert stat.S_IMODE((repo.path / ".git/hooks" / name).stat().st_mode) == 0o755


def test_the_run_bit_is_for_everybody_whatever_the_umask(repo: Repo) -> None:
    subprocess.run(
        ["sh", "-c", f"umask 077; exec '{EXECUTABLE}' install"], cwd=repo.path, env=repo.env, check=True
    )
    assert stat.S_IMODE((repo.path / ".git/hooks/pre-commit").stat().st_mode) == 0o755


def test_a_second_install_changes_nothing_at_all(repo: Repo) -> None:
    repo.cli("install")
    before = state(repo.path / ".git")
    answer = repo.cli("install")
    assert (answer.code, answer.out.count("\n")) == (0, 1)
    assert answer.out.startswith("the hooks in .git/hooks are up to date")
    assert state(repo.path / ".git") == before


def test_a_hook_that_lost_its_run_bit_gets_it_again(repo: Repo) -> None:
    repo.cli("install")
    (repo.path / ".git/hooks/pre-push").chmod(0o644)
    assert repo.cli("install").out == "installed in .git/hooks: pre-push\n"
    assert os.access(repo.path / ".git/hooks/pre-push", os.X_OK)


def test_uninstall_leaves_nothing_but_the_record(repo: Repo) -> None:
    before = state(repo.path / ".git")
    repo.cli("install", "--trust-ref", "main")
    answer = repo.cli("uninstall")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"removed from .git/hooks: {', '.join(NAMES)}\n")
    after = {name: held for name, held in state(repo.path / ".git").items() if "patchgate/" not in name}
    config = before.pop("config"), after.pop("config")
    assert after == before
    assert b"patchgate.trustref" not in repo.git("config", "--list")
    assert config[1][1].startswith(config[0][1])
    again = repo.cli("uninstall")
    assert again.code == 0
    assert again.out.startswith("no ")
    assert "removed" not in again.out


def test_the_hooks_that_were_installed_judge_a_commit(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    repo.run("install")
    repo.stage({"runs/x": "1\n"})
    done = repo.try_git("commit", "-q", "-m", "Add a run")
    assert done.returncode != 0
    assert b"deny-prefix" in done.stdout + done.stderr
    repo.git("rm", "-q", "--cached", "runs/x")
    repo.stage({"b": "1\n", ".gitignore": "runs\n"})
    repo.git("commit", "-q", "-m", "Add b")


@pytest.mark.parametrize("value", ["true", "True", "1"])
def test_in_a_build_nothing_is_installed_and_one_note_says_so(repo: Repo, value: str) -> None:
    before = state(repo.path / ".git")
    answer = repo.cli("install", CI=value)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("CI=true: ")
    assert "git patchgate check" in answer.out
    assert answer.out.count("\n") == 1
    assert state(repo.path / ".git") == before
    assert repo.cli("install", CI="false").out == INSTALLED


def test_every_worktree_shares_the_hooks(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "../linked", "-b", "side")
    linked = repo.at(repo.path.parent / "linked")
    answer = linked.cli("install")
    assert answer.out == INSTALLED.replace(".git/hooks", f"{repo.path}/.git/hooks")
    assert hooks_in(repo.path / ".git/hooks") == sorted(NAMES)
    assert repo.cli("install").out.endswith("nothing changed\n")


def test_from_a_subfolder_and_by_minus_c_it_is_the_same_place(repo: Repo) -> None:
    (repo.path / "deep" / "er").mkdir(parents=True)
    assert repo.cli("install", cwd=repo.path / "deep" / "er").out == INSTALLED
    assert repo.cli("-C", str(repo.path), "install", cwd=repo.path.parent).out.endswith("nothing changed\n")


def test_a_relative_hooks_path_counts_from_the_top_of_the_working_tree(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "tools/hooks")
    (repo.path / "deep").mkdir()
    answer = repo.cli("install", cwd=repo.path / "deep")
    assert answer.out.startswith(f"installed in tools/hooks: {', '.join(NAMES)}\n")
    assert "tools/hooks is not ignored" in answer.out
    assert hooks_in(repo.path / "tools/hooks") == sorted(NAMES)
    assert hooks_in(repo.path / ".git/hooks") == []
    repo.stage({"b": "1\n"})
    repo.git("reset", "-q", "tools")
    repo.git("commit", "-q", "-m", "Add b")
    assert (repo.path / ".git/patchgate/receipts").exists()
    assert repo.cli("uninstall").code == 0
    assert list((repo.path / "tools/hooks").iterdir()) == []


def test_a_hooks_path_of_one_worktree_is_told_to_be_that(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "../linked", "-b", "side")
    repo.git("config", "core.hooksPath", ".hooks")
    assert "this worktree only" in repo.cli("install").out
    linked = repo.at(repo.path.parent / "linked")
    assert linked.cli("install").out.startswith("installed in .hooks: ")
    assert hooks_in(linked.path / ".hooks") == sorted(NAMES)


def test_a_hooks_path_outside_the_repository_is_told(repo: Repo) -> None:
    shared = repo.path.parent / "shared"
    repo.git("config", "core.hooksPath", str(shared))
    answer = repo.cli("install")
    assert answer.code == 0
    assert f"{shared} is outside" in answer.out
    assert hooks_in(shared) == sorted(NAMES)


@pytest.fixture
def shared(repo: Repo) -> Path:
    """The folder of a global core.hooksPath, with a hook in it."""
    folder = repo.path.parent / "shared hooks"
    folder.mkdir()
    (folder / "pre-commit").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (folder / "pre-commit").chmod(0o755)
    repo.git("config", "--global", "core.hooksPath", str(folder))
    return folder


def test_a_global_hooks_path_is_left_alone_unless_it_is_meant(repo: Repo, shared: Path) -> None:
    before = state(shared)
    answer = repo.cli("install")
    assert (answer.code, answer.out) == (2, "")
    assert "global config" in answer.err
    assert " --global" in answer.err
    assert f"git config core.hooksPath {repo.path}/.git/hooks" in answer.err
    assert state(shared) == before
    assert not (repo.path / ".git/patchgate").exists()


def test_a_global_hooks_path_that_is_meant_gets_the_hooks_and_is_given_back(repo: Repo, shared: Path) -> None:
    before = state(shared)
    answer = repo.cli("install", "--global")
    assert answer.code == 0
    assert "every repository" in answer.out
    assert hooks_in(shared) == sorted(NAMES)
    assert b"reinstall='git patchgate install --global'" in (shared / "pre-push").read_bytes()
    refused = repo.cli("uninstall")
    assert refused.code == 2
    assert "git patchgate uninstall --global" in refused.err
    assert hooks_in(shared) == sorted(NAMES)
    assert repo.cli("uninstall", "--global").code == 0
    after = state(shared)
    assert after.pop(".patchgate.lock")[1] == b""
    assert after == before


def test_a_local_hooks_path_wins_over_the_global_one(repo: Repo, shared: Path) -> None:
    repo.git("config", "core.hooksPath", str(repo.path / ".git/hooks"))
    assert repo.cli("install", "--global").code == 2
    assert repo.cli("install").out == INSTALLED
    assert hooks_in(shared) == []


def test_a_global_config_that_the_environment_names_counts(repo: Repo) -> None:
    config = repo.path.parent / "elsewhere"
    folder = repo.path.parent / "theirs"
    config.write_text(f"[core]\n\thooksPath = {folder}\n", encoding="utf-8")
    answer = repo.cli("install", GIT_CONFIG_GLOBAL=str(config))
    assert answer.code == 2
    assert "global config" in answer.err


def test_a_hooks_path_of_one_command_alone_is_refused(repo: Repo) -> None:
    done = repo.try_git("-c", "core.hooksPath=/tmp/nowhere", "patchgate", "install")
    assert done.returncode == 2
    assert b" -c " in done.stderr


def test_without_a_global_hooks_path_global_has_no_meaning(repo: Repo) -> None:
    answer = repo.cli("install", "--global")
    assert answer.code == 2
    assert "no global core.hooksPath" in answer.err


def test_a_hooks_path_that_is_no_folder_is_told_with_its_remedy(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "/dev/null")
    answer = repo.cli("install")
    assert answer.code == 2
    assert " /dev/null" in answer.err
    (hint,) = [line.removeprefix("help: ") for line in answer.err.splitlines() if line.startswith("help: ")]
    subprocess.run(["sh", "-c", hint], cwd=repo.path, env=repo.env, check=True)
    assert repo.cli("install").out == INSTALLED


def test_a_folder_at_a_hooks_place_is_refused_with_one_sentence(repo: Repo) -> None:
    (repo.path / ".git/hooks/pre-commit").mkdir()
    answer = repo.cli("install")
    assert answer.code == 2
    assert ".git/hooks/pre-commit is a folder" in answer.err


def test_a_folder_that_cannot_be_made_is_one_sentence(repo: Repo) -> None:
    (repo.path / "file").write_text("x", encoding="utf-8")
    repo.git("config", "core.hooksPath", "file/below")
    answer = repo.cli("install")
    assert answer.code == 3
    assert "file/below" in answer.err
    assert ": Not a directory" in answer.err


def test_uninstall_finds_the_hooks_in_gits_own_folder_after_hooks_path_was_set(repo: Repo) -> None:
    repo.cli("install")
    repo.git("config", "core.hooksPath", ".hooks")
    repo.cli("install")
    assert repo.cli("uninstall").out.count("removed from") == 2
    assert hooks_in(repo.path / ".git/hooks") == []
    assert hooks_in(repo.path / ".hooks") == []


def test_in_a_bare_repository_the_hook_is_pre_receive_and_has_to_be_asked_for(repo: Repo) -> None:
    server = bare(repo)
    answer = server.cli("install")
    assert (answer.code, answer.out) == (2, "")
    assert "add --server" in answer.err
    answer = server.cli("install", "--server")
    assert (answer.code, answer.out) == (0, "installed in hooks: pre-receive\n")
    assert hooks_in(server.path / "hooks") == ["pre-receive"]
    assert server.cli("install", "--server").err == ""
    server.git("symbolic-ref", "HEAD", "refs/heads/none")
    assert "git symbolic-ref HEAD" in server.cli("install", "--server").err
    # A branch without a policy is the default one, beside one that has one.
    server.git("branch", "none", "main")
    assert server.cli("install", "--server").err == ""
    server.git("fetch", "-q", str(repo.path), repo.commit({"patchgate.toml": "[policy]\n"}))
    server.git("branch", "trunk", "FETCH_HEAD")
    assert "git symbolic-ref HEAD refs/heads/NAME" in server.cli("install", "--server").err
    assert server.cli("uninstall").out == "removed from hooks: pre-receive\n"
    assert hooks_in(server.path / "hooks") == []


def test_a_server_has_no_relative_hooks_path(repo: Repo) -> None:
    """By the path of a worktree git would look for hooks in another folder."""
    server = bare(repo)
    server.git("config", "core.hooksPath", "mine")
    answer = server.cli("install", "--server")
    assert (answer.code, "core.hooksPath is not absolute" in answer.err) == (2, True)
    server.git("config", "core.hooksPath", "~/mine")
    assert server.cli("install", "--server").code == 2
    # By the path of a worktree git may read another config.
    server.git("config", "core.hooksPath", str(server.path / "mine"))
    assert server.cli("install", "--server").code == 0
    assert [hooks_in(server.path / name) for name in ("mine", "hooks")] == [["pre-receive"]] * 2
    assert server.cli("uninstall").code == 0
    assert [hooks_in(server.path / name) for name in ("mine", "hooks")] == [[], []]


def test_server_is_refused_where_there_is_a_working_tree(repo: Repo) -> None:
    answer = repo.cli("install", "--server")
    assert answer.code == 2
    assert "--server" in answer.err
    assert " bare " in answer.err


def test_a_trusted_ref_is_checked_and_written_by_its_full_name(repo: Repo) -> None:
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    pending = repo.path / ".git/patchgate-pending"
    pending.write_text("judged by another policy\n", encoding="utf-8")
    answer = repo.cli("install", "--trust-ref", "origin/main")
    assert " refs/remotes/origin/main " in answer.out
    assert repo.ask("config", "--local", "patchgate.trustRef") == "refs/remotes/origin/main"
    assert not pending.exists()
    before = state(repo.path / ".git")
    repo.cli("install", "--trust-ref", "origin/main")
    repo.cli("install")
    assert state(repo.path / ".git") == before
    assert "patchgate.trustRef" in repo.cli("uninstall").out
    assert repo.try_git("config", "patchgate.trustRef").returncode == 1


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("origin/nope", "help: git fetch origin nope"),
        ("nope", "unknown ref nope"),
        ("HEAD~0", "HEAD~0 is not a ref"),
        ("--all", "--all is not a valid"),
        ("a\nb", "a\\nb is not a valid"),
        ("blob", "a commit"),
        ("refs/notes/policy", "without owners"),
    ],
)
def test_what_cannot_be_trusted_is_refused_before_anything_is_written(
    repo: Repo, ref: str, said: str
) -> None:
    repo.git("update-ref", "refs/tags/blob", repo.ask("rev-parse", "HEAD:a"))
    repo.git("update-ref", "refs/notes/policy", "HEAD")
    before = state(repo.path / ".git")
    answer = repo.cli("install", "--trust-ref", ref)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert state(repo.path / ".git") == before


def test_only_the_first_install_settles_the_tips_that_are_there(repo: Repo) -> None:
    first = repo.head()
    repo.git("branch", "side")
    second = repo.commit({"b": "1\n"})
    repo.git("update-ref", "refs/remotes/origin/main", second)
    repo.git("checkout", "-q", "--detach", first)
    detached = repo.commit({"c": "1\n"})
    repo.cli("install")
    assert sorted(settled(str(repo.path / ".git"))) == sorted([first, second, detached])
    repo.cli("uninstall")
    repo.commit({"d": "1\n"})
    repo.cli("install")
    assert sorted(settled(str(repo.path / ".git"))) == sorted([first, second, detached])


def test_in_an_empty_repository_nothing_is_settled(tmp_path: Path) -> None:
    empty = Repo.create(tmp_path)
    assert empty.cli("install").out == INSTALLED
    assert settled(str(empty.path / ".git")) == []
    empty.stage({"a": "1\n"})
    empty.git("commit", "-q", "-m", "Begin")


def test_the_ledger_knows_when_the_hooks_came_and_went(repo: Repo) -> None:
    repo.cli("install")
    repo.cli("install")
    repo.cli("uninstall")
    events = list(Ledger(str(repo.path / ".git")).events())
    assert [event.kind for event in events] == ["installed", "uninstalled"]
    assert all(event.about["hooks"] == NAMES for event in events)


def test_a_ledger_that_cannot_be_written_is_a_warning(repo: Repo) -> None:
    (repo.path / ".git/patchgate/events.jsonl").mkdir(parents=True)
    answer = repo.cli("install")
    assert (answer.code, answer.out) == (0, INSTALLED)
    assert answer.err.startswith("warning: ")
    assert "ledger" in answer.err
    answer = repo.cli("uninstall")
    assert answer.code == 0
    assert answer.err.startswith("warning: ")
    assert "ledger" in answer.err
    assert hooks_in(repo.path / ".git/hooks") == []


def test_uninstall_reads_no_policy_and_loads_nothing_that_judges(repo: Repo) -> None:
    repo.commit({"patchgate.toml": "not = [toml\n", "pyproject.toml": "neither = {\n"}, "Break it")
    repo.cli("install")
    program = (
        "import json, sys\nfrom patchgate.cli import program\ncode = program.run(['uninstall'])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo.path, env=repo.env, capture_output=True, check=True
    )
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert {"pygit2", "pydantic", "tomllib"} & set(names) == set()
    folders = {".".join(name.split(".")[1:3]) for name in names if name.startswith("patchgate.")}
    assert {folder.split(".")[0] for folder in folders} <= {
        *("apply", "cli", "errors", "exit_codes", "git", "hooks", "ledger", "process", "storage", "values")
    }
    assert hooks_in(repo.path / ".git/hooks") == []


def test_installs_at_once_leave_what_one_leaves(repo: Repo) -> None:
    place = repo.path / ".git/hooks/pre-commit"
    place.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    place.chmod(0o755)
    before = state(repo.path / ".git/hooks")
    children = [
        subprocess.Popen([EXECUTABLE, "install"], cwd=repo.path, env=repo.env, stdout=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [child.wait() for child in children] == [0] * 4
    assert hooks_in(repo.path / ".git/hooks") == sorted(NAMES)
    kept = repo.path / ".git/hooks/pre-commit.patchgate-prev"
    assert kept.read_text(encoding="utf-8") == "#!/bin/sh\nexit 0\n"
    assert len(list(Ledger(str(repo.path / ".git")).events())) == 1
    repo.cli("uninstall")
    assert state(repo.path / ".git/hooks") == before


def test_the_program_that_installed_is_named_by_its_absolute_path(repo: Repo) -> None:
    repo.git("patchgate", "install", FORKING_SERVER="")
    text = (repo.path / ".git/hooks/pre-commit").read_text(encoding="utf-8")
    assert f"\npatchgate='{EXECUTABLE}' interpreter='{EXECUTABLE.parent}/python" in text
    done = subprocess.run(
        [sys.executable, "-m", "patchgate", "install"],
        cwd=repo.path,
        env=repo.env,
        check=True,
        capture_output=True,
    )
    # The cache may be another interpreter's: `python` here, `python3` in the script.
    assert done.stdout.startswith(b"the hooks in .git/hooks are up to date; ")


def test_a_repository_with_an_awkward_path_works(tmp_path: Path) -> None:
    awkward = Repo.create(tmp_path / 'it\'s "so" $(odd) `here` \\n;')
    assert awkward.run("install").out == INSTALLED
    awkward.stage({"a": "1\n"})
    awkward.git("commit", "-q", "-m", "Begin")
    awkward.stage({"a": "2\n"})
    awkward.git("commit", "-q", "-m", "Go on")
    assert (awkward.path / ".git/patchgate/receipts").read_text(encoding="ascii").count("\n") == 2


def test_install_outside_a_repository_is_one_sentence(repo: Repo) -> None:
    for command in ("install", "uninstall"):
        answer = repo.cli(command, cwd=repo.path.parent)
        assert answer.code == 2
        assert answer.err.startswith("error: not a git repository\n")


def test_the_package_has_the_hooks_where_install_looks_for_them() -> None:
    assert sorted(each.name for each in (ROOT / "patchgate" / "hooks" / "shims").iterdir()) == sorted(
        [*NAMES, "pre-receive", "shared.sh"]
    )


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_hook_can_be_read_by_its_shell(shell: str) -> None:
    for place in (ROOT / "patchgate" / "hooks" / "shims").iterdir():
        subprocess.run([shell, "-n", place], check=True)
