// sluice/call.hpp.

#include "sluice/call.hpp"

#include <expected>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/input_rounds.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"
#include "server/handlers/call_facts.hpp"
#include "server/sessions/session_storage.hpp"
#include "sluice/detail/type.hpp"

namespace sluice {
namespace {

std::string answer_text(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

const json::object& object_of(const json::value& answer) {
  static const json::object kNone;
  return answer.is_object() ? answer.get_object() : kNone;
}

ElicitAction action_of(const json::object& answer) {
  const std::string action = answer_text(answer, "action");
  if (action == "accept") return ElicitAction::accept;
  if (action == "decline") return ElicitAction::decline;
  return ElicitAction::cancel;
}

json::object as_json(const SamplingMessage& message, const Revision& revision) {
  std::string content;
  message.content.append_to(content, revision);
  const bool user = message.role == PromptMessage::Role::user;
  return {{"role", user ? "user" : "assistant"}, {"content", parse_json(content).value()}};
}

json::object as_json(const UrlElicitation& page) {
  return {{"mode", "url"},
          {"message", page.message},
          {"url", page.url},
          {"elicitationId", page.elicitation_id}};
}

/// Adds `more` to `keys`. Throws std::logic_error, and adds nothing, if there is a key twice.
void add_keys(std::set<std::string>& keys, const std::vector<std::string>& more) {
  std::set<std::string> added;
  for (const std::string& key : more) {
    if (!keys.contains(key) && added.insert(key).second) continue;
    throw std::logic_error("two questions of a handler have the key " + key +
                           ", but their answers come by their keys");
  }
  keys.merge(added);
}

/// Throws if no peer could read the question.
void expect_shallow(const Question& question) {
  for (const auto& [name, value] : question.params) {
    // The object of the parameters is a level too.
    if (!is_deeper_than(value, kMaxNestedDepth - 1)) continue;
    throw std::logic_error("the parameters of a question are nested in more than " +
                           std::to_string(kMaxNestedDepth) + " levels");
  }
}

std::vector<Question> one(Question question) {
  std::vector<Question> out;
  out.push_back(std::move(question));
  return out;
}

}  // namespace

Error url_elicitation_required(const std::vector<UrlElicitation>& pages) {
  json::array elicitations;
  for (const UrlElicitation& page : pages) elicitations.push_back(as_json(page));
  return {kUrlElicitationRequired, "The user has to open a page before this can be done",
          to_json(json::object{{"elicitations", std::move(elicitations)}})};
}

std::string SamplingResult::text() const {
  std::string out;
  for (const json::value& block : content) out.append(answer_text(object_of(block), "text"));
  return out;
}

const std::string& Call::principal() const {
  return backend_->facts().principal.id;
}

bool Call::is_isolated() const {
  return backend_->facts().principal.isolated;
}

const ClientFeatures& Call::client() const {
  return backend_->facts().client;
}

std::optional<ClientInfo> Call::client_info() const {
  const auto& sender = backend_->facts().sender;
  if (sender != nullptr && sender->info != nullptr) return *sender->info;
  const json::value* const said = meta().if_contains(kClientInfoKey);
  if (said == nullptr || !said->is_object()) return {};
  return decode_client_info(said->get_object());
}

std::optional<std::string_view> Call::header(std::string_view name) const {
  if (const auto& sender = backend_->facts().sender) {
    for (const RequestField& field : sender->fields) {
      if (to_lower(field.name) == to_lower(name)) return field.value;
    }
  }
  throw std::logic_error("ServerOptions::request_headers must name " + std::string(name) +
                         ", so that handlers may read it");
}

std::shared_ptr<void> Call::session_value(const void* type, std::shared_ptr<void> (*make)()) {
  const auto& sender = backend_->facts().sender;
  if (sender == nullptr || sender->storage == nullptr) return nullptr;
  return sender->storage->value(type, make);
}

const TraceContext* Call::trace() const {
  return backend_->facts().trace.get();
}

std::stop_token Call::stop_token() const {
  return backend_->facts().stop.get_token();
}

std::optional<std::chrono::steady_clock::time_point> Call::deadline() const {
  return backend_->facts().deadline;
}

std::string_view Call::revision() const {
  return backend_->facts().revision->name;
}

Awaiting<void> Call::room() {
  const auto arrival = std::make_shared<Awaiting<void>::Arrival>(backend_->loop());
  const std::uint64_t wait = backend_->when_room([arrival] { arrival->succeed({}); });
  arrival->set_withdraw([weak = backend_->loop().weak(), backend = backend_, wait] {
    if (const auto loop = weak.lock()) backend->forget_room(wait);
  });
  return Awaiting<void>(arrival);
}

Awaiting<std::vector<json::value>> Call::ask(std::vector<Question> questions) {
  using Answers = std::vector<json::value>;
  std::vector<std::string> keys;
  for (Question& question : questions) {
    expect_shallow(question);
    if (asked_ == kMaxQuestions) {
      throw Error{kLimitReached,
                  "A handler may ask at most " + std::to_string(kMaxQuestions) + " questions",
                  {}};
    }
    ++asked_;
    // The answer comes by the key as it was sent.
    question.key = valid_utf8(question.key);
    if (question.key.empty()) {
      question.key = "input-" + std::to_string(asked_);
    } else if (backend_->facts().revision->era == Era::legacy) {
      json::value& meta = question.params["_meta"];
      if (!meta.is_object()) meta.emplace_object();
      meta.get_object()[kQuestionKey] = question.key;
    }
    keys.push_back(question.key);
  }
  add_keys(keys_, keys);
  const auto arrival = std::make_shared<Awaiting<Answers>::Arrival>(backend_->loop());
  detail::Job withdraw =
      backend_->ask(std::move(questions), [arrival](std::expected<Answers, Error> answers) {
        if (answers) {
          arrival->succeed(std::move(*answers));
        } else {
          arrival->fail(std::make_exception_ptr(std::move(answers.error())));
        }
      });
  arrival->set_withdraw([this, weak = backend_->loop().weak(), keys = std::move(keys),
                         withdraw = std::move(withdraw)]() mutable {
    const auto loop = weak.lock();
    if (loop == nullptr) return;
    for (const std::string& key : keys) keys_.erase(key);
    if (withdraw) withdraw();
  });
  return Awaiting<Answers>(arrival);
}

Question Call::elicitation(const std::string& message, json::value schema, std::string key) {
  // MCP's restricted schemas have only the members `type`, `properties` and `required`.
  if (schema.is_object()) schema.get_object().erase("additionalProperties");
  return {.method = "elicitation/create",
          .params = {{"message", message}, {"requestedSchema", std::move(schema)}},
          .key = std::move(key)};
}

Question Call::sampling(SamplingRequest request, std::string key) const {
  json::array messages;
  for (const SamplingMessage& message : request.messages) {
    messages.push_back(as_json(message, *backend_->facts().revision));
  }
  json::object params = std::move(request.more);
  params["messages"] = std::move(messages);
  params["maxTokens"] = request.max_tokens;
  if (!request.system_prompt.empty()) params["systemPrompt"] = request.system_prompt;
  if (request.temperature) params["temperature"] = *request.temperature;
  if (!request.stop_sequences.empty()) {
    params["stopSequences"] =
        json::array(request.stop_sequences.begin(), request.stop_sequences.end());
  }
  return {.method = "sampling/createMessage", .params = std::move(params), .key = std::move(key)};
}

Task<Elicited<json::object>> Call::elicit(std::string message, json::value schema,
                                          std::string key) {
  const std::vector<json::value> answers =
      co_await ask(one(elicitation(message, std::move(schema), std::move(key))));
  const json::object& given = object_of(answers.front());
  Elicited<json::object> out{.action = action_of(given)};
  if (out.action == ElicitAction::accept) {
    const json::value* const content = given.if_contains("content");
    if (content == nullptr || !content->is_object()) throw_unfit("content must be an object");
    out.content = content->get_object();
  }
  co_return out;
}

Task<ElicitAction> Call::elicit_url(std::string message, std::string url,
                                    std::string elicitation_id) {
  json::object params = as_json({std::move(message), std::move(url), std::move(elicitation_id)});
  if (!backend_->facts().revision->elicitation_ids) params.erase("elicitationId");
  const std::vector<json::value> answers =
      co_await ask(one({.method = "elicitation/create", .params = std::move(params)}));
  co_return action_of(object_of(answers.front()));
}

Task<SamplingResult> Call::sample(SamplingRequest request, std::string key) {
  const std::vector<json::value> answers =
      co_await ask(one(sampling(std::move(request), std::move(key))));
  const json::object& given = object_of(answers.front());
  SamplingResult out{.content = {},
                     .model = answer_text(given, "model"),
                     .stop_reason = answer_text(given, "stopReason")};
  const json::value* const content = given.if_contains("content");
  if (content != nullptr && content->is_array()) {
    out.content = content->get_array();
  } else if (content != nullptr && content->is_object()) {
    out.content.push_back(*content);
  } else {
    throw_unfit("content must be a content block or an array of them");
  }
  co_return out;
}

Task<std::vector<Root>> Call::list_roots(std::string key) {
  const std::vector<json::value> answers =
      co_await ask(one({.method = "roots/list", .params = {}, .key = std::move(key)}));
  const json::value* const roots = object_of(answers.front()).if_contains("roots");
  if (roots == nullptr || !roots->is_array()) throw_unfit("roots must be an array");
  std::vector<Root> out;
  for (const json::value& root : roots->get_array()) {
    const json::object& given = object_of(root);
    out.push_back({answer_text(given, "uri"), answer_text(given, "name")});
  }
  co_return out;
}

void Call::decode_content(const detail::Type& type, const json::object& content, void* out) {
  DecodeError error;
  if (!detail::decode(type, content, out, "content", UnknownMembers::ignore, error)) {
    throw_unfit(error.describe());
  }
}

void Call::throw_unfit(const std::string& why) {
  throw Error{kInvalidParams, "The client's answer does not fit what it was asked: " + why, {}};
}

}  // namespace sluice
