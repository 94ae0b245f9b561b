#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_types.hpp"
#include "protocol/mirrored_headers.hpp"

namespace sluice {

/// The fields of a request, which outlives this, for whoever knows nothing of HTTP.
class RequestFields final : public HeaderSource {
 public:
  explicit RequestFields(const HttpRequest& request) : request_(&request) {}
  [[nodiscard]] Field find(std::string_view name) const override;

 private:
  const HttpRequest* request_;
};

/// The fields of `request` that mirror its body. `all` are its fields.
MirroredHeaders mirrored_headers(const HttpRequest& request, const RequestFields& all);

/// A request's header fields for longer than the request is there. Of the rest it has nothing.
class RequestHeadCopy {
 public:
  explicit RequestHeadCopy(const HttpRequest& request);
  RequestHeadCopy(const RequestHeadCopy&) = delete;
  RequestHeadCopy& operator=(const RequestHeadCopy&) = delete;
  ~RequestHeadCopy() = default;

  [[nodiscard]] const HttpRequest& get() const { return head_; }

 private:
  std::string text_;
  std::vector<HeaderField> fields_;
  HttpRequest head_;
};

}  // namespace sluice
