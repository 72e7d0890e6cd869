"""`git patchgate analyze` with real ruff, and with scripts for what ruff never does: words, JSON, SARIF."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sarif_pydantic import Sarif

from patchgate.cli.progress import Progress
from patchgate.verify.analysis_output import analysis_schema
from tests.verify.analysis_world import sarif
from tests.world import EXECUTABLE, Answer, Repo

pytestmark = pytest.mark.turns(3)

RUFF = """\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--isolated", "--no-cache", "--output-format", "sarif", "--exit-zero", "."]
output = "sarif"
on = ["verify"]
"""
UNUSED = "import os\n"


def declared(name: str, script: str, form: str = "sarif") -> str:
    words = json.dumps(["sh", "-c", script])
    return f'[commands.{name}]\nkind = "lint"\non = ["verify"]\noutput = "{form}"\ncommand = {words}\n'


def metrics(*values: tuple[str, str, float]) -> str:
    told = [
        {"path": path, "symbol": symbol, "name": "complexity", "value": value}
        for path, symbol, value in values
    ]
    return json.dumps({"metrics": told})


def begin(tmp_path: Path, *policy: str) -> Repo:
    made = Repo.create(tmp_path)
    repo = Repo(made.path, {**made.env, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    repo.policy("".join(policy))
    return repo


def tree_of(repo: Repo) -> str:
    return repo.ask("write-tree")[:12]


def documented(answer: Answer) -> dict[str, Any]:
    assert answer.out.isascii()
    Draft202012Validator(analysis_schema()).validate(answer.report)
    return answer.report


def read_sarif(answer: Answer) -> Any:
    assert answer.out.isascii()
    Sarif.model_validate_json(answer.out)
    return json.loads(answer.out)["runs"]


def test_the_findings_of_ruff_are_told_with_exit_code_0(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.stage({"src/a.py": UNUSED})
    told = repo.cli("analyze")
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "ruff: 1 finding",
        "  src/a.py:1  F401  `os` imported but unused",
        f"findings: 1 (staged, tree {tree_of(repo)})",
    ]
    assert repo.cli("analyze") == told


def test_a_clean_tree_says_so(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.stage({"a.py": "total = 1\n"})
    told = repo.run("analyze")
    assert (told.code, told.out) == (0, f"ruff: clean\nclean: no findings (staged, tree {tree_of(repo)})\n")


def test_what_is_analysed_is_what_was_named(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.commit({"a.py": "total = 1\n"})
    repo.stage({"a.py": "import os\n"})
    repo.write("a.py", "import os\nimport sys\n")
    found = {
        what: len(documented(repo.cli("analyze", "--tree", what, "--format", "json"))["runs"][0]["results"])
        for what in ("HEAD", "staged", "worktree")
    }
    assert found == {"HEAD": 0, "staged": 1, "worktree": 2}
    for option, what in (("--staged", "staged"), ("--cached", "staged"), ("--worktree", "worktree")):
        told = documented(repo.cli("analyze", option, "--format", "json"))
        assert len(told["runs"][0]["results"]) == found[what]
    assert repo.cli("analyze", "--staged", "--tree", "HEAD").code == 2


def test_the_document_says_everything_of_a_run(tmp_path: Path) -> None:
    repo = begin(
        tmp_path, RUFF, declared("size", f"echo '{metrics(('a.py', 'f', 3), ('a.py', '', 9.5))}'", "metrics")
    )
    repo.stage({"a.py": UNUSED})
    told = documented(repo.cli("analyze", "--format", "json"))
    assert (told["schema"], told["outcome"], told["target"]) == ("patchgate.analysis/2", "findings", "staged")
    assert (told["tree"], told["commit"]) == (repo.ask("write-tree"), repo.head())
    assert (told["is_stable"], told["unstable"]) == (None, [])
    ruff, size = told["runs"]
    (result,) = ruff["results"]
    assert (result["path"], result["line"], result["rule"]) == ("a.py", 1, "F401")
    assert ruff["suppressed"] == []
    assert ruff["tool"].endswith("/ruff")
    assert (size["outcome"], size["results"]) == ("clean", [])
    assert [(each["symbol"], each["value"]) for each in size["metrics"]] == [("", 9.5), ("f", 3)]
    text = repo.cli("analyze").out
    assert "size: 2 values\n  highest complexity  9.5  a.py\n" in text


def test_sarif_has_a_run_for_each_analysis_and_one_that_failed_says_so(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF, declared("broken", "echo no sarif"))
    repo.stage({"a b.py": UNUSED})
    told = repo.cli("analyze", "--format", "sarif")
    assert told.code == 3
    broken, ruff = read_sarif(told)
    assert broken["invocations"][0]["executionSuccessful"] is False
    assert "broken" in broken["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert ruff["invocations"] == [{"executionSuccessful": True}]
    (result,) = ruff["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    assert "baselineState" not in result


@pytest.mark.parametrize(
    "script",
    ["echo no sarif", "exit 3", "kill -9 $$", "true", "exec no-such-program-here", "echo >>patchgate.toml"],
)
def test_what_could_not_be_evaluated_is_exit_code_3_with_reason_and_help(tmp_path: Path, script: str) -> None:
    repo = begin(tmp_path, RUFF, declared("broken", script))
    repo.stage({"a.py": UNUSED})
    told = repo.cli("analyze")
    assert told.code == 3
    lines = told.out.splitlines()
    assert lines[:2] == ["ruff: 1 finding", "  a.py:1  F401  `os` imported but unused"]
    assert lines[2].startswith("not evaluated: the analysis `broken` ")
    assert lines[3].startswith("  help: ")
    assert lines[-1].startswith("undecided: broken ")
    assert lines[-1].endswith(f" (staged, tree {tree_of(repo)})")
    document = documented(repo.cli("analyze", "--format", "json"))
    assert document["outcome"] == "undecided"
    (run,) = (run for run in document["runs"] if run["outcome"] == "not-evaluated")
    assert (run["analysis"], run["digest"], run["results"]) == ("broken", None, [])
    assert lines[2] == f"not evaluated: {run['reason']}"
    assert lines[3] == f"  help: {run['hint']}"


def test_a_tool_that_tells_the_same_twice_is_stable(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.stage({"a.py": UNUSED})
    told = repo.cli("analyze", "--check-stable")
    assert told.code == 0
    last = told.out.splitlines()[-1]
    assert last.startswith("findings: 1, ")
    assert last.endswith(f" (staged, tree {tree_of(repo)})")
    assert documented(repo.cli("analyze", "--check-stable", "--format", "json"))["is_stable"] is True


def test_a_tool_that_tells_two_things_is_named_with_what_it_told_once(tmp_path: Path) -> None:
    (tmp_path / "both").write_text(sarif(("R1", "a.py", 1), ("R2", "a.py", 1)))
    (tmp_path / "one").write_text(sarif(("R1", "a.py", 1)))
    flip = f"cd {tmp_path}; if test -e flag; then rm flag; cat both; else touch flag; cat one; fi"
    repo = begin(tmp_path, RUFF, declared("moody", flip))
    repo.stage({"a.py": "total = 1\n"})
    told = repo.cli("analyze", "--check-stable")
    assert told.code == 3
    lines = told.out.splitlines()
    unlike = lines[lines.index("  a.py:1  R2  R2 says") - 1]
    assert unlike.startswith("moody: ")
    assert "1" in unlike.split()
    assert lines[-1].startswith("undecided: moody ")
    assert " (staged, " in lines[-1]
    document = documented(repo.cli("analyze", "--check-stable", "--format", "json"))
    assert (document["is_stable"], document["unstable"], document["outcome"]) == (
        False,
        ["moody"],
        "undecided",
    )


def test_one_that_fails_in_one_of_two_runs_was_not_evaluated(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(sarif())
    flip = f"cd {tmp_path}; test -e flag && exit 4; touch flag; cat report"
    repo = begin(tmp_path, declared("moody", flip))
    told = repo.cli("analyze", "--check-stable", "--format", "json")
    document = documented(told)
    assert told.code == 3
    assert [run["outcome"] for run in document["runs"]] == ["not-evaluated"]
    assert (document["is_stable"], document["unstable"]) == (False, [])


def test_hostile_names_and_messages_reach_no_terminal_raw(tmp_path: Path) -> None:
    name = "\x1b[31m->\n##[error].py"
    log = json.loads(sarif(("R\x1b[1m", "x", 1)))
    (result,) = log["runs"][0]["results"]
    result["message"]["text"] = "\x1b]0;title\x07\n::error::\u202e"
    result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = (
        "%1B%5B31m-%3E%0A%23%23%5Berror%5D.py"
    )
    (tmp_path / "report").write_text(json.dumps(log))
    repo = begin(tmp_path, declared("told", f"cat {tmp_path}/report"))
    repo.stage({name: "text\n"})
    told = repo.cli("analyze")
    assert told.code == 0
    assert [line for line in told.out.splitlines() if not line.isprintable()] == []
    assert "##[" not in told.out
    assert not any(line.startswith("::") for line in told.out.splitlines())
    document = documented(repo.cli("analyze", "--format", "json"))
    assert document["runs"][0]["results"][0]["path"].startswith('"\\033[31m')
    read_sarif(repo.cli("analyze", "--format", "sarif"))


def test_a_long_list_is_cut_for_people_and_whole_for_machines(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(sarif(*((f"R{n % 2}", "a.py", n + 1) for n in range(70))))
    repo = begin(tmp_path, declared("told", f"cat {tmp_path}/report"))
    repo.stage({"a.py": ""})
    told = repo.cli("analyze").out.splitlines()
    assert (told[0], len(told)) == ("told: 70 findings", 53)
    assert told[51] == "  … and 20 more: 10 R0, 10 R1"
    assert told[52].startswith("findings: 70 (")
    assert len(repo.cli("analyze", "--format", "json").report["runs"][0]["results"]) == 70


@pytest.mark.parametrize("what", ["nobody", "--x", "HEAD:a.py", "\x1b[31m"])
def test_what_is_no_revision_is_exit_code_2(tmp_path: Path, what: str) -> None:
    repo = begin(tmp_path, RUFF)
    told = repo.cli("analyze", f"--tree={what}")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("error: ")
    assert "revision" in told.err
    assert told.err.replace("\n", "").isprintable()


def test_a_policy_without_analyses_is_exit_code_2_with_what_to_write(tmp_path: Path) -> None:
    repo = begin(tmp_path, "[policy]\n")
    repo.write("patchgate.toml", RUFF)
    repo.stage()
    told = repo.cli("analyze")
    assert (told.code, told.out) == (2, "")
    error, step = told.err.splitlines()[:2]
    assert (error.startswith("error: "), " HEAD " in error) == (True, True)
    assert step.startswith("help: add [commands.NAME]")
    assert repo.cli("analyze", "--format", "json").error["kind"] == "usage"


def test_a_conflict_in_the_index_is_undecided(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.commit({"a.py": "a = 1\n"})
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"a.py": "a = 2\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a.py": "a = 3\n"})
    assert repo.try_git("merge", "-q", "other").returncode == 1
    assert repo.cli("analyze").code == 3
    assert repo.cli("analyze", "--tree", "HEAD").code == 0


def test_it_runs_from_a_folder_and_for_another_directory(tmp_path: Path) -> None:
    repo = begin(tmp_path, RUFF)
    repo.stage({"deep/a.py": UNUSED})
    told = repo.cli("analyze")
    assert repo.cli("analyze", cwd=repo.path / "deep") == told
    assert repo.cli("analyze", "-C", str(repo.path), cwd=tmp_path) == told


def test_the_schema_is_printed(tmp_path: Path) -> None:
    printed = json.loads(Repo.create(tmp_path).cli("schema", "analysis").out)
    assert printed == analysis_schema()
    Draft202012Validator.check_schema(printed)


def test_two_processes_at_once_run_an_analysis_once(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(sarif(("R1", "a.py", 1)))
    os.mkfifo(tmp_path / "go")
    script = f"cd {tmp_path}; echo ran >>count; test $(wc -l <count) = 1 && read line <go; cat report"
    repo = begin(tmp_path, declared("slow", script))
    argv = [str(EXECUTABLE), "analyze"]
    with subprocess.Popen(argv, cwd=repo.path, env=repo.env, stdout=subprocess.PIPE) as first:
        with open(tmp_path / "go", "wb") as going:
            # The first one's analysis has begun: the fifo has a reader.
            second = subprocess.Popen(argv, cwd=repo.path, env=repo.env, stdout=subprocess.PIPE)
            going.write(b"go\n")
        told = [process.communicate()[0] for process in (first, second)]
    assert told[0] == told[1]
    assert told[0].startswith(b"slow: 1 finding\n")
    assert (tmp_path / "count").read_text() == "ran\n"


def test_what_the_tool_suppressed_is_counted_and_left_out_of_sarif(tmp_path: Path) -> None:
    log = json.loads(sarif(("R1", "a.py", 1), ("R2", "a.py", 2)))
    log["runs"][0]["results"][1]["suppressions"] = [{"kind": "inSource"}]
    (tmp_path / "report").write_text(json.dumps(log))
    repo = begin(tmp_path, declared("told", f"cat {tmp_path}/report"))
    repo.stage({"a.py": ""})
    assert repo.cli("analyze").out.startswith("told: 1 finding, 1 suppressed\n  a.py:1  R1  R1 says\n")
    (run,) = documented(repo.cli("analyze", "--format", "json"))["runs"]
    assert [each["rule"] for each in run["suppressed"]] == ["R2"]
    (read,) = read_sarif(repo.cli("analyze", "--format", "sarif"))
    assert [each["ruleId"] for each in read["results"]] == ["R1"]


def test_what_is_waited_for_is_not_said_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(quiet=False)
    progress.report("waiting for somebody else", 1.2)
    progress.report("waiting for somebody else", 2.2)
    progress.report("the analysis ruff", 1.0)
    assert (
        capsys.readouterr().err
        == "waiting for somebody else for 1 s …\nrunning the analysis ruff for 1 s …\n"
    )
