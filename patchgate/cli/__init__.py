"""The command line: arguments in, text and exit code out; the hooks' entry.

Belongs here: `program`, which starts and ends the process; click commands; `hooks`, which answers git
without click, for it costs 25 ms; `quick_push`, a small program that the hook pre-push starts by itself;
reading the environment, choosing a form, printing. Does not: any decision about a change. Only here click is
imported, the environment read, and anything printed. Commands are loaded when they are called: `--help`
loads neither pygit2 nor pydantic, `explain RULE` neither.
"""

import patchgate.cli.early  # noqa: F401 - it comes before what takes time
