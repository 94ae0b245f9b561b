#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/targets/found_servers.hpp"
#include "cli/targets/server_config.hpp"
#include "cli/targets/variables.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// A server at a URL.
struct UrlTarget {
  Url url;  // http, https, ws or wss
  TransportHint transport = TransportHint::any;
  NamedValues headers = {};  // may be secret
};

/// The most bytes of a socket's path: those of sockaddr_un without the zero byte.
inline constexpr std::size_t kMaxSocketPath = 107;

/// A server that listens on a Unix domain socket.
struct UnixTarget {
  std::string path;
  /// Of HTTP requests, at least "/". Empty: messages are lines.
  std::string http_target = {};
  NamedValues headers = {};  // of HTTP; may be secret
};

/// A program that is started, with its standard streams as the connection.
struct CommandTarget {
  std::vector<std::string> arguments;  // the program first
  NamedValues environment = {};        // besides that of this process; may be secret
  std::string directory = {};          // where it runs; empty: here
};

using TargetPlace = std::variant<UrlTarget, UnixTarget, CommandTarget>;

/// What a client command talks to.
struct Target {
  TargetPlace place;
  std::string name = {};  // of a named server; else empty
  std::optional<Duration> startup_timeout = {};
  std::optional<Duration> request_timeout = {};
  std::vector<std::string> warnings = {};  // for standard error
};

/// The words that name a target on the command line.
struct TargetArguments {
  std::string word = {};                  // TARGET; empty: there is none
  std::vector<std::string> command = {};  // what stands after "--"
};

/// The target that a user means:
///
/// - a URL: http, https, ws or wss;
/// - a Unix socket: `unix:PATH` for messages as lines, `http+unix:PATH` or `http+unix:PATH#TARGET`
///   for HTTP, at /mcp if there is no TARGET;
/// - a command after `--`;
/// - the name of a server of `found`, or APPLICATION/NAME (find_server()). Its variables are
///   expanded. Its URL may be one of the above; in files of other applications `unix:` has HTTP, as
///   VS Code has it.
///
/// Errors carry kExitUsage, say what is wrong and what a target may be, and have no secrets.
Result<Target> parse_target(const TargetArguments& arguments, const FoundServers& found,
                            const VariableSources& sources);

/// Whether `text` is a URL or a socket and no name.
bool is_address(std::string_view text);

/// The place of a URL or a socket. `is_http`: `unix:` means HTTP as well.
Result<TargetPlace> parse_address(const std::string& text, bool is_http = false);

}  // namespace sluice
