#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "json/json.hpp"
#include "link.hpp"
#include "protocol/revision.hpp"

namespace sluice::matrix {

/// An MCP client of one revision over one transport, whose user and model always say the same. All
/// that goes either way must follow the revision's schema; what does not fails the test.
class Client {
 public:
  /// Connects and agrees on the revision. asked: whether it declares that the server may ask it.
  Client(Served& served, const Transport& transport, const Revision& revision, bool asked = true);

  [[nodiscard]] const Revision& revision() const { return *revision_; }
  [[nodiscard]] bool modern() const { return revision_->era == Era::modern; }
  /// Whether the server can ask this client, or has it ask itself (MRTR).
  [[nodiscard]] bool can_be_asked() const { return modern() || transport_->sessions; }
  /// The result of `initialize`; empty in eras without.
  [[nodiscard]] const json::object& agreed() const { return agreed_; }
  /// Whether the revision's schema has a definition of that name.
  [[nodiscard]] bool has(std::string_view definition) const;

  /// The response, after as many rounds as it takes.
  json::object request(std::string_view method, json::object params = {});
  /// Its result; an error fails the test.
  json::object result(std::string_view method, json::object params = {});
  /// Its error's code, or 0.
  std::int64_t error(std::string_view method, json::object params = {});
  json::object call(std::string_view tool, json::object arguments = {});

  /// Sends a request and does not wait; returns its id.
  std::int64_t begin(std::string_view method, json::object params);
  json::object response_to(std::int64_t id);
  void notify(std::string_view method, json::object params = {});
  /// Cancels a request: the newest that has no response.
  void cancel(std::int64_t id);
  /// The oldest notification of that method that has not been taken, or the next one.
  json::object notification(std::string_view method);
  /// How many of them have come and not been taken.
  [[nodiscard]] std::size_t waiting(std::string_view method) const;
  /// Sends as it is and gives what comes next.
  json::value exchange(const json::value& message);

  /// What this client says when it is asked.
  static json::object answer(std::string_view method);

 private:
  json::object with_meta(json::object params) const;
  void send(const json::object& message);
  /// Takes the next message: keeps it, or answers it.
  void take();

  const Transport* transport_;
  const Revision* revision_;
  json::object capabilities_;
  std::unique_ptr<Link> link_;
  json::object agreed_;
  std::int64_t last_id_ = 0;
  struct Sent {
    std::int64_t id;
    std::string method;
  };
  std::deque<Sent> open_;  // requests without a response
  std::deque<json::object> responses_;
  std::deque<json::object> notifications_;
};

}  // namespace sluice::matrix
