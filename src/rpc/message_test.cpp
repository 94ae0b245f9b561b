#include "rpc/message.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::string with_id(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"ping"})";
}

std::string id_of(std::string_view id) {
  MessageParser parser;
  const std::expected<Message, MessageError> message = parser.parse(with_id(id));
  return message ? message->id : "refused: " + message.error().error.message;
}

Error error_of(std::string_view text) {
  MessageParser parser;
  const std::expected<Message, MessageError> message = parser.parse(text);
  return message ? Error{} : message.error().error;
}

TEST(MessageId, ComesBackExactly) {
  for (const std::string_view id : {
           "0",
           "-7",
           "-0",
           "9007199254740993",
           "-9007199254740993",
           "9223372036854775807",
           "-9223372036854775808",
           "9223372036854775808",
           "18446744073709551615",
           "18446744073709551616",
           "123456789012345678901234567890",
           "-123456789012345678901234567890",
           R"("")",
           R"("a")",
           R"("7")",
           R"("a\"b\\c")",
           R"("\n\u0001")",
           "\"\xC3\xA9\"",
       }) {
    EXPECT_EQ(id_of(id), id);
  }
}

TEST(MessageId, OfManyDigitsIsFoundWhateverStandsAround) {
  MessageParser parser;
  for (const std::string_view text : {
           R"({"method":"a","params":{"id":1,"b":[{"id":2},"]}"]},"jsonrpc":"2.0",)"
           R"("id":123456789012345678901234567890})",
           "\t{ \"jsonrpc\" : \"2.0\" ,\r\n \"id\" : 123456789012345678901234567890 "
           ", \"method\" : \"\\\"id\\\":7\" } ",
           R"({"jsonrpc":"2.0","a\\":"\\","id":123456789012345678901234567890,"method":""})",
       }) {
    const std::expected<Message, MessageError> message = parser.parse(text);
    ASSERT_TRUE(message) << text;
    EXPECT_EQ(message->id, "123456789012345678901234567890") << text;
  }
}

TEST(MessageId, IsAStringOrAnInteger) {
  for (const std::string_view id :
       {"1.5", "1.0", "1e3", "1E400", "true", "false", "null", "{}", R"({"a":1})", "[]", "[1]"}) {
    MessageParser parser;
    const std::expected<Message, MessageError> message = parser.parse(with_id(id));
    ASSERT_FALSE(message) << id;
    EXPECT_EQ(message.error().error.code, kInvalidRequest) << id;
    EXPECT_EQ(message.error().error.message,
              "Invalid Request: \"id\" must be a string or an integer");
    EXPECT_EQ(message.error().id, "") << id;
  }
}

TEST(MessageId, IsNotTakenFromANamesake) {
  for (const std::string_view other : {"null", "[1,2]", R"({"a":1})", R"("a")", "true"}) {
    const std::string text = R"({"jsonrpc":"2.0","method":"a","id":)" + std::string(other) +
                             R"(,"\u0069d":123456789012345678901234567890})";
    EXPECT_EQ(error_of(text).code, kInvalidRequest) << text;
  }
}

TEST(Message, IsARequestANotificationOrAResponse) {
  MessageParser parser;
  auto message = parser.parse(R"({"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1]}})");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, MessageKind::request);
  EXPECT_EQ(message->method, "a/b");
  ASSERT_NE(message->params, nullptr);
  EXPECT_EQ(to_json(*message->params), R"({"x":[1]})");
  ASSERT_NE(message->body, nullptr);
  EXPECT_TRUE(message->body->contains("method"));

  const std::string_view notification = R"({"jsonrpc":"2.0","method":"n"})";
  message = parser.parse(notification);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, MessageKind::notification);
  EXPECT_EQ(message->id, "");
  EXPECT_EQ(message->method, "n");
  EXPECT_EQ(message->params, nullptr);
  EXPECT_EQ(message->text.data(), notification.data());
  EXPECT_EQ(message->text, notification);

  for (const std::string_view response :
       {R"({"jsonrpc":"2.0","id":"r","result":{}})",
        R"({"jsonrpc":"2.0","id":"r","error":{"code":1,"message":""}})"}) {
    message = parser.parse(response);
    ASSERT_TRUE(message) << response;
    EXPECT_EQ(message->kind, MessageKind::response);
    EXPECT_EQ(message->id, R"("r")");
    EXPECT_EQ(message->method, "");
  }
}

TEST(Message, MustSayWhatItIs) {
  struct Case {
    std::string_view text;
    std::string_view message;
    std::string_view id;
  };
  for (const Case& c : {
           Case{"[]", "batches are not part of this protocol revision; send one message at a time",
                ""},
           Case{R"([{"jsonrpc":"2.0","id":1,"method":"a"}])",
                "batches are not part of this protocol revision; send one message at a time", ""},
           Case{"7", "a message must be a JSON object", ""},
           Case{"null", "a message must be a JSON object", ""},
           Case{R"("a")", "a message must be a JSON object", ""},
           Case{"{}", R"("jsonrpc" must be "2.0")", ""},
           Case{R"({"id":1,"method":"a"})", R"("jsonrpc" must be "2.0")", "1"},
           Case{R"({"jsonrpc":"1.0","id":1,"method":"a"})", R"("jsonrpc" must be "2.0")", "1"},
           Case{R"({"jsonrpc":2.0,"id":1,"method":"a"})", R"("jsonrpc" must be "2.0")", "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"method":"a","params":[1]})",
                R"("params" must be an object)", "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"method":"a","params":null})",
                R"("params" must be an object)", "1"},
           Case{R"({"jsonrpc":"2.0","id":"x","method":7})", R"("method" must be a string)",
                R"("x")"},
           Case{R"({"jsonrpc":"2.0","id":1})", R"("method" is missing)", "1"},
           Case{R"({"jsonrpc":"2.0","result":{}})", R"("method" is missing)", ""},
       }) {
    MessageParser parser;
    const std::expected<Message, MessageError> message = parser.parse(c.text);
    ASSERT_FALSE(message) << c.text;
    EXPECT_EQ(message.error().error.code, kInvalidRequest) << c.text;
    EXPECT_EQ(message.error().error.message, "Invalid Request: " + std::string(c.message));
    EXPECT_EQ(message.error().id, c.id) << c.text;
  }
}

TEST(Batch, IsCutIntoItsMessages) {
  MessageParser parser;
  const std::string_view text =
      " [ {\"a\":[1,\"]\",{}]} ,\n\"x,\\\"]\",-1.5e3,[[],[]],null , true]\r\n";
  ASSERT_TRUE(is_batch(text));
  const auto batch = parser.parse_batch(text, 6);
  ASSERT_TRUE(batch);
  EXPECT_EQ(*batch, (std::vector<std::string_view>{R"({"a":[1,"]",{}]})", R"("x,\"]")", "-1.5e3",
                                                   "[[],[]]", "null", "true"}));
  EXPECT_EQ(batch->front().data(), text.data() + 3);
  EXPECT_FALSE(is_batch(R"({"a":[]})"));
  EXPECT_FALSE(is_batch(""));
}

TEST(Batch, IsRefusedAsAWhole) {
  struct Case {
    std::string_view text;
    int code;
    std::string_view message;
  };
  for (const Case& c : {
           Case{"[]", kInvalidRequest,
                "Invalid Request: the batch is empty; send at least one message"},
           Case{"[1,2,3]", kInvalidRequest,
                "Invalid Request: the batch has more than 2 messages; split it"},
           // No more of it is looked at.
           Case{"[1,2,3,nothing", kInvalidRequest,
                "Invalid Request: the batch has more than 2 messages; split it"},
           Case{"{}", kInvalidRequest, "Invalid Request: a batch must be a JSON array"},
           Case{R"({"a":1,"b":2,"c":3})", kInvalidRequest,
                "Invalid Request: a batch must be a JSON array"},
           Case{"[}}}}", kParseError, ""},
           Case{"[1,,,,2", kParseError, ""},
           Case{R"([1,"2)", kParseError, ""},
           Case{"[1,]", kParseError, ""},
           Case{"[1", kParseError, ""},
       }) {
    MessageParser parser;
    const auto batch = parser.parse_batch(c.text, 2);
    ASSERT_FALSE(batch) << c.text;
    EXPECT_EQ(batch.error().error.code, c.code) << c.text;
    if (!c.message.empty()) EXPECT_EQ(batch.error().error.message, c.message);
    EXPECT_EQ(batch.error().id, "");
  }
}

TEST(Message, IsOneJsonText) {
  for (const std::string_view text : {
           std::string_view(""),
           std::string_view(" "),
           std::string_view("{"),
           std::string_view("nul"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a")"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a"}{})"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a",})"),
           std::string_view(R"({"jsonrpc":"2.0","id":NaN,"method":"a"})"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}})"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"x":Infinity}})"),
           std::string_view(R"({"jsonrpc":"2.0","id":01,"method":"a"})"),
           std::string_view(R"({"jsonrpc":"2.0","id":1,"method":"a"} /* c */)"),
           std::string_view("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xC0\xAF\"}"),
           std::string_view("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xED\xA0\x80\"}"),
           std::string_view("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}"),
           std::string_view("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}"),
           std::string_view("{}\0", 3),
       }) {
    MessageParser parser;
    const std::expected<Message, MessageError> message = parser.parse(text);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().error.code, kParseError) << text;
    EXPECT_TRUE(message.error().error.message.starts_with("Parse error: ")) << text;
    EXPECT_EQ(message.error().id, "") << text;
  }
}

TEST(Message, MayNestUpToTheLimit) {
  const auto nested = [](std::size_t depth) {
    return R"({"jsonrpc":"2.0","method":"a","params":{"x":)" + std::string(depth, '[') +
           std::string(depth, ']') + "}}";
  };
  MessageParser parser;
  EXPECT_TRUE(parser.parse(nested(kMaxJsonDepth - 2)));
  EXPECT_EQ(error_of(nested(kMaxJsonDepth - 1)).code, kParseError);
  EXPECT_EQ(error_of(nested(10000)).code, kParseError);
  EXPECT_EQ(error_of(std::string(10000, '[')).code, kParseError);
}

TEST(Message, HasNoMoreValuesThanItMayOrItsBytesAllow) {
  static constexpr std::size_t kMost = std::size_t{1} << 18U;
  // Four names and, with the message, five values around those in the array.
  static constexpr std::size_t kFrame = 9;
  const auto with = [](std::size_t values, std::string_view value) {
    std::string text = R"({"jsonrpc":"2.0","method":"a","params":{"x":[)";
    for (std::size_t i = 0; i < values; ++i) text.append(i == 0 ? "" : ",").append(value);
    return text + "]}}";
  };
  MessageParser parser;
  EXPECT_TRUE(parser.parse(with(kMost - kFrame, "1")));
  EXPECT_TRUE(parser.parse(with((kMost - kFrame) / 3, R"({"":""})")));
  for (const std::string_view value : {"1", "[]", "{}", "null", "\"\"", "-0.5", "true"}) {
    const Error error = error_of(with(kMost - kFrame + 1, value));
    EXPECT_EQ(error.code, kParseError);
    EXPECT_TRUE(
        error.message.starts_with("Parse error: more than 262144 values and names at byte "))
        << error.message;
  }
  const std::string long_value = "\"" + std::string(20, 'x') + "\"";
  EXPECT_TRUE(parser.parse(with(2 * kMost, long_value)));
  EXPECT_TRUE(parser.parse(with(1, "1")));
  EXPECT_EQ(parser.parse(with(7, "1"))->values, kFrame + 7);
}

TEST(MessageParser, GoesOnAfterErrorsAndLargeMessages) {
  MessageParser parser;
  const std::string large = R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"x":")" +
                            std::string(100000, 'x') + R"("}})";
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(parser.parse(R"({"jsonrpc":"2.0","id":[)"));
    const auto message = parser.parse(large);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->params->at("x").as_string().size(), 100000U);
    EXPECT_FALSE(parser.parse("[1,2]"));
    const auto next = parser.parse(R"({"jsonrpc":"2.0","id":"n","method":"b"})");
    ASSERT_TRUE(next);
    EXPECT_EQ(next->method, "b");
    EXPECT_EQ(next->id, R"("n")");
  }
}

TEST(MessageParser, TakesNoMoreMemoryForTheHundredthLargeMessageThanForTheFirst) {
  const std::string large =
      R"({"jsonrpc":"2.0","method":"a","params":{"a":")" + std::string(100'000, 'x') + "\"}}";
  MessageParser parser;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(parser.parse(large));
}

TEST(ExactText, KeepsTheDigitsOfANestedInteger) {
  const std::string text =
      R"({"params":{"_meta":{"a":"}","t":987654321098765432109876543210,"f":1.25}}})";
  const Result<json::value> value = parse_json(text);
  ASSERT_TRUE(value);
  const json::value& meta = value->at("params").at("_meta");
  EXPECT_EQ(exact_text(meta.at("t"), text, {"params", "_meta", "t"}),
            "987654321098765432109876543210");
  EXPECT_EQ(exact_text(meta.at("a"), text, {"params", "_meta", "a"}), R"("}")");
  EXPECT_EQ(exact_text(meta.at("f"), text, {"params", "_meta", "f"}), std::nullopt);
  EXPECT_EQ(exact_text(meta, text, {"params", "_meta"}), std::nullopt);
}

TEST(RequestIdOf, IsFoundWithoutParsing) {
  const std::string rest = R"("method":"m","params":{"id":1,"a":[{"id":2},"\"id\":3"]})";
  for (const std::string id : {"7", "-7", "123456789012345678901234567890", R"("a")", R"("\"}")"}) {
    EXPECT_EQ(request_id_of("{\"id\":" + id + "," + rest + "}"), id);
    EXPECT_EQ(request_id_of(" { " + rest + " , \"id\" : " + id + " }"), id);
  }
  EXPECT_EQ(request_id_of(R"({"id":"\u0041","method":"m"})"), R"("A")");
}

TEST(ResponseIdOf, IsFoundInTheBeginningToo) {
  for (const std::string_view text :
       {R"({"jsonrpc":"2.0","id":7,"result":{"id":8,"method":"m","a":[)",
        R"({"id":7,"error":{"code":)", R"({"id":7)", "{\"id\":7,\"result\":\"\xff\"}"}) {
    EXPECT_EQ(response_id_of(text), "7") << text;
  }
  for (const std::string_view text :
       {R"({"id":7,"method":"m"})", R"({"result":{"id":8},"i)", R"([{"id":7,"result":{}}])", ""}) {
    EXPECT_EQ(response_id_of(text), "") << text;
  }
}

TEST(RequestIdOf, IsEmptyIfThereIsNone) {
  const std::string longest = '"' + std::string(kMaxRequestId - 2, 'x') + '"';
  EXPECT_EQ(request_id_of("{\"method\":\"m\",\"id\":" + longest + "}"), longest);
  for (const std::string& text : std::initializer_list<std::string>{
           R"({"method":"m","params":{"id":1}})", R"({"id":1,"result":{"method":"m"}})",
           R"({"id":null,"method":"m"})", R"({"id":1.5,"method":"m"})",
           R"({"id":{"id":1},"method":"m"})", R"({"id":01,"method":"m"})",
           R"({"id":"\ud800","method":"m"})", R"({"id":"x)", "{\"method\":\"m\",\"id\":\"x\n\"}",
           R"([{"id":1,"method":"m"}])", R"({"method":"m","id":"x)" + longest + "\"}",
           R"({"method":"m","id":)", R"({"method":"m","id")", R"({"method":"m","id)", "{", "{]",
           ""}) {
    EXPECT_EQ(request_id_of(text), "") << text;
  }
}

TEST(Response, CarriesTheIdAsItCame) {
  std::string out = "before ";
  append_result(out, "123456789012345678901234567890", R"({"a":1})");
  EXPECT_EQ(out,
            R"(before {"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{"a":1}})");
  out.clear();
  append_error(out, R"("x")", Error{-32602, "a \"b\"\n", R"({"c":1})"});
  EXPECT_EQ(
      out,
      R"({"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"a \"b\"\n","data":{"c":1}}})");
  out.clear();
  append_error(out, "1", Error{-32020, "Host '\xFF\xC3\xA9'", {}});
  EXPECT_EQ(out,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32020,"
            "\"message\":\"Host '\uFFFD\u00E9'\"}}");
  out.clear();
  append_error(out, {}, Error{-32700, "m", {}});
  EXPECT_EQ(out, R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}})");
}

}  // namespace
}  // namespace sluice
