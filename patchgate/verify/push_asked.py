"""Whether a push is verified at all, asked at every push: nothing is loaded for it that the push has not.

Decides whose policy asks for it (`[verify] on_push`): HEAD's, that of the trusted ref, that of the remote's
default branch, or what a branch has there, for that branch. A policy that cannot be read asks for nothing; by
which one a branch is then verified is decided in `push`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.check.ref_terms import USUAL_BRANCHES
from patchgate.check.terms import trusted
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, RefUpdate, Remote
from patchgate.git.repository import Repository
from patchgate.policy.policies import Policies


@dataclass(frozen=True, slots=True)
class Asking:
    """The branches of a push that may have to be verified.

    `everywhere`: each of them has to be. `is_first`: as far as is known the remote has nothing yet.
    `only_here`: nobody asks for it but the policy of HEAD, so the push may be what turns it on.
    """

    branches: tuple[RefUpdate, ...]
    everywhere: bool
    is_first: bool = False
    only_here: bool = False


def asking_of(repository: Repository, remote: Remote, updates: Sequence[RefUpdate]) -> Asking | None:
    """Find out which branches of a push are to be verified; None: there is none.

    Raises:
        UndecidedError: an object is missing, or the trusted ref.
    """
    branches = tuple(
        each for each in updates if each.ref.startswith(BRANCHES) and each.new and each.new != each.old
    )
    if not branches:
        return None
    with Objects(repository) as objects:
        policies = Policies(objects)

        def asks(revision: str) -> bool:
            header = objects.header(revision + "^{tree}")
            found = policies.at(policies.key(header.oid)).policy if header is not None else None
            return found is not None and found.config.verify.on_push

        by_others = any(map(asks, _above_all(repository, remote)))
        by_branches = any(asks(each.old) for each in branches if each.old)
        here = by_others or asks("HEAD")
        if not (here or by_branches):
            return None
    is_first = remote.is_named and not remote.had and not any(each.old for each in updates)
    return Asking(branches, here, is_first, only_here=not (by_others or by_branches))


def _above_all(repository: Repository, remote: Remote) -> Iterator[str]:
    """Name the revisions beside HEAD whose policy speaks for every branch."""
    above = trusted(repository).policy_from
    if above is not None:
        yield above
    defaults = USUAL_BRANCHES if remote.default is None else (remote.default,)
    yield from (remote.had[ref] for ref in defaults if ref in remote.had)
