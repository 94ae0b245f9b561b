#pragma once

#include <string>

namespace sluice {

/// What a client says about itself (MCP, Implementation). Each text is cut after 256 bytes. A
/// client may say anything, so this does not prove who it is.
struct ClientInfo {
  std::string name;
  std::string version;
  std::string title = {};  // for people; may be empty

  bool operator==(const ClientInfo&) const = default;
};

}  // namespace sluice
