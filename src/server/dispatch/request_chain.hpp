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

/// A request, or a notification of a stream method, that is understood and may be answered.
struct UnderstoodRequest {
  enum class Kind : std::uint8_t { stream_method, initialize, other };
  Kind kind = Kind::stream_method;
  /// The revision alone, except of others; null, if an initialize names none, and for stream
  /// methods.
  RequestContext context = {};
  std::shared_ptr<Session> session = {};  // of others, or null
};

/// One request on its way through the middleware to the dispatcher, which answers it at the end of
/// the way: at once, if nothing waits, else later. It is answered once, whatever the middleware
/// does. The runs of the middleware keep it. Belongs to its loop.
class RequestChain final : public std::enable_shared_from_this<RequestChain> {
 public:
  /// Begins it: what becomes of `message` by the end of this call. `dispatcher` outlives the chain
  /// or stops it.
  static Outcome run(Dispatcher& dispatcher, const Message& message, const MirroredHeaders* headers,
                     UnderstoodRequest request, Caller& caller, std::string& out);

  RequestChain(Dispatcher& dispatcher, const Message& message, UnderstoodRequest request,
               const Caller& caller);
  ~RequestChain();
  RequestChain(const RequestChain&) = delete;
  RequestChain& operator=(const RequestChain&) = delete;

  /// Answers with `error` what has not gone on to the dispatcher.
  void refuse_waiting(const Error& error);
  /// Destroys what still waits. The dispatcher is not used any more.
  void stop();

 private:
  class Stage;
  class ThroughCaller;
  class ThroughChannel;
  class Watch;
  friend class RequestChains;

  /// What the caller of run() has.
  struct Arrived;
  /// What a request needs that goes on later.
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

  Dispatcher* dispatcher_;  // null when it has gone
  RefPtr<LoopCatalog> catalog_;
  detail::RequestInfo info_;
  RequestId id_;  // empty for notifications
  UnderstoodRequest request_;
  const Revision* revision_;
  Arrived* arrived_ = nullptr;  // until run() returns
  std::unique_ptr<Kept> kept_;  // while it waits after that
  CallPermit permit_;           // while its middleware waits, but not for its end
  std::vector<std::weak_ptr<Stage>> stages_;
  bool went_on_ = false;
  std::weak_ptr<PendingRequest> call_;     // that will answer it
  std::weak_ptr<ThroughChannel> channel_;  // or through which it is answered
  bool ended_ = false;
  std::size_t number_ = 0;  // among those of its dispatcher
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
  /// RequestChain::refuse_waiting() of all.
  void refuse_waiting(const Error& error);
  /// RequestChain::stop() of all.
  void stop();

 private:
  [[nodiscard]] std::vector<std::weak_ptr<RequestChain>> all() const;

  std::vector<RequestChain*> chains_;
};

}  // namespace sluice
