"""Who waits for a file: when its turn comes, what makes it active then, and whom the queue passes over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from patchgate.git.repository import Repository, open_repository
from patchgate.intents.actions import clear, declare, find_intents, renew
from patchgate.intents.declaration import DeclareOptions
from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.intent_status import Caller, IntentAction, IntentOutcome
from patchgate.intents.queue import promote_waiting
from patchgate.intents.stored_intents import StoredIntents, is_alive
from tests.world import Repo

BOOT = "0b1c2d3e-0000-4000-8000-000000000000"


def caller(repo: Repo, seconds: float = 0, **environ: str) -> Caller:
    return Caller(repo.env | environ, Moment(1_700_000_000 + seconds, BOOT, 1000 + seconds))


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def stored(repo: Repo) -> dict[str, Intent]:
    return {each.id: each for each in StoredIntents(opened(repo).common_dir).all()}


class Short:
    """A process that owns what is declared while it runs, as a shell that ends with its command."""

    def __enter__(self) -> str:
        self._child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        return str(self._child.pid)

    def __exit__(self, *_: object) -> None:
        self._child.communicate(b"\n")


def declared(
    repo: Repo, allowed: Sequence[str], seconds: float = 0, *, lasting: bool = True, queue: bool = False
) -> IntentOutcome:
    request = DeclareOptions("the work is due", allowed, queue=queue)
    if lasting:
        return declare(opened(repo), request, caller(repo, seconds))
    with Short() as pid:
        return declare(opened(repo), request, caller(repo, seconds, PATCHGATE_OWNER=pid))


def of(outcome: IntentOutcome) -> Intent:
    assert outcome.intent is not None
    return outcome.intent


def two(folder: Path) -> tuple[Repo, Repo]:
    repo = Repo.create(folder)
    repo.commit({"a": "1\n", "b": "1\n"}, "Begin")
    repo.git("worktree", "add", "-q", "-b", "other", str(folder / "other"))
    return repo, repo.at(folder / "other")


def test_one_that_waits_begins_with_the_next_look_at_it_in_its_worktree(tmp_path: Path) -> None:
    repo, other = two(tmp_path)
    declared(other, ["a"], lasting=False)
    waiting = of(declared(repo, ["a"], 200, queue=True))
    assert promote_waiting(opened(repo), caller(repo, 290)) == ((), ())
    # Elsewhere nobody waits, so there nothing is done.
    assert promote_waiting(opened(other), caller(repo, 301)) == ((), ())
    repo.commit({"b": "2\n"})
    (active,), warnings = promote_waiting(opened(repo), caller(repo, 301))
    assert (active.id, active.state, active.base, warnings) == (waiting.id, State.ACTIVE, waiting.base, ())
    assert stored(repo)[waiting.id] == active
    assert find_intents(opened(repo), None, caller(repo, 301)) == (active,)


def test_to_look_at_one_that_waits_names_it_as_active_and_says_so(tmp_path: Path) -> None:
    repo, other = two(tmp_path)
    with Short() as pid:
        said = other.cli(
            *("intent", "declare", "-m", "due now", "--allow", "a", "--lease", "1s", "--format", "json"),
            PATCHGATE_OWNER=pid,
        )
    first = said.report["intent"]["id"]
    queued = repo.cli("intent", "declare", "-m", "due then", "--allow", "a", "--queue", "--format", "json")
    name = queued.report["intent"]["id"]
    assert f"{name} (queued)" in repo.cli("intent", "show").out
    intents = StoredIntents(opened(repo).common_dir)
    intents.remove(first)
    listed = repo.cli("intent", "list")
    assert "queued" in listed.out
    shown = repo.cli("intent", "show")
    assert (shown.code, f"{name} (active)" in shown.out) == (0, True)
    assert f"{name} is active now" in shown.err


def test_what_cannot_be_changed_can_be_looked_at(tmp_path: Path) -> None:
    repo, other = two(tmp_path)
    first = of(declared(other, ["a"]))
    waiting = of(declared(repo, ["a"], queue=True))
    StoredIntents(opened(repo).common_dir).remove(first.id)
    ledger = Path(opened(repo).common_dir, "patchgate", "events.jsonl")
    ledger.rename(ledger.with_name("aside"))
    ledger.mkdir()
    promoted, (warning,) = promote_waiting(opened(repo), caller(repo, 10))
    assert (promoted, waiting.id in warning) == ((), True)
    assert [each.state for each in find_intents(opened(repo), None, caller(repo, 10))] == [State.QUEUED]


def test_a_dead_one_in_the_queue_is_passed_over(tmp_path: Path) -> None:
    repo, other = two(tmp_path)
    first = of(declared(other, ["a"]))
    dead = of(declared(repo, ["a"], lasting=False, queue=True))
    live = of(declared(other, ["a"], 5, queue=True))
    done = clear(opened(other), first.id, caller(repo, 400))
    assert [each.id for each in done.promoted] == [live.id]
    assert stored(repo)[dead.id].state is State.QUEUED
    assert promote_waiting(opened(repo), caller(repo, 401)) == ((), ())


def test_a_dead_one_is_recovered_and_neither_renewed_nor_kept_alive_by_a_look(tmp_path: Path) -> None:
    repo, _ = two(tmp_path)
    dead = of(declared(repo, ["a"], lasting=False))
    assert is_alive(dead, caller(repo, 300).now)
    assert find_intents(opened(repo), None, caller(repo, 301)) == (dead,)
    for name in (None, dead.id):
        refused = renew(opened(repo), name, caller(repo, 302))
        assert (refused.action, refused.exit_code) == (IntentAction.REFUSED, 1)
        assert f"git patchgate intent recover {dead.id}" in (refused.hint or "")
        assert "has ended" in (refused.reason or "")
    assert stored(repo)[dead.id] == dead


def test_the_hint_of_one_that_waits_is_the_step_that_makes_it_active(tmp_path: Path) -> None:
    repo, other = two(tmp_path)
    for each, more in ((other, ()), (repo, ("--queue",))):
        assert each.cli("intent", "declare", "-m", "due now", "--allow", "a", *more).code == 0
    repo.stage({"a": "2\n"})
    (waits,) = [each for each in repo.check().findings if each["rule"] == "intent-queued"]
    assert "git patchgate intent show" in waits["hint"]
