"""An analysis is run and read: real ruff and bandit, and every way in which a tool tells nothing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from patchgate.commands import analysis
from patchgate.commands.analysis import run_analysis
from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisRun
from patchgate.commands.programs import tool_identity
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.policy.command_settings import AnalysisFormat
from tests.command_world import analysis as declared
from tests.world import pinned_environment

RUFF = ("ruff", "check", "--isolated", "--no-cache", "--output-format", "sarif")
BANDIT = ("bandit", "-q", "-f", "sarif", "-r", ".")
CLEAN = '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "probe"}}, "results": []}]}'


class World:
    """A folder that stands for a scratch tree, and the environment of a caller."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "tree"
        self.place.mkdir()
        self.environ = pinned_environment(folder / "home")
        self._folder = folder
        self._count = 0

    @property
    def last(self) -> Path:
        """The folder with the output and the log of the last run."""
        return self._folder / f"run{self._count}"

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.place / f"{name}.py").write_text(text)

    def lines(self, path: RepoPath) -> Sequence[bytes] | None:
        file = self.place / os.fsdecode(path.raw)
        return file.read_bytes().split(b"\n") if file.is_file() else None

    def analyse(
        self,
        *command: str,
        format: AnalysisFormat = "sarif",  # noqa: A002
        timeout: float = 60,
        required_tools: tuple[str, ...] = (),
        mask: Callable[[bytes], bytes] | None = None,
        tick: Callable[[float], None] | None = None,
    ) -> AnalysisRun:
        self._count += 1
        self.last.mkdir()
        return run_analysis(
            "lint",
            declared(command, format, timeout, {}, required_tools),
            place=str(self.place),
            environ=self.environ,
            folder=str(self.last),
            text_of=self.lines,
            mask=mask,
            tick=tick,
        )

    def said(self, text: str, *, code: int = 0, format: AnalysisFormat = "sarif") -> AnalysisRun:  # noqa: A002
        """Analyse with a tool that writes a text and ends."""
        (self._folder / "said").write_text(text)
        return self.analyse("sh", "-c", f'cat "{self._folder}/said"; exit {code}', format=format)

    def untold(self, *command: str, **more: Any) -> tuple[str, str]:
        """Analyse with what cannot be evaluated; gives the reason and the hint."""
        run = self.analyse(*command, **more)
        assert (run.outcome, run.results, run.measurements) == (AnalysisOutcome.NOT_EVALUATED, (), ())
        assert run.reason is not None
        assert run.reason.startswith("the analysis `lint` ")
        assert run.hint
        assert (run.reason + run.hint).isprintable()
        return run.reason.removeprefix("the analysis `lint` "), run.hint


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def identities(run: AnalysisRun) -> Counter[tuple[object, ...]]:
    return Counter((each.tool, each.rule, each.paths, each.mark) for each in run.results)


# ---- real tools ------------------------------------------------------------------------------------------


def test_ruff_tells_what_it_finds_with_paths_of_the_tree(world: World) -> None:
    world.write(a="import os\n")
    (world.place / "sub").mkdir()
    (world.place / "sub" / 'b "ä".py').write_text("import sys\n")
    run = world.analyse(*RUFF, ".")
    assert (run.outcome, run.reason, run.key, run.digest) == (AnalysisOutcome.FINDINGS, None, "", "")
    assert run.tool == shutil.which("ruff", path=world.environ["PATH"])
    assert [(each.tool, each.rule, each.path, each.line) for each in run.results] == [
        ("ruff", "F401", RepoPath(b"a.py"), 1),
        ("ruff", "F401", RepoPath('sub/b "ä".py'.encode()), 1),
    ]
    assert "`os` imported but unused" in run.results[0].message


def test_ruff_without_findings_is_clean_with_exit_zero_or_not(world: World) -> None:
    world.write(a="x = 1\n")
    assert world.analyse(*RUFF, ".").outcome is AnalysisOutcome.CLEAN
    assert world.analyse(*RUFF, "--exit-zero", ".").outcome is AnalysisOutcome.CLEAN


def test_with_lines_inserted_on_top_or_another_name_ruffs_findings_keep_their_identity(world: World) -> None:
    text = "import os\nimport sys\n\n\ndef f(x):\n    if x == None:\n        y = 1\n\n\ndef g():\n    y = 1\n"
    world.write(a=text)
    before = world.analyse(*RUFF, "--select", "F,E,D100,ANN,PLR2004,W,INP001", ".")
    world.write(a="# one\n# two\n\n" + text)
    after = world.analyse(*RUFF, "--select", "F,E,D100,ANN,PLR2004,W,INP001", ".")
    assert len(before.results) >= 8
    assert identities(before) == identities(after)
    assert before.results != after.results
    (world.place / "a.py").rename(world.place / "b.py")
    renamed = world.analyse(*RUFF, "--select", "F,E,D100,ANN,PLR2004,W,INP001", ".")
    assert [each.mark for each in renamed.results] == [each.mark for each in after.results]


def test_ruff_makes_a_finding_of_a_syntax_error_and_refuses_what_it_cannot_be_asked(world: World) -> None:
    world.write(a="def f(:\n")
    run = world.analyse(*RUFF, ".")
    assert run.outcome is AnalysisOutcome.FINDINGS
    assert {each.rule for each in run.results} == {"invalid-syntax"}
    reason, hint = world.untold(*RUFF, "--select", "NOSUCH", ".")
    assert " 2: ruff failed / Cause: Unknown rule selector `NOSUCH`" in reason
    assert "--exit-zero" in hint


def test_bandit_tells_what_it_finds(world: World) -> None:
    world.write(a="x = 1\nassert x\n")
    run = world.analyse(*BANDIT)
    assert run.outcome is AnalysisOutcome.FINDINGS
    assert [(each.tool, each.rule, each.level, each.path, each.line) for each in run.results] == [
        ("Bandit", "B101", "note", RepoPath(b"a.py"), 2)
    ]


def test_what_a_tool_finds_from_another_folder_is_in_no_file(world: World) -> None:
    (world.place / "src").mkdir()
    (world.place / "src" / "a.py").write_text("assert 1\n")
    run = world.analyse("sh", "-c", f"cd src && {' '.join(BANDIT)}")
    assert [(each.rule, each.path, each.line) for each in run.results] == [("B101", None, None)]
    (world.place / "src" / "b.py").write_text("assert 1\n")
    both = world.analyse("sh", "-c", f"cd src && {' '.join(BANDIT)}")
    assert len({each.mark for each in both.results}) == 2
    assert run.results[0].mark in {each.mark for each in both.results}


def test_what_ruff_finds_in_a_file_whose_name_it_cannot_write_is_in_no_file(world: World) -> None:
    Path(os.fsdecode(os.fsencode(world.place) + b"/f\xff.py")).write_text("import os\n")
    run = world.analyse(*RUFF, ".")
    assert [(each.rule, each.path) for each in run.results] == [("F401", None)]


def notebook(*cells: str) -> str:
    made: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": [cell]}
        for cell in cells
    ]
    about = {"language_info": {"name": "python"}}
    return json.dumps({"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_with_a_cell_on_top_of_a_notebook_ruffs_findings_keep_their_identity(world: World) -> None:
    file = world.place / "n.ipynb"
    file.write_text(notebook("import os\nimport sys", "import re"))
    before = world.analyse(*RUFF, ".")
    file.write_text(notebook("x = 1\ny = 2\nz = 3", "import os\nimport sys", "import re"))
    after = world.analyse(*RUFF, ".")
    assert [each.rule for each in before.results] == ["F401"] * 3
    assert identities(before) == identities(after)
    file.write_text(notebook("import os\nimport sys", "import re", "import io"))
    assert (identities(world.analyse(*RUFF, ".")) - identities(before)).total() == 1


def test_bandit_that_could_not_read_a_file_tells_nothing_though_it_says_that_it_succeeded(
    world: World,
) -> None:
    world.write(a="x = 1\n", bad="def f(:\n")
    reason, _ = world.untold(*BANDIT)
    (run,) = json.loads((world.last / "output").read_bytes())["runs"]
    assert run["invocations"][0]["executionSuccessful"] is True
    assert reason.endswith(": syntax error while parsing AST from file (bad.py)")


# ---- what ends otherwise ---------------------------------------------------------------------------------


def test_exit_code_one_is_that_of_findings_and_says_nothing_by_itself(world: World) -> None:
    for code in (0, 1):
        run = world.said(CLEAN, code=code)
        assert (run.outcome, run.reason, run.results) == (AnalysisOutcome.CLEAN, None, ())


@pytest.mark.parametrize("code", [2, 3, 127])
def test_another_exit_code_is_never_clean_whatever_was_written(world: World, code: int) -> None:
    run = world.said(CLEAN, code=code)
    assert run.outcome is AnalysisOutcome.NOT_EVALUATED
    assert {"`lint`", str(code)} <= set((run.reason or "").split())


def test_what_a_tool_says_at_its_end_is_told_safely_and_masked(world: World) -> None:
    script = "echo hidden >&2; printf 'key hid\\033[31mden\\033[0m \\001\\n\\n' >&2; exit 2"
    reason, _ = world.untold("sh", "-c", script, mask=lambda raw: raw.replace(b"hidden", b"***"))
    assert reason.endswith(r" 2: *** / key *** \x01")
    assert b"hidden" not in (world.last / "log").read_bytes()


def test_a_signal_is_named(world: World) -> None:
    assert world.untold("sh", "-c", "kill -SEGV $$")[0].endswith(" SIGSEGV")


def test_one_that_never_ends_is_ended(world: World) -> None:
    ticks: list[float] = []
    reason, hint = world.untold("sh", "-c", f"echo '{CLEAN}'; sleep 1000", timeout=1.5, tick=ticks.append)
    assert " 1.5 s " in reason
    assert "timeout" in hint
    assert ticks


def test_one_that_never_stops_to_write_is_ended_and_the_limit_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "MAX_OUTPUT", 3 << 20)
    reason, _ = world.untold("yes")
    assert " 3 MiB " in reason
    assert "standard output" in reason
    assert (world.last / "output").stat().st_size < 4 << 20


def test_output_that_could_not_be_kept_tells_nothing(world: World) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        reason, hint = world.untold("sh", "-c", "printf '%2000s' ' '")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert reason.endswith(": File too large")
    assert "space" in hint


@pytest.mark.parametrize(
    ("command", "required", "missing"),
    [
        (("no-such-tool",), (), "no-such-tool"),
        (("sh", "-c", f"echo '{CLEAN}'"), ("no-a", "sh", "no-b"), "no-a, no-b"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_run(
    world: World, command: tuple[str, ...], required: tuple[str, ...], missing: str
) -> None:
    reason, hint = world.untold(*command, required_tools=required)
    assert f": {missing} " in reason
    assert "sh" not in reason.split()
    assert "install" in hint
    assert list(world.last.iterdir()) == []


def test_a_program_of_the_tree_that_cannot_be_started_is_named(world: World) -> None:
    (world.place / "tool").write_text("#!/bin/sh\n")
    bad, gone = world.untold("./tool")[0], world.untold("./gone")[0]
    assert ("./tool " in bad, "executable" in bad) == (True, True)
    assert ("./gone " in gone, "found" in gone) == (True, True)


def test_a_bare_name_is_never_a_program_of_the_tree(world: World) -> None:
    tool = world.place / "ruff"
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    world.environ["PATH"] = f"{world.place}:.:{world.environ['PATH']}"
    assert world.analyse(*RUFF, ".").outcome is AnalysisOutcome.CLEAN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("All checks passed!\n", "JSON object"),
        (CLEAN[:-1], "line 1 "),
        (CLEAN.replace("2.1.0", "2.0.0"), "2.0.0"),
    ],
)
def test_a_tool_that_writes_no_sarif_is_never_clean(world: World, text: str, said: str) -> None:
    run = world.said(text)
    assert run.outcome is AnalysisOutcome.NOT_EVALUATED
    assert run.reason is not None
    assert "`lint`" in run.reason
    assert said in run.reason
    assert run.hint


def test_what_a_tool_writes_besides_goes_to_its_log(world: World) -> None:
    run = world.analyse("sh", "-c", f"echo looking >&2; echo '{CLEAN}'; echo done >&2")
    assert run.outcome is AnalysisOutcome.CLEAN
    assert (world.last / "log").read_bytes() == b"looking\ndone\n"
    assert (world.last / "output").read_bytes() == CLEAN.encode() + b"\n"


def test_metrics_are_no_findings(world: World) -> None:
    world.write(a="x = 1\n")
    told = '{"metrics": [{"path": "a.py", "name": "complexity", "value": 3}]}'
    run = world.said(told, format="metrics")
    assert (run.outcome, run.results) == (AnalysisOutcome.CLEAN, ())
    assert [(each.path.raw, each.value) for each in run.measurements] == [(b"a.py", 3.0)]
    wrong = world.said(told.replace("a.py", "/a.py"), format="metrics")
    assert wrong.reason is not None
    assert "metrics[0].path" in wrong.reason
    assert "/a.py" not in wrong.reason


def test_metrics_of_what_is_no_file_of_the_tree_are_not_evaluated(world: World) -> None:
    run = world.said('{"metrics": [{"path": "src/a.py", "name": "size", "value": 3}]}', format="metrics")
    assert (run.outcome, run.measurements) == (AnalysisOutcome.NOT_EVALUATED, ())
    assert run.reason is not None
    assert run.reason.index("`lint`") < run.reason.index("metrics[0].path ") < run.reason.index("src/a.py")
    assert run.hint


def test_suppressed_results_alone_are_clean(world: World) -> None:
    one = {"ruleId": "R", "message": {"text": "m"}, "suppressions": [{"kind": "inSource"}]}
    told = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "p"}}, "results": [one]}]}
    run = world.said(json.dumps(told))
    assert (run.outcome, len(run.results), len(run.suppressed)) == (AnalysisOutcome.CLEAN, 0, 1)


def test_a_folder_that_cannot_be_written_leaves_it_undecided(world: World) -> None:
    with pytest.raises(UndecidedError, match="/gone/"):
        run_analysis(
            "lint",
            declared(("true",)),
            place=str(world.place),
            environ=world.environ,
            folder=str(world.place / "gone"),
            text_of=world.lines,
        )


# ---- what stands for the tool ----------------------------------------------------------------------------


def tools(world: World, *command: str, required: tuple[str, ...] = ()) -> str | None:
    return tool_identity(declared(command, required_tools=required), world.environ, str(world.place))


def test_a_tool_is_told_by_its_file_its_size_and_its_time(world: World, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "probe"
    tool.parent.mkdir()
    world.environ["PATH"] = f"{tool.parent}:{world.environ['PATH']}"
    assert tools(world, "probe") is None
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    os.utime(tool, ns=(1, 1))
    first = tools(world, "probe", "-v")
    assert first == tools(world, "probe") == tools(world, "probe")
    os.utime(tool, ns=(1, 2))
    second = tools(world, "probe")
    tool.write_text("#!/bin/sh\n#\n")
    os.utime(tool, ns=(1, 2))
    third = tools(world, "probe")
    moved = tool.rename(tmp_path / "moved")
    tool.symlink_to(moved)
    fourth = tools(world, "probe")
    os.utime(moved, ns=(1, 3))
    assert len({None, first, second, third, fourth, tools(world, "probe")}) == 6


def test_required_tools_are_told_too(world: World) -> None:
    assert tools(world, "sh", required=("git",)) not in {None, tools(world, "sh")}
    assert tools(world, "sh", required=("no-such-tool",)) is None


def test_a_program_of_the_tree_is_told_by_its_text_alone_and_a_bare_name_never_is_one(world: World) -> None:
    assert tools(world, "./check") == "./check"
    (world.place / "check").write_text("#!/bin/sh\n")
    (world.place / "check").chmod(0o755)
    assert tools(world, "./check") == "./check"
    world.environ["PATH"] = f"{world.place}:{world.environ['PATH']}"
    assert tools(world, "check") is None


def test_a_tool_is_told_alike_before_there_is_a_tree(world: World) -> None:
    assert tool_identity(declared(("ruff",)), world.environ) == tools(world, "ruff")


def test_the_identity_of_a_tool_loads_nothing_that_reads_or_runs() -> None:
    script = (
        "import os, sys\n"
        "from patchgate.policy.command_settings import CommandSettings\n"
        "from patchgate.commands.programs import tool_identity\n"
        "assert tool_identity(CommandSettings('lint', ('sh',)), os.environ)\n"
        "heavy = {'json', 'pydantic', 'pygit2', 'urllib', 'patchgate.commands.sarif_reader'}\n"
        "print(*sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout == "\n"
