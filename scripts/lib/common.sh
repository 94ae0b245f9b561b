# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts use these
# Shared by the scripts in the parent folder, which source it. Changes to the root of the
# repository.

unset CDPATH # with it, cd could go to another folder and print its name
[[ ${CI:-} != false ]] || unset CI
caller_dir="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"
name="$(basename "$0")"
: "${HOME:=$(cd ~ && pwd)}" # a service may have no HOME; ~ then uses the user database
# An absolute path, because programs are run in other folders.
cache="$(cd "$caller_dir" && realpath -m -- "${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}")"
export SLUICE_CACHE="$cache"
say() { echo "$name: $*" >&2; }
die() {
  say "$@"
  exit 1
}

jobs="${SLUICE_JOBS:-$(nproc)}"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die "SLUICE_JOBS must be a number of at least 1, not '$jobs'"

# Prints the comment at the beginning of the script.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$root/scripts/$name"; }

# cpp_files <name pattern> <folder...>: lists the files in those of the folders that exist.
cpp_files() {
  local pattern="$1" folder folders=()
  shift
  for folder in "$@"; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  find "${folders[@]}" -name node_modules -prune -o -type f -name "$pattern" -print | sort
}
