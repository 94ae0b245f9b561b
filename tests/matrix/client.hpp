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

/// An MCP client of one revision over one transport. Its user and its model always give the same
/// answers. The test fails if a message in either direction violates the revision's schema.
class Client {
 public:
  /// Connects and negotiates the revision. `asked` says whether the client declares that the server
  /// may ask it.
  Client(Served& served, const Transport& transport, const Revision& revision, bool asked = true);

  [[nodiscard]] const Revision& revision() const { return *revision_; }
  [[nodiscard]] bool modern() const { return revision_->era == Era::modern; }
  /// Whether the server can get answers from this client: with a request to it, or in a further
  /// round of the client's own request (MRTR).
  [[nodiscard]] bool can_be_asked() const { return modern() || transport_->sessions; }
  /// The result of `initialize`. Empty for revisions that do not have it.
  [[nodiscard]] const json::object& agreed() const { return agreed_; }
  /// Whether the revision's schema has the definition `definition`.
  [[nodiscard]] bool has(std::string_view definition) const;

  /// Sends a request and returns the response, after as many rounds as it takes.
  json::object request(std::string_view method, json::object params = {});
  /// Like request(), but returns the result. An error fails the test.
  json::object result(std::string_view method, json::object params = {});
  /// Like request(), but returns the code of the error, or 0 if there is none.
  std::int64_t error(std::string_view method, json::object params = {});
  json::object call(std::string_view tool, json::object arguments = {});

  /// Sends a request without waiting for the response. Returns its id.
  std::int64_t begin(std::string_view method, json::object params);
  json::object response_to(std::int64_t id);
  void notify(std::string_view method, json::object params = {});
  /// Cancels a request. It must be the newest one without a response.
  void cancel(std::int64_t id);
  /// Takes the oldest notification of `method` that has arrived, or waits for the next one.
  json::object notification(std::string_view method);
  /// How many notifications of `method` have arrived and not been taken.
  [[nodiscard]] std::size_t waiting(std::string_view method) const;
  /// Sends `message` unchanged and returns the next message that arrives.
  json::value exchange(const json::value& message);

  /// The result with which this client answers a request of the server.
  static json::object answer(std::string_view method);

 private:
  json::object with_meta(json::object params) const;
  void send(const json::object& message);
  /// Receives the next message, and keeps or answers it.
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
  std::deque<Sent> open_;  // requests that have no response yet
  std::deque<json::object> responses_;
  std::deque<json::object> notifications_;
};

}  // namespace sluice::matrix
