"""The work of one phase: the check first, the author while it fails, its answer through apply."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.apply.attempt_records import records
from patchgate.apply.retries import reset
from patchgate.git.repository import has_pending_transactions
from patchgate.ledger.ledger import Ledger
from patchgate.runs.phase_intent import PhaseIntent, clear_intents_of
from patchgate.runs.phase_task import PhaseOutcome
from patchgate.runs.phases import Phase
from patchgate.runs.triage import FaultKind
from tests.apply.test_recover import killed_at
from tests.component_world import contract, declared
from tests.intent_world import declare, intent_of, keep
from tests.runs.phase_world import (
    BASELINE,
    CHECK,
    CODE,
    CONTRACT,
    RIGHT,
    TESTS,
    WRONG,
    Desk,
    new_file,
    one_line,
)

pytestmark = pytest.mark.turns(3)

PASSED, FAILED = PhaseOutcome.PASSED, PhaseOutcome.FAILED
STEP = 30
FAULT, WAITING = PhaseOutcome.FAULT, PhaseOutcome.WAITING
START = {CONTRACT: contract("calc"), TESTS: CHECK, CODE: "wrong\n"}


def test_an_answer_lands_in_the_index_and_the_component_is_captured(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,)), result
    assert len(result.attempts) == 1
    assert (desk.staged, desk.intents, len(desk.briefs)) == ([BASELINE, CODE], [], 1)
    assert (desk.repo.path / CODE).read_text() == "right\n"
    assert (desk.repo.path / BASELINE).is_file()


def test_a_phase_that_has_passed_asks_no_author_and_changes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    before = desk.repo.ask("write-tree"), desk.repo.ask("status", "--porcelain=v2", "-uall")
    result = desk.perform()
    assert (result.outcome, result.files, result.attempts) == (PASSED, (), ())
    assert (desk.repo.ask("write-tree"), desk.repo.ask("status", "--porcelain=v2", "-uall")) == before
    assert len(desk.briefs) == 1


def test_without_an_author_the_failing_check_is_the_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path, phase=Phase.IMPLEMENTATION)
    desk.repo.policy(declared("calc", test_command=["sh", TESTS]))
    result = desk.perform()
    assert (result.outcome, result.exit_code, result.kind) == (FAILED, 1, FaultKind.TESTS_FAILED)
    assert result.tail[-1] == "the code is not right"
    assert (desk.intents, desk.briefs, result.attempts) == ([], [], ())


def test_a_contract_is_written_until_it_is_valid(tmp_path: Path) -> None:
    broken = new_file(CONTRACT, "{}\n")
    whole = new_file(CONTRACT, json.dumps(json.loads(contract("calc"))))
    desk = Desk(tmp_path, broken, whole, phase=Phase.CONTRACT, files={TESTS: CHECK})
    result = desk.perform()
    assert (result.outcome, desk.staged) == (PASSED, [CONTRACT])
    first, second = desk.briefs
    assert "It does not exist yet." in first
    assert "its contract does not exist" in first
    assert "contract-invalid" in second


def test_tests_are_written_until_there_are_some(tmp_path: Path) -> None:
    desk = Desk(tmp_path, new_file(TESTS, CHECK), phase=Phase.TESTS, files={CONTRACT: contract("calc")})
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (TESTS,))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("phase", [Phase.INTERVIEW, Phase.SHAPING])
def test_an_answer_to_a_phase_without_a_check_lands_once_in_a_run(tmp_path: Path, phase: Phase) -> None:
    desk = Desk(tmp_path, new_file("src/calc/notes.txt", "one\n"), new_file(CODE, "two\n"), phase=phase)
    assert desk.perform().files == ("src/calc/notes.txt",)
    again = desk.perform()
    assert (again.outcome, again.files, len(desk.briefs)) == (PASSED, (), 1)
    assert desk.perform(run="r-2").files == (CODE,)


def test_a_phase_without_check_and_author_is_passed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.perform(phase=Phase.SHAPING).outcome is PASSED
    assert desk.briefs == []


def family(folder: Path) -> Desk:
    """Make a desk whose component `calc` has a child with passing tests, and its author integrates."""
    child = declared("leaf", parent="calc", test_command=["sh", "tests/leaf/check.sh"])
    files = {
        CONTRACT: contract("calc"),
        TESTS: CHECK,
        CODE: "wrong\n",
        "contracts/leaf/interface.json": contract("leaf"),
        "tests/leaf/check.sh": "true\n",
        "src/leaf/code.txt": "leaf\n",
    }
    answer = one_line(CODE, "wrong", "right")
    return Desk(folder, answer, phase=Phase.INTEGRATION, files=files, more=child)


def test_a_parent_waits_until_its_child_is_recorded_and_then_passes_again(tmp_path: Path) -> None:
    desk = family(tmp_path)
    desk.repo.write(CODE, "right\n")
    desk.repo.git("add", "-A")
    (desk.answers_folder / "0").unlink()
    unrecorded = desk.perform()
    assert (unrecorded.outcome, "leaf" in unrecorded.reason) == (WAITING, False), unrecorded
    assert "leaf is below it" in desk.briefs[0]
    assert desk.perform(component="leaf", phase=Phase.IMPLEMENTATION).outcome is PASSED
    assert desk.perform().outcome is PASSED
    assert desk.perform(component="leaf").outcome is PASSED


def test_an_author_integrates_a_parent(tmp_path: Path) -> None:
    desk = family(tmp_path)
    assert desk.perform(component="leaf", phase=Phase.IMPLEMENTATION).outcome is PASSED
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,))
    assert (desk.repo.path / BASELINE).is_file()


# ---- refusals --------------------------------------------------------------------------------------------


def test_an_answer_that_is_no_patch_of_the_phase_is_refused_and_the_author_is_asked_again(
    tmp_path: Path,
) -> None:
    """Prose, a whole file, a fence, nothing, too much, another component, another phase."""
    bad = {
        b"I have written the code for you.\n": "not-a-unified-diff",
        b"right\n": "retry-not-a-diff",
        b"Here it is:\n\n```diff\n" + RIGHT + b"```\n": "retry-not-a-diff",
        b"": "the answer was empty",
        b"#" * (1 << 16): "the answer was more than 32,768 bytes",
        new_file("src/other/code.txt", "right\n"): "scope-unexpected",
        new_file(TESTS + ".more", "true\n"): "scope-unexpected",
    }
    desk = Desk(tmp_path, *bad, RIGHT, more="[apply]\nmax_attempts = 9\n")
    result = desk.perform(most_answer=1 << 15)
    assert (result.outcome, result.files, desk.staged) == (PASSED, (CODE,), [BASELINE, CODE])
    first, *others = desk.briefs
    assert "## What is still to do" in first
    assert "## Your last answer was refused" not in first
    for said, brief in zip(bad.values(), others, strict=True):
        assert said in brief.partition("## Your last answer was refused")[2]
        assert "the code is not right" in brief.partition("## What is still to do")[2]
        assert not any(word in brief for word in ("--retry-of", "wait until", "git patchgate run"))
    # What is too large is no attempt.
    assert (len(result.attempts), desk.intents) == (len(bad), [])


def test_a_patch_for_files_of_another_phase_of_the_same_run_is_refused(tmp_path: Path) -> None:
    """Two intents are active in one worktree: each patch keeps to its own."""
    desk = Desk(tmp_path, new_file("src/other/code.txt", "right\n"), RIGHT)
    declare(desk.repo, "src/other/")
    result = desk.perform()
    assert (result.outcome, desk.staged) == (PASSED, [BASELINE, CODE])
    assert "may not change this file" in desk.briefs[1]


def test_an_answer_that_lands_and_does_not_pass_is_corrected(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRONG, one_line(CODE, "wrong", "right"))
    result = desk.perform()
    assert (result.outcome, result.files, len(result.attempts)) == (PASSED, (CODE,), 2)
    assert "the code is not right" in desk.briefs[1]


def calls(desk: Desk) -> list[str]:
    return [re.search(r"^- call: (.*)$", brief, re.MULTILINE)[1] for brief in desk.briefs]  # type: ignore[index]


def test_the_calls_of_an_author_are_counted_over_all_tries(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, b"prose\n", WRONG, more="[apply]\nmax_attempts = 4\n", script='[ "$n" != 2 ] || exit 1'
    )
    assert desk.perform().outcome is FAILED
    assert calls(desk) == ["1", "2", "3"]
    desk.perform()
    assert calls(desk)[3:5] == ["3", "4"]


def test_what_landed_and_what_fails_is_said_before_the_refusal_also_after_a_kill(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRONG, b"prose\n", b"more prose\n", more=LIMIT)
    first = desk.perform()
    assert (first.outcome, len(desk.briefs)) == (WAITING, 2)
    second = desk.perform()
    assert (second.outcome, len(desk.briefs)) == (WAITING, 3)
    again = desk.perform()
    assert (again.outcome, len(desk.briefs)) == (WAITING, 3)
    for result in (first, second, again):
        assert f"what landed of them is staged: {CODE}" in result.reason
        lines = list(result.tail)
        refused = next(n for n, line in enumerate(lines) if "rejected:" in line)
        assert lines.index("the code is not right") < refused < 8
    desk.repo.commit(message="Take it as it is")
    assert "is staged" not in desk.perform().reason


def test_a_limit_that_refuses_every_answer_is_raised_in_the_policy(tmp_path: Path) -> None:
    """An approval is for a change that can become a commit, and a patch is none."""
    more = LIMIT + "[policy.agent]\nmax_added_lines = 1\n"
    answers = [new_file(CODE, f"right\n{line}\n") for line in ("a", "b")]
    desk = Desk(tmp_path, *answers, RIGHT, more=more)
    result = desk.perform()
    assert (result.outcome, result.subject) == (WAITING, "max-added-lines")
    assert "raise max_added_lines in [policy.agent]" in str(result.hint)
    assert "git patchgate attempts reset" in str(result.hint)


LIMIT = "[apply]\nmax_attempts = 2\n"


def test_an_exhausted_chain_waits_for_a_maintainer_also_in_the_next_try(tmp_path: Path) -> None:
    desk = Desk(tmp_path, b"prose\n", b"more prose\n", RIGHT, more=LIMIT)
    result = desk.perform()
    last = result.attempts[-1]
    assert (result.outcome, len(desk.briefs)) == (WAITING, 2)
    assert result.hint is not None
    assert f"git patchgate attempts reset {last}" in result.hint
    again = desk.perform()
    assert (again.outcome, again.attempts, len(desk.briefs)) == (WAITING, (), 2)
    assert again.hint == result.hint
    ledger = Ledger(desk.repo.common_dir)
    (chain,) = {each.chain for each in records(ledger)}
    reset(desk.repository, chain, "the brief was wrong", "a maintainer")
    assert desk.perform().outcome is PASSED


def test_a_killed_chain_is_continued_with_its_feedback(tmp_path: Path) -> None:
    desk = Desk(tmp_path, b"prose\n", more=LIMIT, script='[ "$n" = 0 ] || kill -9 $$')
    assert desk.perform().outcome is FAILED
    desk.perform()
    assert len(desk.briefs) == 3
    assert "not-a-unified-diff" in desk.briefs[2]


def test_answers_that_never_pass_the_check_wait_for_a_maintainer(tmp_path: Path) -> None:
    answers = [WRONG, one_line(CODE, "wrong", "bad"), one_line(CODE, "bad", "worse")]
    desk = Desk(tmp_path, *answers, more=LIMIT)
    result = desk.perform()
    assert (result.outcome, len(desk.briefs)) == (WAITING, 2)
    assert "git patchgate run resume r-1" in str(result.hint)
    assert "the code is not right" in result.tail


def test_the_files_of_another_intent_are_not_touched(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    other = declare(desk.repo, "src/")
    result = desk.perform()
    assert (result.outcome, other.id in result.reason) == (WAITING, True)
    assert (desk.briefs, desk.staged, desk.intents) == ([], [], [other.id])


def test_the_intent_that_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    reason = PhaseIntent(desk.repository, desk.task(), desk.environment()).reason
    keep(desk.repo, replace(intent_of(desk.repo, "src/calc/"), reason=reason))
    assert desk.perform().outcome is PASSED
    assert desk.intents == []
    keep(desk.repo, replace(intent_of(desk.repo, "src/calc/"), reason=reason))
    assert (desk.perform().outcome, desk.intents) == (PASSED, [])


def test_the_intents_of_a_run_are_cleared_together_and_no_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ids = [f"i-000000000{number}" for number in range(1, 4)]
    reasons = ["run r-1: tests of calc", "run r-12: tests of calc", "Make the sum right"]
    for name, reason in zip(ids, reasons, strict=True):
        keep(desk.repo, replace(intent_of(desk.repo, f"src/{name}/", name=name), reason=reason))
    assert clear_intents_of(desk.repository, "r-1", desk.repo.env) == (ids[0],)
    assert desk.intents == ids[1:]


def test_no_author_is_asked_while_a_file_that_git_does_not_know_is_in_the_way(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.repo.write(CODE, "mine\n")
    result = desk.perform()
    assert (result.outcome, desk.briefs, result.attempts) == (WAITING, [], ())
    assert CODE in result.reason
    assert (desk.repo.path / CODE).read_text() == "mine\n"


def test_an_unstaged_change_of_the_user_is_not_overwritten(tmp_path: Path) -> None:
    desk = Desk(tmp_path, one_line(CODE, "wrong", "right"), files=START)
    desk.repo.write(CODE, "mine\n")
    result = desk.perform()
    assert (result.outcome, desk.staged) == (WAITING, [])
    assert (desk.repo.path / CODE).read_text() == "mine\n"


# ---- who wants it ----------------------------------------------------------------------------------------


@pytest.mark.sweep(2)
@pytest.mark.parametrize("answers", range(6))
def test_nothing_lands_for_a_run_that_is_gone(tmp_path: Path, answers: int) -> None:
    desk = Desk(tmp_path, RIGHT)
    left = [True] * answers
    result = desk.perform(is_wanted=lambda: bool(left and left.pop()))
    assert (result.outcome, result.kind) == (FAULT, None)
    assert "has ended" in result.reason
    assert (desk.staged, desk.intents, (desk.repo.path / CODE).exists()) == ([], [], False)


def test_a_run_that_ends_while_the_commands_run_lands_nothing(tmp_path: Path) -> None:
    lint = f'[commands.check]\nkind = "lint"\ncommand = ["touch", "{tmp_path}/gone"]\n'
    desk = Desk(tmp_path, RIGHT, more=lint)
    result = desk.perform(is_wanted=lambda: not (tmp_path / "gone").exists())
    assert (result.outcome, desk.staged, desk.intents) == (FAULT, [], [])
    assert (tmp_path / "gone").exists()


def test_an_unexpected_exception_ends_the_intent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)

    def is_wanted() -> bool:
        if desk.briefs:
            raise RuntimeError
        return True

    with pytest.raises(RuntimeError):
        desk.perform(is_wanted=is_wanted)
    assert desk.intents == []


# ---- faults ----------------------------------------------------------------------------------------------


def test_a_component_that_the_index_does_not_declare_is_a_fault_of_the_config(tmp_path: Path) -> None:
    result = Desk(tmp_path).perform(component="clac")
    assert (result.outcome, result.kind) == (FAULT, FaultKind.CONFIG)


def test_tests_that_take_too_long_are_a_fault_and_no_author_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, files={**START, TESTS: "exec sleep 600\n"})
    result = desk.perform(seconds=0.2)
    assert (result.outcome, result.kind, result.timed_out) == (FAULT, FaultKind.TIME_OUT, True)
    assert desk.briefs == []


def test_a_test_command_that_is_not_there_is_a_fault_and_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, files=START, test_command=["no-such-program"])
    result = desk.perform()
    assert (result.outcome, result.kind, result.missing) == (
        FAULT,
        FaultKind.NOTHING_COLLECTED,
        ("no-such-program",),
    )
    fault = result.fault(desk.task())
    assert fault is not None
    assert (fault.signature, fault.subject) == ("nothing-collected", "no-such-program")


def test_a_lint_command_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, more='[commands.check]\nkind = "lint"\ncommand = ["no-such-program"]\n')
    result = desk.perform()
    assert (result.outcome, result.kind, desk.staged) == (FAULT, FaultKind.NOT_STARTED, [])


def test_tests_are_collected_and_not_run(tmp_path: Path) -> None:
    """Without an implementation they are only read: what they import is not there yet."""
    name, code = "tests/calc/test_calc.py", "src/calc/__init__.py"
    text = "import calc\n\ndef test_sum():\n    assert calc.one == 2\n"
    command = ["python", "-m", "pytest", "-q", "{tests}"]
    desk = Desk(tmp_path, files={CONTRACT: contract("calc"), name: text}, test_command=command)

    def collected(files: dict[str, str | bytes]) -> tuple[PhaseOutcome, FaultKind | None, str]:
        desk.repo.stage(files)
        result = desk.perform(phase=Phase.TESTS)
        return result.outcome, result.kind, result.subject

    assert collected({}) == (PASSED, None, "")
    assert collected({name: "import calc\n"}) == (FAILED, FaultKind.NOTHING_COLLECTED, "")
    assert collected({name: text, code: "one = 1\n"}) == (PASSED, None, "")
    assert collected({code: "import no_such_module\n"}) == (
        FAILED,
        FaultKind.IMPORT_ERROR,
        "no_such_module",
    )
    assert collected({name: "TWO = 2\n"}) == (FAILED, FaultKind.NOTHING_COLLECTED, "")
    assert desk.briefs == []


def test_an_apply_that_was_killed_is_finished_or_undone_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.repo.write("f", "a\nb\nc\n")
    desk.repo.write("gone", "x\n")
    desk.repo.commit()
    # In the middle of its steps; were it before the journal, nothing would be pending.
    killed_at(desk.repo, STEP)
    assert has_pending_transactions(desk.repo.common_dir)
    assert desk.perform(phase=Phase.SHAPING).outcome is PASSED
    assert not has_pending_transactions(desk.repo.common_dir)
