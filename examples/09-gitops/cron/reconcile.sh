#!/bin/sh
# One round of the loop for cron, which mails what is printed: nothing if all is well. The first word is the checkout;
# the rest goes to `reconciler gitops run`. All events are kept in the state folder.
set -eu
cd "$1"
shift
state=${XDG_STATE_HOME:-$HOME/.local/state}/reconciler
mkdir -p -m 700 "$state"
seen=$(mktemp)
trap 'rm -f "$seen"' EXIT
code=0
reconciler gitops run --once "$@" >"$seen" || code=$?
cat "$seen" >>"$state/events.jsonl"
[ "$code" -eq 0 ] || grep -E '"event": "(error|held|unreachable|drift|failed|outcome|captured)"' "$seen" || true
exit "$code"
