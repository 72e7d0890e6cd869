"""Put the temporary folders of the tests in memory, where this machine has such a place.

This removes no proof: the tests of durability cut the power at each flush, and never ask the disk.
`--basetemp=DIR` chooses another place. The folders are removed at the end; after a failure, by the next run.
"""

from __future__ import annotations

import fcntl
import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from tests.amount import IS_LONG, often

# A loaded machine is no fault: no test has a time limit. The short form tries the same examples everywhere.
settings.register_profile("patchgate", deadline=None, max_examples=often(100), derandomize=not IS_LONG)
settings.load_profile("patchgate")
# A run uses a part of it; /dev/shm in a container often has only 64 MiB.
NEEDED = 1 << 30
PREFIX = "patchgate-tests-"
ROOM = pytest.StashKey[tuple[Path, int]]()


def in_memory() -> Path | None:
    """Find a file system in memory that has space and runs programs."""
    for name in ("/dev/shm", os.environ.get("XDG_RUNTIME_DIR")):
        if sys.platform == "linux" and name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK):
            said = os.statvfs(name)
            if not said.f_flag & os.ST_NOEXEC and said.f_bavail * said.f_frsize >= NEEDED:
                return Path(name)
    return None


def clear(folder: Path) -> None:
    """Remove a folder, even if a test took away the rights to a folder in it."""
    for above, names, _ in os.walk(folder):
        for name in names:
            if not os.path.islink(place := os.path.join(above, name)):
                os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def sweep(above: Path) -> None:
    """Remove the folders of runs that have ended: no process locks them."""
    for place in above.glob(f"{PREFIX}*/t"):
        try:
            held = os.open(place.parent, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clear(place.parent)
        except BlockingIOError:
            pass
        finally:
            os.close(held)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # A worker gets its folder from the process that started it.
    if hasattr(config, "workerinput") or config.option.basetemp or (above := in_memory()) is None:
        return
    sweep(above)
    room = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))
    held = os.open(room, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    config.stash[ROOM] = room, held
    config.option.basetemp = str(room / "t")
    (room / "t").mkdir()
    (room / "tmp").mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(room / "tmp")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    room, _ = session.config.stash.get(ROOM, (None, -1))
    if room is not None and exitstatus != pytest.ExitCode.TESTS_FAILED:
        clear(room)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the cases of each sweep of faults (`@pytest.mark.sweep(N)`), and, where all tests are
    collected, the tests whose turn it is (`turns(N)`); the long form has all.
    """
    if IS_LONG or any("::" in each for each in config.args):
        return
    dropped = _not_sampled(items)
    if [(config.rootpath / each).resolve() for each in config.args] == [config.rootpath / "tests"]:
        dropped |= _not_in_turn(items)
    if dropped:
        config.hook.pytest_deselected(items=sorted(dropped, key=lambda item: item.nodeid))
        items[:] = [each for each in items if each not in dropped]


def _not_in_turn(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Choose the tests that another commit runs: the modules that start the most processes take turns."""
    asked = ["git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    commit = int(done.stdout, 16) if done.returncode == 0 else 0
    functions: dict[str, dict[str, int]] = {}
    found = set()
    for item in items:
        marker = item.get_closest_marker("turns")
        if marker is not None:
            module, _, name = item.nodeid.partition("[")[0].partition("::")
            known = functions.setdefault(module, {})
            number = known.setdefault(name, len(known))
            if number % marker.args[0] != commit % marker.args[0]:
                found.add(item)
    return found


def _not_sampled(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    sweeps: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sweep") is not None:
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    dropped: set[pytest.Item] = set()
    for name, cases in sweeps.items():
        marker = cases[0].get_closest_marker("sweep")
        assert marker is not None
        kept = random.Random(name).sample(cases, min(marker.args[0], len(cases)))
        dropped.update(each for each in cases if each not in kept)
    return dropped


def pytest_collection_finish() -> None:
    """What is collected stays to the end: the collector of garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
