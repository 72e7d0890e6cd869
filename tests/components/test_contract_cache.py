"""The cache of contracts: it gives what was read; whatever is wrong with it, contracts are read anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.components import component_cache
from patchgate.components.component_cache import ComponentCache, FactsCache
from patchgate.components.contract_facts import ContractFacts
from patchgate.components.contract_reading import facts_of
from patchgate.git.repository import open_repository
from patchgate.policy import sealed_file
from tests.components.contract_world import GOOD, raw_of, with_value
from tests.world import Repo

OID = "a" * 40
OTHER = "b" * 40
GOOD_RAW = raw_of(GOOD)
WRONG_RAW = raw_of(with_value("functions.0.output.type", "Ordr"))


def unread() -> ContractFacts:
    raise AssertionError("the contract was read again")


def gone() -> ContractFacts:
    raise OSError("gone")


def file_of(common: Path) -> Path:
    return common / "patchgate" / "contracts" / "facts"


def filled(common: Path) -> Path:
    with FactsCache(str(common)) as cache:
        assert cache.facts(OID, lambda: facts_of(WRONG_RAW)) == facts_of(WRONG_RAW)
    return file_of(common)


def test_a_contract_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    filled(tmp_path)
    with FactsCache(str(tmp_path)) as cache:
        assert cache.facts(OID, unread) == facts_of(WRONG_RAW)


def test_within_one_passage_nothing_is_read_twice(tmp_path: Path) -> None:
    with FactsCache(str(tmp_path), is_writable=False) as cache:
        first = cache.facts(OID, lambda: facts_of(GOOD_RAW))
        assert cache.facts(OID, unread) is first
    assert list(tmp_path.iterdir()) == []


def test_new_contracts_join_those_that_are_kept(tmp_path: Path) -> None:
    filled(tmp_path)
    with FactsCache(str(tmp_path)) as cache:
        cache.facts(OTHER, lambda: facts_of(GOOD_RAW))
    with FactsCache(str(tmp_path)) as cache:
        assert cache.facts(OID, unread) == facts_of(WRONG_RAW)
        assert cache.facts(OTHER, unread) == facts_of(GOOD_RAW)


def test_what_was_read_is_kept_though_something_went_wrong_afterwards(tmp_path: Path) -> None:
    with FactsCache(str(tmp_path)) as cache:
        cache.facts(OID, lambda: facts_of(GOOD_RAW))
        with pytest.raises(OSError, match="gone"):
            cache.facts(OTHER, gone)
    assert FactsCache(str(tmp_path)).facts(OID, unread) == facts_of(GOOD_RAW)


def test_nothing_is_written_where_nothing_is_new(tmp_path: Path) -> None:
    before = filled(tmp_path).stat()
    with FactsCache(str(tmp_path)) as cache:
        cache.facts(OID, unread)
    after = file_of(tmp_path).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_every_byte_that_is_changed_or_missing_means_that_contracts_are_read_anew(tmp_path: Path) -> None:
    file = filled(tmp_path)
    kept = file.read_bytes()
    for place in (0, 10, 64, 65, 66, len(kept) // 2, len(kept) - 1):
        for damaged in (kept[:place], kept[:place] + b"!" + kept[place + 1 :]):
            file.write_bytes(damaged)
            facts = FactsCache(str(tmp_path)).facts(OID, lambda: facts_of(GOOD_RAW))
            assert facts == facts_of(GOOD_RAW), place


@pytest.mark.parametrize("name", ["__version__", "RULES_VERSION"])
def test_what_another_version_kept_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filled(tmp_path)
    monkeypatch.setattr(sealed_file, name, "999")
    assert FactsCache(str(tmp_path)).facts(OID, lambda: facts_of(GOOD_RAW)) == facts_of(GOOD_RAW)


def test_entries_of_another_shape_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_cache, "facts_to_json", lambda facts: {"is_readable": facts.is_readable})
    filled(tmp_path)
    assert FactsCache(str(tmp_path)).facts(OID, lambda: facts_of(GOOD_RAW)) == facts_of(GOOD_RAW)


@pytest.mark.parametrize("in_the_way", ["patchgate", "patchgate/contracts"])
def test_a_place_that_cannot_be_written_is_no_mistake(tmp_path: Path, in_the_way: str) -> None:
    obstacle = tmp_path / in_the_way
    obstacle.parent.mkdir(exist_ok=True)
    obstacle.write_bytes(b"")
    with FactsCache(str(tmp_path)) as cache:
        assert cache.facts(OID, lambda: facts_of(GOOD_RAW)) == facts_of(GOOD_RAW)
    assert obstacle.read_bytes() == b""


def test_it_holds_the_newest_and_never_grows_beyond_its_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component_cache, "MOST_ENTRIES", 3)
    for number in range(5):
        with FactsCache(str(tmp_path)) as cache:
            cache.facts(f"{number:040x}", lambda: facts_of(WRONG_RAW))
    cache = FactsCache(str(tmp_path))
    for number in (2, 3, 4):
        cache.facts(f"{number:040x}", unread)
    for number in (0, 1):
        with pytest.raises(AssertionError):
            cache.facts(f"{number:040x}", unread)
    size = file_of(tmp_path).stat().st_size
    monkeypatch.setattr(FactsCache, "MOST_BYTES", size)
    with FactsCache(str(tmp_path)) as cache:
        cache.facts(OTHER, lambda: facts_of(WRONG_RAW))
    assert file_of(tmp_path).stat().st_size <= size
    assert FactsCache(str(tmp_path)).facts(OTHER, unread) == facts_of(WRONG_RAW)


def test_while_a_push_is_received_nothing_is_kept(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    receiving = open_repository({**repo.env, "GIT_QUARANTINE_PATH": "objects/incoming"}, str(repo.path))
    for opened in (receiving, open_repository(repo.env, str(repo.path))):
        with FactsCache.of(opened) as facts, ComponentCache.of(opened) as components:
            facts.facts(OID, lambda: facts_of(GOOD_RAW))
            components.keep_digest("a", "b")
        folder = repo.path / ".git/patchgate/contracts"
        kept = sorted(os.listdir(folder)) if folder.exists() else []
        assert kept == ([] if opened is receiving else ["facts", "standing"])


def test_one_cache_is_not_taken_for_the_other(tmp_path: Path) -> None:
    file = filled(tmp_path)
    file.rename(file.with_name("standing"))
    with ComponentCache(str(tmp_path)) as cache:
        assert cache.digest(OID) is None
        cache.keep_digest(OID, "b")
    assert ComponentCache(str(tmp_path)).digest(OID) == "b"


def test_a_hit_imports_no_pydantic(tmp_path: Path) -> None:
    filled(tmp_path)
    script = (
        "import sys\n"
        "from patchgate.components.component_cache import FactsCache\n"
        "with FactsCache(sys.argv[1]) as cache:\n"
        f"    facts = cache.facts({OID!r}, lambda: 1 / 0)\n"
        "assert facts.component_id == 'shaping', facts\n"
        "assert not {'pydantic', 'difflib', 'pygit2', 'click'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_facts_are_equal_whoever_gives_them(tmp_path: Path) -> None:
    filled(tmp_path)
    kept = FactsCache(str(tmp_path)).facts(OID, unread)
    assert isinstance(kept, ContractFacts)
    assert hash(kept) == hash(facts_of(WRONG_RAW))
