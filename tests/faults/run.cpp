#include "run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "client/link/http_link.hpp"
#include "client/link/line_link.hpp"
#include "client/link/sse_link.hpp"
#include "client/link/websocket_link.hpp"
#include "client/session/client_session.hpp"
#include "core/clock.hpp"
#include "json/members.hpp"
#include "world.hpp"

namespace sluice::faults {
namespace {

using namespace std::chrono_literals;

/// All ends sooner than that, by the client's deadlines: 30 s to connect, 60 s for a call without
/// progress, and what dribbles in before.
constexpr Duration kLongest = 90s;
std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// What came of a call.
struct Outcome {
  int answers = 0;
  std::string text;  // the result, or the error's message
  bool is_error = false;
  int progress = 0;  // before the answer
  bool is_cancelled = false;
};

std::unique_ptr<ServerLink> make_link(World& world, const Plan& plan) {
  Url url{.scheme = "http", .host = "127.0.0.1", .port = 80, .target = "/mcp"};
  HttpClientOptions http;
  http.dial = [&world](const Url&) { return world.connect(); };
  switch (plan.transport) {
    case Transport::http: {
      HttpLinkOptions options{.url = url, .http = http, .max_message = plan.max_message};
      // Without chance, which would make each run different.
      options.resumption = {.first = Duration(1), .longest = Duration(1), .attempts = 4};
      return std::make_unique<HttpLink>(world.loop(), options);
    }
    case Transport::sse:
      return std::make_unique<SseLink>(
          world.loop(), SseLinkOptions{.url = url, .http = http, .max_message = plan.max_message});
    case Transport::websocket: {
      WebSocketLinkOptions options{.url = url};
      options.socket.dial = http.dial;
      options.socket.max_message = plan.max_message;
      return std::make_unique<WebSocketLink>(world.loop(), options);
    }
    case Transport::lines:
      break;
  }
  return std::make_unique<LineLink>(
      world.loop(),
      [&world]() -> Result<LineEnds> {
        Result<Descriptor> socket = world.connect();
        if (!socket) return std::unexpected(socket.error());
        return LineEnds{.input = std::move(*socket), .output = {}};
      },
      LineLinkLimits{.max_message = plan.max_message});
}

/// The client of one plan.
class Play {
 public:
  explicit Play(const Plan& plan) : plan_(plan), world_(plan) {}

  Verdict play() {
    connect();
    if (connected_ && *connected_) {
      call();
      if (session_ != nullptr) call_again();
    }
    leave();
    for (const std::string& each : world_.server().complaints()) complain(each);
    std::string course = std::to_string(world_.now().time_since_epoch().count());
    for (const Outcome& each : outcomes_) {
      course.append("; ").append(std::to_string(each.progress)).append(" ").append(each.text);
    }
    return {.complaints = std::move(complaints_),
            .coverage = world_.server().coverage(),
            .course = std::move(course)};
  }

 private:
  void complain(std::string what) { complaints_.push_back(std::move(what)); }
  void run(const std::function<bool()>& done, std::string_view what, Duration at_most = kLongest) {
    if (!world_.run(done, at_most)) complain("goes round: " + std::string(what));
  }

  void connect() {
    ClientSessionOptions options;
    options.capabilities = {
        {"sampling", json::object()}, {"elicitation", json::object()}, {"roots", json::object()}};
    if (plan_.is_pinned) options.revision = plan_.revision->name;
    options.on_question = [](ServerQuestion question) { question.answer(json::object()); };
    options.on_notification = [this](std::string_view method, const json::object& params) {
      if (method != "notifications/message") return;
      if (text_at(params, "data") != kNews) complain("a log message is spoilt");
      if (text_at(params, "logger") == kListener) has_news_ = true;
    };
    options.on_lost = [this](const Error&) {
      if (is_lost_) complain("the link is lost twice");
      is_lost_ = true;
    };
    session_ = std::make_shared<ClientSession>(world_.loop(), make_link(world_, plan_), options);
    session_->connect([this](Result<ServerDescription> outcome) {
      if (connected_) complain("it connects twice");
      connected_ = std::move(outcome);
    });
    run([this] { return connected_.has_value(); }, "connecting");
    if (!connected_) return complain("it never connects, nor says why it cannot");
    judge("connecting", *plan_.connecting, !*connected_,
          *connected_ ? "" : connected_->error().message);
  }

  void call() {
    for (std::size_t i = 0; i < plan_.calls.size(); ++i) {
      outcomes_.emplace_back();
      world_.loop().schedule_at(world_.loop().clock().now() + plan_.calls[i].begins, [this, i] {
        if (session_ == nullptr) return;
        numbers_[i] = begin(i);
        if (const auto after = plan_.calls[i].cancelled) {
          world_.loop().schedule_at(world_.loop().clock().now() + *after, [this, i] {
            if (session_ != nullptr && outcomes_[i].answers == 0) cancel(i);
          });
        }
      });
    }
    if (plan_.leaves) {
      world_.loop().schedule_at(world_.now() + *plan_.leaves, [this] { leave_now(); });
    }
    run(
        [this] {
          return session_ == nullptr || std::ranges::all_of(outcomes_, [](const Outcome& each) {
                   return each.answers > 0 || each.is_cancelled;
                 });
        },
        "calling");
    // What comes too late must do no harm.
    run([] { return false; }, "after the calls", 20s);
    for (std::size_t i = 0; i < outcomes_.size(); ++i) judge(i);
    if (session_ == nullptr) return;
    if (plan_.connecting->kind == Kind::listening_drip && !has_news_) {
      complain("a message that belongs to no request is lost");
    }
    if (session_->unanswered() != 0) complain("requests are left");
    if (world_.server().unended() != 0) complain("a reply is read although it is answered");
  }

  void cancel(std::size_t call) {
    outcomes_[call].is_cancelled = true;
    session_->cancel(numbers_[call]);
  }
  void leave_now() {
    has_left_ = true;
    session_ = nullptr;
  }
  void react() {
    if (plan_.reaction == Reaction::leaves) leave_now();
    if (plan_.reaction != Reaction::cancels) return;
    for (const auto& [call, number] : numbers_) {
      if (outcomes_[call].answers == 0 && !outcomes_[call].is_cancelled) cancel(call);
    }
  }

  ClientSession::Number begin(std::size_t call) {
    RequestOptions options;
    if (call < plan_.calls.size()) {
      options.timeout = plan_.calls[call].timeout.value_or(Duration());
    }
    const auto hear = [this, call](std::string_view what) {
      if (has_left_) complain(std::string(what) + " after the session");
      if (outcomes_[call].is_cancelled) complain(std::string(what) + " of a cancelled call");
      if (outcomes_[call].answers > 0) complain(std::string(what) + " after the answer");
    };
    return session_->begin("tools/call", {{"name", kTool}, {"arguments", {{"call", call}}}},
                           options,
                           {.on_progress =
                                [this, call, hear](const json::object& params) {
                                  hear("progress");
                                  check_progress(params);
                                  ++outcomes_[call].progress;
                                },
                            .on_answer =
                                [this, call, hear](Result<json::object> answer) {
                                  hear("an answer");
                                  Outcome& outcome = outcomes_[call];
                                  ++outcome.answers;
                                  outcome.is_error = !answer;
                                  outcome.text = answer ? to_json(*answer) : answer.error().message;
                                  react();
                                }});
  }

  void check_progress(const json::object& params) {
    const json::value* const step = params.if_contains("progress");
    if (step == nullptr || !step->is_int64() ||
        text_at(params, "message") != progress_text(step->get_int64())) {
      complain("progress is spoilt: " + to_json(params));
    }
  }

  /// Faults of other requests that a request may suffer from.
  [[nodiscard]] std::vector<const Fault*> shared() const {
    std::vector<const Fault*> found;
    const auto look_at = [&](const Fault* fault) {
      const bool is_own = plan_.transport == Transport::http && fault->kind != Kind::double_reply;
      if (fault->is_shared && !is_own) found.push_back(fault);
    };
    look_at(plan_.connecting);
    for (const PlannedCall& call : plan_.calls) look_at(call.fault);
    return found;
  }

  /// Whether the server forgets its session during one of the calls.
  [[nodiscard]] bool forgets() const {
    return std::ranges::any_of(plan_.calls, [](const PlannedCall& call) {
      return call.fault->kind == Kind::forgotten_once || call.fault->kind == Kind::forgotten_always;
    });
  }

  void judge(std::size_t i) {
    const Outcome& outcome = outcomes_[i];
    const std::string what = "call " + std::to_string(i);
    if (outcome.answers > 1) complain(what + " is answered " + std::to_string(outcome.answers));
    if (outcome.is_cancelled) {
      if (outcome.answers > 0) complain(what + " is answered although it is cancelled");
      return;
    }
    if (outcome.answers == 0) {
      if (!has_left_) complain(what + " is never answered");
      return;
    }
    if (outcome.is_error && plan_.calls[i].timeout &&
        outcome.text.find("it took too long") != std::string::npos &&
        (plan_.calls[i].fault->effect != Effect::answered || !shared().empty())) {
      return;
    }
    if (!outcome.is_error && outcome.text.find(nonce_of(plan_.seed, i)) == std::string::npos) {
      complain(what + " has the answer of another: " + outcome.text);
    }
    const PlannedCall& call = plan_.calls[i];
    if (!outcome.is_error && outcome.progress < call.progress) {
      complain(what + " is answered before its progress");
    }
    judge(what, *call.fault, outcome.is_error, outcome.text);
  }

  void judge(const std::string& what, const Fault& fault, bool is_error, std::string_view text) {
    const auto has_text_of = [text](const Fault& each) {
      return std::ranges::any_of(each.texts, [text](std::string_view part) {
        return text.find(part) != std::string_view::npos;
      });
    };
    const auto named_by = [&](const Fault& each) {
      const bool is_refused = manner_of(each.kind, Place::refusal) != Kind::none;
      return has_text_of(each) || (is_refused && has_text_of(*plan_.refusal));
    };
    if (!is_error) {
      if (fault.effect == Effect::failed) complain(what + " succeeds");
      return;
    }
    if (fault.effect != Effect::answered && named_by(fault)) return;
    for (const Fault* const other : shared()) {
      if (named_by(*other)) return;
    }
    // A session takes its streams and its questions with it.
    for (const char* const lost :
         {"the session of the stream is over", "session in which it asked"}) {
      if (forgets() && text.find(lost) != std::string_view::npos) return;
    }
    complain(what + " fails with an error that does not name the fault " + std::string(fault.name) +
             ": " + std::string(text));
  }

  /// The client can still be used, unless its connection is over or says nothing any more.
  void call_again() {
    const std::size_t last = plan_.calls.size();
    outcomes_.emplace_back();
    begin(last);
    run([this] { return outcomes_.back().answers > 0; }, "calling again");
    const Outcome& outcome = outcomes_.back();
    if (outcome.answers != 1) return complain("a later call has no answer");
    if (!outcome.is_error) {
      if (is_lost_) complain("a lost link answers");
      return;
    }
    const bool may_fail = is_lost_ || !shared().empty();
    if (!may_fail) complain("a later call fails: " + outcome.text);
  }

  void leave() {
    session_ = nullptr;
    // A legacy session over HTTP takes its leave.
    run([] { return false; }, "leaving", 5s);
    if (world_.open() != 0) complain("connections are left open");
    if (world_.loop().next_timer()) complain("timers are left");
  }

  const Plan& plan_;
  World world_;
  std::shared_ptr<ClientSession> session_;
  std::optional<Result<ServerDescription>> connected_;
  std::deque<Outcome> outcomes_;
  std::map<std::size_t, ClientSession::Number> numbers_;
  bool is_lost_ = false;
  bool has_news_ = false;  // from the stream that belongs to no request
  bool has_left_ = false;
  std::vector<std::string> complaints_;
};

}  // namespace

Verdict play(const Plan& plan) {
  const std::ptrdiff_t before = open_descriptors();
  Verdict verdict = Play(plan).play();
  if (open_descriptors() != before) verdict.complaints.emplace_back("descriptors are left open");
  return verdict;
}

}  // namespace sluice::faults
