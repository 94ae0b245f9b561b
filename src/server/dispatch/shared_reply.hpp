#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "rpc/message.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// One reply to several requests, such as those of a batch. Each request gets a channel of its own;
/// all of these write to one shared channel. Such a reply cannot be resumed, because its messages
/// belong to several streams. Belongs to the loop of the shared channel. The channels given out
/// keep it alive.
class SharedReply final : public std::enable_shared_from_this<SharedReply> {
 public:
  /// How the responses travel.
  enum class Form : std::uint8_t {
    array,              // all in one JSON array at the end
    array_or_messages,  // the same, but once another message is sent, each by itself
    messages,           // each by itself, as soon as it is ready
  };
  /// Responses that wait for others, or while the output is full, are charged to `memory`; null:
  /// there is no limit. `mark` is held as long as this exists.
  SharedReply(Form form, Executor& loop, std::shared_ptr<MemoryShare> memory = nullptr,
              std::shared_ptr<const void> mark = nullptr)
      : form_(form), loop_(&loop), memory_(std::move(memory)), mark_(std::move(mark)) {}
  SharedReply(const SharedReply&) = delete;
  SharedReply& operator=(const SharedReply&) = delete;

  /// Sets the shared channel. Call it before the first open().
  void attach(std::shared_ptr<ReplyChannel> output);
  [[nodiscard]] bool is_attached() const { return output_ != nullptr; }

  /// Reserves memory to answer `count` requests with an error if there is none for their responses.
  /// `ids` is the size of all their ids in bytes. Call it once, before the first response. Returns
  /// false if there is not even that much memory.
  [[nodiscard]] bool reserve(std::size_t count, std::size_t ids);
  /// Opens the channel of request `id`. The request can be cancelled through `session`, unless that
  /// is null. `entry` is the one that the request already has there; if it is null, one is added.
  /// Errors as Session::add_call().
  Result<std::shared_ptr<ReplyChannel>> open(const RequestId& id,
                                             const std::shared_ptr<Session>& session,
                                             std::unique_ptr<Session::Call> entry = nullptr);
  /// Adds the response to request `id`, which needs no channel for it. If it has to wait and there
  /// is no memory for it, or the array would become longer than kMost, an error with kBusy takes
  /// its place.
  void respond(std::string_view message, const RequestId& id = {});
  /// No more channels will be opened: the reply ends when all requests are answered. Returns false
  /// if nothing was attached; then the answer is take_responses().
  bool complete();
  /// Aborts the reply. The peer sees that it is incomplete, and requests that are not answered yet
  /// are told that their caller has gone.
  void abandon();
  /// Returns the collected responses as a JSON array, or an empty string if there are none. Forgets
  /// them and releases all memory.
  std::string take_responses();

  /// The most bytes of an array.
  static constexpr std::size_t kMost = std::size_t{8} << 20U;

  /// The number of channels that have not been answered.
  [[nodiscard]] std::size_t open_channels() const { return channels_.size(); }
  /// Whether the output takes more messages.
  [[nodiscard]] bool has_capacity() const { return writable_; }
  /// Sets a task that runs each time a channel is answered or has sent another message, or the
  /// output takes messages again, until the end. It must not call back into this object.
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
  std::string array_;                     // the responses so far, without the closing bracket
  std::vector<std::size_t> ends_;         // where each of them ends
  std::deque<std::string> waiting_;       // responses that wait while the output is full
  MemoryHold memory_;                     // of all these
  std::shared_ptr<const void> mark_;
  Executor::Task progress_task_;
  bool by_messages_ = form_ == Form::messages;
  bool writable_ = true;
  bool complete_ = false;
};

}  // namespace sluice
