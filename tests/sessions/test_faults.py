"""Faults around the hooks: what breaks beside them costs a warning or a refusal, never a repository."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sessions.test_commit_hooks import POLICY, events, guarded, receipts, said
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)


def everything(repo: Repo, *, after_git: bool = False) -> dict[str, bytes]:
    """Read all that a check must leave alone: files, index, refs, stash, config.

    Where git itself was at work (`after_git`), the index is what it holds: git refreshes it.
    """
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(repo.path):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*names, *folders]:
            place = Path(folder, name)
            mode = oct(place.lstat().st_mode).encode()
            if place.is_symlink():
                found[str(place)] = mode + os.fsencode(place.readlink())
            elif place.is_file():
                found[str(place)] = mode + place.read_bytes()
            else:
                found[str(place)] = mode
    index = repo.path / ".git" / "index"
    found["index"] = repo.git("ls-files", "--stage") if after_git else index.read_bytes()
    found["config"] = (repo.path / ".git" / "config").read_bytes()
    found["refs"] = repo.git("for-each-ref") + repo.git("stash", "list")
    found["head"] = (repo.path / ".git" / "HEAD").read_bytes()
    return found


def test_two_worktrees_commit_at_once_and_both_have_their_receipt(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    trees = []
    for number in range(2):
        place = tmp_path / f"wt{number}"
        repo.git("worktree", "add", "-q", "-b", f"w{number}", str(place))
        trees.append(repo.at(place))

    def work(tree: Repo) -> None:
        for number in range(4):
            tree.stage({f"f{number}": f"{number} of {tree.path.name}\n"})
            tree.git("commit", "-q", "-m", f"{number}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, trees))
    made = repo.ask("rev-list", "w0", "w1", "^main").split()
    assert len(made) == 8
    assert set(made) <= set(receipts(repo))
    assert repo.run("log", "--verify").code == 0


def test_a_full_disk_under_the_ledger_costs_a_warning_and_no_verdict(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    ledger = repo.path / ".git" / "patchgate" / "events.jsonl"
    # No file may grow beyond what the ledger has already: an append is cut short, as on a full disk.
    before = ledger.read_bytes() if ledger.exists() else b""
    ledger.write_bytes(before)
    repo.stage({"secrets/k": "k\n"})
    head = repo.head()
    limit = max(len(before), 1)

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [EXECUTABLE, "hook", "pre-commit"],
        cwd=repo.path,
        env=repo.env,
        capture_output=True,
        preexec_fn=small_disk,
        check=False,
    )
    assert done.returncode == 1
    assert b"deny-prefix" in done.stdout
    assert b"warning" in done.stdout
    assert b"Traceback" not in done.stdout + done.stderr
    assert ledger.read_bytes() == before
    assert repo.head() == head


def test_a_ledger_s_folder_that_is_none_costs_a_warning_and_no_verdict(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    folder = repo.path / ".git" / "patchgate"
    shutil.rmtree(folder)
    folder.write_text("a file stands where the folder was\n")
    repo.stage({"a": "a\n"})
    good = repo.try_git("commit", "-q", "-m", "good")
    assert good.returncode == 0, said(good)
    repo.stage({"secrets/k": "k\n"})
    bad = repo.try_git("commit", "-q", "-m", "bad")
    assert bad.returncode == 1
    assert "deny-prefix" in said(bad)


def test_a_hook_that_is_killed_refuses_the_commit(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    hook = repo.path / ".git" / "hooks" / "pre-commit"
    # What stands between git and our program dies by a signal before it answers.
    shutil.copy(hook, hook.with_name("kept"))
    hook.write_text("#!/bin/sh\nkill -9 $$\n")
    repo.stage({"a": "a\n"})
    before = everything(repo, after_git=True)
    assert repo.try_git("commit", "-q", "-m", "a").returncode != 0
    assert everything(repo, after_git=True) == before


def test_a_killed_patchgate_refuses_the_commit(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    shadow = tmp_path / "git-patchgate"
    shadow.write_text("#!/bin/sh\nkill -9 $$\n")
    shadow.chmod(0o755)
    hook = repo.path / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace(str(EXECUTABLE), str(shadow)))
    repo.stage({"a": "a\n"})
    before = everything(repo, after_git=True)
    assert repo.try_git("commit", "-q", "-m", "a").returncode != 0
    assert everything(repo, after_git=True) == before


def test_a_base_policy_with_a_syntax_error_refuses_all_but_its_own_mending(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy\n")
    repo.install()
    repo.stage({"a": "a\n"})
    done = repo.try_git("commit", "-q", "-m", "a")
    assert done.returncode in {3, 1}
    assert "patchgate.toml:1" in said(done)
    assert "Traceback" not in said(done)
    repo.git("rm", "-q", "--cached", "a")
    repo.write("patchgate.toml", POLICY)
    repo.git("commit", "-q", "-m", "mend", "patchgate.toml")
    assert receipts(repo) == [repo.head()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_another_user_s_repository_is_refused_in_one_sentence(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    for folder, folders, names in os.walk(repo.path):
        for name in [*folders, *names]:
            os.lchown(Path(folder, name), 12345, 12345)
    os.chown(repo.path, 12345, 12345)
    done = repo.run("hook", "pre-commit")
    assert done.code == 3
    assert "safe.directory" in done.err


def test_a_held_index_lock_does_not_hinder_the_judgement(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"a": "a\n"})
    (repo.path / ".git" / "index.lock").write_bytes(b"")
    before = everything(repo)
    assert repo.run("hook", "pre-commit").code == 0
    assert everything(repo) == before
    assert (repo.path / ".git" / "index.lock").read_bytes() == b""


def dirty(repo: Repo, chance: random.Random) -> None:
    """Put a repository into some state that people have: partly staged, conflicted, sparse, filtered."""
    names = [f"d{number % 3}/f{number}" for number in range(8)]
    for name in chance.sample(names, 5):
        step = chance.randrange(9)
        place = repo.path / name
        if step == 0:
            repo.write(name, f"staged {chance.random()}\n")
            repo.try_git("add", name)
            repo.write(name, f"and edited {chance.random()}\n")
        elif step == 1:
            repo.try_git("rm", "-q", "--cached", name)
        elif step == 2:
            place.unlink(missing_ok=True)
        elif step == 3:
            new = f"new{chance.randrange(99)}"
            repo.write(new, "later\n")
            repo.try_git("add", "-N", new)
        elif step == 4:
            place.unlink(missing_ok=True)
            repo.link(name, "../target")
            repo.try_git("add", name)
        elif step == 5 and place.exists():
            place.chmod(0o755)
            repo.try_git("add", name)
        elif step == 6:
            repo.gitlink(f"sub{chance.randrange(9)}")
        elif step == 7:
            repo.write(f"untracked{chance.randrange(9)}", "x\n")
        else:
            repo.write(".gitattributes", "*.up filter=up\nd1/* text eol=crlf\n")
            repo.write(f"x{chance.randrange(9)}.up", "filtered\n")
            repo.try_git("add", "-A", "--", "*.up")
    more = chance.randrange(5)
    if more == 0:
        repo.try_git("stash", "push", "-q", "--keep-index")
    elif more == 1:
        repo.try_git("sparse-checkout", "set", "--cone", "d0")
    elif more == 2:
        repo.try_git("-c", "core.hooksPath=/dev/null", "merge", "-q", "other")
    elif more == 3:
        repo.try_git("update-index", "--assume-unchanged", "d0/f0")


@pytest.mark.parametrize("block", range(10 if os.environ.get("PATCHGATE_LONG") else 1))
def test_in_no_state_does_a_hook_change_files_index_refs_stash_or_config(tmp_path: Path, block: int) -> None:
    """50 random states in CI, 500 with PATCHGATE_LONG=1: the hooks leave every byte as it was."""
    chance = random.Random(block)
    base = Repo.create(tmp_path)
    base.git("config", "filter.up.clean", "tr a-z A-Z")
    base.git("config", "filter.up.smudge", "cat")
    base.commit({f"d{number % 3}/f{number}": f"{number}\n" for number in range(8)})
    base.git("switch", "-q", "-c", "other")
    base.commit({"d0/f0": "theirs\n"})
    base.git("switch", "-q", "main")
    base.commit({"d0/f0": "ours\n"})
    base.policy(POLICY)
    base.install()
    for number in range(50):
        place = tmp_path / f"state{number}"
        shutil.copytree(base.path, place, symlinks=True)
        repo = base.at(place)
        dirty(repo, chance)
        before = everything(repo)
        done = repo.run("hook", "pre-commit")
        assert done.code in {0, 1, 3}, done.err
        assert "Traceback" not in done.err + done.out
        head = repo.head()
        line = f"{'0' * 40} {head} refs/heads/made-up\n".encode()
        assert repo.run("hook", "reference-transaction", "prepared", stdin=line).code in {0, 1, 3}
        push = f"refs/heads/main {head} refs/heads/main {'0' * 40}\n".encode()
        assert repo.run("hook", "pre-push", "origin", "url", stdin=push).code in {0, 1, 3}
        assert everything(repo) == before
        shutil.rmtree(place)


def test_a_torn_ledger_goes_on(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    assert repo.try_git("commit", "-q", "-m", "bad").returncode == 1
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.write_bytes(place.read_bytes() + b'{"kind": "ref')
    done = repo.try_git("commit", "-q", "-m", "bad")
    assert done.returncode == 1
    assert len([each for each in events(repo) if each["kind"] == "refused"]) == 2
    assert repo.run("log", "--verify").code == 0
    assert json.loads(place.read_bytes().splitlines()[-1])
