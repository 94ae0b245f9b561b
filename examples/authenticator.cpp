// The program itself decides who the caller is: here by a ticket. All guests share one ticket, so
// their principal is not isolated.

#include "sluice/authenticator.hpp"

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sluice/server.hpp"

/// Stands for whatever proves an identity. Several threads call it at the same time; it is safe
/// because it changes nothing.
class Tickets final : public sluice::Authenticator {
 public:
  std::expected<sluice::Principal, sluice::Refusal> authenticate(
      const sluice::RequestHead& head) override {
    const auto ticket = head.field("X-Ticket");
    if (!ticket) {
      return std::unexpected(sluice::Refusal::unauthorized("Show your X-Ticket", "Ticket"));
    }
    const auto holder = holders_.find(*ticket);
    if (holder == holders_.end()) {
      return std::unexpected(sluice::Refusal::forbidden("This ticket is not valid"));
    }
    return holder->second;
  }

 private:
  const std::map<std::string, sluice::Principal, std::less<>> holders_ = {
      {"ticket-of-ann", {.id = "ann"}},
      {"ticket-of-bob", {.id = "bob"}},
      {"ticket-for-guests", {.id = "guest", .isolated = false}},
  };
};

std::string greet(sluice::Call& call) {
  return call.is_isolated() ? "Hello, " + call.principal() + "." : "Hello, whoever you are.";
}

int main(int count, char** arguments) {
  sluice::Server server("club", "1.0");
  server.tool("greet", "Says hello", &greet);
  return sluice::serve(
      server,
      sluice::command_line{count, arguments, {.authenticator = std::make_shared<Tickets>()}});
}
