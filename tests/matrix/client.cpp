#include "client.hpp"

#include <stdexcept>
#include <utility>

#include "memory_client.hpp"
#include "protocol/wire_schemas_test_support.hpp"
#include "session_client.hpp"
#include "wire_client.hpp"

namespace sluice::matrix {

std::unique_ptr<Client> Client::connect(Served& served, const Transport& transport,
                                        const Revision& revision, bool asked) {
  if (transport.link != nullptr) {
    return std::make_unique<SessionClient>(served, transport, revision, asked);
  }
  if (transport.connect == nullptr) {
    return std::make_unique<MemoryClient>(served, transport, revision, asked);
  }
  return std::make_unique<WireClient>(served, transport, revision, asked);
}

bool Client::has(std::string_view definition) const {
  return WireSchema::of(*revision_).has(definition);
}

json::object Client::result(std::string_view method, json::object params) {
  json::object response = request(method, std::move(params));
  const json::value* const result = response.if_contains("result");
  if (result == nullptr) throw std::runtime_error(to_json(response));
  return result->as_object();
}

std::int64_t Client::error(std::string_view method, json::object params) {
  const json::object response = request(method, std::move(params));
  const json::value* const error = response.if_contains("error");
  return error == nullptr ? 0 : error->at("code").as_int64();
}

json::object Client::call(std::string_view tool, json::object arguments) {
  return result("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
}

json::object Client::answer(std::string_view method) {
  if (method == "elicitation/create") {
    return {{"action", "accept"}, {"content", {{"name", "Ada"}}}};
  }
  if (method == "sampling/createMessage") {
    return {{"role", "assistant"},
            {"content", {{"type", "text"}, {"text", "something"}}},
            {"model", "a model"},
            {"stopReason", "endTurn"}};
  }
  return {{"roots", {{{"uri", "file:///home"}, {"name", "home"}}}}};
}

}  // namespace sluice::matrix
