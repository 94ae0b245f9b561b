#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "net/http/http_exchange.hpp"

namespace sluice {

/// Answers with an HTTP status and a JSON-RPC error without an id as the body.
void refuse(HttpExchange& exchange, int status, const Error& error, HeaderFields extra = {});
void refuse(HttpExchange& exchange, int status, int code, std::string message,
            HeaderFields extra = {});

/// How the Accept field of a request takes a type: by its name, or only by a range such as */*.
enum class Acceptance : std::uint8_t { no, by_range, by_name };

/// How the Accept field of `request` takes `type`, which is one of `any_subtype` (such as text/*).
/// Without the field, everything is taken, as by */*.
Acceptance acceptance(const HttpRequest& request, std::string_view type,
                      std::string_view any_subtype);
/// Whether it takes `type` in either way.
bool accepts(const HttpRequest& request, std::string_view type, std::string_view any_subtype);
/// Whether the field names `type` itself and takes it.
bool accepts_by_name(const HttpRequest& request, std::string_view type);

}  // namespace sluice
