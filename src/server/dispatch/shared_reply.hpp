#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/client_memory.hpp"
#include "core/executor.hpp"
#include "rpc/message.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// One reply that answers several requests, such as those of a batch: each gets a channel of its
/// own, and what they are given goes out through the channel that they share. Such a reply cannot
/// be resumed, for its messages belong to several streams. Belongs to the loop of its channel; the
/// channels given out keep it.
class SharedReply final : public std::enable_shared_from_this<SharedReply> {
 public:
  /// How the responses travel.
  enum class Form : std::uint8_t {
    array,              // all in one JSON array at the end
    array_or_messages,  // the same, unless something goes before one: from then on each by itself
    messages,           // each by itself, as soon as it is there
  };
  /// Responses that wait, for others or for room, draw on `memory`; null: there is no limit. `mark`
  /// is held as long as this is there.
  SharedReply(Form form, Executor& loop, std::shared_ptr<MemoryShare> memory = nullptr,
              std::shared_ptr<const void> mark = nullptr)
      : form_(form), loop_(&loop), memory_(std::move(memory)), mark_(std::move(mark)) {}
  SharedReply(const SharedReply&) = delete;
  SharedReply& operator=(const SharedReply&) = delete;

  /// Where everything goes; before the first channel is opened.
  void attach(std::shared_ptr<ReplyChannel> output);
  [[nodiscard]] bool is_attached() const { return output_ != nullptr; }

  /// Draws what the refusals of `count` responses take that find no memory, with ids of `ids` bytes
  /// in all. Once, before the first. False: even for that there is none.
  [[nodiscard]] bool reserve(std::size_t count, std::size_t ids);
  /// The channel of request `id`, which a cancellation in `session` finds; that may be null. Errors
  /// as Session::add_call().
  Result<std::shared_ptr<ReplyChannel>> open(const RequestId& id,
                                             const std::shared_ptr<Session>& session);
  /// A response, that of request `id`, that needs no channel. If it has to wait and there is no
  /// memory for it, or those that wait for each other would be longer than kMost in all, a refusal
  /// with kBusy takes its place.
  void respond(std::string_view message, const RequestId& id = {});
  /// Nothing is opened any more: the reply ends when all is answered. False: nothing was attached,
  /// so the answer is take_responses().
  bool complete();
  /// Breaks the reply off: who asked sees that it is not whole, and what is unanswered hears that
  /// who asked has gone.
  void abandon();
  /// The responses that were collected, as a JSON array; empty if there are none. They are gone
  /// then, and draw on nothing.
  std::string take_responses();

  /// Bytes of an array.
  static constexpr std::size_t kMost = std::size_t{8} << 20U;

  /// Channels that have not been answered.
  [[nodiscard]] std::size_t open_channels() const { return channels_.size(); }
  /// Whether the output takes more messages.
  [[nodiscard]] bool has_capacity() const { return writable_; }
  /// Run each time a channel is answered or the output has room again, until the end; it only notes
  /// that, and does not come back here.
  void on_progress(Executor::Task task) { progress_task_ = std::move(task); }

 private:
  class Channel;

  bool write(std::string_view block);
  void write_message(std::string_view message);
  void collect(std::string_view message, const RequestId& id);
  void write_or_wait(std::string_view message, const RequestId& id);
  void write_waiting();
  void remove(const Channel& channel);
  void check_end();
  void close();
  void drained();

  Form form_;
  Executor* loop_;
  std::shared_ptr<ReplyChannel> output_;  // null before attach() and after the end
  std::vector<Channel*> channels_;        // each removes itself
  std::string array_;                     // of the responses so far, without its end
  std::vector<std::size_t> ends_;         // in it, of each
  std::deque<std::string> waiting_;       // those that wait for room
  MemoryHold memory_;                     // of all these
  std::shared_ptr<const void> mark_;
  Executor::Task progress_task_;
  bool by_messages_ = form_ == Form::messages;
  bool writable_ = true;
  bool complete_ = false;
};

}  // namespace sluice
