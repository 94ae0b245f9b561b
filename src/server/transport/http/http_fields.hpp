#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_types.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/negotiation.hpp"

namespace sluice {

/// The header fields of a request, for code that knows nothing of HTTP. The request outlives this.
class RequestFields final : public HeaderSource {
 public:
  explicit RequestFields(const HttpRequest& request) : request_(&request) {}
  [[nodiscard]] Field find(std::string_view name) const override;

 private:
  const HttpRequest* request_;
};

/// The header fields of `request` that mirror its body. `all` has all of its fields.
MirroredHeaders mirrored_headers(const HttpRequest& request, const RequestFields& all);

/// The value of a field as handlers may read it; nothing if it is absent or repeated.
std::optional<std::string> single_field(const HttpRequest& request, std::string_view name);
/// These fields of `request`.
std::vector<RequestField> single_fields(const HttpRequest& request,
                                        const std::vector<std::string>& names);

/// A copy of a request's header fields that may outlive the request. It holds nothing else of it.
class RequestHeadCopy {
 public:
  explicit RequestHeadCopy(const HttpRequest& request);
  RequestHeadCopy(const RequestHeadCopy&) = delete;
  RequestHeadCopy& operator=(const RequestHeadCopy&) = delete;
  ~RequestHeadCopy() = default;

  [[nodiscard]] const HttpRequest& get() const { return head_; }
  /// What the fields take, in bytes.
  [[nodiscard]] std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
  std::vector<HeaderField> fields_;
  HttpRequest head_;
};

}  // namespace sluice
