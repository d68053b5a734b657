"""Rendering: the only place of the program that prints. Everything shown is scrubbed for the terminal (L5)."""
