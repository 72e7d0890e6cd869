"""`init --yes`: the first policy, written once, a trial run on the last commits, and the hooks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from patchgate.policy.config import parse
from tests.malformed import commit_of, rows_of, tree
from tests.signing import at_terminal
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

MARKER = "<<<<<<< HEAD\n"
INSTALLED = (
    "installed in .git/hooks: pre-commit, pre-merge-commit, commit-msg, pre-push, reference-transaction\n"
)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """An empty repository."""
    return Repo.create(tmp_path)


def test_init_writes_a_policy_that_says_why_in_comments_and_equals_the_defaults_where_it_can(
    repo: Repo,
) -> None:
    repo.commit({"a.py": "one\n"})
    answer = repo.cli("init", "--yes")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("wrote patchgate.toml; commit it alone")
    text = (repo.path / "patchgate.toml").read_text(encoding="utf-8")
    assert text.count("\n#") > 10
    before = dict(line.split("  (")[0].strip().split(" = ") for line in shown(repo))
    repo.commit()
    after = dict(line.split("  (")[0].strip().split(" = ") for line in shown(repo))
    assert {key for key in before if before[key] != after[key]} == {"policy.deny", "governance.id"}


def trial_run(text: str) -> tuple[int, int, int]:
    """Give the numbers of the trial run: commits looked at, rejected, undecided."""
    found = re.search(r"^trial run .*?(\d+) commits?: (\d+) .*rejected, (\d+) undecided$", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1]), int(found[2]), int(found[3])


def shown(repo: Repo) -> list[str]:
    return [line for line in repo.cli("policy", "show").out.splitlines() if " = " in line]


def test_init_lists_the_exceptions_of_other_tools_that_it_finds(repo: Repo) -> None:
    lists = [
        ".rubocop_todo.yml", ".ruff-baseline.json", ".secrets.baseline", "a \"quoted\" b/psalm-baseline.xml",
        "apps/é🙂/detekt-baseline.yml", "config/detekt/baseline.xml", "mypy-baseline.txt",
        "phpstan-baseline.neon", "sub/bandit-baseline.json",
    ]  # fmt: skip
    others = [
        "baseline.json",
        "docs/baseline.xml",
        ".patchgate/baselines/x-baseline.json",
        "todo.yml",
        "-baseline.json",
    ]
    repo.commit(dict.fromkeys([*lists, *others], "{}\n"))
    answer = repo.cli("init", "--yes")
    assert answer.code == 0
    raw = (repo.path / "patchgate.toml").read_bytes()
    assert parse(raw, "patchgate.toml").verify.suppressions == tuple(sorted(lists, key=str.encode))
    assert "[verify] suppressions: .rubocop_todo.yml, .ruff-baseline.json" in answer.out
    repo.commit()
    repo.commit({"new-baseline.json": "{}\n"})
    again = repo.cli("init", "--yes").out
    assert "[verify] suppressions: new-baseline.json\n" in again


def test_the_policy_that_init_wrote_is_accepted_by_itself(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    repo.cli("init", "--yes")
    repo.stage()
    assert repo.check().verdict == "accepted"


def test_init_writes_nothing_but_the_policy_and_the_hooks(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    head = repo.head()
    repo.cli("init", "--yes")
    assert repo.git("status", "--porcelain") == b"?? patchgate.toml\n"
    assert repo.head() == head


def test_init_in_a_repository_without_commits_has_nothing_to_rehearse(repo: Repo) -> None:
    answer = repo.cli("init", "--yes")
    assert answer.code == 0
    assert answer.out.endswith("trial run: no commits yet\n" + INSTALLED)
    assert (repo.path / "patchgate.toml").exists()


def test_init_from_a_subfolder_writes_at_the_root(repo: Repo) -> None:
    repo.commit({"deep/down/a.py": "one\n"})
    assert repo.cli("init", "--yes", cwd=repo.path / "deep" / "down").code == 0
    assert (repo.path / "patchgate.toml").exists()
    assert not (repo.path / "deep" / "down" / "patchgate.toml").exists()


def test_init_never_overwrites_a_policy(repo: Repo) -> None:
    repo.policy("# mine\n")
    answer = repo.cli("init", "--yes")
    assert answer.code == 0
    assert "(HEAD:patchgate.toml)" in answer.out.splitlines()[0]
    assert (repo.path / "patchgate.toml").read_bytes() == b"# mine\n"


def test_init_never_overwrites_a_file_that_is_not_committed(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    repo.write("patchgate.toml", "# a draft\n")
    for _ in range(2):
        answer = repo.cli("init", "--yes")
        assert answer.code == 0
        assert answer.out.startswith("found patchgate.toml, which is not committed")
        assert (repo.path / "patchgate.toml").read_bytes() == b"# a draft\n"


def test_init_leaves_a_dangling_symlink_alone(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    outside = repo.path.parent / "outside"
    repo.link("patchgate.toml", str(outside))
    answer = repo.cli("init", "--yes")
    assert answer.code == 0
    assert answer.out.startswith("found patchgate.toml, which is not committed")
    assert os.readlink(repo.path / "patchgate.toml") == str(outside)
    assert not outside.exists()


def test_init_in_a_bare_repository_says_where_to_run_it(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    repo.git("clone", "-q", "--bare", ".", str(repo.path.parent / "bare.git"))
    bare = repo.at(repo.path.parent / "bare.git")
    answer = bare.cli("init", "--yes")
    assert answer.code == 2
    assert " bare " in answer.err
    assert not (bare.path / "patchgate.toml").exists()


def test_init_where_the_folder_cannot_be_written_is_one_sentence(repo: Repo) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    repo.commit({"a.py": "one\n"})
    repo.path.chmod(0o555)
    answer = repo.cli("init", "--yes")
    repo.path.chmod(0o755)
    assert answer.code == 3
    assert "patchgate.toml" in answer.err
    assert "Permission denied" in answer.err


def test_the_rehearsal_counts_by_rule_and_names_the_value_that_would_have_given_none(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"}, "Root commits cost no budget")
    repo.commit({f"many/{number}": "x\n" for number in range(53)}, "Many files")
    repo.commit({"marked": MARKER, "marked too": MARKER}, "Left-over markers")
    repo.commit({"dist/app.whl": "x\n"}, "An artifact")
    repo.commit({"keys/server.pem": "x\n"}, "A key")
    repo.commit({"large": b"x" * 1_048_577}, "A large file")
    lines = repo.cli("init", "--yes").out.splitlines()
    assert trial_run(lines[1]) == (6, 3, 0)
    assert lines[-1] + "\n" == INSTALLED
    for line, (count, value) in zip(
        sorted(lines[2:-1]),
        (
            ("  conflict-marker (error): 2 findings in 1 commit; ", " [content] conflict_markers = false"),
            ("  deny-class (error): 1 finding in 1 commit; ", ' deny_classes without "artifact"'),
            ("  deny-pattern (error): 1 finding in 1 commit; ", ' [rules] deny-pattern = "off"'),
            ("  max-file-bytes (warning): 1 finding in 1 commit; ", " max_file_bytes = 1048577"),
            ("  max-files (warning): 1 finding in 1 commit; ", " max_files = 53"),
        ),
        strict=True,
    ):
        assert (line.startswith(count), line.endswith(value)) == (True, True), line


@pytest.mark.parametrize(("value", "expected"), [("53", False), ("52", True)])
def test_the_value_that_the_rehearsal_names_is_the_smallest_that_gives_none(
    repo: Repo, value: str, expected: bool
) -> None:
    repo.commit({"a.py": "one\n"})
    repo.commit({f"many/{number}": "x\n" for number in range(53)}, "Many files")
    repo.policy(f"[policy.commit]\nmax_files = {value}\n")
    assert ("max-files" in repo.cli("init", "--yes").out) is expected


@pytest.mark.parametrize("is_root", [True, False])
def test_the_rehearsal_and_check_agree_on_the_commit_that_brings_the_first_policy(
    repo: Repo, is_root: bool
) -> None:
    if not is_root:
        repo.commit({"a.py": "one\n"})
    repo.commit({"src/a.py": "x = 1\n", "pyproject.toml": "[tool.patchgate.policy]\n"})
    assert repo.check("HEAD").verdict == "accepted"
    assert trial_run(repo.cli("init", "--yes", CI="true").out)[1:] == (0, 0)
    # A later policy does not come along with something else, in the one as in the other.
    repo.commit({"src/a.py": "x = 2\n", "pyproject.toml": "[tool.patchgate.policy]\nmax_file_bytes = 9\n"})
    assert repo.check("HEAD").errors == ["policy-change-not-alone"]
    out = repo.cli("init", "--yes", CI="true").out
    assert trial_run(out)[1:] == (1, 0)
    assert "policy-change-not-alone (error): 1 finding " in out


def test_the_rehearsal_and_check_agree_on_every_commit(repo: Repo) -> None:
    repo.commit({"a.py": "one\n", "old.pem": "x\n"})
    repo.gitlink("vendor/sub")
    repo.git("commit", "-q", "-m", "A submodule")
    repo.commit({"marked": MARKER})
    repo.link("link", "a.py")
    repo.commit({}, "A symlink")
    repo.commit({f"many/{number}": "x\n" for number in range(53)})
    repo.commit({"Many/1": "x\n"}, "A name that collides")
    repo.commit({"b.py": "two\n"})
    out = repo.cli("init", "--yes", CI="true").out
    adopting = repo.commit()
    made = repo.ask("rev-list", f"{adopting}~1").split()
    answers = [repo.check("--policy-from", adopting, commit) for commit in made]
    refused = sum(answer.verdict == "rejected" for answer in answers)
    assert trial_run(out) == (len(made), refused, 0)
    for rule in {rule for answer in answers for rule in answer.rules}:
        assert f"  {rule} (" in out
    assert refused == 4


def test_history_that_cannot_be_read_keeps_no_hook_from_being_installed(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    root = tree(repo, rows_of(repo, "HEAD") * 2)
    for _ in range(2):
        good = repo.ask("rev-parse", "HEAD^{tree}")
        repo.git(
            "reset",
            "-q",
            "--soft",
            commit_of(repo, good, commit_of(repo, root, repo.head())),
        )
    answer = repo.cli("init", "--yes")
    assert (answer.code, answer.err) == (0, "")
    (line,) = (line for line in answer.out.splitlines() if line.startswith("trial run: not possible: "))
    assert "a.py" in line
    assert answer.out.endswith(INSTALLED)


def test_the_rehearsal_looks_at_the_last_200_commits_and_no_further(repo: Repo) -> None:
    stream = [b"blob\nmark :1\ndata 13\n<<<<<<< HEAD\n\n", b"blob\nmark :2\ndata 2\nx\n\n"]
    for number in range(202):
        mark = 1 if number == 0 else 2
        stream.append(
            b"commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 2\nx\n" % (1700000000 + number)
            + b"M 100644 :%d f%d\n\n" % (mark, number)
        )
    repo.git("fast-import", "--quiet", stdin=b"".join(stream))
    repo.git("reset", "-q", "--hard")
    lines = repo.cli("init", "--yes").out.splitlines()
    (line,) = lines[1:-1]
    assert trial_run(line) == (200, 0, 0)


def test_the_rehearsal_says_which_rules_no_value_can_satisfy(repo: Repo) -> None:
    repo.commit({"README.md": "one\n"})
    repo.commit({"Readme.md": "two\n"}, "A name that collides")
    out = repo.cli("init", "--yes").out
    (line,) = (line for line in out.splitlines() if line.startswith("  path-collision (error): 1 finding "))
    assert "no setting" in line
    assert " = " not in line


def test_a_policy_in_pyproject_that_is_not_committed_is_not_given_a_rival(repo: Repo) -> None:
    repo.write("pyproject.toml", "[tool.patchgate.policy]\n")
    answer = repo.cli("init", "--yes")
    assert "found pyproject.toml" in answer.out
    assert not (repo.path / "patchgate.toml").exists()


def test_init_asks_whether_commits_may_add_submodules_and_writes_the_keys_for_it(repo: Repo) -> None:
    """The first `git submodule add` was refused, and no key of the policy spoke of it."""
    repo.commit({"a.py": "one\n"})
    for typed, written in ((b"y\ny\n\n", "true"), (b"\n\n\n", '"bump"'), (b"y\nno\n\n", '"bump"')):
        (repo.path / "patchgate.toml").unlink(missing_ok=True)
        answer = at_terminal(repo, "init", typed=typed, CI="true")
        assert answer.code == 0
        assert "submodules? [yes/no] [no]" in answer.err
        text = (repo.path / "patchgate.toml").read_text()
        commit, agent = text.split("[policy.commit]")[1].split("[policy.agent]")
        assert f"\nallow_gitlinks = {written}\n" in commit
        assert "\nallow_gitlinks = false\n" in agent
        for key in ("allow_gitlinks", "deny_classes"):
            before = commit.split(f"\n{key} = ")[0]
            assert before.rpartition("\n")[2].startswith("# ")
    (repo.path / "patchgate.toml").unlink()
    assert at_terminal(repo, "init", typed=b"y\ny\n\n", CI="true").code == 0
    assert "May commits add submodules? yes (user_interactive)\n" in repo.cli("init", "--show").out
    repo.commit()
    repo.gitlink("vendor/sub")
    assert repo.check().verdict == "accepted"
    (repo.path / "patchgate.toml").write_text("")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    assert "submodules" not in repo.cli("init", "--yes", CI="true").err
    assert 'allow_gitlinks = "bump"' in (repo.path / "patchgate.toml").read_text()


def test_what_init_takes_without_a_person_is_recorded_as_nobodys_word(repo: Repo) -> None:
    def answered() -> tuple[object, ...]:
        events = Ledger(repo.common_dir).find_events({"answer"}, "init-submodules")
        about = list(events)[-1].about
        return about["answer"], about["source"], about["confidence"], about["matched"]

    repo.commit({"a.py": "one\n"})
    repo.cli("init", "--yes", CI="true")
    assert answered() == ("no", "auto_assumption", 0.0, "Accepted as stated")
    (repo.path / "patchgate.toml").unlink()
    (repo.path / "assumed").write_text("- Commits may add submodules: yes\n")
    assert repo.cli("init", "--yes", "--assume", "assumed", CI="true").code == 0
    assert answered() == ("yes", "auto_assumption", 1.0, "Commits may add submodules: yes")
    text = (repo.path / "patchgate.toml").read_text()
    assert "\nallow_gitlinks = true\n" in text.split("[policy.agent]")[0]
    # At a terminal it is not asked again.
    (repo.path / "patchgate.toml").unlink()
    answer = at_terminal(repo, "init", "--assume", "assumed", typed=b"y\n\n", CI="true")
    assert (answer.code, "May commits" in answer.err) == (0, False)


def test_assumptions_that_cannot_be_read_write_no_policy(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    (repo.path / "assumed").write_bytes(b"\xff\xfe")
    assert repo.cli("init", "--yes", "--assume", "assumed", CI="true").code == 2
    assert not (repo.path / "patchgate.toml").exists()


def test_init_offers_the_repair_of_patches_and_writes_what_was_answered(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    for typed, written in ((b"y\n\ny\n", "true"), (b"y\n\n\n", "false")):
        (repo.path / "patchgate.toml").unlink(missing_ok=True)
        answer = at_terminal(repo, "init", typed=typed, CI="true")
        assert (answer.code, "Repair mechanical faults" in answer.err) == (0, True)
        apply = (repo.path / "patchgate.toml").read_text().split("\n[apply]\n")[1]
        assert f"\nrepair = {written}\n" in apply
    assert "are judged? no (user_interactive)\n" in repo.cli("init", "--show").out


def test_init_installs_the_hooks_and_says_which(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    assert repo.cli("init", "--yes").out.endswith(INSTALLED)
    again = repo.cli("init", "--yes").out
    assert "the hooks in .git/hooks are up to date" in again.splitlines()[-1]
    assert (repo.path / ".git/hooks/pre-push").exists()


def test_init_in_a_build_writes_the_policy_and_installs_nothing(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    answer = repo.cli("init", "--yes", CI="true")
    assert answer.code == 0
    assert "CI=true: " in answer.out
    assert (repo.path / "patchgate.toml").exists()
    assert not (repo.path / ".git/hooks/pre-push").exists()


def test_init_with_a_policy_in_a_bare_repository_names_the_hook_for_servers(repo: Repo) -> None:
    repo.policy("[policy]\n")
    repo.git("clone", "-q", "--bare", ".", str(repo.path.parent / "bare.git"))
    answer = repo.at(repo.path.parent / "bare.git").cli("init", "--yes")
    assert answer.code == 0
    assert answer.out.endswith("on a server: git patchgate install --server\n")


def test_init_show_says_what_is_there_and_writes_nothing(repo: Repo) -> None:
    repo.commit({"a.py": "one\n"})
    assert repo.cli("init", "--show").out == "policy: none\npatchgate hooks in .git/hooks: none\n"
    assert not (repo.path / "patchgate.toml").exists()
    repo.cli("init", "--yes")
    shown = repo.cli("init", "--show").out
    assert shown.startswith("policy: patchgate.toml\npatchgate hooks in .git/hooks: pre-commit, ")


def test_init_asks_before_it_installs_where_there_is_a_policy_already(repo: Repo) -> None:
    repo.policy("[policy]\n")
    answer = repo.run("init")
    assert answer.code == 2
    assert "add --yes" in answer.err
    assert not (repo.path / ".git/hooks/pre-push").exists()
