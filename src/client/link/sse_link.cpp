#include "client/link/sse_link.hpp"

#include <utility>

#include "client/link/nobody.hpp"
#include "client/link/reply_head.hpp"
#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// Where `reference` leads from `base` (RFC 3986, section 5.2, without dot segments). The error
/// says why it must not be followed.
Result<Url> resolve(const Url& base, std::string_view reference) {
  // The rest of a reference may have "://" too, but its scheme has none of these characters.
  const std::size_t sign = reference.find_first_of(":/?#");
  if (sign != std::string_view::npos && reference.substr(sign).starts_with("://")) {
    Result<Url> url = parse_url(reference);
    if (!url) return url;
    if (url->scheme != base.scheme || url->host != base.host || url->port != base.port) {
      return fail(kLostConnection, "The server wants messages to go to another origin, " +
                                       url->scheme + "://" + url->authority());
    }
    return url;
  }
  std::string target;
  if (!reference.starts_with('/')) {
    const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
    target = reference.starts_with('?') ? path : path.substr(0, path.rfind('/') + 1);
  } else if (reference.starts_with("//")) {
    return fail(kLostConnection, "The server wants messages to go to another origin");
  }
  target.append(reference);
  // What a request cannot carry must not become a part of its head.
  return parse_url(base.scheme + "://" + base.authority() + target);
}

/// The code for a request that has failed. A refusal of the authorization is not the connection's.
int code_of(const Error& why) {
  return why.code == kUnauthorized || why.code == kForbidden ? why.code : kLostConnection;
}

}  // namespace

SseLink::SseLink(EventLoop& loop, SseLinkOptions options)
    : loop_(&loop), options_(std::move(options)), http_(loop, options_.http, options_.authorizer) {}

SseLink::~SseLink() = default;

void SseLink::close(std::function<void()> done) {
  owner_ = &nobody();
  last_words_.begin(std::move(done), [this] { leave(); });
  waiting_.clear();
  // What is in no lane has been taken, or is a request.
  std::erase_if(posts_, [](const auto& each) { return each.second.lane == nullptr; });
  if (posts_.empty()) leave();
}

void SseLink::leave() {
  // It may destroy this.
  const auto done = last_words_.end();
  done();
}

void SseLink::open(Owner& owner) {
  owner_ = &owner;
  connect();
}

bool SseLink::reopen() {
  if (is_over_) connect();
  return true;
}

void SseLink::connect() {
  is_over_ = false;
  place_.reset();
  events_ = std::make_shared<SseDecoder>(
      SseDecoder::Limits{.line = options_.max_message, .event = options_.max_message});
  HttpHeaderList headers = options_.headers;
  headers.emplace_back("Accept", "text/event-stream");
  stream_ = http_.send(
      {.method = "GET",
       .url = options_.url,
       .headers = std::move(headers),
       .body = {},
       .is_patient = true},
      {.on_head = [this](const HttpReplyHead& head) { on_head(head); },
       .on_body = [this](std::string_view bytes) { on_bytes(bytes); },
       .on_complete = [this] { lose(kLostConnection, "The server has ended the event stream"); },
       .on_failure = [this](const Error& why) { lose(code_of(why), why.message); }});
}

void SseLink::on_head(const HttpReplyHead& head) {
  status_ = head.status;
  const bool is_events = status_ == 200 && head.is_event_stream();
  if (is_events) return;
  if (is_redirect(status_)) return lose(status_, redirect_of(head));
  if (status_ == 200) {
    return lose(kLostConnection,
                "The server's reply is no event stream, but " + std::string(media_type_of(head)));
  }
  lose(status_, "The server answers with HTTP " + std::to_string(status_) + " and no event stream");
}

void SseLink::on_bytes(std::string_view bytes) {
  const std::weak_ptr<const bool> alive = alive_;
  const std::shared_ptr<SseDecoder> events = events_;
  const auto fed = events->feed(bytes, [this, &alive](const SseEvent& event) {
    if (!alive.expired() && !is_over_) on_event(event);
  });
  if (!alive.expired() && !is_over_ && !fed) lose(kLostConnection, fed.error().message);
}

void SseLink::on_event(const SseEvent& event) {
  if (event.type == "message") {
    const std::weak_ptr<const bool> alive = alive_;
    owner_->on_message(event.data);
    if (!alive.expired()) sweep_in_turn();
    return;
  }
  if (event.type != "endpoint" || place_) return;
  Result<Url> place = resolve(options_.url, event.data);
  if (!place) {
    return lose(kLostConnection,
                "The server does not say where messages go: " + place.error().message);
  }
  place_ = std::move(*place);
  for (OutgoingMessage& message : std::exchange(waiting_, {})) dispatch(std::move(message));
}

Result<void> SseLink::send(OutgoingMessage message) {
  if (is_over_) return fail(kLostConnection, "There is no connection to the server");
  if (posts_.size() + waiting_.size() + notifications_.waiting.size() + answers_.waiting.size() >=
      kMaxPosts) {
    return fail(kBusy, "There are " + std::to_string(kMaxPosts) + " messages to this server");
  }
  if (bytes_ > 0 && bytes_ + message.text.size() > kMaxWaiting) {
    return fail(kBusy, "The server is too slow: " + std::to_string(bytes_) +
                           " bytes are already on their way to it");
  }
  bytes_ += message.text.size();
  if (place_) {
    dispatch(std::move(message));
  } else {
    waiting_.push_back(std::move(message));
  }
  return {};
}

void SseLink::pause(const RequestId& id, bool is_paused) {
  stream_.pause(paused_.set(id, is_paused));
}

void SseLink::dispatch(OutgoingMessage message) {
  if (!message.id.empty()) return post(std::move(message), nullptr);
  Lane& lane = message.method.empty() ? answers_ : notifications_;
  if (lane.under_way < lane.most) return post(std::move(message), &lane);
  lane.waiting.push_back(std::move(message));
}

bool SseLink::drop(const RequestId& id) {
  for (auto it = posts_.begin(); it != posts_.end(); ++it) {
    if (it->second.id != id) continue;
    release(it->second);
    posts_.erase(it);
    break;
  }
  return false;
}

void SseLink::release(Post& post) {
  bytes_ -= std::exchange(post.bytes, 0);
  post.memory.reset();
}

/// Each message allows to look at a few posts. There is a sweep once that is enough for all, so no
/// message costs much on average.
void SseLink::sweep_in_turn() {
  constexpr std::size_t kEach = 64;
  unswept_ += kEach;
  if (unswept_ < posts_.size()) return;
  unswept_ = 0;
  sweep();
}

void SseLink::sweep() {
  std::vector<std::uint64_t> ended;
  std::vector<std::uint64_t> over;
  for (auto& [number, post] : posts_) {
    if (post.id.empty() || owner_->awaits(post.id)) continue;
    (post.is_large() ? ended : over).push_back(number);
    release(post);
  }
  // Others may be about to end, and their connections are good for the next message.
  over.resize(over.size() > kMaxOver ? over.size() - kMaxOver : 0);
  for (const auto& numbers : {ended, over}) {
    for (const std::uint64_t number : numbers) posts_.erase(number);
  }
}

void SseLink::post(OutgoingMessage message, Lane* lane) {
  HttpHeaderList headers = options_.headers;
  headers.emplace_back("Content-Type", "application/json");
  const std::uint64_t number = ++last_number_;
  Post& made = posts_[number];
  made.id = std::move(message.id);
  made.bytes = message.text.size();
  made.memory = std::move(message.memory);
  made.lane = lane;
  if (lane != nullptr) ++lane->under_way;
  // Whoever waits for an answer decides for how long.
  const bool is_patient = !made.id.empty();
  const auto status = std::make_shared<int>(0);
  made.call =
      http_.send({.method = "POST",
                  .url = *place_,
                  .headers = std::move(headers),
                  .body = std::move(message.text),
                  .is_patient = is_patient},
                 {.on_head = [status](const HttpReplyHead& head) { *status = head.status; },
                  .on_sent = [this, number] { taken(number); },
                  .on_body = {},
                  .on_complete =
                      [this, number, status] {
                        posted(number, {*status, "The server answers with HTTP " +
                                                     std::to_string(*status) + " to the message"});
                      },
                  .on_failure =
                      [this, number](const Error& why) {
                        posted(number, {code_of(why), why.message, why.data});
                      }});
}

/// The server has a message, whatever it thinks of it. Others need not wait until its reply has
/// ended.
void SseLink::taken(std::uint64_t number) {
  Post& post = posts_.at(number);
  if (post.lane == nullptr) return;
  release(post);
  leave_lane(post);
  if (last_words_.have_begun()) {
    posts_.erase(number);
    return posts_.empty() ? leave() : void();
  }
  taken_.push_back(number);
  if (taken_.size() <= kMaxOver) return;
  // Most have ended meanwhile.
  posts_.erase(taken_.front());
  taken_.pop_front();
}

void SseLink::leave_lane(Post& post) {
  Lane* const lane = std::exchange(post.lane, nullptr);
  if (lane == nullptr) return;
  --lane->under_way;
  if (lane->waiting.empty()) return;
  OutgoingMessage next = std::move(lane->waiting.front());
  lane->waiting.pop_front();
  this->post(std::move(next), lane);
}

/// `why`: with the status as its code, or why there is none.
void SseLink::posted(std::uint64_t number, const Error& why) {
  Post done = std::move(posts_.extract(number).mapped());
  release(done);
  leave_lane(done);
  if (last_words_.have_begun()) return posts_.empty() ? leave() : void();
  if (why.code / 100 != 2 && !done.id.empty()) owner_->on_unanswered(done.id, why);
}

void SseLink::lose(int code, const std::string& why) {
  const Error error(code, why);
  is_over_ = true;
  // The callback that runs may belong to one of them.
  const AuthorizedHttp::Call stream = std::move(stream_);
  const auto posts = std::exchange(posts_, {});
  waiting_.clear();
  taken_.clear();
  for (Lane* const lane : {&notifications_, &answers_}) *lane = {.most = lane->most};
  bytes_ = 0;
  if (last_words_.have_begun()) return leave();
  owner_->on_lost(error);
}

}  // namespace sluice
