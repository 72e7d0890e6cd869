"""Read `.pre-commit-config.yaml`, which prek reads too, as commands of the policy.

A hook of a public repository is known by `known_hooks`; one of `repo: local` says its own command. A hook of
another repository is left out: what it runs is not in this repository.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from patchgate.commands.importing.documents import Value, is_true, items_of, mapping_of, text_of, texts_of
from patchgate.commands.importing.draft import DraftWriter, ImportDraft, Key, Surroundings
from patchgate.commands.importing.known_hooks import (
    OWN_GATES,
    PUBLIC_HOOKS,
    PublicHook,
    repository_name,
    types_of,
)
from patchgate.commands.importing.known_tools import keys_of
from patchgate.commands.importing.path_patterns import (
    NOT_TEXT,
    NOTHING,
    both,
    patterns_of_expression,
    patterns_of_types,
)
from patchgate.values import dataclass

NAMES = (".pre-commit-config.yaml", ".pre-commit-config.yml")
_STAGES = {
    **dict.fromkeys(("pre-commit", "commit", "pre-merge-commit", "merge-commit"), "commit"),
    **dict.fromkeys(("pre-push", "push"), "push"),
}
_LANGUAGES = {
    "docker": "it runs in a container that pre-commit builds",
    "docker_image": "it runs in a container",
    "pygrep": "write its expression into [content] deny",
    "fail": "write its paths into [policy] deny",
}
_INEXPRESSIBLE = "cannot be written as patterns of paths"


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What the top of the file says for every hook: `default_stages`, `files` and `exclude`, as patterns."""

    stages: Sequence[str]
    files: tuple[str, ...]
    exclude: tuple[str, ...]


def read_pre_commit(document: Mapping[str, Value], name: str, around: Surroundings) -> ImportDraft:
    """Read the document of a `.pre-commit-config.yaml`.

    Args:
        document: its values.
        name: of the file.
        around: the repository.
    """
    out = DraftWriter(name)
    defaults = _Defaults(
        texts_of(document.get("default_stages")),
        _of_every_hook(document, "files", out),
        _of_every_hook(document, "exclude", out),
    )
    for repo in items_of(document.get("repos")):
        entry = mapping_of(repo)
        url = text_of(entry.get("repo"))
        for each in items_of(entry.get("hooks")):
            hook = mapping_of(each)
            _Hook(hook, url, defaults, around, out).read()
    return out.draft


def _of_every_hook(document: Mapping[str, Value], key: str, out: DraftWriter) -> tuple[str, ...]:
    text = text_of(document.get(key))
    found = () if key == "exclude" and text == NOTHING else patterns_of_expression(text)
    if found is None:
        out.leave_out(f"{key} of every hook", f"{_INEXPRESSIBLE}; add them to the commands: {text}")
    return found or ()


class _Hook:
    """One hook of the file."""

    def __init__(
        self,
        hook: Mapping[str, Value],
        url: str,
        defaults: _Defaults,
        around: Surroundings,
        out: DraftWriter,
    ) -> None:
        self._hook = hook
        self._repository = url if url in {"local", "meta"} else repository_name(url)
        self._url = url
        self._defaults = defaults
        self._around = around
        self._out = out
        self._id = text_of(hook.get("id"))
        self._what = " ".join(filter(None, (self._repository or url, self._id or "a hook without an id")))

    def read(self) -> None:
        if (why := self._why_not()) is not None:
            self._out.leave_out(self._what, why)
            return
        known = PUBLIC_HOOKS.get(self._repository, {}).get(self._id)
        words = self._words(known)
        if words is None:
            self._out.leave_out(self._what, "its entry is not a command line")
            return
        on = self._occasions()
        if not on:
            self._out.leave_out(self._what, "patchgate runs commands at a commit and at a push only")
            return
        takes_files = self._takes_files(known)
        files = self._files(known)
        exclude = self._patterns("exclude")
        if files is None or exclude is None:
            key = "files" if files is None else "exclude"
            self._out.leave_out(self._what, f"its `{key}` {_INEXPRESSIBLE}")
            return
        keys = keys_of(words, self._around, takes_files=takes_files)
        if known is not None and known.kind:
            keys["kind"] = known.kind
        self._out.add(self._id, self._with_paths(keys, files, exclude, known) | {"on": on}, self._what)
        self._note(known, words)

    def _why_not(self) -> str | None:
        if self._url == "meta":
            return "it checks the config of pre-commit itself"
        if not self._id:
            return "it has no id"
        if (own := OWN_GATES.get(self._repository, {}).get(self._id)) is not None:
            return own
        if self._url == "local":
            return _LANGUAGES.get(text_of(self._hook.get("language")))
        if self._id in PUBLIC_HOOKS.get(self._repository, {}):
            return None
        return f"what it runs is in its own repository; write [commands.{self._id}] with that program"

    def _words(self, known: PublicHook | None) -> list[str] | None:
        own = texts_of(self._hook.get("args")) if "args" in self._hook else None
        if known is not None:
            args = list(known.args) if own is None else own
            return [*known.words, *args]
        try:
            words = shlex.split(text_of(self._hook.get("entry")))
        except ValueError:
            return None
        return [*words, *(own or ())] if words else None

    def _occasions(self) -> tuple[str, ...]:
        stages = texts_of(self._hook.get("stages")) or self._defaults.stages or ("pre-commit",)
        return tuple(dict.fromkeys(_STAGES[stage] for stage in stages if stage in _STAGES))

    def _takes_files(self, known: PublicHook | None) -> bool:
        if "pass_filenames" in self._hook:
            return is_true(self._hook["pass_filenames"])
        return known is None or known.takes_files

    def _files(self, known: PublicHook | None) -> tuple[str, ...] | None:
        """Give the patterns of its files: those of its types, and of them those that `files` matches."""
        either = texts_of(self._hook.get("types_or"))
        types = texts_of(self._hook.get("types"))
        if known is not None and not types and not either:
            either = list(types_of(known))
        named = patterns_of_types(types, either)
        own = self._patterns("files")
        if named is None or own is None:
            return None
        found = both(own or (() if known is None else known.files), named)
        if found is None or not self._defaults.files:
            return found
        return both(self._defaults.files, found)

    def _patterns(self, key: str) -> tuple[str, ...] | None:
        text = text_of(self._hook.get(key))
        return () if key == "exclude" and text == NOTHING else patterns_of_expression(text)

    def _with_paths(
        self, keys: dict[str, Key], files: tuple[str, ...], exclude: tuple[str, ...], known: PublicHook | None
    ) -> dict[str, Key]:
        if is_true(self._hook.get("always_run")):
            return keys
        # A linter of text skips the others itself.
        is_writing = known is not None and known.kind == "format" and known.types == ("text",)
        not_text = NOT_TEXT if is_writing else ()
        return keys | {"files": files, "exclude": (*self._defaults.exclude, *exclude, *not_text)}

    def _note(self, known: PublicHook | None, words: Sequence[str]) -> None:
        packages = texts_of(self._hook.get("additional_dependencies"))
        if packages:
            self._out.notes.append(f"{words[0]}: pre-commit installed {', '.join(packages)} with it")
        elif known is not None and known.package == "pre-commit-hooks":
            self._out.notes.append(f"{words[0]}: the package pre-commit-hooks has it")
