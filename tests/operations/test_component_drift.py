"""Drift in real repositories: each row of the table, at the commit, in a range, and as a patch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
from tests.world import Answer, Repo

Told = list[tuple[str, str, str]]
OTHER_TESTS = TEXT_OF_TESTS.replace("area(0, 3) == 0", "area(3, 0) == 0")
OTHER_CODE = TEXT_OF_CODE.replace("width * height", "height * width")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make(tmp_path)


def told(answer: Answer) -> Told:
    """List rule, level and path of what was found about drift."""
    found = [each for each in answer.findings if each["stage"] == "drift"]
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


def remove(repo: Repo, *paths: str) -> None:
    repo.git("rm", "-q", "--", *paths)


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
        lambda repo: repo.stage({CONTRACT: contract("1.1.0", description="More.")}),
        [("drift-contract-without-tests", "error", CONTRACT)],
    ),
    "contract and tests, version not raised": (
        lambda repo: repo.stage({CONTRACT: contract(description="More."), TESTS: OTHER_TESTS}),
        [("drift-version", "warning", CONTRACT)],
    ),
    "contract and tests, version raised": (
        lambda repo: repo.stage({CONTRACT: contract("1.1.0", description="More."), TESTS: OTHER_TESTS}),
        [],
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
        lambda repo: repo.stage({CONTRACT: contract("2.0.0"), TESTS: OTHER_TESTS, CODE: OTHER_CODE}),
        [("drift-all", "note", CONTRACT)],
    ),
    "the baseline deleted": (
        lambda repo: remove(repo, BASELINE),
        [("baseline-tampered", "error", BASELINE)],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_told_at_the_commit_and_of_the_commit(repo: Repo, row: str) -> None:
    """Requirement D 6.2: drift of contract, tests and implementation."""
    change, expected = ROWS[row]
    change(repo)
    assert sorted(both(repo)) == sorted(expected)


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
    repo.stage({CONTRACT: contract("1.1.0", description="More.")})
    repo.stage(capture(repo))
    assert repo.check().errors == ["drift-contract-without-tests"]
    repo.git("reset", "-q", "--hard")
    repo.stage({TESTS: TEXT_OF_TESTS.partition("\n\ndef test_side")[0]})
    repo.stage(capture(repo))
    assert repo.check().errors == ["drift-tests-weakened"]


def test_a_component_that_goes_as_a_whole_takes_its_baseline_along(repo: Repo) -> None:
    remove(repo, CONTRACT, TESTS, CODE, "src/shaping/more.py", BASELINE)
    assert repo.check().errors == []


def test_a_patch_is_judged_as_the_commit_would_be(repo: Repo) -> None:
    repo.stage({CONTRACT: contract("1.1.0", description="More.")})
    patch = repo.path.parent / "the.patch"
    patch.write_bytes(repo.git("diff", "--cached"))
    repo.git("reset", "-q", "--hard")
    answer = repo.check("--patch", str(patch))
    assert answer.errors == ["drift-contract-without-tests"]
    assert (answer.change["stage"], answer.change["code"]) == ("drift", "DRIFT_DETECTED")


def test_a_commit_of_a_range_is_judged_by_its_own_tree(repo: Repo) -> None:
    start = repo.ask("rev-parse", "HEAD")
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
    repo.commit({CONTRACT: contract("1.1.0", description="More."), TESTS: OTHER_TESTS})
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
    assert [each["rule"] for each in repo.check().findings] == ["dependency-unknown"]


def test_a_level_that_the_policy_names_holds_for_the_milder_findings_of_a_rule_too(tmp_path: Path) -> None:
    repo = make(tmp_path, POLICY + "[rules]\ndrift-tests-weakened = 'error'\n")
    repo.stage({TESTS: TEXT_OF_TESTS.replace("    assert shaping.area(0, 3) == 0\n", "")})
    assert repo.check().errors == ["drift-tests-weakened"]
