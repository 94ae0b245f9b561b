#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/file_test_support.hpp"
#include "net/loop/descriptor.hpp"
#include "sluice/server.hpp"

namespace sluice {
class ServerHost;
}

namespace sluice::matrix {

/// The server of the matrix. It serves a port, a Unix socket and pairs of pipes at the same time,
/// on its own event loops.
class Served {
 public:
  /// `sessions` says whether it keeps sessions over HTTP, `waits` whether each request waits in a
  /// middleware before it continues.
  Served(bool sessions, bool waits);
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string unix_path() const { return folder_.path("socket"); }
  struct Pipes {
    Descriptor to_server;
    Descriptor from_server;
  };
  /// Opens a connection like one over standard input and output.
  Pipes connect_pipes();

  Server& server() { return server_; }
  /// Waits until a call of the tool `wait` is cancelled.
  void await_cancellation() const { cancelled_.wait(false); }

  static constexpr std::string_view kApiKey = "secret-of-the-matrix";

  static constexpr int kManyResources = 45;
  static constexpr int kPage = 20;

 private:
  void offer_tools();
  void offer_questions();
  void offer_resources();
  void offer_the_rest();

  test::TemporaryDirectory folder_;
  std::atomic<bool> cancelled_ = false;
  Server server_{"matrix", "1.0", {.instructions = "Be kind", .page_size = kPage}};
  std::unique_ptr<ServerHost> host_;
};

}  // namespace sluice::matrix
