"""The clone of a CI engine: what its refs and commits are, and what must be there for a check.

What the engine claims is compared with what is here; what is missing is undecided, with the `git fetch` for
it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from patchgate.check.ci_event import CiEvent, EventKind
from patchgate.check.refs import is_branch_name
from patchgate.check.repository_ids import repository_id
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, USUAL_BRANCHES, is_ancestor
from patchgate.git.quoting import in_shell, printable
from patchgate.git.ref_names import ignores_case
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit, resolve
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass

REMOTE = "refs/remotes/origin/"
_QUEUE = "gh-readonly-queue/"
_UNSHALLOW = "git fetch --unshallow origin"
_FETCH_ALL = "git fetch origin '+refs/heads/*:refs/remotes/origin/*' && git remote set-head origin --auto"


@dataclass(slots=True)
class CiClone:
    """The clone in which an engine builds.

    `head` is the commit to judge, and `shown` its name: `find_head` finds them.
    """

    repository: Repository
    objects: Objects
    event: CiEvent
    policies: TreePolicies
    head: str = ""
    shown: str = "HEAD"

    def require_working_tree(self) -> None:
        """Require a `.git`, which no head has: files that came without one may look like a repository."""
        tree = self.repository.work_tree
        if tree is None or not os.path.lexists(os.path.join(tree, ".git")):
            raise UndecidedError(
                "there is no .git here: what git takes for a repository may be files of the head",
                "run this in a clone, where the commit is checked out",
            )

    def require_own_files(self) -> None:
        """Require that no two branches of origin share a file, as `Main` and `main` may."""
        if ignores_case(self.repository):
            raise UndecidedError(
                f"the file system of this clone ignores case, so a branch below {REMOTE} may be another one, "
                "whose name differs in case only",
                "run the job where names differ by case, as on Linux, or clone with --ref-format=reftable",
            )

    def require_queue(self) -> None:
        """Require that an entry of a merge queue is built as one: it is judged after the entry before it.

        GitHub also pushes the branch of the entry.
        """
        if (self.event.branch or "").startswith(_QUEUE) and not self.event.is_queued:
            raise self._unknown_entry(self.event.branch or "")

    def require_no_entry(self, tip: str) -> None:
        """Require that what is proposed has no such entry that has not landed, under whatever name.

        It may be the commit that the queue will make next. What is built may be a merge of it.
        """
        if self.event.is_queued:
            return
        words = [f"--merged={each}" for each in {self.head, *self._built()}]
        words += [f"--no-merged={tip}", "--count=1", "--format=%(refname)"]
        found = self.repository.output("for-each-ref", *words, REMOTE + _QUEUE)
        if found:
            raise self._unknown_entry(os.fsdecode(found.rstrip(b"\n")).removeprefix(REMOTE))

    def require_same_repository(self, before: str, default: str, commits: Sequence[str]) -> None:
        """Require that proposed rules keep the id of the repository: approvals by them name it.

        That is the id of the branch, or else that of the default one.
        """
        tip = resolve(self.objects, REMOTE + default)
        places = [before, None if tip is None else tip.oid]
        named = repository_id(self.objects, self.policies, places)
        kept = {named, repository_id(self.objects, self.policies, [before])}
        for each in commits if named is not None else ():
            if repository_id(self.objects, self.policies, [each]) not in kept:
                raise UndecidedError(
                    f"{each[:SHORT_OID]} gives the repository another [governance] id, and more comes with "
                    "it",
                    f"propose {each[:SHORT_OID]} alone, or leave the id as it is",
                )

    def require_proposal(self, branch: str, tip: str) -> None:
        """Require that a pull request has commits: a base that somebody has moved has them all."""
        if all(is_ancestor(self.repository, each, tip) for each in self._built()):
            raise UndecidedError(
                f"{printable(branch)} has every commit of {self.shown[:SHORT_OID]} here: nothing is proposed",
                "if it has been merged, nothing is left to do; else run this again in a fresh clone",
            )

    def _built(self) -> list[str]:
        """Name the head: as the engine does, or HEAD, or what that merges."""
        named = [self.event.includes] if self.event.includes else [f"{self.head}^1", f"{self.head}^2"]
        found = [resolve(self.objects, each) for each in named]
        return [each.oid for each in found if each is not None] if None not in found else [self.head]

    def _unknown_entry(self, branch: str) -> UndecidedError:
        return UndecidedError(
            f"{printable(branch)} is an entry of a merge queue, and {self.event.engine} does not say what it "
            "follows",
            "let merge groups be built (GitHub: on: merge_group), and not the pushes of these branches",
        )

    def require_origin_of_base(self) -> None:
        """Require that origin is a remote, and not the fork of which the pull request is.

        Without one `git fetch origin` reads a folder of that name, which the head may have, and a fork's
        branches are its owner's. Jenkins clones the fork where the pull request is one of Bitbucket Cloud
        (BitbucketGitSCMBuilder in jenkinsci/bitbucket-branch-source-plugin), GitHub's checkout action where
        its `repository` says so.
        """
        done = self.repository.git("config", "--get-all", "remote.origin.url", answers=(0, 1))
        urls = os.fsdecode(done.out).lower().replace(":", "/").split("\n")[:-1]
        # Since git 2.46 an empty value takes back those before it.
        if not urls or not urls[-1]:
            raise UndecidedError(
                f"this clone has no remote origin, so what is below {REMOTE} may be of the head itself",
                "fetch the repository of the base in a fresh clone: git remote add origin URL",
            )
        if not self.event.fork:
            return
        names = ["/" + url.rstrip("/").removesuffix(".git") for url in urls]
        fork = "/" + self.event.fork.lower()
        if any((name if "/" in fork[1:] else name.rpartition("/")[0]).endswith(fork) for name in names):
            raise UndecidedError(
                f"{printable(self.event.fork)} is the fork that this pull request is from, and origin is its "
                "owner's: so are its branches",
                "fetch the repository of the base in a fresh clone: git remote set-url origin URL",
            )

    def find_head(self) -> None:
        """Find the commit to judge: the one that is checked out, or that the engine names instead."""
        event = self.event
        found = head_commit(self.objects)
        if found is None:
            raise UsageError("no commit is checked out", "check out the commit that the engine builds")
        if event.head is not None:
            self.require_commit(event.head)
            self.head = self.shown = event.head
        else:
            self.head = found
            # Of an annotated tag, an engine may name the tag itself.
            named = self.objects.headers([oid + "^{commit}" for oid in event.checked_out])
            if event.checked_out and found not in {header.oid for header in named if header is not None}:
                raise UndecidedError(
                    f"{event.engine} builds {event.checked_out[0][:SHORT_OID]}, but "
                    f"{found[:SHORT_OID]} is checked out",
                    f"git checkout --detach {event.checked_out[0]}",
                )
        # A train may have rebased or squashed what it builds.
        if event.includes not in (None, self.head) and not event.is_queued:
            self.require_commit(event.includes)
            if not is_ancestor(self.repository, event.includes, self.head):
                raise UndecidedError(
                    f"{event.engine} names {event.includes[:SHORT_OID]} as the head, but it is not in the "
                    f"history of {self.head[:SHORT_OID]}",
                    "run the pipeline again",
                )

    def tip_of(self, branch: str) -> str:
        """Return the commit that a branch of origin has, by its full name."""
        ref = REMOTE + branch
        found = resolve(self.objects, ref)
        if found is None or found.type != "commit":
            raise UndecidedError(f"{printable(ref)} is not in this clone", self.fetch(branch))
        if self.repository.git("symbolic-ref", "--quiet", ref, answers=(0, 1, 128)).code == 0:
            raise UndecidedError(
                f"{printable(ref)} is a symbolic ref, which names another branch",
                f"git symbolic-ref --delete {in_shell(ref, 'REF')} && {self.fetch(branch)}",
            )
        return found.oid

    def require_default(self) -> None:
        """Require that the engine and this clone know the same default branch: one of the two may be old."""
        own, named = self._default_here(), self.event.default
        if own is not None and named is not None and own != named:
            raise UndecidedError(
                f"{self.event.engine} says that the default branch is {printable(named)}, and "
                f"{REMOTE}HEAD here that it is {printable(own)}",
                "git remote set-head origin --auto, or correct what the pipeline has as its default branch",
            )

    def default_of_origin(self) -> str:
        """Find the default branch by `refs/remotes/origin/HEAD`."""
        name = self._default_here()
        if name is None:
            raise UndecidedError("the default branch of origin is not known here", _FETCH_ALL)
        return name

    def _default_here(self) -> str | None:
        """Read `refs/remotes/origin/HEAD`, if it is a symbolic ref: nobody can push it as one."""
        done = self.repository.git("symbolic-ref", "--quiet", REMOTE + "HEAD", answers=(0, 1, 128))
        name = os.fsdecode(done.out.rstrip(b"\n")).removeprefix(REMOTE)
        return name if is_branch_name(name) and not name.startswith("refs/") else None

    def policy_of(self, commit: str) -> FoundPolicy | None:
        """Read the policy of a commit; None if that is not here."""
        header = self.objects.header(commit + "^{tree}")
        return None if header is None else self.policies.at(self.policies.key(header.oid))

    def has_no_policy(self, commit: str) -> bool:
        """Return whether a commit has no policy, not even a broken one, and is here."""
        found = self.policy_of(commit)
        return found is not None and found.is_absent

    def has_fault(self, default: str) -> bool:
        """Return whether the policy of the default branch cannot be read, so that it may list any ref."""
        found = self.policy_of(self.tip_of(default))
        return found is not None and found.fault is not None

    def is_listed(self, ref: str, default: str) -> bool:
        """Return whether the policy of the default branch lists a ref. Not every host says what it protects,
        and each may protect others.

        While it cannot be read, every other ref is an open one, too: nothing is judged by its author alone.
        """
        found = self.policy_of(self.tip_of(default))
        policy = None if found is None else found.policy
        return policy is not None and matches_ref(policy.config.push.protected_refs or (), ref)

    def would_list_itself(self, ref: str, default: str) -> bool:
        """Return whether the policy of a new ref protects it as soon as it is there, as on a server."""
        tip = self.tip_of(default)
        return ref in USUAL_BRANCHES and not self.has_no_policy(tip) and self.protected_refs(tip) is None

    def lists(self, had: str | None, ref: str) -> bool:
        """Return whether the policy of what a ref had lists it, as on a server."""
        found = None if had is None else self.policy_of(had)
        if had is None or found is None or found.is_absent:
            return False
        listed = self.protected_refs(had)
        return matches_ref(USUAL_BRANCHES if listed is None else listed, ref)

    def protected_refs(self, judging: str) -> Sequence[str] | None:
        """Return the protected refs that the policy of a commit lists; all where it cannot be read."""
        found = self.policy_of(judging)
        if found is not None and found.fault is not None:
            return ("*",)
        return found.policy.config.push.protected_refs if found is not None and found.policy else None

    def branches_with_head(self) -> Sequence[str]:
        """List the branches of origin that have the head."""
        arguments = ("for-each-ref", f"--contains={self.head}", "--format=%(refname) %(symref)", REMOTE)
        lines = self.repository.output(*arguments).decode("utf-8", "surrogateescape").split("\n")
        # A symbolic ref has another name behind its own.
        return [line[len(REMOTE) : -1] for line in lines if line.endswith(" ")]

    def require_commit(self, oid: str, fetch: str | None = None) -> None:
        """Require that a commit, or a tag of one, is here, by its whole id in this repository's format."""
        is_own = self.repository.is_oid(oid.encode("ascii"))
        if is_own and self.objects.header(oid + "^{commit}") is not None:
            return
        if self.repository.shallow:
            raise self.cut_off()
        hint = fetch or f"git fetch origin {oid}"
        raise UndecidedError(f"the commit {oid[:SHORT_OID]} is not in this clone", hint)

    def require_claim(self, branch: str, base: str, claimed: str) -> None:
        """Require that the base is what the engine says: its claim is in the history of the base.

        In a queue the claim is the entry before, which has not landed; then it is in that of the head.
        """
        event = self.event
        self.require_commit(claimed, self.fetch(branch))
        where, known = (self.shown, self.head) if event.is_queued else (REMOTE + branch, base)
        if not is_ancestor(self.repository, claimed, known):
            raise UndecidedError(
                f"{event.engine} says that {printable(branch)} was at {claimed[:SHORT_OID]}, "
                f"which is not in the history of {printable(where)}",
                f"{self.fetch(branch)}, or run the pipeline again",
            )

    def require_history(self, base: str) -> None:
        """Require that no history is cut off between the base and the head."""
        shallow = self.repository.shallow
        if not shallow:
            return
        between = self.repository.output("rev-list", self.head, "^" + base).decode("ascii").split()
        if not between or not shallow.isdisjoint(between):
            raise self.cut_off()

    def cut_off(self) -> UndecidedError:
        """Make the error of a shallow clone, with the command that brings what is missing."""
        event = self.event
        branch = event.branch if event.kind is EventKind.PROPOSAL else event.default
        is_missing = branch is not None and resolve(self.objects, REMOTE + branch) is None
        hint = self.fetch(branch) if branch is not None and is_missing else _UNSHALLOW
        return UndecidedError("this clone is shallow: the history that must be checked is missing", hint)

    def fetch(self, branch: str) -> str:
        """Return the command that brings a base branch, and the missing history with it."""
        refspec = in_shell(f"+{BRANCHES}{branch}:{REMOTE}{branch}", "REFSPEC")
        return f"{_UNSHALLOW if self.repository.shallow else 'git fetch origin'} {refspec}"
