#include "proxy/upstream.hpp"

#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "proxy/upstream_error.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

std::optional<Error> Upstream::resting(TimePoint now) const {
  if (now >= rests_until_) return std::nullopt;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(rests_until_ - now).count();
  Error error = explained(failure_);
  error.message += "; it is tried again in " + std::to_string(seconds) + " s";
  return error;
}

void Upstream::learn(std::string_view method, const json::object& result) {
  const json::value* const tools = method == "tools/list" ? result.if_contains("tools") : nullptr;
  if (tools == nullptr || !tools->is_array()) return;
  for (const json::value& each : tools->get_array()) {
    const json::object* const tool = each.if_object();
    const json::value* const schema = tool == nullptr ? nullptr : tool->if_contains("inputSchema");
    if (schema == nullptr) continue;
    const std::string name(text_at(*tool, "name"));
    mirrored_.erase(name);
    auto found = find_parameter_headers(*schema);
    if (found && !found->empty() && mirrored_.size() < kMaxTools) {
      mirrored_.emplace(name, *std::move(found));
    }
  }
}

Result<void> Upstream::check(const json::object& call, const MirroredHeaders& headers) const {
  const auto found = mirrored_.find(text_at(call, "name"));
  if (found == mirrored_.end()) return {};
  static const json::object kNone;
  const json::object* const arguments = object_at(call, "arguments");
  return check_parameter_headers(found->second, arguments == nullptr ? kNone : *arguments, headers);
}

const std::string& Upstream::revision() const {
  return options_.revision.empty() ? spoken_ : options_.revision;
}

void Upstream::on_connected(const Revision& revision) {
  backoff_.reset();
  rests_until_ = {};
  spoken_ = revision.era == Era::legacy ? std::string(revision.name) : std::string();
}

void Upstream::on_unreachable(const Error& why, TimePoint now) {
  failure_ = why;
  rests_until_ = now + backoff_.next().value_or(Duration());
  // It may have been replaced by one that speaks something else.
  spoken_.clear();
  log_error("a server behind the proxy cannot be reached",
            {{"server", std::string_view(options_.label)}, {"why", std::string_view(why.message)}});
}

void Upstream::on_lost(const Error& why) const {
  log_error("a server behind the proxy has gone; the next request starts anew with it",
            {{"server", std::string_view(options_.label)}, {"why", std::string_view(why.message)}});
}

Error Upstream::explained(const Error& why) const {
  const bool is_absent = options_.starts_program && why.code == kBadRequest;
  return upstream_error(options_.label,
                        is_absent ? Error{kLostConnection, why.message, why.data} : why);
}

}  // namespace sluice
