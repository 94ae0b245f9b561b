#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "server/host/server_host.hpp"
#include "sluice/serve.hpp"

namespace sluice {

/// The arguments of one serve().
struct Places {
  /// The code of errors in a command line.
  static constexpr int kUsage = 2;
  /// The code of the "error" that is the answer to --help.
  static constexpr int kHelp = 0;

  std::vector<http> over_http;  // all with the same access; see `routes`
  std::vector<Route> routes;    // at all of them, from one of them
  std::optional<unix_socket> over_unix;
  bool over_stdio = false;
  ServeOptions options;

  /// Reads command lines and checks the places together. The error says what is wrong with them.
  static Result<Places> make(std::initializer_list<detail::Place> places);

  /// With TLS files read. The error names the file, or what cannot be used.
  [[nodiscard]] Result<ServerHostOptions> host_options() const;
};

}  // namespace sluice
