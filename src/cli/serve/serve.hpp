#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// Serves until SIGINT or SIGTERM, then shuts down within the configured deadline. A second signal
/// ends the program at once. Prints the URLs to try on standard output. On SIGHUP, `reread` is
/// called, and its API keys, certificate and log replace those in use; if that fails, all of them
/// stay, and the log says why. Returns the program's exit code.
int serve(const ServeConfig& config, const std::function<Result<ServeConfig>()>& reread);

/// A server inside this process, with threads of its own. Destroying it stops it.
class LocalServer {
 public:
  virtual ~LocalServer() = default;

  /// Starts serving; port 0 takes any free port. Returns when the engine can answer. Until then
  /// `on_wait` is called several times a second with what the engine is doing. Errors carry an exit
  /// code of the program.
  static Result<std::unique_ptr<LocalServer>> start(
      const ServeConfig& config, const std::function<void(const std::string&)>& on_wait);

  /// Such as "http://127.0.0.1:43127", without a slash at the end.
  [[nodiscard]] virtual std::string url() const = 0;
  /// Ends streams and connections within the configured deadline. Idempotent.
  virtual void stop() = 0;
};

}  // namespace sluice
