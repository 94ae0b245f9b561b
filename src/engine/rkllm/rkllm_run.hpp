#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.hpp"
#include "engine/admission_queue.hpp"
#include "engine/answer/answer_reader.hpp"
#include "engine/answer/delivery.hpp"
#include "engine/engine.hpp"
#include "engine/queue_shares.hpp"
#include "engine/rkllm/runtime/runtime.hpp"

namespace sluice::rkllm {

struct RkllmRun;
using RunPtr = std::shared_ptr<RkllmRun>;

/// One generation. The atomic members are shared with its handle; all others belong to the engine's
/// loop.
struct RkllmRun {
  using Phase = GenerationStatus::Phase;

  RkllmRun(std::shared_ptr<GenerationSink> sink, AnswerReader::Options options)
      : delivery(std::move(sink)), reader(std::move(options)) {}

  std::atomic<bool> is_cancelled = false;
  std::atomic<Phase> phase = Phase::queued;
  std::atomic<std::uint32_t> queue_position = 0;
  std::atomic<std::uint32_t> completion_tokens = 0;

  Delivery delivery;
  AnswerReader reader;
  std::unique_ptr<QueueShares::Ticket> share;  // until the sink has received its last call
  AdmissionQueue<RunPtr>::Position place;
  RunInput input;
  RunParams params;
  std::uint32_t max_tokens = 0;  // 0: no limit

  TimePoint started{};
  std::optional<TimePoint> admitted = {};
  std::optional<TimePoint> first_token = {};
  TimePoint last_token{};
  std::optional<PerfStat> figures = {};
};

}  // namespace sluice::rkllm
