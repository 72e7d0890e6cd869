"""`explain`, `policy show` and `schema`: what a rule means, which line decides, what a document may hold."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.hooks.first_policy import FIRST_POLICY
from patchgate.report.rules import RULES
from tests.world import Repo

POLICY = """\
[policy]
allow_roots = ["src"]
deny_prefixes = ["src/runs"]
deny = ["*.pem"]
allow_delete = ["old.pem"]
deny_suffixes = [".exe"]
generated = ["src/gen/**"]

[policy.agent]
deny_classes = ["lock"]

[[overrides]]
paths = ["src/big/**"]
max_files = 500
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose policy has a key of each kind."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    return made


@pytest.mark.parametrize("rule", list(RULES))
def test_every_rule_is_explained_with_what_why_example_and_next_step(repo: Repo, rule: str) -> None:
    answer = repo.cli("explain", rule)
    definition = RULES[rule]
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"{rule} (")
    for part in (definition.summary, definition.reason, definition.example, definition.help, definition.code):
        assert part in answer.out
    assert ("is an invariant" in answer.out) is definition.invariant
    assert ("[rules]" in answer.out) is not definition.invariant


def test_explain_without_a_rule_lists_them_all_by_stage(repo: Repo) -> None:
    *groups, more = repo.cli("explain").out.split("\n\n")
    listed: dict[str, str] = {}
    for group in groups:
        stage, *lines = group.splitlines()
        listed |= {line.split()[0]: stage for line in lines}
        assert max(map(len, lines)) <= 110
    assert listed == {rule.id: f"{rule.stage.value} ({rule.code})" for rule in RULES.values()}
    assert len(groups) == len(set(listed.values()))
    assert more.startswith("git patchgate explain RULE")


def test_explain_prints_the_named_lists_of_classes_and_the_forms_of_secrets(repo: Repo) -> None:
    classes = repo.cli("explain", "deny-class").out
    for name in ("lock:", "binary:", "media:", "artifact:"):
        assert f"\n{name}" in classes
    assert "private key" in repo.cli("explain", "secret").out


@pytest.mark.parametrize(
    ("path", "profile", "says"),
    [
        ("src/a.py", "commit", ["may be changed"]),
        ("docs/a.md", "commit", ["refused: outside-allow-roots: patchgate.toml:2"]),
        (
            "src/runs/x",
            "commit",
            ["refused: deny-prefix: policy.deny_prefixes[0] = src/runs (patchgate.toml:3)"],
        ),
        (
            "src/runs",
            "commit",
            ["refused: deny-prefix: policy.deny_prefixes[0] = src/runs (patchgate.toml:3)"],
        ),
        ("src/k.pem", "commit", ["refused: deny-pattern: policy.deny[0] = *.pem (patchgate.toml:4)"]),
        (
            "src/old.pem",
            "commit",
            [
                "refused: deny-pattern: policy.deny[0] = *.pem (patchgate.toml:4)",
                "may be deleted: policy.allow_delete[0] = old.pem (patchgate.toml:5)",
            ],
        ),
        (
            "src/t.EXE",
            "commit",
            ["may not be added or changed: deny-suffix: policy.deny_suffixes[0] = .exe (patchgate.toml:6)"],
        ),
        (
            "src/gen/a",
            "commit",
            ["does not count towards limits: policy.generated[0] = src/gen/** (patchgate.toml:7)"],
        ),
        ("src/big/b", "commit", ["has the limits of overrides[0]: patchgate.toml:12"]),
        (
            "src/a.pyc",
            "commit",
            ["may not be added or changed: deny-class (artifact): policy.commit."],
        ),
        (
            "src/uv.lock",
            "commit",
            ["of a class that is allowed (lock): policy.commit."],
        ),
        (
            "src/uv.lock",
            "agent",
            ["may not be added or changed: deny-class (lock): policy.agent."],
        ),
        ("patchgate.toml", "commit", ["a control file: must be its own commit"]),
        (".patchgate/allowed_signers", "commit", ["a control file: must be its own commit"]),
        (".git/config", "commit", ["refused: path-git-dir: applies in every repository"]),
        ("src/a\nb", "commit", ["refused: path-control: applies in every repository"]),
    ],
)
def test_explain_path_names_the_line_that_decides(
    repo: Repo, path: str, profile: str, says: list[str]
) -> None:
    answer = repo.cli("explain", "--path", path, "--profile", profile)
    assert (answer.code, answer.err) == (0, "")
    first, *lines = answer.out.splitlines()
    assert first.endswith(", by HEAD:patchgate.toml")
    for sentence in says:
        assert any(line.startswith(f"  {sentence}") for line in lines), answer.out


def test_explain_path_speaks_by_the_policy_of_another_revision(repo: Repo) -> None:
    old = repo.head()
    repo.policy("[policy]\n")
    assert "may be changed" in repo.cli("explain", "--path", "docs/a").out
    assert "refused: outside-allow-roots" in repo.cli("explain", "--path", "docs/a", "--policy-from", old).out


def test_explain_path_names_the_owners_that_must_approve(repo: Repo) -> None:
    repo.policy('[policy]\n[[owners]]\npaths = ["@policy", "*.tf"]\nsigners = ["a@example.com"]\n')
    for path in ("infra/a.tf", "patchgate.toml"):
        said = repo.cli("explain", "--path", path).out
        assert "a@example.com" in said
        assert "owners[0] (patchgate.toml:2)" in said
    assert "owners" not in repo.cli("explain", "--path", "a.py").out


def test_explain_path_agrees_with_check(repo: Repo) -> None:
    """Whatever explain says is refused, check refuses by that rule, and the other way round."""
    for path in ("src/a.py", "docs/a.md", "src/runs/x", "src/k.pem", "src/t.EXE", "src/a.pyc"):
        repo.git("read-tree", "HEAD")
        oid = repo.git("hash-object", "-w", "--stdin", stdin=b"text\n").decode().strip()
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}")
        said = repo.cli("explain", "--path", path).out
        for rule in ("outside-allow-roots", "deny-prefix", "deny-pattern", "deny-suffix", "deny-class"):
            assert (rule in said) is (rule in repo.check().rules), (path, rule)


def test_without_a_policy_the_defaults_decide_and_say_so(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    answer = repo.cli("explain", "--path", "a.py")
    assert answer.out.startswith("a.py, by built-in defaults\n  may be changed")
    assert repo.cli("policy", "show").out.startswith("policy from built-in defaults\n")


def test_policy_show_names_every_key_with_its_value_and_its_line(repo: Repo) -> None:
    lines = repo.cli("policy", "show").out.splitlines()
    assert lines[0] == "policy from HEAD:patchgate.toml"
    for line in (
        '  policy.allow_roots = ["src"]  (patchgate.toml:2)',
        '  policy.agent.deny_classes = ["lock"]  (patchgate.toml:10)',
        "  policy.commit.max_files = 50  (default)",
        "  content.secrets = true  (default)",
    ):
        assert line in lines
    digests = [line.split()[-1] for line in lines[-2:]]
    repo.stage({"src/a": "x\n"})
    assert repo.check().change["policy"]["digest"] == digests[0]
    assert repo.check("--profile", "agent").change["policy"]["digest"] == digests[1]


def test_policy_show_names_lines_of_pyproject(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": '[project]\nname = "x"\n\n[tool.patchgate.policy]\ndeny = ["*.pem"]\n'})
    out = repo.cli("policy", "show").out
    assert out.startswith("policy from HEAD:pyproject.toml\n")
    assert '  policy.deny = ["*.pem"]  (pyproject.toml:5)\n' in out


def test_policy_show_as_json_says_the_same(repo: Repo) -> None:
    document = json.loads(repo.cli("policy", "show", "--format", "json").out)
    assert document["schema"] == "patchgate.policy/1"
    keys = {each["key"]: each for each in document["keys"]}
    assert keys["policy.allow_roots"] == {
        "key": "policy.allow_roots",
        "value": ["src"],
        "from": "patchgate.toml:2",
    }
    text = repo.cli("policy", "show").out
    assert [line.split(" = ")[0].strip() for line in text.splitlines() if " = " in line] == list(keys)


def schema_of(repo: Repo, name: str) -> dict[str, Any]:
    answer = repo.cli("schema", name)
    assert (answer.code, answer.err) == (0, "")
    loaded = json.loads(answer.out)
    assert isinstance(loaded, dict)
    Draft202012Validator.check_schema(loaded)
    return loaded


def test_the_config_schema_takes_what_the_parser_takes_and_refuses_unknown_keys(repo: Repo) -> None:
    validator = Draft202012Validator(schema_of(repo, "config"))
    for text in ("", POLICY, FIRST_POLICY):
        validator.validate(tomllib.loads(text))
    for text in ("[policy]\nmax_fiels = 3\n", '[policy.commit]\nmax_files = "five"\n', "[[overrides]]\n"):
        assert not validator.is_valid(tomllib.loads(text)), text


def test_real_reports_and_error_documents_are_valid_against_the_report_schema(repo: Repo) -> None:
    validator = Draft202012Validator(schema_of(repo, "report"))
    repo.commit({"src/a.py": "one\ntwo\n", "src/b.bin": b"\0\1"})
    repo.git("mv", "src/a.py", "docs.py")
    repo.link("src/link", "/etc/passwd")
    repo.gitlink("src/module")
    repo.write(b"src/\xff\n\x1b.pem", "x\n")
    repo.git("add", "src")
    for arguments in (
        [],
        ["--worktree"],
        ["--all"],
        ["HEAD"],
        ["HEAD~1..HEAD"],
        ["HEAD..HEAD"],
        ["--profile", "agent"],
    ):
        answer = repo.check(*arguments)
        assert answer.report["schema"] == "patchgate.report/2"
        validator.validate(answer.report)
    repo.git("read-tree", "HEAD")
    repo.policy("not toml")
    repo.stage({"src/c": "x\n"})
    undecided = repo.check()
    assert undecided.verdict == "undecided"
    validator.validate(undecided.report)


def test_schema_of_an_unknown_document_names_those_that_there_are(repo: Repo) -> None:
    answer = repo.cli("schema", "confg")
    assert answer.code == 2
    assert "'config'" in answer.err
    assert "'report'" in answer.err


KINDS = """\
[policy.commit]
allow_symlinks = false
[[overrides]]
paths = ["vendor/"]
allow_gitlinks = true
"""


def test_a_path_is_explained_as_a_submodule_a_link_and_an_executable_too(tmp_path: Path) -> None:
    """What the rules on the kind of an entry would say, with the key and line that decide."""
    repo = Repo.create(tmp_path)
    repo.policy(KINDS)
    said = repo.cli("explain", "--path", "sub").out
    assert '(gitlink): policy.commit.allow_gitlinks (default) = "bump"' in said
    assert "symlink: refused (symlink): policy.commit.allow_symlinks (patchgate.toml:2) = false" in said
    assert "policy.commit.allow_modes (default) = true" in said
    assert "(mode-change)" not in said
    assert "submodule: allowed: overrides[0].allow_gitlinks (patchgate.toml:5)" in (
        repo.cli("explain", "--path", "vendor/sub").out
    )
    said = repo.cli("explain", "--path", "vendor/x.pyc", "--profile", "agent").out
    assert "(mode-change): policy.agent.allow_modes (default) = false" in said
    assert "deny-class (artifact): policy.agent.deny_classes (default)" in said
    repo.gitlink("sub")
    assert repo.check().errors == ["gitlink"]


def test_a_policy_on_disk_that_is_not_in_force_is_named(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n", "pyproject.toml": "[project]\n"})

    def notes() -> set[str]:
        return {repo.cli("policy", "show").err, repo.cli("explain", "--path", "a").err}

    assert notes() == {""}
    repo.write("patchgate.toml", "[policy]\n")
    (note,) = notes()
    assert note.startswith("note: patchgate.toml ")
    assert "differs" in note
    assert "built-in defaults" in note
    repo.commit()
    assert notes() == {""}
    # Another spelling of the same policy is no difference; a broken one is, and nothing is read from a pipe.
    repo.write("patchgate.toml", "# a comment\r\n[policy]\r\n")
    assert notes() == {""}
    for text in ('[policy]\ndeny = ["*.pem"]\n', "[policy\n"):
        repo.write("patchgate.toml", text)
        assert len(notes()) == 1
        assert "differs" in notes().pop()
    repo.write("patchgate.toml", "[policy]\n")
    repo.write("pyproject.toml", "[tool.patchgate]\n")
    assert "pyproject.toml" in notes().pop()
    assert repo.cli("policy", "show", "--policy-from", "HEAD").err == ""
    repo.git("checkout", "-q", "pyproject.toml")
    (repo.path / "patchgate.toml").unlink()
    (note,) = notes()
    assert note.startswith("note: patchgate.toml ")
    assert "differs" not in note
    os.mkfifo(repo.path / "patchgate.toml")
    assert len(notes()) == 1
