"""`python -m patchgate`."""

from patchgate.surfaces.program import main

main()
