#!/bin/sh
# Install swarmtest (editable) and the packages it needs into $VENV, which is created if it is not
# there; `sh tools/setup.sh dev` also installs what checks and tests need. Runs from `make`.
#
# PYTHON names the interpreter. Without it, the first of the usual names that is new enough is used.
set -eu

fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
version() { "$1" -c 'import platform; print(platform.python_version())' 2>/dev/null; }

python=""
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if fits "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    tried=${PYTHON:-python3}
    there=$(version "$tried") && there="$tried is $there" || there="there is no $tried"
    echo "swarmtest needs Python 3.11 or newer, and $there: set PYTHON=/path/to/python" >&2
    exit 2
fi

# An environment stays when more is installed, unless another Python was asked for.
is_ready() {
    "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && fits "$VENV/bin/python" &&
        { [ -z "${PYTHON:-}" ] || [ "$(version "$VENV/bin/python")" = "$(version "$python")" ]; }
}
make_venv() { rm -rf "$VENV" && "$python" -m venv "$VENV" >/dev/null 2>&1; }
if ! is_ready && ! make_venv; then
    # Debian ships Python without venv; as root the missing package can be installed here.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing python3-venv"
        { apt-get update -qq && apt-get install -y -qq python3-venv; } >/dev/null
    fi
    if ! make_venv; then
        echo "$python cannot make a virtual environment: apt-get install python3-venv" >&2
        exit 2
    fi
fi

if [ "${1:-}" = dev ]; then
    echo "installing what checks and tests need into $VENV (some 1.4 GB on disk, once)"
    package='.[dev]'
else
    echo "installing swarmtest and the packages it needs into $VENV (some 100 MB on disk, once)"
    package=.
fi
# Without --no-compile, half of the time goes into compiling modules that nobody will import.
"$VENV/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
    --editable "$package"
