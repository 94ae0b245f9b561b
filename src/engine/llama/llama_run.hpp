#pragma once

#include <atomic>
#include <cstdint>
#include <llama.h>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.hpp"
#include "engine/admission_queue.hpp"
#include "engine/answer/answer_reader.hpp"
#include "engine/answer/delivery.hpp"
#include "engine/engine.hpp"
#include "engine/llama/lora_adapters.hpp"
#include "engine/llama/request_preparer.hpp"
#include "engine/llama/sampling/token_sampler.hpp"
#include "engine/queue_shares.hpp"

namespace sluice {

struct LlamaRun;
using RunPtr = std::shared_ptr<LlamaRun>;
/// A prompt and its answer.
using TokenSequence = std::shared_ptr<const std::vector<llama_token>>;

/// One generation. The atomic members are shared with its handle. All others belong to the thread
/// that prepares the run, and after that to the engine's thread.
struct LlamaRun {
  using Phase = GenerationStatus::Phase;

  explicit LlamaRun(std::shared_ptr<GenerationSink> sink) : delivery(std::move(sink)) {}

  std::atomic<bool> cancelled = false;
  std::atomic<Phase> phase = Phase::queued;
  std::atomic<std::uint32_t> queue_position = 0;
  std::atomic<std::uint32_t> prefill_done = 0;
  std::atomic<std::uint32_t> prefill_total = 0;
  std::atomic<std::uint32_t> completion_tokens = 0;
  Delivery delivery;

  std::unique_ptr<QueueShares::Ticket> share;  // held until the sink has received its last call
  std::optional<GenerationRequest> request;    // set until the run is prepared
  std::optional<PreparedRequest> prepared;     // set until the run is first admitted
  std::optional<Error> fault;                  // why preparing the run failed
  const LoraAdapter* adapter = nullptr;        // that the model is used with; null: none
  std::string principal;                       // the owner of what the run leaves in its slot
  TokenSequence continued;                     // which it goes on from; null: none
  bool keeps_sequence = false;
  TokenSequence sequence;  // what it was at its end, if it is kept; final once `phase` is `done`
  AdmissionQueue<RunPtr>::Position place;
  TimePoint started;

  // Valid from the first admission on:
  std::vector<llama_token> tokens;  // the prompt and the answer so far
  std::set<llama_token> visible;
  std::unique_ptr<TokenSampler> sampler;
  std::unique_ptr<AnswerReader> reader;
  std::uint32_t max_tokens = 0;
  std::optional<TimePoint> admitted;
  std::optional<TimePoint> first_token;
  TimePoint last_token;
  TimePoint paused_since;  // meaningful only while the run is paused
  Usage usage;
};

}  // namespace sluice
