#include "world.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace sluice::faults {
namespace {

/// Turns of the loop while the clock stands still. More mean that something goes round.
constexpr int kMostTurns = 20'000;
/// Steps of the clock.
constexpr int kMostSteps = 50'000;

}  // namespace

Result<Descriptor> World::connect() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(502, "no sockets");
  }
  const std::size_t number = ++last_;
  peers_[number].socket = Descriptor(ends[0]);
  server_.opened(number);
  return Descriptor(ends[1]);
}

bool World::run(const std::function<bool()>& done, Duration at_most) {
  const TimePoint until = clock_.now() + at_most;
  int turns = 0;
  for (int steps = 0; !done();) {
    if (loop_.poll() || serve()) {
      if (++turns > kMostTurns) return false;
      continue;
    }
    turns = 0;
    if (++steps > kMostSteps) return false;
    TimePoint next = until;
    if (const auto timer = loop_.next_timer()) next = std::min(next, *timer);
    for (const auto& [number, peer] : peers_) {
      if (!peer.steps.empty()) next = std::min(next, peer.steps.front().first);
    }
    if (next > clock_.now()) clock_.advance(next - clock_.now());
    if (clock_.now() >= until) return true;
  }
  return true;
}

bool World::serve() {
  bool did = false;
  std::vector<std::size_t> numbers;
  for (const auto& [number, peer] : peers_) numbers.push_back(number);
  for (const std::size_t number : numbers) {
    did |= hear(number);
    did |= act(number);
  }
  return did;
}

/// Leaves a byte in the socket, so that closing it resets the connection.
bool World::hear(std::size_t number) {
  Peer& peer = peers_.at(number);
  std::array<char, 65536> bytes;  // not initialised, which would take most of the time
  const ssize_t size = ::recv(peer.socket.get(), bytes.data(), bytes.size(), MSG_PEEK);
  if (size > 0 && static_cast<std::size_t>(size) > peer.seen) {
    const std::string fresh(bytes.data() + peer.seen, static_cast<std::size_t>(size) - peer.seen);
    if (size > 1) ::recv(peer.socket.get(), bytes.data(), static_cast<std::size_t>(size) - 1, 0);
    peer.seen = 1;
    server_.received(number, fresh);
    plan_steps();
    return true;
  }
  pollfd state{.fd = peer.socket.get(), .events = 0, .revents = 0};
  if (::poll(&state, 1, 0) != 1 || (state.revents & POLLHUP) == 0) return false;
  peers_.erase(number);
  server_.closed(number);
  return true;
}

void World::plan_steps() {
  for (Step& step : server_.take_steps()) {
    const auto found = peers_.find(step.connection);
    if (found == peers_.end()) continue;
    auto& steps = found->second.steps;
    const TimePoint before = steps.empty() ? clock_.now() : steps.back().first;
    steps.emplace_back(before + step.after, std::move(step));
  }
}

bool World::act(std::size_t number) {
  const auto found = peers_.find(number);
  if (found == peers_.end()) return false;
  Peer& peer = found->second;
  bool did = false;
  while (!peer.steps.empty() && peer.steps.front().first <= clock_.now()) {
    const Step& step = peer.steps.front().second;
    if (step.kind != Step::Kind::send) {
      char last = 0;
      if (step.kind == Step::Kind::end) ::recv(peer.socket.get(), &last, 1, 0);
      peers_.erase(found);
      server_.closed(number);
      return true;
    }
    const std::string_view rest = std::string_view(step.bytes).substr(peer.sent);
    const ssize_t sent = ::send(peer.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return did;
    did = true;
    if (sent >= 0 && static_cast<std::size_t>(sent) < rest.size()) {
      peer.sent += static_cast<std::size_t>(sent);
    } else {
      peer.sent = 0;
      peer.steps.pop_front();
    }
  }
  return did;
}

}  // namespace sluice::faults
