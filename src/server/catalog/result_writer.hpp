#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/sealer.hpp"
#include "core/error.hpp"
#include "protocol/input_rounds.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// Writes JSON-RPC responses in the form of each revision: `resultType`, `_meta` and cache hints
/// where they belong. Immutable, shared by all loops.
class ResultWriter {
 public:
  explicit ResultWriter(const ServerDefinition& definition);

  /// Appends a response. Its result has `members` (JSON members without braces; may be empty), and
  /// its `_meta` has `meta` (in the same form).
  void append(std::string& out, const RequestId& id, const Revision& revision,
              std::string_view members, std::string_view meta = {}) const;
  /// An InputRequiredResult that asks for `missing`. Error: as InputRounds::ask().
  Result<void> append_input_required(std::string& out, const RequestId& id,
                                     const Revision& revision, const InputRounds& rounds,
                                     const std::vector<const InputRequest*>& missing) const;
  void append_tool_result(std::string& out, const RequestId& id, const Revision& revision,
                          const ToolResult& result, std::string_view meta = {}) const;
  /// A CreateTaskResult: `members` are those of the Task, `meta` as for append().
  void append_created_task(std::string& out, const RequestId& id, const Revision& revision,
                           std::string_view members, std::string_view meta) const;

  /// Seals what clients carry from one round of a request to the next.
  [[nodiscard]] const Sealer& sealer() const { return sealer_; }

  /// {"name":...,"version":...} of this server.
  [[nodiscard]] const std::string& server_info() const { return server_info_; }

 private:
  void open(std::string& out, const RequestId& id, const Revision& revision) const;
  void close(std::string& out, const Revision& revision, std::string_view meta = {}) const;

  std::string server_info_;
  std::string meta_member_;
  Sealer sealer_;
};

/// Appends JSON members to others.
void append_members(std::string& members, std::string_view more);

/// Appends the cache hints of a result to its members, if the revision has them.
void append_caching(std::string& members, const Caching& caching, const Revision& revision);

/// `error` in the form of `revision`. A code that the revision does not have is replaced by one
/// that all revisions have.
Error spoken(Error error, const Revision& revision);

/// The HTTP status for `error`. It is 200 unless the revision says otherwise (2026-07-28,
/// Streamable HTTP). If there is no request with an id to answer, it is 400, or 503 if there was no
/// memory to parse the message.
int http_status_of(const Error& error, const Revision* revision, bool has_id);

}  // namespace sluice
