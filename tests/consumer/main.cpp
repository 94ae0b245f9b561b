#include <iostream>

#include <sluice/server.hpp>
#include <sluice/testing.hpp>

struct Add {
  int a;
  int b;
};
struct Total {
  int sum;
};

int main() {
  sluice::Server server("consumer", "1.0");
  server.tool("add", "Adds", [](Add in) { return Total{in.a + in.b}; });
  if (sluice::testing::Client(server).call("add", {{"a", 2}, {"b", 3}}).as<Total>().sum != 5)
    return 1;
  const auto serving = sluice::start(server, sluice::http{.port = 0});
  if (!serving) {
    std::cerr << serving.error().message << "\n";
    return 1;
  }
  std::cout << serving->url() << "\n";
  return 0;
}
