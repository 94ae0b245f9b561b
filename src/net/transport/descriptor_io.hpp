#pragma once

#include <span>
#include <sys/uio.h>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"
#include "net/transport/transport.hpp"

namespace sluice {

/// Moves bytes over a descriptor without waiting, whatever it is: a socket (in blocking mode, too),
/// a pipe or terminal in non-blocking mode, or a file. Does not own the descriptor.
class DescriptorIo {
 public:
  explicit DescriptorIo(int descriptor);

  [[nodiscard]] IoResult read(std::span<char> into) const;
  /// Writes as much of the parts as goes in one call. A peer that has gone is a failure, given that
  /// the thread blocks SIGPIPE, as those of a LoopPool do.
  [[nodiscard]] IoResult write(std::span<const iovec> parts) const;
  /// Bytes of a socket that its peer has not taken from the kernel yet; 0 of anything else.
  [[nodiscard]] std::uint32_t unacknowledged() const;

 private:
  int descriptor_;
  bool is_socket_;
};

struct StandardStreams {
  Descriptor input;
  Descriptor output;
};

/// Takes standard input and output over for a protocol. From then on what else reads standard input
/// finds its end, and what else writes to standard output lands on standard error, so that nothing
/// gets into the protocol. The error says which of them is closed.
Result<StandardStreams> take_standard_streams();

}  // namespace sluice
