#!/bin/sh
# Test a subject every night, for example from cron:  0 22 * * *  cd project && examples/nightly.sh
# The store is kept from night to night, so the exit status is 1 only for new faults, and for those
# that are back again. TIME is how long a night is.
set -u
exec swarmtest watch "${1:-examples/stack.py}" --time "${TIME:-8h}" --slice "${SLICE:-1m}"
