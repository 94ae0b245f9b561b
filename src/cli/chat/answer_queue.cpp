#include "cli/chat/answer_queue.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

std::size_t size_of(const AnswerQueue::Event& event) {
  const auto* text = std::get_if<AnswerQueue::Text>(&event);
  return text == nullptr ? 0 : text->text.size();
}

}  // namespace

AnswerQueue::AnswerQueue() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

AnswerQueue::~AnswerQueue() {
  ::close(fd_);
}

void AnswerQueue::on_delta(const AnswerDelta& delta) {
  push(Text{delta.kind, std::string(delta.text), std::chrono::steady_clock::now()},
       delta.text.size());
}

void AnswerQueue::on_retry(const Error& why, Duration wait) {
  push(Retry{why, wait}, 0);
}

void AnswerQueue::on_end(const AnswerEnd& end) {
  push(end, 0);
}

void AnswerQueue::push(Event event, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return abandoned_ || bytes_ < kMaxBytes; });
  if (abandoned_) return;
  bytes_ += bytes;
  events_.push_back(std::move(event));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

std::optional<AnswerQueue::Event> AnswerQueue::take() {
  std::optional<Event> event;
  {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return std::nullopt;
    event = std::move(events_.front());
    events_.pop_front();
    bytes_ -= size_of(*event);
    std::uint64_t one = 0;
    [[maybe_unused]] const ssize_t taken = ::read(fd_, &one, sizeof one);
  }
  room_.notify_one();
  return event;
}

void AnswerQueue::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    events_.clear();
    bytes_ = 0;
  }
  room_.notify_all();
}

}  // namespace sluice
