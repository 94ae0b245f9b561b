#include "client/session/session_activity.hpp"

#include <utility>

#include "client/reply.hpp"
#include "json/members.hpp"

namespace sluice {

bool is_passing(const Error& why) {
  return why.code == kTimedOut || is_passing_trouble(why.code);
}

SessionActivity::SessionActivity(ClientSession& session, Executor& loop,
                                 const RequestOptions& options, RequestCallbacks callbacks)
    : session_(&session),
      loop_(&loop),
      options_(cut_to_forever(options)),
      callbacks_(std::move(callbacks)) {}

SessionActivity::~SessionActivity() {
  if (timer_ != 0) loop_->cancel(timer_);
  if (deadline_ != 0) loop_->cancel(deadline_);
}

void SessionActivity::start(Number number) {
  number_ = number;
  if (options_.timeout > Duration()) {
    deadline_ =
        loop_->schedule_at(loop_->clock().now() + options_.timeout, [weak = weak_from_this()] {
          const auto self = weak.lock();
          if (self == nullptr) return;
          self->deadline_ = 0;
          self->end(fail(kTimedOut, "It took too long"));
        });
  }
  begin();
}

void SessionActivity::cancel() {
  if (!is_over()) leave();
  stop();
}

void SessionActivity::stop() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  if (deadline_ != 0) loop_->cancel(std::exchange(deadline_, 0));
  ClientSession* const session = std::exchange(session_, nullptr);
  if (session == nullptr) return;
  on_stop();
  for (const Number number : std::exchange(open_, {})) session->cancel(number);
}

void SessionActivity::end(Result<json::object> answer) {
  if (is_over()) return;
  const std::shared_ptr<SessionActivity> keep = shared_from_this();
  const std::shared_ptr<ClientSession> session = session_->shared_from_this();
  session->forget(number_);
  stop();
  if (callbacks_.on_answer) callbacks_.on_answer(std::move(answer));
}

SessionActivity::Number SessionActivity::ask(std::string method, json::object params,
                                             const RequestOptions& options,
                                             std::function<void(Result<json::object>)> then) {
  const auto ticket = std::make_shared<Number>(0);
  *ticket = session_->begin(std::move(method), std::move(params), options,
                            {.on_progress = {},
                             .on_answer = [weak = weak_from_this(), ticket,
                                           then = std::move(then)](Result<json::object> answer) {
                               const auto self = weak.lock();
                               if (self == nullptr || self->open_.erase(*ticket) == 0) return;
                               then(std::move(answer));
                             }});
  open_.insert(*ticket);
  return *ticket;
}

bool SessionActivity::is_subscription(Number number, const json::object& params) const {
  const json::object* const meta = object_at(params, "_meta");
  const json::value* const id =
      meta == nullptr ? nullptr : meta->if_contains("io.modelcontextprotocol/subscriptionId");
  return number != 0 && id != nullptr && id->is_int64() &&
         id->get_int64() == session_->id_of(number);
}

void SessionActivity::tell(std::string method, json::object params) {
  session_->begin(std::move(method), std::move(params), {}, {});
}

void SessionActivity::drop(Number number) {
  if (open_.erase(number) != 0) session_->cancel(number);
}

void SessionActivity::later(Duration wait, std::function<void()> then) {
  if (timer_ != 0) loop_->cancel(timer_);
  timer_ = loop_->schedule_at(loop_->clock().now() + wait,
                              [weak = weak_from_this(), then = std::move(then)] {
                                const auto self = weak.lock();
                                if (self == nullptr) return;
                                self->timer_ = 0;
                                then();
                              });
}

void SessionActivity::report(json::object said) {
  // A copy, because the callback may end the activity.
  if (const auto told = callbacks_.on_progress) told(said);
}

}  // namespace sluice
