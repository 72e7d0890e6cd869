"""`python -m patchgate`."""

from patchgate.surfaces.cli import main

main()
