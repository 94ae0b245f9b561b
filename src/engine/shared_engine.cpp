#include "engine/shared_engine.hpp"

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "client/api/background_loop.hpp"
#include "core/log/log.hpp"

namespace sluice {
namespace {

struct EndOfEngine {
  std::function<void()> ended;

  void operator()(Engine* engine) const {
    if (BackgroundLoop::is_current()) {
      try {
        return std::thread([end = *this, engine] { end.end(engine); }).detach();
      } catch (const std::system_error& error) {
        log_error("a model ends on the thread of all clients",
                  {{"why", std::string_view(error.what())}});
      }
    }
    end(engine);
  }
  void end(Engine* engine) const {
    std::default_delete<Engine>()(engine);
    if (ended) ended();
  }
};

}  // namespace

std::shared_ptr<Engine> share_engine(std::unique_ptr<Engine> engine, std::function<void()> ended) {
  return {engine.release(), EndOfEngine{std::move(ended)}};
}

}  // namespace sluice
