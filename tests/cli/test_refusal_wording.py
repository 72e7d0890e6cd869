"""What a refusal says to the person or the agent who reads it: the key, its line, and what fits the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.world import Repo

AWS = "AK" + "IA"
POLICY = """\
[policy]
deny = ["*.pem"]
deny_suffixes = [".exe"]
allow_roots = ["src", "vendor"]
max_file_bytes = 1000

[policy.commit]
deny_classes = ["artifact", "lock"]
allow_modes = false
allow_symlinks = false
max_files = 1
max_added_lines = 2000

[policy.agent]
allow_symlinks = false

[[overrides]]
paths = ["vendor/"]
allow_gitlinks = false

[content]
deny = ["BAD"]
"""
LINE = {text.split(" ")[0]: number for number, text in enumerate(POLICY.split("\n"), start=1)}


def guarded(folder: Path, policy: str = POLICY) -> Repo:
    repo = Repo.create(folder)
    repo.commit({"src/old.pem": "old\n", "src/a.py": "a\n"})
    repo.policy(policy)
    return repo


def hints(repo: Repo, *arguments: str) -> dict[str, dict[str, Any]]:
    """Check what is staged; give each rule's finding, the last one of each."""
    return {each["rule"]: each for each in repo.check(*arguments).findings}


def test_a_refusal_of_a_person_names_the_key_its_line_and_the_change_to_it(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.write("src/run.sh", executable=True)
    repo.link("src/link", "a.py")
    repo.stage(
        {
            "src/b.pyc": "x\n",
            "src/c.exe": "x\n",
            "src/d.pem": "x\n",
            "src/e.py": "BAD\n",
            "src/f.py": "x" * 2000,
            "outside/g": "x\n",
        }
    )
    repo.gitlink("vendor/sub")
    repo.gitlink("src/sub")
    found = hints(repo)
    for rule, key, line in (
        ("deny-class", "policy.commit.deny_classes", LINE["deny_classes"]),
        ("deny-suffix", "policy.deny_suffixes[0]", LINE["deny_suffixes"]),
        ("deny-pattern", "policy.deny[0]", 2),
        ("deny-content", "content.deny[0]", LINE["deny"]),
        ("max-file-bytes", "policy.max_file_bytes", LINE["max_file_bytes"]),
        ("max-files", "policy.commit.max_files", LINE["max_files"]),
        ("mode-change", "policy.commit.allow_modes", LINE["allow_modes"]),
        ("outside-allow-roots", "policy.allow_roots", LINE["allow_roots"]),
        ("gitlink", "overrides[0].allow_gitlinks", LINE["allow_gitlinks"]),
    ):
        assert key in found[rule]["hint"], rule
        assert f"patchgate.toml:{line}" in found[rule]["hint"], rule
        assert found[rule]["details"]["key"] == key, rule
    assert 'allow_symlinks = "inside" (patchgate.toml:10)' in found["symlink"]["hint"]
    assert '"artifact"' in found["deny-class"]["hint"]
    everything = repo.cli("check").out
    assert "maintainer" not in everything
    assert "person" not in everything


def test_a_default_that_decides_is_named_as_one_where_it_would_be_set(tmp_path: Path) -> None:
    """The first `git submodule add`, and a cache file, in three kinds of repository."""
    for number, (name, text) in enumerate(
        {"": "", "patchgate.toml": "[policy]\n", "pyproject.toml": "[tool.patchgate.policy]\n"}.items()
    ):
        repo = Repo.create(tmp_path / str(number))
        repo.commit({name: text} if name else {"a": "a\n"})
        repo.stage({"b.pyc": "x\n"})
        repo.gitlink("vendor/sub")
        found = hints(repo)
        place = f"{name or 'patchgate.toml'} ("
        assert (
            f"policy.commit.allow_gitlinks = true in {'[tool.patchgate] of ' * (number == 2)}{place}"
            in (found["gitlink"]["hint"])
        )
        assert "policy.commit.deny_classes = [] in" in found["deny-class"]["hint"]
        assert "vendor/sub" in found["gitlink"]["hint"]


def test_a_refusal_of_an_agent_names_a_maintainer_and_no_way_to_change_the_policy(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.link("src/link", "a.py")
    repo.stage({"src/b.pyc": "x\n"})
    repo.gitlink("src/sub")
    found = hints(repo, "--profile", "agent")
    for rule in ("deny-class", "gitlink", "symlink"):
        assert "maintainer" in found[rule]["hint"], rule
        assert "policy." not in found[rule]["hint"], rule
        assert "patchgate.toml" not in found[rule]["hint"], rule
    text = repo.cli("check", "--profile", "agent").out
    assert any("maintainer" in line and "policy" in line for line in text.splitlines() if line[:5] == "help:")


def test_the_help_fits_what_the_change_does_to_the_file(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.commit({"src/keep.pem": "k\n", "src/move.pem": "m\n", "src/plain": "p\n"}, "Add", "--no-verify")
    repo.git("rm", "-q", "src/old.pem")
    repo.git("mv", "src/move.pem", "src/moved")
    repo.git("mv", "src/plain", "src/came.pem")
    repo.stage({"src/new.pem": "n\n", "src/keep.pem": "changed\n"})
    found = {each["path"]: each["hint"] for each in repo.check().findings if each["level"] == "error"}
    firsts = {path: hint.partition(";")[0] for path, hint in found.items()}
    assert firsts["src/new.pem"].startswith("leave src/new.pem out")
    assert firsts["src/keep.pem"].startswith("leave src/keep.pem unchanged")
    assert firsts["src/old.pem"].startswith("keep src/old.pem")
    assert "add src/old.pem to policy.allow_delete" in firsts["src/old.pem"]
    assert firsts["src/move.pem"].startswith("leave src/move.pem where")
    assert " add src/move.pem to policy.allow_delete" in firsts["src/move.pem"]
    assert firsts["src/came.pem"].startswith("leave src/plain where")
    assert "allow_delete" not in firsts["src/came.pem"]


def test_every_mistake_of_a_policy_comes_with_its_hint_from_every_command(tmp_path: Path) -> None:
    broken = 'required_versio = "1"\n[policy]\ndeny_prefix = ["runs"]\ndeny = ["!a"]\n'
    repo = Repo.create(tmp_path)
    repo.commit({"patchgate.toml": "[policy]\n"})
    repo.stage({"patchgate.toml": broken})
    proposed = [each for each in repo.check().findings if each["rule"] == "policy-invalid"]
    assert [each["line"] for each in proposed] == [1, 3, 4]
    assert "`required_version`" in proposed[0]["hint"]
    assert "`deny_prefixes`" in proposed[1]["hint"]
    repo.git("commit", "-q", "-n", "-m", "Break it")
    repo.stage({"a": "a\n"})
    (gate,) = [each for each in repo.check().change["gates"] if each["outcome"] == "undecided"]
    told = [
        gate["reason"],
        repo.cli("check").out,
        repo.cli("policy", "show").err,
        repo.cli("explain", "--path", "a").err,
        repo.cli("doctor").out,
        repo.cli("log", "--format", "json").err + repo.cli("init", "--yes").err,
        repo.cli("verify").err + repo.cli("verify").out,
    ]
    for each in told:
        assert "`required_version`?" in each
        assert "`deny_prefixes`?" in each
        assert "patchgate.toml:4" in each


def test_an_article_fits_its_name_and_documented_example_keys_are_no_secrets(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    examples = (
        AWS + "IOSFODNN7EXAMPLE",
        AWS + "I44QH8DHBEXAMPLE",
        "AS" + "IAIOSFODNN7EXAMPLE",
        "https://hooks.slack" + ".com/services/T00000000/B00000000/" + "X" * 24,
        "Account" + "Key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
        "K1SZFPTOtr/KBHBeksoGMGw==",
    )
    repo.stage({"docs.md": "".join(f"key = {each}\n" for each in examples)})
    assert repo.check().findings == []
    # An example hides no other key of its line.
    real = AWS + "IOSFODNN7QXAMPLE"
    repo.stage({"docs.md": f"{examples[0]} {real}\n", "b": "npm" + "_" + "aB3d" * 9 + "\n"})
    found = repo.check().findings
    assert [(each["rule"], each["path"]) for each in found] == [("secret", "b"), ("secret", "docs.md")]
    assert "an npm " in found[0]["message"]
    assert "an AWS " in found[1]["message"]


def test_what_pre_commit_has_said_is_not_said_again_by_the_transaction(tmp_path: Path) -> None:
    """Under `[message] level = "error"` a commit is judged twice, and warned of once."""
    repo = Repo.create(tmp_path)
    repo.policy(
        '[policy]\nmax_file_bytes = 10\n[message]\nlevel = "error"\n[rules]\nmessage-vague = "warning"\n'
        "[claims]\ncontradiction_scan_max_files = 5000\n"
    )
    repo.install()
    repo.stage({"a": "more than ten bytes\n"})
    done = repo.try_git("commit", "-q", "-m", "Add a file\n\nAs needed.\n")
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    for once in ("max-file-bytes]", "message-vague]"):
        assert said.count(once) == 1, said
    lines = [line for line in said.split("\n") if line.startswith("warning:")]
    assert len(lines) == len(set(lines))
    # Nothing is left for another commit, and what stops it is always said.
    assert not (repo.path / ".git/patchgate-shown").exists()
    repo.stage({"b": "more than ten bytes\n"})
    done = repo.try_git("commit", "-q", "-n", "-m", "Add another file.")
    said = (done.stdout + done.stderr).decode()
    assert done.returncode != 0
    assert said.count("max-file-bytes]") == 1
    assert "error[message-" in said


def test_a_refusal_that_is_only_reported_is_reported_once(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[policy]\ndeny = ["*.pem"]\n[hooks]\nmode = "observe"\n[message]\nlevel = "error"\n')
    repo.install()
    repo.stage({"a.pem": "x\n"})
    done = repo.try_git("commit", "-q", "-m", "Add a key")
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0
    assert said.count("error[deny-pattern]") == 1, said


def test_a_merge_is_warned_of_once(tmp_path: Path) -> None:
    """Both hooks of a merge judge what it brings, and the merge itself."""
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\nmax_file_bytes = 10\n")
    repo.install()
    off = ("-c", "core.hooksPath=/dev/null")
    repo.git("switch", "-q", "-c", "side")
    repo.stage({"a": "more than ten bytes\n"})
    repo.git(*off, "commit", "-q", "-m", "Add a")
    repo.git(*off, "switch", "-q", "main")
    done = repo.try_git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    assert said.count("max-file-bytes]") == 1, said
