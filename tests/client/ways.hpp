#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/file_test_support.hpp"
#include "served.hpp"
#include "sluice/client.hpp"

namespace sluice::client_tests {

/// Where the server is reached.
enum class Way : std::uint8_t { http, sse, websocket, unix_socket, child, local };

/// A way, and the revision that is spoken there; empty: the newest.
using WayAndRevision = std::tuple<Way, std::string>;
/// Each way but those of `without`, in each era that it has.
std::vector<WayAndRevision> ways(std::initializer_list<Way> without = {});
/// For INSTANTIATE_TEST_SUITE_P.
std::string name_of(const WayAndRevision& way);
inline std::string name_of_way(const testing::TestParamInfo<WayAndRevision>& info) {
  return name_of(info.param);
}

/// A server at every place that there is.
class Served {
 public:
  Served();
  [[nodiscard]] Client connect(Way way, ClientOptions options = {}) const;
  Server& server() { return server_; }
  [[nodiscard]] std::string metrics() const { return serving_->metrics(); }

 private:
  test::TemporaryDirectory folder_;
  Server server_ = make_server();
  std::optional<Serving> serving_;
};

}  // namespace sluice::client_tests
