"""What a Hermes-shaped home is: its records, its files and its words, for every provider that keeps such a folder.

`plain`, `record`, `block` and `yamledit` need the standard library and PyYAML only: the Hermes provider sends their
source to Hermes's own interpreter.
"""
