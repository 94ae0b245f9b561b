#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/session/contract/client_session_options.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/unique_function.hpp"
#include "json/json.hpp"
#include "protocol/client_capabilities.hpp"

namespace sluice {

/// What a server asks: one of the `inputRequests` of a result (2026-07-28, Multi Round-Trip
/// Requests), or a request of its own, whose key is what its `_meta` says (kQuestionKey).
struct AskedInput {
  std::string key = {};
  std::string method;
  json::object params;
};

/// What a server asks, on its way to whoever is asked here and back. Belongs to its session's loop.
class Questions {
 public:
  using Answer = UniqueFunction<void(Result<json::object>)>;

  Questions(Executor& loop, const ClientSessionOptions& options);
  /// Answers that come later are dropped.
  ~Questions();
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  /// Whether the client has offered to be asked that.
  [[nodiscard]] bool can_be_asked(std::string_view method, const json::object& params) const;
  /// The questions in a result, as far as `is_new` says so of their keys. Errors: kLimitReached, if
  /// there are more than ClientSessionOptions::max_questions or a key is longer than kMaxKey;
  /// kInvalidRequest, if the client has not offered to be asked one of them.
  [[nodiscard]] Result<std::vector<AskedInput>> inputs_of(
      const json::object& result, const std::function<bool(std::string_view key)>& is_new) const;

  /// Asks in a later turn, for the request of that number; 0: it is not known for which. `answer`
  /// is called once, unless the question is withdrawn first. Returns the question's number, which
  /// is never 0. Errors: kLimitReached, if the open questions take more than
  /// ClientSessionOptions::max_question_memory.
  std::uint64_t ask(AskedInput input, std::uint64_t request, Answer answer);
  /// Nobody waits for the answer any more. Whoever has been asked is told in a later turn.
  void withdraw(std::uint64_t number);

  /// Bytes of a key.
  static constexpr std::size_t kMaxKey = 256;

 private:
  struct Open {
    Answer answer;
    std::size_t memory = 0;
    bool is_asked = false;
  };
  /// What later turns use.
  struct State {
    std::function<void(ServerQuestion)> on_question;
    std::function<void(std::uint64_t)> on_withdrawn;
    std::map<std::uint64_t, Open> open;
    std::size_t memory = 0;  // of all that are open

    /// Closes the question if it is open, and calls `answer` with `said`.
    void settle(std::uint64_t number, Result<json::object> said);
    /// Closes the question. Empty: it was not open.
    std::optional<Open> close(std::uint64_t number);
  };

  Executor* loop_;
  const std::size_t most_;  // in one result
  const std::size_t most_memory_;
  const ClientCapabilities capabilities_;
  std::shared_ptr<State> state_;
  std::uint64_t last_number_;
};

}  // namespace sluice
