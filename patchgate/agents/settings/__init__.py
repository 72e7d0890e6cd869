"""The settings of coding agents: which client reads which file (`clients`), and our entries in it.

`install` edits the file as text (`settings_text`, `json_text`), `doctor` finds out whether the hooks answer.
"""
