#include "client/session/questions/server_requests.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "json/members.hpp"
#include "protocol/input_rounds.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// What the answer's `_meta` has in common with the question's: the task that both belong to
/// (2025-11-25, Tasks, Associating Task-Related Messages).
json::object meta_of_answer(const json::object& params) {
  const json::object* const meta = object_at(params, "_meta");
  const json::value* const task = meta == nullptr ? nullptr : meta->if_contains(kRelatedTaskKey);
  if (task == nullptr) return {};
  return {{kRelatedTaskKey, json::value(*task, json::storage_ptr())}};
}

/// The key that the server names for its question, which leaves `params`. Empty: none.
std::string take_key(json::object& params) {
  json::value* const meta = params.if_contains("_meta");
  if (meta == nullptr || !meta->is_object()) return {};
  json::object& members = meta->get_object();
  std::string key(text_at(members, kQuestionKey));
  if (members.erase(kQuestionKey) > 0 && members.empty()) params.erase("_meta");
  return key.size() > Questions::kMaxKey ? std::string() : key;
}

/// The most that may take in memory: each answer has a copy.
constexpr std::size_t kMaxMeta = 4096;

}  // namespace

void ServerRequests::refuse(const RequestId& id, std::string_view why) {
  reply(id, {{"error", {{"code", kInvalidRequest}, {"message", why}}}});
}

void ServerRequests::on_request(const Message& message, std::uint64_t request) {
  const auto refuse = [this, &message](int code, std::string_view why) {
    reply(message.id, {{"error", {{"code", code}, {"message", why}}}});
  };
  const json::object& params = params_of(message);
  if (message.method == "ping") return reply(message.id, {{"result", json::object()}});
  if (!questions_->can_be_asked(message.method, params)) {
    return refuse(kMethodNotFound, "This client cannot be asked that");
  }
  if (open_.contains(message.id)) {
    return refuse(kInvalidRequest, "A request with this id is still unanswered");
  }
  json::object meta = meta_of_answer(params);
  if (size_of(meta).memory() > kMaxMeta) {
    return refuse(kInvalidRequest, "The related task is longer than this client takes");
  }
  if (open_.size() >= most_) return refuse(kLimitReached, "Too many questions are open");
  AskedInput asked{.method = std::string(message.method),
                   .params = json::object(params, json::storage_ptr())};
  asked.key = take_key(asked.params);
  Open& open = open_[message.id];
  open.request = request;
  open.question = questions_->ask(
      std::move(asked), request,
      [this, id = message.id, request, meta = std::move(meta)](Result<json::object> said) mutable {
        open_.erase(id);
        on_turn_(request);
        if (said) {
          for (const auto& [key, value] : meta) {
            json::value& members = (*said)["_meta"];
            if (!members.is_object()) members.emplace_object();
            members.get_object()[key] = value;
          }
          return reply(id, {{"result", std::move(*said)}});
        }
        json::object error{{"code", said.error().code}, {"message", said.error().message}};
        if (Result<json::value> data = parse_json(said.error().data)) error["data"] = *data;
        reply(id, {{"error", std::move(error)}});
      });
  on_turn_(request);
}

void ServerRequests::on_cancelled(const Message& message) {
  const json::value* const id = params_of(message).if_contains("requestId");
  if (id == nullptr) return;
  const auto text = exact_text(*id, message.text, {"params", "requestId"});
  if (!text) return;
  const auto taken = open_.extract(*text);
  if (taken.empty()) return;
  questions_->withdraw(taken.mapped().question);
  on_turn_(taken.mapped().request);
}

void ServerRequests::withdraw_all() {
  const auto withdrawn = std::exchange(open_, {});
  for (const auto& [id, open] : withdrawn) questions_->withdraw(open.question);
  if (!withdrawn.empty()) on_turn_(0);
}

bool ServerRequests::is_our_turn(std::uint64_t request) const {
  return std::ranges::any_of(open_, [request](const auto& each) {
    return each.second.request == 0 || each.second.request == request;
  });
}

void ServerRequests::reply(const RequestId& id, const json::object& members) {
  // The id goes back as it came, so the text is put together around it.
  const std::string rest = to_json(members);
  std::string text = R"({"jsonrpc":"2.0","id":)" + id + ",";
  text.append(std::string_view(rest).substr(1));
  send_(std::move(text));
}

}  // namespace sluice
