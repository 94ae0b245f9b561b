// expect: a server is served at sluice::http\{.port = 8080\}, unix_socket, stdio or command_line
#include <sluice/serve.hpp>
#include <sluice/server.hpp>

int run(const sluice::Server& server) {
  return sluice::serve(server, 8080);
}
