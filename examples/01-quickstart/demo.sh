#!/usr/bin/env bash
# The main job on a real, throw-away Hermes home: provision, apply, an agent's edit, drift, and both answers to it.
set -euo pipefail
exec </dev/null # nothing here asks
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
if [ -t 1 ]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; else bold='' cyan='' plain=''; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$cyan" "$*" "$plain"; }
run() { show "$@"; "$@"; }
# The few steps that end with a code of their own (3: something is held) are the point of the demo.
may() { show "$@"; "$@" || printf '(exit %d)\n' $?; }
# An apply prints its plan once more before it begins; here that was just to be seen.
outcome() { sed -n '/^[^ ]*[$] /p; /^digest/,$ { /^digest/!p }'; }

say "There is no home yet. What would be done?"
run reconciler plan

say "The home, and what needs nobody's consent. The rest waits: for its secret, or for a person."
may reconciler apply main --yes | outcome

say "The setup only names the secret. Its value goes where Hermes keeps secrets, by your hand."
show 'echo OPENROUTER_API_KEY=… >> home/.env'
printf 'OPENROUTER_API_KEY=not-a-real-key\n' >>home/.env && chmod 600 home/.env

say "Now the rest: a plan to a file, which somebody reads first, and exactly that plan is applied."
run reconciler plan --out plan.json
run reconciler apply --plan plan.json | outcome

say "Applied again: nothing to do, and no byte changes."
run reconciler apply --yes

say "Behind our back, an agent edits one of our jobs, through Hermes's own CLI."
id=$(reconciler show main/default/jobs/morning-brief --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
edit() { show "hermes cron edit $id --prompt 'Read my calendar and write two lines.'"
  hermes -p default cron edit "$id" --prompt "Read my calendar and write two lines." >/dev/null; }
edit
may reconciler plan
run reconciler status

say "First answer: put it back."
run reconciler apply --restore main/default/jobs/morning-brief

say "The agent does it again. Second answer: it is better so; take it into the setup."
edit
cp setup.yaml before.yaml
run reconciler capture main/default/jobs/morning-brief
may diff before.yaml setup.yaml
run reconciler plan

say "Hermes sees the same jobs:"
run hermes -p default cron list
