// A tool made of a struct and a lambda. Run it, then:
//
//   curl http://127.0.0.1:8080/mcp -d '{"jsonrpc":"2.0","id":1,"method":"tools/call",
//     "params":{"name":"add","arguments":{"a":2,"b":3}}}'

#include "sluice/server.hpp"

struct Add {
  int a;
  int b;
};
struct Total {
  int sum;
};

int main(int count, char** arguments) {
  sluice::Server server("hello", "1.0");
  server.tool("add", "Adds two integers", [](Add in) { return Total{in.a + in.b}; });
  return sluice::serve(server, sluice::command_line{count, arguments});
}
