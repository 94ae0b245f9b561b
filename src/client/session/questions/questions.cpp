#include "client/session/questions/questions.hpp"

#include <utility>

#include "json/members.hpp"
#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

Questions::Questions(Executor& loop, const ClientSessionOptions& options)
    : loop_(&loop),
      most_(options.max_questions),
      most_memory_(options.max_question_memory),
      capabilities_(decode_client_capabilities(options.capabilities, newest_revision(Era::modern))),
      state_(std::make_shared<State>(State{
          .on_question = options.on_question, .on_withdrawn = options.on_withdrawn, .open = {}})),
      last_number_(options.first_question) {}

Questions::~Questions() {
  // Whoever waits for an answer may be gone before `state_` is.
  state_->open.clear();
}

bool Questions::can_be_asked(std::string_view method, const json::object& params) const {
  const bool is_known = method == "elicitation/create" || method == "sampling/createMessage" ||
                        method == "roots/list";
  return state_->on_question && is_known &&
         missing_capabilities(capabilities_, method, params).empty();
}

Result<std::vector<AskedInput>> Questions::inputs_of(
    const json::object& result, const std::function<bool(std::string_view key)>& is_new) const {
  std::vector<AskedInput> out;
  const json::object* const wanted = object_at(result, "inputRequests");
  if (wanted == nullptr) return out;
  if (wanted->size() > most_) {
    return fail(kLimitReached, "The server asks for " + std::to_string(wanted->size()) +
                                   " inputs at once; this client takes " + std::to_string(most_));
  }
  for (const auto& [key, value] : *wanted) {
    if (key.size() > kMaxKey) {
      return fail(kLimitReached, "The server names an input with " + std::to_string(key.size()) +
                                     " bytes; this client takes " + std::to_string(kMaxKey));
    }
    if (!is_new(key)) continue;
    const json::object* const members = value.if_object();
    const json::object* const params = members == nullptr ? nullptr : object_at(*members, "params");
    AskedInput& input = out.emplace_back();
    input.key = key;
    if (members != nullptr) input.method = text_at(*members, "method");
    if (params != nullptr) input.params = json::object(*params, json::storage_ptr());
    if (!can_be_asked(input.method, input.params)) {
      return fail(kInvalidRequest, "The server asks for \"" + input.method +
                                       "\", which this client has not offered");
    }
  }
  return out;
}

std::optional<Questions::Open> Questions::State::close(std::uint64_t number) {
  auto taken = open.extract(number);
  if (taken.empty()) return std::nullopt;
  memory -= taken.mapped().memory;
  return std::move(taken.mapped());
}

void Questions::State::settle(std::uint64_t number, Result<json::object> said) {
  if (auto closed = close(number)) closed->answer(std::move(said));
}

std::uint64_t Questions::ask(AskedInput input, std::uint64_t request, Answer answer) {
  const std::uint64_t number = ++last_number_;
  json::value params(std::move(input.params));
  const std::size_t memory = size_of(params).memory() + input.key.size();
  if (memory > most_memory_ - state_->memory) {
    state_->open.emplace(number, Open{.answer = std::move(answer)});
    loop_->post([weak = std::weak_ptr(state_), number] {
      if (const auto state = weak.lock()) {
        state->settle(number, fail(kLimitReached,
                                   "The server's questions take more memory than this client has "
                                   "for them"));
      }
    });
    return number;
  }
  input.params = std::move(params.get_object());
  state_->memory += memory;
  state_->open.emplace(number, Open{.answer = std::move(answer), .memory = memory});
  loop_->post([weak = std::weak_ptr(state_), number, request, input = std::move(input)]() mutable {
    const auto state = weak.lock();
    if (state == nullptr) return;
    const auto found = state->open.find(number);
    if (found == state->open.end()) return;
    found->second.is_asked = true;
    state->on_question({.number = number,
                        .request = request,
                        .key = std::move(input.key),
                        .method = std::move(input.method),
                        .params = std::move(input.params),
                        .answer = [weak, number](Result<json::object> said) {
                          const auto asker = weak.lock();
                          if (asker != nullptr) asker->settle(number, std::move(said));
                        }});
  });
  return number;
}

void Questions::withdraw(std::uint64_t number) {
  const auto closed = state_->close(number);
  if (!closed || !closed->is_asked || !state_->on_withdrawn) return;
  loop_->post([weak = std::weak_ptr(state_), number] {
    if (const auto state = weak.lock()) state->on_withdrawn(number);
  });
}

}  // namespace sluice
