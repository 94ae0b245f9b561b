#pragma once

#include <string>
#include <string_view>

#include "core/executor.hpp"
#include "net/line_session.hpp"

namespace sluice {

/// A connection of lines within the process, without descriptors: write() and take() are the peer's
/// end. One that is given up is torn down by a task of the executor. Belongs to the service's loop,
/// as the peer does.
class MemoryLines final : public LineSession {
 public:
  /// Connects to `service`, which runs on `executor`. What is referred to outlives the connection.
  static RefPtr<MemoryLines> connect(LineService& service, uid_t user, Executor& executor,
                                     BufferPool& pool, const LineOptions& options);

  /// The peer sends `bytes`. They are handled before it returns, as far as their answers have room;
  /// false: the rest waits until the peer takes some.
  bool write(std::string_view bytes);
  /// The peer sends no more.
  void end() { end_input(); }
  /// All that has been sent to the peer and not been taken.
  std::string take();
  /// The peer goes.
  void disconnect() { tear_down(); }

  void flush() override {}
  using LineSession::is_over;

 private:
  MemoryLines(Executor& executor, BufferPool& pool, const LineOptions& options)
      : LineSession(pool, options), executor_(&executor) {}
  void output_changed() override;
  void input_wanted() override;
  void dropped() override {}

  Executor* executor_;
};

}  // namespace sluice
