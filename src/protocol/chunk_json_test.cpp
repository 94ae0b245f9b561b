#include "protocol/chunk_json.hpp"

#include <gtest/gtest.h>
#include <string>

#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

class ChunkJson : public testing::Test {
 protected:
  std::string polled() const {
    std::string out;
    stream->read(0, [&](const Chunk& chunk) {
      if (!out.empty()) out.push_back('\n');
      append_poll_chunk(out, *stream, chunk);
      return true;
    });
    return out;
  }

  StreamBench bench;
  std::shared_ptr<ChunkStream> stream = bench.start();
};

TEST_F(ChunkJson, EachKindHasItsMember) {
  stream->append(ChunkKind::text, "a \"b\"\n");
  stream->append(ChunkKind::reasoning, "why \\");
  stream->append(ChunkKind::tool_call, R"({"name":"t"})");
  stream->append(ChunkKind::members, R"("logits":{"vocab_size":1})");
  EXPECT_EQ(polled(), R"({"seq":0,"delta":"a \"b\"\n","end":false})"
                      "\n"
                      R"({"seq":1,"delta":"","reasoning":"why \\","end":false})"
                      "\n"
                      R"({"seq":2,"delta":"","tool_call":{"name":"t"},"end":false})"
                      "\n"
                      R"({"seq":3,"delta":"","logits":{"vocab_size":1},"end":false})");
}

TEST_F(ChunkJson, TheLastChunkCarriesTheTrailer) {
  stream->finish(R"("status":"finished","usage":{"output_tokens":1})");
  EXPECT_EQ(polled(),
            R"({"seq":0,"delta":"","end":true,"status":"finished","usage":{"output_tokens":1}})");
}

TEST_F(ChunkJson, TheLastChunkMayHaveNoTrailer) {
  stream->finish();
  EXPECT_EQ(polled(), R"({"seq":0,"delta":"","end":true})");
}

TEST(PushedChunk, IsANotificationOfTheCallersMethod) {
  StreamBench bench;
  const auto stream = bench.start({.principal = "alice", .method = "a\"b"});
  stream->append(ChunkKind::text, "x");
  std::string out = "before ";
  stream->read(0, [&](const Chunk& chunk) {
    append_pushed_chunk(out, *stream, chunk);
    return true;
  });
  EXPECT_EQ(out, R"(before {"jsonrpc":"2.0","method":"a\"b","params":{"stream_id":")" +
                     std::string(stream->id()) + R"(","seq":0,"delta":"x","end":false}})");
}

}  // namespace
}  // namespace sluice
