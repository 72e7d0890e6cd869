"""`git patchgate agent reply`: raw replies through the command, with the gate behind a repair."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.patches.reply_actions import ACTIONS, example_of
from patchgate.report.rules import RULES
from tests.patches.reply_world import block, cdata, parameter
from tests.proposals import change_of, edits_of, snapshot
from tests.world import EXECUTABLE, Answer, Repo, pinned_environment

ABC = "a\nb\nc\n"
GOOD = change_of(b"f").decode()
SUBPLAN = parameter("subplan", "write b large")
BROKEN = {
    "missing-function-tag": "I have finished.\n",
    "invalid-multi-block": block("noop") + block("submit"),
    "duplicate-param": block("noop", parameter("reason", "a"), parameter("reason", "a")),
    "unknown-param": block("noop", parameter("summary", "a")),
    "missing-required-param": block("repair", parameter("patch", cdata(GOOD))),
    "invalid-json-param": block("explore", parameter("anchors", "f")),
    "unknown-action": block("fix"),
    "extra-text": "Done:\n" + block("noop"),
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    made.commit({"f": ABC, "g": ABC, "runs/x": ABC})
    return made


def judge(repo: Repo, reply: str | bytes, *arguments: str, form: str = "json") -> Answer:
    """Judge a reply; nothing in the repository may change."""
    file = repo.path.parent / "reply"
    file.write_bytes(reply.encode() if isinstance(reply, str) else reply)
    before = snapshot(repo)
    answer = repo.cli("agent", "reply", str(file), "--format", form, *arguments)
    assert snapshot(repo) == before
    assert "patchgate itself failed" not in answer.out + answer.err
    return answer


def validator(repo: Repo) -> Draft202012Validator:
    """Load the schema that the command prints."""
    schema = json.loads(repo.cli("schema", "reply").out)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def rules(answer: Answer) -> list[str]:
    """Give the rules of the document's own findings."""
    return [finding["rule"] for finding in answer.report["findings"]]


@pytest.mark.parametrize(
    "action", [each for each in ACTIONS if each.name != "repair"], ids=lambda each: each.name
)
def test_the_example_of_each_action_exits_0_and_is_told_as_one_object(repo: Repo, action: Any) -> None:
    """E1, E18, E25."""
    answer = judge(repo, example_of(action))
    assert (answer.code, answer.err) == (0, "")
    told = answer.report
    validator(repo).validate(told)
    assert (told["schema"], told["verdict"], told["action"]) == ("patchgate.reply/2", "accepted", action.name)
    assert (told["findings"], told["report"], told["notes"]) == ([], None, [])
    assert set(action.example) <= set(told["params"])


def test_numbers_that_were_capped_are_told_as_notes(repo: Repo) -> None:
    """E7."""
    reply = block("explore", parameter("anchors", '["f"]'), parameter("hop", "9"), parameter("limit", "500"))
    told = judge(repo, reply).report
    assert told["params"] == {"anchors": ["f"], "hop": 2, "limit": 100}
    hop, limit = told["notes"]
    assert re.findall(r"`\w+`|\d+", hop) == ["`hop`", "9", "2", "2"]
    assert re.findall(r"`\w+`|\d+", limit) == ["`limit`", "500", "100", "100"]
    assert judge(repo, reply, form="full").out.splitlines() == [
        *(f"note: {note}" for note in told["notes"]),
        "accepted: explore",
    ]


def test_every_rule_of_the_protocol_has_its_broken_reply() -> None:
    """E1, E18: a rule that is added is added here."""
    assert set(BROKEN) == {rule.id for rule in RULES.values() if rule.gate == "reply"}


@pytest.mark.parametrize("rule", list(BROKEN))
def test_every_refusal_exits_1_with_rule_stage_code_line_and_next_step(repo: Repo, rule: str) -> None:
    """E2-E7."""
    answer = judge(repo, BROKEN[rule])
    assert (answer.code, answer.err) == (1, "")
    told = answer.report
    validator(repo).validate(told)
    assert (told["verdict"], told["report"]) == ("rejected", None)
    (finding,) = told["findings"]
    assert finding["rule"] == rule
    assert (finding["stage"], finding["code"], finding["level"]) == ("parse", "PATCH_PARSE_INVALID", "error")
    assert finding["message"].startswith(f"reply line {finding['details']['reply_line']}: ")
    assert finding["hint"]
    assert finding["who_can_fix"] == "agent"
    told_in_words = judge(repo, BROKEN[rule], form="full")
    assert told_in_words.code == 1
    assert told_in_words.out == (
        f"error[{rule}]: {finding['message']}\nhelp: {finding['hint']}\n\nrejected: 1 error in the reply\n"
    )


def test_all_faults_are_told_at_once_with_a_did_you_mean(repo: Repo) -> None:
    """E4, E5, E7."""
    reply = "Sure:\n" + block("explore", parameter("anchor", "f"), parameter("hop", "-1"))
    answer = judge(repo, reply)
    assert rules(answer) == ["extra-text", "missing-required-param", "unknown-param", "invalid-json-param"]
    assert [finding["details"]["reply_line"] for finding in answer.report["findings"]] == [1, 2, 3, 4]
    assert answer.report["findings"][2]["details"]["actual"] == "anchor"
    assert "`anchors`" in answer.report["findings"][2]["hint"]
    assert answer.report["action"] == "explore"
    assert judge(repo, reply, form="full").out.endswith("\n\nrejected: 4 errors in the reply\n")


def test_the_rules_are_explained_and_are_invariants(repo: Repo) -> None:
    """E1."""
    for rule in BROKEN:
        told = repo.cli("explain", rule)
        assert told.code == 0
        assert "stage parse, code PATCH_PARSE_INVALID, gate reply" in told.out
        assert "invariant" in told.out


# Repairs, which go through the gate.


def test_a_repair_that_fits_is_accepted_by_the_gate_and_not_applied(repo: Repo) -> None:
    """E18, E25."""
    reply = block("repair", SUBPLAN, parameter("patch", cdata(GOOD)))
    answer = judge(repo, reply)
    assert (answer.code, answer.err) == (0, "")
    told = answer.report
    validator(repo).validate(told)
    assert (told["verdict"], told["findings"]) == ("accepted", [])
    assert told["params"] == {"subplan": "write b large", "patch": GOOD}
    file = repo.path.parent / "proposal"
    file.write_text(GOOD, encoding="utf-8")
    assert told["report"] == repo.check("--patch", str(file)).report
    assert judge(repo, reply, form="full").out == (
        "note: nothing was applied; git patchgate apply does that\naccepted: 1 file, no findings\n"
    )


@pytest.mark.parametrize(
    ("patch", "rule", "code"),
    [
        (GOOD.replace("-b\n", "-z\n"), "hunk-mismatch", "PATCH_GIT_CHECK_FAIL"),
        (change_of(b"runs/x").decode(), "deny-prefix", "PATCH_POLICY_DENY"),
        (change_of(b"../f").decode(), "path-traversal", "PATCH_POLICY_DENY"),
        (GOOD.rstrip("\n"), "newline-missing", "PATCH_PARSE_INVALID"),
        (GOOD.replace("@@ -1,3 +1,3 @@", "@@ ... @@"), "range-invalid", "PATCH_PARSE_INVALID"),
        ("b is large now\n", "not-a-unified-diff", "PATCH_PARSE_INVALID"),
        (GOOD.replace("+++ b/f\n", "+++ b/f\r\n"), "carriage-return-in-header", "PATCH_PARSE_INVALID"),
    ],
)
def test_a_repair_whose_patch_is_refused_exits_1_with_the_gates_own_rule(
    repo: Repo, patch: str, rule: str, code: str
) -> None:
    """E10, E11, E13, E14, E18, E20."""
    answer = judge(repo, block("repair", SUBPLAN, parameter("patch", cdata(patch))))
    assert answer.code == 1
    told = answer.report
    validator(repo).validate(told)
    assert (told["verdict"], told["report"]["verdict"], rules(answer)) == ("rejected", "rejected", [rule])
    assert told["report"]["changes"][0]["code"] == code
    assert told["findings"] == told["report"]["changes"][0]["findings"]
    assert (
        f"error[{rule}]"
        in judge(repo, block("repair", SUBPLAN, parameter("patch", cdata(patch))), form="full").out
    )


def test_a_patch_without_cdata_may_stand_on_lines_of_its_own(repo: Repo) -> None:
    """E20: the gate allows empty lines before a patch, so nothing has to be stripped."""
    assert judge(repo, block("repair", SUBPLAN, parameter("patch", "\n" + GOOD))).code == 0
    assert (
        judge(repo, block("repair", SUBPLAN, parameter("patch", "\n" + cdata("\n" + GOOD) + "\n"))).code == 0
    )


def test_an_envelope_with_crlf_does_not_touch_the_patch_in_it(repo: Repo) -> None:
    """E20."""
    envelope = block("repair", SUBPLAN, parameter("patch", cdata("HERE"))).replace("\n", "\r\n")
    assert judge(repo, envelope.replace("HERE", GOOD)).code == 0
    repo.commit({"f": ABC.replace("\n", "\r\n")})
    hunks = change_of(b"f", b"b\r", b"B\r").replace(b" a\n", b" a\r\n").replace(b" c\n", b" c\r\n").decode()
    told = judge(repo, envelope.replace("HERE", hunks)).report
    assert (told["verdict"], told["params"]["patch"]) == ("accepted", hunks)


def test_edits_of_a_repair_go_through_the_gate_as_well(repo: Repo) -> None:
    """E8, E9, E10, E12."""
    good = json.dumps(edits_of((2, 2, "B\n")))
    answer = judge(repo, block("repair", SUBPLAN, parameter("edits", good)))
    assert (answer.code, answer.report["report"]["changes"][0]["source"]["kind"]) == (0, "edits")
    two = {
        "patch": {
            "edits": [
                *edits_of((1, 1, "A\n"))["patch"]["edits"],
                *edits_of((1, 1, "A\n"), path="g")["patch"]["edits"],
            ]
        }
    }
    for document, rule in (
        ({"patch": {"edits": []}}, "invalid-patch-schema"),
        ({}, "invalid-patch-schema"),
        (edits_of((2, 2, "B")), "newline-missing"),
        (edits_of((2, 2, "B\n"), path=""), "path-missing"),
        (edits_of((9, 9, "B\n")), "range-invalid"),
        (two, "multi-file-diff"),
    ):
        answer = judge(repo, block("repair", SUBPLAN, parameter("edits", json.dumps(document))))
        assert (answer.code, rules(answer)) == (1, [rule])


def test_the_patch_of_a_reply_that_does_not_hold_is_not_looked_at(repo: Repo) -> None:
    """E6: of the broken patch nothing is told, for another reply has to come anyway."""
    answer = judge(repo, block("repair", parameter("patch", cdata("nothing"))))
    assert (answer.code, rules(answer), answer.report["report"]) == (1, ["missing-required-param"], None)


def test_a_repair_is_laid_on_the_revision_that_was_named(repo: Repo) -> None:
    base = repo.head()
    repo.commit({"f": "z\n" + ABC})
    reply = block("repair", SUBPLAN, parameter("patch", cdata(GOOD)))
    answer = judge(repo, reply, "--base", base)
    assert (answer.code, answer.report["report"]["changes"][0]["base_commit"]) == (0, base)
    unknown = judge(repo, reply, "--base", "nowhere")
    assert (unknown.code, unknown.error["kind"]) == (2, "usage")


def test_a_repair_that_cannot_be_judged_is_undecided(repo: Repo) -> None:
    """Fail closed: a ref that is trusted above all and is not here."""
    repo.git("config", "patchgate.trustRef", "refs/remotes/origin/main")
    answer = judge(repo, block("repair", SUBPLAN, parameter("patch", cdata(GOOD))))
    assert (answer.code, answer.error["kind"]) == (3, "undecided")
    assert judge(repo, block("noop")).code == 0


# The command around it.


def outside(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command where no repository is."""
    folder.mkdir()
    return subprocess.run(
        [EXECUTABLE, "agent", "reply", *arguments],
        input=stdin,
        cwd=folder,
        env=pinned_environment(folder / "home"),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("reply", "code"),
    [(block("noop"), 0), ("Done.\n", 1), (block("repair"), 1)],
    ids=["good", "bad", "bad repair"],
)
def test_the_protocol_is_held_outside_a_repository_too(tmp_path: Path, reply: str, code: int) -> None:
    """E19, E25: the offline validator."""
    done = outside(tmp_path / "elsewhere", "-", stdin=reply)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_repair_that_holds_needs_a_repository(tmp_path: Path) -> None:
    """E25: what the gate has to say cannot be said without one."""
    done = outside(
        tmp_path / "elsewhere", "-", stdin=block("repair", SUBPLAN, parameter("patch", cdata(GOOD)))
    )
    assert (done.returncode, done.stdout) == (2, "")
    error, help_line = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert (help_line.startswith("help: "), "-C DIR" in help_line) == (True, True)


def test_the_table_is_printed_for_a_prompt_and_as_a_document(tmp_path: Path) -> None:
    """E1, E19: each example in it holds, outside a repository too."""
    words = outside(tmp_path / "a", "--describe")
    assert (words.returncode, words.stderr) == (0, "")
    told = outside(tmp_path / "b", "--describe", "--format", "json")
    document = json.loads(told.stdout)
    assert document["schema"] == "patchgate.actions/2"
    assert [each["name"] for each in document["actions"]] == [action.name for action in ACTIONS]
    for each in document["actions"]:
        assert each["example"] in words.stdout


@pytest.mark.parametrize(
    "arguments",
    [(), ("absent.txt",), ("--describe", "-"), ("--describe", "--base", "HEAD")],
    ids=["no file", "absent", "both", "a base"],
)
def test_wrong_arguments_exit_2_with_the_next_step(repo: Repo, arguments: tuple[str, ...]) -> None:
    answer = repo.cli("agent", "reply", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert "\nhelp: " in answer.err


def test_a_reply_of_another_encoding_or_of_hostile_bytes_is_told_in_plain_words(repo: Repo) -> None:
    """E15."""
    for reply, rule in (
        (b"\xff\xfe<\0", "encoding-unsupported"),
        (b"\x1b[2J\xe2\x80\xae", "missing-function-tag"),
    ):
        for form in ("json", "full"):
            answer = judge(repo, reply, form=form)
            assert answer.code == 1
            assert rule in answer.out
            assert "\x1b" not in answer.out
            assert answer.out.isascii()


def test_what_a_reply_makes_a_log_obey_is_escaped(repo: Repo) -> None:
    out = judge(repo, "##vso[task.complete]\n" + block("::error::x"), form="full").out
    assert "##vso[" not in out
    assert not any(line.startswith("::") for line in out.splitlines())
