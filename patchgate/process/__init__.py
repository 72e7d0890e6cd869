"""Child processes: start one, feed it, end it. Only this folder imports subprocess.

Git and our other helpers (`child`) get narrow limits, and exceeding one is an `UndecidedError`. A command of
the user's (`command`) gets everything but unlimited time; no process of it survives. `command` is imported
from its own module: a hook never needs it. Does not: which command to run, what its output means.
"""
