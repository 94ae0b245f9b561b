// Tools that send partial output: a coroutine that yields, and a function that blocks and therefore
// runs on a worker thread.

#include <chrono>
#include <string>
#include <thread>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

struct Count {
  int to = 5;
};
struct Total {
  int sum = 0;
};

sluice::Stream<Total> count(Count in, sluice::Call& call) {
  Total total;
  for (int i = 1; i <= in.to; ++i) {
    total.sum += i;
    co_yield sluice::text(std::to_string(i) + "\n");  // suspends under backpressure
    co_await call.sleep(10ms);
  }
  co_return total;
}

int main(int argument_count, char** arguments) {
  sluice::Server server("streaming-tool", "1.0");
  server.tool("count", "Counts aloud", &count);
  server.tool("grind", "Works hard on a worker thread",
              sluice::blocking([](Count in, sluice::Call& call) {
                Total total;
                for (int i = 1; i <= in.to && !call.stop_token().stop_requested(); ++i) {
                  std::this_thread::sleep_for(1ms);
                  total.sum += i;
                  call.progress(i, in.to);
                }
                return total;
              }));
  return sluice::serve(server, sluice::command_line{argument_count, arguments});
}
