"""The user's tools on what will be committed: what they see, what their answers mean, and what they touch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.cli.progress import Progress
from patchgate.commands.command_answer import Answer, CommandAnswer
from tests.command_world import Tools, tool
from tests.sessions.test_faults import everything
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

RUFF = """\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--isolated", "--no-cache", "--no-fix", "--output-format", "sarif", "{files}"]
output = "sarif"
new_only = true
files = ["*.py"]
on = ["commit"]
"""
FORMAT = """\
[commands.format]
kind = "format"
command = ["ruff", "format", "--isolated", "--no-cache", "{files}"]
files = ["*.py"]
on = ["commit"]
"""
# Writes down that it ran, and on which files.
SEEN = 'printf "%s\\n" "$0 $*" >>"$RUNS"'


def rules(answers: dict[str, CommandAnswer]) -> dict[str, str]:
    return {name: each.rule or each.answer.value for name, each in answers.items()}


# ---- what they see ---------------------------------------------------------------------------------------


def test_a_tool_sees_what_is_staged_and_not_the_working_tree(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, RUFF)
    repo.stage({"bad.py": "import os\n", "good.py": "x = 1\n"})
    repo.write("bad.py", "x = 1\n")
    repo.write("good.py", "import os\n")
    (ruff,) = repo.answers().values()
    assert (ruff.answer, ruff.rule, ruff.files) == (Answer.FAILED, "lint-failed", 2)
    assert len(ruff.lines) == 1
    assert ruff.lines[0].startswith("bad.py:1: F401 ")
    assert (ruff.path, ruff.line) == (ruff.path, 1)
    assert ruff.path is not None
    assert ruff.path.raw == b"bad.py"


def test_a_tool_gets_the_changed_files_that_it_is_for_and_what_it_needs(tmp_path: Path) -> None:
    more = 'files = ["*.py"]\nexclude = ["vendor/**"]\nneeds = ["setup.cfg", "conf", "absent"]\n'
    script = f'{SEEN}; find . -type f | sort >>"$RUNS"'
    files = {"setup.cfg": "a\n", "conf/a/b": "b\n", "other.py": "c\n", "old.py": "d\n"}
    repo = Tools.with_commands(tmp_path, tool("see", script, more=more), files)
    repo.git("rm", "-q", "old.py")
    repo.stage({"new.py": "1\n", "--config=x.py": "2\n", "vendor/v.py": "3\n", "a.txt": "4\n"})
    (see,) = repo.answers().values()
    assert see.answer is Answer.PASSED
    assert repo.runs == [
        "see ./--config=x.py ./new.py",
        *("./--config=x.py", "./conf/a/b", "./new.py", "./setup.cfg"),
    ]


def test_a_tool_in_a_folder_gets_and_reports_paths_of_that_folder(tmp_path: Path) -> None:
    script = 'echo "./a.py:1: bad $PWD/a.py"; exit 1'
    repo = Tools.with_commands(tmp_path, tool("see", script, more='root = "api"\n'))
    repo.stage({"api/a.py": "1\n", "b.py": "2\n"})
    (see,) = repo.answers().values()
    assert see.lines == ("api/a.py:1: bad api/a.py",)


def test_a_tool_that_takes_the_tree_has_all_of_it_and_a_repository(tmp_path: Path) -> None:
    script = 'git ls-files >>"$RUNS"; cat kept new >>"$RUNS"'
    repo = Tools.with_commands(tmp_path, tool("see", script, "x", more='scope = "tree"\n'), {"kept": "old\n"})
    repo.stage({"new": "staged\n"})
    repo.write("new", "unstaged\n")
    (see,) = repo.answers().values()
    assert see.answer is Answer.PASSED
    assert repo.runs == ["kept", "new", "patchgate.toml", "old", "staged"]


def test_nothing_changed_among_its_files_starts_nothing(tmp_path: Path) -> None:
    policy = tool("py", SEEN, more='files = ["*.py"]\n') + tool("gone", SEEN, "x", more='files = ["*.md"]\n')
    repo = Tools.with_commands(tmp_path, policy, {"a.md": "a\n"})
    repo.stage({"a.txt": "1\n"})
    assert repo.answers() == {}
    # A deletion concerns a tool that gets no files.
    repo.git("rm", "-q", "a.md")
    assert rules(repo.answers()) == {"gone": "passed"}


# ---- what an answer means --------------------------------------------------------------------------------


def test_one_failure_hides_no_other_and_tests_wait_for_the_linters(tmp_path: Path) -> None:
    policy = (
        tool("first", "exit 1")
        + tool("second", "exit 3")
        + tool("third", "true")
        + tool("tests", SEEN, kind="test")
    )
    repo = Tools.with_commands(tmp_path, policy)
    repo.stage({"a": "1\n"})
    assert rules(repo.answers()) == {
        "first": "lint-failed",
        "second": "lint-failed",
        "third": "passed",
        "tests": "not-run",
    }
    assert repo.runs == []
    found = repo.answers(left_out=("first", "second"))
    assert rules(found) == {"third": "passed", "tests": "passed"}


def test_a_formatter_passes_if_it_would_change_nothing_and_changes_nothing_here(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, FORMAT)
    repo.stage({"a.py": "x  =  1\n", "b.py": "y = 1\n"})
    before = everything(repo)
    (found,) = repo.answers().values()
    assert (found.answer, found.rule) == (Answer.FAILED, "lint-failed")
    assert [path.raw for path in found.changed] == [b"a.py"]
    assert everything(repo) == before
    repo.stage({"a.py": "x = 1\n"})
    assert rules(repo.answers()) == {"format": "passed"}


def test_a_linter_that_fixes_has_checked_other_bytes(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("fixes", 'echo fixed >"$1"'))
    repo.stage({"a": "1\n"})
    assert rules(repo.answers()) == {"fixes": "command-changed-files"}


@pytest.mark.parametrize(
    ("script", "more", "rule"),
    [
        ("kill -9 $$", "", "command-no-answer"),
        ("sleep 60", "timeout = 0.2\n", "command-timed-out"),
        ("no-such-tool", "", "command-not-started"),
        ("true", 'required_tools = ["no-such-tool"]\n', "command-not-started"),
        ("echo help", 'output = "sarif"\n', "command-no-answer"),
        ("exit 2", 'output = "sarif"\n', "command-no-answer"),
        ('rm -rf "$PWD"', "", "command-no-answer"),
        ("true", 'version = ">=1"\nversion_command = ["echo", "none"]\n', "command-not-started"),
        ("true", 'version = ">=2"\nversion_command = ["echo", "sh 1.9.1"]\n', "command-not-started"),
        ("true", 'provide = ["node_modules"]\n', "command-not-started"),
    ],
)
def test_a_tool_that_gives_no_answer_is_undecided_and_only_a_warning_if_it_is_optional(
    tmp_path: Path, script: str, more: str, rule: str
) -> None:
    for optional, verdict in (("", 3), ("optional = true\n", 0)):
        repo = Tools.with_commands(tmp_path / f"{verdict}", tool("x", script, more=more + optional))
        repo.stage({"a": "1\n"})
        (found,) = repo.answers().values()
        assert (found.answer, found.rule) == (Answer.UNKNOWN, rule)
        assert found.hint
        done = repo.pre_commit()
        assert done.code == verdict
        assert rule in done.out


def test_a_version_that_is_right_is_asked_for_once(tmp_path: Path) -> None:
    version = 'version = ">=1.2"\nversion_command = ["sh", "-c", "echo version >>$RUNS; echo sh v1.10"]\n'
    repo = Tools.with_commands(tmp_path, tool("x", "true", more=version))
    for number in range(2):
        repo.stage({"a": f"{number}\n"})
        assert rules(repo.answers()) == {"x": "passed"}
    assert repo.runs == ["version"]


def test_the_lines_are_the_tools_own_and_the_log_has_all_of_them(tmp_path: Path) -> None:
    script = "for n in $(seq 100); do printf '%s\\033[2J %s/a\\n' $n \"$PWD\"; done; exit 1"
    repo = Tools.with_commands(tmp_path, tool("long", script) + tool("tests", script, kind="test"))
    repo.stage({"a": "1\n"})
    long = repo.answers()["long"]
    assert (long.lines[0], len(long.lines), long.more) == ("1 a", 60, 40)
    assert long.log is not None
    assert len(Path(long.log).read_bytes().splitlines()) == 100
    assert b"\x1b" not in Path(long.log).read_bytes()
    tests = repo.answers(left_out=("long",))["tests"]
    assert (tests.lines[-1], len(tests.lines)) == ("100 a", 60)


def test_files_are_divided_among_processes(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", SEEN, more="jobs = 2\n"))
    repo.stage({f"{number}": "1\n" for number in range(4)})
    assert rules(repo.answers()) == {"x": "passed"}
    assert sorted(repo.runs) == ["x ./0 ./1", "x ./2 ./3"]


# ---- only what this change brings ------------------------------------------------------------------------


def test_an_old_finding_is_not_refused_when_it_moves_or_its_file_is_renamed(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, RUFF, {"old.py": "import os\n\nx = 1\ny = 2\nz = 3\n"})
    repo.git("mv", "old.py", "new.py")
    repo.stage({"new.py": "# moved\n\nimport os\n\nx = 1\ny = 2\nz = 3\n"})
    ruff = repo.answers()["ruff"]
    assert (ruff.answer, ruff.old, ruff.lines) == (Answer.PASSED, 1, ())
    repo.stage({"new.py": "# moved\n\nimport os\nimport sys\n\nx = 1\ny = 2\nz = 3\n"})
    ruff = repo.answers()["ruff"]
    assert (ruff.answer, ruff.old, len(ruff.lines)) == (Answer.FAILED, 1, 1)
    assert "F401" in ruff.lines[0]
    assert "sys" in ruff.lines[0]


def test_without_new_only_old_findings_refuse_too(tmp_path: Path) -> None:
    policy = RUFF.replace("new_only = true\n", "")
    repo = Tools.with_commands(tmp_path, policy, {"a.py": "import os\n"})
    repo.stage({"a.py": "import os\n\nx = 1\n"})
    assert rules(repo.answers()) == {"ruff": "lint-failed"}


def test_metrics_refuse_what_is_over_a_threshold_and_worse_than_before(tmp_path: Path) -> None:
    script = (
        'printf \'{"metrics": [{"path": "a", "symbol": "f", "name": "size", "value": %s}]}\' "$(cat "$1")"'
    )
    limit = '[[thresholds]]\nname = "small"\nmetric = "size"\nmax = 5\n'
    policy = tool("size", script, more='output = "metrics"\nnew_only = true\n') + limit
    repo = Tools.with_commands(tmp_path, policy, {"a": "8\n"})
    for value, rule in ((7, "passed"), (9, "lint-failed"), (4, "passed")):
        repo.stage({"a": f"{value}\n"})
        assert rules(repo.answers()) == {"size": rule}, value


# ---- they touch nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "true",
        "exit 1",
        'rm -rf -- * .[a-z]*; echo "$1" >new',
        'rm -rf "$PWD"',
        "git add -A; git commit -qm x; git stash -u; git checkout -- . ; git config user.name x; true",
        "kill -9 $$",
        '(setsid sh -c "sleep 0.1; echo late >late") & exit 0',
    ],
)
@pytest.mark.parametrize("scope", ["files", "tree"])
def test_a_tool_touches_neither_index_nor_files_nor_refs(tmp_path: Path, script: str, scope: str) -> None:
    repo = Tools.with_commands(
        tmp_path, tool("x", script, more=f'scope = "{scope}"\n'), {"a": "1\n", "b": "2\n", "c": "3\n"}
    )
    repo.stage({"a": "staged\n", "n": "new\n"})
    repo.write("a", "unstaged\n")
    repo.write("untracked", "kept\n")
    (repo.path / "b").unlink()
    repo.git("add", "-N", "untracked")
    before, times = everything(repo), times_of(repo)
    assert repo.pre_commit().code in {0, 1, 3}
    assert everything(repo) == before
    assert times_of(repo) == times


def times_of(repo: Repo) -> dict[str, int]:
    names = [*repo.path.iterdir(), repo.path / ".git/index"]
    return {str(each): each.lstat().st_mtime_ns for each in names if each.name != ".git"}


def test_a_linked_folder_can_be_used_and_a_write_to_it_is_named(tmp_path: Path) -> None:
    more = 'provide = ["node_modules"]\n'
    reads, writes = 'node_modules/tool "$1"', 'node_modules/tool "$1"; touch node_modules/deep/cache'
    for script, rule in ((reads, "passed"), (writes, "command-no-answer")):
        repo = Tools.with_commands(
            tmp_path / rule, tool("x", script, more=more), {".gitignore": "node_modules\n"}
        )
        place = repo.write("node_modules/tool", '#!/bin/sh\ntest -e "$1"\n', executable=True)
        (place.parent / "deep").mkdir()
        long_ago = 1_000_000_000
        os.utime(place, (long_ago, long_ago))
        # What was installed just now is not what the tool wrote.
        settle(place.parent)
        repo.stage({"a": "1\n"})
        (found,) = repo.answers().values()
        assert rules({"x": found}) == {"x": rule}
        assert "node_modules/deep" in found.reason or rule == "passed"
        assert not place.is_symlink()


def settle(folder: Path) -> None:
    """Wait until the clock of the file system has passed what was written last."""
    probe = folder.parent / "probe"
    newest = max(each.stat().st_ctime_ns for each in folder.rglob("*"))
    while True:
        probe.write_text("x")
        if probe.stat().st_ctime_ns > newest + 50_000_000:
            probe.unlink()
            return


# ---- what is remembered ----------------------------------------------------------------------------------


def test_what_was_accepted_is_not_run_again_for_the_same_files(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", SEEN, more='needs = ["conf"]\n'), {"conf": "1\n"})
    repo.stage({"a": "1\n"})
    assert not repo.answers()["x"].is_remembered
    assert repo.answers()["x"].is_remembered
    repo.git("commit", "-qm", "Add a")
    repo.git("checkout", "-q", "-b", "other", "HEAD^")
    repo.stage({"a": "1\n"})
    assert repo.answers()["x"].is_remembered
    assert len(repo.runs) == 1
    # Another environment, another need, another content: it runs again.
    repo.env["LIMIT"] = "2"
    assert not repo.answers()["x"].is_remembered
    repo.stage({"conf": "2\n"})
    assert not repo.answers()["x"].is_remembered
    repo.stage({"a": "2\n"})
    assert not repo.answers()["x"].is_remembered
    # What names the terminal is no input.
    repo.env["SSH_TTY"] = "/dev/pts/9"
    assert repo.answers()["x"].is_remembered


def test_only_accepted_answers_are_remembered_and_none_of_a_tool_that_reads_more(tmp_path: Path) -> None:
    policy = tool("fails", f"{SEEN}; exit 1") + tool("reads", SEEN, more="remember = false\n")
    repo = Tools.with_commands(tmp_path, policy)
    repo.stage({"a": "1\n"})
    for _ in range(2):
        assert rules(repo.answers()) == {"fails": "lint-failed", "reads": "passed"}
    assert len(repo.runs) == 4


def test_a_file_that_a_tool_knows_is_left_out_if_its_answer_depends_on_nothing_else(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, tool("x", SEEN, more="per_file = true\n"))
    repo.stage({"a": "1\n", "b": "1\n"})
    repo.answers()
    repo.stage({"b": "2\n", "c": "1\n"})
    repo.answers()
    repo.stage({"c": "1\n"})
    assert repo.answers()["x"].is_remembered
    assert repo.runs == ["x ./a ./b", "x ./b ./c"]


def test_an_answer_that_depends_on_the_tree_before_is_not_used_on_another_one(tmp_path: Path) -> None:
    repo = Tools.with_commands(tmp_path, RUFF, {"a.py": "import os\n\nx = 1\n"})
    repo.stage({"a.py": "import os\n\nx = 2\n"})
    assert rules(repo.answers()) == {"ruff": "passed"}
    assert repo.answers()["ruff"].is_remembered
    repo.git("checkout", "-q", "--orphan", "new")
    repo.git("rm", "-q", "--cached", "a.py")
    repo.git("commit", "-qm", "Begin again")
    repo.git("add", "a.py")
    assert rules(repo.answers()) == {"ruff": "lint-failed"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_hook_that_is_killed_while_a_tool_runs_leaves_all_as_it_was(tmp_path: Path, number: int) -> None:
    script = 'echo $$ >"$RUNS"; rm -f -- *; sleep 60'
    repo = Tools.with_commands(tmp_path, tool("x", script), {"a": "1\n", "b": "2\n"})
    repo.stage({"a": "staged\n"})
    repo.write("a", "unstaged\n")
    before, times = everything(repo), times_of(repo)
    # A test runner in the background may have SIGINT ignored, and a child would inherit that.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        hook = subprocess.Popen(
            [EXECUTABLE, "hook", "pre-commit"], cwd=repo.path, env=repo.env, stderr=subprocess.DEVNULL
        )
    finally:
        signal.signal(signal.SIGINT, handler)
    while not repo.runs:
        assert hook.poll() is None
        os.sched_yield()
    hook.send_signal(number)
    assert hook.wait(30) != 0
    assert everything(repo) == before
    assert times_of(repo) == times
    if number == signal.SIGKILL:
        os.killpg(int(repo.runs[0]), signal.SIGKILL)


def test_what_runs_at_the_same_time_is_one_line_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    with Progress(quiet=False, clock=lambda: 0.0) as progress:
        for name in ("ruff", "mypy", "ruff"):
            progress.report(name, 2.0)
    lines = [line.removeprefix("\x1b[K") for line in capsys.readouterr().err.split("\r")]
    both = "running ruff for 2 s, mypy for 2 s …"
    assert list(filter(None, lines)) == ["running ruff for 2 s …", both, both]
