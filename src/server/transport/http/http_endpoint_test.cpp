#include "server/transport/http/http_endpoint.hpp"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <tuple>

#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using HttpEndpointTest = EndpointTest;

constexpr std::string_view kModernMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}},)";
constexpr std::string_view kModernFields =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: query\r\n";

TEST_F(HttpEndpointTest, ALongMessageForWhichThereIsNoMemoryIs503) {
  MemoryBudget none(0);
  ClientMemory memory(none);
  LongMessages messages(loop, nullptr, &memory);
  handle = [&](const HttpRequest& request, HttpExchangePtr exchange) {
    const std::unique_ptr<LongMessage> message =
        messages.parse(std::string(request.body), [] {}, {});
    HttpRequest prepared = request;
    prepared.body = message->text();
    prepared.prepared = message.get();
    endpoint->on_request(prepared, std::move(exchange));
  };
  for (const char* text : {kPing.data(), "[]"}) {
    const std::string reply = ask(post("/mcp", text + std::string(100'000, ' ')), "\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 "));
  }
}

TEST_F(HttpEndpointTest, AnswersMessages) {
  EXPECT_THAT(ask(post("/mcp", kPing), kPong),
              StartsWith("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(
      ask(post("/mcp", R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), "\r\n\r\n"),
      StartsWith("HTTP/1.1 202 "));
  EXPECT_THAT(ask(post("/mcp", "{")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(post("/mcp", kPing, "MCP-Protocol-Version: 2030-01-01\r\n")),
              HasSubstr("\"code\":-32022"));
}

TEST_F(HttpEndpointTest, RefusesStrangeHostsAndOrigins) {
  for (const std::string_view host : {"evil.example", "localhost.evil.example", "\xFF"}) {
    const std::string reply =
        ask("POST /mcp HTTP/1.1\r\nHost: " + std::string(host) + "\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 403 ")) << host;
    EXPECT_TRUE(parse_json(reply.substr(reply.find("\r\n\r\n") + 4))) << reply;
  }
  EXPECT_THAT(ask(post("/mcp", kPing, "Origin: https://evil.example\r\n")),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask(post("/mcp", kPing, "Origin: null\r\n")), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask(post("/mcp", kPing, "Origin: https://app.example\r\n"), kPong),
              HasSubstr("Access-Control-Allow-Origin: https://app.example\r\nVary: Origin\r\n"));
  EXPECT_THAT(ask("OPTIONS /mcp HTTP/1.1\r\nHost: test\r\nOrigin: https://app.example\r\n"
                  "Access-Control-Request-Headers: x-api-key\r\n\r\n",
                  "\r\n\r\n"),
              HasSubstr("Access-Control-Allow-Headers: x-api-key\r\n"));
}

TEST_F(HttpEndpointTest, AnswersToTheHostThatItIsToldWhateverThePort) {
  for (const std::string_view host : {"test", "TEST", "test:443", "test:8443"}) {
    const std::string head = "POST /mcp HTTP/1.1\r\nHost: " + std::string(host) +
                             "\r\nContent-Type: application/json\r\nAccept: application/json, "
                             "text/event-stream\r\nContent-Length: ";
    EXPECT_THAT(ask(head + std::to_string(kPing.size()) + "\r\n\r\n" + std::string(kPing)),
                StartsWith("HTTP/1.1 200"))
        << host;
  }
}

TEST_F(HttpEndpointTest, ABatchThatTakesTurnsGoesThroughTheMiddlewareToo) {
  definition.middleware.push_back([](Request& request) -> Task<> {
    co_await request.sleep(std::chrono::milliseconds(1));
    co_await request.next();
  });
  constexpr int kPings = 20;
  std::string batch = "[";
  for (int id = 1; id <= kPings; ++id) {
    if (id > 1) batch.push_back(',');
    batch += R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
             R"(,"method":"ping","params":{"a":")" + std::string(20'000, 'x') + R"("}})";
  }
  const std::string answer = ask(post("/mcp", batch + "]"), "}]");
  for (int id = 1; id <= kPings; ++id) {
    EXPECT_THAT(answer, HasSubstr("\"id\":" + std::to_string(id) + R"(,"result":{}})"));
  }
}

TEST_F(HttpEndpointTest, ABatchIsAnsweredWithAnArrayOrWithEvents) {
  const std::string batch = "[" + std::string(kPing) +
                            R"(,{"jsonrpc":"2.0","id":2,"method":"tools/call","params":)" +
                            R"({"name":"later","_meta":{"progressToken":"p"}}}])";
  Peer peer = connect_to_endpoint();
  const auto begin = [&](std::string_view headers = "") {
    const std::size_t before = calls.size();
    peer.send(post("/mcp", batch, headers));
    ASSERT_TRUE(until([&] { return calls.size() > before; }));
  };
  begin();
  calls[0]->complete({.text = "whole"});
  ASSERT_TRUE(peer.expect("]"));
  ASSERT_TRUE(peer.expect("}]"));
  begin();
  calls[1]->emit("half");
  ASSERT_TRUE(peer.expect("\"half\"}}\n\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("data: " + std::string(kPong) + "\n\n"));
  calls[1]->complete({.text = "whole"});
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("data: {\"jsonrpc\":\"2.0\",\"id\":2,"));
  // If all its calls are cancelled, the reply is an event stream without a response.
  const std::string session = initialize("2025-03-26");
  begin(session + "Accept: text/event-stream\r\n");
  ask(post("/mcp",
           R"([{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}])",
           session),
      "202 Accepted\r\n");
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_TRUE(until([&] { return calls[2]->over(); }));
  begin(session);
  peer.close();
  EXPECT_TRUE(until([&] { return calls[3]->over(); }));

  EXPECT_THAT(ask(post("/mcp", batch, "MCP-Protocol-Version: 2025-06-18\r\n")),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(post("/mcp", "[" + std::string(kPing) + "]",
                       "Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\n")),
              StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpEndpointTest, ASilentCallBecomesAnEventStream) {
  static constexpr std::string_view kCall =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}})";
  Peer both = connect_to_endpoint();
  both.send(post("/mcp", kCall, "Accept: application/json, text/event-stream\r\n"));
  Peer json = connect_to_endpoint();
  json.send(post("/mcp", kCall, "Accept: application/json\r\n"));
  Peer any = connect_to_endpoint();
  any.send(post("/mcp", kCall, "Accept: */*\r\n"));
  Peer unsaid = connect_to_endpoint();
  unsaid.send(post("/mcp", kCall));
  ASSERT_TRUE(until([&] { return calls.size() == 4; }));
  pass(options.event_start - std::chrono::seconds(1));
  both.receive();
  EXPECT_EQ(both.received, "");
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(both.expect(": keep-alive\n\n\r\n"));
  EXPECT_THAT(both.taken, AllOf(HasSubstr("200 OK"), HasSubstr("text/event-stream"),
                                HasSubstr("X-Accel-Buffering: no")));
  pass(options.event_keep_alive);
  ASSERT_TRUE(both.expect(": keep-alive\n\n\r\n"));
  for (const auto& call : calls) call->complete({.text = "done"});
  ASSERT_TRUE(both.expect("0\r\n\r\n"));
  EXPECT_THAT(both.taken, HasSubstr("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\""));
  for (Peer* const parses_json : {&json, &any, &unsaid}) {
    ASSERT_TRUE(parses_json->expect("}}"));
    EXPECT_THAT(parses_json->taken, HasSubstr("Content-Type: application/json"));
  }
}

TEST_F(HttpEndpointTest, ASilentRunOrPollBecomesAnEventStream) {
  const std::string accept = "Accept: application/json, text/event-stream\r\n";
  Peer whole = connect_to_endpoint();
  whole.send(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"run","params":{}})", accept));
  ask(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true}})"));
  ASSERT_EQ(runs.size(), 2U);
  Peer poll = connect_to_endpoint();
  poll.send(post("/mcp",
                 R"({"jsonrpc":"2.0","id":2,"method":"run","params":{"stream_id":")" +
                     std::string(runs[1]->id()) + R"(","wait_ms":60000}})",
                 accept));
  settle();
  pass(options.event_start + std::chrono::seconds(1));
  ASSERT_TRUE(whole.expect(": keep-alive\n\n\r\n"));
  ASSERT_TRUE(poll.expect(": keep-alive\n\n\r\n"));
  runs[0]->append(ChunkKind::text, "one");
  runs[0]->finish();
  runs[1]->append(ChunkKind::text, "two");
  ASSERT_TRUE(whole.expect("0\r\n\r\n"));
  EXPECT_THAT(whole.taken, HasSubstr(R"("text":"one")"));
  ASSERT_TRUE(poll.expect("0\r\n\r\n"));
  EXPECT_THAT(poll.taken, HasSubstr(R"("delta":"two")"));
}

TEST_F(HttpEndpointTest, APageMayReadEveryReplyThatIsForIt) {
  const std::string page = "Origin: https://app.example\r\n";
  const std::string allowed = "Access-Control-Allow-Origin: https://app.example\r\n";
  EXPECT_THAT(ask(post("/mcp", R"({"jsonrpc":"2.0","method":"notifications/initialized"})", page),
                  "\r\n\r\n"),
              HasSubstr(allowed));
  EXPECT_THAT(ask(get("/nowhere", page)), HasSubstr(allowed));
  EXPECT_THAT(ask(post("/mcp", kPing, page + "Mcp-Session-Id: none\r\n")),
              ::testing::AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr(allowed)));
  EXPECT_THAT(ask(post("/mcp",
                       R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
                       R"({"protocolVersion":"2025-11-25"}})",
                       page)),
              ::testing::AllOf(HasSubstr("Mcp-Session-Id: "),
                               HasSubstr("Access-Control-Expose-Headers: Mcp-Session-Id\r\n")));
  EXPECT_THAT(ask(post("/mcp", kPing), kPong), Not(HasSubstr("Access-Control")));
}

TEST_F(HttpEndpointTest, RefusesTwoOrigins) {
  EXPECT_THAT(
      ask(post("/mcp", kPing, "Origin: http://localhost\r\nOrigin: https://evil.example\r\n")),
      StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpEndpointTest, AnswersToItsOwnNamesHoweverTheyAreSent) {
  EXPECT_THAT(ask(get("http://test/healthz"), "ok\n"), StartsWith("HTTP/1.1 200 "));
  // The host may be named in the target alone.
  EXPECT_THAT(ask("GET http://evil.example/healthz HTTP/1.0\r\n\r\n", "}}"),
              ::testing::AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("evil.example")));
}

TEST_F(HttpEndpointTest, SaysWhatItTakesAndWhere) {
  EXPECT_THAT(ask(post("/mcp", kPing, "Content-Type: text/html\r\n")), StartsWith("HTTP/1.1 415 "));
  EXPECT_THAT(ask(post("/mcp", kPing, "Accept: image/png\r\n")), StartsWith("HTTP/1.1 406 "));
  EXPECT_THAT(ask(post("/mcp", kPing, "Accept: image/png\r\nAccept: application/json\r\n"), kPong),
              StartsWith("HTTP/1.1 200 "));
  for (const std::string none :
       {"*/*;q=0", "application/json;q=0, text/event-stream;charset=utf-8; q=0.0, */*",
        "text/*; q=0, application/json;q=0"}) {
    EXPECT_THAT(ask(post("/mcp", kPing, "Accept: " + none + "\r\n")), StartsWith("HTTP/1.1 406 "))
        << none;
  }
  EXPECT_THAT(ask(post("/mcp", kPing, "Accept: application/json;q=0, text/*;q=0.1\r\n"), kPong),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("PUT /mcp HTTP/1.1\r\nHost: test\r\n\r\n"),
              HasSubstr("Allow: GET, POST, DELETE, OPTIONS\r\n"));
  EXPECT_THAT(ask(post("/metrics", "")), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(get("/nowhere")), StartsWith("HTTP/1.1 404 "));
  // HEAD reads nothing, so it must not take a reader's place.
  for (const std::string path : {"/mcp", "/sse", "/ws", "/streams/abcdefghijklmnop"}) {
    EXPECT_THAT(ask("HEAD " + path + " HTTP/1.1\r\nHost: test\r\n\r\n", "\r\n\r\n"),
                StartsWith("HTTP/1.1 405 "));
  }
  EXPECT_THAT(ask("HEAD /metrics HTTP/1.1\r\nHost: test\r\n\r\n", "\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpEndpointTest, RefusesOnTheHeadAlone) {
  require({{"ann", "secret"}});
  const std::string key = "X-API-Key: secret\r\n";
  const std::string whole = "Content-Length: 4000000\r\n";
  const std::string pieces = "Transfer-Encoding: chunked\r\n";
  const auto ask_head = [&](std::string_view line, std::string_view fields) {
    Peer peer = connect_to_endpoint();
    peer.send(std::string(line) + " HTTP/1.1\r\n" + std::string(fields) + "\r\n");
    EXPECT_TRUE(peer.expect_end()) << line << fields;
    return peer.received;
  };
  const std::string host = "Host: test\r\n";
  for (const std::string& body : {whole, pieces, whole + "Content-Encoding: gzip\r\n"}) {
    for (const std::string line : {"POST /mcp", "POST /messages?sessionId=1"}) {
      EXPECT_THAT(ask_head(line, "Host: evil.example\r\n" + key + body), HasSubstr(" 403 "));
      EXPECT_THAT(ask_head(line, host + key + "Origin: https://evil.example\r\n" + body),
                  HasSubstr(" 403 "));
      EXPECT_THAT(ask_head(line, host + body), HasSubstr(" 401 "));
      EXPECT_THAT(ask_head(line, host + "Content-Type: application/x-ndjson\r\n" + body),
                  HasSubstr(" 401 "));
      EXPECT_THAT(ask_head(line, host + key + "Content-Type: text/html\r\n" + body),
                  HasSubstr(" 415 "));
    }
    EXPECT_THAT(ask_head("POST /mcp", host + key + "Accept: image/png\r\n" + body),
                HasSubstr(" 406 "));
    EXPECT_THAT(ask_head("POST /mcp", host + key + "Accept: image/png\r\n" +
                                          "Content-Type: application/x-ndjson\r\n" + body),
                HasSubstr(" 406 "));
    EXPECT_THAT(ask_head("POST /nowhere", host + key + body), HasSubstr(" 404 "));
    EXPECT_THAT(ask_head("PUT /mcp", host + key + body), HasSubstr(" 405 "));
    EXPECT_THAT(ask_head("GET /mcp", host + key + body), HasSubstr(" 400 "));
    EXPECT_THAT(ask_head("DELETE /mcp", host + key + body), HasSubstr(" 400 "));
    EXPECT_THAT(ask_head("OPTIONS /mcp", host + body), HasSubstr(" 400 "));
  }
  EXPECT_THAT(ask_head("POST /mcp", host + key + whole + "Content-Encoding: br\r\n"),
              HasSubstr(" 415 "));
}

// So that a page can read it, even if the request is refused before it reaches the endpoint.
TEST_F(HttpEndpointTest, EveryRefusalNamesTheOrigin) {
  MemoryBudget none(1U << 10U);
  options.memory = &none;
  const std::string start = "POST /mcp HTTP/1.1\r\nHost: test\r\nOrigin: ";
  const std::string chunks = "Transfer-Encoding: chunked\r\n\r\n";
  for (const auto& [fields, body, status] :
       {std::tuple{std::string("Content-Length: 5000000\r\n\r\n"), "", " 413 "},
        {"Content-Length: x\r\n\r\n", "", " 400 "},
        {"Expect: more\r\n\r\n", "", " 417 "},
        {"Content-Length: 1\r\nContent-Encoding: br\r\n\r\n", "", " 415 "},
        {chunks, "nonsense\r\n", " 400 "},
        {chunks, "500000\r\n", " 413 "},
        {"Content-Length: 1000000\r\n\r\n", "much", " 503 "},
        {"Content-Length: 2\r\n\r\n", "x", " 408 "}}) {
    for (const std::string origin : {"https://app.example", "https://evil.example"}) {
      Peer peer = connect_to_endpoint();
      peer.send(std::string(start).append(origin).append("\r\n").append(fields));
      peer.send(body == std::string_view("much") ? std::string(100'000, 'x') : body);
      if (status == std::string_view(" 408 ")) {
        settle();
        pass(options.request_timeout);
      }
      ASSERT_TRUE(peer.expect_end()) << fields;
      if (origin == "https://evil.example") {
        EXPECT_THAT(peer.received, Not(HasSubstr("Access-Control"))) << fields;
        continue;
      }
      EXPECT_THAT(peer.received, HasSubstr(status)) << fields;
      EXPECT_THAT(peer.received,
                  HasSubstr("\r\nAccess-Control-Allow-Origin: https://app.example\r\n"))
          << fields;
    }
  }
}

TEST_F(HttpEndpointTest, AnUnknownPathIsNotFoundWhateverTheMethod) {
  for (const std::string method : {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    EXPECT_THAT(ask(method + " /nowhere HTTP/1.1\r\nHost: test\r\n\r\n"),
                StartsWith("HTTP/1.1 404 "));
  }
  EXPECT_THAT(ask(post("/metrics", "")), HasSubstr("Allow: GET, HEAD, OPTIONS\r\n"));
  EXPECT_THAT(ask(get("/messages")), HasSubstr("Allow: POST, OPTIONS\r\n"));
}

TEST_F(HttpEndpointTest, OptionsTellWhatAPathTakes) {
  const auto options = [this](const std::string& path) {
    return ask("OPTIONS " + path + " HTTP/1.1\r\nHost: test\r\n\r\n", "\r\n\r\n");
  };
  EXPECT_THAT(options("/mcp"), HasSubstr("Allow: GET, POST, DELETE, OPTIONS\r\n"));
  EXPECT_THAT(options("/healthz"), HasSubstr("Allow: GET, HEAD, OPTIONS\r\n"));
  EXPECT_THAT(options("*"), HasSubstr("Allow: GET, POST, DELETE, HEAD, OPTIONS\r\n"));
}

TEST_F(HttpEndpointTest, TellsHowItIs) {
  EXPECT_THAT(ask(get("/healthz"), "ok\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(get("/readyz"), "ready\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(get("/metrics"), "a_metric 1\n"), StartsWith("HTTP/1.1 200 "));
  not_ready = "loading";
  EXPECT_THAT(ask(get("/readyz"), "loading\n"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpEndpointTest, AsksForAKeyIfThereAreAny) {
  require({{"ann", "secret"}});
  for (const std::string& request :
       {post("/mcp", kPing), post("/mcp", kPing, "Authorization: Bearer wrong\r\n"),
        get("/metrics"), get("/streams/0123456789abcdef"), get("/ws")}) {
    EXPECT_THAT(ask(request), HasSubstr("HTTP/1.1 401 ")) << request;
  }
  ask(post("/mcp", kPing, "Authorization: Bearer secret\r\n"), kPong);
  ask(post("/mcp", kPing, "X-API-Key: secret\r\n"), kPong);
  ask(get("/healthz"), "ok\n");
}

TEST_F(HttpEndpointTest, TheLogTellsOfRefusalsButNotOfEach) {
  require({{"ann", "secret"}});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) ask(get("/metrics", "X-API-Key: wrong\r\n"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("a request is refused why=\"A valid API key is required"));
  EXPECT_THAT(log, HasSubstr("path=/metrics peer=127.0.0.1 client=127.0.0.1 left_out=0"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1);
  EXPECT_THAT(log, Not(HasSubstr("wrong")));
}

TEST_F(HttpEndpointTest, InitializeBeginsASession) {
  EXPECT_THAT(ask(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"initialize",)"
                               R"("params":{"protocolVersion":"2025-11-25"}})")),
              HasSubstr("Mcp-Session-Id: "));
  const std::string reply =
      ask(post("/mcp", R"({"jsonrpc":"2.0","method":"initialize"})"), "\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 202 "));
  EXPECT_THAT(reply, Not(HasSubstr("Mcp-Session-Id")));
}

TEST_F(HttpEndpointTest, ProgressMakesTheReplyAnEventStream) {
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)"
                         R"({"name":"later","_meta":{"progressToken":"p"}}})"));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->emit("half");
  ASSERT_TRUE(peer.expect("\"message\":\"half\"}}\n\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Type: text/event-stream\r\n"));
  calls[0]->complete({.text = "whole"});
  calls.clear();
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr(R"("content":[{"type":"text","text":"whole"}])"));
  // The connection goes on.
  peer.send(post("/mcp", kPing));
  EXPECT_TRUE(peer.expect(kPong));
}

TEST_F(HttpEndpointTest, HeadersMirrorAnnotatedParameters) {
  definition.tools.push_back(
      {.name = "query",
       .description = "",
       .input_schema =
           R"({"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}})",
       .handler = Tool::Immediate(
           [](const json::object&) -> Result<ToolResult> { return ToolResult{.text = "asked"}; })});
  const auto call = [](std::string_view fields, std::string_view arguments,
                       std::string_view meta = kModernMeta) {
    return post("/mcp",
                R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query",)" +
                    std::string(meta) + R"("arguments":)" + std::string(arguments) + "}}",
                (meta.empty() ? "" : std::string(kModernFields)) + std::string(fields));
  };
  EXPECT_THAT(ask(call("mcp-param-REGION:  here \r\n", R"({"r":"here"})")), HasSubstr("asked"));
  EXPECT_THAT(ask(call("Mcp-Param-Region: =?base64?aGVyZQ==?=\r\n", R"({"r":"here"})")),
              HasSubstr("asked"));
  EXPECT_THAT(ask(call("", "{}")), HasSubstr("asked"));
  EXPECT_THAT(ask(call("Mcp-Param-Other: x\r\n", "{}")), HasSubstr("asked"));
  for (const std::string& refused :
       {call("", R"({"r":"here"})"), call("Mcp-Param-Region: there\r\n", R"({"r":"here"})"),
        call("Mcp-Param-Region: here\r\nMcp-Param-Region: there\r\n", R"({"r":"here"})"),
        call("Mcp-Method: tools/list\r\n", "{}"), call("Mcp-Param-Region: here\r\n", "{}"),
        // The fields are checked before the arguments.
        call("", R"({"r":"here","r2":1})")}) {
    const std::string reply = ask(refused);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 ")) << refused;
    EXPECT_THAT(reply, HasSubstr("\"code\":-32020")) << refused;
  }
  // Earlier revisions ignore the field.
  EXPECT_THAT(ask(call("Mcp-Param-Region: there\r\n", R"({"r":"here"})", "")), HasSubstr("asked"));
}

TEST_F(HttpEndpointTest, FieldsThatMirrorAStreamMethodSayTheSame) {
  const std::string list = R"({"jsonrpc":"2.0","id":1,"method":"streams"})";
  EXPECT_THAT(ask(post("/mcp", list, "Mcp-Method: streams\r\n")), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(post("/mcp", list, "Mcp-Method: ping\r\n")), HasSubstr("\"code\":-32020"));
  EXPECT_THAT(ask(post("/mcp", list, "Mcp-Method: streams\r\nMcp-Method: ping\r\n")),
              HasSubstr("\"code\":-32020"));
}

TEST_F(HttpEndpointTest, ACallEndsWithItsConnection) {
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)"
                         R"({"name":"later"}})"));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  EXPECT_FALSE(calls[0]->over());
  peer.close();
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
}

TEST_F(HttpEndpointTest, ACallIsCancelledWithinItsSessionOnly) {
  const std::string own = initialize();
  const std::string other = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp",
                 R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"later"}})",
                 own));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  constexpr std::string_view kCancel =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}})";
  ask(post("/mcp", kCancel), "\r\n\r\n");
  ask(post("/mcp", kCancel, other), "\r\n\r\n");
  settle();
  EXPECT_FALSE(calls[0]->over());
  ask(post("/mcp", kCancel, own), "\r\n\r\n");
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
}

TEST_F(HttpEndpointTest, ALongRequestIsCancelledWhileItIsParsed) {
  const std::string padding(LongMessages::kLong, ' ');
  const std::string call =
      R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"later"}})";
  struct Case {
    std::string body, accept, reply;
  };
  for (const Case& each : {
           Case{"{" + padding + call.substr(1), "text/event-stream", "0\r\n\r\n"},
           Case{"{" + padding + call.substr(1), "application/json", "HTTP/1.1 202 "},
           Case{"[" + padding + call + "]", "application/json", "HTTP/1.1 202 "},
       }) {
    const std::string session = initialize("2025-03-26");
    Peer first = connect_to_endpoint();
    first.send(post("/mcp",
                    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}})",
                    session));
    ASSERT_TRUE(until([&] { return calls.size() == 1; }));
    auto other = hold_up_parsing(*calls[0]);
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", each.body, session + "Accept: " + each.accept + "\r\n"));
    settle();
    cancel("\"a\"", session);
    other = nullptr;
    EXPECT_TRUE(peer.expect(each.reply)) << peer.received;
    settle();
    EXPECT_EQ(calls.size(), 1U) << "it was not begun";
    calls.clear();
  }
}

TEST_F(HttpEndpointTest, AStreamIsReadAndResumedAsEvents) {
  ask(post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true}})"));
  ASSERT_EQ(runs.size(), 1U);
  const std::string target = "/streams/" + std::string(runs[0]->id());
  runs[0]->append(ChunkKind::text, "a");
  runs[0]->append(ChunkKind::text, "b");
  {
    Peer peer = connect_to_endpoint();
    peer.send(get(target));
    ASSERT_TRUE(peer.expect("\"delta\":\"b\",\"end\":false}}\n\n"));
    EXPECT_THAT(peer.taken, HasSubstr("id: 0\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"run\","));
  }
  settle();
  runs[0]->finish();
  const std::string rest = ask(get(target, "Last-Event-ID: 0\r\n"), "0\r\n\r\n");
  EXPECT_THAT(rest, Not(HasSubstr("id: 0\n")));
  EXPECT_THAT(rest, HasSubstr("id: 1\n"));
  EXPECT_THAT(rest, HasSubstr("id: 2\n"));
  EXPECT_THAT(rest, HasSubstr("\"end\":true"));
  EXPECT_THAT(ask(get(target + "?from_seq=2"), "0\r\n\r\n"), Not(HasSubstr("id: 1\n")));

  // A reader that has everything is told not to reconnect.
  const std::string over = ask(get(target, "Last-Event-ID: 2\r\n"), "\r\n\r\n");
  EXPECT_THAT(over, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(over, Not(HasSubstr("event-stream")));

  EXPECT_THAT(ask(get(target, "Last-Event-ID: x\r\n")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(get(target + "?from_seq=9"), "}"), StartsWith("HTTP/1.1 409 "));
  EXPECT_THAT(ask(get("/streams/0123456789abcdef")), StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpEndpointTest, RequestsWaitInTheMiddleware) {
  std::vector<Resolver<bool>> asked;
  std::vector<std::string> ends;
  definition.middleware.push_back([&](Request& request) -> Task<> {
    const RequestEnd end = co_await request.next();
    ends.push_back(request.method() + " " + std::to_string(end.error.value_or(0)) +
                   (end.cancelled ? " cancelled" : ""));
  });
  definition.middleware.push_back([&](Request& request) -> Task<> {
    const bool allowed = co_await request.callback<bool>(
        [&](const Resolver<bool>& resolver) { asked.push_back(resolver); });
    if (!allowed) throw Error{403, "Not for you"};
    co_await request.next();
  });
  static constexpr std::string_view kInitialize =
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
      R"("capabilities":{},"clientInfo":{"name":"test","version":"1"}}})";
  static constexpr std::string_view kModernCall =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later","_meta":)"
      R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
  static constexpr std::string_view kFields =
      "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: later\r\n";
  const auto sent = [&](std::string_view request, Peer& peer) {
    const std::size_t before = asked.size();
    peer.send(request);
    return until([&] { return asked.size() == before + 1; });
  };
  Peer peer = connect_to_endpoint();
  // A pipelined request waits for its turn.
  ASSERT_TRUE(sent(post("/mcp", kInitialize) + post("/mcp", kPing), peer));
  asked.back().succeed(true);
  ASSERT_TRUE(peer.expect("}}}"));
  EXPECT_THAT(peer.taken, HasSubstr("\r\nMcp-Session-Id: "));
  const std::size_t at = peer.taken.find("Mcp-Session-Id: ");
  const std::string session = peer.taken.substr(at, peer.taken.find("\r\n", at) + 2 - at);
  ASSERT_TRUE(until([&] { return asked.size() == 2; }));
  asked.back().succeed(false);
  ASSERT_TRUE(peer.expect(R"({"jsonrpc":"2.0","id":1,"error":{"code":403,)"));
  ASSERT_TRUE(peer.expect("}}"));
  // The header fields are still known later.
  ASSERT_TRUE(sent(post("/mcp", kModernCall, kFields), peer));
  asked.back().succeed(true);
  ASSERT_TRUE(until([&] { return calls.size() == 1; }));
  calls[0]->complete({.text = "done"});
  ASSERT_TRUE(peer.expect("}}}"));
  // A call is cancelled by its id in a session, and in any case when its peer goes.
  ASSERT_TRUE(sent(post("/mcp",
                        R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":)"
                        R"({"name":"later"}})",
                        session),
                   peer));
  ask(post("/mcp",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})",
           session),
      "202 Accepted\r\n");
  ASSERT_TRUE(until([&] { return ends.size() == 4; }));
  Peer leaving = connect_to_endpoint();
  ASSERT_TRUE(sent(post("/mcp", kPing), leaving));
  leaving.close();
  ASSERT_TRUE(until([&] { return ends.size() == 5; }));
  EXPECT_EQ(ends, (std::vector<std::string>{"initialize 0", "ping 403", "tools/call 0",
                                            "tools/call 0 cancelled", "ping 0 cancelled"}));
  EXPECT_EQ(calls.size(), 1U);
  // A request that waits when its server ends is answered.
  Peer last = connect_to_endpoint();
  ASSERT_TRUE(sent(post("/mcp", kPing), last));
  service->dispatcher.end_calls({kBusy, "The server is shutting down", {}});
  ASSERT_TRUE(last.expect(R"("error":{"code":-31000,)"));
  EXPECT_EQ(quota.in_use(), 0U);
  // The lines of one body wait independently of each other.
  Peer lines = connect_to_endpoint();
  lines.send(post("/mcp", ping("1") + "\n" + ping("2") + "\n",
                  "Content-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\n"));
  ASSERT_TRUE(until([&] { return asked.size() == 8; }));
  asked[7].succeed(true);
  ASSERT_TRUE(lines.expect(R"("id":2,"result":{}})"));
  asked[6].succeed(false);
  ASSERT_TRUE(lines.expect(R"("id":1,"error":{"code":403)"));
}

}  // namespace
}  // namespace sluice
