#include "proxy/calls/gathering.hpp"

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "json/members.hpp"
#include "proxy/translation/names.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

/// The request to one server.
class Gathering::Question final : public UpstreamCall {
 public:
  Question(std::weak_ptr<Gathering> owner, std::size_t index)
      : owner_(std::move(owner)), index_(index) {}
  void on_progress(const json::object& /*params*/) override {}
  void on_notification(std::string_view /*method*/, const json::object& /*params*/) override {}
  [[nodiscard]] bool hears(std::string_view /*method*/,
                           const json::object& /*params*/) const override {
    return false;
  }
  [[nodiscard]] bool can_ask() const override { return false; }
  void on_question(ServerQuestion question) override {
    question.answer(fail(kInvalidRequest, "The client cannot be asked now"));
  }
  void on_withdrawn(std::uint64_t /*question*/) override {}
  void on_answer(Result<json::object> answer) override {
    if (const auto owner = owner_.lock()) owner->answered(index_, std::move(answer));
  }

 private:
  std::weak_ptr<Gathering> owner_;
  std::size_t index_;
};

Gathering::Gathering(std::shared_ptr<ProxyClient> client, std::shared_ptr<PendingRequest> call,
                     std::string method, Merge merge)
    : client_(std::move(client)),
      call_(std::move(call)),
      method_(std::move(method)),
      merge_(std::move(merge)),
      parts_(client_->size()) {}

Gathering::~Gathering() {
  if (timer_ != 0) client_->loop().cancel(timer_);
}

void Gathering::list(const Params& params) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].params = params(i);
    parts_[i].is_absent = !parts_[i].params;
    goes_on_ = goes_on_ || (parts_[i].params && parts_[i].params->contains("cursor"));
  }
  start();
}

void Gathering::describe() {
  describes_ = true;
  start();
}

void Gathering::start() {
  self_ = shared_from_this();
  call_->set_producer(this);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_absent) open(i);
  }
  if (parts_.size() > 1) {
    Executor& loop = client_->loop();
    timer_ = loop.schedule_at(loop.clock().now() + kPatience, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->timer_ = 0;
      self->is_late_ = true;
      self->proceed();
    });
  }
  // There may be nobody to ask.
  client_->loop().post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->proceed();
  });
}

void Gathering::open(std::size_t index) {
  client_->part(index).when_open([weak = weak_from_this(), index](const Result<void>& outcome) {
    if (const auto self = weak.lock()) self->on_open(index, outcome);
  });
}

void Gathering::on_open(std::size_t index, const Result<void>& outcome) {
  if (call_ == nullptr) return;
  if (!outcome) return answered(index, std::unexpected(outcome.error()));
  parts_[index].session = client_->shared_part(index);
  UpstreamSession& session = *parts_[index].session;
  const json::object& about = session.server().about;
  if (describes_) return answered(index, json::object(about, json::storage_ptr()));
  const json::object* const capabilities = object_at(about, "capabilities");
  if (capabilities == nullptr || !capabilities->contains(capability_of(method_))) {
    if (goes_on_) {
      return answered(index, fail(kInvalidParams, "it does not have the list any more"));
    }
    parts_[index].is_absent = true;
    return proceed();
  }
  parts_[index].number = session.begin(method_, std::move(*parts_[index].params),
                                       std::make_shared<Question>(weak_from_this(), index));
}

void Gathering::answered(std::size_t index, Result<json::object> answer) {
  if (call_ == nullptr) return;
  parts_[index].number = 0;
  if (answer) {
    const UpstreamSession& session = *parts_[index].session;
    session.upstream().learn(method_, *answer);
    offer_tasks(*call_->context().revision, session.server(), method_, *answer);
    add_prefix(session.upstream().options().prefix, method_, *answer);
  }
  parts_[index].answer = std::move(answer);
  proceed();
}

void Gathering::proceed() {
  if (call_ == nullptr) return;
  const bool is_complete =
      std::ranges::all_of(parts_, [](const Part& part) { return part.answer || part.is_absent; });
  const bool has_some = std::ranges::any_of(
      parts_, [](const Part& part) { return part.answer && part.answer->has_value(); });
  if (is_complete || (is_late_ && has_some)) finish();
}

std::string_view Gathering::why_missing(const Part& part) {
  return part.answer ? std::string_view(part.answer->error().message) : "it takes too long";
}

/// Says that a server is not part of the answer.
void Gathering::left_out(std::size_t index) {
  const UpstreamOptions& server = client_->part(index).upstream().options();
  log_warning("a server behind the proxy is left out of an answer",
              {{"server", std::string_view(server.label)},
               {"method", std::string_view(method_)},
               {"why", why_missing(parts_[index])}});
}

void Gathering::finish() {
  const auto keep = std::exchange(self_, nullptr);
  std::vector<PartAnswer> answers;
  std::optional<Error> first;
  bool has_some = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (part.number != 0) part.session->cancel(part.number);
    if (part.is_absent) continue;
    const UpstreamOptions& server = client_->part(i).upstream().options();
    PartAnswer& own = answers.emplace_back(PartAnswer{.prefix = server.prefix, .answer = {}});
    if (part.answer && part.answer->has_value()) {
      own.answer = std::move(part.answer->value());
      has_some = true;
    } else if (goes_on_) {
      first =
          Error{kInvalidParams,
                "Invalid params: the server " + server.label + " does not go on with its list (" +
                    std::string(why_missing(part)) + "); begin again without a cursor",
                {}};
    } else {
      if (parts_.size() > 1) left_out(i);
      if (part.answer && !first) first = part.answer->error();
    }
  }
  const auto call = std::exchange(call_, nullptr);
  call->set_producer(nullptr);
  if (first && (goes_on_ || !has_some)) return call->fail(*first);
  call->answer_with_result(to_json(merge_(std::move(answers))));
}

void Gathering::on_cancel() {
  const auto keep = std::exchange(self_, nullptr);
  call_ = nullptr;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].number != 0) parts_[i].session->cancel(parts_[i].number);
  }
}

}  // namespace sluice
