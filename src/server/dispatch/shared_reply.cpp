#include "server/dispatch/shared_reply.hpp"

#include <algorithm>
#include <utility>

#include "core/release_memory.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The bytes that reserve() sets aside for a response: enough for the error kNoMemory without its
/// id.
constexpr std::size_t kRefusal = 320;

const Error kNoMemory{kBusy,
                      "The server has no memory to keep the answer until the others of its batch "
                      "are there; the request was carried out: send such requests one by one",
                      {}};

Error too_long() {
  return {kBusy,
          "The answers to this batch are longer than " + std::to_string(SharedReply::kMost) +
              " bytes, the most that they may be together; the request was carried out: send such "
              "requests one by one",
          {}};
}

}  // namespace

/// The channel of one of the requests.
class SharedReply::Channel final : public ReplyChannel,
                                   public std::enable_shared_from_this<Channel> {
 public:
  Channel(std::shared_ptr<SharedReply> reply, RequestId id)
      : framing_(&reply->output_->framing()),
        can_stream_(reply->output_->can_stream()),
        reply_(std::move(reply)),
        id_(std::move(id)) {
    reply_->channels_.push_back(this);
  }
  ~Channel() override {
    if (reply_ != nullptr) leave();
  }

  Result<void> make_cancellable(const std::shared_ptr<Session>& session,
                                std::unique_ptr<Session::Call> entry) {
    auto cancel = [weak = weak_from_this()] {
      if (const auto channel = weak.lock()) channel->cancel();
    };
    cancellable_ = std::move(entry);
    if (cancellable_ != nullptr) {
      cancellable_->hand_over(*reply_->loop_, std::move(cancel));
      return {};
    }
    Result<std::unique_ptr<Session::Call>> added =
        Session::add_call(session, id_, *reply_->loop_, std::move(cancel));
    if (!added) return std::unexpected(std::move(added.error()));
    cancellable_ = std::move(*added);
    return {};
  }

  void reply(int /*http_status*/, std::string message) override {
    if (reply_ == nullptr) return;
    reply_->respond(message, id_);
    leave();
  }
  bool write(std::string_view block) override { return reply_ == nullptr || reply_->write(block); }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {
    if (reply_ != nullptr) leave();
  }
  void drop(const Error& error) override {
    std::string message;
    append_error(message, id_, error);
    reply(200, std::move(message));
  }
  [[nodiscard]] const Framing& framing() const override { return *framing_; }
  [[nodiscard]] bool can_stream() const override { return can_stream_; }
  [[nodiscard]] bool is_shared() const override { return true; }
  void may_take_long() override {
    if (reply_ != nullptr && reply_->output_ != nullptr) reply_->output_->may_take_long();
  }
  void on_close(CloseTask task) override {
    // The old task may own what owns this channel, so it is destroyed last.
    const CloseTask old = std::exchange(close_task_, std::move(task));
  }
  void on_drain(Executor::Task task) override { drain_task_ = std::move(task); }

  void close(DisconnectReason reason) {
    reply_ = nullptr;
    cancellable_ = nullptr;
    if (CloseTask task = std::exchange(close_task_, {})) task(reason);
  }
  void drain() {
    if (drain_task_) drain_task_();
  }

 private:
  /// Cancelled by the client: no response follows.
  void cancel() {
    if (reply_ == nullptr) return;
    const std::shared_ptr<Channel> keep = shared_from_this();
    const std::shared_ptr<SharedReply> reply = reply_;
    close(DisconnectReason::cancelled);
    reply->remove(*this);
  }
  /// Ends this channel: it sends nothing more.
  void leave() {
    const std::shared_ptr<SharedReply> reply = std::exchange(reply_, nullptr);
    cancellable_ = nullptr;
    // The task may own what owns this channel. It is destroyed last; nothing below uses the
    // channel.
    const CloseTask released = std::exchange(close_task_, {});
    reply->remove(*this);
  }

  const Framing* framing_;
  bool can_stream_;
  std::shared_ptr<SharedReply> reply_;  // null once answered or closed
  RequestId id_;
  CloseTask close_task_;
  Executor::Task drain_task_;
  std::unique_ptr<Session::Call> cancellable_;
};

void SharedReply::attach(std::shared_ptr<ReplyChannel> output) {
  output_ = std::move(output);
  // Weak references are enough: whoever answers owns a channel, which keeps this alive.
  output_->on_close([weak = weak_from_this()](DisconnectReason) {
    if (const auto self = weak.lock()) self->close();
  });
  output_->on_drain([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->drained();
  });
}

Result<std::shared_ptr<ReplyChannel>> SharedReply::open(const RequestId& id,
                                                        const std::shared_ptr<Session>& session,
                                                        std::unique_ptr<Session::Call> entry) {
  const auto channel = std::make_shared<Channel>(shared_from_this(), id);
  if (session != nullptr) {
    if (Result<void> added = channel->make_cancellable(session, std::move(entry)); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return channel;
}

bool SharedReply::reserve(std::size_t count, std::size_t ids) {
  return memory_.add(count * kRefusal + ids);
}

void SharedReply::respond(std::string_view message, const RequestId& id) {
  if (by_messages_) {
    write_or_wait(message, id);
  } else {
    collect(message, id);
  }
}

/// Appends to the array at once. Joining all responses at the end would copy them in a single turn.
void SharedReply::collect(std::string_view message, const RequestId& id) {
  array_.push_back(array_.empty() ? '[' : ',');
  if (message.size() <= kRefusal) {
    array_.append(message);
  } else if (array_.size() + message.size() > kMost) {
    append_error(array_, id, too_long());
  } else if (memory_.add(message.size())) {
    array_.append(message);
  } else {
    append_error(array_, id, kNoMemory);
  }
  ends_.push_back(array_.size());
}

/// Responses to many requests may come in one turn, in which the peer can read nothing.
void SharedReply::write_or_wait(std::string_view message, const RequestId& id) {
  if (writable_ || output_ == nullptr) {
    write_message(message);
  } else if (message.size() <= kRefusal || memory_.add(message.size())) {
    waiting_.emplace_back(message);
  } else {
    append_error(waiting_.emplace_back(), id, kNoMemory);
  }
}

void SharedReply::write_waiting() {
  while (writable_ && output_ != nullptr && !waiting_.empty()) {
    const std::string message = std::move(waiting_.front());
    waiting_.pop_front();
    // An error that its id makes longer than kRefusal was not charged, hence the minimum.
    if (message.size() > kRefusal) memory_.remove(std::min(message.size(), memory_.bytes()));
    write_message(message);
  }
}

bool SharedReply::write(std::string_view block) {
  if (output_ == nullptr || block.empty()) return true;
  if (form_ == Form::array_or_messages && !std::exchange(by_messages_, true)) {
    const std::string array = std::exchange(array_, {});
    std::size_t at = 0;
    for (const std::size_t end : std::exchange(ends_, {})) {
      waiting_.push_back(array.substr(at + 1, end - at - 1));
      at = end;
    }
    write_waiting();
    if (output_ == nullptr) return true;
  }
  writable_ = output_->write(block);
  if (progress_task_) progress_task_();
  return writable_;
}

void SharedReply::write_message(std::string_view message) {
  if (output_ == nullptr) return;
  std::string block;
  const Framing& framing = output_->framing();
  const std::size_t mark = framing.begin(block);
  block.append(message);
  framing.end(block, mark);
  writable_ = output_->write(block);
}

std::string SharedReply::take_responses() {
  std::string array = std::exchange(array_, {});
  if (!array.empty()) array.push_back(']');
  release_memory(ends_);
  memory_.release();
  return array;
}

bool SharedReply::complete() {
  complete_ = true;
  if (output_ == nullptr) return false;
  check_end();
  return true;
}

void SharedReply::remove(const Channel& channel) {
  std::erase(channels_, &channel);
  check_end();
  if (progress_task_) progress_task_();
}

void SharedReply::check_end() {
  if (!complete_ || !channels_.empty() || !waiting_.empty() || output_ == nullptr) return;
  const std::shared_ptr<ReplyChannel> output = std::exchange(output_, nullptr);
  const Executor::Task released = std::exchange(progress_task_, {});
  output->on_close({});
  if (!array_.empty()) {
    // The responses stay here, where their memory is accounted for, until the output can take them.
    output->when_writable(
        [self = shared_from_this(), output] { output->reply(200, self->take_responses()); });
    return;
  }
  // All were cancelled: the reply is an event stream without a response, if the caller takes one.
  if (!by_messages_ && output->can_stream()) output->write(std::string_view());
  output->finish();
}

void SharedReply::abandon() {
  if (output_ == nullptr) return;
  const std::shared_ptr<ReplyChannel> output = output_;
  close();
  output->drop({});
}

/// The caller has gone.
void SharedReply::close() {
  const std::shared_ptr<SharedReply> keep = shared_from_this();
  output_ = nullptr;
  waiting_.clear();
  const Executor::Task released = std::exchange(progress_task_, {});
  std::vector<std::weak_ptr<Channel>> channels;
  for (Channel* const channel : std::exchange(channels_, {})) {
    channels.push_back(channel->weak_from_this());
  }
  for (const auto& weak : channels) {
    if (const auto channel = weak.lock()) channel->close(DisconnectReason::gone);
  }
}

void SharedReply::drained() {
  const std::shared_ptr<SharedReply> keep = shared_from_this();
  writable_ = true;
  write_waiting();
  check_end();
  std::vector<std::weak_ptr<Channel>> channels;
  for (Channel* const channel : channels_) channels.push_back(channel->weak_from_this());
  for (const auto& weak : channels) {
    if (!writable_) return;
    if (const auto channel = weak.lock()) channel->drain();
  }
  if (progress_task_) progress_task_();
}

}  // namespace sluice
