#pragma once

#include <string>

#include "core/error.hpp"

namespace sluice {

/// Whose client wants to hear of the changes of a server. Nobody is told within a call to the feed.
class FeedOwner {
 public:
  virtual ~FeedOwner() = default;
  /// A modern server is asked for changes, and has acknowledged all that it was asked for before.
  virtual void on_asked() = 0;
  /// From now on a legacy server tells of the changes of this resource.
  virtual void on_subscribed(const std::string& uri) = 0;
  /// A modern server refuses to tell of changes.
  virtual void on_refused(const Error& why) = 0;
};

}  // namespace sluice
