"""A boring push is recognised by pre-push itself: the full tier lets it pass in silence and records the same.

The program that the hook calls is a stub, as in `tests.hooks.fast.boring_world`: the hook ends with 0 where
it has recognised a push, with 7 where it has handed it on. The hook is run as git runs it, on git's own
lines.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.fast.renewal import renew_all
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import Receipts
from tests.amount import IS_LONG
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, World, Worlds
from tests.hooks.fast.random_changes import Near, random_tree, stream
from tests.hooks.fast.random_policies import random_root
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

URL = "ssh://example.com/repo"
MAIN = "refs/heads/main"
POLICY = "[policy]\ndeny_prefixes = ['vendor']\n[policy.commit]\nmax_added_lines = 40\n"
SECRET = "AKIA" + "ABCDEFGHIJKLMNOP"
ZERO = "0" * 40


@dataclass(frozen=True)
class Said:
    """What the hook did with a push: its exit code, what it printed, the pushes that it recorded."""

    code: int
    out: bytes
    pushed: list[dict[str, Any]]


class Pusher:
    """A repository that pushes; its remote has what `origin/main` names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.repo = world.repo
        stub = re.search(r"(?m)^patchgate=.*$", self.hook("pre-commit").read_text(encoding="utf-8"))
        assert stub is not None
        text = self.hook("pre-push").read_text(encoding="utf-8")
        text, number = re.subn(r"(?m)^patchgate=.*$", lambda _: stub[0], text)
        assert number == 1
        self.hook("pre-push").write_text(text, encoding="utf-8")
        self.repo.git("config", "remote.origin.url", URL)
        self.has("main", self.head)
        self.repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")

    def hook(self, name: str) -> Path:
        """Name an installed hook."""
        return self.world.state.parent / "hooks" / name

    @property
    def head(self) -> str:
        """The commit of HEAD."""
        return self.repo.head()

    def has(self, branch: str, commit: str) -> None:
        """Let it be known what a branch of the remote has."""
        self.repo.git("update-ref", f"refs/remotes/origin/{branch}", commit)

    def commit(
        self, files: dict[str, str | bytes] | None = None, *, message: str = "Change", receipt: bool = True
    ) -> str:
        """Commit past the hooks, and give it its receipt all the same."""
        self.repo.stage(files or {"a": f"{random.random()}\n"})
        self._git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
        return self.seen(self.head) if receipt else self.head

    def made(self, commit: bytes, *, receipt: bool = True) -> str:
        """Write a commit as it is, and let the branch have it."""
        oid = self.repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=commit)
        self._git("reset", "-q", "--hard", oid.decode().strip())
        return self.seen(self.head) if receipt else self.head

    def _git(self, *arguments: str) -> None:
        self.repo.git("-c", "core.hooksPath=/dev/null", *arguments)

    def seen(self, *commits: str) -> str:
        """Give commits their receipts; give the last."""
        for commit in commits:
            words = self.repo.ask("log", "-1", "--format=%H %T %P", commit).split(" ")
            parent = words[2] if len(words) > 2 else None
            assert Receipts(str(self.world.state.parent)).add([(words[0], words[1], parent)]) is None
        return commits[-1]

    def line(self, new: str | None = None, old: str | None = None, ref: str = MAIN, local: str = MAIN) -> str:
        """Write the line by which git tells of one ref."""
        had = old if old is not None else self.repo.ask("rev-parse", "refs/remotes/origin/main")
        return f"{local} {new or self.head} {ref} {had}\n"

    def push(self, *lines: str, remote: str = "origin", url: str = URL, shell: str = "", **env: str) -> Said:
        """Run the hook on these lines; on that of `main` where there are none."""
        before = len(self.pushed())
        done = subprocess.run(
            [*([shell] if shell else []), self.hook("pre-push"), remote, url],
            input="".join(lines or [self.line()]).encode(),
            cwd=self.repo.path,
            env=self.repo.env | env,
            capture_output=True,
            check=False,
        )
        return Said(done.returncode, done.stdout + done.stderr, self.pushed()[before:])

    def judged(self, *lines: str, remote: str = "origin", url: str = URL) -> Said:
        """Let the full tier judge the same."""
        return self.push(*lines, remote=remote, url=url, PATCHGATE_FULL="1")

    def pushed(self) -> list[dict[str, Any]]:
        """Read what was recorded of pushes."""
        ledger = Ledger(str(self.world.state.parent))
        return [{"kind": each.kind, "about": dict(each.about)} for each in ledger.find_events({"pushed"})]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("pushes"))


@pytest.fixture
def pusher(worlds: Worlds) -> Pusher:
    return Pusher(worlds(POLICY))


def is_as_judged(pusher: Pusher, *lines: str, remote: str = "origin") -> bool:
    """Tell whether a push is recognised, accepted in silence by the full tier, and recorded alike by both."""
    told = lines or (pusher.line(),)
    quick = pusher.push(*told, remote=remote)
    full = pusher.judged(*told, remote=remote)
    assert (full.code, full.out) == (0, b"")
    assert (quick.code, quick.out) == (RECOGNISED, b""), quick
    assert len(quick.pushed) == 1
    assert quick.pushed == full.pushed
    return True


def test_where_there_are_components_their_staleness_is_looked_at(worlds: Worlds) -> None:
    pusher = Pusher(worlds("[components.x]\ncontract = 'c'\ntests = ['t']\nimplementation = ['i']\n"))
    pusher.commit()
    assert pusher.push().code == HANDED_ON


# ---- recognised --------------------------------------------------------------------------------------------


def test_one_commit_is_recognised_and_recorded_as_by_the_full_tier(pusher: Pusher) -> None:
    pusher.commit()
    assert is_as_judged(pusher)


def test_three_commits_are_recognised(pusher: Pusher) -> None:
    pusher.commit({"a": "2\n"})
    pusher.commit({"src/deep/new.py": "y = 1\n"})
    (pusher.repo.path / "b").unlink()
    pusher.commit({"empty": "not\n"})
    assert is_as_judged(pusher)
    assert pusher.pushed()[0]["about"]["commits"] == 3


def test_ten_commits_are_recognised(pusher: Pusher) -> None:
    for _ in range(10):
        pusher.commit()
    assert is_as_judged(pusher)


def test_a_branch_of_its_own_is_recognised(pusher: Pusher) -> None:
    pusher.commit()
    old = pusher.head
    pusher.has("topic/a.b-c_d", old)
    pusher.commit()
    assert is_as_judged(pusher, pusher.line(old=old, ref="refs/heads/topic/a.b-c_d", local="refs/heads/x"))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("local", ["HEAD", "HEAD@{1 day ago}", ":/a b c", "refs/heads/x 000 refs/heads/y"])
def test_the_local_name_says_nothing(pusher: Pusher, local: str) -> None:
    pusher.commit()
    assert is_as_judged(pusher, pusher.line(local=local))


def test_a_commit_that_changes_nothing_is_recognised(pusher: Pusher) -> None:
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Nothing")
    pusher.seen(pusher.head)
    assert is_as_judged(pusher)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_both_shells_take_the_same_way(pusher: Pusher, shell: str) -> None:
    pusher.commit()
    assert pusher.push(shell=shell).code == RECOGNISED


def test_a_remote_that_nobody_configured_is_recognised_by_the_old_value_alone(pusher: Pusher) -> None:
    old = pusher.head
    pusher.commit()
    assert is_as_judged(pusher, pusher.line(old=old), remote="elsewhere")


def test_packed_refs_are_seen(pusher: Pusher) -> None:
    pusher.commit()
    pusher.repo.git("pack-refs", "--all")
    assert is_as_judged(pusher)


def test_a_real_push_is_recognised(pusher: Pusher, tmp_path: Path) -> None:
    there = tmp_path / "there.git"
    pusher.repo.git("init", "-q", "--bare", str(there))
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "push", "-q", str(there), "main")
    pusher.repo.git("config", "remote.origin.url", str(there))
    pusher.commit()
    pusher.repo.git("push", "-q", "origin", "HEAD:main")
    assert pusher.repo.ask("--git-dir", str(there), "rev-parse", "main") == pusher.head
    about = {"remote": "origin", "ref": MAIN, "commits": 1, "without_receipt": []}
    assert pusher.pushed() == [{"kind": "pushed", "about": about}]


def test_a_sha256_repository_is_recognised(worlds: Worlds) -> None:
    pusher = Pusher(worlds(POLICY, "--object-format=sha256"))
    pusher.commit()
    assert is_as_judged(pusher)


def test_a_file_that_attributes_call_binary_is_recognised(pusher: Pusher) -> None:
    pusher.has("main", pusher.commit({"src/.gitattributes": "*.lst -diff\n", "src/a.lst": "1\n"}))
    pusher.commit({"src/a.lst": "2\n"})
    assert is_as_judged(pusher)


# ---- handed on ---------------------------------------------------------------------------------------------

Arrange = Callable[[Pusher], list[str]]


def commits(*changes: dict[str, str | bytes], message: str = "Change") -> Arrange:
    def arrange(pusher: Pusher) -> list[str]:
        for change in changes:
            pusher.commit(change, message=message)
        return [pusher.line()]

    return arrange


def line(**words: str) -> Arrange:
    def arrange(pusher: Pusher) -> list[str]:
        pusher.commit()
        return [pusher.line(**words)]

    return arrange


def configured(*setting: str, message: str = "Change") -> Arrange:
    def arrange(pusher: Pusher) -> list[str]:
        pusher.repo.git("config", *setting)
        pusher.commit(message=message)
        return [pusher.line()]

    return arrange


def two_refs(pusher: Pusher) -> list[str]:
    old = pusher.head
    pusher.commit()
    return [pusher.line(), pusher.line(old=old, ref="refs/heads/x")]


def without_local_name(pusher: Pusher) -> list[str]:
    pusher.commit()
    return [pusher.line().partition(" ")[2]]


def forced(pusher: Pusher) -> list[str]:
    pusher.has("main", pusher.commit())
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", "HEAD^")
    pusher.commit()
    return [pusher.line()]


def backwards(pusher: Pusher) -> list[str]:
    old = pusher.head
    pusher.has("main", pusher.commit())
    return [pusher.line(old)]


def merge(pusher: Pusher) -> list[str]:
    side = pusher.commit({"src/side.py": "x = 1\n"})
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", "HEAD^")
    pusher.commit()
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "merge", "-q", "-m", "Merge", side)
    pusher.seen(pusher.head)
    return [pusher.line()]


def eleven(pusher: Pusher) -> list[str]:
    for _ in range(11):
        pusher.commit()
    return [pusher.line()]


def unseen(pusher: Pusher) -> list[str]:
    pusher.commit(receipt=False)
    pusher.commit()
    return [pusher.line()]


def cut_off(pusher: Pusher) -> list[str]:
    first = pusher.head
    pusher.commit()
    (pusher.world.state.parent / "shallow").write_text(f"{first}\n", encoding="ascii")
    return [pusher.line()]


def raw(*, header: bytes = b"", message: bytes = b"Change\n", name: bytes = b"") -> Arrange:
    """Make a commit as git would not, with more headers, or with a file of this name in the root folder."""

    def arrange(pusher: Pusher) -> list[str]:
        tree = pusher.repo.git("cat-file", "tree", "HEAD^{tree}")
        if name:
            blob = bytes.fromhex(pusher.repo.ask("hash-object", "-w", "a"))
            tree += b"100644 " + name + b"\0" + blob
        made = pusher.repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=tree)
        who = b"A <a@example.com> 1700000000 +0000\n"
        text = b"tree %sparent %s\nauthor %scommitter %s" % (made, pusher.head.encode(), who, who)
        text += header + b"\n" + message
        oid = pusher.repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
        return [pusher.line(pusher.seen(oid.decode().strip()))]

    return arrange


def default_has_a_policy(head: str, branch: str) -> Arrange:
    """Let a branch of the remote, which may be its default one, have another policy than what goes on."""

    def arrange(pusher: Pusher) -> list[str]:
        old = pusher.head
        other = pusher.commit({"patchgate.toml": POLICY + "# other\n"})
        pusher.repo.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", old)
        pusher.repo.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
        pusher.has(branch, other)
        if head:
            pusher.repo.git("symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{branch}")
        pusher.commit()
        return [pusher.line(old=old, ref="refs/heads/x")]

    return arrange


def with_its_own_work_tree(arrange: Arrange) -> Arrange:
    """Name the working tree in the config, as every submodule does."""

    def arranged(pusher: Pusher) -> list[str]:
        pusher.repo.git("config", "core.worktree", str(pusher.repo.path))
        return arrange(pusher)

    return arranged


def there_already(branch: str) -> Arrange:
    """Let a branch of the remote have all that another gets: it brings nothing, and none is recorded."""

    def arrange(pusher: Pusher) -> list[str]:
        old = pusher.head
        pusher.has(branch, pusher.commit())
        return [pusher.line(old=old, ref="refs/heads/x")]

    return arrange


def elsewhere_already(pusher: Pusher) -> list[str]:
    """Let another remote have the first of two commits: it is not judged again, which is reported."""
    pusher.repo.git("update-ref", "refs/remotes/other/x", pusher.commit())
    pusher.commit()
    return [pusher.line()]


def end_of_a_section(pusher: Pusher) -> list[str]:
    """Hide an added secret behind what ends a section; git takes the file for text, its NUL is so late."""
    pusher.repo.git("branch", SECRET)
    late = b"x" * 9000 + b"\n"
    first = pusher.commit({"late": late})
    pusher.commit({"late": late + b"\0whole%s %s\n" % (first.encode(), SECRET.encode())})
    return [pusher.line()]


def torn_ledger(pusher: Pusher) -> list[str]:
    pusher.commit()
    (pusher.world.state / "events.jsonl").write_bytes(b'{"kind"')
    return [pusher.line()]


def damaged_ledger(pusher: Pusher) -> list[str]:
    pusher.commit()
    (pusher.world.state / "events.jsonl").write_bytes(b"damaged\n")
    return [pusher.line()]


def nothing_ready(pusher: Pusher) -> list[str]:
    pusher.world.compiled.unlink()
    pusher.commit()
    return [pusher.line()]


INTENT = "Change\n\nPatchgate-Intent: more\n"
CASES: dict[str, Arrange] = {
    "a new branch": line(old=ZERO, ref="refs/heads/new"),
    "two refs": two_refs,
    "a deletion": line(new=ZERO, local="(delete)"),
    "no local name": without_local_name,
    "a tag": line(ref="refs/tags/v1"),
    "notes": line(ref="refs/notes/commits"),
    "a ref with an odd name": line(ref="refs/heads/a=b"),
    "a ref with a long name": line(ref="refs/heads/" + "x" * 190),
    "an old value that is not here": line(old="1" * 40),
    "an old value of another length": line(old="1" * 39),
    "forced": forced,
    "backwards": backwards,
    "a merge": merge,
    "eleven commits": eleven,
    "no receipt": unseen,
    "shallow": cut_off,
    "a denied path": commits({"vendor/x": "1\n"}),
    "a denied path that is gone later": commits({"vendor/x": "1\n"}, {"vendor/x": "2\n"}, {"a": "3\n"}),
    "a secret": commits({"a": f"key = '{SECRET}'\n"}),
    "a large change": commits({"a": "x\n" * 41}),
    "a policy": commits({"patchgate.toml": POLICY + "# mine\n"}, {"a": "2\n"}),
    "attributes": commits({".gitattributes": "* -diff\n"}),
    "the end of a section in a text": end_of_a_section,
    "a trailer": commits({"a": "2\n"}, message=INTENT),
    "a trailer in small letters": commits({"a": "2\n"}, message=INTENT.lower()),
    "a trailer by another name": configured(
        "trailer.agent.key", "Patchgate-Intent", message="Change\n\nAgent: x\n"
    ),
    "an encoding": raw(header=b"encoding UTF-16\n"),
    "an encoding behind a signature": raw(header=b"gpgsig x\n y\nencoding UTF-8\n"),
    "a name with a slash": raw(name=b"x/y"),
    "what another remote has": elsewhere_already,
    "trustRef": configured("patchgate.trustRef", MAIN),
    "trustRef that is nowhere": configured("patchgate.trustRef", "refs/heads/nowhere"),
    "another policy on the default branch": default_has_a_policy("HEAD", "dev"),
    "another policy, with core.worktree": with_its_own_work_tree(default_has_a_policy("HEAD", "dev")),
    "another policy on main": default_has_a_policy("", "main"),
    "another policy on master": default_has_a_policy("", "master"),
    "nothing new to the default branch": there_already("main"),
    "nothing new to some branch": there_already("other"),
    "a torn ledger": torn_ledger,
    "a damaged ledger": damaged_ledger,
    "no compiled policy": nothing_ready,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_boring_is_handed_on_and_not_recorded(pusher: Pusher, name: str) -> None:
    lines = CASES[name](pusher)
    done = pusher.push(*lines)
    assert (done.code, done.out, done.pushed) == (HANDED_ON, b"", [])


@pytest.mark.parametrize(
    "remote", ["https://example.com/x", "../x", "a.b", "a/b", "-x", "r" * 121, "a b", ""]
)
def test_a_remote_without_a_plain_name_is_handed_on(pusher: Pusher, remote: str) -> None:
    old = pusher.head
    pusher.commit()
    assert pusher.push(pusher.line(old=old), remote=remote).code == HANDED_ON


def test_a_url_in_place_of_a_remote_is_handed_on(pusher: Pusher) -> None:
    old = pusher.head
    pusher.commit()
    assert pusher.push(pusher.line(old=old), remote="folder", url="folder").code == HANDED_ON


ON_PUSH = "[verify]\non_push = true\n"


def test_where_pushes_are_verified_every_push_is_handed_on(worlds: Worlds) -> None:
    pusher = Pusher(worlds(POLICY + ON_PUSH))
    pusher.commit()
    assert pusher.push().code == HANDED_ON


def test_whether_pushes_are_verified_the_policy_of_head_says_of_every_branch(worlds: Worlds) -> None:
    pusher = Pusher(worlds(POLICY))
    pusher.commit()
    side, old = pusher.head, pusher.repo.ask("rev-parse", "refs/remotes/origin/main")
    pusher.has("side", old)
    line = pusher.line(new=side, old=old, ref="refs/heads/side", local="refs/heads/side")
    assert pusher.push(line).code == RECOGNISED
    pusher.commit({"patchgate.toml": POLICY + ON_PUSH})
    assert renew_all(open_repository(pusher.repo.env, str(pusher.repo.path))).warning is None
    assert pusher.push(line).code == HANDED_ON


def test_the_policy_that_the_branch_has_asks_for_a_verification_as_well(worlds: Worlds) -> None:
    pusher = Pusher(worlds(POLICY + ON_PUSH))
    old = pusher.head
    pusher.commit()
    side = pusher.head
    pusher.has("side", old)
    pusher.commit({"patchgate.toml": POLICY})
    # The one policy is in force at HEAD, the other at the branch; both are known.
    assert renew_all(open_repository(pusher.repo.env, str(pusher.repo.path))).warning is None
    pusher.has("main", old)
    line = pusher.line(new=side, old=old, ref="refs/heads/side", local="refs/heads/side")
    assert pusher.push(line).code == HANDED_ON


@pytest.mark.parametrize(
    "policy", ["[message]\nlevel = 'error'\n", "[push]\nprotected_refs = []\n[message]\nlevel = 'error'\n"]
)
def test_where_messages_can_be_refused_every_push_is_handed_on(worlds: Worlds, policy: str) -> None:
    pusher = Pusher(worlds(policy))
    pusher.commit()
    assert pusher.push().code == HANDED_ON


@pytest.mark.parametrize("name", ["PATCHGATE_SKIP", "PATCHGATE_FULL", "PRE_COMMIT", "GIT_COMMON_DIR"])
def test_who_asks_for_the_full_tier_gets_it(pusher: Pusher, name: str) -> None:
    pusher.hook("pre-push").write_text(
        re.sub(r"(?m)^patchgate=.*$", "patchgate=/bin/false", pusher.hook("pre-push").read_text("utf-8")),
        encoding="utf-8",
    )
    pusher.commit()
    assert pusher.push().code == RECOGNISED
    assert pusher.push(**{name: str(pusher.world.state.parent)}).code == 1


def test_a_replacement_and_a_graft_change_nothing(pusher: Pusher) -> None:
    old = pusher.head
    bad = pusher.commit({"vendor/x": "1\n"})
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", old)
    good = pusher.commit()
    pusher.repo.git("replace", bad, good)
    assert pusher.push(pusher.line(bad)).code == HANDED_ON
    grafts = pusher.world.state.parent / "info" / "grafts"
    grafts.parent.mkdir(exist_ok=True)
    grafts.write_text(f"{good} {bad}\n", encoding="ascii")
    assert pusher.push(pusher.line(good, old=bad)).code == HANDED_ON
    assert is_as_judged(pusher, pusher.line(good))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IFS", "0a1"),
        ("GIT_DIR", ".git"),
        ("GIT_INDEX_FILE", "/nowhere"),
        ("GIT_NAMESPACE", "x"),
        ("GIT_EXTERNAL_DIFF", "/bin/false"),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_TRACE", "1"),
        ("PYTHONPATH", "/nowhere"),
    ],
)
def test_nothing_of_the_caller_changes_what_is_recognised(pusher: Pusher, name: str, value: str) -> None:
    old = pusher.head
    bad = pusher.commit({"vendor/x": "1\n"})
    pusher.repo.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", old)
    good = pusher.commit()
    env = {name: value}
    assert pusher.push(pusher.line(bad), **env).code == HANDED_ON
    assert pusher.push(pusher.line(good), **env).code == RECOGNISED


# ---- the same verdict --------------------------------------------------------------------------------------

BATCHES, IN_A_BATCH = (14 if IS_LONG else 3), 12


def test_whatever_is_recognised_the_full_tier_accepts_in_silence(worlds: Worlds, tmp_path: Path) -> None:
    recognised = handed_on = 0
    for number in range(BATCHES):
        chance = random.Random(f"push/{number}")
        pusher = random_pusher(worlds, chance, tmp_path / str(number))
        old = pusher.head
        trees = pusher.repo.ask("for-each-ref", "--format=%(tree)", "refs/kept").split("\n")
        for _ in range(IN_A_BATCH):
            said = pusher.line(linear(pusher, chance, old, trees))
            quick = pusher.push(said)
            if quick.code == HANDED_ON:
                handed_on += 1
                continue
            recognised += 1
            assert quick.code == RECOGNISED
            full = pusher.judged(said)
            assert (full.code, full.out) == (0, b""), (number, said)
            assert quick.pushed == full.pushed
    # A proof about pushes that never are recognised, or always, would prove nothing.
    assert recognised >= (10 if IS_LONG else 5), (recognised, handed_on)
    assert handed_on >= (10 if IS_LONG else 5), (recognised, handed_on)


def linear(pusher: Pusher, chance: random.Random, old: str, trees: list[str]) -> str:
    """Make one to four commits in a line; each has one of these trees, so it also undoes the one before."""
    commit = old
    for tree in chance.sample(trees, chance.choice([1, 1, 1, 2, 3, 4])):
        message = chance.choice(
            ["Change", "Change\n\nA text.", "Change\n\nReviewed-by: A", "A\r\rPatchgate-Intent: x"]
        )
        message = INTENT if chance.random() < 0.05 else message
        commit = pusher.repo.ask("commit-tree", tree, "-p", commit, "-m", message)
        if chance.random() < 0.98:
            pusher.seen(commit)
    return commit


def random_pusher(worlds: Worlds, chance: random.Random, folder: Path) -> Pusher:
    """Make a repository under a random policy that was compiled, and many random children of its HEAD."""
    while True:
        root = random_root(chance)
        tree = random_tree(chance, root.files, "sha1")
        text = b"".join(content for _, content in root.files.values()).decode()
        folder = folder / "again"
        repo = Repo.create(folder)
        lines = stream(chance, tree, Near.to(text), 40, git_like=False)
        marks = folder / "marks"
        # Git 2.47 refuses names that other systems take for `.git`, unless they are allowed.
        names = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
        repo.git(*names, "fast-import", "--quiet", f"--export-marks={marks}", stdin=b"".join(lines))
        made = dict(each.split(" ") for each in marks.read_text("ascii").splitlines())
        commits = [made[f":{number}"] for number in range(1, 42)]
        repo.git("update-ref", MAIN, commits[0])
        for oid in commits[1:]:
            repo.git("update-ref", f"refs/kept/{oid}", oid)
        world = worlds.adopt(repo)
        # Under an ordinary policy more is recognised.
        if len(list(world.copy.parent.iterdir())) > 1 and (root.is_ordinary or chance.random() < 0.3):
            return Pusher(world)
