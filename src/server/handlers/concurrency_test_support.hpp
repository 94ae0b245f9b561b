#pragma once

// A tool whose body runs Tasks concurrently.

#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/error_codes.hpp"
#include "server/api/server_state.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/concurrency.hpp"
#include "sluice/server.hpp"

namespace sluice {

struct Consent {
  bool sure;
};

class ConcurrencyTest : public ::testing::Test {
 protected:
  using Body = std::function<Task<std::string>(Call&)>;

  /// Calls a tool that has this body. answer() is what the body returns or throws.
  void run(Body body) {
    Server server("test", "1", {.workers = 1});
    server.tool("it", "", [body = std::move(body)](Call& call) { return body(call); });
    serve(server);
    bench.send(kCall, caller);
    bench.run_all();
  }
  /// The same in a session whose client can be asked for its roots.
  void run_in_session(Body body) {
    Server server("test", "1", {.workers = 1});
    server.tool("it", "", [body = std::move(body)](Call& call) { return body(call); });
    serve(server);
    bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{"roots":{}})",
                  caller);
    bench.request("tools/call", R"("name":"it")", caller);
    bench.run_all();
  }
  void serve(const Server& server) {
    const ServerDefinition made = server.state()->definition();
    bench.definition.tools.push_back(made.tools.front());
    bench.definition.middleware = made.middleware;
    bench.definition.workers = made.workers;
    bench.serve();
  }
  void pass(Duration time) {
    bench.executors[0].advance(time);
    bench.run_all();
  }
  /// The text of the result or the error; empty if there is no answer yet.
  std::string answer() {
    const RecordingChannel& channel = caller.channel();
    std::string_view message;
    if (!channel.replies.empty()) {
      message = channel.replies.back();
    } else if (const std::size_t data = channel.written.rfind("data: ");
               data != std::string::npos && channel.finishes > 0) {
      message = std::string_view(channel.written).substr(data + 6);
    }
    if (message.empty()) return {};
    const json::value value = parse_json(message).value();
    if (const json::value* const error = value.as_object().if_contains("error")) {
      return std::to_string(error->at("code").as_int64()) + " " +
             std::string(error->at("message").as_string());
    }
    return std::string(value.at_pointer("/result/content/0/text").as_string());
  }
  /// Waits until the only worker has nothing left to do.
  void wait_for_worker() const {
    std::promise<void> done;
    WorkerPool& workers = *bench.definition.workers;
    workers.run(workers.new_id(), "waits", [&] { done.set_value(); });
    done.get_future().wait();
  }

  // Tasks to run concurrently. They record in `said` what they do.

  class Life {
   public:
    Life(ConcurrencyTest& test, std::string name) : test_(&test), name_(std::move(name)) {
      test_->said.push_back(name_ + " begins");
    }
    ~Life() { test_->said.push_back(name_ + " ends"); }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

   private:
    ConcurrencyTest* test_;
    std::string name_;
  };
  template <class T>
  Task<T> later(Call& call, Duration time, T value) {
    const Life life(*this, "later");
    co_await call.sleep(time);
    said.emplace_back("later waited");
    co_return value;
  }
  static Task<int> fail_later(Call& call, Duration time, std::string why) {
    co_await call.sleep(time);
    throw Error{-5, std::move(why)};
  }
  static Task<int> fail_now(std::string why) {
    throw Error{-5, std::move(why)};
    co_return 0;
  }
  static Task<int> now(int value) { co_return value; }
  /// Works on the worker until `go_on` is set.
  Task<int> work(Call& call) {
    const Life life(*this, "work");
    const int local = 7;
    co_return co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
      return local;
    });
  }

  /// The number of timers of a call that is not answered: that of its timeout.
  static constexpr std::size_t kCallTimers = 1;
  static constexpr std::string_view kCall =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it","_meta":{)"
      R"("io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,)"
      R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}})";

  std::vector<std::string> said;
  std::promise<void> running;
  std::promise<void> go_on;
  ServerBench bench;
  RecordingCaller caller;
};

}  // namespace sluice
