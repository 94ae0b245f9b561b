#include "links/routes.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace sluice::bench {
namespace {

struct TransportRow {
  Transport transport;
  std::string_view name;
  std::string_view title;
  bool sessions_only;  // supports only revisions that begin with `initialize`
};

constexpr std::array<TransportRow, 5> kTransports = {{
    {Transport::http, "http", "Streamable HTTP", false},
    {Transport::sse, "sse", "HTTP with SSE", true},
    {Transport::websocket, "ws", "WebSocket", false},
    {Transport::unix_socket, "unix", "Unix socket", false},
    {Transport::stdio, "stdio", "stdio", false},
}};

}  // namespace

std::vector<Route> routes() {
  std::vector<Route> all;
  for (const TransportRow& row : kTransports) {
    for (const Revision& revision : revisions()) {
      if (row.sessions_only && revision.era == Era::modern) continue;
      all.push_back({row.transport, row.name, row.title, &revision});
    }
  }
  return all;
}

Route find_route(std::string_view transport, std::string_view revision) {
  std::string known;
  for (const Route& route : routes()) {
    if (route.name == transport && (revision.empty() || route.revision->name == revision)) {
      return route;
    }
    known.append(known.empty() ? "" : ", ").append(route.name).append(" ");
    known.append(route.revision->name);
  }
  throw std::runtime_error("--transport, --revision: use one of " + known);
}

void print_routes() {
  const char* separator = "[";
  for (const Route& route : routes()) {
    std::printf(R"(%s{"transport":"%s","title":"%s","revision":"%s"})", separator,
                std::string(route.name).c_str(), std::string(route.title).c_str(),
                std::string(route.revision->name).c_str());
    separator = ",\n ";
  }
  std::puts("]");
}

}  // namespace sluice::bench
