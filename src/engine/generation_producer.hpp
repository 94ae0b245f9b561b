#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/spsc_queue.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Carries deltas from an engine, which may run on any thread, to an output on a loop, and carries
/// resumption and cancellation back. Derived classes implement the output. The engine keeps the
/// object alive until the generation has completed. start() and the StreamProducer functions belong
/// to the loop.
class GenerationProducer : public GenerationSink,
                           public StreamProducer,
                           public std::enable_shared_from_this<GenerationProducer> {
 public:
  /// Starts generating. Errors: those of Engine::start().
  Result<void> start(Engine& engine, GenerationRequest request);

  void on_writable() override;
  void on_cancel() override;

  [[nodiscard]] GenerationStatus status() const;

 protected:
  explicit GenerationProducer(Executor& home) : home_(&home) {}

 private:
  // The output; called on the loop.
  /// Takes a delta. Returns false if the next one must wait for on_writable().
  virtual bool append(const Delta& delta) = 0;
  virtual void flush() = 0;
  /// No call follows. Must release everything that belongs to the loop, because the engine's thread
  /// may destroy this object.
  virtual void complete(const Completion& completion) = 0;

  bool on_delta(Delta delta) override;
  void on_complete(Completion completion) override;

  bool take(const Delta& delta);
  void schedule();
  void drain();
  void finish(const Completion& completion);

  /// The end of the generation, until it has been passed on.
  struct Completed {
    Completion completion;
    std::shared_ptr<GenerationProducer> self =
        nullptr;  // keeps this object alive until all deltas have been taken
  };

  /// The most deltas that wait between the threads. The loop may be late, but the memory stays
  /// bounded.
  static constexpr std::size_t kQueued = 64;
  using Queue = SpscQueue<Delta, kQueued>;

  Executor* home_;
  std::unique_ptr<Generation> generation_;
  std::unique_ptr<Queue> queue_;  // created when the first delta comes from another thread
  std::unique_ptr<Completed> completion_;
  std::atomic<bool> threaded_ = false;  // queue_ is set
  std::atomic<bool> scheduled_ = false;
  std::atomic<bool> completed_ = false;  // completion_ is set
  std::atomic<bool> engine_waits_ = false;
  bool output_full_ = false;
  bool over_ = false;
  bool cancelled_ = false;  // by the reader; the output's limits no longer delay deltas
};

}  // namespace sluice
