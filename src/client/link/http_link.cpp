#include "client/link/http_link.hpp"

#include <utility>

#include "client/link/http_link_exchange.hpp"
#include "client/link/nobody.hpp"
#include "core/recycling.hpp"
#include "protocol/mirrored_headers.hpp"

namespace sluice {

HttpLink::HttpLink(EventLoop& loop, HttpLinkOptions options)
    : loop_(&loop), options_(std::move(options)), http_(loop, options_.http, options_.authorizer) {}

HttpLink::~HttpLink() {
  leave();
}

void HttpLink::open(Owner& owner) {
  owner_ = &owner;
  if (!from_) return;
  const std::uint64_t number = ++last_number_;
  const auto exchange =
      std::make_shared<Exchange>(*this, number, from_->request, revision_, nullptr);
  exchanges_.emplace(number, exchange);
  exchange->take_up(from_->last_event);
}

void HttpLink::close(std::function<void()> done) {
  last_words_.begin(std::move(done), [this] { leave(); });
  owner_ = &nobody();
  std::erase_if(held_, [](const OutgoingMessage& held) { return !held.id.empty(); });
  std::erase_if(exchanges_, [](const auto& each) {
    if (each.second->is_under_way_aside()) return false;
    each.second->detach();
    return true;
  });
  if (exchanges_.empty()) leave();
}

void HttpLink::leave() {
  held_.clear();
  forget_waiting();
  for (const auto& [number, exchange] : std::exchange(exchanges_, {})) exchange->detach();
  std::function<void()> done = last_words_.end();
  if (session_id_.empty() || leaves_session_) return done();
  HttpHeaderList headers = headers_for({.text = {}, .revision = revision_});
  session_id_.clear();
  http_.send_last(
      {.method = "DELETE", .url = options_.url, .headers = std::move(headers), .body = {}},
      kFarewell, std::move(done));
}

Result<void> HttpLink::send(OutgoingMessage message) {
  if (exchanges_.size() + held_.size() >= kMaxPosts) {
    return fail(kBusy,
                "There are " + std::to_string(kMaxPosts) + " requests to this server under way");
  }
  const bool begins_session = message.method == "initialize";
  const bool is_initialized = message.method == "notifications/initialized";
  if (begins_session) {
    session_id_.clear();
    leaves_session_ = false;
    if (initializing_ != 0) initialized(false);
    forget_session();
  }
  if (initializing_ != 0) {
    held_.push_back(std::move(message));
    return {};
  }
  if (is_initialized) revision_ = message.revision;
  const Lane* const lane = lane_of(message);
  if (lane != nullptr && !lane->waiting.empty() &&
      (lane->waiting.size() >= kMaxPosts ||
       lane->waiting_bytes + message.text.size() > kMaxWaiting)) {
    return fail(kBusy, "The server is too slow: " + std::to_string(lane->waiting.size()) +
                           " messages of " + std::to_string(lane->waiting_bytes) +
                           " bytes already wait to be sent");
  }
  dispatch(std::move(message));
  return {};
}

void HttpLink::forget_session() {
  // A new session may use the ids of the old one again.
  forget_waiting();
  reopening_ = {};
  std::erase_if(exchanges_, [](const auto& each) { return each.second->is_standalone(); });
  std::vector<std::uint64_t> left;
  for (const auto& [number, exchange] : exchanges_) {
    if (!exchange->is_under_way_aside()) continue;
    left.push_back(number);
    if (Lane* const lane = exchange->leave_lane(); lane != nullptr) --lane->under_way;
  }
  for (const std::uint64_t number : left) keep_last(taken_, kMaxTaken, number);
}

void HttpLink::forget_waiting() {
  for (Lane* const lane : {&notifications_, &answers_}) {
    lane->waiting.clear();
    lane->waiting_bytes = 0;
  }
}

HttpLink::Lane* HttpLink::lane_of(const OutgoingMessage& message) {
  if (!message.id.empty()) return nullptr;
  if (message.method.empty()) return &answers_;
  // All others wait for this one anyway, but not for ever.
  return message.method == "notifications/initialized" ? nullptr : &notifications_;
}

void HttpLink::dispatch(OutgoingMessage&& message) {
  Lane* const lane = lane_of(message);
  if (lane == nullptr || lane->under_way < lane->most) return transmit(std::move(message), lane);
  lane->waiting_bytes += message.text.size();
  lane->waiting.push_back(std::move(message));
}

void HttpLink::transmit(OutgoingMessage&& message, Lane* lane) {
  const std::uint64_t number = ++last_number_;
  const auto exchange =
      make_shared_recycled<Exchange>(*this, number, message.id, message.revision, lane);
  exchange->keep(std::move(message.memory));
  exchanges_.emplace(number, exchange);
  if (lane != nullptr) ++lane->under_way;
  HttpHeaderList headers = headers_for(message);
  exchange->post(std::move(headers), std::move(message.text), message.method);
}

/// The server has been told that the client is ready. `is_current`: in a session that goes on.
void HttpLink::initialized(bool is_current) {
  initializing_ = 0;
  // Messages that belong to no request have a place to go before the first request comes.
  if (is_current && !last_words_.have_begun()) listen({});
  // There is room: they count while they are held.
  for (OutgoingMessage& message : std::exchange(held_, {})) dispatch(std::move(message));
}

bool HttpLink::drop(const RequestId& id) {
  if (std::erase_if(held_, [&id](const OutgoingMessage& held) { return held.id == id; }) > 0) {
    return true;
  }
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->id() != id) continue;
    const std::shared_ptr<Exchange> dropped = exchange;
    dropped->detach();
    exchanges_.erase(number);
    return !dropped->is_legacy();
  }
  return false;
}

void HttpLink::leave_answer(const RequestId& id) {
  leaves_session_ = true;
  drop(id);
}

std::string HttpLink::server() const {
  const std::string& target = options_.url.target;
  return with_target(options_.url, target.substr(0, target.find('?'))).to_string();
}

std::unique_ptr<ServerLink> HttpLink::take_up(const StreamPosition& from) {
  // The session's id is secret.
  if (from.server != server()) return nullptr;
  const bool has_session = from.session.empty() || Exchange::is_session_id(from.session);
  if (!has_session || !Exchange::is_event_id(from.last_event)) return nullptr;
  auto link = std::make_unique<HttpLink>(*loop_, options_);
  link->session_id_ = from.session;
  link->revision_ = from.revision;
  link->leaves_session_ = true;
  link->from_ = from;
  return link;
}

void HttpLink::pause(const RequestId& id, bool is_paused) {
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange->id() == id) exchange->pause(is_paused);
  }
}

HttpHeaderList HttpLink::headers_for(const OutgoingMessage& message) const {
  static constexpr std::size_t kOwn = 6;  // the most that are added here
  HttpHeaderList headers;
  headers.reserve(options_.headers.size() + message.headers.size() + kOwn);
  headers = options_.headers;
  headers.emplace_back("Content-Type", "application/json");
  headers.emplace_back("Accept", "application/json, text/event-stream");
  if (message.revision != nullptr && message.method != "initialize") {
    headers.emplace_back("MCP-Protocol-Version", message.revision->name);
    if (!session_id_.empty()) headers.emplace_back("Mcp-Session-Id", session_id_);
  }
  if (message.revision != nullptr && message.revision->routing_headers && !message.method.empty()) {
    headers.emplace_back("Mcp-Method", message.method);
    if (!message.name.empty()) headers.emplace_back("Mcp-Name", encode_header_value(message.name));
    for (const auto& field : message.headers) headers.push_back(field);
  }
  return headers;
}

void HttpLink::forget(std::uint64_t number) {
  const auto ended = exchanges_.extract(number);
  if (ended.empty()) return;
  send_next(ended.mapped()->leave_lane());
  if (last_words_.have_begun() && exchanges_.empty()) leave();
}

void HttpLink::keep_last(std::deque<std::uint64_t>& kept, std::size_t most, std::uint64_t number) {
  kept.push_back(number);
  if (kept.size() <= most) return;
  // Most have ended meanwhile.
  const auto oldest = exchanges_.extract(kept.front());
  kept.pop_front();
  if (!oldest.empty()) oldest.mapped()->detach();
}

void HttpLink::send_next(Lane* lane) {
  if (lane == nullptr) return;
  --lane->under_way;
  if (lane->waiting.empty()) return;
  OutgoingMessage next = std::move(lane->waiting.front());
  lane->waiting.pop_front();
  lane->waiting_bytes -= next.text.size();
  transmit(std::move(next), lane);
}

void HttpLink::reopen_stream(std::uint64_t number) {
  const bool is_due = reopening_.after != 0 && number > reopening_.after &&
                      loop_->clock().now() >= reopening_.not_before;
  if (is_due) listen(std::exchange(reopening_, {}));
}

void HttpLink::listen(Reopening from) {
  const std::uint64_t number = ++last_number_;
  const auto exchange = std::make_shared<Exchange>(*this, number, RequestId(), revision_, nullptr);
  exchanges_.emplace(number, exchange);
  exchange->listen(std::move(from));
}

}  // namespace sluice
