#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/connection/connection.hpp"

namespace sluice {

/// A connection within the process, without descriptors. Its public members are the peer's end.
/// Belongs to the worker's loop, as the peer does.
class MemoryConnection final : public Connection {
 public:
  static constexpr std::size_t kAll = ~std::size_t{0};

  /// `limits` must outlive the connection.
  MemoryConnection(ConnectionWorker& worker, const OutputLimits& limits,
                   const PeerAddress& peer = {})
      : Connection(worker, peer, limits, false) {}

  /// The peer sends `bytes`. They are handled before this returns, unless the output is full.
  /// Returns false if some of them wait or the output is full; the rest is handled when the peer
  /// has taken some output.
  bool write(std::string_view bytes);
  /// The peer sends no more.
  void end();
  /// The peer takes what has been sent to it, up to `most` bytes.
  std::string take(std::size_t most = kAll);
  /// The peer goes: it neither sends nor takes any more.
  void vanish();
  /// The memory of what is on its way between the two ends.
  [[nodiscard]] std::size_t in_flight() const {
    return from_peer_.capacity() + to_peer_.capacity();
  }

 private:
  IoResult read_some(std::span<char> buffer) override;
  IoResult write_some(std::span<const iovec> parts) override;
  [[nodiscard]] std::uint32_t unacknowledged() const override { return 0; }
  bool end_output() override { return false; }
  bool attach() override { return true; }
  void detach() override {}
  void close() override {}

  std::string from_peer_;
  std::string to_peer_;
  std::size_t room_ = 0;  // bytes that the peer takes now
  bool has_ended_ = false;
  bool has_gone_ = false;
};

}  // namespace sluice
