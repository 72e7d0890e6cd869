"""Whose policy says that a push is verified, by what, and how loud: never that of what is pushed alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions.test_verify_at_push import BAD, ON_PUSH, connected, land, said
from tests.verify.verify_world import IFS, NEW, Workshop

pytestmark = pytest.mark.turns(3)

SILENT = '[rules]\nregression = "off"\nthreshold-crossed = "off"\n'
UNHOOKED = ("-c", "core.hooksPath=/dev/null")


def set_policy(shop: Workshop, text: str) -> str:
    """Commit a policy, past the hooks."""
    shop.stage({"patchgate.toml": text})
    shop.git(*UNHOOKED, "commit", "-q", "-m", "Set another policy")
    return shop.head()


def push(shop: Workshop, *words: str) -> subprocess.CompletedProcess[bytes]:
    return shop.try_git("push", "-q", *words)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return connected(tmp_path)


def assert_refused(
    done: subprocess.CompletedProcess[bytes], what: str = "error[regression]: B1: BAD one"
) -> None:
    assert done.returncode == 1
    assert what in said(done)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ON_PUSH + SILENT, id="rules off"),
        pytest.param(ON_PUSH + '[hooks]\nmode = "observe"\n', id="observed"),
        pytest.param("", id="not asked for"),
    ],
)
@pytest.mark.parametrize("is_head", [True, False])
def test_a_push_does_not_choose_how_loud_it_is(shop: Workshop, text: str, is_head: bool) -> None:
    shop.git("switch", "-q", "-c", "work")
    set_policy(shop, shop.policy_text(NEW, IFS) + text)
    shop.stage({"a.py": BAD})
    shop.git(*UNHOOKED, "commit", "-q", "-m", "Change it badly")
    if not is_head:
        shop.git("switch", "-q", "main")
    assert_refused(push(shop, "origin", "work:main"))
    assert_refused(push(shop, "origin", "work"))


@pytest.mark.parametrize("is_asking", [True, False])
def test_nor_does_it_take_the_analyses_out(shop: Workshop, is_asking: bool) -> None:
    set_policy(shop, ON_PUSH if is_asking else "[policy]\n")
    shop.stage({"a.py": BAD})
    shop.git(*UNHOOKED, "commit", "-q", "-m", "Change it badly")
    assert_refused(push(shop))


def test_the_limits_are_those_of_what_the_remote_has_under_an_intent_too(shop: Workshop) -> None:
    set_policy(shop, shop.policy_text(NEW, IFS) + ON_PUSH + SILENT)
    shop.declare("a.py")
    land(shop, {"a.py": BAD})
    assert_refused(push(shop))


def test_an_intent_keeps_the_analyses_of_its_declaration(shop: Workshop) -> None:
    # The remote does not know one of them yet.
    set_policy(shop, shop.policy_text(NEW, IFS).replace("[commands.told]", "[commands.renamed]") + ON_PUSH)
    shop.declare("a.py")
    land(shop, {"a.py": "2\n"})
    done = push(shop)
    assert done.returncode == 0, said(done)
    land(shop, {"a.py": BAD})
    assert_refused(push(shop))


def test_who_asks_for_the_first_time_is_heard(tmp_path: Path) -> None:
    shop = connected(tmp_path, more="")
    set_policy(shop, shop.policy_text(NEW, IFS) + ON_PUSH)
    land(shop, {"a.py": BAD})
    assert_refused(push(shop))


def test_the_analyses_of_head_count_where_the_remote_names_none(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    set_policy(shop, "[policy]\n")
    shop.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    shop.git("remote", "add", "origin", "../server.git")
    shop.git("push", "-q", "-u", "origin", "main")
    shop.install()
    set_policy(shop, shop.policy_text(NEW, IFS) + ON_PUSH)
    land(shop, {"a.py": BAD})
    assert_refused(push(shop))


@pytest.mark.parametrize(
    ("text", "why"), [("[policy]\n" + ON_PUSH, "declares no analysis"), ("[analyses]\n]", "undecided")]
)
def test_what_cannot_be_verified_though_it_is_asked_for_is_undecided(
    tmp_path: Path, text: str, why: str
) -> None:
    shop = Workshop.open(tmp_path)
    set_policy(shop, text)
    shop.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    shop.git("remote", "add", "origin", "../server.git")
    shop.git("push", "-q", "origin", "main", "main:refs/heads/old")
    shop.git("branch", "old")
    set_policy(shop, "# It asks.\n[policy]\n" + ON_PUSH)
    shop.git("push", "-q", "origin", "main")
    shop.install()
    shop.git("switch", "-q", "old")
    shop.stage({"b.py": "2\n"})
    shop.git(*UNHOOKED, "commit", "-q", "-m", "Change b")
    shop.git("switch", "-q", "main")
    done = push(shop, "origin", "old")
    assert done.returncode == 1
    assert "undecided" in said(done)
    assert "verify" in said(done)
    assert why in said(done)


def test_a_branch_that_asks_by_itself_is_verified_alone(tmp_path: Path) -> None:
    shop = connected(tmp_path, more="")
    shop.git("switch", "-q", "-c", "strict")
    set_policy(shop, shop.policy_text(NEW, IFS) + ON_PUSH)
    shop.git("push", "-q", "--no-verify", "origin", "strict")
    set_policy(shop, shop.policy_text(NEW, IFS))
    shop.stage({"a.py": BAD})
    shop.git(*UNHOOKED, "commit", "-q", "-m", "Change it badly")
    shop.git("switch", "-q", "main")
    land(shop, {"b.py": BAD})
    done = push(shop, "origin", "main", "strict")
    assert_refused(done)
    assert "refs/heads/main" not in said(done)
    assert "a.py" in said(done)
    assert "b.py" not in said(done)
    assert push(shop, "origin", "main").returncode == 0


def test_the_policy_of_the_trusted_ref_is_above_all(shop: Workshop) -> None:
    shop.git("branch", "rules")
    shop.install("--trust-ref", "refs/heads/rules")
    set_policy(shop, shop.policy_text(NEW, IFS))
    shop.git("push", "-q", "--no-verify", "origin", "main")
    land(shop, {"a.py": BAD})
    assert_refused(push(shop))
    shop.git("switch", "-q", "rules")
    set_policy(shop, shop.policy_text(NEW, IFS) + ON_PUSH + SILENT)
    shop.git("switch", "-q", "main")
    assert push(shop).returncode == 0


def test_a_push_that_nobody_asks_to_verify_loads_nothing_for_it(tmp_path: Path) -> None:
    shop = connected(tmp_path, more="")
    program = (
        "import os, sys\n"
        "from patchgate.git.pushes import RefUpdate, Remote\n"
        "from patchgate.git.repository import open_repository\n"
        "from patchgate.hooks import pre_push\n"
        "repository = open_repository(os.environ, os.getcwd())\n"
        "oid = repository.output('rev-parse', 'HEAD').decode().strip()\n"
        "line = f'refs/heads/main {oid} refs/heads/main {repository.zero_oid}\\n'\n"
        "pre_push.judge_push(repository, 'origin', '../server.git', line.encode())\n"
        "import patchgate.check.push_commands\n"
        "before = set(sys.modules)\n"
        "from patchgate.verify.verify_push import branches_to_verify\n"
        "update = RefUpdate('refs/heads/main', None, oid)\n"
        "assert branches_to_verify(repository, Remote('origin'), [update]) is None\n"
        "print(*sorted(each for each in set(sys.modules) - before), sep='\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=shop.path, env=shop.env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split() == [
        "patchgate.verify",
        "patchgate.verify.verify_push",
    ]
