#include "server/dispatch/dispatcher.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/log/log.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/call_memory.hpp"
#include "server/calls/long_result.hpp"
#include "server/calls/pending_request.hpp"
#include "server/dispatch/feature_methods.hpp"
#include "server/dispatch/forwarder.hpp"
#include "server/dispatch/listen.hpp"
#include "server/dispatch/new_session.hpp"
#include "server/handlers/tool_run.hpp"
#include "server/workers/long_messages.hpp"

namespace sluice {
namespace {

/// The most steps that a validation may take on the loop. That is less than a millisecond.
constexpr std::uint64_t kStepsAtOnce = 20'000;

/// The revision that an initialize agrees on; null if it names none.
const Revision* revision_to_initialize(const Message& message) {
  const json::value* const requested =
      message.params == nullptr ? nullptr : message.params->if_contains("protocolVersion");
  if (requested == nullptr || !requested->is_string()) return nullptr;
  return &negotiate_initialize(requested->get_string());
}

std::unexpected<Error> no_skills() {
  return fail(kMethodNotFound, "Method not found: this server offers no skills");
}

}  // namespace

Dispatcher::Dispatcher(RefPtr<LoopCatalog> catalog, StreamService& streams,
                       SessionRegistry& sessions, ClientQuota& quota, ChangeNotifier& changes,
                       TaskStore& tasks, LongMessages& long_messages, LongMessages& checks,
                       WorkerPool* writers)
    : catalog_(std::move(catalog)),
      first_catalog_(catalog_),
      streams_(&streams),
      sessions_(&sessions),
      calls_(streams, quota, writers),
      changes_(&changes),
      tasks_(catalog_, calls_, tasks),
      long_messages_(&long_messages),
      checks_(&checks) {
  if (!definition().instructions.empty()) {
    instructions_ = R"(,"instructions":)";
    append_json_string(instructions_, definition().instructions);
  }
}

Dispatcher::~Dispatcher() {
  end_calls({kBusy, "The server is shutting down", {}});
  chains_.stop();
}

void Dispatcher::end_calls(const Error& error) {
  chains_.refuse_waiting(error);
  calls_.end_all(error);
}

void Dispatcher::take(RefPtr<LoopCatalog> catalog) {
  tasks_.take(catalog);
  catalog_ = std::move(catalog);
}

Outcome Dispatcher::reject(const MessageError& error, std::string& out) {
  append_error(out, error.id, error.error);
  const bool was_read = !error.id.empty() && error.error.code != kBusy;
  return {.kind = Outcome::Kind::answered,
          .http_status = http_status_of(error.error, nullptr, was_read)};
}

Outcome Dispatcher::error(const RequestId& id, const Error& failure, const Revision* revision,
                          std::string& out) {
  const Error error = revision == nullptr ? failure : spoken(failure, *revision);
  append_error(out, id, error);
  return {.kind = Outcome::Kind::answered,
          .http_status = http_status_of(error, revision, !id.empty())};
}

Outcome Dispatcher::dispatch(const Message& message, const MirroredHeaders* headers, Caller& caller,
                             std::string& out) {
  if (message.kind == MessageKind::response) return response(message, caller, out);
  UnderstoodRequest request;
  if (streams_->serves(message.method)) {
    if (headers != nullptr) {
      // Stream methods belong to no revision, so the header fields that mirror the message may be
      // missing.
      MirroredHeaders given = *headers;
      given.required = false;
      if (const Result<void> mirrored = check_mirrored_headers(message, given, {}); !mirrored) {
        return error(message.id, mirrored.error(), nullptr, out);
      }
    }
  } else if (message.method == "initialize" && message.kind == MessageKind::request &&
             !is_self_contained(message)) {
    request.kind = UnderstoodRequest::Kind::initialize;
    request.context.revision = revision_to_initialize(message);
  } else {
    request.kind = UnderstoodRequest::Kind::other;
    if (!is_self_contained(message)) {
      Result<std::shared_ptr<Session>> named = caller.session();
      if (!named) return no_session(message.id, named.error(), out);
      request.session = std::move(*named);
    }
    Result<RequestContext> context = negotiate(
        message, headers, request.session == nullptr ? nullptr : &request.session->revision());
    if (!context) {
      // A notification gets no response. HTTP still reports the error with its status.
      if (message.kind == MessageKind::notification && headers == nullptr) {
        return {.kind = Outcome::Kind::accepted};
      }
      Outcome refused = error(message.id, context.error(), nullptr, out);
      // To HTTP, every error of the negotiation is a Bad Request.
      refused.http_status = 400;
      return refused;
    }
    if (message.kind == MessageKind::notification) {
      notification(message, request.session);
      return {.kind = Outcome::Kind::accepted};
    }
    request.context = std::move(*context);
  }
  if (definition().middleware.empty()) {
    return answer(message, headers, std::move(request), caller, out);
  }
  return RequestChain::run(*this, message, headers, std::move(request), caller, out);
}

Outcome Dispatcher::answer(const Message& message, const MirroredHeaders* headers,
                           UnderstoodRequest&& request, Caller& caller, std::string& out) {
  const std::size_t before = out.size();
  Outcome outcome;
  switch (request.kind) {
    case UnderstoodRequest::Kind::stream_method:
      outcome = stream_method(message, caller, out);
      break;
    case UnderstoodRequest::Kind::initialize:
      outcome = initialize(message, request.context.revision, caller, out);
      break;
    case UnderstoodRequest::Kind::other:
      outcome = this->request(message, headers, std::move(request.context),
                              std::move(request.session), caller, out);
      break;
  }
  if (out.size() > before) streams_->streams().work().worked(out.size() - before);
  return outcome;
}

Outcome Dispatcher::stream_method(const Message& message, Caller& caller, std::string& out) {
  if (message.kind == MessageKind::notification) {
    std::string unheard;
    if (!caller.serve(message, caller, unheard)) streams_->notify(message, caller);
    return {.kind = Outcome::Kind::accepted};
  }
  const bool answered =
      caller.serve(message, caller, out) || streams_->handle(message, caller, out);
  return {.kind = answered ? Outcome::Kind::answered : Outcome::Kind::pending};
}

Outcome Dispatcher::no_session(const RequestId& id, const Error& error, std::string& out) {
  append_error(out, id, error);
  return {.kind = Outcome::Kind::answered, .http_status = kNotFound};
}

Outcome Dispatcher::response(const Message& message, Caller& caller, std::string& out) {
  const Result<std::shared_ptr<Session>> session = caller.session();
  if (!session) return no_session({}, session.error(), out);
  // A response that nobody waits for is ignored: it may be late, and responses are never answered.
  if (*session != nullptr) (*session)->on_response(message);
  return {.kind = Outcome::Kind::accepted};
}

std::optional<RequestId> Dispatcher::cancelled_by(const Message& message) {
  if (message.kind != MessageKind::notification || message.method != "notifications/cancelled") {
    return std::nullopt;
  }
  const json::value* const id = params_of(message).if_contains("requestId");
  return id == nullptr ? std::nullopt : exact_text(*id, message.text, {"params", "requestId"});
}

void Dispatcher::notification(const Message& message, const std::shared_ptr<Session>& session) {
  if (session == nullptr) return;
  if (message.method == "notifications/cancelled") {
    if (const auto id = cancelled_by(message)) session->cancel_call(*id);
  } else if (definition().forwarder != nullptr) {
    // However short they are, there may be very many.
    auto held = hold_all(streams_->streams().memory_of(session->principal()),
                         message.text.size() + kQueuedMessage,
                         "notifications that the server behind has not taken");
    if (!held) return log_debug("a notification is dropped", {{"why", held.error().message}});
    definition().forwarder->notify({.method = message.method,
                                    .params = params_of(message),
                                    .session = session,
                                    .changes = *changes_,
                                    .memory = std::make_shared<MemoryHold>(*std::move(held))});
  }
}

Outcome Dispatcher::request(const Message& message, const MirroredHeaders* headers,
                            RequestContext&& context, std::shared_ptr<Session> session,
                            Caller& caller, std::string& out) {
  const Revision& revision = *context.revision;
  if (message.method == "subscriptions/listen" && revision.era == Era::modern) {
    return listen(message, std::move(context), caller, out);
  }
  if (tasks_.serves(message.method, revision, caller)) {
    const Result<bool> answered =
        tasks_.handle(message, std::move(context), std::move(session), caller, out);
    if (!answered) return error(message.id, answered.error(), &revision, out);
    return {.kind = *answered ? Outcome::Kind::answered : Outcome::Kind::pending};
  }
  if (definition().forwarder != nullptr && message.method != "ping") {
    return defer(message, nullptr, std::move(context), session, caller, out,
                 [&](const std::shared_ptr<PendingRequest>& call) -> Result<void> {
                   if (message.method == "tools/call") {
                     Result<void> offered = tasks_.offer(*call, params_of(message), session);
                     if (!offered) return offered;
                   }
                   return definition().forwarder->forward(
                       {message.method, params_of(message), session, *changes_,
                        revision.routing_headers ? headers : nullptr},
                       call);
                 });
  }
  if (message.method == "tools/call") {
    return call_tool(message, headers, std::move(context), std::move(session), caller, out);
  }
  for (const Method& method : kMethods) {
    if (method.name != message.method) continue;
    if (method.era && *method.era != revision.era) break;
    Result<FeatureAnswer> answer = (this->*method.handler)(
        params_of(message), {revision, session.get(), calls_.watch(), caller});
    if (!answer) return error(message.id, answer.error(), &revision, out);
    if (auto* const later = std::get_if<2>(&*answer)) {
      return defer(message, nullptr, std::move(context), std::move(session), caller, out, *later);
    }
    auto* const unwritten = std::get_if<UnwrittenMembers>(&*answer);
    if (unwritten == nullptr) {
      const ResultMembers& members = std::get<ResultMembers>(*answer);
      results().append(out, message.id, revision, members.members, members.meta);
    } else if (const auto call = open_for_long(message, nullptr, std::move(context), caller)) {
      call->complete(std::move(*unwritten));
      return {.kind = Outcome::Kind::pending};
    } else {
      const ResultMembers members = unwritten->write();
      results().append(out, message.id, revision, members.members, members.meta);
    }
    return {};
  }
  return error(message.id,
               {kMethodNotFound, "Method not found: " + std::string(message.method), {}}, &revision,
               out);
}

const std::array<Dispatcher::Method, 15> Dispatcher::kMethods = {{
    {"tools/list", {}, &Dispatcher::list<FeatureList::tools>},
    {"resources/list", {}, &Dispatcher::list<FeatureList::resources>},
    {"resources/templates/list", {}, &Dispatcher::list<FeatureList::resource_templates>},
    {"prompts/list", {}, &Dispatcher::list<FeatureList::prompts>},
    {"resources/read", {}, &Dispatcher::read},
    {"prompts/get", {}, &Dispatcher::get},
    {"completion/complete", {}, &Dispatcher::complete},
    {"skills/list", {}, &Dispatcher::list_skills},
    {"skills/get", {}, &Dispatcher::get_skill},
    {"resources/directory/read", {}, &Dispatcher::read_directory},
    {"server/discover", Era::modern, &Dispatcher::discover},
    {"ping", Era::legacy, &Dispatcher::ping},
    {"logging/setLevel", Era::legacy, &Dispatcher::set_level},
    {"resources/subscribe", Era::legacy, &Dispatcher::subscribe},
    {"resources/unsubscribe", Era::legacy, &Dispatcher::unsubscribe},
}};

template <FeatureList kList>
Result<FeatureAnswer> Dispatcher::list(const json::object& params, const Scope& scope) const {
  const json::value* const given = params.if_contains("cursor");
  if (given != nullptr && !given->is_string()) {
    return fail(kInvalidParams, "Invalid params: cursor must be a string");
  }
  std::string cursor;
  if (given != nullptr) cursor = given->get_string();
  const std::string* const at = given == nullptr ? nullptr : &cursor;
  const bool differs = kList == FeatureList::tools && lists().hides_tools();
  if (differs) scope.watch.begin({"visible_to", "tools/list"});
  Result<std::string> page =
      lists().page(kList, differs ? &scope.caller.principal() : nullptr, scope.revision, at);
  if (differs) scope.watch.end();
  if (!page) return std::unexpected(std::move(page.error()));
  return *std::move(page);
}

Result<FeatureAnswer> Dispatcher::read(const json::object& params, const Scope& scope) const {
  scope.watch.begin({"resource", text_at(params, "uri")});
  return read_resource(catalog_->index(), params, scope.revision, streams_->streams().work());
}

Result<FeatureAnswer> Dispatcher::get(const json::object& params, const Scope& scope) const {
  scope.watch.begin({"prompt", text_at(params, "name")});
  return get_prompt(catalog_->index(), params, scope.revision);
}

Result<FeatureAnswer> Dispatcher::complete(const json::object& params, const Scope& scope) const {
  scope.watch.begin({"completion", {}});
  return complete_argument(catalog_->index(), params, streams_->streams().work());
}

/// `members` with the caching hints of lists, in revisions that have such hints.
Result<FeatureAnswer> Dispatcher::cached(Result<std::string> members,
                                         const Revision& revision) const {
  if (!members) return std::unexpected(std::move(members.error()));
  append_caching(*members, definition().list_caching, revision);
  return std::move(*members);
}

Result<FeatureAnswer> Dispatcher::list_skills(const json::object& params,
                                              const Scope& scope) const {
  if (definition().skills.empty()) return no_skills();
  return list<FeatureList::skills>(params, scope);
}

Result<FeatureAnswer> Dispatcher::get_skill(const json::object& params, const Scope& scope) const {
  if (definition().skills.empty()) return no_skills();
  return cached(sluice::get_skill(definition(), params), scope.revision);
}

Result<FeatureAnswer> Dispatcher::read_directory(const json::object& params,
                                                 const Scope& scope) const {
  if (definition().skills.empty()) return no_skills();
  return cached(sluice::read_directory(definition(), params), scope.revision);
}

Result<FeatureAnswer> Dispatcher::discover(const json::object& /*params*/,
                                           const Scope& scope) const {
  return cached(R"("supportedVersions":)" + revisions_json() + R"(,"capabilities":{)" +
                    lists().capabilities(scope.revision, false) + "}" + instructions_,
                scope.revision);
}

Result<FeatureAnswer> Dispatcher::ping(const json::object& /*params*/,
                                       const Scope& /*scope*/) const {
  return std::string();
}

Result<FeatureAnswer> Dispatcher::set_level(const json::object& params, const Scope& scope) const {
  const json::value* const given = params.if_contains("level");
  const std::optional<LoggingLevel> level = given != nullptr && given->is_string()
                                                ? parse_logging_level(given->get_string())
                                                : std::nullopt;
  if (!level) {
    return fail(kInvalidParams,
                "Invalid params: level must be debug, info, notice, warning, error, critical, "
                "alert or emergency");
  }
  // Without a session there is nowhere to store the level, and no log messages that it applies to.
  if (scope.session != nullptr) scope.session->set_logging_level(*level);
  return std::string();
}

Result<FeatureAnswer> Dispatcher::subscribe(const json::object& params, const Scope& scope) const {
  const Result<std::string> uri =
      known_resource(catalog_->index(), params, scope.revision, streams_->streams().work());
  if (!uri) return std::unexpected(uri.error());
  if (scope.session == nullptr) {
    return fail(kInvalidRequest,
                "Invalid Request: subscriptions need a session, and this request has none");
  }
  if (Result<void> done =
          scope.session->subscribe(*uri, streams_->streams().memory_of(scope.session->principal()));
      !done) {
    return std::unexpected(std::move(done.error()));
  }
  return std::string();
}

Result<FeatureAnswer> Dispatcher::unsubscribe(const json::object& params,
                                              const Scope& scope) const {
  const json::value* const uri = params.if_contains("uri");
  if (uri == nullptr || !uri->is_string()) {
    return fail(kInvalidParams, "Invalid params: uri must be a string");
  }
  if (scope.session != nullptr) scope.session->unsubscribe(std::string(uri->get_string()));
  return std::string();
}

Outcome Dispatcher::initialize(const Message& message, const Revision* revision, Caller& caller,
                               std::string& out) {
  if (revision == nullptr) {
    return error(message.id,
                 {kInvalidParams, "Invalid params: protocolVersion must be a string", {}}, nullptr,
                 out);
  }
  const json::value* const declared = message.params->if_contains("capabilities");
  if (declared != nullptr && !declared->is_object()) {
    return error(message.id, {kInvalidParams, "Invalid params: capabilities must be an object", {}},
                 nullptr, out);
  }
  Result<std::shared_ptr<Session>> begun = std::unexpected(StreamService::shutting_down());
  ClientDescription client;
  if (!streams_->draining()) {
    if (declared != nullptr) {
      client.capabilities = decode_client_capabilities(declared->get_object(), *revision);
    }
    const json::value* const info = message.params->if_contains("clientInfo");
    if (info != nullptr && info->is_object()) {
      client.info = shared_info(decode_client_info(info->get_object()));
    }
    begun = caller.begin_session(*revision, client);
  }
  if (!begun) {
    append_error(out, message.id, begun.error());
    return {.kind = Outcome::Kind::answered, .http_status = kServiceUnavailable};
  }
  if (definition().forwarder != nullptr) {
    RequestContext context;
    context.revision = revision;
    context.capabilities = client.capabilities;
    auto unanswered = std::make_unique<NewSession>(*sessions_, *begun);
    return defer(message, nullptr, std::move(context), nullptr, caller, out,
                 [&](const std::shared_ptr<PendingRequest>& call) {
                   call->add_watch(std::move(unanswered));
                   return definition().forwarder->forward(
                       {message.method, params_of(message), *begun, *changes_}, call);
                 });
  }
  std::string members = R"("protocolVersion":)";
  append_json_string(members, revision->name);
  members.append(R"(,"capabilities":{)")
      .append(lists().capabilities(*revision, caller.principal().isolated));
  members.append(R"(},"serverInfo":)").append(results().server_info()).append(instructions_);
  results().append(out, message.id, *revision, members);
  return {};
}

Outcome Dispatcher::call_tool(const Message& message, const MirroredHeaders* headers,
                              RequestContext&& context, std::shared_ptr<Session> session,
                              Caller& caller, std::string& out) {
  const Revision& revision = *context.revision;
  const json::value* const name =
      message.params == nullptr ? nullptr : message.params->if_contains("name");
  if (name == nullptr || !name->is_string()) {
    return error(message.id, {kInvalidParams, "Invalid params: name must be a string", {}},
                 &revision, out);
  }
  const Tool* const tool = catalog_->index().find_tool(name->get_string());
  // Who calls is asked only where it matters, because it may have to be found out.
  const bool is_for_some = tool != nullptr && tool->visible_to != nullptr;
  if (is_for_some) calls_.watch().begin({"visible_to", tool->name});
  if (tool == nullptr || (is_for_some && !tool->is_visible_to(caller.principal()))) {
    return error(message.id,
                 {kInvalidParams, "Unknown tool: " + std::string(name->get_string()), {}},
                 &revision, out);
  }
  const json::value& given = arguments_of(params_of(message));
  if (!given.is_object()) {
    return error(message.id, {kInvalidParams, "Invalid params: arguments must be an object", {}},
                 &revision, out);
  }
  const CompiledTool& compiled = catalog_->schemas().of(*tool);
  if (headers != nullptr && revision.routing_headers) {
    const Result<void> mirrored =
        check_parameter_headers(compiled.headers, given.get_object(), *headers);
    if (!mirrored) return error(message.id, mirrored.error(), &revision, out);
  }
  Result<TaskPlan> plan = tasks_.plan(*tool, *message.params, context, caller);
  if (!plan) return error(message.id, plan.error(), &revision, out);
  const auto valid = compiled.input.validate(given, kStepsAtOnce);
  // The arguments of a task outlive its message; long ones are parsed again rather than copied
  // here.
  const bool is_long_task =
      plan->when == TaskPlan::When::now && LongMessages::is_long(message.text);
  // A schema that allows anything is validated in a few steps, but decoding copies all the values.
  const bool is_long_to_decode = tool->decode != nullptr && message.values > kStepsAtOnce;
  if (valid ? is_long_task || is_long_to_decode : valid.error().is_unfinished) {
    TaskService::Run run = [checks = checks_, tool, &input = compiled.input,
                            text = std::string(message.text)](const auto& call) {
      run_tool_checked(*checks, *tool, input, text, call);
    };
    if (plan->when == TaskPlan::When::now) {
      return begin_task(message, *tool, std::move(context), std::move(session), caller, *plan,
                        std::move(run), out);
    }
    return defer(message, &compiled, std::move(context), std::move(session), caller, out,
                 [&](const std::shared_ptr<PendingRequest>& call) -> Result<void> {
                   if (plan->when == TaskPlan::When::later) tasks_.let_begin(*call);
                   run(call);
                   return {};
                 });
  }
  if (!valid) {
    std::string text = "Invalid params: " + valid.error().describe("arguments");
    if (!revision.input_errors) {
      return error(message.id, {kInvalidParams, std::move(text), {}}, &revision, out);
    }
    // A result and not an error, so that the model sees it and can correct itself (SEP-1303).
    ToolResult refusal{.text = std::move(text), .is_error = true};
    if (plan->demanded) {
      return begin_task(
          message, *tool, std::move(context), std::move(session), caller, *plan,
          [refusal = std::move(refusal)](const auto& call) { call->complete(refusal); }, out);
    }
    results().append_tool_result(out, message.id, revision, refusal);
    return {};
  }
  const json::object* const arguments = &given.get_object();
  if (plan->when == TaskPlan::When::now) {
    return begin_task(message, *tool, std::move(context), std::move(session), caller, *plan,
                      TaskService::run_of(*tool, *message.params), out);
  }
  if (const auto* immediate = std::get_if<Tool::Immediate>(&tool->handler)) {
    calls_.watch().begin({"tool", tool->name});
    Result<ToolResult> result = (*immediate)(*arguments);
    if (!result) return error(message.id, result.error(), &revision, out);
    if (LongResult::is_long(*result)) {
      if (const auto call = open_for_long(message, &compiled, std::move(context), caller)) {
        call->complete(*std::move(result));
        return {.kind = Outcome::Kind::pending};
      }
    }
    if (const Result<void> fits = compiled.check(*result); !fits) {
      return error(message.id, fits.error(), &revision, out);
    }
    results().append_tool_result(out, message.id, revision, *result);
    return {};
  }
  return defer(message, &compiled, std::move(context), std::move(session), caller, out,
               [this, tool, arguments, values = message.values,
                later = plan->when == TaskPlan::When::later](std::shared_ptr<PendingRequest> call) {
                 if (later) tasks_.let_begin(*call);
                 return start_tool(*tool, *arguments, values, std::move(call));
               });
}

Outcome Dispatcher::defer(
    const Message& message, const CompiledTool* tool, RequestContext context,
    std::shared_ptr<Session> session, Caller& caller, std::string& out,
    const std::function<Result<void>(std::shared_ptr<PendingRequest>)>& later) {
  const Revision& revision = *context.revision;
  describe_sender(context, session, caller);
  const Result<std::shared_ptr<PendingRequest>> opened =
      open_call(message, tool, std::move(context), std::move(session), caller, catalog_);
  if (!opened) return error(message.id, opened.error(), &revision, out);
  if ((*opened)->over()) return {.kind = Outcome::Kind::pending};
  const PendingRequest::Parameters parameters(**opened, message.params);
  if (Result<void> started = later(*opened); !started) (*opened)->fail(started.error());
  return {.kind = Outcome::Kind::pending};
}

Outcome Dispatcher::begin_task(const Message& message, const Tool& tool, RequestContext context,
                               std::shared_ptr<Session> session, Caller& caller,
                               const TaskPlan& plan, TaskService::Run run, std::string& out) {
  const Revision& revision = *context.revision;
  describe_sender(context, session, caller);
  Result<MemoryHold> memory = memory_for(message, context, caller);
  if (!memory) return error(message.id, memory.error(), &revision, out);
  const Result<std::shared_ptr<TaskRecord>> task =
      tasks_.begin({.context = std::move(context),
                    .session = std::move(session),
                    .principal = caller.principal(),
                    .catalog = catalog_,
                    .tool = &catalog_->schemas().of(tool),
                    .memory = std::move(*memory)},
                   plan.ttl, std::move(run));
  if (!task) return error(message.id, task.error(), &revision, out);
  tasks_.append_created(out, message.id, **task);
  return {};
}

Outcome Dispatcher::listen(const Message& message, RequestContext context, Caller& caller,
                           std::string& out) {
  const Revision& revision = *context.revision;
  Result<SubscriptionFilter> filter = SubscriptionFilter::decode(params_of(message));
  if (!filter) return error(message.id, filter.error(), &revision, out);
  std::vector<std::shared_ptr<TaskRecord>> tasks;
  if (filter->task_ids) {
    if (!context.capabilities.tasks) {
      return error(message.id, tasks_extension_missing(), &revision, out);
    }
    for (const std::string& id : *filter->task_ids) {
      if (auto task = tasks_.find(id, caller.principal().id, revision))
        tasks.push_back(std::move(task));
    }
  }
  MemoryHold memory(streams_->streams().memory_of(caller.principal().id));
  // The acknowledgement repeats the filter and needs memory too.
  const std::size_t acknowledgement = ChunkLog::memory_for(filter->memory());
  if (!memory.add(filter->memory() + acknowledgement)) {
    return error(message.id, no_memory_for_subscriptions(), &revision, out);
  }
  memory.remove(acknowledgement);
  describe_sender(context, nullptr, caller);
  const Result<std::shared_ptr<PendingRequest>> call =
      open_call(message, nullptr, std::move(context), nullptr, caller, first_catalog_);
  if (!call) return error(message.id, call.error(), &revision, out);
  if ((*call)->over()) return {.kind = Outcome::Kind::pending};
  if (!(*call)->carries()) {
    (*call)->fail({kInvalidRequest,
                   "subscriptions/listen is answered by an event stream: accept "
                   "text/event-stream"});
    return {.kind = Outcome::Kind::pending};
  }
  const PendingRequest::Parameters parameters(**call, message.params);
  caller.add_listener(sluice::listen(*call, message.id, std::move(*filter), std::move(memory),
                                     std::move(tasks), definition(), *changes_));
  return {.kind = Outcome::Kind::pending};
}

Result<std::shared_ptr<PendingRequest>> Dispatcher::open_call(
    const Message& message, const CompiledTool* tool, RequestContext context,
    std::shared_ptr<Session> session, Caller& caller, const RefPtr<LoopCatalog>& catalog) {
  if (streams_->draining()) return std::unexpected(StreamService::shutting_down());
  std::unique_ptr<InputRounds> rounds;
  if (context.revision->era == Era::modern && context.capabilities.any() &&
      may_require_input(message.method)) {
    Result<InputRounds> read = InputRounds::read(message, caller.principal().id, results().sealer(),
                                                 std::chrono::system_clock::now());
    if (!read) return std::unexpected(std::move(read.error()));
    rounds = std::make_unique<InputRounds>(std::move(*read));
  }
  Result<MemoryHold> memory =
      memory_for(message, context, caller, rounds == nullptr ? 0 : rounds->values());
  if (!memory) return std::unexpected(std::move(memory.error()));
  return calls_.open({.id = message.id,
                      .context = std::move(context),
                      .session = std::move(session),
                      .rounds = std::move(rounds),
                      .tool = tool,
                      .memory = std::move(*memory)},
                     caller, catalog);
}

/// Opens a call for a long result, so that a worker can write it. The call has no session: nothing
/// precedes the answer, so its client could resume nothing. Null if no call can be opened; the
/// result is then sent at once.
std::shared_ptr<PendingRequest> Dispatcher::open_for_long(const Message& message,
                                                          const CompiledTool* tool,
                                                          RequestContext context, Caller& caller) {
  if (calls_.writers() == nullptr) return nullptr;
  return open_call(message, tool, std::move(context), nullptr, caller, catalog_).value_or(nullptr);
}

/// Sessions of the same client program, of which there may be many, share its description.
std::shared_ptr<const ClientInfo> Dispatcher::shared_info(ClientInfo info) {
  std::shared_ptr<const ClientInfo> last = last_info_.lock();
  if (last == nullptr || *last != info) {
    last = std::make_shared<const ClientInfo>(std::move(info));
    last_info_ = last;
  }
  return last;
}

void Dispatcher::describe_sender(RequestContext& context, const std::shared_ptr<Session>& session,
                                 Caller& caller) const {
  RequestSender sender;
  sender.storage = caller.storage();
  if (session != nullptr) {
    sender.info = session->client_info();
    if (sender.storage == nullptr) sender.storage = {session, &session->storage()};
  }
  for (const std::string& name : definition().request_headers) {
    sender.fields.push_back({name, caller.field(name)});
  }
  if (sender.info != nullptr || sender.storage != nullptr || !sender.fields.empty()) {
    context.sender = std::make_shared<const RequestSender>(std::move(sender));
  }
}

/// Reserves memory for what a call keeps of its request: as much as the parsed message takes,
/// whatever the handler does with the parameters, and the header fields. `more_values` were sealed
/// in it.
Result<MemoryHold> Dispatcher::memory_for(const Message& message, const RequestContext& context,
                                          const Caller& caller, std::size_t more_values) const {
  std::size_t bytes = message.text.size() + ((message.values + more_values) * kMemoryOfValue);
  if (context.sender != nullptr) {
    for (const RequestField& field : context.sender->fields) {
      bytes += field.name.size() + field.value.value_or("").size();
    }
  }
  return hold_for_call(streams_->streams(), caller.principal().id, bytes,
                       "the parameters of this call");
}

}  // namespace sluice
