#include "client/link/nobody.hpp"

namespace sluice {
namespace {

class Nobody final : public ServerLink::Owner {
 public:
  void on_message(std::string_view /*text*/) override {}
  bool on_reply(const RequestId& /*id*/, std::string_view /*text*/) override { return true; }
  void on_unreadable(std::string_view /*text*/, const Error& /*why*/) override {}
  void on_unanswered(const RequestId& /*id*/, const Error& /*why*/) override {}
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return false; }
  void on_lost(const Error& /*why*/) override {}
};

}  // namespace

ServerLink::Owner& nobody() {
  static Nobody all;
  return all;
}

}  // namespace sluice
