#include "served.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace sluice::client_tests {
namespace {

using namespace std::chrono_literals;

struct Count {
  int to = 0;
};
struct Name {
  std::string name;
};
struct Hung {
  int begun = 0;
  int ended = 0;
};

Stream<Total> count(Count in, Call& call) {
  Total total;
  for (int i = 1; i <= in.to; ++i) {
    total.sum += i;
    co_yield text(std::to_string(i) + " ");
    co_await call.sleep(1ms);
  }
  co_return total;
}

Task<std::string> greet(Call& call) {
  const auto said = co_await call.elicit<Name>("Who are you?");
  co_return said ? "Hello " + said.content->name : "Hello whoever you are";
}

/// The calls of `hang`.
struct Hanging {
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
};

Task<std::string> hang(std::shared_ptr<Hanging> hanging, Call& call) {
  ++hanging->begun;
  const std::unique_ptr<Hanging, void (*)(Hanging*)> end(hanging.get(),
                                                         [](Hanging* all) { ++all->ended; });
  co_await call.sleep(1h);
  co_return "";
}

/// Waits until as many calls of `hang` have begun and ended.
Task<std::string> await_hanging(std::shared_ptr<Hanging> hanging, Hung wanted, Call& call) {
  while (hanging->begun < wanted.begun || hanging->ended < wanted.ended) co_await call.sleep(1ms);
  co_return std::to_string(hanging->begun) + " " + std::to_string(hanging->ended);
}

}  // namespace

Server make_server() {
  Server server("served", "1.0", {.instructions = "Be kind", .page_size = 2});
  server.tool("add", "Adds", [](Numbers in) { return Total{in.a + in.b}; });
  server.tool("count", "Counts aloud", &count, {.tasks = TaskSupport::optional});
  server.tool("greet", "Asks who you are", &greet, {.tasks = TaskSupport::optional});
  const auto hanging = std::make_shared<Hanging>();
  server.tool("hang", "Waits for an hour", [hanging](Call& call) { return hang(hanging, call); },
              {.tasks = TaskSupport::optional});
  server.tool("await_hanging", "Waits for what becomes of the calls of hang",
              [hanging](Hung wanted, Call& call) { return await_hanging(hanging, wanted, call); });
  server.tool("fail", "Fails", []() -> std::string { throw ToolError("out of paper"); },
              {.tasks = TaskSupport::optional});
  server.resource("text://motto", "motto", [] { return std::string("Keep going"); });
  server.prompt("review", "Reviews", [](Name in) { return "Review " + in.name; });
  return server;
}

}  // namespace sluice::client_tests
