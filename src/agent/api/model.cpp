#include "sluice/model.hpp"

#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "client/api/background_loop.hpp"
#include "core/log/log.hpp"
#include "engine/function_engine.hpp"
#include "engine/openai/openai_engine.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// Its end waits for answers that are being given. They may wait for the loop of all clients, whose
/// thread must not wait for them.
struct EndOfModel {
  void operator()(Engine* engine) const {
    std::unique_ptr<Engine> last(engine);
    if (!BackgroundLoop::is_current()) return;
    try {
      std::thread([ends = std::move(last)] {}).detach();
    } catch (const std::system_error& error) {
      log_error("a model ends on the thread of all clients",
                {{"why", std::string_view(error.what())}});
    }
  }
};

}  // namespace

std::string Model::name() const {
  return engine_->info().model;
}

Model remote_model(const RemoteModelOptions& options) {
  const Result<Url> url = parse_url(options.url);
  if (!url || url->is_websocket()) {
    throw Error{kBadRequest,
                "A model's URL begins with http:// or https://, such as "
                "https://host/v1" +
                    (url ? std::string() : ": " + url.error().message)};
  }
  auto engine = make_openai_engine(
      {.base = *url, .model = options.model, .key = options.key, .api = options.api});
  if (!engine) throw Error(std::move(engine.error()));
  return Model(*std::move(engine));
}

Model custom_model(std::string name, ModelFunction answer) {
  return Model(std::shared_ptr<Engine>(
      make_function_engine(std::move(name), std::move(answer)).release(), EndOfModel()));
}

}  // namespace sluice
