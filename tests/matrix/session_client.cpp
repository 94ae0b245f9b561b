#include "session_client.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "client/link/http_link.hpp"
#include "served.hpp"

namespace sluice::matrix {

SessionClient::SessionClient(Served& served, const Transport& transport, const Revision& revision,
                             bool asked)
    : Client(transport, revision) {
  // As the threads of a LoopPool do.
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  ClientSessionOptions options{.info = {.name = "matrix", .version = "1"},
                               .revision = std::string(revision.name)};
  if (asked) {
    if (has("ElicitRequest")) options.capabilities["elicitation"] = json::object();
    options.capabilities["sampling"] = json::object();
    options.capabilities["roots"] = json::object();
  }
  options.on_question = [](ServerQuestion question) { question.answer(answer(question.method)); };
  options.on_notification = [this](std::string_view method, const json::object& params) {
    notifications_.emplace_back(method, params);
  };
  std::unique_ptr<ServerLink> link = transport.link(served, loop_);
  const auto* const http = dynamic_cast<const HttpLink*>(link.get());
  session_ = std::make_shared<ClientSession>(loop_, std::move(link), options);
  std::optional<Result<ServerDescription>> connected;
  session_->connect([&](Result<ServerDescription> outcome) { connected = std::move(outcome); });
  until([&] { return connected.has_value(); });
  if (!*connected) throw std::runtime_error(connected->error().message);
  if (http != nullptr && !modern()) until([http] { return http->is_listening(); });
}

SessionClient::~SessionClient() {
  session_ = nullptr;
  // A legacy session over HTTP is ended with a request.
  for (int turns = 0; turns < 1000 && loop_.poll(); ++turns) {
  }
  loop_.discard_tasks();
}

json::object SessionClient::request(std::string_view method, json::object params) {
  const std::int64_t id = begin(method, std::move(params));
  until([&] { return responses_.contains(id); });
  return std::move(responses_.extract(id).mapped());
}

std::int64_t SessionClient::begin(std::string_view method, json::object params) {
  // The session has progress tokens of its own.
  std::optional<json::value> token;
  if (const json::value* const meta = params.if_contains("_meta")) {
    if (const json::value* const given = meta->as_object().if_contains("progressToken")) {
      token = *given;
    }
  }
  const auto id = std::make_shared<std::int64_t>(0);
  RequestCallbacks callbacks;
  if (token) {
    callbacks.on_progress = [this, token](const json::object& said) {
      json::object kept(said, json::storage_ptr());
      kept["progressToken"] = *token;
      notifications_.emplace_back("notifications/progress", std::move(kept));
    };
  }
  callbacks.on_answer = [this, id](Result<json::object> outcome) {
    responses_[*id] = outcome ? json::object{{"result", std::move(*outcome)}}
                              : json::object{{"error",
                                              {{"code", outcome.error().code},
                                               {"message", outcome.error().message}}}};
  };
  *id = static_cast<std::int64_t>(session_->begin(std::string(method), std::move(params),
                                                  {.may_become_task = method == "tools/call"},
                                                  std::move(callbacks)));
  return *id;
}

void SessionClient::cancel(std::int64_t id) {
  session_->cancel(static_cast<ClientSession::Number>(id));
  loop_.poll();
}

json::object SessionClient::notification(std::string_view method) {
  until([&] { return waiting(method) > 0; });
  const auto found =
      std::ranges::find(notifications_, method, &std::pair<std::string, json::object>::first);
  json::object params = std::move(found->second);
  notifications_.erase(found);
  return params;
}

std::size_t SessionClient::waiting(std::string_view method) {
  return static_cast<std::size_t>(
      std::ranges::count(notifications_, method, &std::pair<std::string, json::object>::first));
}

json::value SessionClient::exchange(const json::value& /*message*/) {
  throw std::logic_error("it has no messages of its own");
}

void SessionClient::until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the server says nothing");
    }
    if (!loop_.poll()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace sluice::matrix
