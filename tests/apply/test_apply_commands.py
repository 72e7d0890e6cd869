"""`apply` runs what the one table declares for it: formatters, findings, files, roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_world import tool
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

PYTHON = 'files = ["*.py"]\n'
RUFF = f"""\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--isolated", "--no-cache", "--exit-zero", "--output-format=sarif", "{{files}}"]
output = "sarif"
{PYTHON}
"""
FORMAT = f"""\
[commands.format]
kind = "format"
command = ["ruff", "format", "--isolated", "--no-cache", "{{files}}"]
{PYTHON}
"""
NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n"


def applied(repo: Repo, patch: str) -> Answer:
    (repo.path.parent / "x.patch").write_text(patch)
    return repo.cli("apply", str(repo.path.parent / "x.patch"), "--dry-run", "--format", "json")


def test_a_formatter_that_would_change_the_patch_refuses_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(FORMAT)
    answer = applied(repo, NEW.format("a.py", "x  =  1"))
    assert (answer.code, answer.errors) == (1, ["lint-failed"])
    assert answer.findings[0]["path"] == "a.py"
    assert applied(repo, NEW.format("a.py", "x = 1")).code == 0
    assert applied(repo, NEW.format("a.txt", "x  =  1")).code == 0


def test_findings_refuse_though_the_tool_ends_with_0_and_old_ones_do_not_with_new_only(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(RUFF)
    repo.commit({"old.py": "import os\n\nx = 1\n"})
    assert applied(repo, NEW.format("a.py", "import sys")).errors == ["lint-failed"]
    assert applied(repo, NEW.format("a.py", "x = 1")).code == 0
    change = "diff --git a/old.py b/old.py\n--- a/old.py\n+++ b/old.py\n@@ -3 +3 @@\n-x = 1\n+x = 2\n"
    assert applied(repo, change).errors == ["failed-before"]
    repo.policy(RUFF + "new_only = true\n")
    answer = applied(repo, change)
    assert (answer.code, answer.rules) == (0, ["failed-before"])


def test_a_command_for_other_files_or_another_occasion_does_not_run(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    policy = (
        tool("commits", "exit 1")
        + tool("python", "exit 1", on='["apply"]', more='files = ["*.py"]\n')
        + tool("api", 'test "$PWD/$1" -ef "$1" && test "$1" = ./b', on='["apply"]', more='root = "api"\n')
    )
    repo.policy(policy)
    assert applied(repo, NEW.format("a", "x") + NEW.format("api/b", "x")).code == 0
