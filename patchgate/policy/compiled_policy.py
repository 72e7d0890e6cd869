"""Compiles a policy into plain values by which the fast path recognises a clean commit.

If a gate would report anything, even a note, the compiled policy must match; if only the compiled policy
matches, the full check runs, which only costs time. It covers added, modified and deleted regular files with
plain ASCII names; the caller passes on everything else, and checks collisions and lengths of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from patchgate import __version__
from patchgate.git.path import fold
from patchgate.policy.command_files import CommandFiles
from patchgate.policy.component import anchored
from patchgate.policy.content_rules import SECRET_FORMS
from patchgate.policy.file_kinds import CLASSES, POLICY_PATHS
from patchgate.policy.glob_matching import with_folder
from patchgate.policy.glob_syntax import readings
from patchgate.policy.literal_index import FOLDED_ASCII, Check, best_checks
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.regular_expressions import literals_of
from patchgate.policy.validators import version_satisfies
from patchgate.values import dataclass


def checks_of(pattern: str) -> list[Check]:
    """Choose checks of which one matches every path of a pattern: those with the longest text.

    A pattern with a letter that does not fold to ASCII needs none.

    Raises:
        PatternError: the pattern can match nothing, or is not supported.
    """
    found: dict[Check, None] = {}
    for segments in readings(pattern, fold):
        if all(piece.isascii() for each in segments for piece in each.pieces if isinstance(piece, str)):
            found.update(dict.fromkeys(best_checks(segments, FOLDED_ASCII)))
    return list(found)


ADDED_LINE = b"\n+"
_MARKERS = tuple(ADDED_LINE + sign * 7 for sign in (b"<", b">", b"|"))
# Control files, files that git reads from the tree, and names that a file system may treat as `.git`.
_ALWAYS: tuple[Check, ...] = (
    ("prefixes", "patchgate.toml"),
    ("prefixes", ".patchgate"),
    ("prefixes", "pyproject.toml"),
    ("prefixes", ".pre-commit-config.yaml"),
    ("names", ".git"),
    ("names", ".gitattributes"),
    ("names", ".gitmodules"),
    ("endings", "."),
    ("endings", " "),
)
# Where agents read their hooks, which the agent profile may not change.
_AGENTS: tuple[Check, ...] = tuple(("names", name) for name in (".claude", ".codex", ".cursor", ".gemini"))


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """What a policy could report about a plain change under a profile, as plain values.

    Limits are inclusive, None is no limit. A path is inside if it is one of `roots`, or below one (None:
    every path is). The other texts are compared with the path in lower case: `prefixes` are the path or a
    folder above it, `names` whole components, `endings` and `beginnings` those of any component, `parts`
    anywhere in one. `texts` are searched in the output of `git diff -p -U0`, `small_texts` in the same in
    lower case. `reads_contents`: binary files are denied. `has_components`: a deletion anywhere can remove
    what a contract names. `verifies_pushes`: a push runs programs. `reserves`: files that an intent of
    another worktree declares are reported. `commands` are the endings of the paths that a command at a commit
    may be for; an empty ending is every path.
    """

    max_files: int | None
    max_added_lines: int | None
    max_file_bytes: int | None
    roots: tuple[str, ...] | None
    prefixes: tuple[str, ...]
    names: frozenset[str]
    endings: tuple[str, ...]
    beginnings: tuple[str, ...]
    parts: tuple[str, ...]
    texts: tuple[bytes, ...]
    small_texts: tuple[bytes, ...]
    reads_contents: bool
    has_components: bool
    judges_messages: bool
    refuses_messages: bool
    verifies_pushes: bool
    reserves: bool
    commands: tuple[bytes, ...]


def compile_policy(policy: Policy, profile: Profile = Profile.COMMIT) -> CompiledPolicy | None:
    """Compile a policy for a profile; None if nothing can be recognised under it."""
    wanted = policy.config.required_version
    if wanted is not None and not version_satisfies(wanted, __version__):
        return None
    if policy.config.warnings:
        # Config warnings are shown at every commit, by the full check.
        return None
    roots = _roots(policy, profile)
    checks = set(_checks(policy, profile))
    if roots == () or any(not text for _, text in checks):
        return None
    limits = policy.all_limits(profile)

    def least(rule: str, values: Iterable[int | None]) -> int | None:
        spoken = [value for value in values if value is not None] if _is_on(policy, rule, profile) else []
        return min(spoken, default=None)

    def texts_of(field: str) -> tuple[str, ...]:
        # No plain name contains a folded text that is not ASCII.
        return tuple(sorted(text for name, text in checks if name == field and text.isascii()))

    texts, small_texts = _texts(policy, profile)
    return CompiledPolicy(
        # What an override counts is never more than the whole.
        max_files=least("max-files", (each.max_files for each in limits)),
        max_added_lines=least("max-added-lines", (each.max_added_lines for each in limits)),
        max_file_bytes=least("max-file-bytes", (each.max_file_bytes for each in limits)),
        roots=roots,
        prefixes=texts_of("prefixes"),
        names=frozenset(texts_of("names")),
        endings=texts_of("endings"),
        beginnings=texts_of("beginnings"),
        parts=texts_of("parts"),
        texts=texts,
        small_texts=small_texts,
        reads_contents="binary" in _denied_classes(policy, profile),
        has_components=bool(policy.config.components),
        judges_messages=policy.judges_messages(profile),
        # What a trailer of the policy marks has other limits.
        refuses_messages=policy.refuses_messages(profile) or bool(policy.config.profile.agent_trailers),
        verifies_pushes=policy.config.verify.on_push
        or any("push" in each.on for each in policy.config.commands.values()),
        reserves=_is_on(policy, "intent-reserved", profile),
        commands=_command_endings(policy),
    )


def _command_endings(policy: Policy) -> tuple[bytes, ...]:
    """Return the endings of the paths that some command at a commit is for."""
    endings: set[bytes] = set()
    for each in policy.config.commands.values():
        if "commit" in each.on:
            endings.update(CommandFiles(each).endings or (b"",))
    return tuple(sorted(endings))


def _is_on(policy: Policy, rule: str, profile: Profile) -> bool:
    return policy.level(rule, profile) is not None


def _bare(prefix: str) -> str:
    """Remove empty and `.` components of a literal path; the whole repository becomes empty."""
    return "/".join(part for part in prefix.split("/") if part not in {"", "."})


def _roots(policy: Policy, profile: Profile) -> tuple[str, ...] | None:
    written = policy.config.policy.allow_roots
    if written is None or not _is_on(policy, "outside-allow-roots", profile):
        return None
    roots = {_bare(root) for root in written}
    return None if "" in roots else tuple(sorted(root for root in roots if root.isascii()))


def _denied_classes(policy: Policy, profile: Profile) -> frozenset[str]:
    """List the classes that the limits deny."""
    if not _is_on(policy, "deny-class", profile):
        return frozenset()
    limits = policy.all_limits(profile)
    return frozenset[str]().union(*(each.deny_classes | each.deny_new_classes for each in limits))


def _checks(policy: Policy, profile: Profile) -> Iterator[Check]:
    """Yield what to search for in paths."""
    section = policy.config.policy
    yield from _ALWAYS
    if profile is Profile.AGENT:
        yield from _AGENTS
    if _is_on(policy, "deny-prefix", profile):
        yield from (("prefixes", _folded(_bare(prefix))) for prefix in section.deny_prefixes)
    if _is_on(policy, "deny-suffix", profile):
        for suffix in map(_folded, section.deny_suffixes):
            _, slash, name = suffix.rpartition("/")
            yield ("names" if slash else "endings", name)
    for component in policy.config.components.values():
        yield ("prefixes", _folded(component.contract))
        for glob in (*component.tests, *component.implementation):
            yield from checks_of(anchored(glob))
    patterns = list(section.deny) if _is_on(policy, "deny-pattern", profile) else []
    classes = set(_denied_classes(policy, profile))
    if _is_on(policy, "lock-without-manifest", profile):
        classes.add("lock")
    for name in classes:
        patterns += CLASSES[name]
    for table in policy.config.owners:
        patterns += [pattern for pattern in table.paths if pattern != POLICY_PATHS]
    for pattern in map(with_folder, patterns):
        yield from checks_of(pattern)


def _folded(text: str) -> str:
    return fold(text.encode("utf-8", "surrogateescape"))


def _texts(policy: Policy, profile: Profile) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """List the literals of which one is in every change whose content a rule reports."""
    rules = policy.content
    texts: set[bytes] = set()
    small_texts: set[bytes] = set()
    if rules.secrets and _is_on(policy, "secret", profile):
        texts.update(literal for form in SECRET_FORMS for literal in form.literals)
    if rules.conflict_markers and _is_on(policy, "conflict-marker", profile):
        texts.update(_MARKERS)
    for expression in rules.denied if _is_on(policy, "deny-content", profile) else ():
        literals = literals_of(expression.pattern)
        if literals is None:
            # No literal is in all its matches, so every added line counts.
            return (ADDED_LINE,), ()
        (small_texts if literals.ignore_case else texts).update(literals.texts)
    if policy.judges_placeholders(profile):
        # Imported here, for most policies do not need it.
        from patchgate.policy.placeholder_markers import FUNCTIONS

        # UTF-16 needs nothing: git calls such a file binary, or its lines contain a NUL.
        found = policy.markers.literals_of_all()
        if found is None:
            return (ADDED_LINE,), ()
        texts.update(found[0], FUNCTIONS)
        small_texts.update(found[1])
    return tuple(sorted(texts)), tuple(sorted(small_texts))
