#include "server/dispatch/batch.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/sharing/client.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The caller of a batch, as the handlers of its messages see it.
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
    if (Result<void> opened = open_output(); !opened) return std::unexpected(opened.error());
    return reply_->open(id, session_);
  }
  /// Opens the channel for the reply to the batch, unless it is open already.
  Result<void> open_output() {
    if (reply_->is_attached()) return {};
    Result<std::shared_ptr<ReplyChannel>> output = caller_->open_channel({});
    if (!output) return std::unexpected(std::move(output.error()));
    reply_->attach(std::move(*output));
    return {};
  }
  Result<std::shared_ptr<Session>> session() override { return session_; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& /*revision*/,
                                                 const ClientDescription& /*client*/) override {
    // The client may send no other request before initialize is answered (2025-03-26, Lifecycle).
    return fail(kInvalidRequest, "Invalid Request: initialize must not be part of a batch");
  }
  std::shared_ptr<SessionStorage> storage() override { return caller_->storage(); }
  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override {
    return caller_->field(name);
  }
  bool serve(const Message& message, Caller& asker, std::string& out) override {
    return message.kind == MessageKind::notification && caller_->serve(message, asker, out);
  }
  RetainedCaller keep() override {
    RetainedCaller kept = caller_->keep();
    kept.caller = std::make_shared<BatchCaller>(std::move(kept.caller), *this);
    return kept;
  }

 private:
  Caller* caller_;
  std::shared_ptr<Caller> kept_;  // owns *caller_ if this outlives handle_batch(), else null
  std::shared_ptr<Session> session_;
  std::shared_ptr<SharedReply> reply_;
};

/// A batch whose messages are being handled. Belongs to its loop.
class BatchRun final : public std::enable_shared_from_this<BatchRun> {
 public:
  BatchRun(Service& service, std::vector<std::string_view> texts, const LongMessage* parsed,
           std::shared_ptr<SharedReply> reply, BatchedDispatch dispatch)
      : service_(&service),
        texts_(std::move(texts)),
        parsed_(parsed),
        reply_(std::move(reply)),
        dispatch_(std::move(dispatch)) {}

  /// Handles the remaining messages, up to the batch's part of this turn. Returns true if none are
  /// left.
  bool go_on(const MirroredHeaders* headers, Caller& caller) {
    TurnWork& work = service_->streams.streams().work();
    const std::size_t end = work.left() - std::min(work.left(), TurnWork::kPart);
    for (; at_ < texts_.size(); ++at_) {
      if (work.left() <= end) return false;
      handle(headers, caller);
      work.worked(kMessageCost + texts_[at_].size());
    }
    return true;
  }

  /// Answers the remaining requests with `error`.
  void refuse_rest(const Error& error, Caller& caller) {
    dispatch_ = [&error](const Message& message, const MirroredHeaders*, Caller&,
                         std::string& out) -> Outcome {
      if (message.kind == MessageKind::request) append_error(out, message.id, error);
      return {};
    };
    for (; at_ < texts_.size(); ++at_) handle(nullptr, caller);
  }

  /// Continues in later turns. Copies `text` or takes over `parsed`, which do not live that long.
  void go_on_later(std::string_view text, LongMessage* parsed, RetainedCaller caller,
                   Executor::Task handled) {
    if (parsed != nullptr) {
      kept_parsed_ = parsed->take();
      parsed_ = kept_parsed_.get();
    } else {
      kept_text_ = text;
      for (std::string_view& each : texts_) {
        each = std::string_view(kept_text_)
                   .substr(static_cast<std::size_t>(each.data() - text.data()), each.size());
      }
    }
    caller_ = std::move(caller);
    handled_ = std::move(handled);
    wait();
  }

 private:
  void handle(const MirroredHeaders* headers, Caller& caller) {
    response_.clear();
    const std::expected<Message, MessageError> message =
        parsed_ != nullptr ? parsed_->message(at_) : service_->parser.parse(texts_[at_]);
    if (is_batch(texts_[at_])) {
      append_error(response_, {},
                   {kInvalidRequest, "Invalid Request: a batch must not contain another one", {}});
    } else if (!message) {
      Dispatcher::reject(message.error(), response_);
    } else if (message->kind == MessageKind::request && is_self_contained(*message)) {
      append_error(response_, message->id,
                   {kInvalidRequest,
                    "Invalid Request: the protocol revision that this message names has no batches",
                    {}});
    } else if (parsed_ == nullptr || !parsed_->is_cancelled(*message)) {
      dispatch_(*message, headers, caller, response_);
    }
    if (!response_.empty()) reply_->respond(response_, message ? message->id : RequestId());
  }

  void wait() {
    service_->streams.streams().work().wait(client_of(caller_.caller->principal().id),
                                            [self = shared_from_this()] { self->next_part(); });
  }

  void next_part() {
    // The caller may have gone.
    if (!reply_->is_attached()) return;
    const bool is_all = go_on(caller_.headers, *caller_.caller);
    service_->trim();
    if (!is_all) return wait();
    reply_->complete();
    if (handled_) handled_();
  }

  Service* service_;
  std::vector<std::string_view> texts_;
  const LongMessage* parsed_;  // or null
  std::shared_ptr<SharedReply> reply_;
  BatchedDispatch dispatch_;
  std::size_t at_ = 0;  // the index of the next message
  std::string response_;
  // Set only if the batch continues in later turns.
  std::string kept_text_;
  std::unique_ptr<LongMessage> kept_parsed_;
  RetainedCaller caller_;
  Executor::Task handled_;
};

Outcome refuse(const Error& error, int http_status, std::string& out) {
  append_error(out, {}, error);
  return {.kind = Outcome::Kind::answered, .http_status = http_status};
}

}  // namespace

Outcome handle_batch(std::string_view text, LongMessage* parsed, const MirroredHeaders* headers,
                     Service& service, Caller& caller, SharedReply::Form form,
                     BatchedDispatch dispatch, Executor::Task& handled, std::string& out) {
  Result<std::shared_ptr<Session>> session = caller.session();
  if (!session) return refuse(session.error(), kNotFound, out);
  const Result<const Revision*> revision =
      implied_revision(headers, *session == nullptr ? nullptr : &(*session)->revision());
  if (!revision) return refuse(revision.error(), kBadRequest, out);
  if (!(*revision)->batches) {
    // The parser of single messages has the error for an array. A long text has been parsed already
    // and is not parsed again: "[]" gives the same error. If the long text is not valid JSON, its
    // own error is sent.
    const bool is_none = parsed != nullptr && !parsed->batch() &&
                         parsed->batch().error().error.code != kInvalidRequest;
    if (is_none) return Dispatcher::reject(parsed->batch().error(), out);
    return Dispatcher::reject(service.parser.parse(parsed != nullptr ? "[]" : text).error(), out);
  }
  const std::expected<std::vector<std::string_view>, MessageError> texts =
      parsed != nullptr ? parsed->batch() : service.parser.parse_batch(text, kMaxBatch);
  if (!texts) return Dispatcher::reject(texts.error(), out);

  const auto reply = std::make_shared<SharedReply>(form, service.streams.executor(),
                                                   service.memory_of(caller.principal().id),
                                                   service.streams.answer_mark());
  // Ids are parts of their messages, so together they are no longer than the text. The memory of a
  // long text is already accounted for.
  const std::size_t ids = std::min(text.size(), texts->size() * kMaxRequestId);
  if (!reply->reserve(texts->size(), ids + (LongMessages::is_long(text) ? 0 : text.size()))) {
    return refuse(
        {kBusy, "The server has no memory for the answers to this batch; try it again", {}},
        kServiceUnavailable, out);
  }
  BatchCaller each(caller, std::move(*session), reply);
  const auto run = std::make_shared<BatchRun>(service, *texts, parsed, reply, std::move(dispatch));
  if (!run->go_on(headers, each)) {
    if (const Result<void> opened = each.open_output()) {
      run->go_on_later(text, parsed, each.keep(), std::move(handled));
      return {.kind = Outcome::Kind::pending};
    } else {
      run->refuse_rest(opened.error(), each);
    }
  }
  if (reply->complete()) return {.kind = Outcome::Kind::pending};
  out = reply->take_responses();
  return {.kind = out.empty() ? Outcome::Kind::accepted : Outcome::Kind::answered};
}

}  // namespace sluice
