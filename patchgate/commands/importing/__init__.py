"""Read the config of other hook managers and write it as commands of the policy.

One module for each config: `pre_commit_config`, `lefthook_config`, `lint_staged_config`. `known_tools` and
`known_hooks` have what is known of public tools; `path_patterns` translates patterns of paths. What cannot be
expressed is left out and listed with the reason. Nothing here starts a program or installs anything.
"""
