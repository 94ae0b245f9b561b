#include "served.hpp"

#include <chrono>
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

Task<std::string> hang(Call& call) {
  co_await call.sleep(1h);
  co_return "";
}

}  // namespace

Server make_server() {
  Server server("served", "1.0", {.instructions = "Be kind", .page_size = 2});
  server.tool("add", "Adds", [](Numbers in) { return Total{in.a + in.b}; });
  server.tool("count", "Counts aloud", &count, {.tasks = TaskSupport::optional});
  server.tool("greet", "Asks who you are", &greet, {.tasks = TaskSupport::optional});
  server.tool("hang", "Waits for an hour", &hang, {.tasks = TaskSupport::optional});
  server.tool("fail", "Fails", []() -> std::string { throw ToolError("out of paper"); },
              {.tasks = TaskSupport::optional});
  server.resource("text://motto", "motto", [] { return std::string("Keep going"); });
  server.prompt("review", "Reviews", [](Name in) { return "Review " + in.name; });
  return server;
}

}  // namespace sluice::client_tests
