#include "ways.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace sluice::client_tests {
namespace {

std::string_view name_of(Way way) {
  switch (way) {
    case Way::http:
      return "Http";
    case Way::sse:
      return "Sse";
    case Way::websocket:
      return "WebSocket";
    case Way::unix_socket:
      return "UnixSocket";
    case Way::child:
      return "Child";
    case Way::local:
      return "Local";
  }
  return {};
}

}  // namespace

std::vector<WayAndRevision> ways(std::initializer_list<Way> without) {
  std::vector<WayAndRevision> out;
  for (const Way way :
       {Way::http, Way::sse, Way::websocket, Way::unix_socket, Way::child, Way::local}) {
    if (std::ranges::find(without, way) != without.end()) continue;
    // HTTP with SSE is of the legacy era alone.
    if (way != Way::sse) out.emplace_back(way, "");
    out.emplace_back(way, way == Way::sse ? "2024-11-05" : "2025-11-25");
  }
  return out;
}

std::string name_of(const WayAndRevision& way) {
  std::string revision = std::get<1>(way);
  std::erase(revision, '-');
  return std::string(name_of(std::get<0>(way))) + (revision.empty() ? "Newest" : revision);
}

Served::Served() {
  auto started = sluice::start(server_, http{.port = 0}, unix_socket{folder_.path("socket")});
  if (!started) throw Error(started.error());
  serving_.emplace(std::move(*started));
}

Client Served::connect(Way way, ClientOptions options) const {
  const std::string place = "127.0.0.1:" + std::to_string(serving_->port());
  switch (way) {
    case Way::http:
      return sluice::connect("http://" + place + "/mcp", std::move(options));
    case Way::sse:
      return sluice::connect("http://" + place + "/sse", std::move(options));
    case Way::websocket:
      return sluice::connect("ws://" + place + "/ws", std::move(options));
    case Way::unix_socket:
      return sluice::connect("unix:" + folder_.path("socket"), std::move(options));
    case Way::child:
      return sluice::connect(ServerCommand{.arguments = {SLUICE_STDIO_SERVER}}, std::move(options));
    case Way::local:
      return sluice::connect(server_, std::move(options));
  }
  throw std::logic_error("no such way");
}

}  // namespace sluice::client_tests
