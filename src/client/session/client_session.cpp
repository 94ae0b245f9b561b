#include "client/session/client_session.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "client/reply.hpp"
#include "core/log/log.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The pages of tools/list that are read for a call whose header fields were wrong.
constexpr int kMaxToolPages = 100;

/// A copy that outlives its message. A plain copy would use the memory of the parser too.
json::object own_copy(const json::object& of) {
  return {of, json::storage_ptr()};
}

/// The number that an id, as JSON text, stands for; 0 if it is none of ours.
std::int64_t number_of(std::string_view id) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return error == std::errc() && end == id.data() + id.size() ? number : 0;
}

/// The newest revision of `era` among the names in a JSON array; null if there is none.
const Revision* newest_of(const json::value* names, Era era) {
  if (names == nullptr || !names->is_array()) return nullptr;
  for (const Revision& each : revisions()) {
    if (each.era == era &&
        std::ranges::any_of(names->get_array(), [&each](const json::value& name) {
          return name.is_string() && name.get_string() == each.name;
        })) {
      return &each;
    }
  }
  return nullptr;
}

/// Whether an HTTP status says nothing about what the server speaks.
bool is_final(int status) {
  return status == kUnauthorized || status == kForbidden || status == kTooManyRequests ||
         status >= kInternalServerError;
}

/// Whether a request offers a progress token. Those that find out what the server speaks do not, so
/// that a server cannot keep them waiting.
bool offers_progress(std::string_view method) {
  return method != "initialize" && method != "server/discover";
}

RequestOptions cut_to_forever(const RequestOptions& options) {
  return {.idle_timeout = at_most_forever(options.idle_timeout),
          .timeout = at_most_forever(options.timeout)};
}

json::object description_of(const ClientInfo& info) {
  json::object out{{"name", info.name}, {"version", info.version}};
  if (!info.title.empty()) out["title"] = info.title;
  return out;
}

}  // namespace

ClientSession::ClientSession(Executor& loop, std::unique_ptr<ServerLink> link, Options options)
    : loop_(&loop),
      options_(std::move(options)),
      capabilities_(
          decode_client_capabilities(options_.capabilities, newest_revision(Era::modern))),
      link_(std::move(link)) {}

ClientSession::~ClientSession() {
  for (auto& [number, request] : requests_) disarm(request);
}

// --- connecting ---------------------------------------------------------------------------------

void ClientSession::connect(std::function<void(Result<ServerDescription>)> done) {
  connecting_ = std::move(done);
  const Revision* const pinned =
      options_.revision.empty() ? nullptr : find_revision(options_.revision);
  if (!options_.revision.empty() && pinned == nullptr) {
    loop_->post([self = shared_from_this()] {
      self->fail_to_connect({kUnsupportedProtocolVersion,
                             "This client does not speak revision \"" + self->options_.revision +
                                 "\", but " + revisions_json(),
                             {}});
    });
    return;
  }
  link_->open(*this);
  if (pinned != nullptr && pinned->era == Era::modern && !options_.asks_first) {
    server_.revision = pinned;
    loop_->post([weak = weak_from_this(), pinned] {
      const auto self = weak.lock();
      if (self != nullptr && self->connecting_) self->connected(*pinned, {});
    });
  } else if (pinned != nullptr && pinned->era == Era::legacy) {
    initialize(*pinned);
  } else {
    discover(pinned != nullptr ? *pinned : newest_revision(Era::modern));
  }
}

void ClientSession::discover(const Revision& revision) {
  server_.revision = &revision;
  begin("server/discover", {}, {.idle_timeout = options_.probe_timeout, .timeout = {}},
        {.on_progress = {}, .on_answer = [this, &revision](Result<json::object> answer) {
           on_discovered(revision, std::move(answer));
         }});
}

void ClientSession::on_discovered(const Revision& asked, Result<json::object> answer) {
  if (lost_) return;
  if (answer) {
    const Revision* const newest = newest_of(answer->if_contains("supportedVersions"), Era::modern);
    const bool is_free = newest != nullptr && options_.revision.empty();
    return connected(is_free ? *newest : asked, std::move(*answer));
  }
  const Error& error = answer.error();
  if (error.code == kUnsupportedProtocolVersion) {
    const Result<json::value> data = parse_json(error.data);
    const json::object* const members = data ? data->if_object() : nullptr;
    const json::value* const names =
        members == nullptr ? nullptr : members->if_contains("supported");
    if (options_.revision.empty() && !std::exchange(has_probed_, true)) {
      if (const Revision* const modern = newest_of(names, Era::modern)) return discover(*modern);
      if (const Revision* const legacy = newest_of(names, Era::legacy)) return initialize(*legacy);
    }
    return fail_to_connect(error);
  }
  if (!options_.revision.empty()) return fail_to_connect(error);
  // Whatever else it says, it does not know the question: it is a legacy server, or it has died of
  // the question.
  if (!link_->reopen()) return fail_to_connect(error);
  initialize(newest_revision(Era::legacy));
}

void ClientSession::initialize(const Revision& revision) {
  server_.revision = &revision;
  begin("initialize",
        {{"protocolVersion", revision.name},
         {"capabilities", options_.capabilities},
         {"clientInfo", description_of(options_.info)}},
        {.idle_timeout = options_.connect_timeout, .timeout = {}},
        {.on_progress = {},
         .on_answer = [this](Result<json::object> answer) { on_initialized(std::move(answer)); }});
}

void ClientSession::on_initialized(Result<json::object> answer) {
  if (lost_) return;
  if (!answer) return fail_to_connect(std::move(answer.error()));
  const std::string name(text_at(*answer, "protocolVersion"));
  const Revision* const agreed = find_revision(name);
  if (agreed == nullptr || agreed->era != Era::legacy ||
      (!options_.revision.empty() && options_.revision != name)) {
    return fail_to_connect({kUnsupportedProtocolVersion,
                            "The server speaks revision \"" + name + "\", which " +
                                (agreed == nullptr ? "is not known here" : "was not asked for"),
                            {}});
  }
  server_.revision = agreed;
  if (Result<void> sent = notify("notifications/initialized", {}); !sent) {
    return fail_to_connect(std::move(sent.error()));
  }
  connected(*agreed, std::move(*answer));
}

void ClientSession::connected(const Revision& revision, json::object about) {
  server_ = {.revision = &revision, .about = std::move(about)};
  if (is_renewing_) return renewed({});
  if (const auto done = std::exchange(connecting_, {})) done(server_);
}

void ClientSession::on_session_over(const RequestId& id) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const auto found = by_id_.find(number_of(id));
  if (found == by_id_.end()) return;
  const Number number = found->second;
  Request& request = requests_.at(number);
  if (request.was_held || request.method == "initialize") {
    return end(number, fail(kNotFound, "The server has forgotten the session again"));
  }
  by_id_.erase(std::exchange(request.id, 0));
  disarm_idle(request);
  request.was_held = true;
  held_.push_back(number);
  renew();
}

/// Begins a new session in place of the one that is forgotten.
void ClientSession::renew() {
  if (std::exchange(is_renewing_, true)) return;
  // The new session may use the ids of the old one's questions again.
  withdraw_asked();
  initialize(*server_.revision);
}

/// Sends what has waited for the new session, or says why there is none.
void ClientSession::renewed(const Result<void>& outcome) {
  is_renewing_ = false;
  has_no_session_ = !outcome;
  for (const Number number : std::exchange(held_, {})) {
    const auto found = requests_.find(number);
    if (found == requests_.end()) continue;
    Request& request = found->second;
    if (!outcome) {
      end_later(number, outcome.error());
    } else if (Result<void> sent = send_round(number, request, request.params); !sent) {
      end_later(number, std::move(sent.error()));
    } else {
      arm(number, request);
    }
  }
  if (outcome && options_.on_renewed) options_.on_renewed();
}

void ClientSession::fail_to_connect(Error why) {
  if (is_renewing_) return renewed(std::unexpected(std::move(why)));
  if (const auto done = std::exchange(connecting_, {})) done(std::unexpected(std::move(why)));
}

// --- requests -----------------------------------------------------------------------------------

ClientSession::Number ClientSession::begin(std::string method, json::object params,
                                           const RequestOptions& options,
                                           RequestCallbacks callbacks) {
  const Number number = ++last_number_;
  // A full house must not keep the session from being replaced.
  const bool is_too_many = requests_.size() >= options_.max_requests && method != "initialize";
  Request& request = requests_
                         .emplace(number, Request{.method = std::move(method),
                                                  .params = std::move(params),
                                                  .options = cut_to_forever(options),
                                                  .callbacks = std::move(callbacks),
                                                  .faults = faults_})
                         .first->second;
  if (lost_) {
    end_later(number,
              {kInternalError, "The connection to the server is over: " + lost_->message, {}});
  } else if (is_too_many) {
    end_later(number, {kLimitReached,
                       "There are " + std::to_string(options_.max_requests) +
                           " unanswered requests to this server",
                       {}});
  } else {
    const bool waits = (is_renewing_ || has_no_session_) && request.method != "initialize";
    const Result<void> sent = waits ? Result<void>() : send_round(number, request, request.params);
    if (!sent) {
      end_later(number, sent.error());
      return number;
    }
    if (waits) {
      held_.push_back(number);
      request.was_held = true;
      renew();
    } else {
      arm(number, request);
    }
    if (request.options.timeout > Duration()) {
      request.timer = loop_->schedule_at(loop_->clock().now() + request.options.timeout,
                                         [weak = weak_from_this(), number] {
                                           if (const auto self = weak.lock())
                                             self->give_up(number, "it took too long");
                                         });
    }
  }
  return number;
}

/// Sends the next round. Its id is also its progress token.
Result<void> ClientSession::send_round(Number number, Request& request, json::object params) {
  const std::int64_t id = ++last_id_;
  if (offers_progress(request.method)) {
    json::value& meta = params["_meta"];
    if (!meta.is_object()) meta.emplace_object();
    meta.get_object()["progressToken"] = id;
  }
  request.id = id;
  by_id_[id] = number;
  return send({{"jsonrpc", "2.0"}, {"id", id}, {"method", request.method}}, std::move(params),
              request.method, std::to_string(id));
}

Result<void> ClientSession::notify(std::string_view method, json::object params) {
  return send({{"jsonrpc", "2.0"}, {"method", method}}, std::move(params), std::string(method), {});
}

Result<void> ClientSession::send(json::object message, json::object params, std::string method,
                                 RequestId id) {
  const Revision& revision = *server_.revision;
  if (revision.era == Era::modern) {
    json::value& meta = params["_meta"];
    if (!meta.is_object()) meta.emplace_object();
    json::object& members = meta.get_object();
    members["io.modelcontextprotocol/protocolVersion"] = revision.name;
    members[kClientInfoKey] = description_of(options_.info);
    members["io.modelcontextprotocol/clientCapabilities"] = options_.capabilities;
  }
  const auto mirrored = mirrored_parameter(method);
  std::string name(mirrored ? text_at(params, *mirrored) : std::string_view());
  std::vector<std::pair<std::string, std::string>> headers;
  if (method == "tools/call" && mirrors_parameters()) {
    const json::object* const arguments = object_at(params, "arguments");
    if (arguments != nullptr) headers = tool_headers_.of_call(name, *arguments);
  }
  if (!params.empty()) message["params"] = std::move(params);
  return link_->send({.text = to_json(message),
                      .id = std::move(id),
                      .method = std::move(method),
                      .name = std::move(name),
                      .revision = &revision,
                      .headers = std::move(headers)});
}

bool ClientSession::mirrors_parameters() const {
  return server_.revision->routing_headers && link_->carries_headers();
}

void ClientSession::arm(Number number, Request& request) {
  disarm_idle(request);
  if (request.options.idle_timeout <= Duration()) return;
  request.idle_timer = loop_->schedule_at(
      loop_->clock().now() + request.options.idle_timeout, [weak = weak_from_this(), number] {
        if (const auto self = weak.lock()) self->give_up(number, "the server was silent too long");
      });
}

void ClientSession::disarm_idle(Request& request) {
  if (request.idle_timer != 0) loop_->cancel(std::exchange(request.idle_timer, 0));
}

void ClientSession::disarm(Request& request) {
  disarm_idle(request);
  if (request.timer != 0) loop_->cancel(std::exchange(request.timer, 0));
}

void ClientSession::give_up(Number number, const char* what) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  tell_cancelled(found->second, what);
  end(number,
      std::unexpected(explained(
          found->second, {kTimedOut, "No answer to " + found->second.method + ": " + what, {}})));
}

void ClientSession::cancel(Number number) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  Request request = std::move(found->second);
  disarm(request);
  by_id_.erase(request.id);
  requests_.erase(found);
  tell_cancelled(request, "nobody waits for the answer");
  withdraw(request);
}

void ClientSession::close(std::function<void()> done) {
  for (auto& [number, request] : requests_) disarm(request);
  requests_.clear();
  by_id_.clear();
  asked_.clear();
  connecting_ = {};
  link_->close(std::move(done));
}

void ClientSession::tell_cancelled(const Request& request, std::string_view reason) {
  // A client must not cancel `initialize` (2025-11-25, Cancellation), and a server that is silent
  // on the probe knows no cancellation.
  if (request.id == 0 || lost_ || request.method == "initialize" ||
      request.method == "server/discover") {
    return;
  }
  if (link_->drop(std::to_string(request.id))) return;
  const Result<void> sent =
      notify("notifications/cancelled", {{"requestId", request.id}, {"reason", reason}});
  if (!sent) log_debug("a cancellation could not be sent", {{"why", sent.error().message}});
}

void ClientSession::end(Number number, Result<json::object> answer) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  Request request = std::move(found->second);
  disarm(request);
  by_id_.erase(request.id);
  requests_.erase(found);
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  withdraw(request);
  if (request.callbacks.on_answer) request.callbacks.on_answer(std::move(answer));
}

void ClientSession::end_later(Number number, Error why) {
  loop_->post([weak = weak_from_this(), number, why = std::move(why)]() mutable {
    if (const auto self = weak.lock()) self->end(number, std::unexpected(std::move(why)));
  });
}

// --- what the server sends ----------------------------------------------------------------------

bool ClientSession::take(std::string_view text, const RequestId* only) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  if (!server_.revision->batches || !is_batch(text)) return take_one(text, only);
  // The texts point into `text`, so each can be parsed by itself.
  const auto texts = parser_.parse_batch(text, options_.max_requests);
  if (!texts) return take_one(text, only);
  bool is_right = true;
  for (const std::string_view each : *texts) {
    is_right &= take_one(each, only);
    // Nobody else has it any more: a callback has destroyed it.
    if (keep.use_count() == 1) break;
  }
  return is_right;
}

bool ClientSession::take_one(std::string_view text, const RequestId* only) {
  const std::expected<Message, MessageError> message = parser_.parse(text);
  if (!message) {
    if (only != nullptr && response_id_of(text) != *only) text = {};
    on_unreadable(text, message.error().error);
    return true;
  }
  switch (message->kind) {
    case MessageKind::response:
      if (only != nullptr && *only != message->id) return false;
      on_response(*message);
      break;
    case MessageKind::request:
      on_request(*message, only);
      break;
    case MessageKind::notification:
      on_notification(*message, only);
      break;
  }
  return true;
}

void ClientSession::on_unreadable(std::string_view text, const Error& why) {
  if (const auto left_out = logged_faults_.take()) {
    log_warning("a server has sent what is no message",
                {{"why", std::string_view(why.message)}, {"left_out", *left_out}});
  }
  ++faults_;
  last_fault_ = why.message;
  // If it was to be an answer, nobody waits for it in vain.
  unanswered(response_id_of(text),
             {kInternalError, "The server's answer cannot be read: " + why.message, {}});
}

void ClientSession::on_response(const Message& message) {
  const auto found = by_id_.find(number_of(message.id));
  if (found == by_id_.end()) {
    log_debug("a server has answered what nobody waits for",
              {{"id", std::string_view(message.id)}});
    return;
  }
  const Number number = found->second;
  Request& request = requests_.at(number);
  if (auto error = error_of(*message.body)) {
    const bool may_have_changed = error->code == kHeaderMismatch &&
                                  request.method == "tools/call" && mirrors_parameters() &&
                                  !std::exchange(request.was_refreshed, true);
    if (!may_have_changed) return end(number, std::unexpected(*std::move(error)));
    by_id_.erase(std::exchange(request.id, 0));
    if (request.idle_timer != 0) loop_->cancel(std::exchange(request.idle_timer, 0));
    return refresh_tools(number, *error, {}, 0);
  }
  const json::object* const result = object_at(*message.body, "result");
  if (result == nullptr) {
    return end(number, fail(kInternalError, "The server's answer has no object as its result"));
  }
  if (server_.revision->result_type && text_at(*result, "resultType") == "input_required") {
    return on_input_required(number, *result);
  }
  json::object answer = own_copy(*result);
  if (request.method == "tools/list" && mirrors_parameters()) tool_headers_.learn(answer);
  end(number, std::move(answer));
}

void ClientSession::refresh_tools(Number number, const Error& why, std::string cursor, int pages) {
  json::object params;
  if (!cursor.empty()) params["cursor"] = cursor;
  begin("tools/list", std::move(params), {},
        {.on_progress = {}, .on_answer = [this, number, why, pages](Result<json::object> answer) {
           const auto found = requests_.find(number);
           if (found == requests_.end()) return;
           if (!answer) return end(number, std::unexpected(why));
           const std::string_view next = text_at(*answer, "nextCursor");
           if (!next.empty() && pages + 1 < kMaxToolPages) {
             return refresh_tools(number, why, std::string(next), pages + 1);
           }
           Request& request = found->second;
           if (Result<void> sent = send_round(number, request, request.params); !sent) {
             return end(number, std::unexpected(std::move(sent.error())));
           }
           arm(number, request);
         }});
}

/// The server needs answers before it goes on (2026-07-28, Multi Round-Trip Requests).
void ClientSession::on_input_required(Number number, const json::object& result) {
  Request& request = requests_.at(number);
  by_id_.erase(std::exchange(request.id, 0));
  disarm_idle(request);
  if (++request.rounds > options_.max_rounds) {
    return end(number, fail(kLimitReached, "The server asks for more input in each of " +
                                               std::to_string(options_.max_rounds) + " rounds"));
  }
  request.inputs = {};
  json::object& next = request.params;
  next.erase("inputResponses");
  next.erase("requestState");
  if (const json::value* const state = result.if_contains("requestState")) {
    next["requestState"] = *state;
  }
  std::vector<ServerQuestion> questions;
  if (const json::object* const wanted = object_at(result, "inputRequests")) {
    if (wanted->size() > options_.max_questions) {
      return end(number,
                 fail(kLimitReached, "The server asks for " + std::to_string(wanted->size()) +
                                         " inputs at once; this client takes " +
                                         std::to_string(options_.max_questions)));
    }
    for (const auto& [key, value] : *wanted) {
      const json::object* const members = value.if_object();
      const json::object* const params =
          members == nullptr ? nullptr : object_at(*members, "params");
      ServerQuestion& question = questions.emplace_back();
      question.number = ++last_question_;
      question.request = number;
      question.key = key;
      if (members != nullptr) question.method = text_at(*members, "method");
      if (params != nullptr) question.params = own_copy(*params);
      if (!can_be_asked(question.method, question.params)) {
        return end(number, fail(kInvalidRequest, "The server asks for \"" + question.method +
                                                     "\", which this client has not offered"));
      }
      request.open_inputs.emplace(question.number, key);
    }
  }
  if (questions.empty()) return next_round(number, request);
  for (ServerQuestion& question : questions) {
    question.answer = [weak = weak_from_this(), number,
                       asked = question.number](Result<json::object> answer) {
      if (const auto self = weak.lock()) self->on_input(number, asked, std::move(answer));
    };
    loop_->post([weak = weak_from_this(), number, question = std::move(question)]() mutable {
      const auto self = weak.lock();
      if (self == nullptr) return;
      // Who was asked before may have cancelled the request.
      const auto found = self->requests_.find(number);
      if (found == self->requests_.end() || !found->second.open_inputs.contains(question.number)) {
        return;
      }
      self->options_.on_question(std::move(question));
    });
  }
}

void ClientSession::on_input(Number number, std::uint64_t question, Result<json::object> answer) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  Request& request = found->second;
  const auto open = request.open_inputs.find(question);
  if (open == request.open_inputs.end()) return;
  const std::string key = std::move(open->second);
  request.open_inputs.erase(open);
  if (!answer) return end_later(number, std::move(answer.error()));
  request.inputs[key] = std::move(*answer);
  if (request.open_inputs.empty()) next_round(number, request);
}

void ClientSession::next_round(Number number, Request& request) {
  if (!request.inputs.empty()) request.params["inputResponses"] = std::move(request.inputs);
  if (Result<void> sent = send_round(number, request, request.params); !sent) {
    return end_later(number, std::move(sent.error()));
  }
  arm(number, request);
}

/// Tells whoever is asked for input that the request is over.
void ClientSession::withdraw(const Request& request) {
  for (const auto& [question, key] : request.open_inputs) withdraw_later(question);
}

/// Nobody waits any more for the answers to what the server has asked.
void ClientSession::withdraw_asked() {
  for (const auto& [id, question] : std::exchange(asked_, {})) withdraw_later(question);
}

void ClientSession::withdraw_later(std::uint64_t question) {
  if (!options_.on_withdrawn) return;
  loop_->post([weak = weak_from_this(), question] {
    if (const auto self = weak.lock()) self->options_.on_withdrawn(question);
  });
}

bool ClientSession::can_be_asked(std::string_view method, const json::object& params) const {
  const bool is_known = method == "elicitation/create" || method == "sampling/createMessage" ||
                        method == "roots/list";
  return options_.on_question && is_known &&
         missing_capabilities(capabilities_, method, params).empty();
}

void ClientSession::reply(const RequestId& id, const json::object& members) {
  if (lost_) return;
  // The id goes back as it came, so the text is put together around it.
  const std::string rest = to_json(members);
  std::string text = R"({"jsonrpc":"2.0","id":)" + id + ",";
  text.append(std::string_view(rest).substr(1));
  const Result<void> sent = link_->send({.text = std::move(text), .revision = server_.revision});
  if (sent) return;
  if (const auto left_out = logged_faults_.take()) {
    log_warning("an answer to a server could not be sent",
                {{"why", std::string_view(sent.error().message)}, {"left_out", *left_out}});
  }
}

ClientSession::Number ClientSession::request_of(const RequestId* reply_to) const {
  const auto found = reply_to == nullptr ? by_id_.end() : by_id_.find(number_of(*reply_to));
  return found == by_id_.end() ? 0 : found->second;
}

void ClientSession::on_request(const Message& message, const RequestId* reply_to) {
  const auto refuse = [this, &message](int code, std::string_view why) {
    reply(message.id, {{"error", {{"code", code}, {"message", why}}}});
  };
  if (message.method == "ping") return reply(message.id, {{"result", json::object()}});
  if (!can_be_asked(message.method, params_of(message))) {
    return refuse(kMethodNotFound, "This client cannot be asked that");
  }
  if (asked_.size() >= options_.max_questions) {
    return refuse(kLimitReached, "Too many questions are open");
  }
  const std::uint64_t number = ++last_question_;
  if (!asked_.emplace(message.id, number).second) {
    return refuse(kInvalidRequest, "A request with this id is still unanswered");
  }
  auto answer = [weak = weak_from_this(), id = message.id, number](Result<json::object> said) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    // The server may have taken it back, and used its id again.
    const auto found = self->asked_.find(id);
    if (found == self->asked_.end() || found->second != number) return;
    self->asked_.erase(found);
    if (said) return self->reply(id, {{"result", std::move(*said)}});
    json::object error{{"code", said.error().code}, {"message", said.error().message}};
    if (Result<json::value> data = parse_json(said.error().data)) error["data"] = *data;
    self->reply(id, {{"error", std::move(error)}});
  };
  options_.on_question({.number = number,
                        .request = request_of(reply_to),
                        .method = std::string(message.method),
                        .params = own_copy(params_of(message)),
                        .answer = std::move(answer)});
}

void ClientSession::on_notification(const Message& message, const RequestId* reply_to) {
  const json::object& params = params_of(message);
  if (message.method == "notifications/cancelled") {
    const json::value* const id = params.if_contains("requestId");
    if (id == nullptr) return;
    const auto text = exact_text(*id, message.text, {"params", "requestId"});
    const auto found = text ? asked_.find(*text) : asked_.end();
    if (found == asked_.end()) return;
    const std::uint64_t question = found->second;
    asked_.erase(found);
    if (options_.on_withdrawn) options_.on_withdrawn(question);
    return;
  }
  if (message.method == "notifications/progress") {
    const json::value* const token = params.if_contains("progressToken");
    const auto found =
        token == nullptr || !token->is_int64() ? by_id_.end() : by_id_.find(token->get_int64());
    if (found == by_id_.end()) return;
    Request& request = requests_.at(found->second);
    if (!offers_progress(request.method)) return;
    arm(found->second, request);
    // The callback may end the request.
    if (const auto on_progress = request.callbacks.on_progress) on_progress(own_copy(params));
    return;
  }
  const auto request = requests_.find(request_of(reply_to));
  const auto told = request != requests_.end() && request->second.callbacks.on_notification
                        ? request->second.callbacks.on_notification
                        : options_.on_notification;
  if (told) told(message.method, own_copy(params));
}

void ClientSession::on_unanswered(const RequestId& id, const Error& why) {
  const auto found = by_id_.find(number_of(id));
  if (found != by_id_.end()) unanswered(id, explained(requests_.at(found->second), why));
}

Error ClientSession::explained(const Request& request, Error why) const {
  if (faults_ > request.faults) {
    why.message += "; the server has sent a message that cannot be read: " + last_fault_;
  }
  return why;
}

void ClientSession::unanswered(const RequestId& id, const Error& why) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const auto found = by_id_.find(number_of(id));
  if (found == by_id_.end()) return;
  const bool is_connecting =
      connecting_ || (is_renewing_ && requests_.at(found->second).method == "initialize");
  if (!is_connecting || !is_final(why.code)) return end(found->second, std::unexpected(why));
  // Nothing else that is sent to this server would be answered.
  disarm(requests_.at(found->second));
  requests_.erase(found->second);
  by_id_.erase(found);
  fail_to_connect(why);
}

bool ClientSession::awaits(const RequestId& id) const {
  return by_id_.contains(number_of(id));
}

void ClientSession::on_lost(const Error& why) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  // A server may end when it does not understand the probe.
  const bool may_be_legacy = !is_final(why.code) || why.code == kLostConnection;
  const bool is_probe = connecting_ && server_.revision->era == Era::modern &&
                        options_.revision.empty() && may_be_legacy && link_->reopen();
  if (is_probe) {
    for (Requests failed = std::exchange(requests_, {}); auto& [number, request] : failed) {
      disarm(request);
    }
    by_id_.clear();
    return initialize(newest_revision(Era::legacy));
  }
  lost_ = why;
  // Each in a task of its own, because each may destroy the session or begin requests.
  withdraw_asked();
  for (const auto& [number, request] : requests_) end_later(number, why);
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->fail_to_connect(*self->lost_);
  });
  loop_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (const auto told = std::exchange(self->options_.on_lost, {})) told(*self->lost_);
  });
}

}  // namespace sluice
