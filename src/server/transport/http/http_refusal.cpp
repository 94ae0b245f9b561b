#include "server/transport/http/http_refusal.hpp"

#include <optional>
#include <utility>

#include "rpc/message.hpp"

namespace sluice {

void refuse(HttpExchange& exchange, int status, const Error& error, HeaderFields extra) {
  std::string body;
  append_error(body, {}, error);
  exchange.reply(status, "application/json", body, extra);
}

void refuse(HttpExchange& exchange, int status, int code, std::string message, HeaderFields extra) {
  refuse(exchange, status, Error{code, std::move(message), {}}, extra);
}

Acceptance acceptance(const HttpRequest& request, std::string_view type,
                      std::string_view any_subtype) {
  std::string all;
  const std::string_view accept = request.list(KnownHeader::accept, all);
  if (accept.data() == nullptr) return Acceptance::by_range;
  // The most specific range decides.
  for (const std::string_view range : {type, any_subtype, std::string_view("*/*")}) {
    const std::optional<double> weight = list_weight(accept, range);
    if (!weight) continue;
    if (*weight <= 0) return Acceptance::no;
    return range == type ? Acceptance::by_name : Acceptance::by_range;
  }
  return Acceptance::no;
}

bool accepts(const HttpRequest& request, std::string_view type, std::string_view any_subtype) {
  return acceptance(request, type, any_subtype) != Acceptance::no;
}

bool accepts_by_name(const HttpRequest& request, std::string_view type) {
  std::string all;
  return list_weight(request.list(KnownHeader::accept, all), type).value_or(0) > 0;
}

}  // namespace sluice
