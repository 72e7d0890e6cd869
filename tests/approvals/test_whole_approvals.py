"""An approval is for a whole change: no merge lands a part of it, and no other landing takes it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approvals.owners_world import GOVERNED, OWNED, Team, key_of
from tests.approvals.test_owner_attacks import (
    INFRA,
    PROTECTED,
    clean_merge,
    commit_of,
    land,
    on_server,
    refused,
)
from tests.signing import SIGNERS, needs_ssh_keygen

pytestmark = [needs_ssh_keygen, pytest.mark.turns(4)]

MAIN = "refs/heads/main"
ALL = '[policy]\n[[owners]]\npaths = ["@policy", "infra/**"]\n[governance]\nid = "repository-1"\n'
ONLY_ALICE = ALL.replace('"infra/**"]\n', '"infra/**"]\nsigners = ["alice@example.com"]\n')
TWO_OWNERS = GOVERNED + "".join(
    f'[[owners]]\npaths = ["{name}/**"]\nsigners = ["{who}@example.com"]\n'
    for name, who in (("infra", "alice"), ("db", "bob"))
)
TWO = {"infra/a": "A\n", "infra/b": "B\n"}
PROJECT = (
    '[project]\nname = "x"\n[[tool.patchgate.owners]]\npaths = ["@policy"]\n'
    '[tool.patchgate.governance]\nid = "repository-1"\n'
)


def of_alice(team: Team, base: str, files: dict[str, str | None], *refs: str) -> str:
    """Make a commit, and let alice approve it for each ref."""
    commit = commit_of(team.dev, base, files)
    for ref in refs or (MAIN,):
        assert team.approve("alice", commit, "--for", ref).code == 0
    return commit


def keys(team: Team, *names: str) -> str:
    return "".join(team.keys[name].allowed(f"{name}@example.com") for name in names)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2)])
def test_a_merge_lands_no_part_of_an_approved_commit(tmp_path: Path, order: tuple[int, ...]) -> None:
    team = Team.make(tmp_path, INFRA)
    start = team.head()
    whole = of_alice(team, start, {**TWO})
    parents = (start, whole, commit_of(team.dev, start, {"z": "1\n"}))
    half = commit_of(team.dev, start, {"infra/a": "A\n"}, *(parents[each] for each in order))
    said = refused(team, f"{half}:{MAIN}")
    assert "infra/b" in said
    assert whole[:12] in said
    assert team.push(f"{whole}:{MAIN}").code == 0


def test_a_key_lands_only_with_the_table_that_was_approved_with_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, ALL)
    start = team.head()
    both = of_alice(team, start, {"patchgate.toml": ONLY_ALICE, SIGNERS: keys(team, "alice", "mallory")})
    half = commit_of(team.dev, both, {"patchgate.toml": ALL}, start, both)
    assert "patchgate.toml" in refused(team, f"{half}:{MAIN}")
    checked = team.dev.check("--policy-from", "refs/remotes/origin/main", f"origin/main..{half}", CI="true")
    assert checked.errors == ["owner-approval-missing"]


def test_the_first_table_lands_with_the_key_that_was_approved_with_it(tmp_path: Path) -> None:
    """Before it nobody owns the rules, but the list of signers."""
    team = Team.make(tmp_path, '[policy]\n[governance]\nid = "repository-1"\n')
    start = team.head()
    both = of_alice(team, start, {"patchgate.toml": ONLY_ALICE, SIGNERS: keys(team, "alice", "mallory")})
    half = commit_of(team.dev, start, {SIGNERS: keys(team, "alice", "mallory")}, start, both)
    assert "patchgate.toml" in refused(team, f"{half}:{MAIN}")
    answer = team.push(f"{both}:{MAIN}")
    assert answer.code == 0, answer.err


def test_who_the_server_names_decides_nothing_about_other_paths(tmp_path: Path) -> None:
    """One table owns both: bob, whom it does not name, may approve control files alone."""
    owned = GOVERNED + '[[owners]]\npaths = ["@policy", "infra/**"]\nsigners = ["alice@example.com"]\n'
    team = Team.make(tmp_path, owned.replace(OWNED, ""), server_signers=("bob",))
    where = ("--policy-from", "refs/remotes/origin/main")
    start = team.head()
    whole = of_alice(team, start, {"infra/guard": "on\n", "infra/door": "open\n"})
    about = ".patchgate/about"
    sides = [commit_of(team.dev, base, {about: text}) for base, text in ((start, "1\n"), (whole, "2\n"))]
    merge = commit_of(team.dev, sides[1], {about: "12\n", "infra/guard": None}, *sides)
    for each in (*sides, merge):
        assert team.approve("bob", each, "--for", MAIN, *where).code == 0
    assert "infra/guard" in refused(team, f"{merge}:{MAIN}")


def test_a_merge_drops_no_approved_commit_below_one_that_lands(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    start = team.head()
    guard = of_alice(team, start, {"infra/guard": "on\n"})
    door = of_alice(team, guard, {"infra/door": "open\n"})
    left = commit_of(team.dev, start, {"infra/door": "open\n"}, start, door)
    said = refused(team, f"{left}:{MAIN}")
    assert "infra/guard" in said
    assert guard[:12] in said
    assert team.push(f"{door}:{MAIN}").code == 0


def test_halves_of_two_approved_commits_make_no_state_that_nobody_has_seen(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    start = team.head()
    one, other = of_alice(team, start, {**TWO}), of_alice(team, start, {"infra/a": "C\n", "infra/b": "D\n"})
    mixed = commit_of(team.dev, start, {"infra/a": "A\n", "infra/b": "D\n"}, one, other)
    refused(team, f"{mixed}:{MAIN}")


def test_a_later_approved_commit_replaces_only_what_it_began_with(tmp_path: Path) -> None:
    """Two proposals share a file: a merge takes that back between them: the rest of the first would land."""
    team = Team.make(tmp_path, INFRA)
    start = team.head()
    first, _ = of_alice(team, start, {**TWO}), of_alice(team, start, {"infra/b": "D\n"})
    back = commit_of(team.dev, first, {"infra/b": None}, start, first)
    tip = commit_of(team.dev, back, {"infra/b": "D\n"})
    assert "infra/b" in refused(team, f"{tip}:{MAIN}")
    assert team.push(f"{commit_of(team.dev, start, {'infra/b': 'D' + chr(10)})}:{MAIN}").code == 0


def test_an_approved_revert_is_no_way_to_what_an_older_approval_began_with(tmp_path: Path) -> None:
    """Nothing of the revert would be left: its guard is taken back, and its file becomes another."""
    team = Team.make(tmp_path, INFRA)
    old = land(team, {"infra/a": "1\n"})
    pending = of_alice(team, old, {"infra/a": "3\n"})
    start = land(team, {"infra/a": "2\n"})
    revert = of_alice(team, start, {"infra/a": "1\n", "infra/guard": "on\n"})
    half = commit_of(team.dev, revert, {"infra/guard": None}, start, revert)
    said = refused(team, f"{clean_merge(team.dev, half, pending)}:{MAIN}")
    assert "infra/a" in said
    assert pending[:12] in said
    # The same change on top of the revert is approved.
    again = commit_of(team.dev, revert, {"infra/a": "3\n"})
    assert team.push(f"{again}:{MAIN}").code == 0


def test_the_merge_that_a_head_will_get_lands_no_part(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    where = ("--policy-from", "refs/remotes/origin/main")
    start = land(team, {"infra/guard": "1\n"})
    both = of_alice(team, start, {"infra/door": "open\n", "infra/guard": "2\n"})
    head = of_alice(team, both, {"infra/guard": "1\n"})
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    checked = team.dev.check(*where, f"refs/remotes/origin/main..{head}", CI="true")
    assert checked.code == 0, checked.err
    land(team, {"infra/guard": "3\n"})
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    checked = team.dev.check(*where, f"refs/remotes/origin/main..{head}", CI="true")
    assert checked.errors == ["owner-approval-missing"]


def test_a_merge_lands_no_part_of_an_approved_exception(tmp_path: Path) -> None:
    team = Team.make(tmp_path, '[policy]\ndeny = ["secret/**"]\n[governance]\nid = "repository-1"\n')
    start = team.head()
    whole = of_alice(team, start, {"secret/door": "open\n", "secret/guard": "on\n", "z": "1\n"})
    half = commit_of(team.dev, whole, {"secret/guard": None}, start, whole)
    said = refused(team, f"{half}:{MAIN}")
    assert "secret/guard" in said
    assert whole[:12] in said
    other = commit_of(team.dev, whole, {"z": "2\n"})
    answer = team.push(f"{other}:{MAIN}")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("ref", [MAIN, "refs/heads/release/1"])
def test_a_merge_that_has_a_file_as_the_branch_has_it_hides_no_part(tmp_path: Path, ref: str) -> None:
    """Both its parents have the file otherwise; for the branch it changes nothing."""
    policy = '[policy]\ndeny = ["secret/**"]\n[governance]\nid = "repository-1"\n' + PROTECTED
    team = Team.make(tmp_path, policy)
    old = team.head()
    start = land(team, {"secret/guard": "0\n"})
    whole = of_alice(team, start, {"secret/door": "open\n", "secret/guard": "on\n"}, ref)
    half = commit_of(team.dev, whole, {"secret/guard": "0\n"}, whole, old)
    assert "secret/guard" in refused(team, f"{half}:{ref}")
    on_top = commit_of(team.dev, half, {}, start, half)
    assert "secret/guard" in refused(team, f"{on_top}:{ref}")


def test_what_everybody_may_do_with_a_denied_path_is_no_way_to_a_part(tmp_path: Path) -> None:
    policy = (
        '[policy]\ndeny = ["secret/**"]\nallow_delete = ["secret/**"]\n[governance]\nid = "repository-1"\n'
    )
    team = Team.make(tmp_path, policy)
    start = land(team, {"secret/guard": "0\n"})
    whole = of_alice(team, start, {"secret/door": "open\n", "secret/guard": "on\n"})
    fewer = commit_of(team.dev, whole, {"secret/guard": None})
    half = commit_of(team.dev, fewer, {"secret/guard": "0\n"}, start, fewer)
    assert "secret/guard" in refused(team, f"{half}:{MAIN}")
    assert team.push(f"{fewer}:{MAIN}").code == 0


def test_what_everybody_may_do_with_a_denied_path_needs_no_approval_after_one(tmp_path: Path) -> None:
    policy = (
        '[policy]\ndeny = ["secret/**"]\nallow_delete = ["secret/**"]\n[governance]\nid = "repository-1"\n'
    )
    team = Team.make(tmp_path, policy)
    whole = of_alice(team, team.head(), {"secret/a": "1\n", "secret/b": "1\n"})
    fewer = commit_of(team.dev, whole, {"secret/a": None})
    answer = team.push(f"{fewer}:{MAIN}")
    assert answer.code == 0, answer.err


def test_the_merge_that_a_head_will_get_takes_no_part_where_it_joins_what_main_has(tmp_path: Path) -> None:
    """Main has both changes of a file at once; the merge of the second leaves that as it is."""
    team = Team.make(tmp_path, INFRA)
    where = "refs/remotes/origin/main"
    lines = "".join(f"{number}\n" for number in range(30))
    start = land(team, {"infra/guard": lines})
    once, twice = f"first\n{lines}", f"first\n{lines}last\n"
    below = of_alice(team, start, {"infra/guard": twice})
    head = of_alice(team, below, {"infra/guard": once, "infra/door": "open\n"})
    newer = commit_of(team.dev, commit_of(team.dev, start, {"z": "1\n"}), {"infra/guard": twice})
    assert team.push(f"{newer}:{MAIN}").code == 0
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:{where}")
    merge = clean_merge(team.dev, newer, head)
    assert team.dev.git("show", f"{merge}:infra/guard").decode() == twice
    checked = team.dev.check("--policy-from", where, f"{where}..{head}", CI="true")
    assert checked.errors == ["owner-approval-missing"]
    refused(team, f"{merge}:{MAIN}")


def test_the_approval_of_a_commit_allows_no_merge_that_a_head_will_get(tmp_path: Path) -> None:
    """Main has moved a file; git's merge makes the change of the head there."""
    team = Team.make(tmp_path, INFRA)
    where, lines = "refs/remotes/origin/main", "".join(f"{number}\n" for number in range(30))
    start = commit_of(team.dev, team.head(), {"x": lines})
    on_server(team, "main", start)
    moved = land(team, {"x": None, "infra/x": lines})
    pending = of_alice(team, moved, {"infra/x": lines + "open\n"})
    head = commit_of(team.dev, start, {"x": lines + "open\n"})
    merge = clean_merge(team.dev, moved, head)
    assert team.dev.ask("rev-parse", f"{merge}^{{tree}}") == team.dev.ask("rev-parse", f"{pending}^{{tree}}")
    refused(team, f"{merge}:{MAIN}")
    checked = team.dev.check("--policy-from", where, f"{where}..{head}", CI="true")
    assert checked.errors == ["owner-approval-missing"]


def test_a_lower_commit_of_a_stack_that_is_made_again_replaces_none_above_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, ALL)
    start, where = team.head(), ("--policy-from", "refs/remotes/origin/main")
    more = "[content]\nconflict_markers = true\n"
    lower = of_alice(team, start, {"patchgate.toml": ALL + more})
    above = {"patchgate.toml": ONLY_ALICE + more, SIGNERS: keys(team, "alice", "mallory")}
    upper = commit_of(team.dev, lower, above)
    assert team.approve("alice", upper, "--for", MAIN, *where).code == 0
    back = commit_of(team.dev, upper, {"patchgate.toml": ALL}, start, upper)
    tip = commit_of(team.dev, back, {"patchgate.toml": ALL + more})
    assert "patchgate.toml" in refused(team, f"{tip}:{MAIN}")
    checked = team.dev.check(*where, f"refs/remotes/origin/main..{tip}", CI="true")
    assert "owner-approval-missing" in checked.errors
    assert team.push(f"{upper}:{MAIN}").code == 0


def test_an_approved_merge_replaces_what_it_solves(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    start = team.head()
    first = of_alice(team, start, {**TWO})
    land(team, {"infra/b": "C\n"})
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    there = team.dev.ask("rev-parse", "refs/remotes/origin/main")
    merge = commit_of(team.dev, first, {"infra/b": "BC\n"}, there, first)
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    above = of_alice(team, merge, {"infra/b": "D\n"})
    for landing in (merge, above):
        answer = team.push(f"{landing}:{MAIN}")
        assert answer.code == 0, answer.err


def test_an_approved_merge_replaces_nothing_that_it_never_had(tmp_path: Path) -> None:
    """Its approval is for its tree."""
    team = Team.make(tmp_path, INFRA)
    lines = "".join(f"{number}\n" for number in range(30))
    start = land(team, {"infra/b": lines})
    first = of_alice(team, start, {"infra/a": "open\n", "infra/b": "guard\n" + lines})
    other = of_alice(team, start, {"infra/b": lines + "last\n"})
    merged = {"infra/b": lines + "last\nmore\n"}
    where = ("--policy-from", "refs/remotes/origin/main")
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    merge = commit_of(team.dev, start, merged, start, other)
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    half = commit_of(team.dev, first, {"infra/b": lines}, start, first)
    assert "infra/b" in refused(team, f"{clean_merge(team.dev, merge, half)}:{MAIN}")


def test_who_solves_a_conflict_brings_no_files_of_others(tmp_path: Path) -> None:
    """Bob solves it in his file: alice has not seen her part of the commit beside what has landed."""
    team = Team.make(tmp_path, TWO_OWNERS, signers=("alice", "bob"))
    where = ("--policy-from", "refs/remotes/origin/main")
    start = team.head()
    both = commit_of(team.dev, start, {**TWO, "db/x": "1\n"})
    theirs = commit_of(team.dev, start, {"db/x": "2\n"})
    for who, change in (("alice", both), ("bob", both), ("bob", theirs)):
        assert team.approve(who, change, "--for", MAIN).code == 0
    assert team.push(f"{theirs}:{MAIN}").code == 0
    for left_out, place in (({}, "db/x"), ({"infra/b": None}, "infra/b")):
        merge = commit_of(team.dev, both, {"db/x": "12\n", **left_out}, theirs, both)
        assert team.approve("bob", merge, "--for", MAIN, *where).code == 0
        said = refused(team, f"{merge}:{MAIN}")
        assert place in said
        assert both[:12] in said
    rebased = commit_of(team.dev, theirs, {**TWO, "db/x": "12\n"})
    for who in ("alice", "bob"):
        assert team.approve(who, rebased, "--for", MAIN).code == 0
    assert team.push(f"{rebased}:{MAIN}").code == 0


def test_commits_that_two_branches_have_came_in_one_order_on_both(tmp_path: Path) -> None:
    """After the one a guard is turned off for a while, after the other one a door is opened: never both."""
    team = Team.make(tmp_path, INFRA)
    start = land(team, {f"infra/{name}": "0\n" for name in ("guard", "door", "a", "b", "c", "d")})

    def line(*changes: str) -> str:
        tip = start
        for change in changes:
            files = dict(each.split("=") for each in change.split())
            tip = of_alice(team, tip, {f"infra/{name}": f"{value}\n" for name, value in files.items()})
        return tip

    one = line("a=1 d=2", "a=3 b=1 guard=1", "a=1 b=0", "c=1 b=2")
    other = line("c=1 b=2", "c=3 d=1 door=1", "c=1 d=0", "a=1 d=2")
    refused(team, f"{clean_merge(team.dev, one, other)}:{MAIN}")
    # The first two alone are whole, and so is either line.
    both = line("a=1 d=2", "c=1 b=2")
    again = clean_merge(team.dev, both, line("c=1 b=2", "a=1 d=2"))
    assert team.push(f"{again}:{MAIN}").code == 0


def test_who_owns_a_file_decides_nothing_about_the_rules_in_it(tmp_path: Path) -> None:
    """Bob solves a conflict about dependencies: a key lands with the table that was approved with it."""
    of_bob = '[[tool.patchgate.owners]]\npaths = ["pyproject.toml"]\nsigners = ["bob@example.com"]\n'
    infra = '[[tool.patchgate.owners]]\npaths = ["infra/**"]\nsigners = ["alice@example.com"]\n'

    def project(dependency: str, tables: str) -> str:
        return (
            f'[project]\nname = "x"\ndependencies = ["{dependency}"]\n'
            '[[tool.patchgate.owners]]\npaths = ["@policy"]\nsigners = ["alice@example.com"]\n'
            f'{of_bob}{tables}[tool.patchgate.governance]\nid = "repository-1"\n'
        )

    team = Team.make(tmp_path, GOVERNED, signers=("alice", "bob"))
    keys = team.dev.git("show", f"HEAD:{SIGNERS}").decode() + key_of("mallory").allowed("mallory@example.com")
    start = commit_of(team.dev, team.head(), {"patchgate.toml": None, "pyproject.toml": project("a==0", "")})
    on_server(team, "main", start)
    team.dev.git("fetch", "-q", "origin")
    whole = commit_of(team.dev, start, {"pyproject.toml": project("a==0", infra), SIGNERS: keys})
    sides = [
        commit_of(team.dev, base, {"pyproject.toml": project(dependency, tables)})
        for base, dependency, tables in ((start, "a==1", ""), (whole, "a==2", infra))
    ]
    merge = commit_of(team.dev, sides[1], {"pyproject.toml": project("a==3", "")}, *sides)
    where = ("--policy-from", "refs/remotes/origin/main")
    for who, change in (("alice", whole), *(("bob", each) for each in (whole, *sides, merge))):
        assert team.approve(who, change, "--for", MAIN, *where).code == 0
    said = refused(team, f"{merge}:{MAIN}")
    assert "pyproject.toml" in said
    assert whole[:12] in said


def test_an_approved_merge_takes_nothing_back_of_what_it_did_not_touch(tmp_path: Path) -> None:
    """It is of an older main, and comes with a change of what main has got since."""
    team = Team.make(tmp_path, INFRA)
    old = land(team, {"infra/a": "0\n", "infra/x": "1\n"})
    sides = [of_alice(team, old, {"infra/a": text}) for text in ("1\n", "2\n")]
    merge = commit_of(team.dev, sides[0], {"infra/a": "12\n"}, *sides)
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    now = land(team, {"infra/x": "2\n"})
    newer = of_alice(team, now, {"infra/x": "3\n"})
    answer = team.push(f"{clean_merge(team.dev, newer, merge)}:{MAIN}")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("is_beside", [True, False])
def test_who_approves_a_merge_decides_nothing_about_the_paths_of_others(
    tmp_path: Path, is_beside: bool
) -> None:
    """Bob's merge takes back a guard of alice's, below what lands with it or beside that."""
    team = Team.make(tmp_path, TWO_OWNERS, signers=("alice", "bob"))
    start = team.head()
    whole = of_alice(team, start, {"infra/guard": "on\n", "infra/door": "open\n"})
    guard = of_alice(team, start, {"infra/guard": "on\n"})
    first = start if is_beside else commit_of(team.dev, whole, {"infra/guard": None}, start, whole)
    sides = [
        commit_of(team.dev, base, {"db/x": text})
        for base, text in ((first, "1\n"), (guard if is_beside else whole, "2\n"))
    ]
    merge = commit_of(team.dev, sides[0], {"db/x": "12\n"}, *sides)
    for change in (*sides, merge):
        where = ("--policy-from", "refs/remotes/origin/main")
        assert team.approve("bob", change, "--for", MAIN, *where).code == 0
    tip = commit_of(team.dev, merge, {"infra/door": "open\n"}, merge, whole) if is_beside else merge
    assert "infra/guard" in refused(team, f"{tip}:{MAIN}")


def test_who_approves_a_merge_is_shown_what_it_leaves_out(tmp_path: Path) -> None:
    """It counts with its tree, for the paths of those who approve it: also where it drops a guard."""
    team = Team.make(tmp_path, TWO_OWNERS, signers=("alice", "bob"))
    other = land(team, {"infra/x": "2\n", "infra/y": "1\n"})
    both: dict[str, str | None] = {
        "infra/guard": "on\n",
        "infra/door": "open\n",
        "infra/x": "1\n",
        "db/y": "1\n",
    }
    whole = of_alice(team, team.dev.ask("rev-parse", f"{other}~"), both)
    merge = commit_of(
        team.dev,
        whole,
        {"infra/x": "12\n", "infra/y": "1\n", "db/y": None, "infra/guard": None},
        other,
        whole,
    )
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    answer = team.approve("alice", merge, "--for", MAIN, "--policy-from", "refs/remotes/origin/main")
    assert answer.code == 0
    # Other owners may be asked about db/y; it is listed for all.
    assert [line.strip() for line in answer.err.splitlines() if " has it" in line] == [
        f"{path}, as {other[:12]} has it" for path in ("db/y", "infra/guard")
    ]


def test_an_approved_merge_is_no_revert_of_what_its_parents_have(tmp_path: Path) -> None:
    """Its sides differ in a guard, and another approved commit brings that: it takes no part of this back."""
    team = Team.make(tmp_path, INFRA)
    where = ("--policy-from", "refs/remotes/origin/main")
    old = land(team, {"infra/a": "0\n", "infra/guard": "on\n"})
    start = land(team, {"infra/guard": "off\n"})
    whole = of_alice(team, start, {"infra/guard": "on\n", "infra/door": "open\n"})
    one, other = (of_alice(team, base, {"infra/a": text}) for base, text in ((start, "1\n"), (old, "2\n")))
    merge = commit_of(team.dev, one, {"infra/a": "12\n"}, one, other)
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    half = commit_of(team.dev, merge, {"infra/door": "open\n"}, merge, whole)
    assert "infra/guard" in refused(team, f"{half}:{MAIN}")
    checked = team.dev.check(*where, f"refs/remotes/origin/main..{half}", CI="true")
    assert "owner-approval-missing" in checked.errors
    answer = team.push(f"{clean_merge(team.dev, merge, whole)}:{MAIN}")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("is_merge", [True, False])
def test_a_merge_that_another_owner_approved_lands_with_the_approved_commits_below_it(
    tmp_path: Path, is_merge: bool
) -> None:
    """Bob approved it with alice's guard in its tree."""
    team = Team.make(tmp_path, TWO_OWNERS, signers=("alice", "bob"))
    start = team.head()
    guard = of_alice(team, start, {"infra/guard": "on\n"})
    door = {"db/door": "open\n"}
    sides = (guard, commit_of(team.dev, guard, {"readme": "1\n"})) if is_merge else (guard,)
    made = commit_of(team.dev, sides[-1], door, *sides)
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("bob", made, "--for", MAIN, *where).code == 0
    assert "infra/guard" in refused(team, f"{commit_of(team.dev, start, door, start, made)}:{MAIN}")
    answer = team.push(f"{made}:{MAIN}")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("is_of_bob", [False, True])
def test_an_approved_merge_decides_only_what_was_shown_of_it(tmp_path: Path, is_of_bob: bool) -> None:
    """Merges below it that asked nobody have left out a guard, so git merges it so."""
    team = Team.make(tmp_path, TWO_OWNERS, signers=("alice", "bob"))
    where = ("--policy-from", "refs/remotes/origin/main")
    start, door = team.head(), "db/door" if is_of_bob else "infra/door"
    files: dict[str, str | None] = {"infra/guard": "on\n", door: "open\n"}
    whole = of_alice(team, start, files)
    again = of_alice(team, start, {**files, "readme": "1\n"})
    for each in (whole, again) if is_of_bob else ():
        assert team.approve("bob", each, "--for", MAIN).code == 0
    shut = commit_of(team.dev, whole, {door: None}, start, whole)
    half = commit_of(team.dev, shut, {"infra/guard": None, door: "open\n"}, shut, again)
    joined = "db/x" if is_of_bob else "infra/x"
    who = "bob" if is_of_bob else "alice"
    sides = [commit_of(team.dev, base, {joined: text}) for base, text in ((half, "1\n"), (shut, "2\n"))]
    merge = commit_of(team.dev, sides[0], {joined: "12\n"}, *sides)
    for each in (*sides, merge):
        assert team.approve(who, each, "--for", MAIN, *where).code == 0
    assert "infra/guard" in refused(team, f"{merge}:{MAIN}")


def test_an_approved_merge_is_approved_with_what_it_joins(tmp_path: Path) -> None:
    """Whoever makes it again would choose in what its parents differ."""
    team = Team.make(tmp_path, INFRA)
    where = ("--policy-from", "refs/remotes/origin/main")
    start = land(team, {"infra/a": "0\n"})
    one, other = (of_alice(team, start, {"infra/a": text}) for text in ("1\n", "2\n"))
    merge = commit_of(team.dev, one, {"infra/a": "12\n"}, one, other)
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    for parents in ((one, commit_of(team.dev, other, {})), (other, one)):
        again = commit_of(team.dev, one, {"infra/a": "12\n"}, *parents)
        assert again[:12] in refused(team, f"{again}:{MAIN}")
    answer = team.push(f"{merge}:{MAIN}")
    assert answer.code == 0, answer.err


def test_an_approved_merge_does_not_stand_for_what_all_that_it_joins_has(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    where = ("--policy-from", "refs/remotes/origin/main")
    start = land(team, {"infra/guard": "off\n"})
    below = of_alice(team, start, {"infra/guard": "on\n"})
    sides = [of_alice(team, below, {"infra/a": text}) for text in ("1\n", "2\n")]
    merge = commit_of(team.dev, sides[0], {"infra/a": "12\n"}, *sides)
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    assert team.approve("alice", merge, "--for", MAIN, *where).code == 0
    door = of_alice(team, merge, {"infra/door": "open\n"})
    half = commit_of(team.dev, door, {"infra/guard": "off\n"}, start, door)
    assert "infra/guard" in refused(team, f"{half}:{MAIN}")
    assert team.push(f"{door}:{MAIN}").code == 0


def test_a_project_file_whose_table_names_it_and_the_rules_lands_in_two_steps(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    project = PROJECT.replace('["@policy"]', '["@policy", "pyproject.toml"]')
    base = commit_of(team.dev, team.head(), {"patchgate.toml": None, "pyproject.toml": project})
    on_server(team, "main", base)
    looser = project + "[tool.patchgate.content]\nsecrets = false\n"
    first = of_alice(team, base, {"pyproject.toml": looser})
    second = commit_of(team.dev, first, {"pyproject.toml": looser.replace('"x"', '"y"')})
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("alice", second, "--for", MAIN, *where).code == 0
    answer = team.push(f"{second}:{MAIN}")
    assert answer.code == 0, answer.err


def test_no_text_merge_hides_a_part_of_an_approved_policy_in_a_project_file(tmp_path: Path) -> None:
    """Main has moved a table, which changes no rule: git puts the line of the head below another one."""
    team = Team.make(tmp_path, "[policy]\n")
    where = "refs/remotes/origin/main"
    governed = '[tool.patchgate.governance]\nid = "repository-1"\n'
    table = '[[tool.patchgate.owners]]\npaths = ["@policy", "infra/**"]\n'
    notes, added = [f"# {number}\n" for number in range(6)], 'signers = ["alice@example.com"]\n'
    more = "".join([*notes[:3], added, *notes[3:]])
    other = "[tool.other]\n", "x = 1\n"

    def project(*parts: str) -> dict[str, str | None]:
        return {"patchgate.toml": None, "pyproject.toml": governed + "".join(parts)}

    start = commit_of(team.dev, team.head(), project(table, *notes, *other))
    now = commit_of(team.dev, start, project(other[0], *notes, other[1], table))
    signers: dict[str, str | None] = {SIGNERS: keys(team, "alice", "mallory")}
    head = commit_of(team.dev, start, project(table, more, *other) | signers)
    on_server(team, "main", now)
    assert team.approve("alice", head, "--for", MAIN).code == 0
    merge = clean_merge(team.dev, now, head)
    checked = team.dev.check("--policy-from", where, f"{where}..{head}", CI="true")
    assert "owner-approval-missing" in checked.errors
    refused(team, f"{merge}:{MAIN}")


def test_what_a_later_approved_commit_makes_of_the_rest_is_whole(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    first = of_alice(team, team.head(), {**TWO})
    between = commit_of(team.dev, first, {"y": "1\n"})
    second = of_alice(team, between, {"infra/b": None})
    other = commit_of(team.dev, team.head(), {"z": "1\n"})
    merge = clean_merge(team.dev, other, second)
    assert team.push(f"{merge}:{MAIN}").code == 0


KINDS = '[policy]\ndeny_suffixes = [".jar"]\ndeny_classes = ["binary"]\n' + INFRA.removeprefix("[policy]\n")


@pytest.mark.parametrize(
    ("suffix", "content"), [(".jar", "jar\n"), ("", "\0jar\n")], ids=["suffix", "binary"]
)
@pytest.mark.parametrize("is_back", [True, False])
def test_no_part_of_an_approved_commit_comes_by_moves(
    tmp_path: Path, suffix: str, content: str, is_back: bool
) -> None:
    """A file of a denied kind moves without an approval, but not away from what was approved with it."""
    team = Team.make(tmp_path, KINDS)
    dev, start = team.dev, land(team, {"infra/guard": "off\n"})
    door, other = f"vendor/door{suffix}", f"vendor/x{suffix}"
    whole = of_alice(team, start, {door: content, "infra/guard": "on\n"})
    away: dict[str, str | None] = {door: None, other: content}
    moved = commit_of(dev, whole, away)
    last = commit_of(dev, moved, {other: None, door: content}) if is_back else moved
    off: dict[str, str | None] = {"infra/guard": "off\n"}
    for half in (commit_of(dev, last, off, start, last), commit_of(dev, whole, away | off, start, whole)):
        said = refused(team, f"{half}:{MAIN}")
        assert other in said or "infra/guard" in said
    for tip in (whole, moved):
        answer = team.push(f"{tip}:{MAIN}")
        assert answer.code == 0, answer.err


def test_the_merge_of_an_old_branch_ends_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED)
    old = commit_of(team.dev, team.head(), {"feature": "1\n"})
    land(team, {"patchgate.toml": GOVERNED + "[content]\nsecrets = false\n"})
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    pending = of_alice(team, team.head(), {"patchgate.toml": GOVERNED})
    merge = clean_merge(team.dev, team.head(), old)
    assert team.push(f"{merge}:{MAIN}").code == 0
    landing = clean_merge(team.dev, merge, pending)
    answer = team.push(f"{landing}:{MAIN}")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("is_first", [True, False])
def test_the_merge_that_undoes_a_change_of_the_rules_ends_the_approvals_before_it(
    tmp_path: Path, is_first: bool
) -> None:
    team = Team.make(tmp_path, GOVERNED)
    start = team.head()
    land(team, {"patchgate.toml": GOVERNED + "[content]\nsecrets = false\n"})
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    pending = of_alice(team, team.head(), {SIGNERS: keys(team, "alice", "mallory")})
    other = commit_of(team.dev, start, {"z": "1\n"})
    parents = (team.head(), other) if is_first else (other, team.head())
    undone = commit_of(team.dev, team.head(), {"patchgate.toml": GOVERNED, "z": "1\n"}, *parents)
    on_server(team, "main", undone)
    refused(team, f"{commit_of(team.dev, undone, {SIGNERS: keys(team, 'alice', 'mallory')})}:{MAIN}")
    assert pending


def test_a_change_that_was_approved_for_two_branches_lands_in_both_at_once(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    on_server(team, "release/1", team.head())
    release = "refs/heads/release/1"
    change = of_alice(team, team.head(), {"infra/main.tf": "2\n"}, MAIN, release)
    answer = team.push(f"{change}:{MAIN}", f"{change}:{release}")
    assert answer.code == 0, answer.err
    only = of_alice(team, change, {"infra/main.tf": "3\n"}, MAIN)
    refused(team, f"{only}:{MAIN}", f"{only}:{release}")


def test_of_an_approved_policy_in_a_project_file_only_the_policy_was_approved(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    base = commit_of(team.dev, team.head(), {"patchgate.toml": None, "pyproject.toml": PROJECT})
    on_server(team, "main", base)
    looser = PROJECT + "[tool.patchgate.content]\nsecrets = false\n"
    change = of_alice(team, base, {"pyproject.toml": looser})
    renamed = commit_of(team.dev, change, {"pyproject.toml": looser.replace('"x"', '"y"')})
    further = commit_of(team.dev, change, {"pyproject.toml": looser + "secrets_level = 1\n"})
    refused(team, f"{further}:{MAIN}")
    answer = team.push(f"{renamed}:{MAIN}")
    assert answer.code == 0, answer.err


def test_what_merges_that_cross_carry_into_new_folders_is_judged(tmp_path: Path) -> None:
    team = Team.make(tmp_path, ALL)
    left, right = (commit_of(team.dev, team.head(), {f"{name}/1": "1\n"}) for name in ("f", "g"))
    for number in range(3):
        files = {f"h/{number}": "1\n"}, {f"k/{number}": "1\n"}
        left, right = (
            commit_of(team.dev, left, {**files[0]}, left, right),
            commit_of(team.dev, right, {**files[1]}, right, left),
        )
    answer = team.push(f"{commit_of(team.dev, left, {}, left, right)}:{MAIN}")
    assert answer.code == 0, answer.err


def test_another_text_of_an_approved_policy_hides_no_part_of_its_commit(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    base = commit_of(team.dev, team.head(), {"patchgate.toml": None, "pyproject.toml": PROJECT})
    on_server(team, "main", base)
    looser = PROJECT + "[tool.patchgate.content]\nsecrets = false\n"
    both = of_alice(team, base, {"pyproject.toml": looser, SIGNERS: keys(team, "alice", "bob")})
    renamed = commit_of(team.dev, both, {"pyproject.toml": looser.replace('"x"', '"y"')})
    signers = team.dev.git("show", f"{base}:{SIGNERS}").decode()
    half = commit_of(team.dev, renamed, {SIGNERS: signers}, base, renamed)
    assert SIGNERS in refused(team, f"{half}:{MAIN}")


@pytest.mark.parametrize("has_landed", [True, False])
def test_a_revert_that_does_not_land_itself_replaces_nothing(tmp_path: Path, has_landed: bool) -> None:
    team = Team.make(tmp_path, ALL)
    files: dict[str, str | None] = {"infra/door": "open\n", "infra/guard": "on\n"}
    first = of_alice(team, team.head(), files)
    undone = of_alice(team, first, dict.fromkeys(files))
    if has_landed:
        assert team.push(f"{undone}:{MAIN}").code == 0
        team.dev.git("fetch", "-q", "origin")
    main = team.head()
    copies = [team.dev.ask("commit-tree", f"{first}^{{tree}}", "-p", main, "-m", name) for name in "ab"]
    reverts = [team.dev.ask("commit-tree", f"{main}^{{tree}}", "-p", each, "-m", "r") for each in copies]
    sides = [commit_of(team.dev, main, {}, main, each) for each in reverts]
    crossed = [
        commit_of(team.dev, first, {"infra/guard": None}, sides[number], copies[1 - number])
        for number in range(2)
    ]
    refused(team, f"{commit_of(team.dev, crossed[0], {}, *crossed)}:{MAIN}")


def test_an_owned_file_may_become_a_folder(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    change = of_alice(team, team.head(), {"infra/main.tf": None, "infra/main.tf/x": "1\n"})
    assert team.push(f"{change}:{MAIN}").code == 0


@pytest.mark.parametrize("is_rebased", [True, False])
def test_a_stack_whose_first_commit_landed_otherwise_is_rebased(tmp_path: Path, is_rebased: bool) -> None:
    """Main has had what the first made, and has changed it since: a merge would land a part of the stack."""
    team = Team.make(tmp_path, INFRA)
    lines = "".join(f"{number}\n" for number in range(30))
    start = land(team, {"infra/a": lines})
    edited = lines.replace("2\n", "two\n", 1)
    first = of_alice(team, start, {"infra/a": edited})
    second = of_alice(team, first, {"infra/b": "B\n"})
    land(team, {"infra/a": edited, "z": "1\n"})
    newer = land(team, {"infra/a": edited.replace("28\n", "last\n")})
    if is_rebased:
        # The approval is for the change, and still counts.
        answer = team.push(f"{commit_of(team.dev, newer, {'infra/b': 'B' + chr(10)})}:{MAIN}")
        assert answer.code == 0, answer.err
    else:
        assert "infra/a" in refused(team, f"{clean_merge(team.dev, newer, second)}:{MAIN}")


def test_what_a_branch_once_had_excuses_no_part_that_is_left_out(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    land(team, {"infra/guard": "on\n", "infra/f": "x\n"})
    start = land(team, {"infra/guard": "off\n"})
    below = of_alice(team, start, {"infra/f": "y\n", "infra/guard": "on\n"})
    above = of_alice(team, below, {"infra/f": "z\n", "infra/door": "open\n"})
    left = commit_of(team.dev, above, {"infra/guard": "off\n"}, start, above)
    assert "infra/guard" in refused(team, f"{left}:{MAIN}")


def test_an_exception_that_was_approved_for_two_branches_lands_in_both_at_once(tmp_path: Path) -> None:
    team = Team.make(tmp_path, '[policy]\ndeny = ["secret/**"]\n' + PROTECTED)
    on_server(team, "release/1", team.head())
    release = "refs/heads/release/1"
    both = f"{(change := commit_of(team.dev, team.head(), {'secret/x': '1'}))}:{MAIN}", f"{change}:{release}"
    assert team.approve("alice", change, "--for", MAIN).code == 0
    refused(team, *both, rule="deny-pattern")
    assert team.approve("alice", change, "--for", release).code == 0
    answer = team.push(*both)
    assert answer.code == 0, answer.err
    further = commit_of(team.dev, change, {"secret/x": "2"})
    for ref in (MAIN, "refs/heads/release/2"):
        assert team.approve("alice", further, "--for", ref).code == 0
    assert release in refused(team, f"{further}:{MAIN}", f"{further}:{release}", rule="deny-pattern")


def test_a_merge_on_one_open_branch_is_not_compared_with_another_of_the_same_push(tmp_path: Path) -> None:
    team = Team.make(tmp_path, '[policy]\ndeny_prefixes = ["legal"]\n[governance]\nid = "repository-1"\n')
    terms = "".join(f"line {number}\n" for number in range(12))
    base = commit_of(team.dev, team.head(), {"legal/terms": terms})
    on_server(team, "main", base)
    team.dev.git("fetch", "-q", str(team.server.path), f"+{MAIN}:refs/remotes/origin/main")
    second = of_alice(team, base, {"legal/terms": "first\n" + terms})
    third = of_alice(team, second, {"legal/terms": f"first\n{terms}last\n"})
    assert team.push(f"{third}:{MAIN}").code == 0
    there = commit_of(team.dev, base, {"src/a": "1\n"})
    on_server(team, "ta", there)
    ordinary = commit_of(team.dev, there, {"src/a": "2\n"})
    own = commit_of(team.dev, base, {"src/d": "1\n"})
    taken = commit_of(team.dev, own, {"legal/terms": "first\n" + terms})
    merged = commit_of(team.dev, taken, {"legal/terms": f"first\n{terms}last\n"}, taken, third)
    answer = team.push(f"{ordinary}:refs/heads/ta", f"{merged}:refs/heads/td")
    assert answer.code == 0, answer.err
