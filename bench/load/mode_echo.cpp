#include <memory>
#include <string>
#include <vector>

#include "http_reply.hpp"
#include "modes.hpp"
#include "requests.hpp"

namespace sluice::bench {
namespace {

/// Calls `echo` again and again. The first reply must hold the text; the later ones must have the
/// same body, or hold it too.
class EchoCaller final : public Connection {
 public:
  EchoCaller(Loop& loop, Tally& tally, std::string_view request, std::string_view expected)
      : Connection(loop), tally_(tally), request_(request), expected_(expected) {}

  void on_open() override {
    opened_ = true;
    reply_.restart();
    call();
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    tally_.bytes += bytes.size();
    reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); });
    if (!reply_.done() && !reply_.failed()) return;
    if (reply_.failed() || reply_.status() != 200 || !is_right()) {
      report_error(loop(), tally_,
                   "echo: status " + std::to_string(reply_.status()) + ": " + body_.substr(0, 200));
    } else {
      ++tally_.units;
      ++tally_.replies;
      tally_.round_trip.add(now - sent_at_);
    }
    reply_.restart();
    call();
  }

  void on_closed(std::string_view why) override {
    if (!opened_ || !body_.empty() || reply_.has_head()) report_error(loop(), tally_, why);
    opened_ = false;
    loop().open(*this);
  }

 private:
  void call() {
    body_.clear();
    sent_at_ = now_ns();
    send(request_);
  }

  bool is_right() {
    if (body_ == last_right_) return true;
    if (body_.find(expected_) == std::string::npos ||
        body_.find(R"("isError":true)") != std::string::npos) {
      return false;
    }
    last_right_ = body_;
    return true;
  }

  Tally& tally_;
  std::string_view request_;
  std::string_view expected_;
  HttpReply reply_;
  std::string body_;
  std::string last_right_;
  std::int64_t sent_at_ = 0;
  bool opened_ = false;
};

}  // namespace

std::uint64_t run_echo(const Options& options) {
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  const std::string text(options.text_bytes, 'x');
  const std::string request = tool_call_request("echo", R"({"text":")" + text + R"("})");
  const std::string expected = R"("text":")" + text + '"';
  std::vector<std::unique_ptr<EchoCaller>> callers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    callers.push_back(std::make_unique<EchoCaller>(loop, *tally, request, expected));
    loop.open(*callers.back());
  }
  measure(loop, *tally, options);
  return tally->errors;
}

}  // namespace sluice::bench
