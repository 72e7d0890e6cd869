"""Hooks that outlive the patchgate that installed them: upgraded, removed, damaged. Verdicts stay right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.doctor.fast_world import Tool, repository
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

JUDGED = "hook pre-commit"


class Story:
    """A repository whose hooks were installed by one patchgate, version 1.0.0, and are fast."""

    def __init__(self, folder: Path) -> None:
        self.repo: Repo = repository(folder)
        self.tool = Tool(folder / "tool")
        self.tool.upgrade("1.0.0")
        assert self.tool.run(self.repo, "install").code == 0
        self._count = 0
        assert self.commits() == "in full"
        assert self.commits() == "fast"

    @property
    def fast(self) -> Path:
        """Where what the fast path needs is kept."""
        return self.repo.path / ".git" / "patchgate" / "fast"

    @property
    def policy(self) -> Path:
        """The only compiled policy."""
        (found,) = self.fast.glob("*/*-none")
        return found

    def commits(self) -> str:
        """Make a clean commit, which must land; say how it was judged."""
        self._count += 1
        self.tool.starts()
        self.repo.stage({f"file{self._count}": "1\n"})
        done = self.repo.try_git("commit", "-q", "-m", "Add a file")
        assert (done.returncode, done.stderr) == (0, b"")
        return "in full" if JUDGED in self.tool.starts() else "fast"

    def refuses(self) -> bool:
        """Try to commit what the policy denies; tell whether that rule stopped it."""
        self.repo.stage({"runs/x": "1\n"})
        done = self.repo.try_git("commit", "-q", "-m", "Add a run")
        self.repo.git("rm", "-rqf", "runs")
        return done.returncode == 1 and b"deny-prefix" in done.stdout + done.stderr

    def active(self) -> str:
        """The version whose copy is run, and by what."""
        _, version, interpreter = (self.fast / "active").read_text().split()
        return version if interpreter == str(self.tool.python) else f"{version} by {interpreter}"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_hooks_go_on_judging_after_an_upgrade_and_are_fast_again_after_one_commit(story: Story) -> None:
    story.tool.upgrade("2.0.0")
    assert story.refuses()
    assert story.commits() == "in full"
    assert story.active() == "2.0.0"
    assert [each.name for each in story.fast.iterdir() if each.is_dir()] == ["2.0.0"]
    assert story.commits() == "fast"
    assert story.refuses()


def test_a_downgrade_is_as_an_upgrade(story: Story) -> None:
    story.tool.upgrade("0.9.0")
    assert story.commits() == "in full"
    assert (story.active(), story.commits(), story.refuses()) == ("0.9.0", "fast", True)


def test_the_same_version_installed_again_is_judged_in_full_once(story: Story) -> None:
    """Its rules may have changed all the same, as those of a build that is worked on do."""
    story.tool.upgrade("1.0.0")
    assert story.commits() == "in full"
    assert (story.commits(), story.refuses()) == ("fast", True)


def test_an_environment_made_anew_in_the_same_place_takes_over(story: Story) -> None:
    story.tool.remove()
    story.tool = Tool(story.tool.folder)
    story.tool.upgrade("2.0.0")
    assert story.commits() == "in full"
    assert (story.active(), story.commits(), story.refuses()) == ("2.0.0", "fast", True)


def test_a_patchgate_on_path_takes_over_where_the_recorded_one_is_gone(story: Story, tmp_path: Path) -> None:
    story.tool.remove()
    story.tool = Tool(tmp_path / "other")
    story.tool.upgrade("2.0.0")
    story.repo.env["PATH"] = f"{story.tool.program.parent}:{story.repo.env['PATH']}"
    assert story.refuses()
    assert story.commits() == "in full"
    assert (story.active(), story.commits(), story.refuses()) == ("2.0.0", "fast", True)


def test_where_no_patchgate_is_left_nothing_is_recognised_and_the_line_that_mends_it_is_told(
    story: Story,
) -> None:
    before = story.repo.head()
    story.tool.remove()
    story.repo.stage({"b": "1\n"})
    done = story.repo.try_git("commit", "-q", "-m", "x")
    first, second = done.stderr.splitlines()[:2]
    assert first.endswith(b"this commit is refused")
    assert second.startswith(b"help: install patchgate ")
    assert second.endswith(b": git patchgate install")
    assert (done.returncode, story.repo.head()) == (1, before)


def test_where_the_package_alone_is_gone_its_interpreter_recognises_nothing(story: Story) -> None:
    """As after `pip uninstall` in an environment that stays: the copy could run, and must not."""
    for place in story.tool.folder.glob("lib/*/site-packages/patchgate"):
        shutil.rmtree(place)
    story.tool.program.unlink()
    story.repo.stage({"b": "1\n"})
    assert story.repo.try_git("commit", "-q", "-m", "x").returncode == 1


def cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-7])


def spoil(place: Path) -> None:
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 0x20
    place.write_bytes(content)


def of_another_python(place: Path) -> None:
    place.write_bytes(b"\x00\x0c\r\n" + place.read_bytes()[4:])


DAMAGES: dict[str, Callable[[Story], object]] = {
    "no copy": lambda it: (it.fast / "1.0.0" / "recognise.pyc").unlink(),
    "a copy that was cut short": lambda it: cut(it.fast / "1.0.0" / "recognise.pyc"),
    "an empty copy": lambda it: (it.fast / "1.0.0" / "recognise.pyc").write_bytes(b""),
    "a copy for another Python": lambda it: of_another_python(it.fast / "1.0.0" / "recognise.pyc"),
    "no active": lambda it: (it.fast / "active").unlink(),
    "an active that was cut short": lambda it: cut(it.fast / "active"),
    "an empty active": lambda it: (it.fast / "active").write_bytes(b""),
    "an active of other shims": lambda it: (it.fast / "active").write_bytes(
        b"2" + (it.fast / "active").read_bytes()[1:]
    ),
    "an interpreter that is gone": lambda it: (it.fast / "active").write_text("1 1.0.0 /no/such/python\n"),
    "an interpreter that is none": lambda it: (it.fast / "active").write_text("1 1.0.0 /bin/true\n"),
    "no policy": lambda it: it.policy.unlink(),
    "a policy that was cut short": lambda it: cut(it.policy),
    "a policy that was spoilt": lambda it: spoil(it.policy),
    "an empty policy": lambda it: it.policy.write_bytes(b""),
    "nothing at all": lambda it: shutil.rmtree(it.fast),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_judged_in_full_and_made_anew_and_doctor_does_so_before(
    story: Story, name: str
) -> None:
    DAMAGES[name](story)
    assert story.refuses()
    assert story.commits() == "in full"
    assert (story.active(), story.commits()) == ("1.0.0", "fast")
    healthy = story.tool.run(story.repo, "doctor").out
    assert healthy.count("\n") == 1, healthy
    DAMAGES[name](story)
    told = story.tool.run(story.repo, "doctor")
    if name == "no policy":
        # So it is after an install and after every change of the policy.
        assert told.out == healthy
        return
    assert (told.code, "    git patchgate doctor --fix\n" in told.out) == (0, True)
    fixed = story.tool.run(story.repo, "doctor", "--fix")
    assert fixed.out.startswith("fixed: ")
    assert fixed.out.partition("\n")[2] == healthy
    assert (story.commits(), story.refuses()) == ("fast", True)


def test_doctor_mends_hooks_and_what_they_keep_after_an_upgrade(story: Story) -> None:
    story.tool.upgrade("2.0.0")
    told = story.tool.run(story.repo, "doctor").out
    for hook in ("pre-commit: ", "the fast path "):
        (line,) = (line for line in told.splitlines() if f"warning: {hook}" in line)
        assert line.index("patchgate 1.0.0") < line.index("2.0.0")
    fixed = story.tool.run(story.repo, "doctor", "--fix").out
    assert fixed.splitlines()[-1] == f"{story.repo.path}: 5 of 5 hooks reach patchgate 2.0.0"
    assert (story.active(), story.commits(), story.refuses()) == ("2.0.0", "fast", True)


def test_a_stale_policy_is_seen_and_mended(story: Story) -> None:
    version = story.fast / "1.0.0"
    story.tool.upgrade("1.0.0")
    told = story.tool.run(story.repo, "doctor").out
    (line,) = (line for line in told.splitlines() if "note: " in line)
    assert " HEAD " in line
    assert "another" in line
    assert "    git patchgate doctor --fix\n" in told
    before = (version / "recognise.pyc").read_bytes()
    assert "fixed: " in story.tool.run(story.repo, "doctor", "--fix").out
    assert (version / "recognise.pyc").read_bytes() == before
    assert story.commits() == "fast"


def test_a_repository_under_global_hooks_becomes_fast_by_its_first_commit(
    story: Story, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    story.repo.git("config", "--global", "core.hooksPath", str(shared))
    assert story.tool.run(story.repo, "install", "--global").code == 0
    other = story.repo.at(tmp_path / "second")
    story.repo.git("clone", "-q", ".", str(other.path), cwd=story.repo.path)
    assert not (other.path / ".git/patchgate/fast").exists()
    story.tool.starts()
    for judged in (True, False):
        other.stage({f"a{judged}": "1\n"})
        other.git("commit", "-q", "-m", "Add a")
        assert (JUDGED in story.tool.starts()) == judged
    assert story.tool.run(other, "doctor").out == f"{other.path}: 5 of 5 hooks reach patchgate 1.0.0\n"
