#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "client.hpp"
#include "sluice/testing.hpp"

namespace sluice::matrix {

/// The Client that users of the library have for their tests.
class MemoryClient final : public Client {
 public:
  MemoryClient(Served& served, const Transport& transport, const Revision& revision, bool asked);

  [[nodiscard]] const json::object& agreed() const override { return client_.server_info(); }
  json::object request(std::string_view method, json::object params) override;
  std::int64_t begin(std::string_view method, json::object params) override;
  void cancel(std::int64_t id) override;
  json::object notification(std::string_view method) override;
  std::size_t waiting(std::string_view method) override;
  /// Throws std::logic_error: it cannot.
  json::value exchange(const json::value& message) override;

 private:
  /// What has arrived of `method`.
  std::deque<json::object>& arrived(std::string_view method);

  testing::Client client_;
  std::int64_t last_id_ = 0;
  std::map<std::int64_t, testing::PendingReply> begun_;
  std::map<std::string, std::deque<json::object>, std::less<>> notifications_;
};

}  // namespace sluice::matrix
