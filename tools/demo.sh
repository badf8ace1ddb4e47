#!/bin/sh
# The main job on the embedded example: ordinary random testing, then a swarm, on the same machine.
set -eu
store=$(mktemp -d)/demo.db
trap 'rm -rf "$(dirname "$store")"' EXIT

say() { if [ -t 1 ]; then printf '\n\033[1m$ %s\033[0m\n' "$*"; else printf '\n$ %s\n' "$*"; fi; }
run() { say "$@"; "$@" --store "$store" || [ $? -eq 1 ]; }

echo "examples/stack.py is a stack for 32 elements with a bug in its overflow check."
run swarmtest run examples/stack.py --strategy default --tests 20000
echo
echo "Every test used push, pop and add, so the stack never got full. Now a swarm:"
run swarmtest run examples/stack.py --strategy layered --tests 2000 --coverage line,branch
run swarmtest show
echo
echo "Why? The features that trigger the fault, and those that suppress it:"
run swarmtest roles
echo
echo "How many of the tests reached each line:"
run swarmtest coverage --show examples/stack.py
