"""Drift in real repositories: each row of the table, at the commit, in a range, and as a patch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.component_world import (
    BASELINE,
    CODE,
    CONTRACT,
    FILES,
    POLICY,
    TESTS,
    TEXT_OF_CODE,
    TEXT_OF_TESTS,
    capture,
    contract,
    make,
)
from tests.world import Answer, AskedGit, Repo

pytestmark = pytest.mark.turns(3)

Told = list[tuple[str, str, str]]
TAMPERED = ("baseline-tampered", "error", BASELINE)
OTHER_TESTS = TEXT_OF_TESTS.replace("area(0, 3) == 0", "area(3, 0) == 0")
OTHER_CODE = TEXT_OF_CODE.replace("width * height", "height * width")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make(tmp_path)


def told(answer: Answer) -> Told:
    """List rule, level and path of what was found about drift."""
    return of_drift(answer.findings)


def of_drift(findings: Sequence[Mapping[str, Any]]) -> Told:
    """List rule, level and path of those findings that are about drift."""
    found = [each for each in findings if each["stage"] == "drift"]
    return [(each["rule"], each["level"], each["path"]) for each in found]


def both(repo: Repo) -> Told:
    """Judge what is staged, then the commit of it; both must say the same."""
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "-m", "Change")
    committed = repo.check("HEAD")
    assert staged.change["id"] == committed.change["id"]
    assert told(staged) == told(committed)
    assert staged.change["gates"] == committed.change["gates"]
    return told(staged)


def rewrite(repo: Repo, path: str, before: str, after: str) -> None:
    """Stage a file in which one text is another."""
    text = (repo.path / path).read_text(encoding="utf-8")
    assert before in text
    repo.stage({path: text.replace(before, after, 1)})


def remove(repo: Repo, *paths: str) -> None:
    repo.git("rm", "-q", "--", *paths)


def recapture(repo: Repo) -> None:
    """Record what is staged, and stage that alone: modes that the index alone has stay."""
    for path, text in capture(repo).items():
        repo.write(path, text)
        repo.git("add", path)


ROWS: dict[str, tuple[Callable[[Repo], object], Told]] = {
    "nothing near": (lambda repo: repo.stage({"README.md": "other\n"}), []),
    "implementation": (
        lambda repo: repo.stage({CODE: OTHER_CODE}),
        [("drift-implementation", "warning", CODE)],
    ),
    "a new file of the implementation": (
        lambda repo: repo.stage({"src/shaping/new.py": "NEW = 1\n"}),
        [("drift-implementation", "warning", "src/shaping/new.py")],
    ),
    "a mode of the implementation": (
        lambda repo: repo.git("update-index", "--chmod=+x", CODE),
        [("drift-implementation", "warning", CODE)],
    ),
    "contract, tests not": (
        lambda repo: repo.stage({CONTRACT: contract(version="1.1.0", description="More.")}),
        [("drift-contract-without-tests", "error", CONTRACT)],
    ),
    "contract and tests, version not raised": (
        lambda repo: repo.stage({CONTRACT: contract(description="More."), TESTS: OTHER_TESTS}),
        [("drift-version", "warning", CONTRACT)],
    ),
    "contract and tests, version raised": (
        lambda repo: repo.stage(
            {CONTRACT: contract(version="1.1.0", description="More."), TESTS: OTHER_TESTS}
        ),
        [("drift-all", "note", CONTRACT)],
    ),
    "tests alone": (lambda repo: repo.stage({TESTS: OTHER_TESTS}), [("drift-tests", "warning", TESTS)]),
    "a test file gone": (lambda repo: remove(repo, TESTS), [("drift-tests-weakened", "error", TESTS)]),
    "a test function gone": (
        lambda repo: repo.stage({TESTS: TEXT_OF_TESTS.partition("\n\ndef test_side")[0]}),
        [("drift-tests", "warning", TESTS), ("drift-tests-weakened", "error", TESTS)],
    ),
    "fewer assertions": (
        lambda repo: repo.stage({TESTS: TEXT_OF_TESTS.replace("    assert shaping.area(0, 3) == 0\n", "")}),
        [("drift-tests", "warning", TESTS), ("drift-tests-weakened", "warning", TESTS)],
    ),
    "a file of the implementation gone": (
        lambda repo: remove(repo, "src/shaping/more.py"),
        [("drift-missing", "error", "src/shaping/more.py")],
    ),
    "the contract gone": (lambda repo: remove(repo, CONTRACT), [("drift-missing", "error", CONTRACT)]),
    "a file moved": (
        lambda repo: repo.git("mv", "src/shaping/more.py", "src/shaping/less.py"),
        [("drift-moved", "note", "src/shaping/less.py")],
    ),
    "all three": (
        lambda repo: repo.stage({CONTRACT: contract(version="2.0.0"), TESTS: OTHER_TESTS, CODE: OTHER_CODE}),
        [("drift-all", "note", CONTRACT)],
    ),
    "the baseline deleted": (lambda repo: remove(repo, BASELINE), [TAMPERED]),
    "conflict markers in the baseline": (
        lambda repo: rewrite(repo, BASELINE, '"files": {\n', '"files": {\n<<<<<<< ours\n'),
        [("baseline-invalid", "error", BASELINE), TAMPERED],
    ),
    "a baseline of a later version": (
        lambda repo: rewrite(repo, BASELINE, "patchgate.baseline/1", "patchgate.baseline/2"),
        [("baseline-invalid", "error", BASELINE), TAMPERED],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_told_at_the_commit_of_the_commit_and_in_the_status(repo: Repo, row: str) -> None:
    """Requirement D 6.2: drift of contract, tests and implementation."""
    change, expected = ROWS[row]
    change(repo)
    assert sorted(both(repo)) == sorted(expected)
    (shown,) = repo.cli("baseline", "status", "--format", "json").report["components"]
    # That nobody looked at it for years is another matter; so is who changed the baseline.
    status = [each for each in of_drift(shown["findings"]) if each[0] != "baseline-stale"]
    gone = [("no-baseline", "note", BASELINE)] if row == "the baseline deleted" else []
    remaining = [each for each in expected if each != TAMPERED]
    assert sorted(status) == sorted(remaining + gone)


UNREADABLE: dict[str, tuple[str, str, str, str, int]] = {
    "conflict markers": (BASELINE, '"files": {\n', '"files": {\n<<<<<<< ours\n', "conflict", 4),
    "a later version": (BASELINE, "patchgate.baseline/1", "patchgate.baseline/2", "newer", 29),
    "no JSON": (CONTRACT, '"area",', '"area"', "not JSON", 8),
    "an unknown key": (CONTRACT, '"version"', '"surprise": 1,\n  "version"', "unknown key `surprise`", 3),
    "itself twice": (CONTRACT, '"version"', '"component_id": "shaping",\n  "version"', "first on line 2", 3),
    "what is outside": (
        CONTRACT,
        '"version"',
        '"external_dependencies": ["../x"],\n  "version"',
        "`../x` points outside",
        3,
    ),
}


@pytest.mark.parametrize("given", UNREADABLE)
def test_what_cannot_be_read_is_told_with_its_file_and_line_and_no_traceback(repo: Repo, given: str) -> None:
    path, before, after, words, line = UNREADABLE[given]
    rewrite(repo, path, before, after)
    answer = repo.check()
    rule = "baseline-invalid" if path == BASELINE else "contract-invalid"
    (finding,) = [each for each in answer.findings if each["rule"] == rule]
    assert (finding["path"], finding["level"], finding["line"]) == (path, "error", line)
    assert words in finding["message"]
    assert finding["hint"]
    assert (answer.code, answer.err) == (1, "")
    shown = repo.run("check")
    assert (shown.code, "Traceback" in shown.out + shown.err) == (1, False)
    assert f"{path}:{line}" in shown.out


def test_without_a_baseline_a_note_says_so(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.git("rm", "-q", BASELINE)
    repo.git("commit", "-q", "--no-verify", "-m", "Gone")
    repo.stage({CODE: OTHER_CODE})
    assert both(repo) == [("no-baseline", "note", BASELINE)]


def test_a_recapture_with_its_component_or_alone_is_silent(repo: Repo) -> None:
    repo.stage({CODE: OTHER_CODE})
    repo.stage(capture(repo))
    assert both(repo) == []
    repo.commit({CODE: TEXT_OF_CODE})
    repo.stage(capture(repo))
    assert both(repo) == []


def test_a_baseline_that_no_capture_would_write_is_refused_whatever_the_policy_says(tmp_path: Path) -> None:
    repo = make(tmp_path, POLICY + "[rules]\ndrift-implementation = 'off'\n")
    text = (repo.path / BASELINE).read_text(encoding="utf-8")
    repo.stage({CODE: OTHER_CODE})
    wanted = capture(repo)[BASELINE]
    assert isinstance(wanted, bytes)
    for forged in (text.replace("100644", "100755", 1), wanted.decode().replace('"\n', '" \n', 1), "{}\n"):
        repo.stage({BASELINE: forged})
        answer = repo.check()
        assert "baseline-tampered" in answer.errors
        assert answer.verdict == "rejected"
    repo.stage({BASELINE: wanted})
    assert both(repo) == []


def test_a_recapture_does_not_launder_a_contract_without_tests_or_weaker_tests(repo: Repo) -> None:
    repo.stage({CONTRACT: contract(version="1.1.0", description="More.")})
    repo.stage(capture(repo))
    assert repo.check().errors == ["drift-contract-without-tests"]
    repo.git("reset", "-q", "--hard")
    repo.stage({TESTS: TEXT_OF_TESTS.partition("\n\ndef test_side")[0]})
    repo.stage(capture(repo))
    assert repo.check().errors == ["drift-tests-weakened"]


ALL = (CONTRACT, TESTS, CODE, "src/shaping/more.py")
NO_TESTS = "def test_x(): pass\n"
EVERY_TEST = POLICY.replace("test_shaping*.py", "**")


def test_a_declared_component_does_not_lose_its_baseline_even_with_all_of_its_files(repo: Repo) -> None:
    remove(repo, *ALL, BASELINE)
    assert both(repo) == [("baseline-tampered", "error", BASELINE)]


def test_a_component_goes_by_its_declaration_then_its_files_and_its_baseline(repo: Repo) -> None:
    start = repo.head()
    repo.stage({"patchgate.toml": ""})
    assert repo.check().errors == []
    repo.commit()
    remove(repo, *ALL, BASELINE)
    assert repo.check().errors == []
    repo.commit()
    answer = repo.check(f"{start}..HEAD")
    assert answer.verdict == "accepted"
    assert answer.changes[1]["findings"] == []


def test_files_that_go_without_their_baseline_are_told_with_the_way_out(repo: Repo) -> None:
    remove(repo, *ALL)
    missing = [each for each in repo.check().findings if each["rule"] == "drift-missing"]
    assert sorted(each["path"] for each in missing) == sorted((CONTRACT, CODE, "src/shaping/more.py"))
    for each in missing:
        assert "patchgate.toml" in each["hint"]
        assert "separate commit" in each["hint"]


def test_a_merge_does_not_launder_what_its_other_side_did_before_there_was_a_baseline(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.commit(FILES)
    repo.git("branch", "side")
    repo.commit(capture(repo))
    repo.git("checkout", "-q", "side")
    repo.commit({TESTS: NO_TESTS})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    repo.stage(capture(repo))
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]


def test_a_merge_of_two_captures_is_silent_where_nothing_became_weaker(repo: Repo) -> None:
    repo.git("branch", "side")
    repo.stage({"src/shaping/a.py": "A = 1\n"})
    repo.commit(capture(repo))
    repo.git("checkout", "-q", "side")
    repo.stage({"src/shaping/b.py": "B = 1\n", TESTS: OTHER_TESTS})
    repo.commit(capture(repo))
    repo.git("checkout", "-q", "main")
    repo.try_git("merge", "-q", "--no-ff", "--no-commit", "side")
    repo.stage({BASELINE: "{}\n"})
    repo.stage(capture(repo))
    assert both(repo) == []


@pytest.mark.parametrize("is_recaptured", [False, True])
@pytest.mark.parametrize("how", ["mode", "blank"])
def test_a_contract_that_promises_the_same_does_not_excuse_weaker_tests(
    repo: Repo, how: str, is_recaptured: bool
) -> None:
    repo.stage({TESTS: NO_TESTS, CONTRACT: contract() + "\n" * (how == "blank")})
    if how == "mode":
        repo.git("update-index", "--chmod=+x", CONTRACT)
    version = [("drift-tests", "warning", TESTS), ("drift-version", "warning", CONTRACT)]
    if is_recaptured:
        recapture(repo)
    expected = [("drift-tests-weakened", "error", TESTS)]
    assert sorted(both(repo)) == sorted(expected + ([] if is_recaptured else version))


@pytest.mark.parametrize("is_recaptured", [False, True])
@pytest.mark.parametrize("how", ["mode", "comment", "empty file"])
def test_tests_that_say_the_same_are_no_tests_that_changed_with_their_contract(
    repo: Repo, how: str, is_recaptured: bool
) -> None:
    repo.stage({CONTRACT: contract(version="1.1.0", description="More.")})
    if how == "mode":
        repo.git("update-index", "--chmod=+x", TESTS)
    else:
        path, text = (TESTS, "# x\n" + TEXT_OF_TESTS) if how == "comment" else (TESTS[:-3] + "_e.py", "")
        repo.write(path, text)
        repo.git("add", path)
    if is_recaptured:
        recapture(repo)
    assert both(repo) == [("drift-contract-without-tests", "error", CONTRACT)]


def test_a_contract_that_is_written_otherwise_is_told_until_it_is_recorded(repo: Repo) -> None:
    repo.stage({CONTRACT: contract().replace("  ", "    ")})
    assert both(repo) == [("drift-version", "warning", CONTRACT)]
    repo.stage(capture(repo))
    assert both(repo) == []


def test_a_recapture_does_not_launder_a_contract_that_goes(repo: Repo) -> None:
    remove(repo, CONTRACT)
    repo.stage(capture(repo))
    assert both(repo) == [("drift-missing", "error", CONTRACT)]
    (finding,) = [each for each in repo.check("HEAD").findings if each["rule"] == "drift-missing"]
    assert "from patchgate.toml" in finding["hint"]


@pytest.mark.parametrize("name", ["test_shaping.txt", "shaping.py"])
def test_tests_that_move_to_a_name_that_nobody_runs_are_gone(tmp_path: Path, name: str) -> None:
    repo = make(tmp_path, EVERY_TEST)
    path = f"tests/contracts/{name}"
    repo.git("mv", TESTS, path)
    assert sorted(both(repo)) == [("drift-tests", "warning", path), ("drift-tests-weakened", "error", TESTS)]
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("mv", TESTS, path)
    repo.stage(capture(repo, EVERY_TEST))
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]


def test_tests_that_are_no_python_and_are_emptied_are_gone(tmp_path: Path) -> None:
    shell = "tests/contracts/check.sh"
    repo = make(tmp_path, EVERY_TEST, {**FILES, shell: "exit 1\n"})
    repo.stage({shell: "\n"})
    assert sorted(both(repo)) == [("drift-tests", "warning", shell), ("drift-tests-weakened", "error", shell)]
    repo.stage(capture(repo, EVERY_TEST))
    repo.git("reset", "-q", "--soft", "HEAD~1")
    answer = repo.check()
    assert told(answer) == [("drift-tests-weakened", "error", shell)]
    assert "is empty" in answer.findings[-1]["message"]


def test_a_patch_is_judged_as_the_commit_would_be(repo: Repo) -> None:
    repo.stage({CONTRACT: contract(version="1.1.0", description="More.")})
    patch = repo.path.parent / "the.patch"
    patch.write_bytes(repo.git("diff", "--cached"))
    repo.git("reset", "-q", "--hard")
    answer = repo.check("--patch", str(patch))
    assert answer.errors == ["drift-contract-without-tests"]
    assert (answer.change["stage"], answer.change["code"]) == ("drift", "DRIFT_DETECTED")


def test_a_commit_of_a_range_is_judged_by_its_own_tree(repo: Repo) -> None:
    start = repo.head()
    repo.commit({CODE: OTHER_CODE})
    repo.commit({"README.md": "more\n"})
    repo.commit(capture(repo))
    answer = repo.check(f"{start}..HEAD")
    assert [[each["rule"] for each in change["findings"]] for change in answer.changes] == [
        ["drift-implementation"],
        [],
        [],
    ]


def test_line_endings_untracked_files_and_caches_do_not_matter(repo: Repo) -> None:
    (repo.path / "src/shaping/__pycache__").mkdir()
    (repo.path / "src/shaping/__pycache__/x.pyc").write_bytes(b"x")
    (repo.path / "src/shaping/untracked.py").write_bytes(b"x")
    repo.git("config", "core.autocrlf", "true")
    repo.write(CODE, TEXT_OF_CODE.replace("\n", "\r\n"))
    repo.write("README.md", "other\r\n")
    repo.git("add", CODE, "README.md")
    assert both(repo) == []


def test_a_recorded_blob_that_is_not_here_leaves_it_undecided(repo: Repo, tmp_path: Path) -> None:
    repo.commit({CONTRACT: contract(version="1.1.0", description="More."), TESTS: OTHER_TESTS})
    repo.commit({"README.md": "more\n"})
    clone = repo.at(tmp_path / "shallow")
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(clone.path))
    clone.stage({TESTS: TEXT_OF_TESTS + "\n\n# more\n"})
    answer = clone.check()
    assert answer.verdict == "undecided"
    assert [each["gate"] for each in answer.change["gates"] if each["outcome"] == "undecided"] == ["drift"]


def test_other_source_roots_ask_every_contract_for_what_it_names(tmp_path: Path) -> None:
    roots = POLICY + '[baselines]\nsource_roots = ["src", "lib", "."]\n'
    outside = {
        **FILES,
        CONTRACT: contract(external_dependencies=["other.thing"]),
        "lib/other/thing.py": "x\n",
    }
    repo = make(tmp_path, roots, outside)
    repo.stage({"patchgate.toml": roots.replace('"lib", ', "")})
    assert repo.check().errors == ["external-missing"]


def test_a_declaration_that_goes_asks_the_contracts_that_need_it(tmp_path: Path) -> None:
    other = POLICY.replace("shaping", "other").replace("tests/contracts/test_other*.py", "tests/other/**")
    files = {**FILES, CONTRACT: contract(dependencies=["other"])}
    files["contracts/other/interface.json"] = '{"component_id": "other", "version": "1"}\n'
    repo = make(tmp_path, POLICY + other, files)
    repo.stage({"patchgate.toml": POLICY})
    assert sorted(repo.check().rules) == ["component-undeclared", "dependency-unknown"]


def test_a_level_that_the_policy_names_holds_for_the_milder_findings_of_a_rule_too(tmp_path: Path) -> None:
    repo = make(tmp_path, POLICY + "[rules]\ndrift-tests-weakened = 'error'\n")
    repo.stage({TESTS: TEXT_OF_TESTS.replace("    assert shaping.area(0, 3) == 0\n", "")})
    assert repo.check().errors == ["drift-tests-weakened"]


def test_what_a_component_is_its_own_line_says_whatever_policy_judges(repo: Repo) -> None:
    start = repo.head()
    wider = POLICY.replace('"src/shaping/**"', '"src/shaping/**", "src/forming/**"')
    repo.commit({"src/forming/x.py": "x = 1\n"})
    repo.commit({"patchgate.toml": wider})
    repo.commit(capture(repo, wider))
    repo.commit({"src/forming/x.py": "x = 2\n"})
    answer = repo.check(f"{start}..HEAD", "--policy-from", start)
    assert [[each["rule"] for each in change["findings"]] for change in answer.changes] == [
        [],
        ["drift-implementation"],
        [],
        ["drift-implementation"],
    ]


def test_how_loud_a_rule_is_the_judging_policy_says(tmp_path: Path) -> None:
    repo = make(tmp_path, POLICY + "[rules]\ndrift-implementation = 'error'\n")
    start = repo.head()
    repo.commit({"patchgate.toml": POLICY})
    repo.commit({CODE: OTHER_CODE})
    assert repo.check("HEAD").errors == []
    assert repo.check("HEAD", "--policy-from", start).errors == ["drift-implementation"]


def test_the_first_policy_of_a_repository_asks_the_contracts_that_it_declares(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    effects = {"component_id": "shaping", "version": "1", "functions": [{"name": "area"}]}
    repo.commit({**FILES, CONTRACT: json.dumps(effects)})
    repo.stage({"patchgate.toml": POLICY})
    assert repo.check().errors == ["side-effects-empty"]


def test_a_component_that_is_declared_no_longer_is_told_while_its_baseline_stays(repo: Repo) -> None:
    repo.stage({"patchgate.toml": "[policy]\n"})
    assert told(repo.check()) == [("component-undeclared", "warning", BASELINE)]
    repo.commit()
    remove(repo, CONTRACT, TESTS, CODE, "src/shaping/more.py", BASELINE)
    assert both(repo) == []


def test_a_forged_sum_is_refused_though_it_was_there_before_the_declaration(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit(FILES)
    honest = capture(repo)[BASELINE]
    assert isinstance(honest, bytes)
    tests = hashlib.sha256(TEXT_OF_TESTS.encode()).hexdigest().encode()
    repo.commit({BASELINE: honest.replace(tests, b"0" * 64)})
    repo.commit({"patchgate.toml": POLICY})
    repo.stage({CODE: OTHER_CODE})
    honest = capture(repo)[BASELINE]
    assert isinstance(honest, bytes)
    repo.stage({BASELINE: honest.replace(tests, b"0" * 64)})
    assert repo.check().errors == ["baseline-tampered"]
    repo.stage({BASELINE: honest})
    assert both(repo) == []


WITHOUT_SIDE = TEXT_OF_TESTS.partition("\n\ndef test_side")[0]
LATER_TESTS = OTHER_TESTS.partition("\n\ndef test_side")[0]
PROMISED_WITH_TESTS = {CONTRACT: contract(version="1.1.0", description="More."), TESTS: OTHER_TESTS}


@pytest.mark.parametrize("is_recaptured", [False, True])
def test_a_contract_that_changed_before_and_was_not_recorded_excuses_no_lost_test(
    repo: Repo, is_recaptured: bool
) -> None:
    start = repo.head()
    repo.commit(PROMISED_WITH_TESTS)
    assert told(repo.check("HEAD")) == [("drift-all", "note", CONTRACT)]
    repo.stage({TESTS: LATER_TESTS})
    if is_recaptured:
        recapture(repo)
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]
    assert repo.check(f"{start}..HEAD").verdict == "rejected"


@pytest.mark.parametrize("is_recaptured", [False, True])
def test_a_contract_that_changes_with_its_tests_excuses_a_lost_one(repo: Repo, is_recaptured: bool) -> None:
    repo.stage({**PROMISED_WITH_TESTS, TESTS: WITHOUT_SIDE})
    if is_recaptured:
        recapture(repo)
    assert both(repo) == [("drift-tests-weakened", "warning", TESTS)]
    if not is_recaptured:
        # What this change does not cause is told as the change before was.
        repo.stage({TESTS: LATER_TESTS, CODE: OTHER_CODE})
        assert sorted(both(repo)) == [
            ("drift-all", "note", CONTRACT),
            ("drift-tests-weakened", "warning", TESTS),
        ]


@pytest.mark.parametrize("is_later", [False, True])
def test_a_higher_version_alone_is_no_promise_that_excuses_a_lost_test(repo: Repo, is_later: bool) -> None:
    if is_later:
        repo.commit(PROMISED_WITH_TESTS)
        changed = {CONTRACT: contract(version="1.2.0", description="More."), TESTS: LATER_TESTS}
    else:
        changed = {CONTRACT: contract(version="1.1.0"), TESTS: WITHOUT_SIDE}
    repo.stage(changed)
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]


def test_a_contract_that_was_never_recorded_excuses_as_any_other(tmp_path: Path) -> None:
    repo = make(tmp_path, files={path: text for path, text in FILES.items() if path != CONTRACT})
    repo.commit({CONTRACT: contract(), TESTS: OTHER_TESTS})
    repo.stage({CONTRACT: contract(version="1.1.0"), TESTS: LATER_TESTS})
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.stage({**PROMISED_WITH_TESTS, TESTS: LATER_TESTS})
    assert both(repo) == [("drift-tests-weakened", "warning", TESTS)]


def test_a_patch_is_held_against_what_its_base_has(repo: Repo) -> None:
    repo.commit(PROMISED_WITH_TESTS)
    repo.stage({TESTS: LATER_TESTS})
    patch = repo.path.parent / "the.patch"
    patch.write_bytes(repo.git("diff", "--cached"))
    repo.git("reset", "-q", "--hard")
    assert repo.check("--patch", str(patch)).errors == ["drift-tests-weakened"]


MORE = "src/shaping/more.py"
MORE_TESTS = "tests/contracts/test_shaping_more.py"
DECLARATIONS = {
    "implementation, narrower": (
        POLICY.replace("src/shaping/**", CODE),
        [("drift-implementation", "warning", MORE)],
    ),
    "implementation, wider": (
        POLICY.replace('"src/shaping/**"', '"src/shaping/**", "src/forming/**"'),
        [("drift-implementation", "warning", "src/forming/x.py")],
    ),
    "tests, narrower": (
        POLICY.replace("tests/contracts/test_shaping*.py", TESTS),
        [("drift-tests", "warning", MORE_TESTS)],
    ),
    "tests, wider": (
        POLICY.replace("test_shaping*.py", "*.py"),
        [("drift-tests", "warning", "tests/contracts/test_others.py")],
    ),
    "a contract elsewhere": (
        POLICY.replace(CONTRACT, "contracts/copy.json"),
        [("drift-version", "warning", CONTRACT)],
    ),
    "tests that become implementation": (
        POLICY.replace("tests/contracts/test_shaping*.py", TESTS).replace(
            '"src/shaping/**"', f'"src/shaping/**", "{MORE_TESTS}"'
        ),
        [("drift-implementation", "warning", MORE_TESTS), ("drift-tests", "warning", MORE_TESTS)],
    ),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("what", DECLARATIONS)
def test_another_declaration_is_told_and_the_next_capture_settles_it(tmp_path: Path, what: str) -> None:
    policy, expected = DECLARATIONS[what]
    more = {
        MORE_TESTS: TEXT_OF_TESTS.replace("test_", "test_more_"),
        "tests/contracts/test_others.py": "def test_x():\n    assert 1 + 1 == 2\n",
        "src/forming/x.py": "x = 1\n",
        "contracts/copy.json": contract(),
    }
    repo = make(tmp_path, files={**FILES, **more})
    start = repo.head()
    repo.stage({"patchgate.toml": policy})
    assert sorted(both(repo)) == sorted(expected)
    repo.stage(capture(repo, policy))
    assert both(repo) == []
    for judging in ([], ["--policy-from", start]):
        answer = repo.check(f"{start}..HEAD", *judging)
        assert answer.verdict == "accepted"
        assert [len(of_drift(change["findings"])) for change in answer.changes] == [len(expected), 0]


def test_what_the_declaration_leaves_out_is_nobodys_after_the_recapture(tmp_path: Path) -> None:
    repo = make(tmp_path, files={**FILES, MORE_TESTS: TEXT_OF_TESTS})
    narrow = POLICY.replace("tests/contracts/test_shaping*.py", TESTS)
    repo.commit({"patchgate.toml": narrow})
    repo.stage({MORE_TESTS: "", TESTS: OTHER_TESTS})
    repo.stage(capture(repo, narrow))
    assert both(repo) == []
    repo.stage({TESTS: NO_TESTS})
    repo.stage(capture(repo, narrow))
    assert both(repo) == [("drift-tests-weakened", "error", TESTS)]


def test_a_contract_does_not_become_one_of_the_tests_that_changed_with_its_successor(tmp_path: Path) -> None:
    old, new = "tests/shaping/interface.json", "contracts/shaping/new.json"
    before = POLICY.replace(CONTRACT, old).replace("tests/contracts/test_shaping*.py", "tests/shaping/**")
    files = {old: contract(), "tests/shaping/test_shaping.py": TEXT_OF_TESTS, CODE: TEXT_OF_CODE}
    repo = make(tmp_path, before, {**files, new: contract(version="2.0.0", description="Less.")})
    repo.stage({"patchgate.toml": before.replace(old, new)})
    found = told(repo.check())
    assert ("drift-contract-without-tests", "error", new) in found
    assert ("drift-version", "warning", old) in found


def test_a_component_is_renamed_in_four_changes(repo: Repo) -> None:
    start = repo.head()
    name, baseline = "contracts/forming/interface.json", ".patchgate/baselines/forming.json"
    policy = POLICY.replace("shaping", "forming")
    repo.commit({"patchgate.toml": "[policy]\n"})
    for old in (CONTRACT, TESTS, CODE, MORE):
        (repo.path / old.replace("shaping", "forming")).parent.mkdir(parents=True, exist_ok=True)
        repo.git("mv", old, old.replace("shaping", "forming"))
    repo.git("rm", "-q", BASELINE)
    repo.commit({name: contract("forming"), "tests/contracts/test_forming.py": TEXT_OF_TESTS + "# x\n"})
    repo.commit({"patchgate.toml": policy})
    repo.commit(capture(repo, policy))
    answer = repo.check(f"{start}..HEAD")
    assert answer.verdict == "accepted"
    assert [of_drift(change["findings"]) for change in answer.changes] == [
        [("component-undeclared", "warning", BASELINE)],
        [],
        [("no-baseline", "note", baseline)],
        [],
    ]


def test_a_test_that_the_declaration_left_out_and_that_is_gone_then_is_settled_by_a_capture(
    tmp_path: Path,
) -> None:
    repo = make(tmp_path, files={**FILES, MORE_TESTS: TEXT_OF_TESTS})
    narrow = POLICY.replace("tests/contracts/test_shaping*.py", TESTS)
    repo.commit({"patchgate.toml": narrow})
    remove(repo, MORE_TESTS)
    repo.stage({CODE: OTHER_CODE})
    (finding,) = [each for each in repo.check().findings if each["rule"] == "drift-tests-weakened"]
    assert "baseline capture shaping" in finding["hint"]
    repo.stage(capture(repo, narrow))
    assert both(repo) == []


@pytest.mark.parametrize("is_stale", [False, True])
def test_a_file_that_a_merge_brings_into_a_component_is_told_of_the_range(
    tmp_path: Path, is_stale: bool
) -> None:
    strict = POLICY + '[rules]\ndrift-implementation = "error"\n'
    repo = make(tmp_path, strict.replace('"src/shaping/**"', '"src/shaping/shaping.py"'))
    repo.git("branch", "side")
    repo.stage({"patchgate.toml": strict})
    repo.stage(capture(repo, strict))
    repo.git("commit", "-q", "--no-verify", "-m", "Wider")
    base = repo.head()
    repo.git("checkout", "-q", "side")
    repo.commit({"src/shaping/late.py": "x = 1\n"})
    if not is_stale:
        repo.git("merge", "-q", "--no-verify", "--no-ff", "-m", "Merge", base)
    answer = repo.check(f"{base}..HEAD", "--policy-from", base)
    assert answer.errors == ["drift-implementation"]


@pytest.mark.parametrize("has_late", [False, True])
def test_a_stale_head_with_a_conflict_is_examined_beside_it(tmp_path: Path, has_late: bool) -> None:
    """A host may solve the conflict by itself, with `merge=union`."""
    strict = POLICY + '[rules]\ndrift-implementation = "error"\n'
    repo = make(tmp_path, strict.replace('"src/shaping/**"', '"src/shaping/shaping.py"'))
    repo.git("branch", "side")
    repo.stage({"patchgate.toml": strict, "notes": "1\n", ".gitattributes": "notes merge=union\n"})
    repo.stage(capture(repo, strict))
    repo.git("commit", "-q", "--no-verify", "-m", "Wider")
    base = repo.head()
    repo.git("checkout", "-q", "side")
    repo.commit({"notes": "2\n"} | ({"src/shaping/late.py": "x = 1\n"} if has_late else {}))
    answer = repo.check(f"{base}..HEAD", "--policy-from", base)
    assert answer.errors == (["drift-implementation"] if has_late else [])


def test_the_merge_of_a_head_and_its_branch_is_made_once(repo: Repo, tmp_path: Path) -> None:
    """Over branches that merged each other again and again it takes 15 s, and three checks need it."""
    start = repo.head()
    branch = repo.commit({"README.md": "of the branch\n"})
    repo.git("reset", "-q", "--hard", start)
    tip = repo.commit({"src/shaping/more.py": "MORE = 2\n"})
    git = AskedGit(tmp_path, repo.env)
    answer = repo.run("check", "--policy-from", branch, f"{branch}..{tip}", PATH=git.path)
    assert (answer.code, git.times("merge-tree")) == (0, 1), answer.err
