#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/openai/answer_source.hpp"
#include "net/client/http_client.hpp"
#include "net/http/sse.hpp"

namespace sluice {

/// A request over HTTP, whose answer is a stream of events (WHATWG HTML, Server-sent events), or is
/// one event if the server does not stream. Bounded: a line, an event and a reply that is no stream
/// take at most 16 MiB.
class HttpSource final : public AnswerSource {
 public:
  /// `http` must outlive the attempts.
  HttpSource(HttpClient& http, HttpClientRequest request);
  ~HttpSource() override;

  void send(std::weak_ptr<Owner> owner) override;
  void pause(bool is_paused) override { call_.pause(is_paused); }
  void drop() override;

 private:
  class Reply;

  HttpClient* http_;
  HttpClientRequest request_;
  HttpClient::Call call_;
  std::shared_ptr<Reply> reply_;  // of the last attempt
};

}  // namespace sluice
