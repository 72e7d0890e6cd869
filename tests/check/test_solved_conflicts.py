"""What a branch has removed does not come back as a side of a conflict that the author chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.git import merge_paths
from tests.world import Answer, Content, Repo

pytestmark = pytest.mark.turns(2)

POLICY = '[content]\ndeny = ["verify=False"]\n[policy.commit]\ndeny_new_classes = ["binary"]\n'
OLD: dict[str, Content] = {"client.py": "x\nget(url, verify=False)\ny\n", "tool.exe": b"MZ\0"}
CLEAN = "x\nget(url)\ny\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """`main` has removed a denied line and a binary; `side` edits both files from before."""
    made = Repo.create(tmp_path)
    made.commit({"patchgate.toml": "[policy]\n", **OLD})
    made.commit({"patchgate.toml": POLICY})
    made.git("checkout", "-q", "-b", "side")
    made.commit({"client.py": "x2\nget(url, verify=False)\ny\n", "tool.exe": b"MZ\0\1"})
    made.git("checkout", "-q", "main")
    (made.path / "tool.exe").unlink()
    made.commit({"client.py": CLEAN})
    return made


def solve(repo: Repo, onto: str, client: str, tool: bytes | None) -> tuple[Answer, Answer]:
    """Merge, solve the conflicts, and check it against main before and after it is committed."""
    repo.git("checkout", "-q", "--detach", onto)
    assert repo.try_git("merge", "-q", "side" if onto == "main" else "main").returncode == 1
    if tool is None:
        repo.git("rm", "-q", "-f", "tool.exe")
    repo.stage({"client.py": client} | ({} if tool is None else {"tool.exe": tool}))
    staged = repo.check("--policy-from", "main")
    repo.git("commit", "-q", "--no-verify", "-m", "Merge")
    return staged, repo.check("main..HEAD", "--policy-from", "main")


@pytest.mark.parametrize("onto", ["main", "side"])
@pytest.mark.parametrize("client", ["x2\nget(url, verify=False)\ny\n", "x3\nget(url, verify=False)\ny\n"])
def test_a_denied_line_does_not_come_back_through_a_conflict(repo: Repo, onto: str, client: str) -> None:
    for answer in solve(repo, onto, client, None):
        assert answer.errors == ["deny-content"]
        (finding,) = answer.findings
        assert (finding["path"], finding["line"]) == ("client.py", 2)


@pytest.mark.parametrize("onto", ["main", "side"])
@pytest.mark.parametrize("tool", [b"MZ\0\1", b"MZ\0\2"])
def test_a_file_of_a_class_that_may_not_be_added_does_not_come_back(
    repo: Repo, onto: str, tool: bytes
) -> None:
    for answer in solve(repo, onto, CLEAN, tool):
        assert [(each["rule"], each["path"]) for each in answer.findings] == [("deny-class", "tool.exe")]


@pytest.mark.parametrize("onto", ["main", "side"])
@pytest.mark.parametrize("client", [CLEAN, "x2\nget(url)\ny\n"])
def test_a_conflict_that_is_solved_as_the_branch_wants_it_is_accepted(
    repo: Repo, onto: str, client: str
) -> None:
    for answer in solve(repo, onto, client, None):
        assert (answer.verdict, answer.errors) == ("accepted", [])


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_file_of_a_denied_suffix_does_not_come_back_under_the_name_that_one_side_gave_it(
    tmp_path: Path, is_kept: bool
) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a.key": "".join(f"{number}\n" for number in range(20))})
    repo.commit({"patchgate.toml": '[policy]\ndeny_suffixes = [".key"]\n'})
    repo.git("checkout", "-q", "-b", "side")
    repo.git("mv", "a.key", "b.key")
    repo.commit({}, "Move the key")
    repo.git("checkout", "-q", "main")
    repo.git("rm", "-q", "a.key")
    repo.commit({}, "Remove the key")
    repo.git("checkout", "-q", "side")
    assert repo.try_git("merge", "-q", "main").returncode == 1
    repo.git(*(("add",) if is_kept else ("rm", "-q")), "b.key")
    repo.commit({}, "Merge")
    assert repo.check("main..side", "--policy-from", "main").errors == (["deny-suffix"] if is_kept else [])


@pytest.mark.parametrize("removed", [False, True])
def test_what_no_side_had_removed_yet_is_not_brought_back(tmp_path: Path, removed: bool) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"patchgate.toml": POLICY.replace("verify", "never"), **OLD})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"client.py": "x2\nget(url, verify=False)\ny\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"client.py": "x3\nget(url, verify=False)\ny\n"})
    repo.git("checkout", "-q", "side")
    assert repo.try_git("merge", "-q", "main").returncode == 1
    repo.commit({"client.py": "x4\nget(url, verify=False)\ny\n"}, "Merge")
    repo.git("checkout", "-q", "main")
    repo.commit({"patchgate.toml": POLICY})
    if removed:
        repo.commit({"client.py": "x3\nget(url)\ny\n"})
    assert repo.check("main..side", "--policy-from", "main").errors == []


def test_without_a_branch_that_is_known_a_person_s_merge_is_compared_with_its_parents(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    assert repo.try_git("merge", "-q", "main").returncode == 1
    repo.git("rm", "-q", "-f", "tool.exe")
    repo.git("checkout", "-q", "--ours", "client.py")
    repo.git("add", "client.py")
    assert repo.check().verdict == "accepted"


def test_a_server_and_ci_refuse_it_too(repo: Repo, tmp_path: Path) -> None:
    repo.git("init", "-q", "-b", "main", "--bare", str(tmp_path / "srv.git"))
    server = repo.at(tmp_path / "srv.git")
    repo.git("remote", "add", "origin", "../srv.git")
    repo.git("push", "-q", "origin", "main")
    assert server.cli("install", "--server").code == 0
    solve(repo, "side", "x2\nget(url, verify=False)\ny\n", None)
    pushed = repo.try_git("push", "--no-verify", "origin", "HEAD:main")
    assert (pushed.returncode, b"deny-content" in pushed.stderr) == (1, True)
    repo.git("remote", "set-head", "origin", "main")
    assert repo.cli("check", "--ci", "--format", "json").errors == ["deny-content"]


def test_a_side_brings_back_no_mode_submodule_or_name_that_the_branch_has_removed(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)

    def put(text: str, oid: str) -> None:
        repo.write("run.sh", text, executable=True)
        repo.write("a:b", text)
        repo.git("add", "run.sh", "a:b")
        repo.gitlink("sub", oid)
        repo.git("commit", "-q", "-m", "Change")

    put("1\n", "1" * 40)
    repo.write("patchgate.toml", "[policy.commit]\nallow_modes = false\n")
    repo.git("add", "patchgate.toml")
    repo.git("commit", "-q", "-m", "Set the policy")
    repo.git("checkout", "-q", "-b", "side")
    put("2\n", "2" * 40)
    tree, side = repo.ask("write-tree"), repo.head()
    repo.git("checkout", "-q", "main")
    repo.git("rm", "-q", "--cached", "a:b", "sub", "run.sh")
    repo.git("commit", "-q", "-m", "Clean up")
    for parents in (("main", side), (side, "main")):
        words = [word for each in parents for word in ("-p", each)]
        merge = repo.ask("commit-tree", tree, *words, "-m", "Merge")
        found = repo.check("--policy-from", "main", f"main..{merge}")
        assert found.verdict == "rejected"
        assert {"mode-change", "gitlink", "path-drive-letter"} <= set(found.errors)


@pytest.fixture
def took_main(repo: Repo) -> Repo:
    """`side` takes the client of main in a conflict; main removes the denied line in it later."""
    repo.git("checkout", "-q", "-B", "main", "main~1")
    repo.commit({"client.py": "x4\nget(url, verify=False)\ny\n"})
    repo.git("checkout", "-q", "side")
    repo.commit({"client.py": "x2\nget(url, safely)\ny\n"})
    assert repo.try_git("merge", "-q", "main").returncode == 1
    repo.git("checkout", "-q", "--theirs", "client.py")
    repo.git("add", "client.py")
    repo.git("commit", "-q", "--no-verify", "-m", "Merge")
    repo.git("checkout", "-q", "main")
    repo.commit({"client.py": "x4\nget(url)\ny\n"})
    repo.git("checkout", "-q", "side")
    return repo


def test_what_a_branch_took_of_main_and_main_has_removed_since_is_not_brought_back(took_main: Repo) -> None:
    assert took_main.check("main..side", "--policy-from", "main").errors == []
    took_main.git("merge", "-q", "main")
    assert took_main.ask("show", "HEAD:client.py") == "x4\nget(url)\ny"
    assert took_main.check("main..side", "--policy-from", "main").errors == []


def test_without_time_to_find_merge_bases_the_merge_is_undecided(
    took_main: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_paths, "BASE_SECONDS", -1.0)
    answer = took_main.check("main..side", "--policy-from", "main")
    assert (answer.code, answer.verdict) == (3, "undecided")


def test_a_line_that_was_taken_of_main_does_not_come_back_over_its_removal(took_main: Repo) -> None:
    took_main.commit({"client.py": "x5\nget(url, verify=False)\ny\n"})
    assert took_main.check("main..side", "--policy-from", "main").errors == []
    assert took_main.try_git("merge", "-q", "main").returncode == 1
    took_main.commit({"client.py": "x5\nget(url, verify=False)\ny\n"}, "Merge")
    answer = took_main.check("main..side", "--policy-from", "main")
    assert [(each["rule"], each["path"]) for each in answer.findings] == [("deny-content", "client.py")]


def test_of_two_commits_of_main_that_a_branch_merged_each_must_have_what_it_took(tmp_path: Path) -> None:
    """The branch takes the line of one; git starts from both, so it counts as new there."""
    repo = Repo.create(tmp_path)
    body = "".join(f"{number}\n" for number in range(9))
    repo.commit({"patchgate.toml": POLICY, "f": "bad\n" + body})
    repo.commit({"client.py": f"a\nverify=False\n{body}z\n"}, "Denied")
    repo.git("checkout", "-q", "-b", "clean")
    repo.commit({"client.py": f"a\n{body}z\n"})
    repo.git("checkout", "-q", "-b", "edited", "main")
    repo.commit({"client.py": f"a\nverify=False\n{body}z2\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "One", "edited")
    repo.git("merge", "-q", "--no-ff", "-m", "Both", "clean")
    repo.git("checkout", "-q", "-b", "side", "clean")
    repo.commit({"client.py": f"a\n{body}z3\n"})
    assert repo.try_git("merge", "-q", "edited").returncode == 1
    repo.git("checkout", "-q", "--theirs", "client.py")
    repo.git("add", "client.py")
    repo.git("commit", "-q", "--no-verify", "-m", "Merge")
    answer = repo.check("main..side", "--policy-from", "main")
    assert {(each["rule"], each["path"]) for each in answer.findings} == {("deny-content", "client.py")}


@pytest.mark.parametrize("attributes", ["*.py merge=union\n", "[attr]both merge=union\n*.py both\n", ""])
@pytest.mark.parametrize("name", ["client.py", "lib/other.py"])
def test_what_a_host_would_join_by_itself_is_judged(repo: Repo, attributes: str, name: str) -> None:
    repo.git("checkout", "-q", "main")
    body = "".join(f"{number}\n" for number in range(30))
    repo.commit({".gitattributes": attributes + "*.txt text\n", "client.py": f"x\nverify=False\ny\n{body}"})
    repo.git("checkout", "-q", "-B", "side")
    repo.commit({"client.py": f"x2\nverify=False\ny\n{body}"})
    repo.git("checkout", "-q", "main")
    if name != "client.py":
        (repo.path / "lib").mkdir()
        repo.git("mv", "client.py", name)
    repo.commit({name: f"x\ny\n{body}"})
    answer = repo.check("main..side", "--policy-from", "main")
    wanted = {("deny-content", name)} if attributes else set()
    assert {(each["rule"], each["path"]) for each in answer.findings} == wanted
    # The host does it.
    if attributes:
        repo.git("merge", "-q", "--no-edit", "side")
        assert "verify=False" in repo.ask("show", f"HEAD:{name}")


def test_what_main_has_removed_in_another_part_of_a_joined_file_is_not_brought_back(repo: Repo) -> None:
    repo.git("checkout", "-q", "main")
    body = "".join(f"{number}\n" for number in range(30))
    repo.commit({".gitattributes": "*.py merge=union\n", "client.py": f"x\n{body}verify=False\n"})
    repo.git("checkout", "-q", "-B", "side")
    repo.commit({"client.py": f"x2\n{body}verify=False\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"client.py": f"x3\n{body}"})
    assert repo.check("main..side", "--policy-from", "main").errors == []
    repo.git("merge", "-q", "--no-edit", "side")
    assert "verify" not in repo.ask("show", "HEAD:client.py")
