#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "links/call_link.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// Calls `echo` repeatedly in each slot of its link. The first answer in a slot must contain the
/// text; later answers must be identical, or contain it too.
class EchoCaller final : public LinkEvents {
 public:
  EchoCaller(Loop& loop, Tally& tally, std::size_t index, const Route& route, const ToolCall& call,
             std::string_view expected, Child* child)
      : loop_(loop),
        tally_(tally),
        index_(index),
        expected_(expected),
        slots_(call.slots),
        link_(make_call_link(loop, route, call, *this, child)) {
    link_->open();
  }

  void on_ready() override {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) call(slot);
  }

  void on_answer(std::size_t slot, std::string_view message, std::int64_t now) override {
    tally_.bytes += message.size();
    if (is_right(slots_[slot], message)) {
      ++tally_.units;
      ++tally_.replies;
      ++tally_.by_connection[index_];
      tally_.round_trip.add(now - slots_[slot].sent_at);
    } else {
      on_error("not the echo: " + std::string(message.substr(0, 200)));
    }
    call(slot);
  }

  void on_listening() override {}
  void on_error(std::string_view what) override { report_error(loop_, tally_, what); }

 private:
  struct Slot {
    std::int64_t sent_at = 0;
    std::string last_right;
  };

  void call(std::size_t slot) {
    slots_[slot].sent_at = now_ns();
    link_->call(slot);
  }

  bool is_right(Slot& slot, std::string_view message) const {
    if (message == slot.last_right) return true;
    if (message.find(expected_) == std::string_view::npos ||
        message.find(R"("isError":true)") != std::string_view::npos) {
      return false;
    }
    slot.last_right = message;
    return true;
  }

  Loop& loop_;
  Tally& tally_;
  std::size_t index_;
  std::string_view expected_;
  std::vector<Slot> slots_;
  std::unique_ptr<CallLink> link_;
};

}  // namespace

std::uint64_t run_echo(const Options& given) {
  Options options = given;
  const Route route = find_route(options.transport, options.revision);
  if (route.transport == Transport::unix_socket && options.unix_path.empty()) {
    throw std::runtime_error("unix: give --unix");
  }
  std::unique_ptr<Child> child;
  ToolCall call{.tool = "echo", .arguments = {}};
  std::size_t links = options.connections;
  if (route.transport == Transport::stdio && !options.command.empty()) {
    // There is only one pair of pipes, so all calls share it.
    child = std::make_unique<Child>(options.command);
    options.server_pid = child->pid();
    call.slots = links;
    links = 1;
  }
  const std::string text(options.text_bytes, 'x');
  call.arguments = R"({"text":")" + text + R"("})";
  const std::string expected = R"("text":")" + text + '"';

  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  tally->by_connection.resize(links);
  std::vector<std::unique_ptr<EchoCaller>> callers;
  for (std::size_t i = 0; i < links; ++i) {
    callers.push_back(
        std::make_unique<EchoCaller>(loop, *tally, i, route, call, expected, child.get()));
  }
  measure(loop, *tally, options);
  return tally->errors;
}

}  // namespace sluice::bench
