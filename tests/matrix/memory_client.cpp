#include "memory_client.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "served.hpp"

namespace sluice::matrix {
namespace {

testing::Answer answering(std::string_view method) {
  return [method](const json::object& /*params*/) { return Client::answer(method); };
}

testing::ClientOptions options_of(const Revision& revision, bool asked, bool forms) {
  testing::ClientOptions options{.revision = std::string(revision.name),
                                 .tasks = revision.tasks == TaskModel::extension};
  if (!asked) return options;
  if (forms) options.on_elicitation = answering("elicitation/create");
  options.on_sampling = answering("sampling/createMessage");
  options.on_roots = answering("roots/list");
  return options;
}

}  // namespace

MemoryClient::MemoryClient(Served& served, const Transport& transport, const Revision& revision,
                           bool asked)
    : Client(transport, revision),
      client_(served.server(), options_of(revision, asked, has("ElicitRequest"))) {}

json::object MemoryClient::request(std::string_view method, json::object params) {
  testing::Reply reply = client_.request(method, std::move(params));
  if (!reply.error) return {{"result", std::move(reply.result)}};
  return {{"error", {{"code", reply.error->code}, {"message", reply.error->message}}}};
}

std::int64_t MemoryClient::begin(std::string_view method, json::object params) {
  begun_.emplace(++last_id_, client_.begin(method, std::move(params)));
  return last_id_;
}

void MemoryClient::cancel(std::int64_t id) {
  const auto found = begun_.find(id);
  found->second.cancel();
  begun_.erase(found);
  client_.run();
}

json::object MemoryClient::notification(std::string_view method) {
  // Workers may have to finish something first.
  for (int tries = 0; waiting(method) == 0 && tries < 100; ++tries) {
    client_.advance(std::chrono::milliseconds(1));
  }
  std::deque<json::object>& all = arrived(method);
  if (all.empty()) throw std::runtime_error("not told of " + std::string(method));
  json::object first = std::move(all.front());
  all.pop_front();
  return first;
}

std::size_t MemoryClient::waiting(std::string_view method) {
  return arrived(method).size();
}

json::value MemoryClient::exchange(const json::value& /*message*/) {
  throw std::logic_error("it has no messages of its own");
}

std::deque<json::object>& MemoryClient::arrived(std::string_view method) {
  std::deque<json::object>& all = notifications_[std::string(method)];
  for (json::object& each : client_.take_notifications(method)) all.push_back(std::move(each));
  return all;
}

}  // namespace sluice::matrix
