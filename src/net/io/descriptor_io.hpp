#pragma once

#include <span>
#include <sys/uio.h>

#include "core/error.hpp"
#include "net/io/socket_io.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// Moves bytes over a descriptor without waiting. It may be a socket (even in blocking mode), a
/// pipe or terminal in non-blocking mode, or a file. Does not own the descriptor.
class DescriptorIo {
 public:
  explicit DescriptorIo(int descriptor);

  [[nodiscard]] IoResult read(std::span<char> into) const;
  /// Writes as much of the parts as one call can. If the peer has gone, the write fails, provided
  /// that the thread blocks SIGPIPE, as the threads of a LoopPool do.
  [[nodiscard]] IoResult write(std::span<const iovec> parts) const;
  /// For a socket, as unacknowledged_bytes(); otherwise 0.
  [[nodiscard]] std::uint32_t unacknowledged() const;

 private:
  int descriptor_;
  bool is_socket_;
};

struct StandardStreams {
  Descriptor input;
  Descriptor output;
};

/// Opens standard input and output for a protocol. The error says which of them is closed, or what
/// failed. Call it before anything else gets the descriptor of a closed one.
Result<StandardStreams> open_standard_streams();

/// From then on, other code that reads standard input finds its end, and what other code writes to
/// standard output goes to standard error. So nothing else gets into the protocol.
Result<void> divert_standard_streams();

/// Both.
Result<StandardStreams> take_standard_streams();

}  // namespace sluice
