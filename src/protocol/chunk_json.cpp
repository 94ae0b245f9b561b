#include "protocol/chunk_json.hpp"

#include "json/json.hpp"

namespace sluice {

void append_chunk_members(std::string& out, const ChunkStream& stream, const Chunk& chunk) {
  out.append(R"("seq":)");
  append_number(out, chunk.seq);
  switch (chunk.kind) {
    case ChunkKind::text:
      out.append(R"(,"delta":")").append(chunk.escaped).append(R"(","end":false)");
      return;
    case ChunkKind::reasoning:
      out.append(R"(,"delta":"","reasoning":")").append(chunk.escaped).append(R"(","end":false)");
      return;
    case ChunkKind::tool_call:
      out.append(R"(,"delta":"","tool_call":)").append(chunk.escaped).append(R"(,"end":false)");
      return;
    case ChunkKind::members:
      out.append(R"(,"delta":"",)").append(chunk.escaped).append(R"(,"end":false)");
      return;
    case ChunkKind::message:
      out.append(R"(,"delta":"","message":)").append(chunk.escaped).append(R"(,"end":false)");
      return;
    case ChunkKind::end:
      out.append(R"(,"delta":"","end":true)");
      if (!stream.trailer().empty()) out.append(",").append(stream.trailer());
      return;
  }
}

void append_poll_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk) {
  out.push_back('{');
  append_chunk_members(out, stream, chunk);
  out.push_back('}');
}

void append_pushed_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk) {
  out.append(R"({"jsonrpc":"2.0","method":)");
  append_json_string(out, stream.method());
  out.append(R"(,"params":{"stream_id":")").append(stream.id()).append(R"(",)");
  append_chunk_members(out, stream, chunk);
  out.append("}}");
}

}  // namespace sluice
