#pragma once

#include <string_view>

#include "net/connection/connection_worker.hpp"
#include "net/http/http_date.hpp"
#include "net/http/http_exchange.hpp"
#include "net/http/http_parser.hpp"
#include "net/server/http_server.hpp"

namespace sluice {

/// The worker of the HTTP connections of one loop, with what they share. Belongs to its loop.
class HttpWorker final : public ConnectionWorker {
 public:
  /// All references must outlive the worker.
  HttpWorker(Executor& executor, EventLoop* sockets, HttpHandler& http_handler,
             const HttpServerOptions& server_options)
      : ConnectionWorker(executor, sockets,
                         {.memory = server_options.memory,
                          .tick = server_options.tick,
                          .clock = server_options.clock,
                          .work = server_options.work}),
        handler(http_handler),
        options(server_options),
        parser({.header_bytes = server_options.max_header_bytes,
                .headers = server_options.max_headers,
                .uri = server_options.max_uri,
                .body = server_options.max_body}),
        date_(server_options.time_of_day) {}

  /// The Date line of a response that is sent now.
  [[nodiscard]] std::string_view date() { return date_.line(coarse_now()); }

  HttpHandler& handler;
  const HttpServerOptions& options;
  HttpHeadParser parser;
  /// Whether a connection stays open after a reply. False once the server shuts down.
  bool keeps_connections = true;

 private:
  HttpDate date_;
};

}  // namespace sluice
