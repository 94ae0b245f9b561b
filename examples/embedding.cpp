// A server inside a program that has its own event loop, here Asio's. The handler posts the work to
// the program's loop and awaits the result, without blocking a thread.

#include <expected>
#include <iostream>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "sluice/server.hpp"

namespace asio = boost::asio;

struct Shift {
  int by = 1;
};
struct Position {
  int x = 0;
};

int main(int count, char** arguments) {
  asio::io_context program;
  Position position;  // used only on the program's thread

  sluice::Server server("embedded", "1.0");
  server.tool("move", "Moves the robot",
              [&](Shift in, sluice::Call& call) -> sluice::Task<Position> {
                co_return co_await call.callback<Position>([&](sluice::Resolver<Position> done) {
                  asio::post(program, [&position, in, done]() mutable {
                    position.x += in.by;
                    done.succeed(position);
                  });
                });
              });
  const std::expected<sluice::Serving, sluice::Error> serving =
      sluice::start(server, sluice::command_line{count, arguments});
  if (!serving) {
    std::cerr << serving.error().message << "\n";
    return 1;
  }
  std::cerr << "serving " << serving->url() << std::endl;
  asio::signal_set signals(program, SIGINT, SIGTERM);
  signals.async_wait([&](auto /*error*/, int /*signal*/) { program.stop(); });
  program.run();
  return 0;
}
