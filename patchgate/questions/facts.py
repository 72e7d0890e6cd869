"""What the repository itself says: its languages, its lock files, its default branch."""

from __future__ import annotations

import os
from collections import Counter

from patchgate.git.pushes import BRANCHES, default_branch
from patchgate.git.quoting import printable
from patchgate.git.refs import symbolic_refs
from patchgate.git.repository import Repository
from patchgate.git.working_tree import index_names
from patchgate.policy.file_kinds import MANIFESTS
from patchgate.questions.question import RepositoryFact

_REMOTE = "refs/remotes/origin/"
_MOST_NAMED = 20
_LANGUAGES = {
    ".c": "C",
    ".cc": "C++",
    ".cpp": "C++",
    ".cs": "C#",
    ".go": "Go",
    ".java": "Java",
    ".js": "JavaScript",
    ".jsx": "JavaScript",
    ".kt": "Kotlin",
    ".php": "PHP",
    ".py": "Python",
    ".rb": "Ruby",
    ".rs": "Rust",
    ".scala": "Scala",
    ".sh": "Shell",
    ".swift": "Swift",
    ".ts": "TypeScript",
    ".tsx": "TypeScript",
}


def repository_facts(repository: Repository) -> dict[RepositoryFact, tuple[str, ...]]:
    """Gather facts from the index and the refs: languages with the most files first, lock files by name.

    Raises:
        UndecidedError: git could not answer.
    """
    languages: Counter[str] = Counter()
    locks: set[str] = set()
    for records in index_names(repository):
        for record in records:
            name = os.fsdecode(record[1:].rpartition(b"/")[2])
            if (language := _LANGUAGES.get(os.path.splitext(name)[1].lower())) is not None:
                languages[language] += 1
            if name.lower() in MANIFESTS:
                locks.add(printable(name, 80))
    found: dict[RepositoryFact, tuple[str, ...]] = {RepositoryFact.LOCK_FILES: tuple(sorted(locks))}
    if languages:
        ranked = sorted(languages.items(), key=lambda each: (-each[1], each[0]))
        found[RepositoryFact.LANGUAGES] = tuple(name for name, _ in ranked[:_MOST_NAMED])
    branch = symbolic_refs(repository, _REMOTE).get(_REMOTE + "HEAD") or default_branch(repository)
    if branch is not None:
        name = branch.removeprefix(_REMOTE).removeprefix(BRANCHES)
        found[RepositoryFact.DEFAULT_BRANCH] = (printable(name, 200),)
    return found
