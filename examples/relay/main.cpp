// The server of the agent's demo. `--stdio`, `--listen HOST:PORT` and more, as --help says; then
//
//   sluice agent --server http://127.0.0.1:8080/mcp "stream up to 10 numbers, and tell me the last"

#include "relay/relay_server.hpp"

int main(int count, char** arguments) {
  return sluice::serve(make_relay_server(), sluice::command_line{count, arguments});
}
