// The JSON that a handler takes belongs to it, whatever arrives while it runs.

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "server/handlers/public_server_test_support.hpp"

namespace sluice {

namespace {

/// Keeps the JSON that it is read from.
struct Kept {
  Kept() = default;
  std::vector<json::value> values;
};

/// A codec that uses itself for what is in it.
struct Nested {
  Nested() = default;
  std::vector<Nested> children;

  /// What the codec around the one that runs has got.
  static inline const json::value* around = nullptr;
  /// How often a codec has got a copy instead of a part of that.
  static inline int copies = 0;
};

}  // namespace

template <>
struct Codec<Nested> {
  static json::value schema(SchemaBuilder&) { return json::object(); }
  static bool decode(const json::value& value, Nested& out, Decoder& decoder) {
    const json::value* const before = std::exchange(Nested::around, &value);
    if (before != nullptr && &value != before->as_array().data()) ++Nested::copies;
    const bool fits = Codec<std::vector<Nested>>::decode(value, out.children, decoder);
    Nested::around = before;
    return fits;
  }
  static json::value encode(const Nested&, Encoder&) { return json::array(); }
};

template <>
struct Codec<Kept> {
  static json::value schema(SchemaBuilder&) { return json::object(); }
  static bool decode(const json::value& value, Kept& out, Decoder&) {
    out.values.push_back(value);
    return true;
  }
  static json::value encode(const Kept& value, Encoder&) {
    return value.values.empty() ? json::value() : value.values[0];
  }
};

namespace {

using namespace std::chrono_literals;

class ArgumentsTest : public PublicServerTest {
 protected:
  struct In {
    json::value value;
    std::vector<json::object> objects;
    Kept kept;
  };

  /// Messages that fill the memory in which messages are read.
  void send_others() {
    RecordingCaller other("bob");
    for (int i = 0; i < 3; ++i) {
      bench.request("tools/call",
                    R"("name":"none","arguments":{"x":")" + std::string(6000, 'z') + R"("})",
                    other);
      bench.run_all();
    }
  }

  void expect_kept(const std::string& tool, const std::string& arguments) {
    call(tool, arguments);
    send_others();
    bench.executors[0].advance(1s);
    EXPECT_EQ(answer_of("").at_pointer("/result/structuredContent"), parse_json(arguments).value());
  }
};

TEST_F(ArgumentsTest, AnObjectOutlivesItsMessage) {
  server.tool("wait", "", [](json::object in, Call& call) -> Task<json::value> {
    co_await call.sleep(1s);
    co_return std::move(in);
  });
  serve();
  expect_kept("wait",
              R"({"text":"not a very short one, so that it has memory","list":[1,{"a":2}]})");
}

TEST_F(ArgumentsTest, TheJsonInAStructOutlivesItsMessage) {
  server.tool("wait", "", [](In in, Call& call) -> Task<In> {
    co_await call.sleep(1s);
    co_return std::move(in);
  });
  serve();
  expect_kept("wait", R"({"value":["not a very short text, so that it has memory"],)"
                      R"("objects":[{"a":"another text which is not very short"}],)"
                      R"("kept":{"kept":"a third text which is not very short"}})");
}

TEST_F(ArgumentsTest, ACodecWithinACodecGetsNoCopy) {
  struct Tree {
    Nested root;
  };
  bool has_come = false;
  server.tool("take", "", [&](const Tree&) { has_come = true; });
  serve();
  call("take", R"({"root":)" + std::string(50, '[') + std::string(50, ']') + "}");
  EXPECT_TRUE(has_come);
  EXPECT_EQ(Nested::copies, 0) << "of each level, with all below it";
}

}  // namespace
}  // namespace sluice
