#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/calls/call_outlet.hpp"
#include "server/calls/call_request.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// The outlet of a call whose caller waits for it: one reply, before which messages may be sent
/// through a private stream. If the caller goes away, the call ends.
class InlineOutlet final : public CallOutlet,
                           public std::enable_shared_from_this<InlineOutlet>,
                           private ChunkEncoder,
                           private BlockSink,
                           private StreamProducer {
 public:
  InlineOutlet(std::shared_ptr<const CallRequest> request, std::weak_ptr<OutletEvents> call,
               std::shared_ptr<ReplyChannel> channel)
      : request_(std::move(request)), call_(std::move(call)), channel_(std::move(channel)) {}
  ~InlineOutlet() override { close(); }
  InlineOutlet(const InlineOutlet&) = delete;
  InlineOutlet& operator=(const InlineOutlet&) = delete;

  /// Connects the outlet to its channel. Call it once, right after construction.
  void open();

  [[nodiscard]] bool carries() const override {
    return channel_ != nullptr && channel_->can_stream();
  }
  bool send(std::string_view message) override;
  std::optional<bool> text(std::string_view text) override;
  [[nodiscard]] std::uint64_t counted() const override { return counted_; }
  void flush() override;
  void answer(CallAnswer answer) override;
  void leave() override;

 private:
  // ChunkEncoder: text as progress notifications, the last chunk as the response.
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override;
  // BlockSink: writes to the channel.
  bool write(std::string_view block) override;
  bool write(const Bytes& block) override { return write(block.view()); }
  bool take(std::string& block) override { return channel_ == nullptr || channel_->take(block); }
  void finish() override;
  void drop(const Error& error) override;
  void release() override {}
  // StreamProducer
  void on_writable() override;
  void on_cancel() override;

  void append_progress(std::string& out, const Chunk& chunk) const;
  void append_response(std::string& out, const ChunkStream& stream) const;
  /// Starts the stream if there is none yet. Returns false if the call is over.
  bool has_stream() {
    if (stream_ == nullptr) start_stream();
    return stream_ != nullptr;
  }
  void start_stream();
  void close_outlet(DisconnectReason reason);
  void close();

  std::shared_ptr<const CallRequest> request_;
  std::weak_ptr<OutletEvents> call_;       // expired once the call is answered
  std::shared_ptr<ReplyChannel> channel_;  // null once the reply is complete or the caller has gone
  std::shared_ptr<ChunkStream> stream_;
  std::unique_ptr<PushCursor> cursor_;
  std::uint64_t counted_ = 0;
};

}  // namespace sluice
