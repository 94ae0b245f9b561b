// A server with every feature: sluice-everything [--listen HOST:PORT] [--unix PATH] [--stdio]

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "everything.hpp"

namespace {

constexpr std::string_view kHelp =
    "sluice-everything: an MCP server with every feature, for tests of clients\n\n"
    "  --listen HOST:PORT   Streamable HTTP and WebSocket (default 127.0.0.1:3000; port 0: any)\n"
    "  --unix PATH          a Unix domain socket\n"
    "  --stdio              standard input and output\n";

struct Places {
  std::optional<sluice::http> http;
  std::optional<sluice::unix_socket> unix_socket;
  std::optional<sluice::stdio> stdio;
};

std::optional<sluice::http> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  sluice::http out;
  if (colon == std::string_view::npos) return std::nullopt;
  out.host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  return out;
}

std::optional<Places> parse(int count, char** arguments) {
  Places out;
  for (int i = 1; i < count; ++i) {
    const std::string_view option = arguments[i];
    const bool more = i + 1 < count;
    if (option == "--stdio") {
      out.stdio = sluice::stdio{};
    } else if (option == "--unix" && more) {
      out.unix_socket = sluice::unix_socket{.path = arguments[++i]};
    } else if (option == "--listen" && more) {
      out.http = parse_listen(arguments[++i]);
      if (!out.http) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (!out.http && !out.unix_socket && !out.stdio) {
    out.http = sluice::http{.host = "127.0.0.1", .port = 3000};
  }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  std::optional<Places> places = parse(count, arguments);
  if (!places) {
    std::fputs(kHelp.data(), stderr);
    return 2;
  }
  sluice::Server server("sluice-everything", "1.0",
                        {.instructions = "A server for tests of clients"});
  everything::add_tools(server);
  everything::add_questions(server);
  everything::add_tasks(server);
  everything::add_resources(server);
  everything::add_prompts(server);
  return sluice::serve(server, places->http, places->unix_socket, places->stdio);
}
