#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/server/server_test_support.hpp"

namespace sluice {

/// A server on one loop that answers with what it was sent, unless the test holds the exchanges.
class HttpServerTest : public ServerTest {
 protected:
  void SetUp() override {
    handle = [this](const HttpRequest& request, const HttpExchangePtr& exchange) {
      seen.push_back(std::string(request.method_name) + " " + std::string(request.target) + " " +
                     std::string(request.body));
      exchange->reply(200, "text/plain", "you said: " + std::string(request.body) + ".");
    };
  }
  /// Keeps the exchanges unanswered.
  void hold() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      seen.push_back(std::string(request.target));
      held.push_back(std::move(exchange));
    };
  }

  std::vector<std::string> seen;
  std::vector<HttpExchangePtr> held;
};

}  // namespace sluice
