"""The 26 ways past a gate, each a small function on a `Place` that says what landed.

Decides what is done in each case, nothing about who should stop it: the runner does the same to every
manager, and `tests/sessions/test_bypasses.py` holds patchgate to `patchgate`, the word that it must get.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.bypass_place import OFF, REASON, Place, Result


@dataclass(frozen=True, slots=True)
class Case:
    """One row: its number and text, what is done, and what it must come to with patchgate.

    `merges` asks for a pre-merge-commit hook where the manager's own install gives none.
    """

    number: int
    what: str
    run: Callable[[Place], Result]
    patchgate: str = "caught"
    merges: bool = False


CASES: list[Case] = []


def _case(
    number: int, what: str, patchgate: str = "caught", *, merges: bool = False
) -> Callable[[Callable[[Place], Result]], Callable[[Place], Result]]:
    def keep(run: Callable[[Place], Result]) -> Callable[[Place], Result]:
        CASES.append(Case(number, what, run, patchgate, merges))
        return run

    return keep


def _here(landed: bool) -> Result:
    return Result(landed=("here",)) if landed else Result(refused=("here",))


def _remote(landed: bool) -> Result:
    return Result(landed=("remote",)) if landed else Result(refused=("remote",))


def _each(attempts: dict[str, bool]) -> Result:
    """Sum up several attempts: only where all were refused is nothing landed."""
    landed = tuple(name for name, done in attempts.items() if done)
    return Result(landed, tuple(name for name in attempts if name not in landed))


@_case(1, "commit adds `secrets/k`")
def _adds(place: Place) -> Result:
    place.write(place.denied("secrets/k"), "key\n")
    place.git("add", "-A")
    return _here(place.commit_lands())


@_case(2, "bad content staged, working tree clean again")
def _staged_only(place: Place) -> Result:
    place.write("plain/a", place.content)
    place.git("add", "-A")
    place.write("plain/a", "plain/a\nline\n")
    return _here(place.commit_lands())


@_case(3, "`commit -a`, `commit <path>` with bad content")
def _forms(place: Place) -> Result:
    place.write("plain/a", place.content)
    of_path = place.commit_lands("plain/a")
    place.write("plain/x", place.content)
    return _each({"-a": place.commit_lands("-a"), "<path>": of_path})


@_case(4, "name with newline, quote, non-ASCII under `protected/`")
def _names(place: Place) -> Result:
    attempts = {}
    # No control character in the control: patchgate refuses those anywhere.
    newline = "new\nline" if place.bad else "new line"
    for name, path in (("newline", newline), ("quote", 'quo"te'), ("non-ASCII", "größe")):
        place.write(place.denied(f"protected/{path}"), "text\n")
        place.git("add", "-A")
        attempts[name] = place.commit_lands()
        place.git("reset", "-q", "--hard")
    return _each(attempts)


@_case(5, "`commit -n`, then push")
def _unverified_then_push(place: Place) -> Result:
    place.write(place.denied("secrets/k"), "key\n")
    place.git("add", "-A")
    if not place.commit_lands("-n"):
        return _here(landed=False)
    pushed = place.push_lands("origin", "main", ref="refs/heads/main")
    return Result(("here", "remote")) if pushed else Result(("here",), ("remote",))


def _merge(place: Place) -> Result:
    place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    place.plant("Meanwhile", {"plain/b": "b\n"})
    return _here(place.lands("merge", "-q", "-m", "Merge side", "side"))


@_case(6, "non-ff merge with a pre-merge-commit hook", merges=True)
def _merge_with_hook(place: Place) -> Result:
    return _merge(place)


@_case(7, "the same merge with the default install")
def _merge_by_default(place: Place) -> Result:
    return _merge(place)


@_case(8, "fast-forward merge of a local branch")
def _fast_forward(place: Place) -> Result:
    place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    return _here(place.lands("merge", "-q", "side"))


@_case(9, "`git rm protected/policy.txt`")
def _removes(place: Place) -> Result:
    place.git("rm", "-q", place.denied("protected/policy.txt"))
    return _here(place.commit_lands())


@_case(10, "`git mv protected/x other/x`")
def _moves_away(place: Place) -> Result:
    (place.path / "other").mkdir()
    place.git("mv", place.denied("protected/x"), "other/x")
    return _here(place.commit_lands())


@_case(11, "a file replaced by a symlink")
def _symlink(place: Place) -> Result:
    name = place.path / place.denied("protected/x")
    name.unlink()
    name.symlink_to("../plain/a")
    place.git("add", "-A")
    return _here(place.commit_lands())


@_case(12, "a gitlink under `protected/`")
def _gitlink(place: Place) -> Result:
    name = place.denied("protected/sub")
    place.git("init", "-q", "-b", "main", name)
    place.git("commit", "-q", "--allow-empty", "-m", "Inner", cwd=place.path / name)
    place.git("-c", "advice.addEmbeddedRepo=false", "add", name)
    return _here(place.commit_lands())


@_case(13, "policy weakened and violated in one commit")
def _weakens(place: Place) -> Result:
    for name, text in place.manager.weaker.items():
        place.write(name, text)
    if place.bad:
        place.write("secrets/k", "key\n")
    place.git("add", "-A")
    return _here(place.commit_lands())


@_case(14, "cherry-pick")
def _cherry_pick(place: Place) -> Result:
    commit = place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    place.plant("Meanwhile", {"plain/b": "b\n"})
    return _here(place.lands("cherry-pick", commit))


@_case(15, "rebase")
def _rebase(place: Place) -> Result:
    place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    place.plant("Meanwhile", {"plain/b": "b\n"})
    place.git("switch", "-q", "side")
    return _here(place.lands("rebase", "-q", "main", ref="refs/heads/side"))


@_case(16, "`git am`")
def _mail(place: Place) -> Result:
    place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    place.git("format-patch", "-q", "-1", "side", "-o", str(place.folder / "mail"))
    (mail,) = (place.folder / "mail").iterdir()
    return _here(place.lands("am", "-q", str(mail)))


@_case(17, "`core.hooksPath=/dev/null`", "seen")
def _hooks_elsewhere(place: Place) -> Result:
    place.write(place.denied("secrets/k"), "key\n")
    place.run(("git", "add", "-A"))
    place.run(("git", "config", "core.hooksPath", "/dev/null"))
    landed = place.commit_lands()
    noticed = place.doctor_notices()
    place.run(("git", "config", "--unset", "core.hooksPath"))
    told = place.next_gate_tells(place.git("rev-parse", "HEAD"))
    return Result(("here",) if landed else (), doctor=noticed, told=told)


@_case(18, "`commit -n`, not pushed")
def _unverified(place: Place) -> Result:
    place.write(place.denied("secrets/k"), "key\n")
    place.git("add", "-A")
    if not place.commit_lands("-n"):
        return _here(landed=False)
    return Result(("here",), told=place.next_gate_tells(place.git("rev-parse", "HEAD")))


@_case(19, "`SKIP=` (ours: `PATCHGATE_SKIP=`), commit and push", "recorded, caught at push")
def _skips(place: Place) -> Result:
    place.write(place.denied("secrets/k"), "key\n")
    place.git("add", "-A")
    if not place.commit_lands(**place.manager.skip):
        return _here(landed=False)
    recorded = place.record_names(place.git("rev-parse", "HEAD"), REASON)
    pushed = place.push_lands("origin", "main", ref="refs/heads/main", **place.manager.skip)
    return Result(
        ("here", "remote") if pushed else ("here",), () if pushed else ("remote",), recorded=recorded
    )


@_case(20, "push of two refs, the second bad")
def _second_ref(place: Place) -> Result:
    # The bad one is checked out, so that all that can be missed is the second line of the hook's input.
    place.plant_branch("a-good", {"plain/b": "b\n"})
    place.plant_branch("b-bad", {place.denied("secrets/k"): "key\n"}, stay=True)
    return _remote(place.push_lands("origin", "a-good", "b-bad", ref="refs/heads/b-bad"))


@_case(21, "push of a branch that is not checked out: path")
def _elsewhere_path(place: Place) -> Result:
    place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    return _remote(place.push_lands("origin", "side", ref="refs/heads/side"))


@_case(22, "the same: content")
def _elsewhere_content(place: Place) -> Result:
    place.plant_branch("side", {"plain/a": place.content})
    return _remote(place.push_lands("origin", "side", ref="refs/heads/side"))


@_case(23, "push of another worktree's branch")
def _worktree(place: Place) -> Result:
    linked = place.folder / "linked"
    place.git("worktree", "add", "-q", "-b", "side", str(linked), "main")
    place.plant("Work on side", {place.denied("secrets/k"): "key\n"}, linked)
    return _remote(place.push_lands("origin", "side", ref="refs/heads/side"))


@_case(24, "a commit adds a secret, the next removes it; push")
def _in_between(place: Place) -> Result:
    place.plant("Add it", {place.denied("secrets/k"): "key\n"})
    place.git("rm", "-q", place.denied("secrets/k"))
    place.plant("Remove it")
    return _remote(place.push_lands("origin", "main", ref="refs/heads/main"))


@_case(25, "push of an annotated tag whose commit is on no branch")
def _tag(place: Place) -> Result:
    commit = place.plant_branch("side", {place.denied("secrets/k"): "key\n"})
    place.run(("git", *OFF, "tag", "-a", "-m", "Version 1", "v1", commit))
    place.git("branch", "-q", "-D", "side")
    return _remote(place.push_lands("origin", "v1", ref="refs/tags/v1"))


@_case(26, "push deletes a protected remote branch")
def _deletes(place: Place) -> Result:
    branch = "release" if place.bad else "topic"
    return _remote(place.push_lands("origin", f":{branch}", ref=f"refs/heads/{branch}"))
