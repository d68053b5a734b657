#!/bin/sh
# The whole job: what it prints is the answer.
df -h / | tail -1
