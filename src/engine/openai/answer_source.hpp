#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"
#include "net/client/http_client.hpp"

namespace sluice {

/// A request to a model's server, and its answer as events, however they travel. Belongs to a loop.
/// Destroying it drops the request.
class AnswerSource {
 public:
  /// Called on the loop, never from within the source's functions. May destroy the source.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Something has come from the server. Called before all others.
    virtual void on_heard() = 0;
    /// One event; see AnswerDecoder::take().
    virtual void on_event(std::string_view name, std::string_view data) = 0;
    /// What has come so far has been passed on.
    virtual void on_caught_up() = 0;
    /// No event follows.
    virtual void on_end() = 0;
    /// The server refuses the request with an HTTP status. `body` is its reply, which may be JSON
    /// with an error; `wait` is how long it wants to be left alone.
    virtual void on_refusal(int status, std::string_view body, std::optional<Duration> wait) = 0;
    /// The connection failed.
    virtual void on_failure(const Error& why) = 0;
    /// What the server sends cannot be taken, so sending the request again does not help.
    virtual void on_nonsense(const Error& why) = 0;
  };

  AnswerSource() = default;
  virtual ~AnswerSource() = default;
  AnswerSource(const AnswerSource&) = delete;
  AnswerSource& operator=(const AnswerSource&) = delete;

  /// Sends the request, or sends it again. Nothing more comes of an earlier attempt.
  virtual void send(std::weak_ptr<Owner> owner) = 0;
  /// Reads nothing more while it is paused. Some of it may still be passed on.
  virtual void pause(bool is_paused) = 0;
  /// Gives up the request.
  virtual void drop() = 0;
  /// What the answer says, as it is decoded.
  virtual void note(const Delta& /*said*/) {}
  /// The answer is whole, as the response `response_id`, or an empty id. Instead of drop().
  virtual void finish(const Completion& /*completion*/, std::string_view /*response_id*/) {
    drop();
  }
};

}  // namespace sluice
