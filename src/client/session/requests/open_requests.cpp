#include "client/session/requests/open_requests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "client/session/memory/result_cache.hpp"

namespace sluice {

bool only_reads(std::string_view method) {
  static constexpr std::array<std::string_view, 6> kMethods = {
      "prompts/get", "completion/complete", "server/discover",
      "skills/list", "tasks/get",           "tasks/list"};
  return ResultCache::is_cacheable(method) || std::ranges::find(kMethods, method) != kMethods.end();
}

OpenRequests::~OpenRequests() {
  while (!all_.empty()) take(all_.begin()->first);
}

OpenRequest& OpenRequests::add(Number number, OpenRequest request) {
  OpenRequest& added = all_.emplace(number, std::move(request)).first->second;
  if (added.options.timeout > Duration()) {
    added.timer = loop_->schedule_at(loop_->clock().now() + added.options.timeout, [this, number] {
      all_.at(number).timer = 0;
      give_up_(number, "it took too long");
    });
  }
  return added;
}

OpenRequest* OpenRequests::find(Number number) {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

const OpenRequest* OpenRequests::find(Number number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

OpenRequests::Number OpenRequests::number_of(std::string_view id) const {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size()) return 0;
  const auto found = by_id_.find(number);
  return found == by_id_.end() ? 0 : found->second;
}

OpenRequest OpenRequests::take(Number number) {
  auto taken = all_.extract(number);
  OpenRequest request = std::move(taken.mapped());
  stop_waiting(request);
  if (request.timer != 0) loop_->cancel(std::exchange(request.timer, 0));
  by_id_.erase(request.id);
  return request;
}

void OpenRequests::begin_round(Number number, OpenRequest& request) {
  request.id = ++last_id_;
  by_id_[request.id] = number;
}

void OpenRequests::take_up_round(Number number, OpenRequest& request, std::int64_t id) {
  last_id_ = id - 1;
  begin_round(number, request);
}

void OpenRequests::end_round(OpenRequest& request) {
  by_id_.erase(std::exchange(request.id, 0));
  stop_waiting(request);
}

void OpenRequests::expect(Number number, OpenRequest& request) {
  stop_waiting(request);
  if (request.options.idle_timeout <= Duration()) return;
  later(request, request.options.idle_timeout,
        [this, number] { give_up_(number, "the server was silent too long"); });
}

void OpenRequests::later(OpenRequest& request, Duration wait, std::function<void()> then) {
  // The request stays where it is in the map, and takes its timer with it when it goes.
  request.wait_timer =
      loop_->schedule_at(loop_->clock().now() + wait, [&request, then = std::move(then)] {
        request.wait_timer = 0;
        then();
      });
}

void OpenRequests::stop_waiting(OpenRequest& request) {
  if (request.wait_timer != 0) loop_->cancel(std::exchange(request.wait_timer, 0));
}

}  // namespace sluice
