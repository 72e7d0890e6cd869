"""Room 2: what was agreed beforehand.

Belongs here: every document that a repository declares (config, policy, intents, components, baselines,
commands, the agents' replies): its bytes become checked, frozen values here, and all mistakes in it are told
at once. pydantic (120 ms to import, so not for documents that a cache knows) and pathspec live here.
Does not: git, files, clocks (bytes come in as arguments), judging a change (`gates`).
Callers: `runs`, `operations`, `surfaces`. Imports only `change`, `verdict.rules` and `errors`.

What a good document does not need is imported where a mistake is told: `difflib` and `toml_lines` cost a
commit nothing. `tomllib` is imported where TOML is read, since the defaults hold without any file.
"""
