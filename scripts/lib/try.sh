# shellcheck shell=bash
# For the scripts that install packages: shows what apt-get and npm print when they fail, and what to do.
# To be sourced; needs die().

# try <what> <command...>: prints nothing if the command succeeds; otherwise its output and its
# likely cause.
try() {
  local what="$1" log
  shift
  log="$(mktemp)"
  if "$@" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
    return
  fi
  tail -n 40 "$log" >&2
  local why
  why="$(explain <"$log")"
  rm -f "$log"
  die "$what failed; its output is above.${why:+
$why}"
}

# Explains failures of apt-get and npm that are caused by a machine's settings.
explain() {
  local said
  said="$(cat)"
  case "$said" in
    *SELF_SIGNED_CERT* | *UNABLE_TO_GET_ISSUER_CERT* | *UNABLE_TO_VERIFY_LEAF* | *CERT_HAS_EXPIRED* | *CERT_NOT_YET_VALID* | *ERR_TLS_CERT*)
      echo "npm does not trust the certificate of $(registry). If a proxy or a registry of your own signs it,
name its CA: export NODE_EXTRA_CA_CERTS=/path/of/ca.pem (now: ${NODE_EXTRA_CA_CERTS:-not set})" ;;
    *"ertificate verif"* | *"certificate is NOT trusted"* | *"unable to get local issuer certificate"*)
      echo "apt does not trust the certificate of its mirror. To trust it, save its CA as
/usr/local/share/ca-certificates/NAME.crt and run update-ca-certificates" ;;
    *ENOTFOUND* | *EAI_AGAIN* | *ECONNREFUSED* | *ETIMEDOUT* | *ECONNRESET* | *ENETUNREACH* | *EHOSTUNREACH* | *ERR_SOCKET_TIMEOUT*)
      echo "The registry $(registry) was not reached. Another one is set with
npm config set registry URL, a proxy with npm config set proxy URL" ;;
    *"407 Proxy"* | *"407  Proxy"* | *E407*)
      echo "The proxy wants a login: put it in its URL, http://USER:PASSWORD@HOST:PORT" ;;
    *"dpkg was interrupted"*)
      echo "An earlier installation was cut off. Finish it first, as root: dpkg --configure -a" ;;
    *"is another process using it"* | *"Could not get lock"*)
      echo "Another program is installing packages. Try again when it has finished" ;;
    *E401* | *E403*)
      echo "The registry $(registry) wants a login: npm login, or a token in ~/.npmrc" ;;
    *EINTEGRITY*)
      echo "The registry $(registry) served a package whose checksum differs from the pinned one" ;;
    *"Could not resolve"* | *"Temporary failure resolving"* | *"Could not connect"* | *"onnection timed out"* | *"Network is unreachable"* | *"onnection refused"*)
      echo "The Debian mirror was not reached: see /etc/apt/sources.list*, and for a proxy
Acquire::http::Proxy in /etc/apt/apt.conf.d" ;;
    *"Unable to locate package"* | *"has no installation candidate"*)
      echo "These are the names of Debian 12 (section main); other systems may name some packages differently: see scripts/lib/packages.txt" ;;
    *"o space left on device"* | *"enough free space"* | *ENOSPC*)
      echo "A disk is full: see df -h" ;;
  esac
}

# The URL of the registry without a password.
registry() { { npm config get registry 2>/dev/null || echo "of npm"; } | sed 's#//[^/@]*@#//#'; }
