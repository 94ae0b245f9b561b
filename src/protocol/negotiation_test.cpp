#include "protocol/negotiation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"

namespace sluice {
namespace {

constexpr std::string_view kVersion = R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")";
constexpr std::string_view kCapabilities = R"("io.modelcontextprotocol/clientCapabilities":{})";
constexpr std::string_view kLegacy = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";

/// A request of `method` with these members in params._meta and params.
std::string request(std::string_view method, std::string_view meta, std::string_view params = "") {
  std::string text = R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
                     R"(","params":{"_meta":{)" + std::string(meta) + "}";
  if (!params.empty()) text.append(",").append(params);
  return text + "}}";
}

std::string modern(std::string_view method, std::string_view params = "",
                   std::string_view more_meta = "") {
  std::string meta = std::string(kVersion) + "," + std::string(kCapabilities);
  if (!more_meta.empty()) meta.append(",").append(more_meta);
  return request(method, meta, params);
}

Result<RequestContext> negotiated(std::string_view text, const MirroredHeaders* headers = nullptr,
                                  const Revision* agreed = nullptr) {
  MessageParser parser;
  const std::expected<Message, MessageError> message = parser.parse(text);
  if (!message) {
    ADD_FAILURE() << message.error().error.message << ": " << text;
    return fail(0, "");
  }
  return negotiate(*message, headers, agreed);
}

Result<RequestContext> negotiated(std::string_view text, const MirroredHeaders& headers) {
  return negotiated(text, &headers);
}

MirroredHeaders headers(std::string_view version, std::string_view method = {},
                        std::string_view name = {}) {
  return {.protocol_version = version, .method = method, .name = name};
}

TEST(Revision, TablesAreConsistent) {
  EXPECT_EQ(revisions().size(), 5U);
  EXPECT_EQ(newest_revision(Era::modern).name, "2026-07-28");
  EXPECT_EQ(newest_revision(Era::legacy).name, "2025-11-25");
  EXPECT_EQ(revisions_json(),
            R"(["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"])");
  for (const Revision& revision : revisions()) EXPECT_EQ(find_revision(revision.name), &revision);
  EXPECT_EQ(find_revision("2026-07-2"), nullptr);
  EXPECT_EQ(find_revision(""), nullptr);
}

TEST(Negotiate, ModernRequestsSayTheirRevisionInMeta) {
  const auto context = negotiated(modern("tools/list"));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->revision->name, "2026-07-28");
  EXPECT_EQ(context->progress_token, "");
}

TEST(Negotiate, RequestsWithoutMetaAreLegacy) {
  for (const std::string_view text :
       {std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"),
        std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}})"),
        std::string_view(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":1}}})")}) {
    const auto context = negotiated(text);
    ASSERT_TRUE(context) << text;
    EXPECT_EQ(context->revision->era, Era::legacy) << text;
    EXPECT_TRUE(negotiated(text, headers({}))) << text;
    const auto named = negotiated(text, headers("2025-11-25"));
    ASSERT_TRUE(named) << text;
    EXPECT_EQ(named->revision->name, "2025-11-25");
  }
}

TEST(Negotiate, RefusesRevisionsThatAreNotServed) {
  struct Case {
    std::string text;
    std::optional<MirroredHeaders> headers;
    std::string_view requested;
  };
  for (const Case& c : {
           Case{request("a", R"("io.modelcontextprotocol/protocolVersion":"2030-01-01")"),
                {},
                "2030-01-01"},
           Case{request("a", R"("io.modelcontextprotocol/protocolVersion":"\"")"), {}, "\\\""},
           Case{std::string(kLegacy), headers("1.0"), "1.0"},
           Case{std::string(kLegacy), headers(""), ""},
           Case{std::string(kLegacy), headers("\xFF\xC3\xA9"), "???"},
       }) {
    const auto context = negotiated(c.text, c.headers ? &*c.headers : nullptr);
    ASSERT_FALSE(context) << c.text;
    EXPECT_EQ(context.error().code, kUnsupportedProtocolVersion);
    EXPECT_EQ(context.error().code, -32022);
    EXPECT_EQ(context.error().data, R"({"supported":)" + revisions_json() + R"(,"requested":")" +
                                        std::string(c.requested) + R"("})");
  }
}

TEST(Negotiate, ALegacyRevisionIsNotNamedInMeta) {
  const auto context = negotiated(
      request("a", R"("io.modelcontextprotocol/protocolVersion":"2025-11-25")"), nullptr);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, kUnsupportedProtocolVersion);
  EXPECT_THAT(context.error().message, ::testing::HasSubstr("begin with initialize"));
  EXPECT_EQ(context.error().data, R"({"supported":["2026-07-28"],"requested":"2025-11-25"})");
}

TEST(Negotiate, ALegacyRevisionIsNamedOnce) {
  MirroredHeaders twice = headers("2025-06-18");
  twice.repeated = kVersionField;
  const auto context = negotiated(std::string(kLegacy), &twice);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, kInvalidRequest);
}

TEST(Negotiate, ModernMetaMustBeComplete) {
  struct Case {
    std::string_view meta;
    std::string_view message;
  };
  constexpr std::string_view kBadCapabilities =
      R"(Invalid params: _meta["io.modelcontextprotocol/clientCapabilities"] is required and must be an object)";
  for (
      const Case& c : {
          Case{
              R"("io.modelcontextprotocol/protocolVersion":20260728)",
              R"(Invalid params: _meta["io.modelcontextprotocol/protocolVersion"] must be a string)"},
          Case{kVersion, kBadCapabilities},
          Case{R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
               R"("io.modelcontextprotocol/clientCapabilities":[])",
               kBadCapabilities},
          Case{R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
               R"("io.modelcontextprotocol/clientCapabilities":{},)"
               R"("io.modelcontextprotocol/clientInfo":"me")",
               R"(Invalid params: _meta["io.modelcontextprotocol/clientInfo"] must be an object)"},
      }) {
    const auto context = negotiated(request("tools/list", c.meta));
    ASSERT_FALSE(context) << c.meta;
    EXPECT_EQ(context.error().code, kInvalidParams);
    EXPECT_EQ(context.error().message, c.message);
  }
  EXPECT_EQ(
      negotiated(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":7}})").error().code,
      kInvalidParams);
}

TEST(Negotiate, AModernHeaderNeedsModernMeta) {
  const auto context = negotiated(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})",
                                  headers("2026-07-28", "tools/list"));
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, kInvalidParams);
  EXPECT_NE(context.error().message.find("required by protocol revision 2026-07-28"),
            std::string::npos);
}

TEST(Negotiate, ModernNotificationsNeedNoMeta) {
  const auto context =
      negotiated(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})",
                 headers("2026-07-28", "notifications/cancelled"));
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_EQ(context->revision->name, "2026-07-28");
}

TEST(Negotiate, HeadersMirrorTheBody) {
  const std::string list = modern("tools/list");
  const std::string echo = modern("tools/call", R"("name":"echo")");
  const std::string prompt = modern("prompts/get", R"("name":"p")");
  const std::string resource = modern("resources/read", R"("uri":"a:b")");
  const std::string nameless = modern("tools/call");
  const std::string accented = modern("tools/call", "\"name\":\"\xC3\xA9\"");
  struct Case {
    std::string_view text;
    MirroredHeaders headers;
    std::string_view message;  // empty: accepted
  };
  for (const Case& c : {
           Case{list, headers("2026-07-28", "tools/list"), ""},
           Case{list, headers("2026-07-28", "tools/list", "whatever"), ""},
           Case{list, headers({}, "tools/list"), "the MCP-Protocol-Version header is required"},
           Case{list, headers("2025-11-25", "tools/list"),
                "MCP-Protocol-Version header value '2025-11-25' does not match body value "
                "'2026-07-28'"},
           Case{list, headers("2026-07-28"), "the Mcp-Method header is required"},
           Case{list, headers("2026-07-28", "Tools/List"),
                "Mcp-Method header value 'Tools/List' does not match body value 'tools/list'"},
           Case{list, headers("2026-07-28", "\xFF"),
                "Mcp-Method header value '\xFF' does not match body value 'tools/list'"},
           Case{echo, headers("2026-07-28", "tools/call", "echo"), ""},
           Case{echo, headers("2026-07-28", "tools/call"), "the Mcp-Name header is required"},
           Case{echo, headers("2026-07-28", "tools/call", "Echo"),
                "Mcp-Name header value 'Echo' does not match body value 'echo'"},
           Case{echo, headers("2026-07-28", "tools/call", "=?base64?ZWNobw==?="), ""},
           Case{echo, headers("2026-07-28", "tools/call", "=?base64?RWNobw==?="),
                "Mcp-Name header value 'Echo' does not match body value 'echo'"},
           Case{echo, headers("2026-07-28", "tools/call", "=?base64?/w==?="),
                "Mcp-Name header value '\xFF' does not match body value 'echo'"},
           Case{echo, headers("2026-07-28", "tools/call", "=?base64?ZWNobw=?="),
                "the Mcp-Name header has invalid characters; send its value as =?base64?...?="},
           Case{echo, headers("2026-07-28", "tools/call", "=?base64?!!!!?="),
                "the Mcp-Name header has invalid characters; send its value as =?base64?...?="},
           Case{echo, headers("2026-07-28", "tools/call", "ech\xC3\xB6"),
                "the Mcp-Name header has invalid characters; send its value as =?base64?...?="},
           Case{accented, headers("2026-07-28", "tools/call", "=?base64?w6k=?="), ""},
           Case{prompt, headers("2026-07-28", "prompts/get", "p"), ""},
           Case{prompt, headers("2026-07-28", "prompts/get"), "the Mcp-Name header is required"},
           Case{resource, headers("2026-07-28", "resources/read", "a:b"), ""},
           Case{resource, headers("2026-07-28", "resources/read", "a:c"),
                "Mcp-Name header value 'a:c' does not match body value 'a:b'"},
           Case{accented, headers("2026-07-28", "tools/call", "\xC3\xA9"),
                "the Mcp-Name header has invalid characters; send its value as =?base64?...?="},
           Case{list,
                {.protocol_version = "2026-07-28",
                 .method = "tools/list",
                 .name = {},
                 .repeated = "Mcp-Method"},
                "the Mcp-Method header appears more than once; send it once"},
           // The method itself reports what is wrong with the name.
           Case{nameless, headers("2026-07-28", "tools/call"), ""},
       }) {
    const auto context = negotiated(c.text, c.headers);
    if (c.message.empty()) {
      EXPECT_TRUE(context) << c.text << context.error().message;
      continue;
    }
    ASSERT_FALSE(context) << c.message;
    EXPECT_EQ(context.error().code, kHeaderMismatch);
    EXPECT_EQ(context.error().code, -32020);
    EXPECT_TRUE(context.error().message.starts_with("Header mismatch: " + std::string(c.message)))
        << context.error().message;
  }
}

TEST(Negotiate, ProgressTokensComeBackExactly) {
  for (const std::string_view token :
       {R"("p\"")", "7", "-1", "123456789012345678901234567890", R"("")"}) {
    const std::string member = R"("progressToken":)" + std::string(token);
    const auto context = negotiated(modern("a", "", member));
    ASSERT_TRUE(context) << token;
    EXPECT_EQ(context->progress_token, token);
    const auto legacy = negotiated(request("a", member));
    ASSERT_TRUE(legacy) << token;
    EXPECT_EQ(legacy->revision->era, Era::legacy);
    EXPECT_EQ(legacy->progress_token, token);
  }
  for (const std::string_view token : {"1.5", "true", "null", "{}", "[]", "1e3"}) {
    const auto context = negotiated(modern("a", "", R"("progressToken":)" + std::string(token)));
    ASSERT_FALSE(context) << token;
    EXPECT_EQ(context.error().code, kInvalidParams);
  }
}

TEST(Negotiate, ProgressTokensAreAsLongAsIdsAtMost) {
  const auto with = [](std::size_t size) {
    return negotiated(modern("a", "", R"("progressToken":")" + std::string(size - 2, 'x') + "\""));
  };
  EXPECT_TRUE(with(kMaxRequestId));
  const auto context = with(kMaxRequestId + 1);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().message,
            "Invalid params: _meta.progressToken may have at most 4096 bytes");
}

TEST(Negotiate, TheTraceComesAlongInBothEras) {
  constexpr std::string_view kTrace =
      R"("traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")";
  for (const std::string& text : {modern("a", "", kTrace), request("a", kTrace)}) {
    const auto context = negotiated(text);
    ASSERT_TRUE(context) << text;
    ASSERT_NE(context->trace, nullptr);
    EXPECT_EQ(context->trace->trace_id(), "0af7651916cd43dd8448eb211c80319c");
  }
  // A malformed trace does not break the request.
  const auto context = negotiated(modern("a", "", R"("traceparent":7)"));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, nullptr);
}

TEST(NegotiateInitialize, AnswersWithALegacyRevision) {
  EXPECT_EQ(negotiate_initialize("2025-11-25").name, "2025-11-25");
  EXPECT_EQ(negotiate_initialize("2024-11-05").name, "2024-11-05");
  EXPECT_EQ(negotiate_initialize("2026-07-28").name, "2025-11-25");
  EXPECT_EQ(negotiate_initialize("1.0").name, "2025-11-25");
  EXPECT_EQ(negotiate_initialize("").name, "2025-11-25");
}

}  // namespace
}  // namespace sluice
