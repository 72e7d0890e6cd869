"""The hook `patchgate-placeholders` under a real pre-commit, as the manifest has it, in this environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.world import Repo

MANIFEST = Path(__file__).parent.parent.parent / ".pre-commit-hooks.yaml"
TODO = "# TODO: read the file\n"


def ran(repo: Repo, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", *arguments]
    return subprocess.run(command, cwd=repo.path, env=repo.env, capture_output=True, check=False, text=True)


def test_pre_commit_hands_it_the_files_and_a_placeholder_stops_the_commit(tmp_path: Path) -> None:
    hooks = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    (ours,) = (each for each in hooks if each["id"] == "patchgate-placeholders")
    local = {"repo": "local", "hooks": [{**ours, "language": "system"}]}
    repo = Repo.create(tmp_path)
    start = repo.commit({".pre-commit-config.yaml": json.dumps({"repos": [local]}), "old.py": TODO})
    assert ran(repo, "install").returncode == 0
    repo.write("old.py", f"{TODO}x = 1\n")
    repo.git("commit", "-q", "-a", "-m", "Change what is near an old one")
    repo.stage({"new file.py": "def f():\n    pass\n"})
    refused = repo.try_git("commit", "-m", "Add a function")
    assert refused.returncode == 1
    assert b"placeholder-body" in refused.stdout + refused.stderr
    # What is not staged is set aside by the framework, and does not count.
    repo.write("new file.py", "def f():\n    return 1\n")
    assert repo.try_git("commit", "-m", "Add a function").returncode == 1
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "Add a function")
    repo.commit({"later.py": TODO})
    assert ran(repo, "run", "--all-files").returncode == 0
    ranged = ran(repo, "run", "--from-ref", start, "--to-ref", "HEAD")
    assert (ranged.returncode, "later.py:1" in ranged.stdout) == (1, True)
    assert "new file.py" not in ranged.stdout
