#include "server/transport/http/http_refusal.hpp"

#include <utility>

#include "rpc/message.hpp"

namespace sluice {

void refuse(HttpExchange& exchange, int status, int code, std::string message, HeaderFields extra) {
  std::string body;
  append_error(body, {}, Error{code, std::move(message), {}});
  exchange.reply(status, "application/json", body, extra);
}

bool accepts(const HttpRequest& request, std::string_view type, std::string_view any_subtype) {
  std::string all;
  const std::string_view accept = request.list(KnownHeader::accept, all);
  return accept.data() == nullptr || list_has_token(accept, type) ||
         list_has_token(accept, any_subtype) || list_has_token(accept, "*/*");
}

}  // namespace sluice
