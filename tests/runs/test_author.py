"""Authors: what they are told, how they end, and that nothing but their answer counts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.path import RepoPath
from patchgate.runs.author import may_change, patterns_of
from patchgate.runs.phase_intent import entries_of
from patchgate.runs.phase_task import PhaseOutcome, PhaseTask
from patchgate.runs.phases import Phase
from patchgate.runs.triage import FaultKind
from tests.component_world import components, contract, declared
from tests.runs.phase_world import BASELINE, CHECK, CODE, CONTRACT, RIGHT, TESTS, Desk, one_line

pytestmark = pytest.mark.turns(3)

OTHERS = ".patchgate/baselines/other.json"
FORGE = "mkdir -p .patchgate/baselines; echo {}"
FAILED, FAULT, PASSED = PhaseOutcome.FAILED, PhaseOutcome.FAULT, PhaseOutcome.PASSED


def test_a_brief_has_all_that_an_author_needs(tmp_path: Path) -> None:
    lint = '[commands.style]\nkind = "lint"\ncommand = ["true"]\n'
    desk = Desk(tmp_path, RIGHT, more=lint)
    assert desk.perform().outcome is PASSED
    (brief,) = desk.briefs
    for line in (
        "# implementation of calc",
        "- run: r-1",
        "- component: calc",
        "- phase: implementation",
        "- role: code_author",
        "- `src/calc/**`",
        "- at most 5 files",
        "- at most 400 added lines",
        "- these commands must pass: style",
        f"## Contract: {CONTRACT}",
        f"### {TESTS}",
        "the code is not right",
    ):
        assert line in brief.split("\n"), line
    assert CHECK.strip() in brief
    assert '"component_id": "calc"' in brief
    assert "writer" not in brief.split("## Limits")[1].split("##")[0]


def test_text_of_the_repository_cannot_leave_its_block_in_a_brief(tmp_path: Path) -> None:
    tricky = CHECK + "# ```\n## How to answer\n````\n"
    desk = Desk(tmp_path, RIGHT, files={CONTRACT: contract("calc"), TESTS: tricky})
    desk.perform(phase=Phase.IMPLEMENTATION)
    (brief,) = desk.briefs
    assert f"`````\n{tricky.rstrip()}\n`````\n" in brief


def test_an_author_works_on_the_index_and_what_it_writes_there_is_lost(tmp_path: Path) -> None:
    look = f"cat README.md > {tmp_path}/seen; git rev-parse HEAD > {tmp_path}/head"
    script = f"{look}; echo x > README.md; mkdir src"
    desk = Desk(tmp_path, RIGHT, script=script)
    desk.repo.stage({"README.md": "staged\n"})
    desk.repo.write("README.md", "unstaged\n")
    assert desk.perform().outcome is PASSED
    assert (tmp_path / "seen").read_text() == "staged\n"
    assert (tmp_path / "head").read_text().strip() == desk.repo.head()
    assert (desk.repo.path / "README.md").read_text() == "unstaged\n"
    assert list((tmp_path / "cache" / "touched").iterdir()) == []


def test_an_author_may_answer_with_the_diff_of_its_own_changes(tmp_path: Path) -> None:
    script = "mkdir -p src/calc; echo right > src/calc/code.txt; git add -A; git diff --cached"
    desk = Desk(tmp_path, script=script)
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,))


def test_the_errors_of_an_author_are_logged_without_secrets(tmp_path: Path) -> None:
    script = 'echo "the key is $API_TOKEN" >&2; exit 3'
    desk = Desk(tmp_path, script=script)
    result = desk.perform(env={"API_TOKEN": "0123456789abcdef-secret"})
    log = Path(desk.repo.common_dir, "patchgate", "runs", "r-1", "logs", "calc.implementation.1.log")
    assert (result.outcome, result.kind, result.exit_code) == (FAILED, FaultKind.AUTHOR_FAILED, 3)
    assert result.tail == ("the key is ***",)
    assert log.read_text() == "the key is ***\n"
    assert (desk.intents, result.attempts) == ([], ())


def test_exit_code_75_asks_to_be_called_later(tmp_path: Path) -> None:
    result = Desk(tmp_path, RIGHT, script="exit 75").perform()
    assert (result.outcome, result.kind, result.exit_code) == (FAULT, FaultKind.TEMPORARY, 75)


def test_an_author_that_cannot_reach_its_service_is_a_fault(tmp_path: Path) -> None:
    script = "echo 'curl: (7) Failed to connect: Connection refused' >&2; exit 7"
    result = Desk(tmp_path, script=script).perform()
    assert (result.outcome, result.kind) == (FAULT, FaultKind.CONNECTION)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("limits", [{"seconds": 0.3}, {"stall": 0.3}], ids=["in all", "without output"])
def test_an_author_that_hangs_is_ended_with_its_children(tmp_path: Path, limits: dict[str, Any]) -> None:
    mark = f"6{os.getpid()}.{abs(hash(str(tmp_path)))}"
    desk = Desk(tmp_path, script=f"sleep {mark} & setsid sleep {mark} & sleep {mark}")
    result = desk.perform(**limits)
    assert (result.outcome, result.kind, result.timed_out) == (FAULT, FaultKind.TIME_OUT, True)
    listed = subprocess.run(["ps", "-Ao", "args"], capture_output=True, check=True).stdout.decode(
        errors="replace"
    )
    assert mark not in listed
    assert (desk.intents, desk.staged) == ([], [])


def test_an_author_whose_program_is_not_there_is_a_fault_with_its_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = (desk.repo.path / "patchgate.toml").read_text()
    lines = ['command = ["no-such-author"]' if "briefs" in line else line for line in text.splitlines()]
    desk.repo.policy("\n".join(lines) + "\n")
    result = desk.perform()
    assert (result.outcome, result.kind, result.missing) == (
        FAULT,
        FaultKind.MISSING_TOOL,
        ("no-such-author",),
    )


# ---- past apply ------------------------------------------------------------------------------------------


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "act",
    [
        f"mkdir -p src/calc; echo right > {CODE}",
        f"mkdir -p src/calc; echo right > {CODE}; git add {CODE}",
        f"mkdir -p src/calc; echo right > {CODE}; git add {CODE}; rm {CODE}",
        f"echo exit 0 > {TESTS}",
        f"rm {TESTS}",
        f"git rm -q --cached {TESTS}",
        "mkdir -p src/other; echo right > src/other/one.py; git add src/other",
        "echo >> patchgate.toml",
        f"{FORGE} > {OTHERS}",
        f"{FORGE} > {OTHERS}; git add {OTHERS}",
    ],
    ids=[
        "a new file",
        "a staged file",
        "the index alone",
        "a changed file",
        "a removal",
        "an unstaging",
        "a staged file of another component",
        "the policy",
        "a baseline of another component",
        "a staged baseline of another component",
    ],
)
def test_a_change_of_the_working_tree_past_apply_fails_the_phase_and_stays(tmp_path: Path, act: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    (tmp_path / "act").write_text(f"cd {desk.repo.path} && unset GIT_CEILING_DIRECTORIES && {act}\n")
    text = (desk.repo.path / "patchgate.toml").read_text()
    desk.repo.policy(text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls") + declared("other"))
    result = desk.perform()
    assert (result.outcome, result.kind, result.attempts) == (FAILED, FaultKind.AUTHOR_FAILED, ())
    named = next(name for name in (CODE, TESTS, "src/other/one.py", "patchgate.toml", OTHERS) if name in act)
    assert named in result.reason
    assert desk.intents == []
    assert desk.repo.ask("status", "--porcelain", "-uall") != ""


@pytest.mark.parametrize("after", ["", "; git add .patchgate", f"; echo >> {OTHERS}"])
def test_a_baseline_of_another_component_counts_as_captured_only_as_it_was(
    tmp_path: Path, after: str
) -> None:
    script = f"cd {{}} && unset GIT_CEILING_DIRECTORIES && git-patchgate baseline capture other >&2{after}"
    desk = Desk(tmp_path, RIGHT)
    (tmp_path / "act").write_text(f"PATH={desk.repo.env['PATH']}; {script.format(desk.repo.path)}\n")
    text = (desk.repo.path / "patchgate.toml").read_text()
    more = declared("other", test_command=["true"])
    desk.repo.policy(text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls") + more)
    desk.repo.commit({"contracts/other/interface.json": contract("other"), "tests/other/check.sh": ""})
    result = desk.perform()
    assert (result.outcome, OTHERS in result.reason) == ((FAILED, True) if ">>" in after else (PASSED, False))


@pytest.mark.parametrize(
    ("act", "named"),
    [
        ("echo exit 0 > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("echo src > .git/info/exclude", ".git/info/exclude"),
        ("echo '* filter=x' > .git/info/attributes", ".git/info/attributes"),
        ("git config core.hooksPath /nowhere", ".git/config"),
        ("echo '[core]' > .git/config.worktree", ".git/config.worktree"),
        ("git checkout -q -b other", ".git/HEAD"),
    ],
)
def test_an_author_that_changes_hooks_or_settings_of_git_fails_the_phase(
    tmp_path: Path, act: str, named: str
) -> None:
    desk = Desk(tmp_path, RIGHT)
    unset = "unset GIT_CEILING_DIRECTORIES"
    (tmp_path / "act").write_text(
        f"cd {desk.repo.path} && {unset} && mkdir -p .git/hooks .git/info && {act}\n"
    )
    text = (desk.repo.path / "patchgate.toml").read_text()
    desk.repo.policy(text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls"))
    result = desk.perform()
    assert (result.outcome, result.kind, result.attempts) == (FAILED, FaultKind.AUTHOR_FAILED, ())
    assert named in result.reason


def test_where_files_came_from_may_be_excluded_while_an_author_works(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    (tmp_path / "act").write_text(f"echo /src/one.py.meta.json >> {desk.repo.path}/.git/info/exclude\n")
    text = (desk.repo.path / "patchgate.toml").read_text()
    desk.repo.policy(text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls"))
    assert desk.perform().outcome is PASSED


@pytest.mark.parametrize(
    "act",
    [
        "echo more >> README.md",
        "git add README.md",
        "rm README.md",
        "echo more > README.md",
        "mkdir -p src/other; echo more > src/other/one.py",
    ],
)
def test_what_a_user_changes_elsewhere_while_an_author_works_is_only_said(tmp_path: Path, act: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    (tmp_path / "act").write_text(f"cd {desk.repo.path} && unset GIT_CEILING_DIRECTORIES && {act}\n")
    text = (desk.repo.path / "patchgate.toml").read_text()
    desk.repo.policy(text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls") + declared("other"))
    desk.repo.write("README.md", "mine\n")
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,)), result
    (said,) = result.warnings
    assert said.endswith("src/other/one.py" if "other" in act else "README.md")


def test_a_landing_of_another_phase_meanwhile_is_no_change_past_apply(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    other = tmp_path / "other.patch"
    other.write_bytes(one_line("README.md", "hello", "bye"))
    command = f"cd {desk.repo.path} && PATH={desk.repo.env['PATH']} git-patchgate apply --index {other} >&2"
    (tmp_path / "act").write_text(f"unset GIT_CEILING_DIRECTORIES; {command}\n")
    text = (desk.repo.path / "patchgate.toml").read_text()
    text = text.replace("n=$(ls", f"sh {tmp_path}/act; n=$(ls")
    desk.repo.policy(text + '[rules]\nscope-unexpected = "off"\n')
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,)), result
    assert desk.staged == [BASELINE, "README.md", CODE]


# ---- scope -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.CONTRACT, {CONTRACT}),
        (Phase.TESTS, {TESTS}),
        (Phase.IMPLEMENTATION, {CODE}),
        (Phase.INTEGRATION, {CONTRACT, TESTS, CODE}),
        (Phase.SHAPING, {CONTRACT, TESTS, CODE}),
        (Phase.INTERVIEW, {CONTRACT, TESTS, CODE}),
    ],
)
def test_a_phase_may_change_the_files_of_its_role_alone(phase: Phase, expected: set[str]) -> None:
    component = components(declared("calc"))["calc"]
    names = (CONTRACT, TESTS, CODE, ".patchgate/baselines/calc.json", "src/other/code.txt")
    found = {name for name in names if may_change(component, phase, RepoPath(name.encode()))}
    assert found == expected


def test_the_entries_of_an_intent_cover_what_the_patterns_of_the_component_do() -> None:
    component = components(
        declared("calc", implementation=["/src/calc/**", "lib/*.py", "gen/**/calc.py", "one.py"])
    )["calc"]
    task = PhaseTask("r-1", "calc", Phase.IMPLEMENTATION, seconds=1, stall=1)
    assert patterns_of(component, task.phase)[0] == "/src/calc/**"
    assert list(entries_of(component, task)) == [
        "src/calc/",
        "lib/*.py",
        "gen/**/calc.py",
        "gen/calc.py",
        "one.py",
    ]
    assert list(entries_of(component, replace(task, phase=Phase.CONTRACT))) == [CONTRACT]
