#include <iostream>

#include <sluice/server.hpp>

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
  const auto serving = sluice::start(server, sluice::http{.port = 0});
  if (!serving) {
    std::cerr << serving.error().message << "\n";
    return 1;
  }
  std::cout << serving->url() << "\n";
  return 0;
}
