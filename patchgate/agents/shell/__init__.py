"""Shell commands of coding agents: read one (`shell_text`), and find what bypasses the git hooks.

`shell_rules` judges each simple command, `shell_runners` knows the programs that run others, `git_words` the
arguments of git. `hooks.events` alone calls them.
"""
