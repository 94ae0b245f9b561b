#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "client.hpp"

namespace sluice::matrix {

/// A Client that sends and receives messages. The test fails if one in either direction violates
/// the revision's schema.
class WireClient final : public Client {
 public:
  WireClient(Served& served, const Transport& transport, const Revision& revision, bool asked);

  [[nodiscard]] const json::object& agreed() const override { return agreed_; }
  json::object request(std::string_view method, json::object params) override;
  std::int64_t begin(std::string_view method, json::object params) override;
  void cancel(std::int64_t id) override;
  json::object notification(std::string_view method) override;
  std::size_t waiting(std::string_view method) override;
  json::value exchange(const json::value& message) override;

 private:
  json::object response_to(std::int64_t id);
  void notify(std::string_view method, json::object params = {});
  json::object with_meta(json::object params) const;
  void send(const json::object& message);
  /// Receives the next message, and keeps or answers it.
  void take();

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
