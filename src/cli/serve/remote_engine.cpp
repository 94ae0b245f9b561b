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
  const char* variable;  // that holds it, or should
  std::string value;     // empty: there is none
};

/// A key is not sent to a host that it was not meant for.
ModelKey key_for(const Url& url) {
  static constexpr const char* kOwn = "SLUICE_MODEL_KEY";
  static constexpr const char* kOfOpenAi = "OPENAI_API_KEY";
  if (ModelKey own{kOwn, variable(kOwn)}; !own.value.empty()) return own;
  if (url.host != "api.openai.com") return {kOwn, {}};
  ModelKey theirs{kOfOpenAi, variable(kOfOpenAi)};
  return theirs.value.empty() ? ModelKey{kOwn, {}} : theirs;
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

Result<std::unique_ptr<Engine>> make_remote_engine(const std::string& model, ModelApi api) {
  const auto hash = model.find('#');
  Result<Url> url = parse_url(model.substr(0, hash));
  const std::string shown = "--model " + masked_url(model.substr(0, hash)) + ": ";
  if (!url) return fail(kExitUsage, shown + url.error().message);
  OpenAiOptions options{.base = *std::move(url), .api = api};
  if (hash != std::string::npos) options.model = model.substr(hash + 1);
  ModelKey key = key_for(options.base);
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
    const std::string name = key.variable;
    error.message.append(has_key ? ". It refuses the key in " + name
                                 : ". Set " + name + " to a key of that server");
  }
  error.code = exit_code_of(error.code);
  return std::unexpected(std::move(error));
}

}  // namespace sluice
