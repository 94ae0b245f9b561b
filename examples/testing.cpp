// Tests of a server with sluice/testing.hpp. They run in memory, in virtual time.
//
// This program needs no test framework. With GoogleTest, each function would be a TEST().

#include "sluice/testing.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

struct Flight {
  std::string from;
  std::string to;
};
struct Seat {
  bool window;
};
struct Booking {
  std::string seat;
};

// The server under test, as a function, so that main() of the program can serve the same one.
sluice::Server make_server() {
  sluice::Server server("flights", "1.0");
  server.tool("book", "Books a flight", [](Flight in, sluice::Call& call) -> sluice::Task<Booking> {
    if (in.from == in.to) throw sluice::ToolError("You are already there");
    const auto asked = co_await call.elicit<Seat>("Do you want a window seat?");
    if (!asked) throw sluice::ToolError("The user has changed their mind");
    co_return Booking{asked.content->window ? "12A" : "12B"};
  });
  server.tool("wait", "Waits for the departure",
              [](sluice::Call& call) -> sluice::Task<std::string> {
                for (int minute = 5; minute > 0; --minute) {
                  call.text(std::to_string(minute) + " minutes ");
                  co_await call.sleep(1min);
                }
                co_return "Boarding";
              });
  return server;
}

#define EXPECT(what)                                                          \
  if (!(what)) {                                                              \
    std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what); \
    std::exit(1);                                                             \
  }

// The handler asks the user. The same test works for clients of all revisions.
void books_the_seat_that_the_user_wants(const std::string& revision) {
  sluice::testing::Client client(
      make_server(),
      {.revision = revision, .on_elicitation = [](const sluice::json::object& question) {
         EXPECT(question.at("message") == "Do you want a window seat?");
         return sluice::testing::accept({{"window", true}});
       }});
  const sluice::testing::Reply reply = client.call("book", {{"from", "Oslo"}, {"to", "Rome"}});
  EXPECT(reply.as<Booking>().seat == "12A");
}

void says_what_the_model_did_wrong() {
  sluice::testing::Client client(make_server());
  const auto reply = client.call("book", {{"from", "Oslo"}, {"to", "Oslo"}});
  EXPECT(reply.failed());
  EXPECT(reply.text() == "You are already there");
}

// Five minutes pass in no time. advance() stops in between.
void counts_down() {
  sluice::testing::Client client(make_server());
  auto pending = client.begin_call("wait");
  client.advance(90s);
  EXPECT(pending.partial_text() == "5 minutes 4 minutes ");
  EXPECT(!pending.is_ready());
  EXPECT(pending.get().text() == "Boarding");
}

int main() {
  for (const char* const revision : {"2025-06-18", "2025-11-25", "2026-07-28"}) {
    books_the_seat_that_the_user_wants(revision);
  }
  says_what_the_model_did_wrong();
  counts_down();
  std::puts("all tests passed");
}
