#!/usr/bin/env bash
# Prints the Python to make the environment with: the newest of 3.11-3.13 (hermes-agent needs < 3.14).
for name in python3.13 python3.12 python3.11 python3 python; do
    if path=$(command -v "$name") && "$path" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        echo "$path"
        exit 0
    fi
done
echo "make: Python 3.11, 3.12 or 3.13 with venv is needed (hermes-agent does not run on 3.14 or newer)." >&2
if newest=$(command -v python3); then echo "make: found only $("$newest" --version 2>&1)." >&2; fi
exit 1
