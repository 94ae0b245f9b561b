#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/doctor/server/examination.hpp"

namespace sluice::test {

/// Gives each request the reply that a test says.
class CannedServer final : public Requester {
 public:
  std::function<Result<Reply>(const Ask&)> reply = [](const Ask&) { return Reply{.status = 404}; };
  std::function<Result<OauthReply>(const std::string&)> document = [](const std::string&) {
    return OauthReply{.status = 404, .body = {}, .dpop_nonce = {}};
  };
  bool is_late = false;  // the time of the examination is over
  Duration paused{};

  Result<Reply> ask(const Ask& ask) override { return reply(ask); }
  Result<OauthReply> fetch(const std::string& url) override { return document(url); }
  [[nodiscard]] Duration left() const override {
    return is_late ? Duration() : std::chrono::seconds(30);
  }
  bool pause(Duration time) override {
    paused += time;
    return !is_late;
  }
};

inline Reply json_reply(int status, std::string body) {
  return {.status = status,
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body),
          .is_whole = true};
}

inline Reply error_reply(int status, int code) {
  return json_reply(status, R"({"jsonrpc":"2.0","id":1,"error":{"code":)" + std::to_string(code) +
                                R"(,"message":"no","data":{"supported":["2026-07-28"]}}})");
}

inline Reply result_reply() {
  return json_reply(200, R"({"jsonrpc":"2.0","id":"doctor-1","result":{}})");
}

inline Reply initialize_reply(const std::string& session) {
  Reply reply =
      json_reply(200, R"({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}})");
  reply.headers.emplace_back("Mcp-Session-Id", session);
  return reply;
}

class ServerChecksTest : public ::testing::Test {
 protected:
  ServerChecksTest() {
    examination.is_modern = true;
    examination.discovered = {{"capabilities", {{"resources", json::object()}}}};
    examination.discover = result_reply();
    examination.legacy_eras.push_back({.asked = &newest_revision(Era::legacy),
                                       .spoken = "2025-11-25",
                                       .session = "0123456789abcdef"});
  }

  /// What the check `subject` of a table comes to if each request gets `reply`.
  Verdict verdict(std::span<const ServerCheck> table, std::string_view subject, Reply reply) {
    server.reply = [reply = std::move(reply)](const Ask&) { return reply; };
    return verdict(table, subject);
  }
  Verdict verdict(std::span<const ServerCheck> table, std::string_view subject) {
    const auto check = std::ranges::find(table, subject, &ServerCheck::subject);
    if (check == table.end()) throw std::logic_error("there is no such check");
    EXPECT_NE(check->clause, "");
    return check->examine(examination).value();
  }

  CannedServer server;
  Examination examination{server, parse_url("http://127.0.0.1:8080/mcp").value(), true};
};

}  // namespace sluice::test
