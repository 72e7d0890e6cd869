"""Check commits, each under the policy of its parent.

Also the rehearsal of `init`: the findings that a policy would have had in the last commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from patchgate.check.gate import MOST_FINDINGS
from patchgate.check.judging_policy import BUILT_IN, PolicySides, is_control, judge_reading
from patchgate.check.policy_lookup import (
    CheckOptions,
    detail_for,
    history_root,
    main_line_policy,
    requested_policy,
)
from patchgate.check.profiles import find_agent_trailer, judged_profiles
from patchgate.errors import UndecidedError
from patchgate.git.change_sources import LoadedChange
from patchgate.git.commit_lists import Commit, commits_of, recent_commits
from patchgate.git.history import Walk
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import (
    CONFIG_FILE,
    PRE_COMMIT_FILE,
    PYPROJECT_FILE,
    is_control_by_name,
)
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies, built_in
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Report
from patchgate.values import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.revisions import FirstCommit

_COUNTED = 100


def check_revision(repository: Repository, revision: str, asked: CheckOptions) -> Report:
    """Judge one commit (`REV`), or each commit of a range (`A..B`).

    Raises:
        PatchgateError: a revision is unknown, or the history cannot be read.
    """
    with Objects(repository) as objects:
        chosen = commits_of(repository, objects, revision)
    if chosen.between is not None:
        asked = replace(asked, since=chosen.between[0])
    report = judge_commits(repository, chosen.commits, asked)
    if chosen.commits or chosen.between is None:
        return report
    low, high = chosen.between
    said = f"the range is empty: every commit of {high} is also in {low}"
    return replace(report, warnings=(*report.warnings, said))


def judge_commits(repository: Repository, commits: Sequence[Commit], asked: CheckOptions) -> Report:
    """Judge commits, each under the policy of its first parent; parents come first."""
    with Walk(repository, commits) as walk:
        changes = tuple(judge_each(walk, commits, asked))
    return Report(changes, repository.limits)


def judge_each(
    walk: Walk, commits: Sequence[Commit], asked: CheckOptions, history: CommitHistory | None = None
) -> Iterator[ChangeVerdict]:
    """Judge commits of a walk one by one, while git reads ahead.

    Args:
        history: what is known of the policies of the walk.
    """
    done = findings = 0
    history = history or CommitHistory(walk, asked)
    while done < len(commits):
        for verdict in history.judge_from(commits[done:]):
            done += 1
            findings += len(verdict.findings)
            if findings > MOST_FINDINGS and walk.repository.has_limits:
                raise UndecidedError(
                    f"the commits have more than {MOST_FINDINGS:,} findings together",
                    "fix those of the first commits, and push fewer commits at once",
                )
            if asked.counted is not None and done % _COUNTED == 0:
                asked.counted(done, len(commits))
            yield verdict


class CommitHistory:
    """Judges the commits of a walk, and remembers the policy of each."""

    def __init__(self, walk: Walk, asked: CheckOptions) -> None:
        self._walk = walk
        self._policies = TreePolicies(walk.objects)
        self._asked = requested_policy(walk.objects, self._policies, asked)
        self._terms = asked
        self._fallback = self._find_fallback(asked.fallback)
        self._place = asked.place
        self._borrowed = asked.fallback or ""
        self._firsts = asked.firsts
        self._first: FirstCommit | None = None
        self._main: tuple[FoundPolicy, str] | None = None
        self._profile = asked.profile
        self._scoped = asked.scoped_commits
        self._in_full = asked.in_full or (self._scoped is not None and self._scoped.counts_lines)
        self._keys: dict[str, Key] = {}
        self._hooks: dict[str, bool] = {}

    def judge_from(self, commits: Sequence[Commit]) -> Iterator[ChangeVerdict]:
        """Judge commits until the policy changes: the new policy may need more to be read."""
        before = self.before_of(commits[0])
        profiles = {
            profile
            for commit in commits
            for profile in judged_profiles(*self.profile_of(commit, before.policy))
        }
        detail = detail_for([before.policy or built_in()], *profiles, in_full=self._in_full)
        for commit, reading in self._walk.read(commits, detail):
            is_same = self.before_of(commit) == before
            after = self._after(commit, reading)
            is_other = after.policy is not None and after != before
            if not is_same or (is_other and self._may_judge_itself(reading)):
                yield self._judge(commit, self._read_again(commit, after))
                return
            yield self._judge(commit, reading)

    def _may_judge_itself(self, reading: LoadedChange) -> bool:
        """Return whether the policy that a commit leaves may judge it, so that its needs must be read too.

        Under `--policy-from` the tree's own policy always differs; without this check every commit was read
        twice (3,000 commits: 90 s).
        """
        if self._asked is None or self._asked.policy is None:
            return True
        return any(
            is_control_by_name(file.path) or file.path.raw in _WITH_RULES for file in reading.change.files
        )

    def _read_again(self, commit: Commit, after: FoundPolicy) -> LoadedChange:
        """Read one commit again, in the detail that its two policies need."""
        profiles = judged_profiles(*self.profile_of(commit, self.before_of(commit).policy or after.policy))
        policies = [found.policy or built_in() for found in (self.before_of(commit), after)]
        detail = detail_for(policies, *profiles, in_full=self._in_full)
        ((_, reading),) = self._walk.read([commit], detail)
        return reading

    def profile_of(self, commit: Commit, policy: Policy | None) -> tuple[Profile, str]:
        """Choose the profile of a commit; with it why it is an agent's, or nothing."""
        if self._profile is not None:
            return self._profile, self._terms.profile_reason
        scoped = self._scoped
        if scoped is not None and scoped.binds and commit.oid in scoped.ids:
            return Profile.AGENT, "made under an intent"
        trailer = find_agent_trailer(commit.trailers, policy)
        return (Profile.COMMIT, "") if trailer is None else (Profile.AGENT, f"trailer {trailer}")

    def key_of(self, commit: str) -> Key:
        """Return the key of the policy in the tree of a commit."""
        if commit not in self._keys:
            self._keys[commit] = self._policies.key(self._walk.tree_of(commit))
        return self._keys[commit]

    def before_of(self, commit: Commit) -> FoundPolicy:
        """Return the policy that judges a commit."""
        if self._asked is not None:
            return self._asked
        found = (self._policies.at(self.key_of(parent)) for parent in commit.parents)
        # The first parent's; a merge into a line without a policy is judged by the one that it merges.
        before = next((each for each in found if not each.is_absent), self._fallback)
        if before.is_absent and not commit.parents and not self._begins(commit):
            # Only the first commit of a repository may judge itself, not a later root.
            return self._find_main()[0]
        return before

    def take_over_key(self, commit: Commit) -> Key:
        """Give a commit that leaves the policy as it was the key of its only parent; return it."""
        key = self._keys[commit.oid] = self.key_of(commit.parents[0])
        return key

    def policy_at(self, key: Key) -> FoundPolicy:
        """Return the policy of a key."""
        return self._policies.at(key)

    def place_of(self, commit: Commit) -> str:
        """Name the commit whose policy judges one that has a parent, as verdicts name it."""
        before = self.before_of(commit)
        if before.is_absent:
            return BUILT_IN
        is_borrowed = before is self._fallback
        return self._place or (self._borrowed if is_borrowed else commit.parents[0])[:12]

    def _begins(self, commit: Commit) -> bool:
        """Return whether a commit is the first of the repository."""
        if commit.parents:
            return False
        if self._firsts is not None:
            return commit.oid in self._firsts
        if self._first is None:
            from patchgate.git.revisions import FirstCommit

            known = history_root(self._walk.objects, self._terms)
            self._first = FirstCommit(self._walk.repository, known=known)
        return self._first.matches(commit.oid, commit.tree)

    def _find_main(self) -> tuple[FoundPolicy, str]:
        """Find the policy of the start of a range, else of the main line, with its commit."""
        if self._main is None:
            since = self._terms.since
            found = self._find_fallback(since)
            if since is not None and not found.is_absent:
                self._main = found, since
            else:
                self._main = main_line_policy(self._walk.objects, self._policies) or (FoundPolicy(), "")
        return self._main

    def _find_fallback(self, revision: str | None) -> FoundPolicy:
        header = self._walk.objects.header(revision + "^{tree}") if revision else None
        if header is None:
            return FoundPolicy()
        return replace(self._policies.at(self._policies.key(header.oid)), tree=header.oid)

    def _branches(self) -> dict[str, tuple[str, ...]]:
        """Map the trees of the branches that get the commits to theirs; none where they are not known."""
        headers = self._walk.objects.headers([oid + "^{tree}" for oid in self._terms.branches])
        found: dict[str, tuple[str, ...]] = {}
        for commit, header in zip(self._terms.branches, headers, strict=True):
            if header is not None:
                found[header.oid] = (*found.get(header.oid, ()), commit)
        if found or self._asked is None or self._asked.tree is None:
            return found
        return self._terms.branch_of(self._asked.tree)

    def _names_patchgate(self, tree: str) -> bool:
        if tree not in self._hooks:
            self._hooks[tree] = self._policies.names_patchgate(tree)
        return self._hooks[tree]

    def _after(self, commit: Commit, reading: LoadedChange) -> FoundPolicy:
        touched = any(file.path.raw in _POLICY_FILES for file in reading.change.files)
        if not touched and len(commit.parents) == 1:
            self.take_over_key(commit)
        return self._policies.at(self.key_of(commit.oid))

    def _judge(self, commit: Commit, reading: LoadedChange) -> ChangeVerdict:
        touched = {file.path.raw for file in reading.change.files}
        base = self._walk.base_of(commit)
        is_merge = len(commit.parents) > 1
        before = self.before_of(commit)
        is_main = self._main is not None and before is self._main[0]
        is_borrowed = not before.is_absent and (before is self._fallback or is_main)
        borrowed = self._main[1] if is_main and self._main is not None else self._borrowed
        own_place = commit.parents[0][:12] if commit.parents else BUILT_IN
        after = self._after(commit, reading)
        known = FoundPolicy()
        if commit.parents:
            known = self._policies.at(
                self._policies.key(base) if is_merge else self.key_of(commit.parents[0])
            )
        branches = self._branches() if is_merge else {}
        sides = (base, *branches, *map(self._walk.tree_of, commit.parents if is_merge else ()))
        rules = PolicySides(
            before,
            after,
            place=self._place or (borrowed[:12] if is_borrowed else own_place),
            # A rehearsed policy was not there before the first policy of the history.
            is_borrowed=is_borrowed or (self._terms.policy is not None and known.is_absent),
            is_first=self._begins(commit),
            # What a merge carries there is not known yet.
            hooks_named=(is_merge or PRE_COMMIT_FILE.raw in touched)
            and any(map(self._names_patchgate, sides)),
            base=known,
            parents=tuple(self._policies.at(self.key_of(parent)) for parent in commit.parents)
            if is_merge
            else (),
            branches=branches,
            landing=tuple(self._policies.at(self._policies.key(tree)) for tree in branches),
        )
        policy = rules.before.policy or rules.after.policy
        profile, reason = self.profile_of(commit, policy)
        verdict = judge_reading(reading, rules, profile, self._walk.objects, reason)
        if self._scoped is not None and commit.oid in self._scoped.ids:
            controls = frozenset(file.path for file in reading.change.files if is_control(file.path, rules))
            judging = policy or built_in()
            verdict = self._scoped.check_scope(verdict, judging, profile, controls, self._walk.objects)
        if policy is None or not policy.refuses_messages(profile):
            return verdict
        # 4 ms to import, and few policies refuse messages.
        from patchgate.check.commit_message import with_message

        return with_message(verdict, policy, profile, lambda: self._walk.objects.read(commit.oid))


_POLICY_FILES = frozenset({CONFIG_FILE.raw, PYPROJECT_FILE.raw})
_WITH_RULES = frozenset({PRE_COMMIT_FILE.raw, PYPROJECT_FILE.raw})


@dataclass(frozen=True, slots=True)
class Tally:
    """The findings of one rule, in how many commits, and the setting that would have avoided them."""

    rule: str
    level: Level
    findings: int
    commits: int
    remedy: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How many commits were rehearsed, how many would be refused, and each rule's tally."""

    commits: int
    refused: int
    undecided: int
    tallies: tuple[Tally, ...]


def rehearse(repository: Repository, policy: Policy, count: int) -> Rehearsal:
    """Judge the last `count` commits of HEAD without merges under a policy.

    Raises:
        PatchgateError: the history cannot be read.
    """
    with Objects(repository) as objects:
        commits = recent_commits(repository, objects, count)
    verdicts = judge_commits(repository, commits, CheckOptions(policy=policy)).changes
    states = [verdict.verdict.value for verdict in verdicts]
    return Rehearsal(
        commits=len(commits),
        refused=states.count("rejected"),
        undecided=states.count("undecided"),
        tallies=tuple(_tallies(verdicts)),
    )


def _tallies(verdicts: Iterable[ChangeVerdict]) -> Iterable[Tally]:
    found: dict[str, list[tuple[int, Finding]]] = {}
    for index, verdict in enumerate(verdicts):
        for finding in verdict.findings:
            if finding.level is not Level.NOTE:
                found.setdefault(finding.rule, []).append((index, finding))
    for rule, each in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        findings = [finding for _, finding in each]
        yield Tally(
            rule=rule,
            level=findings[0].level,
            findings=len(each),
            commits=len({index for index, _ in each}),
            remedy=_remedy(rule, findings),
        )


def _remedy(rule: str, findings: list[Finding]) -> str:
    """Name the setting with which this rule would have had no findings, if there is one."""
    numbers = [actual for finding in findings if isinstance(actual := finding.details.get("actual"), int)]
    key = rule.replace("-", "_")
    if numbers:
        return f"no findings with {key} = {max(numbers)}"
    definition = findings[0].definition
    if definition.invariant:
        return "this rule has no setting"
    patterns = sorted(
        {str(finding.details["pattern"]) for finding in findings if finding.details.get("pattern")}
    )
    named = ", ".join(f'"{pattern}"' for pattern in patterns[:5]) + (", …" if len(patterns) > 5 else "")
    by_rule = {
        "deny-class": f"deny_classes without {named}",
        "mode-change": "allow_modes = true",
        "symlink": "allow_symlinks = true",
        "gitlink": "allow_gitlinks = true",
        "secret": "[content] secrets = false",
        "conflict-marker": "[content] conflict_markers = false",
    }
    return "no findings with " + by_rule.get(rule, f'[rules] {rule} = "off"')
