#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/openai/dialect.hpp"
#include "json/json.hpp"
#include "net/client/http_client.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// A model of a server that has the API of OpenAI.
struct RemoteModel {
  std::string name;
  const Dialect* dialect = &kCommonDialect;
  std::uint32_t context_tokens = 0;  // 0: unknown
};

/// The URL of a path of the API, such as "/models". The path of `base` ends with the API's version,
/// as in https://host/v1; its query stays.
Url api_url(const Url& base, std::string_view path);
/// The header fields that carry a key; none if it is empty.
HttpHeaderList key_headers(const std::string& key);
/// What a server may repeat that is secret: the key, and what secrets_in_url() finds in `base`.
std::vector<std::string> secrets_of(const Url& base, const std::string& key);
/// A text of the server without these secrets.
std::string without_keys(std::string text, const std::vector<std::string>& secrets);

/// The model with this name in the reply to GET /models; an empty name means the only one. Errors
/// (kBadRequest) say what to name.
Result<RemoteModel> find_model(const json::object& reply, const std::string& name, const Url& base);

}  // namespace sluice
