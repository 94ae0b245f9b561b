#include "agent/store/store_thread.hpp"

#include <exception>
#include <utility>

namespace sluice {

StoreThread::StoreThread(std::shared_ptr<RunStore> store)
    : store_(std::move(store)), thread_([this] { work(); }) {}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StoreThread::save(std::string run_id, json::object state, std::uint64_t version, Done done) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(run_id), std::move(state), version, std::move(done)});
  }
  changed_.notify_one();
}

void StoreThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.done(save_now(job));
    lock.lock();
  }
}

Result<std::uint64_t> StoreThread::save_now(const Job& job) {
  try {
    return store_->save(job.run_id, to_json(job.state), job.version);
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (const std::exception& exception) {
    return fail(500, "The store has failed: " + std::string(what_of(exception)));
  } catch (...) {
    return fail(500, "The store has failed");
  }
}

}  // namespace sluice
