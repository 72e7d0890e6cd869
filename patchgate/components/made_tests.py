"""The tests of one component, made from its contract as `HEAD` or the index has it.

Decides which modules hold the implementation, by the config alone: what the files of the implementation hold
changes nothing. How the tests are written is told in `made_text`.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.components.content import head_content, index_content, named
from patchgate.components.contract_cache import FactsCache, facts_at
from patchgate.components.contract_facts import ContractMistake
from patchgate.components.made_text import Origin, module_text, untested_budgets
from patchgate.errors import ConfigError, Mistake, UsageError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.component import Component, literal_start

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Made:
    """A module of tests; `is_staged_otherwise` tells whether the index would give another contract.

    `untested` are the budgets that no test is made of: the function, safe to show, and the measure.
    """

    text: str
    is_staged_otherwise: bool
    untested: tuple[tuple[str, str], ...] = ()


def made_tests(repository: Repository, name: str, *, cached: bool = False) -> Made:
    """Write the tests that a component's contract asks for, as a module for pytest.

    Args:
        cached: take the contract, and what declares the component, from the index instead of `HEAD`.

    Raises:
        UsageError: there is no such component, it has no contract, or nothing to test.
        ConfigError: the contract, or the policy beside it, cannot be used.
    """
    with Objects(repository) as objects:
        content = (index_content if cached else head_content)(repository, objects)
        where = content.place
        (component,) = named(content.components, [name], where)
        entry = content.view.entry(component.contract.raw)
        place = component.contract.quoted
        if entry is None:
            hint = "git add it first" if cached else "commit it first; or git add it, and say --staged"
            raise UsageError(f"{where} has no {place}, the contract of {name}", hint)
        with FactsCache.of(repository) as cache:
            facts = facts_at(content.view, component.contract, cache)
        if facts is None:
            raise UsageError(f"{place} is no regular file", "put the contract itself there")
        # What cannot be read may be too large to be read at all.
        raw = objects.read(entry.oid) if facts.is_readable else b""
        otherwise = not cached and _is_staged_otherwise(repository, component.contract, entry.oid)
    from patchgate.components.contract_reading import read_contract

    contract = read_contract(raw)
    if contract is None:
        raise _unreadable(component.contract, facts.mistakes)
    if not contract.functions:
        raise UsageError(
            f"the contract of {name} promises no function", "add one to `functions`, with examples"
        )
    roots = content.policy.config.baselines.source_roots
    modules = tuple(modules_of(component, roots))
    if not modules:
        raise UsageError(
            f"no pattern of the implementation of {name} begins with a module of Python",
            "write it below a folder of [baselines] source_roots, like src/shaping/**",
        )
    origin = Origin(name, component.settings.contract, roots, modules)
    untested = tuple((printable(function, 80), kind) for function, kind in untested_budgets(contract))
    return Made(module_text(contract, origin), otherwise, untested)


def _is_staged_otherwise(repository: Repository, path: RepoPath, oid: str) -> bool:
    """Tell whether the index has another file there; a conflict is one."""
    if repository.work_tree is None:
        return False
    place = os.fsdecode(path.raw)
    listed = repository.output("ls-files", "-z", "--stage", "--", f":(top,literal){place}")
    oids = [each.partition(b" ")[2][: len(oid)].decode("ascii") for each in listed.split(b"\0") if each]
    return any(each != oid for each in oids)


def modules_of(component: Component, roots: Sequence[str]) -> Iterator[str]:
    """List the modules and packages that the patterns of an implementation begin with, as they are imported.

    Each begins in the longest source root that its pattern lies in. What no module can be called is left out.
    """
    given: set[str] = set()
    for glob in component.settings.implementation:
        dotted = _module(RepoPath(literal_start(glob)), roots)
        if dotted is not None and dotted not in given:
            given.add(dotted)
            yield dotted


def _module(start: RepoPath, roots: Sequence[str]) -> str | None:
    folders = sorted((_folder(each) for each in roots), key=len, reverse=True)
    holding = next((each for each in folders if not each or start.is_within(each)), None)
    if holding is None:
        return None
    below = start.raw[len(holding) :].strip(b"/").decode("utf-8", "surrogateescape")
    parts = below.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    # Names of other scripts are spelt in many ways; ASCII is what every file system and Python agree on.
    if not parts or not all(each.isascii() and each.isidentifier() for each in parts):
        return None
    return None if any(keyword.iskeyword(each) for each in parts) else ".".join(parts)


def _folder(root: str) -> bytes:
    parts = [each for each in root.split("/") if each not in {"", "."}]
    return "/".join(parts).encode("utf-8", "surrogateescape")


def _unreadable(path: RepoPath, mistakes: Sequence[ContractMistake]) -> ConfigError:
    wrong = [each for each in mistakes if each.rule == "contract-invalid"] or list(mistakes)
    return ConfigError(
        tuple(
            Mistake(
                path.quoted, each.line, printable(each.where), printable(each.message), printable(each.hint)
            )
            for each in wrong[:_SHOWN]
        )
    )
