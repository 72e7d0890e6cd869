"""What a capture says of what it did not test: files that are not staged, scripts that would not have run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from patchgate.components.capture_run import CapturedComponent, CaptureResult, Ending
from patchgate.components.component_output import capture_text
from tests.component_world import contract, declared
from tests.components.capture_world import BASELINE, CODE, TESTS, baseline, captured, files, shaping
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

ONE, TWO = "test/a_test.sh", "test/b_test.sh"
LATER = "src/shaping/la ter.py"


def scripts(folder: Path, *command: str, second: str = "exit 1\n") -> Repo:
    """Make a component in shell with two scripts, the first of which passes; both tell that they ran."""
    repo = Repo.create(folder)
    policy = declared("slug", tests=["test/*"], implementation=["lib/**"], test_command=list(command))
    repo.commit(
        {
            "patchgate.toml": policy,
            "contracts/slug/interface.json": contract("slug"),
            "lib/slug.sh": "",
            ONE: f"echo ran >>{folder}/witness\n",
            TWO: f"echo ran >>{folder}/witness\n{second}",
        }
    )
    return repo


def slug(repo: Repo) -> CapturedComponent:
    (each,) = captured(repo, "slug").components
    return each


@pytest.mark.parametrize(
    "command",
    [
        *(("sh",), ("/bin/sh",), ("bash",), ("dash",), ("zsh",), ("ksh",), ("sh", "-eu"), ("bash", "-x")),
        *(("node",), ("python",), ("python3",), ("python3.11",), ("ruby",), ("perl",)),
    ],
    ids=" ".join,
)
def test_scripts_of_which_an_interpreter_would_run_the_first_alone_are_refused_before_any_runs(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    repo = scripts(tmp_path, *command, "{tests}")
    each = slug(repo)
    assert each.result is CaptureResult.REFUSED
    program = command[0].rpartition("/")[2]
    assert each.reason.startswith(f"{program} ")
    assert ONE in each.reason
    assert TWO not in each.reason
    repo.stage({"test/c_test.sh": ""})
    assert "2" in slug(repo).reason.split()
    assert not (tmp_path / "witness").exists()
    assert baseline(repo, "slug") is None


def test_what_is_proposed_instead_runs_every_script(tmp_path: Path) -> None:
    repo = scripts(tmp_path, "/bin/sh", "{tests}")
    hint = slug(repo).hint
    assert hint is not None
    proposed = 'test_command = ["sh", "-c", "for t; do /bin/sh \\"$t\\" || exit; done", "tests", "{tests}"]'
    assert hint.endswith(proposed)
    policy = (repo.path / "patchgate.toml").read_text()
    repo.stage({"patchgate.toml": policy.replace('test_command = ["/bin/sh", "{tests}"]', proposed)})
    each = slug(repo)
    assert (each.result, each.reason.split()[-1]) == (CaptureResult.REFUSED, "1")
    assert (tmp_path / "witness").read_text() == "ran\nran\n"
    repo.stage({TWO: ""})
    assert slug(repo).result is CaptureResult.RECORDED


def test_one_script_may_be_given_to_an_interpreter(tmp_path: Path) -> None:
    repo = scripts(tmp_path, "sh", "{tests}")
    repo.git("rm", "-q", TWO)
    assert slug(repo).result is CaptureResult.RECORDED


@pytest.mark.parametrize(
    "command", [("sh", "run", "{tests}"), ("cat", "{tests}"), ("sh", "-c", "exit 0", "{tests}")]
)
def test_several_files_may_be_given_to_what_takes_them(tmp_path: Path, command: tuple[str, ...]) -> None:
    repo = scripts(tmp_path, *command)
    repo.stage({"run": "cat $@\n"})
    assert slug(repo).result is CaptureResult.RECORDED


def test_of_a_command_that_printed_nothing_the_command_line_is_told(tmp_path: Path) -> None:
    repo = scripts(tmp_path, "sh", "-c", 'sh "$1"; exit 3', "it", "{tests}")
    each = slug(repo)
    assert (each.result, each.reason.split()[-1]) == (CaptureResult.REFUSED, "3")
    line = f"sh -c 'sh \"$1\"; exit 3' it ./{ONE} ./{TWO}"
    assert (each.hint or "").endswith(f": {line}")
    repo.stage({ONE: "echo told\n"})
    assert "sh -c" not in (slug(repo).hint or "")


def test_where_no_test_ran_the_command_is_named_among_what_to_mend(tmp_path: Path) -> None:
    repo = scripts(tmp_path, "python", "-m", "pytest", "-q", "{tests}")
    each = slug(repo)
    assert each.run is not None
    assert (each.result, each.run.ending) == (CaptureResult.REFUSED, Ending.EMPTY)
    assert each.hint is not None
    assert "`test_command`" in each.hint


def unstaged(repo: Repo) -> None:
    """Change, add and delete files of the component, and others, without staging any."""
    repo.commit({"src/shaping/gone.py": "", "README.md": ""})
    repo.write(CODE, f"{repo.ask('show', f'HEAD:{CODE}')}\n# more\n")
    (repo.path / "src/shaping/gone.py").unlink()
    repo.write(LATER)
    repo.write("README.md", "other\n")
    repo.write("src/other.py")


def test_files_that_are_not_staged_are_told_as_not_tested(tmp_path: Path) -> None:
    repo = shaping(tmp_path)
    unstaged(repo)
    (warning,) = captured(repo).warnings
    named = f"{CODE}, src/shaping/gone.py, {LATER}"
    assert f": {named}; " in warning
    assert "--worktree" in warning
    repo.git("add", "-A", "src/shaping")
    assert captured(repo).warnings == ()
    repo.commit({BASELINE: baseline(repo) or b""})
    repo.write(TESTS, "")
    (warning,) = captured(repo, reverify=True).warnings
    assert f": {TESTS}; " in warning
    assert "--worktree" not in warning


def test_of_many_files_that_are_not_staged_the_first_are_named(tmp_path: Path) -> None:
    repo = shaping(tmp_path)
    for number in range(10, 30):
        repo.write(f"src/shaping/m{number}.py")
    (warning,) = captured(repo).warnings
    assert ": src/shaping/m10.py, " in warning
    assert "src/shaping/m14.py, " in warning
    assert "src/shaping/m15.py" not in warning
    assert " 15 more; " in warning


def test_a_file_that_was_only_touched_or_is_ignored_is_not_told(tmp_path: Path) -> None:
    repo = shaping(tmp_path)
    repo.commit({".gitignore": "*.log\n"})
    repo.write("src/shaping/x.log")
    os.utime(repo.path / CODE, ns=(1, 1))
    before = (repo.path / ".git/index").read_bytes()
    assert captured(repo).warnings == ()
    assert (repo.path / ".git/index").read_bytes() == before


def test_what_to_commit_after_worktree_is_all_that_was_recorded(tmp_path: Path) -> None:
    repo = shaping(tmp_path)
    unstaged(repo)
    done = captured(repo, from_disk=True)
    assert done.warnings == ()
    last = list(capture_text(done))[-1]
    assert last.endswith(f": git add {BASELINE} {CODE} src/shaping/gone.py '{LATER}'")
    repo.git("checkout", "-q", "README.md")
    repo.git("add", BASELINE, CODE, "src/shaping/gone.py", LATER)
    assert json.loads(repo.run("baseline", "status", "--format", "json").out)["components"]
    assert list(capture_text(captured(repo, from_disk=True)))[-1].endswith(": git commit")
    repo.write(CODE, files()[CODE])
    captured(repo, from_disk=True)
    repo.git("add", BASELINE)
    assert list(capture_text(captured(repo, from_disk=True)))[-1].endswith(f": git add {CODE}")
