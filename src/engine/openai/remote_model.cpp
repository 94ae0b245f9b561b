#include "engine/openai/remote_model.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "core/text/percent_encoding.hpp"
#include "core/text/secrets.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kListed = 10;  // models that an error names
constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kBearer = "Bearer ";

std::vector<const json::object*> models_in(const json::object& reply) {
  std::vector<const json::object*> models;
  const json::value* const data = reply.if_contains("data");
  if (data == nullptr || !data->is_array()) return models;
  for (const json::value& each : data->get_array()) {
    if (each.is_object() && !text_at(each.get_object(), "id").empty()) {
      models.push_back(&each.get_object());
    }
  }
  return models;
}

std::string names_of(const std::vector<const json::object*>& models) {
  std::string names;
  for (std::size_t i = 0; i < std::min(models.size(), kListed); ++i) {
    names.append(i == 0 ? "" : ", ").append(text_at(*models[i], "id"));
  }
  return models.size() > kListed ? names.append(", ...") : names;
}

/// llama-server, vLLM and others each have their own place for it.
std::uint32_t context_of(const json::object& model) {
  static const json::object kNothing;
  const json::object* const meta = object_at(model, "meta");
  const json::object& more = meta == nullptr ? kNothing : *meta;
  const std::array<const json::value*, 4> places = {
      more.if_contains("n_ctx"), model.if_contains("max_model_len"),
      model.if_contains("context_length"), more.if_contains("n_ctx_train")};
  for (const json::value* const place : places) {
    if (place == nullptr || !place->is_int64()) continue;
    const std::int64_t tokens = place->get_int64();
    if (tokens > 0 && tokens <= std::numeric_limits<std::uint32_t>::max()) {
      return static_cast<std::uint32_t>(tokens);
    }
  }
  return 0;
}

}  // namespace

Url api_url(const Url& base, std::string_view path) {
  const auto end = std::min(base.target.find('?'), base.target.size());
  std::string target = base.target.substr(0, end);
  while (target.ends_with('/')) target.pop_back();
  target.append(path).append(base.target, end);
  return with_target(base, std::move(target));
}

HttpHeaderList key_headers(const std::string& key) {
  if (key.empty()) return {};
  return {{std::string(kAuthorization), std::string(kBearer) + key}};
}

std::vector<std::string> secrets_of(const Url& base, const std::string& key) {
  std::vector<std::string> secrets = secrets_in_url(base.to_string());
  if (!key.empty()) secrets.push_back(key);
  return secrets;
}

std::string without_keys(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string_view secret : secrets) {
    std::string encoded;
    append_query_encoded(encoded, secret);
    text =
        SecretMask(as_in_json({std::string(secret), std::move(encoded)})).masked(std::move(text));
    // Where a text was cut, the beginning of the secret may be left.
    for (auto cut = text.find("..."); cut != std::string::npos; cut = text.find("...", cut + 3)) {
      std::size_t left = std::min(cut, secret.size());
      while (left >= kShortestSecret &&
             !std::string_view(text).substr(0, cut).ends_with(secret.substr(0, left)))
        --left;
      if (left < kShortestSecret) continue;
      text.replace(cut - left, left, kMask);
      cut = cut - left + kMask.size();
    }
  }
  return text;
}

Result<RemoteModel> find_model(const json::object& reply, const std::string& name,
                               const Url& base) {
  const std::vector<const json::object*> models = models_in(reply);
  const auto found = std::ranges::find_if(models, [&](const json::object* model) {
    return name.empty() ? models.size() == 1 : text_at(*model, "id") == name;
  });
  if (found != models.end()) {
    return RemoteModel{.name = std::string(text_at(**found, "id")),
                       .dialect = &dialect_of(base.host, **found),
                       .context_tokens = context_of(**found)};
  }
  const std::string at = masked_url(base.to_string());
  if (models.empty()) return fail(kBadRequest, at + " has no models");
  if (name.empty()) {
    return fail(kBadRequest, at + " has several models; name one, as in " + at + "#" +
                                 std::string(text_at(*models.front(), "id")) + ". It has " +
                                 names_of(models));
  }
  return fail(kBadRequest, at + " has no model \"" + name + "\", but " + names_of(models));
}

}  // namespace sluice
