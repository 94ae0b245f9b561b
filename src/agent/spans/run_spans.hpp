#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "json/json.hpp"
#include "sluice/agent_event.hpp"
#include "sluice/spans.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

/// Makes spans out of a run's events: one of the run; in it one of each answer of the model and of
/// each call; in a call's, one of each reaction to it, with a link to the answer that it was. Names
/// and attributes are those of OpenTelemetry's conventions for generative AI, with what is our own
/// behind `sluice.`. They hold no texts of users, models or tools. Belongs to the run's loop.
class RunSpans {
 public:
  /// `exporter` may be null, and an invalid `parent` counts as none. Nothing is recorded if the
  /// parent is not sampled. `clock` must live as long; `now` is what it shows.
  RunSpans(std::shared_ptr<SpanExporter> exporter, const TraceContext& parent, std::string run_id,
           const Clock& clock, std::chrono::system_clock::time_point now);
  /// Ends what has not ended.
  ~RunSpans();
  RunSpans(const RunSpans&) = delete;
  RunSpans& operator=(const RunSpans&) = delete;

  void on_event(const AgentEvent& event);
  /// The `_meta` of a call's request (2026-07-28, Base Protocol, OpenTelemetry trace context), once
  /// it has begun.
  [[nodiscard]] json::object meta_of(std::string_view call_id) const;

 private:
  struct CallSpan {
    Span span;
    std::uint64_t chunks = 0;
  };

  [[nodiscard]] std::chrono::system_clock::time_point now() const;
  [[nodiscard]] Span begin(std::string name, std::string_view operation,
                           std::string parent_id) const;
  void end(Span span);
  void end_answer(const AgentEvent& event);
  void end_call(const AgentEvent& event);
  void begin_reactions(const AgentEvent& event);
  void end_reactions();
  /// `status`: of the run's end.
  void end_run(std::string_view status, const json::object* usage);

  std::shared_ptr<SpanExporter> exporter_;
  TraceContext parent_;
  std::string run_id_;
  const Clock* clock_;
  std::chrono::system_clock::time_point wall_;  // at `began_`
  TimePoint began_;
  std::string trace_id_;  // empty: nothing is recorded
  std::optional<Span> run_;
  std::optional<Span> answer_;
  std::string last_answer_;  // the id of its span, for the reactions
  std::map<std::string, CallSpan, std::less<>> calls_;
  std::vector<Span> reactions_;
};

}  // namespace sluice
