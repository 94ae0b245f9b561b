#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client.hpp"
#include "client/session/client_session.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice::matrix {

/// A client that is made of the library's ClientSession and one of its links.
class SessionClient final : public Client {
 public:
  SessionClient(Served& served, const Transport& transport, const Revision& revision, bool asked);
  ~SessionClient() override;

  [[nodiscard]] const json::object& agreed() const override { return session_->server().about; }
  json::object request(std::string_view method, json::object params) override;
  std::int64_t begin(std::string_view method, json::object params) override;
  void cancel(std::int64_t id) override;
  json::object notification(std::string_view method) override;
  std::size_t waiting(std::string_view method) override;
  /// Throws std::logic_error: it cannot.
  json::value exchange(const json::value& message) override;

 private:
  /// Runs the loop until `done`. Throws std::runtime_error after 20 s.
  void until(const std::function<bool()>& done);

  EventLoop loop_;
  std::shared_ptr<ClientSession> session_;
  std::map<std::int64_t, json::object> responses_;
  std::vector<std::pair<std::string, json::object>> notifications_;
};

}  // namespace sluice::matrix
