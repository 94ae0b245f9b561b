#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"
#include "engine/methods/run_call.hpp"

namespace sluice {

/// What a client has set for its runs, and what was said in them, as a handle of RKLLM's C
/// interface keeps it. Thread-safe.
class ModelSession : public std::enable_shared_from_this<ModelSession> {
 public:
  // The most bytes of its template, of its tools, and of what was said in it.
  static constexpr std::size_t kMaxTemplate = std::size_t{64} << 10U;
  static constexpr std::size_t kMaxTools = std::size_t{256} << 10U;
  static constexpr std::size_t kMaxHistory = std::size_t{4} << 20U;
  /// The most runs that are kept.
  static constexpr std::size_t kMaxTurns = 1000;
  /// The most bytes of a prompt that its template makes of what is said.
  static constexpr std::size_t kMaxRendered = std::size_t{16} << 20U;

  /// A run with keep_history, which is kept when its answer is whole. Its destructor lets the next
  /// one begin.
  class Turn {
   public:
    Turn(std::shared_ptr<ModelSession> session, ChatMessage said)
        : session_(std::move(session)), said_(std::move(said)) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// More of the answer. What is too long for a session is not kept.
    void append(const Delta& delta);
    /// The answer is over. It is kept unless it failed or was cancelled.
    void end(const Completion& completion);

   private:
    std::shared_ptr<ModelSession> session_;
    ChatMessage said_;
    ChatMessage answer_;
    std::size_t bytes_ = 0;
    bool is_too_long_ = false;
  };

  /// What it holds counts against `memory`.
  ModelSession(const RunSettings& settings, std::shared_ptr<MemoryShare> memory)
      : settings_(settings), memory_(std::move(memory)) {}

  // These replace what was set before. Errors: -32602 for texts that are too long; kLimitReached if
  // the client has no memory for them.
  Result<void> set_chat_template(std::string system, std::string prefix, std::string postfix);
  Result<void> set_function_tools(std::string system, std::string tools);

  void clear();
  /// The tokens of the conversation, as far as the engine has told.
  [[nodiscard]] std::uint32_t tokens() const;

  /// Runs that say nothing else use these from now on.
  void change_settings(const RunSettings& settings);
  /// Adds to a run what was set and said. Returns its turn, if it is one that is kept. Errors:
  /// kInvalidRequest if another one is under way, or if the conversation is too long; -32602 if the
  /// prompt that a template makes is.
  Result<std::unique_ptr<Turn>> prepare(RunCall& call);

 private:
  struct Template {
    std::string system;
    std::string prefix;
    std::string postfix;
  };
  /// Takes memory for `bytes` in place of `before`.
  Result<void> hold(std::size_t bytes, std::size_t before);
  [[nodiscard]] Result<std::string> render(const std::vector<ChatMessage>& messages) const;
  void keep(ChatMessage said, ChatMessage answer, std::uint32_t tokens);

  mutable std::mutex mutex_;
  RunSettings settings_;
  MemoryHold memory_;
  std::optional<Template> template_;
  std::string tools_system_;
  std::string tools_;
  std::vector<ChatMessage> history_;
  std::size_t history_bytes_ = 0;
  std::uint32_t tokens_ = 0;
  bool has_turn_ = false;
};

}  // namespace sluice
