#include "sluice/model.hpp"

#include <utility>

#include "engine/function_engine.hpp"
#include "engine/openai/openai_engine.hpp"
#include "engine/shared_engine.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {

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
  return Model(share_engine(make_function_engine(std::move(name), std::move(answer))));
}

}  // namespace sluice
