#include "cli/targets/server_config.hpp"

#include <algorithm>

namespace sluice {

const ApplicationName& name_of(Application application) {
  return *std::ranges::find(kApplications, application, &ApplicationName::application);
}

std::string_view to_string(ConfigScope scope) {
  switch (scope) {
    case ConfigScope::system:
      return "system";
    case ConfigScope::user:
      return "user";
    case ConfigScope::project:
      return "project";
    case ConfigScope::local:
      return "local";
    case ConfigScope::managed:
      break;
  }
  return "managed";
}

std::string_view to_string(TransportHint hint) {
  switch (hint) {
    case TransportHint::http:
      return "http";
    case TransportHint::sse:
      return "sse";
    case TransportHint::ws:
      return "ws";
    case TransportHint::any:
      break;
  }
  return "any";
}

std::string ConfigWarning::describe() const {
  std::string out = file;
  if (!server.empty()) out.append(": server ").append(server);
  if (!key.empty()) out.append(": ").append(key);
  return out.append(": ").append(message);
}

}  // namespace sluice
