#include "server/calls/pending_request.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/recycling.hpp"
#include "core/sharing/client.hpp"
#include "json/json.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/input_answers.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/call_memory.hpp"
#include "server/calls/calls.hpp"
#include "server/calls/followed_stream.hpp"
#include "server/calls/long_result.hpp"
#include "server/calls/session_questions.hpp"
#include "server/catalog/tool_schemas.hpp"

namespace sluice {
namespace {

/// Returns `object`, the JSON text of one, with `member` added to its `_meta`.
std::string with_meta(std::string_view object, std::string_view member) {
  if (object.find(R"("_meta")") == std::string_view::npos) {
    std::string out = R"({"_meta":{)" + std::string(member) + "}";
    if (object.size() > 2) out.push_back(',');
    return out.append(object.substr(1));
  }
  json::value value = parse_json(object).value();
  json::value& meta = value.get_object()["_meta"];
  if (!meta.is_object()) meta = json::object();
  for (const auto& [key, own] : parse_json("{" + std::string(member) + "}").value().get_object()) {
    meta.get_object().insert_or_assign(key, own);
  }
  return to_json(value);
}

}  // namespace

PendingRequest::PendingRequest(Details details, Calls& calls, RefPtr<LoopCatalog> catalog)
    : request_(make_shared_recycled<const CallRequest>(std::move(details.id),
                                                       std::move(details.context))),
      permit_(std::move(details.permit)),
      calls_(&calls),
      tool_(details.tool),
      catalog_(std::move(catalog)),
      session_(std::move(details.session)) {
  if (details.rounds != nullptr) rare().rounds = std::move(details.rounds);
  if (details.task != nullptr) rare().task = std::move(details.task);
  if (details.memory.bytes() > 0) rare().memory = std::move(details.memory);
}

PendingRequest::Parameters::Parameters(PendingRequest& request, const json::object* params)
    : calls_(request.calls_),
      request_(&request),
      params_(params),
      before_(calls_ == nullptr ? nullptr : std::exchange(calls_->parameters_, this)) {}

PendingRequest::Parameters::~Parameters() {
  if (calls_ != nullptr) calls_->parameters_ = before_;
}

const json::object* PendingRequest::params() const {
  const Parameters* const now = calls_ == nullptr ? nullptr : calls_->parameters_;
  return now == nullptr || now->request_ != this ? nullptr : now->params_;
}

std::shared_ptr<ChunkStream> PendingRequest::begin_stream(std::string finder) {
  if (calls_ == nullptr) return nullptr;
  StreamManager& streams = calls_->streams().streams();
  return streams.start_private(std::move(finder), "tools/call", principal().id);
}

PendingRequest::~PendingRequest() {
  if (over_) return;
  try {
    fail({kInternalError, "The handler has ended without an answer", {}});
  } catch (...) {
    static LogLimit limit;
    log_exception(limit, "A call could not be answered");
  }
}

const ClientCapabilities& PendingRequest::client() const {
  return session_ != nullptr ? session_->capabilities() : context().capabilities;
}

std::shared_ptr<MemoryShare> PendingRequest::memory() const {
  return calls_ == nullptr ? nullptr : calls_->streams().streams().memory_of(principal().id);
}

MemoryHold PendingRequest::take_memory() {
  return rare_ == nullptr ? MemoryHold() : std::move(rare_->memory);
}

std::string_view PendingRequest::task_meta() const {
  return task() == nullptr ? std::string_view() : task()->meta();
}

bool PendingRequest::send(std::string_view message) {
  if (!carries()) return true;
  // Kept here, because send() ends the call if there is no memory for the message.
  const std::shared_ptr<CallOutlet> outlet = outlet_;
  return outlet->send(message);
}

bool PendingRequest::emit(std::string_view text) {
  if (context().progress_token.empty() || !carries()) return true;
  // If the handler reports progress itself, a text raises the progress by as little as possible.
  const bool reports = rare_ != nullptr && rare_->reports;
  if (!reports) {
    // This may end the call and destroy this object.
    if (const std::optional<bool> writable = outlet_->text(text)) return *writable;
  }
  const double last = std::max(rare().progress, 0.0);
  return send_progress(reports ? last : last + 1, {}, text);
}

bool PendingRequest::progress(double progress, std::optional<double> total,
                              std::string_view message) {
  if (context().progress_token.empty() || !carries()) return true;
  rare().reports = true;
  return send_progress(progress, total, message);
}

/// Returns `wanted` if that is above what was sent last, otherwise the next larger number.
double PendingRequest::next_progress(double wanted) const {
  double last = rare_->progress;
  if (const std::uint64_t texts = outlet_->counted(); texts > 0) {
    last = std::max(last, static_cast<double>(texts));
  }
  if (std::isfinite(wanted) && wanted > last) return wanted;
  return std::isfinite(last) ? std::nextafter(last, std::numeric_limits<double>::max()) : 0;
}

bool PendingRequest::send_progress(double progress, std::optional<double> total,
                                   std::string_view message) {
  progress = next_progress(progress);
  rare().progress = progress;
  std::string params = R"({"progressToken":)" + context().progress_token;
  params.append(R"(,"progress":)").append(to_json(json::value(progress)));
  // JSON cannot express a total that is not finite.
  if (total && std::isfinite(*total)) {
    params.append(R"(,"total":)").append(to_json(json::value(*total)));
  }
  if (!message.empty() && context().revision->progress_message) {
    params.append(R"(,"message":)");
    append_json_string(params, message);
  }
  params.push_back('}');
  return notify("notifications/progress", params);
}

bool PendingRequest::log(LoggingLevel level, std::string_view logger, std::string_view data) {
  std::optional<LoggingLevel> least = context().logging_level;
  if (session_ != nullptr) least = session_->logging_level();
  if (task() != nullptr) least = task()->logging_level();
  if (!least || level < *least) return true;
  std::string params = R"({"level":")" + std::string(to_string(level)) + "\"";
  if (!logger.empty()) {
    params.append(R"(,"logger":)");
    append_json_string(params, logger);
  }
  params.append(R"(,"data":)").append(data).append("}");
  return notify("notifications/message", params);
}

bool PendingRequest::notify(std::string_view method, std::string_view params) {
  if (!carries()) return true;
  std::string message = R"({"jsonrpc":"2.0","method":)";
  append_json_string(message, method);
  message.append(R"(,"params":)");
  if (task_meta().empty()) {
    message.append(params);
  } else {
    message.append(with_meta(params, task_meta()));
  }
  message.push_back('}');
  return send(message);
}

void PendingRequest::flush() {
  if (outlet_ != nullptr) outlet_->flush();
}

void PendingRequest::disconnect(std::chrono::milliseconds retry) {
  if (const std::shared_ptr<CallOutlet> outlet = outlet_) outlet->disconnect(retry);
}

std::optional<Error> PendingRequest::cannot_ask(const std::vector<InputRequest>& requests) const {
  static const Error kNowhere{
      kInvalidRequest,
      "The client cannot be asked here: the request has no session, its reply carries no events, "
      "or its method may not ask",
      {}};
  // Without a session it is not known what a client has declared.
  const bool is_unknown = session_ == nullptr && context().revision->era == Era::legacy;
  if (is_unknown && task() == nullptr) return kNowhere;
  const ClientCapabilities& declared = client();
  for (const InputRequest& request : requests) {
    const std::string missing = missing_capabilities(declared, request.method, request.params);
    if (missing.empty()) continue;
    const bool modern = context().revision->era == Era::modern;
    return Error{modern ? kMissingClientCapability : kInvalidRequest,
                 "This needs a client that declares the capability " + missing,
                 R"({"requiredCapabilities":)" + missing + "}"};
  }
  if (task() != nullptr || rounds() != nullptr || (session_ != nullptr && carries())) return {};
  return kNowhere;
}

PendingRequest::Withdraw PendingRequest::ask(std::vector<InputRequest> requests, Answer answer) {
  if (over_) return {};
  if (requests.empty()) {
    // There is no answer to wait for.
    answer(std::vector<json::value>());
    return {};
  }
  if (std::optional<Error> why = cannot_ask(requests)) {
    answer(std::unexpected(std::move(*why)));
    return {};
  }
  if (task() == nullptr && rounds() != nullptr) {
    ask_in_rounds(std::move(requests), std::move(answer));
    return {};
  }
  std::size_t bytes = 0;
  for (const InputRequest& request : requests) {
    bytes += size_of(request.params).memory() + request.key.size();
  }
  // A call may ask many, one after the other.
  Result<MemoryHold> memory = hold_all(calls_->streams().streams().memory_of(principal().id), bytes,
                                       "what this call asks its client");
  if (!memory) {
    answer(std::unexpected(std::move(memory.error())));
    return {};
  }
  answer = [weak = weak_from_this(),
            then = std::move(answer)](Result<std::vector<json::value>> given) mutable {
    if (const auto self = weak.lock(); self != nullptr && given) {
      if (Result<void> held = self->hold_answers(*given); !held) {
        given = std::unexpected(std::move(held.error()));
      }
    }
    then(std::move(given));
  };
  if (task() != nullptr) {
    return task()->ask(std::move(requests), std::move(answer), *std::move(memory));
  }
  return ask_in_session(std::move(requests), std::move(answer), *std::move(memory));
}

Result<void> PendingRequest::hold_input(std::size_t bytes) {
  return hold_more(bytes, "the parameters of this call");
}

/// Holds memory for answers until the call is over, because its handler may keep them.
Result<void> PendingRequest::hold_answers(const std::vector<json::value>& answers) {
  std::size_t bytes = 0;
  for (const json::value& answer : answers) bytes += size_of(answer).memory();
  return hold_more(bytes, "what the client has answered");
}

Result<void> PendingRequest::hold_more(std::size_t bytes, std::string_view what) {
  if (over_) return {};
  Result<MemoryHold> more = hold_for_call(calls_->streams().streams(), principal().id, bytes, what);
  if (!more) return std::unexpected(std::move(more.error()));
  if (more->bytes() > 0) rare().memory.join(*std::move(more));
  return {};
}

Result<std::shared_ptr<PendingRequest>> PendingRequest::begin_task() {
  if (over_ || rare_ == nullptr || !rare_->begin_task) return shared_from_this();
  return std::exchange(rare_->begin_task, {})(this);
}

void PendingRequest::ask_in_rounds(std::vector<InputRequest> requests, Answer answer) {
  AskedInputs asked(std::move(requests));
  for (std::size_t i = 0; i < asked.requests().size(); ++i) {
    const json::value* const given = rounds()->find(asked.requests()[i]);
    if (given == nullptr) continue;
    if (Result<void> fits = asked.take(i, *given); !fits) {
      answer(std::unexpected(std::move(fits.error())));
      return;
    }
  }
  if (asked.complete()) {
    answer(asked.release());
    return;
  }
  if (rounds()->is_stuck()) {
    static LogLimit limit;
    const std::string why = "In each of " + std::to_string(InputRounds::kMaxFruitless) +
                            " rounds, the client was asked without getting further: whoever asks "
                            "must use the same keys and the same words in each run";
    if (const auto left_out = limit.take()) {
      log_error(why,
                {{"tool", tool_ == nullptr ? std::string_view() : std::string_view(tool_->name)},
                 {"key", std::string_view(asked.missing().front()->key)},
                 {"left_out", *left_out}});
    }
    answer(std::unexpected(Error{kLimitReached, why, {}}));
    return;
  }
  std::string message;
  if (Result<void> written = catalog_->results().append_input_required(
          message, id(), *context().revision, *rounds(), asked.missing());
      !written) {
    answer(std::unexpected(std::move(written.error())));
    return;
  }
  StreamProducer* const producer = std::exchange(producer_, nullptr);
  const std::shared_ptr<PendingRequest> keep = shared_from_this();
  conclude({.response = std::move(message)});
  if (producer != nullptr) producer->on_cancel();
}

PendingRequest::Withdraw PendingRequest::ask_in_session(std::vector<InputRequest> requests,
                                                        Answer answer, MemoryHold memory) {
  const auto asked = std::make_shared<SessionQuestions>(*this, session_, std::move(requests),
                                                        std::move(answer), std::move(memory));
  rare().questions.push_back(asked);
  if (Result<void> sent = asked->send(); !sent) {
    forget(*asked);
    fail(sent.error());
    return {};
  }
  return [weak = std::weak_ptr(asked)] {
    if (const auto questions = weak.lock()) questions->withdraw();
  };
}

void PendingRequest::forget(const SessionQuestions& questions) {
  std::erase_if(rare().questions, [&](const auto& each) { return each.get() == &questions; });
}

void PendingRequest::complete(ToolResult result) {
  if (over_ || is_answered()) return;
  CallAnswer answer = answer_of(result);
  if (LongResult::is_long(result)) {
    const std::size_t bytes = LongResult::size_of(result);
    // A copy of the tool: the offer that it is of belongs to the loop.
    return write_later(
        std::move(answer), bytes,
        [result = std::move(result), tool = tool_ == nullptr ? std::nullopt : std::optional(*tool_),
         &results = catalog_->results(), id = id(), &revision = *context().revision,
         meta = std::string(task_meta())]() mutable -> Result<std::string> {
          if (tool) {
            if (Result<void> fits = tool->check(result); !fits) {
              return std::unexpected(std::move(fits.error()));
            }
          }
          std::string response;
          results.append_tool_result(response, id, revision, result, meta);
          return response;
        });
  }
  if (tool_ != nullptr) {
    if (const Result<void> fits = tool_->check(result); !fits) return fail(fits.error());
  }
  catalog_->results().append_tool_result(answer.response, id(), *context().revision, result,
                                         task_meta());
  conclude(std::move(answer));
}

void PendingRequest::complete(UnwrittenMembers members) {
  if (over_ || is_answered()) return;
  if (members.bytes <= LongResult::kLong) {
    const ResultMembers written = members.write();
    return complete(written.members, written.meta);
  }
  write_later({}, members.bytes,
              [write = std::move(members.write), &results = catalog_->results(), id = id(),
               &revision = *context().revision,
               meta = std::string(task_meta())]() mutable -> Result<std::string> {
                ResultMembers written = write();
                append_members(written.meta, meta);
                std::string response;
                results.append(response, id, revision, written.members, written.meta);
                return response;
              });
}

/// The answer without its response.
CallAnswer PendingRequest::answer_of(const ToolResult& result) const {
  CallAnswer answer;
  if (result.is_error) answer.ending = TaskRecord::Ending::error_result;
  if (task() != nullptr) answer.why = result.text;
  return answer;
}

/// Lets a worker write the answer. Writes it at once if there is no worker, or no memory to keep
/// the result until then.
void PendingRequest::write_later(CallAnswer answer, std::size_t bytes, LongResult::Write write) {
  MemoryHold held(memory());
  if (calls_->writers() == nullptr || !held.add(bytes)) {
    return conclude(std::move(answer), write());
  }
  auto writing = std::make_unique<Writing>(shared_from_this(), std::move(answer),
                                           std::unique_ptr<LongResult>());
  writing->result = std::make_unique<LongResult>(
      std::move(write), *calls_->writers(), client_of(principal().id), executor(), std::move(held),
      [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr || self->over_) return;
        // The answers of many calls may be ready in the same turn, so the work of a turn is
        // limited.
        self->calls_->streams().streams().work().run(client_of(self->principal().id), [weak] {
          if (const auto call = weak.lock()) call->on_written();
        });
      });
  rare().writing = std::move(writing);
}

void PendingRequest::on_written() {
  if (over_) return;
  Writing& writing = *rare_->writing;
  Result<std::string> response = std::move(writing.result->response());
  if (response) calls_->streams().streams().work().worked(response->size());
  conclude(std::move(writing.answer), std::move(response));
}

/// The answer with `response`, or its Error instead.
void PendingRequest::conclude(CallAnswer answer, Result<std::string> response) {
  if (!response) return fail_now(response.error());
  answer.response = *std::move(response);
  conclude(std::move(answer));
}

void PendingRequest::complete(std::string_view members, std::string_view meta) {
  if (over_ || is_answered()) return;
  CallAnswer answer;
  std::string both(meta);
  append_members(both, task_meta());
  catalog_->results().append(answer.response, id(), *context().revision, members, both);
  conclude(std::move(answer));
}

void PendingRequest::answer_with(std::string response) {
  if (is_answered()) return;
  const std::optional<int> error = error_code_of(response, id());
  conclude({.response = std::move(response)}, error);
}

void PendingRequest::answer_with_result(std::string_view result, bool is_error) {
  if (over_ || is_answered()) return;
  CallAnswer answer;
  if (is_error) answer.ending = TaskRecord::Ending::error_result;
  if (task_meta().empty()) {
    append_result(answer.response, id(), result);
  } else {
    append_result(answer.response, id(), with_meta(result, task_meta()));
  }
  conclude(std::move(answer));
}

void PendingRequest::fail(const Error& failure) {
  if (!is_answered()) fail_now(failure);
}

void PendingRequest::fail_now(const Error& failure) {
  if (over_) return;
  const Error error = spoken(failure, *context().revision);
  if (session_ != nullptr) remember_pages(*session_, error);
  CallAnswer answer{.response = {},
                    .http_status = http_status_of(error, context().revision, true),
                    .ending = TaskRecord::Ending::error,
                    .why = error.message};
  append_error(answer.response, id(), error);
  conclude(std::move(answer), error.code);
}

const std::string& PendingRequest::idempotency_key() {
  if (rounds() != nullptr) return rounds()->key();
  std::string& key = rare().key;
  if (key.empty()) key = random_id(InputRounds::kKeyLength);
  return key;
}

void PendingRequest::follow(const std::string& stream_id) {
  if (!over_) follow_stream(calls_->streams(), stream_id, shared_from_this());
}

std::shared_ptr<CallOutlet> PendingRequest::end() {
  if (over_) return nullptr;
  // Nobody waits for the client's answers any more, and the call cannot become a task.
  std::vector<std::shared_ptr<SessionQuestions>> questions;
  if (rare_ != nullptr) questions.swap(rare_->questions);
  for (const auto& each : questions) each->take_back();
  if (std::exchange(over_, true)) return nullptr;
  std::exchange(calls_, nullptr)->forget(*this);
  producer_ = nullptr;
  permit_.leave();
  take_memory();
  if (rare_ != nullptr) {
    const BeginTask begin = std::exchange(rare_->begin_task, {});
    // The caller of this function keeps the call alive.
    const auto written = std::move(rare_->writing);
  }
  return std::exchange(outlet_, nullptr);
}

/// `error` is the code of the error that answers the request; empty if a result answers it.
void PendingRequest::conclude(CallAnswer answer, std::optional<int> error) {
  // Code that is told of the end may release the call.
  const std::shared_ptr<PendingRequest> keep = weak_from_this().lock();
  const std::shared_ptr<CallOutlet> outlet = end();
  if (outlet == nullptr) return;
  if (rare_ != nullptr) {
    for (const auto& watch : std::exchange(rare_->watches, {})) watch->end(error);
  }
  outlet->answer(std::move(answer));
}

void PendingRequest::stop(bool leaves_outlet) {
  const std::shared_ptr<PendingRequest> keep = shared_from_this();
  StreamProducer* const producer = std::exchange(producer_, nullptr);
  const std::shared_ptr<CallOutlet> outlet = end();
  if (outlet == nullptr) return;
  if (rare_ != nullptr) rare_->watches.clear();
  if (leaves_outlet) outlet->leave();
  if (producer != nullptr) producer->on_cancel();
}

void PendingRequest::cancel() {
  stop(true);
}

void PendingRequest::abandon(const Error& error) {
  const std::shared_ptr<PendingRequest> keep = shared_from_this();
  StreamProducer* const producer = std::exchange(producer_, nullptr);
  fail_now(error);
  if (producer != nullptr) producer->on_cancel();
}

void PendingRequest::on_outlet_writable() {
  if (producer_ != nullptr) producer_->on_writable();
}

void PendingRequest::on_outlet_closed(DisconnectReason reason) {
  // The client has gone, so there is nobody to tell that the questions are withdrawn.
  if (reason == DisconnectReason::gone && rare_ != nullptr) {
    const auto questions = std::exchange(rare_->questions, {});
  }
  stop(false);
}

}  // namespace sluice
