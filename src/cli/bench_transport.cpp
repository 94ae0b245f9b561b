#include "cli/bench_transport.hpp"

#include <chrono>
#include <utility>

#include "client/answer_connection.hpp"
#include "client/shared_websocket.hpp"
#include "net/http_client.hpp"

namespace sluice {

struct BenchTransport::Connections {
  std::vector<std::unique_ptr<HttpClient>> http;
  std::vector<std::unique_ptr<SharedWebSocket>> sockets;
};

struct BenchTransport::Place {
  std::unique_ptr<AnswerConnection> connection;  // exactly one of these two is set
  std::unique_ptr<SharedWebSocket::Port> share;
  std::unique_ptr<AnswerMachine> machine;
};

BenchTransport::BenchTransport(EventLoop& loop, const ServerAddress& address, BenchRequest request,
                               std::uint32_t places, std::uint32_t connections)
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
  for (std::uint32_t i = 0; i < places; ++i) {
    auto place = std::make_unique<Place>();
    const std::uint32_t at = i % connections;
    if (shares) {
      place->share = connections_->sockets[at]->make_port();
    } else {
      place->connection =
          std::make_unique<AnswerConnection>(loop, *connections_->http[at], address);
    }
    places_.push_back(std::move(place));
  }
}

BenchTransport::~BenchTransport() = default;

void BenchTransport::begin(std::uint32_t number, AnswerSink& sink) {
  Place& place = *places_[number];
  AnswerRequest request;
  request.params = request_.params;
  if (!request_.tool.empty()) request.tool = request_.tool;
  if (place.share != nullptr) {
    request.first_id = place.share->next_answer();
    place.machine = make_answer(request_.via, std::move(request), *place.share, sink);
    place.share->set_machine(place.machine.get());
  } else {
    place.machine = make_answer(request_.via, std::move(request), *place.connection, sink);
    place.connection->set_machine(place.machine.get());
  }
  place.machine->start();
}

void BenchTransport::cancel_all() {
  for (const auto& place : places_) {
    if (place->machine != nullptr) place->machine->cancel();
  }
}

}  // namespace sluice
