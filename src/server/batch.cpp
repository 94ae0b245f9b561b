#include "server/batch.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The caller of a batch as each of its messages sees it.
class BatchCaller final : public Caller {
 public:
  BatchCaller(Caller& caller, std::shared_ptr<Session> session, std::shared_ptr<SharedReply> reply)
      : caller_(&caller), session_(std::move(session)), reply_(std::move(reply)) {}
  BatchCaller(std::shared_ptr<Caller> caller, const BatchCaller& other)
      : caller_(caller.get()),
        kept_(std::move(caller)),
        session_(other.session_),
        reply_(other.reply_) {}

  [[nodiscard]] const Principal& principal() const override { return caller_->principal(); }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    if (!reply_->is_attached()) {
      Result<std::shared_ptr<ReplyChannel>> output = caller_->open_channel({});
      if (!output) return output;
      reply_->attach(std::move(*output));
    }
    return reply_->open(id, session_);
  }
  Result<std::shared_ptr<Session>> session() override { return session_; }
  Result<void> begin_session(const Revision& /*revision*/,
                             const ClientCapabilities& /*capabilities*/) override {
    // Nothing else is possible before it is answered (2025-03-26, Lifecycle).
    return fail(kInvalidRequest, "Invalid Request: initialize must not be part of a batch");
  }
  bool serve(const Message& message, Caller& asker, std::string& out) override {
    return message.kind == MessageKind::notification && caller_->serve(message, asker, out);
  }
  KeptCaller keep() override {
    KeptCaller kept = caller_->keep();
    kept.caller = std::make_shared<BatchCaller>(std::move(kept.caller), *this);
    return kept;
  }

 private:
  Caller* caller_;
  std::shared_ptr<Caller> kept_;  // it, if this lives longer than the batch is handled
  std::shared_ptr<Session> session_;
  std::shared_ptr<SharedReply> reply_;
};

Outcome refuse(const Error& error, int http_status, std::string& out) {
  append_error(out, {}, error);
  return {.kind = Outcome::Kind::answered, .http_status = http_status};
}

}  // namespace

Outcome handle_batch(std::string_view text, const LongMessage* parsed,
                     const MirroredHeaders* headers, Service& service, Caller& caller,
                     SharedReply::Form form, const BatchedDispatch& dispatch, std::string& out) {
  static constexpr int kBadRequest = 400;
  static constexpr int kNotFound = 404;
  static constexpr int kUnavailable = 503;
  Result<std::shared_ptr<Session>> session = caller.session();
  if (!session) return refuse(session.error(), kNotFound, out);
  const Result<const Revision*> revision =
      implied_revision(headers, *session == nullptr ? nullptr : &(*session)->revision());
  if (!revision) return refuse(revision.error(), kBadRequest, out);
  if (!(*revision)->batches) {
    // The parser of single messages says what is wrong with an array.
    return Dispatcher::reject(service.parser.parse(text).error(), out);
  }
  const std::expected<std::vector<std::string_view>, MessageError> texts =
      parsed != nullptr ? parsed->batch() : service.parser.parse_batch(text, kMaxBatch);
  if (!texts) return Dispatcher::reject(texts.error(), out);

  const auto reply = std::make_shared<SharedReply>(form, service.streams.executor(),
                                                   service.memory_of(caller.principal().id));
  // An id is part of its message.
  if (!reply->reserve(texts->size(), std::min(text.size(), texts->size() * kMaxRequestId))) {
    return refuse(
        {kBusy, "The server has no memory for the answers to this batch; try it again", {}},
        kUnavailable, out);
  }
  BatchCaller each(caller, std::move(*session), reply);
  std::string response;
  for (std::size_t index = 0; index < texts->size(); ++index) {
    response.clear();
    const std::expected<Message, MessageError> message =
        parsed != nullptr ? parsed->message(index) : service.parser.parse((*texts)[index]);
    if (!message) {
      Dispatcher::reject(message.error(), response);
    } else if (message->kind == MessageKind::request && is_self_contained(*message)) {
      append_error(response, message->id,
                   {kInvalidRequest,
                    "Invalid Request: the protocol revision that this message names has no batches",
                    {}});
    } else {
      dispatch(*message, each, response);
    }
    if (!response.empty()) reply->respond(response, message ? message->id : RequestId());
  }
  if (reply->complete()) return {.kind = Outcome::Kind::pending};
  out = reply->take_responses();
  return {.kind = out.empty() ? Outcome::Kind::accepted : Outcome::Kind::answered};
}

}  // namespace sluice
