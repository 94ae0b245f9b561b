#pragma once

#include <string>
#include <string_view>

#include "net/http/http_exchange.hpp"

namespace sluice {

/// Answers with an HTTP status and a JSON-RPC error without an id as the body.
void refuse(HttpExchange& exchange, int status, int code, std::string message,
            HeaderFields extra = {});

/// Whether the Accept of `request`, if there is one, takes `type`, one of `any_subtype`.
bool accepts(const HttpRequest& request, std::string_view type, std::string_view any_subtype);

}  // namespace sluice
