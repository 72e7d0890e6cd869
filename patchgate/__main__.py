"""`python -m patchgate`."""

from patchgate.cli.program import main

main()
