#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "json/json.hpp"
#include "link.hpp"
#include "protocol/revision.hpp"

namespace sluice::matrix {

/// An MCP client of one revision over one transport. Its user and its model always give the same
/// answers.
class Client {
 public:
  /// Connects and negotiates the revision. `asked` says whether the client declares that the server
  /// may ask it.
  static std::unique_ptr<Client> connect(Served& served, const Transport& transport,
                                         const Revision& revision, bool asked = true);
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] const Revision& revision() const { return *revision_; }
  [[nodiscard]] bool modern() const { return revision_->era == Era::modern; }
  /// Whether the server can get answers from this client: with a request to it, or in a further
  /// round of the client's own request (MRTR).
  [[nodiscard]] bool can_be_asked() const { return modern() || transport_->sessions; }
  /// The result of `initialize`. Empty for revisions that do not have it.
  [[nodiscard]] virtual const json::object& agreed() const = 0;
  /// Whether the revision's schema has the definition `definition`.
  [[nodiscard]] bool has(std::string_view definition) const;

  /// Sends a request and returns the response, after as many rounds as it takes.
  virtual json::object request(std::string_view method, json::object params) = 0;
  /// Like request(), but returns the result. An error fails the test.
  json::object result(std::string_view method, json::object params = {});
  /// Like request(), but returns the code of the error, or 0 if there is none.
  std::int64_t error(std::string_view method, json::object params = {});
  json::object call(std::string_view tool, json::object arguments = {});

  /// Sends a request without waiting for the response. Returns its id.
  virtual std::int64_t begin(std::string_view method, json::object params) = 0;
  /// Cancels a request. It must be the newest one without a response.
  virtual void cancel(std::int64_t id) = 0;
  /// Takes the oldest notification of `method` that has arrived, or waits for the next one.
  virtual json::object notification(std::string_view method) = 0;
  /// How many notifications of `method` have arrived and not been taken.
  [[nodiscard]] virtual std::size_t waiting(std::string_view method) = 0;
  /// Sends `message` unchanged and returns the next message that arrives.
  virtual json::value exchange(const json::value& message) = 0;

  /// The result with which this client answers a request of the server.
  static json::object answer(std::string_view method);

 protected:
  Client(const Transport& transport, const Revision& revision)
      : transport_(&transport), revision_(&revision) {}

 private:
  const Transport* transport_;
  const Revision* revision_;
};

}  // namespace sluice::matrix
