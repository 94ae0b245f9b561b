#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace sluice {

/// Whose client wants to hear of the changes of a server. Nobody is told within a call to the feed.
class FeedOwner {
 public:
  virtual ~FeedOwner() = default;
  /// The number of the newest request of the client that may see the server as it is now.
  [[nodiscard]] virtual std::uint64_t newest_request() const = 0;
  /// A modern server is asked for changes, and has acknowledged all that it was asked for before.
  virtual void on_asked() = 0;
  /// A modern server refuses to tell of changes.
  virtual void on_feed_refused(const Error& why) = 0;
  /// From now on a legacy server tells of the changes of a resource, which was wanted when
  /// `newest_request()` was `since`.
  virtual void on_subscribed(const std::string& uri, std::uint64_t since) = 0;
};

}  // namespace sluice
