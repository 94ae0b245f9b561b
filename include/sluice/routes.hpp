#pragma once

// Plain HTTP beside MCP: pages and small services of your own on the same port.
//
//   sluice::serve(server, sluice::http{.port = 8080, .routes = {
//     {.path = "/version", .answer = [](const auto&) { return sluice::RouteReply{.body = "1.0"};
//     }}}});

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

class RequestHead;
struct Principal;

/// A request for a Route. Valid while the answer is made.
struct RouteRequest {
  const RequestHead& head;  // include sluice/authenticator.hpp to use it
  std::string_view body;    // whole; at most ServeOptions::max_message bytes
  /// The caller: whom the keys or the authenticator of the server accept, even at an open Route;
  /// otherwise the client's address.
  const Principal& principal;
};

/// The reply to it. If it cannot be sent, that is logged, and the request is answered with 500.
/// Clients that accept it get a long text with gzip, unless `headers` has a Content-Encoding.
struct RouteReply {
  int status = 200;  // 200 to 599
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};  // empty with 204, 205 and 304
  /// Further fields, without control characters. The server itself writes Content-Type,
  /// Content-Length, Transfer-Encoding, Trailer, Connection, Keep-Alive and Date, and, for pages
  /// that may call, Access-Control-Allow-Origin.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Answers requests for one path. HEAD is answered as GET, without the body.
struct Route {
  std::string method = "GET";  // or POST, PUT, PATCH, DELETE
  std::string path;            // such as "/version"
  /// Called on event loops, on several at the same time. It must not block them. What it throws is
  /// logged, and the request is answered with 500.
  std::function<RouteReply(const RouteRequest& request)> answer = {};
  /// Whether everybody may ask. Otherwise only clients that the keys or the authenticator of the
  /// server accept may. Host and Origin are checked in either case.
  bool is_open = false;
};

}  // namespace sluice
