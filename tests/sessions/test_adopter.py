"""The first two hours of somebody who adopts patchgate in a project with a past: each step in its order."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.hooks.first_policy import FIRST_POLICY
from tests.hooks.hook_world import Recorder, install, without_patchgate
from tests.sessions.past import COMMITS, MODULES, clone, told
from tests.sessions.twins import OFF
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

CONFIG = "patchgate.toml"
ENV = ("deny-pattern", ".env")
AWS = "AK" + "IA"
CART = "src/shop/cart.py"


def bare(repo: Repo, name: str, *source: str) -> Repo:
    """Make a bare repository beside this one, empty or a clone."""
    words = ("clone", "-q", "--bare", *source) if source else ("init", "-q", "--bare", "-b", "main")
    repo.git(*words, f"../{name}.git")
    return repo.at(repo.path.parent / f"{name}.git")


def unseen(repo: Repo, files: dict[str, str]) -> str:
    """Commit files that no hook sees; give the commit's id."""
    for name, content in files.items():
        repo.write(name, content)
    repo.git("add", *files)
    repo.git(*OFF, "commit", "-q", "-m", "Slip past")
    return repo.head()


def commit(
    repo: Repo, files: dict[str, str], message: str = "Change it"
) -> tuple[bool, list[tuple[str, str]]]:
    """Write and stage files, ignored ones too, and commit them through the hooks."""
    for name, content in files.items():
        repo.write(name, content)
    repo.git("add", "-f", *files)
    return told(repo.try_git("commit", "-q", "-m", message))


@pytest.fixture
def adopted(tmp_path: Path) -> Repo:
    """The clone with hooks and the first policy, on a branch of its own."""
    repo = clone(tmp_path)
    repo.git("switch", "-q", "-c", "topic")
    repo.policy(FIRST_POLICY)
    repo.install()
    return repo


def line_of(repo: Repo, beginning: str) -> str:
    """Where the policy has a key, as a refusal names it."""
    lines = (repo.path / CONFIG).read_text().split("\n")
    (place,) = (number for number, line in enumerate(lines, 1) if line.startswith(beginning))
    return f"{CONFIG}:{place}"


def rehearsed(answer: Answer) -> tuple[int, int, int]:
    """How many commits `init` judged, how many it would refuse, and how many are undecided."""
    (found,) = re.findall(r"last (\d+) commits?: (\d+) would be rejected, (\d+) undecided", answer.out)
    judged, refused, undecided = map(int, found)
    return judged, refused, undecided


def test_a_project_with_a_past_is_adopted_and_pushed_everywhere(tmp_path: Path) -> None:
    """The old commits that a policy of today refuses keep nobody from a push; a new one does."""
    repo = clone(tmp_path)
    past = repo.check(f"{repo.ask('rev-list', '--max-parents=0', 'HEAD')}..HEAD")
    assert (past.code, set(past.errors)) == (1, {"gitlink", "conflict-marker", "deny-class"})
    fork = bare(repo, "fork", "../upstream.git")
    empty, judging = bare(repo, "empty"), bare(repo, "judging")
    judging.install("--server")
    answer = repo.cli("init", "--yes")
    assert (answer.code, rehearsed(answer)) == (0, (200, 0, 0))
    repo.git("switch", "-q", "-c", "topic")
    repo.git("add", CONFIG)
    assert told(repo.try_git("commit", "-q", "-m", "Add patchgate")) == (True, [])
    repo.git("remote", "add", "fork", "../fork.git")
    for place, remote in (
        (fork, "fork"),
        (fork, str(fork.path)),
        (empty, str(empty.path)),
        (judging, str(judging.path)),
    ):
        assert told(repo.try_git("push", "-q", remote, "topic")) == (True, []), remote
        assert place.ask("rev-parse", "topic") == repo.ask("rev-parse", "topic")
        place.git("update-ref", "-d", "refs/heads/topic")
    # Where nothing is known of the remotes, the first help is the command that leads on.
    for ref in repo.ask("for-each-ref", "--format=%(refname)", "refs/remotes").split():
        repo.git("update-ref", "--no-deref", "-d", ref)
    done = repo.try_git("push", "-q", "fork", "topic")
    went, found = told(done)
    assert (went, {rule for rule, _ in found}) == (False, {"gitlink", "conflict-marker", "deny-class"})
    (first, *_) = re.findall(r"^help: (.*)$", done.stdout.decode(), re.MULTILINE)
    assert first.startswith("git fetch fork")
    repo.git("fetch", "-q", "fork")
    assert told(repo.try_git("push", "-q", "fork", "topic:more")) == (True, [])
    # The same mistake in a commit of today, which no hook has seen.
    unseen(repo, {".env": "A=1\n"})
    for place in (fork, empty, judging):
        pushed = told(repo.try_git("push", "-q", str(place.path), "topic"))
        assert pushed == (False, [ENV])
        assert told(repo.try_git("push", "-q", "--no-verify", str(place.path), "topic"))[0] is (
            place != judging
        )


def test_the_rehearsal_says_what_check_says(tmp_path: Path) -> None:
    """Of the same commits, in a project with a past and in one that begins with its policy."""
    repo = clone(tmp_path)
    policy = repo.policy(
        '[policy]\ndeny_prefixes = ["docs"]\n[policy.commit]\nmax_added_lines = 4\n'
        '[rules]\nmax-added-lines = "error"\n'
    )
    answer = repo.cli("init", "--yes")
    judged, refused, undecided = rehearsed(answer)
    first = repo.ask("rev-list", "--max-parents=0", "HEAD")
    checked = repo.check("--policy-from", policy, f"{first}..HEAD")
    # Merges have nothing of their own here.
    last = repo.ask("rev-list", "--no-merges", "-200", "HEAD").split()
    verdicts = [each["verdict"] for each in checked.changes if each["commit"] in last]
    assert (judged, undecided) == (200, 0)
    assert verdicts.count("rejected") == refused > 10
    new = Repo.create(tmp_path / "new")
    new.commit({"pyproject.toml": "[tool.patchgate.policy]\n", "src/a.py": "a = 1\n"})
    assert rehearsed(new.cli("init", "--yes")) == (1, 0, 0)
    assert new.check("HEAD").verdict == "accepted"


def test_the_first_mistakes_of_a_person_are_refused_with_the_key_that_decides(adopted: Repo) -> None:
    """Also the help leads on, a warning comes once, and a documented example key is no secret."""
    assert commit(adopted, {"shop.pyc": "x\n"}) == (False, [("deny-class", "shop.pyc")])
    (found,) = adopted.check().findings
    assert found["details"]["key"] == "policy.commit.deny_classes"
    assert line_of(adopted, 'deny_classes = ["artifact"]') in found["hint"]
    assert "shop.pyc" in found["hint"]
    adopted.git("reset", "-q", "--hard")
    bare(adopted, "themes", "../upstream.git")
    adding = (
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        "../themes.git",
        "vendor/themes",
    )
    adopted.git(*adding)
    assert told(adopted.try_git("commit", "-q", "-m", "Add the themes")) == (
        False,
        [("gitlink", "vendor/themes")],
    )
    (found,) = adopted.check("--staged").findings
    assert found["details"]["key"] == "policy.commit.allow_gitlinks"
    assert line_of(adopted, 'allow_gitlinks = "bump"') in found["hint"]
    explained = adopted.cli("explain", "--path", "vendor/themes")
    assert (explained.code, "gitlink" in explained.out) == (0, True)
    # What the help says leads on.
    adopted.git("stash", "-q")
    assert commit(adopted, {CONFIG: "[policy.commit]\nallow_gitlinks = true\n"}) == (True, [])
    adopted.git("stash", "pop", "-q", "--index")
    assert told(adopted.try_git("commit", "-q", "-m", "Add the themes")) == (True, [])
    # Warned of once, also where a commit is judged twice.
    assert commit(adopted, {CONFIG: '[message]\nlevel = "error"\n'}) == (True, [])
    adopted.stage({"data.csv": "1\n" * 600_000})
    done = adopted.try_git("commit", "-q", "-m", "Add the data")
    assert (done.returncode, (done.stdout + done.stderr).count(b"max-file-bytes]")) == (0, 1)
    key = f"{AWS}IOSFODNN7"
    assert commit(adopted, {"docs/keys.md": f"{key}EXAMPLE\n"}) == (True, [])
    assert commit(adopted, {"docs/keys.md": f"{key}EXAMPLE\n{key}QXAMPLE\n"}) == (
        False,
        [("secret", "docs/keys.md:2")],
    )


def test_each_way_around_is_caught_and_leads_back(adopted: Repo) -> None:
    """With --no-verify, and by rebase, cherry-pick, merge, and a squash of policy and code."""
    head = adopted.head()
    adopted.write(".env", "A=1\n")
    adopted.git("add", ".env")
    assert told(adopted.try_git("commit", "-q", "-n", "-m", "Slip past")) == (False, [ENV])
    adopted.git("reset", "-q", "--hard")
    last = json.loads(adopted.cli("log", "-n", "1", "--format", "json").out)
    assert (last["kind"], last["rules"]) == ("refused", ["deny-pattern"])
    adopted.git(*OFF, "switch", "-q", "-c", "evil")
    evil = unseen(adopted, {".env": "A=1\n"})
    adopted.git(*OFF, "switch", "-q", "topic")
    adopted.commit({CONFIG: FIRST_POLICY + "# More.\n"}, "Explain the policy")
    topic = adopted.head()
    for words, back in (
        (("cherry-pick", evil), ("cherry-pick", "--abort")),
        (("merge", "-q", "--no-edit", "evil"), ("merge", "--abort")),
        (("rebase", "-q", "topic", "evil"), ("rebase", "--abort")),
        (("branch", "-f", "topic2", evil), None),
    ):
        if back is None:
            # It was there before the hooks were asked: the branch that has it is nobody's to judge again.
            continue
        assert told(adopted.try_git(*words)) == (False, [ENV]), words
        adopted.try_git(*back)
        adopted.git(*OFF, "switch", "-q", "topic")
        assert (adopted.head(), adopted.git("status", "--porcelain")) == (topic, b""), words
    adopted.git(*OFF, "reset", "-q", "--soft", head)
    adopted.stage({CART: "cart = 1\n"})
    assert told(adopted.try_git("commit", "-q", "-m", "Squash")) == (
        False,
        [("policy-change-not-alone", CONFIG)],
    )


def test_what_git_does_every_day_is_not_refused(adopted: Repo) -> None:
    """No false refusal from any of them, in a history that has what the policy refuses."""
    git = adopted.git
    for number, name in enumerate(MODULES[:2]):
        assert commit(adopted, {f"src/shop/{name}.py": f"{name} = {number}\n"}, f"Rewrite {name}")[0]
    git("commit", "-q", "--amend", "-m", "Rewrite the prices")
    adopted.stage({f"src/shop/{MODULES[0]}.py": "cart = 3\n"})
    git("commit", "-q", "--fixup", ":/Rewrite cart")
    git("rebase", "-q", "-i", "--autosquash", "topic~3", GIT_SEQUENCE_EDITOR="true")
    patch = git("format-patch", "-1", "--stdout")
    git("revert", "--no-edit", "HEAD")
    git("am", "-q", stdin=patch)
    adopted.write(CART, "cart = 4\n")
    git("stash", "-q")
    git("switch", "-q", "--detach", "main~250")
    git("switch", "-q", "topic")
    git("stash", "pop", "-q")
    git("commit", "-q", "-a", "-m", "Count the cart")
    git("bisect", "start", "main", "main~260")
    git("bisect", "run", "sh", "-c", "! test -e CHANGES.md")
    git("bisect", "reset")
    git("worktree", "add", "-q", "-b", "side", "../side", "main~270")
    git("worktree", "remove", "../side")
    git("tag", "-a", "-m", "One", "v1")
    git("gc", "-q")
    # Somebody else's commit, that the policy refuses, comes by a pull.
    other = adopted.at(adopted.path.parent / "other")
    git("clone", "-q", "../upstream.git", "../other")
    other.commit({".env": "A=1\n"}, "Theirs")
    other.git("push", "-q", "origin", "main")
    fetched = adopted.try_git("fetch", "-q", "origin", "main:theirs")
    assert told(fetched) == (True, [])
    assert b"git patchgate check" in fetched.stderr
    git("pull", "-q", "--rebase", "origin", "main")
    assert adopted.ask("rev-list", "--count", "HEAD") == str(COMMITS + 7)
    assert git("status", "--porcelain") == b""


def test_what_the_commands_answer_to_wrong_words(adopted: Repo) -> None:
    """A mistyped policy, a file instead of a commit, reasons that say nothing."""
    broken = '[policy]\ndeny_prefix = ["runs"]\ndeny = ["!a"]\n'
    adopted.write(CONFIG, broken)
    shown, explained = adopted.cli("policy", "show"), adopted.cli("explain", "--path", CART)
    assert (shown.code, explained.code) == (0, 0)
    assert CONFIG in shown.err
    assert CONFIG in explained.err
    adopted.git("add", CONFIG)
    found = adopted.check().findings
    assert [(each["rule"], each["path"], each["line"]) for each in found] == [
        ("policy-invalid", CONFIG, 2),
        ("policy-invalid", CONFIG, 3),
    ]
    assert "`deny_prefixes`" in found[0]["hint"]
    adopted.git("reset", "-q", "--hard")
    adopted.stage({".env": "A=1\n"})
    ids = {adopted.check(*words).change["id"] for words in ((), ("--staged",), ("--cached",))}
    assert len(ids) == 1
    assert adopted.check(CART).error["kind"] == "usage"
    for reason in ("x", "fix it"):
        skipped = told(adopted.try_git("commit", "-q", "-m", "Add", PATCHGATE_SKIP=reason))
        assert skipped == (False, [])
        assert adopted.cli("approve", "@staged", "--reason", reason).code == 2
    real = "the sandbox of the shop needs it in every clone"
    assert adopted.cli("approve", "@staged", "--reason", real).code == 2
    assert told(adopted.try_git("commit", "-q", "-m", "Add", PATCHGATE_SKIP=real))[0]
    lines = [json.loads(line) for line in adopted.cli("log", "--format", "json").out.splitlines()]
    assert len(adopted.cli("log").out.splitlines()) == len(lines)
    assert {"skipped", "installed"} <= {each["kind"] for each in lines}


def test_where_the_hooks_or_the_program_are_gone_that_is_what_is_said(adopted: Repo) -> None:
    """Other managers take hooks away, and give them back."""
    hooks = adopted.path / ".git/hooks"
    ours = {
        each.name: each.read_bytes() for each in hooks.iterdir() if b"patchgate hook" in each.read_bytes()
    }
    assert len(ours) == 5
    # As husky does it.
    theirs = "#!/bin/sh\nexit 0\n"
    adopted.write(".husky/_/pre-commit", theirs, executable=True)
    adopted.git("config", "core.hooksPath", ".husky/_")
    seen = adopted.cli("doctor", "--format", "json")
    rows = {each["event"]: each for each in seen.report["worktrees"][0]["hooks"]}
    assert (seen.code, seen.report["gate_runs"], rows["pre-commit"]["patchgate_version"]) == (1, False, None)
    adopted.git("config", "--unset", "core.hooksPath")
    adopted.write(".git/hooks/pre-commit", theirs, executable=True)
    adopted.install()
    assert commit(adopted, {".env": "A=1\n"}) == (False, [ENV])
    adopted.git("reset", "-q", "--hard")
    uninstalled = adopted.cli("uninstall")
    assert uninstalled.code == 0
    assert (hooks / "pre-commit").read_text() == theirs
    assert not (hooks / "pre-push").exists()
    # The program was there, and is gone: what has nothing new passes.
    (hooks / "pre-commit").unlink()
    recorder = Recorder(adopted.path.parent)
    install(adopted, recorder)
    recorder.remove()
    adopted.env["PATH"] = without_patchgate(adopted.env)
    adopted.git("branch", "x")
    adopted.write(CART, "cart = 2\n")
    done = adopted.try_git("commit", "-q", "-a", "-m", "Count the cart")
    assert (done.returncode, done.stderr.count(b"  rm ")) == (1, 5)


def test_doctor_knows_what_runs_through_a_framework(tmp_path: Path) -> None:
    """With the three ids in its config; only the native hooks see the rest."""
    repo = clone(tmp_path)
    hooks = [{"id": each} for each in ("patchgate", "patchgate-commit-msg", "patchgate-pre-push")]
    config = {"repos": [{"repo": "https://example.com/patchgate", "rev": "v1", "hooks": hooks}]}
    repo.commit({CONFIG: FIRST_POLICY, ".pre-commit-config.yaml": json.dumps(config)})
    events = ("pre-commit", "pre-merge-commit", "commit-msg", "pre-push")
    program = Path(sys.executable).with_name("pre-commit")
    words = [word for event in events for word in ("-t", event)]
    subprocess.run([program, "install", *words], cwd=repo.path, env=repo.env, check=True, capture_output=True)
    answer = repo.cli("doctor", "--format", "json")
    (place,) = answer.report["worktrees"]
    through = {each["event"] for each in place["hooks"] if each["manager"]}
    levels = {(each["level"], event) for each in place["findings"] for event in each["events"]}
    assert (answer.code, answer.report["gate_runs"], through) == (0, True, set(events))
    assert ("warning", "reference-transaction") in levels
    assert not [each for each in levels if each[0] == "error"]


def test_a_shallow_clone_names_the_command_that_helps(tmp_path: Path) -> None:
    """What cannot be seen is undecided, with the next step."""
    repo = clone(tmp_path)
    repo.git("clone", "-q", "--depth", "2", f"file://{tmp_path}/upstream.git", "../shallow")
    answer = repo.check("HEAD~1", cwd=tmp_path / "shallow")
    assert answer.code == 3
    assert "git fetch --deepen" in answer.out + answer.err
