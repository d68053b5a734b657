#!/usr/bin/env bash
# The main job on a throw-away home of our own, with nothing installed but this package: make the home, apply, an edit
# behind our back, drift, capture, and a delete that somebody reviewed.
set -euo pipefail
exec </dev/null # nothing here asks
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Everything happens in a folder of its own: the setup, the home and the state.
cp -R "$here/setup.yaml" "$here/content" "$work/"
cd "$work"
export PATH="$root/.venv/bin:$PATH" XDG_STATE_HOME="$work/state" HOME="$work"
if [ -t 1 ]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; else bold='' cyan='' plain=''; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$cyan" "$*" "$plain"; }
run() { show "$@"; "$@"; }
# The few steps that end with a code of their own (3: something is held) are the point of the demo.
may() { show "$@"; "$@" || printf '(exit %d)\n' $?; }
# An apply prints its plan once more before it begins; here that was just to be seen.
outcome() { sed -n '/^[^ ]*[$] /p; /^digest/,$ { /^digest/!p }'; }

say "setup.yaml declares a home with two profiles and three jobs. There is no such home yet. What would be done?"
run reconciler plan --out plan.json

say "That plan was read and is good. Exactly it is applied: the home is made, then what is in it."
run reconciler apply --plan plan.json | outcome

say "Applied again: nothing to do, and no byte changes."
run reconciler apply --yes

say "Behind our back, an agent rewrites the prompt of one of our jobs."
id=$(reconciler show main/default/jobs/morning-brief --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
edit="{\"id\": \"$id\", \"prompt\": \"Read my calendar and write two lines.\"}"
show reconciler native jobs.update --root home --json "'$edit'"
reconciler native jobs.update --root home --json "$edit" >/dev/null
may reconciler plan

say "Nothing is overwritten by itself. One answer would be --restore. The other: it is better so, take it into the setup."
cp setup.yaml before.yaml
run reconciler capture main/default/jobs/morning-brief
may diff before.yaml setup.yaml
run reconciler plan

say "A job that is no longer wanted: its block is taken out of setup.yaml. A delete waits until somebody has reviewed it."
show '$EDITOR setup.yaml    # watch-disk: … is gone'
sed -i.before '/watch-disk:/,/deliver: local/d' setup.yaml && rm setup.yaml.before
run reconciler plan --out delete.json
may reconciler apply --plan delete.json | outcome

say "Reviewed: somebody approves the plan, in a session of their own. A script cannot review what it has planned itself."
run setsid -w reconciler approve delete.json
run reconciler apply --plan delete.json --reviewed | outcome

say "What the home holds now, as its own door says it:"
show reconciler native jobs.list --root home
reconciler native jobs.list --root home | python3 -c '
import json, sys
for job in json.load(sys.stdin)["result"]["jobs"]:
    print("  ", job["schedule"]["expr"], job["schedule"]["tz"] + ":", job["prompt"].strip())'
