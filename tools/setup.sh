# setup.sh - sourced by quickstart and check: goes to the checkout's root and installs what is
# missing.  Works as root or with sudo, without a terminal, and does nothing the second time.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

say() { printf '\n== %s\n' "$*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif ! command -v sudo >/dev/null; then
    echo "to install packages, run this as root or install sudo" >&2
    return 1
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# missing_packages [build]: those of tools/packages.txt that are not there; `build`: without those of the checks.
missing_packages() {
  local package
  sed "${1:+/^# checks/,\$d;}s/#.*//" tools/packages.txt | while read -r package; do
    [ -n "$package" ] || continue
    case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" in
      installed) ;;
      *) echo "$package" ;;
    esac
  done
}

install_packages() {
  command -v apt-get >/dev/null || { echo "this is not Debian: install what tools/packages.txt lists" >&2; return 1; }
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  say "installing" $missing
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  as_root "${apt[@]}" update </dev/null &&
    as_root "${apt[@]}" install --no-install-recommends $missing </dev/null
}

# Makes build-python/, a virtual environment with tools/requirements.txt; again only when that
# file has changed.
install_python() {
  cmp -s tools/requirements.txt build-python/requirements.txt && return 0
  say "installing Python packages into build-python/"
  rm -rf build-python
  /usr/bin/python3 -m venv build-python &&
    build-python/bin/pip install -q --no-input --disable-pip-version-check -r tools/requirements.txt &&
    cp tools/requirements.txt build-python/requirements.txt
}

# configure DIR OPTION...: sets the build folder up once; meson itself notices later changes.
configure() {
  local dir=$1
  shift
  [ -f "$dir/build.ninja" ] || { rm -rf "$dir" && meson setup "$dir" "$@"; }
}

# configure_sanitize OPTION...  Left out of `undefined`: what the address sanitizer reports as well, at the access, and
# what costs a third of the compiler's time, as does more than lines for debuggers.
configure_sanitize() {
  CC=clang configure build-sanitize "$@" -Db_sanitize=address,undefined -Db_lundef=false -Dfuzzers=true \
    "-Dc_args=-gline-tables-only -fno-sanitize-recover=all -fno-sanitize=null,object-size,pointer-overflow"
}
