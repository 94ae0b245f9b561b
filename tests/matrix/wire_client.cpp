#include "wire_client.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <utility>

#include "protocol/wire_schemas_test_support.hpp"
#include "served.hpp"

namespace sluice::matrix {

WireClient::WireClient(Served& served, const Transport& transport, const Revision& revision,
                       bool asked)
    : Client(transport, revision), link_(transport.connect(served, revision)) {
  if (asked) {
    if (has("ElicitRequest")) capabilities_["elicitation"] = json::object();
    capabilities_["sampling"] = json::object();
    capabilities_["roots"] = json::object();
  }
  if (revision.tasks == TaskModel::extension) {
    capabilities_["extensions"] = {{"io.modelcontextprotocol/tasks", json::object()}};
  }
  if (modern()) return;
  agreed_ = result("initialize", {{"protocolVersion", revision.name},
                                  {"capabilities", capabilities_},
                                  {"clientInfo", {{"name", "matrix"}, {"version", "1"}}}});
  // From here on, the HTTP link knows the agreed revision.
  if (transport.sessions) {
    notify("notifications/initialized");
    link_->session_begun();
  } else {
    link_->session_begun();
    notify("notifications/initialized");
  }
}

json::object WireClient::request(std::string_view method, json::object params) {
  json::object response = response_to(begin(method, params));
  while (true) {
    const json::value* const result = response.if_contains("result");
    const json::value* const type =
        result == nullptr ? nullptr : result->get_object().if_contains("resultType");
    if (type == nullptr || *type != "input_required") return response;
    json::object answers;
    for (const auto& [key, question] : result->at("inputRequests").as_object()) {
      answers[key] = answer(question.at("method").as_string());
    }
    params["inputResponses"] = std::move(answers);
    params["requestState"] = result->at("requestState");
    response = response_to(begin(method, params));
  }
}

std::int64_t WireClient::begin(std::string_view method, json::object params) {
  json::object message{{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}};
  params = with_meta(std::move(params));
  if (!params.empty()) message["params"] = std::move(params);
  open_.push_back({last_id_, std::string(method)});
  send(message);
  return last_id_;
}

json::object WireClient::response_to(std::int64_t id) {
  while (true) {
    const auto found = std::ranges::find_if(
        responses_, [&](const json::object& each) { return each.at("id") == id; });
    if (found == responses_.end()) {
      take();
      continue;
    }
    json::object response = std::move(*found);
    responses_.erase(found);
    return response;
  }
}

void WireClient::notify(std::string_view method, json::object params) {
  json::object message{{"jsonrpc", "2.0"}, {"method", method}};
  params = with_meta(std::move(params));
  if (!params.empty()) message["params"] = std::move(params);
  send(message);
}

void WireClient::cancel(std::int64_t id) {
  if (!link_->leave()) notify("notifications/cancelled", {{"requestId", id}});
}

json::object WireClient::notification(std::string_view method) {
  while (true) {
    const auto found = std::ranges::find_if(notifications_, [&](const json::object& each) {
      return each.at("method").as_string() == method;
    });
    if (found == notifications_.end()) {
      take();
      continue;
    }
    json::object taken = std::move(*found);
    notifications_.erase(found);
    const json::value* const params = taken.if_contains("params");
    return params == nullptr ? json::object() : params->as_object();
  }
}

std::size_t WireClient::waiting(std::string_view method) {
  return static_cast<std::size_t>(std::ranges::count_if(
      notifications_,
      [&](const json::object& each) { return each.at("method").as_string() == method; }));
}

json::value WireClient::exchange(const json::value& message) {
  link_->send(message);
  return link_->receive();
}

json::object WireClient::with_meta(json::object params) const {
  if (!modern()) return params;
  json::object& meta =
      params["_meta"].is_object() ? params["_meta"].get_object() : params["_meta"].emplace_object();
  meta["io.modelcontextprotocol/protocolVersion"] = revision().name;
  meta["io.modelcontextprotocol/clientInfo"] = {{"name", "matrix"}, {"version", "1"}};
  meta["io.modelcontextprotocol/clientCapabilities"] = capabilities_;
  return params;
}

void WireClient::send(const json::object& message) {
  EXPECT_EQ(WireSchema::of(revision()).check_received(message), "") << to_json(message);
  link_->send(message);
}

void WireClient::take() {
  const json::value message = link_->receive();
  const json::object& members = message.as_object();
  const json::value* const id = members.if_contains("id");
  const auto asked = std::ranges::find_if(
      open_, [&](const Sent& each) { return id != nullptr && *id == each.id; });
  const bool is_response = !members.contains("method");
  const std::string wrong =
      WireSchema::of(revision())
          .check_sent(message, is_response && asked != open_.end() ? asked->method : "");
  EXPECT_EQ(wrong, "") << to_json(message);
  if (is_response) {
    if (asked == open_.end()) throw std::runtime_error("nobody asked: " + to_json(message));
    open_.erase(asked);
    responses_.push_back(members);
  } else if (id == nullptr) {
    notifications_.push_back(members);
  } else {
    EXPECT_FALSE(modern()) << "a server of 2026-07-28 sends no requests";
    send({{"jsonrpc", "2.0"}, {"id", *id}, {"result", answer(members.at("method").as_string())}});
  }
}

}  // namespace sluice::matrix
