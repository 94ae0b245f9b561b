#include "server/calls/task_outlet.hpp"

#include <atomic>
#include <string>

namespace sluice {

/// Counts the bytes of the messages that are on their way. Messages arrive on any thread.
class TaskOutlet::Way final : public std::enable_shared_from_this<Way> {
 public:
  Way(std::weak_ptr<OutletEvents> call, Executor& loop) : call_(std::move(call)), loop_(&loop) {}

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Adds a message. It has arrived, or was dropped, when the last reference to it is released.
  std::shared_ptr<const std::string> add(std::string_view text) {
    auto message = std::make_shared<const Message>(std::string(text), shared_from_this());
    bytes_ += message->text.size();
    return {message, &message->text};
  }

  /// Whether the call may send more. If not, on_outlet_writable() tells it when it may.
  bool has_capacity() {
    if (bytes_ < kFull) return true;
    waiting_ = true;
    // If enough has arrived meanwhile, arrive() did not yet see that the call waits.
    return bytes_ <= kRoom && waiting_.exchange(false);
  }

 private:
  struct Message {
    Message(std::string message, std::shared_ptr<Way> through)
        : text(std::move(message)), way(std::move(through)) {}
    ~Message() { way->arrive(text.size()); }
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

    std::string text;
    std::shared_ptr<Way> way;
  };

  void arrive(std::size_t bytes) {
    if ((bytes_ -= bytes) > kRoom || !waiting_.exchange(false)) return;
    loop_->post([call = call_] {
      if (const auto waiting = call.lock()) waiting->on_outlet_writable();
    });
  }

  /// A call that waits goes on when no more bytes than this are on their way.
  static constexpr std::size_t kRoom = kFull / 4;

  const std::weak_ptr<OutletEvents> call_;
  Executor* const loop_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<bool> waiting_ = false;
};

TaskOutlet::TaskOutlet(std::shared_ptr<TaskRecord> task, std::weak_ptr<OutletEvents> call,
                       Executor& loop)
    : task_(std::move(task)), way_(std::make_shared<Way>(std::move(call), loop)) {}

bool TaskOutlet::send(std::string_view message) {
  if (way_->bytes() < kMost) task_->send(way_->add(message));
  return way_->has_capacity();
}

}  // namespace sluice
