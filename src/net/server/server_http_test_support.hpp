#pragma once

// HTTP without sockets, stepped by a test.

#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "net/connection/memory_connection.hpp"
#include "net/http/compression.hpp"
#include "net/http/http_parser.hpp"
#include "net/server/server_http.hpp"

namespace sluice {

/// HTTP without sockets. Each request is answered with its path and the size of its body, unless
/// the test holds the exchanges.
class ServerHttpTest : public ::testing::Test, protected HttpHandler {
 protected:
  using Peer = RefPtr<MemoryConnection>;

  void TearDown() override {
    held.clear();
    worker.drop_all();
    executor.run();
  }
  Peer connect() {
    Peer peer(new MemoryConnection(worker, options.output));
    ServerHttp::begin(*peer, worker);
    return peer;
  }
  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
    asked.emplace_back(request.path);
    judged_as = request.verdict;
    if (const auto client = client_of(request)) exchange->charge_to(client);
    if (fails) throw std::runtime_error("in a handler");
    if (holds) {
      held.push_back(std::move(exchange));
    } else {
      exchange->reply(200, "text/plain",
                      std::string(request.path) + "=" + std::to_string(request.body.size()));
    }
  }
  /// A body that is ready when the test says so.
  struct Prepared final : PreparedBody {
    Prepared(std::string body, Executor::Task task)
        : text_(std::move(body)), ready(std::move(task)) {}
    [[nodiscard]] bool is_ready() const override { return is_done; }
    [[nodiscard]] std::string_view text() const override { return text_; }
    std::string text_;
    Executor::Task ready;
    bool is_done = false;
  };
  [[nodiscard]] bool prepares_body(const HttpRequest& /*head*/, std::size_t size) const override {
    return prepares && size > 0;
  }
  std::unique_ptr<HeadVerdict> judge(const HttpRequest& head) override {
    if (const auto client = client_of(head)) return std::make_unique<HeadVerdict>(true, client);
    return prepares ? std::make_unique<HeadVerdict>(head.path != "/refused") : nullptr;
  }
  std::unique_ptr<PreparedBody> prepare(const HttpRequest& head, std::string body,
                                        Executor::Task ready) override {
    prepared_with = head.verdict;
    auto made = std::make_unique<Prepared>(std::move(body), std::move(ready));
    prepared = made.get();
    return made;
  }
  [[nodiscard]] std::shared_ptr<MemoryShare> client_of(const HttpRequest& head) const {
    const auto found = clients.find(std::string(head.path));
    return found == clients.end() ? nullptr : found->second;
  }
  static std::string get(std::string_view path, std::string_view version = "1.1") {
    return "GET " + std::string(path) + " HTTP/" + std::string(version) + "\r\nHost: test\r\n\r\n";
  }
  static std::string post(std::string_view path, std::string_view body,
                          std::string_view fields = "") {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(fields) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }

  ManualExecutor executor;
  HttpServerOptions options;
  HttpWorker worker{executor, nullptr, *this, options};
  std::vector<std::string> asked;
  std::vector<HttpExchangePtr> held;
  bool holds = false;
  bool fails = false;
  bool prepares = false;
  std::map<std::string, std::shared_ptr<MemoryShare>> clients;  // who asks for a path, if known
  Prepared* prepared = nullptr;                                 // the last
  const HeadVerdict* prepared_with = nullptr;
  const HeadVerdict* judged_as = nullptr;  // the last that was asked
};

}  // namespace sluice
