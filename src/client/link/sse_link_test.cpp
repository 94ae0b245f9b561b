#include "client/link/sse_link.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SseLinkTest : public ServerTest, protected ServerLink::Owner {
 protected:
  struct Asked {
    std::string target;
    std::string body;
    HttpExchangePtr reply;
  };

  SseLinkTest() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      asked.push_back({std::string(request.path) + "?" + std::string(request.query),
                       std::string(request.body), std::move(exchange)});
    };
  }
  void TearDown() override {
    link = nullptr;
    asked.clear();
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  void on_message(std::string_view text) override {
    heard.emplace_back(text);
    if (leaves) link = nullptr;
  }
  bool on_reply(const RequestId& /*id*/, std::string_view /*text*/) override { return true; }
  void on_unreadable(std::string_view /*text*/, const Error& /*why*/) override {}
  void on_unanswered(const RequestId& id, const Error& why) override {
    unanswered.push_back(id + " " + why.message);
  }
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& id) const override { return !over.contains(id); }
  void on_lost(const Error& why) override { lost = why; }

  void open() {
    if (!server) start();
    link = std::make_unique<SseLink>(
        loop,
        SseLinkOptions{
            .url = {.scheme = "http", .host = "127.0.0.1", .port = port, .target = "/a/sse?x=1"}});
    link->open(*this);
  }
  Asked next() {
    EXPECT_TRUE(until([this] { return !asked.empty(); }));
    if (asked.empty()) throw std::runtime_error("no request has come");
    Asked first = std::move(asked.front());
    asked.erase(asked.begin());
    return first;
  }
  /// Opens the link, and says where to post.
  Asked open_to(std::string_view place) {
    open();
    Asked stream = next();
    EXPECT_EQ(stream.target, "/a/sse?x=1");
    stream.reply->start(200, "text/event-stream");
    stream.reply->write(std::string_view("event: endpoint\ndata: " + std::string(place) + "\n\n"));
    stream.reply->flush();
    return stream;
  }

  std::unique_ptr<SseLink> link;
  std::vector<Asked> asked;
  std::vector<std::string> heard;
  std::vector<std::string> unanswered;
  std::set<std::string> over;  // requests that nobody waits for
  std::optional<Error> lost;
  bool leaves = false;
};

TEST_F(SseLinkTest, WhatWasSentIsTakenBeforeTheEnd) {
  const Asked stream = open_to("/m");
  ASSERT_TRUE(link->send({.text = "{}", .method = "notifications/x"}));
  Asked post = next();
  bool is_closed = false;
  link->close([this, &is_closed] {
    is_closed = true;
    link = nullptr;
  });
  settle();
  EXPECT_FALSE(is_closed);
  post.reply->reply(202, {}, {});
  EXPECT_TRUE(until([&is_closed] { return is_closed; }));
  EXPECT_FALSE(lost);
}

TEST_F(SseLinkTest, WhatTheServerDoesNotTakeIsBounded) {
  const Asked stream = open_to("/m");
  const auto memory = std::make_shared<int>(0);
  const std::string big(SseLink::kMaxWaiting / 2, 'x');
  ASSERT_TRUE(link->send({.text = big, .method = "notifications/x", .memory = memory}));
  ASSERT_TRUE(link->send({.text = big, .method = "notifications/x"}));
  const auto refused = link->send({.text = "{}", .method = "notifications/x"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("too slow"));
  EXPECT_EQ(memory.use_count(), 2);
  // The server takes no message of that length.
  EXPECT_TRUE(until([&memory] { return memory.use_count() == 1; }));
  EXPECT_TRUE(link->send({.text = "{}", .method = "notifications/x"}));
}

TEST_F(SseLinkTest, NotificationsArriveInOrderAlsoAtTheEnd) {
  const Asked stream = open_to("/m");
  for (const char* const text : {"one", "two", "three"}) {
    ASSERT_TRUE(link->send({.text = text, .method = "notifications/x"}));
  }
  ASSERT_TRUE(link->send({.text = "call", .id = "1", .method = "tools/call"}));
  Asked one = next();
  EXPECT_EQ(one.body, "one");
  EXPECT_EQ(next().body, "call") << "it waits for no notification";
  settle();
  EXPECT_THAT(asked, IsEmpty());
  one.reply->reply(202, {}, {});
  Asked two = next();
  EXPECT_EQ(two.body, "two");
  bool is_closed = false;
  link->close([this, &is_closed] {
    is_closed = true;
    link = nullptr;
  });
  two.reply->reply(202, {}, {});
  Asked three = next();
  EXPECT_EQ(three.body, "three");
  EXPECT_FALSE(is_closed);
  three.reply->reply(202, {}, {});
  EXPECT_TRUE(until([&is_closed] { return is_closed; }));
}

TEST_F(SseLinkTest, PostsWhereTheServerSays) {
  for (const auto& [place, target] :
       std::vector<std::pair<std::string, std::string>>{{"messages?s=1", "/a/messages?s=1"},
                                                        {"/m?s=2", "/m?s=2"},
                                                        {"?s=3", "/a/sse?s=3"},
                                                        {"/m?to=http://x/", "/m?to=http://x/"},
                                                        {"", "/full?"}}) {
    heard.clear();
    if (!server) start();
    Asked stream =
        open_to(place.empty() ? "http://127.0.0.1:" + std::to_string(port) + "/full" : place);
    ASSERT_TRUE(link->send({.text = "{}", .id = "1"}));
    Asked post = next();
    EXPECT_EQ(post.target, target);
    EXPECT_EQ(post.body, "{}");
    post.reply->reply(202, {}, {});
    stream.reply->write(std::string_view("data: one\n\nevent: other\ndata: no\n\ndata: two\n\n"));
    stream.reply->flush();
    ASSERT_TRUE(until([this] { return heard.size() == 2; }));
    EXPECT_THAT(heard, ElementsAre("one", "two"));
    EXPECT_THAT(unanswered, IsEmpty());
  }
}

TEST_F(SseLinkTest, WhatIsSentEarlyWaits) {
  open();
  ASSERT_TRUE(link->send({.text = "early"}));
  Asked stream = next();
  settle();
  EXPECT_THAT(asked, IsEmpty());
  stream.reply->start(200, "text/event-stream");
  stream.reply->write(std::string_view("event: endpoint\ndata: m\n\n"));
  stream.reply->flush();
  EXPECT_EQ(next().body, "early");
}

TEST_F(SseLinkTest, NothingGoesToAnotherOrigin) {
  for (const std::string_view place :
       {"http://127.0.0.2/m", "https://127.0.0.1/m", "//127.0.0.1/m", "http://127.0.0.1:1/m"}) {
    lost.reset();
    open();
    ASSERT_TRUE(link->send({.text = "secret"}));
    Asked stream = next();
    stream.reply->start(200, "text/event-stream");
    stream.reply->write(std::string_view("event: endpoint\ndata: " + std::string(place) + "\n\n"));
    stream.reply->flush();
    ASSERT_TRUE(until([this] { return lost.has_value(); })) << place;
    EXPECT_THAT(lost->message, HasSubstr("another origin"));
    EXPECT_THAT(asked, IsEmpty());
  }
}

TEST_F(SseLinkTest, ARefusedMessageIsUnanswered) {
  const Asked stream = open_to("m");
  ASSERT_TRUE(link->send({.text = "{}", .id = "7"}));
  next().reply->reply(400, "text/plain", "no");
  ASSERT_TRUE(until([this] { return !unanswered.empty(); }));
  EXPECT_THAT(unanswered, ElementsAre("7 The server answers with HTTP 400 to the message"));
}

TEST_F(SseLinkTest, AMessageThatDoesNotArriveIsUnanswered) {
  const Asked stream = open_to("m");
  ASSERT_TRUE(link->send({.text = "{}", .id = "7"}));
  next().reply->abort();
  ASSERT_TRUE(until([this] { return !unanswered.empty(); }));
  EXPECT_THAT(unanswered, ElementsAre(AllOf(HasSubstr("7 "), HasSubstr("connection"))));
}

TEST_F(SseLinkTest, SaysWhatThereIsInsteadOfAStream) {
  open();
  next().reply->reply(200, "text/html; charset=utf-8", "<p>Log in");
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(lost->message, "The server's reply is no event stream, but text/html");
  lost.reset();
  open();
  const HeaderField place{"Location", "/elsewhere"};
  next().reply->reply(302, {}, {}, std::span(&place, 1));
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_THAT(lost->message, HasSubstr("redirects to /elsewhere (HTTP 302)"));
  lost.reset();
  open_to("http://");
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_THAT(lost->message, HasSubstr("does not say where messages go: "));
}

TEST_F(SseLinkTest, IsLostWithItsStreamAndOpensAnew) {
  Asked stream = open_to("m");
  ASSERT_TRUE(link->send({.text = "{}"}));
  next();
  stream.reply->finish();
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(lost->message, "The server has ended the event stream");
  EXPECT_FALSE(link->send({.text = "{}"}));
  lost.reset();
  EXPECT_TRUE(link->reopen());
  next().reply->reply(404, "text/plain", "gone");
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(lost->code, 404);
}

TEST_F(SseLinkTest, MayBeDestroyedWhereItIsHeardOf) {
  leaves = true;
  Asked stream = open_to("m");
  stream.reply->write(std::string_view("data: one\n\ndata: two\n\n"));
  stream.reply->flush();
  ASSERT_TRUE(until([this] { return !heard.empty(); }));
  settle();
  EXPECT_THAT(heard, ElementsAre("one"));
}

TEST_F(SseLinkTest, OnlySoManyAnswersAreUnderWayAtOnce) {
  const Asked stream = open_to("/m");
  settle();
  constexpr std::size_t kAnswers = SseLink::kMaxAnswers + 10;
  for (std::size_t i = 0; i < kAnswers; ++i) {
    ASSERT_TRUE(link->send({.text = std::to_string(i)}));
  }
  ASSERT_TRUE(until([this] { return asked.size() == SseLink::kMaxAnswers; }));
  settle();
  EXPECT_EQ(asked.size(), SseLink::kMaxAnswers);
  std::size_t taken = 0;
  for (; taken < kAnswers; ++taken) next().reply->reply(202, {}, {});
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(SseLinkTest, ThePostOfARequestThatIsOverTakesNothing) {
  const Asked stream = open_to("/m");
  settle();
  std::vector<Asked> posts;
  std::vector<std::shared_ptr<int>> memory;
  for (int i = 0; i < 100; ++i) {
    memory.push_back(std::make_shared<int>(0));
    ASSERT_TRUE(link->send(
        {.text = "{}", .id = std::to_string(i), .method = "tools/call", .memory = memory.back()}));
    posts.push_back(next());
  }
  const auto open = [&posts] {
    return std::ranges::count_if(posts, [](const Asked& each) { return each.reply->is_open(); });
  };
  EXPECT_EQ(open(), 100);
  for (int i = 1; i < 100; ++i) over.insert(std::to_string(i));
  for (int i = 0; i < 2; ++i) stream.reply->write(std::string_view("data: {}\n\n"));
  stream.reply->flush();
  ASSERT_TRUE(until([this] { return heard.size() == 2; }));
  EXPECT_TRUE(until([&] { return open() == 1 + static_cast<long>(SseLink::kMaxOver); }));
  EXPECT_TRUE(posts.front().reply->is_open()) << "somebody waits for it";
  EXPECT_EQ(memory.front().use_count(), 2);
  for (std::size_t i = 1; i < memory.size(); ++i) EXPECT_EQ(memory[i].use_count(), 1);
}

TEST_F(SseLinkTest, RepliesThatDoNotEndHoldNoNotificationsUp) {
  const Asked stream = open_to("/m");
  settle();
  constexpr std::size_t kMany = 3 * SseLink::kMaxOver;
  std::vector<Asked> posts;
  for (std::size_t i = 0; i < kMany; ++i) {
    // A large one holds nobody up either.
    const std::size_t bytes = i == 2 ? SseLink::kMaxOverBytes + 1 : 2;
    ASSERT_TRUE(link->send({.text = std::string(bytes, ' '), .method = "notifications/x"}));
  }
  for (std::size_t i = 0; i < kMany; ++i) {
    posts.push_back(next());
    posts.back().reply->start(202, "text/plain");
    posts.back().reply->flush();
  }
  EXPECT_TRUE(until([&posts] {
    return std::ranges::count_if(posts, [](const Asked& each) { return each.reply->is_open(); }) ==
           static_cast<long>(SseLink::kMaxOver);
  }));
  bool is_closed = false;
  link->close([this, &is_closed] {
    is_closed = true;
    link = nullptr;
  });
  EXPECT_TRUE(is_closed) << "they have been taken";
}

TEST_F(SseLinkTest, ThePostOfALargeRequestEndsWithIt) {
  const Asked stream = open_to("/m");
  settle();
  ASSERT_TRUE(link->send(
      {.text = std::string(SseLink::kMaxOverBytes + 1, ' '), .id = "0", .method = "tools/call"}));
  const Asked post = next();
  over.insert("0");
  stream.reply->write(std::string_view("data: {}\n\n"));
  stream.reply->flush();
  EXPECT_TRUE(until([&] { return !post.reply->is_open(); }));
}

}  // namespace
}  // namespace sluice
