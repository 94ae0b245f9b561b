#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_link.hpp"
#include "client/link/http_link_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test::HttpLinkTest;
using test::kEvents;
using test::kJson;

TEST_F(HttpLinkTest, ALegacyStreamThatBreaksOffIsResumed) {
  open_legacy();
  call();
  Asked post = next();
  EXPECT_EQ(post.session, "s-1");
  EXPECT_EQ(post.mcp_method, "");
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "") + event("e2", progress(2, 1))));
  post.reply->flush();
  ASSERT_TRUE(hears(1));
  post.reply->abort();
  // A resumed stream that breaks off before its first event is resumed from the same place.
  for (int i = 0; i < 2; ++i) {
    Asked get = next();
    EXPECT_EQ(get.method, "GET");
    EXPECT_EQ(get.accept, "text/event-stream");
    EXPECT_EQ(get.last_event, "e2");
    EXPECT_EQ(get.session, "s-1");
    get.reply->start(200, kEvents);
    get.reply->flush();
    settle();
    get.reply->abort();
  }
  Asked get = next();
  EXPECT_EQ(get.last_event, "e2");
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(event("e3", answer(2, "{}"))));
  get.reply->finish();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("progress 1", "{}"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, EventsWithoutAnIdLeaveAResumedStreamItsPlace) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view("id: e1\n\n"));
  post.reply->finish();
  for (const std::string& without :
       {std::string("event: ping\ndata: {}\n\n"), event("", progress(2, 1))}) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "e1");
    get.reply->start(200, kEvents);
    get.reply->write(std::string_view(without));
    get.reply->finish();
  }
  Asked get = next();
  EXPECT_EQ(get.last_event, "e1");
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(event("e2", answer(2, "{}"))));
  get.reply->finish();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("progress 1", "{}"));
}

TEST_F(HttpLinkTest, TheRetryOfAStreamHoldsForTheNextOnes) {
  longest = 1h;
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view("retry: 0\n\n" + event("e1", progress(2, 1))));
  post.reply->finish();
  for (int i = 0; i < 2; ++i) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "e1");
    get.reply->start(200, kEvents);
    get.reply->finish();
  }
  EXPECT_EQ(next().last_event, "e1");
}

TEST_F(HttpLinkTest, AServerThatIsAwayForAMomentIsAskedForTheStreamAgain) {
  open_legacy();
  for (const bool comes_back : {true, false}) {
    said.clear();
    call();
    Asked post = next();
    post.reply->start(200, kEvents);
    post.reply->write(std::string_view(event("e1", "")));
    post.reply->flush();
    settle();
    post.reply->abort();
    next().reply->reply(503, {}, {});
    next().reply->reply(502, {}, {});
    if (comes_back) {
      Asked get = next();
      EXPECT_EQ(get.last_event, "e1");
      get.reply->start(200, kEvents);
      get.reply->write(std::string_view(event("e2", answer(2, "{}"))));
      get.reply->finish();
    } else {
      next().reply->reply(504, {}, {});
    }
    ASSERT_TRUE(hears(1));
    EXPECT_THAT(said, ElementsAre(comes_back ? "{}"
                                             : "502 The stream broke off and cannot be resumed: "
                                               "HTTP 504"));
  }
}

class RefusedEventTest : public HttpLinkTest, public ::testing::WithParamInterface<int> {};

TEST_P(RefusedEventTest, IsNotAskedForAgainAndAgain) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->write(std::string_view(event("e1", progress(7, 1))));
  standalone.reply->finish();
  std::vector<std::string> places;
  std::vector<Asked> others;  // a doubt about the session
  while (places.size() < 5) {
    Asked each = next();
    if (each.method == "GET") {
      places.push_back(each.last_event);
      each.reply->reply(GetParam(), {}, {});
    } else {
      others.push_back(std::move(each));
    }
  }
  EXPECT_THAT(places, ElementsAre("e1", "e1", "e1", "e1", ""));
}

INSTANTIATE_TEST_SUITE_P(Statuses, RefusedEventTest, ::testing::Values(404, 410, 422, 500));

constexpr std::string_view kUnaddressed =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"too busy"}})";

TEST_F(HttpLinkTest, AStreamWithAnErrorThatNamesNoRequestIsResumedForTheAnswer) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", kUnaddressed)));
  post.reply->finish();
  Asked get = next();
  EXPECT_EQ(get.last_event, "e1");
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(event("e2", answer(2, "{}"))));
  get.reply->finish();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("{}"));
}

TEST_F(HttpLinkTest, AStreamEndsAfterItsAnswerAlsoBehindAnErrorThatNamesNoRequest) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("", kUnaddressed) + event("", answer(2, "{}"))));
  post.reply->flush();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("{}"));
  bool has_gone = false;
  post.reply->on_close([&] { has_gone = true; });
  // What follows does not put that off.
  EXPECT_TRUE(until([&] {
    post.reply->write(std::string_view(event("", progress(7, 1))));
    post.reply->flush();
    return has_gone;
  }));
}

TEST_F(HttpLinkTest, AnErrorThatNamesNoRequestIsTheAnswerIfNoneFollows) {
  open_legacy();
  enum class Then { stays_open, breaks_off, stays_open_again, ends_again, is_refused };
  for (const Then then : {Then::stays_open, Then::breaks_off, Then::stays_open_again,
                          Then::ends_again, Then::is_refused}) {
    said.clear();
    call();
    Asked post = next();
    const bool is_resumable = then != Then::stays_open && then != Then::breaks_off;
    post.reply->start(200, kEvents);
    post.reply->write(std::string_view(event(is_resumable ? "e1" : "", kUnaddressed)));
    post.reply->flush();
    settle();
    if (then != Then::stays_open) post.reply->abort();
    std::vector<Asked> again;
    if (is_resumable) {
      again.push_back(next());
      EXPECT_EQ(again[0].method, "GET");
      if (then == Then::is_refused) {
        again[0].reply->reply(405, {}, {});
      } else {
        again[0].reply->start(200, kEvents);
        again[0].reply->flush();
        if (then == Then::ends_again) again[0].reply->finish();
      }
    }
    ASSERT_TRUE(hears(1));
    EXPECT_THAT(said, ElementsAre("-32000 too busy"));
  }
}

TEST_F(HttpLinkTest, ALongIdOfAnEventIsNotSentBack) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->write(std::string_view(event(std::string(4097, 'e'), progress(7, 1))));
  standalone.reply->finish();
  EXPECT_EQ(next().last_event, "");
}

TEST_F(HttpLinkTest, AnIdThatNoHeaderFieldCanHaveIsNotSentBack) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->write(std::string_view(event("a\x01z", progress(7, 1))));
  standalone.reply->finish();
  EXPECT_EQ(next().last_event, "") << "the stream of the session is opened again";
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("a\x01z", progress(2, 1))));
  post.reply->finish();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("progress 1", HasSubstr("or with control characters")));
}

TEST_F(HttpLinkTest, TheRetryOfAStreamIsNoHurryForRefusals) {
  longest = 1h;
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view("retry: 0\n\n" + event("e1", progress(2, 1))));
  post.reply->flush();
  ASSERT_TRUE(hears(1));
  post.reply->abort();
  next().reply->reply(503, {}, {});
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AnErrorWithoutAnIdInAStreamIsTheAnswer) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(
      event("", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"too busy"}})")));
  post.reply->finish();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("-32005 too busy"));
  // Unless another one follows.
  call();
  post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(
      event("", R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"too busy"}})") +
      event("", answer(3, "{}"))));
  post.reply->finish();
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(said.back(), "{}");
}

TEST_F(HttpLinkTest, EmptyStreamsAreNoSuccess) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "")));
  post.reply->finish();
  for (int i = 0; i < 3; ++i) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "e1");
    get.reply->start(200, kEvents);
    get.reply->finish();
  }
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("502 The stream ended before the answer came"));
  call();
  post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "")));
  post.reply->finish();
  next().reply->reply(404, {}, {});
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(said.back(), "502 The stream broke off and cannot be resumed: HTTP 404");
}

TEST_F(HttpLinkTest, TheStreamOfALegacySessionIsOpenedAlthoughTheServerFailsAtFirst) {
  // What a server or a gateway may say to that the client is ready.
  for (const int ready : {503, 404, 400}) {
    connected.reset();
    open({.revision = "2025-11-25"});
    const HeaderField id{"Mcp-Session-Id", "s-1"};
    next().reply->reply(200, kJson,
                        answer(1, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
                        std::span(&id, 1));
    next().reply->reply(ready, {}, {});
    for (const int status : {500, 520, 503, 408, 409, 425}) {
      Asked get = next();
      EXPECT_EQ(get.method, "GET");
      get.reply->reply(status, {}, {});
    }
    const Asked get = next();
    get.reply->start(200, kEvents);
    get.reply->flush();
    EXPECT_TRUE(until([this] { return link->is_listening(); }));
    session = nullptr;
    asked.clear();
    server.reset();
  }
}

TEST_F(HttpLinkTest, AnIdleSessionAsksWhetherItIsOverIfItsStreamIsRefused) {
  for (const bool is_over : {false, true}) {
    open_legacy(true);
    standalone.reply->start(200, kEvents);
    standalone.reply->write(std::string_view(event("g1", "")));
    standalone.reply->flush();
    ASSERT_TRUE(until([this] { return link->is_listening(); }));
    standalone.reply->abort();
    Asked get = next();
    EXPECT_EQ(get.last_event, "g1");
    get.reply->reply(is_over ? 400 : 404, kJson, R"({"error":"Invalid or missing session ID"})");
    const auto is_ping = [](const Asked& each) { return each.body.contains("ping"); };
    ASSERT_TRUE(until([&] { return std::ranges::any_of(asked, is_ping); }));
    const auto ping = std::ranges::find_if(asked, is_ping);
    if (is_over) {
      ping->reply->reply(404, {}, {});
      const auto begins = [](const Asked& each) { return each.body.contains("initialize"); };
      EXPECT_TRUE(until([&] { return std::ranges::any_of(asked, begins); })) << "there is another";
    } else {
      ping->reply->reply(200, kJson, answer(2, "{}"));
      asked.erase(ping);
      get = next();
      EXPECT_EQ(get.method, "GET") << "it is asked for again, but not the server";
      EXPECT_EQ(get.last_event, "g1");
      get.reply->reply(400, "text/plain", "Invalid event ID");
      get = next();
      EXPECT_EQ(get.method, "GET");
      EXPECT_EQ(get.last_event, "") << "which may have forgotten that";
    }
    session = nullptr;
    connected.reset();
    asked.clear();
    server.reset();
  }
}

TEST_F(HttpLinkTest, AStreamThatAServerAlwaysRefusesIsNotAskedForForEver) {
  open_legacy(true);
  standalone.reply->reply(500, {}, {});
  for (int i = 0; i < 8; ++i) next().reply->reply(501, {}, {});
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, TheStreamOfALegacySessionIsReadAndItsLossHarmsNothing) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->write(std::string_view(
      event("g1", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})")));
  standalone.reply->flush();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("notifications/tools/list_changed"));
  EXPECT_TRUE(link->is_listening());
  EXPECT_EQ(told_of_listening, 1);
  standalone.reply->abort();
  // It is more often opened again than the stream of a request.
  for (int i = 0; i < 10; ++i) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "g1");
    get.reply->abort();
  }
  next().reply->reply(405, {}, {});
  call();
  Asked post = next();
  EXPECT_EQ(post.method, "POST");
  post.reply->reply(200, kJson, answer(2, "{}"));
  ASSERT_TRUE(hears(2));
}

TEST_F(HttpLinkTest, AStreamThatWasOpenIsOpenedAgainWhateverGoesWrong) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->flush();
  ASSERT_TRUE(until([this] { return link->is_listening(); }));
  standalone.reply->abort();
  for (const int status : {500, 408, 400, 403}) next().reply->reply(status, {}, {});
  next().reply->reply(200, "text/html", "at work");
  Asked get = next();
  EXPECT_EQ(get.method, "GET");
  get.reply->start(200, kEvents);
  get.reply->flush();
  ASSERT_TRUE(until([this] { return link->is_listening(); }));
  get.reply->abort();
  next().reply->reply(404, {}, {});
  call();
  EXPECT_EQ(next().method, "POST") << "the server has no such stream any more";
}

TEST_F(HttpLinkTest, AQuietStreamThatAProxyEndsIsOpenedAgainEachTime) {
  lasting = 1ms;
  open_legacy(true);
  // More often than streams that fail at once.
  for (int i = 0; i < 6; ++i) {
    standalone.reply->start(200, kEvents);
    standalone.reply->flush();
    ASSERT_TRUE(until([this] { return link->is_listening(); }));
    const auto later = loop.clock().now() + 5ms;
    ASSERT_TRUE(until([&] { return loop.clock().now() > later; }));
    standalone.reply->finish();
    standalone = next();
    EXPECT_EQ(standalone.method, "GET");
  }
}

}  // namespace
}  // namespace sluice
