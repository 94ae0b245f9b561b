#include "server/calls/session_questions.hpp"

#include <string>
#include <utility>

#include "json/json.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

void remember_page(Session& session, const json::object& page) {
  const json::value* const id = page.if_contains("elicitationId");
  if (id != nullptr && id->is_string()) session.ask_to_open(std::string(id->get_string()));
}

/// Wraps the client's error for a request of the server. If it were sent as it is in answer to the
/// client's own request, it would look like an error of the server.
Error as_ours(const std::string& method, const Error& clients) {
  Error error{kInternalError,
              "The client answered " + method + " with error " + std::to_string(clients.code) +
                  ": " + clients.message,
              R"({"code":)" + std::to_string(clients.code) + R"(,"message":)"};
  append_json_string(error.data, clients.message);
  error.data.push_back('}');
  return error;
}

}  // namespace

void remember_pages(Session& session, const Error& error) {
  if (error.code != kUrlElicitationRequired) return;
  const Result<json::value> data = parse_json(error.data);
  if (!data || !data->is_object()) return;
  const json::value* const pages = data->get_object().if_contains("elicitations");
  if (pages == nullptr || !pages->is_array()) return;
  for (const json::value& page : pages->get_array()) {
    if (page.is_object()) remember_page(session, page.get_object());
  }
}

/// A call that asks, and keeps its questions until it is over.
class SessionQuestions::OfCall final : public SessionAsker {
 public:
  explicit OfCall(PendingRequest& call) : call_(&call) {}
  void send(std::string_view message) override { call_->send(message); }
  void flush() override { call_->flush(); }
  void forget(const SessionQuestions& questions) override { call_->forget(questions); }

 private:
  PendingRequest* call_;
};

SessionQuestions::SessionQuestions(std::unique_ptr<SessionAsker> asker, Executor& loop,
                                   std::weak_ptr<Session> session,
                                   std::vector<InputRequest> requests, PendingRequest::Answer done,
                                   MemoryHold memory)
    : asker_(std::move(asker)),
      executor_(&loop),
      session_(std::move(session)),
      asked_(std::move(requests), std::move(memory)),
      done_(std::move(done)) {}

SessionQuestions::SessionQuestions(PendingRequest& asker, const std::shared_ptr<Session>& session,
                                   std::vector<InputRequest> requests, PendingRequest::Answer done,
                                   MemoryHold memory)
    : SessionQuestions(std::make_unique<OfCall>(asker), asker.executor(), session,
                       std::move(requests), std::move(done), std::move(memory)) {}

SessionQuestions::~SessionQuestions() {
  executor_->cancel(timer_);
  const std::shared_ptr<Session> session = session_.lock();
  if (session == nullptr) return;
  for (const RequestId& id : ids_) session->forget_response(id);
}

Result<void> SessionQuestions::send() {
  const std::shared_ptr<Session> session = session_.lock();
  if (session == nullptr) return fail(kInvalidRequest, "The session of the client is over");
  const std::vector<InputRequest>& requests = asked_.requests();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Result<RequestId> id = session->expect_response(
        *executor_, [weak = weak_from_this(), i](Result<json::value> result) {
          if (const auto self = weak.lock()) self->on_result(i, std::move(result));
        });
    if (!id) return std::unexpected(std::move(id.error()));
    ids_.push_back(*id);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) send(*session, i);
  asker_->flush();
  timer_ =
      executor_->schedule_at(executor_->clock().now() + kAnswerTime, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->on_timeout();
      });
  return {};
}

void SessionQuestions::send(Session& session, std::size_t index) {
  const InputRequest& request = asked_.requests()[index];
  remember_page(session, request.params);
  std::string message = R"({"jsonrpc":"2.0","id":)" + ids_[index] + R"(,"method":)";
  append_json_string(message, request.method);
  if (!request.params.empty()) message.append(R"(,"params":)").append(to_json(request.params));
  message.push_back('}');
  asker_->send(message);
}

void SessionQuestions::on_result(std::size_t index, Result<json::value> result) {
  if (ids_.empty()) return;  // the questions have been withdrawn
  ids_[index].clear();
  if (!result) {
    return finish(std::unexpected(as_ours(asked_.requests()[index].method, result.error())));
  }
  if (Result<void> fits = asked_.take(index, *result); !fits) {
    return finish(std::unexpected(std::move(fits.error())));
  }
  if (asked_.complete()) finish(asked_.release());
}

/// The callback may ask again, or end the call.
void SessionQuestions::finish(Result<std::vector<json::value>> outcome) {
  const std::shared_ptr<SessionQuestions> keep = shared_from_this();
  asker_->forget(*this);
  take_back();
  PendingRequest::Answer done = std::move(done_);
  done(std::move(outcome));
}

void SessionQuestions::take_back() {
  const std::shared_ptr<Session> session = session_.lock();
  for (const RequestId& id : std::exchange(ids_, {})) {
    if (id.empty()) continue;
    if (session != nullptr) session->forget_response(id);
    asker_->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
                 id + "}}");
  }
  asker_->flush();
}

void SessionQuestions::withdraw() {
  const std::shared_ptr<SessionQuestions> keep = shared_from_this();
  asker_->forget(*this);
  take_back();
}

void SessionQuestions::on_timeout() {
  finish(fail(kTimedOut, "The client did not answer in time"));
}

}  // namespace sluice
