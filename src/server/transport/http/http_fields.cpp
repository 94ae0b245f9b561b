#include "server/transport/http/http_fields.hpp"

#include <utility>

namespace sluice {

HeaderSource::Field RequestFields::find(std::string_view name) const {
  Field found;
  for (const HeaderField& field : request_->headers) {
    if (!equals_ignoring_case(field.name, name)) continue;
    if (found.count++ == 0) found.value = field.value;
  }
  return found;
}

MirroredHeaders mirrored_headers(const HttpRequest& request, const RequestFields& all) {
  static constexpr std::pair<KnownHeader, std::string_view> kOnce[] = {
      {KnownHeader::mcp_method, "Mcp-Method"},
      {KnownHeader::mcp_name, "Mcp-Name"},
      {KnownHeader::mcp_protocol_version, kVersionField}};
  MirroredHeaders headers{.protocol_version = request.header(KnownHeader::mcp_protocol_version),
                          .method = request.header(KnownHeader::mcp_method),
                          .name = request.header(KnownHeader::mcp_name),
                          .all = &all};
  for (const auto& [known, name] : kOnce) {
    if (request.repeated(known)) headers.repeated = name;
  }
  return headers;
}

std::optional<std::string> single_field(const HttpRequest& request, std::string_view name) {
  const HeaderSource::Field found = RequestFields(request).find(name);
  if (found.count != 1) return {};
  return std::string(found.value);
}

std::vector<RequestField> single_fields(const HttpRequest& request,
                                        const std::vector<std::string>& names) {
  std::vector<RequestField> fields;
  for (const std::string& name : names) fields.push_back({name, single_field(request, name)});
  return fields;
}

RequestHeadCopy::RequestHeadCopy(const HttpRequest& request) {
  std::size_t size = 0;
  for (const HeaderField& field : request.headers) size += field.name.size() + field.value.size();
  text_.reserve(size);
  fields_.reserve(request.headers.size());
  const auto keep = [this](std::string_view text) {
    const std::size_t at = text_.size();
    text_.append(text);
    return std::string_view(text_).substr(at);
  };
  for (const HeaderField& field : request.headers) {
    const std::string_view name = keep(field.name);
    fields_.push_back({name, keep(field.value)});
  }
  head_.headers = fields_;
  head_.known = request.known;
  head_.repeated_known = request.repeated_known;
}

}  // namespace sluice
