// A tool that asks the user. The same coroutine serves clients of all revisions. Up to 2025-11-25,
// a client is asked while the coroutine waits. From 2026-07-28 on, a client calls again with the
// answer, and the coroutine runs again from its start. So nothing that must not happen twice comes
// before the question.

#include <string>

#include "sluice/server.hpp"

struct Table {
  int guests;
};
struct Details {
  std::string name;
  bool outside = false;

  static auto describe() {
    return sluice::describe(sluice::field<&Details::name>("On which name?"),
                            sluice::field<&Details::outside>("Outside?").optional());
  }
};

sluice::Task<std::string> book(Table in, sluice::Call& call) {
  const auto details = co_await call.elicit<Details>("One more thing about your table:");
  if (!details) co_return "Nothing was booked.";
  co_return "A table for " + std::to_string(in.guests) +
      (details.content->outside ? " outside" : "") + " is booked for " + details.content->name +
      ".";
}

int main(int count, char** arguments) {
  sluice::Server server("restaurant", "1.0");
  server.tool("book_table", "Books a table", &book);
  return sluice::serve(server, sluice::command_line{count, arguments});
}
