#include "server/catalog/result_writer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "json/json.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"
#include "server/catalog/content_json.hpp"

namespace sluice {
ResultWriter::ResultWriter(const ServerDefinition& definition) : sealer_(definition.state_keys) {
  server_info_ = R"({"name":)";
  append_json_string(server_info_, definition.name);
  server_info_.append(R"(,"version":)");
  append_json_string(server_info_, definition.version);
  server_info_.push_back('}');
  meta_member_ = R"("_meta":{")" + std::string(kServerInfoKey) + "\":" + server_info_ + "}";
}

void ResultWriter::open(std::string& out, const RequestId& id, const Revision& revision) const {
  out.append(R"({"jsonrpc":"2.0","id":)").append(id).append(R"(,"result":{)");
  if (revision.result_type) out.append(R"("resultType":"complete",)");
}

void ResultWriter::close(std::string& out, const Revision& revision, std::string_view meta) const {
  if (revision.server_info_in_meta) {
    out.append(meta_member_);
    if (!meta.empty()) {
      out.back() = ',';
      out.append(meta).append("}");
    }
  } else if (!meta.empty()) {
    out.append(R"("_meta":{)").append(meta).append("}");
  } else if (out.back() == ',') {
    out.pop_back();
  }
  out.append("}}");
}

void ResultWriter::append(std::string& out, const RequestId& id, const Revision& revision,
                          std::string_view members, std::string_view meta) const {
  open(out, id, revision);
  if (!members.empty()) out.append(members).append(",");
  close(out, revision, meta);
}

Result<void> ResultWriter::append_input_required(
    std::string& out, const RequestId& id, const Revision& revision, const InputRounds& rounds,
    const std::vector<const InputRequest*>& missing) const {
  const auto asked = rounds.ask(missing, sealer_, std::chrono::system_clock::now());
  if (!asked) return std::unexpected(asked.error());
  out.append(R"({"jsonrpc":"2.0","id":)").append(id);
  out.append(R"(,"result":{"resultType":"input_required",)");
  out.append(*asked).append(",");
  close(out, revision);
  return {};
}

void ResultWriter::append_tool_result(std::string& out, const RequestId& id,
                                      const Revision& revision, const ToolResult& result,
                                      std::string_view meta) const {
  std::string written;
  if (result.structured_text.empty() && result.value != nullptr)
    append_json(written, *result.value);
  const std::string& structured = result.structured_text.empty() ? written : result.structured_text;
  open(out, id, revision);
  if (result.content.empty()) {
    out.append(R"("content":[{"type":"text","text":)");
    // Clients that do not read structured content find it as text (Tools, Structured Content).
    append_json_string(out, result.text.empty() ? structured : result.text);
    out.append("}],");
  } else {
    out.append(R"("content":[)");
    for (const Content& block : result.content) {
      if (out.back() != '[') out.push_back(',');
      block.append_to(out, revision);
    }
    out.append("],");
  }
  const std::size_t begin = structured.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && revision.structured_output &&
      (revision.structured_values || structured[begin] == '{')) {
    out.append(R"("structuredContent":)").append(structured).append(",");
  }
  if (result.is_error) out.append(R"("isError":true,)");
  if (result.meta.empty()) {
    close(out, revision, meta);
  } else {
    std::string both = meta_members(result.meta);
    append_members(both, meta);
    close(out, revision, both);
  }
}

void ResultWriter::append_created_task(std::string& out, const RequestId& id,
                                       const Revision& revision, std::string_view members,
                                       std::string_view meta) const {
  out.append(R"({"jsonrpc":"2.0","id":)").append(id).append(R"(,"result":{)");
  if (revision.result_type) {
    out.append(R"("resultType":"task",)").append(members).append(",");
  } else {
    out.append(R"("task":{)").append(members).append("},");
  }
  close(out, revision, meta);
}

void append_members(std::string& members, std::string_view more) {
  if (!members.empty() && !more.empty()) members.push_back(',');
  members.append(more);
}

void append_caching(std::string& members, const Caching& caching, const Revision& revision) {
  if (!revision.cache_hints) return;
  members.append(R"(,"ttlMs":)");
  append_number(members, std::max<std::int64_t>(caching.fresh_for.count(), 0));
  members.append(caching.shared ? R"(,"cacheScope":"public")" : R"(,"cacheScope":"private")");
}

Error spoken(Error error, const Revision& revision) {
  if (error.code == kUrlElicitationRequired && !revision.elicitation_ids) {
    error.code = kInvalidRequest;
  }
  return error;
}

int http_status_of(const Error& error, const Revision* revision, bool has_id) {
  static constexpr int kOk = 200;
  // If there was no memory to parse the message, that is not the client's fault.
  if (!has_id) return error.code == kBusy ? kServiceUnavailable : kBadRequest;
  switch (error.code) {
    case kHeaderMismatch:
    case kMissingClientCapability:
    case kUnsupportedProtocolVersion:
      return kBadRequest;
    case kMethodNotFound:
      return revision != nullptr && revision->http_error_status ? kNotFound : kOk;
    default:
      return kOk;
  }
}

}  // namespace sluice
