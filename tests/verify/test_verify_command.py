"""`git patchgate verify` as people and machines meet it, with real ruff and real bandit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.verify.verify_world import Workshop
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

RUFF = """\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--output-format", "sarif", "--exit-zero", "--select", "F", "--isolated", "."]
output = "sarif"
on = ["verify"]

[[thresholds]]
name = "no-new-findings"
metric = "findings:new"
max = 0
"""
BANDIT = """\
[commands.bandit]
kind = "lint"
command = ["bandit", "-q", "-r", "-f", "sarif", "--exit-zero", "."]
output = "sarif"
on = ["verify"]
"""
PRICES = "def total(count, price):\n    return count * price\n"
UNUSED = "import os\n\n\n"


def project(tmp_path: Path, policy: str) -> Repo:
    """Make a repository with two modules and a policy."""
    made = Repo.create(tmp_path)
    repo = Repo(made.path, made.env | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    stock = "def left(shelf, sold):\n    return shelf - sold\n"
    repo.commit({"prices.py": PRICES, "stock.py": stock, "patchgate.toml": policy}, "Open the shop")
    return repo


def test_a_whole_piece_of_work_with_real_ruff(tmp_path: Path) -> None:
    repo = project(tmp_path, RUFF)
    declared = repo.cli("intent", "declare", "-m", "Round prices to cents", "--allow", "prices.py")
    assert declared.code == 0
    repo.stage({"prices.py": UNUSED + PRICES})
    refused = repo.cli("verify")
    assert refused.code == 1
    lines = refused.out.splitlines()
    assert lines[0].startswith("rejected: 1 ")
    assert lines[0].endswith(": prices.py:1 F401")
    assert "  prices.py:1  F401  `os` imported but unused" in lines
    assert lines[-2].startswith("help: ")
    assert lines[-2].endswith(" git patchgate verify")
    assert lines[-1] == "rejected: regression, threshold-crossed"
    repo.stage({"prices.py": PRICES.replace("count * price", "round(count * price, 2)")})
    assert repo.cli("verify").code == 0
    # Somebody else's commit comes in between.
    repo.git("stash", "-q")
    repo.commit({"stock.py": UNUSED + (repo.path / "stock.py").read_text()}, "Count the stock")
    repo.git("stash", "pop", "-q", "--index")
    told = repo.cli("verify")
    assert told.code == 0
    assert told.out.startswith("accepted: ")
    assert " elsewhere" in told.out
    assert "  stock.py:1  F401  `os` imported but unused" in told.out
    assert "Count the stock" in told.out


def is_accepted_as_before(repo: Repo) -> bool:
    """Whether the last line accepts, with the one finding of before and no number besides."""
    last = repo.cli("verify").out.splitlines()[-1]
    return last.startswith("accepted: ") and re.findall(r"\d+", last) == ["1"]


def test_moved_lines_and_a_renamed_file_make_nothing_new_for_real_ruff(tmp_path: Path) -> None:
    repo = project(tmp_path, RUFF)
    repo.commit({"prices.py": UNUSED + PRICES})
    repo.stage({"prices.py": '"""Prices."""\n\n# on top\n' + UNUSED + PRICES})
    assert is_accepted_as_before(repo)
    repo.git("mv", "prices.py", "costs.py")
    assert is_accepted_as_before(repo)


def test_a_syntax_error_is_a_finding_of_real_ruff_and_leaves_real_bandit_without_an_answer(
    tmp_path: Path,
) -> None:
    repo = project(tmp_path, RUFF)
    repo.stage({"stock.py": "def left(:\n"})
    assert repo.cli("verify").code == 1
    other = project(tmp_path / "other", BANDIT)
    other.stage({"stock.py": "def left(:\n"})
    told = other.cli("verify")
    assert told.code == 3
    assert told.out.splitlines()[0].startswith("undecided: ")
    assert "stock.py" in told.out
    assert told.out.splitlines()[-1] == "undecided: unverified"


def test_a_regression_of_real_bandit_is_told(tmp_path: Path) -> None:
    repo = project(tmp_path, BANDIT)
    repo.stage({"stock.py": "def left(shelf):\n    return eval(shelf)\n"})
    told = repo.cli("verify")
    assert told.code == 1
    assert "  stock.py:2  B307  " in told.out


def test_a_missing_tool_is_undecided_and_says_what_to_do(tmp_path: Path) -> None:
    repo = project(
        tmp_path,
        '[commands.none]\nkind = "lint"\noutput = "sarif"\non = ["verify"]\ncommand = ["no-such-tool"]\n',
    )
    told = repo.cli("verify")
    assert told.code == 3
    assert "no-such-tool" in told.out
    assert any(line.startswith("help: ") for line in told.out.splitlines())


def test_quiet_prints_nothing_for_what_is_accepted(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    assert shop.cli("verify", "-q").out == ""
    shop.stage({"a.py": "1\nBAD\n"})
    assert shop.cli("verify", "-q").out.startswith("rejected: ")


def test_colour_is_as_asked_for(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    assert "\x1b[" not in shop.cli("verify").out
    assert shop.cli("verify", "--color", "always").out.startswith("\x1b[1;32maccepted\x1b[0m: ")
    assert "\x1b[" in shop.cli("verify", FORCE_COLOR="1").out
    assert "\x1b[" not in shop.cli("verify", FORCE_COLOR="1", NO_COLOR="1").out


def test_text_is_full(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    assert shop.cli("verify", "--format", "text").out == shop.cli("verify").out


def test_json_and_sarif_go_to_standard_output_alone(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"a.py": "1\nBAD old\n"})
    shop.stage({"a.py": "1\nBAD old\nBAD new\n"})
    for form in ("json", "sarif"):
        told = shop.cli("verify", "--format", form)
        assert told.code == 1
        assert told.err == ""
        assert told.out.count("\n") == 1
    log = json.loads(told.out)
    (run,) = [each for each in log["runs"] if each["tool"]["driver"]["name"] == "teller"]
    assert [each["baselineState"] for each in run["results"]] == ["unchanged", "new"]


def test_an_error_is_a_document_where_json_was_asked_for(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    told = shop.cli("verify", "nothing", "--format", "json")
    assert told.code == 2
    assert json.loads(told.out)["schema"] == "patchgate.error/1"


def test_it_runs_from_a_folder_and_for_another_one(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"deep/c.py": "1\n"})
    shop.stage({"a.py": "1\nBAD\n"})
    assert shop.cli("verify", cwd=shop.path / "deep").code == 1
    assert shop.cli("verify", "-C", str(shop.path), cwd=tmp_path).code == 1


def test_a_bare_repository_verifies_commits(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    shop.commit({"a.py": "1\nBAD\n"})
    shop.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = shop.at(tmp_path / "bare.git")
    assert bare.cli("verify", "HEAD").code == 1
    assert bare.cli("verify", "HEAD", "--base", "HEAD").code == 0
    staged = bare.cli("verify")
    assert staged.code == 2
    assert "help: " in staged.err


@pytest.mark.parametrize("name", [b'say "hi" -> it.py', "ünï.py".encode(), b" lead.py"])
def test_odd_names_are_told_as_git_quotes_them(tmp_path: Path, name: bytes) -> None:
    from patchgate.git.path import RepoPath

    shop = Workshop.open(tmp_path)
    shop.declare("a.py")
    shop.write(name, "1\nBAD\n")
    shop.stage()
    told = shop.cli("verify")
    assert told.code == 1
    assert f"\n  {RepoPath.from_git(name).quoted}\n" in told.out
    assert f"\n  {RepoPath.from_git(name).quoted}:2  B1  " in told.out


def test_the_help_names_every_option(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    told = shop.cli("verify", "-h")
    assert told.code == 0
    for word in ("--intent ID", "--base REV", "--format", "[REV]"):
        assert word in told.out


def test_the_schema_of_the_answer_is_printed(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    told = shop.cli("schema", "verification")
    assert told.code == 0
    assert json.loads(told.out)["$id"] == "urn:patchgate:verification:2"
