#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/events/response_writer.hpp"
#include "agent/run/pass_filter.hpp"
#include "core/executor.hpp"
#include "engine/engine.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// An answer that the model is giving: brings what an engine's thread says to the run's loop.
/// Belongs to the loop. Destroying it cancels the generation.
class Answer {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Returns false if the model should pause until resume().
    virtual bool on_delta(const Delta& delta) = 0;
    /// Once, last. May destroy the answer.
    virtual void on_complete(const Completion& completion) = 0;
  };

  Answer(Owner& owner, Executor& loop, ResponseWriter writer);
  ~Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// Asks the model. An error is told like any other end, later.
  void start(Engine& engine, GenerationRequest request);
  void cancel();
  /// Whether it was given up, so its end is no news.
  [[nodiscard]] bool is_cancelled() const { return is_cancelled_; }
  void resume();
  /// For an answer that goes on from this one; null if it has not begun.
  [[nodiscard]] std::shared_ptr<const Generation> generation() const { return generation_; }

  ResponseWriter writer;
  PassFilter filter = {};
  std::size_t bytes = 0;           // that the model has written, without the following
  std::size_t bytes_of_parts = 0;  // of calls that are not whole yet
  bool is_cut = false;             // it was too long
  std::vector<ChatToolCall> calls = {};
  /// The ids in the run of the calls that the engine has begun.
  std::vector<std::pair<std::shared_ptr<const CallHead>, std::string>> ids = {};
  bool is_last = false;       // there are no tools, and nothing follows
  bool is_reaction = false;   // to what running tools have written
  bool shows_images = false;  // the model was shown some
  bool is_remark = false;     // it is of another model than the agent's, for reactions
  TokenPrice price = {};      // of the model that is asked

 private:
  class Sink;

  Executor* loop_;
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<Generation> generation_;
  bool is_cancelled_ = false;
};

}  // namespace sluice
