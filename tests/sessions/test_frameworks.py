"""The ids for pre-commit and prek: tried, installed, committed and pushed with, for real.

Both build an environment of their own from a file-path URL of this very tree and from a package index; where
none is reachable these tests are skipped, and say so. Each framework builds once for all tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.amount import IS_LONG
from tests.sessions.twins import BAD, OFF, said_by
from tests.world import Repo, pinned_environment

pytestmark = pytest.mark.turns(3)

ROOT = Path(__file__).parent.parent.parent
PEERS = ("prek", "uv")
POLICY = """\
[policy]
deny_prefixes = ["secrets"]

[message]
level = "error"
"""
IDS = ("patchgate", "patchgate-commit-msg", "patchgate-pre-push")


@dataclass(frozen=True)
class Framework:
    """pre-commit or prek: its program, this tree as a repository, and the environment it builds in."""

    program: Path
    source: Path
    rev: str
    env: Mapping[str, str]

    def run(self, repo: Repo, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run the framework in a repository."""
        return subprocess.run(
            [self.program, *arguments], cwd=repo.path, env=repo.env, capture_output=True, check=False
        )

    def installed(self, folder: Path) -> Repo:
        """Make a repository with a remote that has its main, and install the framework's hooks in it."""
        repo = Repo(folder / "repo", {**pinned_environment(folder / "home"), **self.env})
        repo.path.mkdir()
        repo.git("init", "-q", "-b", "main")
        repo.git("init", "-q", "--bare", "-b", "main", "../remote.git")
        repo.git("remote", "add", "origin", "../remote.git")
        repo.policy(POLICY)
        types = ["pre-commit", "pre-merge-commit", "commit-msg", "pre-push"]
        hooks = [{"repo": self.source.as_uri(), "rev": self.rev, "hooks": [{"id": each} for each in IDS]}]
        config = {"default_install_hook_types": types, "repos": hooks}
        repo.commit({".pre-commit-config.yaml": json.dumps(config)}, "Run the hooks")
        repo.git("push", "-q", "-u", "origin", "main")
        done = self.run(repo, "install")
        assert done.returncode == 0, said_by(done)
        return repo


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy this tree, with what is not committed in it, into a repository of its own."""
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no git repository, so the frameworks cannot clone it")
    folder = tmp_path_factory.mktemp("source")
    repo = Repo(folder / "repo", pinned_environment(folder / "home"))
    listed = Repo(ROOT, repo.env).git("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in map(os.fsdecode, listed.split(b"\0")):
        if name and (ROOT / name).is_file():
            (repo.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, repo.path / name, follow_symlinks=False)
    repo.git("init", "-q", "-b", "main")
    repo.commit(None, "This tree")
    return repo.path


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of prek and uv: beside this interpreter, else in an environment made for them."""
    ours = Path(sys.executable).parent
    if all((ours / name).exists() for name in PEERS):
        return ours
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *PEERS]
    done = subprocess.run(pip, check=False, capture_output=True)
    if done.returncode:
        pytest.skip("the package index cannot be reached, so prek and uv cannot be installed")
    return folder / "bin"


@pytest.fixture(scope="module", params=["pre-commit", "prek"] if IS_LONG else ["pre-commit"])
def framework(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, source: Path, programs: Path
) -> Framework:
    """Give a framework whose environment is built."""
    cache = tmp_path_factory.mktemp("cache")
    chosen = ("PIP_", "UV_", "SSL_", "REQUESTS_", "http_", "https_", "no_", "HTTP_", "HTTPS_", "NO_")
    env = {
        **{name: value for name, value in os.environ.items() if name.startswith(chosen)},
        "PRE_COMMIT_HOME": str(cache / "pre-commit"),
        "PREK_HOME": str(cache / "prek"),
        "PIP_CACHE_DIR": str(cache / "pip"),
        "UV_CACHE_DIR": str(cache / "uv"),
    }
    ours = Path(sys.executable).parent
    program = (programs if request.param == "prek" else ours) / request.param
    rev = Repo(source, pinned_environment(cache / "home")).head()
    env["PATH"] = f"{programs}:{pinned_environment(cache / 'home')['PATH']}"
    made = Framework(program, source, rev, env)
    repo = made.installed(tmp_path_factory.mktemp("first"))
    index = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(cache),
        "hatchling",
    ]
    if subprocess.run(index, check=False, capture_output=True).returncode:
        pytest.skip("the package index cannot be reached, so no environment can be built")
    done = made.run(repo, "install-hooks")
    if "error sending request" in said_by(done):
        pytest.skip("uv cannot reach the package index, though pip can, so prek can build no environment")
    assert done.returncode == 0, said_by(done)
    return made


@pytest.fixture
def repo(framework: Framework, tmp_path: Path) -> Repo:
    """Give a repository with the framework's hooks installed."""
    return framework.installed(tmp_path)


def stage(repo: Repo, files: Mapping[str, str]) -> None:
    """Write files and stage them."""
    for name, content in files.items():
        repo.write(name, content)
    repo.git("add", "-A")


def test_the_manifest_is_valid(framework: Framework, repo: Repo) -> None:
    done = framework.run(repo, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml"))
    assert done.returncode == 0, said_by(done)


def test_this_tree_can_be_tried_without_an_installation(framework: Framework, repo: Repo) -> None:
    if framework.program.name != "pre-commit" or not IS_LONG:
        pytest.skip("what is built anew each time is tried by one framework, with PATCHGATE_LONG=1")
    stage(repo, BAD)
    done = framework.run(repo, "try-repo", str(framework.source), "patchgate", "--verbose")
    assert done.returncode == 1
    assert "deny-prefix" in said_by(done)


def test_a_commit_is_refused_and_mended_is_accepted(repo: Repo) -> None:
    stage(repo, BAD | {"plain/a": "a\n"})
    before = repo.head()
    refused = repo.try_git("commit", "-m", "Add a file")
    assert refused.returncode == 1
    assert "error[deny-prefix]" in said_by(refused)
    assert "--> secrets/key" in said_by(refused)
    assert repo.head() == before
    repo.git("rm", "-q", "--cached", "secrets/key")
    repo.git("commit", "-q", "-m", "Add a file")
    assert repo.ask("show", "--format=", "--name-only", "HEAD") == "plain/a"


@pytest.mark.parametrize("gone", [("rm", "-q", "secrets/key"), ("mv", "secrets/key", "plain")])
def test_a_commit_that_only_takes_something_away_is_judged(repo: Repo, gone: tuple[str, ...]) -> None:
    repo.commit(BAD, "Plant")
    repo.commit({"plain": "x\n"} if gone[0] == "rm" else {"other": "x\n"}, "Go on")
    repo.git(*gone)
    refused = repo.try_git("commit", "-m", "Take it away")
    assert refused.returncode == 1
    assert "deny-prefix" in said_by(refused)


def test_a_commit_of_one_path_is_judged_by_what_it_commits(repo: Repo) -> None:
    repo.commit({"plain/a": "a\n"}, "Plant")
    stage(repo, BAD)
    repo.write("plain/a", "changed\n")
    repo.git("commit", "-q", "-m", "Change one file", "plain/a")
    refused = repo.try_git("commit", "-m", "Change the rest")
    assert refused.returncode == 1
    assert "secrets/key" in said_by(refused)


def test_a_message_is_refused(repo: Repo) -> None:
    stage(repo, {"plain/a": "a\n"})
    refused = repo.try_git("commit", "-m", "Make it robust and reliable")
    assert refused.returncode == 1
    assert "robust and reliable" in said_by(refused)
    repo.git("commit", "-q", "-m", "Add a file")


def test_a_merge_of_a_bad_branch_is_refused(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "side")
    repo.commit(BAD, "Plant")
    repo.git("switch", "-q", "main")
    repo.commit({"plain/a": "a\n"}, "Go on")
    refused = repo.try_git("merge", "-m", "Merge the side branch", "side")
    assert refused.returncode != 0
    assert "deny-prefix" in said_by(refused)
    repo.git("merge", "--abort")


def test_a_push_of_two_refs_whose_second_is_bad_is_refused(repo: Repo) -> None:
    repo.git(*OFF, "switch", "-q", "-c", "a-good")
    repo.commit({"plain/a": "a\n"}, "Add a file")
    repo.git(*OFF, "switch", "-q", "-c", "b-bad", "main")
    bad = repo.commit(BAD, "Add a key")
    repo.git(*OFF, "switch", "-q", "main")
    refused = repo.try_git("push", "origin", "a-good", "b-bad")
    assert refused.returncode != 0
    assert "deny-prefix" in said_by(refused)
    assert bad[:7] in said_by(refused)
    assert "first ref" in said_by(refused)
    assert repo.ask("ls-remote", "--heads", "origin").splitlines() == [
        f"{repo.ask('rev-parse', 'main')}\trefs/heads/main"
    ]
    repo.git(*OFF, "branch", "-q", "-D", "b-bad")
    repo.git("push", "-q", "origin", "a-good")


def test_a_skip_is_recorded_and_the_push_still_judges(repo: Repo) -> None:
    stage(repo, BAD)
    repo.git("commit", "-q", "-m", "Add a key", PATCHGATE_SKIP="a key for the demo, not a real one")
    log = repo.run("log", "--format", "json")
    assert "a key for the demo" in log.out
    refused = repo.try_git("push", "-q", "origin", "main", PATCHGATE_SKIP="a key for the demo")
    assert refused.returncode != 0
    assert "deny-prefix" in said_by(refused)


def test_doctor_knows_which_hooks_reach_patchgate_through_the_framework(
    repo: Repo, framework: Framework
) -> None:
    answer = repo.run("doctor")
    assert answer.code == 0, answer.out
    (reach,) = (line for line in answer.out.splitlines() if "4 of 5 hooks" in line)
    assert framework.program.name in reach
    assert "warning: reference-transaction: " in answer.out
