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
#include "engine/rkllm/answer_check.hpp"
#include "engine/rkllm/runtime/runtime.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"

namespace sluice::rkllm {

struct RkllmRun;
using RunPtr = std::shared_ptr<RkllmRun>;

/// One generation. The atomic members are shared with its handle; all others belong to the engine's
/// loop.
struct RkllmRun {
  using Phase = GenerationStatus::Phase;

  RkllmRun(std::shared_ptr<GenerationSink> sink, GenerationRequest asked)
      : delivery(std::move(sink)), request(std::move(asked)) {}

  /// Takes a piece of the answer: for its sink, or for the check before that.
  void take(Delta delta) {
    if (!check) return delivery.deliver(std::move(delta));
    if (delta.kind == Delta::Kind::text) check->add(delta.text);
  }

  std::atomic<bool> is_cancelled = false;
  std::atomic<Phase> phase = Phase::queued;
  std::atomic<std::uint32_t> queue_position = 0;
  std::atomic<std::uint32_t> completion_tokens = 0;

  Delivery delivery;
  // The thread that prepares the run has these meanwhile.
  GenerationRequest request;
  std::optional<AnswerCheck> check;    // nothing is delivered before the answer has passed it
  std::optional<AnswerReader> reader;  // once it is prepared
  std::unique_ptr<QueueShares::Ticket> share;  // until the sink has received its last call
  AdmissionQueue<RunPtr>::Position place;
  RunInput input;
  std::string input_numbers;  // RunRequest::numbers
  RunParams params;
  std::optional<ChoiceParams> choice = {};  // if its tokens are chosen by us
  std::string yielded;                      // the bytes of hidden states or logits
  std::uint32_t yield_columns = 0;          // how many of these numbers a token has
  std::uint32_t max_tokens = 0;             // of one try; 0: no limit
  std::uint32_t try_tokens = 0;             // of the try under way
  std::uint32_t prompt_tokens = 0;          // of all tries, as are the next two; 0: nobody says
  float prefill_ms = 0;
  float decode_ms = 0;
  std::string cache_owner;          // GenerationRequest::cache_owner
  std::uint32_t cached_tokens = 0;  // of prompt_tokens, those that prompt caches had

  TimePoint started{};
  std::optional<TimePoint> admitted = {};
  std::optional<TimePoint> first_token = {};
  TimePoint last_token{};
};

}  // namespace sluice::rkllm
