#include "protocol/server_info.hpp"

#include "json/members.hpp"
#include "protocol/negotiation.hpp"

namespace sluice {

const json::object* server_info_in(const json::object& about) {
  if (const json::object* const info = object_at(about, "serverInfo")) return info;
  const json::object* const meta = object_at(about, "_meta");
  return meta == nullptr ? nullptr : object_at(*meta, kServerInfoKey);
}

}  // namespace sluice
