#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/spsc_queue.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Carries deltas from an engine, on whatever thread it runs, to an output on its loop, and room
/// and cancellation back. Derived classes are the output. The engine keeps it until the generation
/// has completed. start() and the StreamProducer side belong to the loop.
class GenerationProducer : public GenerationSink,
                           public StreamProducer,
                           public std::enable_shared_from_this<GenerationProducer> {
 public:
  /// Starts generating. Errors as Engine::start.
  Result<void> start(Engine& engine, GenerationRequest request);

  void on_writable() override;
  void on_cancel() override;

  [[nodiscard]] GenerationStatus status() const;

 protected:
  explicit GenerationProducer(Executor& home) : home_(&home) {}

 private:
  // The output. Called on the loop.
  /// Takes a delta; false: taken, but wait for on_writable().
  virtual bool append(const Delta& delta) = 0;
  virtual void flush() = 0;
  /// Nothing follows: lets go of all that belongs to the loop, for the engine may be the last to
  /// let go of this.
  virtual void complete(const Completion& completion) = 0;

  bool on_delta(Delta delta) override;
  void on_complete(Completion completion) override;

  bool take(const Delta& delta);
  void schedule();
  void drain();
  void finish(const Completion& completion);

  /// How the engine has ended.
  struct Completed {
    Completion completion;
    std::shared_ptr<GenerationProducer> self = nullptr;  // until all has been taken
  };

  /// Deltas between the threads: enough for the loop to be late, little enough to stay bounded.
  static constexpr std::size_t kQueued = 64;
  using Queue = SpscQueue<Delta, kQueued>;

  Executor* home_;
  std::unique_ptr<Generation> generation_;
  std::unique_ptr<Queue> queue_;  // made when the first delta comes from another thread
  std::unique_ptr<Completed> completion_;
  std::atomic<bool> threaded_ = false;  // queue_ is set
  std::atomic<bool> scheduled_ = false;
  std::atomic<bool> completed_ = false;  // completion_ is set
  std::atomic<bool> engine_waits_ = false;
  bool output_full_ = false;
  bool over_ = false;
  bool cancelled_ = false;  // by whoever reads: the output's limits hold nothing up any more
};

}  // namespace sluice
