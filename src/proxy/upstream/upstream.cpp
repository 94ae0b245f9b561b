#include "proxy/upstream/upstream.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "core/text/secrets.hpp"
#include "json/mask.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "proxy/upstream/upstream_error.hpp"

namespace sluice {
namespace {

constexpr Duration kFirstRest = std::chrono::seconds(1);
/// How long it is remembered what a server speaks.
constexpr Duration kRemembered = std::chrono::minutes(10);

/// Whether nobody can have a session with the server: there is no connection, or no answer.
bool is_out_of_reach(const Error& answer) {
  const std::optional<int> status = upstream_status(answer);
  return status == kLostConnection || status == kGatewayTimeout;
}

}  // namespace

std::optional<Error> Upstream::resting(TimePoint now) const {
  if (now >= rests_until_) return std::nullopt;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(rests_until_ - now).count();
  Error error = failure_;
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
    if (const auto old = mirrored_.extract(name)) learned_ -= name.size() + bytes_of(old.mapped());
    auto found = find_parameter_headers(*schema);
    if (!found || found->empty()) continue;
    const std::size_t bytes = name.size() + bytes_of(*found);
    if (bytes > kMaxLearned) continue;
    if (mirrored_.size() >= kMaxTools || bytes > kMaxLearned - learned_) {
      mirrored_.clear();
      learned_ = 0;
    }
    mirrored_.emplace(name, *std::move(found));
    learned_ += bytes;
  }
}

Result<void> Upstream::check(const json::object& call, const MirroredHeaders& headers) const {
  const auto found = mirrored_.find(text_at(call, "name"));
  if (found == mirrored_.end()) return {};
  static const json::object kNone;
  const json::object* const arguments = object_at(call, "arguments");
  return check_parameter_headers(found->second, arguments == nullptr ? kNone : *arguments, headers);
}

bool Upstream::is_known_as_legacy(TimePoint now) const {
  return options_.revision.empty() && now < legacy_until_;
}

void Upstream::on_connected(const Revision& revision, TimePoint now) {
  backoff_.reset();
  rests_until_ = {};
  if (revision.era == Era::modern) return forget_era();
  if (now >= legacy_until_) legacy_until_ = now + kRemembered;
}

Error Upstream::on_not_opened(const Error& said, TimePoint now, bool was_needed) {
  const Error why = of_connection(said);
  forget_era();
  Error failure = session_error(options_.label, why);
  if (is_out_of_reach(failure) && !was_needed) {
    failure_ = failure;
    rests_until_ = std::max(rests_until_, now + kFirstRest);
  } else if (is_out_of_reach(failure)) {
    failure_ = failure;
    rests_until_ = now + backoff_.next().value_or(Duration());
    log_error(
        "a server behind the proxy cannot be reached",
        {{"server", std::string_view(options_.label)}, {"why", std::string_view(why.message)}});
  } else if (const auto left_out = refusals_.take(now)) {
    log_error("a session with a server behind the proxy could not be opened",
              {{"server", std::string_view(options_.label)},
               {"why", std::string_view(why.message)},
               {"left_out", *left_out}});
  }
  return failure;
}

void Upstream::on_lost(const Error& said) const {
  const Error why = of_connection(said);
  log_error("a server behind the proxy has gone; the next request starts anew with it",
            {{"server", std::string_view(options_.label)}, {"why", std::string_view(why.message)}});
}

Error Upstream::of_connection(const Error& why) const {
  const bool is_absent = options_.starts_program && why.code == kBadRequest;
  const int code = is_absent ? kLostConnection : why.code;
  const auto mask = options_.secrets == nullptr ? nullptr : options_.secrets->mask();
  if (mask == nullptr || mask->empty()) return {code, why.message, why.data};
  Result<json::value> data = parse_json(why.data);
  if (data) mask_in(*data, *mask);
  return {code, mask->masked(why.message), data ? to_json(*data) : std::string()};
}

Error Upstream::explained(const Error& why) const {
  return upstream_error(options_.label, of_connection(why));
}

}  // namespace sluice
