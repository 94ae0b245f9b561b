#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/calls/call_permit.hpp"
#include "server/catalog/catalog.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/sessions/session.hpp"
#include "sluice/middleware.hpp"

namespace sluice {

class Dispatcher;
struct Outcome;

/// A request that has passed negotiation and can be answered, or a notification of a stream method.
struct UnderstoodRequest {
  enum class Kind : std::uint8_t { stream_method, initialize, other };
  Kind kind = Kind::stream_method;
  /// Complete only for Kind::other. For initialize it holds only the revision, which is null if the
  /// request names none. For stream methods the revision is null.
  RequestContext context = {};
  std::shared_ptr<Session> session = {};  // only for Kind::other; may be null
};

/// One request on its way through the middleware to the dispatcher, which answers it at the end: at
/// once if no middleware waits, else later. It is answered once, whatever the middleware does. Kept
/// alive by its stages, the middleware that runs. Belongs to its loop.
class RequestChain final : public std::enable_shared_from_this<RequestChain> {
 public:
  /// Starts a chain for `message` and returns the outcome as of the end of this call. `dispatcher`
  /// must outlive the chain or stop it.
  static Outcome run(Dispatcher& dispatcher, const Message& message, const MirroredHeaders* headers,
                     UnderstoodRequest request, Caller& caller, std::string& out);

  RequestChain(Dispatcher& dispatcher, const Message& message, UnderstoodRequest request,
               const Caller& caller);
  ~RequestChain();
  RequestChain(const RequestChain&) = delete;
  RequestChain& operator=(const RequestChain&) = delete;

  /// Answers the request with `error`, unless it has gone on to the dispatcher.
  void refuse_waiting(const Error& error);
  /// Destroys the middleware that still waits. The dispatcher is not used after this.
  void stop();

 private:
  class Stage;
  class ThroughCaller;
  class ThroughChannel;
  class Watch;
  friend class RequestChains;

  /// The arguments of run(), valid until it returns.
  struct Arrived;
  /// What the request needs if it goes on after run().
  struct Kept;

  void start(std::size_t stage);
  void go_on();
  void go_on_later(const std::expected<Message, MessageError>& message);
  Outcome answer(const Message& message, const MirroredHeaders* headers, Caller& caller,
                 std::shared_ptr<ReplyChannel> channel, std::string& out);
  void keep();
  Result<void> admit();
  bool may_wait();
  Outcome refusal(const Error& error, std::string& out) const;
  void refuse(const Error& error);
  void finish(const RequestEnd& end);
  void on_stage_end(bool went_on, const std::exception_ptr& failure);
  void on_caller_left();

  Dispatcher* dispatcher_;  // null after stop()
  RefPtr<LoopCatalog> catalog_;
  detail::RequestInfo info_;
  RequestId id_;  // empty for notifications
  UnderstoodRequest request_;
  const Revision* revision_;
  Arrived* arrived_ = nullptr;  // until run() returns
  std::unique_ptr<Kept> kept_;  // while the request waits after run()
  CallPermit permit_;           // held while middleware waits for anything but the request's end
  std::vector<std::weak_ptr<Stage>> stages_;
  bool went_on_ = false;
  std::weak_ptr<PendingRequest> call_;     // the call that will answer it,
  std::weak_ptr<ThroughChannel> channel_;  // or the channel through which it is answered
  bool ended_ = false;
  std::size_t number_ = 0;  // the index in RequestChains
};

/// The chains of one loop.
class RequestChains {
 public:
  RequestChains() = default;
  ~RequestChains();
  RequestChains(const RequestChains&) = delete;
  RequestChains& operator=(const RequestChains&) = delete;

  void add(RequestChain& chain);
  void remove(const RequestChain& chain);
  /// Calls RequestChain::refuse_waiting() of all chains.
  void refuse_waiting(const Error& error);
  /// Calls RequestChain::stop() of all chains.
  void stop();

 private:
  [[nodiscard]] std::vector<std::weak_ptr<RequestChain>> all() const;

  std::vector<RequestChain*> chains_;
};

}  // namespace sluice
