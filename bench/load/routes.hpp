#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/revision.hpp"

namespace sluice::bench {

/// How messages travel (docs/transports.md).
enum class Transport : std::uint8_t { http, sse, websocket, unix_socket, stdio };

/// A revision on a transport that carries it.
struct Route {
  Transport transport;
  std::string_view name;   // for --transport
  std::string_view title;  // for people
  const Revision* revision;
};

/// Every one that the server has: by transport, of each the newest revision first.
std::vector<Route> routes();

/// Throws std::runtime_error that says what there is, if there is none of these names. An empty
/// `revision` is the newest that the transport carries.
Route find_route(std::string_view transport, std::string_view revision);

/// All of them as a JSON array of objects with `transport`, `title` and `revision`.
void print_routes();

}  // namespace sluice::bench
