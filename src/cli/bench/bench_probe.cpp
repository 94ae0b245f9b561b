#include "cli/bench/bench_probe.hpp"

#include <chrono>
#include <future>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "client/answer_client.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Waits for the first sign of an answer. It is called on the client's thread.
class FirstSign final : public AnswerSink {
 public:
  void on_delta(const AnswerDelta& /*delta*/) override { settle({}); }
  void on_end(const AnswerEnd& end) override { settle(end); }

  /// The end of an answer that has failed; a complete one if it has begun, or not in time.
  AnswerEnd wait(Duration at_most) {
    std::future<AnswerEnd> first = settled_.get_future();
    return first.wait_for(at_most) == std::future_status::ready ? first.get() : AnswerEnd{};
  }

 private:
  void settle(const AnswerEnd& end) {
    if (!std::exchange(is_settled_, true)) settled_.set_value(end);
  }

  std::promise<AnswerEnd> settled_;
  bool is_settled_ = false;
};

}  // namespace

Result<void> probe(const ServerAddress& address, const BenchRequest& request) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  AnswerClient client(address);
  FirstSign sign;
  AnswerRequest asked;
  asked.params = request.params;
  if (!request.tool.empty()) asked.tool = request.tool;
  const auto pending = client.ask(request.via, std::move(asked), sign);
  const AnswerEnd end = sign.wait(kPatience);
  pending->cancel();
  if (end.outcome == AnswerEnd::Outcome::unreachable) {
    return fail(kExitUnreachable, "cannot reach the server: " + end.error.message);
  }
  if (end.error.code == kMethodNotFound || end.error.code == kInvalidParams) {
    const bool calls = !request.tool.empty();
    return fail(kExitUsage,
                std::string("the server refuses such a ") + (calls ? "call: " : "stream: ") +
                    end.error.message +
                    (calls ? "; a server with --engine synthetic has the tool echo" : ""));
  }
  return {};
}

}  // namespace sluice
