#!/usr/bin/env bash
# The main job on a real, throw-away Hermes home: provision, apply, an agent's edit, drift, and both answers to it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/agent-home-reconciler
hermes=$(ls -d "$cache"/hermes-0.19.0/bin)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Everything happens in a folder of its own: the setup, the home, the state, and a HOME for Hermes's CLI.
cp -R "$here/setup.yaml" "$here/content" "$work/"
cd "$work"
export PATH="$root/.venv/bin:$hermes:$PATH" XDG_STATE_HOME="$work/state" HOME="$work" HERMES_HOME="$work/home"
say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() { printf '\033[36m$ %s\033[0m\n' "$*"; "$@"; }
# The few steps that end with a code of their own (3: something is held) are the point of the demo.
may() { printf '\033[36m$ %s\033[0m\n' "$*"; "$@" || printf '(exit %d)\n' $?; }

say "There is no home yet. What would be done?"
run reconciler plan

say "Make it: only the home and its secret's name, then everything else."
may reconciler apply main --yes
printf 'OPENROUTER_API_KEY=not-a-real-key\n' >>home/.env && chmod 600 home/.env
echo "(put OPENROUTER_API_KEY into home/.env, as you would; the reconciler only knows its name)"
run reconciler plan --out plan.json
run reconciler apply --plan plan.json

say "Applied again: nothing to do, and no byte changes."
run reconciler apply --yes

say "An agent edits one of our jobs, through Hermes's own CLI."
id=$(reconciler show main/default/jobs/morning-brief --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
run hermes -p default cron edit "$id" --prompt "Read my calendar and write two lines." >/dev/null
may reconciler plan
run reconciler status

say "First answer: put it back."
run reconciler apply --restore main/default/jobs/morning-brief

say "The agent does it again. Second answer: it is better so; take it into the setup."
run hermes -p default cron edit "$id" --prompt "Read my calendar and write two lines." >/dev/null
run reconciler capture main/default/jobs/morning-brief
run diff -u "$here/setup.yaml" setup.yaml || true
run reconciler plan

say "Hermes sees the same jobs:"
run hermes -p default cron list
