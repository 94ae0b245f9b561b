#include "cli/serve/remote_engine.hpp"

#include <cstdlib>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "engine/openai/openai_engine.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// A key is not sent to a host that it was not meant for.
std::string key_for(const Url& url) {
  std::string key = variable("SLUICE_MODEL_KEY");
  if (key.empty() && url.host == "api.openai.com") key = variable("OPENAI_API_KEY");
  return key;
}

int exit_code_of(int status) {
  switch (status) {
    case kUnauthorized:
    case kForbidden:
      return kExitAuthorization;
    case kBadRequest:
      return kExitUsage;
    default:
      return kExitUnreachable;
  }
}

}  // namespace

bool is_remote_model(std::string_view model) {
  return model.starts_with("http://") || model.starts_with("https://");
}

Result<std::unique_ptr<Engine>> make_remote_engine(const std::string& model) {
  const auto hash = model.find('#');
  Result<Url> url = parse_url(model.substr(0, hash));
  if (!url) return fail(kExitUsage, "--model " + model + ": " + url.error().message);
  OpenAiOptions options{.base = *std::move(url)};
  if (hash != std::string::npos) options.model = model.substr(hash + 1);
  options.key = key_for(options.base);
  if (!options.key.empty() && !options.base.is_tls() && options.base.host != "127.0.0.1" &&
      options.base.host != "::1" && options.base.host != "localhost") {
    return fail(kExitUsage, "--model " + model +
                                ": a key is sent only over https, or to this machine; use https, "
                                "or unset SLUICE_MODEL_KEY");
  }
  const bool has_key = !options.key.empty();
  Result<std::unique_ptr<Engine>> engine = make_openai_engine(std::move(options));
  if (engine) return engine;
  Error error = std::move(engine.error());
  if (error.code == kUnauthorized && !has_key) {
    error.message.append(". Set SLUICE_MODEL_KEY to a key of that server");
  }
  error.code = exit_code_of(error.code);
  return std::unexpected(std::move(error));
}

}  // namespace sluice
