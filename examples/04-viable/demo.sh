#!/usr/bin/env bash
# A project on the viable platform, on its stand-in: first contact, a kit and settings, a refusal, and a kit that grows.
set -euo pipefail
exec </dev/null # nothing here asks
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
sandbox=
end() {
  if [ -n "$sandbox" ]; then kill "$sandbox" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap end EXIT

# Everything happens in a folder of its own: the setup, the state, and what the stand-in says.
cp "$here/setup.yaml" "$work/"
cd "$work"
export PATH="$root/.venv/bin:$PATH" XDG_STATE_HOME="$work/state" HOME="$work" NO_COLOR=1
reconciler viable-sandbox >sandbox.txt &
sandbox=$!
for _ in $(seq 100); do grep -q ^token: sandbox.txt && break; sleep 0.1; done
sed -i "s,http://127.0.0.1:8787,$(sed -n '1s/ .*//p' sandbox.txt)," setup.yaml
VIABLE_API_TOKEN=$(sed -n 's/^token: //p' sandbox.txt)
export VIABLE_API_TOKEN

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# The few steps that end with a code of their own (4: refused, 5: waits for consent) are the point of the demo.
may() { printf '$ %s\n' "$*"; "$@" || printf '(exit %d)\n' $?; }

say "The project is there; this setup has not met it yet."
run reconciler adopt shop
run reconciler plan --out plan.json
say "Every write rebuilds the project, so that --yes alone sends nothing."
may reconciler apply --yes
say "The plan that was looked at is carried out."
run reconciler apply --plan plan.json
run reconciler plan
say "The platform is the one that checks values; it says which one it does not take."
sed -i 's,/terms,http://example.org,' setup.yaml
may reconciler apply 'shop/settings/*' --yes
sed -i 's,http://example.org,/terms,' setup.yaml
say "A kit can grow. It never shrinks."
sed -i 's/types: \[task\]/types: [task, bug]/' setup.yaml
run reconciler apply shop/planning_kits/delivery --yes
sed -i 's/types: \[task, bug\]/types: [bug]/' setup.yaml
may reconciler plan
