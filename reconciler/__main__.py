"""`python -m reconciler`, for an interpreter whose scripts are not on PATH."""

from reconciler.cli import main

main()
