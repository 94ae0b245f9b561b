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

  /// A response whose result has `members` (JSON members without braces; may be empty), and whose
  /// `_meta` has `meta` (the same).
  void append(std::string& out, const RequestId& id, const Revision& revision,
              std::string_view members, std::string_view meta = {}) const;
  /// An InputRequiredResult that asks for `missing`.
  void append_input_required(std::string& out, const RequestId& id, const Revision& revision,
                             const InputRounds& rounds,
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

/// Appends to the members of a result how it may be cached, where the revision has that.
void append_caching(std::string& members, const Caching& caching, const Revision& revision);

/// `error` as `revision` has it: codes of other revisions become one that all have.
Error spoken(Error error, const Revision& revision);

/// The HTTP status that an error goes with: 200 unless the revision says otherwise (2026-07-28,
/// Streamable HTTP) or there was no request to answer; 503 if there was no memory to look for one.
int http_status_of(const Error& error, const Revision* revision, bool has_id);

}  // namespace sluice
