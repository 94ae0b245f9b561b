#include "cli/bench/bench_transport.hpp"

#include <chrono>
#include <utility>

#include "client/answer_connection.hpp"
#include "client/shared_websocket.hpp"
#include "net/client/http_client.hpp"

namespace sluice {

struct BenchTransport::Connections {
  std::vector<std::unique_ptr<HttpClient>> http;
  std::vector<std::unique_ptr<SharedWebSocket>> sockets;
};

struct BenchTransport::Slot {
  std::unique_ptr<AnswerConnection> connection;  // exactly one of these two is set
  std::unique_ptr<SharedWebSocket::Port> share;
  std::unique_ptr<AnswerMachine> machine;
};

BenchTransport::BenchTransport(EventLoop& loop, const ServerAddress& address, BenchRequest request,
                               std::uint32_t slots, std::uint32_t connections)
    : request_(std::move(request)), connections_(std::make_unique<Connections>()) {
  const bool shares = request_.via == AnswerVia::ws;
  for (std::uint32_t i = 0; i < connections; ++i) {
    if (shares) {
      connections_->sockets.push_back(std::make_unique<SharedWebSocket>(loop, address));
    } else {
      HttpClientOptions options = answer_http_options(address);
      options.max_kept = 1;
      options.keep_idle = std::chrono::seconds(60);
      connections_->http.push_back(std::make_unique<HttpClient>(loop, std::move(options)));
    }
  }
  for (std::uint32_t i = 0; i < slots; ++i) {
    auto slot = std::make_unique<Slot>();
    const std::uint32_t at = i % connections;
    if (shares) {
      slot->share = connections_->sockets[at]->make_port();
    } else {
      slot->connection = std::make_unique<AnswerConnection>(loop, *connections_->http[at], address);
    }
    slots_.push_back(std::move(slot));
  }
}

BenchTransport::~BenchTransport() = default;

void BenchTransport::begin(std::uint32_t number, AnswerSink& sink) {
  Slot& slot = *slots_[number];
  AnswerRequest request;
  request.params = request_.params;
  if (!request_.tool.empty()) request.tool = request_.tool;
  if (slot.share != nullptr) {
    request.first_id = slot.share->next_answer();
    slot.machine = make_answer(request_.via, std::move(request), *slot.share, sink);
    slot.share->set_machine(slot.machine.get());
  } else {
    slot.machine = make_answer(request_.via, std::move(request), *slot.connection, sink);
    slot.connection->set_machine(slot.machine.get());
  }
  slot.machine->start();
}

void BenchTransport::cancel_all() {
  for (const auto& slot : slots_) {
    if (slot->machine != nullptr) slot->machine->cancel();
  }
}

}  // namespace sluice
