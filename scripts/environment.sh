# Sourced by the scripts: `ensure_environment EXTRA` leaves a virtual environment in .venv (or IRAD_VENV) that holds irad
# (editable) and the extra's dependencies. A stamp file per extra makes the second call immediate.

IRAD_VENV=.venv

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "irad needs Python 3.11 or newer; set PYTHON to one" >&2
    return 1
}

# Changes whenever the installation would: its declaration, its place (editable installs and scripts hold absolute
# paths) and the interpreter in it.
environment_key() {
    "$IRAD_VENV/bin/python" - "$PWD" <<'PY'
import hashlib, pathlib, sys
parts = (pathlib.Path("pyproject.toml").read_bytes(), sys.argv[1].encode(), sys.version.encode())
print(hashlib.sha256(b"\0".join(parts)).hexdigest())
PY
}

# pip's output, shortened to a line for each package, for each large download, and for the installation.
install_extra() {
    "$IRAD_VENV/bin/python" -m pip install --disable-pip-version-check --progress-bar off --editable ".[$1]" | awk '
        /^Collecting |^Processing .*\.whl/ { sub(/.*\//, "", $2); print "  " $2; fflush() }
        /^ *Downloading .* MB\)/ { sub(/^ */, "    "); sub(/ https?:[^ ]*\//, " "); print; fflush() }
        /^Installing collected packages/ { print "  installing", gsub(/,/, ",") + 1, "packages"; fflush() }' >&2
}

ensure_environment() {
    local extra="$1" python stamp="$IRAD_VENV/.irad-$1" place="$IRAD_VENV/.irad-place"
    if [[ ! -x "$IRAD_VENV/bin/python" || "$(cat "$place" 2>/dev/null)" != "$PWD" ]]; then
        python="$(find_python)" || return 1
        echo "making $IRAD_VENV with $("$python" --version)" >&2
        "$python" -m venv --clear "$IRAD_VENV" || {
            echo "could not make $IRAD_VENV; on Debian and Ubuntu install the package python3-venv" >&2
            return 1
        }
        echo "$PWD" >"$place"
    fi
    if [[ "$(cat "$stamp" 2>/dev/null)" != "$(environment_key)" ]]; then
        echo "installing irad[$extra] into $IRAD_VENV; the first time this takes a few minutes on a slow network" >&2
        install_extra "$extra" || return 1
        environment_key >"$stamp"
        echo "done; the next start is immediate" >&2
    fi
}
