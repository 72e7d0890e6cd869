"""The first hour of somebody who takes patchgate into a repository with a past: codes, rules and places."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.hooks.hook_world import without_patchgate
from tests.world import Repo

COMMITS = 300
EXAMPLE = "AK" + "IAIOSFODNN7EXAMPLE"
START = 1_600_000_000


def past() -> bytes:
    """Write 300 commits for git fast-import: merges, renames, a submodule, and what no policy would allow."""
    stream: list[bytes] = []
    tip = 0

    def commit(number: int, ref: str, *changes: str, parents: tuple[int, ...]) -> int:
        message = f"Change number {number}\n".encode()
        stream.append(f"commit refs/heads/{ref}\nmark :{number}\n".encode())
        stream.append(f"committer A <a@example.com> {START + number} +0000\ndata {len(message)}\n".encode())
        stream.append(message)
        kinds = ("from", "merge")
        stream.extend(f"{kinds[place > 0]} :{each}\n".encode() for place, each in enumerate(parents))
        stream.extend(change.encode() + b"\n" for change in changes)
        stream.append(b"\n")
        return number

    number = 0
    while number < COMMITS:
        number += 1
        text = f"value = {number}\n"
        changes = [f"M 100644 inline src/m{number % 40}.py\ndata {len(text)}\n{text}"]
        if number == 20:
            changes.append(f"M 160000 {'1' * 40} vendor/sub")
        if number == 30:
            changes.append("M 100644 inline keys/old.pem\ndata 2\nx\n")
        if number % 50 == 0:
            changes.append(f"R src/m{number % 40}.py src/renamed{number}.py")
            changes.reverse()
        before = (tip,) if tip else ()
        if number % 10 == 9 and number < COMMITS:
            side = commit(number, "side", f"M 100644 inline side/s{number}\ndata 2\nx\n", parents=before)
            number += 1
            tip = commit(number, "main", *changes[:1], parents=(tip, side))
            continue
        tip = commit(number, "main", *changes, parents=before)
    return b"".join(stream)


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode()


def line_of(repo: Repo, beginning: str) -> int:
    lines = (repo.path / "patchgate.toml").read_text().split("\n")
    return next(number for number, line in enumerate(lines, start=1) if line.startswith(beginning))


def test_the_first_hour(tmp_path: Path) -> None:
    """B1 to B10 of an adopter, in the order in which they were met."""
    repo = Repo.create(tmp_path)
    repo.git("fast-import", "--quiet", stdin=past())
    repo.git("reset", "-q", "--hard")
    repo.git("update-ref", "-d", "refs/heads/side")
    for name in ("origin.git", "fork.git"):
        repo.git("init", "-q", "--bare", "-b", "main", str(tmp_path / name))
        repo.git("remote", "add", name.removesuffix(".git"), str(tmp_path / name))
    repo.git("push", "-q", "origin", "main")
    repo.git("fetch", "-q", "origin")
    assert int(repo.ask("rev-list", "--count", "main")) == COMMITS
    check_adoption(repo)
    check_refusals(repo)
    check_mistakes(repo)
    check_views(repo)


def check_adoption(repo: Repo) -> None:
    """Take it in; the past is not refused, neither by the rehearsal nor by a push to an empty remote."""
    repo.write("patchgate.toml", "# a draft\n")
    assert "differs from the policy in force" in repo.cli("policy", "show").err
    (repo.path / "patchgate.toml").unlink()
    answer = repo.run("init", "--yes")
    assert answer.code == 0
    assert ": 0 would be rejected, 0 undecided" in answer.out
    repo.git("switch", "-q", "-c", "topic")
    repo.git("add", "patchgate.toml")
    repo.git("commit", "-q", "-m", "Add patchgate")
    pushed = repo.try_git("push", "-q", "fork", "topic")
    assert pushed.returncode == 0, said(pushed)
    assert repo.cli("doctor").code == 0


def check_refusals(repo: Repo) -> None:
    """Stage what the first policy denies: the rule, the key with its line, and help that fits the file."""
    for name, content, rule, key, begins in (
        (".env", "x\n", "deny-pattern", "policy.deny[0]", "deny = "),
        ("src/foo.pyc", "x\n", "deny-class", "policy.commit.deny_classes", "deny_classes = "),
    ):
        repo.write(name, content)
        repo.git("add", "-f", name)
        refused = repo.try_git("commit", "-q", "-m", "Add it")
        assert refused.returncode == 1
        assert f"error[{rule}]" in said(refused)
        (found,) = repo.check("--staged").findings
        assert (found["rule"], found["path"], found["details"]["key"]) == (rule, name, key)
        assert f"patchgate.toml:{line_of(repo, begins)}" in found["hint"]
        assert f"leave {name} out of the change" in found["hint"]
        assert f"error[{rule}]" in said(repo.try_git("commit", "-q", "-n", "-m", "Add it"))
        assert repo.cli("log", "-n", "1").out.endswith(f"by reference-transaction: {rule}\n")
        repo.git("rm", "-q", "-f", name)
    repo.gitlink("vendor/more")
    (found,) = repo.check().findings
    assert (found["rule"], found["details"]["key"]) == ("gitlink", "policy.commit.allow_gitlinks")
    assert f"true (patchgate.toml:{line_of(repo, 'allow_gitlinks')})" in found["hint"]
    repo.git("reset", "-q", "--hard")
    repo.stage({"docs/aws.md": f"{EXAMPLE}\n"})
    assert said(repo.try_git("commit", "-q", "-m", "Show an example key")) == ""


def check_mistakes(repo: Repo) -> None:
    """Mistype keys: every mistake with its line and what was meant; the push of it never happens."""
    text = (repo.path / "patchgate.toml").read_text()
    broken = text.replace("deny_prefixes = ", "deny_prefix = ").replace("secrets = ", "secret = ")
    repo.stage({"patchgate.toml": broken})
    answer = repo.check()
    assert answer.code == 1
    assert [(each["rule"], each["line"]) for each in answer.findings] == [
        ("policy-invalid", line_of(repo, "deny_prefix = ")),
        ("policy-invalid", line_of(repo, "secret = ")),
    ]
    assert ["did you mean" in each["hint"] for each in answer.findings] == [True, True]
    repo.git("reset", "-q", "--hard")


def check_views(repo: Repo) -> None:
    """Ask what decides: for a submodule, for a file, and after the program is gone."""
    assert "not added (gitlink)" in repo.cli("explain", "--path", "vendor/more").out
    assert repo.check("src/m1.py").error["hint"].startswith("git add src/m1.py")
    assert repo.try_git("commit", "-q", "--allow-empty", "-m", "x", PATCHGATE_SKIP="x").returncode != 0
    tip = repo.ask("rev-parse", "HEAD")
    for name in ("pre-commit", "reference-transaction"):
        hook = repo.path / ".git/hooks" / name
        lines = hook.read_text().split("\n")
        place = next(number for number, line in enumerate(lines) if line.startswith("patchgate="))
        hook.write_text("\n".join([*lines[:place], "patchgate=/gone/git-patchgate", *lines[place + 1 :]]))
    path = without_patchgate(repo.env)
    repo.git("branch", "another", tip, PATH=path)
    repo.stage({".env": "x\n"})
    refused = said(repo.try_git("commit", "-q", "-m", "Add it", PATH=path))
    assert "/gone/git-patchgate does not start" in refused
    assert refused.count("  rm /") == 5
