#include "cli/serve/remote_engine.hpp"

#include <cstdlib>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "core/text/secrets.hpp"
#include "engine/openai/openai_engine.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/address_kind.hpp"

namespace sluice {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

struct ModelKey {
  std::string variable;  // that holds it, or should
  std::string value;     // empty: there is none
};

std::string without_name(const std::string& model) {
  return model.substr(0, model.find('#'));
}

/// A key is not sent to a host that it was not meant for.
ModelKey key_for(const Url& url, const std::string& name) {
  static constexpr const char* kOfOpenAi = "OPENAI_API_KEY";
  ModelKey own{name, variable(name.c_str())};
  if (!own.value.empty() || url.host != "api.openai.com") return own;
  ModelKey theirs{kOfOpenAi, variable(kOfOpenAi)};
  return theirs.value.empty() ? own : theirs;
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

bool have_same_server(const std::string& model, const std::string& other) {
  const auto one = parse_url(without_name(model));
  const auto two = parse_url(without_name(other));
  return one && two && one->scheme == two->scheme && one->host == two->host &&
         one->port == two->port;
}

Result<std::unique_ptr<Engine>> make_remote_engine(const ServeConfig::Engine& config) {
  const std::string& model = config.model;
  const auto hash = model.find('#');
  Result<Url> url = parse_url(without_name(model));
  const std::string shown = config.model_option + " " + masked_url(without_name(model)) + ": ";
  if (!url) return fail(kExitUsage, shown + url.error().message);
  OpenAiOptions options{.base = *std::move(url), .api = config.model_api};
  if (hash != std::string::npos) options.model = model.substr(hash + 1);
  ModelKey key = key_for(options.base, config.model_key);
  const bool has_key = !key.value.empty();
  options.key = std::move(key.value);
  if (!options.key.empty() && !options.base.is_tls() && !is_this_machine(options.base.host)) {
    return fail(kExitUsage, shown +
                                "a key is sent only over https, or to this machine; use https, "
                                "or unset " +
                                key.variable);
  }
  Result<std::unique_ptr<Engine>> engine = make_openai_engine(std::move(options));
  if (engine) return engine;
  Error error = std::move(engine.error());
  if (error.code == kUnauthorized) {
    error.message.append(has_key ? ". It refuses the key in " + key.variable
                                 : ". Set " + key.variable + " to a key of that server");
  }
  error.code = exit_code_of(error.code);
  return std::unexpected(std::move(error));
}

}  // namespace sluice
