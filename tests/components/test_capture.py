"""Capture: what is recorded is what the tests passed on, and nothing is written otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from patchgate.commands.test_results import ReportCounts
from patchgate.components import capture_run
from patchgate.components.baseline_file import Baseline, read_baseline
from patchgate.components.capture_run import (
    NO_TEST_FILES,
    Capture,
    CapturedComponent,
    CaptureResult,
    Ending,
)
from patchgate.components.component_output import capture_json, capture_schema, capture_text
from patchgate.errors import UndecidedError, UsageError
from tests.component_world import capture, contract
from tests.components.capture_world import (
    BASELINE,
    CODE,
    GOOD,
    TESTS,
    baseline,
    captured,
    files,
    policy,
    shaping,
)
from tests.schemas import require_valid
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

WRONG = "def double(number):\n    return 3 * number\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return shaping(tmp_path)


def recorded(repo: Repo) -> dict[str, tuple[str, str]]:
    """Read the baseline of the working tree: mode and blob of each path."""
    raw = baseline(repo)
    assert raw is not None
    read = read_baseline(raw, "shaping")
    assert isinstance(read, Baseline)
    return {path.raw.decode(): (each.mode, each.oid) for path, each in read.files.items()}


def staged(repo: Repo, path: str) -> tuple[str, str]:
    mode, oid, _ = repo.ask("ls-files", "-s", path).split("\t")[0].split(" ")
    return mode, oid


def refused_run(done: Capture) -> capture_run.TestRun:
    """Give the run of the only component, which was refused."""
    (each,) = done.components
    assert (done.exit_code, each.result) == (1, CaptureResult.REFUSED)
    assert each.run is not None
    assert each.run.reason == each.reason
    return each.run


def test_a_component_whose_tests_pass_is_recorded_as_the_index_has_it(repo: Repo) -> None:
    done = captured(repo)
    (each,) = done.components
    assert (done.exit_code, each.result, done.warnings) == (0, CaptureResult.RECORDED, ())
    assert each.run is not None
    assert each.run.counts is not None
    assert (each.run.counts.passed, each.run.counts.total) == (1, 1)
    paths = ("contracts/shaping/interface.json", CODE, TESTS)
    assert recorded(repo) == {path: staged(repo, path) for path in paths}
    assert baseline(repo) == capture(repo, policy())[BASELINE]
    assert repo.ask("status", "--porcelain") == "?? .patchgate/"


def test_a_second_capture_writes_nothing_and_would_write_the_same(repo: Repo) -> None:
    captured(repo)
    before, time = baseline(repo), (repo.path / BASELINE).stat().st_mtime_ns
    (each,) = captured(repo).components
    assert (each.result, each.is_staged) == (CaptureResult.UNCHANGED, False)
    assert (baseline(repo), (repo.path / BASELINE).stat().st_mtime_ns) == (before, time)
    repo.git("add", "-A")
    (again,) = captured(repo).components
    assert again.is_staged
    (repo.path / BASELINE).unlink()
    assert captured(repo).components[0].result is CaptureResult.RECORDED
    assert baseline(repo) == before


def test_line_ends_that_git_converts_make_no_difference(repo: Repo) -> None:
    captured(repo)
    raw = baseline(repo)
    assert raw is not None
    (repo.path / BASELINE).write_bytes(raw.replace(b"\n", b"\r\n"))
    assert captured(repo).components[0].result is CaptureResult.UNCHANGED


def test_a_failing_test_records_nothing_and_its_output_is_shown(repo: Repo) -> None:
    """Requirement D 6.2: a baseline is captured only after the tests pass."""
    repo.stage({CODE: WRONG})
    done = captured(repo)
    (each,) = done.components
    assert (done.exit_code, each.result) == (1, CaptureResult.REFUSED)
    assert each.run is not None
    assert (each.run.ending, each.run.counts) == (Ending.FAILED, ReportCounts(failed=1))
    assert any("assert 6 == 4" in line for line in each.run.tail)
    assert baseline(repo) is None
    assert not (repo.path / ".patchgate").exists()


def test_a_failing_recapture_leaves_the_baseline_as_it_was(repo: Repo) -> None:
    captured(repo)
    before = baseline(repo)
    repo.stage({CODE: WRONG})
    assert captured(repo).exit_code == 1
    assert baseline(repo) == before


EMPTY = {
    "no test function": "def helper(): pass\n",
    "all skipped": "import pytest\n@pytest.mark.skip\ndef test_it(): pass\n",
    "a skipped module": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "expected to fail": "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n",
}


@pytest.mark.parametrize("tests", EMPTY.values(), ids=EMPTY)
def test_a_run_in_which_no_test_passes_records_nothing_and_says_so(repo: Repo, tests: str) -> None:
    repo.stage({TESTS: tests})
    assert refused_run(captured(repo)).ending is Ending.EMPTY
    assert baseline(repo) is None


def test_a_run_that_only_collects_is_empty(tmp_path: Path) -> None:
    repo = shaping(tmp_path, "python", "-m", "pytest", "--collect-only", "-q", "{tests}")
    run = refused_run(captured(repo))
    assert (run.ending, run.counts) == (Ending.EMPTY, ReportCounts())


def test_a_run_that_hides_its_failures_behind_a_good_exit_code_fails(repo: Repo) -> None:
    hide = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    repo.stage({"tests/conftest.py": hide, CODE: WRONG})
    run = refused_run(captured(repo))
    assert (run.ending, run.counts) == (Ending.FAILED, ReportCounts(failed=1))


EXIT = "\nimport pytest\n@pytest.fixture\ndef stop():\n    pytest.exit('stop', 0)\n"


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "tests",
    [
        "import pytest\ndef test_x():\n    pytest.exit('stop', 0)\n",
        GOOD + "\ndef test_exit():\n    import pytest; pytest.exit('stop', 0)\n",
        GOOD + EXIT + "def test_exit(stop):\n    pass\n",
        GOOD + "\ndef teardown_function():\n    import pytest; pytest.exit('stop', 0)\n",
        GOOD
        + EXIT
        + "def test_exit(stop):\n    pass\n"
        + "def teardown_module():\n    print('x' * (5 << 20))\n",
    ],
    ids=["alone", "in a body", "in a fixture", "in a teardown", "after much output"],
)
def test_a_run_that_a_test_breaks_off_is_refused_whatever_its_exit_code(repo: Repo, tests: str) -> None:
    repo.stage({TESTS: tests + "\ndef test_never():\n    assert False\n"})
    run = refused_run(captured(repo, PYTEST_ADDOPTS="-s"))
    assert run.ending is Ending.FAILED
    assert "stopped" in run.reason
    assert baseline(repo) is None


def test_a_run_that_ends_before_it_reports_is_no_proof(repo: Repo) -> None:
    repo.stage({TESTS: GOOD + "\ndef test_end():\n    import os; os._exit(0)\n"})
    run = refused_run(captured(repo))
    assert (run.ending, run.counts) == (Ending.EMPTY, None)


def test_tests_that_are_not_there_are_a_refusal(repo: Repo) -> None:
    repo.git("rm", "-q", TESTS)
    assert refused_run(captured(repo)) is NO_TEST_FILES


def test_what_helps_the_tests_is_recorded_and_not_collected(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    declared = policy().replace("tests/test_shaping.py", "tests/**")
    data = "import pytest\n@pytest.fixture\ndef four(): return 4\n"
    given = {"tests/conftest.py": data, "tests/data.json": "{}\n", "tests/notes": "text\n"}
    repo.commit({"patchgate.toml": declared, **files(), **given})
    (each,) = captured(repo).components
    assert each.result is CaptureResult.RECORDED
    assert set(given) < set(recorded(repo))


def test_the_index_is_judged_whatever_lies_on_the_disk(repo: Repo) -> None:
    repo.write(CODE, WRONG)
    repo.write("src/shaping/new.py")
    assert captured(repo).exit_code == 0
    assert recorded(repo)[CODE] == staged(repo, CODE)
    assert "src/shaping/new.py" not in recorded(repo)
    repo.git("add", CODE)
    repo.git("show", f"HEAD:{CODE}")
    repo.write(CODE, files()[CODE])
    assert captured(repo).exit_code == 1


def test_with_worktree_the_disk_is_judged_as_git_would_add_it(repo: Repo) -> None:
    repo.commit({".gitignore": "*.log\n"})
    repo.stage({CODE: WRONG})
    repo.write(CODE, "def double(number):\n    return number + number\n")
    repo.write("src/shaping/new.py")
    repo.write("src/shaping/x.log")
    before = repo.git("ls-files", "-s")
    (each,) = captured(repo, from_disk=True).components
    assert (each.result, each.is_staged) == (CaptureResult.RECORDED, False)
    assert repo.git("ls-files", "-s") == before
    assert "src/shaping/x.log" not in recorded(repo)
    repo.git("add", "-A")
    assert recorded(repo)["src/shaping/new.py"] == staged(repo, "src/shaping/new.py")
    assert recorded(repo)[CODE] == staged(repo, CODE)
    assert captured(repo).components[0].result is CaptureResult.UNCHANGED


def test_what_is_only_intended_to_be_added_is_not_recorded(repo: Repo) -> None:
    repo.write("src/shaping/later.py")
    repo.git("add", "-N", "src/shaping/later.py")
    assert captured(repo).exit_code == 0
    assert "src/shaping/later.py" not in recorded(repo)


def test_a_first_commit_that_is_not_made_yet_can_be_captured(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": policy(), **files()})
    assert captured(repo).exit_code == 0
    assert len(recorded(repo)) == 3


def test_the_policy_is_that_of_what_is_recorded(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit(files())
    with pytest.raises(UsageError, match="no component `shaping`"):
        captured(repo)
    repo.stage({"patchgate.toml": policy()})
    assert captured(repo).exit_code == 0


def test_a_component_that_is_not_declared_is_told_with_the_one_that_was_meant(repo: Repo) -> None:
    with pytest.raises(UsageError) as told:
        captured(repo, "shapign")
    assert "`shaping`" in (told.value.hint or "")


def test_the_tests_import_what_is_recorded_and_nothing_installed(repo: Repo, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "shaping"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text(WRONG)
    assert captured(repo, PYTHONPATH=str(other.parent)).exit_code == 0
    (other.parent / "beside.py").write_text("")
    repo.stage({TESTS: "import beside\n" + GOOD})
    assert captured(repo, PYTHONPATH=str(other.parent)).exit_code == 0


def test_the_source_roots_are_those_of_the_policy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    declared = (
        policy().replace("src/shaping", "lib/a b/shaping") + '[baselines]\nsource_roots = ["lib/a b"]\n'
    )
    given = {path.replace("src/", "lib/a b/"): content for path, content in files().items()}
    repo.commit({"patchgate.toml": declared, **given})
    assert captured(repo).exit_code == 0


def test_options_of_the_caller_for_pytest_are_kept(repo: Repo) -> None:
    assert refused_run(captured(repo, PYTEST_ADDOPTS="-k nothing_of_that_name")).ending is Ending.EMPTY


def test_gits_variables_do_not_reach_the_tests(repo: Repo) -> None:
    looks = "\ndef test_git():\n    import os\n    assert 'GIT_INDEX_FILE' not in os.environ\n"
    repo.stage({TESTS: GOOD + looks})
    assert captured(repo, GIT_INDEX_FILE=str(repo.path / ".git/index")).exit_code == 0


def test_an_index_of_the_callers_is_the_one_that_is_recorded(repo: Repo) -> None:
    other = str(repo.path / ".git/other-index")
    repo.git("read-tree", "HEAD", GIT_INDEX_FILE=other)
    repo.stage({CODE: WRONG})
    assert captured(repo, GIT_INDEX_FILE=other).exit_code == 0
    assert captured(repo).exit_code == 1


def test_a_conflict_in_the_index_leaves_it_undecided(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({CODE: "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({CODE: "main\n"})
    assert repo.try_git("merge", "-q", "side").returncode == 1
    for from_disk in (False, True):
        with pytest.raises(UndecidedError, match=f"{CODE}.* merged"):
            captured(repo, from_disk=from_disk)


@pytest.mark.parametrize("linked", [".patchgate", ".patchgate/baselines", BASELINE])
def test_nothing_is_written_through_a_symlink(repo: Repo, tmp_path: Path, linked: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    witness = tmp_path / "witness"
    repo.stage({TESTS: GOOD + f"\nopen({str(witness)!r}, 'w').close()\n"})
    repo.link(linked, str(target))
    with pytest.raises(UndecidedError, match=r"symlink|regular"):
        captured(repo)
    assert list(target.iterdir()) == []
    assert not witness.exists()


def test_a_bare_repository_is_told_where_to_capture(repo: Repo, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    with pytest.raises(UsageError, match="bare"):
        captured(repo.at(tmp_path / "bare"))


def two(repo: Repo) -> None:
    repo.stage({"patchgate.toml": policy() + policy("cutting"), **files("cutting")})


def test_several_components_are_recorded_together(repo: Repo) -> None:
    two(repo)
    done = captured(repo, "shaping", "cutting", "shaping")
    assert [each.result for each in done.components] == [CaptureResult.RECORDED, CaptureResult.RECORDED]
    assert baseline(repo, "cutting") is not None


def test_where_one_of_several_fails_nothing_is_written(repo: Repo) -> None:
    two(repo)
    repo.stage({"src/cutting/__init__.py": WRONG})
    done = captured(repo, "shaping", "cutting")
    assert done.exit_code == 1
    assert [each.result for each in done.components] == [CaptureResult.NOT_RECORDED, CaptureResult.REFUSED]
    assert not (repo.path / ".patchgate").exists()
    (verdict,) = (line for line in capture_text(done) if line.startswith("refused: "))
    assert "cutting" in verdict
    assert "shaping" not in verdict


def test_what_one_components_tests_leave_does_not_help_those_of_another(repo: Repo) -> None:
    two(repo)
    leaves = GOOD + "\nopen('left', 'w').close()\nopen('src/cutting/__init__.py', 'w').close()\n"
    finds = GOOD.replace("shaping", "cutting") + "\ndef test_left():\n    open('left')\n"
    repo.stage({TESTS: leaves, "tests/test_cutting.py": finds})
    done = captured(repo, "shaping", "cutting")
    run = done.components[1].run
    assert run is not None
    assert run.counts == ReportCounts(passed=1, failed=1)
    (warning,) = done.warnings
    assert warning.index("`shaping`") < warning.index("src/cutting/__init__.py")


def test_files_that_the_tests_change_are_told_and_neither_recorded_nor_written(repo: Repo) -> None:
    repo.stage({TESTS: GOOD + f"\ndef test_change():\n    open({CODE!r}, 'w').close()\n"})
    done = captured(repo)
    (warning,) = done.warnings
    assert warning.index("`shaping`") < warning.index(CODE)
    assert recorded(repo)[CODE] == staged(repo, CODE)
    assert (repo.path / CODE).read_text() == files()[CODE]


def test_a_component_without_an_implementation_is_warned_of(repo: Repo) -> None:
    repo.git("rm", "-q", CODE)
    repo.stage({TESTS: "def test_it():\n    assert True\n"})
    done = captured(repo)
    (warning,) = done.warnings
    assert (done.exit_code, "`shaping`" in warning, "implementation" in warning) == (0, True, True)


CONTRACT = "contracts/shaping/interface.json"


@pytest.fixture
def witness(repo: Repo, tmp_path: Path) -> Path:
    """What the tests make if they are run."""
    place = tmp_path / "witness"
    repo.stage({TESTS: f"def test_it():\n    open({str(place)!r}, 'w').close()\n"})
    return place


def refused_contract(repo: Repo, witness: Path, *, from_disk: bool = False) -> CapturedComponent:
    """Capture, and see that it is refused, no test was run, and nothing written."""
    before = baseline(repo)
    done = captured(repo, from_disk=from_disk)
    (each,) = done.components
    assert (done.exit_code, each.result, each.run) == (1, CaptureResult.REFUSED, None)
    assert (witness.exists(), baseline(repo)) == (False, before)
    told = list(capture_text(done))
    assert (told[-1].partition(":")[0], told[-1].split()[-1]) == ("refused", "shaping")
    assert [f"    {line}" for line in each.mistakes] == [line for line in told if line.startswith("    ")]
    require_valid(json.loads(capture_json(done)), capture_schema())
    return each


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("<<<<<<< x\n", 1, "conflict"),
        ("{\n", 1, "ends"),
        ("[]\n", 1, "object"),
        ('{"component_id": "shaping",\n"version": "1.0.0",\n"colour": 1}\n', 3, "`colour`: "),
        ('{"component_id": "shaping",\n"version": "1.0.0",\n"version": "1.0.1"}\n', 3, "`version`: "),
    ],
)
def test_a_contract_that_cannot_be_read_is_refused_with_its_mistakes(
    repo: Repo, witness: Path, content: str, line: int, words: str
) -> None:
    captured(repo)
    witness.unlink()
    repo.stage({CONTRACT: content})
    each = refused_contract(repo, witness)
    assert each.hint == "git patchgate component validate shaping"
    assert each.mistakes[0].startswith(f"{CONTRACT}:{line}: ")
    assert words in each.mistakes[0]


def test_of_many_mistakes_of_a_contract_the_first_are_shown(repo: Repo, witness: Path) -> None:
    repo.stage({CONTRACT: json.dumps({f"key{number}": 1 for number in range(50)}, indent=1)})
    each = refused_contract(repo, witness)
    assert len(each.mistakes) == 6
    assert "47" in each.mistakes[-1].split()
    assert all(line.isprintable() for line in each.mistakes)


def test_a_contract_too_large_to_read_is_refused_without_a_line(repo: Repo, witness: Path) -> None:
    repo.stage({CONTRACT: " " * (2 << 20)})
    (mistake,) = refused_contract(repo, witness).mistakes
    assert mistake.startswith(f"{CONTRACT}: ")
    assert " 2,097,152 bytes" in mistake


def test_a_contract_that_is_not_there_or_no_regular_file_is_refused(repo: Repo, witness: Path) -> None:
    repo.git("rm", "-q", CONTRACT)
    each = refused_contract(repo, witness)
    assert (CONTRACT in each.reason, "exist" in each.reason, each.mistakes) == (True, True, ())
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{CONTRACT}")
    each = refused_contract(repo, witness)
    assert (CONTRACT in each.reason, "regular" in each.reason) == (True, True)
    repo.git("update-index", "--force-remove", CONTRACT)
    place = repo.path / CONTRACT
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to("/etc/passwd")
    repo.git("add", CONTRACT)
    assert refused_contract(repo, witness).reason == each.reason
    assert refused_contract(repo, witness, from_disk=True).reason == each.reason


def test_a_contract_that_can_be_read_may_have_mistakes(repo: Repo) -> None:
    """Whether it may be committed is the gate's question."""
    repo.stage({CONTRACT: contract("shaping", "nothing", invariants=["As needed."])})
    assert captured(repo).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("no-such-program-anywhere", "{tests}"),
        ("python", "-I", "-S", "-m", "pytest", "{tests}"),
        ("python", "-m", "pytest", "--no-such-option", "{tests}"),
        ("sh", "-c", "exit 127"),
    ],
)
def test_tests_that_could_not_be_run_leave_it_undecided(tmp_path: Path, command: tuple[str, ...]) -> None:
    repo = shaping(tmp_path, *command)
    done = captured(repo)
    (each,) = done.components
    assert (done.exit_code, each.result) == (3, CaptureResult.UNDECIDED)
    assert each.hint is not None
    assert baseline(repo) is None


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("true",), 0),
        (("false",), 1),
        (("python", "-m", "unittest", "{tests}"), 0),
        (("sh", "-c", "echo 'Ran 0 tests in 0.1s'"), 1),
        (("sh", "-c", "kill -9 $$"), 1),
        (("sh", "-c", 'python -m pytest -q "$0"', "{tests}"), 0),
        (("sh", "-c", "python -m pytest --collect-only"), 1),
    ],
)
def test_other_commands_are_believed_by_exit_code_report_and_what_they_say(
    tmp_path: Path, command: tuple[str, ...], code: int
) -> None:
    repo = shaping(tmp_path, *command)
    case = "import unittest\nfrom shaping import double\nclass Test(unittest.TestCase):\n"
    repo.commit({TESTS: case + "    def test_it(self):\n        assert double(1) == 2\n"})
    done = captured(repo)
    assert done.exit_code == code
    assert (baseline(repo) is None) == (code != 0)
    if code == 0 and "pytest" not in " ".join(command):
        run = done.components[0].run
        assert run is not None
        assert (run.ending, run.counts) == (Ending.PASSED, None)
        (warning,) = done.warnings
        assert "`shaping`" in warning
    else:
        assert done.warnings == ()


def test_tests_that_take_too_long_leave_it_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_run, "MOST_SECONDS", 0.2)
    repo = shaping(tmp_path, "sh", "-c", "while :; do :; done")
    done = captured(repo)
    assert (done.exit_code, done.components[0].result) == (3, CaptureResult.UNDECIDED)
    assert " 0.2 s" in done.components[0].reason
    assert baseline(repo) is None


def test_a_damaged_report_is_no_proof(tmp_path: Path) -> None:
    damage = 'printf "<testsuite>" >"${PYTEST_ADDOPTS#--junitxml=}"'
    done = captured(shaping(tmp_path, "sh", "-c", damage))
    assert (done.exit_code, done.components[0].result) == (3, CaptureResult.UNDECIDED)


def test_a_baseline_that_git_ignores_is_warned_of(repo: Repo) -> None:
    repo.commit({".gitignore": ".patchgate/\n"})
    (warning,) = captured(repo).warnings
    assert warning.startswith(f"git ignores {BASELINE}")
    repo.git("add", "-f", BASELINE)
    assert captured(repo).warnings == ()


def test_a_secret_of_the_environment_is_not_shown(repo: Repo) -> None:
    repo.stage({TESTS: "def test_it():\n    import os\n    raise OSError(os.environ['A_TOKEN'])\n"})
    (each,) = captured(repo, A_TOKEN="correct-horse-battery").components
    assert each.run is not None
    assert "***" in "".join(each.run.tail)
    assert "horse" not in "".join(each.run.tail)


def test_a_value_beside_the_name_of_a_secret_is_not_shown(repo: Repo) -> None:
    repo.stage({TESTS: "def test_it():\n    raise OSError('password=correct-' 'horse')\n"})
    (each,) = captured(repo).components
    assert each.run is not None
    assert "password=***" in "".join(each.run.tail)
    assert "correct-horse" not in "".join(each.run.tail)


def test_what_a_test_prints_reaches_no_terminal_raw(repo: Repo) -> None:
    repo.stage({TESTS: "def test_it():\n    print('\\x1b]0;title\\x07')\n    assert False\n"})
    done = captured(repo)
    assert all(line.isprintable() for line in capture_text(done))


def test_the_document_is_as_its_schema_says(repo: Repo) -> None:
    for done in (captured(repo), captured(repo)):
        require_valid(json.loads(capture_json(done)), capture_schema())
    repo.stage({CODE: WRONG})
    value = json.loads(capture_json(captured(repo)))
    require_valid(value, capture_schema())
    (entry,) = value["components"]
    assert entry["tests"] == {"passed": 0, "failed": 1, "errors": 0, "skipped": 0}


def test_a_folder_that_cannot_be_written_is_told(repo: Repo) -> None:
    (repo.path / ".patchgate").write_text("")
    with pytest.raises(UndecidedError, match="folder"):
        captured(repo)


def test_nothing_is_left_in_the_temporary_folder(repo: Repo, tmp_path: Path) -> None:
    kept = tmp_path / "tmp"
    kept.mkdir()
    before = set(os.listdir(repo.path / ".git" / "objects"))
    captured(repo, TMPDIR=str(kept))
    assert os.listdir(kept) == []
    assert set(os.listdir(repo.path / ".git" / "objects")) == before


def test_the_command_says_what_to_do_next(repo: Repo) -> None:
    first = repo.cli("baseline", "capture", "-q", "shaping")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[0] == "shaping: 1 test passed"
    assert first.out.splitlines()[-1].endswith(f": git add {BASELINE}")
    repo.git("add", BASELINE)
    added = repo.cli("baseline", "capture", "shaping")
    assert added.out.splitlines()[-1].endswith(": git commit")
    repo.commit()
    same = repo.cli("baseline", "capture", "shaping")
    hint = "git patchgate baseline capture shaping --reverify"
    assert same.out.splitlines()[-1].endswith(f": {hint}")
    again = repo.cli("baseline", "capture", "shaping", "--reverify", "--commit-note")
    assert again.code == 0
    assert again.out.splitlines()[-1].endswith("git push REMOTE refs/notes/patchgate-verified")
    repo.stage({CODE: WRONG})
    refused = repo.cli("baseline", "capture", "shaping", "--format", "json")
    assert (refused.code, refused.report["components"][0]["result"]) == (1, "refused")
    unknown = repo.cli("baseline", "capture", "nothing", "--format", "json")
    assert (unknown.code, unknown.error["kind"]) == (2, "usage")


@pytest.mark.parametrize("arguments", [("--object-format=sha256",), ()])
def test_other_kinds_of_repositories_are_captured_too(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    repo = Repo.create(tmp_path, *arguments)
    repo.commit({"patchgate.toml": policy(), **files()})
    repo.git("update-index", "--split-index")
    repo.stage({"src/shaping/more.py": "text = 1\n"})
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    for place in (repo, repo.at(tmp_path / "linked")):
        assert captured(place).exit_code == 0
        assert recorded(place)[CODE] == staged(place, CODE)
    assert "src/shaping/more.py" in recorded(repo)
