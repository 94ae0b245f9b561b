#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/revision.hpp"

namespace sluice::bench {

/// The transports of messages (docs/transports.md).
enum class Transport : std::uint8_t { http, sse, websocket, unix_socket, stdio };

/// A transport and a revision that it supports.
struct Route {
  Transport transport;
  std::string_view name;   // for --transport
  std::string_view title;  // human-readable
  const Revision* revision;
};

/// All routes of the server, by transport, each with the newest revision first.
std::vector<Route> routes();

/// Throws a std::runtime_error that lists the routes if none has these names. An empty `revision`
/// means the newest that the transport supports.
Route find_route(std::string_view transport, std::string_view revision);

/// Prints all routes as a JSON array of objects with `transport`, `title` and `revision`.
void print_routes();

}  // namespace sluice::bench
