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
  void on_end(const AnswerEnd& end) override { settle(end.error); }

  /// The error of an answer that failed; an empty one if it has begun, or not in time.
  Error wait(Duration at_most) {
    std::future<Error> first = settled_.get_future();
    return first.wait_for(at_most) == std::future_status::ready ? first.get() : Error{};
  }

 private:
  void settle(const Error& error) {
    if (!std::exchange(is_settled_, true)) settled_.set_value(error);
  }

  std::promise<Error> settled_;
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
  const Error error = sign.wait(kPatience);
  pending->cancel();
  if (error.code == kMethodNotFound || error.code == kInvalidParams) {
    return fail(kExitUsage, error.message);
  }
  return {};
}

}  // namespace sluice
