#include "server/dispatch/request_log.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

std::string outcome(const RequestEnd& end) {
  if (end.cancelled) return "cancelled";
  return end.error ? "error " + std::to_string(*end.error) : "answered";
}

/// Names of what the server has. What other methods are about may be secret.
std::string_view name(const Request& request) {
  const bool is_public = request.method() == "tools/call" || request.method() == "prompts/get";
  return is_public ? std::string_view(request.name()) : "-";
}

Task<> log_request(Request& request, const Clock& clock, std::shared_ptr<LogLimit> limit) {
  const TimePoint begun = clock.now();
  const RequestEnd end = co_await request.next();
  const TimePoint now = clock.now();
  const auto left_out = limit->take(now);
  if (!left_out) co_return;
  const std::chrono::duration<double, std::milli> time = now - begun;
  log_debug("request", {{"method", std::string_view(request.method())},
                        {"name", name(request)},
                        {"client", std::string_view(request.principal())},
                        {"ms", time.count()},
                        {"outcome", std::string_view(outcome(end))},
                        {"left_out", *left_out}});
}

}  // namespace

Middleware request_log(const Clock& clock) {
  auto limit = std::make_shared<LogLimit>(kRequestLines, std::chrono::seconds(1));
  return [&clock, limit = std::move(limit)](Request& request) {
    return log_request(request, clock, limit);
  };
}

}  // namespace sluice
