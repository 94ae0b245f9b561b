// Two middlewares around every request. The outer one measures the time. The inner one asks a slow
// service whether the caller may go on, without holding up other requests.

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

/// Stands for a remote service: each caller may call three tools.
class Allowances {
 public:
  bool take(const std::string& principal) {
    std::this_thread::sleep_for(5ms);
    const std::lock_guard lock(mutex_);
    return ++taken_[principal] <= 3;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> taken_;
};

sluice::Task<> measure(sluice::Request& request) {
  const auto begun = std::chrono::steady_clock::now();
  const sluice::RequestEnd end = co_await request.next();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begun;
  std::fprintf(stderr, "%s %s: %s after %.1f ms\n", request.method().c_str(),
               request.name().c_str(),
               end.cancelled ? "cancelled"
               : end.error   ? "refused"
                             : "answered",
               time.count());
}

int main(int count, char** arguments) {
  Allowances allowances;
  sluice::Server server("shop", "1.0");
  server.use(&measure);
  server.use([&allowances](sluice::Request& request) -> sluice::Task<> {
    if (request.method() == "tools/call") {
      const bool allowed =
          co_await request.in_background([&] { return allowances.take(request.principal()); });
      if (!allowed) throw sluice::Error{429, "That was the last one; come back tomorrow"};
    }
    co_await request.next();
  });
  server.tool("buy", "Buys one", [] { return "Here you are."; });
  return sluice::serve(server, sluice::command_line{count, arguments});
}
