#!/bin/sh
# Makes $VENV with swarmtest (editable) and everything its tests need. Runs from `make`.
set -eu

python=""
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "swarmtest needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2
    exit 2
fi

make_venv() { rm -rf "$VENV" && "$python" -m venv "$VENV"; }
if ! make_venv >/dev/null 2>&1; then
    # Debian ships Python without venv; as root the missing package can be installed here.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv
        make_venv
    else
        echo "this Python cannot make a virtual environment: install python3-venv" >&2
        exit 2
    fi
fi

echo "installing swarmtest and its test dependencies into $VENV"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
