#include "sluice/local_model.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/llama/llama_engine.hpp"
#include "engine/shared_engine.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::int64_t kMaxSlots = 256;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::uint32_t kMaxWaiting = 256;

/// The engines of local models. When the process ends, its static objects go, so no engine may
/// load, run or be on its way to its end any more then. Those of llama.cpp stay
/// (cmake/llama.cmake), as it makes some at any time.
class LocalEngines {
 public:
  static LocalEngines& instance() {
    // Handles may outlive all static objects, and this with them.
    static LocalEngines& engines = *new LocalEngines;
    return engines;
  }

  /// Does not return if the process ends: nothing of it goes on.
  void stay_if_it_ends() const {
    while (is_leaving_) std::this_thread::sleep_for(std::chrono::hours(1));
  }

  std::shared_ptr<Engine> add(const std::function<std::unique_ptr<LlamaEngine>()>& make) {
    std::unique_lock lock(mutex_);
    if (is_leaving_) lock.unlock();  // whoever ends the process needs it
    stay_if_it_ends();
    std::unique_ptr<LlamaEngine> engine = make();
    const auto place = known_.insert(known_.end(), {.engine = engine.get()});
    std::shared_ptr<Engine> shared =
        share_engine(std::move(engine), [this, place] { forget(place); });
    place->handle = shared;
    return shared;
  }

 private:
  struct Known {
    LlamaEngine* engine;
    std::weak_ptr<Engine> handle = {};
  };

  LocalEngines() {
    std::atexit([] { instance().close(); });
  }

  void forget(std::list<Known>::iterator place) {
    const std::lock_guard lock(mutex_);
    known_.erase(place);
    changed_.notify_all();
  }

  void close() {
    // A process that was forked off has none of the engines' threads.
    if (::getpid() != process_) return;
    std::unique_lock lock(mutex_);
    is_leaving_ = true;
    std::vector<LlamaEngine*> left;
    for (const Known& each : known_) {
      auto held = each.handle.lock();
      if (held == nullptr) continue;
      kept_.push_back(std::move(held));
      left.push_back(each.engine);
    }
    lock.unlock();
    for (LlamaEngine* const engine : left) engine->leave();
    lock.lock();
    changed_.wait(lock, [this] { return known_.size() == kept_.size(); });
  }

  const pid_t process_ = ::getpid();
  std::atomic<bool> is_leaving_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Known> known_;
  std::vector<std::shared_ptr<Engine>> kept_;  // for ever, so that nothing of them is freed
};

/// What the engine's thread tells the one that waits for the model.
class Loading {
 public:
  void tell(const ModelState& state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    is_new_ = true;
    changed_.notify_one();
  }
  ModelState next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_new_; });
    is_new_ = false;
    return state_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ModelState state_;
  bool is_new_ = false;
};

void check_range(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Error{kBadRequest, "LocalModelOptions::" + std::string(name) + " is " +
                               std::to_string(value) + "; it must be from " +
                               std::to_string(least) + " to " + std::to_string(most)};
}

void check(const LocalModelOptions& options) {
  if (options.file.empty()) {
    throw Error{kBadRequest, "LocalModelOptions::file is empty; it must name a GGUF file"};
  }
  check_range("slots", options.slots, 1, kMaxSlots);
  check_range("threads", options.threads, 0, kMaxThreads);
  check_range("gpu_layers", options.gpu_layers, -1, kMaxLayers);
}

int code_of(ModelFault fault) {
  switch (fault) {
    case ModelFault::no_device:
      return kBadRequest;
    case ModelFault::unreadable:
      return kForbidden;
    case ModelFault::missing:
      return kNotFound;
    case ModelFault::not_gguf:
    case ModelFault::truncated:
    case ModelFault::corrupt:
      return kUnprocessableContent;
    case ModelFault::unsupported:
      return kNotImplemented;
    case ModelFault::no_memory:
      return kServiceUnavailable;
    case ModelFault::none:
      break;
  }
  return kInternalServerError;
}

std::unique_ptr<LlamaEngine> start(const LocalModelOptions& options,
                                   std::function<void(const ModelState&)> on_model_state) {
  try {
    return make_llama_engine({.model_path = options.file,
                              .slots = options.slots,
                              .context_tokens = options.context_tokens,
                              .threads = options.threads,
                              .backend = options.backend,
                              .gpu_layers = options.gpu_layers,
                              // All who ask are one client, which may have half of the places.
                              .max_queue = 2 * kMaxWaiting + options.slots,
                              .on_model_state = std::move(on_model_state)});
  } catch (const std::system_error&) {
    throw Error{kBusy, "The system starts no thread for the model"};
  }
}

}  // namespace

Model local_model(const LocalModelOptions& options) {
  check(options);
  LocalEngines& engines = LocalEngines::instance();
  const auto loading = std::make_shared<Loading>();
  std::shared_ptr<Engine> engine = engines.add(
      [&] { return start(options, [loading](const ModelState& state) { loading->tell(state); }); });
  for (;;) {
    const ModelState state = loading->next();
    if (state.phase == ModelState::Phase::failed) {
      engines.stay_if_it_ends();
      throw Error{code_of(state.fault), state.message};
    }
    if (options.on_progress) options.on_progress(state.progress);
    if (state.phase == ModelState::Phase::ready) break;
  }
  return Model(std::move(engine));
}

}  // namespace sluice
