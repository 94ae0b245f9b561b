#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/server_config.hpp"
#include "json/json.hpp"

namespace sluice {

/// Reads the definition of one server, with the keys of its application. A definition that is not
/// understood gives warnings and no server.
class EntryReader {
 public:
  /// `entry` and `file` must outlive the reader.
  EntryReader(std::string_view name, const json::object& entry, const ServersFile& file);

  std::optional<ServerConfig> read();
  /// Set after read() if the entry only switches a server of another file on or off.
  [[nodiscard]] std::optional<bool> switched() const { return switched_; }
  [[nodiscard]] std::vector<ConfigWarning>& warnings() { return warnings_; }

 private:
  void warn(std::string_view key, std::string message);
  void warn_of_unknown_keys();

  std::string text(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  NamedValues named(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<Duration> time(const json::object& from, std::string_view key, double unit);

  std::optional<ConfiguredPlace> place();
  std::optional<ConfiguredPlace> place_of_type(std::string_view type, bool has_command,
                                               bool has_url);
  ConfiguredCommand command();
  std::optional<ConfiguredUrl> url(TransportHint hint);
  void read_timeouts(ServerConfig& server);
  bool is_enabled();
  std::string refusal();

  std::string name_;
  const json::object* entry_;
  const ServersFile* file_;
  bool broken_ = false;  // a key that matters is wrong
  std::optional<bool> switched_;
  std::vector<ConfigWarning> warnings_;
};

}  // namespace sluice
