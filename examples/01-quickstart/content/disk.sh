#!/bin/sh
# Says something only when a disk is nearly full.
df -P | awk 'NR > 1 && $5 + 0 > 90 { print $6 " is " $5 " full" }'
