"""The project around the program: the README's commands, `.ci/run`, scripts, generated pages."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from docs import generate
from patchgate import __version__
from tests.world import Repo

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def marked(name: str) -> str:
    """Give the one command line in the code block that stands directly under a mark of the README."""
    blocks = re.findall(rf"^<!-- {name} -->\n```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, f"one block is marked {name}"
    (line,) = blocks[0].splitlines()
    return str(line)


@pytest.mark.parametrize("name", ["try", "test"])
def test_the_readme_marks_one_command_line_that_needs_nothing_but_this_clone(name: str) -> None:
    words = marked(name).split()
    assert words[0] == "sh"
    assert (ROOT / words[1]).is_file()
    assert not re.search(r"\b(cd|source|activate|sudo)\b", marked(name))


def test_ci_runs_the_tests_by_the_very_command_of_the_readme() -> None:
    assert f"{marked('test')} 2>&1" in CI


def test_ci_runs_lint_format_and_types_as_well() -> None:
    for command in ("ruff check .", "ruff format --check .", "mypy"):
        assert f"step sh scripts/in-venv.sh '.[dev]' {command}\n" in CI
    assert "set -euo pipefail" in CI


def test_ci_can_be_run_and_every_script_can_be_read_by_its_shell() -> None:
    for script in (".ci/run", ".ci/full"):
        assert os.stat(ROOT / script).st_mode & stat.S_IXUSR
        subprocess.run(["bash", "-n", ROOT / script], check=True)
    for script in ("scripts/in-venv.sh", "examples/try.sh", "examples/run/try.sh"):
        subprocess.run(["sh", "-n", ROOT / script], check=True)


def test_the_example_refuses_a_bad_change_and_accepts_a_good_one(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    done = subprocess.run(
        ["sh", ROOT / "examples" / "try.sh"],
        cwd=repo.path,
        env=repo.env | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "error[deny-prefix]" in done.stdout
    assert "error[secret]" in done.stdout
    assert done.stdout.index("\nrejected: ") < done.stdout.rindex("\naccepted: ")
    assert list(tmp_path.glob("patchgate-try*")) == []


def in_venv(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ROOT / "scripts" / "in-venv.sh", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_in_venv_runs_a_command_with_the_environment_first_on_the_path_and_gives_its_exit_code(
    tmp_path: Path,
) -> None:
    ready = tmp_path / "venv"
    ready.mkdir()
    (ready / "installed").touch()
    environment = Repo.create(tmp_path).env | {"PATCHGATE_VENV": str(ready)}
    done = in_venv(environment, ".", "sh", "-c", 'echo "$PATH"; pwd; exit 7')
    path, folder = done.stdout.splitlines()
    assert done.returncode == 7
    assert path.startswith(f"{ready}/bin:")
    assert os.path.samefile(folder, ROOT)


def test_in_venv_says_what_is_missing(tmp_path: Path) -> None:
    environment = Repo.create(tmp_path).env
    assert in_venv(environment, ".").returncode == 2
    old = in_venv(environment | {"PYTHON": "false"}, ".", "true")
    assert old.returncode != 0
    assert "Python 3.11 or newer was not found" in old.stderr
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    without_git = in_venv(environment | {"PATH": str(tools)}, ".", "true")
    assert without_git.returncode != 0
    assert "git was not found" in without_git.stderr


def test_the_reference_page_is_what_the_program_says() -> None:
    fresh = generate.REFERENCE.read_text(encoding="utf-8") == generate.reference()
    assert fresh, "docs/reference.md is stale: run python -m docs.generate"


def test_the_manual_page_is_what_the_program_says_and_the_wheel_brings_it(tmp_path: Path) -> None:
    fresh = generate.MANUAL.read_text(encoding="utf-8") == generate.manual()
    assert fresh, "docs/git-patchgate.1 is stale: run python -m docs.generate"
    with (ROOT / "pyproject.toml").open("rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    (brought,) = wheel["shared-data"].items()
    assert brought == ("docs/git-patchgate.1", "share/man/man1/git-patchgate.1")
    if shutil.which("man") and shutil.which("groff"):
        repo = Repo.create(tmp_path / "repo")
        (tmp_path / "man1").mkdir()
        (tmp_path / "man1" / "git-patchgate.1").symlink_to(ROOT / brought[0])
        shown = subprocess.run(
            ["git", "patchgate", "--help"],
            env=repo.env | {"MANPATH": str(tmp_path), "MANPAGER": "cat"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "git patchgate check [REV | A..B]" in shown.stdout
        assert shown.stderr == ""


def test_a_key_that_a_table_requires_is_said_to_be_required() -> None:
    table = generate.reference().partition("### `[components.NAME]`")[2].partition("###")[0]
    rows = [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\|.*", table, re.MULTILINE)]
    defaults = {row[1]: row[3] for row in rows}
    assert defaults["`contract`"] == defaults["`tests`"] == defaults["`implementation`"] == "required"
    assert defaults["`parent`"] == "absent"


@pytest.mark.parametrize("name", generate.PAGES)
def test_every_output_in_a_page_is_what_its_command_really_prints(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert generate.page(name).splitlines() == page.splitlines(), (
        f"{name} is stale: run python -m docs.generate"
    )


def test_the_readme_is_short_and_every_page_is_in_the_index() -> None:
    assert len(README.splitlines()) <= 200
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\]\((\w[\w-]*\.md)[#)]", index))


def test_the_readme_shows_a_refusal_and_an_acceptance_with_their_exit_codes() -> None:
    assert re.search(r"^rejected: .*\nexit code 1$", README, re.MULTILINE)
    assert re.search(r"^accepted: .*\nexit code 0$", README, re.MULTILINE)


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        prose = re.sub(r"(?s)(`+).*?\1", "", page.read_text(encoding="utf-8"))
        for target, part in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", prose):
            place = page.parent / target if target else page
            assert place.exists(), f"{page.name}: {target}"
            if part:
                heads = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
                assert part[1:] in anchors, f"{page.name}: {target}{part}"


def test_the_changelog_begins_with_what_is_not_released_and_the_version_is_one() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", changelog, re.MULTILINE)[0] == "Unreleased"
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["license"], project["requires-python"]) == ("Apache-2.0", ">=3.11")
