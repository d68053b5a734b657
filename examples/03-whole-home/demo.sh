#!/usr/bin/env bash
# A whole home in one setup: models, secrets with their sources, channels, routes, webhooks, tools, skills, a planning
# kit and jobs. Made from nothing in one apply; then a token is rotated.
set -euo pipefail
exec </dev/null # nothing here asks
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -R "$here/setup.yaml" "$here/content" "$here/skills" "$work/"
cd "$work"
export PATH="$root/.venv/bin:$PATH" XDG_STATE_HOME="$work/state" HOME="$work"
# What a password manager, a file and the environment would hold.
export OPENROUTER_API_KEY=not-a-real-key
printf 'TELEGRAM_BOT_TOKEN=not-a-real-token\n' >secrets.env
printf 'not-a-real-hook-secret\n' >hook-secret
if [ -t 1 ]; then bold=$'\033[1m' cyan=$'\033[36m' plain=$'\033[0m'; else bold='' cyan='' plain=''; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
quoted() { for word; do case $word in *\**) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac; done; }
run() { printf '%s$%s%s\n' "$cyan" "$(quoted "$@")" "$plain"; "$@"; }
outcome() { sed -n '/^[^ ]*[$] /p; /^digest/,$ { /^digest/!p }'; }

say "Everything that the home is to be, as one plan. No value of a secret is in it."
run reconciler plan --out plan.json

say "Read, and found good: exactly that is done, secrets first."
run reconciler apply --plan plan.json | outcome
run reconciler plan

say "How the secrets stand."
run reconciler status '*/secrets/*'

say "The token is rotated where it comes from: one row."
printf 'TELEGRAM_BOT_TOKEN=another-token\n' >secrets.env
run reconciler plan
run reconciler apply 'main/secrets/*' --yes | outcome

say "Is a value left anywhere in a copy?"
run reconciler doctor --secrets
