#include "server/pending_request.hpp"

#include <utility>

#include "core/json.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/input_answers.hpp"
#include "rpc/error_codes.hpp"
#include "server/followed_stream.hpp"
#include "server/message_events.hpp"
#include "server/session_questions.hpp"
#include "server/stream_service.hpp"
#include "server/tool_schemas.hpp"

namespace sluice {
namespace {

/// `params`, the JSON text of an object, with `member` in its `_meta`.
std::string with_meta(std::string_view params, const std::string& member) {
  if (member.empty()) return std::string(params);
  if (params.find(R"("_meta")") == std::string_view::npos) {
    std::string out = R"({"_meta":{)" + member + "}";
    if (params.size() > 2) out.push_back(',');
    return out.append(params.substr(1));
  }
  json::value value = parse_json(params).value();
  json::value& meta = value.get_object()["_meta"];
  if (!meta.is_object()) meta = json::object();
  for (const auto& [key, own] : parse_json("{" + member + "}").value().get_object()) {
    meta.get_object().insert_or_assign(key, own);
  }
  return to_json(value);
}

}  // namespace

/// The call's channel as its cursor sees it.
class PendingRequest::Sink final : public BlockSink {
 public:
  explicit Sink(PendingRequest& call) : call_(&call) {}
  bool write(std::string_view block) override {
    return call_->channel_ == nullptr || call_->channel_->write(block);
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {
    const std::shared_ptr<ReplyChannel> channel = call_->channel_;
    if (channel == nullptr) return;
    if (channel->is_shared()) {
      std::string response;
      call_->append_response(response, *call_->stream_);
      channel->reply(200, response);
    } else {
      channel->finish();
    }
  }
  void drop(const Error& error) override {
    const std::shared_ptr<PendingRequest> call = call_->shared_from_this();
    if (call->channel_ != nullptr) call->channel_->drop(error);
    call->on_departure(Departure::gone);
  }

 private:
  PendingRequest* call_;
};

struct PendingRequest::InSession {
  std::shared_ptr<Session> session;
  bool resumable = false;
  std::unique_ptr<Session::Reader> reader = {};  // while the call's cursor reads
  std::unique_ptr<Session::Call> entry = {};     // while nobody else can cancel the call
  std::shared_ptr<SessionQuestions> questions = {};
  Executor::TimerId reader_timer = 0;
};

PendingRequest::PendingRequest(Details details, std::shared_ptr<ReplyChannel> channel,
                               StreamService& service, RefPtr<LoopOffer> offer)
    : id_(std::move(details.id)),
      context_(std::move(details.context)),
      principal_(std::move(details.principal)),
      channel_(std::move(channel)),
      service_(&service),
      offer_(std::move(offer)) {
  if (details.rounds != nullptr) rare().rounds = std::move(details.rounds);
  if (details.tool != nullptr && details.tool->output) rare().tool = details.tool;
  if (details.task != nullptr) rare().task = std::move(details.task);
  if (details.session == nullptr) return;
  const bool resumable =
      channel_->can_stream() && !channel_->is_shared() && !details.session->id().empty();
  in_session_ = std::make_unique<InSession>(std::move(details.session), resumable);
}

PendingRequest::~PendingRequest() {
  if (task() != nullptr) fail({kInternalError, "The tool has ended without an answer", {}});
  close();
}

bool PendingRequest::resumable() const {
  return in_session_ != nullptr && in_session_->resumable;
}

bool PendingRequest::can_send() const {
  return !over_ && (channel_ == nullptr ? resumable() : channel_->can_stream());
}

const ClientCapabilities& PendingRequest::client() const {
  return in_session_ != nullptr ? in_session_->session->capabilities() : context_.capabilities;
}

Executor& PendingRequest::executor() const {
  return service_->executor();
}

void PendingRequest::append_progress(std::string& out, std::uint64_t progress,
                                     std::string_view escaped_message) const {
  out.append(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)")
      .append(context_.progress_token)
      .append(R"(,"progress":)");
  append_number(out, progress);
  if (context_.revision->progress_message) {
    out.append(R"(,"message":")").append(escaped_message).append("\"");
  }
  out.append("}}");
}

void PendingRequest::append_response(std::string& out, const ChunkStream& stream) const {
  if (stream.state() == StreamState::failed) {
    append_error(out, id_, stream.error());
  } else {
    out.append(stream.trailer());
  }
}

void PendingRequest::encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const {
  if (chunk.kind == ChunkKind::end && channel_->is_shared()) return;
  const Framing& framing = channel_->framing();
  const std::size_t mark = framing.begin(out);
  switch (chunk.kind) {
    case ChunkKind::message:
      out.append(chunk.escaped);
      break;
    case ChunkKind::end:
      append_response(out, stream);
      break;
    default:
      append_progress(out, chunk.seq + 1, chunk.escaped);
  }
  framing.end(out, mark);
}

void PendingRequest::open() {
  channel_->on_close([weak = weak_from_this()](Departure departure) {
    if (const auto call = weak.lock()) call->on_departure(departure);
  });
  // Before anything else there is something to resume from.
  if (resumable() && context_.revision->priming_event && start_stream()) {
    channel_->write(priming_event(stream_->id()));
  }
}

void PendingRequest::set_producer(StreamProducer* producer) {
  producer_ = producer;
  if (stream_ != nullptr && !over_) stream_->set_producer(producer);
}

bool PendingRequest::start_stream() {
  if (stream_ != nullptr) return true;
  Result<std::shared_ptr<ChunkStream>> stream = service_->streams().start(
      {.principal = resumable() ? in_session_->session->stream_principal() : principal_,
       .method = "tools/call",
       .priority = 0,
       .expects_poller = false});
  if (!stream) {
    StreamProducer* const producer = producer_;
    fail(stream.error());
    if (producer != nullptr) producer->on_cancel();
    return false;
  }
  stream_ = std::move(*stream);
  stream_->set_producer(producer_);
  if (channel_ != nullptr) read_through_channel();
  return true;
}

void PendingRequest::read_through_channel() {
  PushCursor::Options options;
  options.shareable = false;
  const ChunkEncoder& encoder = resumable() ? message_events() : *this;
  cursor_ = std::make_unique<PushCursor>(stream_, encoder, std::make_unique<Sink>(*this), options);
  if (resumable()) {
    in_session_->reader = Session::take_over(in_session_->session, stream_->id(), executor(),
                                             [weak = weak_from_this()] {
                                               if (const auto call = weak.lock())
                                                 call->disconnect({});
                                             });
  }
  channel_->on_drain([weak = weak_from_this()] {
    const auto call = weak.lock();
    if (call != nullptr && call->cursor_ != nullptr) call->cursor_->resume();
  });
  cursor_->resume();
}

bool PendingRequest::send(std::string_view message) {
  if (task() != nullptr) {
    task()->send(std::string(message));
    return true;
  }
  if (!can_send() || !start_stream()) return true;
  return stream_->append(ChunkKind::message, message);
}

bool PendingRequest::emit(std::string_view text) {
  if (task() != nullptr) return progress(static_cast<double>(++rare().emitted), {}, text);
  if (context_.progress_token.empty() || !can_send() || !start_stream()) return true;
  if (!resumable()) return stream_->append(ChunkKind::text, text);
  // Whoever resumes finds whole messages.
  std::string escaped;
  append_json_escaped(escaped, text);
  std::string message;
  append_progress(message, ++rare().emitted, escaped);
  return stream_->append(ChunkKind::message, message);
}

bool PendingRequest::progress(double progress, std::optional<double> total,
                              std::string_view message) {
  if (context_.progress_token.empty()) return true;
  std::string params = R"({"progressToken":)" + context_.progress_token;
  params.append(R"(,"progress":)").append(to_json(json::value(progress)));
  if (total) params.append(R"(,"total":)").append(to_json(json::value(*total)));
  if (!message.empty() && context_.revision->progress_message) {
    params.append(R"(,"message":)");
    append_json_string(params, message);
  }
  params.push_back('}');
  return notify("notifications/progress", params);
}

bool PendingRequest::log(LoggingLevel level, std::string_view logger, std::string_view data) {
  std::optional<LoggingLevel> least = context_.logging_level;
  if (in_session_ != nullptr) least = in_session_->session->logging_level();
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
  if (task() == nullptr && !can_send()) return true;
  std::string message = R"({"jsonrpc":"2.0","method":)";
  append_json_string(message, method);
  message.append(R"(,"params":)");
  if (task() != nullptr) {
    message.append(with_meta(params, task()->meta()));
  } else {
    message.append(params);
  }
  message.push_back('}');
  return send(message);
}

void PendingRequest::flush() {
  if (stream_ != nullptr) stream_->flush();
}

void PendingRequest::disconnect(std::chrono::milliseconds retry) {
  if (!resumable() || channel_ == nullptr || stream_ == nullptr) return;
  stream_->flush();
  if (channel_ == nullptr) return;  // what was flushed has ended it
  const std::shared_ptr<ReplyChannel> channel = channel_;
  channel->on_close({});
  if (retry.count() > 0) channel->write(retry_event(retry));
  cursor_ = nullptr;
  channel->finish();
  detach();
}

std::optional<Error> PendingRequest::cannot_ask(const std::vector<InputRequest>& requests) const {
  const ClientCapabilities& declared = client();
  for (const InputRequest& request : requests) {
    const std::string missing = missing_capabilities(declared, request.method, request.params);
    if (missing.empty()) continue;
    const bool modern = context_.revision->era == Era::modern;
    return Error{modern ? kMissingClientCapability : kInvalidRequest,
                 "This needs a client that declares the capability " + missing,
                 R"({"requiredCapabilities":)" + missing + "}"};
  }
  if (task() != nullptr || rounds() != nullptr || (in_session_ != nullptr && can_send())) return {};
  return Error{
      kInvalidRequest, "This client cannot be asked: it has no session, or reads no events", {}};
}

void PendingRequest::ask(std::vector<InputRequest> requests, Answer answer) {
  if (over_) return;
  if (std::optional<Error> why = cannot_ask(requests)) {
    answer(std::unexpected(std::move(*why)));
  } else if (task() != nullptr) {
    task()->ask(std::move(requests), std::move(answer));
  } else if (rounds() != nullptr) {
    ask_in_rounds(requests, std::move(answer));
  } else {
    ask_in_session(std::move(requests), std::move(answer));
  }
}

Result<std::shared_ptr<PendingRequest>> PendingRequest::begin_task() {
  if (over_ || rare_ == nullptr || !rare_->begin_task) return shared_from_this();
  return std::exchange(rare_->begin_task, {})(this);
}

void PendingRequest::ask_in_rounds(const std::vector<InputRequest>& requests, Answer answer) {
  std::vector<json::value> answers;
  std::vector<const InputRequest*> missing;
  for (const InputRequest& request : requests) {
    const json::value* const given = rounds()->find(request.key);
    if (given == nullptr) {
      missing.push_back(&request);
    } else if (Result<void> fits = check_answer(request, *given); !fits) {
      answer(std::unexpected(std::move(fits.error())));
      return;
    } else {
      answers.push_back(*given);
    }
  }
  if (missing.empty()) {
    answer(std::move(answers));
    return;
  }
  std::string message;
  offer_->results().append_input_required(message, id_, *context_.revision, *rounds(), missing);
  StreamProducer* const producer = producer_;
  const std::shared_ptr<PendingRequest> keep = shared_from_this();
  this->answer(200, std::move(message));
  if (producer != nullptr) producer->on_cancel();
}

void PendingRequest::ask_in_session(std::vector<InputRequest> requests, Answer answer) {
  in_session_->questions = std::make_shared<SessionQuestions>(
      *this, in_session_->session, std::move(requests),
      [this, answer = std::move(answer)](Result<std::vector<json::value>> outcome) mutable {
        // Whoever is told may ask again, or let go of the request.
        const std::shared_ptr<PendingRequest> keep = shared_from_this();
        const std::shared_ptr<SessionQuestions> over = std::move(in_session_->questions);
        Answer told = std::move(answer);
        told(std::move(outcome));
      });
  if (Result<void> sent = in_session_->questions->send(); !sent) {
    in_session_->questions = nullptr;
    fail(sent.error());
  }
}

void PendingRequest::complete(const ToolResult& result) {
  if (over_) return;
  if (tool() != nullptr) {
    if (const Result<void> fits = tool()->check(result); !fits) return fail(fits.error());
  }
  std::string message;
  if (task() != nullptr) {
    offer_->results().append_tool_result(message, id_, *context_.revision, result, task()->meta());
    end_task(result.is_error ? TaskRecord::Ending::error_result : TaskRecord::Ending::result,
             result.text, message);
    return;
  }
  offer_->results().append_tool_result(message, id_, *context_.revision, result);
  answer(200, std::move(message));
}

void PendingRequest::complete(std::string_view members, std::string_view meta) {
  if (over_) return;
  std::string message;
  if (task() != nullptr) {
    std::string both(meta);
    if (!both.empty() && !task()->meta().empty()) both.push_back(',');
    offer_->results().append(message, id_, *context_.revision, members,
                             both.append(task()->meta()));
    end_task(TaskRecord::Ending::result, {}, message);
    return;
  }
  offer_->results().append(message, id_, *context_.revision, members, meta);
  answer(200, std::move(message));
}

void PendingRequest::complete_cacheable(std::string_view members) {
  if (over_) return;
  std::string message;
  offer_->results().append_cacheable(message, id_, *context_.revision, members);
  answer(200, std::move(message));
}

void PendingRequest::answer_with(std::string response) {
  if (!over_) answer(200, std::move(response));
}

void PendingRequest::fail(const Error& error) {
  if (over_) return;
  if (in_session_ != nullptr) remember_pages(*in_session_->session, error);
  std::string message;
  append_error(message, id_, error);
  if (task() != nullptr) {
    end_task(TaskRecord::Ending::error, error.message, message);
    return;
  }
  answer(http_status_of(error, context_.revision, true), std::move(message), error.code);
}

void PendingRequest::follow(const std::string& stream_id) {
  follow_stream(*service_, stream_id, shared_from_this());
}

void PendingRequest::answer(int http_status, std::string message, int error) {
  over_ = true;
  if (rare_ != nullptr) {
    if (const auto watch = std::move(rare_->watch)) watch->end(error);
  }
  leave_session();
  producer_ = nullptr;
  if (stream_ == nullptr) {
    if (channel_ != nullptr) {
      channel_->on_close({});
      channel_->reply(http_status, message);
    }
    close();
    return;
  }
  stream_->set_producer(nullptr);
  if (channel_ != nullptr) {
    // The response goes behind everything emitted before; the call lives until it is out.
    channel_->on_close(
        [self = shared_from_this()](Departure departure) { self->on_departure(departure); });
  }
  if (resumable()) {
    stream_->append(ChunkKind::message, message);
    stream_->finish();
  } else {
    stream_->finish(std::move(message));
  }
}

void PendingRequest::end_task(TaskRecord::Ending ending, std::string_view why,
                              std::string_view response) {
  over_ = true;
  producer_ = nullptr;
  std::exchange(rare_->task, nullptr)->end(ending, why, response);
}

void PendingRequest::leave_session() {
  if (in_session_ == nullptr) return;
  in_session_->questions = nullptr;
  in_session_->entry = nullptr;
  executor().cancel(std::exchange(in_session_->reader_timer, 0));
}

void PendingRequest::on_departure(Departure departure) {
  if (resumable() && departure == Departure::gone) {
    detach();
    return;
  }
  if (departure == Departure::cancelled && in_session_ != nullptr) {
    if (in_session_->questions != nullptr) in_session_->questions->take_back();
    flush();
  }
  cancel();
}

void PendingRequest::detach() {
  channel_ = nullptr;
  cursor_ = nullptr;
  if (in_session_ != nullptr) in_session_->reader = nullptr;
  if (over_) return;
  Result<std::unique_ptr<Session::Call>> entry =
      Session::add_call(in_session_->session, id_, executor(), [weak = weak_from_this()] {
        if (const auto call = weak.lock()) call->cancel();
      });
  if (!entry) {
    cancel();
    return;
  }
  in_session_->entry = std::move(*entry);
  await_reader();
}

void PendingRequest::await_reader() {
  in_session_->reader_timer = executor().schedule_at(
      executor().clock().now() + in_session_->session->resume_window(), [weak = weak_from_this()] {
        const auto call = weak.lock();
        if (call == nullptr) return;
        if (call->stream_ != nullptr && call->stream_->has_readers()) {
          call->await_reader();
        } else {
          call->cancel();
        }
      });
}

void PendingRequest::cancel() {
  const std::shared_ptr<PendingRequest> keep = shared_from_this();
  StreamProducer* const producer = std::exchange(producer_, nullptr);
  over_ = true;
  if (rare_ != nullptr) {
    rare_->watch = nullptr;
    if (const auto task = std::exchange(rare_->task, nullptr)) task->cancel();
  }
  leave_session();
  if (stream_ != nullptr) stream_->set_producer(nullptr);
  close();
  if (producer != nullptr) producer->on_cancel();
}

void PendingRequest::close() {
  channel_ = nullptr;
  cursor_ = nullptr;
  if (in_session_ != nullptr) in_session_->reader = nullptr;
  const std::shared_ptr<ChunkStream> stream = std::move(stream_);
  stream_ = nullptr;
  if (stream == nullptr) return;
  // A response that nobody has read yet waits for its reader to come back.
  if (resumable() && stream->ended()) return;
  service_->streams().discard(*stream);
}

}  // namespace sluice
